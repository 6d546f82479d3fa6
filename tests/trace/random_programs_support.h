// Random tensor programs that run for any sizes: what a program does depends on its seed alone, so the same program can
// be run eagerly, traced, functionalised, and run again on other sizes. Elementwise operators, views, writes in place,
// slices, joins, reductions, products, indexing, casts and arithmetic on sizes.
#pragma once

#include <cstdint>
#include <vector>

#include "calque/op/value.h"

namespace calque {

class RandomProgram {
 public:
  static constexpr size_t size_sets = 4;  // 0 is for tracing

  RandomProgram(uint64_t seed, size_t steps);
  ~RandomProgram();
  RandomProgram(RandomProgram&&) noexcept;

  // Fresh inputs of the sizes of that set.
  Values inputs(size_t size_set) const;
  // The values that are left over at the end; may write to the inputs.
  Value operator()(const Values& inputs) const;

 private:
  struct Step;
  struct Type;
  struct Maker;
  std::vector<Type> inputs_;
  std::vector<Step> steps_;
  std::vector<size_t> results_;
};

}  // namespace calque
