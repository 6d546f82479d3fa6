// What goes into a model's forward and what comes out, under transformers' names. ModelInputs has every argument that a
// model of zoo/ takes; each class says which ones it takes and in which order. ModelOutput is the ordered fields that
// transformers' ModelOutput has; what was not asked for is not there.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/hub/cache.h"
#include "calque/op/mode.h"
#include "calque/op/value.h"

namespace calque {

class BestLogit;

struct ModelInputs {
  Tensor input_ids = {};
  Tensor attention_mask = {};
  Tensor token_type_ids = {};
  Tensor position_ids = {};
  Tensor head_mask = {};
  Tensor inputs_embeds = {};
  Tensor bbox = {};
  // Of an encoder-decoder, and of decoders with cross attention.
  Tensor decoder_input_ids = {};
  Tensor decoder_attention_mask = {};
  Tensor decoder_head_mask = {};
  Tensor cross_attn_head_mask = {};
  Tensor decoder_inputs_embeds = {};
  Value encoder_outputs = {};  // last_hidden_state, hidden_states, attentions as a tuple or dict
  Tensor encoder_hidden_states = {};
  Tensor encoder_attention_mask = {};
  // Caches.
  KeyValueCache past_key_values = {};
  std::optional<bool> use_cache = {};
  // Labels.
  Tensor labels = {};
  Tensor next_sentence_label = {};
  Tensor sentence_order_label = {};
  Tensor start_positions = {};
  Tensor end_positions = {};
  Tensor mc_token_ids = {};
  Tensor mc_labels = {};
  // What is asked for; unset it is what the config says.
  std::optional<bool> output_attentions = {};
  std::optional<bool> output_hidden_states = {};
  int64_t logits_to_keep = 0;  // the last positions only; 0: all

  // No argument of transformers', and not among the names: set where of the logits only the largest will be looked at; a
  // model may leave it alone.
  BestLogit* best_logit = nullptr;

  // Every name above, in order.
  static std::span<const std::string_view> names();
  Value get(std::string_view name) const;               // None for what is not set
  void set(std::string_view name, const Value& value);  // UserError names the argument when its kind is wrong
  // By the names that a class takes; what is not set is left out.
  Kwargs to_kwargs(const std::vector<std::string>& names) const;
};

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
  std::vector<Tensor> tensors(std::string_view name) const;   // of a tuple field; empty when absent
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
