// The loop: greedy search, sampling, stopping, streaming, over models that are tables.
#include "calque/generate/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "calque/base/error.h"
#include "calque/op/aten/zeros.h"
#include "generate/generate_support.h"
#include "support/error_support.h"
#include "support/paths.h"

namespace calque::generate_test {
namespace {

using generate_test::follows;
using generate_test::ids_of;
using generate_test::rows_of;
using generate_test::scores_of;
using generate_test::values;
using generate_test::warnings_of;
using test::error_of;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

GenerationConfig config_of(const char* json) { return GenerationConfig::from_json(json); }

// 0 -> 1 -> 2 -> 3 -> 4 -> 0
const std::vector<int64_t> circle{1, 2, 3, 4, 0};

std::vector<std::string> names(const LogitsProcessorList& list) {
  std::vector<std::string> out;
  for (const LogitsProcessor& p : list) out.push_back(p.name);
  return out;
}

TEST(Generate, H212_scores_come_one_a_step_and_the_cache_is_one_behind) {
  int64_t seen = 0;
  const NextLogits model = follows(circle, 5);
  const auto counting = [&](const GenerationStep& step) {
    EXPECT_EQ(step.cache_position, seen);
    EXPECT_EQ(step.attention_mask.size(1), step.cache_position + step.input_ids.size(1));
    seen = step.cache_position + step.input_ids.size(1);
    return model(step);
  };
  const GenerateOutput out = generate(
      counting, ids_of({{0, 1}, {2, 3}}),
      config_of(R"({"max_new_tokens": 3, "return_dict_in_generate": true, "output_scores": true, "output_logits": true})"));
  EXPECT_THAT(rows_of(out.sequences), ElementsAre(ElementsAre(0, 1, 2, 3, 4), ElementsAre(2, 3, 4, 0, 1)));
  ASSERT_THAT(out.scores, SizeIs(3));
  ASSERT_THAT(out.logits, SizeIs(3));
  EXPECT_EQ(str(out.scores[0].sizes()), "[2, 5]");
  EXPECT_EQ(seen, out.sequences.size(1) - 1);
  EXPECT_THAT(generate(model, ids_of({{0}}), config_of(R"({"max_new_tokens": 1})")).scores, IsEmpty());
}

TEST(Generate, H213_rows_that_ended_go_on_with_padding) {
  const auto run = [](const char* config) {
    return rows_of(generate(follows(circle, 5), ids_of({{0}, {2}}), config_of(config)).sequences);
  };
  EXPECT_THAT(run(R"({"max_new_tokens": 6, "eos_token_id": 4, "pad_token_id": 1})"),
              ElementsAre(ElementsAre(0, 1, 2, 3, 4), ElementsAre(2, 3, 4, 1, 1)));
  std::vector<std::vector<int64_t>> padded;
  const auto warnings = warnings_of([&] { padded = run(R"({"max_new_tokens": 6, "eos_token_id": [4, 3]})"); });
  EXPECT_THAT(padded, ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(2, 3, 4, 4)));
  EXPECT_THAT(warnings, Contains(HasSubstr("Setting `pad_token_id` to `eos_token_id`:4")));
}

TEST(Generate, H214_the_end_may_be_one_token_or_several) {
  const auto run = [](const char* config) {
    return rows_of(generate(follows(circle, 5), ids_of({{0}}), config_of(config)).sequences);
  };
  EXPECT_THAT(run(R"({"max_new_tokens": 9, "eos_token_id": 3})"), ElementsAre(ElementsAre(0, 1, 2, 3)));
  EXPECT_THAT(run(R"({"max_new_tokens": 9, "eos_token_id": [3, 4]})"), ElementsAre(ElementsAre(0, 1, 2, 3)));
  EXPECT_THAT(run(R"({"max_new_tokens": 9, "eos_token_id": [4, 2], "do_sample": true, "top_k": 1})"),
              ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(Generate, H215_sampling_warps_in_order_and_repeats_rows) {
  const GenerationConfig config =
      config_of(R"({"do_sample": true, "temperature": 0.5, "top_k": 3, "top_p": 0.9, "typical_p": 0.9,
    "epsilon_cutoff": 0.01, "eta_cutoff": 0.01, "min_p": 0.1, "repetition_penalty": 1.1, "renormalize_logits": true})");
  EXPECT_THAT(names(logits_processors_of(config, 1, {})),
              ElementsAre("RepetitionPenaltyLogitsProcessor", "TemperatureLogitsWarper", "TopKLogitsWarper",
                          "TopPLogitsWarper", "MinPLogitsWarper", "TypicalLogitsWarper", "EpsilonLogitsWarper",
                          "EtaLogitsWarper", "LogitNormalization"));
  EXPECT_THAT(
      rows_of(generate(follows(circle, 5), ids_of({{0}, {3}}),
                       config_of(R"({"do_sample": true, "top_k": 1, "max_new_tokens": 1, "num_return_sequences": 2})"))
                  .sequences),
      ElementsAre(ElementsAre(0, 1), ElementsAre(0, 1), ElementsAre(3, 4), ElementsAre(3, 4)));
}

TEST(Generate, sampling_is_pytorchs_stream) {
  // torch.manual_seed(7); torch.multinomial(torch.tensor([[.1, .2, .3, .4]] * 3), 1) three times over
  Generator generator(7);
  const Tensor scores = scores_of({{.1f, .2f, .3f, .4f}, {.1f, .2f, .3f, .4f}, {.1f, .2f, .3f, .4f}}).log();
  std::vector<std::vector<int64_t>> drawn;
  for (int i = 0; i < 3; ++i) drawn.push_back(rows_of(sampled_tokens(scores, &generator).unsqueeze(0))[0]);
  EXPECT_THAT(drawn, ElementsAre(ElementsAre(1, 2, 3), ElementsAre(1, 0, 3), ElementsAre(3, 3, 3)));
}

TEST(Generate, H216_settings_that_change_nothing_make_no_warper) {
  EXPECT_THAT(
      names(logits_processors_of(config_of(R"({"do_sample": true, "temperature": 1.0, "top_k": 0, "top_p": 1.0})"), 1, {})),
      IsEmpty());
  EXPECT_THAT(names(logits_processors_of(config_of(R"({"do_sample": true})"), 1, {})), ElementsAre("TopKLogitsWarper"));
  EXPECT_THAT(names(logits_processors_of(config_of(R"({"temperature": 0.5})"), 1, {})), IsEmpty())
      << "greedy search has no warpers";
  // With beams one token besides the ends of text is kept.
  const auto kept = [](const char* json) {
    const LogitsProcessorList list = logits_processors_of(config_of(json), 1, {});
    const std::vector<float> v = values(list.at(0)(ids_of({{0}}), scores_of({{5, 4, 3, 2, 1}})));
    return std::count_if(v.begin(), v.end(), [](float x) { return std::isfinite(x); });
  };
  EXPECT_EQ(kept(R"({"do_sample": true, "top_k": 1})"), 1);
  EXPECT_EQ(kept(R"({"do_sample": true, "top_k": 1, "num_beams": 2})"), 2);
  EXPECT_EQ(kept(R"({"do_sample": true, "top_k": 1, "num_beams": 2, "eos_token_id": [1, 2, 3]})"), 4);
}

TEST(Generate, H228_new_tokens_count_from_the_prompt) {
  const NextLogits model = follows(circle, 5);
  const Tensor nine = zeros({1, 9}, DType::int64);
  EXPECT_EQ(generate(model, nine, config_of(R"({"max_new_tokens": 3})")).sequences.size(1), 12);
  const Tensor from_nothing = generate(model, {}, config_of(R"({"max_new_tokens": 23, "bos_token_id": 2})")).sequences;
  EXPECT_EQ(from_nothing.size(1), 24);
  EXPECT_EQ(rows_of(from_nothing)[0][0], 2);
  const auto warnings = warnings_of([&] {
    EXPECT_EQ(generate(model, nine, config_of(R"({"max_new_tokens": 3, "max_length": 20})")).sequences.size(1), 12);
  });
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("`max_new_tokens` takes precedence")));
  EXPECT_THAT(warnings_of([&] { generate(model, nine, config_of(R"({"max_new_tokens": 3})")); }), IsEmpty());
}

