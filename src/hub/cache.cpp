#include "calque/hub/cache.h"

#include <algorithm>
#include <string>

#include "calque/base/error.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/empty.h"
#include "calque/op/mode.h"

namespace calque {

// Memory for more tokens than there are. Only the longest cache may grow into it.
struct LayerCache::Room {
  Tensor key, value;  // [batch, heads, capacity, head size]
  int64_t filled = 0;
};

SymInt LayerCache::kept() const { return empty() ? SymInt(0) : key.sym_size(2); }

SymInt LayerCache::length() const { return empty() ? SymInt(0) : first + kept(); }

// Writing into shared memory is for plain tensors that nobody records.
static bool may_write(const Tensor& tensor) { return !modes_active() && !tensor.is_fake() && !tensor.requires_grad(); }

LayerCache LayerCache::updated(const Tensor& new_key, const Tensor& new_value) const {
  LayerCache out = *this;
  if (empty()) {
    out.key = new_key;
    out.value = new_value;
    out.first = 0;
    out.room_ = nullptr;
    return out;
  }
  if (!may_write(new_key) || !may_write(key)) {
    out.key = cat({key, new_key}, 2);
    out.value = cat({value, new_value}, 2);
    out.room_ = nullptr;
    return out;
  }
  const int64_t kept = key.size(2), more = new_key.size(2);
  const bool fits = room_ && room_->filled == start_ + kept && room_->filled + more <= room_->key.size(2);
  if (!fits) {
    auto room = std::make_shared<Room>();
    const auto copy = [&](const Tensor& from) {
      const Tensor all = calque::empty({from.size(0), from.size(1), 2 * (kept + more), from.size(3)}, from.dtype());
      all.slice(2, 0, kept).copy_(from);
      return all;
    };
    room->key = copy(key);
    room->value = copy(value);
    out.room_ = std::move(room);
    out.start_ = 0;
  }
  const int64_t before = out.start_ + kept, after = before + more;
  out.room_->key.slice(2, before, after).copy_(new_key);
  out.room_->value.slice(2, before, after).copy_(new_value);
  out.room_->filled = after;
  out.key = out.room_->key.slice(2, out.start_, after);
  out.value = out.room_->value.slice(2, out.start_, after);
  return out;
}

LayerCache LayerCache::within(int64_t window) const {
  const SymInt now = kept();
  if (empty() || (!now.is_symbolic() && now.as_int() < window)) return *this;
  LayerCache out = *this;
  out.key = key.slice(2, -(window - 1));
  out.value = value.slice(2, -(window - 1));
  out.first = length() - out.kept();
  if (!now.is_symbolic()) out.start_ += now.as_int() - out.key.size(2);
  return out;
}

Value LayerCache::to_value() const {
  if (empty()) return {};
  return cross_key.defined() ? tuple({key, value, cross_key, cross_value}) : tuple({key, value});
}

LayerCache LayerCache::from_value(const Value& value) {
  LayerCache out;
  if (value.is_none()) return out;
  const Values& items = value.to_items();
  if (items.size() != 2 && items.size() != 4)
    throw UserError("past_key_values: a layer has " + std::to_string(items.size()) +
                    " tensors, expected (key, value) or (key, value, cross key, cross value)");
  out.key = items[0].to_tensor();
  out.value = items[1].to_tensor();
  if (items.size() == 4) {
    out.cross_key = items[2].to_tensor();
    out.cross_value = items[3].to_tensor();
  }
  return out;
}

SymInt KeyValueCache::length() const {
  if (empty()) return 0;
  SymInt longest = layers[0].length();
  for (const LayerCache& layer : layers) {
    const SymInt one = layer.length();
    if (!one.is_symbolic() && !longest.is_symbolic() && one.as_int() > longest.as_int()) longest = one;
  }
  return longest;
}

void KeyValueCache::ends_at(const SymInt& length) {
  for (LayerCache& layer : layers)
    if (!layer.empty()) layer.first = length - layer.kept();
}

bool KeyValueCache::can_go_back_to(int64_t length) const {
  return std::ranges::all_of(layers, [&](const LayerCache& layer) {
    return layer.empty() || length >= layer.length().as_int() || layer.first.as_int() == 0;
  });
}

KeyValueCache KeyValueCache::first_tokens(int64_t length) const {
  if (empty() || this->length().as_int() <= length) return *this;
  if (!can_go_back_to(length))
    throw UserError("past_key_values: the first " + std::to_string(length) +
                    " tokens are asked for, but layers with a sliding window have dropped some that those would look at");
  KeyValueCache out;
  out.keeps_all = keeps_all;
  for (const LayerCache& layer : layers) {
    LayerCache& made = out.layers.emplace_back();
    made.key = layer.key.narrow(2, 0, length);
    made.value = layer.value.narrow(2, 0, length);
    made.cross_key = layer.cross_key;
    made.cross_value = layer.cross_value;
  }
  return out;
}

const LayerCache& KeyValueCache::layer(size_t index) const {
  static const LayerCache none;
  return index < layers.size() ? layers[index] : none;
}

Value KeyValueCache::to_value() const {
  if (empty()) return {};
  Values items;
  for (const LayerCache& one : layers) items.push_back(one.to_value());
  return tuple(std::move(items));
}

KeyValueCache KeyValueCache::from_value(const Value& value) {
  KeyValueCache out;
  if (value.is_none()) return out;
  for (const Value& item : value.to_items()) out.layers.push_back(LayerCache::from_value(item));
  return out;
}

}  // namespace calque
