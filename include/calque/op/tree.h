// The pytree: a Value taken apart into its leaves and a TreeSpec that says how to put it together again, as
// torch.utils._pytree does it. Lists, tuples, dicts and structures are nodes; everything else, None included, is a
// leaf. A TreeSpec is immutable and cheap to copy; it holds no leaves. Its JSON text is PyTorch's, byte for byte.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/base/list_ref.h"
#include "calque/op/value.h"

namespace calque {

// One step from a node to a child: `[0]`, `['a']` or `.field`.
struct TreeKey {
  enum class Kind : uint8_t { index, mapping, attribute };
  Kind kind = Kind::index;
  Value key;  // an integer, the mapping's key, the attribute's name
  std::string str() const;
  bool operator==(const TreeKey& other) const { return kind == other.kind && key.equals(other.key); }
};
using KeyPath = std::vector<TreeKey>;
std::string keystr(const KeyPath& path);                       // "[0]['a'].field"
const Value& key_get(const Value& tree, const KeyPath& path);  // UserError when there is nothing there

class TreeSpec {
 public:
  enum class Kind : uint8_t { leaf, tuple, list, dict, ordered_dict, structure };
  // Nested deeper than this, a tree is refused: walking it must not exhaust the stack.
  static constexpr size_t max_depth = 500;

  TreeSpec() = default;  // a leaf
  static TreeSpec tuple(std::vector<TreeSpec> children);
  static TreeSpec list(std::vector<TreeSpec> children);
  static TreeSpec dict(Values keys, std::vector<TreeSpec> children, bool ordered = false);
  // `context` is the JSON text that stands for the context in PyTorch's file, `fields` the children's names where
  // known.
  static TreeSpec structure(std::string type, std::string context, std::vector<std::string> fields,
                            std::vector<TreeSpec> children);

  Kind kind() const;
  bool is_leaf() const { return node_ == nullptr; }
  size_t num_leaves() const;
  size_t num_nodes() const;
  size_t num_children() const { return children().size(); }
  const std::vector<TreeSpec>& children() const;
  std::string_view type() const;                   // "builtins.tuple", ...; empty for a leaf
  const std::string& context() const;              // of a structure; empty otherwise
  const std::vector<std::string>& fields() const;  // of a structure; may be empty
  const Values& dict_keys() const;                 // of a dict
  std::vector<TreeKey> keys() const;               // one per child
  std::vector<KeyPath> paths() const;              // one per leaf

  // Types, contexts, keys in their order, children. Field names do not count: PyTorch's file has them elsewhere.
  bool operator==(const TreeSpec& other) const;
  std::string str() const;  // as PyTorch prints a TreeSpec

  Value unflatten(ListRef<Value> leaves) const;
  // The subtrees of `tree` that stand where this spec has leaves. Dicts may differ in kind and order, not in keys;
  // anything else that differs is a UserError that names the place.
  Values flatten_up_to(const Value& tree) const;

 private:
  struct Node;
  explicit TreeSpec(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  static TreeSpec make(Node node);
  std::shared_ptr<const Node> node_;
};

using LeafPredicate = std::function<bool(const Value&)>;  // true: a leaf whatever it is

struct FlatTree {
  Values leaves;
  TreeSpec spec;
};
struct FlatTreeWithPaths {
  std::vector<std::pair<KeyPath, Value>> leaves;
  TreeSpec spec;
};

// A StructValue with an empty context flattens as transformers' ModelOutput does: fields that are None are no children,
// and the context lists the names of the others. With a context, every item is a child and the context is kept as it
// is.
FlatTree tree_flatten(const Value& tree, const LeafPredicate& is_leaf = {});
FlatTreeWithPaths tree_flatten_with_path(const Value& tree, const LeafPredicate& is_leaf = {});
Value tree_unflatten(ListRef<Value> leaves, const TreeSpec& spec);
Values tree_leaves(const Value& tree, const LeafPredicate& is_leaf = {});
TreeSpec tree_structure(const Value& tree, const LeafPredicate& is_leaf = {});

Value tree_map(const std::function<Value(const Value&)>& fn, const Value& tree, const LeafPredicate& is_leaf = {});
// fn(leaf of `tree`, what `other` has in its place). `other` has the structure of `tree`, at least down to these leaves.
Value tree_map(const std::function<Value(const Value&, const Value&)>& fn, const Value& tree, const Value& other,
               const LeafPredicate& is_leaf = {});
Value tree_map_with_path(const std::function<Value(const KeyPath&, const Value&)>& fn, const Value& tree,
                         const LeafPredicate& is_leaf = {});
// Tensors are mapped, other leaves stay.
Value tree_map_tensors(const std::function<Value(const Tensor&)>& fn, const Value& tree);

// The leaves of `tree` repeated so that there is one for each leaf of `spec`; nothing when `tree` is not a prefix of
// it.
std::optional<Values> broadcast_to_and_flatten(const Value& tree, const TreeSpec& spec, const LeafPredicate& is_leaf = {});

// ---- PyTorch's text form ------------------------------------------------------------------------------------------
// Field names by serialised type name: the file's `treespec_namedtuple_fields`, because the text itself has none.
using NamedTupleFields = std::map<std::string, std::vector<std::string>, std::less<>>;

std::string treespec_dumps(const TreeSpec& spec);
TreeSpec treespec_loads(std::string_view text, const NamedTupleFields& namedtuples = {});
NamedTupleFields namedtuple_fields(const TreeSpec& spec);

// A namedtuple, under the name it was registered with for serialisation.
Value namedtuple(const std::string& registered_name, std::vector<std::string> fields, Values items);
// The context of a type whose context PyTorch writes with json.dumps: `json` in quotes.
std::string quoted_context(std::string_view json);

}  // namespace calque
