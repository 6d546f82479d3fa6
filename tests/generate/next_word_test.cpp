// generate with models that say a word where they are asked for one, beside what transformers wrote (tools/golden/next_word.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "calque/generate/model_generate.h"
#include "calque/hub/from_pretrained.h"
#include "calque/op/aten/zeros.h"
#include "generate/generate_support.h"
#include "support/error_support.h"
#include "support/paths.h"

namespace calque::next_word_test {
namespace {

using generate_test::ids_of;
using generate_test::rows_of;
using test::error_of;
using testing::HasSubstr;

std::shared_ptr<PretrainedModel> golden_model(const std::string& name) {
  return from_pretrained(test::source_folder() + "/tests/zoo/golden/" + name);
}

TEST(NextWord, texts_are_those_of_transformers) {
  const GradModeScope no_grad(false);
  const nlohmann::json cases =
      nlohmann::json::parse(std::ifstream(test::source_folder() + "/tests/generate/golden/next_word.json"));
  std::map<std::string, std::shared_ptr<PretrainedModel>> models;
  for (const nlohmann::json& one : cases) {
    std::shared_ptr<PretrainedModel>& model = models[one["model"]];
    if (!model) model = golden_model(one["model"]);
    Generator generator(one["seed"].get<uint64_t>());
    GenerateOptions options;
    options.generator = &generator;
    const ModelInputs in{{arg::input_ids, ids_of(one["prompt"].get<std::vector<std::vector<int64_t>>>())}};
    const GenerationConfig config = GenerationConfig::from_json(one["settings"].dump());
    EXPECT_EQ(rows_of(generate(*model, in, config, options).sequences), one["ids"].get<std::vector<std::vector<int64_t>>>())
        << one.dump();
  }
}

TEST(NextWord, what_such_a_model_cannot_follow_is_refused) {
  const auto model = golden_model("xlnet");
  const ModelInputs in{{arg::input_ids, ids_of({{5, 9, 21}, {8, 8, 30}})}};
  const auto refusal = [&](const auto& argument, const Tensor& value, const GenerationConfig& config = {}) {
    ModelInputs more = in;
    more.set(argument, value);
    return error_of([&] { generate(*model, more, config); });
  };
  EXPECT_THAT(refusal(arg::attention_mask, ids_of({{0, 1, 1}, {1, 1, 1}})), HasSubstr("give rows of one length"));
  EXPECT_THAT(refusal(arg::inputs_embeds, ones({2, 3, 16})), HasSubstr("does not write from inputs_embeds; give input_ids"));
  EXPECT_THAT(refusal(arg::attention_mask, ids_of({{1, 1, 1}, {1, 1, 1}}),
                      GenerationConfig::from_json(R"({"prompt_lookup_num_tokens": 2})")),
              HasSubstr("candidates cannot be checked"));
}

TEST(NextWord, states_are_those_of_both_streams) {
  const auto model = golden_model("xlnet");
  const ModelGenerateOutput out = generate(*model, {{arg::input_ids, ids_of({{5, 9, 21}})}},
                                           GenerationConfig::from_json(R"({"max_new_tokens": 2, "eos_token_id": null,
      "return_dict_in_generate": true, "output_hidden_states": true, "output_attentions": true})"));
  const auto layers = static_cast<size_t>(model->config().integer("n_layer"));
  ASSERT_THAT(out.hidden_states, testing::SizeIs(2));
  EXPECT_THAT(out.hidden_states[0], testing::SizeIs(2 * (layers + 1)));
  EXPECT_THAT(out.attentions[1], testing::SizeIs(2 * layers));
  EXPECT_EQ(out.hidden_states[0][0].size(1), 4) << "the prompt, and a token that is asked for";
  EXPECT_EQ(out.hidden_states[1][1].size(1), 1) << "what is said of that token";
}

}  // namespace
}  // namespace calque::next_word_test
