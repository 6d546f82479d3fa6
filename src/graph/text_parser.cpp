#include <limits>
#include <unordered_map>

#include "calque/graph/text.h"
#include "calque/sym/shape_env.h"
#include "text_value.h"

namespace calque {
namespace {

// The place of the first byte that is no UTF-8; the length of the text when there is none.
size_t first_bad_byte(std::string_view s) {
  const auto byte = [&](size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0U; };
  for (size_t i = 0; i < s.size();) {
    const unsigned lead = byte(i);
    const size_t length = lead < 0x80                    ? 1
                          : lead >= 0xc2 && lead <= 0xdf ? 2
                          : (lead & 0xf0U) == 0xe0       ? 3
                          : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                         : 0;
    if (length == 0) return i;
    for (size_t k = 1; k < length; ++k)
      if ((byte(i + k) & 0xc0U) != 0x80) return i;
    // Longer than needed, a surrogate, or beyond the last character.
    const unsigned next = byte(i + 1);
    if ((lead == 0xe0 && next < 0xa0) || (lead == 0xed && next >= 0xa0) || (lead == 0xf0 && next < 0x90) ||
        (lead == 0xf4 && next >= 0x90))
      return i;
    i += length;
  }
  return s.size();
}

class GraphParser {
 public:
  GraphParser(std::string_view text, std::shared_ptr<ShapeEnv> env)
      : in_(text, "graph text"),
        env_(env ? std::move(env) : ShapeEnv::make()),
        values_(in_, *env_, [this](std::string_view name) { return find(name); }) {
    graph_.set_shape_env(env_);
    if (const size_t bad = first_bad_byte(text); bad != text.size()) {
      in_.go_to(bad);
      in_.fail("the text is no UTF-8");
    }
  }

  Graph parse() {
    while (true) {
      in_.skip_blank();
      if (in_.at_end()) return std::move(graph_);
      if (in_.peek() == '#') {
        in_.take_while([](char c) { return c != '\n'; });
        continue;
      }
      if (in_.peek() == '%')
        node();
      else if (const std::string_view word = in_.identifier(); word == "return")
        output();
      else if (word == "symbol")
        symbol();
      else
        in_.fail("expected '%name = ...', 'return ...' or 'symbol ...'");
      in_.skip_spaces();
      if (!in_.at_end() && in_.peek() != '\n' && in_.peek() != '#') in_.fail("expected the end of the line");
    }
  }

 private:
  Node* find(std::string_view name) const {
    const auto it = nodes_.find(std::string(name));
    return it == nodes_.end() ? nullptr : it->second;
  }

  void symbol() {
    const std::string name(in_.identifier());
    if (name.empty()) in_.fail("expected the name of a symbol");
    in_.expect("in");
    in_.expect("[");
    ValueRange range;
    range.lower = bound(ValueRange::unbounded_below);
    in_.expect(",");
    range.upper = bound(ValueRange::unbounded_above);
    in_.expect("]");
    std::optional<int64_t> hint;
    in_.skip_spaces();
    if (in_.peek() == '=') {
      in_.advance();
      hint = integer();
    }
    try {
      env_->declare_symbol(name, hint, range);
    } catch (const UserError& e) {
      in_.fail(e.what());
    }
  }
  int64_t integer() {
    const Value v = values_.value();
    if (v.kind() != Value::Kind::integer || v.to_sym_int().is_symbolic()) in_.fail("expected an integer");
    return v.to_int();
  }
  int64_t bound(int64_t otherwise) {
    if (in_.accept("-inf") || in_.accept("inf")) return otherwise;
    return integer();
  }

  void output() {
    if (has_output_) in_.fail("a graph has one 'return'");
    has_output_ = true;
    Node* n = graph_.output(values_.value());
    n->set_type(annotation());
  }

  void node() {
    in_.advance();
    const size_t start = in_.position();
    const std::string name(in_.identifier());
    if (name.empty()) in_.fail("expected the name of a node");
    if (has_output_) in_.fail("a node after 'return'");
    if (nodes_.contains(name)) {
      in_.go_to(start);
      in_.fail("%" + name + " is defined twice");
    }
    Value val;
    if (in_.accept(":")) val = values_.val();
    std::string type = annotation();
    in_.expect("=");
    in_.skip_spaces();
    Node* n = call(name);
    n->meta.val = std::move(val);
    n->set_type(std::move(type));
    nodes_.emplace(name, n);
  }

  // as 'torch.Tensor'
  std::string annotation() {
    in_.skip_spaces();
    if (!in_.starts_with("as ")) return {};
    in_.advance(3);
    return values_.quoted();
  }

  Node* call(const std::string& name) {
    const std::string target(in_.take_while(
        [](char c) { return !std::isspace(static_cast<unsigned char>(c)) && c != '(' && c != '[' && c != '#'; }));
    if (target.empty()) in_.fail("expected what the node does");
    static constexpr NodeKind kinds[] = {NodeKind::placeholder, NodeKind::get_attr, NodeKind::call_module,
                                         NodeKind::call_method};
    for (const NodeKind kind : kinds) {
      if (target != calque::name(kind)) continue;
      std::string text = name;
      if (in_.peek() == '[') {
        in_.advance();
        text = in_.take_while([](char c) { return c != ']' && c != '\n'; });
        in_.expect("]");
        if (text.empty()) in_.fail("expected a name between the brackets");
      } else if (kind != NodeKind::placeholder) {
        in_.fail("expected [name] after " + target);
      }
      return finish(kind, text, name);
    }
    if (in_.peek() != '(') in_.fail("expected '(' after " + target);
    return finish(NodeKind::call_function, target, name);
  }

  Node* finish(NodeKind kind, const std::string& target, const std::string& name) {
    Values args;
    Kwargs kwargs;
    if (in_.peek() == '(') {
      in_.advance();
      bool first = true;
      while (!in_.accept(")")) {
        if (!first) in_.expect(",");
        first = false;
        if (std::optional<std::string> key = keyword()) {
          kwargs.emplace_back(*std::move(key), values_.value());
          continue;
        }
        if (!kwargs.empty()) in_.fail("a positional argument after a keyword");
        args.push_back(values_.value());
      }
    }
    const size_t most = kind == NodeKind::placeholder ? 1 : kind == NodeKind::get_attr ? 0 : SIZE_MAX;
    if (args.size() > most || (most != SIZE_MAX && !kwargs.empty()))
      in_.fail("a " + std::string(calque::name(kind)) + " takes " + (most == 0 ? "no arguments" : "its default alone"));
    try {
      return graph_.create_node(kind, target, std::move(args), std::move(kwargs), name);
    } catch (const UserError& e) {
      in_.fail(e.what());
    }
  }

  std::optional<std::string> keyword() {
    in_.skip_blank();
    const size_t start = in_.position();
    std::string name(in_.identifier());
    if (!name.empty() && in_.peek() == '=' && in_.peek(1) != '=') {
      in_.advance();
      return name;
    }
    in_.go_to(start);
    return std::nullopt;
  }

  TextScanner in_;
  std::shared_ptr<ShapeEnv> env_;
  ValueParser values_;
  Graph graph_;
  std::unordered_map<std::string, Node*> nodes_;
  bool has_output_ = false;
};

}  // namespace

Graph parse_graph(std::string_view text, std::shared_ptr<ShapeEnv> env) { return GraphParser(text, std::move(env)).parse(); }

}  // namespace calque
