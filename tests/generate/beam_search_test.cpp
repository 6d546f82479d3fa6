// Beams: the hypotheses that are kept, the beams that go on, and the search over models that are tables.
#include "calque/generate/beam_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "calque/base/error.h"
#include "calque/generate/generate.h"
#include "calque/op/operators.h"
#include "generate/generate_support.h"
#include "support/error_support.h"

namespace calque::beam_search_test {
namespace {

using generate_test::ids_of;
using generate_test::rows_of;
using generate_test::scores_of;
using test::error_of;
using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

GenerationConfig config_of(const std::string& json) { return GenerationConfig::from_json(json); }

// Logits of the token after each token.
const std::vector<std::vector<float>> table = {
    {0.1F, 1.2F, 0.9F, -0.5F}, {0.7F, 0.2F, 0.3F, 1.1F}, {2.0F, -1.0F, 0.4F, 0.0F}, {0.5F, 0.6F, 0.55F, 0.2F}};

NextLogits from_table() {
  return [](const GenerationStep& step) {
    std::vector<std::vector<float>> out;
    for (const std::vector<int64_t>& row : rows_of(step.input_ids)) out.push_back(table.at(static_cast<size_t>(row.back())));
    return scores_of(out);
  };
}

TEST(BeamSearch, H217_many_beams_find_the_likeliest_text) {
  // All 64 continuations, by hand.
  const Tensor logs = scores_of(table).log_softmax(-1);
  const auto at = [&](int64_t from, int64_t to) { return logs.select(0, from).select(0, to).item_as<float>(); };
  std::vector<int64_t> best;
  float best_sum = -INFINITY;
  for (int64_t a = 0; a < 4; ++a)
    for (int64_t b = 0; b < 4; ++b)
      for (int64_t c = 0; c < 4; ++c)
        if (const float sum = at(0, a) + at(a, b) + at(b, c); sum > best_sum) best_sum = sum, best = {0, a, b, c};
  for (const char* beams : {"16", "8"})
    EXPECT_EQ(rows_of(generate(from_table(), ids_of({{0}}),
                               config_of(R"({"max_new_tokens": 3, "num_beams": )" + std::string(beams) + "}"))
                          .sequences)
                  .at(0),
              best);
}

TEST(BeamSearch, H217_the_cache_follows_the_beams) {
  std::vector<std::vector<int64_t>> histories;  // what a cache would hold, row by row
  const NextLogits model = from_table();
  const auto following = [&](const GenerationStep& step) {
    const auto fresh = rows_of(step.input_ids);
    std::vector<std::vector<int64_t>> before = histories;
    if (step.rows.defined()) {
      histories.clear();
      const auto rows = rows_of(step.rows.unsqueeze(0));
      for (const int64_t row : rows[0]) histories.push_back(before.at(static_cast<size_t>(row)));
    }
    if (histories.empty()) histories.resize(fresh.size());
    for (size_t r = 0; r < fresh.size(); ++r) histories[r].insert(histories[r].end(), fresh[r].begin(), fresh[r].end());
    return model(step);
  };
  const auto out = rows_of(generate(following, ids_of({{0}, {3}}),
                                    config_of(R"({"max_new_tokens": 5, "num_beams": 3, "num_return_sequences": 3})"))
                               .sequences);
  ASSERT_THAT(out, SizeIs(6));
  for (const std::vector<int64_t>& row : out)
    EXPECT_THAT(histories, testing::Contains(std::vector(row.begin(), row.end() - 1)));
}

TEST(BeamSearch, H217_processors_work_on_log_probabilities_before_the_sums) {
  const GenerateOutput out =
      generate(from_table(), ids_of({{0}}), config_of(R"({"max_new_tokens": 1, "num_beams": 2, "suppress_tokens": [1],
    "return_dict_in_generate": true, "output_scores": true})"));
  const std::vector<float> scores = generate_test::values(out.scores.at(0));
  EXPECT_EQ(scores.at(1), -INFINITY);
  EXPECT_THAT(scores.at(2), FloatEq(scores_of({table[0]}).log_softmax(-1).select(1, 2).item_as<float>()));
  EXPECT_THAT(rows_of(out.sequences), ElementsAre(ElementsAre(0, 2)));
}

TEST(BeamSearch, H219_when_nothing_better_can_come) {
  const auto done = [](EarlyStopping stopping, double penalty, float best, int64_t length) {
    BeamHypotheses kept({.num_beams = 1, .length_penalty = penalty, .early_stopping = stopping, .max_length = 20});
    kept.add({1, 2, 3}, 0, -4, 4);  // its score is -1 with a penalty of 1
    return kept.is_done(best, length, 0);
  };
  EXPECT_TRUE(done(EarlyStopping::when_full, 1, 0, 5));
  // Over the length so far -6 / 5 is worse, over the longest -6 / 20 would be better.
  EXPECT_TRUE(done(EarlyStopping::when_unlikely, 1, -6, 5));
  EXPECT_FALSE(done(EarlyStopping::never, 1, -6, 5));
  EXPECT_TRUE(done(EarlyStopping::never, 0, -6, 5)) << "no reward for length: it can only become worse";
  EXPECT_FALSE(BeamHypotheses({.num_beams = 2, .early_stopping = EarlyStopping::when_full}).is_done(-100, 5, 0))
      << "there is room";
  EXPECT_THAT(error_of([] { BeamHypotheses({.num_beams = 2, .early_stopping = EarlyStopping::never}); }),
              HasSubstr("needs a max_length"));
}

TEST(BeamSearch, H220_an_end_of_text_finishes_a_hypothesis) {
  const Tensor ids = ids_of({{5, 6}, {5, 7}, {8, 8}, {8, 9}});
  const auto process = [&](BeamSearchScorer& scorer, const std::vector<std::vector<int64_t>>& tokens) {
    return scorer.process(ids, scores_of({{-1, -2, -3, -4}, {-1, -2, -3, -4}}), ids_of(tokens),
                          ids_of({{0, 1, 0, 1}, {1, 0, 1, 0}}));
  };
  BeamSearchScorer scorer(2, {.num_beams = 2, .max_length = 9}, 0, {3}, 1);
  const NextBeams next = process(scorer, {{3, 4, 5, 6}, {4, 5, 3, 6}});
  // The end is kept without its token; of the others the best go on, in order.
  ASSERT_THAT(scorer.hypotheses(0).items(), SizeIs(1));
  EXPECT_THAT(scorer.hypotheses(0).items()[0].ids, ElementsAre(5, 6));
  EXPECT_EQ(scorer.hypotheses(0).items()[0].score, -0.5F) << "two tokens, the end among them";
  EXPECT_THAT(next.tokens, ElementsAre(4, 5, 4, 5));
  EXPECT_THAT(next.rows, ElementsAre(1, 0, 3, 2));
  EXPECT_THAT(next.scores, ElementsAre(-2, -3, -1, -2));
  EXPECT_THAT(scorer.hypotheses(1).items(), IsEmpty()) << "an end that is not among the best two is ignored";
  EXPECT_FALSE(scorer.is_done());

  BeamSearchScorer all(2, {.num_beams = 2, .max_length = 9}, 0, {3}, 1);
  EXPECT_THAT(error_of([&] {
                process(all, {{3, 3, 3, 3}, {4, 5, 6, 7}});
              }),
              HasSubstr("at most 2 of the candidates of prompt 0 may be ends of text"));

  // Both beams end, with -1 / 2 and -2 / 2. What goes on has -3 / 2: nothing better will come.
  BeamSearchScorer ended(1, {.num_beams = 2, .max_length = 9}, 0, {3}, 1);
  ended.process(ids_of({{5, 6}, {5, 7}}), scores_of({{-1, -2, -3, -4}}), ids_of({{3, 3, 5, 6}}), ids_of({{0, 1, 0, 1}}));
  EXPECT_TRUE(ended.is_done()) << "texts that have ended are not the best that is still running";
}

TEST(BeamSearch, finished_hypotheses_are_padded_and_come_best_first) {
  // From 0 the end (2) and 1 are likely; after 1 comes 3 for sure, then the end.
  const NextLogits model = [](const GenerationStep& step) {
    std::vector<std::vector<float>> out;
    for (const std::vector<int64_t>& row : rows_of(step.input_ids)) {
      const int64_t last = row.back();
      out.push_back(last == 0   ? std::vector<float>{-9, 2, 1.5F, -9}
                    : last == 1 ? std::vector<float>{-9, -9, -9, 9}
                                : std::vector<float>{-9, -9, 9, -9});
    }
    return scores_of(out);
  };
  const auto search = [&](const std::string& early_stopping, const std::string& pad = "1") {
    return rows_of(generate(model, ids_of({{0}}),
                            config_of(
                                R"({"max_new_tokens": 6, "num_beams": 2, "num_return_sequences": 2, "eos_token_id": [2, 9],
      "early_stopping": )" + early_stopping +
                                R"(, "pad_token_id": )" + pad + "}"))
                       .sequences);
  };
  EXPECT_THAT(search("false"), ElementsAre(ElementsAre(0, 1, 3, 2), ElementsAre(0, 2, 1, 1)));
  EXPECT_THAT(search("true"), ElementsAre(ElementsAre(0, 2, 1), ElementsAre(0, 3, 2)))
      << "two are finished before the best one is";
  // transformers 5 takes the padding 0 for none, and fills with the first end of text.
  EXPECT_THAT(search("false", "0"), ElementsAre(ElementsAre(0, 1, 3, 2), ElementsAre(0, 2, 2, 2)));
}

TEST(BeamSearch, at_the_last_step_the_likeliest_text_counts) {
  // 1 is always the likeliest, the end (2) always the second: the beams fill up with ends just when the length does.
  const NextLogits model = [](const GenerationStep& step) {
    return scores_of(std::vector(static_cast<size_t>(step.input_ids.size(0)), std::vector<float>{-9, 1, 0.3F, -2}));
  };
  const GenerationConfig config =
      config_of(R"({"max_new_tokens": 2, "num_beams": 2, "eos_token_id": 2, "pad_token_id": 0, "early_stopping": true})");
  EXPECT_THAT(rows_of(generate(model, ids_of({{0}}), config).sequences), ElementsAre(ElementsAre(0, 1, 1)));
}

}  // namespace
}  // namespace calque::beam_search_test
