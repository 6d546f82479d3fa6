// The program's commands, run as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "calque/file/npy.h"
#include "calque/file/npz.h"
#include "calque/file/safetensors.h"
#include "cli/cli_support.h"
#include "support/folder_support.h"
#include "support/paths.h"

namespace calque::cli_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using cli_test::calque_run;
using cli_test::Result;

class Cli : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }
  std::string save(const std::string& name, const NamedTensors& tensors,
                   const std::optional<SafetensorsMetadata>& metadata = {}) const {
    save_safetensors(path(name), tensors, metadata, true, SharedTensors::written_each);
    return path(name);
  }

 private:
  const test::TemporaryFolder folder_;
};

const float nan = std::numeric_limits<float>::quiet_NaN();
Tensor f32(std::vector<float> v) {
  const auto n = static_cast<int64_t>(v.size());
  return tensor_of<float>(v, {n});
}
Tensor f64(std::vector<double> v) {
  const auto n = static_cast<int64_t>(v.size());
  return tensor_of<double>(v, {n});
}
Tensor i64(std::vector<int64_t> v) {
  const auto n = static_cast<int64_t>(v.size());
  return tensor_of<int64_t>(v, {n});
}

TEST_F(Cli, info_shows_tensors_totals_and_metadata) {
  const std::string p = save(
      "x.safetensors", {{"weight", make_tensor({1000, 20}, DType::float32)}, {"bias", make_tensor({20}, DType::bfloat16)}},
      SafetensorsMetadata{{"format", "pt"}, {"evil", "\x1b[31m"}});
  const Result r = calque_run("info " + p);
  EXPECT_EQ(r.status, 0);
  EXPECT_THAT(r.out, AllOf(HasSubstr("2 tensors, 20,020 parameters"), HasSubstr("format: pt"), HasSubstr("evil: \\x1b[31m"),
                           HasSubstr("weight  F32    [1000, 20]      20,000  80,000"), HasSubstr("bias    BF16   [20]")));
  EXPECT_THAT(r.out, HasSubstr("total        2      20,020  80,040"));
}

TEST_F(Cli, info_json) {
  const std::string p =
      save("x.safetensors", {{"w", make_tensor({2, 3}, DType::float16)}, {"e", make_tensor({0}, DType::int64)}});
  const Result r = calque_run("info --json " + p);
  EXPECT_EQ(r.status, 0);
  const auto j = nlohmann::json::parse(r.out);
  EXPECT_EQ(j["parameters"], 6);
  EXPECT_EQ(j["tensor_bytes"], 12);
  EXPECT_EQ(j["file_bytes"], std::filesystem::file_size(p));
  EXPECT_TRUE(j["metadata"].is_null());
  EXPECT_EQ(j["tensors"][1]["name"], "w");
  EXPECT_EQ(j["tensors"][1]["dtype"], "F16");
  EXPECT_EQ(j["tensors"][1]["shape"], nlohmann::json({2, 3}));
  EXPECT_EQ(j["dtypes"]["F16"]["bytes"], 12);
}

TEST_F(Cli, bad_input_is_status_2_and_one_line) {
  std::ofstream(path("bad")) << "not a tensor file";
  for (const std::string& arguments :
       {"info " + path("bad"), "info " + path("absent"), "diff " + path("bad") + " " + path("bad")}) {
    const Result r = calque_run(arguments);
    EXPECT_EQ(r.status, 2) << arguments;
    EXPECT_THAT(r.out, AllOf(testing::StartsWith("calque: "), HasSubstr(arguments.substr(5, 3)))) << arguments;
    EXPECT_EQ(std::count(r.out.begin(), r.out.end(), '\n'), 1) << r.out;
  }
  for (const char* arguments : {"info", "diff x", "diff --tol=-1 x y", "diff --tol z x y", "info --no-such x", "nonsense"})
    EXPECT_EQ(calque_run(arguments).status, 2) << arguments;
  EXPECT_EQ(calque_run("--version").status, 0);
  EXPECT_EQ(calque_run("--help").status, 0);
  EXPECT_EQ(calque_run("diff --help").status, 0);
}

