// ShapeEnv: the world of one trace's symbols. It owns the interned expressions, the symbols with their ranges, hints
// and origins, the guards that were taken, the asserts that are left to run time, and a log that explains all of it.
// Always held by shared_ptr; not for concurrent use by several threads. Symbols for whole tensors are made by
// symbolic_context.h, guards become text in produce_guards.h, suggested fixes come from dim_constraints.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "calque/base/thread_context.h"
#include "calque/sym/sym_int.h"

namespace calque {

// Inclusive; the extremes mean unbounded.
struct ValueRange {
  static constexpr int64_t unbounded_below = INT64_MIN;
  static constexpr int64_t unbounded_above = INT64_MAX;
  int64_t lower = unbounded_below;
  int64_t upper = unbounded_above;
  friend bool operator==(ValueRange, ValueRange) = default;
};
std::string str(ValueRange range);  // "[2, inf]"

struct Symbol {
  std::string name;             // "s0" for backed, "u0" for unbacked; "zf0" and "zuf0" for floats
  std::optional<int64_t> hint;  // none for unbacked
  ValueRange range;
  std::string origin;     // "input_ids, dimension 1"
  bool positive = false;  // sympy's assumption, as srepr writes it; what holds is the range
  bool is_float = false;
  bool size_like = false;  // unbacked: a size; size-oblivious tests take it to be at least 2
  bool is_input = false;   // unbacked: came with an input, so it exists from the start
  std::optional<double> float_hint;
};

// Who asked: the operator and the module that ran, and the line.
struct GuardOrigin {
  std::string operator_name;
  std::string module_path;
  std::source_location where;
  std::string str() const;  // "aten::view in layers.0, at model.cpp:31"
};

struct Guard {
  SymBool condition;  // holds for the traced example
  std::string operator_name;
  std::source_location where;
  std::string module_path;
  bool size_oblivious = false;
  GuardOrigin origin() const { return {operator_name, module_path, where}; }
};

// A condition that is checked when the program runs: by whoever computes the youngest value from tensor data in it.
struct RuntimeAssert {
  SymBool condition;
  std::string symbol;   // that value's name; empty where no tensor data is involved
  std::string message;  // "file.cpp:12"
  GuardOrigin origin;
};

// One thing that happened to the environment's knowledge.
struct LogRecord {
  enum class Kind : uint8_t {
    symbol,            // was made
    shared_symbol,     // an equal example size shares it
    static_size,       // a size of 0 or 1 became a plain integer
    guard,             // was taken
    suppressed_guard,  // would have been taken
    runtime_assert,    // was deferred
    assumption,        // tensor data: the fallback was taken, nothing was recorded
    range,             // a symbol's range became narrower
    replacement,       // a symbol stands for an expression from now on
    specialization,    // ... for a number
    late_guard,        // was taken after freeze()
  };
  Kind kind;
  std::string subject;      // the symbol's name, or the condition as sympy prints it
  std::string detail;       // the new range, the expression it stands for, the answer that was assumed, the example
  std::string description;  // of a symbol: where it comes from
  std::string cause;        // the condition that was being learnt, if that was it
  GuardOrigin origin;
  std::string str() const;
};

struct ShapeEnvOptions {
  bool duck_shape = true;           // equal example sizes share a symbol
  bool specialize_zero_one = true;  // example sizes 0 and 1 become plain integers
  bool assume_static_by_default = false;
  // A check() of backed values is asserted at run time instead of guarded on, and only simple expressions replace symbols.
  bool prefer_deferred_runtime_asserts = false;
  bool keep_log = true;
};

class ShapeEnv : public std::enable_shared_from_this<ShapeEnv> {
 public:
  static std::shared_ptr<ShapeEnv> make(ShapeEnvOptions options = {});
  ~ShapeEnv();
  ShapeEnv(const ShapeEnv&) = delete;
  ShapeEnv& operator=(const ShapeEnv&) = delete;
  const ShapeEnvOptions& options() const;

