// Tensors put back into the modules of an unflattened program, calls that are the same merged, and the order of modules.
#include <algorithm>
#include <functional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/op/aten/sorting.h"
#include "calque/op/aten/splitting.h"
#include "export/unflatten/unflatten_draft.h"

namespace calque::unflatten_detail {

namespace {

// Tensors with the same elements in the same place are one.
using TensorId = std::tuple<const void*, int64_t, std::vector<int64_t>, std::vector<int64_t>>;
TensorId id_of(const Tensor& t) {
  return {
      t.storage().get(), t.storage_offset(), {t.sizes().begin(), t.sizes().end()}, {t.strides().begin(), t.strides().end()}};
}

// Every module at the path, all calls of each included, made where there is none.
std::vector<Draft*> modules_at(Draft& root, const std::vector<std::string>& path) {
  std::vector<Draft*> at = {&root};
  for (const std::string& item : path) {
    std::vector<Draft*> next;
    for (Draft* d : at) {
      if (!d->find(item)) d->set(item, std::make_shared<Draft>());
      for (const auto& [name, child] : *d->children)
        if (before_at(name) == item && std::ranges::find(next, child.get()) == next.end()) next.push_back(child.get());
    }
    at = std::move(next);
  }
  return at;
}

void assign(Draft& root, const std::string& path, const Tensor& tensor, bool is_parameter, bool persistent) {
  std::vector<std::string> items = split(path);
  const std::string name = items.back();
  items.pop_back();
  for (Draft* d : modules_at(root, items)) d->set_state({name, tensor, is_parameter, persistent});
}

class Placer {
 public:
  Placer(const ExportedProgram& program, Draft& root) : program_(program), root_(root) {}

  void run() {
    const GraphSignature& signature = program_.graph_signature();
    for (const InputSpec& s : signature.input_specs) {
      switch (s.kind) {
        case InputKind::parameter: place(s, state(s.target), true, true); break;
        case InputKind::buffer:
          if (s.persistent.value_or(true))
            place(s, state(s.target), false, true);
          else
            place(s, constant(s.target), false, false);
          break;
        case InputKind::constant_tensor: place(s, constant(s.target), false, false); break;
        case InputKind::custom_object:
          throw UserError("unflatten: the custom object " + s.target + " cannot be an attribute of a module");
        case InputKind::user_input:
        case InputKind::token: break;
      }
    }
    // Names of the same tensors, and tensors that the program does not use.
    for (const auto& [name, tensor] : program_.state_dict())
      if (!placed_.contains(name)) {
        const auto known = by_id_.find(id_of(tensor));
        const bool is_parameter =
            known != by_id_.end() ? known->second.is_parameter : program_.parts().parameters.contains(name);
        assign(root_, name, known != by_id_.end() ? known->second.tensor : tensor, is_parameter, true);
        if (known != by_id_.end()) also(known->second, name);
      }
    for (const auto& [name, value] : program_.constants())
      if (value.is_tensor() && !placed_.contains(name)) {
        const auto known = by_id_.find(id_of(value.to_tensor()));
        assign(root_, name, known != by_id_.end() ? known->second.tensor : value.to_tensor().clone(), false, false);
        if (known != by_id_.end()) also(known->second, name);
      }
    for (auto& [id, entry] : by_id_)
      for (const std::string& input : entry.inputs) targets_[input] = entry.paths;
    sink(root_, {});
  }

 private:
  struct Placed {
    Tensor tensor;
    bool is_parameter;
    std::vector<std::string> inputs;  // of the program
    std::vector<std::string> paths;
  };

  const Tensor& state(const std::string& path) const {
    const Tensor* t = program_.state_dict().find(path);
    if (t == nullptr) throw UserError("unflatten: the program refers to " + path + ", which it does not hold");
    return *t;
  }
  const Tensor& constant(const std::string& path) const {
    const auto at = std::ranges::find(program_.constants(), path, [](const auto& c) { return c.first; });
    if (at == program_.constants().end() || !at->second.is_tensor())
      throw UserError("unflatten: the program refers to the constant " + path + ", which it does not hold");
    return at->second.to_tensor();
  }

  void place(const InputSpec& s, const Tensor& tensor, bool is_parameter, bool persistent) {
    auto [at, is_new] = by_id_.try_emplace(id_of(tensor));
    Placed& entry = at->second;
    // What running may write is the module's own.
    if (is_new) {
      entry.tensor = is_parameter ? tensor : tensor.detach().clone();
      entry.is_parameter = is_parameter;
    }
    entry.inputs.push_back(s.arg.name);
    entry.paths.push_back(s.target);
    assign(root_, s.target, entry.tensor, is_parameter, persistent);
    placed_.insert(s.target);
  }
  static void also(Placed& entry, const std::string& path) { entry.paths.push_back(path); }

