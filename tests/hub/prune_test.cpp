#include "calque/hub/prune.h"

#include <gtest/gtest.h>

#include "calque/file/safetensors.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/registry.h"
#include "calque/hub/resize.h"
#include "calque/hub/save_pretrained.h"
#include "calque/nn/normalization.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/zeros.h"
#include "calque/tensor/generator.h"
#include "hub/hub_support.h"

namespace calque::prune_test {
namespace {

using namespace hub_test;

Tensor pruned_logits(PretrainedModel& model, const Tensor& ids) {
  const GradModeScope no_grad(false);
  const ModelOutput out = model({{arg::input_ids, ids}});
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

// A head that is gone is a head whose columns in the layer behind it are zeros.
TEST(Prune, heads_of_a_decoder_are_pruned_attention_by_attention) {
  const GradModeScope no_grad(false);
  const std::vector<std::pair<std::string, std::vector<int64_t>>> gone = {{"encoder.block.1.layer.0.SelfAttention", {0}},
                                                                          {"decoder.block.0.layer.0.SelfAttention", {1}},
                                                                          {"decoder.block.1.layer.0.SelfAttention", {0, 1}},
                                                                          {"decoder.block.0.layer.1.EncDecAttention", {1}},
                                                                          {"decoder.block.1.layer.1.EncDecAttention", {0}}};
  Config config = from_pretrained(golden("prune/t5"))->config();
  config.set("is_encoder_decoder", true);
  config.set("use_cache", true);
  const auto whole = model_registry().find_class("T5ForConditionalGeneration")->make(config);
  whole->tie_weights();
  whole->eval();
  Generator generator(0);
  for (const auto& [name, parameter] : whole->named_parameters())
    parameter.copy_(randn(parameter.sym_sizes(), &generator) * 0.3);
  const auto pruned = deep_copy(*whole), zeroed = deep_copy(*whole);
  const int64_t size = pruned->config().integer("d_kv"), count = pruned->config().integer("num_heads");
  for (const auto& [path, heads] : gone) {
    prune_attention_heads(pruned->get_submodule(path), heads);
    prune_attention_heads(pruned->get_submodule(path), heads);  // once is enough
    const Tensor output = zeroed->get_parameter(path + ".o.weight");
    for (const int64_t head : heads) output.narrow(1, head * size, size).zero_();
    EXPECT_EQ(pruned->get_parameter(path + ".o.weight").size(1), (count - std::ssize(heads)) * size) << path;
    EXPECT_EQ(pruned->get_parameter(path + ".q.weight").size(0), (count - std::ssize(heads)) * size) << path;
  }
  const Tensor ids = tensor_of<int64_t>({5, 6, 7, 8, 9, 1}, {1, 6}), begun = tensor_of<int64_t>({0, 11, 12, 13}, {1, 4});
  const ModelInputs in{{arg::input_ids, ids}, {arg::decoder_input_ids, begun}, {arg::use_cache, true}};
  const ModelOutput found = (*pruned)(in), expected = (*zeroed)(in);
  EXPECT_LT(distance(found["logits"], expected["logits"]), 1e-5);
  EXPECT_GT(distance((*whole)(in)["logits"], expected["logits"]), 1e-3);
  const auto next = [&](PretrainedModel& model, const ModelOutput& before) {
    return model({{arg::input_ids, ids},
                  {arg::decoder_input_ids, tensor_of<int64_t>({14}, {1, 1})},
                  {arg::past_key_values, before.past_key_values()},
                  {arg::use_cache, true}})["logits"];
  };
  EXPECT_LT(distance(next(*pruned, found), next(*zeroed, expected)), 1e-5) << "with a cache of fewer heads";
  EXPECT_EQ(error_of([&] { prune_attention_heads(pruned->get_submodule("lm_head"), {0}); }),
            "prune_attention_heads: heads cannot be pruned from a Linear");
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
}  // namespace calque::prune_test
