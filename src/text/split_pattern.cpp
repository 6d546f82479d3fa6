#include "text/split_pattern.h"

#include "calque/base/error.h"
#include "text/regex.h"
#include "text/unicode.h"

namespace calque {

const std::string_view gpt2_pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const std::string_view llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string_view qwen2_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

namespace {

enum class CharacterKind : uint8_t { letter, number, space, other, end };

// Reads a text character by character, by the four kinds that these expressions tell apart. Every character is of one of
// them, so that each expression matches at every position: a match begins where it is looked for.
class Scanner {
 public:
  Scanner(std::string_view text, const UnicodeTable& table) : text_(text), table_(table) {}

  struct Seen {
    CharacterKind kind;
    char32_t value;
    size_t next;
  };
  Seen at(size_t i) const {
    if (i >= text_.size()) return {CharacterKind::end, 0, i};
    const Utf8Char c = decode_utf8(text_.data() + i);
    const uint16_t properties = table_.of(c.value);
    const uint32_t category = 1u << (properties & unicode_category_mask);
    const CharacterKind kind = category & UnicodeTable::letters   ? CharacterKind::letter
                               : category & UnicodeTable::numbers ? CharacterKind::number
                               : properties & unicode_space       ? CharacterKind::space
                                                                  : CharacterKind::other;
    return {kind, c.value, i + c.size};
  }
  size_t run(size_t i, CharacterKind kind) const {
    for (;;) {
      const Seen c = at(i);
      if (c.kind != kind) return i;
      i = c.next;
    }
  }
  size_t newlines(size_t i) const {
    while (i < text_.size() && (text_[i] == '\r' || text_[i] == '\n')) ++i;
    return i;
  }
  // \s+(?!\S)|\s+ from white space at i on: the last of several stays with what follows.
  size_t spaces(size_t i) const {
    size_t last = i, end = i;
    for (Seen c = at(end); c.kind == CharacterKind::space; c = at(end)) {
      last = end;
      end = c.next;
    }
    return end == text_.size() || last == i ? end : last;
  }
  // The end of 's, 't, 're, 've, 'm, 'll, 'd behind the apostrophe at i; i when there is none.
  size_t contraction(size_t i, bool any_case) const {
    const auto letter = [&](size_t k) -> char32_t {
      const Seen c = at(k);
      return any_case ? fold_case(c.value) : c.value;
    };
    const char32_t first = letter(i + 1);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at(i + 1).next;
    if (first == 'r' || first == 'v' || first == 'l') {
      const size_t second = at(i + 1).next;
      if (letter(second) == (first == 'l' ? U'l' : U'e')) return at(second).next;
    }
    return i;
  }

 private:
  std::string_view text_;
  const UnicodeTable& table_;
};

// What the matchers by hand share: there is a match wherever there is text.
class ScannedPattern : public SplitPattern {
 private:
  bool search(std::string_view text, size_t from, TextBudget& budget, size_t& begin, size_t& end) const final {
    begin = from;
    if (from >= text.size()) return false;
    end = match(Scanner(text, table_), from);
    budget.spend(end - begin);
    return true;
  }
  virtual size_t match(const Scanner& s, size_t i) const = 0;  // its end
  const UnicodeTable& table_ = UnicodeTable::instance();
};

class Gpt2Pattern final : public ScannedPattern {
  size_t match(const Scanner& s, size_t i) const override {
    const auto c = s.at(i);
    if (c.value == '\'')
      if (const size_t end = s.contraction(i, false); end != i) return end;
    if (c.kind != CharacterKind::space) return s.run(c.next, c.kind);
    if (c.value == ' ')
      if (const auto next = s.at(c.next); next.kind != CharacterKind::space && next.kind != CharacterKind::end)
        return s.run(next.next, next.kind);
    return s.spaces(i);
  }
};

class Llama3Pattern final : public ScannedPattern {
 public:
  explicit Llama3Pattern(int digits) : digits_(digits) {}

 private:
  size_t match(const Scanner& s, size_t i) const override {
    const auto c = s.at(i);
    if (c.value == '\'')
      if (const size_t end = s.contraction(i, true); end != i) return end;
    if (c.kind == CharacterKind::letter) return s.run(c.next, CharacterKind::letter);
    if (c.kind == CharacterKind::number) {
      size_t end = c.next;
      for (int n = 1; n < digits_; ++n) {
        const auto next = s.at(end);
        if (next.kind != CharacterKind::number) break;
        end = next.next;
      }
      return end;
    }
    const bool newline = c.value == '\r' || c.value == '\n';
    const auto next = s.at(c.next);
    if (!newline && next.kind == CharacterKind::letter) return s.run(next.next, CharacterKind::letter);
    if (c.kind == CharacterKind::other) return s.newlines(s.run(c.next, CharacterKind::other));
    if (c.value == ' ' && next.kind == CharacterKind::other) return s.newlines(s.run(next.next, CharacterKind::other));
    // \s*[\r\n]+ ends behind the last line break of the white space.
    size_t last = 0;
    for (auto space = c; space.kind == CharacterKind::space; space = s.at(space.next))
      if (space.value == '\r' || space.value == '\n') last = space.next;
    return last ? last : s.spaces(i);
  }
  int digits_;
};

class LiteralPattern final : public SplitPattern {
 public:
  explicit LiteralPattern(std::string text) : literal_(std::move(text)) {}

 private:
  bool search(std::string_view text, size_t from, TextBudget& budget, size_t& begin, size_t& end) const override {
    if (literal_.empty()) {
      begin = end = from;
      return true;
    }
    // As string_view::find does it, but paying for each place where the literal may stand.
    for (begin = from; begin + literal_.size() <= text.size(); ++begin) {
      const size_t next = text.find(literal_.front(), begin);
      if (next == std::string_view::npos || next + literal_.size() > text.size()) break;
      begin = next;
      budget.spend(1 + literal_.size() / compared_at_once);
      if (text.compare(begin, literal_.size(), literal_) == 0) {
        end = begin + literal_.size();
        return true;
      }
    }
    budget.spend(1 + (text.size() - from) / compared_at_once);
    return false;
  }

  static constexpr size_t compared_at_once = 16;
  std::string literal_;
};

class RegexPattern final : public SplitPattern {
 public:
  RegexPattern(std::string_view expression, ExpressionBudget& budget) : regex_(expression, budget) {}

 private:
  bool search(std::string_view text, size_t from, TextBudget& budget, size_t& begin, size_t& end) const override {
    return regex_.find(text, from, budget, begin, end);
  }
  TextRegex regex_;
};

}  // namespace

std::unique_ptr<SplitPattern> literal_pattern(std::string text) { return std::make_unique<LiteralPattern>(std::move(text)); }

std::unique_ptr<SplitPattern> regex_pattern(std::string_view expression, ExpressionBudget& budget, bool by_hand) {
  if (by_hand) {
    if (expression == gpt2_pattern) return std::make_unique<Gpt2Pattern>();
    if (expression == llama3_pattern) return std::make_unique<Llama3Pattern>(3);
    if (expression == qwen2_pattern) return std::make_unique<Llama3Pattern>(1);
  }
  return std::make_unique<RegexPattern>(expression, budget);
}

}  // namespace calque