TEST_F(Cli, a_file_without_a_known_beginning_is_called_what_its_name_says) {
  for (const auto& [name, expected] :
       {std::pair("x.pt2", "not a readable zip archive"), std::pair("x.bin", "not a file of torch.save"),
        std::pair("x.safetensors", "not a valid safetensors file")}) {
    std::ofstream(path(name)) << "\1\2\3";
    const Result r = calque_run("info " + path(name));
    EXPECT_EQ(r.status, 2) << name;
    EXPECT_THAT(r.out, HasSubstr(expected)) << name;
  }
}

TEST_F(Cli, safetensors_are_read_under_any_name) {
  for (const char* name : {"a.bin", "a.pt", "a.pt2", "a"}) {
    const Result r = calque_run("info " + save(name, {{"x", f32({1, 2})}}));
    EXPECT_EQ(r.status, 0) << name << r.out;
  }
}

TEST_F(Cli, diff_of_equal_files_is_0) {
  const std::string a = save("a", {{"x", f32({1, 2})}, {"n", i64({3})}}),
                    b = save("b", {{"x", f32({1, 2})}, {"n", i64({3})}});
  const Result r = calque_run("diff " + a + " " + b);
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.out, "same: 2 tensors in both, 0 different; 0 only in A, 0 only in B\n");
}

TEST_F(Cli, diff_of_names_values_dtypes_and_sizes_is_1) {
  const std::string a =
      save("a", {{"x", f32({1, 2})}, {"type", f32({1})}, {"size", f32({1, 1})}, {"left", f32({1})}, {"close", f32({1})}});
  const std::string b = save(
      "b", {{"x", f32({1, 2.5})}, {"type", i64({1})}, {"size", f32({1})}, {"right", f32({1})}, {"close", f32({1.00001F})}});
  const Result r = calque_run("diff " + a + " " + b);
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.out, AllOf(HasSubstr("different: 4 tensors in both, 3 different; 1 only in A, 1 only in B"),
                           HasSubstr("only in A (1)\n  left"), HasSubstr("only in B (1)\n  right"),
                           HasSubstr("DIFFERENT: 1 of 2 elements are outside tolerance 0.0001"), HasSubstr("F32 | I64"),
                           HasSubstr("[2] | [1]"), HasSubstr("same: within tolerance")));
  const auto j = nlohmann::json::parse(calque_run("diff --json " + a + " " + b).out);
  EXPECT_FALSE(j["same"]);
  EXPECT_EQ(j["only_in_a"], nlohmann::json({"left"}));
  EXPECT_EQ(j["tensors"][0]["name"], "x");  // the worst
  EXPECT_EQ(j["tensors"][0]["max_abs"], 0.5);
  EXPECT_EQ(j["tensors"][0]["worst"], 1);
  EXPECT_EQ(j["tensors"].size(), 4U);
  EXPECT_THAT(calque_run("diff --worst 1 " + a + " " + b).out, HasSubstr("... and 3 more"));
}

TEST_F(Cli, diff_options) {
  const std::string a = save("a", {{"x", f32({1, nan})}, {"n", i64({1})}}),
                    b = save("b", {{"x", f32({1.001F, nan})}, {"n", i64({2})}});
  EXPECT_EQ(calque_run("diff " + a + " " + b).status, 1);
  EXPECT_EQ(calque_run("diff --tol 0.01 --equal-nan " + a + " " + b).status, 1);
  EXPECT_EQ(calque_run("diff --tol 0.01 --ignore-non-float " + a + " " + b).status, 1);
  EXPECT_EQ(calque_run("diff --tol 0.01 --equal-nan --ignore-non-float " + a + " " + b).status, 0);
  EXPECT_EQ(nlohmann::json::parse(calque_run("diff --json " + a + " " + b).out)["tensors"][0]["rmse"], "nan");

  const std::string c = save("c", {{"x", f32({3, 4})}}), d = save("d", {{"x", f32({6, 8.1F})}}),
                    e = save("e", {{"x", f32({-3, 4})}});
  EXPECT_EQ(calque_run("diff " + c + " " + d).status, 1);
  EXPECT_EQ(calque_run("diff --cosine " + c + " " + d).status, 0);
  EXPECT_EQ(calque_run("diff --cosine " + c + " " + e).status, 1);

  const std::string wide = save("wide", {{"x", f64({3, 4})}});
  EXPECT_EQ(calque_run("diff " + c + " " + wide).status, 1);
  EXPECT_EQ(calque_run("diff --any-dtype " + c + " " + wide).status, 0);
}

