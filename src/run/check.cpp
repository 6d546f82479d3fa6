#include "calque/run/check.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

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

// Errors of both sides beside a float64 reference, relative to its size.
struct Errors {
  double plan = 0, interpreter = 0;
  int64_t different = 0;  // numbers
  double most = 0;        // that they are apart
};

// A single result may be so far from the reference: the limit of the sweep of operators.
double gross_limit(DType dtype) {
  if (dtype == DType::float64) return 1e-12;
  if (dtype == DType::float16) return 2e-2;
  return dtype == DType::bfloat16 ? 1e-1 : 1e-4;
}
double half_unit(DType dtype) {
  if (dtype == DType::float64) return 0x1p-53;
  if (dtype == DType::float16) return 0x1p-11;
  return dtype == DType::bfloat16 ? 0x1p-8 : 0x1p-24;
}

// Where both have the same infinity or NaN, or the reference has one, there is nothing to measure.
Errors errors_of(const Tensor& interpreter, const Tensor& plan, const Tensor& reference) {
  const NoGradGuard no_grad;
  const Tensor x = interpreter.to(DType::float64).contiguous(), y = plan.to(DType::float64).contiguous(),
               r = reference.contiguous();
  const auto *a = x.data_as<double>(), *b = y.data_as<double>(), *c = r.data_as<double>();
  const auto agree = [](double u, double v) { return u == v || (std::isnan(u) && std::isnan(v)); };
  double scale = 0, of_interpreter = 0, of_plan = 0;
  Errors out;
  for (int64_t i = 0; i < r.numel(); ++i) {
    if (!agree(a[i], b[i])) {
      ++out.different;
      if (std::abs(a[i] - b[i]) > out.most) out.most = std::abs(a[i] - b[i]);
    }
    if (!std::isfinite(a[i]) && agree(a[i], b[i])) continue;
    if (!std::isfinite(c[i])) {
      if (!agree(a[i], b[i]) && !agree(b[i], c[i])) of_plan = std::numeric_limits<double>::infinity();
      continue;
    }
    scale += c[i] * c[i];
    of_interpreter += (a[i] - c[i]) * (a[i] - c[i]);
    of_plan += (b[i] - c[i]) * (b[i] - c[i]);
  }
  const auto relative = [&](double squares) {
    if (squares == 0) return 0.0;
    return scale == 0 || std::isnan(squares) ? std::numeric_limits<double>::infinity() : std::sqrt(squares / scale);
  };
  out.plan = relative(of_plan);
  out.interpreter = relative(of_interpreter);
  return out;
}

// What the sweep of operators allows, here for the steps of a plan: a result alone, and all of a dtype together.
class Bounds {
 public:
  // Empty where the plan's result is as good as the interpreter's. Complex and integer results are equal or not.
  std::string judge(const Tensor& interpreter, const Tensor& plan, const Tensor& reference) {
    const DType dtype = interpreter.dtype();
    const bool measured = is_floating(dtype) && !is_float8(dtype);
    if (!measured) {
      SameOptions same;
      same.equal_nan = true;
      const TensorComparison c = compare_tensors(interpreter, plan, {}, same);
      return c.same
                 ? ""
                 : fmt::format("{} of {} numbers differ, by {:.2g} at most", c.outside_tol, interpreter.numel(), c.max_abs);
    }
    const bool has_reference =
        reference.defined() && reference.dtype() == DType::float64 && reference.sizes() == interpreter.sizes();
    const Errors e = errors_of(interpreter, plan, has_reference ? reference : interpreter.to(DType::float64));
    if (e.plan > gross_limit(dtype) && e.plan > 4 * e.interpreter)
      return fmt::format(
          "{} of {} numbers differ, by {:.2g} at most: a relative error of {:.2g}, the interpreter's is {:.2g}, and {:.2g} "
          "is allowed",
          e.different, interpreter.numel(), e.most, e.plan, e.interpreter, std::max(gross_limit(dtype), 4 * e.interpreter));
    // An error that is half of everything says nothing about rounding.
    if (has_reference && e.interpreter < 0.5 && e.plan < 0.5) sums_[dtype].push_back(e);
    return {};
  }

  void judge_together(std::vector<PlanDifference>& out) const {
    for (const auto& [dtype, errors] : sums_) {
      if (errors.size() < least_steps) continue;
      double plan = 0, interpreter = 0;
      for (const Errors& e : errors) plan += e.plan * e.plan, interpreter += e.interpreter * e.interpreter;
      const auto count = static_cast<double>(errors.size());
      const double limit = 1.5 * std::sqrt(interpreter / count) + half_unit(dtype);
      if (std::sqrt(plan / count) <= limit) continue;
      out.push_back({fmt::format("all steps of {}", name(dtype)),
                     fmt::format("a relative error of {:.2g} over {} steps, at most {:.2g} is allowed",
                                 std::sqrt(plan / count), errors.size(), limit)});
    }
  }

 private:
  static constexpr size_t least_steps = 100;
  std::map<DType, std::vector<Errors>> sums_;
};

