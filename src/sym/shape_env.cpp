#include "calque/sym/shape_env.h"

#include "calque/base/error.h"
#include "calque/sym/expr.h"

namespace calque {

struct ShapeEnv::Impl {
  ShapeEnvOptions options;
  std::vector<Symbol> symbols;
  std::vector<Guard> guards;
  std::vector<SymBool> deferred;
};

ShapeEnv::ShapeEnv(ShapeEnvOptions options) : impl_(std::make_unique<Impl>()) { impl_->options = options; }
ShapeEnv::~ShapeEnv() = default;
std::shared_ptr<ShapeEnv> ShapeEnv::make(ShapeEnvOptions options) { return std::shared_ptr<ShapeEnv>(new ShapeEnv(options)); }

namespace {
[[noreturn]] void no_symbols() { throw InternalError("symbolic integers are not available"); }
}  // namespace

SymInt ShapeEnv::create_size(int64_t, std::string) { no_symbols(); }
SymInt ShapeEnv::create_symbol(int64_t, ValueRange, std::string, bool) { no_symbols(); }
SymInt ShapeEnv::create_unbacked(ValueRange) { no_symbols(); }
const std::vector<Symbol>& ShapeEnv::symbols() const { return impl_->symbols; }
const Symbol& ShapeEnv::symbol(std::string_view name) const {
  throw UserError("there is no symbol " + std::string(name));
}
const std::vector<Guard>& ShapeEnv::guards() const { return impl_->guards; }
const std::vector<SymBool>& ShapeEnv::deferred_asserts() const { return impl_->deferred; }
void ShapeEnv::constrain_range(SymInt, ValueRange) {}
ValueRange ShapeEnv::range(SymInt value) const { return {value.as_int(), value.as_int()}; }
std::optional<int64_t> ShapeEnv::hint(SymInt value) const { return value.as_int(); }
std::optional<int64_t> ShapeEnv::evaluate(SymInt value, const Assignment&) const { return value.as_int(); }
std::optional<bool> ShapeEnv::evaluate(SymBool value, const Assignment&) const { return value.plain(); }
SymInt ShapeEnv::simplify(SymInt value) const { return value; }

std::shared_ptr<ShapeEnv> env_of(SymInt value) {
  const Expr* e = value.expr();
  return e != nullptr && e->env() != nullptr ? e->env()->shared_from_this() : nullptr;
}

namespace {
thread_local std::string_view current_operator;
}
GuardOperatorScope::GuardOperatorScope(std::string_view name) : before_(current_operator) { current_operator = name; }
GuardOperatorScope::~GuardOperatorScope() { current_operator = before_; }

}  // namespace calque
