#include "calque/hub/save_pretrained.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "calque/base/crc32.h"
#include "calque/base/warning.h"
#include "calque/file/pickle.h"
#include "calque/file/safetensors.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/sharding.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/zeros.h"
#include "hub/hub_support.h"

namespace calque::save_pretrained_test {
namespace {

using namespace hub_test;
using Names = std::set<std::string>;

// Every file that transformers wrote for the same model, options and version: JSON files text for text (whose weights' index
// has the same map), safetensors files byte for byte, .bin files name for name.
void compare_with_golden(const std::string& version) {
  const nlohmann::json golden_cases = nlohmann::json::parse(read_file(golden("save/transformers" + version + ".json")));
  for (const nlohmann::json& one : golden_cases["cases"]) {
    const std::string source = one["source"], limit = one["limit"], dtype = one["dtype"], variant = one["variant"];
    SCOPED_TRACE(source + " " + limit + " " + dtype + " " + variant + (one["safe"].get<bool>() ? "" : " bin"));
    const auto model = from_pretrained(golden("save/" + source));
    TemporaryFolder folder;
    SaveOptions options{.max_shard_size = limit,
                        .safe_serialization = one["safe"].get<bool>(),
                        .variant = variant,
                        .transformers = std::stoi(version),
                        .sync = false};
    if (dtype != "float32") options.dtype = dtype_from_name(dtype);
    save_pretrained(*model, folder.path(), options);
    Names expected;
    for (const auto& [name, file] : one["files"].items()) {
      expected.insert(name);
      const std::string found = read_file(folder / name);
      if (file.contains("bytes")) {
        EXPECT_EQ(found.size(), file["bytes"].get<size_t>()) << name;
        EXPECT_EQ(crc32(std::as_bytes(std::span(found.data(), found.size()))), file["crc32"].get<uint32_t>()) << name;
      } else if (file.contains("names")) {
        std::vector<std::string> names;
        for (const auto& [key, tensor] : load_pickle_tensors((folder / name).string())) names.push_back(key);
        EXPECT_EQ(names, file["names"].get<std::vector<std::string>>()) << name;
      } else if (version == "5" || name.find("index") != std::string::npos) {
        EXPECT_EQ(found, file["text"].get<std::string>()) << name;
      }
    }
    EXPECT_EQ(names_in(folder.path()), expected);
  }
}

TEST(SavePretrained, writes_the_files_of_transformers_5) { compare_with_golden("5"); }
TEST(SavePretrained, writes_the_weights_and_indexes_of_transformers_4) { compare_with_golden("4"); }

TEST(SavePretrained, H028_default_save_writes_config_weights_and_generation_config) {
  const auto model = tiny_llama();
  TemporaryFolder folder;
  const SaveResult result = save_pretrained(*model, folder / "m", {.transformers = 4});
  EXPECT_EQ(names_in(folder / "m"), (Names{"config.json", "model.safetensors", "generation_config.json"}));
  EXPECT_EQ(result.files, (std::vector<std::string>{"config.json", "generation_config.json", "model.safetensors"}));
  const nlohmann::json config = nlohmann::json::parse(read_file(folder / "m/config.json"));
  EXPECT_EQ(config["architectures"], nlohmann::json::array({"LlamaForCausalLM"}));
  EXPECT_EQ(config["torch_dtype"], "float32");
  EXPECT_EQ(SafetensorsFile::open((folder / "m/model.safetensors").string()).metadata(),
            (SafetensorsMetadata{{"format", "pt"}}));
  save_pretrained(*model, folder / "n");
  const nlohmann::json five = nlohmann::json::parse(read_file(folder / "n/config.json"));
  EXPECT_EQ(five["dtype"], "float32");
  EXPECT_FALSE(five.contains("torch_dtype"));
  const auto base = tiny_llama("LlamaModel");
  save_pretrained(*base, folder / "base");
  EXPECT_EQ(names_in(folder / "base"), (Names{"config.json", "model.safetensors"}));
}

TEST(SavePretrained, H029_either_format_reloads_equal) {
  const auto model = tiny_llama();
  TemporaryFolder folder;
  save_pretrained(*model, folder / "safe");
  save_pretrained(*model, folder / "bin", {.safe_serialization = false});
  EXPECT_TRUE(names_in(folder / "safe").count("model.safetensors"));
  EXPECT_EQ(names_in(folder / "bin"), (Names{"config.json", "generation_config.json", "pytorch_model.bin"}));
  EXPECT_EQ(difference(*model, *from_pretrained(folder / "safe")), "");
  const NamedTensors loaded = load_pickle_tensors((folder / "bin/pytorch_model.bin").string());
  const StateDict state = model->state_dict();
  ASSERT_EQ(loaded.size(), state.size());
  for (const auto& [name, tensor] : loaded) EXPECT_TRUE(same_bits(tensor, state.at(name))) << name;
}

TEST(SavePretrained, H030_H031_variants_have_their_names) {
  const auto model = tiny_llama();
  TemporaryFolder folder;
  save_pretrained(*model, folder / "a", {.variant = "v2"});
  EXPECT_TRUE(names_in(folder / "a").count("model.v2.safetensors"));
  EXPECT_FALSE(names_in(folder / "a").count("model.safetensors"));
  save_pretrained(*model, folder / "b", {.safe_serialization = false, .variant = "v2"});
  EXPECT_TRUE(names_in(folder / "b").count("pytorch_model.v2.bin"));
  const SaveResult sharded = save_pretrained(*model, folder / "c", {.max_shard_size = "6KB", .variant = "v2"});
  const size_t count = sharded.files.size() - 3;
  ASSERT_GT(count, 1U);
  EXPECT_TRUE(names_in(folder / "c").count(shard_name("model.v2.safetensors", 1, count)));
  EXPECT_EQ(shard_name("model.v2.safetensors", 1, 5), "model.v2-00001-of-00005.safetensors");
  EXPECT_TRUE(names_in(folder / "c").count("model.safetensors.index.v2.json"));
  save_pretrained(*model, folder / "d", {.max_shard_size = "6KB", .safe_serialization = false, .variant = "v2"});
  EXPECT_TRUE(names_in(folder / "d").count("pytorch_model.bin.index.v2.json"));
  EXPECT_TRUE(names_in(folder / "d").count(shard_name("pytorch_model.v2.bin", 1, count)));
}

TEST(SavePretrained, H032_another_variant_stays) {
  const auto model = tiny_llama();
  TemporaryFolder folder;
  save_pretrained(*model, folder.path(), {.safe_serialization = false, .variant = "v2"});
  save_pretrained(*model, folder.path(), {.safe_serialization = false});
  EXPECT_EQ(names_in(folder.path()),
            (Names{"config.json", "generation_config.json", "pytorch_model.bin", "pytorch_model.v2.bin"}));
}

TEST(SavePretrained, H033_no_weights_of_an_older_save_stay) {
  const auto model = tiny_llama();
  TemporaryFolder folder;
  save_pretrained(*model, folder.path());
  write_file(folder / "tokenizer.json", "{}");
  write_file(folder / "README.md", "# a model");
  std::filesystem::create_directories(folder / "onnx/deep");
  write_file(folder / "onnx/deep/x", "y");
  std::filesystem::create_symlink("README.md", folder / "link");
  const Names others{"tokenizer.json", "README.md", "onnx", "link", "config.json", "generation_config.json"};
  for (const SaveOptions& options : {SaveOptions{.max_shard_size = "3KB"}, SaveOptions{.max_shard_size = "9KB"},
                                     SaveOptions{}, SaveOptions{.max_shard_size = "9KB", .safe_serialization = false},
                                     SaveOptions{.safe_serialization = false}, SaveOptions{}}) {
    const SaveResult result = save_pretrained(*model, folder.path(), options);
    EXPECT_EQ(result.exchange, FolderWriter::Exchange::whole);
    Names expected = others;
    expected.insert(result.files.begin(), result.files.end());
    EXPECT_EQ(names_in(folder.path()), expected);
  }
  EXPECT_EQ(read_file(folder / "onnx/deep/x"), "y");
  EXPECT_EQ(read_file(folder / "link"), "# a model");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
}

TEST(SavePretrained, H034_a_path_that_is_a_file_is_refused) {
  const auto model = tiny_llama();
  TemporaryFolder folder;
  write_file(folder / "file", "text");
  EXPECT_EQ(error_of([&] { save_pretrained(*model, folder / "file"); }),
            "save_pretrained: " + (folder / "file").string() + " should be a directory, not a file");
  EXPECT_EQ(read_file(folder / "file"), "text");
  EXPECT_EQ(names_in(folder.path()), Names{"file"});
}

struct IgnoresOne : PretrainedModel {
  explicit IgnoresOne(const Config& c, bool tie = false)
      : PretrainedModel(c), one(child<Linear>("one", 3, 3)), two(child<Linear>("two", 3, 3)) {
    if (tie) set_tensor("two.weight", one->weight);
  }
  ModelOutput forward(const ModelInputs&) override { return {}; }
  std::span<const ModelArgument> arguments() const override { return {}; }
  std::string type_name() const override { return "tests.IgnoresOne"; }
  std::vector<std::string> keys_to_ignore_on_save() const override { return ignored; }
  TiedWeights tied_weights() const override { return ties; }
  std::vector<std::string> ignored;
  TiedWeights ties;
  Child<Linear> one, two;
};

std::vector<std::string> tensors_in(const std::filesystem::path& file) {
  return SafetensorsFile::open(file.string()).names();
}

TEST(SavePretrained, H035_keys_to_ignore_are_not_saved) {
  IgnoresOne model(Config{});
  model.ignored = {"two.bias"};
  TemporaryFolder folder;
  save_pretrained(model, folder.path());
  EXPECT_TRUE(model.state_dict().contains("two.bias"));
  EXPECT_EQ(tensors_in(folder / "model.safetensors"), (std::vector<std::string>{"one.bias", "one.weight", "two.weight"}));
}

TEST(SavePretrained, H036_a_partial_state_dict_and_no_main_process) {
  IgnoresOne model(Config{});
  TemporaryFolder folder;
  save_pretrained(model, folder.path(), {.state_dict = StateDict{{"one.bias", model.one->bias}}, .is_main_process = false});
  EXPECT_EQ(names_in(folder.path()), Names{"model.safetensors"});
  EXPECT_EQ(tensors_in(folder / "model.safetensors"), std::vector<std::string>{"one.bias"});
}

TEST(SavePretrained, H037_views_side_by_side_are_saved_apart) {
  IgnoresOne model(Config{});
  const Tensor both = arange(18, DType::float32).reshape({6, 3});
  model.one->weight = both.slice(0, 0, 3);
  model.two->weight = both.slice(0, 3, 6);
  TemporaryFolder folder;
  save_pretrained(model, folder.path());
  const SafetensorsFile file = SafetensorsFile::open((folder / "model.safetensors").string());
  EXPECT_TRUE(same_bits(file.tensor("one.weight"), both.slice(0, 0, 3)));
  EXPECT_TRUE(same_bits(file.tensor("two.weight"), both.slice(0, 3, 6)));
}

TEST(SavePretrained, H038_a_model_config_that_diverged_warns_once) {
  const auto model = tiny_llama();
  TemporaryFolder folder;
  save_pretrained(*model, folder / "m");
  const auto loaded = from_pretrained(folder / "m");
  std::vector<std::string> warnings;
  reset_warnings();
  const WarningSink before = set_warning_sink([&](std::string_view text) { warnings.emplace_back(text); });
  save_pretrained(*loaded, folder / "n");
  EXPECT_TRUE(warnings.empty());
  loaded->config().set("top_k", 1);
  save_pretrained(*loaded, folder / "n");
  set_warning_sink(before);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("the model config has changed since (top_k is 1 there)"), std::string::npos) << warnings[0];
}

TEST(SavePretrained, H084_tied_names_are_saved_once) {
  IgnoresOne model(Config{}, true);
  model.ties = {{"two.weight", "one.weight"}};
  TemporaryFolder folder;
  save_pretrained(model, folder.path());
  EXPECT_EQ(tensors_in(folder / "model.safetensors"), (std::vector<std::string>{"one.bias", "one.weight", "two.bias"}));
  // Were every name of the group declared, the last in order would stay.
  const StateDict state = without_tied_weights(model.state_dict(), {"one.weight", "two.weight"});
  EXPECT_FALSE(state.contains("one.weight"));
  EXPECT_TRUE(state.contains("two.weight"));
}

TEST(SavePretrained, H085_sharing_that_nobody_declared_is_refused) {
  IgnoresOne model(Config{}, true);
  TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { save_pretrained(model, folder / "m"); }),
            "save_pretrained: these tensors share memory, but the model does not declare them tied: {one.weight, "
            "two.weight}. A safetensors file would hold "
            "them as separate tensors. Save with safe_serialization=false, or undo the sharing.");
  EXPECT_EQ(names_in(folder.path()), Names{});
  save_pretrained(model, folder / "m", {.safe_serialization = false, .transformers = 4});
  const NamedTensors loaded = load_pickle_tensors((folder / "m/pytorch_model.bin").string());
  ASSERT_EQ(loaded.size(), 4U);
  EXPECT_EQ(loaded[0].second.data(), loaded[2].second.data());
}

