// ShapeEnv: the world of one trace's symbols. It owns the interned expressions, the symbols with their ranges, hints
// and origins, and the guards that were taken. Always held by shared_ptr; not for concurrent use by several threads.
// The constraint solver and suggested fixes are not here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "calque/sym/sym_int.h"

namespace calque {

// Inclusive; the extremes mean unbounded.
struct ValueRange {
  static constexpr int64_t unbounded_below = INT64_MIN;
  static constexpr int64_t unbounded_above = INT64_MAX;
  int64_t lower = unbounded_below;
  int64_t upper = unbounded_above;
};

struct Symbol {
  std::string name;             // "s0" for backed, "u0" for unbacked
  std::optional<int64_t> hint;  // none for unbacked
  ValueRange range;
  std::string origin;           // "input_ids, dimension 1"
  bool keeps_zero_one = false;  // comparisons with 0 and 1 take the guard_or(false) branch
  bool positive = false;        // sympy's assumption, as srepr writes it; what holds is the range
};

struct Guard {
  SymBool condition;  // holds for the traced example
  std::string operator_name;
  std::source_location where;
};

struct ShapeEnvOptions {
  bool duck_shape = true;           // equal example sizes share a symbol
  bool specialize_zero_one = true;  // example sizes 0 and 1 become plain integers
};

class ShapeEnv : public std::enable_shared_from_this<ShapeEnv> {
 public:
  static std::shared_ptr<ShapeEnv> make(ShapeEnvOptions options = {});
  ~ShapeEnv();
  ShapeEnv(const ShapeEnv&) = delete;
  ShapeEnv& operator=(const ShapeEnv&) = delete;

  // A size symbol with this example value, in range [2, inf) under specialize_zero_one (0 and 1 give plain integers),
  // [0, inf) otherwise; or the existing one of equal hint under duck_shape.
  SymInt create_size(int64_t hint, std::string origin);
  // Always a fresh symbol, whatever the options say; a named dimension.
  SymInt create_symbol(int64_t hint, ValueRange range, std::string origin, bool keeps_zero_one = false);
  SymInt create_unbacked(ValueRange range = {});
  // A symbol whose name is given, as files name theirs; of an existing one the range is narrowed and a missing hint is
  // filled in. Names that start with 'u' are unbacked and take no hint.
  SymInt declare_symbol(std::string name, std::optional<int64_t> hint, ValueRange range, std::string origin = {});

  const std::vector<Symbol>& symbols() const;
  const Symbol& symbol(std::string_view name) const;
  const std::vector<Guard>& guards() const;
  const std::vector<SymBool>& deferred_asserts() const;

  void constrain_range(SymInt value, ValueRange range);
  ValueRange range(SymInt value) const;
  std::optional<int64_t> hint(SymInt value) const;
  // The value under other symbol values (by symbol name); none if a symbol is missing.
  using Assignment = std::vector<std::pair<std::string, int64_t>>;
  std::optional<int64_t> evaluate(SymInt value, const Assignment& values) const;
  std::optional<bool> evaluate(SymBool value, const Assignment& values) const;
  SymInt simplify(SymInt value) const;  // with what the guards have taught
  // What a symbol is known to equal, with symbols that are not themselves replaced; none if it stands for itself.
  std::optional<SymInt> replacement(std::string_view symbol) const;

  struct Impl;
  Impl& impl() const { return *impl_; }

 private:
  explicit ShapeEnv(ShapeEnvOptions options);
  std::unique_ptr<Impl> impl_;
};

// The environment of a symbolic value; null for plain ones.
std::shared_ptr<ShapeEnv> env_of(SymInt value);

// Names the operator that guards are attributed to, for the calling thread, while in scope.
class GuardOperatorScope {
 public:
  explicit GuardOperatorScope(std::string_view name);
  ~GuardOperatorScope();
  GuardOperatorScope(const GuardOperatorScope&) = delete;
  GuardOperatorScope& operator=(const GuardOperatorScope&) = delete;

 private:
  std::string_view before_;
};

}  // namespace calque
