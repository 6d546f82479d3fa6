// Formatting: printf's way ("%5.2f" % x), str.format's braces, and the small language of format specifications that both end in.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "calque/tensor/number_text.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/utf8.h"

namespace calque::jinja {
namespace {

constexpr int64_t widest_field = 1 << 20;
constexpr int64_t most_digits = 1000;

struct FieldFormat {
  std::string fill = " ";
  char align = 0;  // < > ^ =
  char sign = '-';
  bool alternate = false, zero = false;
  char grouping = 0;
  int64_t width = 0, precision = -1;
  char type = 0;
};

int64_t read_number(std::string_view text, size_t& at, int64_t most) {
  int64_t out = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    out = out * 10 + (text[at++] - '0');
    if (out > most) fail("a width or precision of a format is larger than " + std::to_string(most));
  }
  return out;
}

FieldFormat read_spec(std::string_view spec) {
  FieldFormat out;
  size_t at = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (!spec.empty()) {
    const size_t first = decode_utf8(spec.data()).size;
    if (spec.size() > first && is_align(spec[first])) {
      out.fill = spec.substr(0, first);
      out.align = spec[first];
      at = first + 1;
    } else if (is_align(spec[0])) {
      out.align = spec[0];
      at = 1;
    }
  }
  const auto take = [&](std::string_view any) {
    return at < spec.size() && any.find(spec[at]) != std::string_view::npos ? spec[at++] : '\0';
  };
  if (const char sign = take("+- ")) out.sign = sign;
  out.alternate = take("#") != 0;
  if (take("0")) {
    out.zero = true;
    if (!out.align) out.fill = "0", out.align = '=';
  }
  out.width = read_number(spec, at, widest_field);
  out.grouping = take(",_");
  if (take(".")) {
    if (at == spec.size() || spec[at] < '0' || spec[at] > '9') fail("Format specifier missing precision");
    out.precision = read_number(spec, at, most_digits);
  }
  out.type = take("bcdeEfFgGnosxX%");
  if (at != spec.size()) fail("Invalid format specifier '" + std::string(spec) + "'");
  return out;
}

std::string padded(Budget& budget, const FieldFormat& format, std::string_view prefix, std::string_view body, char align) {
  const size_t length = count_utf8(prefix) + count_utf8(body);
  const auto width = static_cast<size_t>(format.width);
  const size_t missing = width > length ? width - length : 0;
  const size_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  Builder out(budget);
  out.repeat(format.fill, left);
  out += prefix;
  if (align == '=') out.repeat(format.fill, missing);
  out += body;
  if (align != '=') out.repeat(format.fill, missing - left);
  return out.take();
}

std::string in_base(uint64_t value, unsigned base, bool upper) {
  const std::string_view digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string out;
  do {
    out += digits[value % base];
    value /= base;
  } while (value != 0);
  std::reverse(out.begin(), out.end());
  return out;
}

std::string grouped(std::string_view digits, char separator, size_t each) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % each == 0) out += separator;
    out += digits[i];
  }
  return out;
}

std::string sign_of(bool negative, char sign) { return negative ? "-" : sign == '-' ? "" : std::string(1, sign); }

// The digits of a float that is not negative, by C's letters.
std::string float_digits(double value, char type, int64_t precision, bool alternate) {
  const bool upper = type >= 'A' && type <= 'Z';
  if (!std::isfinite(value)) return std::isnan(value) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf");
  const char format[] = {'%', alternate ? '#' : '.', alternate ? '.' : '*', alternate ? '*' : type, alternate ? type : '\0',
                         '\0'};
  std::string out(static_cast<size_t>(precision) + 350, '\0');
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  out.resize(static_cast<size_t>(std::snprintf(out.data(), out.size(), format, static_cast<int>(precision), value)));
#pragma GCC diagnostic pop
  return out;
}

std::string group_whole(const std::string& digits, char separator) {
  const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  return grouped(digits.substr(0, whole), separator, 3) + digits.substr(whole);
}

