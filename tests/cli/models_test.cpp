// Models on the command line, run as a user runs them: tiny-lm, copies of it, and folders that are broken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "calque/file/safetensors.h"
#include "cli/cli_support.h"
#include "support/folder_support.h"
#include "support/paths.h"

namespace calque::models_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using cli_test::calque_run;
using cli_test::Result;
using cli_test::shell_run;

class Models : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }
  std::string copy(const std::string& name) const {
    return folder_.copy(fs::path(test::source_folder()) / "assets/tiny-lm", name);
  }
  void write(const std::string& name, const std::string& text) const { folder_.write(name, text); }

 private:
  const test::TemporaryFolder folder_;
};

TEST_F(Models, info_says_what_a_model_is) {
  const Result r = calque_run("info tiny-lm");
  EXPECT_EQ(r.status, 0) << r.out;
  EXPECT_THAT(r.out,
              AllOf(StartsWith("tiny-lm: LlamaForCausalLM (llama), 3,148,224 parameters, 6.3 MB, 6.3 MFLOPs a token\n"),
                    HasSubstr("hidden_size                 192"), HasSubstr("bfloat16       56   3,148,224  6,296,448"),
                    HasSubstr("model.safetensors  6,302,472"), HasSubstr("forward takes input_ids, attention_mask")));
  const auto json = nlohmann::json::parse(calque_run("info tiny-lm --json").out);
  EXPECT_EQ(json["class"], "LlamaForCausalLM");
  // 2 for each weight of the products (torch.utils.flop_counter counts 6291456), and attention over 7 tokens.
  EXPECT_EQ(json["flops_per_token"], 6291456 + 6 * 2 * 7 * 6 * (32 + 32));
}

TEST_F(Models, generate_reproduces_the_reference) {
  const auto reference = nlohmann::json::parse(std::ifstream(test::source_folder() + "/assets/tiny-lm/reference.json"));
  const Result r = calque_run("generate tiny-lm -p 'The people of the United States' --greedy -n 48 --dtype float32");
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.out, reference[0]["greedy_text"].get<std::string>() + "\n");
  const Result json =
      calque_run("generate tiny-lm -p 'The people of the United States' --greedy -n 48 --dtype float32 --json");
  EXPECT_EQ(nlohmann::json::parse(json.out)["sequences"][0]["ids"], reference[0]["greedy_ids"]);
  const Result alone =
      calque_run("generate tiny-lm -p 'The people of the United States' --greedy -n 4 --dtype float32 --no-prompt");
  EXPECT_EQ(alone.out, ", and the other\n");
}

TEST_F(Models, H245_with_candidates_the_text_is_the_same) {
  const std::string command = "generate tiny-lm -p 'The people of the United States' --greedy -n 48 --dtype float32";
  const std::string plain = calque_run(command).out;
  EXPECT_EQ(calque_run(command + " --assistant tiny-lm").out, plain);
  EXPECT_EQ(calque_run(command + " --prompt-lookup 5").out, plain);
}

TEST_F(Models, generate_samples_the_same_from_a_seed_and_stops) {
  const std::string sample =
      "generate tiny-lm -p 'Call me' --temperature 0.9 --top-k 20 --top-p 0.95 --min-p 0.01 --repetition-penalty 1.1 -n 30 "
      "--seed ";
  const Result first = calque_run(sample + "3"), again = calque_run(sample + "3"), other = calque_run(sample + "4");
  EXPECT_EQ(first.status, 0) << first.out;
  EXPECT_EQ(first.out, again.out);
  EXPECT_NE(first.out, other.out);
  const Result stopped =
      calque_run("generate tiny-lm -p 'The people of the United States' --greedy -n 48 --dtype float32 --stop 'policy'");
  EXPECT_EQ(stopped.out, "The people of the United States, and the other States have been the same policy\n");
  EXPECT_THAT(calque_run("generate tiny-lm -p '' --greedy").out,
              HasSubstr("The model ended the text at once, there being no"));
  EXPECT_EQ(calque_run("generate tiny-lm -p '' --greedy -n 4 --set min_new_tokens=4").out.find("at once"),
            std::string::npos);
  const std::string piped = "printf 'Call me' | $CALQUE generate tiny-lm --greedy -n 4";
  EXPECT_EQ(shell_run(piped).out, calque_run("generate tiny-lm -p 'Call me' --greedy -n 4").out);
  EXPECT_EQ(shell_run(piped + " -p -").out, shell_run(piped).out);
  EXPECT_THAT(shell_run("$CALQUE generate tiny-lm --greedy </dev/null").out, HasSubstr("there being no prompt"));
  EXPECT_THAT(calque_run("generate tiny-lm -p x --set do_samples=true").out, HasSubstr("there is no setting `do_samples`"));
  EXPECT_THAT(calque_run("generate tiny-lm -p x --temperature -1").out, HasSubstr("temperature"));
}

