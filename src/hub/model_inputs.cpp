#include "calque/hub/model_inputs.h"

#include <mutex>
#include <set>

#include "calque/base/error.h"
#include "calque/nn/convert.h"

namespace calque {
namespace {

using Kind = ModelArgument::Kind;
using Stored = ModelInputs::Stored;

// An Item refers to its name, which has to live as long as the program: one from a file or a user is kept here.
std::string_view kept_name(std::string_view name) {
  static std::mutex mutex;
  static auto* names = new std::set<std::string, std::less<>>;
  const std::lock_guard lock(mutex);
  const auto found = names->find(name);
  return found != names->end() ? *found : *names->emplace(name).first;
}

bool is_given(const Stored& value) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) return tensor->defined();
  if (const auto* cache = std::get_if<KeyValueCache>(&value)) return !cache->empty() || cache->keeps_all;
  if (const auto* other = std::get_if<Value>(&value)) return !other->is_none();
  return true;
}

Kind kind_of(const Stored& value) { return static_cast<Kind>(value.index()); }

Value as_value(const Stored& value) {
  return std::visit([](const auto& one) { return to_value(one); }, value);
}

Stored of_kind(Kind kind, const Value& value) {
  if (value.is_none()) return Value();
  switch (kind) {
    case Kind::tensor: return value.to_tensor_or_none();
    case Kind::flag: return value.to_bool();
    case Kind::integer: return value.to_int();
    case Kind::cache: return KeyValueCache::from_value(value);
    case Kind::value: return value;
  }
  throw InternalError("of_kind: no such kind");
}

Stored checked(const ModelArgument& argument, const Value& value) {
  try {
    return of_kind(argument.kind, value);
  } catch (Error& error) {
    error.prepend("argument " + std::string(argument.name) + ": ");
    throw;
  }
}

template <class T>
Stored stored(const std::optional<T>& value) {
  return value ? Stored(*value) : Stored(Value());
}

const char* described(Kind kind) {
  switch (kind) {
    case Kind::tensor: return "a tensor";
    case Kind::flag: return "a bool";
    case Kind::integer: return "an integer";
    case Kind::cache: return "keys and values";
    case Kind::value: return "a value";
  }
  throw InternalError("described: no such kind");
}

}  // namespace

ModelInputs::Item::Item(const ArgumentName<bool>& argument, std::optional<bool> given)
    : name(argument.name), value(stored(given)) {}
ModelInputs::Item::Item(const ArgumentName<int64_t>& argument, std::optional<int64_t> given)
    : name(argument.name), value(stored(given)) {}
ModelInputs::Item::Item(const ArgumentName<KeyValueCache>& argument, KeyValueCache given)
    : name(argument.name), value(std::move(given)) {}
ModelInputs::Item::Item(std::string_view argument, Value given) : name(kept_name(argument)) {
  if (given.is_tensor())
    value = given.to_tensor();
  else
    value = std::move(given);
}
ModelInputs::Item::Item(const ModelArgument& argument, const Value& given)
    : name(argument.name), value(checked(argument, given)) {}

ModelInputs::ModelInputs(std::initializer_list<Item> items) {
  items_.reserve(items.size());
  for (const Item& item : items) set(item);
}

const ModelInputs::Item* ModelInputs::find(std::string_view name) const {
  for (const Item& item : items_)
    if (item.name == name) return &item;
  return nullptr;
}

void ModelInputs::set(Item item) {
  const bool given = is_given(item.value);
  for (size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].name != item.name) continue;
    if (given)
      items_[i].value = std::move(item.value);
    else
      items_.erase(items_.begin() + static_cast<ptrdiff_t>(i));
    return;
  }
  if (given) items_.push_back(std::move(item));
}

template <class T>
const T* ModelInputs::find_as(const ModelArgument& argument) const {
  const Item* item = find(argument.name);
  if (!item) return nullptr;
  if (const T* value = std::get_if<T>(&item->value)) return value;
  throw UserError("argument " + std::string(argument.name) + ": expected " + described(argument.kind) + ", found " +
                  described(kind_of(item->value)));
}

Tensor ModelInputs::operator[](const ArgumentName<Tensor>& argument) const {
  const Tensor* found = find_as<Tensor>(argument);
  return found ? *found : Tensor();
}

std::optional<bool> ModelInputs::operator[](const ArgumentName<bool>& argument) const {
  const bool* found = find_as<bool>(argument);
  return found ? std::optional(*found) : std::nullopt;
}

std::optional<int64_t> ModelInputs::operator[](const ArgumentName<int64_t>& argument) const {
  const int64_t* found = find_as<int64_t>(argument);
  return found ? std::optional(*found) : std::nullopt;
}

const KeyValueCache& ModelInputs::operator[](const ArgumentName<KeyValueCache>& argument) const {
  static const KeyValueCache none;
  const KeyValueCache* found = find_as<KeyValueCache>(argument);
  return found ? *found : none;
}

Value ModelInputs::operator[](const ArgumentName<Value>& argument) const {
  const Value* found = find_as<Value>(argument);
  return found ? *found : Value();
}

Value ModelInputs::get(std::string_view name) const {
  const Item* item = find(name);
  return item ? as_value(item->value) : Value();
}

Tensor ModelInputs::tensor(std::string_view name) const {
  const Tensor* found = find_as<Tensor>({name, Kind::tensor});
  return found ? *found : Tensor();
}

Kwargs ModelInputs::to_kwargs(std::span<const ModelArgument> arguments) const {
  Kwargs out;
  for (const ModelArgument& argument : arguments)
    if (const Item* item = find(argument.name)) out.emplace_back(argument.name, as_value(item->value));
  return out;
}

const ModelArgument* find_argument(std::span<const ModelArgument> arguments, std::string_view name) {
  for (const ModelArgument& argument : arguments)
    if (argument.name == name) return &argument;
  return nullptr;
}

bool ModelInputs::fit(std::span<const ModelArgument> arguments) const {
  for (const Item& item : items_) {
    const ModelArgument* argument = find_argument(arguments, item.name);
    if (!argument || argument->kind != kind_of(item.value)) return false;
  }
  return true;
}

ModelInputs ModelInputs::fitted(std::span<const ModelArgument> arguments, const std::string& class_name) const {
  ModelInputs out;
  for (const Item& item : items_) {
    const ModelArgument* argument = find_argument(arguments, item.name);
    if (!argument) {
      std::string taken;
      for (const ModelArgument& one : arguments) taken += (taken.empty() ? "" : ", ") + std::string(one.name);
      throw UserError(class_name + ".forward() got an unexpected keyword argument '" + std::string(item.name) +
                      "'; it takes " + taken);
    }
    if (argument->kind == kind_of(item.value))
      out.set(item);
    else
      out.set(Item(*argument, as_value(item.value)));
  }
  return out;
}

}  // namespace calque
