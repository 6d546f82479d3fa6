#include "text/regex_reader.h"

#include <algorithm>

#include "text/unicode.h"
#include "text/utf8.h"

namespace calque {
namespace {
constexpr int most_nested_brackets = 100;
}

void RegexReader::fail(const std::string& what) const {
  errors_.at(at_);
  errors_.fail(what);
}
void RegexReader::unknown(const std::string& what) const {
  errors_.at(at_);
  errors_.unknown(what);
}
void RegexReader::pay(size_t parts) const {
  errors_.at(at_);
  errors_.pay(parts);
}

char32_t RegexReader::take() {
  if (!more()) fail("the end");
  return text_[at_++];
}

bool RegexReader::take_if(std::u32string_view s) {
  if (rest().substr(0, s.size()) != s) return false;
  at_ += s.size();
  return true;
}

bool RegexReader::number(uint32_t& n, uint32_t most) {
  n = 0;
  const size_t before = at_;
  while (peek() >= '0' && peek() <= '9') {
    n = n * 10 + static_cast<uint32_t>(take() - '0');
    if (n > most) fail("a number above " + std::to_string(most));
  }
  return at_ != before;
}

// ---- escapes ------------------------------------------------------------------------------------------------------

char32_t RegexReader::digits(int base, int most, int& count) {
  char32_t value = 0;
  for (count = 0; count < most; ++count) {
    const char32_t c = peek();
    const char32_t digit = c >= '0' && c <= '9'   ? c - '0'
                           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                  : 16;
    if (digit >= static_cast<char32_t>(base)) break;
    value = value * static_cast<char32_t>(base) + digit;
    ++at_;
  }
  return value;
}

// {1F600} behind \x, {17} behind \o.
char32_t RegexReader::in_braces(int base) {
  ++at_;
  int count = 0;
  const char32_t value = digits(base, base == 16 ? 8 : 11, count);
  if (count == 0) fail("a number without digits");
  if (peek() == ' ' || peek() == '\n') unknown("several characters in braces");
  if (!take_if(U"}")) fail("a number without end");
  if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) fail("a number of no character");
  return value;
}

void RegexReader::property(bool in_brackets, CharSet& set) {
  ++at_;
  if (take_if(U"^")) set.negated = !set.negated;
  std::string name;
  while (!take_if(U"}")) append_utf8(name, take());
  if (!named_set(name, in_brackets, set))
    unknown("\\p{" + excerpt(name) + "}, which is no category, script or class of characters");
}

bool RegexReader::escape(bool in_brackets, CharSet& set, char32_t& single) {
  if (!more()) fail("the end behind a backslash");
  const char32_t c = take();
  const auto named = [&](std::string_view name) {
    named_set(name, in_brackets, set);
    set.negated = c < 'a';
    return true;
  };
  int count = 0;
  single = c;
  switch (c) {
    case 's':
    case 'S': return named("space");
    case 'w':
    case 'W': return named("word");
    case 'd':
    case 'D': return named("digit");
    case 'h':
    case 'H': return named("xdigit");
    case 'p':
    case 'P':
      if (peek() != '{') return false;  // the letter
      set.negated = c == 'P';
      property(in_brackets, set);
      return true;
    case 'n': single = '\n'; return false;
    case 'r': single = '\r'; return false;
    case 't': single = '\t'; return false;
    case 'f': single = '\f'; return false;
    case 'v': single = '\v'; return false;
    case 'a': single = '\a'; return false;
    case 'b': single = '\b'; return false;
    case 'e': single = 0x1B; return false;
    case 'c': {
      const char32_t control = take();
      if (control == '\\' || control >= 0x80) unknown("a control character of this kind");
      single = control == '?' ? 0x7F : control & 0x1F;
      return false;
    }
    case 'C':
    case 'M':
      if (peek() == '-') unknown("a control character of this kind");
      return false;
    case 'u':
      single = digits(16, 4, count);
      if (count < 4) fail("a number of fewer than four digits");
      if (single >= 0xD800 && single < 0xE000) fail("a number of no character");
      return false;
    case 'x':
      if (peek() == '{') {
        single = in_braces(16);
        return false;
      }
      single = digits(16, 2, count);
      if (single >= 0x80) unknown("a single byte of a character");
      return false;
    case 'o':
      if (peek() == '{') single = in_braces(8);
      return false;
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
      --at_;
      single = digits(8, 3, count);
      if (single >= 0x80) unknown("a single byte of a character");
      return false;
    default: return false;
  }
}

