#include "run/instruction.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "calque/base/error.h"
#include "calque/op/bind_arguments.h"
#include "calque/op/library.h"
#include "calque/op/mode.h"

namespace calque::run {
namespace {

std::vector<Operand> operands_of(const Values& arguments, const ValueIds& ids) {
  std::vector<Operand> out;
  out.reserve(arguments.size());
  for (const Value& a : arguments) out.emplace_back(a, ids);
  return out;
}

Values read_all(const std::vector<Operand>& operands, const Frame& frame) {
  Values out;
  out.reserve(operands.size());
  for (const Operand& o : operands) out.push_back(o.read(frame));
  return out;
}

// Positional and keyword arguments as they are written.
class CallOperands {
 public:
  CallOperands(const Node& n, const ValueIds& ids) : args_(operands_of(n.args(), ids)) {
    for (const auto& [key, value] : n.kwargs()) kwargs_.emplace_back(key, Operand(value, ids));
  }
  Values args(const Frame& frame) const { return read_all(args_, frame); }
  Kwargs kwargs(const Frame& frame) const {
    Kwargs out;
    out.reserve(kwargs_.size());
    for (const auto& [key, operand] : kwargs_) out.emplace_back(key, operand.read(frame));
    return out;
  }

 private:
  std::vector<Operand> args_;
  std::vector<std::pair<std::string, Operand>> kwargs_;
};

// What no kernel takes: fake tensors, symbolic numbers, other devices than the CPU.
bool is_without_data(const Value& v) {
  if (v.is_tensor()) return v.to_tensor().is_fake();
  if (v.kind() == Value::Kind::device) return v.to_device().type != DeviceType::cpu;
  if (v.is_sequence()) return std::any_of(v.to_items().begin(), v.to_items().end(), is_without_data);
  return v.expr() != nullptr;
}

// A call that is made as the interpreter makes it.
class PlainCall final : public Instruction {
 public:
  PlainCall(const Node& n, const ValueIds& ids, const GraphOwner& owner) : node_(n), owner_(owner), operands_(n, ids) {}
  Value run(const Frame& frame) const override {
    const Values args = operands_.args(frame);
    const Kwargs kwargs = operands_.kwargs(frame);
    if (node_.kind() == NodeKind::call_method) return call_method(node_.target().text(), args, kwargs);
    if (node_.kind() == NodeKind::call_module) return owner_.call_module(node_.target().text(), args, kwargs);
    if (const Operator* op = node_.op()) return call(*op, args, kwargs);
    if (const Function* f = node_.target().function()) return (*f)(args, kwargs);
    throw UserError(ErrorKind::unsupported_operator, "this graph uses operators that Calque does not have:\n  %" +
                                                         node_.name() + ": " + node_.target().text());
  }

 private:
  const Node& node_;
  const GraphOwner& owner_;
  CallOperands operands_;
};

// operator.getitem(items, 2)
class Item final : public Instruction {
 public:
  Item(uint32_t id, size_t index, PlainCall call) : id_(id), index_(index), call_(std::move(call)) {}
  Value run(const Frame& frame) const override {
    const Value& items = frame.values[id_];
    if (!items.is_sequence() || index_ >= items.to_items().size()) return call_.run(frame);
    return items.to_items()[index_];
  }

 private:
  uint32_t id_;
  size_t index_;
  PlainCall call_;
};

// An operator of the table, its arguments in the schema's order. Constants are made what the kernel takes once; tensors are
// taken by their address; what else comes from other steps is converted at each call.
class OperatorCall final : public Instruction {
 public:
  // UserError where the arguments do not fit the schema, as far as they are known.
  OperatorCall(const Node& n, const ValueIds& ids)
      : op_(n.op()->called()), schema_(n.op()->schema()), types_(argument_types(op_)), constants_(schema_.arguments.size()) {
    operands_ = operands_of(placed_arguments(n), ids);
    for (size_t i = 0; i < operands_.size(); ++i) prepare(i);
  }

