#include "calque/hub/offload.h"

#include <gtest/gtest.h>

#include "calque/base/warning.h"
#include "calque/hub/save_pretrained.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/zeros.h"
#include "hub/hub_support.h"

namespace calque::offload_test {
namespace {

using namespace hub_test;

Tensor logits_of(PretrainedModel& model) {
  const GradModeScope no_grad(false);
  return model({{arg::input_ids, arange(6, DType::int64).view({1, 6})}})["logits"];
}

DeviceMap half_on_disk() {
  return {{"model.embed_tokens", "cpu"}, {"model.layers.0", "cpu"},   {"model.layers.1", "disk"},
          {"model.norm", "disk"},        {"model.rotary_emb", "cpu"}, {"lm_head", "disk"}};
}

TEST(Offload, H130_weights_are_raw_files) {
  TemporaryFolder folder;
  const Tensor weight = arange(6, DType::float32).view({2, 3});
  const OffloadEntry entry = offload_weight(weight, "a.weight", folder.path());
  EXPECT_EQ(entry.dtype, "float32");
  EXPECT_EQ(entry.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(read_file(folder / "a.weight.dat").size(), 24U);
  EXPECT_TRUE(same_bits(load_offloaded_weight(folder / "a.weight.dat", entry), weight));
  const OffloadEntry half = offload_weight(weight.to(DType::bfloat16), "b", folder.path());
  EXPECT_EQ(half.dtype, "bfloat16");
  EXPECT_TRUE(same_bits(load_offloaded_weight(folder / "b.dat", half), weight.to(DType::bfloat16)));
  const OffloadEntry scalar = offload_weight(weight.select(0, 1).select(0, 2), "c", folder.path());
  EXPECT_TRUE(scalar.shape.empty());
  EXPECT_EQ(read_file(folder / "c.dat").size(), 4U);
  EXPECT_EQ(load_offloaded_weight(folder / "c.dat", scalar).dim(), 0);
  EXPECT_NE(error_of([&] {
              load_offloaded_weight(folder / "c.dat", {.dtype = "float32", .shape = {2}});
            }).find("has 4 bytes, expected float32 of shape [2]"),
            std::string::npos);
}

TEST(Offload, H131_the_index_is_merged) {
  TemporaryFolder folder;
  save_offload_index({}, folder.path());
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{});
  save_offload_index({{"a", {.dtype = "float32", .shape = {2, 3}}}, {"s", {.dtype = "int64"}}}, folder.path());
  EXPECT_EQ(read_file(folder / "index.json"),
            "{\n  \"a\": {\n    \"dtype\": \"float32\",\n    \"shape\": [\n      2,\n      3\n    ]\n  },\n  \"s\": {\n    "
            "\"dtype\": \"int64\",\n    \"shape\": []\n  }\n}");
  save_offload_index({{"b", {.dtype = "float16", .shape = {1}}}, {"a", {.dtype = "float32", .shape = {4}}}}, folder.path());
  const OffloadIndex index = load_offload_index(folder.path());
  ASSERT_EQ(index.size(), 3U);
  EXPECT_EQ(index[0].second.shape, std::vector<int64_t>{4});
  EXPECT_EQ(index[2].first, "b");
}

TEST(Offload, H132_weights_are_looked_up_in_order) {
  EXPECT_EQ(error_of([] { OffloadedWeights(std::nullopt, "", std::nullopt); }),
            "offloaded weights: need a state dict, a folder or an index that has them");
  TemporaryFolder folder;
  offload_state_dict({{"a", zeros({2})}, {"b", ones({3})}}, folder.path());
  save_safetensors((folder / "x.safetensors").string(), {{"inner", ones({2})}});
  OffloadIndex index = load_offload_index(folder.path());
  index.emplace_back(
      "c",
      OffloadEntry{.dtype = "float16", .safetensors_file = (folder / "x.safetensors").string(), .weight_name = "inner"});
  const OffloadedWeights weights(StateDict{{"a", ones({2})}}, folder.path(), index);
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(same_bits(weights.load("a"), ones({2})));
  EXPECT_TRUE(same_bits(weights.load("b"), ones({3})));
  EXPECT_TRUE(same_bits(weights.load("c"), ones({2}, DType::float16)));
  EXPECT_EQ(error_of([&] { weights.load("d"); }), "offloaded weights: there is no weight d");
}

TEST(Offload, H128_a_bin_checkpoint_needs_a_folder) {
  const auto model = tiny_llama();
  const Tensor expected = logits_of(*model);
  TemporaryFolder folder;
  save_pretrained(*model, folder / "bin", {.safe_serialization = false});
  save_pretrained(*model, folder / "safe");
  const std::string error = error_of([&] { load_dispatched(folder / "bin", {}, {.map = half_on_disk()}); });
  EXPECT_NE(error.find("is no safetensors file, whose weights could stay in it; give an offload_folder"), std::string::npos)
      << error;
  for (const bool safe : {false, true}) {
    DispatchOptions options{.map = half_on_disk()};
    if (!safe) options.offload_folder = folder / "weights";
    const LoadedModel loaded = load_dispatched(folder / (safe ? "safe" : "bin"), {}, options);
    EXPECT_EQ(loaded.model->get_parameter("lm_head.weight").device().type, DeviceType::meta);
    EXPECT_NE(loaded.model->get_parameter("model.embed_tokens.weight").device().type, DeviceType::meta);
    EXPECT_TRUE(same_bits(logits_of(*loaded.model), expected));
    EXPECT_TRUE(same_bits(logits_of(*loaded.model), expected));
    EXPECT_EQ(loaded.model->get_parameter("lm_head.weight").device().type, DeviceType::meta);
    // Saving brings the weights back.
    save_pretrained(*loaded.model, folder / "again");
    EXPECT_EQ(difference(*from_pretrained(folder / "again"), *model), "");
  }
  EXPECT_TRUE(names_in(folder / "weights").count("lm_head.weight.dat"));
}

TEST(Offload, H133_planned_under_limits_the_logits_are_the_same) {
  const auto base = tiny_llama("LlamaModel");
  TemporaryFolder folder;
  save_pretrained(*base, folder.path());
  const double size = compute_module_sizes(*base).of("");
  const LoadedModel plain = load_pretrained(folder.path(), {.model_class = "LlamaModel"});
  const LoadedModel split = load_dispatched(folder.path(), {.model_class = "LlamaModel"},
                                            {.device_map = "auto", .max_memory = {{"cpu", 0.8 * size}}});
  ASSERT_TRUE(split.model->dispatched && split.model->dispatched->weights) << device_map_text(split.model->dispatched->map);
  const GradModeScope no_grad(false);
  const ModelInputs inputs{{arg::input_ids, arange(6, DType::int64).view({1, 6})}};
  EXPECT_TRUE(same_bits((*plain.model)(inputs)["last_hidden_state"], (*split.model)(inputs)["last_hidden_state"]));
}

TEST(Offload, H113_a_device_map_never_loads_twice) {
  const auto model = tiny_llama();
  TemporaryFolder folder;
  save_pretrained(*model, folder.path());
  EXPECT_EQ(error_of([&] { load_dispatched(folder.path(), {}, {.device_map = "cpu", .low_cpu_mem_usage = false}); }),
            "load_dispatched: a device map requires low_cpu_mem_usage=true; weights are mapped, not loaded and then moved");
  // Whatever else is said, weights stay in the mapped file.
  const LoadedModel loaded = load_dispatched(folder.path(), {}, {.device_map = "cpu"});
  EXPECT_TRUE(loaded.model->get_parameter("lm_head.weight").storage()->is_read_only());
}

TEST(Offload, H134_shards_for_the_disk_alone) {
  const DeviceMap map = {{"a", "cpu"}, {"b", "disk"}};
  EXPECT_EQ(disk_only_shards(map, {{"a.x", "1"}, {"b.x", "1"}, {"b.y", "2"}, {"a.y", "3"}}), std::vector<std::string>{"2"});
}

TEST(Offload, H135_what_dispatching_refuses) {
  const auto model = tiny_llama();
  EXPECT_EQ(error_of([&] {
              dispatch_model(*model, {{"model", 0}, {"lm_head", "cpu"}});
            }),
            "dispatch_model: the device map puts model on 0, and Calque has no accelerator here; limit max_memory to 'cpu' "
            "and 'disk', or give a map over these");
  EXPECT_NE(error_of([&] { dispatch_model(*model, {{"", "disk"}}); }).find("the whole model is on disk"), std::string::npos);
  EXPECT_NE(error_of([&] { dispatch_model(*model, half_on_disk()); })
                .find("an offload_folder is needed for this device map; these modules are for the disk: model.layers.1, "
                      "model.norm, lm_head"),
            std::string::npos);
  dispatch_model(*model, {{"", "cpu"}});
  ASSERT_TRUE(model->dispatched);
  EXPECT_FALSE(model->dispatched->weights);
  TemporaryFolder folder;
  dispatch_model(*model, half_on_disk(), {.offload_folder = folder.path()});
  EXPECT_NE(error_of([&] { model->to(Device(DeviceType::cpu)); }).find("Cannot copy out of meta tensor"), std::string::npos);
}

TEST(Offload, a_failing_call_lets_the_weights_go) {
  const auto model = tiny_llama();
  TemporaryFolder folder;
  dispatch_model(*model, half_on_disk(), {.offload_folder = folder.path()});
  std::filesystem::remove(folder / "lm_head.weight.dat");
  EXPECT_NE(error_of([&] { logits_of(*model); }).find("lm_head.weight.dat"), std::string::npos);
  EXPECT_EQ(model->get_parameter("model.norm.weight").device().type, DeviceType::meta);
}

}  // namespace
}  // namespace calque::offload_test