TEST(SavePretrained, H086_strided_views_stay_shared) {
  const Tensor main = zeros({10});
  EXPECT_EQ(without_tied_weights({{"a", main.slice(0, 0, 5)}, {"b", main.slice(0, 5, 10)}}, {}).size(), 2U);
  EXPECT_NE(error_of([&] {
              without_tied_weights({{"a", main.slice(0, 0, 10, 2)}, {"b", main.slice(0, 1, 10, 2)}}, {});
            }).find("{a, b}"),
            std::string::npos);
}

TEST(SavePretrained, H088_untied_embeddings_are_saved_separately) {
  const auto model = tiny_llama("LlamaForCausalLM", false);
  TemporaryFolder folder;
  save_pretrained(*model, folder.path());
  const SafetensorsFile file = SafetensorsFile::open((folder / "model.safetensors").string());
  EXPECT_TRUE(file.find("lm_head.weight") && file.find("model.embed_tokens.weight"));
  const auto loaded = from_pretrained(folder.path());
  EXPECT_EQ(difference(*model, *loaded), "");
  EXPECT_NE(loaded->get_parameter("lm_head.weight").data(), loaded->get_parameter("model.embed_tokens.weight").data());
}

TEST(SavePretrained, H080_tied_weights_are_one_tensor_after_reload) {
  const auto model = tiny_llama("LlamaForCausalLM", true);
  TemporaryFolder folder;
  save_pretrained(*model, folder.path());
  EXPECT_FALSE(SafetensorsFile::open((folder / "model.safetensors").string()).find("lm_head.weight"));
  const auto loaded = from_pretrained(folder.path());
  EXPECT_EQ(difference(*model, *loaded), "");
  EXPECT_EQ(loaded->get_parameter("lm_head.weight").data(), loaded->get_parameter("model.embed_tokens.weight").data());
}

