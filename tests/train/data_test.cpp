// Files of texts, examples and batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "calque/hub/from_pretrained.h"
#include "calque/train/data.h"
#include "support/error_support.h"
#include "support/paths.h"

namespace calque::data_test {
namespace {

std::string tiny_lm() { return test::source_folder() + "/assets/tiny-lm"; }

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> firsts(std::string_view content, const std::string& path, TrainTask task) {
  std::vector<std::string> out;
  for (const TrainText& text : parse_train_texts(content, path, task)) out.push_back(text.first);
  return out;
}

TEST(TrainTexts, a_line_of_a_text_file_is_a_text) {
  EXPECT_THAT(firsts("\xEF\xBB\xBFone\r\n\n  \ntwo", "a.txt", TrainTask::causal_lm), ElementsAre("one", "two"));
}

TEST(TrainTexts, tabs_part_sources_from_targets_and_labels_from_texts) {
  const TrainText pair = parse_train_texts("hello\tbonjour\n", "a.txt", TrainTask::seq2seq_lm).at(0);
  EXPECT_EQ(pair.first, "hello");
  EXPECT_EQ(pair.second, "bonjour");
  const TrainText labelled = parse_train_texts("good\tI like it\n", "a.txt", TrainTask::classification).at(0);
  EXPECT_EQ(labelled.first, "I like it");
  EXPECT_EQ(labelled.label, "good");
}

TEST(TrainTexts, json_lines_name_their_columns) {
  const TrainText pair =
      parse_train_texts(R"({"sentence1": "a", "sentence2": "b", "label": 1})", "a.jsonl", TrainTask::classification).at(0);
  EXPECT_EQ(pair.first, "a");
  EXPECT_EQ(pair.second, "b");
  EXPECT_EQ(pair.label, "1");
}

TEST(TrainTexts, quoted_fields_of_csv_hold_commas_lines_and_quotes) {
  const std::string csv = "label,text\r\n1,\"a, \"\"b\"\"\nc\"\r\n0,plain\r\n";
  EXPECT_THAT(firsts(csv, "a.csv", TrainTask::classification), ElementsAre("a, \"b\"\nc", "plain"));
}

TEST(TrainTexts, what_is_wrong_is_said_with_its_line) {
  const auto error = [](std::string_view content, const std::string& path, TrainTask task) {
    return test::error_of([&] { parse_train_texts(content, path, task); });
  };
  EXPECT_THAT(error("a\tb\nc", "x.txt", TrainTask::seq2seq_lm),
              HasSubstr("x.txt, line 2: expected a source, a tab and its target, found no tab"));
  EXPECT_THAT(error("{\"text\": \"a\"}\n{\"txt\": \"b\"}", "x.jsonl", TrainTask::masked_lm),
              HasSubstr("x.jsonl, line 2: expected \"text\", found \"txt\""));
  EXPECT_THAT(error("{\"text\": ", "x.jsonl", TrainTask::masked_lm), HasSubstr("x.jsonl, line 1"));
  EXPECT_THAT(error("text,label\na\n", "x.csv", TrainTask::classification),
              HasSubstr("x.csv, line 2: expected 2 fields as the header has, found 1"));
  EXPECT_THAT(error("text\n\"a", "x.csv", TrainTask::causal_lm), HasSubstr("x.csv, line 2: a quoted field has no end"));
  EXPECT_THAT(error("text\n\"a\"b", "x.csv", TrainTask::causal_lm), HasSubstr("after a quoted field, found 'b'"));
  EXPECT_THAT(error("", "x.txt", TrainTask::causal_lm), HasSubstr("x.txt: there is no text in it"));
  EXPECT_THAT(error("a", "x.tsv", TrainTask::causal_lm), HasSubstr("expected .txt (a text a line), .jsonl or .csv"));
}

struct TinyLm {
  std::shared_ptr<PretrainedModel> model = from_pretrained(tiny_lm());
  Tokenizer tokenizer = Tokenizer::from_file(tiny_lm());
};

TEST(TrainData, every_example_is_in_one_batch_of_an_epoch_and_the_next_epoch_is_another) {
  const TinyLm tiny;
  std::vector<TrainText> texts;
  for (int i = 0; i < 37; ++i) texts.push_back({std::string(static_cast<size_t>(5 + i * 3), 'a') + " and more", {}, {}});
  const TrainData data(*tiny.model, tiny.tokenizer, texts, TrainTask::causal_lm);
  const auto batches = data.epoch(4, 7, 0);
  std::multiset<size_t> seen;
  for (const auto& batch : batches) seen.insert(batch.begin(), batch.end());
  EXPECT_EQ(seen.size(), data.size());
  EXPECT_EQ(std::set<size_t>(seen.begin(), seen.end()).size(), data.size());
  EXPECT_EQ(batches, data.epoch(4, 7, 0));
  EXPECT_NE(batches, data.epoch(4, 7, 1));
  EXPECT_NE(batches, data.epoch(4, 8, 0));
}

TEST(TrainData, a_long_text_goes_on_in_further_examples) {
  const TinyLm tiny;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "some words of a text ";
  const std::vector<TrainText> texts{{text, {}, {}}};
  const TrainData data(*tiny.model, tiny.tokenizer, texts, TrainTask::causal_lm, 64);
  std::vector<size_t> all(data.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  EXPECT_GT(data.size(), 5U);
  const size_t whole = tiny.tokenizer.encode_ids(text).size();
  EXPECT_NEAR(static_cast<double>(data.tokens(all)), static_cast<double>(whole), 2);
}

TEST(TrainData, padding_and_prompts_are_not_learnt) {
  const TinyLm tiny;
  const std::vector<TrainText> texts{{"The question", " the answer is long", {}}, {"Q", " a", {}}};
  const TrainData data(*tiny.model, tiny.tokenizer, texts, TrainTask::causal_lm);
  const std::vector<size_t> rows{0, 1};
  const ModelInputs inputs = data.batch(rows, 0);
  const Tensor labels = inputs[arg::labels], mask = inputs[arg::attention_mask];
  const auto prompt = static_cast<int64_t>(tiny.tokenizer.encode_ids("The question", false).size());
  for (int64_t i = 0; i < labels.size(1); ++i)
    EXPECT_EQ(labels.select(0, 0).select(0, i).item<int64_t>() == -100, i < prompt) << i;
  const int64_t last = labels.size(1) - 1;
  EXPECT_EQ(labels.select(0, 1).select(0, last).item<int64_t>(), -100);
  EXPECT_EQ(mask.select(0, 1).select(0, last).item<int64_t>(), 0);
}

TEST(TrainData, the_class_says_the_task) {
  const TinyLm tiny;
  EXPECT_EQ(train_task_of(*tiny.model), TrainTask::causal_lm);
  EXPECT_THAT(test::error_of([] { train_task("sing"); }),
              HasSubstr("there are causal-lm, masked-lm, seq2seq-lm, classification"));
  LoadOptions base;
  base.model_class = "LlamaModel";
  const std::shared_ptr<PretrainedModel> model = from_pretrained(tiny_lm(), base);
  EXPECT_THAT(test::error_of([&] { train_task_of(*model); }), HasSubstr("LlamaModel is no class for causal-lm"));
}

}  // namespace
}  // namespace calque::data_test
