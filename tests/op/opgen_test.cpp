// calque-opgen: what it makes of stanza files, run as the build runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include "support/paths.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

namespace calque::opgen_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Opgen : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  // Status and what it said.
  std::pair<int, std::string> run(const std::string& stanzas, const std::string& more = {},
                                  const std::string& options = {}) {
    std::ofstream(folder_ / "things.cpp") << stanzas;
    std::ofstream(folder_ / "more.cpp") << more;
    const std::string command = test::program_folder() + "/calque-opgen " + options + " --stanzas " +
                                (folder_ / "things.cpp").string() + " " + (folder_ / "more.cpp").string() + " --out-dir " +
                                folder_.string() + " 2>&1";
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string said;
    std::array<char, 256> buffer{};
    while (std::fgets(buffer.data(), buffer.size(), pipe)) said += buffer.data();
    return {::pclose(pipe), said};
  }
  std::string read(const std::string& name) const {
    std::ifstream in(folder_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string functions() const { return read("include/calque/op/aten/things.h"); }
  std::string methods() const { return read("include/calque/op/tensor_methods.inc"); }

  const fs::path folder_ = fs::temp_directory_path() / ("calque-opgen-" + std::to_string(::getpid()));
};

TEST_F(Opgen, comments_and_strings_are_no_stanzas) {
  const auto [status, said] = run(R"cpp(
    // aten.def("in_a_comment(Tensor self) -> Tensor");
    /* aten.def("in_a_long_comment(Tensor self) -> Tensor")
           .in_place("in_a_long_comment_"); */
    const char* text = "aten.def(\"in_a_string(Tensor self) -> Tensor\")";
    const char* raw = R"(aten.def("in_a_raw_string(Tensor self) -> Tensor"))";
    const char quote = '"';
    aten.def("real(Tensor self) -> Tensor")  // .in_place("commented_out_")
        .compute(rule, kernel);
  )cpp");
  EXPECT_EQ(status, 0) << said;
  EXPECT_THAT(functions(), HasSubstr("Tensor real(const Tensor& self, "));
  EXPECT_THAT(functions(), Not(HasSubstr("in_a_")));
  EXPECT_THAT(functions(), Not(HasSubstr("commented_out")));
}

// Tensor has what the class below it declares: a derived method of that name would hide it.
TEST_F(Opgen, methods_of_the_base_are_not_derived_again) {
  std::ofstream(folder_ / "base.h") << "class Base {\n  int64_t size(int64_t dim) const;  // not a stride()\n};\n";
  const std::string stanzas = R"cpp(
    aten.def("size(Tensor self, int dim) -> int").composite(f);
    aten.def("stride(Tensor self, int dim) -> int").composite(f);
  )cpp";
  EXPECT_EQ(run(stanzas).first, 0);
  EXPECT_THAT(methods(), AllOf(HasSubstr(" size("), HasSubstr(" stride(")));
  EXPECT_EQ(run(stanzas, {}, "--base " + (folder_ / "base.h").string()).first, 0);
  EXPECT_THAT(methods(), AllOf(Not(HasSubstr(" size(")), HasSubstr(" stride(")));
  EXPECT_THAT(functions(), HasSubstr(" size("));
}

TEST_F(Opgen, layout_does_not_matter) {
  const auto [status, said] = run(R"cpp(
    aten.def(
            "add."
            "Tensor(Tensor self, "
            "Tensor other, *, Scalar alpha=1) -> Tensor")
        .compute([](const Tensor& a) { return f(a.out("not this"), "in_place"); }, k)
        .in_place("add_.Tensor", Tag::left_whole)
        /* between */.out(  // behind
            "add.out");
  )cpp");
  EXPECT_EQ(status, 0) << said;
  EXPECT_THAT(functions(), HasSubstr("Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha = 1, "));
  EXPECT_THAT(functions(), HasSubstr("Tensor add_(const Tensor& self, "));
  EXPECT_THAT(functions(), HasSubstr("const Scalar& alpha, const Out& out, "));
  EXPECT_THAT(functions(), Not(HasSubstr("not this")));
  EXPECT_THAT(methods(), HasSubstr("Tensor add_(const Tensor& other, "));
}

TEST_F(Opgen, functions_that_would_be_one_fail_the_build) {
  const std::string two = R"cpp(
    aten.def("var(Tensor self, int[1]? dim=None) -> Tensor").composite(f);
    aten.def("var.correction(Tensor self, int[2]? dim=None) -> Tensor") @.composite(g);
  )cpp";
  std::string plain = two, named = two;
  plain.replace(two.find('@'), 1, "");
  named.replace(two.find('@'), 1, ".cpp_name(\"var_correction\")");
  const auto [status, said] = run(plain);
  EXPECT_NE(status, 0);
  EXPECT_THAT(said,
              HasSubstr("things.cpp: the C++ function of aten::var.correction has the name and the parameters of that of "
                        "aten::var "));
  EXPECT_THAT(said, HasSubstr(".cpp_name(\"var_correction\")"));
  EXPECT_EQ(run(named).first, 0);
  EXPECT_THAT(functions(),
              HasSubstr("Tensor var_correction(const Tensor& self, OptionalList<int64_t> dim = std::nullopt, "));
}