TEST(SavePretrained, a_cast_is_written_and_the_model_stays) {
  const auto model = tiny_llama();
  TemporaryFolder folder;
  save_pretrained(*model, folder.path(), {.dtype = DType::bfloat16});
  EXPECT_EQ(model->parameters()[0].dtype(), DType::float32);
  EXPECT_EQ(nlohmann::json::parse(read_file(folder / "config.json"))["dtype"], "bfloat16");
  const SafetensorsFile file = SafetensorsFile::open((folder / "model.safetensors").string());
  for (const SafetensorsEntry& entry : file.entries()) EXPECT_EQ(entry.dtype_name, "BF16") << entry.name;
}

TEST(SavePretrained, saving_over_the_mapped_checkpoint_is_safe) {
  const auto model = tiny_llama();
  TemporaryFolder folder;
  save_pretrained(*model, folder / "m");
  const auto mapped = from_pretrained(folder / "m");
  save_pretrained(*mapped, folder / "m", {.max_shard_size = "4KB"});
  save_pretrained(*mapped, folder / "m");
  EXPECT_EQ(difference(*model, *mapped), "");
  EXPECT_EQ(difference(*model, *from_pretrained(folder / "m")), "");
  EXPECT_EQ(names_in(folder.path()), Names{"m"});
}

