#include "text/pre_tokenizer.h"

#include <algorithm>

#include "text/byte_alphabet.h"
#include "text/char_classes.h"
#include "text/json_parts.h"
#include "text/normalizer.h"
#include "text/split_pattern.h"
#include "text/unicode.h"

namespace calque {
namespace {

enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

// The parts of `piece` between and at the matches of `pattern`, joined as `behavior` says.
void split_on(const SplitPattern& pattern, Behavior behavior, bool invert, const Piece& piece, TextBudget& budget,
              std::vector<Piece>& out) {
  struct Part {
    size_t begin, end;
    bool match;
  };
  std::vector<Part> parts;
  size_t done = 0;
  for_each_match(pattern, piece.text, budget, [&](size_t begin, size_t end) {
    if (begin > done) parts.push_back({done, begin, invert});
    parts.push_back({begin, end, !invert});
    done = end;
  });
  if (done < piece.text.size()) parts.push_back({done, piece.text.size(), invert});

  std::vector<Part> joined;
  bool previous = false;
  const auto join = [&](const Part& part, bool with_last) {
    if (with_last && !joined.empty()) {
      joined.back().begin = std::min(joined.back().begin, part.begin);
      joined.back().end = std::max(joined.back().end, part.end);
    } else {
      joined.push_back(part);
    }
    previous = part.match;
  };
  switch (behavior) {
    case Behavior::removed:
      for (const Part& part : parts)
        if (!part.match) joined.push_back(part);
      break;
    case Behavior::isolated: joined = std::move(parts); break;
    case Behavior::merged_with_previous:
      for (const Part& part : parts) join(part, part.match && !previous);
      break;
    case Behavior::merged_with_next:
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) join(*part, part->match && !previous);
      std::reverse(joined.begin(), joined.end());
      break;
    case Behavior::contiguous:
      for (const Part& part : parts) join(part, part.match == previous);
      break;
  }
  for (const Part& part : joined) out.push_back(piece.slice(part.begin, part.end));
}

// Matches single characters.
class CharacterPattern final : public SplitPattern {
 public:
  using Predicate = bool (*)(char32_t, const UnicodeTable&);
  explicit CharacterPattern(Predicate is) : is_(is) {}

 private:
  bool search(std::string_view text, size_t from, TextBudget& budget, size_t& begin, size_t& end) const override {
    for (begin = from; begin < text.size(); begin = end) {
      const Utf8Char c = decode_utf8(text.data() + begin);
      end = begin + c.size;
      if (is_(c.value, table_)) break;
    }
    budget.spend(begin - from);
    return begin < text.size();
  }
  Predicate is_;
  const UnicodeTable& table_ = UnicodeTable::instance();
};

class SplitPreTokenizer final : public PreTokenizer {
 public:
  SplitPreTokenizer(std::unique_ptr<SplitPattern> pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}
  void split(const Piece& piece, std::vector<Piece>& out, TextStore& store) const override {
    if (behavior_ != Behavior::isolated) return split_on(*pattern_, behavior_, invert_, piece, store.budget(), out);
    size_t done = 0;
    for_each_match(*pattern_, piece.text, store.budget(), [&](size_t begin, size_t end) {
      if (begin > done) out.push_back(piece.slice(done, begin));
      out.push_back(piece.slice(begin, end));
      done = end;
    });
    if (done < piece.text.size()) out.push_back(piece.slice(done, piece.text.size()));
  }

