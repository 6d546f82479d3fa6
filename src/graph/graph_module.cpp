#include "calque/graph/graph_module.h"

#include <algorithm>
#include <unordered_set>

#include "calque/base/error.h"
#include "calque/graph/interpreter.h"

namespace calque {
namespace {

// What stands between a GraphModule and the tensors and modules that it took from deeper down.
class Container : public Module {
 public:
  Container() = default;
  std::string type_name() const override { return "torch.nn.modules.module.Module"; }

 protected:
  Container(const Container&) = default;
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new Container(*this)); }
};

std::pair<std::string_view, std::string_view> split_last(std::string_view path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return {{}, path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

const TensorSlot* tensor_slot(const Module& module, std::string_view name) {
  for (const auto* slots : {&module.parameter_slots(), &module.buffer_slots(), &module.constant_slots()})
    for (const auto& slot : *slots)
      if (slot->name == name) return slot.get();
  return nullptr;
}

std::shared_ptr<Module> child_module_of(const Module& module, std::string_view name) {
  for (const auto& slot : module.module_slots())
    if (slot->name == name) return slot->module;
  return nullptr;
}

bool refers(const Node& n) { return n.kind() == NodeKind::get_attr || n.kind() == NodeKind::call_module; }

// All lines but the first; blank ones become empty.
std::string indented(const std::string& text, size_t by) {
  std::string out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (begin != 0) out += "\n";
    if (begin == 0)
      out += line;
    else if (line.find_first_not_of(" \t") != std::string::npos)
      out += std::string(by, ' ') + line;
    begin = end + 1;
  }
  return out;
}

}  // namespace

// ---- making -----------------------------------------------------------------------------------------------------------

GraphModule::GraphModule(const Module& root, Graph graph, std::string class_name)
    : graph_(std::move(graph)), class_name_(std::move(class_name)) {
  train(root.training());
  for (const Node* n : graph_.nodes())
    if (refers(*n)) copy_attribute(root, n->target().text());
  graph_.set_owner(this);
}

GraphModule::GraphModule(const Attributes& attributes, Graph graph, std::string class_name)
    : graph_(std::move(graph)), class_name_(std::move(class_name)) {
  // Parents first: what lies inside a module that is given is there already.
  std::vector<const std::pair<std::string, Attribute>*> needed;
  std::unordered_set<std::string> seen;
  for (const Node* n : graph_.nodes()) {
    if (!refers(*n) || !seen.insert(n->target().text()).second) continue;
    const std::string& path = n->target().text();
    const auto at = std::find_if(attributes.begin(), attributes.end(), [&](const auto& a) { return a.first == path; });
    if (at == attributes.end())
      throw UserError("Node " + n->name() + " referenced target " + path +
                      " but that target was not provided among the attributes");
    needed.push_back(&*at);
  }
  std::stable_sort(needed.begin(), needed.end(), [](const auto* a, const auto* b) {
    return std::count(a->first.begin(), a->first.end(), '.') < std::count(b->first.begin(), b->first.end(), '.');
  });
  for (const auto* a : needed) set_attribute(a->first, a->second);
  graph_.set_owner(this);
}

GraphModule::GraphModule(const GraphModule& other)
    : Module(other), graph_(other.graph_.copy()), class_name_(other.class_name_) {
  graph_.set_owner(this);
}

std::shared_ptr<Module> GraphModule::copy_self() const { return std::shared_ptr<Module>(new GraphModule(*this)); }

void GraphModule::set_graph(Graph graph) {
  graph_ = std::move(graph);
  graph_.set_owner(this);
}

void GraphModule::set_attribute(std::string_view path, const Attribute& attribute) {
  const auto [prefix, name] = split_last(path);
  Module* at = this;
  for (std::string_view rest = prefix; !rest.empty();) {
    const std::string item(rest.substr(0, rest.find('.')));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    if (tensor_slot(*at, item)) throw UserError("set_attribute: " + std::string(path) + " leads through the tensor " + item);
    std::shared_ptr<Module> next = child_module_of(*at, item);
    if (!next) {
      next = std::make_shared<Container>();
      at->register_module(item, next);
    }
    at = next.get();
  }
  if (attribute.module)
    at->register_module(std::string(name), attribute.module);
  else if (attribute.is_parameter)
    at->register_parameter(std::string(name), attribute.tensor,
                           attribute.tensor.defined() && attribute.tensor.requires_grad());
  else if (attribute.is_constant)
    at->register_constant(std::string(name), attribute.tensor);
  else
    at->register_buffer(std::string(name), attribute.tensor, attribute.persistent);
}

void GraphModule::copy_attribute(const Module& root, const std::string& path) {
  const auto [prefix, name] = split_last(path);
  const Module* from = &root;
  const Module* to = this;
  for (std::string_view rest = prefix; !rest.empty();) {
    const std::string_view item = rest.substr(0, rest.find('.'));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const Module* next = child_module_of(*from, item).get();
    if (!next)
      throw UserError("the graph refers to " + path + ", but " + root.class_name() + " has no module at " +
                      std::string(item));
    if (to) {
      const Module* there = child_module_of(*to, item).get();
      if (there == next) return;  // a parent was taken whole, with all that is in it
      to = there;
    }
    from = next;
  }
  if (const TensorSlot* slot = tensor_slot(*from, name)) {
    if (slot->is_parameter)
      set_attribute(path, Attribute(slot->tensor, true));
    else if (slot->is_constant)
      set_attribute(path, Attribute::constant(slot->tensor));
    else
      set_attribute(path, Attribute(slot->tensor));
  } else if (std::shared_ptr<Module> child = child_module_of(*from, name)) {
    set_attribute(path, Attribute(std::move(child)));
  } else {
    throw UserError("the graph refers to " + path + ", but " + root.class_name() +
                    " has no parameter, buffer or module of that name");
  }
}

