#include "trace/expression_nodes.h"

namespace calque {

Value value_of(const Expr* e) {
  return e->is_boolean() ? Value(SymBool(e)) : e->is_float() ? Value(SymFloat(e)) : Value(SymInt(e));
}

namespace {

const char* opaque_function(OpaqueFunction function) {
  switch (function) {
    case OpaqueFunction::sqrt: return "torch._sym_sqrt";
    case OpaqueFunction::cos: return "torch._sym_cos";
    case OpaqueFunction::cosh: return "torch._sym_cosh";
    case OpaqueFunction::sin: return "torch._sym_sin";
    case OpaqueFunction::sinh: return "torch._sym_sinh";
    case OpaqueFunction::tan: return "torch._sym_tan";
    case OpaqueFunction::tanh: return "torch._sym_tanh";
    case OpaqueFunction::asin: return "torch._sym_asin";
    case OpaqueFunction::acos: return "torch._sym_acos";
    case OpaqueFunction::atan: return "torch._sym_atan";
    case OpaqueFunction::log2: return "torch._sym_log2";
    case OpaqueFunction::exp:
    case OpaqueFunction::log:
    case OpaqueFunction::asinh: break;
  }
  return nullptr;
}

}  // namespace

const char* python_function(const Expr* e) {
  switch (e->kind()) {
    case ExprKind::opaque_unary: return opaque_function(e->opaque_function());
    case ExprKind::round_to_int:
    case ExprKind::round_decimal: return "builtins.round";
    case ExprKind::absolute: return "operator.abs";
    case ExprKind::floor: return "math.floor";
    case ExprKind::bitwise_and: return "operator.and_";
    case ExprKind::bitwise_or: return "operator.or_";
    case ExprKind::bitwise_xor: return "operator.xor";
    case ExprKind::add: return "operator.add";
    case ExprKind::mul: return "operator.mul";
    case ExprKind::pow:
    case ExprKind::pow_by_natural:
    case ExprKind::float_pow: return "operator.pow";
    case ExprKind::floor_div:
    case ExprKind::clean_div: return "operator.floordiv";
    case ExprKind::mod:
    case ExprKind::python_mod: return "operator.mod";
    case ExprKind::max: return "torch.sym_max";
    case ExprKind::min: return "torch.sym_min";
    case ExprKind::where:
    case ExprKind::piecewise: return "torch.sym_ite";
    case ExprKind::to_float: return "torch.sym_float";
    case ExprKind::int_true_div:
    case ExprKind::float_true_div: return "operator.truediv";
    case ExprKind::floor_to_int: return "math.floor";
    case ExprKind::ceil_to_int: return "math.ceil";
    case ExprKind::trunc_to_int: return "math.trunc";
    case ExprKind::eq: return "operator.eq";
    case ExprKind::ne: return "operator.ne";
    case ExprKind::lt: return "operator.lt";
    case ExprKind::le: return "operator.le";
    case ExprKind::gt: return "operator.gt";
    case ExprKind::ge: return "operator.ge";
    case ExprKind::logical_and: return "operator.and_";
    case ExprKind::logical_or: return "operator.or_";
    case ExprKind::logical_not: return "torch.sym_not";
    case ExprKind::integer:
    case ExprKind::float_number:
    case ExprKind::symbol:
    case ExprKind::trunc_to_float:
    case ExprKind::dense_indicator:
    case ExprKind::true_value:
    case ExprKind::false_value: break;
  }
  return nullptr;
}

Node* write_expression(const Expr* e, const ExpressionWriter& writer) {
  const auto operand = [&](const Expr* part) -> Value {
    if (part->is_integer()) return part->integer();
    if (part->kind() == ExprKind::float_number) return part->float_value();
    return writer.number(part);
  };
  if (e->kind() == ExprKind::mul && e->coefficient() == -1)
    return writer.call("operator.neg", {operand(e->without_coefficient())}, value_of(e));
  if (e->kind() == ExprKind::pow) return writer.call("operator.pow", {operand(e->arg(0)), e->exponent()}, value_of(e));
  const char* python = python_function(e);
  if (!python || e->args().empty()) return nullptr;
  const size_t n = e->args().size();
  if (n == 1) return writer.call(python, {operand(e->arg(0))}, value_of(e));
  if (e->kind() == ExprKind::where || e->kind() == ExprKind::piecewise)
    return writer.call(python, {operand(e->arg(0)), operand(e->arg(1)), operand(e->arg(2))}, value_of(e));
  // A sum's or product's number comes last, as a user writes it. Steps on the way know their value too.
  const bool number_first = (e->kind() == ExprKind::add || e->kind() == ExprKind::mul) && e->arg(0)->is_integer();
  const size_t first = number_first ? 1 : 0;
  Value left = operand(e->arg(first));
  SymInt value = e->arg(first)->is_float() || e->arg(first)->is_boolean() ? SymInt(0) : SymInt(e->arg(first));
  const auto combine = [&](size_t i) {
    Value step;
    if (!e->is_float() && !e->is_boolean()) {
      const SymInt right(e->arg(i));
      value = e->kind() == ExprKind::add   ? value + right
              : e->kind() == ExprKind::mul ? value * right
              : e->kind() == ExprKind::max ? sym_max(value, right)
              : e->kind() == ExprKind::min ? sym_min(value, right)
                                           : SymInt(e);
      step = value;
    }
    left = writer.call(python, {left, operand(e->arg(i))}, step);
  };
  for (size_t i = first + 1; i < n; ++i) combine(i);
  if (number_first) combine(0);
  return left.to_node();
}

}  // namespace calque
