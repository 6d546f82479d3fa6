#include "text/regex.h"

#include <algorithm>
#include <limits>

#include "text/regex_parser.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace calque {
namespace {
constexpr size_t none = std::numeric_limits<size_t>::max();

// Where the character before position `i` begins.
size_t before(std::string_view text, size_t i) {
  do --i;
  while (i > 0 && is_utf8_continuation(text[i]));
  return i;
}

}  // namespace

bool CharSet::in(char32_t c, const UnicodeTable& table) const {
  const auto holds = [&](char32_t x) {
    const uint16_t properties = table.of(x);
    if ((1u << (properties & unicode_category_mask) & categories) || (properties & flags)) return true;
    return std::any_of(ranges.begin(), ranges.end(), [x](const auto& r) { return x >= r.first && x <= r.second; }) ||
           std::any_of(any.begin(), any.end(), [&](const CharSet& s) { return s.in(x, table); });
  };
  bool result = holds(c);
  if (!result && any_case) {
    const char32_t folded = fold_case(c);
    result = holds(folded) || (folded >= 'a' && folded <= 'z' && (holds(folded - 32) || (folded == 's' && holds(0x17F))));
  }
  result = result && std::all_of(all.begin(), all.end(), [&](const CharSet& s) { return s.in(c, table); });
  return result != negated;
}

size_t CharSet::members() const {
  size_t n = 1 + ranges.size();
  for (const auto* sets : {&any, &all})
    for (const CharSet& set : *sets) n += set.members();
  return n;
}

void CharSet::prepare(const UnicodeTable& table) {
  steps = 1 + members() / 8;
  for (char32_t c = 0; c < 128; ++c) ascii[c] = in(c, table);
}

struct TextRegex::Search {
  struct Choice {  // where to go on when the way taken fails
    size_t pc;
    size_t at;
    size_t low;  // of a greedy repetition: its end may still move back to here, a character at a time
    enum class Kind : uint8_t { jump, shrink, grow } kind;
    uint32_t left = 0;  // of a lazy repetition: how many more it may take
  };
  std::string_view text;
  TextBudget& budget;
  std::vector<Choice> choices = {};

  void push(const Choice& choice) {
    budget.require((choices.size() + 1) * sizeof(Choice));
    choices.push_back(choice);
  }
};

TextRegex::TextRegex(std::string_view expression, ExpressionBudget& budget) : table_(UnicodeTable::instance()) {
  ParsedRegex parsed = parse_regex(expression, table_, budget);
  program_ = std::move(parsed.program);
  sets_ = std::move(parsed.sets);
}

bool TextRegex::accepts(const Instruction& i, char32_t c, TextBudget& budget) const {
  if (i.op == Op::character) return c == i.value;
  if (i.op == Op::folded) return fold_case(c) == i.value;
  return sets_[i.value].contains(c, table_, budget);
}

bool TextRegex::find(std::string_view text, size_t from, TextBudget& budget, size_t& begin, size_t& end) const {
  Search search{text, budget};
  for (size_t i = from; i <= text.size();) {
    const size_t e = run(search, 0, i, none);
    if (e != none) {
      begin = i;
      end = e;
      return true;
    }
    i += i < text.size() ? decode_utf8(text.data() + i).size : 1;
  }
  return false;
}

// One character.
bool TextRegex::take_one(Search& search, Place& here) const {
  if (here.at >= search.text.size()) return false;
  const Utf8Char c = decode_utf8(search.text.data() + here.at);
  if (!accepts(program_[here.pc], c.value, search.budget)) return false;
  here.at += c.size;
  ++here.pc;
  return true;
}

// One character, repeated: as many as may be, or as few, with the other numbers as choices.
bool TextRegex::take_many(Search& search, Place& here) const {
  const Instruction &i = program_[here.pc], &one = program_[here.pc + 1];
  uint32_t n = 0;
  size_t low = here.at;  // where the least that is asked for ends
  const uint32_t wanted = i.greed == Greed::lazy ? i.min : i.max;
  while (n < wanted && here.at < search.text.size()) {
    const Utf8Char c = decode_utf8(search.text.data() + here.at);
    if (!accepts(one, c.value, search.budget)) break;
    here.at += c.size;
    if (++n == i.min) low = here.at;
  }
  search.budget.spend(n);
  if (n < i.min) return false;
  here.pc += 2;
  if (i.greed == Greed::greedy && here.at > low)
    search.push({here.pc, here.at, low, Search::Choice::Kind::shrink});
  else if (i.greed == Greed::lazy && i.max > i.min)
    search.push({here.pc - 2, here.at, 0, Search::Choice::Kind::grow, i.max - i.min});
  return true;
}

