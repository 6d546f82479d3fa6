#include "run/instruction.h"

#include "calque/base/error.h"
#include "calque/graph/stack_trace.h"
#include "calque/op/mode.h"
#include "run/attention_call.h"
#include "run/operator_call.h"
#include "run/packed_linear.h"
#include "run/tile_call.h"

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

// A call that is made as the interpreter makes it.
class PlainCall final : public Instruction {
 public:
  PlainCall(const Node& n, const ValueIds& ids, const GraphOwner& owner) : node_(n), owner_(owner), operands_(n, ids) {}
  Value run(const Frame& frame, const Place&) const override {
    const Values args = operands_.args(frame);
    const Kwargs kwargs = operands_.kwargs(frame);
    if (node_.kind() == NodeKind::call_method) return call_method(node_.target().text(), args, kwargs);
    if (node_.kind() == NodeKind::call_module) return owner_.call_module(node_.target().text(), args, kwargs);
    if (const Operator* op = node_.op()) return call(*op, args, kwargs);
    if (const Function* f = node_.target().function()) return (*f)(args, kwargs);
    throw InternalError("a call of an unknown function");  // Plan::run refuses it
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
  Value run(const Frame& frame, const Place& place) const override {
    const Value& items = frame.values[id_];
    if (!items.is_sequence() || index_ >= items.to_items().size()) return call_.run(frame, place);
    return items.to_items()[index_];
  }

 private:
  uint32_t id_;
  size_t index_;
  PlainCall call_;
};

bool is_getitem(const Node& n) {
  static const FunctionRef getitem = get_function("operator.getitem");
  return n.target().function() == getitem.get() && n.args().size() == 2 && n.args()[0].is_node() &&
         n.args()[1].kind() == Value::Kind::integer && !n.args()[1].expr() && n.args()[1].to_int() >= 0;
}

}  // namespace

std::unique_ptr<const Instruction> make_instruction(const Node& node, const ValueIds& ids, const GraphOwner& owner) {
  PlainCall plain(node, ids, owner);
  if (node.kind() == NodeKind::call_module) {
    if (std::unique_ptr<const Instruction> tiles = TileCall::make(node, ids, owner)) return tiles;
    if (std::unique_ptr<const Instruction> attention =
            AttentionCall::make(node, ids, owner, std::make_unique<PlainCall>(node, ids, owner)))
      return attention;
  } else if (node.op()) {
    try {
      if (const std::string packed = packed_weights_of(node); !packed.empty())
        return std::make_unique<PackedLinear>(node, ids, owner.attr(packed).to_tensor());
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

void name_step(Error& e, const Node& n) { e.prepend("while executing " + node_with_line(n) + ":\n"); }

}  // namespace calque::run
