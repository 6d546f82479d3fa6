#include "calque/export/unflatten.h"

#include <unordered_map>

#include "calque/base/error.h"
#include "calque/graph/interpreter.h"
#include "export/unflatten/unflatten_draft.h"

namespace calque {

namespace {

using unflatten_detail::Draft;
using unflatten_detail::DraftPtr;

// Holds what lies below; runs nothing.
class HolderModule : public Module {
 public:
  HolderModule() = default;
  std::string type_name() const override { return "torch.nn.modules.module.Module"; }

 protected:
  HolderModule(const HolderModule&) = default;
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new HolderModule(*this)); }
};

// A module whose signature is kept and that is called several times in a program: runs the graph of each call in turn.
class DispatcherModule : public Module {
 public:
  explicit DispatcherModule(std::vector<std::shared_ptr<Module>> calls) : calls_(std::move(calls)) {}
  std::string type_name() const override { return "torch.export.unflatten.InterpreterModuleDispatcher"; }

  Value forward_values(const Values& args, const Kwargs& kwargs) override {
    const std::shared_ptr<Module> call = calls_[next_];
    next_ = (next_ + 1) % calls_.size();
    try {
      return call->call(args, kwargs);
    } catch (...) {
      next_ = 0;
      throw;
    }
  }

 protected:
  std::shared_ptr<Module> copy_self() const override {
    throw UserError(
        "a module of an unflattened program that is called several times with its signature kept cannot be copied; "
        "unflatten the program again");
  }

 private:
  std::vector<std::shared_ptr<Module>> calls_;
  size_t next_ = 0;
};

class Builder {
 public:
  std::shared_ptr<Module> build(Draft& d) {
    const auto known = made_.find(&d);
    if (known != made_.end()) return known->second;
    std::shared_ptr<Module> out;
    if (!d.calls.empty()) {
      std::vector<std::shared_ptr<Module>> calls;
      for (const DraftPtr& call : d.calls) calls.push_back(build(*call));
      out = std::make_shared<DispatcherModule>(std::move(calls));
    } else if (d.graph.size() != 0) {
      out = std::make_shared<InterpreterModule>(std::move(d.graph), d.type);
    } else {
      out = std::make_shared<HolderModule>();
    }
    made_.emplace(&d, out);
    fill(*out, d);
    return out;
  }

  void fill(Module& module, Draft& d) {
    for (const Draft::State& s : d.state) {
      if (s.is_parameter)
        module.register_parameter(s.name, s.tensor, s.tensor.requires_grad());
      else
        module.register_buffer(s.name, s.tensor, s.persistent);
    }
    for (const auto& [name, child] : *d.children) module.register_module(name, build(*child));
    for (const auto& [name, graph] : d.graphs) module.register_module(name, graph);
  }

 private:
  std::unordered_map<const Draft*, std::shared_ptr<Module>> made_;
};

std::vector<std::string> names_of(const ExportedProgram& program) {
  const auto& signature = program.parts().module_call_graph.at(0).signature;
  return signature && signature->forward_arg_names ? *signature->forward_arg_names : std::vector<std::string>{};
}

}  // namespace

UnflattenedModule::UnflattenedModule(Graph graph, std::string original_type, const ExportedProgram& program)
    : InterpreterModule(std::move(graph), std::move(original_type)),
      checks_(std::make_shared<const InputChecks>(program, InputCheckOptions{.dtypes = false, .guards = false})),
      out_spec_(program.out_spec()),
      argument_names_(names_of(program)) {}

Values UnflattenedModule::flatten(const Values& args, const Kwargs& kwargs) const {
  Values leaves = checks_->flatten(args, kwargs);
  if (check_input_constraints) checks_->check(leaves);
  return leaves;
}

Value UnflattenedModule::forward_values(const Values& args, const Kwargs& kwargs) {
  return out_spec_.unflatten(Interpreter(graph(), &as_owner()).run(flatten(args, kwargs)).to_items());
}

std::shared_ptr<UnflattenedModule> unflatten(const ExportedProgram& program) {
  using namespace unflatten_detail;
  Graph flat = program.graph().copy();
  Outlined modules = outline(program, flat);
  place_state(program, *modules.root);
  const std::map<std::string, std::string> redirected = merge_calls(modules.calls);
  dispatch_calls(program, *modules.root, redirected);
  order_children(program, modules.root, redirected);
  auto out = std::make_shared<UnflattenedModule>(std::move(modules.root->graph), modules.root->type, program);
  Builder().fill(*out, *modules.root);
  for (const auto& [name, module] : out->named_modules())
    if (auto* m = dynamic_cast<GraphModule*>(module)) {
      m->graph().set_shape_env(program.graph().shape_env());
      m->graph().lint();
    }
  return out;
}

}  // namespace calque
