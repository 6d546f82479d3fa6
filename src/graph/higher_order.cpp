#include "calque/graph/higher_order.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/grad/checkpoint.h"
#include "calque/graph/interpreter.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/splitting.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/autocast.h"
#include "calque/op/tree.h"
#include "graph/higher_order_functions.h"
#include "graph/region_functions.h"

namespace calque {
namespace {

Values leaves_of(const Value& v) {
  if (v.kind() == Value::Kind::list || v.kind() == Value::Kind::tuple || v.kind() == Value::Kind::dict ||
      v.kind() == Value::Kind::structure)
    return tree_flatten(v).leaves;
  return {v};
}

Values joined(const Values& a, const Values& b) {
  Values out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

const Tensor& tensor_leaf(const Value& v, const char* op) {
  if (!v.is_tensor())
    throw UserError(std::string(op) + ": expected tensors, found " + std::string(Value::kind_name(v.kind())));
  return v.to_tensor();
}

void check_alike(const Value& a, const Value& b, const char* op, const char* what) {
  const Values x = leaves_of(a), y = leaves_of(b);
  if (x.size() != y.size())
    throw UserError(std::string(op) + ": " + what + " must give the same structure, found " + std::to_string(x.size()) +
                    " and " + std::to_string(y.size()) + " values");
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i].kind() != y[i].kind())
      throw UserError(std::string(op) + ": " + what + " must give the same kinds, found " +
                      std::string(Value::kind_name(x[i].kind())) + " and " + std::string(Value::kind_name(y[i].kind())) +
                      " at " + std::to_string(i));
    if (!x[i].is_tensor()) continue;
    const Tensor& s = x[i].to_tensor();
    const Tensor& t = y[i].to_tensor();
    bool same = s.dtype() == t.dtype() && s.dim() == t.dim() && s.device() == t.device();
    for (int64_t d = 0; same && d < s.dim(); ++d) same = guard_or(s.sym_size(d) == t.sym_size(d), false);
    if (!same)
      throw UserError(std::string(op) + ": " + what + " must give tensors of the same sizes, dtype and device, found " +
                      std::string(name(s.dtype())) + str(s.sym_sizes()) + " and " + std::string(name(t.dtype())) +
                      str(t.sym_sizes()) + " at " + std::to_string(i));
  }
}

bool truth(const Value& v, const char* op) {
  if (v.is_tensor()) {
    if (v.to_tensor().numel() != 1)
      throw UserError(std::string(op) + ": the condition must be a tensor of one element, found " +
                      str(v.to_tensor().sizes()));
    return is_nonzero(v.to_tensor());
  }
  if (v.kind() == Value::Kind::boolean) return guard(v.to_sym_bool());
  throw UserError(std::string(op) + ": the condition must be a bool or a tensor of one element, found " +
                  std::string(Value::kind_name(v.kind())));
}

SymInt length_of(const Values& xs, const char* op) {
  if (xs.empty()) throw UserError(std::string(op) + ": expected at least one tensor to go along");
  for (const Value& x : xs) {
    if (tensor_leaf(x, op).dim() == 0)
      throw UserError(std::string(op) + ": the tensors to go along need a dimension, found one of none");
    if (!check(x.to_tensor().sym_size(0) == xs[0].to_tensor().sym_size(0)))
      throw UserError(std::string(op) + ": the first dimensions must be equal, found " +
                      xs[0].to_tensor().sym_size(0).str() + " and " + x.to_tensor().sym_size(0).str());
  }
  return xs[0].to_tensor().sym_size(0);
}

Values slice_of(const Values& xs, SymInt i) {
  Values out;
  for (const Value& x : xs) out.emplace_back(x.to_tensor().select(0, i));
  return out;
}

// One more dimension in front.
Value stacked_like(const Tensor& t, SymInt n) {
  std::vector<SymInt> sizes{n};
  sizes.insert(sizes.end(), t.sym_sizes().begin(), t.sym_sizes().end());
  return t.new_empty(sizes);
}

