#include "export/shapes/guard_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

namespace calque {

// In the order of Python's precedence, loosest first; leaves last.
enum class GuardOp : uint8_t {
  logical_or,
  logical_and,
  logical_not,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  add,
  sub,
  mul,
  floor_div,
  mod,
  negate,
  pow,
  call,
  number,
  variable
};

struct GuardText::Node {
  GuardOp op;
  std::vector<std::shared_ptr<const Node>> args = {};
  int64_t number = 0;     // of a number; the index of a variable
  std::string name = {};  // of a call
};

namespace {

using TextNode = GuardText::Node;
using NodePtr = std::shared_ptr<const TextNode>;

struct OpInfo {
  const char* text;
  int precedence;
};
OpInfo info(GuardOp op) {
  switch (op) {
    case GuardOp::logical_or: return {"or", 1};
    case GuardOp::logical_and: return {"and", 2};
    case GuardOp::logical_not: return {"not", 3};
    case GuardOp::eq: return {"==", 4};
    case GuardOp::ne: return {"!=", 4};
    case GuardOp::lt: return {"<", 4};
    case GuardOp::le: return {"<=", 4};
    case GuardOp::gt: return {">", 4};
    case GuardOp::ge: return {">=", 4};
    case GuardOp::add: return {"+", 5};
    case GuardOp::sub: return {"-", 5};
    case GuardOp::mul: return {"*", 6};
    case GuardOp::floor_div: return {"//", 6};
    case GuardOp::mod: return {"%", 6};
    case GuardOp::negate: return {"-", 7};
    case GuardOp::pow: return {"**", 8};
    case GuardOp::call:
    case GuardOp::number:
    case GuardOp::variable: return {"", 9};
  }
  return {"", 9};
}

struct NotRead {};

constexpr size_t max_depth = 200;

class Parser {
 public:
  Parser(std::string_view text, std::vector<GuardText::Variable>& variables) : rest_(text), variables_(variables) {}

  NodePtr whole() {
    NodePtr out = any_of();
    spaces();
    if (!rest_.empty()) throw NotRead{};
    return out;
  }

