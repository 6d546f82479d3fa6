// Classes of Python alone, which split texts with the sentencepiece library and look up the pieces in a vocab.json beside it. What is made for
// them is a tokenizer.json whose parts work as SentencePiece does, not as the tokenizers library's: see unigram.h and charsmap.h. A stretch of
// unknown characters is looked up as well, so that a token of the other language may be taken, when it is the whole stretch.
#include <algorithm>
#include <vector>

#include "calque/base/error.h"
#include "text/legacy/classes.h"
#include "text/utf8.h"

namespace calque {
namespace {

constexpr std::string_view m2m100_languages =
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy id ig "
    "ilo is it ja jv "
    "ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su "
    "sv sw ta th tl tn "
    "tr uk ur uz vi wo xh yi yo zh zu";
constexpr std::string_view wmt21_languages = "en ha is ja cs ru zh de";

[[noreturn]] void fail_dictionary(const LegacyBuilder& b, const std::string& why) {
  throw UserError(ErrorKind::bad_file, (b.settings.folder() / "vocab.json").string() + ": " + why);
}

// The pieces of a model with their scores, as SentencePiece itself takes them.
LegacyVocabulary scored_pieces(LegacyBuilder& b, const char* pieces) {
  const SentencePieceModel& model = b.sentencepiece(pieces);
  b.settings.additional.reset();
  if (model.type != SentencePieceModel::Type::unigram)
    throw UserError(ErrorKind::bad_file, (b.settings.folder() / pieces).string() +
                                             ": the model is not of the kind Unigram, as it is for this class");
  LegacyVocabulary own;
  float highest = 0;
  bool any = false;
  for (const SentencePiece& piece : model.pieces) {
    if (piece.kind != SentencePiece::Kind::normal) continue;
    highest = any ? std::max(highest, piece.score) : piece.score;
    any = true;
  }
  for (const SentencePiece& piece : model.pieces) {
    if (piece.kind == SentencePiece::Kind::normal)
      own.push(piece.text, piece.score);
    else if (piece.kind ==
             SentencePiece::Kind::user_defined)  // what SentencePiece gives them, so that they are always taken
      own.push(piece.text, static_cast<double>(static_cast<float>(piece.text.size()) * highest) - 0.1);
  }
  return own;
}

// The model is Unigram of these pieces, and the document's vocabulary has the ids.
void set_pieces(LegacyBuilder& b, const LegacyVocabulary& own, int64_t unknown) {
  b.use_unigram(unknown, false, &own);
  std::vector<std::string> normalizers;
  if (const auto normalizer = b.precompiled(true)) normalizers.push_back(*normalizer);
  normalizers.insert(normalizers.end(), {replace_expression(" +", " "), replace_expression("\\A | \\z", ""),
                                         R"({"type": "Prepend", "prepend": "▁"})", replace_text(" ", "▁")});
  b.document.normalizer = normalizer_sequence(normalizers);
  b.document.decoder = metaspace("always");
}

void use_dictionary(LegacyBuilder& b, const char* pieces) {
  const LegacyVocabulary own = scored_pieces(b, pieces);
  const LegacyVocabulary dictionary = read_vocab_json(b.settings.folder() / "vocab.json");
  std::vector<const LegacyVocabulary::Entry*> by_id(dictionary.distinct());
  for (const LegacyVocabulary::Entry& entry : dictionary.entries()) {
    if (dictionary.find(entry.token) != entry.id) continue;
    if (static_cast<size_t>(entry.id) >= by_id.size() || by_id[static_cast<size_t>(entry.id)] != nullptr)
      fail_dictionary(b, "the id " + std::to_string(entry.id) + " of \"" + excerpt(entry.token) + "\"; expected " +
                             std::to_string(by_id.size()) + " tokens with the ids from 0, each once");
    by_id[static_cast<size_t>(entry.id)] = &entry;
  }
  for (const LegacyVocabulary::Entry* entry : by_id) b.document.vocabulary.push(entry->token);
  const auto unknown = b.document.vocabulary.find(b.token("unk_token"));
  if (!unknown) fail_dictionary(b, "the unknown token \"" + excerpt(b.token("unk_token")) + "\" is not in it");
  set_pieces(b, own, *unknown);
}

// Some tokens in front of the texts, and the last one behind them.
void set_prefix_template(LegacyBuilder& b, const std::vector<std::string>& before) {
  LegacyTemplate single;
  LegacyTokenIds ids{b.with_id("eos_token")};
  for (const std::string& token : before) {
    single.push_back({token});
    ids.emplace_back(token, b.id(token));
  }
  single.push_back({"$A"});
  LegacyTemplate pair = single;
  pair.push_back({"$B"});
  single.push_back({b.token("eos_token")});
  pair.push_back({b.token("eos_token")});
  b.document.post_processor = template_processing(single, pair, ids);
}

void build_marian(LegacyBuilder& b) {
  b.defaults({{"unk_token", "<unk>"}, {"eos_token", "</s>"}, {"pad_token", "<pad>"}});
  if (b.settings.flag("separate_vocabs", false))
    fail_dictionary(b, "the languages have a vocabulary each (\"separate_vocabs\"), which Calque does not read");
  use_dictionary(b, "source.spm");
  for (const LegacyVocabulary::Entry& entry : b.document.vocabulary.entries())
    if (entry.token.starts_with(">>") && entry.token.ends_with("<<"))
      b.document.add({.content = entry.token, .normalized = false});
  b.finish();
  set_prefix_template(b, {});
}

void build_m2m100(LegacyBuilder& b) {
  b.defaults(
      {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"sep_token", "</s>"}, {"pad_token", "<pad>"}, {"unk_token", "<unk>"}});
  use_dictionary(b, "sentencepiece.bpe.model");
  std::string_view languages =
      b.settings.text("language_codes").value_or("m2m100") == "wmt21" ? wmt21_languages : m2m100_languages;
  while (!languages.empty()) {  // their ids follow the dictionary's
    const size_t end = std::min(languages.find(' '), languages.size());
    b.document.add({.content = "__" + std::string(languages.substr(0, end)) + "__", .special = true});
    languages.remove_prefix(std::min(end + 1, languages.size()));
  }
  b.finish();
  const std::string language = "__" + b.settings.text("src_lang").value_or("en") + "__";
  if (!b.document.find(language))
    throw UserError(ErrorKind::bad_file, (b.settings.folder() / "tokenizer_config.json").string() +
                                             ": src_lang has no token " + excerpt(language) +
                                             "; expected a code such as \"en\"");
  set_prefix_template(b, {language});
}

void build_speech_to_text(LegacyBuilder& b) {
  b.defaults({{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"pad_token", "<pad>"}, {"unk_token", "<unk>"}});
  use_dictionary(b, "sentencepiece.bpe.model");
  std::vector<std::string> before;
  if (b.settings.text("lang_codes")) {
    for (const char* language : {"pt", "fr", "ru", "nl", "ro", "it", "es", "de"})
      b.document.add({.content = "<lang:" + std::string(language) + ">", .special = true});
    before.push_back("<lang:" + b.settings.text("tgt_lang").value_or("pt") + ">");
  }
  b.finish();
  set_prefix_template(b, before);
}

// fairseq's first four, the pieces, the languages, the mask.
void build_plbart(LegacyBuilder& b) {
  b.defaults({{"bos_token", "<s>"},
              {"eos_token", "</s>"},
              {"sep_token", "</s>"},
              {"cls_token", "<s>"},
              {"unk_token", "<unk>"},
              {"pad_token", "<pad>"},
              {"mask_token", "<mask>"}});
  b.match("mask_token", {.lstrip = true});
  const LegacyVocabulary own = scored_pieces(b, "sentencepiece.bpe.model");
  const bool base = b.settings.text("language_codes").value_or("base") == "base";
  for (const char* token : {"<s>", "<pad>", "</s>", "<unk>"}) b.document.vocabulary.push(token);
  b.use_pieces(3);
  std::vector<std::string> languages = {"java", "python", "en_XX"};
  if (!base) languages.insert(languages.end(), {"javascript", "php", "ruby", "go"});
  const auto code_of = [](const std::string& language) { return "__" + language + "__"; };
  for (const std::string& language : languages) b.document.vocabulary.push(code_of(language));
  if (base) b.document.vocabulary.push("<mask>");
  set_pieces(b, own, 3);
  for (const std::string& language : languages) b.document.add({.content = code_of(language), .special = true});
  b.document.decoder =
      decoder_sequence({replace_text("▁", " "), R"({"type": "Fuse"})", replace_expression(R"(\A\s+|\s+\z)", "")});
  b.cleans_up = true;
  b.finish();
  std::optional<std::string> source = b.settings.text("src_lang");
  if (!source && !base) source = "en_XX";
  std::vector<std::string> after = {b.token("eos_token")};
  if (source) {
    if (source->starts_with("__") && source->ends_with("__") && source->size() > 4)
      source = source->substr(2, source->size() - 4);
    if (std::find(languages.begin(), languages.end(), *source) == languages.end())
      throw UserError(ErrorKind::bad_file, (b.settings.folder() / "tokenizer_config.json").string() +
                                               ": src_lang has no token " + excerpt(code_of(*source)) +
                                               "; expected a language such as \"python\"");
    after.push_back(code_of(*source));
  }
  LegacyTemplate single{{"$A"}}, pair{{"$A"}, {"$B"}};
  LegacyTokenIds ids;
  for (const std::string& token : after) {
    single.push_back({token});
    pair.push_back({token});
    ids.emplace_back(token, b.id(token));
  }
  b.document.post_processor = template_processing(single, pair, ids);
}

constexpr LegacyClass classes_of_dictionaries[] = {
    {"MarianTokenizer", "marian", build_marian},
    {"M2M100Tokenizer", "m2m_100", build_m2m100},
    {"Speech2TextTokenizer", "speech_to_text", build_speech_to_text},
    {"PLBartTokenizer", "plbart", build_plbart},
};

}  // namespace

std::span<const LegacyClass> dictionary_classes() { return classes_of_dictionaries; }

}  // namespace calque