 private:
  std::unique_ptr<SplitPattern> pattern_;
  Behavior behavior_;
  bool invert_;
};

// Words between white space, punctuation alone.
class BertPreTokenizer final : public PreTokenizer {
 public:
  void split(const Piece& piece, std::vector<Piece>& out, TextStore&) const override {
    const UnicodeTable& table = UnicodeTable::instance();
    size_t word = 0;
    for (size_t i = 0; i < piece.text.size();) {
      const Utf8Char c = decode_utf8(piece.text.data() + i);
      const uint16_t properties = table.of(c.value);
      const size_t end = i + c.size;
      if (properties & (unicode_space | unicode_punctuation)) {
        if (word < i) out.push_back(piece.slice(word, i));
        if (!(properties & unicode_space)) out.push_back(piece.slice(i, end));
        word = end;
      }
      i = end;
    }
    if (word < piece.text.size()) out.push_back(piece.slice(word, piece.text.size()));
  }
};

// Parts whose characters are of one kind, kind(c); what is of kind `dropped` goes.
template <class Kind>
void split_by_kind(const Piece& piece, std::vector<Piece>& out, int dropped, Kind&& kind) {
  size_t begin = 0;
  int last = dropped;
  for (size_t i = 0; i < piece.text.size();) {
    const Utf8Char c = decode_utf8(piece.text.data() + i);
    const int own = kind(c.value);
    if (own != last) {
      if (last != dropped) out.push_back(piece.slice(begin, i));
      begin = i;
      last = own;
    }
    i += c.size;
  }
  if (last != dropped) out.push_back(piece.slice(begin, piece.text.size()));
}

class WhitespacePreTokenizer final : public PreTokenizer {
 public:
  void split(const Piece& piece, std::vector<Piece>& out, TextStore&) const override {
    const CharClasses& classes = CharClasses::instance();
    const UnicodeTable& table = UnicodeTable::instance();
    split_by_kind(piece, out, 0, [&](char32_t c) { return classes.has(c, class_word) ? 1 : table.is_space(c) ? 0 : 2; });
  }
};

// Where the script changes. What goes with any script stays with what is before it; in front of all it is dropped, as the
// library drops it.
class UnicodeScriptsPreTokenizer final : public PreTokenizer {
 public:
  void split(const Piece& piece, std::vector<Piece>& out, TextStore&) const override {
    const CharClasses& classes = CharClasses::instance();
    int last = 0;
    split_by_kind(piece, out, 0, [&](char32_t c) {
      const int script = classes.script(c);
      return last = script == 0 ? last : script;
    });
  }
};

class FixedLengthPreTokenizer final : public PreTokenizer {
 public:
  explicit FixedLengthPreTokenizer(size_t length) : length_(length) {}
  void split(const Piece& piece, std::vector<Piece>& out, TextStore&) const override {
    size_t begin = 0, characters = 0;
    for (size_t i = 0; i < piece.text.size(); i += decode_utf8(piece.text.data() + i).size) {
      if (characters++ < length_) continue;
      out.push_back(piece.slice(begin, i));
      begin = i;
      characters = 1;
    }
    out.push_back(piece.slice(begin, piece.text.size()));
  }

 private:
  size_t length_;
};

class ByteLevelPreTokenizer final : public PreTokenizer {
 public:
  // Without a pattern it does not split.
  ByteLevelPreTokenizer(bool add_prefix_space, std::unique_ptr<SplitPattern> pattern)
      : add_prefix_space_(add_prefix_space), pattern_(std::move(pattern)) {}
  void leave_bytes() { map_ = false; }

  void split(const Piece& whole, std::vector<Piece>& out, TextStore& store) const override {
    const bool prefix = add_prefix_space_ && !whole.text.starts_with(' ');
    const Piece piece = prefix ? prepend(whole, " ", store) : whole;
    const auto add = [&](size_t begin, size_t end) {
      const Piece part = piece.slice(begin, end);
      out.push_back(map_ ? in_byte_alphabet(part, store) : part);
    };
    if (!pattern_) return add(0, piece.text.size());
    for_each_match(*pattern_, piece.text, store.budget(), add);
  }

 private:
  bool add_prefix_space_;
  bool map_ = true;
  std::unique_ptr<SplitPattern> pattern_;
};

class MetaspacePreTokenizer final : public PreTokenizer {
 public:
  enum class Prepend { always, first, never };
  MetaspacePreTokenizer(std::string replacement, Prepend prepend_scheme, bool split)
      : replacement_(std::move(replacement)),
        space_(literal_pattern(" ")),
        pattern_(literal_pattern(replacement_)),
        prepend_(prepend_scheme),
        split_(split) {}

  void split(const Piece& whole, std::vector<Piece>& out, TextStore& store) const override {
    Piece piece = replace_matches(whole, *space_, replacement_, store);
    const bool at_start = !piece.text.empty() && piece.original(0, 1).begin == 0;
    if (!piece.text.starts_with(replacement_) && (prepend_ == Prepend::always || (prepend_ == Prepend::first && at_start)))
      piece = prepend(piece, replacement_, store);
    if (split_)
      split_on(*pattern_, Behavior::merged_with_next, false, piece, store.budget(), out);
    else
      out.push_back(piece);
  }