TEST_F(Opgen, a_call_that_two_functions_could_answer_goes_to_the_first) {
  const auto [status, said] = run(R"cpp(
    aten.def("arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None) -> Tensor").compute(r, k);
    aten.def("arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None) -> Tensor").compute(r, k);
  )cpp");
  EXPECT_EQ(status, 0) << said;
  EXPECT_THAT(functions(),
              HasSubstr("arange(const Scalar& start, const Scalar& end, std::optional<DType> dtype = std::nullopt, "));
  EXPECT_THAT(functions(), HasSubstr("arange(const Scalar& start, const Scalar& end, const Scalar& step, "
                                     "std::optional<DType> dtype = std::nullopt, "));
}

TEST_F(Opgen, whole_numbers_go_to_the_function_that_takes_one) {
  const auto [status, said] = run(R"cpp(
    aten.def("split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]").composite(f);
    aten.def("split.sizes(Tensor self, SymInt[] split_size, int dim=0) -> Tensor[]").composite(g);
    aten.def("alone(Tensor self, SymInt n) -> Tensor").composite(h);
  )cpp");
  EXPECT_EQ(status, 0) << said;
  EXPECT_THAT(methods(), HasSubstr("template <std::integral N>\nstd::vector<Tensor> split(N split_size, int64_t dim = 0, "));
  EXPECT_THAT(methods(), HasSubstr("return split(SymInt(split_size), dim, where); }"));
  EXPECT_THAT(methods(), HasSubstr("split(NumberList<SymInt> split_size, int64_t dim = 0, "));
  EXPECT_THAT(methods(), Not(HasSubstr("alone(N n")));
}

TEST_F(Opgen, an_operator_has_one_stanza) {
  const auto [status, said] =
      run(R"(aten.def("relu(Tensor self) -> Tensor");)", R"(aten.def("relu(Tensor self) -> Tensor");)");
  EXPECT_NE(status, 0);
  EXPECT_THAT(said, HasSubstr("more.cpp: aten::relu is defined twice"));
}

TEST_F(Opgen, an_alias_has_the_forms_of_its_target) {
  const auto [status, said] = run(R"cpp(
                                    aten.alias("arccos", "acos");
                                    aten.alias("clip", "clamp");  // .alias("commented", "out")
                                  )cpp",
                                  R"cpp(
                                    aten.def("acos(Tensor self) -> Tensor").compute(r, k).in_place("acos_").out("acos.out");
                                    aten.def("clamp(Tensor self, Scalar? min=None) -> Tensor").composite(f);
                                    aten.def("clamp.Tensor(Tensor self, Tensor? min=None) -> Tensor").cpp_name("clamp_Tensor").composite(f);
                                  )cpp");
  EXPECT_EQ(status, 0) << said;
  EXPECT_THAT(functions(), HasSubstr("Tensor arccos(const Tensor& self, std::source_location"));
  EXPECT_THAT(functions(), HasSubstr("Tensor arccos(const Tensor& self, const Out& out, "));
  EXPECT_THAT(functions(), Not(HasSubstr("arccos_(")));
  EXPECT_THAT(functions(), HasSubstr("Tensor clip_Tensor(const Tensor& self, const Tensor& min"));
  EXPECT_THAT(functions(), Not(HasSubstr("commented")));
  const std::string registered = read("src/ops_register.cpp");
  EXPECT_LT(registered.find("register_more(aten)"), registered.find("register_things(aten)")) << "the target comes first";
}

TEST_F(Opgen, an_alias_of_nothing_fails_the_build) {
  const auto [status, said] = run(R"(aten.alias("arccos", "accos");)");
  EXPECT_NE(status, 0);
  EXPECT_THAT(said, HasSubstr("things.cpp: arccos is an alias of accos, which is no operator"));
}

TEST_F(Opgen, defaults_are_those_of_the_schema) {
  const auto [status, said] = run(R"cpp(
    aten.def(
        "f(Tensor x, int[2] stride=1, bool[3] mask=[True, False, True], float eps=1e-05, str mode='nearest', "
        "ScalarType? dtype=long, int reduction=Mean, float high=inf, Tensor? w=None, Generator? g=None) -> Tensor");
  )cpp");
  EXPECT_EQ(status, 0) << said;
  EXPECT_THAT(
      functions(),
      HasSubstr("NumberList<int64_t> stride = {1, 1}, BoolMask mask = {true, false, true}, double eps = 1e-05, "
                "std::string_view mode = \"nearest\", std::optional<DType> dtype = DType::int64, int64_t reduction = 1, "
                "double high = HUGE_VAL, const Tensor& w = {}, Generator* g = nullptr, "));
}

}  // namespace
}  // namespace calque::opgen_test
