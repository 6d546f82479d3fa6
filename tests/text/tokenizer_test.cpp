// Tokenizers against what the tokenizers library made of the same text (golden/tokenizers.jsonl, written by
// tools/golden/tokenizer_golden.py), and what a tokenizer.json may not be.
#include "calque/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "calque/base/error.h"
#include "support/error_support.h"
#include "support/paths.h"

namespace calque::tokenizer_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using Nlohmann = nlohmann::json;

const std::string tiny_folder = test::source_folder() + "/assets/tiny-lm";

const Tokenizer& tiny() {
  static const Tokenizer tokenizer = Tokenizer::from_file(tiny_folder);
  return tokenizer;
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<int64_t>& ids, bool skip) {
  StreamDecoder decoder(tokenizer, skip);
  std::string out;
  for (const int64_t id : ids) out += decoder.push(id);
  return out + decoder.finish();
}

using test::error_of;

// A byte-level tokenizer of three merges.
Nlohmann small() {
  Nlohmann vocab = Nlohmann::object();
  const auto add = [&](const std::string& token) { vocab.emplace(token, vocab.size()); };
  for (const char* c : {"a", "b", "c", "\u0120", "\u00C3", "\u00A9", "!"}) add(c);
  for (const char* t : {"ab", "abc", "\u0120a", "\u00C3\u00A9"}) add(t);
  return {
      {"version", "1.0"},
      {"added_tokens", Nlohmann::array()},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model",
       {{"type", "BPE"},
        {"vocab", vocab},
        {"merges", Nlohmann::parse(R"([["a", "b"], ["ab", "c"], ["\u0120", "a"], ["\u00C3", "\u00A9"]])")}}}};
}

Tokenizer from(const Nlohmann& json) { return Tokenizer::from_json(json.dump()); }
std::string refused(const Nlohmann& json) {
  return error_of([&] { from(json); });
}

TEST(Tokenizer, agrees_with_the_tokenizers_library) {
  std::ifstream golden(test::source_folder() + "/tests/text/golden/tokenizers.jsonl");
  int kinds = 0;
  for (std::string line; std::getline(golden, line); ++kinds) {
    const Nlohmann g = Nlohmann::parse(line);
    const std::string name = g["name"];
    const Tokenizer tokenizer = g["tokenizer"].is_null() ? Tokenizer::from_file(tiny_folder) : from(g["tokenizer"]);
    EXPECT_EQ(tokenizer.vocab_size(), g["vocab_size"].get<size_t>()) << name;
    for (const Nlohmann& expected : g["lines"]) {
      const std::string text = expected["text"];
      const Encoding e = tokenizer.encode(text, {.offsets = OffsetUnit::characters});
      const auto ids = expected["ids"].get<std::vector<int64_t>>();
      EXPECT_EQ(e.ids, ids) << name << ": " << text;
      std::vector<size_t> offsets;
      for (const auto& [begin, end] : e.offsets) offsets.insert(offsets.end(), {begin, end});
      EXPECT_EQ(offsets, expected["offsets"].get<std::vector<size_t>>()) << name << ": " << text;
      EXPECT_EQ(tokenizer.encode_ids(text), ids) << name << ": " << text;
      EXPECT_EQ(tokenizer.decode(ids, false), expected["decoded"].get<std::string>()) << name << ": " << text;
      EXPECT_EQ(tokenizer.decode(ids), expected["skipped"].get<std::string>()) << name << ": " << text;
      EXPECT_EQ(streamed(tokenizer, ids, false), expected["decoded"].get<std::string>()) << name << ": " << text;
      EXPECT_EQ(streamed(tokenizer, ids, true), expected["skipped"].get<std::string>()) << name << ": " << text;
    }
  }
  EXPECT_GE(kinds, 24);
}

TEST(Tokenizer, reproduces_the_reference_of_the_embedded_model) {
  std::ifstream file(tiny_folder + "/reference.json");
  for (const Nlohmann& entry : Nlohmann::parse(file)) {
    EXPECT_EQ(tiny().encode_ids(entry["prompt"].get<std::string>()), entry["prompt_ids"].get<std::vector<int64_t>>());
    EXPECT_EQ(tiny().decode(entry["greedy_ids"].get<std::vector<int64_t>>()), entry["greedy_text"].get<std::string>());
  }
}

