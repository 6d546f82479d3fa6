#include <algorithm>
#include <optional>

#include "text/jinja/parser.h"
#include "text/jinja/python_text.h"

namespace calque::jinja {

std::string shown(const Token& token) {
  switch (token.type) {
    case Token::Type::data: return "template data / text";
    case Token::Type::tag_begin: return "begin of statement block";
    case Token::Type::tag_end: return "end of statement block";
    case Token::Type::print_begin: return "begin of print statement";
    case Token::Type::print_end: return "end of print statement";
    case Token::Type::text: return "string";
    case Token::Type::integer: return "integer";
    case Token::Type::floating: return "float";
    case Token::Type::end: return "end of template";
    case Token::Type::name:
    case Token::Type::sign: return token.value;
  }
  return "";
}

NodePtr ExpressionParser::expressions(const std::vector<std::string_view>& ends, bool with_conditional) {
  return tuple(
      ends, [&] { return expression(with_conditional); }, false);
}

NodePtr ExpressionParser::expression(bool with_conditional) {
  const Depth depth(*this);
  return with_conditional ? conditional() : either();
}

NodePtr ExpressionParser::conditional() {
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

NodePtr ExpressionParser::either() {
  const uint32_t line = now().line;
  NodePtr left = both();
  while (skip_name("or")) {
    NodePtr right = both();
    left = made(NodeKind::either, line, std::move(left), std::move(right));
  }
  return left;
}

NodePtr ExpressionParser::both() {
  const uint32_t line = now().line;
  NodePtr left = inverted();
  while (skip_name("and")) {
    NodePtr right = inverted();
    left = made(NodeKind::both, line, std::move(left), std::move(right));
  }
  return left;
}

NodePtr ExpressionParser::inverted() {
  const uint32_t line = now().line;
  const Depth depth(*this);
  if (skip_name("not")) return made(NodeKind::invert, line, inverted());
  return comparison();
}

NodePtr ExpressionParser::comparison() {
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

NodePtr ExpressionParser::sum() {
  return binary({{"+", BinaryOperator::add}, {"-", BinaryOperator::subtract}}, [&] { return concat(); });
}

NodePtr ExpressionParser::concat() {
  const uint32_t line = now().line;
  NodePtr first = product();
  if (!now().is("~")) return first;
  NodePtr node = make(NodeKind::concat, line);
  node->children.push_back(std::move(first));
  while (skip("~")) node->children.push_back(product());
  return done(std::move(node));
}

NodePtr ExpressionParser::product() {
  return binary({{"*", BinaryOperator::multiply},
                 {"/", BinaryOperator::divide},
                 {"//", BinaryOperator::floor_divide},
                 {"%", BinaryOperator::modulo}},
                [&] { return power(); });
}

NodePtr ExpressionParser::power() {
  return binary({{"**", BinaryOperator::power}}, [&] { return unary(true); });
}

NodePtr ExpressionParser::unary(bool with_filters) {
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

NodePtr ExpressionParser::constant(std::variant<std::monostate, bool, int64_t, double, std::string> value,
                                   uint32_t line) const {
  NodePtr node = make(NodeKind::constant, line);
  node->constant = std::move(value);
  return node;
}

NodePtr ExpressionParser::primary() {
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

NodePtr ExpressionParser::listing(NodeKind kind, std::string_view end, uint32_t line) {
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

NodePtr ExpressionParser::postfix(NodePtr node) {
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

NodePtr ExpressionParser::subscript(NodePtr object, uint32_t line) {
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

void ExpressionParser::call_arguments(Node& node) {
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

NodePtr ExpressionParser::call(NodePtr function) {
  NodePtr node = make(NodeKind::call);
  node->children.push_back(std::move(function));
  call_arguments(*node);
  return done(std::move(node));
}

std::string ExpressionParser::dotted_name() {
  std::string name = expect_name();
  while (skip(".")) name += "." + expect_name();
  return name;
}

NodePtr ExpressionParser::filters(NodePtr node, bool begun) {
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

NodePtr ExpressionParser::test(NodePtr value) {
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

NodePtr ExpressionParser::filters_and_tests(NodePtr node) {
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

}  // namespace calque::jinja
