#include "text/post_processor.h"

#include <algorithm>
#include <limits>
#include <map>

#include "text/budget.h"
#include "text/json_parts.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace calque {
namespace {

// White space at a byte-level token's ends does not count as part of it.
void trim_offsets(Encoding& e, bool add_prefix_space) {
  const UnicodeTable& table = UnicodeTable::instance();
  const auto is_space = [&](char32_t c) { return c == U'\u0120' || table.is_space(c); };
  for (size_t i = 0; i < e.tokens.size(); ++i) {
    const std::u32string token = to_utf32(e.tokens[i]);
    size_t leading = 0, trailing = 0;
    while (leading < token.size() && is_space(token[leading])) ++leading;
    while (trailing < token.size() && is_space(token[token.size() - 1 - trailing])) ++trailing;
    auto& [begin, end] = e.offsets[i];
    if (leading > 0) {
      // The one space that was put in front of the text is not in the text; several were there.
      if ((i == 0 || begin == 0) && add_prefix_space && leading == 1) leading = 0;
      begin = std::min(begin + leading, end);
    }
    if (trailing > 0 && end >= trailing) end = std::max(end - trailing, begin);
  }
}

void put_in(Encoding& e, int64_t id, const std::string& token, int64_t type, TextBudget& budget) {
  budget.take(token_memory(token));
  e.ids.push_back(id);
  e.tokens.push_back(token);
  e.offsets.emplace_back(0, 0);
  e.type_ids.push_back(type);
  e.special_tokens_mask.push_back(1);
  e.attention_mask.push_back(1);
  e.word_ids.push_back(-1);
  e.sequence_ids.push_back(-1);
}

class ByteLevelProcessor final : public PostProcessor {
 public:
  ByteLevelProcessor(bool trim, bool add_prefix_space) : trim_(trim), add_prefix_space_(add_prefix_space) {}
  std::vector<Encoding> apply(std::vector<Encoding> encodings, const PostContext&) const override {
    if (trim_)
      for (Encoding& e : encodings) trim_offsets(e, add_prefix_space_);
    return encodings;
  }
  size_t added_tokens(bool) const override { return 0; }

 private:
  bool trim_, add_prefix_space_;
};

// An id or a type of the file, which the tokenizers library keeps in 32 bits.
int64_t id_of(const Json& json) {
  const int64_t id = json.to_int();
  if (id < 0 || id > std::numeric_limits<uint32_t>::max())
    json.fail("expected an id from 0 to 4294967295, found " + std::to_string(id));
  return id;
}

struct SpecialToken {
  std::string text;
  int64_t id;
};

// [CLS] a [SEP] b [SEP], or RoBERTa's <s> a </s></s> b </s>.
class PairProcessor final : public PostProcessor {
 public:
  struct Roberta {
    bool trim, add_prefix_space;
  };
  PairProcessor(SpecialToken cls, SpecialToken sep, std::optional<Roberta> roberta)
      : cls_(std::move(cls)), sep_(std::move(sep)), roberta_(roberta) {}

  std::vector<Encoding> apply(std::vector<Encoding> encodings, const PostContext& context) const override {
    TextBudget& budget = context.budget;
    for (size_t i = 0; i < encodings.size(); ++i) {
      Encoding& e = encodings[i];
      if (roberta_) {
        if (roberta_->trim) trim_offsets(e, roberta_->add_prefix_space);
        if (i > 1 || !context.overflowed[i]) std::fill(e.type_ids.begin(), e.type_ids.end(), 0);
      }
      if (!context.add_special_tokens) continue;
      const int64_t type = roberta_ ? 0 : static_cast<int64_t>(i);
      Encoding with;
      if (i == 0)
        put_in(with, cls_.id, cls_.text, type, budget);
      else if (roberta_)
        put_in(with, sep_.id, sep_.text, type, budget);
      std::fill(e.type_ids.begin(), e.type_ids.end(), type);
      std::fill(e.special_tokens_mask.begin(), e.special_tokens_mask.end(), uint8_t{0});
      budget.require(encoding_memory(e));
      append_encoding(with, e);
      put_in(with, sep_.id, sep_.text, type, budget);
      e = std::move(with);
    }
    return encodings;
  }
  size_t added_tokens(bool pair) const override { return !pair ? 2 : roberta_ ? 4 : 3; }

 private:
  SpecialToken cls_, sep_;
  std::optional<Roberta> roberta_;
};

class TemplateProcessor final : public PostProcessor {
 public:
  explicit TemplateProcessor(const Json& json) : single_(pieces(json.at("single"))), pair_(pieces(json.at("pair"))) {
    for (const JsonMember& m : json.at("special_tokens").members()) {
      const auto ids = m.value.at("ids").items();
      const auto tokens = m.value.at("tokens").items();
      if (ids.size() != tokens.size()) m.value.fail("as many ids as tokens");
      for (size_t i = 0; i < ids.size(); ++i)
        tokens_[std::string(m.key)].push_back({std::string(tokens[i].to_string()), id_of(ids[i])});
    }
    for (const auto* part : {&single_, &pair_})
      for (const Part& p : *part)
        if (!p.sequence && !tokens_.contains(p.id))
          json.fail("the template uses the special token \"" + excerpt(p.id) + "\", which special_tokens does not have");
  }

