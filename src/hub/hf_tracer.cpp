#include "calque/hub/hf_tracer.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/hub/dummy_inputs.h"
#include "calque/hub/peft_model.h"
#include "calque/hub/pretrained_model.h"
#include "calque/hub/registry.h"
#include "calque/nn/signature.h"
#include "calque/op/tree.h"
#include "calque/sym/symbolic_context.h"
#include "calque/trace/fake.h"

namespace calque {
namespace {

bool debug_mode() {
  const char* value = std::getenv("FX_DEBUG_MODE");
  std::string text = value ? value : "";
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text == "1" || text == "ON" || text == "YES" || text == "TRUE";
}

bool has(const Kwargs& values, const std::string& name) {
  return std::ranges::any_of(values, [&](const auto& one) { return one.first == name; });
}

bool is_catch_all(const std::string& name) { return name.starts_with("**"); }

// A catch-all that nobody asked for is given nothing; any other argument keeps its default, which it has to have.
std::optional<Value> default_of(const Module& module, const std::vector<std::string>& names, size_t index) {
  if (is_catch_all(names[index])) return dict({});
  if (dynamic_cast<const PretrainedModel*>(&module)) return Value();
  const Values defaults = module.forward_signature().defaults;
  const size_t first = names.size() - std::min(defaults.size(), names.size());
  return index < first ? std::nullopt : std::optional(defaults[index - first]);
}

// Without its placeholders' defaults, which a call has to give, and with their type.
void finish_placeholders(Graph& graph) {
  for (Node* n : graph.nodes()) {
    if (n->kind() != NodeKind::placeholder) continue;
    n->set_args({});
    if (!n->meta.val.is_container()) n->set_type("torch.Tensor");
  }
}

std::shared_ptr<PretrainedModel> model_of(const TracedModel& traced) {
  const ModelClass* found = model_registry().find_class(traced.class_for_deserialization);
  if (!found)
    throw UserError("the graph was made of a " + traced.class_for_deserialization +
                    ", a class that the registry does not have");
  return found->make(traced.config);
}

}  // namespace

// ---- one trace --------------------------------------------------------------------------------------------------------

struct HFTracer::Examples {
  std::shared_ptr<FakeMode> fake;
  Kwargs values;
};

HFTracer::HFTracer() : debug(debug_mode()) {
  proxy_buffer_attributes = true;
  allow_insert_stateless_mods = true;
}

// The dummy inputs of a model's class, their open sizes as symbols. What is no input of this trace is left out.
void HFTracer::add_examples(Examples& examples, Module& root, const std::vector<std::string>& names) {
  auto* model = dynamic_cast<PretrainedModel*>(&root);
  std::shared_ptr<PretrainedModel> made;
  if (const auto* traced = dynamic_cast<TracedModel*>(&root); traced && !model) {
    made = model_of(*traced);
    model = made.get();
  }
  std::optional<DummyInputs> dummies;
  for (const std::string& name : names) {
    if (has(examples.values, name)) continue;
    if (!model)
      throw UserError("HFTracer::trace: the input " + name + " of " + root.class_name() +
                      " cannot be made up, because it is no model of transformers; say what it is like in dummy_inputs");
    if (!dummies) dummies.emplace(*model, seed);
    for (DummyInput& dummy : dummies->make(name, names)) {
      if (has(examples.values, dummy.name) || std::ranges::find(names, dummy.name) == names.end()) continue;
      size_t leaf = 0;
      const auto faked = [&](const Tensor& t) -> Value {
        SymbolicContext context;
        for (const DummySize& size : dummy.sizes[leaf])
          context.sizes.push_back(!size.open   ? DimDynamic::static_size
                                  : size.alone ? DimDynamic::dynamic_size
                                               : DimDynamic::duck);
        const std::string at = dummy.sizes.size() == 1 ? "" : "_" + std::to_string(leaf);
        ++leaf;
        return examples.fake->from_tensor(t, Source::local(dummy.name + at), &context);
      };
      examples.values.emplace_back(dummy.name, tree_map_tensors(faked, dummy.value));
    }
  }
}

Graph HFTracer::trace(Module& root, const HFTraceInputs& inputs, std::source_location where) {
  const std::vector<std::string> all = root.argument_names();
  TraceInputs request;
  request.concrete_args = inputs.concrete_args;
  const bool completes = !inputs.dummy_inputs.empty() && inputs.complete_concrete_args_with_inputs_not_in_dummy_inputs;
  std::vector<std::string> open;
  for (size_t i = 0; i < all.size(); ++i) {
    if (has(request.concrete_args, all[i])) continue;
    if (has(inputs.dummy_inputs, all[i]) || (!completes && !is_catch_all(all[i]))) {
      open.push_back(all[i]);
      continue;
    }
    const std::optional<Value> value = default_of(root, all, i);
    if (!value)
      throw UserError("HFTracer::trace: the argument " + all[i] + " of " + root.class_name() +
                      " has no default; give it in dummy_inputs or in concrete_args");
    request.concrete_args.emplace_back(all[i], *value);
  }
  request.drop_concrete_args = true;
  const auto env = ShapeEnv::make();
  Examples examples{FakeMode::make({.env = env, .allow_non_fake_inputs = true}), {}};
  for (const auto& [name, value] : inputs.dummy_inputs) {
    const auto faked = [&, &name = name](const Tensor& t) -> Value {
      return examples.fake->from_tensor(t, Source::local(name));
    };
    examples.values.emplace_back(name, tree_map_tensors(faked, value));
  }
  add_examples(examples, root, open);
  request.examples = std::move(examples.values);
  request.fake = std::move(examples.fake);
  request.symbolic = true;
  sizes_.clear();
  Graph graph = Tracer::trace(root, request, where);
  sizes_.clear();
  finish_placeholders(graph);
  return graph;
}

std::optional<Value> HFTracer::example_result(NodeKind kind, const Target& target, const std::function<Value()>& call) {
  try {
    return call();
  } catch (const UserError& error) {
    if (debug)
      warn("Could not compute metadata for " + std::string(name(kind)) + " target " + target.str() + ": " + error.what());
    return std::nullopt;
  }
}

Node* HFTracer::size_node(Node& tensor, int64_t dim) {
  Node*& size = sizes_[&tensor];
  if (!size) size = create_node(NodeKind::call_method, "size", {&tensor}, {});
  return create_node(NodeKind::call_function, get_function("operator.getitem"), {size, dim}, {});
}

Value HFTracer::keys(const Value& proxy) {
  const Node* node = node_of(proxy);
  if (node && is_catch_all(node->target().str()) && node->meta.val.kind() == Value::Kind::dict) {
    Values names;
    for (const auto& [key, value] : node->meta.val.to_dict().items) names.push_back(key);
    return list(std::move(names));
  }
  return Tracer::keys(proxy);
}

// ---- front ------------------------------------------------------------------------------------------------------------

Kwargs get_concrete_args(const Module& model, const std::vector<std::string>& input_names) {
  const std::vector<std::string> all = model.argument_names();
  for (const std::string& name : input_names)
    if (std::ranges::find(all, name) == all.end())
      throw UserError("The model does not have input(s) named: " + join(input_names, ", ") +
                      ", expected a subset of the following: " + join(all, ", "));
  Kwargs out;
  for (size_t i = 0; i < all.size(); ++i) {
    if (std::ranges::find(input_names, all[i]) != input_names.end()) continue;
    const std::optional<Value> value = default_of(model, all, i);
    if (!value)
      throw UserError("the argument " + all[i] + " of " + model.class_name() + " has no default; name it among the inputs");
    out.emplace_back(all[i], *value);
  }
  return out;
}

std::vector<std::string> supported_model_class_names(const std::vector<std::string>& tasks) {
  std::vector<std::string> out;
  for (const auto& architecture : model_registry().architectures())
    for (const ModelClass& one : architecture->classes) {
      const auto wanted = [&](const std::string& task) {
        return tasks.empty() || std::ranges::find(tasks, task) != tasks.end();
      };
      if (std::ranges::any_of(one.tasks, wanted)) out.push_back(one.name);
    }
  std::ranges::sort(out);
  return out;
}

bool is_model_supported(const PretrainedModel& model) {
  return model_registry().find_class(without_peft(model).class_name()) != nullptr;
}

void check_if_model_is_supported(const PretrainedModel& model) {
  if (is_model_supported(model)) return;
  throw UserError("Model " + model.class_name() +
                  " is not supported yet (disable_check traces it all the same), supported models: " +
                  join(supported_model_class_names(), ", "));
}

std::shared_ptr<TracedModel> symbolic_trace(PretrainedModel& model,
                                            const std::optional<std::vector<std::string>>& input_names,
                                            const SymbolicTraceOptions& options, std::source_location where) {
  const std::vector<std::string> names = input_names.value_or(model.dummy_input_names());
  HFTraceInputs inputs;
  inputs.concrete_args = get_concrete_args(model, names);
  inputs.dummy_inputs = options.dummy_inputs;
  inputs.complete_concrete_args_with_inputs_not_in_dummy_inputs = false;
  if (!options.disable_check) check_if_model_is_supported(model);

  const bool has_cache = std::ranges::find(names, std::string(arg::past_key_values.name)) != names.end();
  if (has_cache && !model.config().flag("use_cache"))
    warn(
        "symbolic_trace: past_key_values is one of the inputs, but use_cache is false in the model's configuration: the "
        "graph "
        "takes keys and values and gives none back");
  if (!has_cache)  // the models inside a model have configurations of their own
    for (Module* module : model.modules())
      if (auto* part = dynamic_cast<PretrainedModel*>(module); part && part->config().flag("use_cache")) {
        if (part == &model)
          warn(
              "symbolic_trace: past_key_values is not one of the inputs, but use_cache is true in the model's "
              "configuration; it "
              "is switched off");
        part->config().set("use_cache", false);
      }

  const std::unique_ptr<HFTracer> tracer = options.tracer ? options.tracer() : std::make_unique<HFTracer>();
  std::vector<std::string> before;
  for (const auto& slot : model.module_slots()) before.push_back(slot->name);
  const GradModeScope no_grad(false);
  Graph graph = tracer->trace(model, inputs, where);
  auto traced = std::make_shared<TracedModel>(model, std::move(graph), model.config(), model.class_name());
  // What the trace put into the model is the graph's now.
  std::vector<std::string> inserted;
  for (const auto& slot : model.module_slots())
    if (std::ranges::find(before, slot->name) == before.end()) inserted.push_back(slot->name);
  for (const std::string& name : inserted) model.delete_attribute(name);
  return traced;
}

}  // namespace calque
