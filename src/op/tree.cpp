#include "calque/op/tree.h"

#include <algorithm>
#include <unordered_map>

#include "calque/base/error.h"
#include "tree_json.h"

namespace calque {

namespace {

std::string place(const KeyPath& path) { return path.empty() ? "the root" : keystr(path); }

void check_depth(size_t depth) {
  if (depth > TreeSpec::max_depth)
    throw UserError("tree: nested deeper than " + std::to_string(TreeSpec::max_depth) + " levels");
}

TreeKey index_key(size_t i) { return {TreeKey::Kind::index, Value(i)}; }

// The children of a node, in the order in which they flatten.
Values children_of(const Value& node) {
  if (!node.is_container()) throw InternalError("tree: a leaf has no children");
  if (node.is_sequence()) return node.to_items();
  Values out;
  if (node.kind() == Value::Kind::dict) {
    for (const auto& [key, value] : node.to_dict().items) out.push_back(value);
    return out;
  }
  const StructValue& s = node.to_struct();
  for (const Value& item : s.items)
    if (!s.context.empty() || !item.is_none()) out.push_back(item);
  return out;
}

TreeSpec spec_of(const Value& node, std::vector<TreeSpec> children) {
  if (!node.is_container()) throw InternalError("tree: a leaf has no children");
  if (node.kind() == Value::Kind::list) return TreeSpec::list(std::move(children));
  if (node.kind() == Value::Kind::tuple) return TreeSpec::tuple(std::move(children));
  if (node.kind() == Value::Kind::dict) {
    Values keys;
    for (const auto& [key, value] : node.to_dict().items) keys.push_back(key);
    return TreeSpec::dict(std::move(keys), std::move(children), node.to_dict().ordered);
  }
  const StructValue& s = node.to_struct();
  if (!s.context.empty()) return TreeSpec::structure(s.type, s.context, s.fields, std::move(children));
  if (s.fields.size() != s.items.size())
    throw UserError("tree_flatten: " + s.type + " has " + std::to_string(s.fields.size()) + " field names for " +
                    std::to_string(s.items.size()) + " items");
  std::vector<std::string> present;
  for (size_t i = 0; i < s.items.size(); ++i)
    if (!s.items[i].is_none()) present.push_back(s.fields[i]);
  std::string context = tree_json::name_list_context(present);
  return TreeSpec::structure(s.type, std::move(context), std::move(present), std::move(children));
}

TreeSpec flatten_into(const Value& node, const LeafPredicate& is_leaf, Values& leaves, size_t depth) {
  if (!node.is_container() || (is_leaf && is_leaf(node))) {
    leaves.push_back(node);
    return {};
  }
  check_depth(depth + 1);
  std::vector<TreeSpec> specs;
  for (const Value& child : children_of(node)) specs.push_back(flatten_into(child, is_leaf, leaves, depth + 1));
  return spec_of(node, std::move(specs));
}

bool is_dict_like(const Value& v) {
  return v.kind() == Value::Kind::dict ||
         (v.kind() == Value::Kind::structure && v.to_struct().type == tree_json::default_dict_type);
}
bool is_dict_like(const TreeSpec& s) {
  return s.kind() == TreeSpec::Kind::dict || s.kind() == TreeSpec::Kind::ordered_dict ||
         (s.kind() == TreeSpec::Kind::structure && s.type() == tree_json::default_dict_type);
}

std::vector<std::pair<Value, Value>> dict_entries(const Value& v) {
  if (v.kind() == Value::Kind::dict) return v.to_dict().items;
  const StructValue& s = v.to_struct();
  std::vector<std::pair<Value, Value>> out;
  const std::vector<TreeKey> keys = tree_json::structure_keys(s.type, s.context, s.fields, s.items.size());
  for (size_t i = 0; i < keys.size(); ++i) out.emplace_back(keys[i].key, s.items[i]);
  return out;
}

std::string describe(const TreeSpec& s) {
  return std::string(s.type()) + " of " + std::to_string(s.num_children()) +
         (s.num_children() == 1 ? " child" : " children");
}
std::string describe(const Value& v) {
  if (!v.is_container()) return std::string(Value::kind_name(v.kind()));
  return describe(spec_of(v, std::vector<TreeSpec>(children_of(v).size())));
}

// Finds keys among many. Those that are looked for mostly stand in the same order; only for others is there a table.
class KeyTable {
 public:
  explicit KeyTable(std::vector<const Value*> keys) : keys_(std::move(keys)) {}
  // The place of a key that is expected at `guess`; nothing when there is none.
  std::optional<size_t> find(const Value& key, size_t guess) {
    if (guess < keys_.size() && keys_[guess]->equals(key)) return guess;
    if (places_.empty())
      for (size_t i = 0; i < keys_.size(); ++i) places_.emplace(name(*keys_[i]), i);  // of equal ones the first
    const auto found = places_.find(name(key));
    if (found == places_.end()) return std::nullopt;
    return found->second;
  }

