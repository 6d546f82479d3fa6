#include "text/jinja/python_text.h"

#include <algorithm>
#include <cmath>

#include "calque/tensor/number_text.h"
#include "text/jinja/operators.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace calque::jinja {
namespace {

// What repr writes as it is: no control, format, surrogate, private, unassigned or separating character but the space.
bool is_printable(char32_t c) {
  if (c < 0x7F) return c >= 0x20;
  constexpr uint32_t hidden = 0x1Fu | 7u << 27;  // the first five categories and the last three
  return (1u << UnicodeTable::instance().category(c) & hidden) == 0;
}

char hex_digit(uint32_t n) { return "0123456789abcdef"[n & 15]; }

void append_hex(std::string& out, char letter, char32_t c, int digits) {
  out += '\\';
  out += letter;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += hex_digit(static_cast<uint32_t>(c) >> shift);
}

const char* style_name(List::Style style) {
  switch (style) {
    case List::Style::keys: return "dict_keys";
    case List::Style::values: return "dict_values";
    case List::Style::items: return "dict_items";
    case List::Style::plain:
    case List::Style::group: break;
  }
  return "";
}

void append_repr(Budget& budget, Builder& out, const Value& value);

void append_items(Budget& budget, Builder& out, const std::vector<Value>& items) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    append_repr(budget, out, items[i]);
  }
}

void append_repr(Budget& budget, Builder& out, const Value& value) {
  budget.spend(1);
  switch (value.kind()) {
    case Kind::undefined: out += "Undefined"; return;
    case Kind::none: out += "None"; return;
    case Kind::boolean: out += value.boolean() ? "True" : "False"; return;
    case Kind::integer: out += std::to_string(value.integer()); return;
    case Kind::floating: out += python_repr(value.floating()); return;
    case Kind::text: {
      const std::string quoted = repr_text(value.text().bytes);
      out += value.text().safe ? "Markup(" + quoted + ")" : quoted;
      return;
    }
    case Kind::list:
      out += '[';
      append_items(budget, out, value.list().items);
      out += ']';
      return;
    case Kind::tuple:
      out += '(';
      append_items(budget, out, value.list().items);
      out += value.list().items.size() == 1 ? ",)" : ")";
      return;
    case Kind::view:
      out += style_name(value.list().style);
      out += "([";
      append_items(budget, out, value.list().items);
      out += "])";
      return;
    case Kind::dict: {
      out += '{';
      bool first = true;
      for (const auto& [key, item] : value.dict().items) {
        if (!first) out += ", ";
        first = false;
        append_repr(budget, out, key);
        out += ": ";
        append_repr(budget, out, item);
      }
      out += '}';
      return;
    }
    case Kind::range: {
      const Range& r = value.range();
      out += "range(" + std::to_string(r.start) + ", " + std::to_string(r.stop);
      if (r.step != 1) out += ", " + std::to_string(r.step);
      out += ')';
      return;
    }
    case Kind::iterator: out += "<generator object>"; return;
    case Kind::names: out += "<Namespace>"; return;
    case Kind::function: {
      const Function& f = value.function();
      out += f.shown.empty() ? "<function " + f.name + ">" : f.shown;
      return;
    }
    case Kind::loop:
      out += "<LoopContext " + std::to_string(value.loop().index0 + 1) + "/" + std::to_string(value.loop().length()) + ">";
      return;
    case Kind::cycler: out += "<Cycler>"; return;
  }
}

bool in_text(std::string_view characters, std::string_view character) {
  // A character's bytes are found only where the character stands.
  return characters.find(character) != std::string_view::npos;
}

size_t last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && is_utf8_continuation(text[at])) --at;
  return at;
}

bool is_line_end(char32_t c) {
  return (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

bool is_python_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string repr_text(std::string_view text) {
  const char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = decode_utf8(text.data() + i);
    if (c.value == static_cast<char32_t>(quote) || c.value == '\\') {
      out += '\\';
      out += static_cast<char>(c.value);
    } else if (c.value == '\n') {
      out += "\\n";
    } else if (c.value == '\r') {
      out += "\\r";
    } else if (c.value == '\t') {
      out += "\\t";
    } else if (is_printable(c.value)) {
      out += text.substr(i, c.size);
    } else if (c.value <= 0xFF) {
      append_hex(out, 'x', c.value, 2);
    } else if (c.value <= 0xFFFF) {
      append_hex(out, 'u', c.value, 4);
    } else {
      append_hex(out, 'U', c.value, 8);
    }
    i += c.size;
  }
  out += quote;
  return out;
}

std::string repr(Budget& budget, const Value& value) {
  Builder out(budget);
  append_repr(budget, out, value);
  return out.take();
}

std::string str(Budget& budget, const Value& value) {
  if (value.is(Kind::text)) return value.text().bytes;
  if (value.is(Kind::undefined)) return "";
  return repr(budget, value);
}

Value to_text(Budget& budget, const Value& value) {
  return value.is(Kind::text) ? value : make_text(budget, str(budget, value));
}

std::string escaped(Budget& budget, std::string_view text) {
  Builder out(budget);
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&#34;"; break;
      default: out += c;
    }
  }
  return out.take();
}

