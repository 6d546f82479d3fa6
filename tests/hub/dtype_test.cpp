// Which dtype a model gets: rows of area dtype.
#include <gmock/gmock.h>

#include "calque/hub/model_info.h"
#include "calque/op/aten/zeros.h"
#include "calque/tensor/default_dtype.h"
#include "hub/load_support.h"
#include "support/conformance.h"

namespace calque::load_test {
namespace {

using testing::HasSubstr;

// A folder of a BufferModel with weights of one dtype; `named` is what its config says.
void save_as(const Folder& folder, DType dtype, const std::string& named = "") {
  const auto model = new_model("BufferModel", named.empty() ? "" : "\"torch_dtype\": \"" + named + "\"");
  std::string config = R"({"model_type": "calque-test", "architectures": ["BufferModel"])";
  if (!named.empty()) config += ", \"torch_dtype\": \"" + named + "\"";
  folder.write("config.json", config + "}");
  NamedTensors tensors;
  for (const auto& [name, tensor] : tensors_of(*model)) tensors.emplace_back(name, tensor.to(dtype));
  folder.tensors("model.safetensors", tensors);
}

TEST(DTypes, H065_asked_for_or_as_the_file_is) {
  Folder half, whole;
  save_as(half, DType::float16);
  save_as(whole, DType::float32);
  EXPECT_EQ(parameter_dtype(*from_pretrained(half.path(), {.dtype = DType::float32})), DType::float32);
  EXPECT_EQ(from_pretrained(whole.path(), {.dtype = DType::float16})->get_parameter("linear.weight").dtype(),
            DType::float16);
  // transformers 4 made every model float32 unless asked; since 5 unasked is auto.
  EXPECT_EQ(from_pretrained(half.path())->get_parameter("linear.weight").dtype(), DType::float16);
  EXPECT_EQ(parameter_dtype(*from_pretrained(whole.path())), DType::float32);
}

TEST(DTypes, the_configs_d_type_counts) {
  Folder folder;
  save_as(folder, DType::float32, "bfloat16");
  const auto model = from_pretrained(folder.path());
  EXPECT_EQ(parameter_dtype(*model), DType::bfloat16);
  EXPECT_EQ(model->get_buffer("running").dtype(), DType::bfloat16);
  EXPECT_EQ(model->get_buffer("ids").dtype(), DType::int64);
  EXPECT_EQ(model->config().dtype(), DType::bfloat16);
}

TEST(DTypes, H067_integers_do_not_say) {
  const auto model = new_model("BaseModel");
  NamedTensors tensors{{"a_counter", ones({2}, DType::int64)}};
  for (const auto& item : tensors_of(*model)) tensors.push_back(item);
  EXPECT_EQ(Checkpoint::of(tensors).dtype(), DType::float32);
  EXPECT_EQ(Checkpoint::of({{"a", ones({2}, DType::int64)}}).dtype(), DType::int64);
}

TEST(DTypes, H068_what_is_no_d_type) {
  EXPECT_EQ(dtype_option("auto"), std::nullopt);
  EXPECT_EQ(dtype_option("float16"), DType::float16);
  EXPECT_THAT(error_of([] { dtype_option("four"); }),
              HasSubstr("dtype can only be \"auto\" or the name of a dtype such as float32 or bfloat16, found \"four\""));
  EXPECT_THAT(error_of([] { from_pretrained(golden("tiny"), {.dtype = DType::int64}); }),
              HasSubstr("LlamaForCausalLM cannot be instantiated under dtype int64, as it is not a floating-point dtype"));
}

TEST(DTypes, H069_models_from_a_config) {
  const Config config = test_config("BaseModel");
  EXPECT_EQ(parameter_dtype(*from_config(config)), DType::float32);
  EXPECT_EQ(parameter_dtype(*from_config(config, {.dtype = DType::float16})), DType::float16);
  EXPECT_THAT(error_of([&] { from_config(config, {.dtype = DType::int64}); }), HasSubstr("not a floating-point dtype"));
  EXPECT_EQ(default_dtype(), DType::float32);
}

TEST(DTypes, the_default_of_a_thread_is_put_back) {
  {
    const DefaultDTypeScope scope(DType::bfloat16);
    EXPECT_EQ(zeros({1}).dtype(), DType::bfloat16);
    EXPECT_THROW(DefaultDTypeScope{DType::int32}, UserError);
    EXPECT_EQ(default_dtype(), DType::bfloat16);
  }
  EXPECT_EQ(default_dtype(), DType::float32);
}

TEST(DTypes, H070_the_config_names_it) {
  const auto model = new_model("BaseModel", R"("dtype": "float16")");
  EXPECT_EQ(parameter_dtype(*model), DType::float16);
  Folder folder;
  model->config().save(folder.path());
  EXPECT_THAT(read_file(folder / "config.json"), HasSubstr("\"dtype\": \"float16\""));
  EXPECT_EQ(Config::from_file(folder.path()).dtype(), DType::float16);
}

TEST(DTypes, H071_parts_that_stay_float32) {
  Folder folder;
  save_as(folder, DType::float32);
  const auto model = from_pretrained(folder.path(), {.dtype = DType::float16});
  for (const auto& [name, tensor] : model->named_parameters())
    EXPECT_EQ(tensor.dtype(), name.starts_with("kept.") ? DType::float32 : DType::float16) << name;
}

TEST(DTypes, H072_only_float16_asks_for_them) {
  Folder folder;
  save_as(folder, DType::float32);
  const auto model = from_pretrained(folder.path(), {.dtype = DType::bfloat16});
  for (const auto& [name, tensor] : model->named_parameters()) EXPECT_EQ(tensor.dtype(), DType::bfloat16) << name;
}

TEST(DTypes, H074_shards_and_their_index) {
  const auto model = new_model("BaseModel");
  Folder folder;
  folder.write("config.json", R"({"model_type": "calque-test", "architectures": ["BaseModel"]})");
  NamedTensors first, second;
  for (const auto& [name, tensor] : tensors_of(*model))
    (name.starts_with("linear.") ? first : second)
        .emplace_back(name, tensor.to(name.starts_with("linear.") ? DType::bfloat16 : DType::float32));
  folder.tensors("a.safetensors", first);
  folder.tensors("b.safetensors", second);
  const auto write_index = [&](const std::string& metadata) {
    folder.write("model.safetensors.index.json",
                 "{\"metadata\": {" + metadata +
                     R"(}, "weight_map": {"linear.weight": "a.safetensors", "linear.bias": "a.safetensors",
      "linear_2.weight": "b.safetensors", "linear_2.bias": "b.safetensors"}})");
  };
  write_index("");
  EXPECT_EQ(parameter_dtype(*from_pretrained(folder.path())), DType::bfloat16);
  write_index(R"("dtype": "float16")");
  EXPECT_EQ(parameter_dtype(*from_pretrained(folder.path())), DType::float16);
}