  // Placeholders that stand for state become reads of it, in the module that the state belongs to or below it.
  void sink(Draft& module, const std::vector<std::string>& scope) {
    if (removed_.contains(&module)) return;
    for (const auto& [name, child] : Children(*module.children)) {
      std::vector<std::string> inner = scope;
      inner.push_back(name);
      sink(*child, inner);
    }
    Graph& graph = module.graph;
    if (graph.size() == 0) return;
    for (Node* call : graph.find_nodes(NodeKind::call_module)) {
      const DraftPtr callee = module.find_path(call->target().text());
      const auto gone = callee ? removed_.find(callee.get()) : removed_.end();
      if (gone == removed_.end()) continue;
      Values kept;
      for (const Value& a : call->args())
        if (!a.is_node() || !gone->second.contains(a.to_node()->name())) kept.push_back(a);
      call->set_args(std::move(kept));
    }
    std::unordered_set<std::string>& removed = removed_[&module];
    const std::vector<Node*> inputs = graph.placeholders();
    for (Node* input : inputs) {
      const auto paths = targets_.find(input->name());
      if (paths == targets_.end()) continue;
      const std::optional<std::string> own = path_in(paths->second, scope);
      if (!own) continue;  // another scope with the same module has it
      if (!input->users().empty()) {
        const auto after = graph.inserting_after(inputs.back());
        Node* read = graph.get_attr(*own);
        read->meta = input->meta;
        input->replace_all_uses_with(read);
      }
      removed.insert(input->name());
      erased_.push_back(input);
    }
    // Not before all are replaced: the last one marks the place.
    for (Node* input : erased_) graph.erase_node(input);
    erased_.clear();
  }

  static std::optional<std::string> path_in(const std::vector<std::string>& paths, const std::vector<std::string>& scope) {
    for (const std::string& path : paths) {
      const std::vector<std::string> items = split(path);
      const auto same = [](const std::string& a, const std::string& b) { return a == before_at(b); };
      if (items.size() > scope.size() &&
          std::equal(scope.begin(), scope.end(), items.begin(), [&](const auto& s, const auto& i) { return same(i, s); }))
        return join(std::span(items).subspan(scope.size()), ".");
    }
    return {};
  }

