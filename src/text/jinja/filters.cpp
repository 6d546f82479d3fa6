// The filters of one value: texts, numbers, JSON. Those of sequences are in sequence_filters.cpp.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/render.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace calque::jinja {
namespace {

int64_t integer_or(const Value* value, int64_t otherwise) { return value ? to_index(*value) : otherwise; }
bool truth_or(const Value* value, bool otherwise) { return value ? truth(*value) : otherwise; }
std::string text_of(Render& render, const Value& value) { return str(render.budget(), value); }

// A filter that makes another text of the text.
template <class Change>
Value changed(Render& render, const Value& input, const Arguments& arguments, const char* name, Change&& change) {
  const Bound none(name, arguments, {});
  const std::string text = text_of(render, input);
  render.budget().spend_bytes(8 * text.size());
  return render.text(change(text));
}

Value absolute(Render& render, const Value& input, const Arguments&) {
  if (input.is(Kind::floating)) return Value(std::fabs(input.floating()));
  if (input.is(Kind::undefined)) undefined_error(input);
  if (!input.is_integral()) type_error(std::string("bad operand type for abs(): '") + type_name(input) + "'");
  return input.integer() < 0 ? negate(render.budget(), input) : Value(input.integer());
}

Value filter_default(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("default", arguments, {"default_value", "boolean"});
  if (!input.is(Kind::undefined) && !(truth_or(given[1], false) && !truth(input))) return input;
  return given.has(0) ? *given[0] : render.text("");
}

Value escape_text(Render& render, const Value& input, const Arguments& arguments) {
  const Bound none("escape", arguments, {});
  if (input.is(Kind::text) && input.text().safe) return input;
  return make_text(render.budget(), escaped(render.budget(), text_of(render, input)), true);
}

// One word after the other, by the separators of Jinja's own title filter.
Value filter_title(Render& render, const Value& input, const Arguments& arguments) {
  return changed(render, input, arguments, "title", [](const std::string& text) {
    std::string out;
    size_t begin = 0;
    const auto word = [&](size_t end) {
      const std::string_view part = std::string_view(text).substr(begin, end - begin);
      if (part.empty()) return;
      append_upper(out, decode_utf8(part.data()).value);
      out += to_lower(part.substr(decode_utf8(part.data()).size));
    };
    for (size_t i = 0; i < text.size();) {
      const Utf8Char c = decode_utf8(text.data() + i);
      const bool between =
          c.value == '-' || c.value == '(' || c.value == '{' || c.value == '[' || c.value == '<' || is_python_space(c.value);
      if (between) {
        word(i);
        out.append(text, i, c.size);
        begin = i + c.size;
      }
      i += c.size;
    }
    word(text.size());
    return out;
  });
}

Value filter_indent(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("indent", arguments, {"width", "first", "blank"});
  if (input.is(Kind::undefined)) undefined_error(input);
  if (!input.is(Kind::text)) type_error(std::string("indent wants a text, not ") + type_name(input));
  Builder space(render.budget());
  if (given.has(0) && given[0]->is(Kind::text))
    space += given[0]->text().bytes;
  else
    space.repeat(" ", static_cast<size_t>(std::max<int64_t>(integer_or(given[0], 4), 0)));
  const bool blank = truth_or(given[2], false);
  const std::string text = input.text().bytes + "\n";
  Builder out(render.budget());
  bool first = true;
  for (const std::string_view line : split_lines(text, false)) {
    if (!first) out += '\n';
    if (first ? truth_or(given[1], false) : blank || !line.empty()) out += space.text();
    out += line;
    first = false;
  }
  return render.text(out.take());
}

Value filter_int(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("int", arguments, {"default", "base"});
  const Value otherwise = given.has(0) ? *given[0] : Value(int64_t{0});
  if (input.is(Kind::undefined)) undefined_error(input);
  (void)render;
  if (input.is_integral()) return Value(input.integer());
  std::optional<double> number;
  if (input.is(Kind::text)) {
    const int64_t base = integer_or(given[1], 10);
    if (base != 0 && (base < 2 || base > 36)) return otherwise;
    if (const auto whole = parse_integer(input.text().bytes, static_cast<int>(base))) return Value(*whole);
    number = parse_float(input.text().bytes);
  } else if (input.is(Kind::floating)) {
    number = input.floating();
  }
  if (!number || !std::isfinite(*number)) return otherwise;
  if (std::fabs(*number) >= 9.2e18) fail("an integer of the template is larger than 64 bits hold");
  return Value(static_cast<int64_t>(*number));
}

Value filter_float(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("float", arguments, {"default"});
  (void)render;
  if (input.is(Kind::undefined)) undefined_error(input);
  if (input.is_number()) return Value(input.floating());
  if (input.is(Kind::text))
    if (const auto number = parse_float(input.text().bytes)) return Value(*number);
  return given.has(0) ? *given[0] : Value(0.0);
}

Value filter_round(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("round", arguments, {"precision", "method"});
  const int64_t precision = integer_or(given[0], 0);
  const std::string method = given.has(1) ? text_of(render, *given[1]) : "common";
  if (method != "common" && method != "ceil" && method != "floor") fail("method must be common, ceil or floor");
  if (input.is(Kind::undefined)) undefined_error(input);
  if (!input.is_number()) type_error(std::string("type ") + type_name(input) + " doesn't define __round__ method");
  if (method == "common") {
    if (input.is(Kind::floating)) return Value(round_half_even(input.floating(), precision));
    if (precision >= 0) return Value(input.integer());
    if (precision < -18) return Value(int64_t{0});
    int64_t scale = 1;
    for (int64_t i = 0; i < -precision; ++i) scale *= 10;
    const int64_t quotient = input.integer() / scale, rest = input.integer() % scale, size = rest < 0 ? -rest : rest;
    const bool away = size > scale - size || (size == scale - size && quotient % 2 != 0);
    return apply(render.budget(), BinaryOperator::multiply, Value(quotient + (away ? (rest < 0 ? -1 : 1) : 0)),
                 Value(scale));
  }
  const Value scale = apply(render.budget(), BinaryOperator::power, Value(int64_t{10}), Value(precision));
  const double scaled = apply(render.budget(), BinaryOperator::multiply, input, scale).floating();
  const double whole = method == "ceil" ? std::ceil(scaled) : std::floor(scaled);
  return apply(render.budget(), BinaryOperator::divide, Value(whole), scale);
}

Value filter_truncate(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("truncate", arguments, {"length", "killwords", "end", "leeway"});
  if (!input.is(Kind::text)) type_error(std::string("object of type '") + type_name(input) + "' has no len()");
  const std::string end = given.has(2) ? text_of(render, *given[2]) : "...";
  const auto end_length = static_cast<int64_t>(count_utf8(end));
  const int64_t length = integer_or(given[0], 255), leeway = integer_or(given[3], 5);
  if (length < end_length) fail("expected length >= " + std::to_string(end_length) + ", got " + std::to_string(length));
  if (leeway < 0) fail("expected leeway >= 0, got " + std::to_string(leeway));
  const Text& text = input.text();
  if (static_cast<int64_t>(text.length) <= length + leeway) return input;
  std::string_view cut = code_points(render.budget(), text, 0, static_cast<size_t>(length - end_length));
  if (!truth_or(given[1], false))
    if (const size_t space = cut.rfind(' '); space != std::string_view::npos) cut = cut.substr(0, space);
  return render.text(std::string(cut) + end);
}

std::string spaces(int64_t count) {
  constexpr int64_t most = 1000;
  if (count > most) fail("tojson indents by at most " + std::to_string(most) + " spaces");
  return std::string(static_cast<size_t>(std::max<int64_t>(count, 0)), ' ');
}

Value filter_tojson(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = truth_or(given[0], false);
  style.sort_keys = truth_or(given[3], false);
  if (given.has(1) && !given[1]->is(Kind::none)) {
    if (given[1]->is(Kind::text))
      style.indent = given[1]->text().bytes;
    else
      style.indent = spaces(to_index(*given[1]));
    style.item_separator = ",";
  }
  if (given.has(2) && !given[2]->is(Kind::none)) {
    const std::vector<Value> both = collect(render.budget(), *given[2]);
    if (both.size() != 2 || !both[0].is(Kind::text) || !both[1].is(Kind::text))
      type_error("separators of tojson are two texts");
    style.item_separator = both[0].text().bytes;
    style.key_separator = both[1].text().bytes;
  }
  return render.text(to_json(render.budget(), input, style));
}

Value filter_urlencode(Render& render, const Value& input, const Arguments& arguments) {
  const Bound none("urlencode", arguments, {});
  const auto quote = [&](Builder& out, const Value& value, bool in_query) {
    for (const char c : text_of(render, value)) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                         std::string_view("_.-~").find(c) != std::string_view::npos || (c == '/' && !in_query);
      if (plain) {
        out += c;
      } else if (c == ' ' && in_query) {
        out += '+';
      } else {
        out += '%';
        out += "0123456789ABCDEF"[static_cast<unsigned char>(c) >> 4];
        out += "0123456789ABCDEF"[static_cast<unsigned char>(c) & 15];
      }
    }
  };
  Builder out(render.budget());
  const bool walks = input.is(Kind::dict) || input.is(Kind::list) || input.is(Kind::tuple) || input.is(Kind::view);
  if (!walks) {
    quote(out, input, false);
    return render.text(out.take());
  }
  const auto pair = [&](const Value& key, const Value& value) {
    if (out.size() > 0) out += '&';
    quote(out, key, true);
    out += '=';
    quote(out, value, true);
  };
  if (input.is(Kind::dict)) {
    for (const auto& [key, value] : input.dict().items) pair(key, value);
  } else {
    for (const Value& item : input.list().items) {
      const std::vector<Value> both = collect(render.budget(), item);
      if (both.size() != 2) fail("urlencode wants pairs");
      pair(both[0], both[1]);
    }
  }
  return render.text(out.take());
}