  std::vector<Encoding> apply(std::vector<Encoding> encodings, const PostContext& context) const override {
    TextBudget& budget = context.budget;
    std::vector<Encoding> out;
    for (const Part& part : encodings.size() == 2 ? pair_ : single_) {
      if (!part.sequence && !context.add_special_tokens) continue;
      budget.take(sizeof(Encoding));
      Encoding e;
      if (part.sequence) {
        const size_t which = part.id == "B" ? 1 : 0;
        if (which >= encodings.size()) throw UserError("tokenizer: the template for one text asks for a second");
        budget.take(encoding_memory(encodings[which]));
        e = encodings[which];
        if (!context.overflowed[which]) std::fill(e.type_ids.begin(), e.type_ids.end(), part.type);
      } else {
        for (const SpecialToken& token : tokens_.at(part.id)) put_in(e, token.id, token.text, part.type, budget);
      }
      out.push_back(std::move(e));
    }
    return out;
  }
  size_t added_tokens(bool pair) const override {
    size_t n = 0;
    for (const Part& part : pair ? pair_ : single_)
      if (!part.sequence) n += tokens_.at(part.id).size();
    return n;
  }

 private:
  struct Part {
    bool sequence;
    std::string id;
    int64_t type;
  };
  static std::vector<Part> pieces(const Json& json) {
    std::vector<Part> out;
    for (const Json& item : json.items()) {
      const JsonMember& only = item.only();
      if (only.key != "Sequence" && only.key != "SpecialToken")
        item.fail("expected Sequence or SpecialToken, found " + excerpt(only.key));
      out.push_back({only.key == "Sequence", std::string(only.value.at("id").to_string()), id_of(only.value.at("type_id"))});
    }
    return out;
  }

  std::vector<Part> single_, pair_;
  std::map<std::string, std::vector<SpecialToken>> tokens_;
};

SpecialToken token_of(const Json& json) {
  const auto items = json.items();
  if (items.size() != 2) json.fail("a special token is [text, id]");
  return {std::string(items[0].to_string()), id_of(items[1])};
}

void add_steps(const Json& json, std::vector<std::unique_ptr<PostProcessor>>& out) {
  if (json.is_null()) return;
  const std::string_view type = part_type(json);
  if (type == "Sequence") {
    for (const Json& item : json.at("processors").items()) add_steps(item, out);
  } else if (type == "ByteLevel") {
    out.push_back(
        std::make_unique<ByteLevelProcessor>(flag_or(json, "trim_offsets", true), flag_or(json, "add_prefix_space", true)));
  } else if (type == "BertProcessing") {
    out.push_back(std::make_unique<PairProcessor>(token_of(json.at("cls")), token_of(json.at("sep")), std::nullopt));
  } else if (type == "RobertaProcessing") {
    out.push_back(std::make_unique<PairProcessor>(
        token_of(json.at("cls")), token_of(json.at("sep")),
        PairProcessor::Roberta{flag_or(json, "trim_offsets", true), flag_or(json, "add_prefix_space", true)}));
  } else if (type == "TemplateProcessing") {
    out.push_back(std::make_unique<TemplateProcessor>(json));
  } else {
    unsupported_part("post-processor", type);
  }
}

}  // namespace

void append_encoding(Encoding& to, const Encoding& from) {
  const auto add = [](auto& a, const auto& b) { a.insert(a.end(), b.begin(), b.end()); };
  add(to.ids, from.ids);
  add(to.tokens, from.tokens);
  add(to.offsets, from.offsets);
  add(to.type_ids, from.type_ids);
  add(to.special_tokens_mask, from.special_tokens_mask);
  add(to.attention_mask, from.attention_mask);
  add(to.word_ids, from.word_ids);
  add(to.sequence_ids, from.sequence_ids);
}

size_t token_memory(std::string_view token) {
  return sizeof(int64_t) + sizeof(std::string) + token.size() + sizeof(std::pair<size_t, size_t>) + sizeof(int64_t) +
         sizeof(int32_t) + 3;
}

size_t encoding_memory(const Encoding& encoding) {
  size_t bytes = encoding.ids.size() * sizeof(int64_t);
  for (const std::string& token : encoding.tokens) bytes += token_memory(token);
  return bytes;
}

std::vector<std::unique_ptr<PostProcessor>> make_post_processors(const Json& json) {
  std::vector<std::unique_ptr<PostProcessor>> out;
  add_steps(json, out);
  return out;
}

}  // namespace calque
