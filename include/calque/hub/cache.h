// Keys and values of the tokens that a model has seen, one entry a layer. A LayerCache is a value: `updated` gives a longer
// one and leaves the old one as it is. Longer ones share memory that grows by doubling, so that a step copies its own
// tokens only; while somebody records, and for tensors that came from outside, they are concatenated as PyTorch does.
// A layer that looks back at a window of tokens keeps no more than those (`within`).
// As Values: a tuple of (key, value), or of (key, value, cross key, cross value) where there is cross attention. Where a window
// begins is not in them: whoever knows the text's length says it (`ends_at`).
#pragma once

#include <memory>
#include <vector>

#include "calque/op/value.h"

namespace calque {

struct LayerCache {
  Tensor key;  // [batch, heads, length, head size]; undefined when empty
  Tensor value;
  Tensor cross_key;  // of the encoder's output: made once
  Tensor cross_value;

  SymInt first = 0;  // the position of the first token that is kept

  bool empty() const { return !key.defined(); }
  SymInt kept() const;    // how many tokens; 0 when empty
  SymInt length() const;  // and those before them
  LayerCache updated(const Tensor& new_key, const Tensor& new_value) const;
  // What the next token's window of so many tokens has of them, itself not counted.
  LayerCache within(int64_t window) const;

  Value to_value() const;  // None when empty
  static LayerCache from_value(const Value& value);

 private:
  struct Room;
  std::shared_ptr<Room> room_;
  int64_t start_ = 0;  // of key and value in the room
};

struct KeyValueCache {
  std::vector<LayerCache> layers;
  bool keeps_all = false;  // windows drop nothing: somebody may want to go back

  bool empty() const { return layers.empty() || layers[0].empty(); }
  SymInt length() const;               // of the text; 0 when empty
  void ends_at(const SymInt& length);  // the text's length, from which follows where each layer begins
  bool can_go_back_to(int64_t length) const;
  KeyValueCache first_tokens(int64_t length) const;  // UserError where a window has dropped them
  const LayerCache& layer(size_t index) const;       // an empty one where there is none

  Value to_value() const;  // None when empty
  static KeyValueCache from_value(const Value& value);
};

}  // namespace calque
