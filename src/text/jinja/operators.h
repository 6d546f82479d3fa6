// What Python's operators do with the values of a template, and how Jinja reaches into them.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace calque::jinja {

enum class BinaryOperator : uint8_t { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class Comparison : uint8_t { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };

Value apply(Budget& budget, BinaryOperator op, const Value& a, const Value& b);
Value negate(Budget& budget, const Value& value);
Value plus(const Value& value);
bool compare(Budget& budget, Comparison comparison, const Value& a, const Value& b);
bool equal(Budget& budget, const Value& a, const Value& b);
bool less(Budget& budget, const Value& a, const Value& b);
bool contains(Budget& budget, const Value& container, const Value& item);

Value get_attribute(Budget& budget, const Value& value, std::string_view name);  // value.name
Value get_item(Budget& budget, const Value& value, const Value& key);            // value[key]
Value get_slice(Budget& budget, const Value& value, const Value& start, const Value& stop, const Value& step);

// What Python finds as an attribute (methods.cpp): nothing when there is none. A method that would change its object
// and what begins with an underscore are undefined, and fail when used.
std::optional<Value> python_attribute(Budget& budget, const Value& value, std::string_view name);

// Stable, as Python's sorted.
void sort_values(Budget& budget, std::vector<std::pair<Value, Value>>& keyed, bool reverse);

int64_t to_index(const Value& value);  // of an integer or boolean; a TypeError for others
[[noreturn]] void undefined_error(const Value& value);

}  // namespace calque::jinja
