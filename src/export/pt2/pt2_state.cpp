// State that a program writes gets memory of its own; what is only read stays where the file is mapped.
#include <cstring>
#include <unordered_set>

#include "export/pt2/pt2_format.h"

namespace calque::pt2 {
namespace {

// The input whose memory a value is, through views and operators that give back what they write; null for fresh memory.
const Node* memory_of(const Node* n) {
  while (n->kind() == NodeKind::call_function) {
    const Operator* op = n->op();
    const bool is_getitem = n->target().function() && n->target().function()->name() == "operator.getitem";
    const bool aliases = op && (op->has_tag(Tag::view) || op->has_tag(Tag::may_alias) || op->has_tag(Tag::in_place) ||
                                (!op->schema().returns.empty() && !op->schema().returns[0].alias.empty()));
    if ((!aliases && !is_getitem) || n->args().empty() || !n->args()[0].is_node()) return nullptr;
    n = n->args()[0].to_node();
  }
  return n->kind() == NodeKind::placeholder ? n : nullptr;
}

// The graph that a get_attr node reads; null for other nodes.
const Graph* graph_read_by(const Node& n) {
  const GraphOwner* owner = n.graph().owner();
  return n.kind() == NodeKind::get_attr && owner ? owner->subgraph(n.target().text()) : nullptr;
}

// The inputs of the graph that its calls write.
std::unordered_set<std::string> written_placeholders(const Graph& graph) {
  std::unordered_set<std::string> out;
  const auto add_memory = [&](const Node* written) {
    if (const Node* input = memory_of(written)) out.insert(input->name());
  };
  for (const Node* n : graph.nodes()) {
    // A graph that is called with a tensor may write it; which of its inputs that is, depends on the caller.
    for (size_t i = 0; i < n->num_input_nodes(); ++i)
      if (const Graph* called = graph_read_by(*n->input_node(i)); called && !written_placeholders(*called).empty())
        for (size_t k = 0; k < n->num_input_nodes(); ++k) add_memory(n->input_node(k));
    const Operator* op = n->op();
    if (!op) continue;
    const std::vector<SchemaArgument>& arguments = op->schema().arguments;
    for (size_t i = 0; i < arguments.size(); ++i) {
      // Normalisations update their running statistics without the schema saying so.
      if (!arguments[i].is_written() && arguments[i].name != "running_mean" && arguments[i].name != "running_var") continue;
      const Value* v = i < n->args().size() ? &n->args()[i] : n->find_kwarg(arguments[i].name);
      if (!v) continue;
      for_each_node(*v, add_memory);
    }
  }
  return out;
}

}  // namespace

std::unordered_set<std::string> written_inputs(const Graph& graph, const GraphSignature& signature) {
  std::unordered_set<std::string> out = written_placeholders(graph);
  std::unordered_set<std::string> targets;
  for (const OutputSpec& o : signature.output_specs)
    if (o.kind == OutputKind::buffer_mutation || o.kind == OutputKind::parameter_mutation) targets.insert(o.target);
  for (const InputSpec& i : signature.input_specs)
    if (i.kind != InputKind::user_input && targets.contains(i.target)) out.insert(i.arg.name);
  return out;
}

void own_written_state(ExportedProgram::Parts& parts) {
  const std::unordered_set<std::string> written = written_inputs(parts.graph_module->graph(), parts.signature);
  if (written.empty()) return;
  std::unordered_map<const Storage*, Ref<Storage>> copies;
  const auto find = [&](const std::string& name) -> const Tensor* {
    if (const Tensor* t = parts.state_dict.find(name)) return t;
    for (const auto& [key, value] : parts.constants)
      if (key == name && value.is_tensor()) return &value.to_tensor();
    return nullptr;
  };
  for (const InputSpec& spec : parts.signature.input_specs) {
    if (spec.kind == InputKind::user_input || !written.contains(spec.arg.name)) continue;
    const Tensor* t = find(spec.target);
    if (!t || t->is_fake() || copies.contains(t->storage().get())) continue;
    Ref<Storage> copy = Storage::allocate(t->storage()->nbytes());
    if (t->storage()->nbytes() > 0) std::memcpy(copy->data(), t->storage()->data(), t->storage()->nbytes());
    copies.emplace(t->storage().get(), std::move(copy));
  }
  // Tensors that shared a storage share its copy.
  const auto moved = [&](const Tensor& t) -> std::optional<Tensor> {
    const auto it = copies.find(t.storage().get());
    if (it == copies.end()) return std::nullopt;
    Tensor out = from_storage(it->second, t.dtype(), t.sizes(), t.strides(), t.storage_offset());
    if (t.requires_grad()) out.set_requires_grad();
    return out;
  };
  StateDict state;
  for (const auto& [name, t] : parts.state_dict) state.set(name, moved(t).value_or(t));
  state.versions = parts.state_dict.versions;
  parts.state_dict = std::move(state);
  for (auto& [name, value] : parts.constants)
    if (value.is_tensor())
      if (std::optional<Tensor> t = moved(value.to_tensor())) value = *t;
}

}  // namespace calque::pt2