 private:
  // Equal for equal keys alone: what Python prints differs where they do, but for tensors.
  static std::string name(const Value& key) { return std::string(Value::kind_name(key.kind())) + " " + key.str(); }
  std::vector<const Value*> keys_;
  std::unordered_map<std::string, size_t> places_;
};

Values children_matching(const TreeSpec& spec, const Value& node, const KeyPath& path) {
  const auto refuse = [&](const std::string& detail) {
    throw UserError(
        tree_json::cut("tree: at " + place(path) + ": expected " + describe(spec) + ", found " + describe(node) + detail));
  };
  if (is_dict_like(spec) && is_dict_like(node)) {
    const std::vector<std::pair<Value, Value>> entries = dict_entries(node);
    Values out;
    std::string missing;
    const std::vector<TreeKey> expected = spec.keys();
    std::vector<const Value*> wanted, given;
    for (const TreeKey& key : expected) wanted.push_back(&key.key);
    for (const auto& entry : entries) given.push_back(&entry.first);
    KeyTable among_given(given), among_wanted(wanted);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (const auto found = among_given.find(*wanted[i], i))
        out.push_back(entries[*found].second);
      else
        missing += (missing.empty() ? "" : ", ") + wanted[i]->str();
    }
    std::string extra;
    for (size_t i = 0; i < given.size(); ++i)
      if (!among_wanted.find(*given[i], i)) extra += (extra.empty() ? "" : ", ") + given[i]->str();
    if (!missing.empty() || !extra.empty())
      refuse((missing.empty() ? "" : "; missing keys: " + missing) + (extra.empty() ? "" : "; extra keys: " + extra));
    return out;
  }
  if (!node.is_container()) refuse("");
  Values out = children_of(node);
  const TreeSpec found = spec_of(node, std::vector<TreeSpec>(out.size()));
  if (found.kind() != spec.kind() || found.type() != spec.type() || out.size() != spec.num_children()) refuse("");
  // A deque's maximal length may differ, as in PyTorch.
  if (found.context() != spec.context() && spec.type() != tree_json::deque_type)
    refuse("; expected context " + spec.context() + ", found " + found.context());
  return out;
}

void flatten_up_to_into(const TreeSpec& spec, const Value& node, KeyPath& path, Values& out) {
  if (spec.is_leaf()) {
    out.push_back(node);
    return;
  }
  const Values children = children_matching(spec, node, path);
  const std::vector<TreeKey> keys = spec.keys();
  for (size_t i = 0; i < children.size(); ++i) {
    path.push_back(keys[i]);
    flatten_up_to_into(spec.children()[i], children[i], path, out);
    path.pop_back();
  }
}

void collect_paths(const TreeSpec& spec, KeyPath& path, std::vector<KeyPath>& out) {
  if (spec.is_leaf()) {
    out.push_back(path);
    return;
  }
  const std::vector<TreeKey> keys = spec.keys();
  for (size_t i = 0; i < keys.size(); ++i) {
    path.push_back(keys[i]);
    collect_paths(spec.children()[i], path, out);
    path.pop_back();
  }
}

void print(const TreeSpec& spec, size_t indent, std::string& out) {
  if (spec.is_leaf()) {
    out += '*';
    return;
  }
  const std::string_view type = spec.type();
  std::string context = "None";
  if (spec.kind() == TreeSpec::Kind::dict || spec.kind() == TreeSpec::Kind::ordered_dict)
    context = list(spec.dict_keys()).str();
  else if (spec.kind() == TreeSpec::Kind::structure)
    context = tree_json::context_repr(type, spec.context());
  out += "TreeSpec(" + std::string(type.substr(type.rfind('.') + 1)) + ", " + context + ", [";
  for (size_t i = 0; i < spec.num_children(); ++i) {
    if (i != 0) out += ",\n" + std::string(indent + 2, ' ');
    print(spec.children()[i], indent + 2, out);
  }
  out += "])";
}

}  // namespace

