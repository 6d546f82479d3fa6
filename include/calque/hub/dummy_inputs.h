// Dummy inputs for symbolic traces, as transformers 4.40's HFTracer makes them: what an input of a name is like, for a class of
// models. Their values are zeros and do not matter; what a program may look at while it is traced is their sizes and dtypes.
// Batch and length are drawn from 10 to 20, and no size that is drawn is a number of the configuration or another size that is
// drawn, so that a trace cannot take one for the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calque/hub/config.h"
#include "calque/op/value.h"

namespace calque {

class PretrainedModel;

// A size of a dummy input; an open one may be another when the graph runs.
struct DummySize {
  int64_t size = 0;
  bool open = true;
  bool alone = false;  // an open one that no other size of this number is meant by
};
using DummySizes = std::vector<DummySize>;

// An input with the sizes of its tensors, in the order of the tree's leaves.
struct DummyInput {
  std::string name;
  Value value;
  std::vector<DummySizes> sizes;
};

// A number of [low, high] that is not forbidden: drawn, or where all are forbidden the next one above that is not. `state` goes on.
int64_t draw_size(uint64_t& state, int64_t low, int64_t high, const std::vector<int64_t>& forbidden);
// Every whole number in a configuration, those inside other values too.
std::vector<int64_t> numbers_of(const Config& config);

class DummyInputs {
 public:
  // Of a class of the registry; a class that it does not have has no labels.
  DummyInputs(PretrainedModel& model, uint64_t seed = 0);

  DummySize batch, length, decoder_length, choices;  // choices.size is 0 where the class has none
  DummySize samples = {};                            // of a class that hears raw sound; size is 0 for others
  static constexpr int64_t cache_length = 5;         // of past keys and values

  // Batch, choices where there are any, and length.
  DummySizes shape() const { return shape_of(length); }
  // What stands for an argument when these are all the inputs: usually one input of its name. start_positions and end_positions stand
  // for the labels of a class that answers questions. UserError where there is nothing to be made: a flag, labels of a class that
  // has none or whose problem_type is not set.
  std::vector<DummyInput> make(const std::string& name, const std::vector<std::string>& all);

  // Is one of these among the tasks of the class?
  bool is_of(std::initializer_list<std::string_view> tasks) const;

 private:
  DummySizes shape_of(DummySize length) const;
  DummySize draw(int64_t low = 10, int64_t high = 20);
  DummySizes labels(const std::string& name, DType& dtype);
  DummySizes pixels();
  DummyInput cache();
  Value cache_of_a_run();
  DummySize encoded_length(int64_t left);
  int64_t hidden_size() const;
  int64_t embedding_size() const;

  PretrainedModel& model_;
  const Config& config_;
  std::vector<std::string> tasks_;
  std::string class_name_;
  std::vector<int64_t> forbidden_;
  uint64_t state_;
};

}  // namespace calque