TEST(Tokenizer, knows_its_tokens) {
  EXPECT_EQ(tiny().vocab_size(), 4096u);
  EXPECT_EQ(tiny().token_to_id("<|endoftext|>"), 0);
  EXPECT_EQ(tiny().id_to_token(0), "<|endoftext|>");
  EXPECT_EQ(tiny().token_to_id("no such token"), std::nullopt);
  EXPECT_EQ(tiny().id_to_token(4096), std::nullopt);
  EXPECT_EQ(tiny().id_to_token(-1), std::nullopt);
  EXPECT_TRUE(tiny().is_special(0));
  EXPECT_FALSE(tiny().is_special(1));
  EXPECT_EQ(tiny().special_token("eos"), "<|endoftext|>");
  EXPECT_EQ(tiny().special_token_id("bos"), 0);
  EXPECT_EQ(tiny().special_token("pad"), std::nullopt);
  EXPECT_EQ(tiny().model_max_length(), 512);
}

TEST(Tokenizer, offsets_name_whole_characters_of_the_text_given) {
  Nlohmann json = small();
  json["model"]["merges"].erase(3);
  const Tokenizer tokenizer = from(json);
  const std::string text = "ab\u00E9 a";  // a character of two bytes, each a token
  EXPECT_THAT(tokenizer.encode(text).tokens, ElementsAre("ab", "\u00C3", "\u00A9", "\u0120a"));
  EXPECT_THAT(tokenizer.encode(text).offsets, ElementsAre(Pair(0, 2), Pair(2, 4), Pair(2, 4), Pair(4, 6)));
  EXPECT_THAT(tokenizer.encode(text, {.offsets = OffsetUnit::characters}).offsets,
              ElementsAre(Pair(0, 2), Pair(2, 3), Pair(2, 3), Pair(3, 5)));
}

TEST(Tokenizer, takes_wrong_utf8_as_python_replaces_it) {
  const std::string replacement = "\uFFFD";
  EXPECT_EQ(tiny().encode_ids("a\xFFz"), tiny().encode_ids("a" + replacement + "z"));
  EXPECT_EQ(tiny().encode_ids("\xE2\x82z"), tiny().encode_ids(replacement + "z"));  // cut off: one
  EXPECT_EQ(tiny().encode_ids("\xED\xA0\x80"),
            tiny().encode_ids(replacement + replacement + replacement));                   // a surrogate: three
  EXPECT_EQ(tiny().encode_ids("\xC0\xAF"), tiny().encode_ids(replacement + replacement));  // overlong
  const Encoding e = tiny().encode("a\xFF");
  EXPECT_THAT(e.offsets.front(), Pair(0, 1));
  EXPECT_THAT(e.offsets.back(), Pair(1, 2)) << "bytes of the text given, not of the repaired one";
}

TEST(Tokenizer, streams_whole_characters_only) {
  const std::string text = "na\u00EFve \U0001F600\U0001F468\u200D\U0001F469 end";
  StreamDecoder decoder(tiny());
  std::string out;
  for (const int64_t id : tiny().encode_ids(text)) {
    const std::string part = decoder.push(id);
    EXPECT_EQ(part.find("\uFFFD"), std::string::npos);
    out += part;
  }
  EXPECT_EQ(decoder.finish(), "");
  EXPECT_EQ(out, text);
  // A character that never comes to its end.
  const std::vector<int64_t> cut = tiny().encode_ids("\U0001F600");
  ASSERT_GT(cut.size(), 1u);
  EXPECT_EQ(decoder.push(cut[0]), "");
  EXPECT_EQ(decoder.finish(), "\uFFFD");
}

