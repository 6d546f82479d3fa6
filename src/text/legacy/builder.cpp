#include "text/legacy/builder.h"

#include <map>
#include <set>

#include "calque/base/error.h"
#include "text/base64.h"
#include "text/utf8.h"

namespace calque {
namespace {

// The names under which transformers' classes save SentencePiece models; a folder has one of them.
constexpr const char* sentencepiece_names[] = {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "spm.model",
                                               "sentencepiece.model"};

// Differs for tokens that differ.
std::string identity_of(const GivenToken& given) {
  const LegacyToken& t = given.token;
  std::string out = t.content;
  for (const bool flag : {given.plain, t.single_word, t.lstrip, t.rstrip, t.special, t.is_normalized()})
    out += flag ? '1' : '0';
  return out;
}

std::string flag_text(bool value) { return value ? "true" : "false"; }

}  // namespace

void LegacyBuilder::fail(const std::string& why) const {
  throw UserError(ErrorKind::bad_file, settings.folder().string() + ": " + class_name_ + ": " + why);
}

std::filesystem::path LegacyBuilder::file(std::string_view name) const {
  std::filesystem::path path = settings.folder() / name;
  if (!std::filesystem::exists(path)) fail("no " + std::string(name) + " in this folder, and no tokenizer.json");
  return path;
}

// ---- arguments ----------------------------------------------------------------------------------------------------

void LegacyBuilder::defaults(std::initializer_list<std::pair<const char*, const char*>> tokens) {
  for (const auto& [role, text] : tokens) settings.roles.try_emplace(role, GivenToken{{.content = text}, true});
}

void LegacyBuilder::match(std::string_view role, LegacyToken how) {
  const auto found = settings.roles.find(role);
  if (found == settings.roles.end() || !found->second || !found->second->plain) return;
  how.content = found->second->token.content;
  found->second = GivenToken{how, false};
}

bool LegacyBuilder::has_token(std::string_view role) const {
  const auto found = settings.roles.find(role);
  return found != settings.roles.end() && found->second.has_value();
}

const std::string& LegacyBuilder::token(std::string_view role) const {
  if (!has_token(role)) fail("the files say that there is no " + std::string(role) + ", which this class needs");
  return settings.roles.find(role)->second->token.content;
}

int64_t LegacyBuilder::id(std::string_view text) const {
  if (const auto found = document.find(text)) return *found;
  if (has_token("unk_token"))
    if (const auto found = document.find(token("unk_token"))) return *found;
  fail("\"" + excerpt(text) + "\" is not in the vocabulary, and neither is the unknown token");
}

// ---- vocabularies -------------------------------------------------------------------------------------------------

void LegacyBuilder::load_word_piece() {
  document.vocabulary = read_vocab_txt(file("vocab.txt"));
  document.model = word_piece_model(document.vocabulary, token("unk_token"));
}

void LegacyBuilder::load_bpe(const LegacyBpeSettings& how) {
  document.vocabulary = read_vocab_json(file("vocab.json"));
  document.model = bpe_model(document.vocabulary, read_merges_txt(file("merges.txt")), how);
}

const SentencePieceModel& LegacyBuilder::sentencepiece(std::string_view name) {
  std::filesystem::path path;
  if (!name.empty()) path = file(name);
  std::string names;
  for (const char* usual : sentencepiece_names) {
    names += (names.empty() ? "" : ", ") + std::string(usual);
    if (path.empty() && std::filesystem::exists(settings.folder() / usual)) path = settings.folder() / usual;
  }
  if (path.empty()) fail("no SentencePiece model in this folder (" + names + "), and no tokenizer.json");
  model_file_ = MappedFile::open(path.string());
  model_ = read_sentencepiece(model_file_->bytes(), path.string());
  settings.additional.emplace();
  for (const SentencePiece& piece : model_.pieces) {
    const bool control = piece.kind == SentencePiece::Kind::control;
    if (control || piece.kind == SentencePiece::Kind::user_defined)
      add_extra(piece.text, {.special = control, .normalized = false});
  }
  return model_;
}

void LegacyBuilder::use_pieces(size_t skip) {
  for (size_t i = skip; i < model_.pieces.size(); ++i)
    document.vocabulary.push(model_.pieces[i].text, static_cast<double>(model_.pieces[i].score));
}

void LegacyBuilder::use_unigram(int64_t unknown, bool byte_fallback, const LegacyVocabulary* pieces) {
  const size_t tokens = document.vocabulary.entries().size();
  if (unknown < 0 || static_cast<uint64_t>(unknown) >= tokens)
    fail("the unknown piece has the id " + std::to_string(unknown) + ", and there are " + std::to_string(tokens) +
         " pieces");
  document.scored = true;
  document.model = unigram_model(document.vocabulary, unknown, byte_fallback, pieces);
}

void LegacyBuilder::use_bpe_of(const LegacyVocabulary& pieces, const LegacyBpeSettings& how) {
  document.model = bpe_model(document.vocabulary, generate_merges(pieces, {}, model_file_->path()), how);
}

std::optional<std::string> LegacyBuilder::precompiled(bool longest) const {
  if (model_.precompiled_charsmap.empty()) return std::nullopt;
  return R"({"type": "Precompiled", "precompiled_charsmap": ")" + encode_base64(model_.precompiled_charsmap) +
         (longest ? R"(", "longest": true})" : "\"}");
}

