// What comes out of a model's forward: the ordered fields that transformers' ModelOutput has, under its names; what was not
// asked for is not there. What goes in is in hub/model_inputs.h.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/hub/cache.h"
#include "calque/hub/model_inputs.h"
#include "calque/op/value.h"

namespace calque {

class ModelOutput {
 public:
  using Items = std::vector<std::pair<std::string, Value>>;

  ModelOutput() = default;
  // An undefined tensor, None or an empty cache is not a field.
  void set(std::string name, Value value);
  void set(std::string name, const std::vector<Tensor>& tensors);  // a tuple; nothing when there are none
  void set(std::string name, const KeyValueCache& cache) { set(std::move(name), cache.to_value()), cache_ = cache; }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  const Value* find(std::string_view name) const;     // null when absent
  const Tensor& tensor(std::string_view name) const;  // UserError names the fields that there are
  const Tensor& operator[](std::string_view name) const { return tensor(name); }
  const Tensor& tensor_or_none(std::string_view name) const;  // undefined when absent
  // The common ones, as transformers' outputs have them; UserError where this model gives none.
  const Tensor& logits() const { return tensor("logits"); }
  const Tensor& last_hidden_state() const { return tensor("last_hidden_state"); }
  const Tensor& pooler_output() const { return tensor("pooler_output"); }
  const Tensor& start_logits() const { return tensor("start_logits"); }
  const Tensor& end_logits() const { return tensor("end_logits"); }
  const Tensor& loss() const { return tensor("loss"); }
  std::vector<Tensor> hidden_states() const { return tensors("hidden_states"); }
  std::vector<Tensor> attentions() const { return tensors("attentions"); }
  std::vector<Tensor> tensors(std::string_view name) const;  // of a tuple field; empty when absent
  const KeyValueCache& past_key_values() const { return cache_; }
  const Items& items() const { return items_; }
  // Fields of another output, where it has them.
  void take(const ModelOutput& other, std::initializer_list<std::string_view> names);

  Value to_value() const;  // a dict, in order
  static ModelOutput from_value(const Value& value);

 private:
  Items items_;
  KeyValueCache cache_;
};

}  // namespace calque
