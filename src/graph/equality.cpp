#include "calque/graph/graph.h"
#include "calque/graph/text.h"

namespace calque {
namespace {

// Nodes are compared by their counterpart, everything else by value.
class Comparison {
 public:
  Comparison(const Graph& a, const Graph& b, bool compare_val)
      : a_(a), b_(b), compare_val_(compare_val), counterpart_(a.id_bound()) {}

  std::string first_difference() {
    if (a_.size() != b_.size())
      return "one graph has " + std::to_string(a_.size()) + " nodes, the other " + std::to_string(b_.size());
    const Node* b = b_.nodes().front();
    for (const Node* a : a_.nodes()) {
      if (!same(*a, *b)) return a->str() + "  differs from  " + b->str();
      counterpart_[a->id()] = b;
      b = b->next();
    }
    return {};
  }

 private:
  bool same(const Node& a, const Node& b) const {
    // A placeholder's target is the name of an argument.
    if (a.kind() != b.kind() || (a.kind() != NodeKind::placeholder && !(a.target() == b.target()))) return false;
    if (!same(a.args(), b.args()) || a.kwargs().size() != b.kwargs().size() || a.type() != b.type()) return false;
    for (size_t i = 0; i < a.kwargs().size(); ++i)
      if (a.kwargs()[i].first != b.kwargs()[i].first || !same(a.kwargs()[i].second, b.kwargs()[i].second)) return false;
    // What an output gives is what its arguments are.
    return !compare_val_ || a.kind() == NodeKind::output || val_text(a.meta.val) == val_text(b.meta.val);
  }
  bool same(const Values& a, const Values& b) const {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i)
      if (!same(a[i], b[i])) return false;
    return true;
  }
  bool same(const Value& a, const Value& b) const {
    if (a.kind() != b.kind()) return false;
    switch (a.kind()) {
      case Value::Kind::node: return &a.to_node()->graph() == &a_ && counterpart_[a.to_node()->id()] == b.to_node();
      case Value::Kind::list:
      case Value::Kind::tuple: return same(a.to_items(), b.to_items());
      case Value::Kind::slice:
        return same(a.to_slice().start, b.to_slice().start) && same(a.to_slice().stop, b.to_slice().stop) &&
               same(a.to_slice().step, b.to_slice().step);
      case Value::Kind::dict: {
        const DictValue& x = a.to_dict();
        const DictValue& y = b.to_dict();
        if (x.ordered != y.ordered || x.items.size() != y.items.size()) return false;
        for (size_t i = 0; i < x.items.size(); ++i)
          if (!same(x.items[i].first, y.items[i].first) || !same(x.items[i].second, y.items[i].second)) return false;
        return true;
      }
      case Value::Kind::structure: {
        const StructValue& x = a.to_struct();
        const StructValue& y = b.to_struct();
        return x.type == y.type && x.context == y.context && x.fields == y.fields && same(x.items, y.items);
      }
      case Value::Kind::tensor:
        return a.equals(b) || value_text(a) == value_text(b);  // bytes, for constants
      // Expressions of two environments are the same when they read the same.
      case Value::Kind::boolean:
      case Value::Kind::integer:
      case Value::Kind::floating:
        return a.equals(b) || (value_text(a).starts_with("Sym(") && value_text(a) == value_text(b));
      case Value::Kind::none:
      case Value::Kind::complex:
      case Value::Kind::string:
      case Value::Kind::dtype:
      case Value::Kind::device:
      case Value::Kind::layout:
      case Value::Kind::memory_format:
      case Value::Kind::generator: break;
    }
    return a.equals(b);
  }

  const Graph& a_;
  const Graph& b_;
  const bool compare_val_;
  std::vector<const Node*> counterpart_;
};

}  // namespace

bool same_graph(const Graph& a, const Graph& b, std::string* why, bool compare_val) {
  std::string difference = Comparison(a, b, compare_val).first_difference();
  const bool same = difference.empty();
  if (why) *why = std::move(difference);
  return same;
}

}  // namespace calque
