// Gradient checkpointing of models: it is switched by layer, and changes what is kept, not what comes out.
#include "calque/hub/checkpointing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "calque/base/warning.h"
#include "calque/grad/autograd.h"
#include "calque/hub/registry.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/make.h"
#include "hub/hub_support.h"
#include "support/live_bytes.h"

namespace calque::checkpointing_test {
namespace {

using namespace hub_test;
using testing::HasSubstr;

struct NoLayers : PretrainedModel {
  NoLayers() : PretrainedModel(Config{}) {}
  std::string type_name() const override { return "NoLayers"; }
  std::span<const ModelArgument> arguments() const override { return {}; }
  ModelOutput forward(const ModelInputs&) override { return {}; }
};

TEST(GradientCheckpointing, H296_H297_is_switched_on_every_layer) {
  const auto model = tiny_llama();
  EXPECT_FALSE(model->is_gradient_checkpointing());
  std::vector<GradientCheckpointingLayer*> layers;
  for (Module* module : model->modules())
    if (auto* layer = dynamic_cast<GradientCheckpointingLayer*>(module)) layers.push_back(layer);
  ASSERT_EQ(layers.size(), static_cast<size_t>(model->config().integer("num_hidden_layers")));
  model->gradient_checkpointing_enable();
  EXPECT_TRUE(model->is_gradient_checkpointing());
  for (const GradientCheckpointingLayer* layer : layers)
    EXPECT_TRUE(layer->gradient_checkpointing && layer->gradient_checkpointing->use_reentrant);
  model->gradient_checkpointing_disable();
  EXPECT_FALSE(model->is_gradient_checkpointing());
  for (const GradientCheckpointingLayer* layer : layers) EXPECT_FALSE(layer->gradient_checkpointing);
  struct Without : NoLayers {
    bool supports_gradient_checkpointing() const override { return false; }
  } without;
  EXPECT_EQ(error_of([&] { without.gradient_checkpointing_enable(); }), "NoLayers does not support gradient checkpointing.");
  NoLayers no_layers;
  EXPECT_THAT(error_of([&] { no_layers.gradient_checkpointing_enable(); }),
              HasSubstr("NoLayers is not compatible with gradient checkpointing: none of its modules is a layer"));
}

TEST(GradientCheckpointing, H298_a_config_of_old_switches_it_on_once) {
  const Config config = Config::from_json(
      R"({"model_type": "llama", "vocab_size": 40, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
    "num_attention_heads": 4, "gradient_checkpointing": true})");
  const auto model = model_registry().find_class("LlamaForCausalLM")->make(config);
  EXPECT_TRUE(model->is_gradient_checkpointing());
  EXPECT_FALSE(model->config().has("gradient_checkpointing"));
}

// A training step: with the given options, or without checkpointing; gradients by name.
std::map<std::string, Tensor> step_gradients(PretrainedModel& model, const CheckpointingOptions* options,
                                             bool use_cache = false) {
  model.train();
  if (options)
    model.gradient_checkpointing_enable(*options);
  else
    model.gradient_checkpointing_disable();
  const Tensor ids = tensor_of<int64_t>({3, 5, 7, 9, 11, 2, 4, 6}, {2, 4});
  const ModelInputs inputs{{arg::input_ids, ids}, {arg::labels, ids}, {arg::use_cache, use_cache}};
  const GradModeScope recording(true);
  const ModelOutput out = model(inputs);
  EXPECT_EQ(out.has("past_key_values"), use_cache && !options);
  backward(out.loss());
  std::map<std::string, Tensor> gradients;
  for (const auto& [name, parameter] : model.named_parameters()) {
    gradients[name] = grad_of(parameter);
    set_grad(parameter, Tensor());
  }
  return gradients;
}

TEST(GradientCheckpointing, H299_a_training_step_with_checkpointing_leaves_every_gradient) {
  const auto model = tiny_llama();
  const auto expected = step_gradients(*model, nullptr);
  constexpr CheckpointingOptions reentrant{.use_reentrant = true}, plain{.use_reentrant = false};
  for (const CheckpointingOptions& options : {reentrant, plain})
    for (const auto& [name, gradient] : step_gradients(*model, &options)) {
      ASSERT_TRUE(gradient.defined()) << name;
      EXPECT_TRUE(same_bits(gradient, expected.at(name))) << name;
    }
}

TEST(GradientCheckpointing, H299_checkpointed_layers_make_no_cache) {
  const auto model = tiny_llama();
  std::vector<std::string> warnings;
  reset_warnings();
  const WarningSink before = set_warning_sink([&](std::string_view text) { warnings.emplace_back(text); });
  constexpr CheckpointingOptions options{};
  (void)step_gradients(*model, &options, true);
  set_warning_sink(before);
  EXPECT_EQ(warnings, std::vector<std::string>{
                          "`use_cache=True` is incompatible with gradient checkpointing. Setting `use_cache=False`."});
}

TEST(GradientCheckpointing, checkpointing_each_second_layer_leaves_the_others) {
  const auto model = tiny_llama();
  model->gradient_checkpointing_enable({}, 2);
  std::vector<bool> on;
  for (Module* module : model->modules())
    if (const auto* layer = dynamic_cast<GradientCheckpointingLayer*>(module))
      on.push_back(layer->gradient_checkpointing.has_value());
  for (size_t i = 0; i < on.size(); ++i) EXPECT_EQ(on[i], i % 2 == 0);
  EXPECT_THAT(error_of([&] { model->gradient_checkpointing_enable({}, 0); }), HasSubstr("every_n_layers is 0"));
}

TEST(GradientCheckpointing, embeddings_can_want_gradients_although_nothing_trains_them) {
  const auto model = tiny_llama();
  model->requires_grad_(false);
  const Tensor ids = tensor_of<int64_t>({3, 5, 7}, {1, 3});
  const GradModeScope recording(true);
  const auto wants = [&] {
    const ModelInputs inputs{{arg::input_ids, ids}};
    return (*model)(inputs).logits().requires_grad();
  };
  EXPECT_FALSE(wants());
  model->enable_input_require_grads();
  EXPECT_TRUE(wants());
  model->disable_input_require_grads();
  EXPECT_FALSE(wants());
}

TEST(GradientCheckpointing, checkpointing_keeps_less) {
  const auto model = tiny_llama();
  model->train();
  const Tensor ids = ones({4, 16}, DType::int64);
  const GradModeScope recording(true);
  const auto kept = [&] {
    test::LiveBytes live;
    const ModelInputs inputs{{arg::input_ids, ids}, {arg::labels, ids}};
    Tensor loss;
    {
      const ModeScope counting(live);
      loss = (*model)(inputs).loss();
    }
    return live.count();
  };
  const size_t whole = kept();
  for (const bool reentrant : {false, true}) {
    model->gradient_checkpointing_enable({.use_reentrant = reentrant});
    EXPECT_LT(kept(), whole / 2) << reentrant;
  }
}

}  // namespace
}  // namespace calque::checkpointing_test
