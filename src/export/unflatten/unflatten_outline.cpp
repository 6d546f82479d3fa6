// The walk over the flat graph that makes a graph for each call of a module, by the modules that its nodes ran in.
#include <algorithm>
#include <span>
#include <unordered_map>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/graph/function.h"
#include "export/unflatten/unflatten_draft.h"
#include "op/well_known.h"

namespace calque::unflatten_detail {

namespace {

struct StackItem {
  std::string path;
  std::string type;
  size_t calls = 0;
  std::string key;  // of the module, whichever call it is
  bool operator==(const StackItem& other) const { return path == other.path && type == other.type && calls == other.calls; }
};
using Stack = std::vector<StackItem>;

constexpr std::string_view no_module_key = "_empty_nn_module_stack";

FunctionRef flatten_function(const TreeSpec& spec) {
  return std::make_shared<const Function>("torch.fx._pytree.tree_flatten_spec", [spec](const Values& args, const Kwargs&) {
    return list(spec.flatten_up_to(args.at(0)));
  });
}
FunctionRef unflatten_function(const TreeSpec& spec) {
  return std::make_shared<const Function>("torch.utils._pytree.tree_unflatten", [spec](const Values& args, const Kwargs&) {
    return spec.unflatten(args.at(0).to_items());
  });
}

bool starts_with(const Stack& stack, const Stack& prefix) {
  return stack.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), stack.begin());
}

class Frame;

// What all frames share.
struct Walk {
  const ExportedProgram& program;
  Graph& flat;
  std::vector<Node*> nodes;
  std::unordered_map<std::string, Node*> seen;                     // by name: nodes that have been copied
  std::vector<std::pair<std::string, std::vector<Call>>> calls;    // by module key, in order
  std::map<std::string, std::vector<std::string>> graphs;          // of higher-order operators, by the calling module
  std::map<std::string, DraftPtr> made;                            // modules on the way to one that was called
  std::map<std::string, const ModuleCallSignature*> signatures;    // by call name
  std::map<std::string, std::vector<std::string>> read_mutations;  // by path: nodes whose value is written back

  std::vector<Call>& calls_of(const std::string& key) {
    for (auto& [known, list] : calls)
      if (known == key) return list;
    return calls.emplace_back(key, std::vector<Call>{}).second;
  }
  const ModuleCallSignature* signature(const std::string& name) const {
    const auto at = signatures.find(name);
    return at == signatures.end() ? nullptr : at->second;
  }
};

class Frame {
 public:
  Frame(Walk& walk, Frame* parent, Stack stack, const std::string& key, DraftPtr module = nullptr)
      : walk_(walk), parent_(parent), stack_(std::move(stack)), path_(stack_.back().path), module_(std::move(module)) {
    child_path_ = call_name(path_, stack_.back().calls + 1);
    if (!module_) {
      const auto made = walk_.made.find(path_);
      module_ = made != walk_.made.end() ? made->second : std::make_shared<Draft>();
      module_->type = stack_.back().type;
    }
    if (parent_ == nullptr) return;
    const std::string target = accessor(parent_->path_, child_path_);
    attach(target);
    call_ = parent_->graph().call_module(target);
    std::vector<Call>& calls = walk_.calls_of(key);
    if (!calls.empty()) module_->children = calls[0].module->children;
    calls.push_back({parent_->path_, parent_->module_, call_, path_, stack_.back().calls + 1, module_});
    if (const ModuleCallSignature* s = walk_.signature(child_path_)) take_arguments(*s);
  }

  // The flat graph's placeholders, everything, its output.
  void run_outermost() {
    size_t i = 0;
    while (walk_.nodes[i]->kind() == NodeKind::placeholder) copy(walk_.nodes[i++]);
    run_from(i);
    copy(walk_.flat.output_node());
  }

