// Named inputs of models: typed access, what counts as given, and the check against what a class takes.
#include "calque/hub/model_inputs.h"

#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/hub/registry.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/literal.h"
#include "hub/hub_support.h"

namespace calque::model_inputs_test {
namespace {

constexpr ArgumentName<Tensor> pixel_values{"pixel_values"};

std::shared_ptr<PretrainedModel> small_bert(const std::string& model_class) {
  const auto model =
      model_registry()
          .find_class(model_class)
          ->make(Config::from_json(
              R"({"model_type": "bert", "vocab_size": 40, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
    "num_attention_heads": 4, "max_position_embeddings": 32, "is_decoder": true})"));
  model->init_all_weights();
  model->eval();
  return model;
}

std::string error_of(PretrainedModel& model, const ModelInputs& inputs) {
  try {
    model(inputs);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(NamedInputs, are_read_by_typed_name) {
  const Tensor ids = tensor({{1, 2}}, DType::int64), pixels = ones({1, 3, 2, 2});
  ModelInputs in{{arg::input_ids, ids}, {arg::use_cache, true}, {arg::logits_to_keep, 1}};
  in.set(pixel_values, pixels);
  EXPECT_TRUE(in[arg::input_ids].is_same(ids));
  EXPECT_TRUE(in[pixel_values].is_same(pixels));
  EXPECT_TRUE(in.tensor("pixel_values").is_same(pixels));
  EXPECT_EQ(in[arg::use_cache], std::optional(true));
  EXPECT_EQ(in[arg::logits_to_keep], std::optional<int64_t>(1));
  EXPECT_EQ(in.get("use_cache").str(), "True");
}

TEST(NamedInputs, what_is_not_given_is_empty) {
  ModelInputs in{{arg::input_ids, Tensor()}, {arg::use_cache, std::nullopt}, {arg::past_key_values, KeyValueCache()}};
  EXPECT_TRUE(in.items().empty());
  EXPECT_FALSE(in[arg::input_ids].defined());
  EXPECT_EQ(in[arg::use_cache], std::nullopt);
  EXPECT_TRUE(in[arg::past_key_values].empty());
  EXPECT_TRUE(in[arg::encoder_outputs].is_none());
  in.set(arg::use_cache, false);
  EXPECT_TRUE(in.has("use_cache"));
  in.set(arg::use_cache, std::nullopt);
  EXPECT_FALSE(in.has("use_cache"));
}

TEST(NamedInputs, keywords_are_in_the_order_of_the_class) {
  const ModelInputs in{{arg::labels, ones({1})}, {arg::use_cache, true}, {arg::input_ids, ones({1})}};
  const ModelArgument taken[] = {arg::input_ids, arg::attention_mask, arg::labels};
  const Kwargs kwargs = in.to_kwargs(taken);
  ASSERT_EQ(kwargs.size(), 2U);
  EXPECT_EQ(kwargs[0].first, "input_ids");
  EXPECT_EQ(kwargs[1].first, "labels");
}

TEST(NamedInputs, an_argument_that_the_class_does_not_take_is_an_error_that_lists_what_it_takes) {
  const auto model = small_bert("BertForNextSentencePrediction");
  const Tensor ids = tensor({{1, 2, 3}}, DType::int64);
  EXPECT_EQ(error_of(*model, {{arg::input_ids, ids}, {arg::bbox, ids}}),
            "BertForNextSentencePrediction.forward() got an unexpected keyword argument 'bbox'; it takes input_ids, "
            "attention_mask, token_type_ids, position_ids, inputs_embeds, labels, head_mask, output_attentions, "
            "output_hidden_states");
  EXPECT_EQ(error_of(*model, {{"input_idz", ids}}).substr(0, 80),
            "BertForNextSentencePrediction.forward() got an unexpected keyword argument 'inpu");
  // What a head takes and its base model does not stays with the head.
  EXPECT_EQ(error_of(*model, {{arg::input_ids, ids}, {arg::labels, tensor({1}, DType::int64)}}), "");
}

TEST(NamedInputs, values_given_by_name_have_the_kind_that_the_class_says) {
  const GradModeScope no_grad(false);
  const auto model = small_bert("BertLMHeadModel");
  const Tensor ids = tensor({{1, 2, 3, 4}}, DType::int64);
  const ModelOutput begun = (*model)({{"input_ids", ids.slice(1, 0, 3)}, {"use_cache", true}});
  const ModelOutput ended =
      (*model)({{"input_ids", ids.slice(1, 3)}, {"past_key_values", begun.past_key_values().to_value()}});
  const ModelOutput whole = (*model)({{arg::input_ids, ids}});
  EXPECT_TRUE(ended["logits"].allclose(whole["logits"].slice(1, 3), 1e-4, 1e-5));
  EXPECT_EQ(error_of(*model, {{"input_ids", ids}, {"use_cache", "yes"}}).substr(0, 20), "argument use_cache: ");
  EXPECT_EQ(error_of(*model, {{"input_ids", 3}}).substr(0, 20), "argument input_ids: ");
}

TEST(NamedInputs, another_kind_than_the_names_is_said_where_it_is_read) {
  const ModelInputs in{{"use_cache", ones({1})}};
  try {
    static_cast<void>(in[arg::use_cache]);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "argument use_cache: expected a bool, found a tensor");
  }
}

}  // namespace
}  // namespace calque::model_inputs_test
