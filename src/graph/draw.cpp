#include "calque/graph/draw.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

#include "calque/graph/text.h"
#include "calque/sym/shape_env.h"
#include "value_print.h"

namespace calque {

// ---- the table --------------------------------------------------------------------------------------------------------

namespace {

std::string kwargs_text(const Kwargs& kwargs) {
  std::string s;
  for (const auto& [key, v] : kwargs) s += (s.empty() ? "'" : ", '") + key + "': " + ValuePrinter()(v);
  return "{" + s + "}";
}

// In characters, not bytes.
size_t width(std::string_view s) {
  return static_cast<size_t>(
      std::count_if(s.begin(), s.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; }));
}

}  // namespace

std::string tabular(const Graph& graph) {
  using Row = std::array<std::string, 5>;
  std::vector<Row> rows = {{"opcode", "name", "target", "args", "kwargs"}};
  for (const Node* n : graph.nodes())
    rows.push_back({std::string(name(n->kind())), n->name(), n->target().str(), ValuePrinter().tuple(n->args()),
                    kwargs_text(n->kwargs())});
  std::array<size_t, 5> widths{};
  for (const Row& row : rows)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]) + (&row == &rows[0] ? 2 : 0));
  Row line;
  for (size_t c = 0; c < line.size(); ++c) line[c] = std::string(widths[c], '-');
  rows.insert(rows.begin() + 1, line);
  std::string out;
  for (const Row& row : rows) {
    std::string text;
    for (size_t c = 0; c < row.size(); ++c) text += (c ? "  " : "") + row[c] + std::string(widths[c] - width(row[c]), ' ');
    text.resize(text.find_last_not_of(' ') + 1);
    out += (out.empty() ? "" : "\n") + text;
  }
  return out;
}

// ---- DOT --------------------------------------------------------------------------------------------------------------

