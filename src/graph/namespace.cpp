#include "calque/graph/namespace.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace calque {
namespace {

// Python 3.11's keywords and builtins, and what FX's generated code imports. Sorted.
constexpr std::array<std::string_view, 195> reserved = {
#include "reserved_names.inc"
};
static_assert(std::is_sorted(reserved.begin(), reserved.end()));

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_lower(c) || is_upper(c) || is_digit(c) || c == '_'; }

bool is_python_name(std::string_view s) { return !s.empty() && !is_digit(s[0]) && std::all_of(s.begin(), s.end(), is_word); }

// Runs of characters that no identifier has become one underscore.
std::string legal(std::string_view candidate) {
  std::string out;
  bool in_run = false;
  for (const char c : candidate) {
    if (is_word(c))
      out += c;
    else if (!in_run)
      out += '_';
    in_run = !is_word(c);
  }
  if (out.empty()) out = "_unnamed";
  if (is_digit(out[0])) out.insert(out.begin(), '_');
  return out;
}

// The length of the name without its "_<digits>" at the end; the whole length when it has none.
size_t base_length(std::string_view name) {
  size_t digits = name.size();
  while (digits > 0 && is_digit(name[digits - 1])) --digits;
  const bool has_number = digits < name.size() && digits >= 2 && name[digits - 1] == '_' && name.size() - digits <= 18;
  return has_number ? digits - 1 : name.size();
}

}  // namespace

std::string snake_case(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 4);
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_upper(text[i]) && i > 0 && is_lower(text[i - 1])) out += '_';
    out += is_upper(text[i]) ? static_cast<char>(text[i] - 'A' + 'a') : text[i];
  }
  return out;
}

bool is_reserved_name(std::string_view name) { return std::binary_search(reserved.begin(), reserved.end(), name); }

std::string Namespace::create_name(std::string_view wanted, bool allow_reserved) {
  std::string candidate = is_python_name(wanted) ? std::string(wanted) : legal(wanted);
  const size_t length = base_length(candidate);
  const bool has_number = length < candidate.size();
  const std::string base = candidate.substr(0, length);
  int64_t& count = base_count_[base];
  int64_t number = 0;
  if (!has_number || used_.contains(candidate)) {
    number = count;
    if (!allow_reserved && is_reserved_name(candidate)) candidate = base + "_" + std::to_string(++number);
  } else {
    std::from_chars(candidate.data() + length + 1, candidate.data() + candidate.size(), number);
  }
  while (!used_.insert(candidate).second) candidate = base + "_" + std::to_string(++number);
  count = number;
  return candidate;
}

}  // namespace calque
