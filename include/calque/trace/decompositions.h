// ATen's core decompositions as ready tables for make_fx, and graphs decomposed by a table. A table maps an operator to
// how it is written in others; the bodies call operators from the top of the mode stack, so what they call is decomposed
// in turn. The tables are shared; copy one to change it. Like registering an operator, asking for the default table for the
// first time after one was registered must not happen while another thread uses it.
#pragma once

#include "calque/graph/interpreter.h"
#include "calque/op/composite_policy.h"
#include "calque/trace/make_fx.h"

namespace calque {

// Operators that the core set does not have, in terms of those that it has. Composite operators are not in it: make_fx
// takes them apart anyway.
const DecompositionTable& core_aten_decompositions();

// What run_decompositions() of torch.export goes by: the core decompositions, and every composite operator that a
// functional graph could hold. One that is removed from the table stays whole, one with another entry is taken apart by
// that (CompositesByTable).
const DecompositionTable& default_decompositions();

// A composite operator that a functional graph can hold: its results are new tensors and its arguments are not written.
bool can_stay_whole(const Operator& op);

// Composite operators as a table wants them: those that can stay whole do unless the table has them.
class CompositesByTable : public CompositePolicy {
 public:
  explicit CompositesByTable(const DecompositionTable& table) : table_(table) {}
  bool keeps_whole(const Operator& op) const override { return can_stay_whole(op) && !table_.contains(&op); }
  std::optional<Value> expand(const Operator& op, const Values& args) const override;

 private:
  const DecompositionTable& table_;
};

struct DecomposeOptions {
  bool functional = false;           // nothing in the new graph writes, but one copy_ to each input that is written
  bool composites_by_table = false;  // composite operators without an entry stay whole, where they can
  bool python_bodies = false;        // as exports have it (op/composite_policy.h)
};
// All of what run_decompositions() does.
inline constexpr DecomposeOptions as_exports_do{true, true, true};

// Runs a traced graph node by node into a new graph, its calls decomposed by a table. What is made for a node keeps the
// node's source line, stack trace, module stack and function names, and has in original_aten the operator it was made
// from. The graph and the table must outlive it.
class DecompositionInterpreter : public Interpreter {
 public:
  DecompositionInterpreter(const TracedGraph& source, const DecompositionTable& table, DecomposeOptions options = {});

  // On the fake values that the source was traced with: the same symbols, in the same environment.
  TracedGraph decompose();
  // On these arguments, as make_fx in real mode.
  TracedGraph decompose(const Values& args);

 protected:
  Value run_node(const Node& node) override;

 private:
  TracedGraph trace(const Values& inputs, MakeFxOptions options);

  const TracedGraph& source_;
  const DecompositionTable& table_;
  const DecomposeOptions options_;
};

}  // namespace calque
