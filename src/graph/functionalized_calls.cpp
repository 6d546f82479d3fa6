// Calls of operators that write their arguments, in a form that writes nothing: what is written is copied first, and the
// copies are given back behind the operator's own results. PyTorch's auto_functionalized, in both of its versions.
#include "graph/functionalized_calls.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/graph/higher_order.h"
#include "calque/op/mode.h"
#include "calque/op/operators.h"
#include "op/well_known.h"

namespace calque {
namespace {

constexpr const char* first_version = "torch.ops.higher_order.auto_functionalized";
constexpr const char* second_version = "torch.ops.higher_order.auto_functionalized_v2";

// Recorded as one call, or made.
template <class F>
Value recorded_or(const char* target, const Value& op, const Kwargs& kwargs, F&& run) {
  if (HigherOrderTracer* tracer = higher_order_tracer())
    return tracer->trace_call(target, {op}, kwargs, [&](const Kwargs& given) {
      const HigherOrderTracerScope nobody(nullptr);
      return run(given);
    });
  return run(kwargs);
}

const Operator& operator_of(const Value& v) {
  if (v.kind() != Value::Kind::structure || v.to_struct().type != "torch._ops.OpOverload")
    throw UserError("auto_functionalized: expected an operator, found " + std::string(Value::kind_name(v.kind())));
  const std::string& name = v.to_struct().context;
  const Target target = Target::resolve(name);
  if (!target.op()) throw UserError(ErrorKind::unsupported_operator, "auto_functionalized: no operator named " + name);
  return *target.op();
}

const Value* find(const Kwargs& kwargs, const std::string& name) {
  const auto it = std::find_if(kwargs.begin(), kwargs.end(), [&](const auto& k) { return k.first == name; });
  return it == kwargs.end() ? nullptr : &it->second;
}
const Value& get(const Kwargs& kwargs, const std::string& name) {
  const Value* v = find(kwargs, name);
  if (!v) throw UserError("auto_functionalized_v2: the argument " + name + " is missing");
  return *v;
}

Value copied(const Value& v) {
  if (v.is_tensor()) return v.to_tensor().clone();
  if (v.kind() != Value::Kind::list && v.kind() != Value::Kind::tuple) return v;
  Values items;
  for (const Value& x : v.to_items()) items.push_back(copied(x));
  return list(std::move(items));
}

// The operator's results, then what it wrote.
Value with_results(const Operator& op, const Value& result, const Values& written) {
  Values out;
  if (op.schema().returns.size() > 1)
    out = result.to_items();
  else
    out.push_back(op.schema().returns.empty() ? Value() : result);
  out.insert(out.end(), written.begin(), written.end());
  return tuple(std::move(out));
}

Value run_first(const Operator& op, const Kwargs& kwargs) {
  Kwargs given;
  Values written;
  for (const auto& [name, v] : kwargs) {
    const std::optional<size_t> i = op.schema().find_argument(name);
    const bool writes = i && op.schema().arguments[*i].is_written();
    given.emplace_back(name, writes ? copied(v) : v);
    if (writes) written.push_back(given.back().second);
  }
  return with_results(op, call(op, {}, given), written);
}

// An argument as a view of one of the copies.
Value view_of(const Kwargs& kwargs, const std::string& prefix, const Values& bases) {
  const Value& index = get(kwargs, prefix + "_base_index");
  if (index.is_none()) return {};
  const Value& base = bases.at(static_cast<size_t>(index.to_int()));
  if (const Value* offset = find(kwargs, prefix + "_storage_offset"))
    return call(ops().as_strided, {base, get(kwargs, prefix + "_size"), get(kwargs, prefix + "_stride"), *offset});
  if (const Value* dim = find(kwargs, prefix + "_slice_dim"))
    return call(ops().slice, {base, *dim, get(kwargs, prefix + "_slice_start"), get(kwargs, prefix + "_slice_end")});
  return base;
}

Value run_second(const Operator& op, const Kwargs& kwargs) {
  Values bases;
  if (const Value* all = find(kwargs, "_all_bases"))
    for (const Value& base : all->to_items()) bases.push_back(copied(base));
  Kwargs given;
  for (const SchemaArgument& a : op.schema().arguments) {
    if (!a.is_written()) {
      if (const Value* v = find(kwargs, a.name)) given.emplace_back(a.name, *v);
    } else if (!a.type.list) {
      given.emplace_back(a.name, view_of(kwargs, "_" + a.name, bases));
    } else if (const Value& length = get(kwargs, "_" + a.name + "_length"); length.is_none()) {
      given.emplace_back(a.name, Value());
    } else {
      Values items;
      for (int64_t i = 0; i < length.to_int(); ++i)
        items.push_back(view_of(kwargs, "_" + a.name + "_" + std::to_string(i), bases));
      given.emplace_back(a.name, list(std::move(items)));
    }
  }
  return with_results(op, call(op, {}, given), bases);
}

}  // namespace

Value auto_functionalized_v2(const Operator& op, const Kwargs& kwargs) {
  const Value name = StructValue{"torch._ops.OpOverload", Target(&op).qualified_name(), {}, {}};
  return recorded_or(second_version, name, kwargs, [&](const Kwargs& given) { return run_second(op, given); });
}

const std::vector<std::pair<const char*, Function::Body>>& functionalized_calls() {
  static const std::vector<std::pair<const char*, Function::Body>> functions = {
      {first_version,
       [](const Values& args, const Kwargs& kwargs) {
         const Operator& op = operator_of(args.at(0));
         return recorded_or(first_version, args[0], kwargs, [&](const Kwargs& given) { return run_first(op, given); });
       }},
      {second_version,
       [](const Values& args, const Kwargs& kwargs) {
         const Operator& op = operator_of(args.at(0));
         return recorded_or(second_version, args[0], kwargs, [&](const Kwargs& given) { return run_second(op, given); });
       }},
  };
  return functions;
}

}  // namespace calque
