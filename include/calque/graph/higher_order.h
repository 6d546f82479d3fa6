// Higher-order operators: calls whose arguments are functions of tensors, PyTorch's torch.cond, while_loop, map and scan.
// Run, they choose and repeat. Traced, their functions become graphs of their own and the call one node; what a function
// closes over becomes one of its inputs. In a graph the functions are get_attr nodes.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "calque/base/thread_context.h"
#include "calque/graph/node.h"

namespace calque {

using GraphFunction = std::function<Value(const Values&)>;

// The result of one branch. Both branches give the same structure, with tensors of equal sizes and dtypes.
Value cond(const Value& predicate, const GraphFunction& if_true, const GraphFunction& if_false, const Values& operands);
// Repeats `body` on the carried values while `condition` holds for them; gives the last ones as a tuple.
Value while_loop(const GraphFunction& condition, const GraphFunction& body, const Values& carried);
// f on each slice of `xs` along dimension 0, the results stacked. `xs` is a tensor or a tree of them.
Value map(const GraphFunction& f, const Value& xs, const Values& args = {});
// combine(carry, x) -> (carry, y) along dimension 0: the last carry and the y stacked, as a pair of trees.
using CombineFunction = std::function<std::pair<Value, Value>(const Value& carry, const Value& x)>;
std::pair<Value, Value> scan(const CombineFunction& combine, const Value& initial, const Value& xs, bool reverse = false);

// A call of an operator that writes its arguments, in a form that writes nothing: PyTorch's operator of that name, with its
// keyword arguments. `_all_bases` are the memories written, copied first; `_x_base_index` and what may follow it say which
// of them, and which part of it, the argument x is. Gives the operator's results (nothing, for one without) and the bases
// as they are afterwards, as a tuple.
Value auto_functionalized_v2(const Operator& op, const Kwargs& kwargs);

// Who records such calls on this thread. Trees are flat here: lists of leaves.
class HigherOrderTracer {
 public:
  virtual ~HigherOrderTracer() = default;
  struct Branch {
    const char* name;  // of its graph: "true_graph"
    GraphFunction function;
    std::function<Values()> inputs;  // what it is traced on; asked for while nothing is recorded
  };
  // One node for `target`, with the branches' graphs among its arguments as `arguments` lays them out; `result` says what
  // the call gives from what the branches gave.
  virtual Value trace(const char* target, std::vector<Branch> branches,
                      const std::function<Values(const Values& graphs, const Values& lifted)>& arguments,
                      const std::function<Value(const std::vector<Value>& results)>& result) = 0;
  // One node for a call without graphs; `result` computes what it gives from the keyword arguments
  // and is asked while nothing is recorded.
  virtual Value trace_call(const char* target, const Values& args, const Kwargs& kwargs,
                           const std::function<Value(const Kwargs&)>& result) = 0;
};
// Null when nobody records.
inline HigherOrderTracer* higher_order_tracer() { return thread_context().higher_order_tracer; }
using HigherOrderTracerScope = ContextScope<&ThreadContext::higher_order_tracer>;

}  // namespace calque
