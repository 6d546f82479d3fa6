// Functions that stay whole in captured graphs: an operator that calls them by their number.
#include <deque>
#include <functional>
#include <mutex>

#include "calque/base/error.h"
#include "calque/compile/compile.h"
#include "calque/op/library.h"
#include "calque/op/tree.h"
#include "compile/capture.h"

namespace calque::compile_detail {
namespace {

struct AllowedEntry {
  std::function<Value(const Values& args)> function;
  std::string name;
  std::optional<TreeSpec> result;  // of its last call
};

// Never forgotten: graphs hold numbers.
struct AllowedEntries {
  std::mutex mutex;
  std::deque<AllowedEntry> list;
};
AllowedEntries& allowed_entries() {
  static AllowedEntries entries;
  return entries;
}
AllowedEntry& allowed_entry(int64_t number) {
  AllowedEntries& entries = allowed_entries();
  const std::lock_guard lock(entries.mutex);
  if (number < 0 || number >= std::ssize(entries.list))
    throw UserError("calque::allowed: function " + std::to_string(number) + " is not one of this process; it has " +
                    std::to_string(entries.list.size()));
  return entries.list[static_cast<size_t>(number)];
}

std::vector<Tensor> run_allowed(int64_t number, TensorList args) {
  AllowedEntry& entry = allowed_entry(number);
  Values values;
  for (const Tensor& t : args) values.emplace_back(t);
  const NoModesScope whole;
  const FlatTree flat = tree_flatten(entry.function(values));
  std::vector<Tensor> out;
  for (const Value& leaf : flat.leaves) {
    if (!leaf.is_tensor() || !leaf.to_tensor().defined())
      throw UserError("allow_in_graph: " + entry.name + " gave " + std::string(Value::kind_name(leaf.kind())) +
                      ", expected tensors");
    out.push_back(leaf.to_tensor());
  }
  const std::lock_guard lock(allowed_entries().mutex);
  entry.result = flat.spec;
  return out;
}

const Operator& allowed_operator() {
  static const Operator& op = []() -> const Operator& {
    static Library library("calque");
    library.def("allowed(int function, Tensor[] args) -> Tensor[]").own(run_allowed, run_allowed);
    return get_operator("calque::allowed");
  }();
  return op;
}

}  // namespace

int64_t allow(std::function<Value(const Values& args)> function, std::string name) {
  static_cast<void>(allowed_operator());
  AllowedEntries& entries = allowed_entries();
  const std::lock_guard lock(entries.mutex);
  if (name.empty()) name = "function " + std::to_string(entries.list.size());
  entries.list.push_back({std::move(function), std::move(name), std::nullopt});
  return std::ssize(entries.list) - 1;
}

Value call_allowed(int64_t number, const Values& args) {
  AllowedEntry& entry = allowed_entry(number);
  if (!is_inside_capture()) return entry.function(args);
  for (const Value& v : args)
    if (!v.is_tensor() || !v.to_tensor().defined())
      throw UserError("allow_in_graph: " + entry.name + " takes tensors inside a compiled function, found " +
                      std::string(Value::kind_name(v.kind())));
  const Values results = dispatch(allowed_operator(), {Value(number), list(args)}).to_items();
  const std::lock_guard lock(allowed_entries().mutex);
  return entry.result.value().unflatten(results);
}

}  // namespace calque::compile_detail