// Look-ahead, look-behind and atomic groups are runs of their own.
bool TextRegex::run_inside(Search& search, Place& here) const {
  const Instruction& i = program_[here.pc];
  const size_t body = here.pc + 1;
  here.pc += i.value + 1;
  if (i.op == Op::atomic) {
    here.at = run(search, body, here.at, none);
    return here.at != none;
  }
  bool found = false;
  if (!i.behind) {
    found = run(search, body, here.at, none) != none;
  } else {
    for (size_t start = here.at;; start = before(search.text, start)) {
      found = run(search, body, start, here.at) != none;
      if (found || start == 0 || here.at - start > 255) break;
    }
  }
  return found != i.negative;
}

bool TextRegex::holds(Op anchor, std::string_view text, size_t at) const {
  const auto is_word = [&](size_t i) { return (table_.of(decode_utf8(text.data() + i).value) & unicode_word) != 0; };
  const auto boundary = [&] { return (at > 0 && is_word(before(text, at))) != (at < text.size() && is_word(at)); };
  if (anchor == Op::line_begin) return at == 0 || text[at - 1] == '\n';
  if (anchor == Op::line_end) return at == text.size() || text[at] == '\n';
  if (anchor == Op::text_begin) return at == 0;
  if (anchor == Op::text_end) return at == text.size();
  if (anchor == Op::last_line_end) return at == text.size() || (at + 1 == text.size() && text[at] == '\n');
  return boundary() == (anchor == Op::word_boundary);
}

// Goes on at the latest choice that is left of this run; false when there is none.
bool TextRegex::go_back(Search& search, size_t floor, Place& here) const {
  while (search.choices.size() > floor) {
    Search::Choice& c = search.choices.back();
    here = {c.pc, c.at};
    switch (c.kind) {
      case Search::Choice::Kind::jump: search.choices.pop_back(); return true;
      case Search::Choice::Kind::shrink:
        here.at = c.at = before(search.text, c.at);
        if (c.at == c.low) search.choices.pop_back();
        return true;
      case Search::Choice::Kind::grow: {
        ++here.pc;
        if (!take_one(search, here)) {
          search.choices.pop_back();
          break;
        }
        c.at = here.at;
        if (--c.left == 0) search.choices.pop_back();
        return true;
      }
    }
  }
  return false;
}

// Runs the program from `pc` on to the match instruction of its level; with `must_end` only a match that ends there counts.
size_t TextRegex::run(Search& search, size_t pc, size_t at, size_t must_end) const {
  const size_t floor = search.choices.size();
  Place here{pc, at};
  for (;;) {
    search.budget.spend(1);
    const Instruction& i = program_[here.pc];
    bool ok = true;
    switch (i.op) {
      case Op::match:
        ok = must_end == none || here.at == must_end;
        if (!ok) break;
        search.choices.resize(floor);
        return here.at;
      case Op::character:
      case Op::folded:
      case Op::set: ok = take_one(search, here); break;
      case Op::repeat: ok = take_many(search, here); break;
      case Op::split:
        search.push(
            {here.pc + static_cast<size_t>(static_cast<ptrdiff_t>(i.second)), here.at, 0, Search::Choice::Kind::jump});
        here.pc += static_cast<size_t>(static_cast<ptrdiff_t>(i.first));
        break;
      case Op::jump: here.pc += static_cast<size_t>(static_cast<ptrdiff_t>(i.first)); break;
      case Op::look:
      case Op::atomic: ok = run_inside(search, here); break;
      case Op::line_begin:
      case Op::line_end:
      case Op::text_begin:
      case Op::text_end:
      case Op::last_line_end:
      case Op::word_boundary:
      case Op::no_word_boundary:
        ok = holds(i.op, search.text, here.at);
        ++here.pc;
        break;
    }
    if (!ok && !go_back(search, floor, here)) return none;
  }
}

}  // namespace calque
