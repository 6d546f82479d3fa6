// Assisted generation: what is proposed, what is accepted, and that greedy search finds the same with it as without.
#include "calque/generate/assisted.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "calque/generate/model_generate.h"
#include "calque/hub/from_pretrained.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/zeros.h"
#include "generate/generate_support.h"
#include "support/error_support.h"
#include "support/paths.h"

namespace calque::assisted_test {
namespace {

using generate_test::ids_of;
using generate_test::rows_of;
using generate_test::scores_of;
using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string tiny_lm = test::source_folder() + "/assets/tiny-lm";

std::shared_ptr<PretrainedModel> tiny() { return from_pretrained(tiny_lm, {.dtype = DType::float32}); }

// tiny-lm that was told something else: it often says the same.
std::shared_ptr<PretrainedModel> like_tiny() {
  const std::shared_ptr<PretrainedModel> model = tiny();
  const GradModeScope no_grad(false);
  Generator generator(3);
  for (const auto& [name, parameter] : model->named_parameters())
    parameter.add_(randn(parameter.sym_sizes(), &generator) * (parameter.abs().mean().item_as<double>() * 0.15));
  return model;
}

GenerationConfig settings(const std::string& json) { return GenerationConfig::from_json(json); }

Tensor certain(const std::vector<int64_t>& tokens, int64_t vocab) {
  constexpr float never = -std::numeric_limits<float>::infinity();
  std::vector<std::vector<float>> rows;
  for (const int64_t token : tokens) {
    rows.emplace_back(static_cast<size_t>(vocab), never);
    rows.back()[static_cast<size_t>(token)] = 10;
  }
  return scores_of(rows);
}

TEST(Assisted, H245_candidates_are_accepted_up_to_the_first_that_is_wrong) {
  const Tensor model = certain({1, 4, 8, 8}, 10);
  for (const bool sample : {false, true}) {
    const VerifiedCandidates drawn = verify_candidates({{1, 4, 5}, certain({1, 4, 5}, 10)}, model, sample);
    EXPECT_THAT(drawn.ids, ElementsAre(1, 4, 8));
    EXPECT_EQ(drawn.accepted, 2);
    const VerifiedCandidates found = verify_candidates({{1, 4, 5}}, model, sample);
    EXPECT_THAT(found.ids, ElementsAre(1, 4, 8));
    EXPECT_EQ(found.accepted, 2);
    EXPECT_THAT(verify_candidates({}, certain({7}, 10), sample).ids, ElementsAre(7));
    EXPECT_THAT(verify_candidates({{1, 4, 8}}, model, sample).ids, ElementsAre(1, 4, 8, 8));
  }
  EXPECT_EQ(error_of([&] { verify_candidates({{1}}, model, false); }),
            "verify_candidates: scores have to be [2, vocab], but are [4, 10]");
}

std::vector<int64_t> looked_up(PromptLookupCandidates candidates, const std::vector<int64_t>& ids,
                               const LogitsProcessorList& processors = {}, int64_t most = 100) {
  GenerationConfig config;
  config.eos_token_id = 9;
  return candidates.propose({ids_of({ids}), {}, most, config, processors, nullptr}).ids;
}

TEST(Assisted, prompt_lookup_finds_what_followed) {
  EXPECT_THAT(looked_up(PromptLookupCandidates(3), {1, 2, 3, 4, 5, 6, 1, 2}), ElementsAre(3, 4, 5));
  EXPECT_THAT(looked_up(PromptLookupCandidates(3), {7, 2, 3, 4, 5, 6, 1, 2}), ElementsAre(3, 4, 5)) << "one token alone";
  EXPECT_THAT(looked_up(PromptLookupCandidates(3), {2, 8, 1, 2, 3, 4, 1, 2}), ElementsAre(3, 4, 1)) << "two tokens first";
  EXPECT_THAT(looked_up(PromptLookupCandidates(9), {1, 2, 3, 1, 2}), ElementsAre(3, 1, 2)) << "up to the end";
  EXPECT_THAT(looked_up(PromptLookupCandidates(3), {1, 2, 3, 4}), IsEmpty());
  EXPECT_THAT(looked_up(PromptLookupCandidates(3), {1, 2, 3, 9, 4, 1, 2}), ElementsAre(3)) << "not beyond an end of text";
  EXPECT_THAT(looked_up(PromptLookupCandidates(3), {1, 1, 1}, {}, 0), IsEmpty()) << "no room";
  EXPECT_THAT(looked_up(PromptLookupCandidates(3, 2, 0, 9), {1, 2, 3, 4, 5, 6, 1, 2}, {}, 1), ElementsAre(3))
      << "no position for more";
  EXPECT_THAT(looked_up(PromptLookupCandidates(3, 2, 10), {1, 2, 3, 4, 5, 6, 1, 2}, {suppress_tokens_logits_processor({4})}),
              ElementsAre(3))
      << "nothing that is forbidden";
  EXPECT_THAT(error_of([] { PromptLookupCandidates(0); }), HasSubstr("`prompt_lookup_num_tokens` (0)"));
}

TEST(Assisted, H245_greedy_text_is_the_same_with_candidates) {
  const std::shared_ptr<PretrainedModel> model = tiny(), assistant = like_tiny();
  const ModelInputs prompt{{arg::input_ids, ids_of({{10, 300, 20, 300, 20, 41}})}};
  for (const char* more : {"", R"(, "repetition_penalty": 1.3)", R"(, "min_new_tokens": 30)"}) {
    const GenerationConfig plain =
        settings(R"({"max_new_tokens": 40, "eos_token_id": 0, "pad_token_id": 0)" + std::string(more) + "}");
    const auto expected = rows_of(generate(*model, prompt, plain).sequences);
    for (const char* how : {"{}", R"({"num_assistant_tokens": 3, "assistant_confidence_threshold": 0})",
                            R"({"num_assistant_tokens": 2, "num_assistant_tokens_schedule": "heuristic"})"}) {
      GenerateOptions options;
      options.assistant = assistant.get();
      options.assistant_config = settings(how);
      EXPECT_EQ(rows_of(generate(*model, prompt, plain, options).sequences), expected) << how << more;
    }
    GenerationConfig lookup = plain;
    lookup.prompt_lookup_num_tokens = 5;
    EXPECT_EQ(rows_of(generate(*model, prompt, lookup).sequences), expected) << more;
  }
}

// What an assistant is asked that always says 5, when the model took one of its ids and one of its own.
std::vector<GenerationStep> asked(AssistantCandidates::Shown shown, bool sample) {
  std::vector<GenerationStep> steps;
  const NextLogits five = [&](const GenerationStep& step) {
    steps.push_back(step);
    return certain({5}, 10);
  };
  AssistantCandidates candidates(five, settings(R"({"num_assistant_tokens": 2, "assistant_confidence_threshold": 0})"),
                                 shown);
  GenerationConfig config;
  config.pad_token_id = 5;
  config.do_sample = sample;
  candidates.propose({ids_of({{1, 2, 3}}), ones({1, 3}, DType::int64), 9, config, {}, nullptr});
  candidates.propose({ids_of({{1, 2, 3, 5, 7}}), ones({1, 5}, DType::int64), 9, config, {}, nullptr});
  return steps;
}

TEST(Assisted, H245_when_sampling_the_padding_token_is_padding_to_the_assistant) {
  const std::vector<GenerationStep> steps = asked({}, true);
  ASSERT_EQ(steps.size(), 4);
  EXPECT_EQ(rows_of(steps[1].input_ids), rows_of(ids_of({{5}})));
  EXPECT_EQ(rows_of(steps[1].attention_mask), rows_of(ids_of({{1, 1, 1, 1}}))) << "not while it proposes";
  EXPECT_EQ(rows_of(steps[2].input_ids), rows_of(ids_of({{5, 7}})));
  EXPECT_EQ(steps[2].cache_position, 3);
  EXPECT_EQ(rows_of(steps[2].attention_mask), rows_of(ids_of({{1, 1, 1, 0, 1}})));
  EXPECT_EQ(rows_of(steps[2].position_ids), rows_of(ids_of({{3, 4}}))) << "where they would be without";
  EXPECT_EQ(rows_of(asked({}, false)[2].attention_mask), rows_of(ids_of({{1, 1, 1, 1, 1}})));
}

TEST(Assisted, H245_when_sampling_an_encoder_decoder_the_assistant_reads_the_text_again) {
  const AssistantCandidates::Shown shown{.padding = false, .again_within = 10};
  const std::vector<GenerationStep> steps = asked(shown, true);
  EXPECT_EQ(rows_of(steps[2].input_ids), rows_of(ids_of({{1, 2, 3, 5, 7}})));
  EXPECT_EQ(steps[2].cache_position, 3);
  EXPECT_EQ(steps[2].attention_mask.size(1), 8);
  EXPECT_EQ(steps[3].cache_position, 8);
  EXPECT_EQ(rows_of(asked(shown, false)[2].input_ids), rows_of(ids_of({{5, 7}})));
  EXPECT_EQ(rows_of(asked({.padding = false, .again_within = 9}, true)[2].input_ids), rows_of(ids_of({{5, 7}})))
      << "no positions for it";
}

TEST(Assisted, an_assistant_that_is_the_model_is_always_right) {
  const std::shared_ptr<PretrainedModel> model = tiny();
  GenerateOptions options;
  options.assistant = model.get();
  options.assistant_config = settings(R"({"num_assistant_tokens": 7, "assistant_confidence_threshold": 0})");
  GenerationConfig config =
      settings(R"({"max_new_tokens": 16, "return_dict_in_generate": true, "output_scores": true, "output_logits": true})");
  const ModelInputs prompt{{arg::input_ids, ids_of({{10, 300, 20}})}};
  const ModelGenerateOutput with = generate(*model, prompt, config, options), without = generate(*model, prompt, config);
  EXPECT_EQ(rows_of(with.sequences), rows_of(without.sequences));
  ASSERT_EQ(with.scores.size(), without.scores.size());
  ASSERT_EQ(with.logits.size(), without.logits.size());
  for (size_t i = 0; i < with.scores.size(); ++i)
    EXPECT_LT((with.scores[i] - without.scores[i]).abs().max().item_as<double>(), 1e-4) << i;
  EXPECT_EQ(with.past_key_values.length().as_int(), without.past_key_values.length().as_int());
}

void expect_same_states(const std::vector<std::vector<Tensor>>& found, const std::vector<std::vector<Tensor>>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].size(), expected[i].size()) << i;
    for (size_t layer = 0; layer < found[i].size(); ++layer) {
      ASSERT_EQ(str(found[i][layer].sizes()), str(expected[i][layer].sizes())) << i;
      EXPECT_LT((found[i][layer] - expected[i][layer]).abs().max().item_as<double>(), 1e-4) << i << " " << layer;
    }
  }
}