TEST_F(Models, trace_shows_both_levels) {
  const Result aten = calque_run("trace tiny-lm");
  EXPECT_EQ(aten.status, 0) << aten.out;
  EXPECT_THAT(aten.out, AllOf(HasSubstr("%input_ids_1 : i64[s0, s1]"), HasSubstr("aten.mm.default"),
                              HasSubstr("return {'logits': %")));
  const Result fx = calque_run("trace tiny-lm --level fx");
  EXPECT_EQ(fx.status, 0) << fx.out;
  EXPECT_THAT(fx.out,
              AllOf(HasSubstr("call_module[model.layers.5.mlp.down_proj]"), HasSubstr("return {'logits': %lm_head}")));
}

TEST_F(Models, trace_takes_the_names_of_inputs_and_checks_the_graph) {
  const std::string fx = "trace tiny-lm --level fx --input-names ";
  const Result checked = calque_run(fx + "input_ids,attention_mask --check --to-folder " + path("package"));
  EXPECT_EQ(checked.status, 0) << checked.out;
  EXPECT_THAT(checked.out, AllOf(HasSubstr("%attention_mask : i64[s0, s1] as 'torch.Tensor' = placeholder"),
                                 HasSubstr("length 9: equal")));
  for (const char* file : {"package/module.py", "package/__init__.py", "package/state_dict.pt", "package/graph.txt"})
    EXPECT_TRUE(std::filesystem::exists(path(file))) << file;
  const Result labels = calque_run(fx + "input_ids,labels --check");
  EXPECT_EQ(labels.status, 0) << labels.out;
  EXPECT_THAT(labels.out, AllOf(HasSubstr("call_module[crossentropyloss_0]"), HasSubstr("2 outputs of graph and model")));
  const Result wrong = calque_run(fx + "input_ids,pixels");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.out, HasSubstr("expected a subset of the following: input_ids, attention_mask"));
  EXPECT_THAT(calque_run(fx + "input_ids,,labels").out, HasSubstr("has an empty name"));
  EXPECT_THAT(calque_run("trace mlp --level fx --check").out, HasSubstr("--check is for a model folder with --level fx"));
  EXPECT_THAT(calque_run("trace tiny-lm --input-names input_ids").out, HasSubstr("--input-names is for a model folder"));
}