TEST(Generate, H230_lengths_that_cannot_be) {
  const NextLogits model = follows(circle, 5);
  const Tensor four = zeros({1, 4}, DType::int64);
  EXPECT_THAT(error_of([&] { generate(model, four, config_of(R"({"max_length": 4})")); }),
              HasSubstr("Input length of input_ids is 4, but `max_length` is set to 4"));
  EXPECT_THAT(warnings_of([&] { generate(model, four, config_of("{}")); }),
              ElementsAre(HasSubstr("default of 20 new tokens")));
  EXPECT_THAT(warnings_of([&] { generate(model, four, config_of(R"({"max_length": 6, "min_length": 9})")); }),
              ElementsAre(HasSubstr(
                  "Unfeasible length constraints: `min_length` (9) is larger than the maximum possible length (6)")));
}

TEST(Generate, H232_there_must_be_something_to_begin_with) {
  EXPECT_THAT(error_of([] { generate(follows(circle, 5), {}, config_of(R"({"max_new_tokens": 3})")); }),
              HasSubstr("there are no input_ids, and `bos_token_id` is not set"));
  EXPECT_THAT(
      error_of([] { generate(follows(circle, 5), zeros({4}, DType::int64), config_of(R"({"max_new_tokens": 3})")); }),
      HasSubstr("int64 [batch, length], but are [4]"));
}