TEST_F(Cli, diff_against_a_reference) {
  const std::string a = save("a", {{"x", f32({1.01F, 2.01F})}}), b = save("b", {{"x", f32({0.98F, 1.98F})}});
  const std::string far = save("far", {{"x", f32({0.95F, 1.95F})}});
  const std::string reference = save("reference", {{"x", f64({1, 2})}}), empty = save("empty", {});
  EXPECT_EQ(calque_run("diff " + a + " " + b).status, 1);
  EXPECT_EQ(calque_run("diff --reference " + reference + " " + a + " " + b).status, 0);
  const Result r = calque_run("diff --reference " + reference + " " + a + " " + far);
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.out, HasSubstr("rmse to the reference 0.05, more than 3 x 0.01 + 1e-05"));
  EXPECT_EQ(calque_run("diff --max-multiplier --reference " + reference + " " + a + " " + far).status, 0);
  EXPECT_EQ(calque_run("diff --reference " + empty + " " + a + " " + b).status, 2);
}

TEST_F(Cli, trace_prints_a_graph_in_every_form) {
  const auto examples = nlohmann::json::parse(calque_run("trace --list --format json").out);
  EXPECT_GE(examples.size(), 5u);
  for (const auto& example : examples) {
    const std::string name = example.at("name");
    EXPECT_THAT(calque_run("trace --list").out, HasSubstr(name));
    for (const char* mode : {"symbolic", "fake", "real"}) {
      const Result r = calque_run("trace " + name + " --mode " + mode);
      EXPECT_EQ(r.status, 0) << r.out;
      EXPECT_THAT(r.out, HasSubstr("return %"));
    }
  }
  EXPECT_THAT(calque_run("trace attention").out,
              AllOf(HasSubstr("f32[s0, s1, 32]"), HasSubstr("aten.native_layer_norm.default")));
  EXPECT_THAT(calque_run("trace mlp --level fx").out, HasSubstr("call_module[up](%x)"));
  EXPECT_THAT(calque_run("trace mlp --format code").out, HasSubstr("def forward("));
  EXPECT_THAT(calque_run("trace mlp --format table").out, HasSubstr("call_function"));
  EXPECT_EQ(nlohmann::json::parse(calque_run("trace mlp --format json").out).at("nodes")[0].at("op"), "placeholder");
  EXPECT_EQ(calque_run("trace mlp -o " + path("g.html")).status, 0);
  std::ifstream page(path("g.html"));
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(page), {}), HasSubstr("<html"));
  EXPECT_EQ(calque_run("trace mlp -o " + path("g.dot")).status, 0);
  std::ifstream dot(path("g.dot"));
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(dot), {}), HasSubstr("digraph"));
}

TEST_F(Cli, trace_explains_guards_and_specialisations) {
  const Result r = calque_run("trace branches --explain");
  EXPECT_EQ(r.status, 0);
  EXPECT_THAT(r.out, AllOf(HasSubstr("guard s0 > 4  (at examples.cpp:"),
                           HasSubstr("s1 is specialised to 8, because Eq(s1, 8)  (aten::addmm"),
                           HasSubstr("5 <= L['x'].size()[0]"), HasSubstr("L['x'].size()[1] == 8")));
  const auto guards = [&](const std::string& option) {
    const std::string out = calque_run("trace convnet --explain" + option).out;
    size_t count = 0;
    for (size_t at = out.find("\nguard "); at != std::string::npos; at = out.find("\nguard ", at + 1)) ++count;
    return count;
  };
  EXPECT_GT(guards(" --pytorch-guards"), guards(""));
  const Result unknown = calque_run("trace nothing");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.out, HasSubstr("the examples are mlp"));
}

// ---- programs -------------------------------------------------------------------------------------------------------

std::string program(const std::string& name) { return test::source_folder() + "/tests/export/golden/" + name; }