// Empty where they are the same up to rounding; `bits` becomes false where they are not to the last bit. `reference` may be None.
std::string difference(const Value& a, const Value& b, const Value& reference, Bounds& bounds, bool& bits) {
  if (a.kind() != b.kind())
    return fmt::format("the interpreter has {}, the plan {}", Value::kind_name(a.kind()), Value::kind_name(b.kind()));
  if (a.is_sequence()) {
    const Values &x = a.to_items(), &y = b.to_items();
    if (x.size() != y.size()) return fmt::format("the interpreter has {} items, the plan {}", x.size(), y.size());
    const bool same_form = reference.is_sequence() && reference.to_items().size() == x.size();
    for (size_t i = 0; i < x.size(); ++i)
      if (std::string what = difference(x[i], y[i], same_form ? reference.to_items()[i] : Value(), bounds, bits);
          !what.empty())
        return fmt::format("item {}: {}", i, what);
    return {};
  }
  if (!a.is_tensor()) return a.equals(b) ? "" : fmt::format("the interpreter has {}, the plan {}", a.str(), b.str());
  const Tensor &x = a.to_tensor(), &y = b.to_tensor();
  if (!x.defined() || !y.defined()) return x.defined() == y.defined() ? "" : "only one of both makes a tensor";
  if (x.dtype() != y.dtype() || x.sizes() != y.sizes()) return "";  // said with the geometry
  if (same_bits(x, y)) return {};
  bits = false;
  return bounds.judge(x, y, reference.is_tensor() ? reference.to_tensor() : Tensor());
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

// Keeps the values of the nodes that another graph has too, by name.
class Recording : public Interpreter {
 public:
  Recording(const GraphModule& module, const Graph& wanted) : Interpreter(module.graph(), &module.as_owner()) {
    for (const Node* n : wanted.nodes()) wanted_.insert(n->name());
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
  std::unordered_set<std::string> wanted_;
  std::unordered_map<std::string, Snapshot> seen_;
};

Value widened(const Value& v) {
  if (v.is_tensor()) {
    const Tensor& t = v.to_tensor();
    return t.defined() && !t.is_fake() && is_floating(t.dtype()) && t.dtype() != DType::float64 ? Value(t.to(DType::float64))
                                                                                                : v;
  }
  if (!v.is_sequence()) return v;
  Values items;
  for (const Value& item : v.to_items()) items.push_back(widened(item));
  return v.kind() == Value::Kind::list ? list(std::move(items)) : tuple(std::move(items));
}

// The same in float64, as far as it goes: where a step wants another dtype, what follows has no reference.
class Reference final : public Recording {
 public:
  using Recording::Recording;
  void run_as_far_as_it_goes(GraphModule& module, const Values& inputs) {
    const NoGradGuard no_grad;
    for (const Node* n : module.graph().nodes()) {
      if (n->kind() != NodeKind::get_attr) continue;
      if (const Tensor* t = module.find_tensor(n->target().text()))
        module.set_attribute(n->target().text(), Attribute(widened(*t).to_tensor()));
    }
    Values wide;
    for (const Value& v : inputs) wide.push_back(widened(v));
    try {
      run(wide);
    } catch (const UserError&) {
    }
  }

 protected:
  Value run_node(const Node& node) override { return widened(Recording::run_node(node)); }
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

PlanCheck check(run::PlannedGraph nodes, run::PlannedGraph wide, run::PlannedGraph planned, const Values& inputs,
                const PlanOptions& options) {
  own_written_state(*nodes.module);
  own_written_state(*wide.module);
  own_written_state(*planned.module);
  const std::shared_ptr<const Plan> plan = run::plan_of(std::move(planned), options);
  const RandomState random;
  Recording interpreter(*nodes.module, plan->graph());
  interpreter.run(copies(inputs));
  random.restore();
  Reference reference(*wide.module, plan->graph());
  reference.run_as_far_as_it_goes(*wide.module, copies(inputs));
  random.restore();
  PlanCheck out;
  Bounds bounds;
  const Value result = plan->run_watched(copies(inputs), [&](const Node& node, const Value& value) {
    const Snapshot* expected = interpreter.find(node.name());
    if (!expected) return;
    const Snapshot found = snapshot(value);
    ++out.compared;
    bool bits = true;
    std::string what = geometry_difference(*expected, found);
    const Snapshot* true_values = reference.find(node.name());
    if (what.empty()) what = difference(expected->kept, found.kept, true_values ? true_values->kept : Value(), bounds, bits);
    if (!what.empty())
      out.differences.push_back({node.str(), what});
    else if (bits)
      ++out.equal_bits;
  });
  bounds.judge_together(out.differences);
  out.results = result.is_sequence() ? result.to_items() : Values{result};
  return out;
}

}  // namespace

PlanCheck check_plan(const ExportedProgram& program, const Values& inputs, const PlanOptions& options) {
  return check(run::planned_graph(program), run::planned_graph(program), run::planned_graph(program), inputs, options);
}

PlanCheck check_plan(const GraphModule& module, const Values& inputs, const PlanOptions& options) {
  return check(run::planned_graph(module), run::planned_graph(module), run::planned_graph(module), inputs, options);
}

}  // namespace calque