TEST(Generate, H234_the_mask_is_made_from_the_padding) {
  const Tensor ids = ids_of({{9, 9, 1}, {1, 2, 3}});
  EXPECT_THAT(rows_of(attention_mask_of(ids, 9, {4})), ElementsAre(ElementsAre(0, 0, 1), ElementsAre(1, 1, 1)));
  EXPECT_THAT(rows_of(attention_mask_of(ids, 9, {4, 9})), Each(ElementsAre(1, 1, 1))) << "the padding ends texts";
  EXPECT_THAT(rows_of(attention_mask_of(ids, 7, {})), Each(ElementsAre(1, 1, 1))) << "no padding";
  EXPECT_THAT(rows_of(attention_mask_of(ids, std::nullopt, {})), Each(ElementsAre(1, 1, 1)));
  EXPECT_THAT(rows_of(attention_mask_of(zeros({2, 3, 4}, DType::float32), 0, {})), Each(ElementsAre(1, 1, 1)))
      << "embeddings";
  // The loop passes it on, and lengthens it.
  std::vector<std::vector<int64_t>> last;
  generate(
      [&](const GenerationStep& step) {
        last = rows_of(step.attention_mask);
        return follows({1, 2, 3, 4, 0, 0, 0, 0, 0, 0}, 10)(step);
      },
      ids, config_of(R"({"max_new_tokens": 2, "pad_token_id": 9})"));
  EXPECT_THAT(last, ElementsAre(ElementsAre(0, 0, 1, 1), ElementsAre(1, 1, 1, 1)));
}

TEST(Generate, H235_custom_criteria_stand_beside_the_settings) {
  GenerateOptions options;
  options.criteria.push_back(
      {"Twenty", [](const Tensor& ids) { return std::vector<bool>(static_cast<size_t>(ids.size(0)), ids.size(1) >= 20); }});
  const auto length = [&](const char* config) {
    return generate(follows(circle, 5), ids_of({{0}}), config_of(config), options).sequences.size(1);
  };
  EXPECT_EQ(length(R"({"max_length": 22})"), 20);
  EXPECT_EQ(length(R"({"max_length": 18})"), 18);
  options.criteria = {max_length_criteria(20)};
  EXPECT_THAT(error_of([&] { length(R"({"max_length": 22})"); }),
              HasSubstr("a custom stopping criterion of type MaxLengthCriteria"));
  options.criteria.clear();
  options.processors = {repetition_penalty_logits_processor(1.5)};
  EXPECT_THAT(error_of([&] { length(R"({"max_length": 22, "repetition_penalty": 1.2})"); }),
              HasSubstr("a custom logits processor of type RepetitionPenaltyLogitsProcessor"));
}

TEST(Generate, going_on_beyond_the_models_positions_is_a_warning) {
  const auto warnings = [](int64_t positions) {
    return warnings_of([&] {
      GenerateOptions options;
      options.max_position_embeddings = positions;
      generate(follows(circle, 5), ids_of({{0, 1}}), config_of(R"({"max_new_tokens": 6})"), options);
    });
  };
  EXPECT_THAT(warnings(7), ElementsAre(HasSubstr("The text is now as long as the model's 7 positions, and goes on")));
  EXPECT_THAT(warnings(8), IsEmpty());
  EXPECT_THAT(warnings(0), IsEmpty());
}