std::string format_float(Budget& budget, double value, FieldFormat format) {
  const bool negative = std::signbit(value) && !std::isnan(value);
  const double size = std::fabs(value);
  std::string digits;
  if (format.type == '%') {
    digits = float_digits(size * 100, 'f', format.precision < 0 ? 6 : format.precision, format.alternate) + "%";
  } else if (format.type == 0 && format.precision < 0) {
    digits = python_repr(size);
  } else if (format.type == 0) {
    // As g, with a digit behind the point, and an exponent from the precision on.
    digits = float_digits(size, 'g', std::max<int64_t>(format.precision, 1), format.alternate);
    if (std::isfinite(value) && digits.find_first_of(".e") == std::string::npos) digits += ".0";
  } else {
    const char type = format.type == 'n' ? 'g' : format.type;
    int64_t precision = format.precision < 0 ? 6 : format.precision;
    if ((type == 'g' || type == 'G') && precision == 0) precision = 1;
    digits = float_digits(size, type, precision, format.alternate);
  }
  if (format.grouping) digits = group_whole(digits, format.grouping);
  return padded(budget, format, sign_of(negative, format.sign), digits, format.align ? format.align : '>');
}

std::string format_integer(Budget& budget, int64_t value, FieldFormat format) {
  if (format.type != 0 && std::string_view("eEfFgG%").find(format.type) != std::string_view::npos)
    return format_float(budget, static_cast<double>(value), format);
  if (format.precision >= 0) fail("Precision not allowed in integer format specifier");
  const uint64_t size = value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  std::string prefix = sign_of(value < 0, format.sign), digits;
  switch (format.type) {
    case 'b': digits = in_base(size, 2, false); break;
    case 'o': digits = in_base(size, 8, false); break;
    case 'x':
    case 'X': digits = in_base(size, 16, format.type == 'X'); break;
    case 'c':
      if (value < 0 || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) fail("%c arg not in range(0x110000)");
      append_utf8(digits, static_cast<char32_t>(value));
      break;
    case 's': fail("Unknown format code 's' for object of type 'int'");
    default: digits = in_base(size, 10, false);
  }
  const bool based = format.type == 'b' || format.type == 'o' || format.type == 'x' || format.type == 'X';
  if (format.alternate && based) prefix += std::string("0") + format.type;
  if (format.grouping) digits = grouped(digits, format.grouping, based ? 4 : 3);
  return padded(budget, format, prefix, digits, format.align ? format.align : '>');
}

std::string format_text(Budget& budget, std::string_view text, const FieldFormat& format) {
  if (format.type != 0 && format.type != 's')
    fail(std::string("Unknown format code '") + format.type + "' for object of type 'str'");
  if (format.align == '=' && !format.zero) fail("'=' alignment not allowed in string format specifier");
  if (format.precision >= 0) {
    size_t at = 0;
    for (int64_t i = 0; i < format.precision && at < text.size(); ++i) at += decode_utf8(text.data() + at).size;
    text = text.substr(0, at);
  }
  return padded(budget, format, "", text, format.align && format.align != '=' ? format.align : '<');
}

// ---- printf -----------------------------------------------------------------------------------------------------------

// The values of a % in turn.
class PercentValues {
 public:
  explicit PercentValues(const Value& values) : values_(values), many_(values.is(Kind::tuple)) {}
  Value next() {
    if (many_ ? used_ >= values_.list().items.size() : used_ > 0) type_error("not enough arguments for format string");
    ++used_;
    return many_ ? values_.list().items[used_ - 1] : values_;
  }
  Value named(Budget& budget, const std::string& key) {
    if (!values_.is(Kind::dict)) type_error("format requires a mapping");
    used_ = 1;
    const Value* found = values_.dict().find(key);
    if (!found) fail(repr_text(key));
    (void)budget;
    return *found;
  }
  void finish() const {
    const bool left = many_ ? used_ < values_.list().items.size() : used_ == 0 && !values_.is(Kind::dict) && !walks();
    if (left) type_error("not all arguments converted during string formatting");
  }

 private:
  bool walks() const { return values_.is(Kind::list); }
  const Value& values_;
  bool many_;
  size_t used_ = 0;
};

double number_for(char type, const Value& value) {
  if (!value.is_number())
    type_error(std::string("%") + type + " format: a real number is required, not " + type_name(value));
  return value.floating();
}

