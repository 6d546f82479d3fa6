#include "run/operator_call.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "calque/base/error.h"
#include "calque/op/bind_arguments.h"
#include "calque/op/grad_node.h"
#include "calque/op/mode.h"

namespace calque::run {
namespace {

// What no kernel takes: fake tensors, symbolic numbers, other devices than the CPU.
bool is_without_data(const Value& v) {
  if (v.is_tensor()) return v.to_tensor().is_fake();
  if (v.kind() == Value::Kind::device) return v.to_device().type != DeviceType::cpu;
  if (v.is_sequence()) return std::any_of(v.to_items().begin(), v.to_items().end(), is_without_data);
  return v.expr() != nullptr;
}

std::vector<const ArgumentType*> argument_types(const Operator& op) {
  if (!op.has_kernel())
    throw UserError(ErrorKind::unsupported_operator, op.name() + ": registered without an implementation");
  const ArgumentList& given = (op.base() ? *op.base() : op).calls().arguments;
  std::vector<const ArgumentType*> types(given.types, given.types + given.count);
  types.resize(std::max(types.size(), op.base() ? op.schema().arguments.size() : 0),
               &Argument<const Tensor&>::type);  // out=
  return types;
}

bool is_alone(const Tensor& t, const Frame& frame, uint32_t handles) {
  const Storage& s = *t.storage();
  const auto held = static_cast<uint32_t>(
      std::count_if(frame.slots.begin(), frame.slots.end(), [&](const Ref<Storage>& slot) { return slot.get() == &s; }));
  return t.use_count() == handles && t.storage().use_count() == 1 + held && !s.is_borrowed() && !s.is_read_only() &&
         s.has_data() && s.nbytes() == t.nbytes() && t.storage_offset() == 0 && !t.requires_grad();
}

bool describes(const Meta& meta, const Tensor& t) {
  const auto equal = [](const SymInts& a, SymIntList b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](SymInt x, SymInt y) { return identical(x, y); });
  };
  return meta.dtype == t.dtype() && !meta.undefined && meta.device == t.device() && equal(meta.sizes, t.sym_sizes()) &&
         equal(meta.strides, t.sym_strides()) && t.is_non_overlapping_and_dense();
}

// Whether a tensor of such numbers fills so many bytes, without a gap.
bool is_contiguous_in(const Meta& meta, size_t bytes) {
  int64_t numbers = 1, reach = 1;
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    const int64_t size = meta.sizes[d].as_int();
    numbers *= size;
    reach += (size - 1) * meta.strides[d].as_int();
  }
  return numbers > 0 && reach == numbers && static_cast<size_t>(numbers) * item_size(meta.dtype) == bytes;
}

}  // namespace

bool is_pointwise_operator(const Operator& op) {
  const Operator& called = op.called();
  return called.form() == Operator::Form::compute && called.has_tag(Tag::pointwise) && !called.has_tag(Tag::random) &&
         !called.has_tag(Tag::data_dependent) && !called.write() && called.calls().meta &&
         called.calls().arguments.tensor_lists == 0;
}

Tensor take_over(const Frame& frame, const Place& place, const Meta& meta, uint32_t handles) {
  for (const uint32_t id : place.last_uses) {
    const Value& v = frame.values[id];
    if (!v.is_tensor() || !v.to_tensor().defined()) continue;
    const Tensor& t = v.to_tensor();
    if (t.is_fake() || !is_alone(t, frame, handles) || !describes(meta, t)) continue;
    return Tensor(Ref<TensorImpl>(new TensorImpl(t.storage(), meta, 0)));
  }
  return {};
}

Tensor new_result(const Frame& frame, const Place& place, const Meta& meta) {
  if (place.slot == no_slot || meta.undefined || meta.device.type != DeviceType::cpu)
    return op_detail::allocate(meta, false);
  Ref<Storage>& slot = frame.slots[place.slot];
  Tensor made;
  const bool is_free = slot && slot.use_count() == 1 && slot->has_data();
  if (is_free && is_contiguous_in(meta, slot->nbytes())) return Tensor(Ref<TensorImpl>(new TensorImpl(slot, meta, 0)));
  if (is_free) slot = Ref<Storage>();  // of other sizes: its memory goes before there is more
  made = op_detail::allocate(meta, false);
  slot = made.storage();
  return made;
}

OperatorCall::OperatorCall(const Node& n, const ValueIds& ids)
    : op_(n.op()->called()), schema_(n.op()->schema()), types_(argument_types(op_)), constants_(schema_.arguments.size()) {
  for (const Value& argument : placed_arguments(n)) operands_.emplace_back(argument, ids);
  for (size_t i = 0; i < operands_.size(); ++i) prepare(i);
  const Operator& called = op_;
  is_plain_ = called.form() == Operator::Form::compute && !called.write() && called.calls().meta &&
              called.calls().arguments.tensor_lists == 0 && !converts_;
  is_pointwise_ = is_plain_ && is_pointwise_operator(op_);
}