TEST_F(Cli, info_of_a_program_shows_inputs_outputs_symbols_and_state) {
  const Result text = calque_run("info " + program("two_layers_dynamic.pt2"));
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, AllOf(HasSubstr("PyTorch program, 1 model"), HasSubstr("schema 8.20, written by PyTorch 2.13.0"),
                              HasSubstr("model: training IR, 12 nodes, 5 calls of 3 operators"),
                              HasSubstr("x      float32 [s77, s27, 6]"), HasSubstr("s77     [0, 64]"),
                              HasSubstr("float32        5        90    360")));
  const Result json = calque_run("info --json " + program("custom_op.pt2"));
  EXPECT_EQ(json.status, 0);
  const auto parsed = nlohmann::json::parse(json.out);
  EXPECT_EQ(parsed["format"], "pt2");
  EXPECT_EQ(parsed["models"]["model"]["missing_operators"], nlohmann::json({"torch.ops.pt2_cases.scaled.default"}));
  EXPECT_EQ(parsed["models"]["model"]["inputs"][0]["value"], "float32 [3]");
  EXPECT_EQ(nlohmann::json::parse(calque_run("info --json " + program("several.pt2")).out)["extra_files"]["extra.txt"], 3);
}

TEST_F(Cli, info_of_a_checkpoint_in_a_pickle) {
  const Result r = calque_run("info " + test::source_folder() + "/tests/file/golden/checkpoint_legacy.pt");
  EXPECT_EQ(r.status, 0);
  EXPECT_THAT(r.out, AllOf(HasSubstr("checkpoint of torch.save, 8 tensors"), HasSubstr("turned     float32   [4, 3]")));
}

TEST_F(Cli, run_writes_outputs_by_path) {
  const Result r = calque_run("run " + program("nested_inputs.pt2") + " --inputs " + program("nested_inputs.in") +
                              " --outputs " + path("out.safetensors"));
  EXPECT_EQ(r.status, 0) << r.out;
  EXPECT_EQ(SafetensorsFile::open(path("out.safetensors")).names(),
            (std::vector<std::string>{"list.0", "list.1", "sum", "tuple.0"}));
  const Result single = calque_run("run " + program("two_layers_dynamic.pt2") + " --inputs " +
                                   program("two_layers_dynamic.in") + " --outputs " + path("single.safetensors"));
  EXPECT_EQ(single.status, 0) << single.out;
  EXPECT_EQ(calque_run("diff --tol 1e-5 " + path("single.safetensors") + " " + program("two_layers_dynamic.out")).status, 0);
}

TEST_F(Cli, run_names_what_is_missing_or_wrong) {
  const std::string p = program("two_layers_dynamic.pt2");
  Result r = calque_run("run " + p);
  EXPECT_EQ(r.status, 2);
  EXPECT_THAT(r.out, HasSubstr("the program takes 'x'; give a file with --inputs"));
  r = calque_run("run " + p + " --inputs " + save("y.safetensors", {{"y", f32({1})}}));
  EXPECT_EQ(r.status, 2);
  EXPECT_THAT(r.out, HasSubstr("the program takes 'x', which " + path("y.safetensors") + " does not hold; it holds y"));
  r = calque_run("run " + p + " --inputs " + save("x.safetensors", {{"x", f32({1, 2, 3})}}));
  EXPECT_EQ(r.status, 2);
  EXPECT_THAT(r.out, HasSubstr("x"));
  r = calque_run("run " + program("custom_op.pt2") + " --inputs " + program("custom_op.in"));
  EXPECT_EQ(r.status, 2);
  EXPECT_THAT(r.out, HasSubstr("torch.ops.pt2_cases.scaled.default"));
  EXPECT_EQ(calque_run("run " + program("several.pt2") + " --inputs " + program("basic.in") + " --model second").status, 0);
  EXPECT_EQ(calque_run("run " + program("tiny_llama_6.f32")).status, 2);
}

TEST_F(Cli, export_of_an_example_runs_at_other_sizes) {
  Result r = calque_run("export mlp -o " + path("mlp.pt2") + " --dynamic 'x=batch:1..64,*'");
  EXPECT_EQ(r.status, 0) << r.out;
  EXPECT_THAT(calque_run("info " + path("mlp.pt2")).out, AllOf(HasSubstr("float32 [s77, 16]"), HasSubstr("[1, 64]")));
  const std::string x = save("x.safetensors", {{"x", tensor_of<float>(std::vector<float>(112, 0.25F), {7, 16})}});
  EXPECT_EQ(calque_run("run " + path("mlp.pt2") + " --inputs " + x + " --outputs " + path("a.safetensors")).status, 0);
  // The same numbers after decomposing, and after exporting the program again with a fixed size.
  r = calque_run("export " + path("mlp.pt2") + " -o " + path("core.pt2") + " --decompose --print");
  EXPECT_EQ(r.status, 0) << r.out;
  EXPECT_THAT(r.out, AllOf(HasSubstr("torch.ops.aten.addmm.default"), Not(HasSubstr("aten.linear"))));
  EXPECT_EQ(calque_run("run " + path("core.pt2") + " --inputs " + x + " --outputs " + path("b.safetensors")).status, 0);
  EXPECT_EQ(calque_run("diff --tol 1e-6 " + path("a.safetensors") + " " + path("b.safetensors")).status, 0);
  r = calque_run("export " + path("mlp.pt2") + " -o " + path("fixed.pt2") + " --inputs " + x);
  EXPECT_EQ(r.status, 0) << r.out;
  EXPECT_THAT(calque_run("info " + path("fixed.pt2")).out, HasSubstr("float32 [7, 16]"));
}