Values stacked(const std::vector<Values>& rows) {
  Values out;
  for (size_t i = 0; i < rows[0].size(); ++i) {
    std::vector<Tensor> parts;
    for (const Values& row : rows) parts.push_back(tensor_leaf(row[i], "map"));
    out.emplace_back(stack(parts));
  }
  return out;
}

// ---- on lists of leaves: what graphs call ---------------------------------------------------------------------------

Values flat_cond(const Value& predicate, const GraphFunction& t, const GraphFunction& f, const Values& operands) {
  if (predicate.kind() == Value::Kind::boolean && !predicate.to_sym_bool().is_symbolic())
    return leaves_of((predicate.to_bool() ? t : f)(operands));
  if (HigherOrderTracer* tracer = higher_order_tracer())
    return tracer
        ->trace(
            "torch.ops.higher_order.cond",
            {{"true_graph", t, [&] { return operands; }}, {"false_graph", f, [&] { return operands; }}},
            [&](const Values& graphs, const Values& lifted) {
              return Values{predicate, graphs[0], graphs[1], tuple(joined(operands, lifted))};
            },
            [](const std::vector<Value>& results) {
              check_alike(results[0], results[1], "cond", "both branches");
              return results[0];
            })
        .to_items();
  return leaves_of((truth(predicate, "cond") ? t : f)(operands));
}

Values flat_while(const GraphFunction& condition, const GraphFunction& body, const Values& carried, const Values& extra) {
  if (HigherOrderTracer* tracer = higher_order_tracer())
    return tracer
        ->trace(
            "torch.ops.higher_order.while_loop",
            {{"while_loop_cond_graph", condition, [&] { return joined(carried, extra); }},
             {"while_loop_body_graph", body, [&] { return joined(carried, extra); }}},
            [&](const Values& graphs, const Values& lifted) {
              return Values{graphs[0], graphs[1], tuple(carried), tuple(joined(extra, lifted))};
            },
            [&](const std::vector<Value>& results) {
              check_alike(tuple(carried), results[1], "while_loop", "the body and the carried values");
              return results[1];
            })
        .to_items();
  Values now = carried;
  while (truth(leaves_of(condition(joined(now, extra)))[0], "while_loop")) {
    Values next = leaves_of(body(joined(now, extra)));
    check_alike(tuple(now), tuple(next), "while_loop", "the body and the carried values");
    now = std::move(next);
  }
  return now;
}

Values flat_map(const GraphFunction& f, const Values& xs, const Values& args) {
  const SymInt n = length_of(xs, "map");
  if (HigherOrderTracer* tracer = higher_order_tracer())
    return tracer
        ->trace(
            "torch.ops.higher_order.map_impl", {{"body_graph", f, [&] { return joined(slice_of(xs, 0), args); }}},
            [&](const Values& graphs, const Values& lifted) {
              return Values{graphs[0], list(xs), list(joined(args, lifted))};
            },
            [&](const std::vector<Value>& results) {
              Values out;
              for (const Value& v : leaves_of(results[0])) out.push_back(stacked_like(tensor_leaf(v, "map"), n));
              return tuple(out);
            })
        .to_items();
  std::vector<Values> rows;
  for (int64_t i = 0; i < n.as_int(); ++i) rows.push_back(leaves_of(f(joined(slice_of(xs, i), args))));
  if (rows.empty()) throw UserError("map: the tensors to go along have no rows, so the sizes of the result are not known");
  return stacked(rows);
}