// ---- keys ---------------------------------------------------------------------------------------------------------

std::string TreeKey::str() const { return kind == Kind::attribute ? "." + key.to_string() : "[" + key.str() + "]"; }

std::string keystr(const KeyPath& path) {
  std::string out;
  for (const TreeKey& key : path) out += key.str();
  return out;
}

const Value& key_get(const Value& tree, const KeyPath& path) {
  const Value* at = &tree;
  for (size_t step = 0; step < path.size(); ++step) {
    const Value* next = nullptr;
    if (at->is_sequence()) {
      const Values& items = at->to_items();
      if (path[step].kind == TreeKey::Kind::index) {
        const int64_t i = path[step].key.to_int();
        if (i >= 0 && static_cast<size_t>(i) < items.size()) next = &items[static_cast<size_t>(i)];
      }
    } else if (at->kind() == Value::Kind::dict) {
      for (const auto& [key, value] : at->to_dict().items)
        if (path[step].kind == TreeKey::Kind::mapping && key.equals(path[step].key)) next = &value;
    } else if (at->kind() == Value::Kind::structure) {
      const StructValue& s = at->to_struct();
      std::vector<TreeKey> keys;
      if (s.context.empty()) {
        for (const std::string& field : s.fields) keys.push_back({TreeKey::Kind::mapping, field});
      } else {
        keys = tree_json::structure_keys(s.type, s.context, s.fields, s.items.size());
      }
      for (size_t i = 0; i < std::min(keys.size(), s.items.size()); ++i)
        if (keys[i] == path[step]) next = &s.items[i];
    }
    if (next == nullptr) {
      const KeyPath before(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(step));
      throw UserError("tree: " + place(before) + " is " + describe(*at) + " and has no " + path[step].str());
    }
    at = next;
  }
  return *at;
}

// ---- TreeSpec -----------------------------------------------------------------------------------------------------

struct TreeSpec::Node {
  Kind kind;
  std::string type;
  std::string context;
  std::vector<std::string> fields;
  Values keys;
  std::vector<TreeSpec> children;
  size_t num_leaves = 0;
  size_t num_nodes = 1;
  size_t depth = 1;
};

TreeSpec TreeSpec::make(Node node) {
  for (const TreeSpec& child : node.children) {
    node.num_leaves += child.num_leaves();
    node.num_nodes += child.num_nodes();
    if (!child.is_leaf()) node.depth = std::max(node.depth, child.node_->depth + 1);
  }
  check_depth(node.depth);
  return TreeSpec(std::make_shared<const Node>(std::move(node)));
}

TreeSpec TreeSpec::tuple(std::vector<TreeSpec> children) {
  return make({Kind::tuple, std::string(tree_json::tuple_type), "", {}, {}, std::move(children)});
}

TreeSpec TreeSpec::list(std::vector<TreeSpec> children) {
  return make({Kind::list, std::string(tree_json::list_type), "", {}, {}, std::move(children)});
}

TreeSpec TreeSpec::dict(Values keys, std::vector<TreeSpec> children, bool ordered) {
  if (keys.size() != children.size())
    throw UserError("TreeSpec::dict: " + std::to_string(keys.size()) + " keys for " + std::to_string(children.size()) +
                    " children");
  return make({ordered ? Kind::ordered_dict : Kind::dict,
               std::string(ordered ? tree_json::ordered_dict_type : tree_json::dict_type),
               "",
               {},
               std::move(keys),
               std::move(children)});
}

