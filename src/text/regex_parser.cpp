#include "text/regex_parser.h"

#include <algorithm>
#include <limits>

#include "calque/base/error.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace calque {
namespace {

using Op = TextRegex::Op;
using Greed = TextRegex::Greed;
using Instruction = TextRegex::Instruction;
using Program = TextRegex::Program;

constexpr int max_nesting = 100;  // of groups and sets; and of what is run inside another run
constexpr uint32_t unlimited = std::numeric_limits<uint32_t>::max();

// A part of the program, and what is known of it.
struct Code {
  Program program = {};
  int nested = 0;     // how deep the bodies of look-around and atomic groups stand in one another
  bool empty = true;  // there is a way through that takes no character

  void append(const Code& other) {
    program.insert(program.end(), other.program.begin(), other.program.end());
    nested = std::max(nested, other.nested);
    empty = empty && other.empty;
  }
  int32_t size() const { return static_cast<int32_t>(program.size()); }
};

class Parser {
 public:
  Parser(std::string_view expression, const UnicodeTable& table, ExpressionBudget& budget)
      : shown_(excerpt(expression)), text_(to_utf32(expression)), table_(table), budget_(budget) {}

  ParsedRegex parse() {
    Code code = alternatives(false);
    if (at_ < text_.size()) fail("an unmatched )");
    code.program.push_back({.op = Op::match});
    for (CharSet& set : sets_) set.prepare(table_);
    return {std::move(code.program), std::move(sets_)};
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(ErrorKind::bad_file, "regular expression \"" + shown_ + "\": " + what + " at character " +
                                             std::to_string(at_) + ", which Calque's expressions do not know");
  }
  // Every instruction and every member of a set is paid for here before it is made, also the copies that repetitions make.
  void pay(size_t parts) const {
    if (!budget_.take(parts))
      throw UserError(ErrorKind::bad_file, "regular expression \"" + shown_ + "\" of " + std::to_string(text_.size()) +
                                               " characters: too long at character " + std::to_string(at_) +
                                               ": the expressions of a file may have " + std::to_string(budget_.all()) +
                                               " parts with their repetitions written out (TextLimits::expression_size)");
  }
  Code one(const Instruction& i, bool empty) const {
    pay(1);
    return {{i}, 0, empty};
  }
  bool more() const { return at_ < text_.size(); }
  char32_t peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : 0; }
  char32_t take() {
    if (!more()) fail("the end");
    return text_[at_++];
  }
  bool take_if(std::u32string_view s) {
    if (std::u32string_view(text_).substr(at_, s.size()) != s) return false;
    at_ += s.size();
    return true;
  }

  // a|b|c: a split before each but the last, a jump behind it.
  Code alternatives(bool any_case) {
    if (++nesting_ > max_nesting) fail("too deep a nesting");
    std::vector<Code> branches;
    branches.push_back(sequence(any_case));
    size_t left = branches[0].program.size();  // what is still to be written
    while (take_if(U"|")) {
      pay(2);
      branches.push_back(sequence(any_case));
      left += branches.back().program.size() + 2;
    }
    --nesting_;
    if (branches.size() == 1) return std::move(branches[0]);
    Code out{.empty = false};
    out.program.reserve(left);
    for (size_t i = 0; i < branches.size(); ++i) {
      const Code& branch = branches[i];
      const bool last = i + 1 == branches.size(), empty = out.empty || branch.empty;
      if (!last) out.program.push_back({.op = Op::split, .first = 1, .second = branch.size() + 2});
      out.append(branch);
      left -= branch.program.size() + (last ? 0 : 2);
      if (!last) out.program.push_back({.op = Op::jump, .first = static_cast<int32_t>(left + 1)});
      out.empty = empty;
    }
    return out;
  }

  Code sequence(bool any_case) {
    Code out;
    while (more() && peek() != '|' && peek() != ')') {
      if (take_if(U"(?i)")) {
        any_case = true;
        continue;
      }
      out.append(quantified(any_case));
    }
    return out;
  }

  Code quantified(bool any_case) {
    Code body = atom(any_case);
    for (;;) {
      uint32_t min, max;
      if (take_if(U"*")) {
        min = 0, max = unlimited;
      } else if (take_if(U"+")) {
        min = 1, max = unlimited;
      } else if (take_if(U"?")) {
        min = 0, max = 1;
      } else if (peek() != '{' || !counts(min, max)) {
        return body;
      }
      const bool braces = text_[at_ - 1] == '}';
      const Greed greed = take_if(U"?") ? Greed::lazy : !braces && take_if(U"+") ? Greed::possessive : Greed::greedy;
      body = repeated(body, min, max, greed);
    }
  }

