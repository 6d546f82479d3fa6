// What every architecture of tests/zoo/golden must stand: being saved, loaded, resized; its declared ties being real.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "calque/hub/device_map.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/registry.h"
#include "calque/hub/resize.h"
#include "calque/hub/save_pretrained.h"
#include "calque/op/operators.h"
#include "hub/hub_support.h"
#include "support/paths.h"

namespace calque::every_architecture_test {
namespace {

using namespace hub_test;

std::vector<std::string> golden_folders() {
  std::vector<std::string> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(test::source_folder()) / "tests/zoo/golden"))
    out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

class EveryArchitecture : public ::testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<PretrainedModel> load() {
    return from_pretrained(std::filesystem::path(test::source_folder()) / "tests/zoo/golden" / GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(Zoo, EveryArchitecture, ::testing::ValuesIn(golden_folders()), [](const auto& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

TEST_P(EveryArchitecture, H045_H049_saved_in_one_file_or_shards_it_comes_back_the_same) {
  const auto model = load();
  TemporaryFolder folder;
  save_pretrained(*model, folder / "one", {.sync = false});
  save_pretrained(*model, folder / "shards", {.max_shard_size = "5KB", .sync = false});
  save_pretrained(*model, folder / "bin", {.safe_serialization = false, .sync = false});
  for (const char* name : {"one", "shards", "bin"}) {
    const LoadedModel loaded = load_pretrained(folder / name);
    EXPECT_EQ(difference(*model, *loaded.model), "") << name;
    EXPECT_TRUE(loaded.report.missing_keys.empty()) << name;
    EXPECT_TRUE(loaded.report.unexpected_keys.empty()) << name;
  }
}

TEST_P(EveryArchitecture, each_class_runs_on_its_example_inputs) {
  const GradModeScope no_grad(false);
  const Config config = load()->config();
  for (const ModelClass& one : model_registry().find(config.model_type())->classes) {
    const auto model = from_config(config, {.model_class = one.name});
    model->eval();
    const ModelInputs inputs = model->example_inputs({.batch = 3, .length = 6});
    EXPECT_EQ(inputs.tensor(model->main_input_name()).size(0), 3) << one.name;
    if (inputs.has(arg::input_ids.name)) {
      EXPECT_EQ(inputs[arg::input_ids].size(-1), 6) << one.name;
    }
    EXPECT_FALSE((*model)(inputs).items().empty()) << one.name;
  }
}

TEST_P(EveryArchitecture, H092_declared_ties_are_the_ties_that_there_are) {
  const auto model = load();
  std::set<std::string> declared;
  for (const auto& [name, source] : model->tied_weights()) {
    declared.insert(name);
    EXPECT_TRUE(model->get_parameter(name).is_same(model->get_parameter(source))) << name << " and " << source;
  }
  for (const std::vector<std::string>& group : find_tied_parameters(*model))
    EXPECT_LE(std::count_if(group.begin(), group.end(), [&](const std::string& name) { return !declared.count(name); }), 1)
        << group.front();
}

TEST_P(EveryArchitecture, H093_H099_its_vocabulary_grows_and_ties_stay) {
  const auto model = load();
  if (!model->input_embeddings() && !model->base_model().input_embeddings()) GTEST_SKIP() << "no input embeddings";
  const size_t parameters = model->named_parameters().size();
  const Tensor before = get_input_embeddings(*model).weight->detach().clone();
  const int64_t size = before.size(0) + 10;
  const Embedding& now = resize_token_embeddings(*model, size);
  EXPECT_EQ(now.weight->size(0), size);
  EXPECT_TRUE(same_bits(now.weight->detach().slice(0, 0, before.size(0)), before));
  EXPECT_EQ(model->named_parameters().size(), parameters);
  if (const Linear* head = get_output_embeddings(*model)) {
    EXPECT_EQ(head->weight->size(0), size);
    EXPECT_TRUE(!head->bias.defined() || head->bias->size(0) == size);
  }
  TemporaryFolder folder;
  save_pretrained(*model, folder.path(), {.sync = false});
  EXPECT_EQ(difference(*model, *from_pretrained(folder.path())), "");
}

}  // namespace
}  // namespace calque::every_architecture_test