  size_t run_from(size_t i) {
    while (i < walk_.nodes.size()) {
      Node* node = walk_.nodes[i];
      if (node->kind() == NodeKind::placeholder)
        throw UserError("unflatten: the placeholder " + node->name() + " comes after other nodes");
      const size_t depth = stack_.size();
      if (node->kind() == NodeKind::output) {
        if (depth > 1) finish();
        return i;
      }
      const Stack stack = stack_of(*node);
      if (!starts_with(stack, stack_)) {
        finish();
        return i;
      }
      if (stack.size() > depth) {
        Stack inner = stack_;
        inner.push_back(stack[depth]);
        i = Frame(walk_, this, std::move(inner), stack[depth].key).run_from(i);
        continue;
      }
      if (node->kind() == NodeKind::get_attr) walk_.graphs[child_path_].push_back(node->target().text());
      copy(node);
      ++i;
    }
    return i;
  }

 private:
  Graph& graph() { return module_->graph; }

  Stack stack_of(const Node& node) const {
    const auto& entries = node.meta.nn_module_stack;
    if (!entries || entries->empty() || (entries->size() == 1 && entries->front().key.starts_with(no_module_key)))
      return stack_;
    Stack out;
    for (const ModuleStackEntry& e : *entries) {
      const size_t at = e.key.rfind('@');
      StackItem item{e.path, e.path.empty() ? "" : e.type, 0, std::string(before_at(e.key))};
      if (at != std::string::npos) item.calls = static_cast<size_t>(std::stoull("0" + e.key.substr(at + 1)));
      // A path may carry the number of the call as well.
      item.path = std::string(before_at(item.path));
      out.push_back(std::move(item));
    }
    return out;
  }

  void attach(const std::string& target) {
    std::vector<std::string> items = split(target);
    Draft* at = parent_->module_.get();
    for (size_t i = 0; i + 1 < items.size(); ++i) {
      DraftPtr next = at->find(items[i]);
      if (!next) {
        const std::string inner = join(std::span(items).first(i + 1), ".");
        DraftPtr& made = walk_.made[parent_->path_.empty() ? inner : parent_->path_ + "." + inner];
        if (!made) made = std::make_shared<Draft>();
        next = made;
        at->set(items[i], next);
      }
      at = next.get();
    }
    at->set(items.back(), module_);
  }

  static bool is_constant(const ArgumentSpec& a) { return a.kind == ArgumentKind::constant; }
  Node* seen(const std::string& name) const {
    const auto at = walk_.seen.find(name);
    return at == walk_.seen.end() ? nullptr : at->second;
  }

  // The original's arguments: taken apart in here, put together by the caller.
  void take_arguments(const ModuleCallSignature& s) {
    const TreeSpec& args_spec = s.in_spec.children().at(0);
    const TreeSpec& kwargs_spec = s.in_spec.children().at(1);
    Values args;
    std::vector<std::pair<Value, Value>> kwargs;
    for (size_t i = 0; i < args_spec.num_children(); ++i)
      args.emplace_back(graph().placeholder("_positional_arg_" + std::to_string(i)));
    for (const Value& key : kwargs_spec.dict_keys()) kwargs.emplace_back(key, graph().placeholder(key.to_string()));
    const std::string text = treespec_dumps(s.in_spec);
    Node* flat = graph().call_function(flatten_function(s.in_spec), {tuple({tuple(args), dict(kwargs)}), text});
    for (size_t i = 0; i < s.inputs.size(); ++i) {
      const ArgumentSpec& a = s.inputs[i];
      Node* leaf = graph().call_function("operator.getitem", {flat, i}, {},
                                         is_constant(a) ? "_constant_" + std::to_string(i) : a.name);
      if (is_constant(a)) continue;
      if (Node* original = seen(a.name)) {
        leaf->meta = original->meta;
        placeholder_of_[original] = leaf;
      }
    }

    Graph& outer = parent_->graph();
    const auto before = outer.inserting_before(call_);
    Values leaves;
    for (const ArgumentSpec& a : s.inputs) {
      if (is_constant(a))
        leaves.push_back(a.value);
      else if (Node* original = seen(a.name))
        leaves.emplace_back(parent_->remapped(original));
      else
        leaves.emplace_back();
    }
    Node* inputs = outer.call_function(unflatten_function(s.in_spec), {list(leaves), text});
    Node* args_node = outer.call_function("operator.getitem", {inputs, 0});
    Node* kwargs_node = outer.call_function("operator.getitem", {inputs, 1});
    Values given;
    Kwargs named;
    for (size_t i = 0; i < args_spec.num_children(); ++i)
      given.emplace_back(outer.call_function("operator.getitem", {args_node, i}));
    for (const Value& key : kwargs_spec.dict_keys())
      named.emplace_back(key.to_string(), outer.call_function("operator.getitem", {kwargs_node, key}));
    call_->set_args_kwargs(std::move(given), std::move(named));
  }