Values flat_scan(const GraphFunction& combine, const Values& initial, const Values& xs, const Values& extra) {
  const SymInt n = length_of(xs, "scan");
  const auto split = [&](const Values& all) {
    return std::pair<Values, Values>(Values(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(initial.size())),
                                     Values(all.begin() + static_cast<std::ptrdiff_t>(initial.size()), all.end()));
  };
  if (HigherOrderTracer* tracer = higher_order_tracer())
    return tracer
        ->trace(
            "torch.ops.higher_order.scan",
            {{"scan_combine_graph", combine, [&] { return joined(joined(initial, slice_of(xs, 0)), extra); }}},
            [&](const Values& graphs, const Values& lifted) {
              return Values{graphs[0], list(initial), list(xs), tuple(joined(extra, lifted))};
            },
            [&](const std::vector<Value>& results) {
              auto [carry, ys] = split(leaves_of(results[0]));
              check_alike(tuple(initial), tuple(carry), "scan", "the combine function's carry and the initial one");
              for (Value& y : ys) y = stacked_like(tensor_leaf(y, "scan"), n);
              return tuple(joined(carry, ys));
            })
        .to_items();
  Values carry = initial;
  std::vector<Values> rows;
  for (int64_t i = 0; i < n.as_int(); ++i) {
    auto [next, ys] = split(leaves_of(combine(joined(joined(carry, slice_of(xs, i)), extra))));
    check_alike(tuple(carry), tuple(next), "scan", "the combine function's carry and the initial one");
    carry = std::move(next);
    rows.push_back(std::move(ys));
  }
  if (rows.empty()) throw UserError("scan: the tensors to go along have no rows, so the sizes of the result are not known");
  return joined(carry, stacked(rows));
}

// The graph that a get_attr node's value stands for.
GraphFunction graph_of(const Value& module) {
  if (!is_module_value(module))
    throw UserError("a higher-order operator takes graphs, found " + std::string(Value::kind_name(module.kind())));
  return [module](const Values& args) { return call_module_value(module, args); };
}

const Values& items(const Values& args, size_t i, const char* op) {
  if (i >= args.size())
    throw UserError(std::string(op) + ": expected at least " + std::to_string(i + 1) + " arguments, found " +
                    std::to_string(args.size()));
  return args[i].to_items();
}

}  // namespace

// ---- on trees: what users call --------------------------------------------------------------------------------------

Value cond(const Value& predicate, const GraphFunction& if_true, const GraphFunction& if_false, const Values& operands) {
  const FlatTree in = tree_flatten(tuple(operands));
  TreeSpec out;
  const auto flat = [&](const GraphFunction& f) {
    return [&in, &out, &f](const Values& leaves) {
      const Value result = f(in.spec.unflatten(ListRef<Value>(leaves.data(), in.leaves.size())).to_items());
      FlatTree given = tree_flatten(result);
      out = given.spec;
      return tuple(std::move(given.leaves));
    };
  };
  return out.unflatten(flat_cond(predicate, flat(if_true), flat(if_false), in.leaves));
}

Value while_loop(const GraphFunction& condition, const GraphFunction& body, const Values& carried) {
  const FlatTree in = tree_flatten(tuple(carried));
  const auto unflat = [&](const Values& leaves) {
    return in.spec.unflatten(ListRef<Value>(leaves.data(), in.leaves.size())).to_items();
  };
  const Values out =
      flat_while([&](const Values& leaves) { return condition(unflat(leaves)); },
                 [&](const Values& leaves) { return tuple(tree_flatten(body(unflat(leaves))).leaves); }, in.leaves, {});
  return in.spec.unflatten(out);
}

Value map(const GraphFunction& f, const Value& xs, const Values& args) {
  const FlatTree in = tree_flatten(xs);
  const FlatTree rest = tree_flatten(tuple(args));
  TreeSpec out;
  const Values flat = flat_map(
      [&](const Values& leaves) {
        const size_t n = in.leaves.size();
        Values call{in.spec.unflatten(ListRef<Value>(leaves.data(), n))};
        const Value others = rest.spec.unflatten(ListRef<Value>(leaves.data() + n, rest.leaves.size()));
        for (const Value& v : others.to_items()) call.push_back(v);
        FlatTree given = tree_flatten(f(call));
        out = given.spec;
        return tuple(std::move(given.leaves));
      },
      in.leaves, rest.leaves);
  return out.unflatten(flat);
}

