// Hostile operator calls: what a stranger's program may ask of an operator. A call begins as one that PyTorch made (the
// golden cases) or at random, and is changed: sizes, strides, dtypes, values, numbers, lists, missing and aliased
// arguments. The answer must be a result that lies inside its storage, or a UserError. Memory errors are the sanitizers'
// to find. A call is a function of the operator and a seed, so that a finding can be repeated.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "calque/op/operator.h"

namespace calque::hostile {

struct Outcome {
  enum class Kind : uint8_t { answered, refused, wrong } kind = Kind::refused;
  std::string what;   // of a refusal or of what is wrong
  uint64_t hash = 0;  // of the result's bytes: uninitialised memory shows as a difference between two runs
};

class Caller {
 public:
  explicit Caller(const std::string& golden_folder);
  ~Caller();

  std::string describe(const Operator& op, uint64_t seed) const;
  Outcome call(const Operator& op, uint64_t seed) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The operators of each family, in the table's order.
std::map<std::string, std::vector<const Operator*>> operators_by_family();

}  // namespace calque::hostile
