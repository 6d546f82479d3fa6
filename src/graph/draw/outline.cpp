#include "graph/draw/outline.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "calque/graph/text.h"
#include "graph/value_print.h"

namespace calque::draw {
namespace {

// What becomes of a node.
enum class Role : uint8_t { shown, left_out, weight, item, number, check };

bool is_number(const Value& v) {
  return v.kind() == Value::Kind::integer || v.kind() == Value::Kind::floating || v.kind() == Value::Kind::boolean;
}

struct Roles {
  std::vector<Role> role;            // by node id
  std::vector<const Node*> through;  // by node id: of an item its tuple, of a weight the placeholder or get_attr
  std::vector<std::string> view;     // by node id: of a weight what was done to it

  Roles(const Graph& graph, const DrawOptions& options)
      : role(graph.id_bound(), Role::shown), through(graph.id_bound()), view(graph.id_bound()) {
    for (const Node* n : graph.nodes()) role[n->id()] = role_of(*n, options);
  }
  Role operator()(const Node& n) const { return role[n.id()]; }

 private:
  Role role_of(const Node& n, const DrawOptions& options);
  bool is_folded_size(const Node& n) const;
};

Role Roles::role_of(const Node& n, const DrawOptions& options) {
  through[n.id()] = &n;
  if (n.kind() == NodeKind::get_attr) return options.include_get_attr ? Role::weight : Role::left_out;
  if (n.kind() == NodeKind::placeholder) {
    if (options.weights.contains(n.name())) return options.include_get_attr ? Role::weight : Role::left_out;
    return options.skip_unused_inputs && n.users().empty() ? Role::left_out : Role::shown;
  }
  if (n.kind() == NodeKind::output || n.num_input_nodes() == 0) return Role::shown;
  const Node& first = *n.input_node(0);
  const Operator* op = n.op();
  if (op && n.num_input_nodes() == 1 && (*this)(first) == Role::weight && first.meta.val.is_tensor() &&
      (op->has_tag(Tag::view) || op->has_tag(Tag::may_alias))) {  // a weight transposed is the weight
    through[n.id()] = through[first.id()];
    view[n.id()] =
        (view[first.id()].empty() ? "" : view[first.id()] + ".") + op->packet().substr(op->packet().find("::") + 2);
    return Role::weight;
  }
  const Function* function = n.target().function();
  if (n.kind() == NodeKind::call_function && function && function->name() == "operator.getitem" &&
      n.num_input_nodes() == 1 && ((*this)(first) == Role::shown || (*this)(first) == Role::item) &&
      (first.meta.val.kind() == Value::Kind::tuple || first.meta.val.kind() == Value::Kind::list)) {
    through[n.id()] = through[first.id()];
    return Role::item;
  }
  const auto is_size = [&] {  // what is computed from sizes, not from the values of tensors
    if (op && op->has_tag(Tag::data_dependent)) return false;
    for (size_t i = 0; i < n.num_input_nodes(); ++i) {
      const Node& in = *n.input_node(i);
      if (is_number(in.meta.val) && (*this)(in) == Role::shown && in.kind() != NodeKind::placeholder) return false;
    }
    return true;
  };
  if (n.kind() == NodeKind::call_function && is_number(n.meta.val) && is_size()) return Role::number;
  if (op && op->has_tag(Tag::side_effect) && n.users().empty()) return Role::check;
  return Role::shown;
}

// ---- modules --------------------------------------------------------------------------------------------------------------

using Stack = std::vector<const ModuleStackEntry*>;
constexpr size_t deepest = 64;  // what a file says is nested deeper is shown at this depth

Stack stack_of(const Node& n) {
  Stack out;
  if (n.meta.nn_module_stack && n.kind() != NodeKind::placeholder && n.kind() != NodeKind::output)
    for (const ModuleStackEntry& e : *n.meta.nn_module_stack)
      if (!e.path.empty() && out.size() < deepest) out.push_back(&e);
  return out;
}

size_t common(const Stack& a, const Stack& b) {
  size_t k = 0;
  while (k < a.size() && k < b.size() && a[k]->key == b[k]->key && a[k]->path == b[k]->path) ++k;
  return k;
}

struct Tree {
  const Node* node = nullptr;
  const ModuleStackEntry* module = nullptr;  // of a node: the innermost
  std::vector<Tree> children;
};

class Builder {
 public:
  Builder(const Graph& graph, const DrawOptions& options) : options_(options), roles_(graph, options) {
    out_.box_of.assign(graph.id_bound(), no_box);
    for (const Node* n : graph.nodes()) out_.nodes.push_back(n);
  }
  Outline build() {
    Tree root = tree();
    write(root, no_box);
    number_parts();
    fold();
    connect();
    count_parameters();
    find_alike();
    return std::move(out_);
  }