Value filter_filesizeformat(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("filesizeformat", arguments, {"binary"});
  const Value number = filter_float(render, input, {});
  const bool binary = truth_or(given[0], false);
  const double base = binary ? 1024 : 1000, bytes = number.floating();
  static constexpr const char* prefixes[] = {"k", "M", "G", "T", "P", "E", "Z", "Y"};
  if (bytes == 1) return render.text("1 Byte");
  if (bytes < base) return render.text(std::to_string(static_cast<int64_t>(std::max(bytes, -9e18))) + " Bytes");
  double unit = base;
  for (size_t i = 0;; ++i) {
    unit *= base;
    if (bytes < unit || i + 1 == std::size(prefixes)) {
      const std::string name = binary ? (i == 0 ? "Ki" : std::string(prefixes[i]) + "i") : prefixes[i];
      return render.text(format_value(render.budget(), Value(base * bytes / unit), ".1f") + " " + name + "B");
    }
  }
}

Value filter_wordcount(Render& render, const Value& input, const Arguments& arguments) {
  const Bound none("wordcount", arguments, {});
  int64_t words = 0;
  bool inside = false;
  for (const char32_t c : to_utf32(text_of(render, input))) {
    const UnicodeTable& table = UnicodeTable::instance();
    const bool word = c == '_' || table.is_letter(c) || table.is_number(c);
    words += word && !inside;
    inside = word;
  }
  return Value(words);
}

