// Adapters: rows of area peft, and goldens that peft made (tools/golden/adapters.py).
#include <gmock/gmock.h>

#include <fstream>

#include "calque/export/export.h"
#include "calque/grad/autograd.h"
#include "calque/hub/adapters.h"
#include "calque/hub/save_pretrained.h"
#include "calque/nn/linear.h"
#include "calque/op/operators.h"
#include "hub/load_support.h"
#include "support/conformance.h"

#define EXPECT_USER_ERROR(call, matcher) EXPECT_THAT(error_of([&] { call; }), matcher)

namespace calque::load_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

fs::path adapters(const std::string& name) { return golden("adapters") / name; }
std::shared_ptr<PretrainedModel> base() { return from_pretrained(adapters("base")); }
SafetensorsFile expected(const std::string& name) {
  return SafetensorsFile::open((adapters(name) / "expected.safetensors").string());
}

double furthest(const Tensor& a, const Tensor& b) {
  if (!std::ranges::equal(a.sizes(), b.sizes())) return 1e30;
  return (a - b).abs().max().item_as<double>();
}

Tensor logits(PretrainedModel& model) {
  const GradModeScope no_grad(false);
  return model({{arg::input_ids, expected("lora").tensor("input_ids")}}).logits();
}
Tensor logits_of_case(PretrainedModel& model, const std::string& name) {
  const GradModeScope no_grad(false);
  return model({{arg::input_ids, expected(name).tensor("input_ids")}}).logits();
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

// The golden adapter in a folder of its own, of the golden base model.
void copy_adapter(const std::string& name, const fs::path& to) {
  fs::create_directories(to);
  for (const fs::directory_entry& entry : fs::directory_iterator(adapters(name)))
    if (entry.path().filename() != "expected.safetensors") fs::copy(entry.path(), to / entry.path().filename());
  std::string config = text_of(to / "adapter_config.json");
  const std::string said = "\"base_model_name_or_path\": \"base\"";
  config.replace(config.find(said), said.size(), "\"base_model_name_or_path\": \"" + adapters("base").string() + "\"");
  write(to / "adapter_config.json", config);
}

AdapterConfig small_lora(const Config::Items& more = {}) {
  Config::Items items{{"r", 2}, {"target_modules", list({"q_proj", "v_proj"})}};
  items.insert(items.end(), more.begin(), more.end());
  return AdapterConfig(AdapterType::lora, items);
}

// Values that change what the model gives; a new adapter's do nothing.
void stir(PretrainedModel& model, const std::string& name, double by = 0.5) {
  const GradModeScope no_grad(false);
  for (const auto& [key, parameter] : model.named_parameters())
    if (key.find("." + name) != std::string::npos) parameter.detach().add_(Scalar(by));
}

// ---- what peft made -------------------------------------------------------------------------------------------------------

class GoldenAdapter : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Kinds, GoldenAdapter, testing::Values("lora", "dora", "tokens", "ia3", "prompt", "prefix"),
                         [](const auto& info) { return info.param; });

TEST_P(GoldenAdapter, gives_what_peft_gives) {
  const auto model = base();
  load_adapter(*model, adapters(GetParam()));
  EXPECT_LT(furthest(logits_of_case(*model, GetParam()), expected(GetParam()).tensor("logits")), 3e-5);
  EXPECT_THAT(active_adapters(*model), ElementsAre("default"));
}

TEST_P(GoldenAdapter, has_the_gradients_of_peft) {
  const auto model = base();
  load_adapter(*model, adapters(GetParam()), "default", {.trains = true});
  model->train();
  const SafetensorsFile file = expected(GetParam());
  const GradModeScope recording(true);
  const Tensor loss = (*model)({{arg::input_ids, file.tensor("input_ids")},
                                {arg::attention_mask, file.tensor("attention_mask")},
                                {arg::labels, file.tensor("labels")}})
                          .loss();
  backward(loss);
  EXPECT_LT(furthest(loss.detach(), file.tensor("loss")), 1e-5);
  size_t found = 0;
  for (const auto& [name, parameter] : model->named_parameters()) {
    const Tensor grad = grad_of(parameter);
    EXPECT_EQ(grad.defined(), file.find("grad." + name) != nullptr) << name;
    if (!grad.defined() || !file.find("grad." + name)) continue;
    EXPECT_LT(furthest(grad, file.tensor("grad." + name)), 1e-5) << name;
    ++found;
  }
  EXPECT_GT(found, 0u);
}

