#include "calque/hub/model_io.h"

#include <variant>

#include "calque/base/error.h"
#include "calque/nn/convert.h"

namespace calque {

namespace {

using Member = std::variant<Tensor ModelInputs::*, Value ModelInputs::*, KeyValueCache ModelInputs::*,
                            std::optional<bool> ModelInputs::*, int64_t ModelInputs::*>;
struct Field {
  std::string_view name;
  Member member;
};

#define CALQUE_FIELD(NAME) \
  Field { #NAME, &ModelInputs::NAME }
const Field fields[] = {
    CALQUE_FIELD(input_ids),
    CALQUE_FIELD(attention_mask),
    CALQUE_FIELD(token_type_ids),
    CALQUE_FIELD(position_ids),
    CALQUE_FIELD(head_mask),
    CALQUE_FIELD(inputs_embeds),
    CALQUE_FIELD(bbox),
    CALQUE_FIELD(decoder_input_ids),
    CALQUE_FIELD(decoder_attention_mask),
    CALQUE_FIELD(decoder_head_mask),
    CALQUE_FIELD(cross_attn_head_mask),
    CALQUE_FIELD(decoder_inputs_embeds),
    CALQUE_FIELD(encoder_outputs),
    CALQUE_FIELD(encoder_hidden_states),
    CALQUE_FIELD(encoder_attention_mask),
    CALQUE_FIELD(past_key_values),
    CALQUE_FIELD(use_cache),
    CALQUE_FIELD(labels),
    CALQUE_FIELD(next_sentence_label),
    CALQUE_FIELD(sentence_order_label),
    CALQUE_FIELD(start_positions),
    CALQUE_FIELD(end_positions),
    CALQUE_FIELD(mc_token_ids),
    CALQUE_FIELD(mc_labels),
    CALQUE_FIELD(output_attentions),
    CALQUE_FIELD(output_hidden_states),
    CALQUE_FIELD(logits_to_keep),
};
#undef CALQUE_FIELD

const Field& field(std::string_view name) {
  for (const Field& one : fields)
    if (one.name == name) return one;
  throw UserError("no model takes an argument \"" + std::string(name) + "\"");
}

bool is_set(const Value& value) {
  return !value.is_none() &&
         !(value.is_container() && (value.kind() == Value::Kind::tuple || value.kind() == Value::Kind::list) &&
           value.to_items().empty());
}

}  // namespace

std::span<const std::string_view> ModelInputs::names() {
  static const std::vector<std::string_view> all = [] {
    std::vector<std::string_view> out;
    for (const Field& one : fields) out.push_back(one.name);
    return out;
  }();
  return all;
}

Value ModelInputs::get(std::string_view name) const {
  return std::visit([&](auto member) { return to_value(this->*member); }, field(name).member);
}

void ModelInputs::set(std::string_view name, const Value& value) {
  std::visit(
      [&](auto member) {
        using T = std::remove_cvref_t<decltype(this->*member)>;
        try {
          if (std::same_as<T, int64_t> && value.is_none()) return;
          this->*member = from_value<T>(value);
        } catch (Error& error) {
          error.prepend("argument " + std::string(name) + ": ");
          throw;
        }
      },
      field(name).member);
}

Kwargs ModelInputs::to_kwargs(const std::vector<std::string>& names) const {
  Kwargs out;
  for (const std::string& name : names) {
    Value value = get(name);
    if (name == "logits_to_keep" && logits_to_keep == 0) continue;
    if (!value.is_none()) out.emplace_back(name, std::move(value));
  }
  return out;
}

void ModelOutput::set(std::string name, Value value) {
  if (is_set(value)) items_.emplace_back(std::move(name), std::move(value));
}

void ModelOutput::set(std::string name, const std::vector<Tensor>& tensors) {
  set(std::move(name), tuple(Values(tensors.begin(), tensors.end())));
}

const Value* ModelOutput::find(std::string_view name) const {
  for (const auto& [key, value] : items_)
    if (key == name) return &value;
  return nullptr;
}

const Tensor& ModelOutput::tensor(std::string_view name) const {
  if (const Value* value = find(name)) return value->to_tensor();
  std::string have;
  for (const auto& [key, value] : items_) have += (have.empty() ? "" : ", ") + key;
  throw UserError("the model's output has no \"" + std::string(name) + "\"; it has " + (have.empty() ? "nothing" : have));
}

const Tensor& ModelOutput::tensor_or_none(std::string_view name) const {
  static const Tensor none;
  const Value* value = find(name);
  return value ? value->to_tensor() : none;
}

std::vector<Tensor> ModelOutput::tensors(std::string_view name) const {
  const Value* value = find(name);
  return value ? calque::from_value<std::vector<Tensor>>(*value) : std::vector<Tensor>();
}

void ModelOutput::take(const ModelOutput& other, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const Value* value = other.find(name);
    if (!value) continue;
    set(std::string(name), *value);
    if (name == "past_key_values") cache_ = other.cache_;
  }
}

Value ModelOutput::to_value() const {
  std::vector<std::pair<Value, Value>> items;
  for (const auto& [name, value] : items_) items.emplace_back(name, value);
  return dict(std::move(items));
}

ModelOutput ModelOutput::from_value(const Value& value) {
  ModelOutput out;
  for (const auto& [name, item] : value.to_dict().items) {
    out.set(name.to_string(), item);
    if (name.to_string() == "past_key_values") out.cache_ = KeyValueCache::from_value(item);
  }
  return out;
}

}  // namespace calque
