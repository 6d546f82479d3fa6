// Names of a program's inputs.
#include <cctype>
#include <unordered_set>

#include "calque/base/error.h"
#include "export/capture/build.h"

namespace calque {
namespace {

const char* prefix_of(InputKind kind) {
  switch (kind) {
    case InputKind::user_input: return "";
    case InputKind::parameter: return "p_";
    case InputKind::buffer: return "b_";
    case InputKind::constant_tensor: return "c_";
    case InputKind::custom_object: return "obj_";
    case InputKind::token: return "token";
  }
  throw InternalError("an input of no kind");
}

std::string identifier(std::string text, bool lower) {
  for (char& c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (!(u < 0x80 && std::isalnum(u)))
      c = '_';
    else if (lower)
      c = static_cast<char>(std::tolower(u));
  }
  return text;
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// A path's keys, joined: x["foo"][0] is x_foo_0.
std::string name_of(const KeyPath& path) {
  std::string out;
  for (const TreeKey& key : path) {
    if (!out.empty()) out += "_";
    switch (key.kind) {
      case TreeKey::Kind::mapping:
        out += identifier(key.key.kind() == Value::Kind::string ? key.key.to_string() : key.key.str(), true);
        break;
      case TreeKey::Kind::index: out += std::to_string(key.key.to_int()); break;
      case TreeKey::Kind::attribute: out += lower_case(key.key.to_string()); break;
    }
  }
  return out;
}

std::string state_name(const InputSpec& spec) {
  if (spec.kind == InputKind::token) return prefix_of(spec.kind);
  std::string path = spec.target;
  for (const char* start : {"L__self___", "self_"})
    if (path.starts_with(start)) {
      path.erase(0, std::string_view(start).size());
      break;
    }
  return prefix_of(spec.kind) + identifier(std::move(path), true);
}

// PyTorch's way of telling names apart: the number behind a taken one goes on from the greatest seen.
class UniqueNames {
 public:
  // `is_input`: a number at the end belongs to the name.
  std::string make(const std::string& name, bool is_input) {
    std::string key = name;
    if (const size_t length = base_length(name); length != std::string::npos && !is_input) key = name.substr(0, length);
    std::string unique = used_.contains(name) ? key + "_" + std::to_string(greatest_[key] + 1) : name;
    remember(unique);
    return unique;
  }
  void remember(const std::string& name) {
    if (const size_t length = base_length(name); length != std::string::npos) {
      size_t end = length + 1;
      while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end]))) ++end;
      if (end - length <= 18) {
        int64_t& greatest = greatest_[name.substr(0, length)];
        greatest = std::max<int64_t>(greatest, std::stoll(name.substr(length + 1, end - length - 1)));
      }
    }
    used_.insert(name);
  }

 private:
  // The last "_<digit>" in the name; none when there is none. The rest of the name may follow the digits.
  static size_t base_length(const std::string& name) {
    for (size_t i = name.size(); i-- > 1;)
      if (name[i - 1] == '_' && std::isdigit(static_cast<unsigned char>(name[i]))) return i - 1;
    return std::string::npos;
  }

  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int64_t> greatest_;
};

// The graphs that a higher-order call runs, each with the nodes that are its inputs.
std::vector<std::pair<GraphModule*, Values>> subgraphs(const GraphModule& module, const Node& node) {
  const Function* f = node.target().function();
  if (!f || !f->name().starts_with("torch.ops.higher_order.")) return {};
  const auto graph = [&](const Value& v) {
    return v.is_node() ? dynamic_cast<GraphModule*>(module.find_submodule(v.to_node()->target().text())) : nullptr;
  };
  const Values& args = node.args();
  if (f->short_name() == "cond") {
    const Value &if_true = args[1], &if_false = args[2], &operands = args[3];
    return {{graph(if_true), operands.to_items()}, {graph(if_false), operands.to_items()}};
  }
  if (f->short_name() == "map_impl") {
    const Value &body = args[0], &rows = args[1], &whole = args[2];
    Values inputs = rows.to_items();
    inputs.insert(inputs.end(), whole.to_items().begin(), whole.to_items().end());
    return {{graph(body), std::move(inputs)}};
  }
  if (f->short_name() == "wrap_with_set_grad_enabled") {
    const Value& body = args[1];
    return {{graph(body), Values(args.begin() + 2, args.end())}};
  }
  return {};
}