std::string_view code_points(Budget& budget, const Text& text, size_t from, size_t to) {
  if (text.ascii()) return std::string_view(text.bytes).substr(from, to - from);
  budget.spend_bytes(text.bytes.size());
  size_t at = 0, i = 0;
  const auto skip = [&](size_t count) {
    for (; i < count && at < text.bytes.size(); ++i) at += decode_utf8(text.bytes.data() + at).size;
    return at;
  };
  const size_t begin = skip(from), end = skip(to);
  return std::string_view(text.bytes).substr(begin, end - begin);
}

std::string_view strip(std::string_view text, const Value* characters, bool left, bool right) {
  const std::string_view all = characters ? std::string_view(characters->text().bytes) : "";
  const auto goes = [&](std::string_view character) {
    return characters ? in_text(all, character) : is_python_space(decode_utf8(character.data()).value);
  };
  while (left && !text.empty()) {
    const size_t size = decode_utf8(text.data()).size;
    if (!goes(text.substr(0, size))) break;
    text.remove_prefix(size);
  }
  while (right && !text.empty()) {
    const size_t last = last_character(text);
    if (!goes(text.substr(last))) break;
    text = text.substr(0, last);
  }
  return text;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = decode_utf8(text.data() + i);
    size_t end = i + c.size;
    if (is_line_end(c.value)) {
      if (c.value == '\r' && end < text.size() && text[end] == '\n') ++end;
      out.push_back(text.substr(begin, (keep_ends ? end : i) - begin));
      begin = end;
    }
    i = end;
  }
  if (begin < text.size()) out.push_back(text.substr(begin));
  return out;
}

std::vector<std::string_view> split(std::string_view text, const std::string* separator, int64_t limit, bool from_right) {
  std::vector<std::string_view> out;
  const auto more = [&] { return limit < 0 || static_cast<int64_t>(out.size()) < limit; };
  if (separator && from_right) {
    size_t at = 0;
    while (more() && (at = text.rfind(*separator)) != std::string_view::npos) {
      out.push_back(text.substr(at + separator->size()));
      text = text.substr(0, at);
    }
    out.push_back(text);
  } else if (separator) {
    size_t at = 0;
    while (more() && (at = text.find(*separator)) != std::string_view::npos) {
      out.push_back(text.substr(0, at));
      text.remove_prefix(at + separator->size());
    }
    out.push_back(text);
  } else {
    const auto is_space_at = [&](size_t i) { return is_python_space(decode_utf8(text.data() + i).value); };
    for (;;) {
      text = strip(text, nullptr, !from_right, from_right);
      if (text.empty()) break;
      if (!more()) {
        out.push_back(text);
        break;
      }
      if (from_right) {
        size_t begin = text.size();
        while (begin > 0 && !is_space_at(last_character(text.substr(0, begin))))
          begin = last_character(text.substr(0, begin));
        out.push_back(text.substr(begin));
        text = text.substr(0, begin);
      } else {
        size_t end = 0;
        while (end < text.size() && !is_space_at(end)) end += decode_utf8(text.data() + end).size;
        out.push_back(text.substr(0, end));
        text.remove_prefix(end);
      }
    }
  }
  if (from_right) std::reverse(out.begin(), out.end());
  return out;
}

std::string replace(Budget& budget, std::string_view text, std::string_view old, std::string_view with, int64_t limit) {
  Builder out(budget);
  budget.spend_bytes(text.size());
  int64_t done = 0;
  if (old.empty()) {
    // Between all characters.
    size_t i = 0;
    while (limit < 0 || done < limit) {
      out += with;
      ++done;
      if (i == text.size()) return out.take();
      const size_t size = decode_utf8(text.data() + i).size;
      out += text.substr(i, size);
      i += size;
    }
    out += text.substr(i);
    return out.take();
  }
  for (; limit < 0 || done < limit; ++done) {
    const size_t at = text.find(old);
    if (at == std::string_view::npos) break;
    out += text.substr(0, at);
    out += with;
    text.remove_prefix(at + old.size());
  }
  out += text;
  return out.take();
}

}  // namespace calque::jinja
