// Graphs as files of the command line: which name gives which format, programs as well as models, and differences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "cli/cli_support.h"
#include "support/folder_support.h"
#include "support/paths.h"

namespace calque::drawing_test {
namespace {

using cli_test::calque_run;
using cli_test::Result;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Drawing : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }
  std::string written(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  const test::TemporaryFolder folder_;
};

TEST_F(Drawing, the_name_of_the_output_decides_the_format) {
  const std::pair<const char*, const char*> cases[] = {
      {"g.svg", "<svg xmlns"}, {"g.html", "<!DOCTYPE html>"}, {"g.htm", "<!DOCTYPE html>"},
      {"g.dot", "digraph"},    {"g.gv", "digraph"},           {"g.json", "{"},
      {"g.py", "\n"},          {"g.txt", "symbol"},           {"G.SVG", "<svg xmlns"}};
  for (const auto& [name, begin] : cases) {
    EXPECT_EQ(calque_run("trace mlp -o " + path(name)).status, 0) << name;
    EXPECT_THAT(written(name), StartsWith(begin)) << name;
  }
}

TEST_F(Drawing, a_name_of_another_format_is_refused) {
  for (const char* name : {"g.onnx", "g.png", "g.pdf", "g.pt2"}) {
    const Result r = calque_run("trace mlp -o " + path(name));
    EXPECT_EQ(r.status, 2) << name;
    EXPECT_THAT(r.out, AllOf(HasSubstr("a graph cannot be written as"), HasSubstr(".svg"), HasSubstr(".html"))) << name;
    EXPECT_EQ(written(name), "");
  }
  EXPECT_THAT(calque_run("trace mlp --format json -o " + path("g.svg")).out,
              HasSubstr("is a name for svg, but --format says json"));
  const Result onnx = calque_run("export mlp -o " + path("p.onnx"));
  EXPECT_EQ(onnx.status, 2);
  EXPECT_THAT(onnx.out, AllOf(HasSubstr("expected a name that ends in .pt2"), HasSubstr("torch.onnx.export")));
}

TEST_F(Drawing, a_dash_is_standard_output) {
  EXPECT_THAT(calque_run("trace mlp --format svg -o -").out, StartsWith("<svg"));
  EXPECT_THAT(calque_run("trace mlp -o -").out, StartsWith("symbol"));
  EXPECT_THAT(calque_run("export mlp -o -").out, StartsWith("PK"));
}

TEST_F(Drawing, a_program_is_drawn_like_a_model) {
  ASSERT_EQ(calque_run("export tiny-lm -o " + path("p.pt2")).status, 0);
  EXPECT_EQ(calque_run("trace " + path("p.pt2") + " --depth 2 -o " + path("p.svg")).status, 0);
  EXPECT_THAT(written("p.svg"), AllOf(HasSubstr(">model<"), HasSubstr(">layers.5<"), HasSubstr("lm_head.weight [4096, 192]"),
                                      Not(HasSubstr(">p_model_"))));
  EXPECT_THAT(calque_run("trace " + path("p.pt2")).out, HasSubstr("aten.embedding.default"));
  EXPECT_THAT(calque_run("trace " + path("p.pt2") + " --explain").out,
              HasSubstr("is a program, which was traced when it was exported"));
}

TEST_F(Drawing, weights_have_the_names_of_the_model) {
  EXPECT_THAT(calque_run("trace tiny-lm --format svg").out,
              AllOf(HasSubstr("embed_tokens.weight [4096, 192]"), Not(HasSubstr(">_param_constant"))));
}

TEST_F(Drawing, the_picture_of_the_docs_is_what_its_command_draws) {
  std::ifstream file(test::source_folder() + "/docs/pictures/tiny-lm.svg");
  const std::string picture{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(calque_run("trace tiny-lm --depth 1 --format svg").out, picture)
      << "calque trace tiny-lm --depth 1 -o docs/pictures/tiny-lm.svg";
}

TEST_F(Drawing, differences_of_programs_are_a_page) {
  ASSERT_EQ(calque_run("export mlp -o " + path("a.pt2")).status, 0);
  ASSERT_EQ(calque_run("export mlp --decompose -o " + path("b.pt2")).status, 0);
  EXPECT_EQ(calque_run("diff " + path("a.pt2") + " " + path("b.pt2") + " -o " + path("d.html")).status, 1);
  EXPECT_THAT(written("d.html"), AllOf(HasSubstr("\"partner\":"), HasSubstr("a.pt2 and ")));
  EXPECT_EQ(calque_run("diff " + path("a.pt2") + " " + path("a.pt2") + " -o " + path("s.html")).status, 0);
  EXPECT_THAT(written("s.html"), Not(HasSubstr("\"changed\":true")));
  const Result r = calque_run("diff " + path("a.pt2") + " " + path("b.pt2") + " -o " + path("d.svg"));
  EXPECT_EQ(r.status, 2);
  EXPECT_THAT(r.out, HasSubstr("expected a name that ends in .html"));
}

}  // namespace
}  // namespace calque::drawing_test