// ---- special tokens -----------------------------------------------------------------------------------------------

void LegacyBuilder::add_extra(std::string_view text, LegacyToken how) {
  if (!settings.additional) settings.additional.emplace();
  const bool plain = how == LegacyToken{};
  how.content = text;
  settings.additional->push_back({std::move(how), plain});
}

std::vector<std::pair<std::string, GivenToken>> LegacyBuilder::all_roles() const {
  std::vector<std::pair<std::string, GivenToken>> out;
  for (const std::string_view role : legacy_roles)
    if (const auto found = settings.roles.find(role); found != settings.roles.end() && found->second)
      out.emplace_back(role, *found->second);
  std::map<std::string_view, size_t> places;  // the last of a name counts, in the place of the first
  for (const auto& own : settings.own_roles) {
    const auto [at, fresh] = places.try_emplace(own.first, out.size());
    fresh ? out.push_back(own) : void(out[at->second].second = own.second);
  }
  return out;
}

std::vector<GivenToken> LegacyBuilder::extras() const {
  if (settings.extra) return *settings.extra;
  return settings.additional.value_or(std::vector<GivenToken>());
}

void LegacyBuilder::finish() {
  std::set<std::string> known, named, seen;
  std::vector<GivenToken> tokens;
  for (const auto& [id, token] : settings.added) {
    tokens.push_back({token, false});
    known.insert(token.content);
  }
  const auto add = [&](const GivenToken& token) {
    if (!known.contains(token.token.content) && seen.insert(identity_of(token)).second) tokens.push_back(token);
  };
  for (const auto& [role, token] : all_roles()) {
    named.insert(token.token.content);
    add(token);
  }
  for (const GivenToken& token : extras()) add(token);
  for (GivenToken& token : tokens) {
    if (token.plain || named.contains(token.token.content)) token.token.special = true;
    document.add(token.token);
  }
  makes_post_processor_ =
      settings.has("add_bos_token") || settings.has("add_eos_token") || adds_bos || document.post_processor == "null";
  if (makes_post_processor_) make_post_processor();
}

void LegacyBuilder::add_special_again() {
  std::vector<GivenToken> tokens;
  for (const auto& [role, token] : all_roles()) tokens.push_back(token);
  for (const GivenToken& token : extras()) tokens.push_back(token);
  for (GivenToken& token : tokens) {
    token.token.special = true;
    if (token.plain) token.token.normalized = false;
    document.add(token.token);
  }
  if (makes_post_processor_) make_post_processor();
}

void LegacyBuilder::add_special_as_text() {
  for (const auto& [role, token] : all_roles()) document.add({.content = token.token.content, .special = true});
  for (const GivenToken& token : extras()) document.add({.content = token.token.content, .special = true});
}