// ---- running ----------------------------------------------------------------------------------------------------------

std::vector<std::string> GraphModule::argument_names() const {
  if (graph_.pytree_info()) return graph_.pytree_info()->orig_args;
  std::vector<std::string> names;
  for (const Node* n : graph_.placeholders()) names.push_back(n->target().text());
  return names;
}

Value GraphModule::forward_values(const Values& args, const Kwargs& kwargs) {
  const std::vector<std::string> names = argument_names();
  Values inputs = args;
  // Keywords take the place of the placeholder that they name; between them defaults are needed.
  const std::vector<Node*> placeholders = graph_.placeholders();
  for (const auto& [key, value] : kwargs) {
    const auto at = std::find(names.begin(), names.end(), key);
    if (at == names.end()) throw UserError(class_name_ + ".forward() got an unexpected keyword argument '" + key + "'");
    const auto index = static_cast<size_t>(at - names.begin());
    if (index < args.size()) throw UserError(class_name_ + ".forward() got multiple values for argument '" + key + "'");
    while (inputs.size() <= index) {
      const bool has_default = !graph_.pytree_info() && !placeholders[inputs.size()]->args().empty();
      inputs.push_back(has_default ? placeholders[inputs.size()]->args()[0] : Value());
    }
    inputs[index] = value;
  }
  const PyTreeInfo* info = graph_.pytree_info().get();
  if (info) {
    const Values children = info->in_spec.flatten_up_to(tuple(inputs));
    inputs = children;
  }
  Value result = Interpreter(graph_, this).run(inputs);
  if (!info || !info->out_spec) return result;
  const bool is_sequence = result.kind() == Value::Kind::list || result.kind() == Value::Kind::tuple;
  return info->out_spec->unflatten(is_sequence ? result.to_items() : Values{result});
}

// ---- submodules -------------------------------------------------------------------------------------------------------

bool GraphModule::add_submodule(std::string_view path, std::shared_ptr<Module> module) {
  const Module* at = this;
  for (std::string_view rest = path; at && rest.find('.') != std::string_view::npos;) {
    const std::string_view item = rest.substr(0, rest.find('.'));
    rest.remove_prefix(item.size() + 1);
    if (tensor_slot(*at, item)) return false;
    at = child_module_of(*at, item).get();
  }
  set_attribute(path, Attribute(std::move(module)));
  return true;
}

bool GraphModule::remove_submodule(std::string_view path) {
  const auto [prefix, name] = split_last(path);
  Module* parent = find_submodule(prefix);
  if (!parent || !child_module_of(*parent, name)) return false;
  parent->delete_attribute(name);
  return true;
}

void GraphModule::delete_all_unused_submodules() {
  std::unordered_set<std::string> used;
  for (const Node* n : graph_.nodes()) {
    if (!refers(*n)) continue;
    const std::string& path = n->target().text();
    for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
      used.insert(path.substr(0, dot));
    used.insert(path);
    if (n->kind() != NodeKind::call_module) continue;
    if (Module* module = find_submodule(path))
      for (const auto& [name, inner] : module->named_modules(path)) used.insert(name);
  }
  std::vector<std::string> unused;
  for (const auto& [name, module] : named_modules())
    if (!name.empty() && !used.contains(name)) unused.push_back(name);
  for (const std::string& name : unused) remove_submodule(name);
}

bool GraphModule::has_attr(const std::string& path) const { return find_tensor(path) || find_submodule(path); }
bool GraphModule::has_module(const std::string& path) const { return find_submodule(path) != nullptr; }
bool GraphModule::module_is_impure(const std::string& path) const {
  return dynamic_cast<const HasSideEffects*>(&get_submodule(path)) != nullptr;
}

Value GraphModule::attr(const std::string& path) const {
  if (const Tensor* t = find_tensor(path)) return *t;
  if (find_submodule(path)) return module_value(path);
  throw UserError("Node referenced nonexistent target " + path);
}

Value GraphModule::call_module(const std::string& path, const Values& args, const Kwargs& kwargs) const {
  return get_submodule(path).call(args, kwargs);
}

Graph* GraphModule::subgraph(const std::string& path) const {
  auto* module = dynamic_cast<GraphModule*>(find_submodule(path));
  return module ? &module->graph_ : nullptr;
}

// ---- printing ---------------------------------------------------------------------------------------------------------

std::string GraphModule::str() const {
  return Module::str() + "\n" + code() + "\n# To see more debug info, please use `graph_module.print_readable()`";
}

namespace {

std::string readable(const GraphModule& module, const std::string& name, CodeOptions options) {
  options.verbose = true;
  std::string code = python_code(module.graph(), "self", options);
  code.erase(0, code.find_first_not_of('\n'));
  code = indented("class " + name + "(torch.nn.Module):\n" + code, 4);
  options.expanded_def = false;
  std::string submodules;
  for (const auto& [child_name, child] : module.named_children())
    if (const auto* graph_module = dynamic_cast<const GraphModule*>(child))
      submodules += "\n" + readable(*graph_module, child_name, options);
  return code + indented(submodules, 4);
}

}  // namespace

std::string GraphModule::print_readable(const CodeOptions& options) const { return readable(*this, class_name_, options); }

}  // namespace calque
