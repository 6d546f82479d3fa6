// Classes of Python alone whose vocabulary has words, or parts of them with "@@" behind; and the characters of a CTC head.
#include <algorithm>
#include <span>
#include <vector>

#include "calque/base/error.h"
#include "calque/file/json.h"
#include "text/legacy/classes.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace calque {
namespace {

// A vocabulary of words and parts of words. Of each line of merges.txt the first two words are a merge, whatever follows; `header`: the first
// line is none.
std::string subword_model(LegacyBuilder& b, bool header) {
  b.document.vocabulary = read_vocab_json(b.file("vocab.json"));
  JsonWriter json;
  json.begin_object();
  json.member("type", "SubwordBPE");
  json.member("unk_token", b.token("unk_token"));
  json.key("vocab");
  write_vocabulary(json, b.document.vocabulary);
  json.key("merges");
  const std::filesystem::path path = b.settings.folder() / "merges.txt";
  if (!std::filesystem::exists(path)) {
    json.null();
  } else {
    json.begin_array();
    for_lines(read_utf8_file(path), [&](std::string_view line, size_t number) {
      if (header && number == 1) return;
      const size_t space = line.find(' ');
      const std::string_view rest = space == std::string_view::npos ? "" : line.substr(space + 1);
      if (space == 0 || rest.empty()) return;
      json.begin_array();
      json.value(line.substr(0, space));
      json.value(rest.substr(0, rest.find(' ')));
      json.end_array();
    });
    json.end_array();
  }
  json.end_object();
  return json.take();
}

// Tokens with spaces between them, but none behind "@@".
std::string subword_decoder() {
  return decoder_sequence(
      {R"({"type": "WordPiece", "prefix": " ", "cleanup": false})", R"({"type": "Fuse"})", replace_text("@@ ", "")});
}

std::string ranges_of(std::span<const CharRange> ranges, std::string_view but) {
  std::string out;
  for (const CharRange& range : ranges) {
    if (range.first < 0x80 && but.find(static_cast<char>(range.first)) != std::string_view::npos) continue;
    append_utf8(out, range.first);
    out += '-';
    append_utf8(out, range.last);
  }
  return out;
}

// Lower case as Python's lower() makes it of words that `between` are cut at: a sigma at the end of a word is written otherwise.
std::vector<std::string> python_lower(std::string_view between = {}) {
  const std::string cased = R"([\p{Lu}\p{Ll}\p{Lt})" + ranges_of(cased_symbols, {}) + "]";
  const std::string ignored = R"([\p{Mn}\p{Me}\p{Cf}\p{Lm}\p{Sk})" + ranges_of(case_ignorable_signs, between) + "]*";
  return {replace_expression(cased + ignored + "\\K\u03A3(?!" + ignored + cased + ")", "\u03C2"),
          R"({"type": "Lowercase"})"};
}

void build_blenderbot_small(LegacyBuilder& b) {
  b.defaults({{"bos_token", "__start__"}, {"eos_token", "__end__"}, {"unk_token", "__unk__"}, {"pad_token", "__null__"}});
  b.document.model = subword_model(b, true);
  std::vector<std::string> normalizers = python_lower(".'");
  normalizers.insert(normalizers.begin(), replace_expression(R"((?<=[^\s'])\n)", " __newln__ "));
  b.document.normalizer = normalizer_sequence(normalizers);
  b.document.pre_tokenizer = split_expression(R"('|[.,!?()]?[^\s.,!?()']+|[.,!?()])", "Removed", true);
  b.document.decoder = subword_decoder();
  b.finish();
}

void build_speech_to_text_2(LegacyBuilder& b) {
  b.defaults({{"bos_token", "<s>"}, {"pad_token", "<pad>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}});
  b.document.model = subword_model(b, false);
  if (b.settings.flag("do_lower_case", false)) b.document.normalizer = normalizer_sequence(python_lower());
  b.document.pre_tokenizer = split_expression(R"([\s\x1c-\x1f]+)", "Removed", false);
  b.document.decoder = subword_decoder();
  b.finish();
}

// Characters, and what stands between words in the place of spaces.
void build_wav2vec2_ctc(LegacyBuilder& b) {
  b.defaults({{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}});
  const std::string delimiter = b.settings.text("word_delimiter_token").value_or("|");
  b.document.vocabulary = read_vocab_json(b.file("vocab.json"), b.settings.text("target_lang").value_or(""));
  JsonWriter json;
  json.begin_object();
  json.member("type", "WordLevel");
  json.member("unk_token", b.token("unk_token"));
  json.key("vocab");
  write_vocabulary(json, b.document.vocabulary);
  json.end_object();
  b.document.model = json.take();
  std::vector<std::string> normalizers;
  if (b.settings.flag("do_lower_case", false)) normalizers.emplace_back(R"({"type": "Uppercase"})");
  normalizers.push_back(replace_text(" ", delimiter));
  b.document.normalizer = normalizer_sequence(normalizers);
  b.document.pre_tokenizer = split_expression(R"([\s\S])", "Isolated", false);
  std::vector<std::string> decoders = {R"({"type": "CTC", "pad_token": )" + json_quoted(b.token("pad_token")) +
                                       R"(, "word_delimiter_token": )" + json_quoted(delimiter) + R"(, "cleanup": true})"};
  if (b.settings.flag("do_lower_case", false)) decoders.emplace_back(R"({"type": "Lowercase"})");
  b.document.decoder = decoder_sequence(decoders);
  b.finish();
  for (const LegacyVocabulary::Entry& entry : b.document.vocabulary.entries())
    if (count_utf8(entry.token) > 1 && !b.document.has_added(entry.token))
      b.document.add({.content = entry.token, .lstrip = true, .rstrip = true, .normalized = false});
}

constexpr LegacyClass classes_of_subwords[] = {
    {"BlenderbotSmallTokenizer", "blenderbot-small", build_blenderbot_small},
    {"Speech2Text2Tokenizer", "speech_to_text_2", build_speech_to_text_2},
    {"Wav2Vec2CTCTokenizer", "wav2vec2 hubert data2vec-audio unispeech unispeech-sat wav2vec2-bert wav2vec2-conformer",
     build_wav2vec2_ctc},
};

}  // namespace

std::span<const LegacyClass> subword_classes() { return classes_of_subwords; }

}  // namespace calque
