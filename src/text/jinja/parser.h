// Reads what stands between {{ }} of a template, and inside {% %}: expressions. Statements, which contain them, are in parser.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/lexer.h"
#include "text/jinja/python_text.h"
#include "text/jinja/syntax.h"

namespace calque::jinja {

// A token as Jinja's messages call it.
std::string shown(const Token& token);

class ExpressionParser {
 protected:
  using Type = Token::Type;
  using Body = std::vector<NodePtr>;

  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() {
    const Token& token = tokens_[at_];
    if (token.type != Type::end) ++at_;
    return token;
  }
  bool skip(std::string_view sign) {
    if (!now().is(sign)) return false;
    ++at_;
    return true;
  }
  bool skip_name(std::string_view name) {
    if (!now().is_name(name)) return false;
    ++at_;
    return true;
  }
  [[noreturn]] void fail(const std::string& message) const { syntax_error(now().line, message); }
  [[noreturn]] void expected(const std::string& what) const {
    if (now().type == Type::end) fail("unexpected end of template, expected '" + what + "'.");
    fail("expected token '" + what + "', got " + repr_text(shown(now())));
  }
  void expect(std::string_view sign) {
    if (!skip(sign)) expected(std::string(sign));
  }
  void expect(Type type) {
    if (now().type != type) expected(shown({type, 0, ""}));
    ++at_;
  }
  std::string expect_name() {
    if (now().type != Type::name) expected("name");
    return take().value;
  }

  NodePtr make(NodeKind kind) const { return make(kind, now().line); }
  NodePtr make(NodeKind kind, uint32_t line) const {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->line = line;
    return node;
  }
  // Every node passes here when its children are complete.
  NodePtr done(NodePtr node) const {
    const auto under = [&](const NodePtr& child) {
      if (child) node->depth = std::max(node->depth, child->depth + 1);
    };
    for (const auto* list : {&node->children, &node->arguments, &node->body, &node->otherwise})
      for (const NodePtr& child : *list) under(child);
    for (const auto& [key, child] : node->named) under(child);
    under(node->star);
    under(node->star_star);
    if (node->depth > deepest_node)
      syntax_error(node->line, "the template is nested deeper than " + std::to_string(deepest_node));
    return node;
  }
  template <class... Children>
  NodePtr made(NodeKind kind, uint32_t line, Children... children) const {
    NodePtr node = make(kind, line);
    (node->children.push_back(std::move(children)), ...);
    return done(std::move(node));
  }

  // Counts nested calls of the parser.
  class Depth {
   public:
    explicit Depth(ExpressionParser& parser) : parser_(parser) {
      if (++parser_.depth_ > deepest_parse)
        parser_.fail("the template is nested deeper than " + std::to_string(deepest_parse));
    }
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    ExpressionParser& parser_;
  };

  // Gives a variable another value while in scope.
  template <class T>
  class While {
   public:
    While(T& variable, T value) : variable_(variable), before_(variable) { variable_ = value; }
    ~While() { variable_ = before_; }
    While(const While&) = delete;
    While& operator=(const While&) = delete;

   private:
    T& variable_;
    T before_;
  };

  template <class One>
  NodePtr tuple(const std::vector<std::string_view>& ends, One&& one, bool may_be_empty) {
    const uint32_t line = now().line;
    const auto at_end = [&] {
      const Token& t = now();
      if (t.type == Type::print_end || t.type == Type::tag_end || t.is(")")) return true;
      return t.type == Type::name && std::find(ends.begin(), ends.end(), t.value) != ends.end();
    };
    Body items;
    bool is_tuple = false;
    for (;;) {
      if (!items.empty()) expect(",");
      if (at_end()) break;
      items.push_back(one());
      if (!now().is(",")) break;
      is_tuple = true;
    }
    if (!is_tuple) {
      if (!items.empty()) return std::move(items[0]);
      if (!may_be_empty) fail("Expected an expression, got " + repr_text(shown(now())));
    }
    NodePtr node = make(NodeKind::tuple, line);
    node->children = std::move(items);
    return done(std::move(node));
  }
  // One expression, or a tuple without brackets.
  NodePtr expressions(const std::vector<std::string_view>& ends, bool with_conditional = true);
  NodePtr expression(bool with_conditional = true);
  NodePtr conditional();
  NodePtr either();
  NodePtr both();
  NodePtr inverted();
  NodePtr comparison();
  template <class Next>
  NodePtr binary(std::initializer_list<std::pair<std::string_view, BinaryOperator>> signs, Next&& next) {
    const uint32_t line = now().line;
    NodePtr left = next();
    for (;;) {
      const auto* found = std::find_if(signs.begin(), signs.end(), [&](const auto& s) { return now().is(s.first); });
      if (found == signs.end()) return left;
      take();
      NodePtr right = next();
      left = made(NodeKind::binary, line, std::move(left), std::move(right));
      left->op = found->second;
    }
  }
  NodePtr sum();
  NodePtr concat();
  NodePtr product();
  NodePtr power();
  NodePtr unary(bool with_filters);
  NodePtr constant(std::variant<std::monostate, bool, int64_t, double, std::string> value, uint32_t line) const;
  NodePtr primary();
  NodePtr listing(NodeKind kind, std::string_view end, uint32_t line);
  NodePtr postfix(NodePtr node);
  NodePtr subscript(NodePtr object, uint32_t line);
  void call_arguments(Node& node);
  NodePtr call(NodePtr function);
  std::string dotted_name();
  NodePtr filters(NodePtr node, bool begun = false);
  NodePtr test(NodePtr value);
  NodePtr filters_and_tests(NodePtr node);

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  bool in_loop_ = false;
  // Filters and tests that there are not; inside an if (soft_) they are errors only when they are reached.
  std::vector<std::pair<uint32_t, std::string>> unknown_;
  bool soft_ = false;

 private:
  static constexpr uint32_t deepest_node = 250;
  static constexpr int deepest_parse = 400;
};

}  // namespace calque::jinja