void name_subgraphs(GraphModule& module) {
  for (const Node* n : module.graph().nodes()) {
    if (n->kind() != NodeKind::call_function) continue;
    for (const auto& [sub, inputs] : subgraphs(module, *n)) {
      if (!sub) continue;
      UniqueNames names;
      size_t i = 0;
      for (Node* inner : sub->graph().node_list()) {
        if (i < inputs.size() && inputs[i].is_node()) {
          const std::string& name = inputs[i].to_node()->name();
          names.remember(name);
          inner->set_name(name);
          inner->set_target(name);
        } else {
          inner->set_name(names.make(inner->name(), false));
        }
        ++i;
      }
      name_subgraphs(*sub);
    }
  }
}

}  // namespace

std::vector<std::string> argument_names(const ModuleCallSignature& signature) {
  const size_t positional = signature.in_spec.children().at(0).num_children();
  const Values& keys = signature.in_spec.children().at(1).dict_keys();
  if (const auto& given = signature.forward_arg_names; given && given->size() == positional + keys.size()) return *given;
  std::vector<std::string> names;
  for (size_t i = 0; i < positional; ++i) names.push_back("arg_" + std::to_string(i));
  for (const Value& key : keys) names.push_back(key.to_string());
  return names;
}

std::vector<KeyPath> user_input_paths(const ModuleCallSignature& signature) {
  const std::vector<std::string> names = argument_names(signature);
  const Values& keys = signature.in_spec.children().at(1).dict_keys();
  const size_t positional = signature.in_spec.children()[0].num_children();
  std::vector<KeyPath> out;
  for (const KeyPath& path : signature.in_spec.paths()) {
    size_t index = positional;
    if (path.at(0).key.to_int() == 0) {
      index = static_cast<size_t>(path.at(1).key.to_int());
    } else {
      while (!keys.at(index - positional).equals(path.at(1).key)) ++index;
    }
    KeyPath named{{TreeKey::Kind::mapping, Value(names.at(index))}};
    named.insert(named.end(), path.begin() + 2, path.end());
    out.push_back(std::move(named));
  }
  return out;
}

void name_placeholders(GraphModule& module, GraphSignature& signature, const std::vector<KeyPath>& user_inputs) {
  UniqueNames names;
  std::unordered_map<std::string, std::string> renamed;
  const std::vector<Node*> nodes = module.graph().node_list();
  std::unordered_map<const Node*, std::string> name_of_node;
  std::unordered_map<std::string, Node*> by_name;
  for (Node* n : nodes) by_name.emplace(n->name(), n);
  const auto give = [&](const std::string& old_name, std::string new_name) {
    name_of_node[by_name.at(old_name)] = new_name;
    renamed.emplace(old_name, std::move(new_name));
  };
  size_t user = 0;
  for (const InputSpec& spec : signature.input_specs)
    if (spec.kind == InputKind::user_input) give(spec.arg.name, names.make(name_of(user_inputs.at(user++)), true));
  for (const InputSpec& spec : signature.input_specs)
    if (spec.kind != InputKind::user_input) give(spec.arg.name, names.make(state_name(spec), true));
  for (Node* n : nodes)
    if (n->kind() != NodeKind::placeholder) give(n->name(), names.make(n->name(), false));

  for (Node* n : nodes) {
    n->set_name(name_of_node.at(n));
    if (n->kind() == NodeKind::placeholder) n->set_target(n->name());
  }
  name_subgraphs(module);
  for (InputSpec& spec : signature.input_specs) spec.arg.name = renamed.at(spec.arg.name);
  for (OutputSpec& spec : signature.output_specs) {
    if (const auto it = renamed.find(spec.arg.name); it != renamed.end()) spec.arg.name = it->second;
    if (spec.kind == OutputKind::user_input_mutation)
      if (const auto it = renamed.find(spec.target); it != renamed.end()) spec.target = it->second;
  }
}

}  // namespace calque