TEST_P(GoldenAdapter, is_written_as_peft_writes_it) {
  const auto model = base();
  load_adapter(*model, adapters(GetParam()));
  const Folder folder;
  save_adapter(*model, folder.path(), {.safe_serialization = GetParam() != "ia3"});
  EXPECT_EQ(text_of(folder.path() / "adapter_config.json"), text_of(adapters(GetParam()) / "adapter_config.json"));
  const auto again = base();
  load_adapter(*again, folder.path());
  EXPECT_TRUE(same(logits(*again), logits(*model)));
  if (GetParam() == "ia3") return;
  const SafetensorsFile mine = SafetensorsFile::open((folder.path() / "adapter_model.safetensors").string());
  const SafetensorsFile there = SafetensorsFile::open((adapters(GetParam()) / "adapter_model.safetensors").string());
  ASSERT_EQ(mine.tensors().size(), there.tensors().size());
  for (const auto& [name, tensor] : there.tensors()) EXPECT_TRUE(same(mine.tensor(name), tensor)) << name;
}

TEST_P(GoldenAdapter, is_merged_and_taken_out_again) {
  if (GetParam() == "prompt" || GetParam() == "prefix") {
    const auto model = base();
    load_adapter(*model, adapters(GetParam()));
    EXPECT_USER_ERROR(merge_adapters(*model), HasSubstr("cannot be merged"));
    return;
  }
  const auto model = base();
  const Tensor before = logits(*model);
  load_adapter(*model, adapters(GetParam()));
  const Tensor with = logits(*model);
  merge_adapters(*model);
  const SafetensorsFile file = expected(GetParam());
  const StateDict state = model->state_dict();
  for (const auto& [name, tensor] : state)
    if (file.find("merged." + name)) {
      EXPECT_LT(furthest(tensor, file.tensor("merged." + name)), 1e-6) << name;
    }
  EXPECT_LT(furthest(logits(*model), with), 3e-5);
  unmerge_adapters(*model);
  EXPECT_LT(furthest(logits(*model), with), 3e-5);
  merge_and_unload(*model, true);
  EXPECT_LT(furthest(logits(*model), with), 3e-5);
  EXPECT_TRUE(adapter_names(*model).empty());
  for (const auto& [name, tensor] : model->state_dict()) EXPECT_THAT(name, Not(HasSubstr("base_layer")));
}

// ---- rows of area peft ------------------------------------------------------------------------------------------------------

TEST(Adapters, H288_a_folder_with_an_adapter_loads_its_base_and_the_adapter) {
  const Folder folder;
  copy_adapter("lora", folder.path());
  const auto model = from_pretrained(folder.path());
  EXPECT_EQ(model->class_name(), "LlamaForCausalLM");
  EXPECT_THAT(adapter_names(*model), ElementsAre("default"));
  EXPECT_LT(furthest(logits(*model), expected("lora").tensor("logits")), 3e-5);
  EXPECT_FALSE(model->training());
  EXPECT_EQ(config_from_pretrained(folder.path()).model_type(), "llama");
}

TEST(Adapters, H288_a_model_folder_with_an_adapter_in_it_keeps_its_own_weights) {
  const Folder folder;
  copy_adapter("lora", folder.path());
  for (const char* file : {"config.json", "model.safetensors"}) fs::copy(adapters("base") / file, folder.path() / file);
  write(folder.path() / "adapter_config.json", text_of(adapters("lora") / "adapter_config.json"));  // which names no model
  const auto model = from_pretrained(folder.path());
  EXPECT_LT(furthest(logits(*model), expected("lora").tensor("logits")), 3e-5);
}

TEST(Adapters, H289_saving_writes_the_adapter_alone) {
  const auto model = base();
  add_adapter(*model, small_lora());
  stir(*model, "default");
  for (const bool safe : {true, false}) {
    const Folder folder;
    const SaveResult result = save_pretrained(*model, folder.path(), {.safe_serialization = safe});
    EXPECT_THAT(result.files, ElementsAre("adapter_config.json", safe ? "adapter_model.safetensors" : "adapter_model.bin"));
    EXPECT_FALSE(fs::exists(folder.path() / "config.json"));
    EXPECT_FALSE(fs::exists(folder.path() / "model.safetensors"));
    if (safe) {
      const SafetensorsFile file = SafetensorsFile::open((folder.path() / "adapter_model.safetensors").string());
      for (const auto& [name, tensor] : file.tensors())
        EXPECT_THAT(name, testing::StartsWith("base_model.model.model.layers."));
    }
    const auto again = from_pretrained(folder.path());
    EXPECT_TRUE(same(logits(*again), logits(*model)));
  }
}

