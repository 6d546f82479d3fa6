#include "calque/run/check.h"

#include <fmt/format.h>

#include <mutex>
#include <unordered_map>

#include "calque/file/compare.h"
#include "calque/graph/interpreter.h"
#include "calque/tensor/generator.h"
#include "graph/passes/mutation.h"
#include "run/planned_graph.h"

namespace calque {
namespace {

// A value as it is now: what writes to its tensors later is not seen.
struct Snapshot {
  Value kept;
  std::vector<Meta> metas;
  std::vector<bool> requires_grad;
};

Value kept_copy(const Value& v, Snapshot& to) {
  if (v.is_tensor()) {
    const Tensor& t = v.to_tensor();
    if (!t.defined()) return v;
    to.metas.push_back(t.meta());
    to.requires_grad.push_back(t.requires_grad());
    const NoGradGuard no_grad;
    return t.clone();
  }
  if (!v.is_sequence()) return v;
  Values items;
  for (const Value& item : v.to_items()) items.push_back(kept_copy(item, to));
  return tuple(std::move(items));
}

Snapshot snapshot(const Value& v) {
  Snapshot out;
  out.kept = kept_copy(v, out);
  return out;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.data(), b.data(), a.nbytes()) == 0;  // both are clones, dense
}

// Tolerances that grow with what the dtype keeps: many steps may lie before the one that is compared.
double tolerance(DType dtype) { return is_reduced_float(dtype) ? 5e-2 : dtype == DType::float64 ? 1e-9 : 1e-4; }

// Empty where they are the same up to rounding; `bits` becomes false where they are not to the last bit.
std::string difference(const Value& a, const Value& b, bool& bits) {
  if (a.kind() != b.kind())
    return fmt::format("the interpreter has {}, the plan {}", Value::kind_name(a.kind()), Value::kind_name(b.kind()));
  if (a.is_sequence()) {
    const Values &x = a.to_items(), &y = b.to_items();
    if (x.size() != y.size()) return fmt::format("the interpreter has {} items, the plan {}", x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i)
      if (std::string what = difference(x[i], y[i], bits); !what.empty()) return fmt::format("item {}: {}", i, what);
    return {};
  }
  if (!a.is_tensor()) return a.equals(b) ? "" : fmt::format("the interpreter has {}, the plan {}", a.str(), b.str());
  const Tensor &x = a.to_tensor(), &y = b.to_tensor();
  if (!x.defined() || !y.defined()) return x.defined() == y.defined() ? "" : "only one of both makes a tensor";
  if (x.dtype() != y.dtype() || x.sizes() != y.sizes()) return "";  // said with the geometry
  if (same_bits(x, y)) return {};
  bits = false;
  SameOptions same;
  same.tol = tolerance(x.dtype());
  same.equal_nan = true;
  const TensorComparison c = compare_tensors(x, y, {}, same);
  // Sums that cancel have no digits to compare: then the error is seen beside the tensor's own size.
  const double size = x.numel() == 0 || !is_floating(x.dtype()) ? 0 : x.to(DType::float64).abs().max().item_as<double>();
  if (c.same || c.max_abs <= same.tol * size) return {};
  return fmt::format("{} of {} numbers differ, by {:.2g} at most", c.outside_tol, x.numel(), c.max_abs);
}

std::string geometry_difference(const Snapshot& a, const Snapshot& b) {
  for (size_t i = 0; i < a.metas.size() && i < b.metas.size(); ++i) {
    const Meta &x = a.metas[i], &y = b.metas[i];
    const auto shown = [](const Meta& m) {
      return fmt::format("{}{} strides {}", name(m.dtype), str(SymIntList(m.sizes)), str(SymIntList(m.strides)));
    };
    if (shown(x) != shown(y)) return fmt::format("the interpreter has {}, the plan {}", shown(x), shown(y));
    if (a.requires_grad[i] != b.requires_grad[i])
      return a.requires_grad[i] ? "only the interpreter's wants a gradient" : "only the plan's wants a gradient";
  }
  return {};
}

class Recording final : public Interpreter {
 public:
  Recording(const GraphModule& module, const Graph& wanted) : Interpreter(module.graph(), &module.as_owner()) {
    for (const Node* n : wanted.nodes()) wanted_.emplace(n->name(), Snapshot());
  }
  const Snapshot* find(const std::string& name) const {
    const auto it = seen_.find(name);
    return it == seen_.end() ? nullptr : &it->second;
  }

