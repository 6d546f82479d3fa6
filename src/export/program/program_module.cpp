#include "export/program/program_module.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/export/unflatten.h"
#include "calque/graph/interpreter.h"
#include "export/capture/expression_values.h"
#include "export/capture/retrace.h"

namespace calque {

Values ProgramModule::flatten(const Values& args, const Kwargs& kwargs) const {
  const PyTreeInfo& info = *graph().pytree_info();
  // Keyword arguments of the program may be given by position, and the other way round.
  const Values& keys = info.in_spec.children().at(1).dict_keys();
  const size_t positional = info.in_spec.children().at(0).num_children();
  Values placed = args;
  Kwargs named = kwargs;
  for (size_t i = positional; i < args.size() && i - positional < keys.size(); ++i)
    named.emplace_back(keys[i - positional].to_string(), args[i]);
  if (placed.size() > positional && placed.size() - positional <= keys.size()) placed.resize(positional);
  while (placed.size() < positional && placed.size() < info.orig_args.size()) {
    const auto at =
        std::find_if(named.begin(), named.end(), [&](const auto& n) { return n.first == info.orig_args[placed.size()]; });
    if (at == named.end()) break;
    placed.push_back(at->second);
    named.erase(at);
  }
  return checks_->flatten(placed, named);
}

Value ProgramModule::forward_values(const Values& args, const Kwargs& kwargs) {
  const Values leaves = flatten(args, kwargs);
  if (!find_submodule("_guards_fn")) checks_->check(leaves);
  const auto alone = state_mutex_ ? std::unique_lock(*state_mutex_) : std::unique_lock<std::mutex>();
  const Values result = Interpreter(graph(), &as_owner()).run(leaves).to_items();
  return graph().pytree_info()->out_spec->unflatten(result);
}

// ---- guards -----------------------------------------------------------------------------------------------------------

GuardsModule::GuardsModule(const ExportedProgram& program, std::shared_ptr<const InputChecks> checks,
                           std::vector<KeyPath> paths)
    : checks_(std::move(checks)), paths_(std::move(paths)), ranges_(program.parts().range_constraints) {
  const std::vector<Node*> inputs = program.graph().placeholders();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (program.graph_signature().input_specs.at(i).kind == InputKind::user_input) expected_.push_back(inputs[i]->meta.val);
  env_ = program.graph().shape_env();
}

void GuardsModule::check(SymBool condition, const std::string& text) const {
  if (!guard(condition)) throw UserError(ErrorKind::constraint_violation, "Guard failed: " + text);
}

namespace {

bool is_symbolic(const Value& v) {
  if (v.is_tensor()) return v.to_tensor().is_symbolic();
  return v.kind() == Value::Kind::integer && v.to_sym_int().is_symbolic();
}

}  // namespace

Value GuardsModule::forward_values(const Values& args, const Kwargs&) {
  checks_->check(args);
  if (std::any_of(args.begin(), args.end(), is_symbolic)) guard_symbols(args);
  return {};
}

void GuardsModule::guard_symbols(const Values& args) const {
  if (args.size() != expected_.size())
    throw UserError("the program takes " + std::to_string(expected_.size()) + " inputs, " + std::to_string(args.size()) +
                    " were given");
  std::unordered_map<const Expr*, Value> symbols;
  std::vector<std::pair<const Expr*, std::pair<SymInt, std::string>>> later;
  const auto range_of = [&](const Expr* e) -> const ValueRange* {
    const std::string text = e->str();
    for (const auto& [expression, range] : ranges_)
      if (expression == text) return &range;
    return nullptr;
  };
  const auto number = [&](const SymInt& expected, const SymInt& found, const std::string& source) {
    const Expr* e = expected.expr();
    if (!e) {
      check(found == expected, source + " == " + expected.str());
      return;
    }
    if (e->kind() != ExprKind::symbol) {
      later.push_back({e, {found, source}});
    } else if (const auto [it, fresh] = symbols.try_emplace(e, found); !fresh) {
      check(found == it->second.to_sym_int(), source + " == " + it->second.to_sym_int().str());
      return;
    }
    const ValueRange* range = range_of(e);
    if (!range) return;
    if (range->lower > 2) check(found >= range->lower, source + " >= " + std::to_string(range->lower));
    if (range->upper < ValueRange::unbounded_above - 1)
      check(found <= range->upper, source + " <= " + std::to_string(range->upper));
  };
  for (size_t i = 0; i < args.size(); ++i) {
    const Value& expected = expected_[i];
    const Value& found = args[i];
    std::string source = paths_.at(i).at(0).key.to_string();
    source += keystr(KeyPath(paths_[i].begin() + 1, paths_[i].end()));
    if (expected.is_tensor()) {
      if (!found.is_tensor()) throw UserError("Guard failed: " + source + " is a tensor, found " + found.str());
      const Tensor& e = expected.to_tensor();
      const Tensor& f = found.to_tensor();
      if (e.dim() != f.dim())
        throw UserError(ErrorKind::constraint_violation, "Guard failed: " + source + ".dim() == " + std::to_string(e.dim()) +
                                                             ", found " + std::to_string(f.dim()));
      for (size_t d = 0; d < e.sym_sizes().size(); ++d)
        number(e.sym_sizes()[d], f.sym_sizes()[d], source + ".size()[" + std::to_string(d) + "]");
    } else if (expected.kind() == Value::Kind::integer) {
      if (found.kind() != Value::Kind::integer && found.kind() != Value::Kind::boolean)
        throw UserError("Guard failed: " + source + " == " + expected.str() + ", found " + found.str());
      number(expected.to_sym_int(), found.to_sym_int(), source);
    } else if (!expected.equals(found)) {
      throw UserError(ErrorKind::constraint_violation,
                      "Guard failed: " + source + " == " + expected.str() + ", found " + found.str());
    }
  }
  for (const auto& [e, place] : later) {
    const Value value = evaluate_with(e, symbols);
    if (!value.is_none()) check(place.first == value.to_sym_int(), place.second + " == " + e->str());
  }
  if (env_)
    for (const Guard& g : env_->guards()) {
      const Expr* e = g.condition.expr();
      if (!e) continue;
      const Value holds = evaluate_with(e, symbols);
      if (!holds.is_none()) check(holds.to_sym_bool(), e->str());
    }
}

// ---- tracing a graph --------------------------------------------------------------------------------------------------

Value run_keeping_meta(Module& module, const Values& args, const Kwargs& kwargs) {
  const auto run = [](const GraphModule& m, const Values& inputs) {
    return Retracer(m.graph(), &m.as_owner(), nullptr, false).run(inputs);
  };
  if (auto* program = dynamic_cast<ProgramModule*>(&module))
    return program->graph().pytree_info()->out_spec->unflatten(run(*program, program->flatten(args, kwargs)).to_items());
  if (auto* unflattened = dynamic_cast<UnflattenedModule*>(&module))
    return unflattened->out_spec().unflatten(run(*unflattened, unflattened->flatten(args, kwargs)).to_items());
  if (auto* graph_module = dynamic_cast<GraphModule*>(&module);
      graph_module && kwargs.empty() && !graph_module->graph().pytree_info())
    return run(*graph_module, args);
  return module.call(args, kwargs);
}

std::shared_ptr<GraphModule> state_free(GraphModule& traced) {
  return std::make_shared<GraphModule>(static_cast<const Module&>(traced), std::move(traced.graph()));
}

}  // namespace calque