// ---- brackets -----------------------------------------------------------------------------------------------------

// What stands before the next part: a single character may begin a range, a whole range or a set may not.
struct RegexReader::BracketState {
  enum class Before { nothing, character, named, range, whole } before = Before::nothing;
  char32_t low = 0;
  CharSet set;
};

void RegexReader::bracket_character(BracketState& state, char32_t c) {
  if (state.before != BracketState::Before::range) {
    pay(1);
    state.set.add(c);
    state.low = c;
    state.before = BracketState::Before::character;
    return;
  }
  if (c < state.low) fail("a range whose ends are the wrong way round");
  state.set.ranges.back().second = c;
  state.before = BracketState::Before::whole;
}

// [:name:] or [:^name:] at the place of its [
bool RegexReader::posix(CharSet& set) {
  const size_t before = at_;
  at_ += 2;
  const bool negated = take_if(U"^");
  std::string name;
  while (peek() >= 'a' && peek() <= 'z') append_utf8(name, take());
  if (name.empty() || !take_if(U":]")) {
    at_ = before;
    return false;
  }
  if (!posix_set(name, set)) fail("[:" + excerpt(name) + ":], which names no class");
  set.negated = negated;
  return true;
}

CharSet RegexReader::bracket() {
  using Before = BracketState::Before;
  if (++nesting_ > most_nested_brackets) unknown("too deep a nesting");
  const bool negated = take_if(U"^");
  BracketState state;
  std::vector<CharSet> sides;  // of &&
  bool first = true;
  const auto nested = [&](CharSet set, Before what) {
    if (state.before == Before::range) fail("a range up to a class");
    pay(1);
    state.set.any.push_back(std::move(set));
    state.before = what;
  };
  if (peek() == ']' && rest().find(U']', 1) == std::u32string_view::npos) fail("an empty class");
  while (first || peek() != ']') {
    if (take_if(U"&&")) {
      pay(1);
      sides.push_back(std::move(state.set));
      state = {};
      first = false;
      continue;
    }
    CharSet inner;
    char32_t c = 0;
    if (peek() == '[' && peek(1) == ':' && posix(inner)) {
      nested(std::move(inner), Before::named);
    } else if (peek() == '[') {
      ++at_;
      nested(bracket(), Before::whole);
    } else if (peek() == '-' && !first && (state.before == Before::character || state.before == Before::named)) {
      ++at_;
      if (peek() == ']' || rest().starts_with(U"&&"))
        bracket_character(state, '-');
      else if (state.before == Before::named)
        fail("a range from a class on");
      else
        state.before = Before::range;
    } else if (take_if(U"\\")) {
      if (escape(true, inner, c))
        nested(std::move(inner), Before::named);
      else
        bracket_character(state, c);
    } else {
      bracket_character(state, take());
    }
    first = false;
  }
  ++at_;
  if (!sides.empty()) {
    CharSet both;
    both.any.push_back(std::move(sides.front()));
    for (size_t i = 1; i < sides.size(); ++i) both.all.push_back(std::move(sides[i]));
    both.all.push_back(std::move(state.set));
    state.set = {};
    state.set.any.push_back(std::move(both));
  }
  state.set.negated = negated;
  --nesting_;
  return std::move(state.set);
}

}  // namespace calque