  void copy(Node* node) {
    remember(node, graph().node_copy(*node, [&](Node* input) { return Value(remapped(input)); }));
    walk_.seen[node->name()] = node;
  }

  void remember(Node* original, Node* here) {
    if (map_.emplace(original, here).second)
      order_.push_back(original);
    else
      map_[original] = here;
  }

  // The node that stands for one of the flat graph in here.
  Node* remapped(Node* x) {
    if (const auto at = map_.find(x); at != map_.end()) return at->second;
    if (const auto at = placeholder_of_.find(x); at != placeholder_of_.end()) return at->second;
    const bool is_kept = walk_.signature(path_) != nullptr;
    if (x->kind() == NodeKind::placeholder || !is_kept) return as_input(x);
    // Sizes and what is computed of them are in the flat graph once, and cannot be passed to a module that takes what the
    // original took: they are computed again.
    if (is_cheap(*x)) {
      Node* again = graph().node_copy(*x, [&](Node* input) { return Value(remapped(input)); });
      remember(x, again);
      return again;
    }
    return read_mutation(x);
  }

  static bool is_cheap(const Node& n) {
    if (n.kind() != NodeKind::call_function) return false;
    if (const Operator* op = n.op()) return op->has_tag(Tag::repeatable);
    const std::string name = n.target().str();
    return name.starts_with("operator.") || name.starts_with("_operator.");
  }

  Node* as_input(Node* x) {
    if (parent_ == nullptr) throw InternalError("unflatten: the outermost module has every input");
    Node* placeholder;
    {
      const auto first = graph().inserting_before();
      placeholder = graph().placeholder(x->name());
    }
    placeholder->meta = x->meta;
    placeholder_of_[x] = placeholder;
    const auto before = parent_->graph().inserting_before(call_);
    call_->insert_arg(0, Value(parent_->remapped(x)));  // the first, as the placeholder is
    return placeholder;
  }

  // The value of a state between two writes, read by another module: it reads the state, and whoever made the value writes it.
  Node* read_mutation(Node* x) {
    if (x->kind() != NodeKind::call_function || x->args().empty() || !x->args()[0].is_node())
      throw UserError("unflatten: the module " + path_ + ", whose call signature is kept, reads " + x->name() +
                      ", which is not among its inputs");
    const bool writes = x->op() != nullptr && std::ranges::any_of(x->op()->schema().arguments, &SchemaArgument::is_written);
    const auto& stack = x->meta.nn_module_stack;
    if (!writes && stack && !stack->empty())
      walk_.read_mutations[std::string(before_at(stack->back().path))].push_back(x->name());
    return remapped(x->args()[0].to_node());
  }

