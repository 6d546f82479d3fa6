#include "text/decoder.h"

#include <algorithm>
#include <optional>

#include "text/budget.h"
#include "text/byte_alphabet.h"
#include "text/json_parts.h"
#include "text/normalizer.h"
#include "text/split_pattern.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace calque {
namespace {

class ByteLevelDecoder final : public Decoder {
 public:
  std::vector<std::string> apply(std::vector<std::string> tokens, TextBudget&) const override {
    std::string bytes;
    for (const std::string& token : tokens) append_token_bytes(bytes, token);
    return {repair_utf8(bytes)};
  }
};

// <0xE5> <0x8F> <0xAB> is a character; what makes none is U+FFFD a byte.
class ByteFallbackDecoder final : public Decoder {
 public:
  std::vector<std::string> apply(std::vector<std::string> tokens, TextBudget&) const override {
    std::vector<std::string> out;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (is_valid_utf8(bytes))
        out.push_back(bytes);
      else
        out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = named_byte(token)) {
        bytes += *byte;
      } else {
        flush();
        out.push_back(std::move(token));
      }
    }
    flush();
    return out;
  }

 private:
  static std::optional<char> named_byte(const std::string& token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
    int value = 0;
    for (const char c : {token[3], token[4]}) {
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return std::nullopt;
      value = value * 16 + digit;
    }
    return static_cast<char>(value);
  }
};

class FuseDecoder final : public Decoder {
 public:
  std::vector<std::string> apply(std::vector<std::string> tokens, TextBudget&) const override {
    std::string all;
    for (const std::string& token : tokens) all += token;
    return {all};
  }
};

class StripDecoder final : public Decoder {
 public:
  StripDecoder(char32_t content, size_t start, size_t stop) : content_(content), start_(start), stop_(stop) {}
  std::vector<std::string> apply(std::vector<std::string> tokens, TextBudget&) const override {
    for (std::string& token : tokens) {
      const std::u32string characters = to_utf32(token);
      size_t begin = 0, end = characters.size();
      while (begin < start_ && begin < characters.size() && characters[begin] == content_) ++begin;
      while (characters.size() - end < stop_ && end > begin && characters[end - 1] == content_) --end;
      token.clear();
      for (size_t i = begin; i < end; ++i) append_utf8(token, characters[i]);
    }
    return tokens;
  }

 private:
  char32_t content_;
  size_t start_, stop_;
};

class ReplaceDecoder final : public Decoder {
 public:
  ReplaceDecoder(std::unique_ptr<SplitPattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  std::vector<std::string> apply(std::vector<std::string> tokens, TextBudget& budget) const override {
    for (std::string& token : tokens) {
      std::string out;
      size_t done = 0;
      for_each_match(*pattern_, token, budget, [&](size_t begin, size_t end) {
        budget.take(begin - done + content_.size());
        out.append(token, done, begin - done);
        out += content_;
        done = end;
      });
      out.append(token, done);
      token = std::move(out);
    }
    return tokens;
  }

 private:
  std::unique_ptr<SplitPattern> pattern_;
  std::string content_;
};

class MetaspaceDecoder final : public Decoder {
 public:
  MetaspaceDecoder(char32_t replacement, bool prefix) : replacement_(replacement), prefix_(prefix) {}
  std::vector<std::string> apply(std::vector<std::string> tokens, TextBudget&) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string out;
      for (const char32_t c : to_utf32(tokens[i])) {
        if (c != replacement_)
          append_utf8(out, c);
        else if (i > 0 || !prefix_)
          out += ' ';
      }
      tokens[i] = std::move(out);
    }
    return tokens;
  }

 private:
  char32_t replacement_;
  bool prefix_;
};

// The suffix of a word's last token is the space behind the word.
class SuffixDecoder final : public Decoder {
 public:
  explicit SuffixDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  std::vector<std::string> apply(std::vector<std::string> tokens, TextBudget&) const override {
    for (size_t i = 0; i < tokens.size() && !suffix_.empty(); ++i) {
      std::string out;
      size_t done = 0;
      for (size_t at; (at = tokens[i].find(suffix_, done)) != std::string::npos; done = at + suffix_.size()) {
        out.append(tokens[i], done, at - done);
        if (i + 1 < tokens.size()) out += ' ';
      }
      out.append(tokens[i], done);
      tokens[i] = std::move(out);
    }
    return tokens;
  }

 private:
  std::string suffix_;
};

// Replacements of what stands in a text, one after the other. None makes the text longer by more than a byte a match.
void tidy(std::string& text, std::initializer_list<std::pair<std::string_view, std::string_view>> replacements) {
  for (const auto& [from, to] : replacements) {
    std::string out;
    size_t done = 0;
    for (size_t at; (at = text.find(from, done)) != std::string::npos; done = at + from.size()) {
      out.append(text, done, at - done);
      out += to;
    }
    if (done > 0) text = out.append(text, done);
  }
}

// The white space that WordPiece's decoder takes out before punctuation and contractions.
void tidy_words(std::string& text) {
  if (text.find(' ') == std::string::npos) return;
  clean_up_spaces(text);
  tidy(text, {{" do not", " don't"}});  // shares no character that counts with the others: its place among them is free
}

class WordPieceDecoder final : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  std::vector<std::string> apply(std::vector<std::string> tokens, TextBudget& budget) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      budget.take(1);
      if (i > 0 && token.starts_with(prefix_))
        token.erase(0, prefix_.size());
      else if (i > 0)
        token.insert(0, 1, ' ');
      if (!cleanup_) continue;
      budget.spend(16 + token.size());
      tidy_words(token);
    }
    return tokens;
  }

 private:
  std::string prefix_;
  bool cleanup_;
};