TEST(Generate, H236_criteria_answer_for_each_row) {
  const Tensor ten = zeros({3, 10}, DType::int64), nine = zeros({3, 9}, DType::int64);
  EXPECT_THAT(max_length_criteria(10)(nine), ElementsAre(false, false, false));
  EXPECT_THAT(max_length_criteria(10)(ten), ElementsAre(true, true, true));
  const auto past = StoppingClock::now() - std::chrono::seconds(100);
  EXPECT_THAT(max_time_criteria(1000)(ten), Each(false));
  EXPECT_THAT(max_time_criteria(99.0, past)(ten), Each(true));
  EXPECT_THAT(eos_token_criteria({0, 7})(ids_of({{3, 0}, {0, 7}, {0, 3}})), ElementsAre(true, true, false));
  EXPECT_THAT(rows_done({max_length_criteria(5), eos_token_criteria({7})}, ids_of({{1, 7}, {7, 1}})),
              ElementsAre(true, false));
  EXPECT_THAT(rows_done({max_length_criteria(2), eos_token_criteria({7})}, ids_of({{1, 7}, {7, 1}})),
              ElementsAre(true, true));
  EXPECT_THAT(rows_done({}, ten), Each(false));
}

const Tokenizer& tiny() {
  static const Tokenizer tokenizer = Tokenizer::from_file(test::source_folder() + "/assets/tiny-lm");
  return tokenizer;
}

// Says a text, whatever it is given.
NextLogits saying(const std::string& text, std::vector<int64_t>& ids) {
  ids = tiny().encode_ids(text);
  return [&ids](const GenerationStep& step) {
    const auto at = static_cast<size_t>(step.cache_position + step.input_ids.size(1) - 1);
    Tensor logits = zeros({1, 4096}, DType::float32);
    logits.mutable_data_as<float>()[at < ids.size() ? ids[at] : 0] = 1;
    return logits;
  };
}

TEST(Generate, stop_strings_stop_where_they_are_complete) {
  std::vector<int64_t> ids;
  const NextLogits model = saying("The people of the United States, and then more.", ids);
  GenerationConfig config = config_of(R"({"max_new_tokens": 30, "eos_token_id": 0, "stop_strings": ["nited St"]})");
  EXPECT_THAT(error_of([&] { generate(model, ids_of({{5}}), config); }), HasSubstr("no tokenizer was passed"));
  GenerateOptions options;
  options.tokenizer = &tiny();
  const auto row = rows_of(generate(model, ids_of({{5}}), config, options).sequences)[0];
  EXPECT_EQ(tiny().decode(std::span(row).subspan(1)), "The people of the United States")
      << "the token that completes it is kept whole";
  config.stop_strings = {""};
  EXPECT_THAT(error_of([&] { generate(model, ids_of({{5}}), config, options); }), HasSubstr("an empty string"));
}

TEST(Generate, text_is_streamed_as_it_comes) {
  std::vector<int64_t> ids;
  const NextLogits model = saying("caf\u00E9 \U0001F600!", ids);
  std::string text;
  int parts = 0;
  TextStreamer streamer(
      tiny(),
      [&](std::string_view part) {
        text += part;
        ++parts;
      },
      true);
  GenerateOptions options;
  options.streamer = &streamer;
  generate(model, ids_of({{5, 6}}).narrow(1, 0, 1), config_of(R"({"max_new_tokens": 30, "eos_token_id": 0})"), options);
  EXPECT_EQ(text, "caf\u00E9 \U0001F600!");
  EXPECT_GT(parts, 2);
}

TEST(Generate, without_a_cache_the_whole_prompt_is_asked_each_time) {
  std::vector<int64_t> lengths;
  const NextLogits model = follows(circle, 5);
  generate(
      [&](const GenerationStep& step) {
        EXPECT_EQ(step.cache_position, 0);
        lengths.push_back(step.input_ids.size(1));
        return model(step);
      },
      ids_of({{0, 1}}), config_of(R"({"max_new_tokens": 3, "use_cache": false})"));
  EXPECT_THAT(lengths, ElementsAre(2, 3, 4));
}

TEST(Generate, says_what_it_cannot_do) {
  EXPECT_THAT(
      error_of([] {
        generate(follows(circle, 5), ids_of({{0}}), config_of(R"({"penalty_alpha": 0.6, "top_k": 4, "max_new_tokens": 2})"));
      }),
      HasSubstr("the settings ask for contrastive_search; supported are greedy_search, sample, beam_search, beam_sample and "
                "assisted_generation"));
  EXPECT_THAT(error_of([] {
                generate(
                    [](const GenerationStep&) {
                      return zeros({2, 5}, DType::float32);
                    },
                    ids_of({{0}}), config_of(R"({"max_new_tokens": 2})"));
              }),
              HasSubstr("expected logits [1, vocab] or [1, length, vocab], found [2, 5]"));
}

}  // namespace
}  // namespace calque::generate_test
