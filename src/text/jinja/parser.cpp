#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "calque/base/error.h"
#include "text/jinja/lexer.h"
#include "text/jinja/python_text.h"
#include "text/jinja/syntax.h"

namespace calque::jinja {
namespace {

using Type = Token::Type;
using Body = std::vector<NodePtr>;

constexpr uint32_t deepest_node = 250;
constexpr int deepest_parse = 400;

// Does something in `node` speak of a variable of this name?
bool speaks_of(const Node& node, std::string_view name) {
  if (node.kind == NodeKind::name && node.name == name) return true;
  const auto any = [&](const Body& nodes) {
    return std::any_of(nodes.begin(), nodes.end(), [&](const NodePtr& n) { return n && speaks_of(*n, name); });
  };
  return any(node.children) || any(node.arguments) || any(node.body) || any(node.otherwise) ||
         std::any_of(node.named.begin(), node.named.end(), [&](const auto& n) { return speaks_of(*n.second, name); }) ||
         (node.star && speaks_of(*node.star, name)) || (node.star_star && speaks_of(*node.star_star, name));
}

std::string shown(const Token& token) {
  switch (token.type) {
    case Type::data: return "template data / text";
    case Type::tag_begin: return "begin of statement block";
    case Type::tag_end: return "end of statement block";
    case Type::print_begin: return "begin of print statement";
    case Type::print_end: return "end of print statement";
    case Type::text: return "string";
    case Type::integer: return "integer";
    case Type::floating: return "float";
    case Type::end: return "end of template";
    case Type::name:
    case Type::sign: return token.value;
  }
  return "";
}

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokens_of(source)) {}

  Body run() {
    Body out = statements({});
    if (!unknown_.empty()) syntax_error(unknown_[0].first, unknown_[0].second);
    return out;
  }