TEST(Adapters, what_an_older_adapter_left_does_not_come_along) {
  const Folder from, to;
  copy_adapter("lora", from.path());
  write(from.path() / "tokenizer.json", "{}");
  const auto model = from_pretrained(from.path());
  stir(*model, "default");
  save_pretrained(*model, to.path(), {.companions_of = from.path()});
  EXPECT_TRUE(fs::exists(to.path() / "tokenizer.json"));
  EXPECT_TRUE(same(logits(*from_pretrained(to.path())), logits(*model)));
}

TEST(Adapters, H290_loading_takes_names_with_and_without_the_prefix_and_warns_of_others) {
  const auto model = base();
  load_adapter(*model, adapters("lora"));
  const StateDict state = adapter_state_dict(*model, "default");
  StateDict more = state;
  more.set("layers.9.lora_A.weight", state.begin()->second);
  const auto other = base();
  const Warnings warnings;
  load_adapter(*other, adapter_config(*model, "default"), more);
  EXPECT_TRUE(warnings.any("unexpected keys not found in the model: layers.9.lora_A.weight"));
  EXPECT_TRUE(same(logits(*other), logits(*model)));
  EXPECT_USER_ERROR(load_adapter(*other, adapters("lora")),
                    HasSubstr("Adapter with name default already exists. Please use a different name."));
  const Folder empty;
  EXPECT_USER_ERROR(load_adapter(*other, empty.path(), "second"), HasSubstr("adapter_config.json"));
}

TEST(Adapters, H291_the_adapters_state_has_its_tensors_alone_without_its_name) {
  const auto model = base();
  add_adapter(*model, small_lora({{"modules_to_save", list({"lm_head"})}}), "mine");
  std::vector<std::string> names;
  for (const auto& [name, tensor] : adapter_state_dict(*model, "mine")) names.push_back(name);
  EXPECT_EQ(names.size(), 9u);
  EXPECT_THAT(names, Contains("model.layers.0.self_attn.q_proj.lora_A.weight"));
  EXPECT_THAT(names, Contains("lm_head.weight"));
  const StateDict whole = model->state_dict();
  EXPECT_TRUE(whole.contains("model.layers.0.self_attn.q_proj.base_layer.weight"));
  EXPECT_TRUE(whole.contains("model.layers.0.self_attn.q_proj.lora_A.mine.weight"));
  EXPECT_TRUE(whole.contains("lm_head.original_module.weight"));
  EXPECT_TRUE(whole.contains("lm_head.modules_to_save.mine.weight"));
}

TEST(Adapters, H293_disabled_adapters_leave_the_base_models_results) {
  const auto model = base();
  const Tensor before = logits(*model);
  add_adapter(*model, small_lora());
  EXPECT_TRUE(same(logits(*model), before));  // B starts as zeros
  stir(*model, "default");
  const Tensor with = logits(*model);
  EXPECT_GT(furthest(with, before), 1e-3);
  disable_adapters(*model);
  EXPECT_TRUE(same(logits(*model), before));
  enable_adapters(*model);
  EXPECT_TRUE(same(logits(*model), with));
}

TEST(Adapters, H294_several_adapters_are_switched_by_name) {
  const auto model = base();
  EXPECT_USER_ERROR(set_adapter(*model, {"one"}), HasSubstr("No adapter loaded. Please load an adapter first."));
  add_adapter(*model, small_lora(), "one");
  EXPECT_THAT(active_adapters(*model), ElementsAre("one"));
  add_adapter(*model, small_lora(), "two");
  EXPECT_THAT(active_adapters(*model), ElementsAre("two"));
  EXPECT_THAT(adapter_names(*model), ElementsAre("one", "two"));
  stir(*model, "one");
  const Tensor second = logits(*model);
  set_adapter(*model, {"one"});
  const Tensor first = logits(*model);
  EXPECT_GT(furthest(first, second), 1e-3);
  set_adapter(*model, {"one", "two"});
  EXPECT_THAT(active_adapters(*model), ElementsAre("one", "two"));
  EXPECT_LT(furthest(logits(*model), first), 1e-6);  // the second one still does nothing
  EXPECT_USER_ERROR(set_adapter(*model, {"three"}), HasSubstr("Adapter with name three not found"));
  const Folder folder;
  EXPECT_USER_ERROR(save_pretrained(*model, folder.path() / "both"), HasSubstr("Multiple active adapters detected"));
  delete_adapter(*model, "one");
  EXPECT_THAT(adapter_names(*model), ElementsAre("two"));
  set_adapter(*model, {"two"});
  EXPECT_TRUE(same(logits(*model), second));
  delete_adapter(*model, "two");
  EXPECT_EQ(model->get_submodule("model.layers.0.self_attn.q_proj").type_name(), Linear::torch_type);
}