void LegacyBuilder::make_post_processor() {
  const bool bos = settings.flag("add_bos_token", adds_bos) && has_token("bos_token");
  const bool eos = settings.flag("add_eos_token", false) && has_token("eos_token");
  LegacyTemplate single, pair;
  LegacyTokenIds ids;
  const auto part = [&](const char* text, int64_t type) {
    LegacyTemplate out;
    if (bos) out.push_back({token("bos_token"), type});
    out.push_back({text, type});
    if (eos) out.push_back({token("eos_token"), type});
    return out;
  };
  single = pair = part("$A", 0);
  for (LegacyTemplatePiece& piece : part("$B", 1)) pair.push_back(std::move(piece));
  if (bos) ids.push_back(with_id("bos_token"));
  if (eos) ids.push_back(with_id("eos_token"));
  document.post_processor = template_processing(single, pair, ids);
}

// ---- parts as JSON ------------------------------------------------------------------------------------------------

std::string json_sequence(std::string_view type, std::string_view member, const std::vector<std::string>& parts) {
  std::string out = R"({"type": ")" + std::string(type) + R"(", ")" + std::string(member) + R"(": [)";
  for (size_t i = 0; i < parts.size(); ++i) out += (i == 0 ? "" : ", ") + parts[i];
  return out + "]}";
}

std::string replace_text(std::string_view text, std::string_view content) {
  return R"({"type": "Replace", "pattern": {"String": )" + json_quoted(text) + R"(}, "content": )" + json_quoted(content) +
         "}";
}

std::string replace_expression(std::string_view expression, std::string_view content) {
  return R"({"type": "Replace", "pattern": {"Regex": )" + json_quoted(expression) + R"(}, "content": )" +
         json_quoted(content) + "}";
}

std::string metaspace(std::string_view scheme, bool split) {
  return R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": ")" + std::string(scheme) + R"(", "split": )" +
         flag_text(split) + "}";
}

std::string byte_level(bool add_prefix_space, bool trim_offsets, bool use_regex) {
  return R"({"type": "ByteLevel", "add_prefix_space": )" + flag_text(add_prefix_space) + R"(, "trim_offsets": )" +
         flag_text(trim_offsets) + R"(, "use_regex": )" + flag_text(use_regex) + "}";
}

std::string split_expression(std::string_view expression, std::string_view behavior, bool invert) {
  return R"({"type": "Split", "pattern": {"Regex": )" + json_quoted(expression) + R"(}, "behavior": ")" +
         std::string(behavior) + R"(", "invert": )" + flag_text(invert) + "}";
}

std::string bert_normalizer(const LegacySettings& settings, std::optional<bool> lower_case) {
  const std::string accents = settings.find("strip_accents") ? flag_text(settings.flag("strip_accents", false)) : "null";
  return R"({"type": "BertNormalizer", "clean_text": )" + flag_text(settings.flag("clean_text", true)) +
         R"(, "handle_chinese_chars": )" + flag_text(settings.flag("tokenize_chinese_chars", true)) +
         R"(, "strip_accents": )" + accents + R"(, "lowercase": )" +
         flag_text(lower_case.value_or(settings.flag("do_lower_case", true))) + "}";
}

std::string two_token_processing(std::string_view type, const std::pair<std::string, int64_t>& sep,
                                 const std::pair<std::string, int64_t>& cls,
                                 std::optional<std::pair<bool, bool>> trim_and_prefix) {
  const auto token = [](const std::pair<std::string, int64_t>& t) {
    return "[" + json_quoted(t.first) + ", " + std::to_string(t.second) + "]";
  };
  std::string out = R"({"type": ")" + std::string(type) + R"(", "sep": )" + token(sep) + R"(, "cls": )" + token(cls);
  if (trim_and_prefix)
    out += R"(, "trim_offsets": )" + flag_text(trim_and_prefix->first) + R"(, "add_prefix_space": )" +
           flag_text(trim_and_prefix->second);
  return out + "}";
}

}  // namespace calque
