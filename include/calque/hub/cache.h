// Keys and values of the tokens that a model has seen, one entry a layer. A LayerCache is a value: `updated` gives a longer
// one and leaves the old one as it is. Longer ones share memory that grows by doubling, so that a step copies its own
// tokens only; while somebody records, and for tensors that came from outside, they are concatenated as PyTorch does.
// As Values: a tuple of (key, value), or of (key, value, cross key, cross value) where there is cross attention.
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

  bool empty() const { return !key.defined(); }
  SymInt length() const;  // 0 when empty
  LayerCache updated(const Tensor& new_key, const Tensor& new_value) const;

  Value to_value() const;  // None when empty
  static LayerCache from_value(const Value& value);

 private:
  struct Room;
  std::shared_ptr<Room> room_;
};

struct KeyValueCache {
  std::vector<LayerCache> layers;

  bool empty() const { return layers.empty() || layers[0].empty(); }
  SymInt length() const;
  const LayerCache& layer(size_t index) const;  // an empty one where there is none

  Value to_value() const;  // None when empty
  static KeyValueCache from_value(const Value& value);
};

}  // namespace calque