Value filter_striptags(Render& render, const Value& input, const Arguments& arguments) {
  return changed(render, input, arguments, "striptags", [](std::string text) {
    const auto cut = [&](std::string_view begin, std::string_view end) {
      for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
        const size_t stop = text.find(end, at + begin.size());
        if (stop == std::string::npos) break;
        text.erase(at, stop + end.size() - at);
      }
    };
    cut("<!--", "-->");
    cut("<", ">");
    std::string out;
    for (const std::string_view word : split(text, nullptr, -1, false)) out.append(out.empty() ? "" : " ").append(word);
    static constexpr std::pair<std::string_view, char> entities[] = {{"&lt;", '<'},   {"&gt;", '>'},  {"&#39;", '\''},
                                                                     {"&quot;", '"'}, {"&#34;", '"'}, {"&amp;", '&'}};
    std::string plain;
    for (size_t i = 0; i < out.size();) {
      const auto* found = std::find_if(std::begin(entities), std::end(entities),
                                       [&](const auto& e) { return std::string_view(out).substr(i).starts_with(e.first); });
      plain += found == std::end(entities) ? out[i] : found->second;
      i += found == std::end(entities) ? 1 : found->first.size();
    }
    return plain;
  });
}

[[noreturn]] Value refuse(const char* name) {
  fail(std::string("the filter ") + name + " is not supported in chat templates");
}

Value filter_forceescape(Render& render, const Value& input, const Arguments& arguments) {
  const Bound none("forceescape", arguments, {});
  return make_text(render.budget(), escaped(render.budget(), text_of(render, input)), true);
}