  Value run(const Frame& frame) const override {
    if (modes_active()) [[unlikely]]
      return dispatch(op_, bound(frame));
    try {
      return converts_ ? run_converting(frame) : run_directly(frame);
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

 private:
  static constexpr size_t most_arguments = 64;  // op/unbox.h

  struct Constant {
    Value value;
    ArgumentSlot slot;
    const void* at = nullptr;
  };

  static std::vector<const ArgumentType*> argument_types(const Operator& op) {
    if (!op.has_kernel())
      throw UserError(ErrorKind::unsupported_operator, op.name() + ": registered without an implementation");
    const ArgumentList& given = (op.base() ? *op.base() : op).calls().arguments;
    std::vector<const ArgumentType*> types(given.types, given.types + given.count);
    types.resize(std::max(types.size(), op.base() ? op.schema().arguments.size() : 0),
                 &Argument<const Tensor&>::type);  // out=
    return types;
  }

  Values placed_arguments(const Node& n) const {
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

  bool is_tensor(size_t i) const { return types_[i] == &Argument<const Tensor&>::type; }

  void prepare(size_t i) {
    const Operand& operand = operands_[i];
    if (operand.is_constant()) {
      constants_[i] = std::make_unique<Constant>();
      Constant& c = *constants_[i];
      if (!bind_argument(schema_.arguments[i].type, operand.constant(), c.value))
        throw UserError(schema_.full_name() + ": argument '" + schema_.arguments[i].name + "' does not fit");
      if (is_without_data(c.value)) throw UserError(schema_.full_name() + ": it makes a tensor without data");
      c.at = types_[i]->unbox(c.value, c.slot);
    } else if (!operand.is_value() || !is_tensor(i)) {
      converts_ = true;
    }
  }

  Value answer(const void* const* at) const {
    return op_.write() ? Value(op_.write()(op_, at, false)) : op_.run()(op_, at, false);
  }

  Value run_directly(const Frame& frame) const {
    const void* at[most_arguments];
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (constants_[i]) {
        at[i] = constants_[i]->at;
        continue;
      }
      const Value& value = frame.values[operands_[i].id()];
      if (!value.is_tensor()) return run_converting(frame);  // None, or a number for a tensor
      if (value.to_tensor().is_fake()) return dispatch(op_, bound(frame));
      at[i] = &value.to_tensor();
    }
    return answer(at);
  }

  Value run_converting(const Frame& frame) const {
    const Values values = bound(frame);
    if (std::any_of(values.begin(), values.end(), is_without_data)) return dispatch(op_, values);
    UnboxedArguments unboxed(values.size());
    for (size_t i = 0; i < values.size(); ++i) unboxed.add(*types_[i], values[i]);
    return answer(unboxed.at());
  }

  // UserError as bind_arguments says it.
  Values bound(const Frame& frame) const {
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

  // The error that the interpreter gives.
  [[noreturn]] void refuse(const Frame& frame) const {
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

  const Operator& op_;
  const Schema& schema_;
  std::vector<const ArgumentType*> types_;
  std::vector<Operand> operands_;
  std::vector<std::unique_ptr<Constant>> constants_;
  bool converts_ = false;
};

bool is_getitem(const Node& n) {
  static const FunctionRef getitem = get_function("operator.getitem");
  return n.target().function() == getitem.get() && n.args().size() == 2 && n.args()[0].is_node() &&
         n.args()[1].kind() == Value::Kind::integer && !n.args()[1].expr() && n.args()[1].to_int() >= 0;
}

}  // namespace

std::unique_ptr<const Instruction> make_instruction(const Node& node, const ValueIds& ids, const GraphOwner& owner) {
  PlainCall plain(node, ids, owner);
  if (node.op()) {
    try {
      return std::make_unique<OperatorCall>(node, ids);
    } catch (const UserError&) {
      // It says what is wrong when it runs.
    }
  } else if (node.kind() == NodeKind::call_function && is_getitem(node)) {
    if (const uint32_t id = ids.id_of(*node.args()[0].to_node()); id != ValueIds::none)
      return std::make_unique<Item>(id, static_cast<size_t>(node.args()[1].to_int()), std::move(plain));
  }
  return std::make_unique<PlainCall>(std::move(plain));
}

}  // namespace calque::run
