// Models of every architecture (tests/zoo/golden) compiled when called: eager's answer at two sizes, twice.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "calque/base/error.h"
#include "calque/compile/compile.h"
#include "calque/compile/same.h"
#include "calque/hub/from_pretrained.h"
#include "calque/tensor/generator.h"
#include "support/paths.h"

namespace calque::compiled_models_test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> architectures() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(fs::path(test::source_folder()) / "tests/zoo/golden"))
    out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

class CompiledModel : public testing::TestWithParam<std::string> {};

TEST_P(CompiledModel, answers_as_eager) {
  const GradModeScope no_grad(false);
  const auto model = from_pretrained(fs::path(test::source_folder()) / "tests/zoo/golden" / GetParam());
  model->eval();
  const Compiled compiled = compile(model);
  for (const ExampleSizes& sizes : {ExampleSizes{}, ExampleSizes{3, 9, 6, 3}, ExampleSizes{}, ExampleSizes{4, 8, 7, 3}}) {
    const Kwargs inputs = model->example_inputs(sizes).to_kwargs(model->arguments());
    manual_seed(5);
    const Value expected = model->call({}, inputs);
    for (int round = 0; round < 2; ++round) {
      manual_seed(5);
      const SameResult r = same(expected, compiled.call({}, inputs));
      EXPECT_TRUE(r) << r.path << ": " << r.reason;
    }
  }
  for (const GraphBreak& b : compiled.graph_breaks()) ADD_FAILURE() << b.reason << " at " << b.file << ":" << b.line;
  EXPECT_LE(compiled.cache_size(), 4u);
  EXPECT_GE(compiled.graphs().size(), 1u);
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  std::string out = info.param;
  for (char& c : out)
    if (c == '-' || c == '.') c = '_';
  return out;
}
INSTANTIATE_TEST_SUITE_P(Zoo, CompiledModel, testing::ValuesIn(architectures()), name_of);

}  // namespace
}  // namespace calque::compiled_models_test
