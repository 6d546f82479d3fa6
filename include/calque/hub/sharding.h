// Which weights go into which file: transformers' rule, greedy in the order of the names, tensors that share storage together.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "calque/file/safetensors.h"

namespace calque {

// "5GB" (10^9), "200KiB" (1024), "1.5MB", digits alone for bytes; units in any case, except that a last small b is bits. UserError
// quotes a text that is none of these.
uint64_t parse_file_size(std::string_view text);

struct Shard {
  std::string file;
  NamedTensors tensors;
};
struct ShardPlan {
  std::vector<Shard> shards;
  uint64_t total_size = 0;  // bytes; storage that several names share counts once

  bool sharded() const { return shards.size() > 1; }  // else the one file has the plain name, and there is no index
};

struct ShardOptions {
  uint64_t max_shard_size = 50'000'000'000;
  std::string weights_name = "model.safetensors";
  int transformers = 5;  // 4: a weight larger than the limit ends the shard before it, as transformers 4 has it
  // The bytes that a tensor will take; by default those that it has.
  std::function<uint64_t(const std::string& name, const Tensor& tensor)> bytes_of = {};
};
ShardPlan plan_shards(const NamedTensors& tensors, const ShardOptions& options = {});

// As transformers names it: "model-00001-of-00005.safetensors".
std::string shard_name(const std::string& weights_name, size_t number, size_t count);
// Is this one of the files (single, index, shard) that hold the weights of that variant, in either format?
bool is_weight_file(const std::string& name, const std::string& variant);

}  // namespace calque