  const ExportedProgram& program_;
  Draft& root_;
  std::map<TensorId, Placed> by_id_;
  std::set<std::string> placed_;
  std::map<std::string, std::vector<std::string>> targets_;  // by input
  std::unordered_map<const Draft*, std::unordered_set<std::string>> removed_;
  std::vector<Node*> erased_;
};

// The graph with nodes by number: equal for graphs that do the same. What modules are called does not count.
std::string dump(const Graph& graph) {
  std::unordered_map<const Node*, size_t> number;
  std::string out;
  const NodeFn by_number = [&](Node* n) { return Value("%" + std::to_string(number.at(n))); };
  for (const Node* n : graph.nodes()) {
    out += std::string(name(n->kind())) + "[";
    if (n->kind() == NodeKind::call_function || n->kind() == NodeKind::get_attr) out += n->target().str();
    out += "]" + tuple(map_nodes(n->args(), by_number)).str();
    for (const auto& [key, value] : map_nodes(n->kwargs(), by_number)) out += key + "=" + value.str();
    out += "\n";
    number.emplace(n, number.size());
  }
  return out;
}

}  // namespace

void place_state(const ExportedProgram& program, Draft& root) { Placer(program, root).run(); }

std::map<std::string, std::string> merge_calls(const std::vector<std::vector<Call>>& all) {
  std::map<std::string, std::string> redirected;
  for (const std::vector<Call>& calls : all) {
    std::vector<std::string> dumps;
    for (size_t i = 0; i < calls.size(); ++i) {
      const Call& own = calls[i];
      dumps.push_back(dump(own.module->graph));
      const std::string own_name = call_name(own.path, own.index);
      const std::string target = accessor(own.parent_path, own_name);
      bool shared = false;
      for (size_t j = 0; j < i; ++j) {
        const Call& other = calls[j];
        if (dumps[j] != dumps[i]) continue;
        std::vector<std::string> items = split(target);
        const std::string name = items.back();
        items.pop_back();
        const DraftPtr holder = items.empty() ? own.parent : own.parent->find_path(join(items, "."));
        if (other.path == own.path) {
          // The call needs no name of its own.
          if (holder) holder->erase(name);
          const std::string other_name = call_name(other.path, other.index);
          own.node->set_target(accessor(own.parent_path, other_name));
          redirected[own_name] = other_name;
          break;
        }
        if (!shared) {
          // One module under two paths: the path says which was called, so it stays.
          if (holder) holder->set(name, other.module);
          shared = true;
        }
      }
    }
  }
  return redirected;
}

void dispatch_calls(const ExportedProgram& program, Draft& root, const std::map<std::string, std::string>& redirected) {
  std::map<std::string, std::map<size_t, DraftPtr>> called;  // by path, then by call
  for (const ModuleCallEntry& entry : program.parts().module_call_graph) {
    if (entry.fqn.empty() || !entry.signature) continue;
    const auto other = redirected.find(entry.fqn);
    const DraftPtr module = root.find_path(other == redirected.end() ? entry.fqn : other->second);
    const size_t at = entry.fqn.rfind('@');
    const size_t index = at == std::string::npos ? 0 : static_cast<size_t>(std::stoull("0" + entry.fqn.substr(at + 1)));
    if (module) called[std::string(before_at(entry.fqn))][index] = module;
  }
  for (const auto& [path, calls] : called) {
    if (calls.size() < 2) continue;
    std::vector<std::string> items = split(path);
    const std::string name = items.back();
    items.pop_back();
    const DraftPtr found = items.empty() ? nullptr : root.find_path(join(items, "."));
    Draft* holder = items.empty() ? &root : found.get();
    for (size_t i = 1; i <= calls.size(); ++i)
      if (holder != nullptr && !redirected.contains(call_name(path, i))) holder->erase(call_name(name, i));
    auto dispatcher = std::make_shared<Draft>();
    const DraftPtr& first = calls.begin()->second;
    dispatcher->children = first->children;
    dispatcher->state = first->state;
    dispatcher->type = first->type;
    for (const auto& [index, module] : calls) dispatcher->calls.push_back(module);
    if (holder != nullptr) holder->set(name, dispatcher);
  }
  // The calls are counted by the module itself, so they need no names.
  std::unordered_set<const Draft*> done;
  const std::function<void(const std::string&, Draft&)> unname = [&](const std::string& path, Draft& d) {
    const auto in_graph = [&](Graph& graph) {
      for (Node* n : graph.find_nodes(NodeKind::call_module)) {
        const std::string target(before_at(n->target().text()));
        if (called.contains(dotted(path, target))) n->set_target(target);
      }
    };
    in_graph(d.graph);
    for (const DraftPtr& call : d.calls) in_graph(call->graph);
    if (!done.insert(&d).second) return;
    for (const auto& [name, child] : Children(*d.children)) unname(dotted(path, name), *child);
  };
  unname("", root);
}

void order_children(const ExportedProgram& program, DraftPtr root, const std::map<std::string, std::string>& redirected) {
  std::map<std::string, size_t> order;
  for (const ModuleCallEntry& entry : program.parts().module_call_graph)
    if (!redirected.contains(entry.fqn) && entry.fqn.find('@') == std::string::npos) order.emplace(entry.fqn, order.size());
  const std::function<void(const std::string&, Draft&)> add_names = [&](const std::string& path, Draft& d) {
    order.emplace(path, order.size());
    for (const auto& [name, child] : *d.children) add_names(dotted(path, name), *child);
  };
  add_names("", *root);
  // Modules without parameters that never ran.
  for (const ModuleCallEntry& entry : program.parts().module_call_graph)
    if (!entry.fqn.empty() && order.contains(entry.fqn) && !root->find_path(entry.fqn)) {
      Draft* at = root.get();
      for (const std::string& item : split(entry.fqn)) {
        if (!at->find(item)) at->set(item, std::make_shared<Draft>());
        at = at->find(item).get();
      }
    }
  const std::function<void(const std::string&, Draft&)> sort = [&](const std::string& prefix, Draft& d) {
    const auto place = [&](const std::pair<std::string, DraftPtr>& entry) {
      const std::string path = prefix + entry.first;
      if (const auto at = order.find(path); at != order.end()) return at->second;
      const auto base = order.find(std::string(before_at(path)));
      return base != order.end() ? base->second : order.size();
    };
    std::ranges::stable_sort(*d.children, {}, place);
    for (const auto& [name, child] : Children(*d.children)) sort(std::string(before_at(prefix + name)) + ".", *child);
  };
  sort("", *root);
}

}  // namespace calque::unflatten_detail