std::string percent_field(Budget& budget, FieldFormat format, bool left, const Value& value) {
  if (left) format.align = '<', format.fill = " ";
  switch (format.type) {
    case 's':
    case 'r':
    case 'a': {
      std::string text = format.type == 's' ? str(budget, value) : repr(budget, value);
      format.type = 's';
      if (!left) format.align = '>', format.fill = " ";
      return format_text(budget, text, format);
    }
    case 'd':
    case 'i':
    case 'u': {
      const double number = number_for(format.type == 'i' ? 'i' : 'd', value);
      if (value.is(Kind::floating) && !(std::fabs(number) < 9e18)) fail("cannot convert this float to an integer");
      const int64_t whole = value.is(Kind::floating) ? static_cast<int64_t>(number) : value.integer();
      const int64_t digits = format.precision;
      format.type = 'd';
      format.precision = -1;
      if (digits > 0) {
        FieldFormat inner;
        inner.sign = format.sign;
        inner.fill = "0", inner.align = '=', inner.width = digits + (whole < 0 || format.sign != '-');
        const std::string body = format_integer(budget, whole, inner);
        return padded(budget, format, "", body, left ? '<' : '>');
      }
      return format_integer(budget, whole, format);
    }
    case 'x':
    case 'X':
    case 'o':
      if (!value.is_integral())
        type_error(std::string("%") + format.type + " format: an integer is required, not " + type_name(value));
      format.precision = -1;
      return format_integer(budget, value.integer(), format);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G': return format_float(budget, number_for(format.type, value), format);
    case 'c':
      if (value.is(Kind::text) && value.text().length == 1) {
        format.type = 's';
        if (!left) format.align = '>', format.fill = " ";
        return format_text(budget, value.text().bytes, format);
      }
      if (!value.is_integral()) type_error("%c requires int or char");
      format.precision = -1;
      return format_integer(budget, value.integer(), format);
    default: fail(std::string("unsupported format character '") + format.type + "'");
  }
}

}  // namespace

std::string format_value(Budget& budget, const Value& value, std::string_view spec) {
  if (spec.empty()) return str(budget, value);
  if (value.is(Kind::text)) return format_text(budget, value.text().bytes, read_spec(spec));
  const FieldFormat format = read_spec(spec);
  if (value.is_integral()) return format_integer(budget, value.integer(), format);
  if (value.is(Kind::floating)) {
    if (format.type != 0 && std::string_view("eEfFgGn%").find(format.type) == std::string_view::npos)
      fail(std::string("Unknown format code '") + format.type + "' for object of type 'float'");
    return format_float(budget, value.floating(), format);
  }
  type_error(std::string("unsupported format string passed to ") + type_name(value) + ".__format__");
}

Value format_percent(Budget& budget, const Value& format, const Value& given) {
  const std::string& text = format.text().bytes;
  PercentValues values(given);
  Builder out(budget);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const auto need = [&] {
      if (i >= text.size()) fail("incomplete format");
    };
    ++i;
    need();
    std::optional<Value> chosen;
    if (text[i] == '(') {
      int depth = 1;
      const size_t begin = ++i;
      for (; i < text.size() && depth > 0; ++i) depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
      if (depth > 0) fail("incomplete format key");
      chosen = values.named(budget, text.substr(begin, i - 1 - begin));
      need();
    }
    FieldFormat field;
    bool left = false;
    for (; i < text.size() && std::string_view("#0- +").find(text[i]) != std::string_view::npos; ++i) {
      if (text[i] == '#') field.alternate = true;
      if (text[i] == '0') field.fill = "0", field.align = '=', field.zero = true;
      if (text[i] == '-') left = true;
      if (text[i] == '+' || (text[i] == ' ' && field.sign != '+')) field.sign = text[i];
    }
    const auto number = [&](int64_t most) {
      if (i < text.size() && text[i] == '*') {
        ++i;
        const Value n = values.next();
        if (!n.is_integral()) type_error("* wants int");
        if (n.integer() < 0) left = true;
        const uint64_t size = n.integer() < 0 ? ~static_cast<uint64_t>(n.integer()) + 1 : static_cast<uint64_t>(n.integer());
        if (size > static_cast<uint64_t>(most))
          fail("a width or precision of a format is larger than " + std::to_string(most));
        return static_cast<int64_t>(size);
      }
      return read_number(text, i, most);
    };
    field.width = number(widest_field);
    if (i < text.size() && text[i] == '.') {
      ++i;
      field.precision = number(most_digits);
    }
    while (i < text.size() && (text[i] == 'h' || text[i] == 'l' || text[i] == 'L')) ++i;
    need();
    if (text[i] == '%') {
      out += '%';
      continue;
    }
    field.type = text[i];
    out += percent_field(budget, field, left, chosen ? *chosen : values.next());
  }
  values.finish();
  return make_text(budget, out.take());
}

