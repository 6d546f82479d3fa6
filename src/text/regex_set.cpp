#include "text/regex_set.h"

#include <algorithm>
#include <string>

#include "text/regex_properties.h"
#include "text/unicode.h"

namespace calque {
namespace {

enum class Base { nothing, hexadecimal, ascii, blank, graph, print, everything };

struct NamedSet {
  std::string_view name;
  const char* categories = "";  // names with a space behind each
  uint16_t flags = 0, properties = 0;
  Base base = Base::nothing;
};

constexpr NamedSet named_sets[] = {
    {.name = "alpha", .properties = property_alphabetic},
    {.name = "alphabetic", .properties = property_alphabetic},
    {.name = "lower", .properties = property_lowercase},
    {.name = "lowercase", .properties = property_lowercase},
    {.name = "upper", .properties = property_uppercase},
    {.name = "uppercase", .properties = property_uppercase},
    {.name = "alnum", .categories = "Nd ", .properties = property_alphabetic},
    {.name = "digit", .categories = "Nd "},
    {.name = "cntrl", .categories = "Cc "},
    {.name = "space", .flags = unicode_space},
    {.name = "whitespace", .flags = unicode_space},
    {.name = "word", .flags = unicode_word},
    {.name = "punct", .categories = "P "},
    {.name = "lc", .categories = "Lu Ll Lt "},
    {.name = "casedletter", .categories = "Lu Ll Lt "},
    {.name = "xdigit", .base = Base::hexadecimal},
    {.name = "ascii", .base = Base::ascii},
    {.name = "blank", .categories = "Zs ", .base = Base::blank},
    {.name = "graph", .base = Base::graph},
    {.name = "print", .categories = "Zs ", .base = Base::print},
    {.name = "any", .base = Base::everything},
    {.name = "assigned", .base = Base::everything},
    {.name = "emoji", .properties = property_emoji},
    {.name = "emojipresentation", .properties = property_emoji_presentation},
    {.name = "emojimodifier", .properties = property_emoji_modifier},
    {.name = "extendedpictographic", .properties = property_pictographic},
    {.name = "ideographic", .properties = property_ideographic},
};

uint32_t categories_of(std::string_view names) {
  uint32_t set = 0;
  for (size_t end = names.find(' '); end != names.npos; end = names.find(' ')) {
    set |= UnicodeTable::categories_named(names.substr(0, end)).value_or(0);
    names.remove_prefix(end + 1);
  }
  return set;
}

CharSet none_of(std::string_view categories, uint16_t flags) {
  CharSet set;
  set.categories = categories_of(categories);
  set.flags = flags;
  set.negated = true;
  return set;
}

void fill(const NamedSet& named, CharSet& set) {
  set.categories = categories_of(named.categories);
  set.flags = named.flags;
  set.properties = named.properties;
  switch (named.base) {
    case Base::nothing: break;
    case Base::hexadecimal: set.ranges = {{'0', '9'}, {'a', 'f'}, {'A', 'F'}}; break;
    case Base::ascii: set.ranges = {{0, 127}}; break;
    case Base::blank: set.add('\t'); break;
    case Base::everything:
      if (named.name == "any")
        set.ranges = {{0, 0x10FFFF}};
      else
        set.any.push_back(none_of("Cn ", 0));
      break;
    case Base::graph:
    case Base::print: set.any.push_back(none_of("Cc Cn Cs ", unicode_space)); break;
  }
}

// Names compare without case, spaces, hyphens and underscores.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (c != ' ' && c != '-' && c != '_') plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return plain;
}

const NamedSet* find_named(std::string_view plain) {
  const auto* found =
      std::find_if(std::begin(named_sets), std::end(named_sets), [&](const NamedSet& n) { return n.name == plain; });
  return found == std::end(named_sets) ? nullptr : found;
}

}  // namespace

bool CharSet::holds(char32_t c, const UnicodeTable& table) const {
  const auto one = [&] {
    const uint16_t known = table.of(c);
    if ((1u << (known & unicode_category_mask) & categories) || (known & flags)) return true;
    if (std::any_of(ranges.begin(), ranges.end(), [c](const auto& r) { return c >= r.first && c <= r.second; })) return true;
    if (properties || !scripts.empty()) {
      const uint16_t more = regex_properties_of(c);
      if ((more & properties) || std::find(scripts.begin(), scripts.end(), more & property_script_mask) != scripts.end())
        return true;
    }
    return std::any_of(any.begin(), any.end(), [&](const CharSet& s) { return s.in(c, table); });
  };
  return one() && std::all_of(all.begin(), all.end(), [&](const CharSet& s) { return s.in(c, table); });
}

bool CharSet::in(char32_t c, const UnicodeTable& table) const {
  bool result = holds(c, table);
  if (!result && any_case)
    for (const CasePair& pair : equal_in_any_case(c)) result = result || holds(pair.other, table);
  return result != negated;
}

size_t CharSet::members() const {
  size_t n = 1 + ranges.size() + scripts.size();
  for (const auto* sets : {&any, &all})
    for (const CharSet& set : *sets) n += set.members();
  return n;
}

void CharSet::prepare(const UnicodeTable& table) {
  steps = 1 + members() / 8;
  for (char32_t c = 0; c < 128; ++c) ascii[c] = in(c, table);
}

bool named_set(std::string_view name, bool in_brackets, CharSet& set) {
  const std::string plain = plain_name(name);
  if (const NamedSet* named = find_named(plain)) {
    fill(*named, set);
    if (in_brackets && (set.flags & unicode_word)) {
      CharSet others;
      others.ranges = {{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}};  // superscript digits and fractions
      others.negated = true;
      set.all.push_back(std::move(others));
    }
  } else if (const auto categories = UnicodeTable::categories_named(name)) {
    set.categories = *categories;
  } else if (const uint8_t script = script_named(plain)) {
    set.scripts.push_back(script);
  } else {
    return false;
  }
  return true;
}

bool posix_set(std::string_view name, CharSet& set) {
  constexpr std::string_view names[] = {"alnum", "alpha", "blank", "cntrl", "digit",  "graph", "lower",
                                        "print", "punct", "space", "upper", "xdigit", "ascii", "word"};
  if (std::find(std::begin(names), std::end(names), name) == std::end(names)) return false;
  named_set(name, true, set);
  if (name == "punct") set.categories |= *UnicodeTable::categories_named("S");
  return true;
}

}  // namespace calque
