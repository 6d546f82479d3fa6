#include "text/normalizer.h"

#include <algorithm>

#include "text/byte_alphabet.h"
#include "text/char_classes.h"
#include "text/charsmap.h"
#include "text/jinja/python_text.h"
#include "text/json_parts.h"
#include "text/normal_forms.h"
#include "text/split_pattern.h"
#include "text/unicode.h"

namespace calque {
namespace {

class NormalFormNormalizer final : public Normalizer {
 public:
  explicit NormalFormNormalizer(NormalForm form) : form_(form) {}
  Piece apply(const Piece& piece, TextStore& store) const override { return normalize(piece, form_, store); }

 private:
  NormalForm form_;
};

bool is_ascii_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

Piece lowercase(const Piece& piece, TextStore& store) {
  if (is_ascii_text(piece.text)) return map_bytes(piece, store, ascii_lower);
  return map_characters(piece, store, [](char32_t c, const auto& put) {
    const LowerCase lower = lower_case(c);
    put(lower.first);
    if (lower.second) put(lower.second);
  });
}

class LowercaseNormalizer final : public Normalizer {
 public:
  Piece apply(const Piece& piece, TextStore& store) const override { return lowercase(piece, store); }
};

// Calque's own, for a class that exists in Python alone (legacy/subword_classes.cpp).
class UppercaseNormalizer final : public Normalizer {
 public:
  Piece apply(const Piece& piece, TextStore& store) const override {
    std::string upper;
    return map_characters(piece, store, [&](char32_t c, const auto& put) {
      upper.clear();
      jinja::append_upper(upper, c);
      for (size_t i = 0; i < upper.size();) {
        const Utf8Char one = decode_utf8(upper.data() + i);
        put(one.value);
        i += one.size;
      }
    });
  }
};

Piece without(CharClass dropped, const Piece& piece, TextStore& store) {
  const CharClasses& classes = CharClasses::instance();
  return map_characters(piece, store, [&](char32_t c, const auto& put) {
    if (!classes.has(c, dropped)) put(c);
  });
}

class StripAccentsNormalizer final : public Normalizer {
 public:
  Piece apply(const Piece& piece, TextStore& store) const override { return without(class_mark, piece, store); }
};

// SentencePiece's cleaning: control characters go, what separates is a space.
class NmtNormalizer final : public Normalizer {
 public:
  Piece apply(const Piece& piece, TextStore& store) const override {
    return map_characters(piece, store, [](char32_t c, const auto& put) {
      const bool control =
          (c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
      const bool space = c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                         c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
      if (!control) put(space ? U' ' : c);
    });
  }
};

class ByteLevelNormalizer final : public Normalizer {
 public:
  Piece apply(const Piece& piece, TextStore& store) const override { return in_byte_alphabet(piece, store); }
};

class PrecompiledNormalizer final : public Normalizer {
 public:
  PrecompiledNormalizer(std::string_view charsmap, bool longest) : charsmap_(charsmap, longest) {}
  Piece apply(const Piece& piece, TextStore& store) const override { return charsmap_.apply(piece, store); }

 private:
  Charsmap charsmap_;
};

class BertNormalizer final : public Normalizer {
 public:
  BertNormalizer(bool clean, bool chinese, bool strip_accents, bool lower)
      : clean_(clean), chinese_(chinese), strip_accents_(strip_accents), lower_(lower) {}
  Piece apply(const Piece& given, TextStore& store) const override {
    Piece piece = given;
    if (is_plain(piece.text)) {
      if (!clean_ && !lower_) return piece;
      return map_bytes(piece, store, [this](char c) {
        if (clean_ && c < ' ') return ' ';
        return lower_ ? ascii_lower(c) : c;
      });
    }
    if (clean_) piece = cleaned(piece, store);
    if (chinese_) piece = spaced(piece, store);
    if (strip_accents_) piece = without(class_nonspacing, normalize(piece, NormalForm::nfd, store), store);
    if (lower_) piece = lowercase(piece, store);
    return piece;
  }

 private:
  // Nothing is dropped or put in: ASCII, and of its control characters only such as are white space.
  static bool is_plain(std::string_view text) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return (c >= ' ' && c < 0x7F) || c == '\t' || c == '\n' || c == '\r'; });
  }
  static Piece cleaned(const Piece& piece, TextStore& store) {
    const CharClasses& classes = CharClasses::instance();
    const UnicodeTable& table = UnicodeTable::instance();
    return map_characters(piece, store, [&](char32_t c, const auto& put) {
      if (!classes.has(c, class_control)) put(table.is_space(c) ? U' ' : c);
    });
  }
  static Piece spaced(const Piece& piece, TextStore& store) {
    return map_characters(piece, store, [](char32_t c, const auto& put) {
      if (!is_chinese(c)) return put(c);
      put(' ');
      put(c);
      put(' ');
    });
  }

  bool clean_, chinese_, strip_accents_, lower_;
};

