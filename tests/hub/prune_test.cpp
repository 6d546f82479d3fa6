#include "calque/hub/prune.h"

#include <gtest/gtest.h>

#include "calque/file/safetensors.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/registry.h"
#include "calque/hub/resize.h"
#include "calque/hub/save_pretrained.h"
#include "calque/nn/normalization.h"
#include "calque/op/ops.h"
#include "hub/hub_support.h"

namespace calque {
namespace {

using namespace hub_test;

Tensor pruned_logits(PretrainedModel& model, const Tensor& ids) {
  const GradModeScope no_grad(false);
  const ModelOutput out = model({.input_ids = ids});
  return out.has("logits") ? out["logits"] : out["last_hidden_state"];
}
double distance(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item().to_double(); }

TEST(Prune, H108_indices_that_stay) {
  const PruneableHeads first = find_pruneable_heads_and_indices({1}, 3, 2, {});
  EXPECT_EQ(first.heads, std::set<int64_t>{1});
  EXPECT_EQ(first.index, (std::vector<int64_t>{0, 1, 4, 5}));
  const PruneableHeads second = find_pruneable_heads_and_indices({1, 2}, 2, 2, {1});
  EXPECT_EQ(second.heads, std::set<int64_t>{2});
  EXPECT_EQ(second.index, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(error_of([] { find_pruneable_heads_and_indices({5}, 3, 2, {1}); }), "prune_heads: head 5; the layer had 4");
}

TEST(Prune, H110_layers_are_pruned_by_their_output_features) {
  Linear layer(3, 4);
  const Tensor weight = layer.weight->detach().clone();
  prune_layer(layer, {0, 2});
  EXPECT_TRUE(same_bits(layer.weight->detach().select(0, 1), weight.select(0, 2)));
  EXPECT_EQ(layer.out_features, 2);
  EXPECT_EQ(layer.bias->size(0), 2);
  prune_layer(layer, {1}, 1);
  EXPECT_EQ(layer.in_features, 1);
  EXPECT_EQ(layer.bias->size(0), 2);
  LayerNorm norm(3);
  EXPECT_EQ(error_of([&] { prune_layer(norm, {0}); }),
            "Can't prune layer of class torch.nn.modules.normalization.LayerNorm; expected a Linear or a Conv1D");
}

class PrunedModels : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, PrunedModels, ::testing::Values("bert", "gpt2", "albert", "distilbert", "t5"));

TEST_P(PrunedModels, H105_H106_H111_pruned_models_answer_as_in_transformers) {
  const std::string name = GetParam();
  const SafetensorsFile golden_file = SafetensorsFile::open((golden("prune/" + name) / "pruned.safetensors").string());
  const Tensor ids = golden_file.tensor("input_ids");
  const auto model = from_pretrained(golden("prune/" + name));
  EXPECT_LT(distance(pruned_logits(*model, ids), golden_file.tensor("before")), 1e-5);
  prune_heads(*model, {{0, {1, 2}}});
  prune_heads(*model, {{0, {3, 1}}, {1, {0}}});
  EXPECT_LT(distance(pruned_logits(*model, ids), golden_file.tensor("after")), 1e-5);
  EXPECT_EQ(pruned_heads(model->config()), (PrunedHeads{{0, {1, 2, 3}}, {1, {0}}}));
  // The shapes are those of transformers.
  for (const auto& [key, tensor] : model->state_dict())
    if (golden_file.find("shape/" + key)) {
      const Tensor shape = golden_file.tensor("shape/" + key);
      for (int64_t d = 0; d < tensor.dim(); ++d) EXPECT_EQ(tensor.size(d), shape.select(0, d).item().to_int()) << key;
    }
  // Saved and loaded it stays pruned; so does what transformers saved, and a model made from such a config.
  TemporaryFolder folder;
  save_pretrained(*model, folder.path());
  EXPECT_LT(distance(pruned_logits(*from_pretrained(folder.path()), ids), golden_file.tensor("after")), 1e-5);
  const auto other = from_pretrained(golden("prune/" + name + "_pruned"));
  EXPECT_LT(distance(pruned_logits(*other, ids), golden_file.tensor("after")), 1e-5);
  const auto made = model_registry().find_class(model->class_name())->make(model->config());
  made->tie_weights();
  EXPECT_EQ(made->named_parameters().size(), model->named_parameters().size());
  for (const auto& [key, tensor] : made->named_parameters())
    EXPECT_EQ(tensor.numel(), model->get_parameter(key).numel()) << key;
}

TEST(Positions, learned_rows_stay_and_longer_texts_fit) {
  const auto model = from_pretrained(golden("prune/distilbert"));
  const Tensor ids = full({1, 20}, 3, DType::int64), shorter = ids.narrow(1, 0, 9);
  const Tensor before = pruned_logits(*model, shorter);
  resize_position_embeddings(*model, 24);
  EXPECT_EQ(model->config().integer("max_position_embeddings"), 24);
  EXPECT_EQ(pruned_logits(*model, ids).size(1), 20);
  EXPECT_TRUE(same_bits(pruned_logits(*model, shorter), before));
  resize_position_embeddings(*model, 9);
  EXPECT_TRUE(same_bits(pruned_logits(*model, shorter), before));
  TemporaryFolder folder;
  save_pretrained(*model, folder.path());
  EXPECT_TRUE(same_bits(pruned_logits(*from_pretrained(folder.path()), shorter), before));
  EXPECT_EQ(error_of([&] { resize_position_embeddings(*tiny_llama(), 9); }),
            "resize_position_embeddings: LlamaForCausalLM cannot have other positions");
}

TEST(Prune, a_class_that_cannot_says_so) {
  const auto model = tiny_llama();
  EXPECT_EQ(error_of([&] { prune_heads(*model, {{0, {1}}}); }), "LlamaModel: heads cannot be pruned from this class");
  EXPECT_EQ(error_of([&] { prune_heads(*model, {{7, {1}}}); }), "prune_heads: layer 7; the model has 2");
}

}  // namespace
}  // namespace calque
