// Models: behaviours that transformers' tests/test_modeling_common.py checks of every class, on the small models of
// tests/zoo/golden. The comment of each test names where the behaviour comes from; numbers are what transformers gave for the
// same weights and inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "calque/hub/from_pretrained.h"
#include "calque/hub/model_info.h"
#include "calque/hub/resize.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/shaping.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/index.h"
#include "calque/op/literal.h"
#include "calque/trace/fake.h"
#include "hub/hub_support.h"
#include "support/paths.h"

namespace calque::modeling_test {
namespace {

using hub_test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct ModelingBehaviour : ::testing::Test {
  const GradModeScope no_grad{false};
  static std::filesystem::path folder(const std::string& name) {
    return std::filesystem::path(test::source_folder()) / "tests/zoo/golden" / name;
  }
  static std::shared_ptr<PretrainedModel> load(const std::string& name, const std::string& model_class = "",
                                               const std::string& attention = "") {
    return from_pretrained(folder(name), {.model_class = model_class, .attention = attention});
  }
  static Tensor ids() { return (arange(10) + 3).view({2, 5}); }
  static double loss(PretrainedModel& model, const ModelInputs& inputs) { return model(inputs)["loss"].item_as<double>(); }
  static double worst(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item_as<double>(); }
  // The first values of a tensor.
  static std::vector<double> first(const Tensor& t, int64_t count) {
    std::vector<double> out;
    const Tensor flat = t.reshape({-1});
    for (int64_t i = 0; i < count; ++i) out.push_back(flat.select(0, i).item_as<double>());
    return out;
  }
  static void expect_near(const Tensor& t, const std::vector<double>& expected, double tolerance = 2e-5) {
    const std::vector<double> found = first(t, static_cast<int64_t>(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], tolerance) << i;
  }
  // A head that a checkpoint lacks gets values from -1 to 1.
  static void fill(PretrainedModel& model, const std::string& path) {
    const Tensor p = model.get_parameter(path);
    p.copy_(linspace(-1, 1, p.numel()).view(p.sym_sizes()));
  }
  static std::shared_ptr<PretrainedModel> bert_with_head(const std::string& model_class,
                                                         const std::string& head = "classifier") {
    const auto model = load("bert", model_class);
    fill(*model, head + ".weight");
    fill(*model, head + ".bias");
    return model;
  }
};

// test_determinism
TEST_F(ModelingBehaviour, B601_the_same_input_gives_the_same_bits) {
  for (const char* name : {"bert", "llama", "gpt2", "distilbert", "opt", "bloom"}) {
    const auto model = load(name);
    const ModelOutput a = (*model)({{arg::input_ids, ids()}}), b = (*model)({{arg::input_ids, ids()}});
    EXPECT_TRUE(hub_test::same_bits(a.items()[0].second.to_tensor(), b.items()[0].second.to_tensor())) << name;
  }
}

// test_batching_equivalence
TEST_F(ModelingBehaviour, B602_a_row_alone_gives_what_it_gives_in_a_batch) {
  for (const char* name : {"bert", "llama", "gpt2", "albert", "electra", "xglm"}) {
    const auto model = load(name);
    const Tensor batch = (*model)({{arg::input_ids, ids()}}).items()[0].second.to_tensor();
    for (int64_t row = 0; row < 2; ++row) {
      const Tensor alone = (*model)({{arg::input_ids, ids().narrow(0, row, 1)}}).items()[0].second.to_tensor();
      EXPECT_LT(worst(alone.select(0, 0), batch.select(0, row)), 1e-5) << name;
    }
  }
}

// test_inputs_embeds_matches_input_ids
TEST_F(ModelingBehaviour, B603_embeddings_given_are_as_good_as_ids) {
  for (const char* name : {"bert", "llama", "gpt2", "roberta", "opt"}) {
    const auto model = load(name);
    const Tensor embeddings = get_input_embeddings(*model)(ids());
    const Tensor by_ids = (*model)({{arg::input_ids, ids()}}).items()[0].second.to_tensor();
    const Tensor by_embeddings = (*model)({{arg::inputs_embeds, embeddings}}).items()[0].second.to_tensor();
    EXPECT_LT(worst(by_ids, by_embeddings), 1e-6) << name;
  }
}

// test_inputs_embeds_matches_input_ids (encoder and decoder)
TEST_F(ModelingBehaviour, B604_an_encoder_decoder_takes_embeddings_on_both_sides) {
  const auto model = load("t5");
  const Embedding& shared = get_input_embeddings(*model);
  const Tensor embeddings = const_cast<Embedding&>(shared)(ids());
  const Tensor by_ids = (*model)({{arg::input_ids, ids()}, {arg::decoder_input_ids, ids()}})["logits"];
  const Tensor by_embeddings =
      (*model)({{arg::inputs_embeds, embeddings}, {arg::decoder_inputs_embeds, embeddings}})["logits"];
  EXPECT_LT(worst(by_ids, by_embeddings), 1e-6);
}

// test_inputs_embeds: both or neither
TEST_F(ModelingBehaviour, B605_ids_and_embeddings_at_once_are_refused) {
  for (const char* name : {"bert", "llama"}) {
    const auto model = load(name);
    const Tensor embeddings = get_input_embeddings(*model)(ids());
    EXPECT_THAT(error_of([&] {
                  (*model)({{arg::input_ids, ids()}, {arg::inputs_embeds, embeddings}});
                }),
                HasSubstr("You must specify exactly one of input_ids or inputs_embeds"));
  }
}

// test_inputs_embeds: both or neither
TEST_F(ModelingBehaviour, B606_a_call_without_inputs_is_refused) {
  for (const char* name : {"bert", "llama", "gpt2"})
    EXPECT_THAT(error_of([&] { (*load(name))({}); }), HasSubstr("input_ids or inputs_embeds")) << name;
}

// test_attention_outputs (encoder-decoder)
TEST_F(ModelingBehaviour, B607_an_encoder_decoder_gives_three_kinds_of_attentions) {
  for (const char* name : {"t5", "bart"}) {
    const auto model = load(name, "", "eager");
    const ModelOutput out = (*model)({{arg::input_ids, ids()},
                                      {arg::decoder_input_ids, ids().narrow(1, 0, 3)},
                                      {arg::output_attentions, true},
                                      {arg::output_hidden_states, true}});
    const auto sizes = [&](const char* field) {
      std::string text;
      for (const Tensor& t : out.tensors(field)) text += str(t.sizes());
      return text;
    };
    EXPECT_EQ(sizes("decoder_attentions"), "[2, 4, 3, 3]") << name;
    EXPECT_EQ(sizes("cross_attentions"), "[2, 4, 3, 5]") << name;
    EXPECT_EQ(sizes("encoder_attentions"), "[2, 4, 5, 5][2, 4, 5, 5]") << name;
    EXPECT_EQ(sizes("decoder_hidden_states"), "[2, 3, 16][2, 3, 16]") << name;
    EXPECT_EQ(sizes("encoder_hidden_states"), "[2, 5, 16][2, 5, 16][2, 5, 16]") << name;
    EXPECT_EQ(str(out["encoder_last_hidden_state"].sizes()), "[2, 5, 16]") << name;
    EXPECT_LT(worst(out.tensors("cross_attentions")[0].sum({-1}), ones({2, 4, 3})), 1e-5) << name;
  }
}

// test_attention_outputs (a decoder looks at no later token)
TEST_F(ModelingBehaviour, B608_attention_to_later_tokens_is_nothing) {
  for (const char* name : {"gpt2", "llama", "gptj"}) {
    const auto model = load(name, "", "eager");
    for (const Tensor& a : (*model)({{arg::input_ids, ids()}, {arg::output_attentions, true}}).tensors("attentions"))
      EXPECT_EQ(triu(a, 1).abs().max().item_as<double>(), 0.0) << name;
  }
}

// test_hidden_states_output
TEST_F(ModelingBehaviour, B609_hidden_states_begin_with_the_embeddings_and_end_with_the_result) {
  const auto gpt2 = load("gpt2");
  const std::vector<Tensor> states =
      (*gpt2)({{arg::input_ids, ids()}, {arg::output_hidden_states, true}}).tensors("hidden_states");
  ASSERT_EQ(states.size(), 3U);
  const Tensor embedded = gpt2->get_submodule("transformer.wte").call({ids()}).to_tensor() +
                          gpt2->get_submodule("transformer.wpe").call({arange(5)}).to_tensor();
  EXPECT_LT(worst(states[0], embedded), 1e-6);
  EXPECT_LT(worst(states[2], gpt2->base_model()({{arg::input_ids, ids()}})["last_hidden_state"]), 1e-6);
  const auto bert = load("bert", "BertModel");
  const ModelOutput out = (*bert)({{arg::input_ids, ids()}, {arg::output_hidden_states, true}});
  EXPECT_TRUE(hub_test::same_bits(out.tensors("hidden_states").back(), out["last_hidden_state"]));
}

// test_training's loss: causal language models
TEST_F(ModelingBehaviour, B610_the_loss_of_a_causal_model_predicts_the_next_token_and_passes_over_minus_100) {
  const Tensor some = ids().clone();
  set_by(some, {0, Slice(none, 3)}, Scalar(-100));
  const auto gpt2 = load("gpt2"), llama = load("llama");
  EXPECT_NEAR(loss(*gpt2, {{arg::input_ids, ids()}, {arg::labels, ids()}}), 4.620825290679932, 1e-5);
  EXPECT_NEAR(loss(*gpt2, {{arg::input_ids, ids()}, {arg::labels, some}}), 4.6198201179504395, 1e-5);
  EXPECT_NEAR(loss(*llama, {{arg::input_ids, ids()}, {arg::labels, ids()}}), 4.578189849853516, 1e-5);
  EXPECT_NEAR(loss(*llama, {{arg::input_ids, ids()}, {arg::labels, some}}), 4.613380432128906, 1e-5);
}

// test_encoder_decoder_loss_no_double_shift
TEST_F(ModelingBehaviour, B611_labels_of_an_encoder_decoder_are_shifted_once) {
  const auto t5 = load("t5");
  EXPECT_NEAR(loss(*t5, {{arg::input_ids, ids()}, {arg::labels, ids()}}), 5.21677827835083, 1e-5);
  const Tensor shifted = tensor({{0, 3, 4, 5, 6}, {0, 8, 9, 10, 11}});
  const Tensor logits = (*t5)({{arg::input_ids, ids()}, {arg::decoder_input_ids, shifted}})["logits"];
  const Tensor log = logits.view({-1, 99}).log_softmax(-1);
  EXPECT_NEAR(-log.gather(1, ids().view({-1, 1})).mean().item_as<double>(), 5.21677827835083, 1e-5);
  EXPECT_NEAR(loss(*load("bart"), {{arg::input_ids, ids()}, {arg::labels, ids()}}), 4.603747367858887, 1e-5);
}

// test_encoder_decoder_loss_no_double_shift: labels that do not count
TEST_F(ModelingBehaviour, B612_a_label_of_minus_100_is_padding_to_the_decoder) {
  const Tensor labels = ids().clone();
  set_by(labels, {1, Slice(3)}, Scalar(-100));
  const auto t5 = load("t5");
  const Tensor by_labels = (*t5)({{arg::input_ids, ids()}, {arg::labels, labels}})["logits"];
  const Tensor shifted = tensor({{0, 3, 4, 5, 6}, {0, 8, 9, 10, 0}});
  EXPECT_LT(worst(by_labels, (*t5)({{arg::input_ids, ids()}, {arg::decoder_input_ids, shifted}})["logits"]), 1e-6);
}

// test_model_forward with encoder_outputs
TEST_F(ModelingBehaviour, B613_encoder_outputs_given_are_not_computed_again) {
  const auto t5 = load("t5");
  const Tensor decoder = tensor({{0, 3, 4}, {0, 8, 9}});
  const ModelOutput whole = (*t5)({{arg::input_ids, ids()}, {arg::decoder_input_ids, decoder}});
  const ModelOutput rest =
      (*t5)({{arg::decoder_input_ids, decoder}, {arg::encoder_outputs, tuple({whole["encoder_last_hidden_state"]})}});
  EXPECT_LT(worst(whole["logits"], rest["logits"]), 1e-6);
}

// masks: padding on the right
TEST_F(ModelingBehaviour, B614_padding_behind_a_mask_changes_nothing) {
  const Tensor mask = tensor({{1, 1, 1, 1, 1}, {1, 1, 1, 0, 0}});
  const auto bert = load("bert");
  const Tensor padded = (*bert)({{arg::input_ids, ids()}, {arg::attention_mask, mask}})["prediction_logits"];
  const Tensor alone = (*bert)({{arg::input_ids, ids().narrow(0, 1, 1).narrow(1, 0, 3)}})["prediction_logits"];
  EXPECT_LT(worst(padded.select(0, 1).narrow(0, 0, 3), alone.select(0, 0)), 1e-5);
  const auto t5 = load("t5");
  const Tensor decoder = tensor({{0, 3, 4, 5, 6}, {0, 8, 9, 10, 11}});
  const Tensor all =
      (*t5)({{arg::input_ids, ids()}, {arg::attention_mask, mask}, {arg::decoder_input_ids, decoder}})["logits"];
  const Tensor one = (*t5)({{arg::input_ids, ids().narrow(0, 1, 1).narrow(1, 0, 3)},
                            {arg::decoder_input_ids, decoder.narrow(0, 1, 1)}})["logits"];
  EXPECT_LT(worst(all.select(0, 1), one.select(0, 0)), 1e-5);
}

// test_left_padding_compatibility
TEST_F(ModelingBehaviour, B615_padding_on_the_left_needs_a_mask_and_positions) {
  const auto llama = load("llama");
  const Tensor row = ids().narrow(0, 0, 1);
  const Tensor padded = cat({zeros({1, 2}, DType::int64), row}, 1);
  const Tensor out = (*llama)({{arg::input_ids, padded},
                               {arg::attention_mask, tensor({{0, 0, 1, 1, 1, 1, 1}})},
                               {arg::position_ids, tensor({{1, 1, 0, 1, 2, 3, 4}})}})["logits"];
  EXPECT_LT(worst(out.select(0, 0).narrow(0, 2, 5), (*llama)({{arg::input_ids, row}})["logits"].select(0, 0)), 1e-5);
}

// positions that a mask decides
TEST_F(ModelingBehaviour, B616_opt_counts_positions_by_the_mask_and_gpt2_does_not) {
  const Tensor mask = tensor({{1, 1, 1, 1, 1}, {0, 0, 1, 1, 1}});
  const Tensor opt = (*load("opt"))({{arg::input_ids, ids()}, {arg::attention_mask, mask}})["logits"];
  expect_near(opt.select(0, 1).select(0, -1), {-0.049081, 0.082424, 0.007702, 0.014333});
  const Tensor gpt2 = (*load("gpt2"))({{arg::input_ids, ids()}, {arg::attention_mask, mask}})["logits"];
  expect_near(gpt2.select(0, 1).select(0, -1), {0.139328, 0.46361, -0.334245, 0.0046});
  const Tensor placed = (*load("gpt2"))({{arg::input_ids, ids()},
                                         {arg::attention_mask, mask},
                                         {arg::position_ids, tensor({{0, 1, 2, 3, 4}, {1, 1, 0, 1, 2}})}})["logits"];
  expect_near(placed.select(0, 1).select(0, -1), {0.072883, 0.592623, 0.04081, 0.024155});
}

// explicit positions
TEST_F(ModelingBehaviour, B617_positions_may_be_given_in_any_order) {
  const auto bert = load("bert");
  const Tensor usual = (*bert)({{arg::input_ids, ids()}})["prediction_logits"];
  EXPECT_LT(
      worst(usual, (*bert)({{arg::input_ids, ids()}, {arg::position_ids, tensor({{0, 1, 2, 3, 4}})}})["prediction_logits"]),
      1e-6);
  expect_near((*bert)({{arg::input_ids, ids()}, {arg::position_ids, tensor({{4, 3, 2, 1, 0}})}})["prediction_logits"],
              {-0.142701, 0.235634, 0.1956, 0.056958, 0.063537, 0.038151});
}

// positions that padding decides
TEST_F(ModelingBehaviour, B618_roberta_counts_positions_from_the_padding_id) {
  const auto roberta = load("roberta");
  const Tensor padded = ids().clone();
  set_by(padded, {1, Slice(3)}, Scalar(1));
  const Tensor usual = (*roberta)({{arg::input_ids, padded}}).items()[0].second.to_tensor();
  const Tensor placed =
      (*roberta)({{arg::input_ids, padded}, {arg::position_ids, tensor({{2, 3, 4, 5, 6}, {2, 3, 4, 1, 1}})}})
          .items()[0]
          .second.to_tensor();
  EXPECT_LT(worst(usual, placed), 1e-6);
}

// token types
TEST_F(ModelingBehaviour, B619_token_types_are_zero_unless_given) {
  const auto bert = load("bert", "BertModel");
  const Tensor usual = (*bert)({{arg::input_ids, ids()}})["last_hidden_state"];
  EXPECT_LT(worst(usual, (*bert)({{arg::input_ids, ids()}, {arg::token_type_ids, zeros_like(ids())}})["last_hidden_state"]),
            1e-6);
  expect_near((*bert)({{arg::input_ids, ids()}, {arg::token_type_ids, ones_like(ids())}})["last_hidden_state"],
              {0.433997, 0.637267, -0.239041, 1.424999, -1.987465, -0.832315});
}

// caches
TEST_F(ModelingBehaviour, B620_the_rest_of_a_text_after_a_cache_is_as_in_one_piece) {
  for (const char* name : {"llama", "gpt2", "opt", "bloom", "gpt_neo", "gptj"}) {
    const auto model = load(name);
    const Tensor whole = (*model)({{arg::input_ids, ids()}})["logits"];
    const ModelOutput begin = (*model)({{arg::input_ids, ids().narrow(1, 0, 3)}, {arg::use_cache, true}});
    const Tensor rest =
        (*model)({{arg::input_ids, ids().narrow(1, 3, 2)}, {arg::past_key_values, begin.past_key_values()}})["logits"];
    EXPECT_LT(worst(whole.narrow(1, 3, 2), rest), 1e-5) << name;
  }
}

// use_cache
TEST_F(ModelingBehaviour, B621_without_a_cache_the_logits_are_all_there_is) {
  const auto llama = load("llama");
  const auto fields = [&](const ModelInputs& in) {
    std::vector<std::string> out;
    const ModelOutput result = (*llama)(in);
    for (const auto& [name, value] : result.items()) out.push_back(name);
    return out;
  };
  EXPECT_THAT(fields({{arg::input_ids, ids()}, {arg::use_cache, false}}), ElementsAre("logits"));
  EXPECT_THAT(fields({{arg::input_ids, ids()}}), ElementsAre("logits", "past_key_values"));
}

// grouped heads
TEST_F(ModelingBehaviour, B622_a_cache_holds_as_many_heads_as_there_are_keys) {
  const auto llama = load("llama");
  EXPECT_EQ(str(llama->get_parameter("model.layers.0.self_attn.k_proj.weight").sizes()), "[8, 16]");
  const Value cache = *(*llama)({{arg::input_ids, ids()}}).find("past_key_values");
  EXPECT_EQ(str(cache.to_items()[0].to_items()[0].to_tensor().sizes()), "[2, 2, 5, 4]");
}

// logits_to_keep
TEST_F(ModelingBehaviour, B623_only_the_last_logits_are_computed_when_asked) {
  const auto llama = load("llama");
  const Tensor last = (*llama)({{arg::input_ids, ids()}, {arg::logits_to_keep, 2}})["logits"];
  EXPECT_EQ(str(last.sizes()), "[2, 2, 99]");
  EXPECT_LT(worst(last, (*llama)({{arg::input_ids, ids()}})["logits"].narrow(1, 3, 2)), 1e-6);
}

// test_problem_types: one class a row
TEST_F(ModelingBehaviour, B624_the_loss_and_logits_of_sequence_classification) {
  const auto model = bert_with_head("BertForSequenceClassification");
  expect_near((*model)({{arg::input_ids, ids()}})["logits"], {-0.976007, 0.602756, -1.661916, 1.914383});
  EXPECT_NEAR(loss(*model, {{arg::input_ids, ids()}, {arg::labels, tensor({0, 1})}}), 0.8969284892082214, 1e-5);
}

// test_problem_types: several classes a row
TEST_F(ModelingBehaviour, B625_labels_that_are_floats_ask_for_several_classes) {
  const auto model = bert_with_head("BertForSequenceClassification");
  EXPECT_NEAR(loss(*model, {{arg::input_ids, ids()}, {arg::labels, tensor({{0.0, 1.0}, {1.0, 1.0}}, DType::float32)}}),
              0.6823726892471313, 1e-5);
}

// token classification
TEST_F(ModelingBehaviour, B626_tokens_labelled_minus_100_do_not_count) {
  const auto model = bert_with_head("BertForTokenClassification");
  EXPECT_NEAR(loss(*model, {{arg::input_ids, ids()}, {arg::labels, tensor({{0, 1, -100, 1, 0}, {-100, -100, 1, 0, 1}})}}),
              0.8951728940010071, 1e-5);
}

// multiple choice
TEST_F(ModelingBehaviour, B627_choices_are_rows_of_one_question) {
  const auto model = bert_with_head("BertForMultipleChoice");
  const Tensor choices = stack({ids(), ids() + 1}, 1);
  const ModelOutput out = (*model)({{arg::input_ids, choices}, {arg::labels, tensor({0, 1})}});
  EXPECT_EQ(str(out["logits"].sizes()), "[2, 2]");
  expect_near(out["logits"], {-1.385693, -1.157842, -0.739117, -1.838295});
  EXPECT_NEAR(out["loss"].item_as<double>(), 1.1001332998275757, 1e-5);
}

// question answering
TEST_F(ModelingBehaviour, B628_positions_beyond_the_text_do_not_count_and_a_column_is_a_row) {
  const auto model = bert_with_head("BertForQuestionAnswering", "qa_outputs");
  const auto of = [&](const Tensor& start, const Tensor& end) {
    return loss(*model, {{arg::input_ids, ids()}, {arg::start_positions, start}, {arg::end_positions, end}});
  };
  EXPECT_NEAR(of(tensor({1, 2}), tensor({3, 4})), 2.301852226257324, 1e-5);
  EXPECT_NEAR(of(tensor({1, 99}), tensor({3, 99})), 1.824034571647644, 1e-5);
  EXPECT_NEAR(of(tensor({1, 2}).view({2, 1}), tensor({3, 4}).view({2, 1})), 2.301852226257324, 1e-5);
}

// masked language model, next sentence, both
TEST_F(ModelingBehaviour, B629_the_losses_of_bert_s_pretraining) {
  const Tensor some = ids().clone();
  set_by(some, {0, Slice(none, 3)}, Scalar(-100));
  EXPECT_NEAR(loss(*load("bert", "BertForMaskedLM"), {{arg::input_ids, ids()}, {arg::labels, some}}), 4.624181270599365,
              1e-5);
  EXPECT_NEAR(loss(*load("bert", "BertForNextSentencePrediction"), {{arg::input_ids, ids()}, {arg::labels, tensor({0, 1})}}),
              0.6955440044403076, 1e-5);
  EXPECT_NEAR(
      loss(*load("bert"), {{arg::input_ids, ids()}, {arg::labels, ids()}, {arg::next_sentence_label, tensor({0, 1})}}),
      5.360690116882324, 1e-5);
}

// sequence classification of decoders
TEST_F(ModelingBehaviour, B630_a_decoder_classifies_by_the_last_token_that_is_no_padding) {
  const auto model = load("gpt2", "GPT2ForSequenceClassification");
  fill(*model, "score.weight");
  const Tensor padded = ids().clone();
  set_by(padded, {1, Slice(3)}, Scalar(0));
  expect_near((*model)({{arg::input_ids, padded}})["logits"], {1.510885, 1.854651, 0.105017, 0.58756});
  expect_near((*model)({{arg::input_ids, ids()}})["logits"], {1.510885, 1.854651, -0.051364, 0.233539});
}

// sequence classification without a padding token
TEST_F(ModelingBehaviour, B631_without_a_padding_id_a_decoder_classifies_one_row) {
  const auto model = from_pretrained(
      folder("gpt2"), {.model_class = "GPT2ForSequenceClassification", .config_updates = {{"pad_token_id", None{}}}});
  fill(*model, "score.weight");
  EXPECT_THAT(error_of([&] {
                (*model)({{arg::input_ids, ids()}});
              }),
              HasSubstr("Cannot handle batch sizes > 1 if no padding token is defined"));
  expect_near((*model)({{arg::input_ids, ids().narrow(0, 0, 1)}})["logits"], {1.510885, 1.854651});
}

// test_model_rope_scaling_from_config and test_model_rope_scaling_frequencies
TEST_F(ModelingBehaviour, B632_positions_are_scaled_as_the_configuration_says) {
  const Tensor text = ((arange(48) % 90) + 3).view({1, 48});
  const auto check_rope = [&](std::vector<std::pair<Value, Value>> parameters, const std::vector<double>& of_short,
                              const std::vector<double>& of_long) {
    parameters.emplace_back("rope_theta", 10000.0);
    const auto model = from_pretrained(folder("llama"), {.config_updates = {{"rope_parameters", dict(parameters)}}});
    expect_near((*model)({{arg::input_ids, ids()}})["logits"].select(0, 0).select(0, -1), of_short);
    expect_near((*model)({{arg::input_ids, text}})["logits"].select(0, 0).select(0, -1), of_long);
  };
  check_rope({{"rope_type", "default"}}, {-0.149379, -0.018414, -0.254386}, {-0.026886, 0.017948, 0.087602, -0.104985});
  check_rope({{"rope_type", "linear"}, {"factor", 2.0}}, {-0.150082, -0.018638, -0.251379},
             {-0.027635, 0.017115, 0.089008, -0.10463});
  check_rope({{"rope_type", "dynamic"}, {"factor", 2.0}}, {-0.149379, -0.018414, -0.254386},
             {-0.027291, 0.01802, 0.087528, -0.105687});
  check_rope({{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 16}},
             {-0.146932, -0.017559, -0.254656}, {-0.027837, 0.018388, 0.087378, -0.10416});
  check_rope({{"rope_type", "llama3"},
              {"factor", 8.0},
              {"low_freq_factor", 1.0},
              {"high_freq_factor", 4.0},
              {"original_max_position_embeddings", 16}},
             {-0.150009, -0.018434, -0.251912}, {-0.031556, 0.017573, 0.086319, -0.107379});
}

// loading fewer layers than the checkpoint has
TEST_F(ModelingBehaviour, B633_layers_that_a_smaller_model_lacks_are_unexpected) {
  const LoadedModel loaded = load_pretrained(folder("llama"), {.config_updates = {{"num_hidden_layers", 1}}});
  EXPECT_TRUE(loaded.report.missing_keys.empty());
  ASSERT_EQ(loaded.report.unexpected_keys.size(), 9U);
  for (const std::string& key : loaded.report.unexpected_keys) EXPECT_THAT(key, HasSubstr("model.layers.1."));
}

// test_can_init_all_missing_weights
TEST_F(ModelingBehaviour, B634_layers_that_a_checkpoint_lacks_are_missing_and_initialised) {
  const LoadedModel loaded = load_pretrained(folder("llama"), {.config_updates = {{"num_hidden_layers", 3}}});
  EXPECT_TRUE(loaded.report.unexpected_keys.empty());
  ASSERT_EQ(loaded.report.missing_keys.size(), 9U);
  for (const std::string& key : loaded.report.missing_keys) {
    const Tensor p = loaded.model->get_parameter(key).detach();
    EXPECT_LT(p.abs().max().item_as<double>(), 1.01) << key;
    EXPECT_TRUE(key.find("layernorm") == std::string::npos || p.equal(ones_like(p))) << key;
  }
}

// test_can_init_all_missing_weights, for every architecture
TEST_F(ModelingBehaviour, B635_a_model_whose_checkpoint_is_empty_is_initialised_whole) {
  for (const char* name : {"bert", "llama", "gpt2", "t5", "albert", "bart", "deberta", "bloom", "mobilebert"}) {
    const Config config = config_from_pretrained(folder(name));
    const LoadedModel loaded = load_pretrained(config, StateDict{});
    EXPECT_FALSE(loaded.report.missing_keys.empty()) << name;
    for (const auto& [key, p] : loaded.model->named_parameters())
      EXPECT_TRUE(p.detach().isfinite().all().item_as<bool>()) << name << " " << key;
  }
}

// other labels
TEST_F(ModelingBehaviour, B636_another_number_of_labels_makes_a_new_head) {
  const LoadedModel loaded = load_pretrained(
      folder("bert"), {.model_class = "BertForSequenceClassification", .config_updates = {{"num_labels", 5}}});
  EXPECT_THAT(loaded.report.missing_keys, ::testing::UnorderedElementsAre("classifier.weight", "classifier.bias"));
  EXPECT_EQ(str(loaded.model->get_parameter("classifier.weight").sizes()), "[5, 16]");
  EXPECT_EQ(loaded.model->config().num_labels(), 5);
  EXPECT_EQ(loaded.report.unexpected_keys.size(), 7U);
}

// test_correct_missing_keys, the other way round
TEST_F(ModelingBehaviour, B637_a_head_in_the_file_is_unexpected_to_the_base_model) {
  const LoadedModel loaded = load_pretrained(folder("llama"), {.model_class = "LlamaModel"});
  EXPECT_THAT(loaded.report.unexpected_keys, ElementsAre("lm_head.weight"));
  EXPECT_TRUE(loaded.report.missing_keys.empty());
}

// test_model_main_input_name, test_model_base_model_prefix
TEST_F(ModelingBehaviour, B638_every_model_names_its_main_input_and_its_base) {
  for (const auto& [name, prefix] : std::vector<std::pair<std::string, std::string>>{
           {"llama", "model"}, {"bert", "bert"}, {"t5", "transformer"}, {"gpt2", "transformer"}, {"bart", "model"}}) {
    const auto model = load(name);
    EXPECT_EQ(model->base_model_prefix(), prefix) << name;
    EXPECT_EQ(model->main_input_name(), model->argument_names()[0]) << name;
    EXPECT_EQ(model->find_submodule(prefix) != nullptr, name != "t5") << name;
  }
}

// num_parameters
TEST_F(ModelingBehaviour, B639_tied_parameters_are_counted_once) {
  EXPECT_EQ(num_parameters(*load("llama")), 6704);
  EXPECT_EQ(num_parameters(*load("bert")), 6525);
  EXPECT_EQ(num_parameters(*load("t5")), 7808);
  EXPECT_EQ(num_parameters(*load("gpt2")), 5784);
  EXPECT_EQ(num_parameters(*load("gpt2"), false, true), 3688);
}

// layers that share their weights
TEST_F(ModelingBehaviour, B640_albert_runs_one_group_of_weights_for_all_layers) {
  const auto albert = load("albert", "AlbertModel");
  EXPECT_EQ(num_parameters(*albert), 3324);
  EXPECT_EQ((*albert)({{arg::input_ids, ids()}, {arg::output_hidden_states, true}}).tensors("hidden_states").size(), 3U);
}

// embeddings of another size than the layers
TEST_F(ModelingBehaviour, B641_electra_projects_its_embeddings) {
  const auto electra = load("electra", "ElectraModel");
  EXPECT_EQ(str(get_input_embeddings(*electra).weight->sizes()), "[99, 8]");
  EXPECT_EQ(str((*electra)({{arg::input_ids, ids()}})["last_hidden_state"].sizes()), "[2, 5, 16]");
}

// bfloat16
TEST_F(ModelingBehaviour, B642_a_model_asked_for_in_another_dtype_answers_in_it) {
  const auto llama = from_pretrained(folder("llama"), {.dtype = DType::bfloat16});
  EXPECT_EQ((*llama)({{arg::input_ids, ids()}})["logits"].dtype(), DType::bfloat16);
  EXPECT_EQ(llama->config().dtype(), DType::bfloat16);
}

// an encoder as a decoder
TEST_F(ModelingBehaviour, B643_an_encoder_made_a_decoder_looks_at_no_later_token) {
  const auto model =
      from_pretrained(folder("bert"), {.model_class = "BertLMHeadModel", .config_updates = {{"is_decoder", true}}});
  const Tensor whole = (*model)({{arg::input_ids, ids()}})["logits"];
  EXPECT_LT(worst(whole.narrow(1, 0, 3), (*model)({{arg::input_ids, ids().narrow(1, 0, 3)}})["logits"]), 1e-5);
}

// what does not fit
TEST_F(ModelingBehaviour, B644_ids_beyond_the_vocabulary_and_texts_beyond_the_positions_are_refused) {
  const auto bert = load("bert");
  EXPECT_NE(error_of([&] { (*bert)({{arg::input_ids, full({1, 3}, 200, DType::int64)}}); }), "");
  EXPECT_NE(error_of([&] { (*bert)({{arg::input_ids, ones({1, 40}, DType::int64)}}); }), "");
}

// test_can_be_initialized_on_meta
TEST_F(ModelingBehaviour, B645_models_are_made_without_memory_for_their_weights) {
  for (const char* name : {"bert", "llama", "gpt2", "t5", "bart", "deberta-v2", "bloom", "layoutlm"}) {
    const Config config = config_from_pretrained(folder(name));
    const auto mode = FakeMode::make();
    const ModeScope scope(*mode);
    const auto model = from_config(config);
    for (const auto& [key, p] : model->named_parameters()) EXPECT_TRUE(p.is_fake()) << name << " " << key;
  }
}

// test_model_get_set_embeddings
TEST_F(ModelingBehaviour, B646_the_input_embeddings_can_be_replaced) {
  const auto llama = load("llama");
  const auto other = std::make_shared<Embedding>(10, 16);
  llama->set_submodule("model.embed_tokens", other);
  EXPECT_EQ(&get_input_embeddings(*llama), other.get());
  EXPECT_EQ(str((*llama)({{arg::input_ids, ids().remainder(10)}})["logits"].sizes()), "[2, 5, 99]");
}

// test_can_set_attention_dynamically (mended)
TEST_F(ModelingBehaviour, B647_how_attention_is_computed_can_be_changed_on_a_loaded_model) {
  const auto llama = load("llama", "", "sdpa");
  const Tensor fused = (*llama)({{arg::input_ids, ids()}})["logits"];
  set_attention_implementation(*llama, "eager");
  const ModelOutput out = (*llama)({{arg::input_ids, ids()}, {arg::output_attentions, true}});
  EXPECT_EQ(out.tensors("attentions").size(), 2U);
  EXPECT_LT(worst(out["logits"], fused), 1e-5);
  EXPECT_THAT(error_of([&] { set_attention_implementation(*llama, "flash_attention_7"); }), HasSubstr("flash_attention_7"));
}

}  // namespace
}  // namespace calque::modeling_test