  // {m}, {m,}, {,n}, {m,n}; a brace that is none of these is a character.
  bool counts(uint32_t& min, uint32_t& max) {
    const size_t before = at_;
    ++at_;
    const auto number = [&](uint32_t& n) {
      bool any = false;
      n = 0;
      while (peek() >= '0' && peek() <= '9') {
        n = n * 10 + static_cast<uint32_t>(take() - '0');
        any = true;
        if (n > 1000) fail("more than 1000 repetitions");
      }
      return any;
    };
    const bool low = number(min);
    bool ok = low;
    if (take_if(U",")) {
      const bool high = number(max);
      if (!high) max = unlimited;
      ok = low || high;
    } else {
      max = min;
    }
    if (!ok || !take_if(U"}")) {
      at_ = before;
      return false;
    }
    if (max < min) fail("a repetition whose bounds are the wrong way round");
    return true;
  }

  static bool is_single(const Program& body) {
    return body.size() == 1 && (body[0].op == Op::character || body[0].op == Op::folded || body[0].op == Op::set);
  }

  Code repeated(const Code& body, uint32_t min, uint32_t max, Greed greed) {
    if (is_single(body.program)) {
      Code out = one({.op = Op::repeat, .greed = greed, .min = min, .max = max}, true);
      out.append(body);
      out.empty = min == 0;
      return out;
    }
    if (greed == Greed::possessive) return enclosed({.op = Op::atomic}, repeated(body, min, max, Greed::greedy));
    if (max == unlimited && body.empty) fail("the repetition of what may match nothing");
    const size_t copies = max == unlimited ? size_t{min} + 1 : max;
    pay((copies + 1) * (body.program.size() + 1));
    Code out;
    const int32_t size = body.size();
    const auto choose = [&](int32_t in, int32_t past) -> Instruction {
      if (greed == Greed::lazy) std::swap(in, past);
      return {.op = Op::split, .first = in, .second = past};
    };
    for (uint32_t i = 0; i < min; ++i) out.append(body);
    if (max == unlimited) {
      out.program.push_back(choose(1, size + 2));
      out.append(body);
      out.program.push_back({.op = Op::jump, .first = -(size + 1)});
    } else {
      // x?x?x? would try too much; (x(x(x)?)?)? leaves at the first that fails.
      for (uint32_t left = max - min; left > 0; --left) {
        out.program.push_back(choose(1, static_cast<int32_t>(left) * (size + 1)));
        out.append(body);
      }
    }
    out.empty = min == 0 || body.empty;
    return out;
  }

  // `body` as what look-around or an atomic group runs by itself. Running it is a call, so these must not stand too deep in
  // one another.
  Code enclosed(Instruction head, const Code& body) const {
    if (body.nested >= max_nesting) fail("too deep a nesting");
    pay(2);
    head.value = static_cast<uint32_t>(body.size() + 1);
    Code out{{head}, 0, true};
    out.append(body);
    out.program.push_back({.op = Op::match});
    out.nested = body.nested + 1;
    out.empty = head.op == Op::look || body.empty;
    return out;
  }
  Code enclosed_group(const Instruction& head, bool any_case) {
    const Code body = alternatives(any_case);
    if (!take_if(U")")) fail("a group without end");
    return enclosed(head, body);
  }

  Code group(bool any_case) {
    if (take_if(U"?=")) return enclosed_group({.op = Op::look}, any_case);
    if (take_if(U"?!")) return enclosed_group({.op = Op::look, .negative = true}, any_case);
    if (take_if(U"?<=")) return enclosed_group({.op = Op::look, .behind = true}, any_case);
    if (take_if(U"?<!")) return enclosed_group({.op = Op::look, .negative = true, .behind = true}, any_case);
    if (take_if(U"?>")) return enclosed_group({.op = Op::atomic}, any_case);
    if (take_if(U"?i:")) {
      any_case = true;
    } else if (take_if(U"?-i:")) {
      any_case = false;
    } else if (take_if(U"?<") || take_if(U"?P<")) {
      while (take() != '>') {
      }
    } else if (!take_if(U"?:") && peek() == '?') {
      fail("a group of this kind");
    }
    Code body = alternatives(any_case);
    if (!take_if(U")")) fail("a group without end");
    return body;
  }

  Code of_set(CharSet set, bool any_case) {
    set.any_case = any_case;
    sets_.push_back(std::move(set));
    return one({.op = Op::set, .value = static_cast<uint32_t>(sets_.size() - 1)}, false);
  }
  Code of_char(char32_t c, bool any_case) const {
    if (any_case) return one({.op = Op::folded, .value = fold_case(c)}, false);
    return one({.op = Op::character, .value = c}, false);
  }

  Code atom(bool any_case) {
    const char32_t c = take();
    switch (c) {
      case '(': return group(any_case);
      case '[': return of_set(bracket(), any_case);
      case '.': {
        CharSet newline;
        newline.ranges.emplace_back('\n', '\n');
        newline.negated = true;
        return of_set(std::move(newline), false);
      }
      case '^': return one({.op = Op::line_begin}, true);
      case '$': return one({.op = Op::line_end}, true);
      case '*':
      case '+':
      case '?': --at_; fail("a repetition of nothing");
      case '\\': break;
      default: return of_char(c, any_case);
    }
    switch (peek()) {
      case 'A': ++at_; return one({.op = Op::text_begin}, true);
      case 'z': ++at_; return one({.op = Op::text_end}, true);
      case 'Z': ++at_; return one({.op = Op::last_line_end}, true);
      case 'b': ++at_; return one({.op = Op::word_boundary}, true);
      case 'B': ++at_; return one({.op = Op::no_word_boundary}, true);
      case 'R':
      case 'X':
      case 'G':
      case 'K':
      case 'k': fail("an escape of this kind");
      default: break;
    }
    if (peek() >= '1' && peek() <= '9') fail("a back-reference");
    CharSet set;
    char32_t single = 0;
    if (escape(set, single)) return of_set(std::move(set), any_case);
    return of_char(single, any_case);
  }

