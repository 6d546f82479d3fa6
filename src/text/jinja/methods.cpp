// The methods of texts, lists and dicts, and the other attributes that Python's objects have in a template.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/render.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace calque::jinja {
namespace {

using Method = Value (*)(Render&, const Value& self, const Arguments&);
using Methods = std::unordered_map<std::string_view, Method>;

const std::string& text_argument(const Value& value, const char* what) {
  if (!value.is(Kind::text)) type_error(std::string(what) + " must be str, not " + type_name(value));
  return value.text().bytes;
}
int64_t number_argument(const Value* value, int64_t otherwise) { return value ? to_index(*value) : otherwise; }
const Value* unless_none(const Value* value) { return value && !value->is(Kind::none) ? value : nullptr; }

Value texts(Render& render, const std::vector<std::string_view>& parts) {
  std::vector<Value> out;
  render.budget().spend(parts.size());
  for (const std::string_view part : parts) push(render.budget(), out, render.text(std::string(part)));
  return make_list(render.budget(), std::move(out));
}

// A part of a text by code points, as the arguments start and end of Python's methods mean it.
struct Section {
  std::string_view text;
  int64_t start;
  bool exists;  // not beyond the end
};
Section section(Render& render, const Text& text, const Value* start, const Value* end) {
  const auto size = static_cast<int64_t>(text.length);
  const auto clip = [size](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  const int64_t from = number_argument(unless_none(start), 0), to = clip(number_argument(unless_none(end), size));
  const int64_t begin = clip(from);
  const bool exists = from <= size && begin <= to;
  return {exists ? code_points(render.budget(), text, static_cast<size_t>(begin), static_cast<size_t>(to)) : "", begin,
          exists};
}

int64_t found_at(Render& render, const Value& self, const Arguments& arguments, bool last) {
  const Bound given("find", arguments, {"sub", "start", "end"}, 1);
  const std::string& wanted = text_argument(*given[0], "sub");
  const Section part = section(render, self.text(), given[1], given[2]);
  render.budget().spend_bytes(part.text.size());
  const size_t at = !part.exists ? std::string_view::npos : last ? part.text.rfind(wanted) : part.text.find(wanted);
  return at == std::string_view::npos ? -1 : part.start + static_cast<int64_t>(count_utf8(part.text.substr(0, at)));
}

Value index_of(Render& render, const Value& self, const Arguments& arguments, bool last) {
  const int64_t at = found_at(render, self, arguments, last);
  if (at < 0) fail("substring not found");
  return Value(at);
}

// startswith and endswith take one text or a tuple of them.
template <class Test>
Value any_of_texts(Render& render, const Value& self, const Arguments& arguments, const char* name, Test&& test) {
  const Bound given(name, arguments, {"prefix", "start", "end"}, 1);
  const Section part = section(render, self.text(), given[1], given[2]);
  const auto matches = [&](const Value& v) {
    if (!v.is(Kind::text)) type_error(std::string(name) + " first arg must be str or a tuple of str, not " + type_name(v));
    return part.exists && test(part.text, v.text().bytes);
  };
  if (!given[0]->is(Kind::tuple)) return Value(matches(*given[0]));
  for (const Value& item : given[0]->list().items)
    if (matches(item)) return Value(true);
  return Value(false);
}

Value stripped(Render& render, const Value& self, const Arguments& arguments, bool left, bool right) {
  const Bound given("strip", arguments, {"chars"});
  const Value* characters = unless_none(given[0]);
  if (characters) text_argument(*characters, "strip arg");
  render.budget().spend_bytes(self.text().bytes.size());
  return render.text(std::string(strip(self.text().bytes, characters, left, right)));
}

Value split_text(Render& render, const Value& self, const Arguments& arguments, bool from_right) {
  const Bound given("split", arguments, {"sep", "maxsplit"});
  const Value* separator = unless_none(given[0]);
  if (separator && text_argument(*separator, "separator").empty()) fail("empty separator");
  render.budget().spend_bytes(self.text().bytes.size());
  return texts(render, split(self.text().bytes, separator ? &separator->text().bytes : nullptr,
                             number_argument(given[1], -1), from_right));
}

Value parted(Render& render, const Value& self, const Arguments& arguments, bool last) {
  const Bound given("partition", arguments, {"sep"}, 1);
  const std::string& separator = text_argument(*given[0], "separator");
  if (separator.empty()) fail("empty separator");
  const std::string& text = self.text().bytes;
  const size_t at = last ? text.rfind(separator) : text.find(separator);
  const bool found = at != std::string::npos;
  const std::string whole = text, none;
  std::vector<Value> out;
  if (found) {
    out = {render.text(text.substr(0, at)), render.text(separator), render.text(text.substr(at + separator.size()))};
  } else {
    out = {render.text(last ? none : whole), render.text(none), render.text(last ? whole : none)};
  }
  return make_tuple(render.budget(), std::move(out));
}

// 0: all of the padding behind the text, 1: before it, 2: on both sides.
Value justified(Render& render, const Value& self, const Arguments& arguments, int how) {
  const Bound given("center", arguments, {"width", "fillchar"}, 1);
  const std::string fill = given.has(1) ? text_argument(*given[1], "the fill character") : " ";
  if (count_utf8(fill) != 1) type_error("The fill character must be exactly one character long");
  const int64_t missing = std::max<int64_t>(to_index(*given[0]) - static_cast<int64_t>(self.text().length), 0);
  const int64_t width = static_cast<int64_t>(self.text().length) + missing;
  // Where the padding is odd, Python puts the odd one on the left of a text of odd width.
  const int64_t left = how == 0 ? 0 : how == 1 ? missing : missing / 2 + (missing & width & 1);
  Builder out(render.budget());
  out.repeat(fill, static_cast<size_t>(left));
  out += self.text().bytes;
  out.repeat(fill, static_cast<size_t>(missing - left));
  return render.text(out.take());
}

// Is the text not empty, and every character of this kind?
template <class Test>
bool all_characters(const Value& self, Test&& test) {
  const std::u32string all = to_utf32(self.text().bytes);
  return !all.empty() && std::all_of(all.begin(), all.end(), test);
}

uint32_t category_bit(char32_t c) { return 1u << UnicodeTable::instance().category(c); }
constexpr uint32_t upper_bits = 1u << 5, lower_bits = 1u << 6, title_bits = 1u << 7, decimal_bits = 1u << 13;

bool is_digit_like(char32_t c) {
  return (category_bit(c) & decimal_bits) != 0 || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 ||
         (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089);
}

// Some cased character, and none of the other case.
bool has_case(const Value& self, uint32_t wanted, uint32_t others) {
  bool any = false;
  for (const char32_t c : to_utf32(self.text().bytes)) {
    const uint32_t bit = category_bit(c);
    if (bit & others) return false;
    any |= (bit & wanted) != 0;
  }
  return any;
}

bool is_title(const Value& self) {
  bool any = false, inside = false;
  for (const char32_t c : to_utf32(self.text().bytes)) {
    const uint32_t bit = category_bit(c);
    if (bit & (upper_bits | title_bits)) {
      if (inside) return false;
      inside = any = true;
    } else if (bit & lower_bits) {
      if (!inside) return false;
      any = true;
    } else {
      inside = false;
    }
  }
  return any;
}

Value joined_texts(Render& render, const Value& self, const Arguments& arguments) {
  const Bound given("join", arguments, {"iterable"}, 1);
  Builder out(render.budget());
  size_t i = 0;
  const auto items = iterate(render.budget(), *given[0]);
  for (Value item; items->next(item); ++i) {
    if (!item.is(Kind::text))
      type_error("sequence item " + std::to_string(i) + ": expected str instance, " + type_name(item) + " found");
    if (i > 0) out += self.text().bytes;
    out += item.text().bytes;
  }
  return render.text(out.take());
}

Value expanded_tabs(Render& render, const Value& self, const Arguments& arguments) {
  const Bound given("expandtabs", arguments, {"tabsize"});
  const int64_t size = number_argument(given[0], 8);
  Builder out(render.budget());
  int64_t column = 0;
  for (const char c : self.text().bytes) {
    if (c == '\t') {
      const int64_t count = size > 0 ? size - column % size : 0;
      out.repeat(" ", static_cast<size_t>(count));
      column += count;
    } else {
      out += c;
      column = c == '\n' || c == '\r' ? 0 : column + !is_utf8_continuation(c);
    }
  }
  return render.text(out.take());
}

Value filled_with_zeros(Render& render, const Value& self, const Arguments& arguments) {
  const Bound given("zfill", arguments, {"width"}, 1);
  std::string_view text = self.text().bytes;
  const int64_t missing = std::max<int64_t>(to_index(*given[0]) - static_cast<int64_t>(self.text().length), 0);
  Builder out(render.budget());
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    out += text[0];
    text.remove_prefix(1);
  }
  out.repeat("0", static_cast<size_t>(missing));
  out += text;
  return render.text(out.take());
}

// A method without arguments that answers with a text changed by `change`.
Value changed_text(Render& render, const Value& self, const Arguments& arguments, const char* name,
                   std::string (*change)(std::string_view)) {
  const Bound none(name, arguments, {});
  render.budget().spend_bytes(8 * self.text().bytes.size());
  return render.text(change(self.text().bytes));
}

// A method without arguments that asks something of every character begins so.
void begin_question(Render& render, const Value& self, const Arguments& arguments, const char* name) {
  const Bound none(name, arguments, {});
  render.budget().spend_bytes(8 * self.text().bytes.size());
}

Value text_capitalize(Render& render, const Value& self, const Arguments& arguments) {
  return changed_text(render, self, arguments, "capitalize", capitalize);
}

Value text_lower(Render& render, const Value& self, const Arguments& arguments) {
  return changed_text(render, self, arguments, "lower", to_lower);
}

Value text_casefold(Render& render, const Value& self, const Arguments& arguments) {
  return changed_text(render, self, arguments, "casefold", to_lower);
}

Value text_upper(Render& render, const Value& self, const Arguments& arguments) {
  return changed_text(render, self, arguments, "upper", to_upper);
}

Value text_title(Render& render, const Value& self, const Arguments& arguments) {
  return changed_text(render, self, arguments, "title", title);
}

Value text_swapcase(Render& render, const Value& self, const Arguments& arguments) {
  return changed_text(render, self, arguments, "swapcase", swap_case);
}

Value text_center(Render& render, const Value& self, const Arguments& arguments) {
  return justified(render, self, arguments, 2);
}

Value text_ljust(Render& render, const Value& self, const Arguments& arguments) {
  return justified(render, self, arguments, 0);
}

Value text_rjust(Render& render, const Value& self, const Arguments& arguments) {
  return justified(render, self, arguments, 1);
}

Value text_strip(Render& render, const Value& self, const Arguments& arguments) {
  return stripped(render, self, arguments, true, true);
}

Value text_lstrip(Render& render, const Value& self, const Arguments& arguments) {
  return stripped(render, self, arguments, true, false);
}

Value text_rstrip(Render& render, const Value& self, const Arguments& arguments) {
  return stripped(render, self, arguments, false, true);
}

Value text_split(Render& render, const Value& self, const Arguments& arguments) {
  return split_text(render, self, arguments, false);
}

Value text_rsplit(Render& render, const Value& self, const Arguments& arguments) {
  return split_text(render, self, arguments, true);
}

Value text_partition(Render& render, const Value& self, const Arguments& arguments) {
  return parted(render, self, arguments, false);
}

Value text_rpartition(Render& render, const Value& self, const Arguments& arguments) {
  return parted(render, self, arguments, true);
}

Value text_find(Render& render, const Value& self, const Arguments& arguments) {
  return Value(found_at(render, self, arguments, false));
}

Value text_rfind(Render& render, const Value& self, const Arguments& arguments) {
  return Value(found_at(render, self, arguments, true));
}

Value text_index(Render& render, const Value& self, const Arguments& arguments) {
  return index_of(render, self, arguments, false);
}

Value text_rindex(Render& render, const Value& self, const Arguments& arguments) {
  return index_of(render, self, arguments, true);
}

Value text_format(Render& render, const Value& self, const Arguments& arguments) {
  return format_braces(render.budget(), self, arguments);
}

Value text_format_map(Render& render, const Value& self, const Arguments& arguments) {
  const Bound given("format_map", arguments, {"mapping"}, 1);
  if (!given[0]->is(Kind::dict)) type_error("format_map() argument must be a mapping");
  Arguments named;
  for (const auto& [key, value] : given[0]->dict().items)
    if (key.is(Kind::text)) named.named.emplace_back(key.text().bytes, value);
  return format_braces(render.budget(), self, named);
}

Value text_startswith(Render& render, const Value& self, const Arguments& arguments) {
  return any_of_texts(render, self, arguments, "startswith",
                      [](std::string_view text, const std::string& part) { return text.starts_with(part); });
}

Value text_endswith(Render& render, const Value& self, const Arguments& arguments) {
  return any_of_texts(render, self, arguments, "endswith",
                      [](std::string_view text, const std::string& part) { return text.ends_with(part); });
}

Value text_count(Render& render, const Value& self, const Arguments& arguments) {
  const Bound given("count", arguments, {"sub", "start", "end"}, 1);
  const std::string& wanted = text_argument(*given[0], "sub");
  const Section part = section(render, self.text(), given[1], given[2]);
  render.budget().spend_bytes(part.text.size());
  if (wanted.empty()) return Value(part.exists ? static_cast<int64_t>(count_utf8(part.text)) + 1 : int64_t{0});
  int64_t n = 0;
  for (size_t at = part.text.find(wanted); at != std::string_view::npos; at = part.text.find(wanted, at + wanted.size()))
    ++n;
  return Value(n);
}

Value text_replace(Render& render, const Value& self, const Arguments& arguments) {
  const Bound given("replace", arguments, {"old", "new", "count"}, 2);
  return render.text(replace(render.budget(), self.text().bytes, text_argument(*given[0], "replace() argument 1"),
                             text_argument(*given[1], "replace() argument 2"), number_argument(given[2], -1)));
}

Value text_removeprefix(Render& render, const Value& self, const Arguments& arguments) {
  const Bound given("removeprefix", arguments, {"prefix"}, 1);
  const std::string &text = self.text().bytes, &prefix = text_argument(*given[0], "removeprefix() argument");
  return render.text(text.starts_with(prefix) ? text.substr(prefix.size()) : text);
}

Value text_removesuffix(Render& render, const Value& self, const Arguments& arguments) {
  const Bound given("removesuffix", arguments, {"suffix"}, 1);
  const std::string &text = self.text().bytes, &suffix = text_argument(*given[0], "removesuffix() argument");
  return render.text(text.ends_with(suffix) ? text.substr(0, text.size() - suffix.size()) : text);
}

Value text_splitlines(Render& render, const Value& self, const Arguments& arguments) {
  const Bound given("splitlines", arguments, {"keepends"});
  return texts(render, split_lines(self.text().bytes, given.has(0) && truth(*given[0])));
}

Value text_isspace(Render& render, const Value& self, const Arguments& arguments) {
  begin_question(render, self, arguments, "isspace");
  return Value(all_characters(self, is_python_space));
}

Value text_isalpha(Render& render, const Value& self, const Arguments& arguments) {
  begin_question(render, self, arguments, "isalpha");
  return Value(all_characters(self, [](char32_t c) { return UnicodeTable::instance().is_letter(c); }));
}

Value text_isdecimal(Render& render, const Value& self, const Arguments& arguments) {
  begin_question(render, self, arguments, "isdecimal");
  return Value(all_characters(self, [](char32_t c) { return (category_bit(c) & decimal_bits) != 0; }));
}

Value text_isdigit(Render& render, const Value& self, const Arguments& arguments) {
  begin_question(render, self, arguments, "isdigit");
  return Value(all_characters(self, is_digit_like));
}

Value text_isnumeric(Render& render, const Value& self, const Arguments& arguments) {
  begin_question(render, self, arguments, "isnumeric");
  return Value(all_characters(self, [](char32_t c) { return UnicodeTable::instance().is_number(c); }));
}

Value text_isalnum(Render& render, const Value& self, const Arguments& arguments) {
  begin_question(render, self, arguments, "isalnum");
  return Value(all_characters(self, [](char32_t c) {
    const UnicodeTable& table = UnicodeTable::instance();
    return table.is_letter(c) || table.is_number(c);
  }));
}

Value text_isascii(Render& render, const Value& self, const Arguments& arguments) {
  begin_question(render, self, arguments, "isascii");
  return Value(self.text().ascii());
}

Value text_islower(Render& render, const Value& self, const Arguments& arguments) {
  begin_question(render, self, arguments, "islower");
  return Value(has_case(self, lower_bits, upper_bits | title_bits));
}

Value text_isupper(Render& render, const Value& self, const Arguments& arguments) {
  begin_question(render, self, arguments, "isupper");
  return Value(has_case(self, upper_bits, lower_bits | title_bits));
}

Value text_istitle(Render& render, const Value& self, const Arguments& arguments) {
  begin_question(render, self, arguments, "istitle");
  return Value(is_title(self));
}

const Methods& text_methods() {
  static const Methods methods = {
      {"capitalize", text_capitalize},
      {"lower", text_lower},
      {"casefold", text_casefold},
      {"upper", text_upper},
      {"title", text_title},
      {"swapcase", text_swapcase},
      {"center", text_center},
      {"ljust", text_ljust},
      {"rjust", text_rjust},
      {"strip", text_strip},
      {"lstrip", text_lstrip},
      {"rstrip", text_rstrip},
      {"split", text_split},
      {"rsplit", text_rsplit},
      {"partition", text_partition},
      {"rpartition", text_rpartition},
      {"find", text_find},
      {"rfind", text_rfind},
      {"index", text_index},
      {"rindex", text_rindex},
      {"join", joined_texts},
      {"expandtabs", expanded_tabs},
      {"zfill", filled_with_zeros},
      {"format", text_format},
      {"format_map", text_format_map},
      {"startswith", text_startswith},
      {"endswith", text_endswith},
      {"count", text_count},
      {"replace", text_replace},
      {"removeprefix", text_removeprefix},
      {"removesuffix", text_removesuffix},
      {"splitlines", text_splitlines},
      {"isspace", text_isspace},
      {"isalpha", text_isalpha},
      {"isdecimal", text_isdecimal},
      {"isdigit", text_isdigit},
      {"isnumeric", text_isnumeric},
      {"isalnum", text_isalnum},
      {"isascii", text_isascii},
      {"islower", text_islower},
      {"isupper", text_isupper},
      {"istitle", text_istitle},
  };
  return methods;
}

// The copy of an object that no template can change is the object.
Value copied(Render&, const Value& self, const Arguments&) { return self; }

Value view_of(Render& render, const Value& self, const Arguments& arguments, List::Style style) {
  const Bound none("dict method", arguments, {});
  std::vector<Value> out;
  for (const auto& [key, value] : self.dict().items) {
    render.budget().spend(1);
    if (style == List::Style::items)
      push(render.budget(), out, make_tuple(render.budget(), {key, value}));
    else
      push(render.budget(), out, style == List::Style::keys ? key : value);
  }
  return {Kind::view, std::make_shared<List>(render.budget(), std::move(out), style)};
}

Value dict_items(Render& render, const Value& self, const Arguments& arguments) {
  return view_of(render, self, arguments, List::Style::items);
}

Value dict_keys(Render& render, const Value& self, const Arguments& arguments) {
  return view_of(render, self, arguments, List::Style::keys);
}

Value dict_values(Render& render, const Value& self, const Arguments& arguments) {
  return view_of(render, self, arguments, List::Style::values);
}

Value dict_get(Render&, const Value& self, const Arguments& arguments) {
  const Bound given("get", arguments, {"key", "default"}, 1);
  if (const Value* found = self.dict().find(*given[0])) return *found;
  return given.has(1) ? *given[1] : Value();
}

const Methods& dict_methods() {
  static const Methods methods = {
      {"items", dict_items}, {"keys", dict_keys}, {"values", dict_values}, {"copy", copied}, {"get", dict_get},
  };
  return methods;
}

Value list_count(Render& render, const Value& self, const Arguments& arguments) {
  const Bound given("count", arguments, {"value"}, 1);
  int64_t n = 0;
  for (const Value& item : self.list().items) n += equal(render.budget(), item, *given[0]);
  return Value(n);
}

Value list_index(Render& render, const Value& self, const Arguments& arguments) {
  const Bound given("index", arguments, {"value", "start", "stop"}, 1);
  const auto& items = self.list().items;
  const auto size = static_cast<int64_t>(items.size());
  const auto clip = [size](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  for (int64_t i = clip(number_argument(given[1], 0)); i < clip(number_argument(given[2], size)); ++i)
    if (equal(render.budget(), items[static_cast<size_t>(i)], *given[0])) return Value(i);
  fail(repr(render.budget(), *given[0]) + " is not in list");
}

const Methods& list_methods() {
  static const Methods methods = {
      {"copy", copied},
      {"count", list_count},
      {"index", list_index},
  };
  return methods;
}

bool changes_object(const Value& value, std::string_view name) {
  static constexpr std::string_view of_lists[] = {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"};
  static constexpr std::string_view of_dicts[] = {"clear", "pop", "popitem", "setdefault", "update"};
  const auto in = [name](const auto& list) { return std::find(std::begin(list), std::end(list), name) != std::end(list); };
  return (value.is(Kind::list) && in(of_lists)) || (value.is(Kind::dict) && in(of_dicts));
}

// Methods of Python's texts that no template has use for.
std::optional<Value> refused_method(Budget& budget, std::string_view name) {
  static constexpr std::string_view names[] = {"encode", "isidentifier", "isprintable", "maketrans", "translate"};
  if (std::find(std::begin(names), std::end(names), name) == std::end(names)) return std::nullopt;
  return make_function(budget, std::string(name), [method = std::string(name)](Render&, const Arguments&) -> Value {
    fail("the method " + method + " of texts is not supported in chat templates");
  });
}

std::optional<Value> bound(Budget& budget, const Methods& methods, const Value& self, std::string_view name) {
  const auto found = methods.find(name);
  if (found == methods.end()) return std::nullopt;
  const Method method = found->second;
  return make_function(
      budget, std::string(name),
      [method, self](Render& render, const Arguments& arguments) { return method(render, self, arguments); }, self);
}

// loop.cycle and loop.changed.
std::optional<Value> loop_method(Budget& budget, const Value& value, std::string_view name) {
  const auto cycle = [value](Render&, const Arguments& arguments) {
    if (arguments.positional.empty()) type_error("no items for cycling given");
    const auto count = static_cast<int64_t>(arguments.positional.size());
    return arguments.positional[static_cast<size_t>(value.loop().index0 % count)];
  };
  const auto changed = [value](Render& render, const Arguments& arguments) {
    const Value now = make_tuple(render.budget(), arguments.positional);
    Loop& loop = value.loop();
    if (loop.changed && equal(render.budget(), *loop.changed, now)) return Value(false);
    if (!loop.changed) render.keep(value);  // it may come to hold itself
    loop.changed = now;
    return Value(true);
  };
  if (name == "cycle") return make_function(budget, "cycle", cycle, value);
  if (name == "changed") return make_function(budget, "changed", changed, value);
  return std::nullopt;
}

std::optional<Value> loop_attribute(Budget& budget, const Value& value, std::string_view name) {
  Loop& loop = value.loop();
  if (name == "index") return Value(loop.index0 + 1);
  if (name == "index0") return Value(loop.index0);
  if (name == "revindex") return Value(loop.length() - loop.index0);
  if (name == "revindex0") return Value(loop.length() - loop.index0 - 1);
  if (name == "length") return Value(loop.length());
  if (name == "first") return Value(loop.index0 == 0);
  if (name == "last") return Value(loop.peek() == nullptr);
  if (name == "depth") return Value(loop.depth0 + 1);
  if (name == "depth0") return Value(loop.depth0);
  if (name == "previtem")
    return loop.index0 == 0 || !loop.before ? make_undefined(budget, "there is no previous item") : *loop.before;
  if (name == "nextitem") {
    const Value* next = loop.peek();
    return next ? *next : make_undefined(budget, "there is no next item");
  }
  return loop_method(budget, value, name);
}

std::optional<Value> cycler_attribute(Budget& budget, const Value& value, std::string_view name) {
  const auto next = [value](Render&, const Arguments&) {
    Cycler& c = value.cycler();
    const Value out = c.items[c.at];
    c.at = (c.at + 1) % c.items.size();
    return out;
  };
  const auto reset = [value](Render&, const Arguments&) {
    value.cycler().at = 0;
    return Value();
  };
  if (name == "current") return value.cycler().items[value.cycler().at];
  if (name == "next") return make_function(budget, "next", next, value);
  if (name == "reset") return make_function(budget, "reset", reset, value);
  return std::nullopt;
}

}  // namespace

std::optional<Value> python_attribute(Budget& budget, const Value& value, std::string_view name) {
  const bool internal = name.size() > 4 && name.starts_with("__") && name.ends_with("__");
  if (changes_object(value, name) || (internal && !(value.is(Kind::dict) && value.dict().find(name))))
    return make_undefined(budget,
                          "access to attribute '" + std::string(name) + "' of '" + type_name(value) + "' object is unsafe.");
  switch (value.kind()) {
    case Kind::text:
      if (auto found = bound(budget, text_methods(), value, name)) return found;
      return refused_method(budget, name);
    case Kind::dict: return bound(budget, dict_methods(), value, name);
    case Kind::list: return bound(budget, list_methods(), value, name);
    case Kind::tuple:
      if (value.list().style == List::Style::group && name == "grouper") return value.list().items[0];
      if (value.list().style == List::Style::group && name == "list") return value.list().items[1];
      return name == "copy" ? std::nullopt : bound(budget, list_methods(), value, name);
    case Kind::loop: return loop_attribute(budget, value, name);
    case Kind::cycler: return cycler_attribute(budget, value, name);
    case Kind::names: {
      const auto found = value.names().values.find(name);
      return found == value.names().values.end() ? std::nullopt : std::optional(found->second);
    }
    case Kind::function:
      if (name == "name") return make_text(budget, value.function().name);
      return std::nullopt;
    case Kind::range:
      if (name == "start") return Value(value.range().start);
      if (name == "stop") return Value(value.range().stop);
      if (name == "step") return Value(value.range().step);
      return std::nullopt;
    case Kind::undefined:
    case Kind::none:
    case Kind::boolean:
    case Kind::integer:
    case Kind::floating:
    case Kind::view:
    case Kind::iterator: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace calque::jinja
