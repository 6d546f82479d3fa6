#include "text/regex_compiler.h"

#include <algorithm>
#include <map>

#include "text/regex_properties.h"
#include "text/unicode.h"

namespace calque {
namespace {

using Kind = RegexNode::Kind;
using Op = TextRegex::Op;
using Greed = TextRegex::Greed;
using Instruction = TextRegex::Instruction;
using Program = TextRegex::Program;

// A part of the program, and what is known of it.
struct Code {
  Program program = {};
  bool empty = true;  // there is a way through that takes no character

  void append(const Code& other) {
    program.insert(program.end(), other.program.begin(), other.program.end());
    empty = empty && other.empty;
  }
  int32_t size() const { return static_cast<int32_t>(program.size()); }
};

// How many characters something takes, at least and at most.
struct Length {
  uint64_t least = 0, most = 0;
};
constexpr uint64_t no_limit = unlimited_repeats;

class Compiler {
 public:
  Compiler(RegexTree tree, RegexErrors& errors) : tree_(std::move(tree)), errors_(errors) {}

  CompiledRegex compile() {
    slots_ = tree_.keeps ? 1 : 0;
    groups_.assign(tree_.referenced.size(), 0);
    for (size_t i = 0; i < groups_.size(); ++i)
      if (tree_.referenced[i]) groups_[i] = new_slots(2);
    Code code = of(tree_.root);
    code.program.push_back({.op = Op::match});
    return {std::move(code.program), std::move(tree_.sets), slots_};
  }

 private:
  uint32_t new_slots(uint32_t n) {
    slots_ += n;
    return slots_ - n;
  }
  static Code one(const Instruction& i, bool empty) { return {{i}, empty}; }

  Code of(const RegexNode& node) {
    switch (node.kind) {
      case Kind::sequence: return sequence(node.parts);
      case Kind::alternatives: {
        std::vector<Code> branches;
        for (const RegexNode& part : node.parts) branches.push_back(of(part));
        return alternatives(branches);
      }
      case Kind::character: return character(node.character, node.any_case);
      case Kind::set: return one({.op = Op::set, .value = node.number}, false);
      case Kind::repeat: return repeated(node);
      case Kind::enclosed: return of(node.parts[0]);
      case Kind::capture: return captured(node);
      case Kind::look: return look(node);
      case Kind::atomic: {
        const Code body = of(node.parts[0]);
        return enclosed({.op = Op::atomic}, body, body.empty);
      }
      case Kind::anchor: return one({.op = node.anchor}, true);
      case Kind::keep: return one({.op = Op::save, .value = 0}, true);
      case Kind::back_reference: return one({.op = Op::back_reference, .value = groups_[node.number]}, true);
    }
    return {};
  }

  // ---- characters
  // All that are equal to `c` in any case.
  Code character(char32_t c, bool any_case) {
    const auto others = equal_in_any_case(c);
    if (!any_case || others.empty()) return one({.op = Op::character, .value = c}, false);
    CharSet set;
    set.add(c);
    for (const CasePair& pair : others) set.add(pair.other);
    return any_of(set);
  }
  Code any_of(CharSet& set) {
    set.prepare(UnicodeTable::instance());
    tree_.sets.push_back(std::move(set));
    return one({.op = Op::set, .value = static_cast<uint32_t>(tree_.sets.size() - 1)}, false);
  }

  static bool equal(char32_t a, char32_t b) {
    const auto others = equal_in_any_case(a);
    return a == b || std::any_of(others.begin(), others.end(), [b](const CasePair& p) { return p.other == b; });
  }
  using Parts = RegexNode::Parts;
  static bool in_any_case(const Parts& parts, size_t i) {
    return i < parts.size() && parts[i].kind == Kind::character && parts[i].any_case;
  }
  // Do the parts from `i` on spell it?
  static bool spells(const CaseSequence& s, const Parts& parts, size_t i) {
    for (size_t k = 0; k < s.size(); ++k)
      if (!in_any_case(parts, i + k) || !equal(s.parts[k], parts[i + k].character)) return false;
    return true;
  }
  // What is at parts[i] may be another number of characters in any case: ss is also \u00df, and that is also ss.
  static size_t longest_from(const Parts& parts, size_t i) {
    size_t longest = 0;
    if (in_any_case(parts, i))
      for (const CaseSequence& s : case_sequences()) {
        if (equal(s.c, parts[i].character)) longest = std::max<size_t>(longest, 1);
        if (spells(s, parts, i)) longest = std::max(longest, s.size());
      }
    return longest;
  }

  Code sequence(const Parts& parts) {
    Code out;
    for (size_t i = 0; i < parts.size();) {
      size_t end = behind_ > 0 ? i : i + longest_from(parts, i);
      for (size_t k = i + 1; k < end; ++k) end = std::max(end, k + longest_from(parts, k));
      if (end > i) {
        out.append(in_all_cases(parts, i, end));
        i = end;
      } else {
        out.append(of(parts[i++]));
      }
    }
    return out;
  }

  // The parts [i, end) in every way to write them.
  Code in_all_cases(const Parts& parts, size_t i, size_t end) {
    if (i == end) return {};
    std::vector<Code> ways;
    const auto add = [&](Code head, size_t size) {
      head.append(in_all_cases(parts, i + size, end));
      errors_.pay(static_cast<size_t>(head.size()) + 2);
      ways.push_back(std::move(head));
    };
    add(of(parts[i]), 1);
    std::map<std::array<char32_t, 3>, CharSet> by_sequence;  // the characters that several in a row are equal to
    for (const CaseSequence& s : case_sequences()) {
      if (spells(s, parts, i)) by_sequence[s.parts].add(s.c);
      if (in_any_case(parts, i) && s.c == parts[i].character) {
        Code head;
        for (size_t k = 0; k < s.size(); ++k) head.append(character(s.parts[k], true));
        add(std::move(head), 1);
      }
    }
    for (auto& [spelt, set] : by_sequence) add(any_of(set), spelt[2] ? 3 : 2);
    return alternatives(ways);
  }