TEST(Assisted, hidden_states_and_attentions_are_those_without_candidates) {
  GenerationConfig config = settings(R"({"max_new_tokens": 12, "return_dict_in_generate": true, "output_hidden_states": true,
                                         "output_attentions": true, "decoder_start_token_id": 0, "pad_token_id": 0})");
  const auto t5 = from_pretrained(test::source_folder() + "/tests/zoo/golden/t5",
                                  {.model_class = "T5ForConditionalGeneration", .dtype = DType::float32});
  for (const auto& [model, assistant] : {std::pair(tiny(), like_tiny()), std::pair(t5, t5)}) {
    const ModelInputs prompt{{arg::input_ids, ids_of({{10, 30, 20, 10, 30}})}};
    GenerateOptions options;
    options.assistant = assistant.get();
    options.assistant_config = settings(R"({"num_assistant_tokens": 5, "assistant_confidence_threshold": 0})");
    const ModelGenerateOutput with = generate(*model, prompt, config, options), without = generate(*model, prompt, config);
    EXPECT_EQ(rows_of(with.sequences), rows_of(without.sequences));
    EXPECT_FALSE(with.hidden_states.empty());
    EXPECT_FALSE(with.attentions.empty());
    expect_same_states(with.hidden_states, without.hidden_states);
    expect_same_states(with.attentions, without.attentions);
    expect_same_states(with.cross_attentions, without.cross_attentions);
    EXPECT_EQ(with.encoder_hidden_states.size(), without.encoder_hidden_states.size());
  }
}

