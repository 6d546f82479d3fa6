// What all commands have in common: --json with real types, --threads, --quiet, and where a model is read --dtype and --variant. The
// table has a row a command, and a test asks `calque --help` for those that it lacks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/cli_support.h"
#include "support/folder_support.h"
#include "support/paths.h"

namespace calque::common_options_test {
namespace {

namespace fs = std::filesystem;
using cli_test::Result;
using cli_test::shell_run;
using testing::HasSubstr;
using testing::Not;

struct Command {
  std::string name;
  std::string model;      // the folder that it reads; empty: no model
  std::string arguments;  // behind the model
  bool lines = false;     // its JSON is a document a line
};

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      {"generate", "lm", "-p 'Call me' -n 2 --greedy"},
      {"forward", "lm", "-p 'Call me'"},
      {"tokenize", "", "lm -p 'Call me'", true},
      {"embed", "embed", "-p river -p 'old city'", true},
      {"classify", "single_label_classification", "-p river", true},
      {"fill", "fill", "-p 'the [MASK] city'", true},
      {"answer", "answer", "-p who --context 'Anna found the river.'", true},
      {"summarize", "writer", "-p 'a b' -n 3", true},
      {"translate", "writer", "-p 'a b' -n 3", true},
      {"chat", "lm", "-p 'Call me' -n 2 --greedy", true},
      {"info", "lm", ""},
      {"models", "", "llama"},
      {"diff", "lm", "lm"},
      {"save", "lm", "-o saved"},
      {"trace", "lm", ""},
      {"export", "lm", "-o lm.pt2"},
      {"compile", "lm", "-o compiled.pt2"},
      {"bench", "lm", "-n 1"},
      {"profile", "lm", "-n 1"},
      {"run", "", "mlp.pt2 --inputs x.safetensors"},
  };
  return all;
}