 private:
  void spaces() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front()))) rest_.remove_prefix(1);
  }
  bool eat(std::string_view token) {
    spaces();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  bool eat_word(std::string_view word) {
    spaces();
    if (!rest_.starts_with(word)) return false;
    if (rest_.size() > word.size() &&
        (std::isalnum(static_cast<unsigned char>(rest_[word.size()])) || rest_[word.size()] == '_'))
      return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void need(std::string_view token) {
    if (!eat(token)) throw NotRead{};
  }
  static NodePtr make(GuardOp op, std::vector<NodePtr> args) {
    return std::make_shared<const TextNode>(TextNode{op, std::move(args)});
  }

  NodePtr any_of() {
    if (++depth_ > max_depth) throw NotRead{};
    NodePtr out = all_of();
    while (eat_word("or")) out = make(GuardOp::logical_or, {out, all_of()});
    --depth_;
    return out;
  }
  NodePtr all_of() {
    NodePtr out = negated();
    while (eat_word("and")) out = make(GuardOp::logical_and, {out, negated()});
    return out;
  }
  NodePtr negated() {
    if (++depth_ > max_depth) throw NotRead{};
    NodePtr out = eat_word("not") ? make(GuardOp::logical_not, {negated()}) : comparison();
    --depth_;
    return out;
  }
  NodePtr comparison() {
    NodePtr left = sum();
    NodePtr out;
    for (;;) {
      std::optional<GuardOp> op;
      // Longer tokens first.
      for (const GuardOp candidate : {GuardOp::eq, GuardOp::ne, GuardOp::le, GuardOp::ge, GuardOp::lt, GuardOp::gt})
        if (eat(info(candidate).text)) {
          op = candidate;
          break;
        }
      if (!op) return out ? out : left;
      NodePtr right = sum();
      NodePtr one = make(*op, {left, right});
      out = out ? make(GuardOp::logical_and, {out, one}) : one;  // a <= b <= c
      left = right;
    }
  }
  NodePtr sum() {
    NodePtr out = product();
    for (;;) {
      if (eat("+"))
        out = make(GuardOp::add, {out, product()});
      else if (eat("-"))
        out = make(GuardOp::sub, {out, product()});
      else
        return out;
    }
  }
  NodePtr product() {
    NodePtr out = signed_power();
    for (;;) {
      spaces();
      if (rest_.starts_with("**")) throw NotRead{};
      if (eat("*"))
        out = make(GuardOp::mul, {out, signed_power()});
      else if (eat("//"))
        out = make(GuardOp::floor_div, {out, signed_power()});
      else if (eat("%"))
        out = make(GuardOp::mod, {out, signed_power()});
      else
        return out;
    }
  }
  NodePtr signed_power() {
    if (++depth_ > max_depth) throw NotRead{};
    NodePtr out;
    if (eat("-"))
      out = make(GuardOp::negate, {signed_power()});
    else {
      out = primary();
      if (eat("**")) out = make(GuardOp::pow, {out, signed_power()});
    }
    --depth_;
    return out;
  }
  NodePtr primary() {
    if (eat("(")) {
      NodePtr out = any_of();
      need(")");
      return out;
    }
    if (rest_.empty()) throw NotRead{};
    if (std::isdigit(static_cast<unsigned char>(rest_.front()))) {
      auto node = std::make_shared<TextNode>(TextNode{GuardOp::number});
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), node->number);
      if (error != std::errc()) throw NotRead{};
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      if (!rest_.empty() && (rest_.front() == '.' || rest_.front() == 'e')) throw NotRead{};  // a float
      return node;
    }
    if (rest_.starts_with("L[")) return variable();
    for (const char* name : {"max", "min", "abs"})
      if (eat_word(name)) {
        need("(");
        auto node = std::make_shared<TextNode>(TextNode{GuardOp::call});
        node->name = name;
        do node->args.push_back(any_of());
        while (eat(","));
        need(")");
        return node;
      }
    throw NotRead{};
  }

  // L['x'][0].field.size()[1]
  NodePtr variable() {
    const std::string_view start = rest_;
    rest_.remove_prefix(1);
    GuardText::Variable v;
    std::optional<size_t> source_end;
    for (;;) {
      const auto read = static_cast<size_t>(rest_.data() - start.data());
      if (rest_.starts_with("[")) {
        skip_brackets();
      } else if (const auto property = property_here()) {
        source_end = read;
        v.property = *property;
        if (*property != GuardText::Variable::Property::storage_offset) {
          need("[");
          NodePtr index = primary();
          if (index->op != GuardOp::number) throw NotRead{};
          v.dimension = static_cast<size_t>(index->number);
          need("]");
        }
        break;
      } else if (rest_.starts_with(".")) {
        rest_.remove_prefix(1);
        while (!rest_.empty() && (std::isalnum(static_cast<unsigned char>(rest_.front())) || rest_.front() == '_'))
          rest_.remove_prefix(1);
      } else {
        source_end = read;
        break;
      }
    }
    v.source = std::string(start.substr(0, *source_end));
    const auto same = [&](const GuardText::Variable& o) {
      return o.source == v.source && o.property == v.property && o.dimension == v.dimension;
    };
    const auto at = std::ranges::find_if(variables_, same);
    auto node = std::make_shared<TextNode>(TextNode{GuardOp::variable});
    node->number = at - variables_.begin();
    if (at == variables_.end()) variables_.push_back(std::move(v));
    return node;
  }
  std::optional<GuardText::Variable::Property> property_here() {
    if (rest_.starts_with(".size()")) return rest_.remove_prefix(7), GuardText::Variable::Property::size;
    if (rest_.starts_with(".stride()")) return rest_.remove_prefix(9), GuardText::Variable::Property::stride;
    if (rest_.starts_with(".storage_offset()"))
      return rest_.remove_prefix(17), GuardText::Variable::Property::storage_offset;
    return {};
  }
  void skip_brackets() {
    rest_.remove_prefix(1);
    if (!rest_.empty() && (rest_.front() == '\'' || rest_.front() == '"')) {
      const char quote = rest_.front();
      rest_.remove_prefix(1);
      while (!rest_.empty() && rest_.front() != quote)
        rest_.remove_prefix(rest_.front() == '\\' && rest_.size() > 1 ? 2 : 1);
      if (!rest_.empty()) rest_.remove_prefix(1);
    } else {
      while (!rest_.empty() && rest_.front() != ']') rest_.remove_prefix(1);
    }
    need("]");
  }

  std::string_view rest_;
  std::vector<GuardText::Variable>& variables_;
  size_t depth_ = 0;
};

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0 || (a == std::numeric_limits<int64_t>::min() && b == -1)) throw NotRead{};
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

int64_t times(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_mul_overflow(a, b, &out)) throw NotRead{};
  return out;
}