  // Behind a backslash: true and a set, or false and one character.
  bool escape(CharSet& set, char32_t& single) {
    const char32_t c = take();
    switch (c) {
      case 'S': set.negated = true; [[fallthrough]];
      case 's': set.flags = unicode_space; return true;
      case 'W': set.negated = true; [[fallthrough]];
      case 'w': set.flags = unicode_word; return true;
      case 'D': set.negated = true; [[fallthrough]];
      case 'd': set.categories = *UnicodeTable::categories_named("Nd"); return true;
      case 'H': set.negated = true; [[fallthrough]];
      case 'h': set.ranges = {{'0', '9'}, {'a', 'f'}, {'A', 'F'}}; return true;
      case 'P': set.negated = true; [[fallthrough]];
      case 'p': property(set); return true;
      case 'n': single = '\n'; return false;
      case 'r': single = '\r'; return false;
      case 't': single = '\t'; return false;
      case 'f': single = '\f'; return false;
      case 'v': single = '\v'; return false;
      case 'a': single = '\a'; return false;
      case 'e': single = 0x1B; return false;
      case '0': single = 0; return false;
      case 'u': single = hexadecimal(4); return false;
      case 'x':
        if (take_if(U"{")) {
          single = hexadecimal(8);
          if (!take_if(U"}")) fail("a number without end");
        } else {
          single = hexadecimal(2);
        }
        return false;
      default:
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) fail("an escape of this kind");
        single = c;
        return false;
    }
  }

  char32_t hexadecimal(int digits) {
    char32_t value = 0;
    int n = 0;
    for (; n < digits; ++n) {
      const char32_t c = peek();
      const char32_t digit = c >= '0' && c <= '9'   ? c - '0'
                             : c >= 'a' && c <= 'f' ? c - 'a' + 10
                             : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                    : 16;
      if (digit == 16) break;
      value = value * 16 + digit;
      ++at_;
    }
    if (n == 0 || value > 0x10FFFF) fail("a number of no character");
    return value;
  }

  void property(CharSet& set) {
    std::string name;
    if (take_if(U"{")) {
      if (take_if(U"^")) set.negated = !set.negated;
      while (!take_if(U"}")) append_utf8(name, take());
    } else {
      append_utf8(name, take());
    }
    if (const auto categories = UnicodeTable::categories_named(name))
      set.categories = *categories;
    else
      fail("\\p{" + excerpt(name) + "}");
  }

  // Behind [ up to its ].
  CharSet bracket() {
    if (++nesting_ > max_nesting) fail("too deep a nesting");
    CharSet set;
    const bool negated = take_if(U"^");
    bool first = true;
    std::vector<CharSet> sides;  // of &&
    while (first || peek() != ']') {
      first = false;
      pay(1);
      if (take_if(U"&&")) {
        sides.push_back(std::move(set));
        set = {};
        continue;
      }
      if (peek() == '[') {
        if (peek(1) == ':') fail("a POSIX class");
        ++at_;
        set.any.push_back(bracket());
        continue;
      }
      CharSet inner;
      char32_t low = take(), high;
      if (low == '\\' && escape(inner, low)) {
        set.any.push_back(std::move(inner));
        continue;
      }
      high = low;
      if (peek() == '-' && peek(1) != ']' && peek(1) != 0) {
        ++at_;
        high = take();
        if (high == '[') fail("a range up to a class");
        if (high == '\\' && escape(inner, high)) fail("a range up to a class");
        if (high < low) fail("a range whose ends are the wrong way round");
      }
      set.ranges.emplace_back(low, high);
    }
    ++at_;
    if (!sides.empty()) {
      CharSet both = std::move(sides.front());
      for (size_t i = 1; i < sides.size(); ++i) both.all.push_back(std::move(sides[i]));
      both.all.push_back(std::move(set));
      set = {};
      set.any.push_back(std::move(both));
    }
    set.negated = negated;
    --nesting_;
    return set;
  }

  std::string shown_;
  std::u32string text_;
  const UnicodeTable& table_;
  ExpressionBudget& budget_;
  size_t at_ = 0;
  int nesting_ = 0;
  std::vector<CharSet> sets_;
};

}  // namespace

ParsedRegex parse_regex(std::string_view expression, const UnicodeTable& table, ExpressionBudget& budget) {
  return Parser(expression, table, budget).parse();
}

}  // namespace calque