std::pair<Value, Value> scan(const CombineFunction& combine, const Value& initial, const Value& xs, bool reverse) {
  const FlatTree carry = tree_flatten(initial);
  FlatTree along = tree_flatten(xs);
  const auto flipped = [](Values& leaves) {
    for (Value& v : leaves) v = v.to_tensor().flip({0});
  };
  if (reverse) flipped(along.leaves);
  TreeSpec out;
  const size_t n = carry.leaves.size();
  const Values flat = flat_scan(
      [&](const Values& leaves) {
        const auto [next, y] = combine(carry.spec.unflatten(ListRef<Value>(leaves.data(), n)),
                                       along.spec.unflatten(ListRef<Value>(leaves.data() + n, along.leaves.size())));
        FlatTree given = tree_flatten(y);
        out = given.spec;
        return tuple(joined(tree_flatten(next).leaves, given.leaves));
      },
      carry.leaves, along.leaves, {});
  Values ys(flat.begin() + static_cast<std::ptrdiff_t>(n), flat.end());
  if (reverse) flipped(ys);
  return {carry.spec.unflatten(ListRef<Value>(flat.data(), n)), out.unflatten(ys)};
}

// ---- by name: what graphs hold --------------------------------------------------------------------------------------

// What the branches read of their surroundings: the last argument, which may be left out.
static Values items_if_given(const Values& args, size_t place) {
  return args.size() > place ? args[place].to_items() : Values();
}

const std::vector<std::pair<const char*, Function::Body>>& higher_order_functions() {
  static const std::vector<std::pair<const char*, Function::Body>> functions = {
      {"torch.ops.higher_order.cond",
       [](const Values& args, const Kwargs&) {
         const Value &predicate = args.at(0), &if_true = args.at(1), &if_false = args.at(2);
         return tuple(flat_cond(predicate, graph_of(if_true), graph_of(if_false), items_if_given(args, 3)));
       }},
      {"torch.ops.higher_order.while_loop",
       [](const Values& args, const Kwargs&) {
         const Value &condition = args.at(0), &body = args.at(1);
         return tuple(
             flat_while(graph_of(condition), graph_of(body), items(args, 2, "while_loop"), items_if_given(args, 3)));
       }},
      {"torch.ops.higher_order.map_impl",
       [](const Values& args, const Kwargs&) {
         const Value& body = args.at(0);
         return tuple(flat_map(graph_of(body), items(args, 1, "map"), items(args, 2, "map")));
       }},
      {"torch.ops.higher_order.scan",
       [](const Values& args, const Kwargs&) {
         const Value& body = args.at(0);
         return tuple(flat_scan(graph_of(body), items(args, 1, "scan"), items(args, 2, "scan"), items_if_given(args, 3)));
       }},
      {"torch.ops.higher_order.wrap_with_set_grad_enabled",
       [](const Values& args, const Kwargs&) {
         const Value &enabled = args.at(0), &body = args.at(1);
         const GradModeScope scope(enabled.to_bool());
         return graph_of(body)(Values(args.begin() + 2, args.end()));
       }},
      {"torch.ops.higher_order.tag_activation_checkpoint",
       [](const Values& args, const Kwargs& kwargs) {
         CheckpointingOptions options;
         for (const auto& [name, value] : kwargs) {
           if (name == "use_reentrant") options.use_reentrant = value.to_bool();
           if (name == "preserve_rng_state") options.preserve_rng_state = value.to_bool();
         }
         const auto body = [graph = graph_of(args.at(0)), owner = thread_context().running_owner](const Value& inputs) {
           const ContextScope<&ThreadContext::running_owner> scope(owner);  // computed again when the graph has run
           return graph(inputs.to_items());
         };
         return checkpoint_values(body, tuple(Values(args.begin() + 1, args.end())), options);
       }},
      {"torch.ops.higher_order.wrap_with_autocast",
       [](const Values& args, const Kwargs&) -> Value {
         const AutocastArguments a(args);
         const AutocastScope scope(a.device, a.dtype, a.enabled, a.cache_enabled);
         const Value& body = args.at(4);
         return graph_of(body)(Values(args.begin() + 5, args.end()));
       }},
  };
  return functions;
}

}  // namespace calque
