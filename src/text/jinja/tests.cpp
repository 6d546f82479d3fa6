// The tests behind "is".
#include <unordered_map>

#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/render.h"

namespace calque::jinja {
namespace {

#define CALQUE_TEST [](Render & render, const Value& value, const Arguments& arguments) -> bool
// Of the value alone.
#define CALQUE_PLAIN(expression)                                        \
  [](Render&, const Value& value, const Arguments& arguments) -> bool { \
    const Bound none("test", arguments, {});                            \
    return expression;                                                  \
  }
#define CALQUE_COMPARED(comparison)                                            \
  [](Render& render, const Value& value, const Arguments& arguments) -> bool { \
    const Bound given("test", arguments, {"other"}, 1);                        \
    return compare(render.budget(), Comparison::comparison, value, *given[0]); \
  }

bool divides(Render& render, const Value& value, const Value& by, int64_t rest) {
  return equal(render.budget(), apply(render.budget(), BinaryOperator::modulo, value, by), Value(rest));
}

bool asks_text(Render& render, const Value& value, std::string_view method) {
  const Value text = to_text(render.budget(), value);
  return truth(render.call(*python_attribute(render.budget(), text, method), {}));
}

bool is_iterable(const Value& v) {
  return v.is(Kind::undefined) || v.is(Kind::iterator) || v.is(Kind::loop) || size_of(v).has_value();
}
bool has_items(const Value& v) {
  return v.is(Kind::text) || v.is(Kind::list) || v.is(Kind::tuple) || v.is(Kind::dict) || v.is(Kind::range);
}

bool test_callable(Render&, const Value& value, const Arguments& arguments) {
  const Bound none("callable", arguments, {});
  return value.is(Kind::function) || value.is(Kind::loop) || value.is(Kind::undefined);
}

}  // namespace

TestFunction find_test(std::string_view name) {
  static const std::unordered_map<std::string_view, TestFunction> tests = {
      {"defined", CALQUE_PLAIN(!value.is(Kind::undefined))}, {"undefined", CALQUE_PLAIN(value.is(Kind::undefined))},
      {"none", CALQUE_PLAIN(value.is(Kind::none))}, {"boolean", CALQUE_PLAIN(value.is(Kind::boolean))},
      {"true", CALQUE_PLAIN(value.is(Kind::boolean) && value.boolean())},
      {"false", CALQUE_PLAIN(value.is(Kind::boolean) && !value.boolean())},
      {"integer", CALQUE_PLAIN(value.is(Kind::integer))}, {"float", CALQUE_PLAIN(value.is(Kind::floating))},
      {"number", CALQUE_PLAIN(value.is_number())}, {"string", CALQUE_PLAIN(value.is(Kind::text))},
      {"mapping", CALQUE_PLAIN(value.is(Kind::dict))}, {"sequence", CALQUE_PLAIN(has_items(value))},
      {"iterable", CALQUE_PLAIN(is_iterable(value))}, {"callable", test_callable},
      {"escaped", CALQUE_PLAIN(value.is(Kind::text) && value.text().safe)},
      {"lower", CALQUE_TEST{const Bound none("lower", arguments, {});
  return asks_text(render, value, "islower");
}
}  // namespace calque::jinja
, {"upper", CALQUE_TEST{const Bound none("upper", arguments, {});
return asks_text(render, value, "isupper");
}
}
, {"odd", CALQUE_TEST{const Bound none("odd", arguments, {});
return divides(render, value, Value(int64_t{2}), 1);
}
}
, {"even", CALQUE_TEST{const Bound none("even", arguments, {});
return divides(render, value, Value(int64_t{2}), 0);
}
}
, {"divisibleby", CALQUE_TEST{const Bound given("divisibleby", arguments, {"num"}, 1);
return divides(render, value, *given[0], 0);
}
}
, {"sameas", CALQUE_TEST{(void)render;
const Bound given("sameas", arguments, {"other"}, 1);
return value.same_as(*given[0]);
}
}
, {"filter", CALQUE_TEST{return (void)arguments, is_known_filter(str(render.budget(), value));
}
}
, {"test", CALQUE_TEST{return (void)arguments, is_known_test(str(render.budget(), value));
}
}
, {"in", CALQUE_COMPARED(in)}, {"==", CALQUE_COMPARED(equal)}, {"eq", CALQUE_COMPARED(equal)},
    {"equalto", CALQUE_COMPARED(equal)}, {"!=", CALQUE_COMPARED(not_equal)}, {"ne", CALQUE_COMPARED(not_equal)},
    {">", CALQUE_COMPARED(greater)}, {"gt", CALQUE_COMPARED(greater)}, {"greaterthan", CALQUE_COMPARED(greater)},
    {">=", CALQUE_COMPARED(greater_equal)}, {"ge", CALQUE_COMPARED(greater_equal)}, {"<", CALQUE_COMPARED(less)},
    {"lt", CALQUE_COMPARED(less)}, {"lessthan", CALQUE_COMPARED(less)}, {"<=", CALQUE_COMPARED(less_equal)},
    {"le", CALQUE_COMPARED(less_equal)},
}
;
const auto found = tests.find(name);
return found == tests.end() ? nullptr : found->second;
}

}  // namespace calque::jinja
