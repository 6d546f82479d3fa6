// The text commands, run as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "calque/file/npy.h"
#include "calque/file/safetensors.h"
#include "calque/op/aten/ternary.h"
#include "cli/cli_support.h"
#include "task/task_support.h"

namespace calque::task_test {
namespace {

using cli_test::calque_run;
using cli_test::Result;
using cli_test::shell_run;
using task_test::expected;
using task_test::ModelFolder;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<nlohmann::json> json_lines(const std::string& arguments) {
  const Result r = calque_run(arguments + " --json");
  EXPECT_EQ(r.status, 0) << r.out;
  std::vector<nlohmann::json> out;
  std::istringstream in(r.out);
  for (std::string line; std::getline(in, line);) out.push_back(nlohmann::json::parse(line));
  return out;
}

TEST(TaskCommands, tokenize_shows_ids_tokens_and_places) {
  const ModelFolder folder("embed");
  EXPECT_THAT(calque_run("tokenize " + folder.path().string() + " -p 'young city'").out,
              AllOf(HasSubstr("id  token  begin  end\n"), HasSubstr("2  [CLS]      0    0\n"), HasSubstr("city")));
  const auto json = json_lines("tokenize " + folder.path("tokenizer.json") + " -p 'young city'");
  EXPECT_EQ(json.at(0)["tokens"], nlohmann::json({"[CLS]", "young", "city", "[SEP]"}));
  EXPECT_EQ(json.at(0)["offsets"], nlohmann::json({{0, 0}, {0, 5}, {6, 10}, {0, 0}}));
  folder.write("lines", "old\r\n\nriver");
  const auto lines = json_lines("tokenize " + folder.path().string() + " --file " + folder.path("lines"));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1]["tokens"], nlohmann::json({"[CLS]", "[SEP]"}));
  EXPECT_EQ(calque_run("tokenize " + folder.path().string() + " --no-special-tokens -p '' --file x").status, 2);
}

TEST(TaskCommands, embed_writes_a_row_a_line) {
  const ModelFolder folder("embed");
  std::string text;
  for (const auto& line : expected()["texts"]) text += line.get<std::string>() + "\n";
  folder.write("lines", text);
  const std::string command = "embed " + folder.path().string() + " --file " + folder.path("lines");
  const auto lines = json_lines(command);
  ASSERT_EQ(lines.size(), 4U);
  for (size_t i = 0; i < 4; ++i)
    for (size_t k = 0; k < 8; ++k)
      EXPECT_NEAR(lines[i]["embedding"][k].get<double>(), expected()["means"][i][k].get<double>(), 1e-5);
  EXPECT_THAT(calque_run(command + " -o " + folder.path("x.npy")).out, HasSubstr("x.npy: 4 texts, 8 numbers each"));
  EXPECT_EQ(calque_run(command + " -o " + folder.path("x.safetensors")).status, 0);
  EXPECT_EQ(calque_run(command + " -o " + folder.path("x.jsonl")).status, 0);
  const Tensor vectors = load_npy(folder.path("x.npy"));
  EXPECT_TRUE(equal(vectors, SafetensorsFile::open(folder.path("x.safetensors")).tensor("embeddings")));
  std::istringstream written(test::read_file(folder.path("x.jsonl")));
  std::string line;
  std::getline(written, line);
  EXPECT_EQ(nlohmann::json::parse(line), lines[0]);
  EXPECT_THAT(calque_run(command).out, StartsWith("tensor([["));
  EXPECT_THAT(calque_run(command + " -o x.txt").out,
              HasSubstr("x.txt: its ending says what is written; expected .npy, .safetensors or .jsonl"));
  EXPECT_THAT(calque_run(command + " --pool median").out, HasSubstr("there is no pooling 'median'"));
}

TEST(TaskCommands, classify_shows_labels_and_scores) {
  const ModelFolder folder("single_label_classification");
  const std::string text = expected()["texts"][0];
  const auto& said = expected()["single_label_classification"][0];
  const Result one = calque_run("classify " + folder.path().string() + " -p '" + text + "'");
  EXPECT_THAT(one.out, AllOf(StartsWith("label"), HasSubstr(said[0]["label"].get<std::string>()), HasSubstr(text)));
  const auto json = json_lines("classify " + folder.path().string() + " --top 3 -p '" + text + "'");
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(json.at(0)["labels"][i]["label"], said[i]["label"]);
    EXPECT_NEAR(json.at(0)["labels"][i]["score"].get<double>(), said[i]["score"].get<double>(), 1e-5);
  }
  EXPECT_THAT(calque_run("classify " + folder.path().string() + " --pairs -p 'no tab'").out,
              HasSubstr("text 1 has no tab; expected two texts with a tab between them"));
  EXPECT_THAT(calque_run("classify " + folder.path().string()).out, HasSubstr("classify: give the text with -p"));
  EXPECT_THAT(calque_run("classify tiny-lm -p x").out,
              HasSubstr("but LlamaForCausalLM is for causal-lm; take a model trained for it, of the class "));
}