TEST(SavePretrained, a_link_to_a_folder_stays_a_link) {
  const auto model = tiny_llama();
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "real");
  std::filesystem::create_directory_symlink("real", folder / "link");
  save_pretrained(*model, folder / "link");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_TRUE(names_in(folder / "real").count("model.safetensors"));
}

TEST(SavePretrained, progress_counts_the_bytes) {
  const auto model = tiny_llama();
  TemporaryFolder folder;
  std::vector<uint64_t> seen;
  const SaveResult result = save_pretrained(
      *model, folder.path(), {.max_shard_size = "4KB", .progress = [&](uint64_t done, uint64_t) { seen.push_back(done); }});
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.back(), result.total_size);
}

TEST(SavePretrained, companions_are_those_of_the_model_and_a_users_files_stay) {
  TemporaryFolder work;
  const auto model = tiny_llama();
  work.write("source/tokenizer.json", "new tokenizer");
  work.write("source/additional_chat_templates/tool.jinja", "new template");
  work.write("source/README.md", "of the source");
  work.write("source/model.safetensors", "weights are not copied");
  work.write("blobs/vocab", "new vocabulary");
  std::filesystem::create_symlink(work / "blobs/vocab", work / "source/vocab.json");  // as the hub's cache has it
  work.write("m/tokenizer.json", "old tokenizer");
  work.write("m/merges.txt", "of another tokenizer");
  work.write("m/chat_template.jinja", "of another model");
  work.write("m/additional_chat_templates/old.jinja", "of another model");
  work.write("m/README.md", "the user's");
  work.write("m/.git/HEAD", "the user's");
  for (const auto exchange :
       {FolderWriter::Exchange::whole, FolderWriter::Exchange::renames, FolderWriter::Exchange::in_place}) {
    const SaveResult result = save_pretrained(*model, work / "m", {.companions_of = work / "source", .at_best = exchange});
    EXPECT_EQ(result.files, (std::vector<std::string>{"config.json", "generation_config.json", "additional_chat_templates",
                                                      "tokenizer.json", "vocab.json", "model.safetensors"}));
    EXPECT_EQ(names_in(work / "m"), (Names{"config.json", "generation_config.json", "additional_chat_templates",
                                           "tokenizer.json", "vocab.json", "model.safetensors", "README.md", ".git"}));
    EXPECT_EQ(read_file(work / "m/tokenizer.json"), "new tokenizer");
    EXPECT_EQ(read_file(work / "m/vocab.json"), "new vocabulary");
    EXPECT_FALSE(std::filesystem::is_symlink(work / "m/vocab.json"));
    EXPECT_EQ(names_in(work / "m/additional_chat_templates"), Names{"tool.jinja"});
    EXPECT_EQ(read_file(work / "m/README.md"), "the user's");
    EXPECT_EQ(read_file(work / "m/.git/HEAD"), "the user's");
  }
  // A class that cannot generate leaves no settings of generation of another one.
  save_pretrained(*tiny_llama("LlamaModel"), work / "m", {.companions_of = work / "source"});
  EXPECT_FALSE(std::filesystem::exists(work / "m/generation_config.json"));
  // Over itself.
  save_pretrained(*model, work / "m", {.companions_of = work / "m"});
  EXPECT_EQ(read_file(work / "m/tokenizer.json"), "new tokenizer");
  // Without a source a tokenizer stays, as with transformers.
  save_pretrained(*model, work / "m");
  EXPECT_EQ(read_file(work / "m/tokenizer.json"), "new tokenizer");
}

