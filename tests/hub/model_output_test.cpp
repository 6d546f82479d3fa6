#include <gtest/gtest.h>

#include "calque/base/warning.h"
#include "calque/hub/model_io.h"
#include "calque/hub/registry.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/literal.h"
#include "calque/tensor/generator.h"
#include "hub/hub_support.h"

namespace calque::model_output_test {
namespace {

using namespace hub_test;

std::shared_ptr<PretrainedModel> tiny_bert(const std::string& model_class, const std::string& more = "") {
  const Config config = Config::from_json(
      R"({"model_type": "bert", "vocab_size": 40, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
    "num_attention_heads": 4, "max_position_embeddings": 32)" +
      more + "}");
  const auto model = model_registry().find_class(model_class)->make(config);
  model->init_all_weights();
  model->eval();
  return model;
}
Tensor some_ids() { return arange(10, DType::int64).view({2, 5}); }

TEST(Outputs, H170_losses_by_problem_type) {
  const GradModeScope no_grad(false);
  const uint64_t warnings = warning_count();
  for (const auto& [type, labels] : std::vector<std::pair<std::string, Tensor>>{
           {"multi_label_classification", tensor({{0.0, 1.0}, {1.0, 1.0}}, DType::float32)},
           {"single_label_classification", tensor({1, 0}, DType::int64)},
           {"regression", tensor({0.5, -1.0}, DType::float32)}}) {
    const std::string labels_of =
        type == "regression" ? R"(, "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0})" : "";
    const auto model = tiny_bert("BertForSequenceClassification", ", \"problem_type\": \"" + type + "\"" + labels_of);
    const ModelOutput out = (*model)({{arg::input_ids, some_ids()}, {arg::labels, labels}});
    EXPECT_EQ(out["loss"].dim(), 0) << type;
    EXPECT_GT(out["loss"].item().to_double(), 0) << type;
  }
  EXPECT_EQ(warning_count(), warnings);
}

TEST(Outputs, H171_attentions_by_argument_or_config) {
  const GradModeScope no_grad(false);
  for (const bool by_config : {false, true}) {
    const auto model = tiny_bert("BertModel");
    if (by_config) model->config().set("output_attentions", true);
    ModelInputs inputs{{arg::input_ids, some_ids()}};
    if (!by_config) inputs.set(arg::output_attentions, true);
    const ModelOutput out = (*model)(inputs);
    const std::vector<Tensor> attentions = out.tensors("attentions");
    ASSERT_EQ(attentions.size(), 2U);
    for (const Tensor& one : attentions) EXPECT_EQ(str(one.sizes()), "[2, 4, 5, 5]");
    inputs.set(arg::output_hidden_states, true);
    const ModelOutput more = (*model)(inputs);
    EXPECT_EQ(more.items().size(), out.items().size() + 1);
    EXPECT_EQ(more.items().back().first, "attentions");
  }
}

TEST(Outputs, H172_hidden_states) {
  const GradModeScope no_grad(false);
  const auto model = tiny_bert("BertModel");
  const std::vector<Tensor> states =
      (*model)({{arg::input_ids, some_ids()}, {arg::output_hidden_states, true}}).tensors("hidden_states");
  ASSERT_EQ(states.size(), 3U);
  for (const Tensor& one : states) EXPECT_EQ(str(one.sizes()), "[2, 5, 16]");
}

TEST(Outputs, H169_the_feed_forward_in_pieces_gives_the_same) {
  const GradModeScope no_grad(false);
  manual_seed(0);
  const auto whole = tiny_bert("BertModel");
  const auto pieces = tiny_bert("BertModel", R"(, "chunk_size_feed_forward": 1)");
  pieces->load_state_dict(whole->state_dict());
  const Tensor difference = (*whole)({{arg::input_ids, some_ids()}})["last_hidden_state"] -
                            (*pieces)({{arg::input_ids, some_ids()}})["last_hidden_state"];
  EXPECT_LE(difference.abs().max().item().to_double(), 1e-5);
  const auto uneven = tiny_bert("BertModel", R"(, "chunk_size_feed_forward": 2)");
  EXPECT_EQ(error_of([&] {
              (*uneven)({{arg::input_ids, some_ids()}});
            }),
            "The dimension to be chunked 5 has to be a multiple of the chunk size 2");
}

TEST(Outputs, H173_fields_are_the_same_through_values) {
  const GradModeScope no_grad(false);
  const auto model = tiny_llama();
  ModelInputs inputs{{arg::input_ids, some_ids()},
                     {arg::labels, some_ids()},
                     {arg::output_attentions, true},
                     {arg::output_hidden_states, true}};
  const ModelOutput direct = (*model)(inputs);
  const ModelOutput through = ModelOutput::from_value(model->call({}, inputs.to_kwargs(model->arguments())));
  ASSERT_EQ(direct.items().size(), through.items().size());
  for (size_t i = 0; i < direct.items().size(); ++i) EXPECT_EQ(direct.items()[i].first, through.items()[i].first);
  EXPECT_TRUE(same_bits(direct["logits"], through["logits"]));
  EXPECT_TRUE(same_bits(direct["loss"], through["loss"]));
}

TEST(Outputs, H174_what_was_not_asked_for_is_not_there) {
  ModelOutput out;
  out.set("loss", Tensor());
  out.set("logits", ones({2}));
  out.set("hidden_states", std::vector<Tensor>{});
  out.set("other", Value());
  EXPECT_FALSE(out.has("loss"));
  EXPECT_FALSE(out.has("hidden_states"));
  ASSERT_EQ(out.items().size(), 1U);
  EXPECT_EQ(out.items()[0].first, "logits");
  EXPECT_FALSE(out.tensor_or_none("loss").defined());
  EXPECT_NE(error_of([&] { out.tensor("loss"); }).find("logits"), std::string::npos);
}

}  // namespace
}  // namespace calque::model_output_test
