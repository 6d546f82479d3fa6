#include "text/jinja/parser.h"

#include <algorithm>

#include "text/jinja/python_text.h"

namespace calque::jinja {
namespace {

// Does something in `node` speak of a variable of this name?
bool speaks_of(const Node& node, std::string_view name) {
  if (node.kind == NodeKind::name && node.name == name) return true;
  const auto any = [&](const std::vector<NodePtr>& nodes) {
    return std::any_of(nodes.begin(), nodes.end(), [&](const NodePtr& n) { return n && speaks_of(*n, name); });
  };
  return any(node.children) || any(node.arguments) || any(node.body) || any(node.otherwise) ||
         std::any_of(node.named.begin(), node.named.end(), [&](const auto& n) { return speaks_of(*n.second, name); }) ||
         (node.star && speaks_of(*node.star, name)) || (node.star_star && speaks_of(*node.star_star, name));
}

class Parser : ExpressionParser {
 public:
  explicit Parser(std::string_view source) : ExpressionParser(tokens_of(source)) {}

  Body run() {
    Body out = statements({});
    if (!unknown_.empty()) syntax_error(unknown_[0].first, unknown_[0].second);
    return out;
  }

 private:
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
};

}  // namespace

std::vector<NodePtr> parse_template(std::string_view source) { return Parser(source).run(); }

}  // namespace calque::jinja
