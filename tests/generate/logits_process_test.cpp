// Logits processors: the rows of the conformance table, with their numbers. tests/peers/sampling.py compares all of them with
// transformers on random scores.
#include "calque/generate/logits_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "calque/base/error.h"
#include "calque/op/aten/zeros.h"
#include "generate/generate_support.h"
#include "support/error_support.h"

namespace calque::logits_process_test {
namespace {

using generate_test::ids_of;
using generate_test::scores_of;
using generate_test::values;
using test::error_of;
using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr float inf = std::numeric_limits<float>::infinity();

// The tokens of each row that are banned.
std::vector<std::vector<int64_t>> banned(const Tensor& scores) {
  std::vector<std::vector<int64_t>> out;
  const int64_t vocab = scores.size(1);
  const std::vector<float> v = values(scores);
  for (int64_t r = 0; r < scores.size(0); ++r) {
    out.emplace_back();
    for (int64_t i = 0; i < vocab; ++i)
      if (v[static_cast<size_t>(r * vocab + i)] == -inf) out.back().push_back(i);
  }
  return out;
}

Tensor uniform(int64_t rows, int64_t vocab) { return full({rows, vocab}, 1.0 / static_cast<double>(vocab), DType::float32); }
Tensor ids_of_length(int64_t rows, int64_t length) { return zeros({rows, length}, DType::int64); }

TEST(LogitsProcessor, H237_min_length_masks_the_end_until_the_length_is_reached) {
  const LogitsProcessor min_length = min_length_logits_processor(10, {0});
  EXPECT_THAT(banned(min_length(ids_of_length(4, 5), uniform(4, 20))),
              ElementsAre(ElementsAre(0), ElementsAre(0), ElementsAre(0), ElementsAre(0)));
  EXPECT_THAT(banned(min_length(ids_of_length(1, 15), uniform(1, 20))), ElementsAre(IsEmpty()));

  const LogitsProcessor min_new = min_new_tokens_length_logits_processor(5, 3, {0, 7});
  for (const int64_t length : {5, 6, 7})
    EXPECT_THAT(banned(min_new(ids_of_length(1, length), uniform(1, 20))), ElementsAre(ElementsAre(0, 7))) << length;
  EXPECT_THAT(banned(min_new(ids_of_length(1, 8), uniform(1, 20))), ElementsAre(IsEmpty()));
  EXPECT_THAT(error_of([] { min_length_logits_processor(-1, {0}); }),
              HasSubstr("`min_length` has to be a non-negative integer, but is -1"));
}

TEST(LogitsProcessor, H238_repetition_penalty_scales_what_was_seen) {
  const Tensor ids = ids_of({{0, 1}, {5, 0}});
  const Tensor scores = scores_of({{-0.5f, 1, 2, 2, 2, 2}, {3, 1, 1, 1, 1, 4}});
  const std::vector<float> before = values(scores);
  EXPECT_THAT(values(repetition_penalty_logits_processor(2.0)(ids, scores)),
              ElementsAre(-1, 0.5f, 2, 2, 2, 2, 1.5f, 1, 1, 1, 1, 2));
  EXPECT_THAT(values(encoder_repetition_penalty_logits_processor(2.0, ids)(ids, scores)),
              ElementsAre(-0.25f, 2, 2, 2, 2, 2, 6, 1, 1, 1, 1, 8));
  EXPECT_EQ(values(scores), before) << "never in place";
  EXPECT_THAT(error_of([] { repetition_penalty_logits_processor(0); }),
              HasSubstr("`penalty` has to be a strictly positive float, but is 0.0"));
  EXPECT_THAT(error_of([&] { encoder_repetition_penalty_logits_processor(-1, ids); }), HasSubstr("-1.0"));
}

TEST(LogitsProcessor, repetition_penalty_may_leave_out_the_prompt_and_ids_past_the_scores) {
  const Tensor scores = scores_of({{1, 1, 1}});
  EXPECT_THAT(values(repetition_penalty_logits_processor(2.0, 1)(ids_of({{0, 2}}), scores)), ElementsAre(1, 1, 0.5f));
  EXPECT_THAT(values(repetition_penalty_logits_processor(2.0)(ids_of({{0, 9}}), scores)), ElementsAre(0.5f, 1, 1));
}

TEST(LogitsProcessor, H240_typical_epsilon_and_eta) {
  const Tensor ids = ids_of({{0}});
  const auto log_of = [](std::vector<float> p) {
    for (float& x : p) x = std::log(x);
    return scores_of({p});
  };
  EXPECT_THAT(banned(typical_logits_warper(0.5)(ids, log_of({0.4f, 0.2f, 0.2f, 0.2f}))), ElementsAre(ElementsAre(0)));
  EXPECT_THAT(banned(epsilon_logits_warper(0.1)(ids, log_of({0.87f, 0.099f, 0.001f, 0.03f}))),
              ElementsAre(ElementsAre(1, 2, 3)));
  EXPECT_THAT(banned(eta_logits_warper(0.0625)(ids, log_of({0.01f, 0.04f, 0.9f, 0.05f}))),
              ElementsAre(ElementsAre(0, 1, 3)));
}

TEST(LogitsProcessor, H241_n_grams_are_not_repeated) {
  const Tensor ids = ids_of({{1, 1, 2, 1}, {0, 1, 0, 1}});
  EXPECT_THAT(banned(no_repeat_ngram_logits_processor(2)(ids, uniform(2, 3))),
              ElementsAre(ElementsAre(1, 2), ElementsAre(0)));
  EXPECT_THAT(banned(no_repeat_ngram_logits_processor(3)(ids, uniform(2, 3))), ElementsAre(IsEmpty(), ElementsAre(0)));
  // Of the source, which two beams share.
  const Tensor source = ids_of({{1, 2, 1, 1}, {8, 0, 2, 1}});
  const Tensor beams = ids_of({{1, 2}, {8, 1}, {0, 2}, {2, 0}});
  EXPECT_THAT(banned(encoder_no_repeat_ngram_logits_processor(2, source)(beams, uniform(4, 3))),
              ElementsAre(ElementsAre(1), ElementsAre(1, 2), ElementsAre(1), ElementsAre(2)));
  EXPECT_THAT(error_of([] { no_repeat_ngram_logits_processor(0); }), HasSubstr("strictly positive integer, but is 0"));
}

TEST(LogitsProcessor, H242_bad_words_and_biases) {
  const Tensor ids = ids_of({{0, 1, 3, 1}, {0, 1, 0, 1}});
  const LogitsProcessor bad = no_bad_words_logits_processor({{1}, {4}, {1, 0}, {0, 1, 2}, {1, 3, 1, 3}}, {4});
  EXPECT_THAT(banned(bad(ids, uniform(2, 5))), ElementsAre(ElementsAre(0, 1, 3), ElementsAre(0, 1, 2)));
  const LogitsProcessor bias = sequence_bias_logits_processor({{{1}, 2.0}, {{1, 0}, -3.0}, {{0, 1, 2}, 5.0}});
  EXPECT_THAT(values(bias(ids, zeros({2, 3}, DType::float32))), ElementsAre(-3, 2, 0, -3, 2, 5));
  EXPECT_THAT(error_of([&] {
                sequence_bias_logits_processor({{{100}, 1.0}})(ids, uniform(2, 5));
              }),
              HasSubstr("The model vocabulary size is 5, but the following tokens were being biased: [100]"));
  EXPECT_THAT(error_of([] { no_bad_words_logits_processor({}); }), HasSubstr("non-empty"));
}

TEST(LogitsProcessor, H216_warpers_keep_at_least_so_many) {
  const Tensor ids = ids_of({{0}});
  const Tensor scores = scores_of({{5, 1, 4, 0}});
  EXPECT_THAT(banned(top_k_logits_warper(1)(ids, scores)), ElementsAre(ElementsAre(1, 2, 3)));
  EXPECT_THAT(banned(top_k_logits_warper(1, 3)(ids, scores)), ElementsAre(ElementsAre(3)));
  EXPECT_THAT(banned(top_k_logits_warper(100)(ids, scores)), ElementsAre(IsEmpty()));
  EXPECT_THAT(banned(top_p_logits_warper(0.0)(ids, scores)), ElementsAre(ElementsAre(1, 2, 3)));
  EXPECT_THAT(banned(top_p_logits_warper(0.1, 2)(ids, scores)), ElementsAre(ElementsAre(1, 3)));
  EXPECT_THAT(banned(min_p_logits_warper(1.0, 2)(ids, scores)), ElementsAre(ElementsAre(1, 3)));
  EXPECT_THAT(banned(top_h_logits_warper(0.01)(ids, scores)), ElementsAre(ElementsAre(1, 2, 3)));
  EXPECT_THAT(error_of([] { top_k_logits_warper(0); }), HasSubstr("`top_k`"));
  EXPECT_THAT(error_of([] { top_p_logits_warper(1.5); }), HasSubstr("`top_p` has to be a float > 0 and < 1, but is 1.5"));
  EXPECT_THAT(error_of([] { min_p_logits_warper(-0.5); }), HasSubstr("`min_p`"));
  EXPECT_THAT(error_of([] { typical_logits_warper(1); }), HasSubstr("`typical_p`"));
  EXPECT_THAT(error_of([] { temperature_logits_warper(0); }), HasSubstr("set `do_sample` to false"));
  EXPECT_THAT(error_of([] { top_p_logits_warper(0.5, 0); }), HasSubstr("`min_tokens_to_keep`"));
}

TEST(LogitsProcessor, forced_tokens_are_the_only_ones) {
  const Tensor scores = scores_of({{3, 2, 1}});
  EXPECT_THAT(values(forced_bos_token_logits_processor(1)(ids_of({{0}}), scores)), ElementsAre(-inf, 0, -inf));
  EXPECT_THAT(values(forced_bos_token_logits_processor(1)(ids_of({{0, 0}}), scores)), ElementsAre(3, 2, 1));
  EXPECT_THAT(values(forced_eos_token_logits_processor(3, {0, 2})(ids_of({{0, 0}}), scores)), ElementsAre(0, -inf, 0));
  EXPECT_THAT(values(forced_eos_token_logits_processor(5, {0})(ids_of({{0, 0}}), scores)), ElementsAre(3, 2, 1));
  EXPECT_THAT(error_of([&] { forced_bos_token_logits_processor(7)(ids_of({{0}}), scores); }),
              HasSubstr("not in the vocabulary of 3"));
}

TEST(LogitsProcessor, prefixes_allow_their_tokens) {
  const LogitsProcessor allowed = prefix_constrained_logits_processor([](int64_t batch, std::span<const int64_t> ids) {
    return batch == 0 ? TokenIds{0, 1} : TokenIds{ids.back()};
  });
  EXPECT_THAT(banned(allowed(ids_of({{2}, {2}}), uniform(2, 3))), ElementsAre(ElementsAre(2), ElementsAre(0, 1)));
  EXPECT_THAT(values(allowed(ids_of({{2}, {2}}), scores_of({{1, 1, 1}, {1, 1, -inf}}))),
              ElementsAre(1, 1, -inf, -inf, -inf, 0))
      << "what is allowed though impossible is forced";
  EXPECT_THAT(error_of([] {
                prefix_constrained_logits_processor([](int64_t, std::span<const int64_t>) { return TokenIds{}; })(
                    ids_of({{0}}), uniform(1, 3));
              }),
              HasSubstr("returned no token for batch 0"));
}

TEST(LogitsProcessor, the_rest_do_what_their_names_say) {
  const Tensor one = ids_of({{0, 0, 0}});
  EXPECT_THAT(values(temperature_logits_warper(0.5)(one, scores_of({{1, -2}}))), ElementsAre(2, -4));
  EXPECT_THAT(values(suppress_tokens_logits_processor({1, 9})(one, scores_of({{1, 2, 3}}))), ElementsAre(1, -inf, 3));
  EXPECT_THAT(banned(suppress_tokens_at_begin_logits_processor({0}, 3)(one, uniform(1, 3))), ElementsAre(ElementsAre(0)));
  EXPECT_THAT(banned(suppress_tokens_at_begin_logits_processor({0}, 4)(one, uniform(1, 3))), ElementsAre(IsEmpty()));
  EXPECT_THAT(values(inf_nan_remove_logits_processor()(one, scores_of({{std::nanf(""), inf, -inf}}))),
              ElementsAre(0, std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()));
  EXPECT_THAT(values(exponential_decay_length_penalty(0, 2.0, {1}, 1)(one, scores_of({{1, -2, 3}}))), ElementsAre(1, 4, 3));
  EXPECT_THAT(values(exponential_decay_length_penalty(5, 2.0, {1}, 1)(one, scores_of({{1, -2, 3}}))), ElementsAre(1, -2, 3));
  EXPECT_THAT(values(logit_normalization()(one, scores_of({{0, 0}}))),
              ElementsAre(FloatEq(-std::log(2.0f)), FloatEq(-std::log(2.0f))));
}

}  // namespace
}  // namespace calque::logits_process_test