TEST(Adapters, H295_subfolder_and_revision_find_the_adapter) {
  const Folder folder;
  copy_adapter("lora", folder.path() / "adapters" / "french");
  LoadOptions options;
  options.adapter_subfolder = "adapters/french";
  const auto model = from_pretrained(folder.path(), options);
  EXPECT_LT(furthest(logits(*model), expected("lora").tensor("logits")), 3e-5);
  EXPECT_USER_ERROR(from_pretrained(folder.path()), HasSubstr("config.json"));
  options.adapter_subfolder = "adapters/german";
  EXPECT_USER_ERROR(from_pretrained(folder.path(), options), HasSubstr("adapters/german"));
}

TEST(Adapters, H295_a_revision_of_the_cache_finds_the_adapter) {
  const Folder cache;
  const fs::path repo = cache.path() / "models--org--adapter";
  copy_adapter("lora", repo / "snapshots" / "2222222222222222222222222222222222222222");
  fs::create_directories(repo / "snapshots" / "1111111111111111111111111111111111111111");
  write(repo / "snapshots" / "1111111111111111111111111111111111111111" / "README.md", "nothing here");
  fs::create_directories(repo / "refs");
  write(repo / "refs" / "main", "1111111111111111111111111111111111111111");
  write(repo / "refs" / "french", "2222222222222222222222222222222222222222");
  LoadOptions options;
  options.cache_dir = cache.path();
  EXPECT_USER_ERROR(from_pretrained("org/adapter", options), HasSubstr("config.json"));
  options.adapter_revision = "french";
  const auto model = from_pretrained("org/adapter", options);
  EXPECT_LT(furthest(logits(*model), expected("lora").tensor("logits")), 3e-5);
  const auto other = base();
  load_adapter(*other, "org/adapter", "default", {.revision = "french", .cache_dir = cache.path()});
  EXPECT_TRUE(same(logits(*other), logits(*model)));
}

TEST_P(GoldenAdapter, is_exported_with_the_model) {
  const auto model = base();
  load_adapter(*model, adapters(GetParam()));
  for (Module* module : model->modules())
    if (auto* part = dynamic_cast<PretrainedModel*>(module)) part->config().set("use_cache", false);
  const GradModeScope no_grad(false);
  const Tensor ids = expected(GetParam()).tensor("input_ids");
  const ExportedProgram program = export_program(*model, {}, {{"input_ids", ids}});
  const Value given = program.call({}, {{"input_ids", ids}});
  EXPECT_LT(furthest(ModelOutput::from_value(given).logits(), expected(GetParam()).tensor("logits")), 3e-5);
}

TEST(Adapters, H300_checkpointing_with_adapters_lets_gradients_through_the_embeddings) {
  const auto model = base();
  add_adapter(*model, small_lora());
  stir(*model, "default");
  model->train();
  const auto gives = [&] {
    const GradModeScope recording(true);
    return (*model->input_embeddings())(expected("lora").tensor("input_ids")).requires_grad();
  };
  EXPECT_FALSE(gives());
  model->gradient_checkpointing_enable();
  EXPECT_TRUE(gives());
  model->gradient_checkpointing_disable();
  EXPECT_FALSE(gives());
}

TEST(Adapters, H300_recomputed_layers_give_the_adapters_their_gradients) {
  for (const bool reentrant : {true, false}) {
    const auto model = base();
    load_adapter(*model, adapters("lora"), "default", {.trains = true});
    model->train();
    model->config().set("use_cache", false);
    model->gradient_checkpointing_enable({.use_reentrant = reentrant});
    const SafetensorsFile file = expected("lora");
    const GradModeScope recording(true);
    const Tensor loss = (*model)({{arg::input_ids, file.tensor("input_ids")},
                                  {arg::attention_mask, file.tensor("attention_mask")},
                                  {arg::labels, file.tensor("labels")}})
                            .loss();
    backward(loss);
    for (const auto& [name, parameter] : model->named_parameters()) {
      if (!file.find("grad." + name)) continue;
      ASSERT_TRUE(grad_of(parameter).defined()) << name << reentrant;
      EXPECT_LT(furthest(grad_of(parameter), file.tensor("grad." + name)), 1e-5) << name << reentrant;
    }
  }
}