// A weight that is no number: nothing equals what comes of it.
TEST_F(Models, trace_check_ends_with_1_where_graph_and_model_differ) {
  ASSERT_EQ(calque_run("save tiny-lm --dtype float32 -o " + path("nan")).status, 0);
  std::fstream file(path("nan/model.safetensors"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-4, std::ios::end);
  file.write("\x00\x00\xC0\x7F", 4);
  file.close();
  const Result checked = calque_run("trace " + path("nan") + " --level fx --input-names input_ids --check");
  EXPECT_EQ(checked.status, 1) << checked.out;
  EXPECT_THAT(checked.out, AllOf(HasSubstr("length 9: different"), HasSubstr("logits differs by nan")));
}

TEST_F(Models, exported_models_run_at_other_sizes) {
  for (const std::string& dynamic :
       {std::string(), std::string(" --dynamic input_ids=batch,seq --dynamic attention_mask=batch,seq")}) {
    const Result exported = calque_run("export tiny-lm -o " + path("p.pt2") + dynamic);
    EXPECT_EQ(exported.status, 0) << exported.out;
    const Result forward =
        calque_run("forward tiny-lm -p 'The people of the United States' -p 'Call me Ishmael.' --save-inputs " +
                   path("in.safetensors") + " --outputs " + path("a.safetensors"));
    EXPECT_EQ(forward.status, 0) << forward.out;
    EXPECT_THAT(forward.out, HasSubstr("logits  bfloat16  [2, 8, 4096]"));
    const Result run =
        calque_run("run " + path("p.pt2") + " --inputs " + path("in.safetensors") + " --outputs " + path("b.safetensors"));
    EXPECT_EQ(run.status, 0) << run.out;
    const Result diff = calque_run("diff " + path("a.safetensors") + " " + path("b.safetensors") + " --tol 0");
    EXPECT_EQ(diff.status, 0) << diff.out;
  }
  // One row, one token: the program is the same.
  EXPECT_EQ(calque_run("forward tiny-lm -p A --save-inputs " + path("one.safetensors")).status, 0);
  EXPECT_THAT(calque_run("info " + path("one.safetensors")).out, HasSubstr("[1, 1]"));
  const Result small = calque_run("export tiny-lm -o " + path("one.pt2") + " --inputs " + path("one.safetensors"));
  EXPECT_EQ(small.status, 0) << small.out;
  const Result run =
      calque_run("run " + path("one.pt2") + " --inputs " + path("in.safetensors") + " --outputs " + path("c.safetensors"));
  EXPECT_EQ(run.status, 0) << run.out;
  EXPECT_EQ(calque_run("diff " + path("a.safetensors") + " " + path("c.safetensors") + " --tol 0").status, 0);
  const Result fixed = calque_run("export tiny-lm --static -o " + path("p.pt2"));
  EXPECT_EQ(fixed.status, 0) << fixed.out;
  EXPECT_THAT(calque_run("info " + path("p.pt2")).out, HasSubstr("int64 [2, 7]"));
}

TEST_F(Models, diff_of_models) {
  const std::string other = copy("other");
  EXPECT_THAT(calque_run("diff tiny-lm " + other).out,
              StartsWith("the same configuration\nsame: 57 tensors in both, 0 different"));
  auto config = nlohmann::json::parse(std::ifstream(other + "/config.json"));
  config["rms_norm_eps"] = 1e-6;
  write("other/config.json", config.dump());
  const Result r = calque_run("diff tiny-lm " + other);
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.out, HasSubstr("configurations differ: rms_norm_eps 1e-05 and 1e-06"));
}

TEST_F(Models, what_is_wrong_with_a_folder_is_said_in_one_line) {
  const auto error_of = [](const std::string& folder) {
    const Result r = calque_run("generate " + folder + " -p x");
    EXPECT_EQ(r.status, 2) << r.out;
    EXPECT_THAT(r.out, StartsWith("calque: ")) << r.out;
    return r.out;
  };
  EXPECT_THAT(error_of(path("nowhere")), HasSubstr("nowhere"));
  fs::create_directory(path("empty"));
  EXPECT_THAT(error_of(path("empty")), AllOf(HasSubstr("config.json"), HasSubstr("empty")));

  const std::string lost = copy("lost");
  fs::remove(lost + "/model.safetensors");
  EXPECT_THAT(error_of(lost), AllOf(HasSubstr("model.safetensors"), HasSubstr("lost")));

  const std::string pointer = copy("pointer");
  write("pointer/model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 6302472\n");
  EXPECT_THAT(error_of(pointer), HasSubstr("Git LFS"));

  const std::string cut = copy("cut");
  fs::resize_file(cut + "/model.safetensors", 1000000);
  EXPECT_THAT(error_of(cut), HasSubstr("model.safetensors"));

  const std::string sharded = copy("sharded");
  fs::remove(sharded + "/model.safetensors");
  write("sharded/model.safetensors.index.json",
        R"({"metadata": {}, "weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors"}})");
  EXPECT_THAT(error_of(sharded), HasSubstr("model-00001-of-00002.safetensors"));

  const std::string unknown = copy("unknown");
  auto config = nlohmann::json::parse(std::ifstream(unknown + "/config.json"));
  config["model_type"] = "lama";
  config["architectures"] = {"LamaForCausalLM"};
  write("unknown/config.json", config.dump());
  EXPECT_THAT(error_of(unknown), HasSubstr("lama"));

  const std::string silent = copy("silent");
  fs::remove(silent + "/tokenizer.json");
  EXPECT_THAT(error_of(silent), HasSubstr("tokenizer.json"));
}

}  // namespace
}  // namespace calque::models_test
