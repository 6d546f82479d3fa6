// Finding and reading weights: rows of area load and shard (reading).
#include <gmock/gmock.h>

#include "calque/hub/registry.h"
#include "calque/nn/meta_parameters.h"
#include "calque/op/aten/random.h"
#include "calque/tensor/generator.h"
#include "hub/load_support.h"
#include "support/conformance.h"
#include "support/error_support.h"

namespace calque::load_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

void expect_equal_models(PretrainedModel& a, PretrainedModel& b) {
  const StateDict left = a.state_dict(), right = b.state_dict();
  ASSERT_EQ(left.size(), right.size());
  for (const auto& [name, tensor] : left) EXPECT_TRUE(same(tensor, right.at(name))) << name;
}

Tensor logits_of(PretrainedModel& model) {
  const GradModeScope no_grad(false);
  ModelInputs inputs;
  inputs.set(arg::input_ids, SafetensorsFile::open(golden("tiny_expected.safetensors").string()).tensor("input_ids"));
  return model(inputs)["logits"];
}

double worst(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item_as<double>(); }

TEST(Load, the_logits_are_those_of_transformers) {
  const auto model = from_pretrained(golden("tiny"));
  EXPECT_LT(worst(logits_of(*model), SafetensorsFile::open(golden("tiny_expected.safetensors").string()).tensor("logits")),
            1e-6);
  EXPECT_FALSE(model->training());
  EXPECT_EQ(model->class_name(), "LlamaForCausalLM");
}

TEST(Load, weights_stay_mapped) {
  const auto model = from_pretrained(golden("tiny"));
  for (const auto& [name, tensor] : model->named_parameters()) {
    EXPECT_TRUE(tensor.storage()->is_read_only()) << name;
    EXPECT_TRUE(tensor.requires_grad()) << name;
  }
}

TEST(Load, nothing_is_allocated_for_parameters_that_are_loaded) {
  const MetaParametersScope scope;
  const Linear linear(3, 4);
  EXPECT_EQ(linear.weight->device().type, DeviceType::meta);
  EXPECT_TRUE(linear.weight->requires_grad());
}