 private:
  // ---- tokens ---------------------------------------------------------------------------------------------------------

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
    explicit Depth(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > deepest_parse)
        parser_.fail("the template is nested deeper than " + std::to_string(deepest_parse));
    }
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Parser& parser_;
  };

  // A value for as long as something is read.
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

  // ---- statements -----------------------------------------------------------------------------------------------------

  // Up to a tag that begins with one of these names, which is then the current token.
  Body statements(std::vector<std::string_view> ends) {
    const Depth depth(*this);
    Body out;
    for (;;) {
      switch (now().type) {
        case Type::data: {
          NodePtr node = make(NodeKind::data);
          node->constant = take().value;
          out.push_back(std::move(node));
          break;
        }
        case Type::print_begin: {
          take();
          const uint32_t line = now().line;
          out.push_back(made(NodeKind::print, line, expressions({})));
          expect(Type::print_end);
          break;
        }
        case Type::tag_begin:
          take();
          if (now().type == Type::name && std::find(ends.begin(), ends.end(), now().value) != ends.end()) return out;
          out.push_back(statement(ends));
          expect(Type::tag_end);
          break;
        case Type::end:
          if (!ends.empty())
            fail("Unexpected end of template. Jinja was looking for the following tags: " + listed(ends) + ".");
          return out;
        case Type::tag_end:
        case Type::print_end:
        case Type::name:
        case Type::text:
        case Type::integer:
        case Type::floating:
        case Type::sign: fail("unexpected " + repr_text(shown(now())));
      }
    }
  }

  static std::string listed(const std::vector<std::string_view>& ends) {
    std::string out;
    for (const std::string_view end : ends) out += (out.empty() ? "'" : " or '") + std::string(end) + "'";
    return out;
  }

  // The body of a statement, from the end of its tag; the tag that ends it is left at its name.
  Body block(std::vector<std::string_view> ends) {
    skip(":");
    expect(Type::tag_end);
    return statements(std::move(ends));
  }
  Body block_to(std::string_view end) {
    Body out = block({end});
    take();
    return out;
  }

  NodePtr statement(const std::vector<std::string_view>& ends) {
    if (now().type != Type::name) fail("tag name expected");
    const Token tag = take();
    const std::string& name = tag.value;
    if (name == "for") return for_statement(tag.line);
    if (name == "if") return if_statement(tag.line);
    if (name == "set") return set_statement(tag.line);
    if (name == "macro") return macro_statement(tag.line);
    if (name == "call") return call_statement(tag.line);
    if (name == "filter") return filter_statement(tag.line);
    if (name == "with") return with_statement(tag.line);
    if (name == "generation" || name == "block") return scope_statement(tag);
    if (name == "break" || name == "continue") {
      if (!in_loop_) syntax_error(tag.line, "'" + name + "' outside loop");
      return make(name == "break" ? NodeKind::leave : NodeKind::next, tag.line);
    }
    if (name == "print") return print_statement(tag.line);
    if (name == "include" || name == "import" || name == "from" || name == "extends") {
      NodePtr node = make(NodeKind::refused, tag.line);
      node->name = name;
      while (now().type != Type::tag_end && now().type != Type::end) take();
      return node;
    }
    if (name == "autoescape") syntax_error(tag.line, "{% autoescape %} is not supported in chat templates");
    std::string message = "Encountered unknown tag '" + name + "'.";
    if (!ends.empty()) message += " Jinja was looking for the following tags: " + listed(ends) + ".";
    syntax_error(tag.line, message);
  }

  NodePtr for_statement(uint32_t line) {
    NodePtr node = make(NodeKind::loop, line);
    node->children.push_back(target({"in"}, false));
    forbid_loop_name(*node->children[0]);
    if (!skip_name("in")) expected("in");
    node->children.push_back(expressions({"recursive"}, false));
    node->children.push_back(skip_name("if") ? expression() : nullptr);
    node->recursive = skip_name("recursive");
    {
      const While soft(soft_, false);
      const While in_loop(in_loop_, true);
      node->body = block({"endfor", "else"});
    }
    const While soft(soft_, false);
    if (take().value == "else") node->otherwise = block_to("endfor");
    return done(std::move(node));
  }

  void forbid_loop_name(const Node& target) const {
    if (target.kind == NodeKind::name && target.name == "loop")
      syntax_error(target.line, "Can't assign to special loop variable in for-loop target");
    for (const NodePtr& child : target.children) forbid_loop_name(*child);
  }

  NodePtr if_statement(uint32_t line) {
    NodePtr first = make(NodeKind::branch, line);
    const While soft(soft_, true);
    std::vector<NodePtr> chain;
    Node* node = first.get();
    for (;;) {
      node->children.push_back(expressions({}, false));
      node->body = block({"elif", "else", "endif"});
      const Token tag = take();
      if (tag.is_name("elif")) {
        chain.push_back(make(NodeKind::branch, tag.line));
        node = chain.back().get();
        continue;
      }
      if (tag.is_name("else")) node->otherwise = block_to("endif");
      break;
    }
    // Each elif is a branch of its own in the one before: told side by side, so that a long chain is no deep tree.
    for (NodePtr& part : chain) first->arguments.push_back(done(std::move(part)));
    if (!first->arguments.empty()) {
      first->otherwise = std::move(first->arguments.back()->otherwise);
      first->arguments.back()->otherwise.clear();
    }
    return done(std::move(first));
  }

  NodePtr set_statement(uint32_t line) {
    NodePtr to = target({}, true);
    if (skip("=")) {
      NodePtr value = expressions({});
      return made(NodeKind::assign, line, std::move(to), std::move(value));
    }
    NodePtr node = make(NodeKind::assign_block, line);
    node->children.push_back(std::move(to));
    node->children.push_back(now().is("|") ? filters(nullptr) : nullptr);
    const While soft(soft_, false);
    node->body = block_to("endset");
    return done(std::move(node));
  }

  void signature(Node& node) {
    expect("(");
    bool first = true;
    while (!now().is(")")) {
      if (!first) expect(",");
      first = false;
      NodePtr parameter = make(NodeKind::name);
      parameter->name = expect_name();
      if (skip("="))
        node.arguments.push_back(expression());
      else if (!node.arguments.empty())
        fail("non-default argument follows default argument");
      node.children.push_back(std::move(parameter));
    }
    expect(")");
  }

  // The body of a macro or a call block, which is called later.
  void callable_body(Node& node, std::string_view end) {
    const While in_loop(in_loop_, false);
    const While soft(soft_, false);
    node.body = block_to(end);
    const auto speaks = [&](std::string_view name) {
      return std::any_of(node.body.begin(), node.body.end(), [&](const NodePtr& n) { return speaks_of(*n, name); }) &&
             std::none_of(node.children.begin(), node.children.end(),
                          [&](const NodePtr& n) { return n->kind == NodeKind::name && n->name == name; });
    };
    node.takes_caller = speaks("caller");
    node.takes_named = speaks("kwargs");
    node.takes_more = speaks("varargs");
  }

  NodePtr macro_statement(uint32_t line) {
    NodePtr node = make(NodeKind::macro, line);
    node->name = expect_name();
    signature(*node);
    callable_body(*node, "endmacro");
    return done(std::move(node));
  }

  NodePtr call_statement(uint32_t line) {
    NodePtr node = make(NodeKind::call_block, line);
    if (now().is("(")) signature(*node);
    NodePtr call = expression();
    if (call->kind != NodeKind::call) syntax_error(line, "expected call");
    callable_body(*node, "endcall");
    node->children.insert(node->children.begin(), std::move(call));
    return done(std::move(node));
  }

  NodePtr filter_statement(uint32_t line) {
    NodePtr node = make(NodeKind::filter_block, line);
    const While soft(soft_, false);
    node->children.push_back(filters(nullptr, true));
    node->body = block_to("endfilter");
    return done(std::move(node));
  }

  NodePtr with_statement(uint32_t line) {
    NodePtr node = make(NodeKind::with, line);
    while (now().type != Type::tag_end) {
      if (!node->children.empty()) expect(",");
      node->children.push_back(target({}, false));
      expect("=");
      node->children.push_back(expression());
    }
    const While soft(soft_, false);
    node->body = block_to("endwith");
    return done(std::move(node));
  }

  NodePtr scope_statement(const Token& tag) {
    NodePtr node = make(NodeKind::scope, tag.line);
    if (tag.value == "block") {
      const std::string name = expect_name();
      skip_name("scoped");
      skip_name("required");
    }
    const While in_loop(in_loop_, false);
    const While soft(soft_, false);
    node->body = block_to("end" + tag.value);
    if (tag.value == "block" && now().type == Type::name) take();
    return done(std::move(node));
  }

  NodePtr print_statement(uint32_t line) {
    NodePtr node = make(NodeKind::print, line);
    while (now().type != Type::tag_end) {
      if (!node->children.empty()) expect(",");
      node->children.push_back(expression());
    }
    return done(std::move(node));
  }

  // What can be assigned to: names, members of namespaces, tuples of both.
  NodePtr target(const std::vector<std::string_view>& ends, bool members) {
    NodePtr out = tuple(
        ends, [&] { return target_primary(members); }, false);
    check_target(*out);
    return out;
  }
  NodePtr target_primary(bool members) {
    if (members && now().type == Type::name && ahead().is(".")) {
      NodePtr node = make(NodeKind::member);
      node->name = take().value;
      take();
      node->member = expect_name();
      return node;
    }
    if (now().is("(")) {
      take();
      NodePtr out = tuple(
          {}, [&] { return target_primary(members); }, true);
      expect(")");
      return out;
    }
    return primary();
  }
  void check_target(const Node& node) const {
    static constexpr std::string_view constants[] = {"true", "false", "none", "True", "False", "None"};
    const bool names = node.kind == NodeKind::member ||
                       (node.kind == NodeKind::name &&
                        std::find(std::begin(constants), std::end(constants), node.name) == std::end(constants));
    if (!names && node.kind != NodeKind::tuple)
      syntax_error(node.line,
                   std::string("can't assign to '") + (node.kind == NodeKind::constant ? "const" : "expression") + "'");
    if (node.kind == NodeKind::tuple)
      for (const NodePtr& child : node.children) check_target(*child);
  }

  // ---- expressions ----------------------------------------------------------------------------------------------------

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
  NodePtr expressions(const std::vector<std::string_view>& ends, bool with_conditional = true) {
    return tuple(
        ends, [&] { return expression(with_conditional); }, false);
  }

  NodePtr expression(bool with_conditional = true) {
    const Depth depth(*this);
    return with_conditional ? conditional() : either();
  }

  NodePtr conditional() {
    const uint32_t line = now().line;
    const size_t unknown = unknown_.size();
    NodePtr value = either();
    if (!now().is_name("if")) return value;
    unknown_.resize(unknown);  // what stands before the "if" is inside it too
    const While soft(soft_, true);
    while (skip_name("if")) {
      NodePtr condition = either();
      NodePtr otherwise = skip_name("else") ? expression() : nullptr;
      value = made(NodeKind::conditional, line, std::move(condition), std::move(value), std::move(otherwise));
    }
    return value;
  }

  NodePtr either() {
    const uint32_t line = now().line;
    NodePtr left = both();
    while (skip_name("or")) {
      NodePtr right = both();
      left = made(NodeKind::either, line, std::move(left), std::move(right));
    }
    return left;
  }
  NodePtr both() {
    const uint32_t line = now().line;
    NodePtr left = inverted();
    while (skip_name("and")) {
      NodePtr right = inverted();
      left = made(NodeKind::both, line, std::move(left), std::move(right));
    }
    return left;
  }
  NodePtr inverted() {
    const uint32_t line = now().line;
    const Depth depth(*this);
    if (skip_name("not")) return made(NodeKind::invert, line, inverted());
    return comparison();
  }

  NodePtr comparison() {
    const uint32_t line = now().line;
    static constexpr std::pair<std::string_view, Comparison> signs[] = {
        {"==", Comparison::equal},      {"!=", Comparison::not_equal}, {"<", Comparison::less},
        {"<=", Comparison::less_equal}, {">", Comparison::greater},    {">=", Comparison::greater_equal}};
    NodePtr first = sum();
    NodePtr node;
    for (;;) {
      std::optional<Comparison> found;
      for (const auto& [sign, comparison] : signs)
        if (skip(sign)) {
          found = comparison;
          break;
        }
      if (!found && skip_name("in")) found = Comparison::in;
      if (!found && now().is_name("not") && ahead().is_name("in")) {
        at_ += 2;
        found = Comparison::not_in;
      }
      if (!found) break;
      if (!node) {
        node = make(NodeKind::comparison, line);
        node->children.push_back(std::move(first));
      }
      node->comparisons.push_back(*found);
      node->children.push_back(sum());
    }
    return node ? done(std::move(node)) : std::move(first);
  }

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
  NodePtr sum() {
    return binary({{"+", BinaryOperator::add}, {"-", BinaryOperator::subtract}}, [&] { return concat(); });
  }
  NodePtr concat() {
    const uint32_t line = now().line;
    NodePtr first = product();
    if (!now().is("~")) return first;
    NodePtr node = make(NodeKind::concat, line);
    node->children.push_back(std::move(first));
    while (skip("~")) node->children.push_back(product());
    return done(std::move(node));
  }
  NodePtr product() {
    return binary({{"*", BinaryOperator::multiply},
                   {"/", BinaryOperator::divide},
                   {"//", BinaryOperator::floor_divide},
                   {"%", BinaryOperator::modulo}},
                  [&] { return power(); });
  }
  NodePtr power() {
    return binary({{"**", BinaryOperator::power}}, [&] { return unary(true); });
  }

  NodePtr unary(bool with_filters) {
    const Depth depth(*this);
    const uint32_t line = now().line;
    NodePtr node;
    if (skip("-"))
      node = made(NodeKind::negative, line, unary(false));
    else if (skip("+"))
      node = made(NodeKind::positive, line, unary(false));
    else
      node = primary();
    node = postfix(std::move(node));
    return with_filters ? filters_and_tests(std::move(node)) : std::move(node);
  }

  NodePtr constant(std::variant<std::monostate, bool, int64_t, double, std::string> value, uint32_t line) const {
    NodePtr node = make(NodeKind::constant, line);
    node->constant = std::move(value);
    return node;
  }

  NodePtr primary() {
    const uint32_t line = now().line;
    switch (now().type) {
      case Type::name: {
        const std::string name = take().value;
        if (name == "true" || name == "True") return constant(true, line);
        if (name == "false" || name == "False") return constant(false, line);
        if (name == "none" || name == "None") return constant(std::monostate(), line);
        NodePtr node = make(NodeKind::name, line);
        node->name = name;
        return node;
      }
      case Type::text: {
        std::string text = take().value;
        while (now().type == Type::text) text += take().value;
        return constant(std::move(text), line);
      }
      case Type::integer: return constant(parse_integer(take().value, 0).value_or(0), line);
      case Type::floating: return constant(parse_float(take().value).value_or(0), line);
      case Type::sign:
        if (skip("(")) {
          const Depth depth(*this);
          NodePtr out = tuple(
              {}, [&] { return expression(); }, true);
          expect(")");
          return out;
        }
        if (skip("[")) return listing(NodeKind::list, "]", line);
        if (skip("{")) return listing(NodeKind::dict, "}", line);
        break;
      case Type::data:
      case Type::tag_begin:
      case Type::tag_end:
      case Type::print_begin:
      case Type::print_end:
      case Type::end: break;
    }
    fail("unexpected " + repr_text(shown(now())));
  }

  NodePtr listing(NodeKind kind, std::string_view end, uint32_t line) {
    NodePtr node = make(kind, line);
    while (!now().is(end)) {
      if (!node->children.empty()) expect(",");
      if (now().is(end)) break;
      node->children.push_back(expression());
      if (kind == NodeKind::dict) {
        expect(":");
        node->children.push_back(expression());
      }
    }
    expect(end);
    return done(std::move(node));
  }

  NodePtr postfix(NodePtr node) {
    for (;;) {
      const uint32_t line = now().line;
      if (skip(".")) {
        if (now().type == Type::integer) {
          NodePtr key = constant(parse_integer(take().value, 0).value_or(0), line);
          node = made(NodeKind::item, line, std::move(node), std::move(key));
          continue;
        }
        if (now().type != Type::name) fail("expected name or number");
        const std::string name = take().value;
        node = made(NodeKind::attribute, line, std::move(node));
        node->name = name;
      } else if (skip("[")) {
        node = subscript(std::move(node), line);
      } else if (now().is("(")) {
        node = call(std::move(node));
      } else {
        return node;
      }
    }
  }

  NodePtr subscript(NodePtr object, uint32_t line) {
    Body parts;
    bool sliced = false;
    const auto part = [&]() -> NodePtr { return now().is(":") || now().is("]") || now().is(",") ? nullptr : expression(); };
    NodePtr first = part();
    if (now().is(":")) {
      sliced = true;
      take();
      NodePtr stop = part();
      NodePtr step = skip(":") ? part() : nullptr;
      parts.push_back(std::move(first));
      parts.push_back(std::move(stop));
      parts.push_back(std::move(step));
      first = nullptr;
    }
    if (sliced) {
      expect("]");
      return made(NodeKind::slice, line, std::move(object), std::move(parts[0]), std::move(parts[1]), std::move(parts[2]));
    }
    if (!first) fail("expected a subscript");
    if (now().is(",")) {
      NodePtr key = make(NodeKind::tuple, line);
      key->children.push_back(std::move(first));
      while (skip(",")) key->children.push_back(expression());
      first = done(std::move(key));
    }
    expect("]");
    return made(NodeKind::item, line, std::move(object), std::move(first));
  }

  void call_arguments(Node& node) {
    const uint32_t line = now().line;
    const Depth depth(*this);
    expect("(");
    const auto ensure = [&](bool holds) {
      if (!holds) syntax_error(line, "invalid syntax for function call expression");
    };
    bool first = true;
    while (!now().is(")")) {
      if (!first) {
        expect(",");
        if (now().is(")")) break;
      }
      first = false;
      if (skip("*")) {
        ensure(!node.star && !node.star_star);
        node.star = expression();
      } else if (skip("**")) {
        ensure(!node.star_star);
        node.star_star = expression();
      } else if (now().type == Type::name && ahead().is("=")) {
        ensure(!node.star_star);
        std::string key = take().value;
        take();
        for (const auto& [known, value] : node.named) ensure(known != key);
        node.named.emplace_back(std::move(key), expression());
      } else {
        ensure(!node.star && !node.star_star && node.named.empty());
        node.arguments.push_back(expression());
      }
    }
    expect(")");
  }

  NodePtr call(NodePtr function) {
    NodePtr node = make(NodeKind::call);
    node->children.push_back(std::move(function));
    call_arguments(*node);
    return done(std::move(node));
  }

  std::string dotted_name() {
    std::string name = expect_name();
    while (skip(".")) name += "." + expect_name();
    return name;
  }

  NodePtr filters(NodePtr node, bool begun = false) {
    while (begun || skip("|")) {
      begun = false;
      const uint32_t line = now().line;
      NodePtr filter = make(NodeKind::filter, line);
      filter->name = dotted_name();
      filter->children.push_back(std::move(node));
      if (now().is("(")) call_arguments(*filter);
      if (!soft_ && !is_known_filter(filter->name)) unknown_.emplace_back(line, "No filter named '" + filter->name + "'.");
      node = done(std::move(filter));
    }
    return node;
  }

  NodePtr test(NodePtr value) {
    const uint32_t line = now().line;
    const bool negated = skip_name("not");
    NodePtr node = make(NodeKind::test, line);
    node->name = dotted_name();
    node->children.push_back(std::move(value));
    const Token& t = now();
    const bool argument = t.type == Type::text || t.type == Type::integer || t.type == Type::floating || t.is("[") ||
                          t.is("{") || (t.type == Type::name && t.value != "else" && t.value != "or" && t.value != "and");
    if (t.is("(")) {
      call_arguments(*node);
    } else if (argument) {
      if (t.is_name("is")) fail("You cannot chain multiple tests with is");
      node->arguments.push_back(postfix(primary()));
    }
    if (!soft_ && !is_known_test(node->name)) unknown_.emplace_back(line, "No test named '" + node->name + "'.");
    node = done(std::move(node));
    return negated ? made(NodeKind::invert, line, std::move(node)) : std::move(node);
  }

  NodePtr filters_and_tests(NodePtr node) {
    for (;;) {
      if (now().is("|"))
        node = filters(std::move(node));
      else if (skip_name("is"))
        node = test(std::move(node));
      else if (now().is("("))
        node = call(std::move(node));
      else
        return node;
    }
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  bool in_loop_ = false;
  // Filters and tests that there are not; inside an if (soft_) they are errors only when they are reached.
  std::vector<std::pair<uint32_t, std::string>> unknown_;
  bool soft_ = false;
};

}  // namespace

std::vector<NodePtr> parse_template(std::string_view source) { return Parser(source).run(); }

}  // namespace calque::jinja