TEST(TaskCommands, fill_and_answer_print_tables_and_json) {
  const ModelFolder fill("fill"), answer("answer");
  const Result filled = calque_run("fill " + fill.path().string() + " -p 'Anna [MASK] the old bridge.'");
  EXPECT_THAT(filled.out, AllOf(StartsWith("mask  token"), HasSubstr(expected()["fill"][0]["sequence"].get<std::string>())));
  answer.write("context", expected()["context"].get<std::string>());
  const auto json = json_lines("answer " + answer.path().string() + " -p 'Who found the river?' --context-file " +
                               answer.path("context") + " --top 3 --max-length 40 --stride 10 --may-be-impossible");
  EXPECT_EQ(json.at(0)["answers"][0]["answer"], expected()["answers"][0]["answer"]);
  EXPECT_THAT(calque_run("answer " + answer.path().string() + " -p 'Who?'").out, HasSubstr("--context or --context-file"));
}

TEST(TaskCommands, forward_shows_values) {
  const ModelFolder folder("single_label_classification");
  const std::string command = "forward " + folder.path().string() + " -p 'old river' -p old";
  EXPECT_THAT(calque_run(command).out, AllOf(HasSubstr("logits  float32  [2, 3]\n"), HasSubstr("\nlogits =\ntensor([[")));
  EXPECT_THAT(calque_run(command + " --dtype bfloat16").out, HasSubstr("dtype=torch.bfloat16"));
  const auto json = nlohmann::json::parse(calque_run(command + " --json").out);
  EXPECT_EQ(json["logits"]["shape"], nlohmann::json({2, 3}));
  EXPECT_TRUE(json["logits"]["values"][1][2].is_number_float());
  std::string longer;
  for (int i = 0; i < 80; ++i) longer += "city ";
  EXPECT_THAT(calque_run("forward " + folder.path().string() + " -p '" + longer + "'").out,
              HasSubstr("a text has 82 tokens, but BertForSequenceClassification reads at most 64"));
}

TEST(TaskCommands, what_two_texts_give_does_not_depend_on_being_together) {
  const ModelFolder folder("single_label_classification");
  const auto scores = [&](const std::string& prompts) {
    return nlohmann::json::parse(
        calque_run("forward " + folder.path().string() + prompts + " --json").out)["logits"]["values"];
  };
  const auto both = scores(" -p 'old river in the city' -p 'Anna'"), one = scores(" -p 'Anna'");
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(both[1][i].get<double>(), one[0][i].get<double>(), 1e-5);
}

TEST(TaskCommands, generate_tells_of_lengths_and_temperatures) {
  for (const char* command : {"generate", "chat", "summarize", "translate"})
    EXPECT_THAT(calque_run(std::string(command) + " tiny-lm -p x --temperature 0").out,
                HasSubstr(std::string(command) + ": --temperature 0 divides by zero; --greedy takes the likeliest token"));
  std::string longer;
  for (int i = 0; i < 600; ++i) longer += "and ";
  const Result r = calque_run("generate tiny-lm -p '" + longer + "' --greedy -n 2");
  EXPECT_THAT(r.out,
              AllOf(HasSubstr("tokens, but the model reads at most 512 at once"), HasSubstr("512 positions, and goes on")));
  EXPECT_THAT(calque_run("generate tiny-lm -p x --greedy -n 4").out, Not(HasSubstr("warning")));
}

TEST(TaskCommands, chat_answers_each_line_of_a_conversation) {
  const ModelFolder place("embed");
  const std::string folder = place.copy(test::source_folder() + "/assets/tiny-lm", "model");
  EXPECT_THAT(calque_run("chat " + folder + " -p hello").out, HasSubstr("the model has no chat template"));
  place.write("model/chat_template.jinja",
              "{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}assistant:");
  place.write("turns", "Call me\nand then?\n");
  const auto answers =
      json_lines("chat " + folder + " --system 'The people' --file " + place.path("turns") + " -n 6 --greedy");
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0]["role"], "assistant");
  EXPECT_GT(answers[1]["prompt_tokens"], answers[0]["prompt_tokens"]);
  const Result piped = shell_run("$CALQUE chat " + folder + " --system 'The people' -n 6 --greedy < " + place.path("turns"));
  EXPECT_EQ(piped.out, answers[0]["content"].get<std::string>() + "\n" + answers[1]["content"].get<std::string>() + "\n");
}

TEST(TaskCommands, translate_asks_for_languages_that_there_are) {
  EXPECT_THAT(calque_run("translate tiny-lm -p x --from en --to de").out,
              HasSubstr("needs a model for seq2seq-lm, but LlamaForCausalLM is for causal-lm"));
}

}  // namespace
}  // namespace calque::task_test
