#include "text/regex.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "calque/base/error.h"
#include "text/regex_compiler.h"
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

RegexErrors::RegexErrors(std::string_view expression, ExpressionBudget& budget)
    : shown_("regular expression \"" + excerpt(expression) + "\""), size_(count_utf8(expression)), budget_(budget) {}

void RegexErrors::fail(const std::string& what) const {
  throw UserError(ErrorKind::bad_file, shown_ + ": " + what + " at character " + std::to_string(at_));
}

void RegexErrors::unknown(const std::string& what) const {
  throw UserError(ErrorKind::bad_file, shown_ + ": " + what + " at character " + std::to_string(at_) +
                                           ", which Calque's expressions do not know");
}

// Every node, every member of a set and every copy that a repetition makes is paid for here before it is made.
void RegexErrors::pay(size_t parts) const {
  if (!budget_.take(parts))
    throw UserError(ErrorKind::bad_file, shown_ + " of " + std::to_string(size_) + " characters: too long at character " +
                                             std::to_string(at_) + ": the expressions of a file may have " +
                                             std::to_string(budget_.all()) +
                                             " parts with their repetitions written out (TextLimits::expression_size)");
}

struct TextRegex::Search {
  struct Choice {  // where to go on when the way taken fails
    size_t pc;
    size_t at;
    size_t low;  // of a greedy repetition: its end may still move back to here, a character at a time
    // `restore` is no way to go: slot `pc` had the value `at`.
    enum class Kind : uint8_t { jump, shrink, grow, restore } kind;
    uint32_t left = 0;  // of a lazy repetition: how many more it may take
  };
  std::string_view text;
  size_t from;
  TextBudget& budget;
  size_t end = text.size();  // characters behind it are not taken
  std::vector<Choice> choices = {};
  std::vector<size_t> slots = {};

  void push(const Choice& choice) {
    budget.require((choices.size() + 1) * sizeof(Choice));
    choices.push_back(choice);
  }
  void save(size_t slot, size_t at) {
    push({slot, slots[slot], 0, Choice::Kind::restore});
    slots[slot] = at;
  }
  // The choices above `floor` are made for good; what was saved since is still to be put back when a choice below is taken anew.
  void forget_choices(size_t floor) {
    if (slots.empty()) {
      choices.resize(floor);
      return;
    }
    const auto above = choices.begin() + static_cast<std::ptrdiff_t>(floor);
    choices.erase(std::remove_if(above, choices.end(), [](const Choice& c) { return c.kind != Choice::Kind::restore; }),
                  choices.end());
  }
};

TextRegex::TextRegex(std::string_view expression, ExpressionBudget& budget) : table_(UnicodeTable::instance()) {
  RegexErrors errors(expression, budget);
  const std::u32string text = to_utf32(expression);
  RegexTree tree = parse_regex(text, errors);
  keeps_ = tree.keeps;
  CompiledRegex compiled = compile_regex(std::move(tree), errors);
  program_ = std::move(compiled.program);
  sets_ = std::move(compiled.sets);
  slots_ = compiled.slots;
}

bool TextRegex::accepts(const Instruction& i, char32_t c, TextBudget& budget) const {
  return i.op == Op::character ? c == i.value : sets_[i.value].contains(c, table_, budget);
}

bool TextRegex::find(std::string_view text, size_t from, TextBudget& budget, size_t& begin, size_t& end) const {
  Search search{text, from, budget};
  for (size_t i = from; i <= text.size();) {
    if (slots_ > 0) search.slots.assign(slots_, none);
    const size_t e = run(search, 0, i, none);
    if (e != none) {
      begin = keeps_ && search.slots[0] != none ? search.slots[0] : i;
      end = e;
      return true;
    }
    i += i < text.size() ? decode_utf8(text.data() + i).size : 1;
  }
  return false;
}

// One character.
bool TextRegex::take_one(Search& search, Place& here) const {
  if (here.at >= search.end) return false;
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
  while (n < wanted && here.at < search.end) {
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

// What a group matched, once more.
bool TextRegex::take_again(Search& search, Place& here) const {
  const size_t slot = program_[here.pc].value, begin = search.slots[slot], end = search.slots[slot + 1];
  if (begin == none || end == none || begin > end) return false;
  const std::string_view known = search.text.substr(begin, end - begin);
  search.budget.spend(1 + known.size() / 8);
  if (!search.text.substr(here.at, search.end - here.at).starts_with(known)) return false;
  here.at += known.size();
  ++here.pc;
  return true;
}

// Look-ahead, look-behind and atomic groups are runs of their own.
bool TextRegex::run_inside(Search& search, Place& here) const {
  const Instruction& i = program_[here.pc];
  const Place given = here;
  here.pc += i.value + 1;
  if (i.op == Op::atomic) {
    here.at = run(search, given.pc + 1, here.at, none);
    return here.at != none;
  }
  const bool found = i.behind ? look_behind(search, given) : run(search, given.pc + 1, given.at, none) != none;
  return found != i.negative;
}

// What it looks at ends here.
bool TextRegex::look_behind(Search& search, const Place& here) const {
  const Instruction& i = program_[here.pc];
  const size_t end = std::exchange(search.end, here.at);
  size_t start = here.at;
  bool found = false;
  for (uint32_t back = 0;; ++back, start = before(search.text, start)) {
    found = back >= i.min && run(search, here.pc + 1, start, here.at) != none;
    if (found || back == i.max || start == 0) break;
    search.budget.spend(1);
  }
  search.end = end;
  return found;
}

bool TextRegex::holds(Op anchor, const Search& search, size_t at) const {
  const std::string_view text = search.text;
  const auto is_word = [&](size_t i) { return (table_.of(decode_utf8(text.data() + i).value) & unicode_word) != 0; };
  const auto boundary = [&] { return (at > 0 && is_word(before(text, at))) != (at < text.size() && is_word(at)); };
  if (anchor == Op::line_begin) return at == 0 || (text[at - 1] == '\n' && at < text.size());
  if (anchor == Op::line_end) return at == text.size() || text[at] == '\n';
  if (anchor == Op::text_begin) return at == 0;
  if (anchor == Op::text_end) return at == text.size();
  if (anchor == Op::search_begin) return at == search.from;
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
      case Search::Choice::Kind::restore:
        search.slots[c.pc] = c.at;
        search.choices.pop_back();
        break;
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
        search.forget_choices(floor);
        return here.at;
      case Op::character:
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
      case Op::save:
        search.save(i.value, here.at);
        ++here.pc;
        break;
      case Op::back_reference: ok = take_again(search, here); break;
      case Op::skip_if_at: here.pc += here.at == search.slots[i.value] ? 2 : 1; break;
      case Op::line_begin:
      case Op::line_end:
      case Op::text_begin:
      case Op::text_end:
      case Op::last_line_end:
      case Op::search_begin:
      case Op::word_boundary:
      case Op::no_word_boundary:
        ok = holds(i.op, search, here.at);
        ++here.pc;
        break;
    }
    if (!ok && !go_back(search, floor, here)) return none;
  }
}

}  // namespace calque
