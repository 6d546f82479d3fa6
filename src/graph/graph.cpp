#include "calque/graph/graph.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "calque/base/error.h"
#include "calque/op/mode.h"

namespace calque {
namespace {

// "f32[s0, 3]" for a tensor, the expression for a symbolic number.
std::string shape_text(const Value& v) {
  if (v.kind() == Value::Kind::integer) return "Sym(" + v.to_sym_int().str() + ")";
  if (!v.is_tensor()) return "";
  const Tensor& t = v.to_tensor();
  std::string d(name(t.dtype()));
  static constexpr std::pair<std::string_view, std::string_view> shorter[] = {{"float", "f"}, {"bfloat", "bf"}, {"uint", "u"}, {"int", "i"}, {"complex", "c"}, {"bool", "b8"}};
  for (const auto& [from, to] : shorter)
    if (d.starts_with(from)) {
      d = std::string(to) + d.substr(from.size());
      break;
    }
  return d + str(t.sym_sizes());
}

}  // namespace

std::string NodeArg::str() const {
  struct Printer {
    std::string operator()(const Value& value) const { return value.str(); }
    std::string operator()(Node* node) const { return "%" + node->name; }
    std::string operator()(const std::vector<NodeArg>& items) const {
      std::string s = "[";
      for (size_t i = 0; i < items.size(); ++i) s += (i ? ", " : "") + items[i].str();
      return s + "]";
    }
  };
  return std::visit(Printer{}, v);
}

std::string Node::str() const {
  if (kind == NodeKind::output) return "return " + (args.empty() ? std::string("None") : args[0].str());
  std::string s = "%" + name;
  if (const std::string shape = shape_text(val); !shape.empty()) s += " : " + shape;
  s += " = " + (kind == NodeKind::placeholder ? "placeholder" : kind == NodeKind::get_attr ? "get_attr[" + target + "]" : target);
  if (kind != NodeKind::call_function) return s;
  s += "(";
  for (size_t i = 0; i < args.size(); ++i) s += (i ? ", " : "") + args[i].str();
  for (size_t i = 0; i < kwargs.size(); ++i) s += (i || !args.empty() ? ", " : "") + kwargs[i].first + "=" + kwargs[i].second.str();
  return s + ")";
}

// FX's rule: the wanted name, or with _1, _2, ... when it is taken.
std::string Graph::unique_name(std::string base) {
  for (char& c : base)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') c = '_';
  if (names_.insert(base).second) return base;
  for (int i = 1;; ++i) {
    std::string candidate = base + "_" + std::to_string(i);
    if (names_.insert(candidate).second) return candidate;
  }
}

Node* Graph::add(NodeKind kind, std::string target, std::string name) {
  std::unique_ptr<Node> node(new Node);
  node->kind = kind;
  node->target = std::move(target);
  node->name = unique_name(std::move(name));
  nodes_.push_back(std::move(node));
  return nodes_.back().get();
}

Node* Graph::placeholder(std::string name) { return add(NodeKind::placeholder, name, name); }
Node* Graph::get_attr(std::string target) { return add(NodeKind::get_attr, target, target); }

Node* Graph::call_function(const Operator& op, std::vector<NodeArg> args, std::string name) {
  Node* n = add(NodeKind::call_function, op.schema().target_name(), name.empty() ? op.schema().name : std::move(name));
  n->op = &op;
  n->args = std::move(args);
  return n;
}

Node* Graph::call_function(std::string target, std::vector<NodeArg> args, std::string name) {
  Node* n = add(NodeKind::call_function, std::move(target), std::move(name));
  n->args = std::move(args);
  return n;
}

Node* Graph::output(NodeArg result) {
  Node* n = add(NodeKind::output, "output", "output");
  n->args.push_back(std::move(result));
  return n;
}

std::vector<Node*> Graph::placeholders() const {
  std::vector<Node*> out;
  for (const auto& n : nodes_)
    if (n->kind == NodeKind::placeholder) out.push_back(n.get());
  return out;
}

std::string Graph::str() const {
  std::string s;
  for (const auto& n : nodes_) s += n->str() + "\n";
  return s;
}

namespace {

template <class F>
void each_node(const NodeArg& arg, F&& f) {
  if (const auto* node = std::get_if<Node*>(&arg.v)) f(*node);
  else if (const auto* items = std::get_if<std::vector<NodeArg>>(&arg.v))
    for (const NodeArg& item : *items) each_node(item, f);
}
template <class F>
void each_input(const Node& n, F&& f) {
  for (const NodeArg& a : n.args) each_node(a, f);
  for (const auto& [name, a] : n.kwargs) each_node(a, f);
}

}  // namespace

void Graph::lint() const {
  std::unordered_set<const Node*> defined;
  size_t outputs = 0;
  for (const auto& n : nodes_) {
    each_input(*n, [&](const Node* used) {
      if (!defined.contains(used)) throw UserError("graph: node %" + n->name + " uses %" + used->name + " before it is defined");
    });
    defined.insert(n.get());
    outputs += n->kind == NodeKind::output ? 1 : 0;
  }
  if (outputs != 1 || nodes_.back()->kind != NodeKind::output) throw UserError("graph: expected one output node at the end, found " + std::to_string(outputs));
}

Interpreter::Interpreter(const Graph& graph) : graph_(graph) {
  graph.lint();
  std::string missing;
  for (const auto& n : graph.nodes())
    if (n->kind == NodeKind::call_function && !n->op && !n->target.starts_with("operator.")) missing += "\n  %" + n->name + ": " + n->target;
  if (!missing.empty()) throw UserError(ErrorKind::unsupported_operator, "this graph uses operators that Calque does not have:" + missing);
  for (const auto& n : graph.nodes()) slot_.emplace(n.get(), slot_.size());
  // The last step that reads a value frees it.
  frees_.resize(slot_.size());
  std::unordered_set<const Node*> seen;
  for (size_t i = frees_.size(); i-- > 0;)
    each_input(*graph.nodes()[i], [&](const Node* used) {
      if (seen.insert(used).second) frees_[i].push_back(slot_.at(used));
    });
}

namespace {

// Python's operator.* on numbers; getitem picks from a tuple or list.
Value python_operator(const Node& n, const Values& args) {
  const std::string_view name = std::string_view(n.target).substr(std::string_view("operator.").size());
  if (name == "getitem") {
    const Values& items = args.at(0).to_items();
    const int64_t i = args.at(1).to_int();
    const auto size = static_cast<int64_t>(items.size());
    if (i < -size || i >= size) throw UserError("%" + n.name + ": index " + std::to_string(i) + " is out of range for " + std::to_string(size) + " results");
    return items[static_cast<size_t>(i < 0 ? i + size : i)];
  }
  const SymInt a = args.at(0).to_sym_int();
  const SymInt b = args.size() > 1 ? args[1].to_sym_int() : SymInt(0);
  if (name == "add") return a + b;
  if (name == "sub") return a - b;
  if (name == "mul") return a * b;
  if (name == "floordiv") return floor_div(a, b);
  if (name == "mod") return a % b;
  if (name == "neg") return -a;
  if (name == "eq") return a == b;
  if (name == "ne") return a != b;
  if (name == "lt") return a < b;
  if (name == "le") return a <= b;
  if (name == "gt") return a > b;
  if (name == "ge") return a >= b;
  throw UserError(ErrorKind::unsupported_operator, "%" + n.name + ": " + n.target + " is not supported");
}

}  // namespace

Value Interpreter::run(const Values& inputs) const {
  if (inputs.size() != graph_.placeholders().size())
    throw UserError("graph: expected " + std::to_string(graph_.placeholders().size()) + " inputs, found " + std::to_string(inputs.size()));
  std::vector<Value> values(slot_.size());
  const auto resolve = [&](const auto& self, const NodeArg& a) -> Value {
    if (const auto* v = std::get_if<Value>(&a.v)) return *v;
    if (const auto* n = std::get_if<Node*>(&a.v)) return values[slot_.at(*n)];
    Values items;
    for (const NodeArg& item : std::get<std::vector<NodeArg>>(a.v)) items.push_back(self(self, item));
    return list(std::move(items));
  };
  size_t next_input = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const Node& n = *graph_.nodes()[i];
    switch (n.kind) {
      case NodeKind::placeholder: values[i] = inputs[next_input++]; break;
      case NodeKind::get_attr: throw UserError("%" + n.name + ": attribute " + n.target + " is not given");
      case NodeKind::call_function: {
        Values args;
        for (const NodeArg& a : n.args) args.push_back(resolve(resolve, a));
        std::vector<std::pair<std::string, Value>> kwargs;
        for (const auto& [name, a] : n.kwargs) kwargs.emplace_back(name, resolve(resolve, a));
        try {
          values[i] = n.op ? call(*n.op, std::move(args), std::move(kwargs)) : python_operator(n, args);
        } catch (const UserError& e) {
          throw UserError(e.kind(), std::string(e.what()) + "\n  while running " + n.str());
        }
        break;
      }
      case NodeKind::output: return resolve(resolve, n.args.at(0));
    }
    for (const size_t slot : frees_[i]) values[slot] = Value();
  }
  throw InternalError("a graph without output passed lint");
}

}  // namespace calque