  void finish() {
    walk_.made.erase(path_);
    if (parent_ == nullptr) return;
    std::vector<Node*> originals;
    Node* out = call_;
    Value result;
    const ModuleCallSignature* s = walk_.signature(child_path_);
    if (s != nullptr) {
      Values leaves;
      for (const ArgumentSpec& a : s->outputs) {
        Node* original = is_constant(a) ? nullptr : seen(a.name);
        originals.push_back(original);
        if (is_constant(a))
          leaves.push_back(a.value);
        else if (original == nullptr)
          leaves.emplace_back();
        else
          leaves.emplace_back(made_here(original));
      }
      const std::string text = treespec_dumps(s->out_spec);
      Node* tree = graph().call_function(unflatten_function(s->out_spec), {tuple(leaves), text});
      Values vals;
      for (Node* o : originals) vals.push_back(o == nullptr ? Value() : o->meta.val);
      tree->meta.val = s->out_spec.unflatten(vals);
      out = parent_->graph().call_function(flatten_function(s->out_spec), {call_, text});
      call_->meta.val = tree->meta.val;
      out->meta.val = list(std::move(vals));
      result = tree;
    } else {
      Values nodes, vals;
      for (Node* original : order_) {
        const auto users = original->users();
        if (std::none_of(users.begin(), users.end(), [&](Node* u) { return !walk_.seen.contains(u->name()); })) continue;
        originals.push_back(original);
        nodes.emplace_back(map_.at(original));
        vals.push_back(original->meta.val);
      }
      result = nodes.size() == 1 ? nodes[0] : list(nodes);
      call_->meta.val = nodes.size() == 1 ? vals[0] : list(std::move(vals));
    }
    graph().output(result);
    if (originals.size() == 1 && s == nullptr) {
      parent_->remember(originals[0], out);
      return;
    }
    for (size_t i = 0; i < originals.size(); ++i) {
      if (originals[i] == nullptr) continue;
      Node* item = parent_->graph().call_function("operator.getitem", {out, i});
      item->meta.val = originals[i]->meta.val;
      parent_->remember(originals[i], item);
    }
  }

  Node* made_here(Node* original) {
    if (const auto at = map_.find(original); at != map_.end()) return at->second;
    if (const auto at = placeholder_of_.find(original); at != placeholder_of_.end()) return at->second;
    throw UserError("unflatten: the module " + path_ + " gives " + original->name() + ", which is not computed in it");
  }

  Walk& walk_;
  Frame* parent_;
  Stack stack_;
  std::string path_;        // of the module
  std::string child_path_;  // of this call of it
  DraftPtr module_;
  Node* call_ = nullptr;  // in the parent's graph
  std::unordered_map<Node*, Node*> map_;
  std::vector<Node*> order_;  // of map_'s keys
  std::unordered_map<Node*, Node*> placeholder_of_;
};

// The modules of a stack must lie in each other; what comes after the first that does not is dropped.
void fix_stacks(Graph& graph) {
  std::map<const ModuleStack*, std::shared_ptr<const ModuleStack>> fixed;
  for (Node* n : graph.nodes()) {
    const auto& stack = n->meta.nn_module_stack;
    if (!stack || stack->size() < 2) continue;
    const auto [at, is_new] = fixed.emplace(stack.get(), stack);
    if (is_new) {
      size_t valid = 1;
      const auto inside = [&](size_t i) {
        const std::string_view outer = before_at((*stack)[i - 1].path), inner = before_at((*stack)[i].path);
        return outer.size() < inner.size() && inner.starts_with(outer);
      };
      while (valid < stack->size() && inside(valid)) ++valid;
      if (valid < stack->size()) {
        warn("unflatten: the modules of node " + n->name() + " do not lie in each other; the last " +
             std::to_string(stack->size() - valid) + " are left out");
        at->second =
            std::make_shared<const ModuleStack>(stack->begin(), stack->begin() + static_cast<std::ptrdiff_t>(valid));
      }
    }
    const std::shared_ptr<const ModuleStack> to = at->second;
    n->meta.nn_module_stack = to;
  }
}

