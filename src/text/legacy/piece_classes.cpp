#include <algorithm>
#include <utility>

#include "calque/base/error.h"
#include "text/legacy/classes.h"

namespace calque {
namespace {

constexpr const char* white_space_split = R"({"type": "WhitespaceSplit"})";
constexpr const char* lower_case_normalizer = R"({"type": "Lowercase"})";
constexpr const char* strip_right = R"({"type": "Strip", "strip_left": false, "strip_right": true})";
constexpr const char* one_space = " {2,}";

constexpr const char* mbart_languages[] = {"ar_AR", "cs_CZ", "de_DE", "en_XX", "es_XX", "et_EE", "fi_FI", "fr_XX", "gu_IN",
                                           "hi_IN", "it_IT", "ja_XX", "kk_KZ", "ko_KR", "lt_LT", "lv_LV", "my_MM", "ne_NP",
                                           "nl_XX", "ro_RO", "ru_RU", "si_LK", "tr_TR", "vi_VN", "zh_CN"};
constexpr const char* mbart50_languages[] = {"af_ZA", "az_AZ", "bn_IN", "fa_IR", "he_IL", "hr_HR", "id_ID",
                                             "ka_GE", "km_KH", "mk_MK", "ml_IN", "mn_MN", "mr_IN", "pl_PL",
                                             "ps_AF", "pt_XX", "sv_SE", "sw_KE", "ta_IN", "te_IN", "th_TH",
                                             "tl_XX", "uk_UA", "ur_PK", "xh_ZA", "gl_ES", "sl_SI"};

// Of the models that were trained with fairseq: their vocabularies begin with these, whatever the pieces begin with.
void default_fairseq_tokens(LegacyBuilder& b, bool mask = true) {
  b.defaults({{"bos_token", "<s>"},
              {"eos_token", "</s>"},
              {"sep_token", "</s>"},
              {"cls_token", "<s>"},
              {"unk_token", "<unk>"},
              {"pad_token", "<pad>"}});
  if (mask) b.defaults({{"mask_token", "<mask>"}});
}

void use_fairseq_pieces(LegacyBuilder& b, std::string_view first = "bos_token") {
  b.sentencepiece();
  for (const std::string_view role :
       {first, std::string_view("pad_token"), std::string_view("eos_token"), std::string_view("unk_token")})
    b.document.vocabulary.push(b.token(role));
  b.use_pieces(3);
}

void default_bracket_tokens(LegacyBuilder& b) {
  b.defaults({{"bos_token", "[CLS]"},
              {"eos_token", "[SEP]"},
              {"unk_token", "<unk>"},
              {"sep_token", "[SEP]"},
              {"pad_token", "<pad>"},
              {"cls_token", "[CLS]"},
              {"mask_token", "[MASK]"}});
}

std::string prefix_scheme(const LegacyBuilder& b, const char* without = "never") {
  return b.settings.flag("add_prefix_space", true) ? "always" : without;
}

void set_metaspace(LegacyBuilder& b, const std::string& scheme) {
  b.document.pre_tokenizer = b.document.decoder = metaspace(scheme);
}

void set_word_metaspace(LegacyBuilder& b, const std::string& scheme) {
  b.document.pre_tokenizer = pre_tokenizer_sequence({white_space_split, metaspace(scheme)});
  b.document.decoder = metaspace(scheme);
}

// [CLS] a [SEP] b [SEP]
void set_bert_template(LegacyBuilder& b) {
  const std::string &cls = b.token("cls_token"), &sep = b.token("sep_token");
  b.document.post_processor = template_processing({{cls}, {"$A"}, {sep}}, {{cls}, {"$A"}, {sep}, {"$B", 1}, {sep, 1}},
                                                  {b.with_id("cls_token"), b.with_id("sep_token")});
}

// <s> a </s> </s> b </s>
void set_roberta_template(LegacyBuilder& b, std::string_view first, std::string_view last) {
  const std::string &cls = b.token(first), &sep = b.token(last);
  b.document.post_processor = template_processing({{cls}, {"$A"}, {sep}}, {{cls}, {"$A"}, {sep}, {sep}, {"$B"}, {sep}},
                                                  {b.with_id(first), b.with_id(last)});
}

// Some tokens in front of the texts and some behind them.
void set_surrounding_template(LegacyBuilder& b, const std::vector<std::string>& before,
                              const std::vector<std::string>& after) {
  LegacyTemplate single, pair;
  LegacyTokenIds ids;
  const auto put = [&](const std::string& given) {
    const int64_t id = b.id(given);
    ids.emplace_back(b.document.token_of(id).value_or(given), id);
    single.push_back({ids.back().first});
    pair.push_back(single.back());
  };
  for (const std::string& token : before) put(token);
  single.push_back({"$A"});
  pair.insert(pair.end(), {{"$A"}, {"$B"}});
  for (const std::string& token : after) put(token);
  b.document.post_processor = template_processing(single, pair, ids);
}

std::vector<std::string> quote_normalizers() { return {replace_text("``", "\""), replace_text("''", "\"")}; }

void strip_accents(std::vector<std::string>& to) {
  to.emplace_back(R"({"type": "NFKD"})");
  to.emplace_back(R"({"type": "StripAccents"})");
}

void add_precompiled(const LegacyBuilder& b, std::vector<std::string>& to) {
  if (const auto normalizer = b.precompiled()) to.push_back(*normalizer);
}

// The id of a token that has no score of its own.
std::optional<int64_t> unscored(const LegacyBuilder& b, std::string_view token, size_t from = 0) {
  const auto& entries = b.document.vocabulary.entries();
  for (size_t i = from; i < entries.size(); ++i)
    if (entries[i].token == token && entries[i].score == 0) return entries[i].id;
  return std::nullopt;
}

[[noreturn]] void fail_unknown(const LegacyBuilder& b) {
  throw UserError(ErrorKind::bad_file, b.settings.folder().string() + ": the SentencePiece model has no piece \"" +
                                           b.token("unk_token") + "\", the unknown token, where this class expects one");
}

// ---- Unigram --------------------------------------------------------------------------------------------------------

void build_albert(LegacyBuilder& b) {
  default_bracket_tokens(b);
  b.sentencepiece();
  b.use_pieces();
  b.use_unigram(1);
  std::vector<std::string> normalizers = quote_normalizers();
  if (!b.settings.flag("keep_accents", false)) strip_accents(normalizers);
  if (b.settings.flag("do_lower_case", true)) normalizers.emplace_back(lower_case_normalizer);
  add_precompiled(b, normalizers);
  b.document.normalizer = normalizer_sequence(normalizers);
  set_word_metaspace(b, prefix_scheme(b));
  set_bert_template(b);
  b.finish();
}

void build_rembert(LegacyBuilder& b) {
  default_bracket_tokens(b);
  b.sentencepiece();
  b.use_pieces();
  b.use_unigram(2);
  std::vector<std::string> normalizers = quote_normalizers();
  normalizers.push_back(replace_expression(one_space, " "));
  if (!b.settings.flag("keep_accents", true)) strip_accents(normalizers);
  if (b.settings.flag("do_lower_case", false)) normalizers.emplace_back(lower_case_normalizer);
  add_precompiled(b, normalizers);
  b.document.normalizer = normalizer_sequence(normalizers);
  set_metaspace(b, prefix_scheme(b));
  b.finish();
  set_bert_template(b);
  b.add_special_again();
}

void build_barthez(LegacyBuilder& b) {
  default_fairseq_tokens(b);
  b.match("mask_token", {.lstrip = true});
  b.sentencepiece();
  b.use_pieces();
  b.use_unigram(3);
  b.document.normalizer =
      normalizer_sequence({replace_expression("\\s{2,}|[\\n\\r\\t]", " "), R"({"type": "NFC"})", strip_right});
  set_metaspace(b, prefix_scheme(b));
  b.finish();
}

void build_big_bird(LegacyBuilder& b) {
  b.defaults({{"unk_token", "<unk>"},
              {"bos_token", "<s>"},
              {"eos_token", "</s>"},
              {"pad_token", "<pad>"},
              {"sep_token", "[SEP]"},
              {"mask_token", "[MASK]"},
              {"cls_token", "[CLS]"}});
  for (const std::string_view role : legacy_roles) b.match(role, {.lstrip = role == "mask_token"});
  b.sentencepiece();
  b.use_pieces();
  b.use_unigram(unscored(b, b.token("unk_token")).value_or(100));
  b.document.normalizer = normalizer_sequence(
      {R"({"type": "Strip", "strip_left": false, "strip_right": false})", replace_expression(one_space, "▁")});
  set_metaspace(b, prefix_scheme(b));
  b.finish();
  set_bert_template(b);
}

void build_camembert(LegacyBuilder& b) {
  default_fairseq_tokens(b);
  b.match("mask_token", {.lstrip = true, .special = true});
  b.sentencepiece();
  LegacyVocabulary& vocabulary = b.document.vocabulary;
  vocabulary.push("<s>NOTUSED");
  vocabulary.push(b.token("pad_token"));
  vocabulary.push("</s>NOTUSED");
  vocabulary.push(b.token("unk_token"));
  vocabulary.push("<unk>NOTUSED", -100);
  b.use_pieces(1);
  vocabulary.push(b.token("mask_token"));
  b.use_unigram(3);
  if (const auto normalizer = b.precompiled()) b.document.normalizer = *normalizer;
  set_word_metaspace(b, prefix_scheme(b));
  b.finish();
  set_roberta_template(b, "bos_token", "eos_token");
}

void build_deberta_v2(LegacyBuilder& b) {
  b.defaults({{"unk_token", "[UNK]"}, {"pad_token", "[PAD]"}});
  default_bracket_tokens(b);
  const int64_t unknown = b.sentencepiece().unk_id;
  b.use_pieces();
  b.use_unigram(unscored(b, b.token("unk_token")).value_or(unknown));
  std::vector<std::string> normalizers;
  if (b.settings.flag("do_lower_case", false)) normalizers.emplace_back(lower_case_normalizer);
  normalizers.insert(normalizers.end(), {replace_expression("\\s{2,}|[\\n\\r\\t]", " "), R"({"type": "NFC"})", strip_right});
  b.document.normalizer = normalizer_sequence(normalizers);
  const std::string scheme = prefix_scheme(b, "first");
  std::vector<std::string> pre_tokenizers;
  if (b.settings.flag("split_by_punct", false))
    pre_tokenizers.emplace_back(R"({"type": "Punctuation", "behavior": "Isolated"})");
  pre_tokenizers.push_back(metaspace(scheme));
  b.document.pre_tokenizer = pre_tokenizer_sequence(pre_tokenizers);
  b.document.decoder = metaspace(scheme);
  b.finish();
  set_bert_template(b);
}

void build_mbart(LegacyBuilder& b) {
  default_fairseq_tokens(b);
  b.match("mask_token", {.lstrip = true});
  use_fairseq_pieces(b);
  std::vector<GivenToken> controls = std::move(*b.settings.additional);
  b.settings.additional->clear();
  for (const char* language : mbart_languages) {
    b.document.vocabulary.push(language);
    b.add_extra(language);
  }
  b.settings.additional->insert(b.settings.additional->end(), controls.begin(), controls.end());
  b.document.vocabulary.push(b.token("mask_token"));
  b.use_unigram(3);
  set_word_metaspace(b, "always");
  b.finish();
  set_surrounding_template(b, {}, {b.token("eos_token"), b.settings.text("src_lang").value_or("en_XX")});
}

void build_mbart50(LegacyBuilder& b) {
  default_fairseq_tokens(b);
  if (!b.settings.has("bos_token")) b.settings.roles.erase("bos_token");
  b.match("mask_token", {.lstrip = true});
  use_fairseq_pieces(b, "cls_token");
  const auto add = [&](const char* language) {
    b.document.vocabulary.push(language);
    b.add_extra(language);
  };
  for (const char* language : mbart_languages) add(language);
  for (const char* language : mbart50_languages) add(language);
  b.document.vocabulary.push(b.token("mask_token"));
  b.use_unigram(3);
  std::vector<std::string> normalizers;
  add_precompiled(b, normalizers);
  normalizers.push_back(replace_expression(one_space, " "));
  b.document.normalizer = normalizer_sequence(normalizers);
  set_metaspace(b, "always");
  b.finish();
  set_surrounding_template(b, {b.settings.text("src_lang").value_or("en_XX")}, {b.token("eos_token")});
}

void build_pegasus(LegacyBuilder& b) {
  const bool says_mask = b.settings.roles.contains("mask_token"), says_sentence_mask = b.settings.has("mask_token_sent");
  b.defaults({{"pad_token", "<pad>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"mask_token", "<mask_2>"}});
  const std::optional<std::string> mask = b.has_token("mask_token") ? std::optional(b.token("mask_token")) : std::nullopt;
  const std::optional<std::string> sentence_mask = says_sentence_mask ? b.settings.text("mask_token_sent") : "<mask_1>";
  const int64_t offset = b.settings.number("offset", 103, 100'000);
  b.sentencepiece();
  LegacyVocabulary& vocabulary = b.document.vocabulary;
  vocabulary.push(b.token("pad_token"));
  vocabulary.push(b.token("eos_token"));
  // Where the files do not say, the vocabulary has the two masks the other way round than the tokens.
  const std::optional<std::string> first = says_mask ? mask : "<mask_1>",
                                   second = says_sentence_mask ? sentence_mask : "<mask_2>";
  if (first) vocabulary.push(*first);
  if (second && second != first) vocabulary.push(*second);
  b.settings.additional->clear();
  if (sentence_mask) b.add_extra(*sentence_mask);
  for (int64_t i = 2; i < offset; ++i) {
    const std::string token = "<unk_" + std::to_string(i) + ">";
    vocabulary.push(token, -100);
    b.add_extra(token);
  }
  b.use_pieces(2);
  const auto unknown = unscored(b, b.token("unk_token"), 1);
  if (!unknown) fail_unknown(b);
  b.use_unigram(*unknown);
  std::vector<std::string> normalizers;
  add_precompiled(b, normalizers);
  if (normalizers.empty()) normalizers.push_back(replace_expression("\\n", " "));
  normalizers.push_back(replace_expression(one_space, " "));
  b.document.normalizer = normalizer_sequence(normalizers);
  set_metaspace(b, "always");
  b.finish();
  set_surrounding_template(b, {}, {b.token("eos_token")});
}

void build_t5(LegacyBuilder& b) {
  b.defaults({{"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}});
  const int64_t extra = b.settings.number("extra_ids", 100, 100'000);
  const auto sentinel = [](int64_t i) { return "<extra_id_" + std::to_string(i) + ">"; };
  b.sentencepiece();
  b.use_pieces();
  for (int64_t i = extra; i > 0; --i) b.document.vocabulary.push(sentinel(i - 1));
  const auto& pieces = *b.settings.additional;
  if (std::none_of(pieces.begin(), pieces.end(),
                   [](const GivenToken& t) { return t.token.content.find("<extra_id_") != std::string::npos; }))
    for (int64_t i = 0; i < extra; ++i) b.add_extra(sentinel(i));
  b.use_unigram(2);
  if (const auto normalizer = b.precompiled()) b.document.normalizer = *normalizer;
  set_word_metaspace(b, "always");
  b.finish();
  const std::string eos = "</s>";
  b.document.post_processor =
      template_processing({{"$A"}, {eos}}, {{"$A"}, {eos}, {"$B"}, {eos}}, {{eos, b.role_id("eos_token")}});
}

void build_xglm(LegacyBuilder& b) {
  default_fairseq_tokens(b, false);
  use_fairseq_pieces(b);
  for (int i = 0; i < 7; ++i) {
    const std::string word = "<madeupword" + std::to_string(i) + ">";
    b.document.vocabulary.push(word);
    b.add_extra(word);
  }
  b.use_unigram(3);
  std::vector<std::string> normalizers;
  add_precompiled(b, normalizers);
  normalizers.push_back(replace_expression(one_space, " "));
  b.document.normalizer = normalizer_sequence(normalizers);
  set_metaspace(b, prefix_scheme(b));
  b.finish();
  const std::string& eos = b.token("eos_token");
  b.document.post_processor = template_processing({{eos}, {"$A"}}, {{eos}, {"$A"}, {eos}, {eos}, {"$B"}},
                                                  {b.with_id("bos_token"), b.with_id("eos_token")});
}

void build_xlm_roberta(LegacyBuilder& b) {
  default_fairseq_tokens(b);
  use_fairseq_pieces(b);
  b.document.vocabulary.push(b.token("mask_token"));
  b.use_unigram(3);
  if (const auto normalizer = b.precompiled()) b.document.normalizer = *normalizer;
  set_word_metaspace(b, prefix_scheme(b));
  b.finish();
  set_roberta_template(b, "bos_token", "eos_token");
}

void build_layoutxlm(LegacyBuilder& b) {
  default_fairseq_tokens(b);
  b.match("mask_token", {.lstrip = true});
  use_fairseq_pieces(b);
  b.document.vocabulary.push(b.token("mask_token"));
  b.use_unigram(3);
  b.document.normalizer = normalizer_sequence({strip_right, replace_expression(one_space, "▁")});
  set_metaspace(b, prefix_scheme(b));
  b.finish();
  set_roberta_template(b, "cls_token", "sep_token");
}

void build_xlnet(LegacyBuilder& b) {
  b.defaults({{"bos_token", "<s>"},
              {"eos_token", "</s>"},
              {"unk_token", "<unk>"},
              {"sep_token", "<sep>"},
              {"pad_token", "<pad>"},
              {"cls_token", "<cls>"},
              {"mask_token", "<mask>"}});
  b.match("mask_token", {.lstrip = true});
  const int64_t unknown = b.sentencepiece().unk_id;
  b.use_pieces();
  b.use_unigram(unknown);
  std::vector<std::string> normalizers = quote_normalizers();
  strip_accents(normalizers);
  if (b.settings.flag("do_lower_case", false)) normalizers.emplace_back(lower_case_normalizer);
  add_precompiled(b, normalizers);
  b.document.normalizer = normalizer_sequence(normalizers);
  set_word_metaspace(b, "always");
  b.finish();
  const std::string &cls = b.token("cls_token"), &sep = b.token("sep_token");
  b.document.post_processor = template_processing({{"$A"}, {sep}, {cls, 2}}, {{"$A"}, {sep}, {"$B", 1}, {sep, 1}, {cls, 2}},
                                                  {b.with_id("sep_token"), b.with_id("cls_token")});
}

// ---- BPE ------------------------------------------------------------------------------------------------------------

// Pieces with bytes to fall back to.
std::string byte_fallback_decoder(bool strip) {
  std::vector<std::string> parts{replace_text("▁", " "), R"({"type": "ByteFallback"})", R"({"type": "Fuse"})"};
  if (strip) parts.emplace_back(R"({"type": "Strip", "content": " ", "start": 1, "stop": 0})");
  return decoder_sequence(parts);
}

void build_llama(LegacyBuilder& b) {
  b.defaults({{"unk_token", "<unk>"}, {"bos_token", "<s>"}, {"eos_token", "</s>"}});
  if (b.use_tiktoken()) return b.finish();
  const bool prefix = b.settings.flag("add_prefix_space", true);
  b.sentencepiece();
  b.use_pieces();
  b.use_bpe({.fuse_unknown = true, .byte_fallback = true});
  b.document.pre_tokenizer = metaspace(!prefix ? "never" : b.settings.flag("legacy", false) ? "always" : "first", false);
  b.document.decoder = byte_fallback_decoder(prefix);
  b.finish();
}

void build_code_llama(LegacyBuilder& b) {
  b.defaults({{"unk_token", "<unk>"}, {"bos_token", "<s>"}, {"eos_token", "</s>"}});
  const bool prefix = b.settings.flag("add_prefix_space", true);
  b.sentencepiece();
  b.use_pieces();
  b.use_bpe({.unknown = b.token("unk_token"), .fuse_unknown = true, .byte_fallback = true});
  b.document.pre_tokenizer = metaspace(prefix ? "first" : "never", false);
  b.document.decoder = byte_fallback_decoder(true);
  std::vector<std::pair<std::string, GivenToken>> own;
  for (const auto& [role, text] :
       {std::pair("prefix_token", "▁<PRE>"), std::pair("middle_token", "▁<MID>"), std::pair("suffix_token", "▁<SUF>"),
        std::pair("eot_token", "▁<EOT>"), std::pair("fill_token", "<FILL_ME>")}) {
    own.emplace_back(role, GivenToken{{.content = text}, true});
    b.add_extra(text);
  }
  b.settings.own_roles.insert(b.settings.own_roles.begin(), own.begin(), own.end());
  b.adds_bos = true;
  b.finish();
}

void build_gemma(LegacyBuilder& b) {
  b.defaults({{"unk_token", "<unk>"},
              {"bos_token", "<bos>"},
              {"eos_token", "<eos>"},
              {"pad_token", "<pad>"},
              {"mask_token", "<mask>"}});
  b.sentencepiece();
  b.use_pieces();
  b.use_bpe({.unknown = b.token("unk_token"), .fuse_unknown = true, .byte_fallback = true});
  b.document.normalizer = replace_text(" ", "▁");
  b.document.pre_tokenizer =
      R"({"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": false})";
  b.document.decoder = byte_fallback_decoder(false);
  b.finish();
}

void build_nllb(LegacyBuilder& b) {
  default_fairseq_tokens(b);
  b.match("mask_token", {.lstrip = true, .special = true, .normalized = true});
  b.sentencepiece();
  b.use_pieces();
  const LegacyVocabulary pieces = std::exchange(b.document.vocabulary, {});
  for (const char* role : {"bos_token", "pad_token", "eos_token", "unk_token"})
    if (!b.document.vocabulary.find(b.token(role))) b.document.vocabulary.push(b.token(role));
  for (const LegacyVocabulary::Entry& entry : pieces.entries())
    if (!b.document.vocabulary.find(entry.token)) b.document.vocabulary.push(entry.token);
  b.use_bpe_of(pieces, {.unknown = b.token("unk_token"), .fuse_unknown = true});
  if (const auto normalizer = b.precompiled())
    b.document.normalizer = normalizer_sequence({*normalizer, replace_expression(one_space, " ")});
  set_metaspace(b, "always");
  b.finish();
  const std::string eos = b.token("eos_token"), language = b.settings.text("src_lang").value_or("eng_Latn");
  const LegacyTokenIds ids{b.with_id("eos_token"), {language, b.id(language)}};
  b.document.post_processor =
      b.settings.flag("legacy_behaviour", false)
          ? template_processing({{"$A"}, {eos}, {language}}, {{"$A"}, {"$B"}, {eos}, {language}}, ids)
          : template_processing({{language}, {"$A"}, {eos}}, {{language}, {"$A"}, {"$B"}, {eos}}, ids);
}

void build_reformer(LegacyBuilder& b) {
  b.defaults({{"eos_token", "</s>"}, {"unk_token", "<unk>"}});
  b.sentencepiece();
  b.use_pieces();
  b.use_bpe({.unknown = b.token("unk_token"), .fuse_unknown = true});
  if (const auto normalizer = b.precompiled())
    b.document.normalizer = normalizer_sequence({*normalizer, replace_expression(one_space, " ")});
  set_metaspace(b, "always");
  b.finish();
  b.add_special_again();
}

// ---- of no class ----------------------------------------------------------------------------------------------------

// What transformers makes of a model that has no class of its own: as the file itself says.
void set_generic_parts(LegacyBuilder& b) {
  const SentencePieceModel& model = b.sentencepiece();
  b.use_pieces();
  if (model.type == SentencePieceModel::Type::unigram)
    b.use_unigram(model.unk_id, model.byte_fallback);
  else
    b.use_bpe({.unknown = std::string(model.unk_piece), .fuse_unknown = true, .byte_fallback = model.byte_fallback});
  std::vector<std::string> normalizers;
  add_precompiled(b, normalizers);
  normalizers.push_back(replace_text(" ", "▁"));
  b.document.normalizer = normalizer_sequence(normalizers);
  b.document.decoder = model.byte_fallback ? byte_fallback_decoder(false) : decoder_sequence({replace_text("▁", " ")});
  const auto special = [&](const char* role, int64_t id, std::string_view piece) {
    if (id >= 0) b.settings.roles.try_emplace(role, GivenToken{{.content = std::string(piece)}, true});
  };
  special("bos_token", model.bos_id, model.bos_piece);
  special("eos_token", model.eos_id, model.eos_piece);
  special("unk_token", model.unk_id, model.unk_piece);
}

void build_generic(LegacyBuilder& b) {
  if (!b.use_tiktoken()) set_generic_parts(b);
  b.finish();
}

// Albert's tokens; but transformers takes all else from the file.
void build_fnet(LegacyBuilder& b) {
  set_generic_parts(b);
  default_bracket_tokens(b);
  b.finish();
}

constexpr LegacyClass classes_of_pieces[] = {
    {"AlbertTokenizer", "albert yoso", build_albert},
    {"FNetTokenizer", "fnet", build_fnet},
    {"RemBertTokenizer", "rembert", build_rembert},
    {"BarthezTokenizer", "barthez", build_barthez},
    {"BigBirdTokenizer", "big_bird", build_big_bird},
    {"CamembertTokenizer", "camembert", build_camembert},
    {"DebertaV2Tokenizer", "deberta-v2", build_deberta_v2},
    {"MBartTokenizer", "mbart", build_mbart},
    {"MBart50Tokenizer", "mbart50", build_mbart50},
    {"PegasusTokenizer", "pegasus", build_pegasus},
    {"T5Tokenizer MT5Tokenizer", "t5 mt5 musicgen musicgen_melody switch_transformers", build_t5},
    {"XGLMTokenizer", "xglm", build_xglm},
    {"XLMRobertaTokenizer", "xlm-roberta gte jina_embeddings_v3 metaclip_2 trocr xmod", build_xlm_roberta},
    {"LayoutXLMTokenizer", "layoutxlm", build_layoutxlm},
    {"XLNetTokenizer", "xlnet", build_xlnet},
    {"LlamaTokenizer Phi3Tokenizer", "idefics idefics2", build_llama},
    {"CodeLlamaTokenizer", "code_llama", build_code_llama},
    {"GemmaTokenizer",
     "gemma gemma2 gemma3 gemma3_text gemma3n gemma3n_text diffusion_gemma recurrent_gemma shieldgemma2 t5gemma zaya",
     build_gemma},
    {"NllbTokenizer", "nllb nllb-moe", build_nllb},
    {"ReformerTokenizer", "reformer", build_reformer},
    {"TokenizersBackend PreTrainedTokenizerFast PreTrainedTokenizer PythonBackend", "", build_generic},
};

}  // namespace

std::span<const LegacyClass> piece_classes() { return classes_of_pieces; }

}  // namespace calque