// ---- training, freezing, sums -------------------------------------------------------------------------------------------------

TEST(Adapters, only_the_active_adapter_is_trained) {
  const auto model = base();
  add_adapter(*model, small_lora(), "one");
  add_adapter(*model, small_lora({{"bias", "lora_only"}}), "two");
  for (const auto& [name, parameter] : model->named_parameters()) {
    const bool biased = name.ends_with("q_proj.base_layer.bias") || name.ends_with("v_proj.base_layer.bias");
    EXPECT_EQ(parameter.requires_grad(), name.find(".two.") != std::string::npos || biased) << name;
  }
}

TEST(Adapters, a_sum_side_by_side_is_exact) {
  const auto model = base();
  add_adapter(*model, small_lora(), "one");
  stir(*model, "one", 0.3);
  add_adapter(*model, small_lora({{"lora_alpha", 3}}), "two");
  stir(*model, "two", -0.2);
  add_weighted_adapter(*model, {"one", "two"}, {0.5, 2.0}, "sum");
  EXPECT_THAT(active_adapters(*model), ElementsAre("two"));
  const StateDict state = model->state_dict();
  const std::string at = "model.layers.0.self_attn.q_proj.";
  const auto product = [&](const std::string& name, double scaling) {
    return state.at(at + "lora_B." + name + ".weight").matmul(state.at(at + "lora_A." + name + ".weight")) * Scalar(scaling);
  };
  EXPECT_LT(furthest(product("sum", 1), product("one", 0.5 * 4) + product("two", 2 * 1.5)), 1e-5);
  EXPECT_EQ(adapter_config(*model, "sum")["r"].to_int(), 4);
  EXPECT_USER_ERROR(add_weighted_adapter(*model, {"one", "two"}, {1, 1}, "other", "svd"), HasSubstr("singular values"));
  EXPECT_USER_ERROR(add_weighted_adapter(*model, {"one", "three"}, {1, 1}, "other"), HasSubstr("three not found"));
}

TEST(Adapters, a_copy_of_the_model_has_adapters_of_its_own) {
  const auto model = base();
  add_adapter(*model, small_lora());
  stir(*model, "default");
  const auto copy = deep_copy(*model);
  EXPECT_TRUE(same(logits(*copy), logits(*model)));
  delete_adapter(*model, "default");
  EXPECT_THAT(adapter_names(*copy), ElementsAre("default"));
  EXPECT_GT(furthest(logits(*copy), logits(*model)), 1e-3);
}

TEST(Adapters, long_lists_of_targets_become_their_shortest_ends) {
  const auto model = base();
  add_adapter(*model, AdapterConfig(AdapterType::lora, {{"target_modules", "all-linear"}}));
  std::vector<std::string> names = adapter_config(*model, "default").names("target_modules").list;
  EXPECT_EQ(names.size(), 14u);  // fewer than twenty stay as they are
  for (const auto& [name, module] : model->named_modules())
    if (dynamic_cast<Linear*>(module) && name.find("lora_") == std::string::npos) {
      EXPECT_TRUE(name.ends_with("base_layer") || name == "lm_head") << name;
    }
}

// ---- what is wrong ----------------------------------------------------------------------------------------------------------

AdapterConfig read(const std::string& json) { return AdapterConfig::from_json(json, "adapter_config.json"); }

