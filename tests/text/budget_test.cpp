// What a tokenizer.json may cost: files that are made to hang the program or to fill its memory get one error that names the
// file, the part and what ran out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "calque/base/error.h"
#include "calque/text/tokenizer.h"
#include "support/error_support.h"
#include "support/folder_support.h"

namespace calque::budget_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using Nlohmann = nlohmann::json;

// Letters, of which only "a" and "b" are known.
Nlohmann letters() {
  return Nlohmann::parse(
      R"({"added_tokens": [], "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
    "model": {"type": "BPE", "unk_token": "?", "vocab": {"a": 0, "b": 1, "?": 2, "ab": 3}, "merges": [["a", "b"]]}})");
}
Nlohmann with(const char* part, const Nlohmann& value) {
  Nlohmann json = letters();
  json[part] = value;
  return json;
}
Nlohmann replace(const std::string& pattern, const std::string& content, const char* kind = "String") {
  return {{"type", "Replace"}, {"pattern", {{kind, pattern}}}, {"content", content}};
}
Nlohmann split(const std::string& expression, const char* behavior = "Isolated") {
  return {{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", behavior}, {"invert", false}};
}
Nlohmann sequence(const char* key, size_t times, const Nlohmann& part) {
  return {{"type", "Sequence"}, {key, Nlohmann(std::vector<Nlohmann>(times, part))}};
}

Tokenizer made(const Nlohmann& json, const TextLimits& limits = {}) {
  return Tokenizer::from_json(json.dump(), "folder/tokenizer.json", limits);
}
std::string refused(const Nlohmann& json, const std::string& text, const TextLimits& limits = {}) {
  const Tokenizer tokenizer = made(json, limits);
  const std::string ids = test::error_of([&] { tokenizer.encode_ids(text); }, ErrorKind::bad_file);
  const std::string everything = test::error_of([&] { tokenizer.encode(text); }, ErrorKind::bad_file);
  EXPECT_EQ(ids.substr(0, 40), everything.substr(0, 40));
  return everything;
}
std::string not_read(const Nlohmann& json) {
  return test::error_of([&] { made(json); }, ErrorKind::bad_file);
}
std::string not_decoded(const Nlohmann& json, const std::vector<int64_t>& ids) {
  const Tokenizer tokenizer = made(json);
  return test::error_of([&] { tokenizer.decode(ids); }, ErrorKind::bad_file);
}

const std::string many_a(20'000, 'a');
const TextLimits few_steps{.steps = 1'000'000, .steps_per_byte = 100};

TEST(TextLimits, normalizers_may_not_make_a_text_grow_without_end) {
  EXPECT_THAT(refused(with("normalizer", sequence("normalizers", 30, replace("a", "aaaaaaaaaa"))), "a"),
              AllOf(StartsWith("folder/tokenizer.json: normalizer 7: the text grew too long: a text of 1 byte may take"),
                    HasSubstr("TextLimits::memory")));
  EXPECT_THAT(refused(with("normalizer", sequence("normalizers", 30, replace("", "b"))), "a"), HasSubstr("grew too long"));
  EXPECT_THAT(refused(with("normalizer", replace("a", std::string(10'000, 'a'))), many_a),
              HasSubstr("normalizer 1: the text grew too long: a text of 20000 bytes"));
  EXPECT_THAT(refused(with("normalizer", sequence("normalizers", 300, {{"type", "Prepend"}, {"prepend", many_a}})), "a"),
              HasSubstr("grew too long"));
  EXPECT_THAT(refused(with("normalizer", sequence("normalizers", 1'000, {{"type", "Nmt"}})), many_a),
              HasSubstr("grew too long"));
  EXPECT_THAT(refused(with("normalizer", sequence("normalizers", 2'000, {{"type", "NFC"}})), many_a),
              HasSubstr("too many steps for a text of 20000 bytes"));
}

TEST(TextLimits, pre_tokenizers_may_not_make_a_text_grow_without_end) {
  const Nlohmann byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", false}};
  EXPECT_THAT(refused(with("pre_tokenizer", sequence("pretokenizers", 40, byte_level)), "a"),
              HasSubstr("the text grew too long"));
  const Nlohmann metaspace = {{"type", "Metaspace"}, {"replacement", std::string(100'000, ' ')}, {"split", false}};
  EXPECT_THAT(refused(with("pre_tokenizer", sequence("pretokenizers", 2, metaspace)), "a a"),
              HasSubstr("pre-tokenizer 2: the text grew too long"));
  EXPECT_THAT(refused(with("pre_tokenizer", sequence("pretokenizers", 2'000, {{"type", "Digits"}})), many_a),
              HasSubstr("too many steps"));
}

// Each match is quick, or slow but within what one match might take; the text is not.
TEST(TextLimits, steps_are_paid_for_the_whole_text) {
  EXPECT_THAT(refused(with("pre_tokenizer", split("(?:a+b?)+$")), std::string(60, 'a') + "c"),
              StartsWith("folder/tokenizer.json: pre-tokenizer 1: too many steps for a text of 61 bytes"));
  // Every place tries many alternatives.
  std::string alternatives = "x0";
  for (int i = 1; i < 12'000; ++i) alternatives += "|x";
  EXPECT_THAT(refused(with("pre_tokenizer", split(alternatives)), many_a, few_steps), HasSubstr("too many steps"));
  // Every place looks at all that follows.
  EXPECT_THAT(refused(with("pre_tokenizer", split("a(?=a*b)")), many_a, few_steps), HasSubstr("too many steps"));
  EXPECT_THAT(refused(with("normalizer", replace("a*b", "", "Regex")), many_a, few_steps),
              HasSubstr("normalizer 1: too many steps"));
  // A set of many members is asked for every character.
  std::string set = "[";
  for (int i = 0; i < 20'000; ++i) set += "\u4E00-\u4E01";
  std::string other;
  for (int i = 0; i < 10'000; ++i) other += "\u00E9";
  EXPECT_THAT(refused(with("pre_tokenizer", split(set + "]")), other, few_steps), HasSubstr("too many steps"));
  // So is a literal that nearly matches everywhere.
  EXPECT_THAT(refused(with("normalizer", replace(std::string(10'000, 'a') + "b", "")), many_a, few_steps),
              HasSubstr("too many steps"));
}

TEST(TextLimits, ways_to_try_are_memory) {
  // Each turn leaves two ways to try.
  const Tokenizer tokenizer = made(with("pre_tokenizer", split("(?:a|b)*c")), {.memory = 10'000, .memory_per_byte = 10});
  EXPECT_THAT(test::error_of([&] { tokenizer.encode(many_a); }), HasSubstr("grew too long"));
  EXPECT_EQ(made(with("pre_tokenizer", split("(?:a|b)*c"))).encode(many_a.substr(0, 500)).size(), 500u);
}

TEST(TextLimits, added_tokens_are_looked_for_in_linear_time) {
  const auto token = [](const std::string& content, bool strip) {
    return Nlohmann{{"id", 9},         {"content", content},  {"single_word", false}, {"lstrip", strip},
                    {"rstrip", strip}, {"normalized", false}, {"special", false}};
  };
  const std::string spaces(20'000, ' ');
  // A token of white space that takes in the white space around it.
  EXPECT_EQ(made(with("added_tokens", Nlohmann::array({token(" ", true)}))).encode(spaces).size(), 1u);
  Nlohmann right = token(" ", true);
  right["lstrip"] = false;
  EXPECT_THAT(refused(with("added_tokens", Nlohmann::array({right})), spaces), HasSubstr("added tokens: too many steps"));
  EXPECT_THAT(refused(with("added_tokens", Nlohmann::array({token(many_a + "b", false)})), many_a + many_a),
              HasSubstr("too many steps"));
  // Read with the file: they are normalized then.
  Nlohmann json = with("normalizer", sequence("normalizers", 30, replace("a", "aaaaaaaaaa")));
  Nlohmann normalized = token("a", false);
  normalized["normalized"] = true;
  json["added_tokens"] = Nlohmann::array({normalized});
  EXPECT_THAT(not_read(json),
              StartsWith("folder/tokenizer.json: normalizer 7: the text grew too long: added tokens of 1 byte"));
}

// A token behind another's white space, which the other took in.
TEST(Tokenizer, an_added_token_in_white_space_that_is_taken_is_none) {
  const Nlohmann json = with("added_tokens", Nlohmann::parse(R"([
    {"id": 4, "content": "<r>", "lstrip": false, "rstrip": true, "normalized": false, "special": false},
    {"id": 5, "content": " ", "lstrip": true, "rstrip": false, "normalized": false, "special": false}])"));
  EXPECT_THAT(made(json).encode_ids("a<r>  "), ElementsAre(0, 4));
  EXPECT_THAT(made(json).encode_ids("a<r>  b "), ElementsAre(0, 4, 1, 5));
  Nlohmann lower = json;
  lower["normalizer"] = {{"type", "Lowercase"}};
  for (Nlohmann& token : lower["added_tokens"]) token["normalized"] = true;
  EXPECT_THAT(made(lower).encode("A<R>  ").offsets, ElementsAre(testing::Pair(0, 1), testing::Pair(1, 6)));
}

TEST(TextLimits, tokens_of_the_model_may_not_outgrow_the_text) {
  // An unknown character is a token of any length.
  Nlohmann json = letters();
  const std::string unknown(100'000, '?');
  json["model"]["vocab"][unknown] = 4;
  json["model"]["unk_token"] = unknown;
  EXPECT_THAT(test::error_of([&] { made(json).encode(std::string(10'000, '!')); }),
              StartsWith("folder/tokenizer.json: model: the text grew too long"));
  EXPECT_EQ(made(json).encode_ids("!a").size(), 2u);
  EXPECT_THAT(not_decoded(json, std::vector<int64_t>(10'000, 4)),
              StartsWith("folder/tokenizer.json: vocabulary: the text grew too long: 10000 ids"));
  // A prefix that falls back to bytes is put before every character.
  json = letters();
  json["model"]["byte_fallback"] = true;
  json["model"]["continuing_subword_prefix"] = many_a;
  json["model"]["merges"] = Nlohmann::array();
  json["model"]["vocab"]["<0x61>"] = 4;
  EXPECT_THAT(refused(json, many_a), StartsWith("folder/tokenizer.json: model: "));
}

TEST(TextLimits, post_processors_may_not_repeat_a_text_without_end) {
  const auto one = [](const char* kind, const char* id) { return Nlohmann{{kind, {{"id", id}, {"type_id", 0}}}}; };
  Nlohmann processor = {{"type", "TemplateProcessing"},
                        {"single", Nlohmann(std::vector<Nlohmann>(2'000, one("Sequence", "A")))},
                        {"pair", Nlohmann::array()},
                        {"special_tokens", Nlohmann::object()}};
  EXPECT_THAT(refused(with("post_processor", processor), many_a),
              StartsWith("folder/tokenizer.json: post-processor 1: the text grew too long"));
  processor["single"] = std::vector<Nlohmann>(10'000, one("SpecialToken", "s"));
  processor["special_tokens"]["s"] = {
      {"id", "s"}, {"ids", std::vector<int>(10'000, 1)}, {"tokens", std::vector<std::string>(10'000, "b")}};
  EXPECT_THAT(refused(with("post_processor", processor), "a"), HasSubstr("post-processor 1: the text grew too long"));
  const Nlohmann bert = {{"type", "BertProcessing"}, {"sep", {"b", 1}}, {"cls", {"a", 0}}};
  EXPECT_THAT(refused(with("post_processor", sequence("processors", 2'000, bert)), many_a), HasSubstr("post-processor"));
}

TEST(TextLimits, decoders_may_not_make_a_text_grow_without_end) {
  EXPECT_THAT(not_decoded(with("decoder", sequence("decoders", 30, replace("a", "aaaaaaaaaa"))), {0}),
              StartsWith("folder/tokenizer.json: decoder 8: too many steps for 1 id"));
  EXPECT_THAT(not_decoded(with("decoder", sequence("decoders", 2, replace("a", std::string(10'000, 'a')))), {0}),
              StartsWith("folder/tokenizer.json: decoder 2: the text grew too long: 1 id may take"));
  EXPECT_THAT(
      not_decoded(with("decoder", sequence("decoders", 20'000, {{"type", "Fuse"}})), std::vector<int64_t>(10'000, 0)),
      HasSubstr("too many steps for 10000 ids"));
  Nlohmann json = with("decoder", replace("(?:a+b?)+$", "", "Regex"));
  json["model"]["vocab"][std::string(60, 'a') + "c"] = 4;
  EXPECT_THAT(not_decoded(json, {4}), HasSubstr("decoder 1: too many steps for 1 id"));
  const Tokenizer tokenizer = made(json);
  StreamDecoder stream(tokenizer);
  EXPECT_EQ(stream.push(1), "b");
  EXPECT_THAT(test::error_of([&] { stream.push(4); }), HasSubstr("decoder 1: too many steps for 2 ids"));
}

// Each of these ids is cheap enough alone; decode refuses them together, and so does a stream.
TEST(TextLimits, a_stream_has_one_budget) {
  const Tokenizer tokenizer = made(with("decoder", sequence("decoders", 50'000, {{"type", "Fuse"}})));
  StreamDecoder stream(tokenizer);
  const auto all_of_them = [&] {
    for (int i = 0; i < 2'000; ++i) stream.push(0);
  };
  EXPECT_THAT(test::error_of(all_of_them),
              AllOf(StartsWith("folder/tokenizer.json: decoder"), HasSubstr("too many steps for")));
  EXPECT_THAT(test::error_of([&] { stream.finish(); }), HasSubstr("too many steps for"));
  EXPECT_EQ(stream.push(0), "a") << "a new stream has a new budget";
}

// Bytes that never become a character are held until the end; looking at all of them each time would take the square.
TEST(TextLimits, held_ids_are_decoded_now_and_then) {
  Nlohmann json = with("decoder", sequence("decoders", 1, {{"type", "ByteFallback"}}));
  json["model"]["byte_fallback"] = true;
  json["model"]["vocab"]["<0xC3>"] = 4;
  json["model"]["vocab"]["<0xA9>"] = 5;
  const Tokenizer tokenizer = made(json);
  const std::vector<int64_t> ids(20'000, 4);
  StreamDecoder stream(tokenizer);
  std::string text;
  for (const int64_t id : ids) text += stream.push(id);
  text += stream.finish();
  EXPECT_EQ(text, tokenizer.decode(ids));
  EXPECT_EQ(stream.push(4), "");
  EXPECT_EQ(stream.push(5), "é") << "what is held for a moment comes at once";
}

TEST(TextLimits, wrong_kinds_in_a_tokenizers_configuration_name_the_file) {
  for (const auto& [config, found] :
       std::vector<std::pair<std::string, std::string>>{{R"({"bos_token": 5})", "bos_token: at byte 14: expected a string"},
                                                        {R"({"eos_token": ["a"]})", "eos_token"},
                                                        {R"({"pad_token": {"content": 7}})", "pad_token: at byte 26"},
                                                        {R"({"unk_token": {"text": "a"}})", "unk_token"},
                                                        {R"({"model_max_length": "many"})", "model_max_length"},
                                                        {R"([1])", "expected an object"},
                                                        {R"({"bos_token": )", ""}}) {
    const test::TemporaryFolder folder;
    folder.write("tokenizer.json", letters().dump());
    folder.write("tokenizer_config.json", config);
    const std::string error = test::error_of([&] { Tokenizer::from_file(folder.path()); }, ErrorKind::bad_file);
    EXPECT_THAT(error, StartsWith(folder.path("tokenizer_config.json"))) << config;
    EXPECT_THAT(error, HasSubstr(found)) << config;
  }
}

TEST(TextLimits, suffixes_are_decoded_in_linear_time) {
  Nlohmann json = with("decoder", {{"type", "BPEDecoder"}, {"suffix", "a"}});
  const std::string long_token(1 << 21, 'a');
  json["model"]["vocab"][long_token] = 4;
  const Tokenizer tokenizer = made(json);
  EXPECT_EQ(tokenizer.decode(std::vector<int64_t>{4, 1}), std::string(1 << 21, ' ') + "b");
  EXPECT_EQ(tokenizer.decode(std::vector<int64_t>{1, 4}), "b");
}

TEST(TextLimits, counts_of_the_file_are_checked) {
  Nlohmann json = letters();
  json["truncation"] = {{"max_length", int64_t{1'000'000'000'000}}, {"stride", 0}};
  json["padding"] = {{"strategy", {{"Fixed", int64_t{1'000'000'000'000}}}}, {"pad_id", -5}};
  EXPECT_THAT(made(json).encode_ids("ab"), ElementsAre(3)) << "neither is applied";
  for (const int64_t id : {int64_t{-1}, int64_t{1} << 31, int64_t{1} << 62}) {
    json = letters();
    json["model"]["vocab"]["a"] = id;
    EXPECT_THAT(not_read(json), HasSubstr("the id of token \"a\" is " + std::to_string(id)));
  }
  json = with("post_processor", {{"type", "BertProcessing"}, {"sep", {"b", int64_t{1} << 40}}, {"cls", {"a", 0}}});
  EXPECT_THAT(not_read(json), HasSubstr("expected an id from 0 to 4294967295, found 1099511627776"));
  json = with("decoder", {{"type", "Strip"}, {"content", "a"}, {"start", int64_t{1} << 62}, {"stop", int64_t{1} << 62}});
  EXPECT_EQ(made(json).decode(std::vector<int64_t>{0, 1}), "b");

  const test::TemporaryFolder folder;
  folder.write("tokenizer.json", letters().dump());
  folder.write("tokenizer_config.json", R"({"model_max_length": -1e300})");
  EXPECT_THAT(test::error_of([&] { Tokenizer::from_file(folder.path()); }),
              AllOf(HasSubstr("tokenizer_config.json"), HasSubstr("model_max_length must be a number of tokens")));
}

Nlohmann unigram(const Nlohmann& vocab) {
  Nlohmann json = letters();
  json["model"] = {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocab}};
  return json;
}

TEST(TextLimits, a_vocabulary_of_many_beginnings_costs_its_steps) {
  Nlohmann vocab = Nlohmann::parse(R"([["?", 0]])");
  for (size_t n = 1; n < 500; ++n) vocab.push_back({std::string(n, 'a'), -1.0 - static_cast<double>(n)});
  EXPECT_THAT(refused(unigram(vocab), many_a, few_steps), HasSubstr("model: too many steps for a text of 20000 bytes"));
  Nlohmann json = letters();
  json["model"] = {
      {"type", "WordPiece"}, {"unk_token", "?"}, {"max_input_chars_per_word", 1'000'000}, {"vocab", {{"?", 0}}}};
  for (size_t n = 1; n < 500; ++n) {
    json["model"]["vocab"]["##" + std::string(n, 'a') + "b"] = n;
    json["model"]["vocab"]["##" + std::string(n, 'a')] = 500 + n;
  }
  json["model"]["vocab"]["a"] = 1000;
  EXPECT_EQ(made(json).encode_ids(many_a).size(), 42u) << "one token, then the longest ones";
}

TEST(TextLimits, a_charsmap_may_not_lead_out_of_itself) {
  const auto charsmap = [](const std::string& base64) {
    return with("normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", base64}});
  };
  EXPECT_THAT(not_read(charsmap("")), HasSubstr("precompiled_charsmap: expected at least 4 bytes, found 0"));
  EXPECT_THAT(not_read(charsmap("AA=A")), HasSubstr("expected base 64"));
  EXPECT_THAT(not_read(charsmap("/////wAA")), HasSubstr("a trie of 4294967295 bytes in a map of 6"));
  EXPECT_THAT(not_read(charsmap("BAAAAAAAAAD/")), HasSubstr("not UTF-8"));
  // One unit, whose children are far past the end.
  EXPECT_EQ(made(charsmap("BAAAAP////8=")).encode_ids("ab"), (std::vector<int64_t>{3}));
}

TEST(TextLimits, models_are_checked_when_they_are_read) {
  EXPECT_THAT(not_read(unigram(Nlohmann::parse(R"([["a"]])"))), HasSubstr("expected [token, score], found 1 values"));
  EXPECT_THAT(not_read(unigram(Nlohmann::array())), HasSubstr("unk_id is 0, expected one of the 0 tokens"));
  EXPECT_THAT(not_read(unigram(Nlohmann::parse(R"([["a", "Infinity"]])"))), HasSubstr("not a finite number"));
  Nlohmann json = letters();
  json["model"] = {{"type", "WordLevel"}, {"unk_token", "none"}, {"vocab", {{"a", 0}}}};
  EXPECT_THAT(refused(json, "c"), HasSubstr("\"c\" is not in the vocabulary, and neither is the unk_token \"none\""));
  json["model"] = {{"type", "WordPiece"}, {"max_input_chars_per_word", -1}, {"vocab", {{"a", 0}}}};
  EXPECT_THAT(not_read(json), HasSubstr("expected a number of characters, found -1"));
  EXPECT_THAT(not_read(with("pre_tokenizer", {{"type", "FixedLength"}, {"length", 0}})),
              HasSubstr("a length of at least 1"));
  EXPECT_THAT(not_read(with("pre_tokenizer", {{"type", "CharDelimiterSplit"}, {"delimiter", "ab"}})),
              HasSubstr("expected one character, found \"ab\""));
}

TEST(TextLimits, rows_that_overflow_are_paid_for) {
  const Tokenizer tokenizer = made(letters());
  const std::vector<TextInput> one{std::string(40'000, 'c')};
  const BatchOptions options{.pad = false, .truncate = true, .max_length = 20'001, .stride = 20'000, .overflow = true};
  EXPECT_THAT(test::error_of([&] { tokenizer.encode_padded(one, options); }, ErrorKind::bad_file), HasSubstr("truncation"));
}

TEST(TextLimits, are_the_callers_to_set) {
  const Nlohmann json = with("normalizer", replace("a", std::string(100, 'a')));
  EXPECT_EQ(made(json).encode_ids("a").size(), 100u);
  EXPECT_THAT(test::error_of([&] { made(json, {.memory = 500, .memory_per_byte = 10}).encode_ids("a"); }),
              HasSubstr("a text of 1 byte may take 510 bytes"));
  EXPECT_THAT(test::error_of([&] { made(json, {.steps = 10, .steps_per_byte = 1}).encode_ids("a"); }),
              HasSubstr("the limit is 11"));
  EXPECT_THAT(test::error_of([&] {
                made(with("pre_tokenizer", sequence("pretokenizers", 3, split("aaaa"))), {.expression_size = 10});
              }),
              AllOf(StartsWith("folder/tokenizer.json: regular expression \"aaaa\""), HasSubstr("may have 10 parts")));
}

// After an error the tokenizer works as before.
TEST(TextLimits, an_error_leaves_nothing_behind) {
  const Tokenizer tokenizer = made(with("normalizer", replace("(?:a+b?)+!", "b", "Regex")));
  EXPECT_THAT(test::error_of([&] { tokenizer.encode(std::string(60, 'a')); }), HasSubstr("too many steps"));
  EXPECT_THAT(tokenizer.encode_ids("aa!a"), ElementsAre(1, 0));
}

}  // namespace
}  // namespace calque::budget_test
