// What a template is after reading: statements and expressions, nested no deeper than walking them bears.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/operators.h"

namespace calque::jinja {

struct Node;
using NodePtr = std::unique_ptr<Node>;

enum class NodeKind : uint8_t {
  // Expressions. What stands behind each says its children.
  constant,     // none: `constant`
  name,         // none
  member,       // name of a namespace to assign to: `name`, `member`
  attribute,    // object
  item,         // object, key
  slice,        // object, start, stop, step; what is left out is null
  call,         // function; arguments
  filter,       // input, null in a filter block; arguments
  test,         // value; arguments
  binary,       // left, right
  negative,     // value
  positive,     // value
  invert,       // value: not
  comparison,   // first, then one for each of `comparisons`
  both,         // left, right: and
  either,       // left, right: or
  conditional,  // condition, value, otherwise or null
  concat,       // texts: ~
  list,         // items
  tuple,        // items
  dict,         // key, value, ...
  // Statements.
  data,          // none: `constant`
  print,         // values
  loop,          // target, iterable, condition or null; body, otherwise
  branch,        // condition; body, otherwise
  assign,        // target, value
  assign_block,  // target, filter or null; body
  macro,         // parameters as names; defaults are the last of `arguments`; body
  call_block,    // call, then parameters; defaults; body
  filter_block,  // filter; body
  with,          // target, value, ...; body
  scope,         // body: what stands in {% generation %} or {% block %}
  leave,         // break
  next,          // continue
  refused,       // a statement that needs other templates: `name`
};

struct Node {
  NodeKind kind;
  uint32_t line;
  uint32_t depth = 1;
  std::string name, member;
  std::vector<NodePtr> children;
  std::vector<NodePtr> arguments;
  std::vector<std::pair<std::string, NodePtr>> named;
  NodePtr star, star_star;  // *args, **kwargs
  std::vector<NodePtr> body, otherwise;
  std::variant<std::monostate, bool, int64_t, double, std::string> constant;
  BinaryOperator op{};
  std::vector<Comparison> comparisons;
  bool recursive = false;
  // Of a macro: does its body speak of what the caller may give besides the parameters?
  bool takes_caller = false, takes_named = false, takes_more = false;
};

// Of a whole template. `name` stands in messages.
std::vector<NodePtr> parse_template(std::string_view source);

bool is_known_filter(std::string_view name);
bool is_known_test(std::string_view name);

}  // namespace calque::jinja
