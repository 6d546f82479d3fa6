// Numbers read from texts, and rounded, as Python does both.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "text/jinja/python_text.h"

namespace calque::jinja {
namespace {

bool is_digit_of(char c, int base, int& digit) {
  if (c >= '0' && c <= '9')
    digit = c - '0';
  else if (c >= 'a' && c <= 'z')
    digit = c - 'a' + 10;
  else if (c >= 'A' && c <= 'Z')
    digit = c - 'A' + 10;
  else
    return false;
  return digit < base;
}

// Digits with single underscores between them, which are left out.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const auto digit = [&](size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
    if (i == 0 || !digit(i - 1) || !digit(i + 1)) return std::nullopt;
  }
  return out;
}

}  // namespace

std::optional<int64_t> parse_integer(std::string_view text, int base) {
  text = strip(text, nullptr, true, true);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.size() > 2 && text[0] == '0') {
    const char kind = static_cast<char>(text[1] | 32);
    const int own = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    if (own != 0 && (base == own || base == 0)) {
      base = own;
      text.remove_prefix(2);
      if (text.starts_with('_')) text.remove_prefix(1);
    }
  }
  const bool unknown = base == 0;
  if (unknown) base = 10;
  if (text.empty()) return std::nullopt;
  uint64_t value = 0;
  bool after_digit = false;
  for (const char c : text) {
    int digit = 0;
    if (c == '_' && after_digit) {
      after_digit = false;
      continue;
    }
    if (!is_digit_of(c, base, digit)) return std::nullopt;
    after_digit = true;
    if (__builtin_mul_overflow(value, static_cast<uint64_t>(base), &value) ||
        __builtin_add_overflow(value, static_cast<uint64_t>(digit), &value) || value > uint64_t{1} << 63)
      fail("an integer of the template is larger than 64 bits hold");
  }
  if (!after_digit) return std::nullopt;
  if (unknown && text[0] == '0' && value != 0) return std::nullopt;
  if (!negative && value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    fail("an integer of the template is larger than 64 bits hold");
  return static_cast<int64_t>(negative ? ~value + 1 : value);
}

std::optional<double> parse_float(std::string_view given) {
  const auto clean = without_underscores(strip(given, nullptr, true, true));
  if (!clean) return std::nullopt;
  std::string_view text = *clean;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text[0] == '-' || text[0] == '+') return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
  // "nan(1)" and its like are C's.
  if (text.find('(') != std::string_view::npos) return std::nullopt;
  if (error == std::errc::result_out_of_range) value = std::strtod(std::string(text).c_str(), nullptr);
  return negative ? -value : value;
}

double round_half_even(double value, int64_t digits) {
  if (!std::isfinite(value) || value == 0) return value;
  if (digits > 323) return value;
  if (digits < -308) return std::copysign(0.0, value);
  if (digits >= 0) {
    // The digits of a float are written exactly, so the text is rounded to even where a half is exact.
    std::string text(static_cast<size_t>(digits) + 330, '\0');
    const int size = std::snprintf(text.data(), text.size(), "%.*f", static_cast<int>(digits), value);
    text.resize(static_cast<size_t>(size));
    return std::strtod(text.c_str(), nullptr);
  }
  const double scale = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / scale) * scale;
}

}  // namespace calque::jinja