TEST(DTypes, H075_the_d_type_of_a_model) {
  struct Mixed : Module {
    Mixed() {
      register_parameter("a", ones({1}, DType::int32), false);
      register_parameter("b", ones({1}, DType::bfloat16));
      register_parameter("c", ones({1}));
    }
  };
  struct Whole : Module {
    Whole() {
      register_parameter("a", ones({1}, DType::int32), false);
      register_parameter("b", ones({1}, DType::int8), false);
    }
  };
  EXPECT_EQ(parameter_dtype(Mixed()), DType::bfloat16);
  EXPECT_EQ(parameter_dtype(Whole()), DType::int8);
  EXPECT_THAT(error_of([] { parameter_dtype(Module()); }), HasSubstr("no parameters, and so no dtype"));
}

TEST(DTypes, H076_bytes_of_ad_type) {
  EXPECT_EQ(item_size(DType::float32), 4u);
  EXPECT_EQ(item_size(DType::bfloat16), 2u);
  EXPECT_EQ(item_size(DType::int64), 8u);
  // Python's helper counts a bool as an eighth and knows no 8-bit floats by their names; here both are one byte.
  EXPECT_EQ(item_size(DType::bool_), 1u);
  EXPECT_EQ(item_size(DType::float8_e4m3fn), 1u);
}

TEST(DTypes, H077_the_memory_of_a_model) {
  const auto model = new_model("BufferModel");
  const int64_t parameters = 2 * (25 + 5) * 4;
  EXPECT_EQ(memory_footprint(*model, false), parameters);
  EXPECT_EQ(memory_footprint(*model), parameters + 3 * 4 + 4 * 8) << "buffers, persistent or not";
  EXPECT_EQ(memory_footprint(*new_model("TiedBaseModel"), false), (25 + 5 + 5) * 4) << "tied parameters once";
  EXPECT_EQ(memory_footprint(*from_config(model->config(), {.dtype = DType::bfloat16}), false), parameters / 2);
}

TEST(DTypes, H078_the_parameters_of_a_model) {
  EXPECT_EQ(num_parameters(*new_model("TiedBaseModel")), 25 + 5 + 5);
  const auto llama = from_pretrained(golden("tiny"));
  const int64_t all = num_parameters(*llama);
  EXPECT_EQ(num_parameters(*llama, false, true), all - 20 * 8);
  llama->get_parameter("lm_head.weight").set_requires_grad(false);
  EXPECT_EQ(num_parameters(*llama, true), all - 20 * 8);
}

TEST(DTypes, H079_operations_of_a_model) {
  const auto llama = from_pretrained(golden("tiny"));
  ModelInputs inputs;
  inputs.set(arg::input_ids, zeros({2, 5}, DType::int64));
  EXPECT_EQ(floating_point_ops(*llama, inputs), 6 * 10 * num_parameters(*llama, false, true));
  const Warnings warnings;
  EXPECT_EQ(floating_point_ops(*llama, {}), 0);
  EXPECT_EQ(floating_point_ops(*llama, {}), 0);
  EXPECT_EQ(warnings.all().size(), 1u);
}

}  // namespace
}  // namespace calque::load_test