 private:
  std::string replacement_;
  std::unique_ptr<SplitPattern> space_, pattern_;
  Prepend prepend_;
  bool split_;
};

Behavior behavior_named(const Json& json) {
  const std::string_view name = json.to_string();
  if (name == "Removed") return Behavior::removed;
  if (name == "Isolated") return Behavior::isolated;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  json.fail("no behavior of a split: " + excerpt(name));
}

std::unique_ptr<PreTokenizer> make_metaspace(const Json& json) {
  using Prepend = MetaspacePreTokenizer::Prepend;
  Prepend scheme = flag_or(json, "add_prefix_space", true) ? Prepend::always : Prepend::never;
  if (const Json* named = json.find("prepend_scheme"); named && !named->is_null()) {
    const std::string_view name = named->to_string();
    if (name != "always" && name != "first" && name != "never") named->fail("no prepend_scheme: " + excerpt(name));
    scheme = name == "always" ? Prepend::always : name == "first" ? Prepend::first : Prepend::never;
  }
  return std::make_unique<MetaspacePreTokenizer>(text_or(json, "replacement", "\xE2\x96\x81"), scheme,
                                                 flag_or(json, "split", true));
}

void add_steps(const Json& json, ExpressionBudget& budget, std::vector<std::unique_ptr<PreTokenizer>>& out) {
  if (json.is_null()) return;
  const std::string_view type = part_type(json);
  const auto on_characters = [&](CharacterPattern::Predicate is, Behavior behavior) {
    out.push_back(std::make_unique<SplitPreTokenizer>(std::make_unique<CharacterPattern>(is), behavior, false));
  };
  if (type == "Sequence") {
    for (const Json& item : json.at("pretokenizers").items()) add_steps(item, budget, out);
  } else if (type == "ByteLevel") {
    auto pattern = flag_or(json, "use_regex", true) ? regex_pattern(gpt2_pattern, budget) : nullptr;
    out.push_back(std::make_unique<ByteLevelPreTokenizer>(flag_or(json, "add_prefix_space", true), std::move(pattern)));
  } else if (type == "Split") {
    out.push_back(std::make_unique<SplitPreTokenizer>(make_pattern(json.at("pattern"), budget),
                                                      behavior_named(json.at("behavior")), flag_or(json, "invert", false)));
  } else if (type == "Digits") {
    on_characters([](char32_t c, const UnicodeTable& t) { return (t.of(c) & unicode_numeric) != 0; },
                  flag_or(json, "individual_digits", false) ? Behavior::isolated : Behavior::contiguous);
  } else if (type == "Punctuation") {
    const Json* behavior = json.find("behavior");
    on_characters([](char32_t c, const UnicodeTable& t) { return (t.of(c) & unicode_punctuation) != 0; },
                  behavior ? behavior_named(*behavior) : Behavior::isolated);
  } else if (type == "WhitespaceSplit") {
    on_characters([](char32_t c, const UnicodeTable& t) { return t.is_space(c); }, Behavior::removed);
  } else if (type == "BertPreTokenizer") {
    out.push_back(std::make_unique<BertPreTokenizer>());
  } else if (type == "Whitespace") {
    out.push_back(std::make_unique<WhitespacePreTokenizer>());
  } else if (type == "CharDelimiterSplit") {
    const Json& delimiter = json.at("delimiter");
    if (count_utf8(delimiter.to_string()) != 1)
      delimiter.fail("expected one character, found \"" + excerpt(delimiter.to_string()) + "\"");
    out.push_back(
        std::make_unique<SplitPreTokenizer>(literal_pattern(std::string(delimiter.to_string())), Behavior::removed, false));
  } else if (type == "UnicodeScripts") {
    out.push_back(std::make_unique<UnicodeScriptsPreTokenizer>());
  } else if (type == "FixedLength") {
    const Json* length = json.find("length");
    const int64_t n = length ? length->to_int() : 5;
    if (n < 1) length->fail("expected a length of at least 1, found " + std::to_string(n));
    out.push_back(std::make_unique<FixedLengthPreTokenizer>(static_cast<size_t>(n)));
  } else if (type == "Metaspace") {
    out.push_back(make_metaspace(json));
  } else {
    unsupported_part("pre-tokenizer", type);
  }
}

}  // namespace

void PreTokenizers::apply(std::vector<Piece>& pieces, std::vector<Piece>& other, TextStore& store) const {
  TextBudget& budget = store.budget();
  for (size_t i = 0; i < steps.size(); ++i) {
    budget.enter("pre-tokenizer", i + 1);
    other.clear();
    for (const Piece& piece : pieces) {
      budget.spend(1 + piece.text.size());
      if (piece.added >= 0) {
        other.push_back(piece);
        continue;
      }
      steps[i]->split(piece, other, store);
      budget.require(other.size() * sizeof(Piece));
    }
    std::erase_if(other, [](const Piece& p) { return p.text.empty(); });
    pieces.swap(other);
  }
}

PreTokenizers make_pre_tokenizers(const Json& json, bool model_takes_bytes, ExpressionBudget& budget) {
  PreTokenizers out;
  add_steps(json, budget, out.steps);
  if (model_takes_bytes && !out.steps.empty())
    if (auto* last = dynamic_cast<ByteLevelPreTokenizer*>(out.steps.back().get())) {
      last->leave_bytes();
      out.bytes = true;
    }
  return out;
}

}  // namespace calque
