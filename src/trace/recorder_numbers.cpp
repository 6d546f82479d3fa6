// The recorder's symbolic numbers: arithmetic as the program wrote it, sizes when they are first used.
#include <variant>

#include "calque/base/error.h"
#include "op/well_known.h"
#include "trace/recorder.h"

namespace calque {

namespace {

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

const Recorder::SizeOf* Recorder::size_source(const Expr* e) {
  if (const SizeOf* known = sizes_.find(e)) return known;
  for (Node* node : unread_) {
    // A tangent comes with the backward pass: the forward's numbers are not read off it (trace/joint.h).
    if (node->kind() == NodeKind::placeholder && node->target().text().starts_with("tangents")) continue;
    const TensorImpl& t = node->meta.val.to_tensor().impl();
    const auto source = [&](SymInt s, SizeOf::What what, size_t d) {
      if (s.is_symbolic()) sizes_.try_emplace(s.expr(), SizeOf{what, node, static_cast<int64_t>(d)});
    };
    for (size_t d = 0; d < t.sizes.size(); ++d) source(t.sizes[d], SizeOf::What::size, d);
    for (size_t d = 0; d < t.strides.size(); ++d) source(t.strides[d], SizeOf::What::stride, d);
    source(t.offset, SizeOf::What::offset, 0);
  }
  unread_.clear();
  return sizes_.find(e);
}

void Recorder::computed(const char* function, std::span<const SymNumber> operands, const SymNumber& result) {
  if (is_off()) return;
  const Expr* e = std::visit([](auto number) { return number.expr(); }, result);
  if (e->kind() == ExprKind::symbol) return;
  // A program may compute a number in several ways; the graph has the first. It is replaced by this one when nothing uses it and
  // the call that computed it is over: a composite's own arithmetic does not decide how the program writes a number later.
  if (Node* const* known = numbers_.find(e)) {
    const Node& before = **known;
    if ((in_same_call(before) && !is_accessor(before)) || !is_unused(before, 4)) return;
  }
  const FunctionRef target = find_function(function);
  if (!target) return;
  Values args;
  for (const SymNumber& n : operands) {
    Value v = value_of(n);
    const Expr* part = v.expr();
    if (part && !part->is_integer()) {
      // Nothing in this graph has computed this part: the number is written from its expression when it is used.
      if (part == e || !(numbers_.contains(part) || size_source(part))) return;
      v = part->has_unbacked() ? number_as_computed(part) : number(part);
    }
    args.push_back(std::move(v));
  }
  Node* node = graph_.call_function(target, std::move(args));
  describe(node);
  node->meta.val = value_of(result);
  numbers_[e] = node;
}

void Recorder::counted(const TensorImpl& tensor, SymInt numel) {
  if (is_off()) return;
  if (size_source(numel.expr())) return;
  if (const auto it = tensors_.find(&tensor); it != tensors_.end())
    sizes_.try_emplace(numel.expr(), SizeOf{SizeOf::What::numel, it->second.node, 0});
}

Node* Recorder::function(const char* name, Values args) {
  Node* node = graph_.call_function(get_function(name), std::move(args));
  describe(node);
  return node;
}

Value Recorder::number(const Expr* e) {
  // Guards may have fixed its symbols since, and then it is a plain number. What is known of the expression as a whole does not
  // count: the condition of an assert is such an expression, and would be found true because the assert says so.
  if (!e->is_boolean() && !e->is_float())
    if (const std::optional<int64_t> now = e->env()->evaluate(SymInt(e), {})) return *now;
  return number_as_computed(e);
}

Value Recorder::number_as_computed(const Expr* e) {
  if (Node* const* known = numbers_.find(e)) return *known;
  if (outer_ && !size_source(e)) {
    if (outer_->knows(value_of(e))) return lifted(value_of(e));
  }
  Node* node = nullptr;
  if (const SizeOf* known = size_source(e)) {
    const SizeOf source = *known;
    switch (source.what) {
      case SizeOf::What::size:
        node = graph_.call_function(ops().sym_size, {source.node, source.dim}, {}, "sym_size_int");
        break;
      case SizeOf::What::stride:
        node = graph_.call_function(ops().sym_stride, {source.node, source.dim}, {}, "sym_stride_int");
        break;
      case SizeOf::What::numel: node = graph_.call_function(ops().sym_numel, {source.node}, {}, "sym_numel"); break;
      case SizeOf::What::offset:
        node = graph_.call_function(ops().sym_storage_offset, {source.node}, {}, "sym_storage_offset");
        break;
    }
    describe(node);
  } else {
    node = write_expression(e, {[this](const Expr* part) { return number(part); },
                                [this](const char* name, Values args, const Value& value) {
                                  Node* step = function(name, std::move(args));
                                  step->meta.val = value;
                                  return step;
                                }});
    if (!node) throw UserError("make_fx: the number " + e->str() + " is not one that this trace made; pass it as an input");
  }
  node->meta.val = value_of(e);
  numbers_.try_emplace(e, node);
  return node;
}

}  // namespace calque
