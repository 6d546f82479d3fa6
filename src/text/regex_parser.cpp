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

constexpr size_t max_program = 20000;
constexpr int max_nesting = 100;
constexpr uint32_t unlimited = std::numeric_limits<uint32_t>::max();

void append(Program& to, const Program& from) { to.insert(to.end(), from.begin(), from.end()); }

class Parser {
 public:
  Parser(std::string_view expression, const UnicodeTable& table)
      : shown_(expression), text_(to_utf32(expression)), table_(table) {}

  ParsedRegex parse() {
    Program p = alternatives(false);
    if (at_ < text_.size()) fail("an unmatched )");
    p.push_back({.op = Op::match});
    for (CharSet& set : sets_) set.prepare(table_);
    return {std::move(p), std::move(sets_)};
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(ErrorKind::bad_file, "regular expression \"" + shown_ + "\": " + what + " at character " +
                                             std::to_string(at_) + ", which Calque's expressions do not know");
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
  Program alternatives(bool any_case) {
    if (++nesting_ > max_nesting) fail("too deep a nesting");
    std::vector<Program> branches;
    branches.push_back(sequence(any_case));
    while (take_if(U"|")) branches.push_back(sequence(any_case));
    Program out = std::move(branches.back());
    for (size_t i = branches.size() - 1; i-- > 0;) {
      Program p;
      p.push_back({.op = Op::split, .first = 1, .second = static_cast<int32_t>(branches[i].size() + 2)});
      append(p, branches[i]);
      p.push_back({.op = Op::jump, .first = static_cast<int32_t>(out.size() + 1)});
      append(p, out);
      out = std::move(p);
    }
    --nesting_;
    check_size(out);
    return out;
  }

  Program sequence(bool any_case) {
    Program out;
    while (more() && peek() != '|' && peek() != ')') {
      if (take_if(U"(?i)")) {
        any_case = true;
        continue;
      }
      append(out, quantified(any_case));
      check_size(out);
    }
    return out;
  }

  void check_size(const Program& p) const {
    if (p.size() > max_program) fail("too long an expression");
  }

  Program quantified(bool any_case) {
    Program body = atom(any_case);
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
      check_size(body);
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

  Program repeated(const Program& body, uint32_t min, uint32_t max, Greed greed) {
    Program out;
    if (is_single(body)) {
      out.push_back({.op = Op::repeat, .greed = greed, .min = min, .max = max});
      append(out, body);
      return out;
    }
    if (greed == Greed::possessive) {
      Program inner = repeated(body, min, max, Greed::greedy);
      inner.push_back({.op = Op::match});
      out.push_back({.op = Op::atomic, .value = static_cast<uint32_t>(inner.size())});
      append(out, inner);
      return out;
    }
    if ((static_cast<size_t>(max == unlimited ? min : max) + 1) * (body.size() + 1) > max_program)
      fail("too long an expression");
    for (uint32_t i = 0; i < min; ++i) append(out, body);
    const auto size = static_cast<int32_t>(body.size());
    const auto choose = [&](int32_t in, int32_t past) -> Instruction {
      if (greed == Greed::lazy) std::swap(in, past);
      return {.op = Op::split, .first = in, .second = past};
    };
    if (max == unlimited) {
      if (may_be_empty(body)) fail("the repetition of what may match nothing");
      out.push_back(choose(1, size + 2));
      append(out, body);
      out.push_back({.op = Op::jump, .first = -(size + 1)});
      return out;
    }
    // x?x?x? would try too much; (x(x(x)?)?)? leaves at the first that fails.
    const uint32_t optional = max - min;
    for (uint32_t i = 0; i < optional; ++i) {
      const auto left = static_cast<int32_t>(optional - i);
      out.push_back(choose(1, left * (size + 1)));
      append(out, body);
    }
    return out;
  }

  // Is there a way through that takes no character?
  static bool may_be_empty(const Program& body) {
    std::vector<size_t> open{0};
    std::vector<bool> seen(body.size() + 1, false);
    while (!open.empty()) {
      const size_t i = open.back();
      open.pop_back();
      if (i >= body.size()) return true;
      if (seen[i]) continue;
      seen[i] = true;
      const Instruction& x = body[i];
      const auto go = [&](int64_t by) { open.push_back(static_cast<size_t>(static_cast<int64_t>(i) + by)); };
      switch (x.op) {
        case Op::split:
          go(x.first);
          go(x.second);
          break;
        case Op::jump: go(x.first); break;
        case Op::look: go(x.value + 1); break;
        case Op::repeat:
          if (x.min == 0) go(2);
          break;
        case Op::atomic:
          if (may_be_empty(
                  Program(body.begin() + static_cast<ptrdiff_t>(i) + 1, body.begin() + static_cast<ptrdiff_t>(i + x.value))))
            go(x.value + 1);
          break;
        case Op::character:
        case Op::folded:
        case Op::set: break;
        case Op::match:
        case Op::line_begin:
        case Op::line_end:
        case Op::text_begin:
        case Op::text_end:
        case Op::last_line_end:
        case Op::word_boundary:
        case Op::no_word_boundary: go(1); break;
      }
    }
    return false;
  }

  Program enclosed(Instruction head, bool any_case) {
    Program body = alternatives(any_case);
    if (!take_if(U")")) fail("a group without end");
    body.push_back({.op = Op::match});
    head.value = static_cast<uint32_t>(body.size());
    Program out{head};
    append(out, body);
    return out;
  }

  Program group(bool any_case) {
    if (take_if(U"?=")) return enclosed({.op = Op::look}, any_case);
    if (take_if(U"?!")) return enclosed({.op = Op::look, .negative = true}, any_case);
    if (take_if(U"?<=")) return enclosed({.op = Op::look, .behind = true}, any_case);
    if (take_if(U"?<!")) return enclosed({.op = Op::look, .negative = true, .behind = true}, any_case);
    if (take_if(U"?>")) return enclosed({.op = Op::atomic}, any_case);
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
    Program body = alternatives(any_case);
    if (!take_if(U")")) fail("a group without end");
    return body;
  }

  Program of_set(CharSet set, bool any_case) {
    set.any_case = any_case;
    sets_.push_back(std::move(set));
    return {{.op = Op::set, .value = static_cast<uint32_t>(sets_.size() - 1)}};
  }
  static Program of_char(char32_t c, bool any_case) {
    if (any_case) return {{.op = Op::folded, .value = fold_case(c)}};
    return {{.op = Op::character, .value = c}};
  }

  Program atom(bool any_case) {
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
      case '^': return {{.op = Op::line_begin}};
      case '$': return {{.op = Op::line_end}};
      case '*':
      case '+':
      case '?': --at_; fail("a repetition of nothing");
      case '\\': break;
      default: return of_char(c, any_case);
    }
    switch (peek()) {
      case 'A': ++at_; return {{.op = Op::text_begin}};
      case 'z': ++at_; return {{.op = Op::text_end}};
      case 'Z': ++at_; return {{.op = Op::last_line_end}};
      case 'b': ++at_; return {{.op = Op::word_boundary}};
      case 'B': ++at_; return {{.op = Op::no_word_boundary}};
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
      fail("\\p{" + name + "}");
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
  size_t at_ = 0;
  int nesting_ = 0;
  std::vector<CharSet> sets_;
};

}  // namespace

ParsedRegex parse_regex(std::string_view expression, const UnicodeTable& table) { return Parser(expression, table).parse(); }

}  // namespace calque