TEST(AdapterConfigs, say_what_is_wrong_where_and_what_would_be_right) {
  EXPECT_USER_ERROR(read("{}"),
                    HasSubstr("adapter_config.json: \"peft_type\", which says what kind of adapter it is, is missing"));
  EXPECT_USER_ERROR(read(R"({"peft_type": "VERA"})"),
                    HasSubstr("there is no adapter of \"peft_type\" \"VERA\" in Calque, which has LORA"));
  EXPECT_USER_ERROR(read(R"({"peft_type": "LORA", "r": 0})"),
                    HasSubstr("\"r\" has to be an integer from 1 to 16777216, found 0"));
  EXPECT_USER_ERROR(read(R"({"peft_type": "LORA", "r": 1e3})"), HasSubstr("\"r\" has to be an integer"));
  EXPECT_USER_ERROR(read(R"({"peft_type": "LORA", "lora_dropout": 1})"),
                    HasSubstr("a number from 0 on and below 1, found 1"));
  EXPECT_USER_ERROR(read(R"({"peft_type": "LORA", "bias": "some"})"),
                    HasSubstr("\"none\", \"all\" or \"lora_only\", found 'some'"));
  EXPECT_USER_ERROR(read(R"({"peft_type": "LORA", "use_qalora": true})"), HasSubstr("QA-LoRA"));
  EXPECT_USER_ERROR(read(R"({"peft_type": "LORA", "rank_pattern": {"q": -1}})"),
                    HasSubstr("\"rank_pattern\" has to be an object"));
  EXPECT_USER_ERROR(read(R"({"peft_type": "LORA", "target_modules": "q", "layers_to_transform": [1]})"),
                    HasSubstr("go with a list of \"target_modules\""));
  EXPECT_USER_ERROR(read("[]"), HasSubstr("adapter_config.json"));
  EXPECT_USER_ERROR(AdapterConfig(AdapterType::lora, {{"target_module", "q"}}), HasSubstr("did you mean 'target_modules'?"));
  const Warnings warnings;
  EXPECT_EQ(read(R"({"peft_type": "LORA", "of_tomorrow": 1})")["r"].to_int(), 8);
  EXPECT_TRUE(warnings.any("of_tomorrow"));
}

TEST(Adapters, a_model_that_does_not_fit_is_left_as_it_was) {
  const auto model = base();
  const Tensor before = logits(*model);
  const auto refuse = [&](const Config::Items& items, const std::string& part) {
    EXPECT_USER_ERROR(add_adapter(*model, AdapterConfig(AdapterType::lora, items)), HasSubstr(part));
    EXPECT_EQ(model->adapters, nullptr);
    EXPECT_EQ(model->get_submodule("model.layers.0.self_attn.q_proj").type_name(), Linear::torch_type);
  };
  refuse({{"target_modules", list({"query"})}}, "Target modules ['query'] not found in the base model");
  refuse({{"target_modules", list({"q_proj"})}, {"exclude_modules", ".*"}}, "All modules were excluded");
  refuse({{"target_modules", "(q_proj"}}, "\"target_modules\"");
  refuse({{"target_modules", list({"q_proj", "norm"})}},
         "Target module model.norm is a LlamaRMSNorm, which is not supported");
  refuse({{"target_modules", list({"q_proj"})}, {"trainable_token_indices", list({99})}}, "there is no token 99");
  refuse({{"target_modules", list({"q_proj"})}, {"init_lora_weights", "pissa"}}, "changes the base weights");
  EXPECT_TRUE(same(logits(*model), before));
}

TEST(Adapters, files_that_do_not_fit_say_which_tensor) {
  const auto model = base();
  const Folder folder;
  copy_adapter("lora", folder.path());
  std::string config = text_of(folder.path() / "adapter_config.json");
  config.replace(config.find("\"r\": 3"), 6, "\"r\": 4");
  write(folder.path() / "adapter_config.json", config);
  EXPECT_USER_ERROR(load_adapter(*model, folder.path()), HasSubstr("the rank of model.layers.0.self_attn.q_proj is 4, but"));
  EXPECT_EQ(model->adapters, nullptr);
  fs::remove(folder.path() / "adapter_model.safetensors");
  EXPECT_USER_ERROR(load_adapter(*model, folder.path()), HasSubstr("no adapter_model.safetensors or adapter_model.bin"));
  copy_adapter("lora", folder.path() / "other");
  write(folder.path() / "other" / "adapter_model.safetensors", "not a file of tensors");
  EXPECT_USER_ERROR(load_adapter(*model, folder.path() / "other"), HasSubstr("adapter_model.safetensors"));
  EXPECT_EQ(model->get_submodule("model.layers.0.self_attn.q_proj").type_name(), Linear::torch_type);
}

TEST(Adapters, an_expression_that_never_ends_is_refused) {
  const auto model = base();
  EXPECT_USER_ERROR(add_adapter(*model, AdapterConfig(AdapterType::lora, {{"target_modules", "((a|[a-z._0-9])*)*!"}})),
                    HasSubstr("target_modules"));
}

}  // namespace
}  // namespace calque::load_test

#undef EXPECT_USER_ERROR
