// Batches that are cut and padded, against the tokenizers library's (golden/batches.jsonl, written by
// tools/golden/tokenizer_golden.py), and what the files beside tokenizer.json say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/base/thread.h"
#include "calque/text/tokenizer.h"
#include "support/error_support.h"
#include "support/folder_support.h"
#include "support/paths.h"
#include "text/batch_support.h"

namespace calque::batch_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using Nlohmann = nlohmann::json;

// A folder with a tokenizer of three words and these further files.
Tokenizer words(const std::string& config, const std::string& map = "", const std::string& model = "",
                const std::string& own = "") {
  const test::TemporaryFolder folder;
  folder.write("tokenizer.json", R"({"added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, )" + own + R"(
    "model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "a": 1, "b": 2, "[PAD]": 3, "</s>": 4}}})");
  if (!config.empty()) folder.write("tokenizer_config.json", config);
  if (!map.empty()) folder.write("special_tokens_map.json", map);
  if (!model.empty()) folder.write("config.json", model);
  return Tokenizer::from_file(folder.path());
}
const std::string padded = R"({"pad_token": "[PAD]"})";
const std::vector<TextInput> two_texts{"a b a", "b"};

TEST(Batch, agrees_with_the_tokenizers_library) {
  std::ifstream golden(test::source_folder() + "/tests/text/golden/batches.jsonl");
  size_t batches = 0;
  for (std::string line; std::getline(golden, line);) {
    const Nlohmann g = Nlohmann::parse(line);
    const test::TemporaryFolder folder;
    folder.write("tokenizer.json", g["tokenizer"].dump());
    folder.write("tokenizer_config.json", Nlohmann{{"pad_token", g["pad"]}}.dump());
    const Tokenizer tokenizer = Tokenizer::from_file(folder.path());
    std::vector<TextInput> inputs;
    for (const Nlohmann& input : g["inputs"])
      if (input.is_string())
        inputs.emplace_back(input.get<std::string>());
      else
        inputs.emplace_back(input[0].get<std::string>(), input[1].get<std::string>());
    for (const Nlohmann& expected : g["cases"]) {
      const std::string what = g["name"].get<std::string>() + " " + expected["options"].dump();
      const Batch found = tokenizer.encode_padded(inputs, test::batch_options(expected["options"]));
      ++batches;
      EXPECT_EQ(found.row_of, expected["row_of"].get<std::vector<size_t>>()) << what;
      ASSERT_THAT(expected["rows"], SizeIs(found.rows.size())) << what;
      for (size_t i = 0; i < found.rows.size(); ++i)
        EXPECT_EQ(test::batch_row(found.rows[i]), expected["rows"][i]) << what << " row " << i;
    }
  }
  EXPECT_GE(batches, 60u);
}

TEST(Batch, does_not_depend_on_the_number_of_threads) {
  const Tokenizer tokenizer = Tokenizer::from_file(test::source_folder() + "/assets/tiny-lm");
  std::vector<TextInput> inputs;
  for (size_t i = 0; i < 300; ++i) inputs.emplace_back(std::string(i * 7 % 400, 'x') + " and " + std::to_string(i * i));
  const BatchOptions options{.pad = false, .truncate = true, .max_length = 20, .overflow = true};
  const int before = num_threads();
  std::vector<Nlohmann> made;
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    Nlohmann all;
    for (const Encoding& e : tokenizer.encode_padded(inputs, options).rows) all.push_back(test::batch_row(e));
    made.push_back(all);
  }
  set_num_threads(before);
  EXPECT_THAT(made, Each(made[0]));
}

TEST(Batch, pads_as_the_files_say) {
  const Tokenizer left = words(R"({"pad_token": "[PAD]", "padding_side": "left", "pad_token_type_id": 4})");
  const Batch batch = left.encode_padded(two_texts);
  EXPECT_THAT(batch.rows[1].ids, ElementsAre(3, 3, 2));
  EXPECT_THAT(batch.rows[1].attention_mask, ElementsAre(0, 0, 1));
  EXPECT_THAT(batch.rows[1].type_ids, ElementsAre(4, 4, 0));
  EXPECT_THAT(words(padded).encode_padded(two_texts).rows[1].ids, ElementsAre(2, 3, 3));
  EXPECT_THAT(words("", "", "", R"("padding": {"direction": "Left", "pad_token": "[PAD]", "pad_type_id": 0},)")
                  .encode_padded(two_texts)
                  .rows[1]
                  .ids,
              ElementsAre(3, 3, 2));
  EXPECT_EQ(words(R"({"pad_token": "[PAD]", "tokenizer_class": "LlamaTokenizerFast"})").padding_side(), TextSide::left);
}

TEST(Batch, cuts_to_the_length_of_the_files) {
  const Tokenizer tokenizer = words(R"({"pad_token": "[PAD]", "model_max_length": 2, "truncation_side": "left"})");
  EXPECT_THAT(tokenizer.encode_padded(two_texts, {.truncate = true}).rows[0].ids, ElementsAre(2, 1));
  EXPECT_THAT(tokenizer.encode_padded(two_texts).rows[0].ids, ElementsAre(1, 2, 1)) << "only when asked to";
  EXPECT_THAT(words(padded).encode_padded(two_texts, {.truncate = true}).rows[0].ids, ElementsAre(1, 2, 1)) << "no limit";
}