TreeSpec TreeSpec::structure(std::string type, std::string context, std::vector<std::string> fields,
                             std::vector<TreeSpec> children) {
  if (type.empty()) throw UserError("TreeSpec::structure: the type has no name");
  if (context.empty()) context = tree_json::name_list_context(fields);
  return make({Kind::structure, std::move(type), std::move(context), std::move(fields), {}, std::move(children)});
}

TreeSpec::Kind TreeSpec::kind() const { return is_leaf() ? Kind::leaf : node_->kind; }
size_t TreeSpec::num_leaves() const { return is_leaf() ? 1 : node_->num_leaves; }
size_t TreeSpec::num_nodes() const { return is_leaf() ? 1 : node_->num_nodes; }
std::string_view TreeSpec::type() const { return is_leaf() ? std::string_view() : node_->type; }

const std::vector<TreeSpec>& TreeSpec::children() const {
  static const std::vector<TreeSpec> none;
  return is_leaf() ? none : node_->children;
}
const std::string& TreeSpec::context() const {
  static const std::string none;
  return is_leaf() ? none : node_->context;
}
const std::vector<std::string>& TreeSpec::fields() const {
  static const std::vector<std::string> none;
  return is_leaf() ? none : node_->fields;
}
const Values& TreeSpec::dict_keys() const {
  static const Values none;
  return is_leaf() ? none : node_->keys;
}

std::vector<TreeKey> TreeSpec::keys() const {
  std::vector<TreeKey> out;
  switch (kind()) {
    case Kind::leaf: break;
    case Kind::tuple:
    case Kind::list:
      for (size_t i = 0; i < num_children(); ++i) out.push_back(index_key(i));
      break;
    case Kind::dict:
    case Kind::ordered_dict:
      for (const Value& key : node_->keys) out.push_back({TreeKey::Kind::mapping, key});
      break;
    case Kind::structure: return tree_json::structure_keys(node_->type, node_->context, node_->fields, num_children());
  }
  return out;
}

std::vector<KeyPath> TreeSpec::paths() const {
  std::vector<KeyPath> out;
  KeyPath path;
  collect_paths(*this, path, out);
  return out;
}

bool TreeSpec::operator==(const TreeSpec& other) const {
  if (node_ == other.node_) return true;
  if (is_leaf() || other.is_leaf()) return false;
  const Node& a = *node_;
  const Node& b = *other.node_;
  const auto same_key = [](const Value& x, const Value& y) { return x.equals(y); };
  return a.kind == b.kind && a.num_nodes == b.num_nodes && a.type == b.type && a.context == b.context &&
         std::equal(a.keys.begin(), a.keys.end(), b.keys.begin(), b.keys.end(), same_key) && a.children == b.children;
}

std::string TreeSpec::str() const {
  std::string out;
  print(*this, 0, out);
  return out;
}

Value TreeSpec::unflatten(ListRef<Value> leaves) const {
  if (leaves.size() != num_leaves())
    throw UserError(tree_json::cut("tree_unflatten: expected " + std::to_string(num_leaves()) + " leaves, found " +
                                   std::to_string(leaves.size()) + " (" + str() + ")"));
  if (is_leaf()) return leaves[0];
  Values items;
  items.reserve(num_children());
  const Value* next = leaves.data();
  for (const TreeSpec& child : node_->children) {
    items.push_back(child.unflatten(ListRef<Value>(next, child.num_leaves())));
    next += child.num_leaves();
  }
  if (kind() == Kind::tuple) return calque::tuple(std::move(items));
  if (kind() == Kind::list) return calque::list(std::move(items));
  if (kind() == Kind::structure) return StructValue{node_->type, node_->context, node_->fields, std::move(items)};
  DictValue out;
  out.ordered = kind() == Kind::ordered_dict;
  for (size_t i = 0; i < items.size(); ++i) out.items.emplace_back(node_->keys[i], std::move(items[i]));
  return out;
}