TEST_F(Cli, arrays_of_numpy_go_in_and_out) {
  ASSERT_EQ(calque_run("export mlp -o " + path("mlp.pt2") + " --dynamic 'x=batch:1..64,*'").status, 0);
  const Tensor x = tensor_of<float>(std::vector<float>(112, 0.25F), {7, 16});
  save_npz(path("in.npz"), {{"x", x}});
  save_npy(path("x.npy"), x);
  const std::string run = "run " + path("mlp.pt2") + " --inputs ";
  Result r = calque_run(run + path("in.npz") + " --outputs " + path("out.npz"));
  EXPECT_EQ(r.status, 0) << r.out;
  r = calque_run(run + path("x.npy") + " --outputs " + path("out.npy"));
  EXPECT_EQ(r.status, 0) << r.out;
  r = calque_run(run + save("x.safetensors", {{"x", x}}) + " --outputs " + path("out.safetensors"));
  EXPECT_EQ(r.status, 0) << r.out;
  const Tensor expected = SafetensorsFile::open(path("out.safetensors")).tensor("0");
  EXPECT_EQ(serialize_npy(load_npz(path("out.npz"))[0].second), serialize_npy(expected));
  EXPECT_EQ(serialize_npy(load_npy(path("out.npy"))), serialize_npy(expected));
  std::ofstream(path("bad.npz")) << "no archive";
  r = calque_run(run + path("bad.npz"));
  EXPECT_EQ(r.status, 2);
  EXPECT_THAT(r.out, HasSubstr("bad.npz"));
}

TEST_F(Cli, export_applies_suggested_fixes_when_asked) {
  const std::string asked = "export branches -o " + path("p.pt2") + " --dynamic 'x=n,*'";
  Result r = calque_run(asked);
  EXPECT_EQ(r.status, 2);
  EXPECT_THAT(r.out, AllOf(HasSubstr("Suggested fixes:"), HasSubstr("n = Dim('n', min=5)")));
  EXPECT_FALSE(std::filesystem::exists(path("p.pt2")));
  r = calque_run(asked + " --apply-fixes");
  EXPECT_EQ(r.status, 0) << r.out;
  EXPECT_THAT(r.out, HasSubstr("fixes applied"));
  EXPECT_THAT(calque_run("info " + path("p.pt2")).out, HasSubstr("[5, inf]"));
}

TEST_F(Cli, export_names_what_is_wrong) {
  EXPECT_THAT(calque_run("export nothing -o " + path("p.pt2")).out, HasSubstr("no example is named 'nothing'"));
  EXPECT_THAT(calque_run("export mlp -o " + path("p.pt2") + " --dynamic y=n").out,
              HasSubstr("names the argument y; the arguments are ['x']"));
  EXPECT_THAT(calque_run("export mlp -o " + path("p.pt2") + " --inputs " + save("z.safetensors", {{"z", f32({1})}})).out,
              HasSubstr("the model takes 'x'"));
  EXPECT_THAT(calque_run("export " + path("absent.pt2") + " -o " + path("p.pt2")).out, HasSubstr("absent.pt2"));
}

TEST_F(Cli, diff_of_programs) {
  EXPECT_EQ(calque_run("diff " + program("basic.pt2") + " " + program("basic.pt2")).status, 0);
  const Result r = calque_run("diff " + program("basic.pt2") + " " + program("constants.pt2"));
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.out, HasSubstr("graphs differ"));
  EXPECT_EQ(calque_run("diff " + program("basic.pt2") + " " + program("basic.in")).status, 2);
}

}  // namespace
}  // namespace calque::cli_test