Value filter_safe(Render& render, const Value& input, const Arguments& arguments) {
  const Bound none("safe", arguments, {});
  return make_text(render.budget(), text_of(render, input), true);
}

Value filter_string(Render& render, const Value& input, const Arguments&) { return to_text(render.budget(), input); }

Value filter_upper(Render& render, const Value& input, const Arguments& arguments) {
  return changed(render, input, arguments, "upper", to_upper);
}

Value filter_lower(Render& render, const Value& input, const Arguments& arguments) {
  return changed(render, input, arguments, "lower", to_lower);
}

Value filter_capitalize(Render& render, const Value& input, const Arguments& arguments) {
  return changed(render, input, arguments, "capitalize", capitalize);
}

Value filter_trim(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("trim", arguments, {"chars"});
  const Value* characters = given.has(0) && !given[0]->is(Kind::none) ? given[0] : nullptr;
  if (characters && !characters->is(Kind::text)) type_error("strip arg must be None or str");
  const std::string text = text_of(render, input);
  return render.text(std::string(strip(text, characters, true, true)));
}

Value filter_replace(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("replace", arguments, {"old", "new", "count"}, 2);
  const bool all = !given.has(2) || given[2]->is(Kind::none);
  return render.text(replace(render.budget(), text_of(render, input), text_of(render, *given[0]), text_of(render, *given[1]),
                             all ? -1 : to_index(*given[2])));
}

Value filter_format(Render& render, const Value& input, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty())
    fail("can't handle positional and keyword arguments at the same time");
  Value values = make_tuple(render.budget(), arguments.positional);
  if (!arguments.named.empty()) {
    auto dict = std::make_shared<Dict>(render.budget());
    for (const auto& [name, value] : arguments.named) dict->set(render.text(name), value);
    values = Value(Kind::dict, dict);
  }
  return format_percent(render.budget(), to_text(render.budget(), input), values);
}

Value filter_center(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("center", arguments, {"width"});
  const Value center = *python_attribute(render.budget(), to_text(render.budget(), input), "center");
  return render.call(center, {{Value(integer_or(given[0], 80))}, {}});
}

Value filter_attr(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("attr", arguments, {"name"}, 1);
  if (!given[0]->is(Kind::text)) type_error("attribute name must be string");
  const std::string& name = given[0]->text().bytes;
  if (input.is(Kind::undefined)) undefined_error(input);
  if (auto found = python_attribute(render.budget(), input, name)) return *found;
  return render.undefined(std::string("'") + type_name(input) + " object' has no attribute " + repr_text(name));
}

Value filter_random(Render&, const Value&, const Arguments&) { return refuse("random"); }

Value filter_urlize(Render&, const Value&, const Arguments&) { return refuse("urlize"); }

Value filter_xmlattr(Render&, const Value&, const Arguments&) { return refuse("xmlattr"); }

Value filter_wordwrap(Render&, const Value&, const Arguments&) { return refuse("wordwrap"); }

Value filter_pprint(Render&, const Value&, const Arguments&) { return refuse("pprint"); }

}  // namespace

FilterFunction find_text_filter(std::string_view name) {
  static const std::unordered_map<std::string_view, FilterFunction> filters = {
      {"abs", absolute},
      {"default", filter_default},
      {"d", filter_default},
      {"escape", escape_text},
      {"e", escape_text},
      {"forceescape", filter_forceescape},
      {"safe", filter_safe},
      {"string", filter_string},
      {"upper", filter_upper},
      {"lower", filter_lower},
      {"capitalize", filter_capitalize},
      {"title", filter_title},
      {"trim", filter_trim},
      {"replace", filter_replace},
      {"format", filter_format},
      {"center", filter_center},
      {"indent", filter_indent},
      {"int", filter_int},
      {"float", filter_float},
      {"round", filter_round},
      {"truncate", filter_truncate},
      {"tojson", filter_tojson},
      {"urlencode", filter_urlencode},
      {"filesizeformat", filter_filesizeformat},
      {"wordcount", filter_wordcount},
      {"striptags", filter_striptags},
      {"attr", filter_attr},
      {"random", filter_random},
      {"urlize", filter_urlize},
      {"xmlattr", filter_xmlattr},
      {"wordwrap", filter_wordwrap},
      {"pprint", filter_pprint},
  };
  const auto found = filters.find(name);
  return found == filters.end() ? nullptr : found->second;
}

}  // namespace calque::jinja
