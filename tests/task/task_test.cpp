// The tasks as a library, on small models: labels, scores, words, spans and vectors are those that transformers gives
// (tools/golden/tasks.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "calque/base/warning.h"
#include "calque/hub/pretrained_model.h"
#include "calque/op/aten/ternary.h"
#include "calque/task/answer.h"
#include "calque/task/chat.h"
#include "calque/task/classify.h"
#include "calque/task/embed.h"
#include "calque/task/fill.h"
#include "calque/task/text_to_text.h"
#include "support/error_support.h"
#include "task/task_support.h"

namespace calque::task_test {
namespace {

using task_test::expected;
using task_test::ModelFolder;
using test::error_of;
using testing::HasSubstr;

constexpr double score_tolerance = 1e-5;

std::vector<TextInput> golden_texts() {
  std::vector<TextInput> out;
  for (const auto& text : expected()["texts"]) out.emplace_back(text.get<std::string>());
  return out;
}

void expect_labels(const std::vector<LabelScore>& found, const nlohmann::json& said) {
  ASSERT_EQ(found.size(), said.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].label, said[i]["label"].get<std::string>());
    EXPECT_NEAR(found[i].score, said[i]["score"].get<double>(), score_tolerance);
  }
}

std::vector<std::vector<int64_t>> rows_of(const Tensor& tensor) {
  std::vector<std::vector<int64_t>> out;
  for (int64_t r = 0; r < tensor.size(0); ++r)
    out.emplace_back(tensor.data_as<int64_t>() + r * tensor.size(1), tensor.data_as<int64_t>() + (r + 1) * tensor.size(1));
  return out;
}

TEST(TextInputs, are_what_the_tokenizers_files_ask_for) {
  const ModelFolder folder("single_label_classification");
  const auto model = from_pretrained(folder.path());
  const Tokenizer tokenizer = Tokenizer::from_file(folder.path());
  const std::vector<TextInput> texts = golden_texts();
  const TextInputs made = text_inputs(*model, tokenizer, std::span(texts).first(2));
  EXPECT_EQ(made.inputs.items().size(), expected()["inputs"].size());
  for (const auto& [name, rows] : expected()["inputs"].items())
    EXPECT_EQ(rows_of(made.inputs.tensor(name)), rows.get<std::vector<std::vector<int64_t>>>()) << name;
}

TEST(TextInputs, longer_texts_are_cut_with_a_warning_or_refused) {
  const ModelFolder folder("single_label_classification");
  const auto model = from_pretrained(folder.path());
  const Tokenizer tokenizer = Tokenizer::from_file(folder.path());
  std::string text;
  for (int i = 0; i < 100; ++i) text += "city ";
  const TextInput one[] = {text};
  std::vector<std::string> warnings;
  reset_warnings();
  const WarningSink before = set_warning_sink([&](std::string_view message) { warnings.emplace_back(message); });
  EXPECT_EQ(text_inputs(*model, tokenizer, one).inputs[arg::input_ids].size(1), 64);
  set_warning_sink(before);
  EXPECT_EQ(warnings, std::vector<std::string>{"1 of the texts was cut to the 64 tokens that the model reads at once"});
  TextInputOptions whole;
  whole.truncate = false;
  EXPECT_THAT(error_of([&] { text_inputs(*model, tokenizer, one, whole); }),
              HasSubstr("a text has 102 tokens, but BertForSequenceClassification reads at most 64"));
}

TEST(TextInputs, batches_of_uneven_lengths_come_in_parts_with_little_padding) {
  const ModelFolder folder("single_label_classification");
  const auto model = from_pretrained(folder.path());
  const Tokenizer tokenizer = Tokenizer::from_file(folder.path());
  std::vector<TextInput> texts;
  for (size_t i = 0; i < 40; ++i) {
    std::string text;
    for (size_t k = 0; k < 1 + i * 17 % 60; ++k) text += k % 3 == 0 ? "city " : "old ";
    texts.emplace_back(std::move(text));
  }
  for (const TextSide side : {TextSide::left, TextSide::right}) {
    TextInputOptions options;
    options.padding_side = side;
    std::vector<size_t> seen, told;
    size_t parts = 0;
    const auto progress = [&](size_t done, size_t all) {
      told.push_back(done);
      EXPECT_EQ(all, texts.size());
    };
    in_batches(*model, tokenizer, texts, options, 20, progress, [&](const TextInputs& made, std::span<const size_t> places) {
      ++parts;
      ASSERT_EQ(made.batch.rows.size(), places.size());
      const auto mask = rows_of(made.inputs[arg::attention_mask]);
      size_t padding = 0;
      for (size_t i = 0; i < places.size(); ++i) {
        seen.push_back(places[i]);
        // The row is the text's own, and what was put beside it is under the mask.
        const std::vector<int64_t> ids = tokenizer.encode_ids(texts[places[i]].first);
        std::vector<int64_t> padded = ids;
        const size_t missing = made.batch.width - ids.size();
        padded.insert(side == TextSide::left ? padded.begin() : padded.end(), missing, *tokenizer.special_token_id("pad"));
        EXPECT_EQ(rows_of(made.inputs[arg::input_ids])[i], padded);
        EXPECT_EQ(made.batch.rows[i].ids, padded);
        EXPECT_EQ(made.batch.rows[i].offsets.size(), padded.size());
        EXPECT_EQ(std::ranges::count(mask[i], 1), std::ssize(ids));
        padding += missing;
      }
      EXPECT_LE(padding, 32U);
    });
    EXPECT_GT(parts, 4U);
    EXPECT_EQ(told.back(), texts.size());
    std::ranges::sort(seen);
    for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(seen.at(i), i);
  }
}

