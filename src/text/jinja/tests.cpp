// The tests behind "is".
#include <unordered_map>

#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/render.h"

namespace calque::jinja {
namespace {

// A test of the value alone.
template <auto test>
bool plain(Render&, const Value& value, const Arguments& arguments) {
  const Bound none("test", arguments, {});
  return test(value);
}

template <Comparison comparison>
bool compared(Render& render, const Value& value, const Arguments& arguments) {
  const Bound given("test", arguments, {"other"}, 1);
  return compare(render.budget(), comparison, value, *given[0]);
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

bool test_lower(Render& render, const Value& value, const Arguments& arguments) {
  const Bound none("lower", arguments, {});
  return asks_text(render, value, "islower");
}

bool test_upper(Render& render, const Value& value, const Arguments& arguments) {
  const Bound none("upper", arguments, {});
  return asks_text(render, value, "isupper");
}

bool test_odd(Render& render, const Value& value, const Arguments& arguments) {
  const Bound none("odd", arguments, {});
  return divides(render, value, Value(int64_t{2}), 1);
}

bool test_even(Render& render, const Value& value, const Arguments& arguments) {
  const Bound none("even", arguments, {});
  return divides(render, value, Value(int64_t{2}), 0);
}

bool test_divisibleby(Render& render, const Value& value, const Arguments& arguments) {
  const Bound given("divisibleby", arguments, {"num"}, 1);
  return divides(render, value, *given[0], 0);
}

bool test_sameas(Render&, const Value& value, const Arguments& arguments) {
  const Bound given("sameas", arguments, {"other"}, 1);
  return value.same_as(*given[0]);
}

bool test_filter(Render& render, const Value& value, const Arguments&) {
  return is_known_filter(str(render.budget(), value));
}

bool test_test(Render& render, const Value& value, const Arguments&) { return is_known_test(str(render.budget(), value)); }

}  // namespace

TestFunction find_test(std::string_view name) {
  static const std::unordered_map<std::string_view, TestFunction> tests = {
      {"defined", plain<[](const Value& value) { return !value.is(Kind::undefined); }>},
      {"undefined", plain<[](const Value& value) { return value.is(Kind::undefined); }>},
      {"none", plain<[](const Value& value) { return value.is(Kind::none); }>},
      {"boolean", plain<[](const Value& value) { return value.is(Kind::boolean); }>},
      {"true", plain<[](const Value& value) { return value.is(Kind::boolean) && value.boolean(); }>},
      {"false", plain<[](const Value& value) { return value.is(Kind::boolean) && !value.boolean(); }>},
      {"integer", plain<[](const Value& value) { return value.is(Kind::integer); }>},
      {"float", plain<[](const Value& value) { return value.is(Kind::floating); }>},
      {"number", plain<[](const Value& value) { return value.is_number(); }>},
      {"string", plain<[](const Value& value) { return value.is(Kind::text); }>},
      {"mapping", plain<[](const Value& value) { return value.is(Kind::dict); }>},
      {"sequence", plain<has_items>},
      {"iterable", plain<is_iterable>},
      {"callable", test_callable},
      {"escaped", plain<[](const Value& value) { return value.is(Kind::text) && value.text().safe; }>},
      {"lower", test_lower},
      {"upper", test_upper},
      {"odd", test_odd},
      {"even", test_even},
      {"divisibleby", test_divisibleby},
      {"sameas", test_sameas},
      {"filter", test_filter},
      {"test", test_test},
      {"in", compared<Comparison::in>},
      {"==", compared<Comparison::equal>},
      {"eq", compared<Comparison::equal>},
      {"equalto", compared<Comparison::equal>},
      {"!=", compared<Comparison::not_equal>},
      {"ne", compared<Comparison::not_equal>},
      {">", compared<Comparison::greater>},
      {"gt", compared<Comparison::greater>},
      {"greaterthan", compared<Comparison::greater>},
      {">=", compared<Comparison::greater_equal>},
      {"ge", compared<Comparison::greater_equal>},
      {"<", compared<Comparison::less>},
      {"lt", compared<Comparison::less>},
      {"lessthan", compared<Comparison::less>},
      {"<=", compared<Comparison::less_equal>},
      {"le", compared<Comparison::less_equal>},
  };
  const auto found = tests.find(name);
  return found == tests.end() ? nullptr : found->second;
}

}  // namespace calque::jinja