Value OperatorCall::run(const Frame& frame, const Place& place) const {
  if (modes_active()) [[unlikely]]
    return dispatch(op_, bound(frame));
  try {
    return converts_ ? run_converting(frame) : run_directly(frame, place);
  } catch (UserError& e) {
    op_detail::explain(e, op_, bound(frame));
    throw;
  } catch (const std::bad_alloc&) {
    UserError e("out of memory: the call needs more than there is");
    op_detail::explain(e, op_, bound(frame));
    throw e;
  } catch (const std::length_error&) {
    UserError e("out of memory: the call needs a list longer than there can be");
    op_detail::explain(e, op_, bound(frame));
    throw e;
  }
}

bool OperatorCall::needs_grad(const void* const* at) const {
  if (!records_gradients()) return false;
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (types_[i] != &Argument<const Tensor&>::type) continue;
    const Tensor& t = argument_at<Tensor>(at[i]);
    if (t.defined() && t.impl().wants_grad()) return true;
  }
  return false;
}

Value OperatorCall::answer(const void* const* at, const Frame& frame, const Place& place) const {
  if (needs_grad(at)) return dispatch(op_, bound(frame));
  if (op_.write()) return Value(op_.write()(op_, at, false));
  if (!is_plain_ || (place.slot == no_slot && place.last_uses.empty())) return op_.run()(op_, at, false);
  const Meta result = meta(at);
  Tensor out = is_pointwise_ ? take_over(frame, place, result) : Tensor();
  if (!out.defined()) out = new_result(frame, place, result);
  compute(at, out);
  return Value(std::move(out));
}

bool OperatorCall::find_arguments(const Frame& frame, const void** at, bool fake) const {
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (constants_[i]) {
      at[i] = constants_[i]->at;
      continue;
    }
    const Value& value = frame.values[operands_[i].id()];
    if (!value.is_tensor() || (value.to_tensor().is_fake() && !fake)) return false;
    at[i] = &value.to_tensor();
  }
  return true;
}

Value OperatorCall::run_directly(const Frame& frame, const Place& place) const {
  const void* at[most_arguments];
  return find_arguments(frame, at) ? answer(at, frame, place) : run_converting(frame);
}

Values OperatorCall::placed_arguments(const Node& n) const {
  const auto& arguments = schema_.arguments;
  if (n.args().size() > arguments.size() || (!n.args().empty() && arguments[n.args().size() - 1].keyword_only))
    throw UserError(schema_.full_name() + ": too many positional arguments");
  Values placed(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Value* given = n.find_kwarg(arguments[i].name);
    if (!given && i < n.args().size() && !arguments[i].keyword_only) given = &n.args()[i];
    if (!given) given = arguments[i].default_value.get();
    if (!given) throw UserError(schema_.full_name() + ": argument '" + arguments[i].name + "' is missing");
    placed[i] = *given;
  }
  for (const auto& [key, value] : n.kwargs())
    if (!schema_.find_argument(key)) throw UserError(schema_.full_name() + ": has no argument '" + key + "'");
  return placed;
}

void OperatorCall::prepare(size_t i) {
  const Operand& operand = operands_[i];
  if (operand.is_constant()) {
    constants_[i] = std::make_unique<Constant>();
    Constant& c = *constants_[i];
    if (!bind_argument(schema_.arguments[i].type, operand.constant(), c.value))
      throw UserError(schema_.full_name() + ": argument '" + schema_.arguments[i].name + "' does not fit");
    if (is_without_data(c.value)) throw UserError(schema_.full_name() + ": it makes a tensor without data");
    c.at = types_[i]->unbox(c.value, c.slot);
  } else if (!operand.is_value() || types_[i] != &Argument<const Tensor&>::type) {
    converts_ = true;
  }
}

Value OperatorCall::run_converting(const Frame& frame) const {
  const Values values = bound(frame);
  if (std::any_of(values.begin(), values.end(), is_without_data) || (records_gradients() && any_wants_grad(values)))
    return dispatch(op_, values);
  UnboxedArguments unboxed(values.size());
  for (size_t i = 0; i < values.size(); ++i) unboxed.add(*types_[i], values[i]);
  return op_.write() ? Value(op_.write()(op_, unboxed.at(), false)) : op_.run()(op_, unboxed.at(), false);
}

Values OperatorCall::bound(const Frame& frame) const {
  Values values(operands_.size());
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (constants_[i]) {
      values[i] = constants_[i]->value;
    } else if (const Value v = operands_[i].read(frame); !bind_argument(schema_.arguments[i].type, v, values[i])) {
      refuse(frame);
    }
  }
  return values;
}

void OperatorCall::refuse(const Frame& frame) const {
  Values positional;
  Kwargs keyword;
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (schema_.arguments[i].keyword_only)
      keyword.emplace_back(schema_.arguments[i].name, operands_[i].read(frame));
    else
      positional.push_back(operands_[i].read(frame));
  }
  bind_arguments(schema_, std::move(positional), std::move(keyword));
  throw InternalError(schema_.full_name() + ": arguments that fit were refused");
}

}  // namespace calque::run