TEST(TextInputs, a_tokenizer_without_padding_pads_with_the_end_of_texts) {
  const std::string folder = test::source_folder() + "/assets/tiny-lm";
  const auto model = from_pretrained(folder);
  const Tokenizer tokenizer = Tokenizer::from_file(folder);
  const TextInput texts[] = {"The people of the United States", "Call"};
  const auto rows = rows_of(text_inputs(*model, tokenizer, texts).inputs[arg::attention_mask]);
  EXPECT_EQ(rows[0], std::vector<int64_t>(rows[0].size(), 1));
  EXPECT_EQ(rows[1].front(), 1);  // padded on the right
  EXPECT_EQ(rows[1].back(), 0);
  const auto ids = rows_of(text_inputs(*model, tokenizer, texts).inputs[arg::input_ids]);
  EXPECT_EQ(ids[1].back(), *tokenizer.special_token_id("eos"));
}

TEST(Classifying, labels_and_scores_are_transformers) {
  for (const char* kind : {"single_label_classification", "multi_label_classification"}) {
    SCOPED_TRACE(kind);
    const ModelFolder folder(kind);
    const Classifier classifier = Classifier::from_folder(folder.path());
    const auto found = classifier.classify(golden_texts());
    for (size_t i = 0; i < found.size(); ++i) expect_labels(found[i], expected()[kind][i]);
    const TextInput pair[] = {{golden_texts()[0].first, golden_texts()[1].first}};
    expect_labels(classifier.classify(pair)[0], expected()[std::string(kind) + "_pair"]);
  }
}

TEST(Classifying, words_are_grouped_as_transformers_groups_them) {
  const ModelFolder folder("words");
  const auto found = Classifier::from_folder(folder.path()).classify_words(golden_texts());
  size_t groups = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const auto& said = expected()["words"][i];
    ASSERT_EQ(found[i].size(), said.size());
    for (size_t k = 0; k < said.size(); ++k, ++groups) {
      EXPECT_EQ(found[i][k].label, said[k]["entity_group"].get<std::string>());
      EXPECT_EQ(found[i][k].word, said[k]["word"].get<std::string>());
      EXPECT_EQ(found[i][k].begin, said[k]["start"].get<size_t>());
      EXPECT_EQ(found[i][k].end, said[k]["end"].get<size_t>());
      EXPECT_NEAR(found[i][k].score, said[k]["score"].get<double>(), score_tolerance);
    }
  }
  EXPECT_GT(groups, 4U);
}

TEST(Classifying, a_model_of_another_task_says_what_it_is_for) {
  const ModelFolder folder("fill");
  EXPECT_THAT(
      error_of([&] { Classifier::from_folder(folder.path()); }),
      HasSubstr("classify needs a model for sequence-classification or token-classification, but BertForMaskedLM is for "
                "masked-lm; take a model trained for it, of the class BertForSequenceClassification or "
                "BertForTokenClassification"));
  const ModelFolder words("words");
  const Classifier classifier = Classifier::from_folder(words.path());
  EXPECT_THAT(error_of([&] { classifier.classify(golden_texts()); }), HasSubstr("ask for classify_words"));
}

void expect_filled(const std::vector<FilledToken>& found, const nlohmann::json& said) {
  ASSERT_EQ(found.size(), said.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].id, said[i]["token"].get<int64_t>());
    EXPECT_EQ(found[i].token, said[i]["token_str"].get<std::string>());
    EXPECT_EQ(found[i].sequence, said[i]["sequence"].get<std::string>());
    EXPECT_NEAR(found[i].score, said[i]["score"].get<double>(), score_tolerance);
  }
}