// A functional program returns what it writes. Here it is written, and the outputs are the user's alone.
void write_in_place(const ExportedProgram& program, Graph& flat) {
  const GraphSignature& signature = program.graph_signature();
  std::map<std::string, std::string> input_of;  // by a buffer's path
  for (const InputSpec& s : signature.input_specs)
    if (s.kind == InputKind::buffer || s.kind == InputKind::parameter) input_of[s.target] = s.arg.name;
  Node* output = flat.output_node();
  const Values results = output->args().at(0).to_items();
  Values kept;
  for (size_t i = 0; i < results.size(); ++i) {
    const OutputSpec& s = signature.output_specs.at(i);
    std::string input;
    switch (s.kind) {
      case OutputKind::user_output:
      case OutputKind::loss_output: kept.push_back(results[i]); continue;
      case OutputKind::buffer_mutation:
      case OutputKind::parameter_mutation: input = input_of[s.target]; break;
      case OutputKind::user_input_mutation: input = s.target; break;
      case OutputKind::gradient_to_parameter:
      case OutputKind::gradient_to_user_input:
      case OutputKind::token:
        throw UserError("unflatten: the output " + s.arg.name + " is a gradient or a token, which is not supported");
    }
    Node* to = flat.find_node(input);
    if (to == nullptr) throw UserError("unflatten: the program writes " + s.target + ", which is not among its inputs");
    Node* value = results[i].to_node();
    const auto after = flat.inserting_after(value->kind() == NodeKind::placeholder ? flat.placeholders().back() : value);
    Node* copied = flat.call_function(ops().copy_, {to, value});
    copied->meta = value->meta;
    if (value->kind() != NodeKind::placeholder)
      value->replace_all_uses_with(copied, [&](Node* user) { return user != copied && user != output; });
  }
  output->set_args({tuple(std::move(kept))});
}

std::string root_type(const Graph& graph) {
  for (const Node* n : graph.nodes())
    if (n->meta.nn_module_stack)
      for (const ModuleStackEntry& e : *n->meta.nn_module_stack)
        if (e.path.empty()) return e.type;
  return "";
}

}  // namespace

Outlined outline(const ExportedProgram& program, Graph& flat) {
  for (const InputSpec& s : program.graph_signature().input_specs)
    if (s.kind == InputKind::token)
      throw UserError("unflatten: the program orders effects by tokens, which is not supported");
  flat.eliminate_dead_code();
  write_in_place(program, flat);
  fix_stacks(flat);
  Outlined out;
  out.root = std::make_shared<Draft>();
  out.root->type = root_type(flat);
  Walk walk{program, flat, flat.node_list(), {}, {}, {}, {}, {}, {}};
  for (const ModuleCallEntry& entry : program.parts().module_call_graph)
    if (entry.signature) walk.signatures[entry.fqn] = &*entry.signature;
  Frame(walk, nullptr, {StackItem{}}, "", out.root).run_outermost();

  // What other modules read of a state between two writes is written where it was made.
  for (auto& [key, calls] : walk.calls)
    for (Call& call : calls)
      for (const std::string& name : walk.read_mutations[call.path])
        if (Node* node = call.module->graph.find_node(name); node && !node->args().empty()) {
          const auto after = call.module->graph.inserting_after(node);
          Node* copied = call.module->graph.call_function(ops().copy_, {node->args().at(0), node});
          copied->meta = node->meta;
        }
  for (const auto& [path, names] : walk.graphs) {
    Draft* at = path.empty() ? out.root.get() : out.root->find_path(path).get();
    if (at == nullptr) continue;
    for (const std::string& name : names) {
      const bool known = std::ranges::any_of(at->graphs, [&](const auto& g) { return g.first == name; });
      if (!known) at->graphs.emplace_back(name, program.graph_module().get_submodule_ptr(name));
    }
  }
  for (auto& [key, calls] : walk.calls) out.calls.push_back(std::move(calls));
  return out;
}

}  // namespace calque::unflatten_detail
