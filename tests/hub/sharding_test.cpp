#include "calque/hub/sharding.h"

#include <gtest/gtest.h>

#include "calque/hub/save_pretrained.h"
#include "calque/op/aten/zeros.h"
#include "hub/hub_support.h"

namespace calque::sharding_test {
namespace {

using namespace hub_test;

NamedTensors four_weights() {
  return {{"0.weight", zeros({200, 100})},
          {"1.weight", zeros({200, 200})},
          {"2.weight", zeros({200, 100})},
          {"3.weight", zeros({50, 100})}};
}

std::vector<std::pair<std::string, std::vector<std::string>>> shown(const ShardPlan& plan) {
  std::vector<std::pair<std::string, std::vector<std::string>>> out;
  for (const Shard& shard : plan.shards) {
    out.emplace_back(shard.file, std::vector<std::string>{});
    for (const auto& [name, tensor] : shard.tensors) out.back().second.push_back(name);
  }
  return out;
}
using Shown = std::vector<std::pair<std::string, std::vector<std::string>>>;

TEST(Sharding, H039_one_file_when_all_fits) {
  const ShardPlan plan = plan_shards(four_weights(), {.weights_name = "pytorch_model.bin"});
  EXPECT_FALSE(plan.sharded());
  EXPECT_EQ(shown(plan), (Shown{{"pytorch_model.bin", {"0.weight", "1.weight", "2.weight", "3.weight"}}}));
}

TEST(Sharding, H040_300k_b_gives_two_shards) {
  for (const int version : {4, 5}) {
    const ShardPlan plan = plan_shards(four_weights(), {parse_file_size("300kB"), "pytorch_model.bin", version});
    EXPECT_EQ(plan.total_size, 340000U);
    EXPECT_EQ(shown(plan), (Shown{{"pytorch_model-00001-of-00002.bin", {"0.weight", "1.weight"}},
                                  {"pytorch_model-00002-of-00002.bin", {"2.weight", "3.weight"}}}));
  }
}

TEST(Sharding, H041_a_weight_above_the_limit_is_alone) {
  const ShardPlan plan = plan_shards(four_weights(), {parse_file_size("100kB"), "pytorch_model.bin", 4});
  EXPECT_EQ(shown(plan), (Shown{{"pytorch_model-00001-of-00003.bin", {"0.weight"}},
                                {"pytorch_model-00002-of-00003.bin", {"1.weight"}},
                                {"pytorch_model-00003-of-00003.bin", {"2.weight", "3.weight"}}}));
}

// Transformers 5 goes on filling the shard that was open, and numbers it when it is full.
TEST(Sharding, a_weight_above_the_limit_in_transformers_5) {
  const NamedTensors weights = {{"a", zeros({10})}, {"large", zeros({100})}, {"b", zeros({10})}, {"c", zeros({10})}};
  EXPECT_EQ(shown(plan_shards(weights, {.max_shard_size = 80})), (Shown{{"model-00001-of-00003.safetensors", {"large"}},
                                                                        {"model-00002-of-00003.safetensors", {"a", "b"}},
                                                                        {"model-00003-of-00003.safetensors", {"c"}}}));
}

TEST(Sharding, H042_no_shard_is_empty) {
  for (const int version : {4, 5}) {
    const ShardPlan plan =
        plan_shards({{"large", zeros({100})}, {"b", zeros({10})}}, {.max_shard_size = 80, .transformers = version});
    EXPECT_EQ(shown(plan),
              (Shown{{"model-00001-of-00002.safetensors", {"large"}}, {"model-00002-of-00002.safetensors", {"b"}}}));
    EXPECT_EQ(plan_shards({{"large", zeros({100})}}, {.max_shard_size = 80, .transformers = version}).shards.size(), 1U);
  }
}

TEST(Sharding, H043_shared_storage_goes_to_its_first_shard) {
  const Tensor one = zeros({20});
  for (const int version : {4, 5}) {
    const ShardPlan plan =
        plan_shards({{"a", one}, {"b", zeros({20})}, {"c", one}}, {.max_shard_size = 80, .transformers = version});
    EXPECT_EQ(plan.total_size, 160U);
    EXPECT_EQ(shown(plan),
              (Shown{{"model-00001-of-00002.safetensors", {"a", "c"}}, {"model-00002-of-00002.safetensors", {"b"}}}));
  }
}

TEST(Sharding, H044_sizes_as_text) {
  EXPECT_EQ(parse_file_size("5GB"), 5000000000U);
  EXPECT_EQ(parse_file_size("1MiB"), 1048576U);
  EXPECT_EQ(parse_file_size("1mib"), 1048576U);
  EXPECT_EQ(parse_file_size("2kB"), 2000U);
  EXPECT_EQ(parse_file_size("2KiB"), 2048U);
  EXPECT_EQ(parse_file_size("200kb"), 25000U);
  EXPECT_EQ(parse_file_size("1gb"), 125000000U);
  EXPECT_EQ(parse_file_size("1.5GB"), 1500000000U);
  EXPECT_EQ(parse_file_size(" 10 MB "), 10000000U);
  EXPECT_EQ(parse_file_size("4096"), 4096U);
  for (const char* wrong : {"", "GB", "5XB", "5 G", "-5GB", "1.2.3GB", "5GB5", "99999999999999TB"})
    EXPECT_EQ(error_of([&] { parse_file_size(wrong); }),
              "size \"" + std::string(wrong) +
                  "\" is not in the correct format: expected a number followed by a unit, e.g. \"5GB\" or \"200MiB\"");
}

TEST(Sharding, H045_saving_again_with_other_limits) {
  const auto model = tiny_llama();
  TemporaryFolder folder;
  for (const bool safe : {false, true})
    for (const char* limit : {"2kB", "3kB", "3KiB", "6kB", "8KiB"}) {
      const SaveResult result =
          save_pretrained(*model, folder.path(), {.max_shard_size = limit, .safe_serialization = safe, .sync = false});
      const std::set<std::string> files = names_in(folder.path());
      EXPECT_EQ(files, std::set<std::string>(result.files.begin(), result.files.end()));
      EXPECT_TRUE(files.count(safe ? "model.safetensors.index.json" : "pytorch_model.bin.index.json"));
      EXPECT_FALSE(files.count(safe ? "model.safetensors" : "pytorch_model.bin"));
      if (!safe) continue;
      for (const std::string& name : files) {
        if (!name.ends_with(".safetensors")) continue;
        const SafetensorsFile file = SafetensorsFile::open((folder / name).string());
        uint64_t bytes = 0;
        for (const SafetensorsEntry& entry : file.entries()) bytes += entry.nbytes();
        EXPECT_TRUE(bytes <= parse_file_size(limit) || file.entries().size() == 1) << name;
      }
    }
}

TEST(Sharding, H046_the_index_is_sorted_json) {
  const auto model = tiny_llama("LlamaModel");
  TemporaryFolder folder;
  save_pretrained(*model, folder.path(), {.max_shard_size = "6kB", .transformers = 4});
  const std::string index = read_file(folder / "model.safetensors.index.json");
  EXPECT_TRUE(index.starts_with("{\n  \"metadata\": {\n    \"total_size\": ")) << index;
  EXPECT_TRUE(index.find("  },\n  \"weight_map\": {\n    \"embed_tokens.weight\": \"model-00001-of-0000") !=
              std::string::npos)
      << index;
  EXPECT_TRUE(index.ends_with("\"\n  }\n}\n")) << index;
}

TEST(Sharding, weight_files_by_name) {
  EXPECT_TRUE(is_weight_file("model.safetensors", ""));
  EXPECT_TRUE(is_weight_file("pytorch_model-00001-of-00002.bin", ""));
  EXPECT_TRUE(is_weight_file("model.safetensors.index.json", ""));
  EXPECT_FALSE(is_weight_file("model.v2.safetensors", ""));
  EXPECT_FALSE(is_weight_file("model-1-of-2.safetensors", ""));
  EXPECT_FALSE(is_weight_file("model-00001-of-00002.gguf", ""));
  EXPECT_FALSE(is_weight_file("tokenizer.json", ""));
  EXPECT_TRUE(is_weight_file("model.v2-00001-of-00002.safetensors", "v2"));
  EXPECT_TRUE(is_weight_file("pytorch_model.bin.index.v2.json", "v2"));
  EXPECT_FALSE(is_weight_file("model.safetensors", "v2"));
}

}  // namespace
}  // namespace calque::sharding_test
