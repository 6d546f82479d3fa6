// Model folders without a tokenizer.json: the document that is made of their files is the one that transformers' class writes
// (golden/legacy.jsonl, by tools/golden/legacy_tokenizers.py); and what vocabulary files may not be.
#include "text/legacy/legacy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "calque/text/tokenizer.h"
#include "support/error_support.h"
#include "support/folder_support.h"
#include "support/paths.h"
#include "text/base64.h"
#include "text/legacy/sentencepiece.h"
#include "text/legacy/vocabulary.h"

namespace calque::legacy_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using Nlohmann = nlohmann::json;

std::string from_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(digits.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xFF);
  }
  return out;
}

// ---- the wire format, by hand ---------------------------------------------------------------------------------------

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string number_field(uint64_t field, uint64_t value) { return varint(field << 3) + varint(value); }
std::string bytes_field(uint64_t field, const std::string& bytes) {
  return varint(field << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string float_field(uint64_t field, float value) {
  std::string out = varint(field << 3 | 5);
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int i = 0; i < 4; ++i) out += static_cast<char>(bits >> (8 * i) & 0xFF);
  return out;
}
std::string piece(const std::string& text, float score = 0, uint64_t kind = 1) {
  return bytes_field(1, bytes_field(1, text) + float_field(2, score) + number_field(3, kind));
}

SentencePieceModel read(const std::string& bytes) { return read_sentencepiece(std::as_bytes(std::span(bytes)), "m.model"); }
std::string error_of_model(const std::string& bytes) {
  return test::error_of([&] { read(bytes); }, ErrorKind::bad_file);
}

TEST(Legacy, the_document_of_a_folder_is_the_one_that_transformers_writes) {
  std::ifstream in(test::source_folder() + "/tests/text/golden/legacy.jsonl");
  int count = 0;
  for (std::string line; std::getline(in, line); ++count) {
    const Nlohmann g = Nlohmann::parse(line);
    SCOPED_TRACE(g["name"].get<std::string>());
    const test::TemporaryFolder folder;
    for (const auto& [name, content] : g["files"].items())
      test::write_file(folder.path() / name,
                       content.is_string() ? content.get<std::string>() : from_base64(content["base64"]));
    EXPECT_EQ(Nlohmann::parse(read_legacy_tokenizer(folder.path()).json), g["document"]);
  }
  EXPECT_GE(count, 14);
}

// Classes that exist in Python alone have no document, but ids and texts.
TEST(Legacy, a_class_of_python_alone_gives_the_ids_of_transformers) {
  int count = 0;
  for (const char* file : {"legacy_ids.jsonl", "legacy_ids_4_40.jsonl"}) {
    std::ifstream in(test::source_folder() + "/tests/text/golden/" + file);
    for (std::string line; std::getline(in, line); ++count) {
      const Nlohmann g = Nlohmann::parse(line);
      SCOPED_TRACE(g["name"].get<std::string>());
      const test::TemporaryFolder folder;
      for (const auto& [name, content] : g["files"].items())
        test::write_file(folder.path() / name,
                         content.is_string() ? content.get<std::string>() : from_base64(content["base64"]));
      const Tokenizer tokenizer = Tokenizer::from_file(folder.path());
      for (const Nlohmann& row : g["texts"]) {
        const auto ids = row["ids"].get<std::vector<int64_t>>();
        EXPECT_EQ(tokenizer.encode_ids(row["text"].get<std::string>()), ids) << row["text"];
        EXPECT_EQ(tokenizer.decode_clean(ids), row["decoded"].get<std::string>());
      }
    }
  }
  EXPECT_EQ(count, 4);
}

// multilingual.tiktoken of openai-whisper ends so.
TEST(Legacy, a_token_of_tiktokens_may_have_no_bytes) {
  const test::TemporaryFolder folder;
  test::write_file(folder.path() / "tokenizer.model", "YQ== 0\nYg== 1\n= 2\n");
  const Tokenizer tokenizer = Tokenizer::from_file(folder.path());
  EXPECT_EQ(tokenizer.encode_ids("ab"), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(tokenizer.decode(std::vector<int64_t>{0, 2, 1}), "ab");
}

TEST(Legacy, a_wrong_line_of_tiktokens_is_named_by_its_number) {
  const test::TemporaryFolder folder;
  test::write_file(folder.path() / "tokenizer.model", "YQ== 0\nYg==  1\n");
  EXPECT_THAT(test::error_of([&] { Tokenizer::from_file(folder.path()); }, ErrorKind::bad_file),
              AllOf(HasSubstr("tokenizer.model"), HasSubstr("line 2"), HasSubstr("base 64")));
}

TEST(Legacy, tokens_far_behind_the_vocabulary_of_tiktoken_are_refused) {
  const test::TemporaryFolder folder;
  test::write_file(folder.path() / "tokenizer.model", "YQ== 0\n");
  test::write_file(folder.path() / "tokenizer_config.json",
                   R"({"added_tokens_decoder": {"900000000": {"content": "<x>", "special": true}}})");
  EXPECT_THAT(test::error_of([&] { Tokenizer::from_file(folder.path()); }, ErrorKind::bad_file), HasSubstr("900000000"));
}

TEST(Legacy, a_vocabulary_of_words_without_merges_decodes_and_does_not_encode) {
  const test::TemporaryFolder folder;
  test::write_file(folder.path() / "tokenizer_config.json", R"({"tokenizer_class": "Speech2Text2Tokenizer"})");
  test::write_file(folder.path() / "vocab.json",
                   R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "c@@": 4, "at": 5, "a": 6})");
  const Tokenizer tokenizer = Tokenizer::from_file(folder.path());
  EXPECT_EQ(tokenizer.decode(std::vector<int64_t>{4, 5, 6}), "cat a");
  EXPECT_THAT(test::error_of([&] { tokenizer.encode_ids("cat"); }, ErrorKind::bad_file), HasSubstr("merges.txt"));
}

TEST(Legacy, a_folder_of_a_vocabulary_and_merges_opens_as_a_tokenizer) {
  const test::TemporaryFolder folder;
  test::write_file(folder.path() / "vocab.json", R"({"<|endoftext|>": 0, "a": 1, "b": 2, "ab": 3, "Ġ": 4, "Ġab": 5})");
  test::write_file(folder.path() / "merges.txt", "#version: 0.2\na b\nĠ ab\n");
  const Tokenizer tokenizer = Tokenizer::from_file(folder.path());
  EXPECT_THAT(tokenizer.encode_ids("ab ab<|endoftext|>"), ElementsAre(3, 5, 0));
  EXPECT_EQ(tokenizer.special_token("eos"), "<|endoftext|>");
  EXPECT_EQ(tokenizer.decode(std::vector<int64_t>{3, 5}), "ab ab");
}

// source.spm and vocab.json of a model for translation; the last tokens are the other language's and a language code.
void write_marian(const test::TemporaryFolder& folder, const std::string& vocabulary) {
  test::write_file(folder / "source.spm", piece("<unk>", 0, 2) + piece("▁a", -1) + piece("b", -2.5f) + piece("ab", -7));
  test::write_file(folder / "vocab.json", vocabulary);
  test::write_file(folder / "config.json", R"({"model_type": "marian"})");
}

TEST(Legacy, a_dictionary_gives_the_ids_of_pieces) {
  const test::TemporaryFolder folder;
  write_marian(folder, R"({"</s>": 0, "<unk>": 1, "b": 2, "▁a": 3, "ß": 4, ">>fra<<": 5, "<pad>": 6})");
  const LegacyTokenizer made = read_legacy_tokenizer(folder.path());
  EXPECT_EQ(made.class_name, "MarianTokenizer");
  const Nlohmann json = Nlohmann::parse(made.json);
  EXPECT_EQ(json["model"]["unk_id"], 1);
  EXPECT_EQ(json["model"]["vocab"][4][0], "ß");
  EXPECT_EQ(json["model"]["pieces"], Nlohmann::parse(R"([["▁a", -1.0], ["b", -2.5], ["ab", -7.0]])"));
  const Tokenizer tokenizer = Tokenizer::from_file(folder.path());
  EXPECT_THAT(tokenizer.encode_ids(" a  bß "), ElementsAre(3, 1, 2, 4, 0))
      << "white space is one space; of the other language";
  EXPECT_THAT(tokenizer.encode_ids("aab"), ElementsAre(3, 1, 0)) << "the piece ab has no id";
  EXPECT_THAT(tokenizer.encode_ids("aßß"), ElementsAre(3, 1, 0)) << "an unknown stretch is looked up as a whole";
  EXPECT_EQ(json["post_processor"]["single"].size(), 2u);
  EXPECT_EQ(json["post_processor"]["special_tokens"]["</s>"]["ids"][0], 0);
  std::vector<std::string> added;
  for (const Nlohmann& token : json["added_tokens"]) added.push_back(token["content"]);
  EXPECT_THAT(added, ElementsAre("</s>", "<unk>", ">>fra<<", "<pad>"));
}

TEST(Legacy, a_dictionary_with_a_gap_is_refused) {
  const test::TemporaryFolder folder;
  for (const char* vocabulary :
       {R"({"</s>": 0, "<unk>": 2})", R"({"</s>": 0, "<unk>": 0})", R"({"</s>": 0, "b": 1})", "{}"}) {
    write_marian(folder, vocabulary);
    EXPECT_THAT(test::error_of([&] { read_legacy_tokenizer(folder.path()); }, ErrorKind::bad_file), HasSubstr("vocab.json"));
  }
}

TEST(Legacy, merges_of_a_vocabulary_are_its_splits_by_id_and_length) {
  LegacyVocabulary vocabulary;
  for (const char* token : {"a", "b", "ab", "é", "aé", "abab", "aba"}) vocabulary.push(token);
  EXPECT_THAT(generate_merges(vocabulary, {}, "m"),
              ElementsAre(Pair("a", "b"), Pair("a", "é"), Pair("ab", "ab"), Pair("aba", "b"), Pair("ab", "a")));
  EXPECT_THAT(generate_merges(vocabulary, {"ab"}, "m"), ElementsAre(Pair("a", "é"), Pair("aba", "b")));
}

TEST(Legacy, merges_of_pieces_that_are_too_long_are_refused_at_once) {
  LegacyVocabulary vocabulary;
  vocabulary.push(std::string(1 << 20, 'a'));
  EXPECT_THAT(test::error_of([&] { generate_merges(vocabulary, {}, "m.model"); }, ErrorKind::bad_file),
              AllOf(HasSubstr("m.model"), HasSubstr("too long")));
}

TEST(Legacy, base64_is_padded) {
  EXPECT_EQ(encode_base64(""), "");
  EXPECT_EQ(encode_base64("\xff"), "/w==");
  EXPECT_EQ(encode_base64("ab"), "YWI=");
  EXPECT_EQ(encode_base64("abc"), "YWJj");
}

TEST(Legacy, a_class_that_exists_in_python_alone_is_named) {
  const test::TemporaryFolder folder;
  test::write_file(folder.path() / "tokenizer_config.json", R"({"tokenizer_class": "BertJapaneseTokenizer"})");
  test::write_file(folder.path() / "vocab.txt", "a\n");
  EXPECT_THAT(test::error_of([&] { Tokenizer::from_file(folder.path()); }, ErrorKind::bad_file),
              AllOf(HasSubstr("no tokenizer.json"), HasSubstr("BertJapaneseTokenizer"), HasSubstr("save_pretrained")));
}

TEST(Legacy, a_model_whose_class_nobody_says_is_asked_for) {
  const test::TemporaryFolder folder;
  test::write_file(folder.path() / "spiece.model", "x");
  EXPECT_THAT(test::error_of([&] { Tokenizer::from_file(folder.path()); }, ErrorKind::bad_file),
              AllOf(HasSubstr("spiece.model"), HasSubstr("tokenizer_class")));
}

TEST(Legacy, a_missing_file_of_the_class_is_named) {
  const test::TemporaryFolder folder;
  test::write_file(folder.path() / "tokenizer_config.json", R"({"tokenizer_class": "RobertaTokenizer"})");
  test::write_file(folder.path() / "vocab.json", "{}");
  EXPECT_THAT(test::error_of([&] { Tokenizer::from_file(folder.path()); }, ErrorKind::bad_file),
              AllOf(HasSubstr("RobertaTokenizer"), HasSubstr("merges.txt")));
}

TEST(Legacy, a_wrong_line_of_merges_is_named_by_its_number) {
  const test::TemporaryFolder folder;
  test::write_file(folder.path() / "merges.txt", "#version: 0.2\na b\na b c\n");
  EXPECT_THAT(test::error_of([&] { read_merges_txt(folder.path() / "merges.txt"); }, ErrorKind::bad_file),
              AllOf(HasSubstr("line 3"), HasSubstr("a b c")));
}

TEST(Legacy, a_wrong_id_of_a_vocabulary_is_named) {
  const test::TemporaryFolder folder;
  for (const char* id : {"-1", "4294967296", "\"0\"", "1.5"}) {
    test::write_file(folder.path() / "vocab.json", R"({"a": )" + std::string(id) + "}");
    EXPECT_THAT(test::error_of([&] { read_vocab_json(folder.path() / "vocab.json"); }, ErrorKind::bad_file),
                HasSubstr("vocab.json"));
  }
}

TEST(Legacy, an_lfs_pointer_is_called_so) {
  const test::TemporaryFolder folder;
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
  test::write_file(folder.path() / "vocab.txt", pointer);
  EXPECT_THAT(test::error_of([&] { read_vocab_txt(folder.path() / "vocab.txt"); }), HasSubstr("git lfs pull"));
  EXPECT_THAT(error_of_model(pointer), HasSubstr("git lfs pull"));
}

// ---- SentencePiece models ---------------------------------------------------------------------------------------------

TEST(SentencePieceModels, fields_are_read_in_any_order_and_unknown_ones_are_skipped) {
  const std::string bytes =
      bytes_field(2, number_field(3, 2) + number_field(35, 1) + number_field(43, ~uint64_t{0}) + bytes_field(45, "<u>")) +
      bytes_field(99, "whatever") + bytes_field(3, bytes_field(2, std::string("\0map", 4))) + piece("<u>", 0, 2) +
      float_field(98, 1) + piece("a", -1.5f) + bytes_field(1, bytes_field(1, "b"));
  const SentencePieceModel model = read(bytes);
  EXPECT_EQ(model.type, SentencePieceModel::Type::bpe);
  EXPECT_TRUE(model.byte_fallback);
  EXPECT_EQ(model.pad_id, -1);
  EXPECT_EQ(model.unk_piece, "<u>");
  EXPECT_EQ(model.bos_piece, "<s>");
  EXPECT_EQ(model.precompiled_charsmap, std::string_view("\0map", 4));
  ASSERT_EQ(model.pieces.size(), 3u);
  EXPECT_EQ(model.pieces[0].kind, SentencePiece::Kind::unknown);
  EXPECT_EQ(model.pieces[1].score, -1.5f);
  EXPECT_EQ(model.pieces[2].text, "b");
  EXPECT_EQ(model.pieces[2].kind, SentencePiece::Kind::normal);
}

TEST(SentencePieceModels, every_cut_is_one_error_or_a_smaller_model) {
  const std::string bytes = piece("<unk>", 0, 2) + piece("ab", -1) + bytes_field(2, number_field(40, 0));
  const std::vector<size_t> whole{piece("<unk>", 0, 2).size(), (piece("<unk>", 0, 2) + piece("ab", -1)).size(),
                                  bytes.size()};
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const std::string error = error_of_model(bytes.substr(0, size));
    if (std::find(whole.begin(), whole.end(), size) != whole.end())
      EXPECT_EQ(error, "") << size;
    else
      EXPECT_THAT(error, HasSubstr("m.model: not a readable SentencePiece model")) << size;
  }
}

