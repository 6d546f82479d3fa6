#include "calque/hub/model_io.h"

#include "calque/base/error.h"
#include "calque/nn/convert.h"

namespace calque {

namespace {

bool is_set(const Value& value) {
  return !value.is_none() &&
         !(value.is_container() && (value.kind() == Value::Kind::tuple || value.kind() == Value::Kind::list) &&
           value.to_items().empty());
}

}  // namespace

void ModelOutput::set(std::string name, Value value) {
  if (!is_set(value)) return;
  for (auto& [key, old] : items_)
    if (key == name) {
      old = std::move(value);
      return;
    }
  items_.emplace_back(std::move(name), std::move(value));
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
