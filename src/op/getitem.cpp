#include "calque/op/getitem.h"

#include "calque/base/error.h"
#include "calque/op/index.h"
#include "calque/op/mode.h"

namespace calque {
namespace {

[[noreturn]] void nothing_there(const Value& container, const Value& key) {
  throw UserError("getitem: a " + std::string(Value::kind_name(container.kind())) + " has nothing at " + key.str());
}

const Value& at(const Value& container, const Values& items, const Value& key) {
  const auto n = static_cast<int64_t>(items.size());
  const int64_t i = key.to_int();
  if (i < -n || i >= n) nothing_there(container, key);
  return items[static_cast<size_t>(i < 0 ? i + n : i)];
}

}  // namespace

Value getitem(const Value& container, const Value& key, std::source_location where) {
  const CallSite site(where);
  const CallSiteScope scope(site);
  if (modes_active())
    if (auto traced = offer_function("operator.getitem", {container, key})) return *std::move(traced);
  if (container.is_tensor()) return container.to_tensor()[key.to_sym_int()];
  if (!container.is_container())
    throw UserError("getitem: a " + std::string(Value::kind_name(container.kind())) + " has no items");
  if (container.is_sequence()) return at(container, container.to_items(), key);
  if (container.kind() == Value::Kind::dict) {
    for (const auto& [k, v] : container.to_dict().items)
      if (k.equals(key)) return v;
    nothing_there(container, key);
  }
  const StructValue& s = container.to_struct();
  if (key.kind() != Value::Kind::string) return at(container, s.items, key);
  for (size_t i = 0; i < s.fields.size(); ++i)
    if (s.fields[i] == key.to_string()) return s.items[i];
  nothing_there(container, key);
}

}  // namespace calque