Values TreeSpec::flatten_up_to(const Value& tree) const {
  Values out;
  KeyPath path;
  flatten_up_to_into(*this, tree, path, out);
  return out;
}

// ---- functions over trees -----------------------------------------------------------------------------------------

FlatTree tree_flatten(const Value& tree, const LeafPredicate& is_leaf) {
  FlatTree out;
  out.spec = flatten_into(tree, is_leaf, out.leaves, 0);
  return out;
}

FlatTreeWithPaths tree_flatten_with_path(const Value& tree, const LeafPredicate& is_leaf) {
  FlatTree flat = tree_flatten(tree, is_leaf);
  std::vector<KeyPath> paths = flat.spec.paths();
  FlatTreeWithPaths out;
  for (size_t i = 0; i < paths.size(); ++i) out.leaves.emplace_back(std::move(paths[i]), std::move(flat.leaves[i]));
  out.spec = std::move(flat.spec);
  return out;
}

Value tree_unflatten(ListRef<Value> leaves, const TreeSpec& spec) { return spec.unflatten(leaves); }
Values tree_leaves(const Value& tree, const LeafPredicate& is_leaf) { return tree_flatten(tree, is_leaf).leaves; }
TreeSpec tree_structure(const Value& tree, const LeafPredicate& is_leaf) { return tree_flatten(tree, is_leaf).spec; }

Value tree_map(const std::function<Value(const Value&)>& fn, const Value& tree, const LeafPredicate& is_leaf) {
  FlatTree flat = tree_flatten(tree, is_leaf);
  for (Value& leaf : flat.leaves) leaf = fn(leaf);
  return flat.spec.unflatten(flat.leaves);
}

Value tree_map(const std::function<Value(const Value&, const Value&)>& fn, const Value& tree, const Value& other,
               const LeafPredicate& is_leaf) {
  FlatTree flat = tree_flatten(tree, is_leaf);
  const Values others = flat.spec.flatten_up_to(other);
  for (size_t i = 0; i < others.size(); ++i) flat.leaves[i] = fn(flat.leaves[i], others[i]);
  return flat.spec.unflatten(flat.leaves);
}

Value tree_map_with_path(const std::function<Value(const KeyPath&, const Value&)>& fn, const Value& tree,
                         const LeafPredicate& is_leaf) {
  FlatTree flat = tree_flatten(tree, is_leaf);
  const std::vector<KeyPath> paths = flat.spec.paths();
  for (size_t i = 0; i < paths.size(); ++i) flat.leaves[i] = fn(paths[i], flat.leaves[i]);
  return flat.spec.unflatten(flat.leaves);
}

Value tree_map_tensors(const std::function<Value(const Tensor&)>& fn, const Value& tree) {
  return tree_map([&](const Value& leaf) { return leaf.is_tensor() ? fn(leaf.to_tensor()) : leaf; }, tree);
}

std::optional<Values> broadcast_to_and_flatten(const Value& tree, const TreeSpec& spec, const LeafPredicate& is_leaf) {
  const Value full = spec.unflatten(Values(spec.num_leaves(), Value(0)));
  const FlatTree prefix = tree_flatten(tree, is_leaf);
  Values subtrees;
  try {
    subtrees = prefix.spec.flatten_up_to(full);
  } catch (const UserError&) {
    return std::nullopt;
  }
  Values out;
  for (size_t i = 0; i < subtrees.size(); ++i)
    out.insert(out.end(), tree_leaves(subtrees[i], is_leaf).size(), prefix.leaves[i]);
  return out;
}

Value namedtuple(const std::string& registered_name, std::vector<std::string> fields, Values items) {
  if (fields.size() != items.size())
    throw UserError("namedtuple " + registered_name + ": " + std::to_string(fields.size()) + " fields for " +
                    std::to_string(items.size()) + " items");
  return StructValue{std::string(tree_json::namedtuple_type), quoted_context(registered_name), std::move(fields),
                     std::move(items)};
}

}  // namespace calque
