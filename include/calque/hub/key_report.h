// LoadReport: which tensors of a checkpoint a model took, and which not: as data, and as one table for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace calque {

struct MismatchedKey {
  std::string key;
  std::vector<int64_t> found;     // in the checkpoint
  std::vector<int64_t> expected;  // in the model
  bool operator==(const MismatchedKey&) const = default;
};

struct LoadReport {
  std::vector<std::string> missing_keys;     // the model's names, in its order; they were newly initialised
  std::vector<std::string> unexpected_keys;  // the checkpoint's names, in its order
  std::vector<MismatchedKey> mismatched_keys;

  bool empty() const { return missing_keys.empty() && unexpected_keys.empty() && mismatched_keys.empty(); }
  // A line for each key, those that differ in layer numbers in one: "layers.{0, 1}.bias"; then what the states mean.
  // Empty when there is nothing to say.
  std::string table() const;
};

// Keys that differ only in their numbers in one; order of first appearance.
std::vector<std::string> merge_layer_numbers(const std::vector<std::string>& keys);

}  // namespace calque