  // A size symbol with this example value, in range [2, inf) under specialize_zero_one (0 and 1 give plain integers),
  // [0, inf) otherwise; or the existing one of equal hint under duck_shape.
  SymInt create_size(int64_t hint, std::string origin);
  // Always a fresh symbol, whatever the options say; a named dimension.
  SymInt create_symbol(int64_t hint, ValueRange range, std::string origin);
  SymFloat create_float(double hint, std::string origin);
  // Values that are only known when the program runs. Until they are found in some result (see unbacked.h) they are
  // pending; a bool is "u0 == 1" with u0 in [0, 1].
  SymInt create_unbacked(ValueRange range = {});
  SymInt create_unbacked_size();  // at least 0, and a size
  SymFloat create_unbacked_float();
  SymBool create_unbacked_bool();
  // A symbol whose name is given, as files name theirs; of an existing one the range is narrowed and a missing hint is
  // filled in. Names that start with 'u' are unbacked and take no hint.
  SymInt declare_symbol(std::string name, std::optional<int64_t> hint, ValueRange range, std::string origin = {});

  const std::vector<Symbol>& symbols() const;
  const Symbol& symbol(std::string_view name) const;
  const std::vector<Guard>& guards() const;
  const std::vector<SymBool>& deferred_asserts() const;  // the conditions of runtime_asserts()
  const std::vector<RuntimeAssert>& runtime_asserts() const;
  std::vector<RuntimeAssert> runtime_asserts_of(std::string_view symbol) const;

  void constrain_range(SymInt value, ValueRange range);
  // The value is a size: at least 0, and size-oblivious tests take it to be at least 2. Unbacked symbols only; others
  // are left alone.
  void constrain_range_for_size(SymInt value, std::optional<int64_t> min = {}, std::optional<int64_t> max = {});
  // Two symbols, or a symbol and a number, are the same from now on; nothing is guarded or asserted.
  void constrain_unify(SymInt a, SymInt b);
  ValueRange range(SymInt value) const;
  std::optional<int64_t> hint(SymInt value) const;
  std::optional<bool> hint(SymBool value) const;
  std::optional<double> hint(SymFloat value) const;
  // The value under other symbol values (by symbol name); none if a symbol is missing.
  using Assignment = std::vector<std::pair<std::string, int64_t>>;
  std::optional<int64_t> evaluate(SymInt value, const Assignment& values) const;
  std::optional<bool> evaluate(SymBool value, const Assignment& values) const;
  SymInt simplify(SymInt value) const;  // with what the guards have taught
  SymBool simplify(SymBool value) const;
  // What a symbol is known to equal, with symbols that are not themselves replaced; none if it stands for itself.
  std::optional<SymInt> replacement(std::string_view symbol) const;

  // Guards taken from now on are marked in the log; PyTorch warns of them and records them all the same.
  void freeze();
  bool frozen() const;

  std::vector<LogRecord> log() const;
  // Every symbol, guard, assert and specialisation with its reason, as text for people.
  std::string explain() const;

  struct Impl;
  Impl& impl() const { return *impl_; }

 private:
  explicit ShapeEnv(ShapeEnvOptions options);
  std::unique_ptr<Impl> impl_;
};

// The environment of a symbolic value; null for plain ones.
std::shared_ptr<ShapeEnv> env_of(SymInt value);
std::shared_ptr<ShapeEnv> env_of_float(SymFloat value);
std::shared_ptr<ShapeEnv> env_of_bool(SymBool value);

// Names the operator that guards are attributed to, for the calling thread, while in scope.
using GuardOperatorScope = ContextScope<&ThreadContext::guard_operator>;

// The same for the module that runs.
using GuardModuleScope = ContextScope<&ThreadContext::guard_module>;

// Guards and asserts of the calling thread are answered but not recorded while in scope.
using SuppressGuards = ContextSwitch<&ThreadContext::guards_suppressed, true>;

// A guard that is not known already is an error while in scope.
class ErrorOnNewGuards {
 public:
  explicit ErrorOnNewGuards(ShapeEnv& env);
  ~ErrorOnNewGuards();
  ErrorOnNewGuards(const ErrorOnNewGuards&) = delete;
  ErrorOnNewGuards& operator=(const ErrorOnNewGuards&) = delete;

 private:
  ShapeEnv& env_;
  bool before_;
};

}  // namespace calque
