// Models of every architecture (tests/zoo/golden) compiled when called: eager's answer at three sizes, twice, and from eight threads at once; and
// all of their classes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "calque/base/error.h"
#include "calque/compile/compile.h"
#include "calque/compile/same.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/registry.h"
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

void expect_eagers_answer(PretrainedModel& model, const Compiled& compiled, const ExampleSizes& sizes) {
  const Kwargs inputs = model.example_inputs(sizes).to_kwargs(model.arguments());
  manual_seed(5);
  const Value expected = model.call({}, inputs);
  for (int round = 0; round < 2; ++round) {
    manual_seed(5);
    const SameResult r = same(expected, compiled.call({}, inputs));
    EXPECT_TRUE(r) << r.path << ": " << r.reason;
  }
}

// Eight threads that meet what is compiled already and what nobody has called yet.
void expect_eagers_answer_on_threads(PretrainedModel& model, const Compiled& compiled) {
  std::vector<Kwargs> inputs;
  Values expected;
  for (const ExampleSizes& sizes : {ExampleSizes{}, ExampleSizes{5, 10, 9, 3}}) {
    inputs.push_back(model.example_inputs(sizes).to_kwargs(model.arguments()));
    expected.push_back(model.call({}, inputs.back()));
  }
  std::vector<std::string> failures(8);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < failures.size(); ++t)
    threads.emplace_back([&, t] {
      const GradModeScope no_grad(false);
      try {
        const SameResult r = same(expected[t % 2], compiled.call({}, inputs[t % 2]));
        if (!r) failures[t] = r.path + ": " + r.reason;
      } catch (const std::exception& e) {
        failures[t] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_THAT(failures, testing::Each(""));
}

class CompiledModel : public testing::TestWithParam<std::string> {};

TEST_P(CompiledModel, answers_as_eager) {
  const GradModeScope no_grad(false);
  const auto model = from_pretrained(fs::path(test::source_folder()) / "tests/zoo/golden" / GetParam());
  model->eval();
  const Compiled compiled = compile(model);
  for (const ExampleSizes& sizes : {ExampleSizes{}, ExampleSizes{3, 9, 6, 3}, ExampleSizes{}, ExampleSizes{4, 8, 7, 3}})
    expect_eagers_answer(*model, compiled, sizes);
  expect_eagers_answer_on_threads(*model, compiled);
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
TEST(CompiledClasses, answer_as_eager) {
  const GradModeScope no_grad(false);
  size_t classes = 0;
  for (const std::string& folder : architectures()) {
    const Config config = from_pretrained(fs::path(test::source_folder()) / "tests/zoo/golden" / folder)->config();
    for (const ModelClass& one : model_registry().find(config.model_type())->classes) {
      SCOPED_TRACE(one.name + " of " + folder);
      const auto model = from_config(config, {.model_class = one.name});
      model->eval();
      const Compiled compiled = compile(model);
      try {
        for (const ExampleSizes& sizes : {ExampleSizes{}, ExampleSizes{3, 9, 6, 3}, ExampleSizes{4, 8, 7, 3}})
          expect_eagers_answer(*model, compiled, sizes);
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
      for (const GraphBreak& b : compiled.graph_breaks()) ADD_FAILURE() << b.reason << " at " << b.file << ":" << b.line;
      EXPECT_LE(compiled.cache_size(), 3u);
      ++classes;
    }
  }
  EXPECT_GT(classes, 300u);
}

INSTANTIATE_TEST_SUITE_P(Zoo, CompiledModel, testing::ValuesIn(architectures()), name_of);

}  // namespace
}  // namespace calque::compiled_models_test
