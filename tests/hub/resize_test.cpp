#include "calque/hub/resize.h"

#include <gtest/gtest.h>

#include "calque/base/warning.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/model_info.h"
#include "calque/hub/registry.h"
#include "calque/hub/save_pretrained.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/embedding.h"
#include "calque/op/aten/zeros.h"
#include "hub/hub_support.h"

namespace calque::resize_test {
namespace {

using namespace hub_test;

Tensor run(PretrainedModel& model, int64_t vocabulary) {
  const GradModeScope no_grad(false);
  return model({{arg::input_ids, full({1, 4}, vocabulary - 1, DType::int64)}})["logits"];
}

TEST(Resize, H093_H094_rows_at_the_end_come_and_go) {
  const auto model = tiny_llama();
  const Tensor before = get_input_embeddings(*model).weight->detach().clone();
  Embedding& same = resize_token_embeddings(*model, 50);
  EXPECT_EQ(&same, &get_input_embeddings(*model));
  EXPECT_EQ(same.num_embeddings, 50);
  EXPECT_EQ(model->config().integer("vocab_size"), 50);
  EXPECT_EQ(model->base_model().config().integer("vocab_size"), 50);
  EXPECT_TRUE(same_bits((*same.weight).detach().slice(0, 0, 40), before));
  EXPECT_EQ(run(*model, 50).size(-1), 50);
  resize_token_embeddings(*model, 25);
  EXPECT_EQ(model->config().integer("vocab_size"), 25);
  EXPECT_TRUE(same_bits(*same.weight, before.slice(0, 0, 25)));
  EXPECT_EQ(run(*model, 25).size(-1), 25);
}

TEST(Resize, padding_to_a_multiple) {
  const auto model = tiny_llama();
  EXPECT_EQ(resize_token_embeddings(*model, 41, {.pad_to_multiple_of = 8}).num_embeddings, 48);
  EXPECT_EQ(resize_token_embeddings(*model, std::nullopt, {.pad_to_multiple_of = 64}).num_embeddings, 64);
  EXPECT_EQ(model->config().integer("vocab_size"), 64);
}

TEST(Resize, H096_a_multiple_is_an_integer) {
  const auto model = tiny_llama();
  EXPECT_EQ(error_of([&] { resize_token_embeddings(*model, 41, {.pad_to_multiple_of = 1.3}); }),
            "Asking to pad the embedding matrix to a multiple of `1.3`, which is not an integer. Please make sure to pass "
            "an integer");
}

TEST(Resize, H097_an_untied_head_follows) {
  const auto model = tiny_llama("LlamaForCausalLM", false);
  Linear& head = *get_output_embeddings(*model);
  const Tensor before = head.weight->detach().clone();
  for (const int64_t size : {50, 25}) {
    resize_token_embeddings(*model, size);
    EXPECT_EQ(head.weight->size(0), size);
    EXPECT_EQ(head.out_features, size);
    const int64_t kept = std::min<int64_t>(size, 40);
    EXPECT_TRUE(same_bits(head.weight->detach().slice(0, 0, kept), before.slice(0, 0, kept)));
  }
}

TEST(Resize, H097_biases_follow_too) {
  const Config config = Config::from_json(
      R"({"model_type": "bert", "vocab_size": 40, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
    "num_attention_heads": 4, "max_position_embeddings": 32})");
  const auto model = model_registry().find_class("BertForMaskedLM")->make(config);
  model->init_all_weights();
  model->eval();
  const int64_t parameters = static_cast<int64_t>(model->named_parameters().size());
  for (const int64_t size : {50, 25}) {
    resize_token_embeddings(*model, size);
    EXPECT_EQ(model->get_parameter("cls.predictions.decoder.bias").size(0), size);
    EXPECT_EQ(model->get_parameter("cls.predictions.bias").size(0), size);
    EXPECT_EQ(static_cast<int64_t>(model->named_parameters().size()), parameters);
    EXPECT_EQ(run(*model, size).size(-1), size);
  }
}

TEST(Resize, H098_without_a_size_nothing_happens) {
  const auto model = tiny_llama();
  const Tensor before = get_input_embeddings(*model).weight;
  resize_token_embeddings(*model);
  EXPECT_TRUE(get_input_embeddings(*model).weight->is_same(before));
  resize_token_embeddings(*model, 40);
  EXPECT_TRUE(get_input_embeddings(*model).weight->is_same(before));
  EXPECT_EQ(model->config().integer("vocab_size"), 40);
}

TEST(Resize, H099_a_tied_model_stays_tied) {
  const auto model = tiny_llama("LlamaForCausalLM", true);
  const size_t parameters = model->named_parameters().size();
  resize_token_embeddings(*model, 50);
  EXPECT_EQ(model->named_parameters().size(), parameters);
  EXPECT_TRUE(get_output_embeddings(*model)->weight->is_same(get_input_embeddings(*model).weight));
  EXPECT_EQ(get_output_embeddings(*model)->out_features, 50);
  TemporaryFolder folder;
  save_pretrained(*model, folder.path());
  EXPECT_EQ(difference(*from_pretrained(folder.path()), *model), "");
}

TEST(Resize, H100_dtype_and_gradients_stay) {
  const auto model = tiny_llama("LlamaForCausalLM", false);
  model->to(DType::bfloat16);
  get_input_embeddings(*model).weight->set_requires_grad(false);
  const Embedding& embedding = resize_token_embeddings(*model, 50);
  EXPECT_EQ(embedding.weight->dtype(), DType::bfloat16);
  EXPECT_FALSE(embedding.weight->requires_grad());
  EXPECT_TRUE(get_output_embeddings(*model)->weight->requires_grad());
  // As the architecture starts them: not all the same, small.
  const auto fresh = tiny_llama("LlamaForCausalLM", false);
  const Tensor rows = resize_token_embeddings(*fresh, 2000, {.mean_resizing = false}).weight->detach().slice(0, 40);
  EXPECT_NEAR(rows.pow(2).mean().item().to_double(), 0.02 * 0.02, 0.00002);
}

TEST(Resize, new_rows_are_around_the_mean_of_the_old_ones) {
  const auto model = tiny_llama("LlamaForCausalLM", false);
  const Tensor mean = get_input_embeddings(*model).weight->detach().mean({0});
  const Tensor rows = resize_token_embeddings(*model, 500).weight->detach().slice(0, 40);
  const Tensor off = rows - mean;
  EXPECT_LT(off.abs().max().item().to_double(), 1e-5);
  EXPECT_GT(off.abs().max().item().to_double(), 0);
}

struct NoEmbeddings : PretrainedModel {
  NoEmbeddings() : PretrainedModel(Config{}) {}
  ModelOutput forward(const ModelInputs&) override { return {}; }
  std::span<const ModelArgument> arguments() const override { return {}; }
  std::string type_name() const override { return "tests.NoEmbeddings"; }
};

TEST(Resize, H103_accessors_ask_the_base_model) {
  const auto model = tiny_llama("LlamaForSequenceClassification");
  EXPECT_EQ(&get_input_embeddings(*model), &get_input_embeddings(model->base_model()));
  EXPECT_EQ(get_output_embeddings(*model), nullptr);
  NoEmbeddings none;
  EXPECT_EQ(error_of([&] { get_input_embeddings(none); }), "NoEmbeddings has no input embeddings that it could give");
}

struct TiedWithBias : NoEmbeddings {
  TiedWithBias() : embedding(child<Embedding>("embedding", 6, 3)), head(child<Linear>("head", 3, 4)) {}
  TiedWeights tied_weights() const override { return {{"head.weight", "embedding.weight"}}; }
  Child<Embedding> embedding;
  Child<Linear> head;
};

TEST(Tie, H089_a_bias_is_padded_and_rows_are_counted) {
  TiedWithBias model;
  const Tensor bias = model.head->bias->detach().clone();
  model.tie_weights();
  EXPECT_TRUE(model.head->weight->is_same(model.embedding->weight));
  EXPECT_EQ(model.head->out_features, 6);
  EXPECT_TRUE(same_bits(model.head->bias->detach(), cat({bias, zeros({2})}, 0)));
  model.config().set("torchscript", true);
  model.tie_weights();
  EXPECT_FALSE(model.head->weight->is_same(model.embedding->weight));
  EXPECT_TRUE(same_bits(model.head->weight->detach(), model.embedding->weight->detach()));
}

TEST(ModelInfo, H077_H078_H079_parameters_bytes_and_operations) {
  const auto model = tiny_llama("LlamaForCausalLM", true);
  EXPECT_EQ(num_parameters(*model), 4560);
  EXPECT_EQ(num_parameters(*model, false, true), 4560 - 640);
  get_input_embeddings(*model).weight->set_requires_grad(false);
  EXPECT_EQ(num_parameters(*model, true), 4560 - 640);
  EXPECT_EQ(memory_footprint(*model, false), 4560 * 4);
  EXPECT_GT(memory_footprint(*model), 4560 * 4);
  EXPECT_EQ(floating_point_ops(*model, {{arg::input_ids, zeros({2, 5}, DType::int64)}}), 6 * 10 * (4560 - 640));
  std::vector<std::string> warnings;
  reset_warnings();
  const WarningSink before = set_warning_sink([&](std::string_view text) { warnings.emplace_back(text); });
  EXPECT_EQ(floating_point_ops(*model, {}), 0);
  EXPECT_EQ(floating_point_ops(*model, {}), 0);
  set_warning_sink(before);
  EXPECT_EQ(warnings,
            std::vector<std::string>{
                "Could not estimate the number of tokens of the input, floating-point operations will not be computed"});
}

TEST(ModelInfo, memory_hooks_record_and_reset) {
  const auto model = tiny_llama();
  MemoryHooks hooks(*model);
  run(*model, 40);
  EXPECT_GT(hooks.usage().at("model.layers.0").post_forward, 0);
  hooks.reset();
  EXPECT_EQ(hooks.usage().at("model.layers.0").post_forward, 0);
}

TEST(ModelInfo, tags_are_added_once) {
  NoEmbeddings model;
  model.add_model_tags({"a", "b"});
  model.add_model_tags({"b", "c"});
  EXPECT_EQ(model.model_tags, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(ModelInfo, padding_without_a_mask_is_a_warning) {
  const auto model = tiny_llama();
  std::vector<std::string> warnings;
  reset_warnings();
  const WarningSink before = set_warning_sink([&](std::string_view text) { warnings.emplace_back(text); });
  const Tensor ids = ones({2, 4}, DType::int64);
  warn_if_padding_and_no_attention_mask(*model, ids, {});
  EXPECT_TRUE(warnings.empty());
  const Tensor padded = cat({ids, zeros({2, 1}, DType::int64)}, 1);
  warn_if_padding_and_no_attention_mask(*model, padded, ones({2, 5}));
  EXPECT_TRUE(warnings.empty());
  warn_if_padding_and_no_attention_mask(*model, padded, {});
  set_warning_sink(before);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(warnings[0].starts_with("We strongly recommend passing in an `attention_mask`"));
  EXPECT_EQ(warnings[0].find("You may ignore"), std::string::npos);
}

// Those whose forward in transformers 5 (of nezha in 4.40, which was the last to have it) looks for padding.
TEST(ModelInfo, models_that_look_for_padding_warn_of_it_once) {
  const auto warnings_of = [](const std::string& type, const std::string& name, const ModelInputs& in) {
    const Config config =
        Config::from_json(R"({"model_type": ")" + type + R"(", "vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 1,
      "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 16, "pad_token_id": 3, "eos_token_id": 3,
      "bos_token_id": 1})");
    const auto model = model_registry().find_class(name)->make(config);
    model->eval();
    const GradModeScope no_grad(false);
    std::vector<std::string> warnings;
    reset_warnings();
    const WarningSink before = set_warning_sink([&](std::string_view text) { warnings.emplace_back(text); });
    (*model)(in);
    (*model)(in);
    set_warning_sink(before);
    return warnings;
  };
  const Tensor inside = tensor_of<int64_t>({5, 3, 6}, {1, 3}), last = tensor_of<int64_t>({5, 6, 7, 8, 9, 3}, {2, 3});
  const std::string expected =
      "We strongly recommend passing in an `attention_mask` since your input_ids may be padded. See "
      "https://huggingface.co/docs/transformers/troubleshooting#incorrect-output-when-padding-tokens-arent-masked.\n"
      "You may ignore this warning if your `pad_token_id` (3) is identical to the `bos_token_id` (1), `eos_token_id` (3), "
      "or "
      "the `sep_token_id` (None), and your input is not padded.";
  for (const auto& [type, name] : std::vector<std::pair<std::string, std::string>>{{"gpt2", "GPT2LMHeadModel"},
                                                                                   {"deberta", "DebertaModel"},
                                                                                   {"deberta-v2", "DebertaV2Model"},
                                                                                   {"megatron-bert", "MegatronBertModel"},
                                                                                   {"layoutlm", "LayoutLMModel"},
                                                                                   {"nezha", "NezhaModel"}}) {
    EXPECT_EQ(warnings_of(type, name, {{arg::input_ids, last}}), std::vector<std::string>{expected}) << name;
    EXPECT_TRUE(warnings_of(type, name, {{arg::input_ids, inside}}).empty()) << name;
    EXPECT_TRUE(warnings_of(type, name, {{arg::input_ids, last}, {arg::attention_mask, ones({2, 3})}}).empty()) << name;
  }
  EXPECT_TRUE(warnings_of("bert", "BertModel", {{arg::input_ids, last}}).empty());
}

}  // namespace
}  // namespace calque::resize_test
