#include "op/run.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "calque/op/grad_node.h"
#include "calque/op/mode.h"

namespace calque {
namespace op_detail {
namespace {

const Tensor& tensor_at(Arguments at, size_t i) { return argument_at<Tensor>(at[i]); }

// Whether `test` holds for a tensor among the arguments from `first` on; undefined ones are left out.
template <class Test>
bool any_tensor(const ArgumentList& arguments, Arguments at, Test test, unsigned first = 0) {
  const uint64_t from = ~uint64_t{0} << first;
  for (uint64_t left = arguments.tensors & from; left != 0; left &= left - 1)
    if (const Tensor& t = tensor_at(at, static_cast<size_t>(std::countr_zero(left))); t.defined() && test(t)) return true;
  for (uint64_t left = arguments.tensor_lists & from; left != 0; left &= left - 1)
    for (const Tensor& t : argument_at<TensorList>(at[std::countr_zero(left)]))
      if (t.defined() && test(t)) return true;
  return false;
}

void check_overlaps(const Operator& op, const Tensor& written, Arguments at, unsigned first) {
  const auto check = [&](const Tensor& input) {
    check_overlap(op, written, input);
    return false;
  };
  any_tensor(op.base()->calls().arguments, at, check, first);
}

// Tag::unshared_out.
void check_all_unshared(const Operator& op, const Tensor& written, Arguments at) {
  if (!op.base()->has_tag(Tag::unshared_out)) return;
  any_tensor(op.base()->calls().arguments, at, [&](const Tensor& input) {
    check_unshared(op, written, input);
    return false;
  });
}

bool is_input(const Tensor& out, const Calls& calls, Arguments at) {
  return any_tensor(calls.arguments, at, [&](const Tensor& t) { return t.is_same(out); });
}

void run_kernel(const Operator& base, Arguments at, const Tensor& out) {
  base.calls().kernel(base.kernel(), at, TensorList(&out, 1));
}

Tensor compute_aside(const Operator& base, const Meta& meta, Arguments at) {
  const Tensor result = make_tensor(meta);
  run_kernel(base, at, result);
  return result;
}

// The result takes the place of an input, which may get other sizes: the kernel has read it by then.
Tensor replace_input(const Operator& op, const Meta& meta, Arguments at, const Tensor& out, bool fake) {
  Tensor result;
  if (!fake) result = compute_aside(*op.base(), meta, at);
  prepare_out(op, meta, out);
  if (!fake) write_result(result, out);
  out.storage()->bump_version();
  return out;
}

}  // namespace

namespace {

Tensor marked_view(const Tensor& self, const View& view, ViewKind kind) {
  Tensor made = make_view(self, view.sizes, view.strides, view.offset);
  mark_view(made, self, grad_enabled() ? kind : ViewKind::no_grad);
  return made;
}

}  // namespace

Tensor make_view_of(const Tensor& self, const View& view) { return marked_view(self, view, ViewKind::plain); }

std::vector<Tensor> make_views_of(const Tensor& self, const std::vector<View>& views) {
  std::vector<Tensor> out;
  out.reserve(views.size());
  for (const View& v : views) out.push_back(marked_view(self, v, ViewKind::one_of_many));
  return out;
}

Value run_compute(const Operator& op, Arguments at, bool fake) {
  const Calls& calls = op.calls();
  if (calls.meta) {
    Tensor out = allocate(calls.meta(op.rule(), at), fake);
    if (!fake) run_kernel(op, at, out);
    return Value(std::move(out));
  }
  std::vector<Meta> metas;
  calls.metas(op.rule(), at, metas);
  std::vector<Tensor> outs;
  outs.reserve(metas.size());
  for (const Meta& meta : metas) outs.push_back(allocate(meta, fake));
  if (!fake) calls.kernel(op.kernel(), at, outs);
  Values items(std::make_move_iterator(outs.begin()), std::make_move_iterator(outs.end()));
  return calls.outputs == 0 ? list(std::move(items)) : tuple(std::move(items));
}

Value run_view(const Operator& op, Arguments at, bool) { return op.calls().call(op.rule(), at); }

Value run_direct(const Operator& op, Arguments at, bool fake) { return op.calls().call(fake ? op.rule() : op.kernel(), at); }

Value run_mutate(const Operator& op, Arguments at, bool fake) {
  const Tensor& self = tensor_at(at, 0);
  check_writable(op, self);
  if (const auto function = fake ? op.rule() : op.kernel()) op.calls().call(function, at);
  self.storage()->bump_version();
  return Value(self);
}

Tensor write_in_place(const Operator& op, Arguments at, bool fake) {
  const Operator& base = *op.base();
  const Tensor& self = tensor_at(at, 0);
  const Meta meta = base.calls().meta(base.rule(), at);
  if (base.has_tag(Tag::resizes_self)) return replace_input(op, meta, at, self, fake);
  check_in_place(op, meta, self);
  if (!fake) {
    if (writes_directly(base, meta, self, true)) {
      check_overlaps(op, self, at, 1);
      run_kernel(base, at, self);
    } else {
      write_result(compute_aside(base, meta, at), self);
    }
  }
  self.storage()->bump_version();
  return self;
}

namespace {

Tensor write_out_as_given(const Operator& op, Arguments at, const Tensor& out, bool fake) {
  const Operator& base = *op.base();
  const Calls& calls = base.calls();
  const Meta meta = calls.meta(base.rule(), at);
  if (is_input(out, calls, at) && resizes(meta, out)) [[unlikely]] {
    check_all_unshared(op, out, at);
    return replace_input(op, meta, at, out, fake);
  }
  prepare_out(op, meta, out);
  check_all_unshared(op, out, at);
  if (!fake) {
    const bool shared = any_tensor(calls.arguments, at, [&](const Tensor& t) { return shares_memory(out, t); });
    if (writes_directly(base, meta, out, false) && (!shared || base.has_tag(Tag::pointwise))) {
      check_overlaps(op, out, at, 0);
      run_kernel(base, at, out);
    } else {
      write_result(compute_aside(base, meta, at), out);
    }
  }
  out.storage()->bump_version();
  return out;
}

}  // namespace

Tensor write_out(const Operator& op, Arguments at, bool fake) {
  const Operator& base = *op.base();
  const Calls& calls = base.calls();
  const Tensor& out = tensor_at(at, calls.arguments.count);
  if (!base.has_tag(Tag::dtype_from_out) || !out.defined()) return write_out_as_given(op, at, out, fake);
  // Without a dtype argument, rule and kernel see out's.
  const std::optional<DType> dtype = out.dtype();
  std::vector<const void*> seen(at, at + calls.arguments.count);
  for (size_t i = 0; i < calls.arguments.count; ++i)
    if (calls.arguments.types[i] == &Argument<std::optional<DType>>::type && !argument_at<std::optional<DType>>(at[i]))
      seen[i] = &dtype;
  return write_out_as_given(op, seen.data(), out, fake);
}

Value run_outs(const Operator& op, Arguments at, bool fake) {
  const Operator& base = *op.base();
  const Calls& calls = base.calls();
  std::vector<Meta> metas;
  calls.metas(base.rule(), at, metas);
  const size_t count = calls.outputs;
  const auto out = [&](size_t i) -> const Tensor& { return tensor_at(at, calls.arguments.count + i); };
  const auto check_unshared_outs = [&] {
    for (size_t i = 0; i < count; ++i) check_all_unshared(op, out(i), at);
  };
  const auto compute = [&] {
    std::vector<Tensor> results;
    for (const Meta& meta : metas) results.push_back(make_tensor(meta));
    calls.kernel(base.kernel(), at, results);
    return results;
  };
  // An out= argument may be an input too, and resizing it would change that.
  bool resizes_input = false;
  for (size_t i = 0; i < count && !fake && !resizes_input; ++i)
    resizes_input = is_input(out(i), calls, at) && resizes(metas[i], out(i));
  if (resizes_input) {
    check_unshared_outs();
    const std::vector<Tensor> results = compute();
    for (size_t i = 0; i < count; ++i) {
      prepare_out(op, metas[i], out(i));
      write_result(results[i], out(i));
      out(i).storage()->bump_version();
    }
  } else {
    for (size_t i = 0; i < count; ++i) prepare_out(op, metas[i], out(i));
    check_unshared_outs();
    if (!fake) {
      const std::vector<Tensor> results = compute();
      for (size_t i = 0; i < count; ++i) write_result(results[i], out(i));
    }
    for (size_t i = 0; i < count; ++i) out(i).storage()->bump_version();
  }
  Values items;
  for (size_t i = 0; i < count; ++i) items.push_back(Value(out(i)));
  return tuple(std::move(items));
}

namespace {

Tensor call_base(const Operator& base, Arguments at) {
  return CallByAddress{base.calls().arguments, at}.call_for_tensor(base, CallSite());
}

Tensor copy_to(const Tensor& result, const Tensor& target) {
  static const Operator& copy = get_operator("aten::copy_");
  return dispatch(copy, {target, result, false}).to_tensor();
}

}  // namespace

Tensor write_result_in_place(const Operator& op, Arguments at, bool) {
  const Tensor& self = tensor_at(at, 0);
  const ArgumentList& arguments = op.base()->calls().arguments;
  Tensor read;  // what is recorded keeps this instead of self
  std::vector<const void*> seen;
  if (!modes_active() && records_gradients() &&
      any_tensor(arguments, at, [](const Tensor& t) { return t.impl().wants_grad(); })) {
    read = with_same_history(self);
    seen.assign(at, at + arguments.count);
    for (uint64_t left = arguments.tensors; left != 0; left &= left - 1)
      if (const auto i = static_cast<size_t>(std::countr_zero(left)); tensor_at(at, i).is_same(self)) seen[i] = &read;
  }
  const Tensor result = call_base(*op.base(), seen.empty() ? at : seen.data());
  check_in_place(op, result.meta(), self);
  return copy_to(result, self);
}

Tensor write_result_out(const Operator& op, Arguments at, bool) {
  const Tensor& out = tensor_at(at, op.base()->calls().arguments.count);
  const Tensor result = call_base(*op.base(), at);
  prepare_out(op, result.meta(), out);
  check_all_unshared(op, out, at);
  return copy_to(result, out);
}

}  // namespace op_detail

// ---- typed calls --------------------------------------------------------------------------------------------------

Values CallByAddress::box() const {
  Values values;
  values.reserve(arguments.count);
  for (size_t i = 0; i < arguments.count; ++i) values.push_back(arguments.types[i]->box(at[i]));
  return values;
}

void CallByAddress::explain(UserError& e, const Operator& op) const { op_detail::explain(e, op, box()); }

bool CallByAddress::is_for_dispatch() const {
  if (modes_active() || op_detail::any_tensor(arguments, at, [](const Tensor& t) { return t.impl().special; })) return true;
  if (records_gradients() && op_detail::any_tensor(arguments, at, [](const Tensor& t) { return t.impl().wants_grad(); }))
    return true;
  for (uint64_t left = arguments.numbers; left != 0; left &= left - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(left));
    if (arguments.types[i]->is_symbolic(at[i])) return true;
  }
  return false;
}

Value CallByAddress::call(const Operator& op, const CallSite& site) const {
  if (is_for_dispatch() || !op.has_kernel()) {
    const CallSiteScope scope(site);
    return dispatch(op, box());
  }
  const Operator& called = op.called();
  try {
    return called.write() ? Value(called.write()(called, at, false)) : called.run()(called, at, false);
  } catch (UserError& e) {
    explain(e, op);
    throw;
  }
}

Tensor CallByAddress::call_for_tensor(const Operator& op, const CallSite& site) const {
  const Operator& called = op.called();
  if (!called.write() || is_for_dispatch()) return call(op, site).to_tensor_or_none();
  try {
    return called.write()(called, at, false);
  } catch (UserError& e) {
    explain(e, op);
    throw;
  }
}

const Operator& OperatorByName::find() {
  const Operator& op = get_operator(name_);
  op_.store(&op, std::memory_order_release);
  return op;
}

}  // namespace calque