  // ---- parts of parts
  // a|b|c: a split before each but the last, a jump behind it.
  static Code alternatives(std::vector<Code>& branches) {
    if (branches.size() == 1) return std::move(branches[0]);
    size_t left = 0;  // what is still to be written
    for (const Code& branch : branches) left += branch.program.size() + 2;
    left -= 2;
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

  bool is_remembered(const RegexNode& node) const {
    return (node.kind == Kind::capture && tree_.referenced[node.number]) ||
           std::any_of(node.parts.begin(), node.parts.end(), [this](const RegexNode& n) { return is_remembered(n); });
  }

  Code repeated(const RegexNode& node) {
    const Code body = of(node.parts[0]);
    const uint32_t min = node.min, max = node.max;
    if (body.size() == 1 && (body.program[0].op == Op::character || body.program[0].op == Op::set)) {
      Code out = one({.op = Op::repeat, .greed = node.greed, .min = min, .max = max}, true);
      out.append(body);
      out.empty = min == 0;
      return out;
    }
    const bool unlimited = max == unlimited_repeats;
    // There it depends on how long Oniguruma's own program is whether a round that takes nothing is the last.
    if (body.empty && min > 1) errors_.unknown("the repetition, so many times, of what may match nothing");
    if (unlimited && body.empty && is_remembered(node.parts[0]))
      errors_.unknown("the repetition of what may match nothing and is referred to");
    const size_t copies = unlimited ? size_t{min} + 1 : max;
    errors_.pay((copies + 1) * (body.program.size() + 1));
    Code out;
    const int32_t size = body.size();
    const auto choose = [&](int32_t in, int32_t past) -> Instruction {
      if (node.greed == Greed::lazy) std::swap(in, past);
      return {.op = Op::split, .first = in, .second = past};
    };
    for (uint32_t i = 0; i < min; ++i) out.append(body);
    if (unlimited && body.empty) {  // it ends with a round that takes nothing
      const uint32_t slot = new_slots(1);
      out.program.push_back(choose(1, size + 4));
      out.program.push_back({.op = Op::save, .value = slot});
      out.append(body);
      out.program.push_back({.op = Op::skip_if_at, .value = slot});
      out.program.push_back({.op = Op::jump, .first = -(size + 3)});
    } else if (unlimited) {
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

  Code captured(const RegexNode& node) {
    Code body = of(node.parts[0]);
    if (!tree_.referenced[node.number]) return body;
    const uint32_t slot = groups_[node.number];
    Code out = one({.op = Op::save, .value = slot}, true);
    out.append(body);
    out.program.push_back({.op = Op::save, .value = slot + 1});
    return out;
  }

  // `body` as what look-around or an atomic group runs by itself.
  static Code enclosed(Instruction head, const Code& body, bool empty) {
    head.value = static_cast<uint32_t>(body.size() + 1);
    Code out{{head}, empty};
    out.program.insert(out.program.end(), body.program.begin(), body.program.end());
    out.program.push_back({.op = Op::match});
    return out;
  }

  Code look(const RegexNode& node) {
    behind_ += node.behind;
    const Code body = of(node.parts[0]);
    behind_ -= node.behind;
    const Length length = node.behind ? length_of(node.parts[0]) : Length{};
    return enclosed({.op = Op::look,
                     .negative = node.negative,
                     .behind = node.behind,
                     .min = static_cast<uint32_t>(std::min(length.least, no_limit)),
                     .max = static_cast<uint32_t>(std::min(length.most, no_limit))},
                    body, true);
  }

  static Length length_of(const RegexNode& node) {
    Length out;
    switch (node.kind) {
      case Kind::character:
      case Kind::set: return {1, 1};
      case Kind::look:
      case Kind::anchor:
      case Kind::keep: return {0, 0};
      case Kind::back_reference: return {0, no_limit};
      case Kind::alternatives:
        out.least = no_limit;
        for (const RegexNode& part : node.parts) {
          const Length l = length_of(part);
          out = {std::min(out.least, l.least), std::max(out.most, l.most)};
        }
        return out;
      case Kind::repeat: {
        const Length l = length_of(node.parts[0]);
        out.least = l.least * node.min;
        out.most = l.most == 0 ? 0 : node.max == unlimited_repeats ? no_limit : l.most * node.max;
        break;
      }
      case Kind::sequence:
      case Kind::enclosed:
      case Kind::capture:
      case Kind::atomic:
        for (const RegexNode& part : node.parts) {
          const Length l = length_of(part);
          out = {out.least + l.least, out.most + l.most};
        }
        break;
    }
    return {std::min(out.least, no_limit), std::min(out.most, no_limit)};
  }

  RegexTree tree_;
  RegexErrors& errors_;
  uint32_t slots_ = 0;
  std::vector<uint32_t> groups_;  // the first of their two slots
  int behind_ = 0;
};

}  // namespace

CompiledRegex compile_regex(RegexTree tree, RegexErrors& errors) { return Compiler(std::move(tree), errors).compile(); }

}  // namespace calque