TEST(Batch, says_what_cannot_be) {
  const auto error = [&](const Tokenizer& tokenizer, const BatchOptions& options) {
    return test::error_of([&] { tokenizer.encode_padded(two_texts, options); });
  };
  const Tokenizer tokenizer = words(padded);
  EXPECT_THAT(error(words(""), {}),
              HasSubstr("no token to pad them with; expected a \"pad_token\" in tokenizer_config.json"));
  EXPECT_THAT(error(tokenizer, {.truncate = true, .max_length = 2, .stride = 2}), HasSubstr("a stride of 2 tokens"));
  EXPECT_THAT(error(tokenizer, {.pad_to_multiple_of = 8, .truncate = true, .max_length = 12}), HasSubstr("not a multiple"));
  EXPECT_THAT(error(tokenizer, {.truncate = true, .max_length = 2, .strategy = BatchOptions::Truncation::only_second}),
              HasSubstr("there is no second text"));
  EXPECT_THAT(error(tokenizer, {.pad_to = size_t{1} << 40}), HasSubstr("at most 2147483647"));
}

TEST(Batch, one_length_needs_no_padding) {
  const std::vector<TextInput> one{"a b"};
  EXPECT_THAT(words("").encode_padded(one).rows[0].ids, ElementsAre(1, 2));
}

TEST(TokenizerFiles, name_the_special_tokens) {
  const Tokenizer tokenizer = words(R"({"eos_token": {"content": "</s>", "lstrip": true}, "pad_token": null,
                                        "additional_special_tokens": ["<x>", {"content": "<y>"}]})",
                                    R"({"pad_token": "[PAD]", "eos_token": "other"})");
  EXPECT_EQ(tokenizer.special_token("eos"), "</s>") << "tokenizer_config.json comes first";
  EXPECT_EQ(tokenizer.special_token_id("pad"), 3);
  EXPECT_THAT(tokenizer.additional_special_tokens(), ElementsAre("<x>", "<y>"));
  EXPECT_EQ(tokenizer.token_to_id("<x>"), 5) << "what the vocabulary does not have is added behind it";
  EXPECT_EQ(tokenizer.vocab_size(), 7u);
  EXPECT_THAT(tokenizer.encode_ids("a</s><x>b"), ElementsAre(1, 4, 5, 2));
  EXPECT_EQ(tokenizer.decode(std::vector<int64_t>{1, 4, 5, 2}), "a b") << "special tokens are left out";
}

TEST(TokenizerFiles, that_name_no_role_leave_it_to_the_tokens) {
  const auto role = [](const std::vector<std::string>& tokens, const char* name) {
    Nlohmann json =
        Nlohmann::parse(R"({"model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0}}, "added_tokens": []})");
    for (size_t i = 0; i < tokens.size(); ++i)
      json["added_tokens"].push_back({{"id", i + 1}, {"content", tokens[i]}, {"special", true}});
    return Tokenizer::from_json(json.dump()).special_token(name);
  };
  EXPECT_EQ(role({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}, "pad"), "[PAD]");
  EXPECT_EQ(role({"<s>", "<pad>", "</s>", "<unk>", "<mask>"}, "cls"), "<s>");
  EXPECT_EQ(role({"<s>", "</s>", "<unk>"}, "cls"), std::nullopt);
  EXPECT_EQ(role({"<pad>", "</s>", "<unk>"}, "eos"), "</s>");
  EXPECT_EQ(role({"<|endoftext|>"}, "eos"), "<|endoftext|>");
  EXPECT_EQ(role({"<|endoftext|>"}, "pad"), std::nullopt);
}

TEST(TokenizerFiles, say_what_the_model_takes) {
  const std::vector<std::string> without{"input_ids", "attention_mask"},
      with{"input_ids", "token_type_ids", "attention_mask"};
  EXPECT_EQ(words("").model_input_names(), without);
  EXPECT_EQ(words(R"({"tokenizer_class": "BertTokenizer"})").model_input_names(), with);
  EXPECT_EQ(words(R"({"tokenizer_class": "DebertaV2TokenizerFast"})").model_input_names(), with);
  EXPECT_EQ(words(R"({"tokenizer_class": "RobertaTokenizer"})").model_input_names(), without);
  EXPECT_EQ(words("", "", R"({"model_type": "mobilebert"})").model_input_names(), with);
  EXPECT_THAT(words(R"({"model_input_names": ["input_ids"]})").model_input_names(), ElementsAre("input_ids"));
}

TEST(TokenizerFiles, ask_for_tidy_spaces) {
  const std::vector<int64_t> ids{1, 5, 2};
  EXPECT_EQ(words(R"({"additional_special_tokens": ["."]})").decode_clean(ids, false), "a . b");
  EXPECT_EQ(words(R"({"additional_special_tokens": ["."], "clean_up_tokenization_spaces": true})").decode_clean(ids, false),
            "a. b");
}

}  // namespace
}  // namespace calque::batch_test