TEST(Load, H001_which_file_counts) {
  const auto model = new_model("BaseModel");
  const NamedTensors tensors = tensors_of(*model);
  const std::string index = R"({"metadata": {}, "weight_map": {"linear.weight": "part.FORM"}})";
  const auto index_of = [&](const std::string& form) {
    std::string text = index;
    return text.replace(text.find("FORM"), 4, form);
  };
  Folder folder;
  folder.tensors("part.safetensors", tensors);
  folder.pickle("part.bin", tensors);
  folder.write("pytorch_model.bin.index.json", index_of("bin"));
  folder.pickle("pytorch_model.bin", tensors);
  folder.write("model.safetensors.index.json", index_of("safetensors"));
  folder.tensors("model.safetensors", tensors);
  const auto chosen = [&] {
    const CheckpointFiles files = find_checkpoint(ModelFiles(folder.path().string()));
    return (files.is_sharded() ? files.index : files.files.at(0)).filename().string();
  };
  for (const char* name :
       {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    EXPECT_EQ(chosen(), name);
    const CheckpointFiles files = find_checkpoint(ModelFiles(folder.path().string()));
    EXPECT_EQ(files.is_sharded(), std::string(name).ends_with(".index.json"));
    fs::remove(folder / name);
  }
  EXPECT_THAT(error_of(chosen), HasSubstr("no file named model.safetensors, model.safetensors.index.json, pytorch_model.bin "
                                          "or pytorch_model.bin.index.json"));
}

TEST(Load, H002_safetensors_may_be_left_aside) {
  Folder folder;
  folder.copy(golden("tiny/model.safetensors"), "model.safetensors");
  folder.copy(golden("tiny/config.json"), "config.json");
  const std::string text = error_of([&] { from_pretrained(folder.path(), {.use_safetensors = false}); });
  for (const char* part : {"pytorch_model.bin", "tf_model.h5", "model.ckpt.index", "flax_model.msgpack"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_THAT(text, HasSubstr(folder.path().string()));
  EXPECT_THAT(text, HasSubstr("there are safetensors weights, which use_safetensors=false leaves aside"));
  EXPECT_THAT(error_of([&] { find_checkpoint(ModelFiles(golden("tiny_4_40_bin").string()), {.use_safetensors = true}); }),
              HasSubstr("no file named model.safetensors or model.safetensors.index.json found in directory"));
}

TEST(Load, H005_a_weight_file_named_directly) {
  const Config config = Config::from_file(golden("tiny"));
  const auto expected = from_pretrained(golden("tiny"));
  for (const char* file :
       {"tiny/model.safetensors", "pickles/zip.bin", "pickles/legacy.bin", "tiny_sharded/model.safetensors.index.json"}) {
    const auto model = from_pretrained(golden(file), {.config = config});
    expect_equal_models(*model, *expected);
  }
  Folder folder;
  folder.write("model.ckpt.index", "");
  EXPECT_THAT(error_of([&] { from_pretrained(folder / "model.ckpt", {.config = config}); }), HasSubstr("from_tf=True"));
  EXPECT_THAT(error_of([&] { from_pretrained(golden("pickles/zip.bin")); }),
              HasSubstr("no config.json beside it: give a config, or name a folder"));
}

TEST(Load, H006_a_subfolder) {
  Folder folder;
  folder.copy(golden("tiny"), "bert");
  EXPECT_THAT(error_of([&] { from_pretrained(folder.path()); }),
              HasSubstr("does not appear to have a file named config.json"));
  expect_equal_models(*from_pretrained(folder.path(), {.subfolder = "bert"}), *from_pretrained(golden("tiny")));
  EXPECT_THAT(error_of([&] { from_pretrained(folder.path(), {.subfolder = "other"}); }), HasSubstr("no folder 'other' in"));
  EXPECT_THAT(error_of([&] { from_pretrained(folder.path(), {.subfolder = "../bert"}); }),
              HasSubstr("leads out of the model's folder"));
}

TEST(Load, H007_shards_in_a_subfolder) {
  Folder folder;
  folder.copy(golden("tiny_sharded"), "bert");
  EXPECT_THAT(error_of([&] { from_pretrained(folder.path()); }),
              HasSubstr("does not appear to have a file named config.json"));
  expect_equal_models(*from_pretrained(folder.path(), {.subfolder = "bert"}), *from_pretrained(golden("tiny")));
}

TEST(Load, H008_a_state_dict_in_memory) {
  const auto model = new_model("HeadModel");
  const LoadedModel loaded = load_pretrained(model->config(), model->state_dict());
  EXPECT_TRUE(loaded.report.empty());
  for (const auto& [name, tensor] : loaded.model->named_parameters()) {
    EXPECT_TRUE(same(tensor, model->get_parameter(name))) << name;
    EXPECT_EQ(tensor.data(), model->get_parameter(name).data()) << "it is not copied";
  }
}

TEST(Load, H010_pickles_of_both_kinds) {
  const auto expected = from_pretrained(golden("tiny"));
  const Config config = Config::from_file(golden("tiny"));
  for (const char* file : {"pickles/zip.bin", "pickles/legacy.bin", "pickles/big_endian.bin"})
    expect_equal_models(*from_pretrained(golden(file), {.config = config}), *expected);
}

TEST(Load, H012_pickles_that_ask_for_more_are_refused) {
  Folder folder;
  folder.copy(golden("tiny/config.json"), "config.json");
  const auto refused = [&](const std::string& bytes) {
    folder.write("pytorch_model.bin", bytes);
    return error_of([&] { from_pretrained(folder.path()); });
  };
  // A legacy file whose content is os.system("true"): the magic number, the protocol, no facts, the call.
  const std::string magic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
  const std::string start = magic + std::string("\x80\x02M\xe9\x03.", 6) + std::string("\x80\x02}q\x00.", 6);
  const std::string code = refused(start +
                                   "\x80\x02"
                                   "cos\nsystem\nX\x04" +
                                   std::string("\0\0\0true\x85R.\x80\x02].", 14));
  EXPECT_THAT(code, HasSubstr("unable to load weights from the checkpoint file"));
  EXPECT_THAT(code, HasSubstr("os.system"));
  EXPECT_THAT(refused(start + "\x80\x02}\xfe."), HasSubstr("opcode"));
  EXPECT_THAT(refused(read_file(golden("pickles/legacy.bin")).substr(0, 3000)), HasSubstr("unable to load weights"));
  EXPECT_THAT(refused(read_file(golden("pickles/zip.bin")).substr(0, 9000)), HasSubstr("unable to load weights"));
}

TEST(Load, H014_tensors_of_one_storage_share_it) {
  const Checkpoint checkpoint = Checkpoint::open(checkpoint_at(golden("pickles/views.bin")));
  ASSERT_EQ(checkpoint.tensors().size(), 3u);
  const Tensor whole = checkpoint.tensors()[0].second, part = checkpoint.tensors()[1].second,
               turned = checkpoint.tensors()[2].second;
  EXPECT_EQ(static_cast<const float*>(part.data()), static_cast<const float*>(whole.data()) + 3);
  EXPECT_EQ(turned.data(), whole.data());
  EXPECT_EQ(str(turned.strides()), "[1, 4]");
  EXPECT_EQ(part.device().type, DeviceType::cpu);
}

TEST(Load, H015_a_git_lfs_pointer) {
  Folder folder;
  folder.copy(golden("tiny/config.json"), "config.json");
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 7312\n";
  for (const char* name : {"pytorch_model.bin", "model.safetensors"}) {
    folder.write(name, pointer);
    const std::string text = error_of([&] { from_pretrained(folder.path()); });
    EXPECT_THAT(text, HasSubstr("found a Git LFS pointer"));
    EXPECT_THAT(text, HasSubstr("`git lfs install` followed by `git lfs pull`"));
    EXPECT_THAT(text, HasSubstr(name));
  }
  fs::remove(folder / "model.safetensors");
  folder.write("pytorch_model.bin", "something else");
  EXPECT_THAT(error_of([&] { from_pretrained(folder.path()); }), HasSubstr((folder / "pytorch_model.bin").string()));
}

TEST(Load, H016_the_format_in_the_metadata) {
  const auto model = new_model("BaseModel");
  Folder folder;
  save_test_model(*model, folder.path());
  folder.tensors("model.safetensors", tensors_of(*model), SafetensorsMetadata{{"format", "npz"}});
  EXPECT_THAT(error_of([&] { from_pretrained(folder.path()); }),
              HasSubstr("gives format 'npz', expected pt, tf, flax or mlx"));
  fs::rename(folder / "model.safetensors", folder / "shard.safetensors");
  folder.write("model.safetensors.index.json", R"({"metadata": {}, "weight_map": {"linear.weight": "shard.safetensors"}})");
  EXPECT_THAT(error_of([&] { from_pretrained(folder.path()); }), HasSubstr("does not contain the valid metadata"));
  // transformers 5 no longer asks for the metadata, and files without it are common.
  folder.tensors("shard.safetensors", tensors_of(*model), std::nullopt);
  expect_equal_models(*from_pretrained(folder.path()), *model);
}

TEST(Load, H017_files_of_mlx) {
  const auto model = new_model("BaseModel");
  Folder folder;
  save_test_model(*model, folder.path());
  folder.tensors("model.safetensors", tensors_of(*model), SafetensorsMetadata{{"format", "mlx"}});
  expect_equal_models(*from_pretrained(folder.path()), *model);
}

TEST(Load, quantised_weights_are_refused_by_name) {
  const auto said = [](const std::string& quantised) {
    const Folder folder;
    fs::copy(golden("tiny"), folder.path(), fs::copy_options::recursive);
    std::string config = read_file(golden("tiny") / "config.json");
    config.insert(config.find('{') + 1, quantised + ",");
    folder.write("config.json", config);
    return error_of([&] { from_pretrained(folder.path()); }, ErrorKind::bad_file);
  };
  EXPECT_THAT(said(R"("quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": true})"),
              testing::AllOf(HasSubstr("config.json: \"quantization_config\""), HasSubstr("quantised (bitsandbytes)")));
  EXPECT_THAT(said(R"("quantization_config": {"load_in_4bit": true})"), HasSubstr("quantised (bitsandbytes)"));
  EXPECT_THAT(said(R"("quantization_config": {"quant_method": "gptq", "bits": 4})"), HasSubstr("quantised (gptq)"));
  EXPECT_THAT(said(R"("compression_config": {"quant_method": "compressed-tensors"})"), HasSubstr("compressed-tensors"));
  EXPECT_EQ(said(R"("quantization_config": null)"), "");
}

TEST(Load, H020_constructing_wants_a_config) {
  CALQUE_NOT_APPLICABLE("a model's constructor takes a Config; nothing else compiles");
}

TEST(Load, H021_a_config_of_another_architecture) {
  register_test_models();
  Folder folder;
  const auto model = new_model("BaseModel");
  save_test_model(*model, folder.path());
  std::string text = read_file(folder / "config.json");
  text.replace(text.find("calque-test"), 11, "calque-past");
  folder.write("config.json", text);
  const Warnings warnings;
  const auto loaded = from_pretrained(folder.path(), {.model_class = "BaseModel"});
  EXPECT_TRUE(warnings.any("You are using a model of type calque-past to instantiate a model of type calque-test"));
  expect_equal_models(*loaded, *model);
  EXPECT_EQ(loaded->config().model_type(), "calque-test");
}

TEST(Load, H023_only_what_is_missing_is_initialised) {
  const auto model = new_model("HeadModel");
  for (const auto& [missing, tensor] : tensors_of(*model)) {
    const LoadedModel loaded = load_pretrained(model->config(), StateDict(without(tensors_of(*model), {missing})));
    EXPECT_THAT(loaded.report.missing_keys, ElementsAre(missing));
    for (const auto& [name, value] : loaded.model->state_dict()) {
      if (name != missing) {
        EXPECT_TRUE(same(value, model->get_parameter(name))) << name;
      } else if (name.ends_with("bias")) {
        EXPECT_EQ(value.abs().max().item_as<double>(), 0);
      } else {
        EXPECT_GT(value.abs().max().item_as<double>(), 0);
        EXPECT_LT(value.abs().max().item_as<double>(), 0.02 * 6);
      }
    }
  }
}

TEST(Load, H024_missing_parts_are_initialised_as_transformers_does) {
  // The same seed gives the same numbers: nothing else is drawn, in the same order.
  const SafetensorsFile expected = SafetensorsFile::open(golden("initialised.safetensors").string());
  const Warnings quiet;
  Folder base;
  base.copy(golden("tiny/config.json"), "config.json");
  NamedTensors stripped;
  const SafetensorsFile tiny = SafetensorsFile::open(golden("tiny/model.safetensors").string());
  for (const auto& [name, tensor] : tiny.tensors())
    if (name.starts_with("model.")) stripped.emplace_back(name.substr(6), tensor);
  base.tensors("model.safetensors", stripped);
  manual_seed(7);
  const auto classifier =
      from_pretrained(base.path(), {.model_class = "LlamaForSequenceClassification", .config_updates = {{"num_labels", 3}}});
  EXPECT_TRUE(same(classifier->get_parameter("score.weight"), expected.tensor("score.weight")));
  manual_seed(7);
  const auto small =
      from_pretrained(golden("tiny"), {.config_updates = {{"vocab_size", 10}}, .ignore_mismatched_sizes = true});
  EXPECT_TRUE(same(small->get_parameter("model.embed_tokens.weight"), expected.tensor("embed_tokens.weight")));
  EXPECT_TRUE(same(small->get_parameter("lm_head.weight"), expected.tensor("lm_head.weight")));
  manual_seed(7);
  const auto deep = from_pretrained(golden("tiny"), {.config_updates = {{"num_hidden_layers", 3}}});
  for (const char* name : {"self_attn.q_proj", "self_attn.o_proj", "mlp.down_proj", "input_layernorm"})
    EXPECT_TRUE(same(deep->get_parameter("model.layers.2." + std::string(name) + ".weight"),
                     expected.tensor("layers.2." + std::string(name) + ".weight")))
        << name;
}

TEST(Load, H024_inside_the_scope_nothing_is_initialised) {
  manual_seed(3);
  const Tensor first = rand({4});
  manual_seed(3);
  {
    const MetaParametersScope scope;
    const Linear linear(3, 4);
    const Embedding embedding(5, 6);
  }
  EXPECT_TRUE(same(first, rand({4})));
  const Linear after(3, 4);
  EXPECT_EQ(after.weight->device().type, DeviceType::cpu);
}

TEST(Load, a_parameter_that_the_constructor_made_is_kept) {
  const auto model = new_model("ScaledModel");
  const Warnings quiet;
  const LoadedModel loaded =
      load_pretrained(model->config(), StateDict(without(tensors_of(*model), {"scale"})), {.dtype = DType::bfloat16});
  EXPECT_THAT(loaded.report.missing_keys, ElementsAre("scale"));
  EXPECT_EQ(loaded.model->get_parameter("scale").dtype(), DType::bfloat16);
  EXPECT_EQ(loaded.model->get_parameter("scale").min().item_as<double>(), 2.5);
}

TEST(Load, H025_the_generation_config_comes_with_the_model) {
  EXPECT_EQ(from_pretrained(golden("tiny"))->generation_config_json, read_file(golden("tiny/generation_config.json")));
  Folder folder;
  folder.copy(golden("tiny/config.json"), "config.json");
  folder.copy(golden("tiny/model.safetensors"), "model.safetensors");
  // Without one it is derived from the config, which generate/ does.
  EXPECT_EQ(from_pretrained(folder.path())->generation_config_json, "");
}

TEST(Load, H026_how_attention_is_computed) {
  EXPECT_THAT(error_of([] { from_pretrained(golden("tiny"), {.attention = "foo"}); }),
              HasSubstr("the only possible values are \"eager\""));
  EXPECT_THAT(error_of([] { from_pretrained(golden("tiny"), {.attention = "flash_attention_2"}); }),
              HasSubstr("is not supported"));
  EXPECT_EQ(from_pretrained(golden("tiny"))->config().attention_implementation, "sdpa");
  EXPECT_EQ(from_pretrained(golden("tiny"), {.attention = "eager"})->config().attention_implementation, "eager");
  const auto model = new_model("BufferModel");
  EXPECT_EQ(model->config().attention_implementation, "eager") << "the class has no sdpa";
  EXPECT_THAT(error_of([&] { load_pretrained(model->config(), model->state_dict(), {.attention = "sdpa"}); }),
              HasSubstr("BufferModel does not support attention \"sdpa\""));
}

TEST(Load, H027_weights_become_contiguous) {
  const Config config = Config::from_file(golden("tiny"));
  const auto model = from_pretrained(golden("pickles/transposed.bin"), {.config = config});
  EXPECT_TRUE(model->get_parameter("lm_head.weight").is_contiguous());
  expect_equal_models(*model, *from_pretrained(golden("tiny")));
}

TEST(Load, H048_shards_into_a_model_that_is_there) {
  const auto expected = from_pretrained(golden("tiny"));
  const auto model = from_config(expected->config());
  const IncompatibleKeys keys = load_sharded_checkpoint(*model, golden("tiny_sharded"));
  EXPECT_TRUE(keys.missing_keys.empty() && keys.unexpected_keys.empty());
  expect_equal_models(*model, *expected);
  const std::string none = error_of([&] { load_sharded_checkpoint(*model, golden("tiny")); });
  EXPECT_THAT(none, HasSubstr("pytorch_model.bin.index.json or model.safetensors.index.json"));
  const auto other = new_model("BaseModel");
  const std::string strict = error_of([&] { load_sharded_checkpoint(*other, golden("tiny_sharded")); });
  EXPECT_THAT(strict, HasSubstr("Error(s) in loading state_dict for BaseModel"));
  EXPECT_THAT(strict, HasSubstr("Missing key(s): \"linear.weight\""));
  EXPECT_EQ(load_sharded_checkpoint(*other, golden("tiny_sharded"), false).unexpected_keys.size(), 21u);

  Folder both;
  both.copy(golden("tiny_sharded"), "both");
  both.copy(golden("tiny_4_40_bin/pytorch_model.bin.index.json"), "both/pytorch_model.bin.index.json");
  for (int i = 1; i <= 3; ++i)
    both.copy(golden("tiny_4_40_bin/pytorch_model-0000" + std::to_string(i) + "-of-00003.bin"),
              "both/pytorch_model-0000" + std::to_string(i) + "-of-00003.bin");
  EXPECT_EQ(find_sharded_checkpoint(both / "both", true).files[0].extension(), ".safetensors");
  EXPECT_EQ(find_sharded_checkpoint(both / "both", false).files[0].extension(), ".bin");
}

TEST(Load, H049_every_form_gives_the_same_model) {
  const auto expected = from_pretrained(golden("tiny"));
  expect_equal_models(*from_pretrained(golden("tiny_sharded")), *expected);
  // transformers 4.40 made its own from the same seed.
  const auto old = from_pretrained(golden("tiny_4_40_bin"));
  EXPECT_EQ(old->state_dict().size(), expected->state_dict().size());
  EXPECT_EQ(str(logits_of(*old).sizes()), "[1, 5, 20]");
  Folder folder;
  folder.copy(golden("tiny/config.json"), "config.json");
  folder.copy(golden("pickles/zip.bin"), "pytorch_model.bin");
  expect_equal_models(*from_pretrained(folder.path()), *expected);
}

TEST(Load, variants) {
  EXPECT_EQ(with_variant("model.safetensors", "fp16"), "model.fp16.safetensors");
  EXPECT_EQ(with_variant("model.safetensors.index.json", "fp16"), "model.safetensors.index.fp16.json");
  Folder folder;
  folder.copy(golden("tiny/config.json"), "config.json");
  folder.copy(golden("tiny/model.safetensors"), "model.fp16.safetensors");
  expect_equal_models(*from_pretrained(folder.path(), {.variant = "fp16"}), *from_pretrained(golden("tiny")));
  EXPECT_THAT(error_of([&] { from_pretrained(folder.path()); }), HasSubstr("It has config.json, model.fp16.safetensors"));
  fs::rename(folder / "model.fp16.safetensors", folder / "model.safetensors");
  EXPECT_THAT(error_of([&] { from_pretrained(folder.path(), {.variant = "fp16"}); }),
              HasSubstr("there is model.safetensors, without the variant fp16"));
}

TEST(LoadErrors, a_wrong_folder) {
  Folder folder;
  EXPECT_THAT(error_of([&] { from_pretrained(folder / "nowhere"); }), HasSubstr("there is no such path"));
  EXPECT_THAT(error_of([&] { from_pretrained(folder.path()); }),
              HasSubstr("does not appear to have a file named config.json. It has no files"));
}

TEST(LoadErrors, a_missing_shard) {
  Folder folder;
  folder.copy(golden("tiny_sharded"), "model");
  fs::remove(folder / "model/model-00002-of-00003.safetensors");
  const std::string text = error_of([&] { from_pretrained(folder / "model"); });
  EXPECT_THAT(text, HasSubstr("a file named model-00002-of-00003.safetensors, required according to the checkpoint index"));
  EXPECT_THAT(text, HasSubstr("2 of its 3 shards are there"));
}

TEST(LoadErrors, an_index_that_is_none) {
  Folder folder;
  folder.copy(golden("tiny/config.json"), "config.json");
  const auto refused = [&](const std::string& index) {
    folder.write("model.safetensors.index.json", index);
    return error_of([&] { from_pretrained(folder.path()); });
  };
  EXPECT_THAT(refused("[]"), HasSubstr("a checkpoint's index is an object"));
  EXPECT_THAT(refused("{}"), HasSubstr("\"weight_map\""));
  EXPECT_THAT(refused(R"({"weight_map": {}})"), HasSubstr("the index names no file"));
  EXPECT_THAT(refused(R"({"weight_map": {"a": "../x.safetensors"}})"), HasSubstr("leads out of the folder"));
}

TEST(LoadErrors, a_cut_off_download) {
  Folder folder;
  folder.copy(golden("tiny/config.json"), "config.json");
  const std::string whole = read_file(golden("tiny/model.safetensors"));
  for (const size_t length : {size_t{0}, size_t{5}, size_t{100}, whole.size() - 1}) {
    folder.write("model.safetensors", whole.substr(0, length));
    const std::string text = error_of([&] { from_pretrained(folder.path()); });
    EXPECT_THAT(text, HasSubstr((folder / "model.safetensors").string())) << length;
    EXPECT_THAT(text, HasSubstr("cut off")) << length;
  }
}

TEST(LoadErrors, an_unknown_architecture) {
  Folder folder;
  folder.copy(golden("tiny/model.safetensors"), "model.safetensors");
  folder.write("config.json", R"({"model_type": "llamma", "architectures": ["LlammaForCausalLM"]})");
  const std::string text = error_of([&] { from_pretrained(folder.path()); });
  EXPECT_THAT(text,
              HasSubstr("there is no architecture \"llamma\" and no model class LlammaForCausalLM in Calque\nIt has these"));
  EXPECT_THAT(text, HasSubstr("(`calque models` lists their classes):\n  albert, altclip,"));
  EXPECT_THAT(text, HasSubstr("model = transformers.LlammaForCausalLM.from_pretrained(\"" + folder.path().string() + "\")"));
  EXPECT_THAT(text, HasSubstr("\n  calque run model.pt2 --inputs inputs.safetensors"));
  // Nothing is near: no guess.
  folder.write("config.json", R"({"model_type": "mamba", "architectures": ["MambaForCausalLM"], "vocab_size": 4})");
  EXPECT_THAT(error_of([&] { from_pretrained(folder.path()); }), Not(HasSubstr("did you mean")));
  folder.write("config.json", R"({"hidden_size": 3})");
  EXPECT_THAT(error_of([&] { from_pretrained(folder.path()); }),
              HasSubstr("\"model_type\", which names the architecture, is missing\nCalque has"));
}

TEST(LoadErrors, an_unknown_class) {
  EXPECT_THAT(error_of([] { from_pretrained(golden("tiny"), {.model_class = "LlamaForCasualLM"}); }),
              HasSubstr("there is no model class LlamaForCasualLM; did you mean 'LlamaForCausalLM'?\nOf llama there are\n  "
                        "LlamaModel, LlamaForCausalLM"));
  EXPECT_THAT(error_of([] { from_pretrained(golden("tiny"), {.task = "juggling"}); }),
              HasSubstr("llama has no class for the task \"juggling\"; it has default, causal-lm"));
  EXPECT_EQ(from_pretrained(golden("tiny"), {.task = "causal-lm"})->class_name(), "LlamaForCausalLM");
}

TEST(LoadErrors, a_setting_that_there_is_not) {
  EXPECT_THAT(error_of([] {
                from_pretrained(golden("tiny"), {.config_updates = {{"hiden_size", 3}}});
              }),
              HasSubstr("the configuration has no \"hiden_size\" to set"));
}

}  // namespace
}  // namespace calque::load_test