namespace {

bool is_shown(const Node& n, const DrawOptions& options) {
  if (n.kind() == NodeKind::get_attr && !options.include_get_attr) return false;
  return !(options.skip_unused_inputs && n.kind() == NodeKind::placeholder && n.users().empty());
}

std::string_view color_of(const Node& n) {
  switch (n.kind()) {
    case NodeKind::placeholder: return "#dcecfb";
    case NodeKind::get_attr: return "#e4e4e4";
    case NodeKind::call_module: return "#fff6c8";
    case NodeKind::call_method: return "#e6f5dc";
    case NodeKind::call_function: return "#ffffff";
    case NodeKind::output: return "#cfe8ea";
  }
  return "#ffffff";
}

std::string dot_quoted(std::string_view s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::string to_dot(const Graph& graph, const DrawOptions& options) {
  std::string s = "digraph " + dot_quoted(options.name) +
                  " {\n  rankdir=TB;\n  node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", fontsize=10];\n";
  for (const Node* n : graph.nodes()) {
    if (!is_shown(*n, options)) continue;
    std::string label = n->name() + "\n" + (n->kind() == NodeKind::call_function ? "" : std::string(name(n->kind())) + " ") +
                        n->target().str();
    if (const std::string val = val_text(n->meta.val); !val.empty()) label += "\n" + val;
    s += "  " + dot_quoted(n->name()) + " [label=" + dot_quoted(label) + ", fillcolor=\"" + std::string(color_of(*n)) +
         "\"];\n";
  }
  for (const Node* n : graph.nodes())
    for (size_t i = 0; i < n->num_input_nodes(); ++i)
      if (is_shown(*n->input_node(i), options) && is_shown(*n, options))
        s += "  " + dot_quoted(n->input_node(i)->name()) + " -> " + dot_quoted(n->name()) + ";\n";
  return s + "}\n";
}

// ---- JSON -------------------------------------------------------------------------------------------------------------

namespace {

using json = nlohmann::ordered_json;

json to_json_value(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::none: return nullptr;
    case Value::Kind::node: return {{"node", v.to_node()->name()}};
    case Value::Kind::boolean:
      if (!v.to_sym_bool().is_symbolic()) return v.to_bool();
      return {{"sym", v.str()}};
    case Value::Kind::integer:
      if (!v.to_sym_int().is_symbolic()) return v.to_int();
      return {{"sym", v.str()}};
    case Value::Kind::floating:
      if (v.to_sym_float().is_symbolic()) return {{"sym", v.str()}};
      if (const double d = v.to_float(); d - d == 0) return d;
      return {{"float", v.str()}};  // JSON has no inf and nan
    case Value::Kind::string: return v.to_string();
    case Value::Kind::list: {
      json out = json::array();
      for (const Value& item : v.to_items()) out.push_back(to_json_value(item));
      return out;
    }
    case Value::Kind::tuple: {
      json out = json::array();
      for (const Value& item : v.to_items()) out.push_back(to_json_value(item));
      return {{"tuple", out}};
    }
    case Value::Kind::dict: {
      json out = json::array();
      for (const auto& [key, item] : v.to_dict().items)
        out.push_back(json::array({to_json_value(key), to_json_value(item)}));
      return {{"dict", out}};
    }
    case Value::Kind::structure: {
      const StructValue& s = v.to_struct();
      json items = json::array();
      for (const Value& item : s.items) items.push_back(to_json_value(item));
      return {{"struct", s.type}, {"context", s.context}, {"fields", s.fields}, {"items", items}};
    }
    case Value::Kind::slice:
      return {{"slice", json::array({to_json_value(v.to_slice().start), to_json_value(v.to_slice().stop),
                                     to_json_value(v.to_slice().step)})}};
    case Value::Kind::tensor: return {{"tensor", val_text(v)}};
    case Value::Kind::complex:
    case Value::Kind::dtype:
    case Value::Kind::device:
    case Value::Kind::layout:
    case Value::Kind::memory_format:
    case Value::Kind::generator: break;
  }
  return {{std::string(Value::kind_name(v.kind())), python_str(v)}};
}

json node_json(const Node& n) {
  json out = {{"name", n.name()}, {"op", name(n.kind())}, {"target", n.target().str()}};
  json args = json::array();
  for (const Value& a : n.args()) args.push_back(to_json_value(a));
  json kwargs = json::object();
  for (const auto& [key, v] : n.kwargs()) kwargs[key] = to_json_value(v);
  json users = json::array();
  for (const Node* u : n.users()) users.push_back(u->name());
  out["args"] = std::move(args);
  out["kwargs"] = std::move(kwargs);
  out["users"] = std::move(users);
  if (const std::string val = val_text(n.meta.val); !val.empty()) out["val"] = val;
  if (!n.type().empty()) out["type"] = n.type();
  if (n.meta.nn_module_stack) {
    json stack = json::array();
    for (const ModuleStackEntry& e : *n.meta.nn_module_stack) stack.push_back({{"path", e.path}, {"type", e.type}});
    out["nn_module_stack"] = std::move(stack);
  }
  if (n.meta.stack_trace) out["stack_trace"] = *n.meta.stack_trace;
  if (n.meta.location.line() != 0)
    out["source"] = std::string(n.meta.location.file_name()) + ":" + std::to_string(n.meta.location.line());
  return out;
}

json graph_json(const Graph& graph) {
  json nodes = json::array();
  for (const Node* n : graph.nodes()) nodes.push_back(node_json(*n));
  json out = {{"nodes", std::move(nodes)}};
  if (!graph.shape_env()) return out;
  json symbols = json::array();
  for (const Symbol& s : graph.shape_env()->symbols()) {
    json entry = {{"name", s.name}, {"lower", s.range.lower}, {"upper", s.range.upper}};
    if (s.hint) entry["example"] = *s.hint;
    if (!s.origin.empty()) entry["origin"] = s.origin;
    symbols.push_back(std::move(entry));
  }
  out["symbols"] = std::move(symbols);
  return out;
}

constexpr auto replace_bad_utf8 = json::error_handler_t::replace;

}  // namespace

std::string to_json(const Graph& graph, int indent) { return graph_json(graph).dump(indent, ' ', false, replace_bad_utf8); }

}  // namespace calque