// A letter is said once however often it is heard, and the pad token is silence between letters.
class CtcDecoder final : public Decoder {
 public:
  CtcDecoder(std::string pad, std::string delimiter, bool cleanup)
      : pad_(std::move(pad)), delimiter_(std::move(delimiter)), cleanup_(cleanup) {}
  std::vector<std::string> apply(std::vector<std::string> tokens, TextBudget& budget) const override {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& token : tokens) {
      if (!pad_.empty()) tidy(token, {{pad_, ""}});
      if (!cleanup_) continue;
      tidy_words(token);
      if (!delimiter_.empty()) tidy(token, {{delimiter_, " "}});
      budget.spend(16 + token.size());
    }
    std::erase_if(tokens, [](const std::string& token) { return token.empty(); });
    return tokens;
  }

 private:
  std::string pad_, delimiter_;
  bool cleanup_;
};

// Calque's own, for a class that exists in Python alone (legacy/subword_classes.cpp).
class LowercaseDecoder final : public Decoder {
 public:
  std::vector<std::string> apply(std::vector<std::string> tokens, TextBudget& budget) const override {
    for (std::string& token : tokens) {
      budget.spend(token.size());
      std::string lower;
      for (size_t i = 0; i < token.size();) {
        const Utf8Char c = decode_utf8(token.data() + i);
        const LowerCase one = lower_case(c.value);
        append_utf8(lower, one.first);
        if (one.second) append_utf8(lower, one.second);
        i += c.size;
      }
      token = std::move(lower);
    }
    return tokens;
  }
};

char32_t one_character(const Json& json) {
  const std::u32string text = to_utf32(json.to_string());
  if (text.size() != 1) json.fail("expected one character, found \"" + excerpt(json.to_string()) + "\"");
  return text[0];
}

size_t count_of(const Json& json) {
  const int64_t n = json.to_int();
  if (n < 0) json.fail("expected a count, found " + std::to_string(n));
  return static_cast<size_t>(n);
}

void add_steps(const Json& json, ExpressionBudget& budget, std::vector<std::unique_ptr<Decoder>>& out) {
  const std::string_view type = part_type(json);
  if (type == "Sequence") {
    for (const Json& item : json.at("decoders").items()) add_steps(item, budget, out);
  } else if (type == "ByteLevel") {
    out.push_back(std::make_unique<ByteLevelDecoder>());
  } else if (type == "ByteFallback") {
    out.push_back(std::make_unique<ByteFallbackDecoder>());
  } else if (type == "Fuse") {
    out.push_back(std::make_unique<FuseDecoder>());
  } else if (type == "Strip") {
    out.push_back(std::make_unique<StripDecoder>(one_character(json.at("content")), count_of(json.at("start")),
                                                 count_of(json.at("stop"))));
  } else if (type == "Replace") {
    out.push_back(std::make_unique<ReplaceDecoder>(make_pattern(json.at("pattern"), budget),
                                                   std::string(json.at("content").to_string())));
  } else if (type == "Metaspace") {
    const bool prefix =
        text_or(json, "prepend_scheme", flag_or(json, "add_prefix_space", true) ? "always" : "never") != "never";
    const Json* replacement = json.find("replacement");
    out.push_back(std::make_unique<MetaspaceDecoder>(replacement ? one_character(*replacement) : U'\u2581', prefix));
  } else if (type == "WordPiece") {
    out.push_back(std::make_unique<WordPieceDecoder>(text_or(json, "prefix", "##"), flag_or(json, "cleanup", true)));
  } else if (type == "CTC") {
    out.push_back(std::make_unique<CtcDecoder>(text_or(json, "pad_token", "<pad>"),
                                               text_or(json, "word_delimiter_token", "|"), flag_or(json, "cleanup", true)));
  } else if (type == "Lowercase") {
    out.push_back(std::make_unique<LowercaseDecoder>());
  } else if (type == "BPEDecoder") {
    out.push_back(std::make_unique<SuffixDecoder>(text_or(json, "suffix", "</w>")));
  } else {
    unsupported_part("decoder", type);
  }
}

}  // namespace

void append_token_bytes(std::string& bytes, std::string_view token) {
  const size_t before = bytes.size();
  for (size_t i = 0; i < token.size();) {
    const Utf8Char c = decode_utf8(token.data() + i);
    const auto byte = byte_of_character(c.value);
    if (!byte) {
      bytes.resize(before);
      bytes += token;
      return;
    }
    bytes += static_cast<char>(*byte);
    i += c.size;
  }
}

void clean_up_spaces(std::string& text) {
  tidy(text, {{" .", "."},
              {" ?", "?"},
              {" !", "!"},
              {" ,", ","},
              {" ' ", "'"},
              {" n't", "n't"},
              {" 'm", "'m"},
              {" 's", "'s"},
              {" 've", "'ve"},
              {" 're", "'re"}});
}

std::string Decoders::decode(std::vector<std::string> tokens, TextBudget& budget) const {
  for (size_t i = 0; i < steps.size(); ++i) {
    budget.enter("decoder", i + 1);
    for (const std::string& token : tokens) budget.spend(1 + token.size());
    tokens = steps[i]->apply(std::move(tokens), budget);
  }
  std::string out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!any && i > 0) out += ' ';
    out += tokens[i];
  }
  return out;
}

Decoders make_decoders(const Json& json, ExpressionBudget& budget) {
  Decoders out;
  if (json.is_null()) return out;
  out.any = true;
  add_steps(json, budget, out.steps);
  out.byte_level = out.steps.size() == 1 && dynamic_cast<ByteLevelDecoder*>(out.steps[0].get());
  return out;
}

}  // namespace calque
