#include "text/regex_parser.h"

#include <algorithm>
#include <map>

#include "text/regex_properties.h"
#include "text/regex_reader.h"
#include "text/unicode.h"

namespace calque {
namespace {

using Kind = RegexNode::Kind;
using Op = TextRegex::Op;
using Greed = TextRegex::Greed;

constexpr uint32_t deepest_tree = 150;
constexpr uint32_t most_repeats = 100'000;  // Oniguruma's own limit
constexpr uint32_t most_groups = 1'000;

bool is_letter_or_underscore(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// How two repetitions right around one another are one: by the inner, then by the outer of ?, *, +, ??, *?, +?
enum class Merged : uint8_t { as_is, inner, star, plus, lazy_star, lazy_optional, plus_in_lazy_optional };

Merged merged(int inside, int outside) {
  using enum Merged;
  static constexpr Merged table[6][6] = {
      {inner, star, star, lazy_optional, lazy_star, as_is},
      {inner, inner, inner, plus_in_lazy_optional, plus_in_lazy_optional, inner},
      {star, star, inner, as_is, plus_in_lazy_optional, inner},
      {inner, lazy_star, lazy_star, inner, lazy_star, lazy_star},
      {inner, inner, inner, inner, inner, inner},
      {as_is, star, plus, lazy_star, lazy_star, inner},
  };
  return table[inside][outside];
}

// Its place in that order, -1 for other bounds.
int kind_of_repeat(const RegexNode& r) {
  const int lazy = r.greed == Greed::greedy ? 0 : 3;
  if (r.min == 0 && r.max == 1) return lazy;
  if (r.max == unlimited_repeats && r.min <= 1) return lazy + (r.min == 0 ? 1 : 2);
  return -1;
}

struct Options {
  bool any_case = false, dot_is_all = false, spaced = false;
};

class Parser {
 public:
  Parser(std::u32string_view text, RegexErrors& errors) : in_(text, errors) {
    named_groups_ = text.find(U"(?'") != text.npos;
    for (size_t i = 0; (i = text.find(U"(?<", i)) != text.npos; ++i)
      named_groups_ = named_groups_ || (i + 3 < text.size() && text[i + 3] != '=' && text[i + 3] != '!');
  }

  RegexTree parse() {
    tree_.referenced.assign(1, false);
    tree_.root = alternatives({});
    if (in_.more()) in_.fail("an unmatched )");
    for (const uint32_t number : references_)
      if (number >= tree_.referenced.size())
        in_.fail("a reference to group " + std::to_string(number) + ", of which there is none");
    for (const uint32_t number : references_) tree_.referenced[number] = true;
    for (CharSet& set : tree_.sets) set.prepare(UnicodeTable::instance());
    return std::move(tree_);
  }

 private:
  // ---- nodes
  RegexNode node(Kind kind) const {
    in_.pay(1);
    RegexNode made;
    made.kind = kind;
    return made;
  }
  RegexNode around(Kind kind, RegexNode inner) const {
    RegexNode made = node(kind);
    add(made, std::move(inner));
    return made;
  }
  void add(RegexNode& to, RegexNode part) const {
    to.depth = std::max(to.depth, part.depth + 1);
    if (to.depth > deepest_tree) in_.unknown("too deep a nesting");
    to.parts.push_back(std::move(part));
  }
  RegexNode anchor(Op op) const {
    RegexNode made = node(Kind::anchor);
    made.anchor = op;
    return made;
  }
  RegexNode of_character(char32_t c, bool any_case) const {
    RegexNode made = node(Kind::character);
    made.character = c;
    made.any_case = any_case;
    return made;
  }
  RegexNode of_set(CharSet set) {
    RegexNode made = node(Kind::set);
    made.number = static_cast<uint32_t>(tree_.sets.size());
    tree_.sets.push_back(std::move(set));
    return made;
  }
  RegexNode of_ranges(std::initializer_list<std::pair<char32_t, char32_t>> ranges, bool negated) {
    CharSet set;
    set.ranges = ranges;
    set.negated = negated;
    return of_set(std::move(set));
  }
  // In any case, a set also holds the sequences that are equal to one of its characters: ss for one with \u00df.
  RegexNode of_bracket(CharSet set, bool any_case) {
    set.any_case = any_case;
    if (!any_case || set.negated) return of_set(std::move(set));
    std::vector<const CaseSequence*> sequences;
    for (const CaseSequence& s : case_sequences())
      if (set.in(s.c, UnicodeTable::instance())) sequences.push_back(&s);
    RegexNode alone = of_set(std::move(set));
    if (sequences.empty()) return alone;
    RegexNode made = around(Kind::alternatives, std::move(alone));
    for (const CaseSequence* s : sequences) {
      RegexNode sequence = node(Kind::sequence);
      for (size_t i = 0; i < s->size(); ++i) {
        CharSet one;
        one.add(s->parts[i]);
        one.any_case = true;
        add(sequence, of_set(std::move(one)));
      }
      add(made, std::move(sequence));
    }
    return made;
  }

  // ---- what stands in what
  // Behind the last atom: comments, and with x white space, are nothing.
  void skip(const Options& options) {
    for (;;) {
      if (in_.take_if(U"(?#")) {
        for (char32_t c = in_.take(); c != ')'; c = in_.take())
          if (c == '\\') in_.take();
      } else if (options.spaced && (in_.peek() == ' ' || (in_.peek() >= '\t' && in_.peek() <= '\r'))) {
        in_.take();
      } else if (options.spaced && in_.peek() == '#') {
        while (in_.more() && in_.take() != '\n') {
        }
      } else {
        return;
      }
    }
  }

  RegexNode alternatives(Options options) {
    if (++nesting_ > deepest_tree) in_.unknown("too deep a nesting");
    RegexNode first = sequence(options);
    if (in_.peek() == '|') {
      RegexNode made = around(Kind::alternatives, std::move(first));
      while (in_.take_if(U"|")) {
        in_.pay(2);
        add(made, sequence(options));
      }
      first = std::move(made);
    }
    --nesting_;
    return first;
  }

  RegexNode sequence(const Options& options) {
    RegexNode made;
    for (skip(options); in_.more() && in_.peek() != '|' && in_.peek() != ')'; skip(options)) {
      bool ends = false;  // an option of its own takes in all the rest of the group
      RegexNode part = quantified(options, ends);
      if (part.kind == Kind::sequence && !part.parts.empty())
        for (RegexNode& inner : part.parts) add(made, std::move(inner));
      else
        add(made, std::move(part));
      if (ends) break;
    }
    if (made.parts.size() == 1) {
      RegexNode only = std::move(made.parts[0]);
      return only;
    }
    return made;
  }

  RegexNode quantified(const Options& options, bool& ends) {
    const char32_t c = in_.peek();
    uint32_t min = 0, max = 0;
    bool fixed = false, swapped = false;
    if (c == '*' || c == '+' || c == '?' || (c == '{' && counts(min, max, fixed, swapped)))
      in_.fail("a repetition of nothing");
    RegexNode body = atom(options, ends);
    if (ends) return body;
    for (skip(options);; skip(options)) {
      fixed = swapped = false;
      const bool braces = in_.peek() == '{';
      if (braces) {
        if (!counts(min, max, fixed, swapped)) return body;
      } else if (in_.take_if(U"*")) {
        min = 0, max = unlimited_repeats;
      } else if (in_.take_if(U"+")) {
        min = 1, max = unlimited_repeats;
      } else if (in_.take_if(U"?")) {
        min = 0, max = 1;
      } else {
        return body;
      }
      Greed greed = swapped ? Greed::possessive : Greed::greedy;
      if (!swapped && !fixed && in_.take_if(U"?"))
        greed = Greed::lazy;
      else if (!braces && in_.take_if(U"+"))
        greed = Greed::possessive;
      if (is_place(body)) in_.fail("a repetition of what is no text but a place");
      body = repeated(std::move(body), min, max, greed);
    }
  }

  static bool is_place(const RegexNode& n) {
    if (n.kind == Kind::alternatives) return std::any_of(n.parts.begin(), n.parts.end(), is_place);
    return n.kind == Kind::anchor || n.kind == Kind::look || n.kind == Kind::keep;
  }

  // {m}, {m,}, {,n}, {m,n}; with bounds the wrong way round it gives nothing back; a brace that is none of these is a character.
  bool counts(uint32_t& min, uint32_t& max, bool& fixed, bool& swapped) {
    const size_t before = in_.place();
    in_.take();
    const bool low = in_.number(min, most_repeats);
    bool ok = low;
    if (in_.take_if(U",")) {
      const bool high = in_.number(max, most_repeats);
      if (!high) max = unlimited_repeats;
      ok = low || high;
    } else {
      max = min;
      fixed = true;
    }
    if (!ok || !in_.take_if(U"}")) {
      in_.go_to(before);
      return false;
    }
    swapped = max < min;
    if (swapped) std::swap(min, max);
    return true;
  }

  static bool is_single(const RegexNode& n) { return n.kind == Kind::character || n.kind == Kind::set; }

  RegexNode repeat(RegexNode body, uint32_t min, uint32_t max, Greed greed) const {
    RegexNode made = around(Kind::repeat, std::move(body));
    made.min = min;
    made.max = max;
    made.greed = greed;
    return made;
  }

  RegexNode repeated(RegexNode body, uint32_t min, uint32_t max, Greed greed) {
    if (min == 1 && max == 1) return body;
    RegexNode outer;
    outer.min = min;
    outer.max = max;
    outer.greed = greed == Greed::lazy ? Greed::lazy : Greed::greedy;
    RegexNode made = body.kind == Kind::repeat && body.greed != Greed::possessive
                         ? repeated_again(std::move(body), outer)
                         : repeat(std::move(body), min, max, outer.greed);
    return greed == Greed::possessive ? possessive(std::move(made)) : std::move(made);
  }

  RegexNode possessive(RegexNode made) const {
    if (made.kind != Kind::repeat || made.greed != Greed::greedy || !is_single(made.parts[0]))
      return around(Kind::atomic, std::move(made));
    made.greed = Greed::possessive;
    return made;
  }

  // A repetition right around another, as Oniguruma makes one of the two; it decides what is tried first.
  RegexNode repeated_again(RegexNode body, const RegexNode& outer) {
    const int inside = kind_of_repeat(body), outside = kind_of_repeat(outer);
    RegexNode inner = std::move(body.parts[0]);
    const auto again = [&](uint32_t min, uint32_t max, Greed greed) { return repeat(std::move(inner), min, max, greed); };
    if (inside < 0 || outside < 0) {
      if (body.min == body.max && outer.min == outer.max) {
        const uint64_t times = uint64_t{body.min} * outer.min;
        if (times > most_repeats) in_.fail("more than " + std::to_string(most_repeats) + " repetitions");
        return again(static_cast<uint32_t>(times), static_cast<uint32_t>(times), outer.greed);
      }
      uint32_t max = outer.max;
      if ((inside == 1 || inside == 2) && max != unlimited_repeats && max > 1 && outer.greed == Greed::greedy)
        max = outer.min == 0 ? 1 : outer.min;
      return repeat(again(body.min, body.max, body.greed), outer.min, max, outer.greed);
    }
    switch (merged(inside, outside)) {
      case Merged::inner: return again(body.min, body.max, body.greed);
      case Merged::star: return again(0, unlimited_repeats, Greed::greedy);
      case Merged::plus: return again(1, unlimited_repeats, Greed::greedy);
      case Merged::lazy_star: return again(0, unlimited_repeats, Greed::lazy);
      case Merged::lazy_optional: return again(0, 1, Greed::lazy);
      case Merged::plus_in_lazy_optional: return repeat(again(1, unlimited_repeats, Greed::greedy), 0, 1, Greed::lazy);
      case Merged::as_is: break;
    }
    return repeat(again(body.min, body.max, body.greed), outer.min, outer.max, outer.greed);
  }

  // ---- atoms
  RegexNode atom(const Options& options, bool& ends) {
    const char32_t c = in_.take();
    switch (c) {
      case '(': return group(options, ends);
      case '[': return of_bracket(in_.bracket(), options.any_case);
      case '.':
        if (options.dot_is_all) return of_ranges({{0, 0x10FFFF}}, false);
        return of_ranges({{'\n', '\n'}}, true);
      case '^': return anchor(Op::line_begin);
      case '$': return anchor(Op::line_end);
      case '\\': return escaped(options);
      default: return of_character(c, options.any_case);
    }
  }

  RegexNode escaped(const Options& options) {
    const char32_t c = in_.peek();
    if (c >= '1' && c <= '9') return numbered(options);
    static constexpr std::pair<char, Op> anchors[] = {
        {'A', Op::text_begin},    {'`', Op::text_begin},    {'z', Op::text_end},         {'\'', Op::text_end},
        {'Z', Op::last_line_end}, {'b', Op::word_boundary}, {'B', Op::no_word_boundary}, {'G', Op::search_begin}};
    for (const auto& [name, op] : anchors) {
      if (c != static_cast<char32_t>(name)) continue;
      in_.take();
      return anchor(op);
    }
    switch (c) {
      case 'N': in_.take(); return of_ranges({{'\n', '\n'}}, true);
      case 'O': in_.take(); return of_ranges({{0, 0x10FFFF}}, false);
      case 'R':
        in_.take();
        if (behinds_ + negative_behinds_ > 0) in_.unknown("\\R in a look-behind");
        return general_newline();
      case 'K':
        in_.take();
        if (looks_ > 0) in_.unknown("\\K in look-around");
        tree_.keeps = true;
        return node(Kind::keep);
      case 'X':
      case 'y':
      case 'Y': in_.unknown("clusters of characters (\\X, \\y, \\Y)");
      case 'g':
        if (in_.peek(1) == '<' || in_.peek(1) == '\'') in_.unknown("the call of a group (\\g)");
        break;
      case 'k':
        if (in_.peek(1) == '<' || in_.peek(1) == '\'') return named_reference(options);
        break;
      default: break;
    }
    CharSet set;
    char32_t single = 0;
    if (in_.escape(false, set, single)) return of_set(std::move(set));
    return of_character(single, options.any_case);
  }

  RegexNode general_newline() {
    RegexNode both = node(Kind::sequence), either = node(Kind::alternatives);
    add(both, of_character('\r', false));
    add(both, of_character('\n', false));
    add(either, std::move(both));
    add(either, of_ranges({{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}}, false));
    return around(Kind::atomic, std::move(either));
  }

  // ---- references
  RegexNode reference(uint32_t number, const Options& options) {
    if (options.any_case) in_.unknown("a reference in any case");
    if (std::find(open_groups_.begin(), open_groups_.end(), number) != open_groups_.end())
      in_.unknown("a reference within its own group");
    references_.push_back(number);
    RegexNode made = node(Kind::back_reference);
    made.number = number;
    return made;
  }

  // \1 to \9, and above while there are as many groups; else an octal number.
  RegexNode numbered(const Options& options) {
    const size_t before = in_.place();
    uint32_t number = 0;
    if (in_.number(number, 1'000'000) && (number <= 9 || number < tree_.referenced.size())) {
      if (named_groups_) in_.fail("a reference by number beside groups with names");
      return reference(number, options);
    }
    in_.go_to(before);
    CharSet set;
    char32_t single = 0;
    in_.escape(false, set, single);
    return of_character(single, options.any_case);
  }

  RegexNode named_reference(const Options& options) {
    in_.take();
    const char32_t close = in_.take() == '<' ? U'>' : U'\'';
    const bool back = in_.take_if(U"-");
    uint32_t number = 0;
    if (back || (in_.peek() >= '0' && in_.peek() <= '9')) {
      if (!in_.number(number, most_groups) || number == 0 || (back && number >= tree_.referenced.size()))
        in_.fail("a reference to no group");
      if (back) number = static_cast<uint32_t>(tree_.referenced.size()) - number;
      if (in_.peek() == '+' || in_.peek() == '-') in_.unknown("a reference with a level");
      if (in_.take() != close) in_.fail("a reference without end");
      if (named_groups_) in_.fail("a reference by number beside groups with names");
      return reference(number, options);
    }
    const std::u32string name = group_name(close);
    const auto found = names_.find(name);
    if (found == names_.end()) in_.unknown("a reference to a group that is not there, or not yet");
    return reference(found->second, options);
  }

  std::u32string group_name(char32_t close) {
    std::u32string name;
    for (char32_t c = in_.take(); c != close; c = in_.take()) {
      if (!(is_letter_or_underscore(c) || c >= 0x80 || (!name.empty() && c >= '0' && c <= '9')))
        in_.unknown("a name of a group with such a character");
      name += c;
    }
    if (name.empty()) in_.fail("a group without a name");
    return name;
  }

  // ---- groups
  RegexNode closed(const Options& options) {
    RegexNode body = alternatives(options);
    if (!in_.take_if(U")")) in_.fail("a group without end");
    return body;
  }

  RegexNode look(bool negative, bool behind, const Options& options) {
    if (behinds_ + negative_behinds_ > 0 && !behind) in_.fail("a look-ahead in a look-behind");
    if (behinds_ > 0 && negative) in_.fail("a negative look-behind in a positive one");
    uint32_t& own = negative ? negative_behinds_ : behinds_;
    looks_ += 1;
    own += behind;
    RegexNode made = around(Kind::look, closed(options));
    made.negative = negative;
    made.behind = behind;
    looks_ -= 1;
    own -= behind;
    return made;
  }

  RegexNode capture(const std::u32string& name, const Options& options) {
    const auto number = static_cast<uint32_t>(tree_.referenced.size());
    if (number > most_groups) in_.unknown("more than " + std::to_string(most_groups) + " groups");
    if (negative_behinds_ > 0) in_.fail("a group that is captured in a negative look-behind");
    tree_.referenced.push_back(false);
    if (!name.empty() && !names_.emplace(name, number).second) in_.unknown("two groups of one name");
    open_groups_.push_back(number);
    RegexNode made = around(Kind::capture, closed(options));
    open_groups_.pop_back();
    made.number = number;
    return made;
  }

  RegexNode group(const Options& options, bool& ends) {
    if (in_.peek() == '*') in_.unknown("a callout");
    if (!in_.take_if(U"?")) {
      if (!named_groups_) return capture({}, options);
      RegexNode body = closed(options);
      return is_place(body) ? around(Kind::enclosed, std::move(body)) : std::move(body);
    }
    if (in_.take_if(U":")) return closed(options);
    if (in_.take_if(U"=")) return look(false, false, options);
    if (in_.take_if(U"!")) return look(true, false, options);
    if (in_.take_if(U"<=")) return look(false, true, options);
    if (in_.take_if(U"<!")) return look(true, true, options);
    if (in_.take_if(U">")) return around(Kind::atomic, closed(options));
    if (in_.take_if(U"<")) return capture(group_name('>'), options);
    if (in_.take_if(U"'")) return capture(group_name('\''), options);
    if (in_.peek() == '(') in_.unknown("a condition");
    if (in_.peek() == '~') in_.unknown("an absent group");
    if (in_.peek() == '{') in_.unknown("a callout");
    Options changed = options;
    for (bool on = true;;) {
      switch (in_.take()) {
        case '-': on = false; break;
        case 'i': changed.any_case = on; break;
        case 'm': changed.dot_is_all = on; break;
        case 'x': changed.spaced = on; break;
        case ':': return around(Kind::enclosed, closed(changed));
        case ')': ends = true; return around(Kind::enclosed, alternatives(changed));
        case 'W':
        case 'D':
        case 'S':
        case 'P':
        case 'y': in_.unknown("an option besides i, m and x");
        default: in_.fail("a group of this kind, or an option besides i, m and x");
      }
    }
  }

  RegexReader in_;
  RegexTree tree_;
  bool named_groups_ = false;
  std::map<std::u32string, uint32_t> names_;
  std::vector<uint32_t> references_, open_groups_;
  uint32_t nesting_ = 0, looks_ = 0, behinds_ = 0, negative_behinds_ = 0;
};

}  // namespace

RegexTree parse_regex(std::u32string_view expression, RegexErrors& errors) { return Parser(expression, errors).parse(); }

}  // namespace calque