int64_t evaluate(const TextNode& n, const std::vector<int64_t>& values) {
  const auto arg = [&](size_t i) { return evaluate(*n.args[i], values); };
  int64_t out;
  switch (n.op) {
    case GuardOp::logical_or: return arg(0) != 0 || arg(1) != 0;
    case GuardOp::logical_and: return arg(0) != 0 && arg(1) != 0;
    case GuardOp::logical_not: return arg(0) == 0;
    case GuardOp::eq: return arg(0) == arg(1);
    case GuardOp::ne: return arg(0) != arg(1);
    case GuardOp::lt: return arg(0) < arg(1);
    case GuardOp::le: return arg(0) <= arg(1);
    case GuardOp::gt: return arg(0) > arg(1);
    case GuardOp::ge: return arg(0) >= arg(1);
    case GuardOp::add:
      if (__builtin_add_overflow(arg(0), arg(1), &out)) throw NotRead{};
      return out;
    case GuardOp::sub:
      if (__builtin_sub_overflow(arg(0), arg(1), &out)) throw NotRead{};
      return out;
    case GuardOp::mul: return times(arg(0), arg(1));
    case GuardOp::floor_div: return floor_divide(arg(0), arg(1));
    case GuardOp::mod: {
      const int64_t a = arg(0), b = arg(1);
      return a - times(floor_divide(a, b), b);
    }
    case GuardOp::negate: return times(arg(0), -1);
    case GuardOp::pow: {
      const int64_t base = arg(0), exponent = arg(1);
      if (exponent < 0 || exponent > 64) throw NotRead{};
      out = 1;
      for (int64_t i = 0; i < exponent; ++i) out = times(out, base);
      return out;
    }
    case GuardOp::call: {
      out = arg(0);
      if (n.name == "abs") return out < 0 ? times(out, -1) : out;
      for (size_t i = 1; i < n.args.size(); ++i) out = n.name == "max" ? std::max(out, arg(i)) : std::min(out, arg(i));
      return out;
    }
    case GuardOp::number: return n.number;
    case GuardOp::variable: return values.at(static_cast<size_t>(n.number));
  }
  throw NotRead{};
}

std::string text(const TextNode& n, const std::vector<std::string>& names) {
  const int own = info(n.op).precedence;
  const auto child = [&](size_t i, int at_least) {
    const std::string inner = text(*n.args[i], names);
    return info(n.args[i]->op).precedence < at_least ? "(" + inner + ")" : inner;
  };
  switch (n.op) {
    case GuardOp::logical_or:
    case GuardOp::logical_and: return child(0, own) + " " + info(n.op).text + " " + child(1, own + 1);
    case GuardOp::logical_not: return std::string("not ") + child(0, own);
    case GuardOp::eq:
    case GuardOp::ne:
    case GuardOp::lt:
    case GuardOp::le:
    case GuardOp::gt:
    case GuardOp::ge: return child(0, own + 1) + " " + info(n.op).text + " " + child(1, own + 1);
    case GuardOp::add:
    case GuardOp::sub:
    case GuardOp::mul:
    case GuardOp::floor_div:
    case GuardOp::mod: return child(0, own) + " " + info(n.op).text + " " + child(1, own + 1);
    case GuardOp::negate: return "-" + child(0, own);
    case GuardOp::pow: return child(0, own + 1) + " ** " + child(1, own);
    case GuardOp::call: {
      std::string out = n.name + "(";
      for (size_t i = 0; i < n.args.size(); ++i) out += (i == 0 ? "" : ", ") + text(*n.args[i], names);
      return out + ")";
    }
    case GuardOp::number: return std::to_string(n.number);
    case GuardOp::variable: return names.at(static_cast<size_t>(n.number));
  }
  return "";
}

}  // namespace

std::optional<GuardText> GuardText::parse(std::string_view text) {
  GuardText out;
  try {
    out.root_ = Parser(text, out.variables_).whole();
  } catch (const NotRead&) {
    return {};
  }
  return out;
}

std::optional<bool> GuardText::holds(const std::vector<int64_t>& values) const {
  try {
    return evaluate(*root_, values) != 0;
  } catch (const NotRead&) {
    return {};
  }
}

std::string GuardText::str(const std::function<std::string(const std::string& source)>& name) const {
  std::vector<std::string> names;
  for (const Variable& v : variables_) {
    std::string out = name(v.source);
    const std::string index = "[" + std::to_string(v.dimension) + "]";
    switch (v.property) {
      case Variable::Property::value: break;
      case Variable::Property::size: out += ".size()" + index; break;
      case Variable::Property::stride: out += ".stride()" + index; break;
      case Variable::Property::storage_offset: out += ".storage_offset()"; break;
    }
    names.push_back(std::move(out));
  }
  return text(*root_, names);
}

}  // namespace calque