class CommonOptions : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TemporaryFolder;
    const fs::path tests = fs::path(test::source_folder()) / "tests";
    folder_->copy(fs::path(test::source_folder()) / "assets/tiny-lm", "lm");
    folder_->write("lm/chat_template.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
    for (const char* name : {"embed", "single_label_classification", "fill", "answer"}) {
      folder_->copy(tests / "task/golden" / name, name);
      for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
        fs::copy(tests / "task/golden/tokenizer" / file, folder_->path() / name / file);
    }
    folder_->copy(tests / "zoo/golden/t5", "writer");
    folder_->write("writer/tokenizer.json", R"({"version": "1.0", "added_tokens": [
      {"id": 0, "content": "<pad>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
      {"id": 1, "content": "</s>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}],
      "normalizer": null, "pre_tokenizer": {"type": "Whitespace"}, "decoder": null, "truncation": null, "padding": null,
      "post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "</s>", "type_id": 0}}], "pair": [],
        "special_tokens": {"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}}},
      "model": {"type": "WordLevel", "unk_token": "<pad>", "vocab": {"<pad>": 0, "</s>": 1, "a": 2, "b": 3}}})");
    folder_->write("writer/tokenizer_config.json", R"({"pad_token": "<pad>", "eos_token": "</s>"})");
    for (const Command& command : commands())
      if (!command.model.empty() && !fs::exists(folder_->path() / (command.model + "-variant"))) {
        const std::string variant = folder_->copy(folder_->path() / command.model, command.model + "-variant");
        fs::rename(fs::path(variant) / "model.safetensors", fs::path(variant) / "model.fp16.safetensors");
        const std::string cached = "hub/models--org--" + command.model;
        folder_->write(cached + "/refs/main", "abc");
        folder_->copy(folder_->path() / command.model, cached + "/snapshots/abc");
      }
    ASSERT_EQ(run("$CALQUE export mlp -o mlp.pt2 --dynamic 'x=n,*' -q").status, 0);
    // float32 [3, 16], all zero.
    std::string file("\x40\0\0\0\0\0\0\0", 8);
    std::string header = R"({"x":{"dtype":"F32","shape":[3,16],"data_offsets":[0,192]}})";
    header.resize(0x40, ' ');
    folder_->write("x.safetensors", file + header + std::string(192, '\0'));
  }
  static void TearDownTestSuite() { delete folder_; }

  static Result run(const std::string& command) { return shell_run("cd '" + folder_->path("") + "' && " + command); }
  static std::string line(const Command& command, const std::string& options, const std::string& kind = "") {
    return "$CALQUE " + command.name + " " + (command.model.empty() ? "" : command.model + kind) + " " + command.arguments +
           " " + options;
  }

 private:
  static test::TemporaryFolder* folder_;
};
test::TemporaryFolder* CommonOptions::folder_ = nullptr;

// A number or a truth value that was written as a text.
void expect_real_types(const nlohmann::json& json, const std::string& where) {
  if (json.is_structured()) {
    for (const auto& [key, value] : json.items()) expect_real_types(value, where + "/" + key);
  } else if (json.is_string()) {
    const std::string text = json.get<std::string>();
    EXPECT_THAT(text, Not(testing::AnyOf("true", "false", "True", "False", "None", "null"))) << where;
    EXPECT_TRUE(text.empty() || text.find_first_not_of("0123456789.-+e") != std::string::npos) << where << ": " << text;
  }
}

TEST_F(CommonOptions, the_table_has_every_command) {
  std::istringstream help(run("$CALQUE --help").out);
  std::vector<std::string> in_help, in_table;
  bool listed = false;  // behind the groups' titles, before the examples
  for (std::string line; std::getline(help, line);) {
    if (!line.empty() && line[0] != ' ') listed = line.ends_with(":") && line != "Options:" && line[0] != '`';
    if (listed && line.starts_with("  ")) in_help.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  for (const Command& command : commands()) in_table.push_back(command.name);
  // Their models and files are those of the tests of media; here their help alone.
  for (const char* name : {"segment", "match", "transcribe"}) {
    EXPECT_THAT(run(std::string("$CALQUE ") + name + " --help").out,
                testing::AllOf(HasSubstr("--json"), HasSubstr("--dtype")));
    in_table.emplace_back(name);
  }
  EXPECT_THAT(in_help, testing::UnorderedElementsAreArray(in_table));
}

TEST_F(CommonOptions, json_has_real_types) {
  for (const Command& command : commands()) {
    const Result r = run(line(command, "--json"));
    ASSERT_EQ(r.status, 0) << command.name << "\n" << r.out;
    std::istringstream in(r.out);
    size_t documents = 0;
    for (std::string text; command.lines ? !!std::getline(in, text) : documents == 0; ++documents) {
      const nlohmann::json json = nlohmann::json::parse(command.lines ? text : r.out, nullptr, false);
      ASSERT_FALSE(json.is_discarded()) << command.name << "\n" << r.out;
      if (command.name != "trace") expect_real_types(json, command.name);  // names of nodes and arguments are texts
    }
    EXPECT_GT(documents, 0U) << command.name;
  }
}

TEST_F(CommonOptions, a_name_in_the_cache_of_the_hub_stands_for_its_folder) {
  for (Command command : commands()) {
    if (command.model.empty()) continue;
    command.model = "org/" + command.model;
    const Result r = run("HF_HUB_CACHE=$PWD/hub " + line(command, ""));
    EXPECT_EQ(r.status, 0) << command.name << "\n" << r.out;
  }
}

TEST_F(CommonOptions, threads_and_quiet_stand_behind_every_command) {
  for (const Command& command : commands()) {
    const Result both = run(line(command, "--threads 1")), quiet = run(line(command, "--threads 1 --quiet 2>&1 >/dev/null"));
    EXPECT_EQ(both.status, 0) << command.name << "\n" << both.out;
    EXPECT_EQ(quiet.status, 0) << command.name;
    EXPECT_EQ(quiet.out, "") << command.name << " says something on standard error";
    EXPECT_EQ(run(line(command, "--threads none")).status, 2) << command.name;
  }
}

TEST_F(CommonOptions, a_dtype_has_all_its_names_wherever_a_model_is_read) {
  for (const Command& command : commands()) {
    if (command.model.empty()) continue;
    for (const char* dtype : {"fp32", "bfloat16", "auto"}) {
      const Result r = run(line(command, std::string("--dtype ") + dtype));
      EXPECT_EQ(r.status, 0) << command.name << " " << dtype << "\n" << r.out;
    }
    EXPECT_THAT(run(line(command, "--dtype int4")).out, HasSubstr("expected auto, float32 (fp32)")) << command.name;
  }
}

TEST_F(CommonOptions, each_name_of_a_dtype_is_that_dtype) {
  const std::vector<std::pair<std::string, std::string>> names = {
      {"fp16", "float16"},      {"half", "float16"},          {"float16", "float16"}, {"bf16", "bfloat16"},
      {"bfloat16", "bfloat16"}, {"fp32", "float32"},          {"float", "float32"},   {"FP32", "float32"},
      {"fp64", "float64"},      {"torch.float16", "float16"}, {"auto", "bfloat16"}};
  for (const auto& [name, dtype] : names) {
    EXPECT_THAT(run("$CALQUE forward lm -p 'Call me' --json --dtype " + name).out,
                HasSubstr("\"dtype\": \"" + dtype + "\""));
    EXPECT_THAT(run("$CALQUE info lm --json --dtype " + name).out, HasSubstr("\"" + dtype + "\": {")) << name;
  }
  EXPECT_THAT(run("$CALQUE trace lm --dtype fp16").out, HasSubstr("f16["));
  EXPECT_THAT(run("$CALQUE export lm -o half.pt2 -q --dtype fp16 && $CALQUE info half.pt2").out,
              HasSubstr("logits  float16"));
  EXPECT_THAT(run("$CALQUE save lm -o half --dtype fp16 -q && $CALQUE info half").out, HasSubstr("float16       56"));
  EXPECT_THAT(run("$CALQUE diff half lm").out, HasSubstr("bfloat16"));
  EXPECT_THAT(run("$CALQUE diff half lm --dtype fp16").out, HasSubstr("same: 57 tensors in both, 0 different"));
}

TEST_F(CommonOptions, options_of_models_are_refused_for_what_is_none) {
  for (const char* command :
       {"trace mlp", "trace mlp.pt2", "export mlp -o x.pt2", "bench mlp", "bench mlp.pt2", "profile mlp",
        "info x.safetensors", "info mlp.pt2", "diff mlp.pt2 mlp.pt2", "diff x.safetensors x.safetensors"})
    EXPECT_THAT(run(std::string("$CALQUE ") + command + " --dtype fp16").out,
                HasSubstr("--dtype is for model folders, and "))
        << command;
}

TEST_F(CommonOptions, a_variant_is_read_wherever_a_model_is) {
  for (Command command : commands()) {
    if (command.model.empty()) continue;
    if (command.name == "diff") command.arguments = "lm-variant";
    // What `save` writes may be a variant too, so its option for what it reads has another name.
    const Result r = run(line(command, command.name == "save" ? "--from-variant fp16" : "--variant fp16", "-variant"));
    EXPECT_EQ(r.status, 0) << command.name << "\n" << r.out;
    EXPECT_THAT(run(line(command, "", "-variant")).out, HasSubstr("model.safetensors")) << command.name;
  }
}

}  // namespace
}  // namespace calque::common_options_test