TEST(Filling, tokens_are_transformers) {
  const ModelFolder folder("fill");
  const MaskFiller filler = MaskFiller::from_folder(folder.path());
  expect_filled(filler.fill("Anna [MASK] the old bridge.", 3).at(0), expected()["fill"]);
  const auto two = filler.fill("Anna [MASK] the old [MASK].", 3);
  ASSERT_EQ(two.size(), 2U);
  for (size_t i = 0; i < 2; ++i) expect_filled(two[i], expected()["fill_two"][i]);
  EXPECT_THAT(error_of([&] { filler.fill("no mask"); }), HasSubstr("the text has no [MASK]"));
}

TEST(Answering, long_contexts_are_read_in_parts) {
  const ModelFolder folder("answer");
  AnswerOptions options;
  options.top = 3;
  options.max_length = 40;
  options.stride = 10;
  options.may_be_impossible = true;
  const auto found = Answerer::from_folder(folder.path()).answer("Who found the river?", expected()["context"], options);
  const auto& said = expected()["answers"];
  ASSERT_EQ(found.size(), said.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].text, said[i]["answer"].get<std::string>());
    EXPECT_EQ(found[i].begin, said[i]["start"].get<size_t>());
    EXPECT_EQ(found[i].end, said[i]["end"].get<size_t>());
    EXPECT_NEAR(found[i].score, said[i]["score"].get<double>(), score_tolerance);
  }
}

std::vector<std::string> golden_strings() { return expected()["texts"].get<std::vector<std::string>>(); }

// tools/golden/answers.py recorded what transformers' question-answering pipeline says.
TEST(Answering, answers_are_the_pipelines) {
  const auto recorded = nlohmann::json::parse(std::ifstream(test::source_folder() + "/tests/task/golden/answers.json"));
  const ModelFolder folder("answer");
  const Answerer answerer = Answerer::from_folder(folder.path());
  ASSERT_EQ(recorded["cases"].size(), 40U);
  for (const auto& one : recorded["cases"]) {
    const auto& said = one["options"];
    AnswerOptions options;
    options.top = said["top_k"].get<size_t>();
    options.max_length = said["max_seq_len"].get<size_t>();
    options.stride = said["doc_stride"].get<size_t>();
    options.longest_answer = said["max_answer_len"].get<size_t>();
    options.may_be_impossible = said["handle_impossible_answer"].get<bool>();
    options.whole_words = said["align_to_words"].get<bool>();
    const auto found = answerer.answer(one["question"].get<std::string>(), one["context"].get<std::string>(), options);
    ASSERT_EQ(found.size(), one["answers"].size()) << one.dump();
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].text, one["answers"][i]["answer"].get<std::string>()) << one.dump();
      EXPECT_EQ(found[i].begin, one["answers"][i]["start"].get<size_t>()) << one.dump();
      EXPECT_EQ(found[i].end, one["answers"][i]["end"].get<size_t>()) << one.dump();
      EXPECT_NEAR(found[i].score, one["answers"][i]["score"].get<double>(), score_tolerance) << one.dump();
    }
  }
}

TEST(Embedding, a_folder_without_modules_is_averaged) {
  const ModelFolder folder("embed");
  const SentenceEncoder encoder = SentenceEncoder::from_folder(folder.path());
  for (const size_t batch_size : {1U, 3U, 32U}) {
    EmbedOptions options;
    options.batch_size = batch_size;
    const Tensor found = encoder.embed(golden_strings(), options);
    ASSERT_EQ(found.size(0), 4);
    for (int64_t i = 0; i < found.numel(); ++i)
      EXPECT_NEAR(found.data_as<float>()[i],
                  expected()["means"][static_cast<size_t>(i / 8)][static_cast<size_t>(i % 8)].get<double>(), 1e-5);
  }
}

TEST(Embedding, vectors_are_those_of_the_texts_alone) {
  const ModelFolder folder("embed");
  const SentenceEncoder encoder = SentenceEncoder::from_folder(folder.path());
  std::vector<std::string> texts;
  for (size_t i = 0; i < 24; ++i) {
    texts.emplace_back("river");
    for (size_t k = 0; k < i * 7 % 50; ++k) texts.back() += k % 2 == 0 ? " city" : " old bridge";
  }
  const Tensor together = encoder.embed(texts);
  EmbedOptions alone;
  alone.batch_size = 1;
  EXPECT_TRUE(allclose(together, encoder.embed(texts, alone), 1e-5, 1e-6));
}