 protected:
  Value run_node(const Node& node) override {
    Value v = Interpreter::run_node(node);
    if (wanted_.contains(node.name())) seen_.insert_or_assign(node.name(), snapshot(v));
    return v;
  }

 private:
  std::unordered_map<std::string, Snapshot> wanted_, seen_;
};

Value copied(const Value& v) {
  if (v.is_tensor()) {
    const Tensor& t = v.to_tensor();
    if (!t.defined()) return v;
    const NoGradGuard no_grad;
    const Tensor copy = t.clone();
    copy.set_requires_grad(t.requires_grad());
    return copy;
  }
  if (!v.is_sequence()) return v;
  Values items;
  for (const Value& item : v.to_items()) items.push_back(copied(item));
  return v.kind() == Value::Kind::list ? list(std::move(items)) : tuple(std::move(items));
}

// State that the graph writes becomes the module's own.
void own_written_state(GraphModule& module) {
  const Mutations mutations(module.graph());
  for (const Node* n : module.graph().nodes()) {
    if (n->kind() != NodeKind::get_attr || !mutations.is_written(*n)) continue;
    const std::string path = n->target().text();
    if (const Tensor* t = module.find_tensor(path)) module.set_attribute(path, Attribute(copied(*t).to_tensor()));
  }
}

class RandomState {
 public:
  RandomState() {
    at([&](Generator& g) { state_ = g.get_state(); });
  }
  void restore() const {
    at([&](Generator& g) { g.set_state(state_); });
  }

 private:
  template <class F>
  static void at(const F& f) {
    Generator& g = default_generator();
    const std::lock_guard lock(g.mutex());
    f(g);
  }
  std::vector<uint8_t> state_;
};

Values copies(const Values& inputs) {
  Values out;
  for (const Value& v : inputs) out.push_back(copied(v));
  return out;
}

PlanCheck check(run::PlannedGraph reference, run::PlannedGraph planned, const Values& inputs, const PlanOptions& options) {
  own_written_state(*reference.module);
  own_written_state(*planned.module);
  const std::shared_ptr<const Plan> plan = run::plan_of(std::move(planned), options);
  const RandomState random;
  Recording interpreter(*reference.module, plan->graph());
  interpreter.run(copies(inputs));
  random.restore();
  PlanCheck out;
  const Value result = plan->run_watched(copies(inputs), [&](const Node& node, const Value& value) {
    const Snapshot* expected = interpreter.find(node.name());
    if (!expected) return;
    const Snapshot found = snapshot(value);
    ++out.compared;
    bool bits = true;
    std::string what = geometry_difference(*expected, found);
    if (what.empty()) what = difference(expected->kept, found.kept, bits);
    if (!what.empty())
      out.differences.push_back({node.str(), what});
    else if (bits)
      ++out.equal_bits;
  });
  out.results = result.is_sequence() ? result.to_items() : Values{result};
  return out;
}

}  // namespace

PlanCheck check_plan(const ExportedProgram& program, const Values& inputs, const PlanOptions& options) {
  return check(run::planned_graph(program), run::planned_graph(program), inputs, options);
}

PlanCheck check_plan(const GraphModule& module, const Values& inputs, const PlanOptions& options) {
  return check(run::planned_graph(module), run::planned_graph(module), inputs, options);
}

}  // namespace calque
