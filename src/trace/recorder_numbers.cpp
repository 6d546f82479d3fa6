// The recorder's symbolic numbers: arithmetic as the program wrote it, sizes when they are first used.
#include <variant>

#include "calque/base/error.h"
#include "trace/recorder.h"

namespace calque {

const Expr* expression_of(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::boolean: return v.to_sym_bool().expr();
    case Value::Kind::integer: return v.to_sym_int().expr();
    case Value::Kind::floating: return v.to_sym_float().expr();
    default: return nullptr;
  }
}

namespace {

Value value_of(const Expr* e) { return e->is_boolean() ? Value(SymBool(e)) : e->is_float() ? Value(SymFloat(e)) : Value(SymInt(e)); }
// An arithmetic node or a size whose result went into arithmetic at most, of which nothing came either.
bool is_unused(const Node& node, int depth) {
  if (depth == 0 || !(node.target().function() || is_accessor(node))) return false;
  for (const Node* user : node.users())
    if (!is_unused(*user, depth - 1)) return false;
  return true;
}

Value value_of(const SymNumber& n) {
  return std::visit([](auto v) { return Value(v); }, n);
}

}  // namespace

void Recorder::computed(const char* function, std::span<const SymNumber> operands, const SymNumber& result) {
  if (is_off()) return;
  const Value out = value_of(result);
  const Expr* e = expression_of(out);
  if (e->kind() == ExprKind::symbol) return;
  // The first way in which a number was computed is how the graph does it, unless nothing came of that and what computed
  // it is over: a composite's own arithmetic does not decide how a later call, or the program itself, writes a number.
  if (const auto it = numbers_.find(e); it != numbers_.end()) {
    const std::source_location now = call_site().where, then = it->second->meta.location;
    const bool same_call = mode_detail::site && now.line() == then.line() && now.column() == then.column();
    if ((same_call && !is_accessor(*it->second)) || !is_unused(*it->second, 4)) return;
  }
  const FunctionRef target = find_function(function);
  if (!target) return;
  Values args;
  for (const SymNumber& n : operands) {
    Value v = value_of(n);
    const Expr* part = expression_of(v);
    if (part && !part->is_integer()) {
      // What came from nowhere in this graph is written from its form when it is used.
      if (part == e || !(numbers_.contains(part) || sizes_.contains(part))) return;
      v = number(part);
    }
    args.push_back(std::move(v));
  }
  Node* node = graph_.call_function(target, std::move(args));
  describe(node);
  node->meta.val = out;
  numbers_[e] = node;
}

void Recorder::counted(const TensorImpl& tensor, SymInt numel) {
  if (is_off()) return;
  if (const auto it = tensors_.find(&tensor); it != tensors_.end()) sizes_.try_emplace(numel.expr(), SizeOf{SizeOf::What::numel, it->second.node, 0});
}

Node* Recorder::function(const char* name, Values args) {
  Node* node = graph_.call_function(get_function(name), std::move(args));
  describe(node);
  return node;
}

Value Recorder::operand(const Expr* e) {
  if (e->is_integer()) return e->integer();
  if (e->kind() == ExprKind::float_number) return e->float_value();
  return number(e);
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
    default: return nullptr;
  }
}

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
    default: return nullptr;
  }
}

}  // namespace

Value Recorder::number(const Expr* e) {
  // What the guards have made of its symbols since. Not what is known of the whole: an assert that says so is a number
  // like this, and must not be taken for true by its own word.
  if (!e->is_boolean() && !e->is_float())
    if (const std::optional<int64_t> now = e->env()->evaluate(SymInt(e), {})) return *now;
  if (const auto it = numbers_.find(e); it != numbers_.end()) return it->second;
  if (outer_ && !sizes_.contains(e)) {
    if (outer_->knows(value_of(e))) return lifted(value_of(e));
  }
  Node* node = nullptr;
  if (const auto it = sizes_.find(e); it != sizes_.end()) {
    const SizeOf& source = it->second;
    static const Operator& sym_size = get_operator("aten::sym_size.int");
    static const Operator& sym_stride = get_operator("aten::sym_stride.int");
    static const Operator& sym_numel = get_operator("aten::sym_numel");
    static const Operator& sym_offset = get_operator("aten::sym_storage_offset");
    switch (source.what) {
      case SizeOf::What::size: node = graph_.call_function(sym_size, {source.node, source.dim}, {}, "sym_size_int"); break;
      case SizeOf::What::stride: node = graph_.call_function(sym_stride, {source.node, source.dim}, {}, "sym_stride_int"); break;
      case SizeOf::What::numel: node = graph_.call_function(sym_numel, {source.node}, {}, "sym_numel"); break;
      case SizeOf::What::offset: node = graph_.call_function(sym_offset, {source.node}, {}, "sym_storage_offset"); break;
    }
    describe(node);
  } else if (e->kind() == ExprKind::mul && e->coefficient() == -1) {
    node = function("operator.neg", {number(e->without_coefficient())});
  } else if (e->kind() == ExprKind::pow) {
    node = function("operator.pow", {operand(e->arg(0)), e->exponent()});
  } else {
    const char* python = python_function(e);
    if (!python || e->args().empty()) throw UserError("make_fx: the number " + e->str() + " is not one that this trace made; pass it as an input");
    const size_t n = e->args().size();
    if (n == 1) {
      node = function(python, {operand(e->arg(0))});
    } else if (e->kind() == ExprKind::where || e->kind() == ExprKind::piecewise) {
      node = function(python, {operand(e->arg(0)), operand(e->arg(1)), operand(e->arg(2))});
    } else {
      // A sum's or product's number comes last, as a user writes it.
      const bool number_first = (e->kind() == ExprKind::add || e->kind() == ExprKind::mul) && e->arg(0)->is_integer();
      const auto combine = [&](Value& left, SymInt& value, size_t i) {
        left = function(python, {left, operand(e->arg(i))});
        if (e->is_float() || e->is_boolean()) return;
        const SymInt right(e->arg(i));
        value = e->kind() == ExprKind::add ? value + right : e->kind() == ExprKind::mul ? value * right : e->kind() == ExprKind::max ? sym_max(value, right)
                : e->kind() == ExprKind::min ? sym_min(value, right) : SymInt(e);
        left.to_node()->meta.val = value;
      };
      const size_t first = number_first ? 1 : 0;
      Value left = operand(e->arg(first));
      SymInt value = e->arg(first)->is_float() || e->arg(first)->is_boolean() ? SymInt(0) : SymInt(e->arg(first));
      for (size_t i = first + 1; i < n; ++i) combine(left, value, i);
      if (number_first) combine(left, value, 0);
      node = left.to_node();
    }
  }
  node->meta.val = value_of(e);
  numbers_.emplace(e, node);
  return node;
}

}  // namespace calque