TEST(Embedding, progress_is_told_and_ends_the_work_by_throwing) {
  const ModelFolder folder("embed");
  const SentenceEncoder encoder = SentenceEncoder::from_folder(folder.path());
  std::vector<size_t> told;
  EmbedOptions options;
  options.batch_size = 3;
  options.progress = [&](size_t done, size_t all) {
    told.push_back(done);
    EXPECT_EQ(all, 4U);
  };
  encoder.embed(golden_strings(), options);
  EXPECT_EQ(told, (std::vector<size_t>{3, 4}));
  options.progress = [](size_t, size_t) { throw UserError("enough"); };
  EXPECT_THAT(error_of([&] { encoder.embed(golden_strings(), options); }), HasSubstr("enough"));
}

TEST(Embedding, wrong_modules_are_named) {
  const ModelFolder folder("embed");
  const auto reason = [&](const std::string& modules) {
    folder.write("modules.json", modules);
    return error_of([&] { SentenceEncoder::from_folder(folder.path()); });
  };
  const std::string transformer = R"({"path": "", "type": "sentence_transformers.models.Transformer"})";
  EXPECT_THAT(reason("[" + transformer + R"(, {"path": "1", "type": "sentence_transformers.models.CNN"}])"),
              HasSubstr("the module 'sentence_transformers.models.CNN' is not supported; Transformer, Pooling, Dense"));
  EXPECT_THAT(reason("[" + transformer + "]"), HasSubstr("it names no Pooling"));
  EXPECT_THAT(reason(R"([{"path": "../x", "type": "sentence_transformers.models.Transformer"}])"),
              HasSubstr("the path '../x' leads out of the model's folder"));
  EXPECT_THAT(reason("{"), HasSubstr("modules.json"));
  folder.write("1_Pooling/config.json", R"({"pooling_mode": "median"})");
  EXPECT_THAT(reason("[" + transformer + R"(, {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])"),
              HasSubstr("there is no pooling 'median'; expected one of cls, max, mean"));
}

TEST(Embedding, prompts_have_names) {
  const ModelFolder folder("embed");
  folder.write("config_sentence_transformers.json", R"({"prompts": {"query": "who "}, "default_prompt_name": "query"})");
  const SentenceEncoder encoder = SentenceEncoder::from_folder(folder.path());
  const std::string text[] = {"river"}, whole[] = {"who river"};
  EmbedOptions none;
  none.prompt = "";
  EXPECT_TRUE(equal(encoder.embed(text), encoder.embed(whole, none)));
  EXPECT_FALSE(equal(encoder.embed(text), encoder.embed(text, none)));
  EmbedOptions other;
  other.prompt_name = "passage";
  EXPECT_THAT(error_of([&] { encoder.embed(text, other); }), HasSubstr("there is no prompt 'passage'; the model has query"));
}

TEST(Chatting, a_conversation_is_read_once_and_goes_on) {
  const test::TemporaryFolder place;
  const std::string folder = place.copy(test::source_folder() + "/assets/tiny-lm", "model");
  EXPECT_THAT(error_of([&] { Chat::from_folder(folder); }), HasSubstr("the model has no chat template"));
  place.write("model/chat_template.jinja",
              "{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}assistant:");
  Chat chat = Chat::from_folder(folder, {.dtype = DType::float32});
  chat.settings.max_new_tokens = 8;
  chat.system("The people of the United States");
  std::string shown;
  const std::string first = chat.say("Call me", [&](std::string_view text) { shown += text; }).text;
  EXPECT_EQ(shown, first);
  const ChatTurn second = chat.say("and then?");
  ASSERT_EQ(chat.history().size(), 5U);
  // The whole conversation, read anew.
  const std::vector<int64_t> ids = chat.tokenizer().encode_ids(
      "system: The people of the United States\nuser: Call me\nassistant: " + first + "\nuser: and then?\nassistant:",
      false);
  EXPECT_EQ(second.prompt_tokens, std::ssize(ids));
  const Tensor all =
      generate(chat.model(), {{arg::input_ids, tensor_of<int64_t>(ids, {1, std::ssize(ids)})}}, chat.settings).sequences;
  std::vector<int64_t> expected_ids = rows_of(all)[0];
  expected_ids.erase(expected_ids.begin(), expected_ids.begin() + std::ssize(ids));
  EXPECT_EQ(second.ids, expected_ids);
  chat.forget();
  EXPECT_EQ(chat.history().size(), 1U);
  EXPECT_THAT(error_of([&] { chat.say(std::string(5000, 'x')); }), HasSubstr("begin a new one"));
  EXPECT_EQ(chat.history().size(), 1U);
}

TEST(Writing, models_that_write_no_texts_of_texts_are_refused) {
  EXPECT_THAT(
      error_of([&] { TextToText::from_folder(test::source_folder() + "/assets/tiny-lm"); }),
      HasSubstr("TextToText needs a model for seq2seq-lm, but LlamaForCausalLM is for causal-lm; take a model of another "
                "architecture: bart, blenderbot, "));
}

}  // namespace
}  // namespace calque::task_test
