#include "text/regex.h"

#include <algorithm>
#include <limits>

#include "text/regex_parser.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace calque {
namespace {
constexpr size_t none = std::numeric_limits<size_t>::max();
}

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

// Runs the program from `pc` on to the match instruction of its level; with `must_end` only a match that ends there counts.
size_t TextRegex::run(Search& search, size_t pc, size_t at, size_t must_end) const {
  using Choice = Search::Choice;
  const std::string_view text = search.text;
  TextBudget& budget = search.budget;
  const size_t floor = search.choices.size();
  const auto previous = [&](size_t i) {
    do --i;
    while (i > 0 && is_utf8_continuation(text[i]));
    return i;
  };
  const auto is_word = [&](size_t i) { return (table_.of(decode_utf8(text.data() + i).value) & unicode_word) != 0; };
  const auto boundary = [&] { return (at > 0 && is_word(previous(at))) != (at < text.size() && is_word(at)); };
  for (;;) {
    budget.spend(1);
    const Instruction& i = program_[pc];
    bool ok = true;
    switch (i.op) {
      case Op::match:
        if (must_end == none || at == must_end) {
          search.choices.resize(floor);
          return at;
        }
        ok = false;
        break;
      case Op::character:
      case Op::folded:
      case Op::set: {
        ok = at < text.size();
        if (!ok) break;
        const Utf8Char c = decode_utf8(text.data() + at);
        ok = accepts(i, c.value, budget);
        at += c.size;
        ++pc;
        break;
      }
      case Op::repeat: {
        const Instruction& one = program_[pc + 1];
        uint32_t n = 0;
        size_t low = at;  // where the least that is asked for ends
        const uint32_t wanted = i.greed == Greed::lazy ? i.min : i.max;
        while (n < wanted && at < text.size()) {
          const Utf8Char c = decode_utf8(text.data() + at);
          if (!accepts(one, c.value, budget)) break;
          at += c.size;
          if (++n == i.min) low = at;
        }
        budget.spend(n);
        ok = n >= i.min;
        pc += 2;
        if (!ok) break;
        if (i.greed == Greed::greedy && at > low)
          search.push({pc, at, low, Choice::Kind::shrink});
        else if (i.greed == Greed::lazy && i.max > i.min)
          search.push({pc - 2, at, 0, Choice::Kind::grow, i.max - i.min});
        break;
      }
      case Op::split:
        search.push({pc + static_cast<size_t>(static_cast<ptrdiff_t>(i.second)), at, 0, Choice::Kind::jump});
        pc += static_cast<size_t>(static_cast<ptrdiff_t>(i.first));
        break;
      case Op::jump: pc += static_cast<size_t>(static_cast<ptrdiff_t>(i.first)); break;
      case Op::look: {
        bool found = false;
        if (!i.behind) {
          found = run(search, pc + 1, at, none) != none;
        } else {
          for (size_t start = at;; start = previous(start)) {
            found = run(search, pc + 1, start, at) != none;
            if (found || start == 0 || at - start > 255) break;
          }
        }
        ok = found != i.negative;
        pc += i.value + 1;
        break;
      }
      case Op::atomic: {
        const size_t end = run(search, pc + 1, at, none);
        ok = end != none;
        at = end;
        pc += i.value + 1;
        break;
      }
      case Op::line_begin: ok = at == 0 || text[at - 1] == '\n', ++pc; break;
      case Op::line_end: ok = at == text.size() || text[at] == '\n', ++pc; break;
      case Op::text_begin: ok = at == 0, ++pc; break;
      case Op::text_end: ok = at == text.size(), ++pc; break;
      case Op::last_line_end: ok = at == text.size() || (at + 1 == text.size() && text[at] == '\n'), ++pc; break;
      case Op::word_boundary: ok = boundary(), ++pc; break;
      case Op::no_word_boundary: ok = !boundary(), ++pc; break;
    }
    while (!ok) {
      if (search.choices.size() == floor) return none;
      Choice& c = search.choices.back();
      switch (c.kind) {
        case Choice::Kind::jump:
          pc = c.pc, at = c.at, ok = true;
          search.choices.pop_back();
          break;
        case Choice::Kind::shrink:
          pc = c.pc, at = c.at = previous(c.at), ok = true;
          if (c.at == c.low) search.choices.pop_back();
          break;
        case Choice::Kind::grow: {
          const Instruction& one = program_[c.pc + 1];
          const size_t next = c.at;
          const Utf8Char x = next < text.size() ? decode_utf8(text.data() + next) : Utf8Char{0, 0};
          if (x.size == 0 || !accepts(one, x.value, budget)) {
            search.choices.pop_back();
            break;
          }
          pc = c.pc + 2, at = c.at = next + x.size, ok = true;
          if (--c.left == 0) search.choices.pop_back();
          break;
        }
      }
    }
  }
}

}  // namespace calque