class ReplaceNormalizer final : public Normalizer {
 public:
  ReplaceNormalizer(std::unique_ptr<SplitPattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  Piece apply(const Piece& piece, TextStore& store) const override {
    return replace_matches(piece, *pattern_, content_, store);
  }

 private:
  std::unique_ptr<SplitPattern> pattern_;
  std::string content_;
};

class PrependNormalizer final : public Normalizer {
 public:
  explicit PrependNormalizer(std::string prefix) : prefix_(std::move(prefix)) {}
  Piece apply(const Piece& piece, TextStore& store) const override { return prepend(piece, prefix_, store); }

 private:
  std::string prefix_;
};

class StripNormalizer final : public Normalizer {
 public:
  StripNormalizer(bool left, bool right) : left_(left), right_(right) {}
  Piece apply(const Piece& piece, TextStore&) const override {
    const UnicodeTable& table = UnicodeTable::instance();
    size_t begin = piece.text.size(), end = 0;
    for (size_t i = 0; i < piece.text.size();) {
      const Utf8Char c = decode_utf8(piece.text.data() + i);
      if (!table.is_space(c.value)) {
        begin = std::min(begin, i);
        end = i + c.size;
      }
      i += c.size;
    }
    begin = left_ ? begin : 0;
    end = right_ ? end : piece.text.size();
    return piece.slice(begin, std::max(begin, end));
  }

 private:
  bool left_, right_;
};

void add_steps(const Json& json, ExpressionBudget& budget, Normalizers& out) {
  if (json.is_null()) return;
  const std::string_view type = part_type(json);
  if (type == "Sequence") {
    for (const Json& item : json.at("normalizers").items()) add_steps(item, budget, out);
  } else if (type == "NFC") {
    out.push_back(std::make_unique<NormalFormNormalizer>(NormalForm::nfc));
  } else if (type == "NFD") {
    out.push_back(std::make_unique<NormalFormNormalizer>(NormalForm::nfd));
  } else if (type == "NFKC") {
    out.push_back(std::make_unique<NormalFormNormalizer>(NormalForm::nfkc));
  } else if (type == "NFKD") {
    out.push_back(std::make_unique<NormalFormNormalizer>(NormalForm::nfkd));
  } else if (type == "Lowercase") {
    out.push_back(std::make_unique<LowercaseNormalizer>());
  } else if (type == "Uppercase") {
    out.push_back(std::make_unique<UppercaseNormalizer>());
  } else if (type == "Replace") {
    out.push_back(std::make_unique<ReplaceNormalizer>(make_pattern(json.at("pattern"), budget),
                                                      std::string(json.at("content").to_string())));
  } else if (type == "Prepend") {
    out.push_back(std::make_unique<PrependNormalizer>(std::string(json.at("prepend").to_string())));
  } else if (type == "Strip") {
    out.push_back(std::make_unique<StripNormalizer>(flag_or(json, "strip_left", true), flag_or(json, "strip_right", true)));
  } else if (type == "StripAccents") {
    out.push_back(std::make_unique<StripAccentsNormalizer>());
  } else if (type == "Nmt") {
    out.push_back(std::make_unique<NmtNormalizer>());
  } else if (type == "ByteLevel") {
    out.push_back(std::make_unique<ByteLevelNormalizer>());
  } else if (type == "Precompiled") {
    // "longest" is Calque's own, for files that only Python's classes read (legacy/dictionary_classes.cpp).
    out.push_back(std::make_unique<PrecompiledNormalizer>(json.at("precompiled_charsmap").to_string(),
                                                          flag_or(json, "longest", false)));
  } else if (type == "BertNormalizer") {
    const bool lower = flag_or(json, "lowercase", true);
    out.push_back(std::make_unique<BertNormalizer>(flag_or(json, "clean_text", true),
                                                   flag_or(json, "handle_chinese_chars", true),
                                                   flag_or(json, "strip_accents", lower), lower));
  } else {
    unsupported_part("normalizer", type);
  }
}

}  // namespace

Normalizers make_normalizers(const Json& json, ExpressionBudget& budget) {
  Normalizers out;
  add_steps(json, budget, out);
  return out;
}

Piece apply_normalizers(const Normalizers& normalizers, Piece piece, TextStore& store) {
  for (size_t i = 0; i < normalizers.size(); ++i) {
    store.budget().enter("normalizer", i + 1);
    store.budget().spend(1 + piece.text.size());
    piece = normalizers[i]->apply(piece, store);
  }
  return piece;
}

std::unique_ptr<SplitPattern> make_pattern(const Json& json, ExpressionBudget& budget) {
  const JsonMember& only = json.only();
  const std::string_view text = only.value.to_string();
  if (only.key == "Regex") return regex_pattern(text, budget);
  if (only.key != "String")
    json.fail("expected a pattern {\"String\": ...} or {\"Regex\": ...}, found " + excerpt(only.key));
  return literal_pattern(std::string(text));
}

Piece replace_matches(const Piece& piece, const SplitPattern& pattern, std::string_view content, TextStore& store) {
  RewrittenText out(store.budget());
  size_t done = 0;
  bool changed = false;
  for_each_match(pattern, piece.text, store.budget(), [&](size_t begin, size_t end) {
    out.copy(piece, done, begin);
    out.put(content, end > 0 ? piece.original(end - 1, end) : TextRange{});
    done = end;
    changed = true;
  });
  if (!changed) return piece;
  out.copy(piece, done, piece.text.size());
  return store.keep(std::move(out));
}

}  // namespace calque