 private:
  Tree tree() const;
  void write(const Tree& tree, uint32_t parent);
  void number_parts();
  void fold();
  void connect();
  void count_parameters();
  void find_alike();
  const std::string& weight_path(const Node& n) const {
    const auto found = options_.weights.find(n.name());
    return found != options_.weights.end() ? found->second : n.target().text();
  }

  const DrawOptions& options_;
  Roles roles_;
  Outline out_;
};

// A module that holds one thing is that thing.
void join_single(Tree& tree) {
  for (Tree& child : tree.children) {
    join_single(child);
    if (child.node || child.children.size() != 1) continue;
    Tree only = std::move(child.children[0]);
    child = std::move(only);
  }
}

Tree Builder::tree() const {
  std::vector<const Node*> shown;
  std::vector<Stack> stacks;
  for (const Node* n : out_.nodes)
    if (roles_(*n) == Role::shown) {
      shown.push_back(n);
      stacks.push_back(stack_of(*n));
    }
  // A call that says nothing of its module stands between two that do.
  const auto says = [&](size_t k) { return shown[k]->meta.nn_module_stack != nullptr; };
  const auto is_call = [&](size_t k) {
    return shown[k]->kind() != NodeKind::placeholder && shown[k]->kind() != NodeKind::output;
  };
  std::vector<size_t> after(shown.size(), shown.size());  // of each: the next that says it
  for (size_t k = shown.size(); k-- > 1;) after[k - 1] = is_call(k) && says(k) ? k : after[k];
  size_t before = shown.size();
  for (size_t k = 0; k < shown.size(); ++k) {
    if (!is_call(k)) continue;
    if (!says(k) && before < shown.size() && after[k] < shown.size()) {
      stacks[k] = stacks[before];
      stacks[k].resize(common(stacks[before], stacks[after[k]]));
    }
    if (says(k) || !stacks[k].empty()) before = k;
  }
  Tree root;
  std::vector<Tree*> open = {&root};  // the last child of each is the only one that moves, and it is closed by then
  Stack now;
  for (size_t k = 0; k < shown.size(); ++k) {
    const size_t kept = common(now, stacks[k]);
    open.resize(kept + 1);
    for (size_t level = kept; level < stacks[k].size(); ++level) {
      open.back()->children.push_back({nullptr, stacks[k][level], {}});
      open.push_back(&open.back()->children.back());
    }
    now = stacks[k];
    open.back()->children.push_back({shown[k], now.empty() ? nullptr : now.back(), {}});
  }
  join_single(root);
  return root;
}

void Builder::write(const Tree& tree, uint32_t parent) {
  const auto at = static_cast<uint32_t>(out_.boxes.size());
  OutlineBox& box = out_.boxes.emplace_back();
  box.node = tree.node;
  box.parent = parent;
  if (tree.module) {
    box.path = tree.module->path;
    box.type = tree.module->type;
  }
  if (tree.node) out_.box_of[tree.node->id()] = at;
  for (const Tree& child : tree.children) {
    out_.boxes[at].children.push_back(static_cast<uint32_t>(out_.boxes.size()));
    write(child, at);
  }
  out_.boxes[at].end = static_cast<uint32_t>(out_.boxes.size());
  for (const uint32_t c : out_.boxes[at].children)
    out_.boxes[at].operators += out_.boxes[c].is_module() ? out_.boxes[c].operators
                                                          : out_.boxes[c].node->kind() != NodeKind::placeholder &&
                                                                out_.boxes[c].node->kind() != NodeKind::output;
}

void Builder::number_parts() {
  std::unordered_map<std::string, std::vector<uint32_t>> by_path;
  for (uint32_t b = 1; b < out_.boxes.size(); ++b)
    if (out_.boxes[b].is_module()) by_path[out_.boxes[b].path].push_back(b);
  for (const auto& [path, boxes] : by_path)
    for (uint32_t k = 0; k < boxes.size() && boxes.size() > 1; ++k) out_.boxes[boxes[k]].part = k + 1;
}

// Weights go to each box that takes them; what else is no box goes to the box before it in the graph.
void Builder::fold() {
  const Node* owner = nullptr;
  for (const Node* n : out_.nodes) {
    const Role role = roles_(*n);
    if (role == Role::shown) owner = n;
    if (role == Role::item) out_.box_of[n->id()] = out_.box_of[roles_.through[n->id()]->id()];
    if ((role == Role::number || role == Role::check) && owner) out_.box_of[n->id()] = out_.box_of[owner->id()];
    if (role == Role::number || role == Role::check || role == Role::item)
      if (const uint32_t b = out_.box_of[n->id()]; b != no_box) out_.boxes[b].folded.push_back(n);
  }
  for (const Node* n : out_.nodes) {
    if (roles_(*n) != Role::shown) continue;
    const uint32_t b = out_.box_of[n->id()];
    for (size_t i = 0; i < n->num_input_nodes(); ++i) {
      const Node& in = *n->input_node(i);
      if (roles_(in) != Role::weight) continue;
      const Node& source = *roles_.through[in.id()];
      out_.boxes[b].weights.push_back({&source, weight_path(source), roles_.view[in.id()], val_text(in.meta.val)});
      for (const Node* part : {&in, &source})
        if (out_.box_of[part->id()] == no_box) out_.box_of[part->id()] = b;
    }
  }
}

void Builder::connect() {
  out_.users.resize(out_.boxes.size());
  for (const Node* n : out_.nodes) {
    if (roles_(*n) != Role::shown) continue;
    const uint32_t user = out_.box_of[n->id()];
    for (size_t i = 0; i < n->num_input_nodes(); ++i) {
      const Node& in = *n->input_node(i);
      if (roles_(in) != Role::shown && roles_(in) != Role::item) continue;
      std::vector<uint32_t>& users = out_.users[out_.box_of[in.id()]];
      if (users.empty() || users.back() != user) users.push_back(user);
    }
  }
}

int64_t elements(const Value& val) {
  if (!val.is_tensor()) return 0;
  int64_t count = 1;
  for (const SymInt& size : val.to_tensor().sym_sizes()) {
    if (size.is_symbolic()) return 0;
    if (__builtin_mul_overflow(count, size.guard_int(), &count)) return 0;
  }
  return count;
}

void Builder::count_parameters() {
  std::set<std::pair<uint32_t, const Node*>> counted;
  for (const OutlineBox& box : out_.boxes)
    for (const FoldedWeight& w : box.weights)
      for (uint32_t m = box.parent; m != no_box; m = out_.boxes[m].parent)
        if (counted.emplace(m, w.node).second) out_.boxes[m].parameters += elements(w.node->meta.val);
}

// Modules of the same calls on the same sizes, connected alike inside.
void Builder::find_alike() {
  std::vector<std::string> text(out_.boxes.size());
  std::unordered_map<std::string, uint32_t> number;  // of a module's text
  std::vector<uint32_t> count(1);
  std::vector<uint32_t> numbers(out_.boxes.size());
  for (auto b = static_cast<uint32_t>(out_.boxes.size()); b-- > 0;) {
    const OutlineBox& box = out_.boxes[b];
    std::string& t = text[b];
    if (box.node) {
      const Node& n = *box.node;
      ValuePrinter print;
      print.node = [&](const Node& in) {
        const uint32_t other = out_.box_of[in.id()];
        if (roles_(in) == Role::weight) return "weight " + val_text(in.meta.val);
        if (roles_(in) == Role::number) return val_text(in.meta.val);
        return other != no_box && out_.boxes[other].parent == box.parent ? std::to_string(b - other)
                                                                         : std::string("outside");
      };
      t = n.target().str() + print.tuple(n.args());
      for (const auto& [key, v] : n.kwargs()) t += key + "=" + print(v);
      t += val_text(n.meta.val);
      continue;
    }
    for (const uint32_t c : box.children) {
      t += (out_.boxes[c].is_module() ? "#" + std::to_string(numbers[c]) : text[c]) + "\n";
      std::string().swap(text[c]);
    }
    numbers[b] = number.try_emplace(t, static_cast<uint32_t>(count.size())).first->second;
    if (numbers[b] == count.size()) count.push_back(0);
    ++count[numbers[b]];
  }
  std::unordered_map<uint32_t, uint32_t> names;  // in the order in which they are met
  for (uint32_t b = 0; b < out_.boxes.size(); ++b)
    if (out_.boxes[b].is_module() && count[numbers[b]] > 1)
      out_.boxes[b].kind = names.try_emplace(numbers[b], static_cast<uint32_t>(names.size() + 1)).first->second;
}

}  // namespace

uint32_t Outline::child_with(uint32_t module, uint32_t box) const {
  const std::vector<uint32_t>& children = boxes[module].children;
  return *(std::ranges::upper_bound(children, box) - 1);
}

Outline outline_of(const Graph& graph, const DrawOptions& options) { return Builder(graph, options).build(); }

}  // namespace calque::draw