TEST(Tokenizer, long_words_are_not_quadratic) {
  const std::string word(1 << 20, 'a');
  EXPECT_EQ(tiny().decode(tiny().encode_ids(word)), word);
  const std::string spaces(1 << 20, ' ');
  EXPECT_EQ(tiny().decode(tiny().encode_ids(spaces)), spaces);
}

TEST(Tokenizer, threads_share_one) {
  const std::vector<int64_t> expected = tiny().encode_ids("It was the best of times, it was the worst of times.");
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        if (tiny().encode_ids("It was the best of times, it was the worst of times.") != expected) ++wrong;
        tiny().encode_ids("word" + std::to_string(t * 1000 + i));
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Tokenizer, batches_are_its_lines) {
  const std::vector<std::string> texts{"one", "", "two words"};
  const auto batch = tiny().encode_batch(texts);
  ASSERT_EQ(batch.size(), 3u);
  EXPECT_EQ(batch[1].size(), 0u);
  EXPECT_EQ(batch[2].ids, tiny().encode("two words").ids);
}

TEST(Tokenizer, pairs_get_the_types_of_the_template) {
  Nlohmann json = small();
  json["post_processor"] = Nlohmann::parse(R"({"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "!", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "!", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"!": {"id": "!", "ids": [6], "tokens": ["!"]}}})");
  const Tokenizer tokenizer = from(json);
  const Encoding e = tokenizer.encode_pair("abc", "c");
  EXPECT_THAT(e.ids, ElementsAre(8, 6, 2));
  EXPECT_THAT(e.type_ids, ElementsAre(0, 0, 1));
  EXPECT_THAT(e.special_tokens_mask, ElementsAre(0, 1, 0));
  EXPECT_THAT(e.offsets, ElementsAre(Pair(0, 3), Pair(0, 0), Pair(0, 1)));
  EXPECT_THAT(tokenizer.encode("c").ids, ElementsAre(6, 2));
  EXPECT_THAT(tokenizer.encode("c", {.add_special_tokens = false}).ids, ElementsAre(2));
}

// Words of one text are merged by themselves, but not where a merge reaches over the beginning of a word.
TEST(Tokenizer, merges_reach_over_words_where_a_file_says_so) {
  Nlohmann json = small();
  json["pre_tokenizer"] = nullptr;
  json["model"]["vocab"] = {{"a", 0}, {"b", 1}, {"▁", 2}, {"▁a", 3}, {"▁▁", 4}, {"b▁", 5}, {"b▁a", 6}};
  json["model"]["merges"] = Nlohmann::parse(R"([["▁", "a"], ["▁", "▁"]])");
  EXPECT_THAT(from(json).encode_ids("ab▁a▁▁▁ab▁a"), ElementsAre(0, 1, 3, 4, 3, 1, 3));
  json["model"]["merges"] = Nlohmann::parse(R"([["b", "▁"], ["b▁", "a"], ["▁", "a"]])");
  EXPECT_THAT(from(json).encode_ids("ab▁a▁ab▁a"), ElementsAre(0, 6, 3, 6));
}

