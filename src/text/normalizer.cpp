#include "text/normalizer.h"

#include <limits>

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

class LowercaseNormalizer final : public Normalizer {
 public:
  Piece apply(const Piece& piece, TextStore& store) const override {
    RewrittenText out(store.budget());
    out.text.reserve(piece.text.size());
    for (size_t i = 0; i < piece.text.size();) {
      const Utf8Char c = decode_utf8(piece.text.data() + i);
      const LowerCase lower = lower_case(c.value);
      const TextRange origin = piece.original(i, i + 1);
      out.put(lower.first, origin);
      if (lower.second) out.put(lower.second, origin);
      i += c.size;
    }
    return store.keep(std::move(out));
  }
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
  } else if (type == "Replace") {
    out.push_back(std::make_unique<ReplaceNormalizer>(make_pattern(json.at("pattern"), budget),
                                                      std::string(json.at("content").to_string())));
  } else if (type == "Prepend") {
    out.push_back(std::make_unique<PrependNormalizer>(std::string(json.at("prepend").to_string())));
  } else if (type == "Strip") {
    out.push_back(std::make_unique<StripNormalizer>(flag_or(json, "strip_left", true), flag_or(json, "strip_right", true)));
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