TEST(SavePretrained, files_that_nobody_knows_go_with_the_model_and_weights_in_other_forms_stay) {
  TemporaryFolder work;
  work.write("source/modules.json", "[]");
  work.write("source/1_Pooling/config.json", "{}");
  work.write("source/2_Dense/model.safetensors", "weights of a part");
  work.write("source/README.md", "of the source");
  work.write("source/my_settings.yaml", "a: 1");
  for (const char* gone : {"pytorch_model.bin", "tf_model.h5", "onnx/model.onnx", ".gitattributes", "optimizer.pt",
                           "model.fp16.safetensors", "checkpoint-10/trainer_state.json", "flax_model.msgpack"})
    work.write("source/" + std::string(gone), "stays behind");
  work.write("m/modules.json", "of another model");
  work.write("m/1_Pooling/other.json", "of another model");
  for (const auto exchange : {FolderWriter::Exchange::whole, FolderWriter::Exchange::in_place}) {
    save_pretrained(*tiny_llama(), work / "m", {.companions_of = work / "source", .at_best = exchange});
    EXPECT_EQ(names_in(work / "m"), (Names{"1_Pooling", "2_Dense", "README.md", "config.json", "generation_config.json",
                                           "model.safetensors", "modules.json", "my_settings.yaml"}));
    EXPECT_EQ(read_file(work / "m/modules.json"), "[]");
    EXPECT_EQ(names_in(work / "m/1_Pooling"), Names{"config.json"});
    EXPECT_EQ(read_file(work / "m/2_Dense/model.safetensors"), "weights of a part");
  }
}

TEST(SavePretrained, a_companion_that_cannot_be_read_leaves_the_old_folder) {
  TemporaryFolder work;
  work.write("m/tokenizer.json", "old");
  std::filesystem::create_directory(work / "source");
  std::filesystem::create_symlink(work / "nowhere", work / "source/tokenizer.json");
  EXPECT_NE(error_of([&] {
              save_pretrained(*tiny_llama(), work / "m", {.companions_of = work / "source"});
            }).find("source/tokenizer.json"),
            std::string::npos);
  EXPECT_EQ(names_in(work / "m"), Names{"tokenizer.json"});
  EXPECT_EQ(names_in(work.path()), (Names{"m", "source"}));
}

}  // namespace
}  // namespace calque::save_pretrained_test