TEST(SentencePieceModels, wrong_pieces_are_errors) {
  EXPECT_THAT(error_of_model(piece("")), HasSubstr("a piece is empty"));
  EXPECT_THAT(error_of_model(piece("a") + piece("b") + piece("a")), HasSubstr("\"a\" stands there twice"));
  EXPECT_THAT(error_of_model(piece("\xff")), HasSubstr("not UTF-8"));
  for (const float score : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    EXPECT_THAT(error_of_model(piece("a", score)), HasSubstr("not a finite number"));
  EXPECT_THAT(error_of_model(bytes_field(2, "")), HasSubstr("there are no pieces"));
}

TEST(SentencePieceModels, a_million_empty_pieces_are_one_error) {
  std::string bytes;
  for (int i = 0; i < 1'000'000; ++i) bytes += std::string("\x0a\x00", 2);
  EXPECT_THAT(error_of_model(bytes), HasSubstr("a piece is empty"));
}

TEST(SentencePieceModels, lengths_beyond_the_file_are_errors) {
  EXPECT_THAT(error_of_model(varint(1 << 3 | 2) + varint(~uint64_t{0}) + "a"),
              HasSubstr("18446744073709551615 bytes, and 1 are left"));
  EXPECT_THAT(error_of_model(std::string(11, '\xff')), HasSubstr("more than 64 bits"));
  EXPECT_THAT(error_of_model(varint(1 << 3 | 3)), HasSubstr("wire type 3"));
  EXPECT_THAT(error_of_model(varint(2)), HasSubstr("numbered 0"));
}

}  // namespace
}  // namespace calque::legacy_test
