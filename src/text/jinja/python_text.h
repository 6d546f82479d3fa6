// Texts as Python prints, cuts, changes and formats them. All texts are valid UTF-8; positions count code points.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace calque::jinja {

// str() and repr().
std::string str(Budget& budget, const Value& value);
Value to_text(Budget& budget, const Value& value);  // the value itself when it is a text
std::string repr(Budget& budget, const Value& value);
std::string repr_text(std::string_view text);
std::string escaped(Budget& budget, std::string_view text);  // for HTML

bool is_python_space(char32_t c);  // str.isspace()
std::string_view code_points(Budget& budget, const Text& text, size_t from, size_t to);
std::string_view strip(std::string_view text, const Value* characters, bool left, bool right);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);
// At white space when `separator` is null; at most `limit` cuts, counted from the right if asked; -1: all.
std::vector<std::string_view> split(std::string_view text, const std::string* separator, int64_t limit, bool from_right);
std::string replace(Budget& budget, std::string_view text, std::string_view old, std::string_view with, int64_t limit);

// The full mappings of Unicode, of one character.
void append_upper(std::string& out, char32_t c);
void append_title(std::string& out, char32_t c);
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);  // with the final sigma
std::string capitalize(std::string_view text);
std::string title(std::string_view text);  // str.title()
std::string swap_case(std::string_view text);

// "%d of %s" % values, "{} of {x}".format(...), and format(value, ".2f").
Value format_percent(Budget& budget, const Value& format, const Value& values);
Value format_braces(Budget& budget, const Value& format, const Arguments& arguments);
std::string format_value(Budget& budget, const Value& value, std::string_view spec);

// What int() and float() read; nothing when it is no number.
std::optional<int64_t> parse_integer(std::string_view text, int base);
std::optional<double> parse_float(std::string_view text);
double round_half_even(double value, int64_t digits);

// json.dumps.
struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // what one level adds
  std::string item_separator = ", ", key_separator = ": ";
  bool sort_keys = false;
};
std::string to_json(Budget& budget, const Value& value, const JsonStyle& style);
Value from_json(Budget& budget, std::string_view text, const std::string& name);

}  // namespace calque::jinja
