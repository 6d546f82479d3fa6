// How PyTorch prints nodes and graphs.
#include "calque/graph/graph.h"
#include "calque/graph/text.h"
#include "value_print.h"

namespace calque {
namespace {

// Nodes are %name inside lists, tuples, dicts and structures; elsewhere everything is Python's str().
std::string format_arg(const Value& value);

std::string format_items(const Values& items) {
  std::string s;
  for (size_t i = 0; i < items.size(); ++i) s += (i ? ", " : "") + format_arg(items[i]);
  return s;
}

std::string format_tuple(const Values& items) { return "(" + format_items(items) + (items.size() == 1 ? ",)" : ")"); }

std::string format_structure(const Value& value) {
  ValuePrinter print;
  print.node = [](const Node& n) { return "%" + n.name(); };
  return print(value);
}

std::string format_arg(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::node: return "%" + value.to_node()->name();
    case Value::Kind::list: return "[" + format_items(value.to_items()) + "]";
    case Value::Kind::tuple: return format_tuple(value.to_items());
    case Value::Kind::structure:
      if (value.to_struct().type == "collections.namedtuple") return format_tuple(value.to_struct().items);
      return format_structure(value);
    case Value::Kind::dict: {
      std::string s;
      for (const auto& [key, item] : value.to_dict().items)
        s += (s.empty() ? "" : ", ") + python_str(key) + ": " + format_arg(item);
      return "{" + s + "}";
    }
    case Value::Kind::none:
    case Value::Kind::boolean:
    case Value::Kind::integer:
    case Value::Kind::floating:
    case Value::Kind::complex:
    case Value::Kind::string:
    case Value::Kind::slice:
    case Value::Kind::tensor:
    case Value::Kind::dtype:
    case Value::Kind::device:
    case Value::Kind::layout:
    case Value::Kind::memory_format:
    case Value::Kind::generator: break;
  }
  return python_str(value);
}

std::string format_kwargs(const Kwargs& kwargs) {
  std::string s;
  for (const auto& [key, v] : kwargs) s += (s.empty() ? "" : ", ") + key + ": " + format_arg(v);
  return "{" + s + "}";
}

}  // namespace

std::string Node::format_node(bool include_tensor_metadata) const {
  if (kind_ == NodeKind::output) return "return " + (args_.empty() ? std::string("None") : python_str(args_[0]));
  std::string annotation = type_ ? *type_ + " " : "";
  const bool is_call = kind_ != NodeKind::placeholder && kind_ != NodeKind::get_attr;
  if (is_call && include_tensor_metadata && meta.val.is_tensor()) {
    const Tensor& t = meta.val.to_tensor();
    annotation = "Tensor \"" + std::string(dtype_abbreviation(t.dtype())) + calque::str(t.sym_sizes()) +
                 calque::str(t.sym_strides()) + t.device().str() + "\"";
  }
  std::string s = "%" + name_ + " : " + annotation + "[num_users=" + std::to_string(num_users_) +
                  "] = " + std::string(calque::name(kind_)) + "[target=" + target_.qualified_name() + "]";
  if (kind_ == NodeKind::placeholder) return args_.empty() ? s : s + "(default=" + python_str(args_[0]) + ")";
  if (!is_call) return s;
  return s + "(args = " + format_tuple(args_) + ", kwargs = " + format_kwargs(kwargs_) + ")";
}

std::string Graph::format_graph() const {
  std::string s = "graph():";
  for (const Node* n : nodes()) s += "\n    " + n->format_node();
  return s;
}

}  // namespace calque