// ---- braces -----------------------------------------------------------------------------------------------------------

namespace {

class Braces {
 public:
  Braces(Budget& budget, const Arguments& arguments) : budget_(budget), arguments_(arguments) {}

  std::string fill(std::string_view text, int depth) {
    if (depth < 0) fail("Max string recursion exceeded");
    Builder out(budget_);
    for (size_t i = 0; i < text.size();) {
      const char c = text[i];
      if (c != '{' && c != '}') {
        out += c;
        ++i;
      } else if (i + 1 < text.size() && text[i + 1] == c) {
        out += c;
        i += 2;
      } else if (c == '}') {
        fail("Single '}' encountered in format string");
      } else {
        int open = 1;
        const size_t begin = ++i;
        for (; i < text.size() && open > 0; ++i) open += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
        if (open > 0) fail("expected '}' before end of string");
        out += field(text.substr(begin, i - 1 - begin), depth);
      }
    }
    return out.take();
  }

 private:
  [[noreturn]] static void fail(const char* message) { jinja::fail(message); }

  std::string field(std::string_view text, int depth) {
    // name, !conversion, :specification
    size_t end = 0;
    for (int open = 0; end < text.size(); ++end) {
      if (text[end] == '[') ++open;
      if (text[end] == ']') --open;
      if (open <= 0 && (text[end] == '!' || text[end] == ':')) break;
    }
    const std::string_view name = text.substr(0, end);
    text.remove_prefix(end);
    char conversion = 0;
    if (text.starts_with('!')) {
      if (text.size() < 2 || (text.size() > 2 && text[2] != ':')) fail("expected ':' after conversion specifier");
      conversion = text[1];
      text.remove_prefix(2);
    }
    if (text.starts_with(':')) text.remove_prefix(1);
    Value value = named(name);
    if (conversion == 's')
      value = to_text(budget_, value);
    else if (conversion == 'r' || conversion == 'a')
      value = make_text(budget_, repr(budget_, value));
    else if (conversion)
      fail("Unknown conversion specifier");
    return format_value(budget_, value, fill(text, depth - 1));
  }

  Value named(std::string_view name) {
    const size_t end = std::min(name.find_first_of(".["), name.size());
    Value value = first(std::string(name.substr(0, end)));
    name.remove_prefix(end);
    while (!name.empty()) {
      if (name[0] == '.') {
        const size_t stop = std::min(name.find_first_of(".[", 1), name.size());
        if (stop == 1) fail("Empty attribute in format string");
        value = get_attribute(budget_, value, name.substr(1, stop - 1));
        name.remove_prefix(stop);
      } else {
        const size_t stop = name.find(']');
        if (name[0] != '[') fail("Only '.' or '[' may follow ']' in format field specifier");
        if (stop == std::string_view::npos) fail("Missing ']' in format string");
        if (stop == 1) fail("Empty attribute in format string");
        const std::string_view key = name.substr(1, stop - 1);
        const bool digits = key.find_first_not_of("0123456789") == std::string_view::npos;
        value = get_item(budget_, value,
                         digits ? Value(parse_integer(key, 10).value_or(0)) : make_text(budget_, std::string(key)));
        name.remove_prefix(stop + 1);
      }
    }
    return value;
  }

  Value first(const std::string& name) {
    const bool digits = name.find_first_not_of("0123456789") == std::string::npos;
    if (!digits) {
      const Value* found = arguments_.find(name);
      if (!found) jinja::fail(repr_text(name));
      return *found;
    }
    if (name.empty() ? numbered_ == Numbered::given : numbered_ == Numbered::counted)
      fail("cannot switch between automatic field numbering and manual field specification");
    numbered_ = name.empty() ? Numbered::counted : Numbered::given;
    const size_t at = name.empty() ? next_++ : static_cast<size_t>(parse_integer(name, 10).value_or(0));
    if (at >= arguments_.positional.size()) fail("Replacement index out of range for positional args tuple");
    return arguments_.positional[at];
  }

  enum class Numbered : uint8_t { unknown, counted, given };
  Budget& budget_;
  const Arguments& arguments_;
  Numbered numbered_ = Numbered::unknown;
  size_t next_ = 0;
};

}  // namespace

Value format_braces(Budget& budget, const Value& format, const Arguments& arguments) {
  return make_text(budget, Braces(budget, arguments).fill(format.text().bytes, 2));
}

}  // namespace calque::jinja
