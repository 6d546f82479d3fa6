#include "export/capture/tracepoints.h"

#include "calque/base/error.h"
#include "calque/graph/higher_order.h"
#include "calque/op/tree.h"
#include "export/capture/build.h"

namespace calque {
namespace {

constexpr const char* tracepoint_operator = "torch.ops.higher_order._export_tracepoint";
constexpr const char* inputs_kind = "module_call_inputs";
constexpr const char* outputs_kind = "module_call_outputs";

const FunctionRef& tracepoint() {
  static const FunctionRef f = register_function(
      tracepoint_operator, [](const Values&, const Kwargs&) { return Value(); }, true);
  return f;
}

void mark(const char* kind, const std::string& path, const Values& leaves) {
  HigherOrderTracer* tracer = higher_order_tracer();
  if (!tracer) return;
  for (const Value& leaf : leaves)
    if (!leaf.is_none() && !leaf.is_tensor() && leaf.kind() > Value::Kind::string)
      throw UserError("export: " + path +
                      " is to keep its call signature; its inputs and outputs are tensors, numbers and strings, found " +
                      leaf.str());
  tracer->trace(
      tracepoint_operator, {},
      [&](const Values&, const Values&) {
        Values args{kind, path};
        args.insert(args.end(), leaves.begin(), leaves.end());
        return args;
      },
      [](const std::vector<Value>&) { return Value(); });
}

Value call_tree(const Values& args, const Kwargs& kwargs) {
  std::vector<std::pair<Value, Value>> items;
  for (const auto& [key, value] : kwargs) items.emplace_back(key, value);
  return tuple({tuple(args), dict(std::move(items))});
}

}  // namespace

Tracepoints::Tracepoints(Module& module, const std::vector<std::string>& paths) {
  if (!paths.empty()) tracepoint();
  for (const std::string& path : paths) {
    if (path.empty())
      throw UserError(
          "export: preserve_module_call_signature: the signature of the whole program is always kept, name a submodule");
    Module& sub = module.get_submodule(path);
    handles_.push_back(sub.register_forward_pre_hook(
        [path](Module&, const Values& args, const Kwargs& kwargs) -> std::optional<Module::Call> {
          mark(inputs_kind, path, tree_leaves(call_tree(args, kwargs)));
          return {};
        }));
    handles_.push_back(sub.register_forward_hook(
        [this, path](Module&, const Values& args, const Kwargs& kwargs, const Value& result) -> std::optional<Value> {
          const FlatTree flat = tree_flatten(result);
          mark(outputs_kind, path, flat.leaves);
          specs_[path] = {tree_structure(call_tree(args, kwargs)), flat.spec};
          return {};
        }));
  }
}

Tracepoints::~Tracepoints() {
  for (HookHandle& h : handles_) h.remove();
}

std::map<std::string, ModuleCallSignature> Tracepoints::collect(GraphModule& module, GraphSignature&) {
  std::map<std::string, ModuleCallSignature> out;
  for (const auto& [path, specs] : specs_) out[path] = {{}, {}, specs.in_spec, specs.out_spec};
  if (specs_.empty()) return out;
  for_each_graph_module(module, [&](GraphModule& m) {
    for (Node* n : m.graph().node_list()) {
      if (n->target().function() != tracepoint().get()) continue;
      std::string path = n->args()[1].to_string();
      const ModuleStackEntry* innermost =
          n->meta.nn_module_stack && !n->meta.nn_module_stack->empty() ? &n->meta.nn_module_stack->back() : nullptr;
      std::string called = innermost ? innermost->path : path;
      if (innermost)
        if (const size_t at = innermost->key.find('@'); at != std::string::npos) {
          const std::string suffix = innermost->key.substr(at);
          if (!out.contains(called + suffix) && out.contains(called))
            out[called + suffix] = {{}, {}, out[called].in_spec, out[called].out_spec};
          path += suffix;
          called += suffix;
        }
      if (called == path) {
        auto& list = n->args()[0].to_string() == inputs_kind ? out[path].inputs : out[path].outputs;
        for (size_t i = 2; i < n->args().size(); ++i) list.push_back(argument_spec(n->args()[i]));
      }
      m.graph().erase_node(n);
    }
  });
  return out;
}

}  // namespace calque
