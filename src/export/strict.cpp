#include "export/strict.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/trace/tracer.h"
#include "export/retrace.h"

namespace calque {
namespace {

struct Slot {
  std::string path;
  Tensor tensor;
  bool is_constant;
};

std::vector<Slot> slots_of(const Module& module) {
  std::vector<Slot> out;
  for (const auto& [path, tensor] : module.named_parameters("", true, false)) out.push_back({path, tensor, false});
  for (const auto& [path, tensor] : module.named_buffers("", true, false)) out.push_back({path, tensor, false});
  for (const auto& [path, tensor] : module.named_constants("", true, false)) out.push_back({path, tensor, true});
  return out;
}

// Goes into every module, and turns tensors that the forward assigns to buffers into writes of them.
class StrictTracer : public Tracer {
 public:
  StrictTracer(Module& module, const std::vector<Slot>& before) : module_(module), before_(before) {
    proxy_buffer_attributes = true;
  }
  bool is_leaf_module(Module&, const std::string&) override { return false; }

  Node* create_node(NodeKind kind, const Target& target, Values args, Kwargs kwargs, std::string_view name,
                    std::string type) override {
    if (kind == NodeKind::output) write_assigned();
    return Tracer::create_node(kind, target, std::move(args), std::move(kwargs), name, std::move(type));
  }

 private:
  void write_assigned() {
    for (const Slot& slot : before_) {
      const Tensor* now = module_.find_tensor(slot.path);
      if (!now || now->is_same(slot.tensor)) continue;
      if (slot.is_constant)
        throw UserError(
            "The tensor attribute self." + slot.path +
            " was assigned during export. Such attributes must be registered as buffers using the `register_buffer` API.");
      const Value value = create_arg(*now);
      Node* buffer = Tracer::create_node(NodeKind::get_attr, slot.path, {}, {}, {}, {});
      Tracer::create_node(NodeKind::call_function, get_operator("aten::copy_"), {buffer, value}, {}, {}, {});
    }
  }

  Module& module_;
  const std::vector<Slot>& before_;
};

// Every argument of the forward, in its order; those that were not given with their defaults.
Kwargs bound_arguments(const Module& module, const Values& args, const Kwargs& kwargs) {
  const std::vector<std::string> names = module.argument_names();
  if (args.size() > names.size())
    throw UserError("export: strict: " + std::to_string(args.size()) + " positional arguments were given, " +
                    module.class_name() + ".forward takes " + std::to_string(names.size()));
  const Values defaults = module.forward_signature().defaults;
  Kwargs out;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto keyword = std::find_if(kwargs.begin(), kwargs.end(), [&](const auto& k) { return k.first == names[i]; });
    if (i < args.size())
      out.emplace_back(names[i], args[i]);
    else if (keyword != kwargs.end())
      out.emplace_back(names[i], keyword->second);
    else if (i + defaults.size() >= names.size())
      out.emplace_back(names[i], defaults[i + defaults.size() - names.size()]);
    else
      throw UserError("export: strict: the argument '" + names[i] + "' of " + module.class_name() +
                      ".forward is not given and has no default that is known");
  }
  return out;
}

// The module's tensors, by path.
class ModuleOwner : public GraphOwner {
 public:
  ModuleOwner(const Module& module, const StrictCapture& captured) : module_(module), captured_(captured) {}
  bool has_attr(const std::string& path) const override { return find(path) != nullptr; }
  bool has_module(const std::string& path) const override { return module_.find_submodule(path) != nullptr; }
  bool module_is_impure(const std::string&) const override { return false; }
  Value attr(const std::string& path) const override {
    if (const Tensor* t = find(path)) return *t;
    throw UserError("export: the captured graph refers to " + path + ", which the module does not hold");
  }
  Value call_module(const std::string& path, const Values& args, const Kwargs& kwargs) const override {
    return module_.get_submodule(path).call(args, kwargs);
  }

 private:
  const Tensor* find(const std::string& path) const {
    for (const auto& [name, tensor] : captured_.constants)
      if (name == path) return &tensor;
    return module_.find_tensor(path);
  }

  const Module& module_;
  const StrictCapture& captured_;
};

}  // namespace

StrictCapture capture_strict(Module& module, const FakeInputs& inputs) {
  TraceInputs given;
  given.fake = inputs.mode;
  const auto add = [&](const std::string& name, const Value& value) {
    if (value.is_tensor()) {
      given.examples.emplace_back(name, value);
      return;
    }
    bool any_tensor = false;
    const Value tree = tree_map(
        [&](const Value& leaf) -> Value {
          const bool open = leaf.is_tensor() || (leaf.kind() == Value::Kind::integer && leaf.to_sym_int().is_symbolic());
          any_tensor = any_tensor || open;
          return open ? PH() : leaf;
        },
        value);
    given.concrete_args.emplace_back(name, tree);
    if (any_tensor) given.examples.emplace_back(name, value);
  };
  for (const auto& [name, value] : bound_arguments(module, inputs.args, inputs.kwargs)) add(name, value);

  const std::vector<Slot> before = slots_of(module);
  StrictCapture captured;
  const auto restore = [&] {
    for (const Slot& slot : before)
      if (const Tensor* now = module.find_tensor(slot.path); !now || !now->is_same(slot.tensor))
        module.set_tensor(slot.path, slot.tensor);
    // What the tracer stored in the module for itself.
    std::vector<std::string> own;
    for (const auto& slot : module.buffer_slots())
      if (slot->name.starts_with("_tensor_constant") &&
          std::none_of(before.begin(), before.end(), [&](const Slot& s) { return s.path == slot->name; }))
        own.push_back(slot->name);
    for (const std::string& name : own) {
      captured.constants.emplace_back(name, module.get_buffer(name));
      module.delete_attribute(name);
    }
  };
  try {
    captured.graph = StrictTracer(module, before).trace(module, given);
  } catch (...) {
    restore();
    throw;
  }
  restore();
  return captured;
}

Value run_captured(const StrictCapture& captured, const Module& module, const Values& args, const Kwargs& kwargs) {
  const ModuleOwner owner(module, captured);
  Values leaves;
  for (const auto& [name, value] : bound_arguments(module, args, kwargs))
    for (const Value& leaf : tree_leaves(value)) leaves.push_back(leaf);
  const Value result =
      Retracer(captured.graph, &owner, captured.graph.shape_env().get(), /*names_origin=*/false).run(leaves);
  const PyTreeInfo* info = captured.graph.pytree_info().get();
  if (!info || !info->out_spec) return result;
  return info->out_spec->unflatten(result.to_items());
}

}  // namespace calque