TEST(Assisted, H245_what_it_cannot_do_it_says) {
  const std::shared_ptr<PretrainedModel> model = tiny();
  const ModelInputs one{{arg::input_ids, ids_of({{10, 20}})}}, two{{arg::input_ids, ids_of({{10, 20}, {11, 21}})}};
  GenerateOptions options;
  options.assistant = model.get();
  const auto error = [&](const ModelInputs& in, const char* json) {
    return error_of([&] { generate(*model, in, settings(json), options); });
  };
  EXPECT_EQ(error(two, R"({"max_new_tokens": 4})"), "assisted generate is only supported for batch_size = 1, found 2");
  EXPECT_EQ(error(one, R"({"max_new_tokens": 4, "use_cache": false})"), "assisted generate requires `use_cache=True`");
  EXPECT_EQ(error(one, R"({"max_new_tokens": 4, "do_sample": true, "num_return_sequences": 2})"),
            "num_return_sequences has to be 1 when doing assisted generate, but is 2");
  options.assistant_config.num_assistant_tokens_schedule = "often";
  EXPECT_THAT(error(one, R"({"max_new_tokens": 4})"), HasSubstr("found 'often'"));
  const auto other = from_pretrained(test::source_folder() + "/tests/zoo/golden/gpt2", {.model_class = "GPT2LMHeadModel"});
  options.assistant = other.get();
  EXPECT_THAT(error(one, R"({"max_new_tokens": 4})"), HasSubstr("has a vocabulary of"));
}

}  // namespace
}  // namespace calque::assisted_test