TEST(Tokenizer, says_what_it_does_not_support) {
  Nlohmann json = small();
  json["model"] = {{"type", "Nobody"}, {"vocab", Nlohmann::array()}};
  EXPECT_THAT(refused(json), AllOf(HasSubstr("tokenizer.json"), HasSubstr("the model \"Nobody\" is not supported")));
  json = small();
  json["model"]["dropout"] = 0.1;
  EXPECT_THAT(refused(json), HasSubstr("dropout"));
  json = small();
  json["normalizer"] = {{"type", "Nobody"}};
  EXPECT_THAT(refused(json), HasSubstr("the normalizer \"Nobody\""));
  json = small();
  json["pre_tokenizer"] = {{"type", "Nobody"}};
  EXPECT_THAT(refused(json), HasSubstr("the pre-tokenizer \"Nobody\""));
  json = small();
  json["post_processor"] = {{"type", "Nobody"}};
  EXPECT_THAT(refused(json), HasSubstr("the post-processor \"Nobody\""));
  json = small();
  json["decoder"] = {{"type", "Nobody"}};
  EXPECT_THAT(refused(json), HasSubstr("the decoder \"Nobody\""));
  json = small();
  json["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "(?~a)"}}}, {"behavior", "Isolated"}};
  EXPECT_THAT(refused(json), AllOf(HasSubstr("(?~a)"), HasSubstr("an absent group")));
}

TEST(Tokenizer, refuses_wrong_files) {
  EXPECT_THAT(error_of([] { Tokenizer::from_json("{"); }), HasSubstr("tokenizer.json"));
  EXPECT_THAT(error_of([] { Tokenizer::from_json("[]"); }), HasSubstr("tokenizer.json"));
  EXPECT_THAT(error_of([] { Tokenizer::from_json("{}"); }), HasSubstr("model"));
  EXPECT_THAT(error_of([] { Tokenizer::from_json("\xFF"); }), HasSubstr("not UTF-8"));
  EXPECT_THAT(error_of([] { Tokenizer::from_json(std::string(100000, '[')); }), HasSubstr("tokenizer.json"));
  EXPECT_THAT(error_of([] { Tokenizer::from_file("/nowhere/tokenizer.json"); }), HasSubstr("/nowhere/tokenizer.json"));
  EXPECT_THAT(error_of([] { Tokenizer::from_file(test::source_folder() + "/assets"); }),
              HasSubstr("no tokenizer.json in this folder"));
  Nlohmann json = small();
  json["model"]["vocab"]["a"] = "zero";
  EXPECT_THAT(refused(json), HasSubstr("integer"));
  json = small();
  json["model"]["vocab"]["a"] = -1;
  EXPECT_THAT(refused(json), AllOf(HasSubstr("the id of token \"a\" is -1"), HasSubstr("expected 0 to")));
  json = small();
  json["model"]["vocab"]["a"] = int64_t{4000000000};
  EXPECT_THAT(refused(json), HasSubstr("4000000000"));
  json = small();
  json["model"]["merges"].push_back(Nlohmann::array({"a", "nothing"}));
  EXPECT_THAT(refused(json), HasSubstr("merge 4 (\"a\" \"nothing\"): the token \"nothing\" is not in the vocabulary"));
  json = small();
  json["model"]["merges"].push_back(Nlohmann::array({"a", "b", "c"}));
  EXPECT_THAT(refused(json), HasSubstr("a merge is two tokens, found 3"));
  json = small();
  json["model"]["merges"].push_back("ab");
  EXPECT_THAT(refused(json), HasSubstr("a merge is two tokens with a space between them"));
}

TEST(Tokenizer, reads_merges_as_lines) {
  Nlohmann json = small();
  json["model"]["merges"] = {"#version: 0.2", "a b", "ab c"};
  EXPECT_THAT(from(json).encode_ids("abcab"), ElementsAre(8, 7));
}

TEST(Tokenizer, added_tokens_take_in_their_white_space) {
  Nlohmann json = small();
  json["added_tokens"] = Nlohmann::parse(R"([
    {"id": 11, "content": "<m>", "lstrip": true, "rstrip": true, "single_word": false, "normalized": false, "special": true},
    {"id": 12, "content": "b!", "single_word": true, "lstrip": false, "rstrip": false, "normalized": false, "special": false}])");
  const Tokenizer tokenizer = from(json);
  const Encoding e = tokenizer.encode("a  <m> c");
  EXPECT_THAT(e.ids, ElementsAre(0, 11, 2));
  EXPECT_THAT(e.offsets, ElementsAre(Pair(0, 1), Pair(1, 7), Pair(7, 8)));
  EXPECT_EQ(e.tokens[1], "  <m> ");
  EXPECT_THAT(tokenizer.encode_ids("b! ab!"), ElementsAre(12, 3, 7, 6)) << "not within a word";
  EXPECT_EQ(tokenizer.decode(e.ids), "ac");
  EXPECT_EQ(tokenizer.decode(e.ids, false), "a<m>c");
  EXPECT_EQ(tokenizer.vocab_size(), 13u);
}

}  // namespace
}  // namespace calque::tokenizer_test
