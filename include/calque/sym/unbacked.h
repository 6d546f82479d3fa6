// Values that are only known when the program runs (unbacked symbols): the questions that may be asked of them, how they
// are found again in an operator's results (bindings), and how those of a second trace take the names of the first.
#pragma once

#include <map>
#include <source_location>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "calque/sym/shape_env.h"
#include "calque/sym/sym_int.h"

namespace calque {

// As guard(), but tensor data that is a size is taken to be at least 2. The answer may differ at run time; for tests
// whose outcome does not matter then (a dimension of 1 that could have been dropped).
bool guard_size_oblivious(SymBool condition, std::source_location where = std::source_location::current());
inline bool guard_or_false(SymBool condition, std::source_location where = std::source_location::current()) {
  return guard_or(condition, false, where);
}
inline bool guard_or_true(SymBool condition, std::source_location where = std::source_location::current()) {
  return guard_or(condition, true, where);
}
// Provable from ranges and algebra; nothing is recorded.
bool statically_known_true(SymBool condition);
bool statically_known_false(SymBool condition);
// The value is a size: not negative (checked, now or at run time), and a size to guard_size_oblivious from then on.
[[nodiscard]] bool check_is_size(SymInt value, std::source_location where = std::source_location::current());

// One step on the way from a result to the value that a symbol stands for.
struct BindingKey {
  enum class Kind : uint8_t {
    item,       // [index] of a list or of size() and stride()
    method,     // .size(), .stride(), .storage_offset()
    to_int,     // a bool read as 0 or 1
    divide_by,  // the value is a multiple of the symbol
  };
  Kind kind = Kind::item;
  int64_t index = 0;
  std::string name = {};  // of a method
  SymInt divisor = 1;
  static BindingKey item(int64_t index) { return {Kind::item, index, {}, 1}; }
  static BindingKey method(std::string name) { return {Kind::method, 0, std::move(name), 1}; }
  static BindingKey to_int() { return {Kind::to_int, 0, {}, 1}; }
  static BindingKey divide_by(SymInt divisor) { return {Kind::divide_by, 0, {}, divisor}; }
  std::string str() const;  // "[0]", ".size()", ".to_int()", ".__floordiv__(2)"
};
using BindingPath = std::vector<BindingKey>;
std::string str(const BindingPath& path);

struct TensorGeometry {
  SymInts sizes;
  SymInts strides;
  SymInt storage_offset = 0;
};

// A leaf of an operator's results and the way to it.
struct ResultLeaf {
  BindingPath path;
  std::variant<TensorGeometry, SymInt, SymFloat, SymBool> value;
};

// Symbol name to path, for the symbols that were made since the last call. It is an error if one of them is in none of
// the results. With `peek` they stay pending.
using UnbackedBindings = std::map<std::string, BindingPath>;
UnbackedBindings compute_unbacked_bindings(ShapeEnv& env, const std::vector<ResultLeaf>& results, bool peek = false);

// The names of unbacked symbols that are pending; forget_pending_unbacked drops them (results that are thrown away).
std::vector<std::string> pending_unbacked(const ShapeEnv& env);
void forget_pending_unbacked(ShapeEnv& env);
// Symbols made by the calling thread while in scope are not pending.
using IgnoreFreshUnbacked = ContextSwitch<&ThreadContext::fresh_unbacked_ignored, true>;
inline bool fresh_unbacked_ignored() { return thread_context().fresh_unbacked_ignored; }

// A second trace made `fresh` for what the first one calls `known`: from now on it is written as `known`.
void rename_unbacked(ShapeEnv& env, SymInt fresh, SymInt known);
// The bindings of a first trace, and the results of the second at the same paths: every fresh symbol takes the old name.
void rebind_unbacked(ShapeEnv& env, const UnbackedBindings& bindings, const std::vector<ResultLeaf>& results);
// Renamings applied to a node's old bindings.
UnbackedBindings resolve_unbacked_bindings(const ShapeEnv& env, const UnbackedBindings& bindings);

}  // namespace calque
