// What SpecAugment hides is what transformers hides (wav2vec2's _compute_mask_indices, numpy seeded alike).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "calque/op/operators.h"
#include "calque/tensor/generator.h"
#include "hub/hub_support.h"
#include "zoo/blocks/speech_encoder.h"

namespace calque::spec_augment_test {
namespace {

using namespace hub_test;

std::vector<std::string> hidden(uint64_t seed, int64_t batch, int64_t length, double probability, int64_t span,
                                int64_t least, const std::vector<int64_t>& lengths = {}) {
  manual_seed(seed);
  const Tensor mask = spec_augment_mask(batch, length, probability, span, least, lengths);
  std::vector<std::string> out;
  for (int64_t row = 0; row < batch; ++row) {
    out.emplace_back();
    for (int64_t i = 0; i < length; ++i) out.back() += mask.select(0, row).select(0, i).item_as<bool>() ? '1' : '0';
  }
  return out;
}

using Rows = std::vector<std::string>;

TEST(SpecAugment, spans_are_those_that_numpy_draws) {
  EXPECT_EQ(hidden(7, 2, 12, 0.5, 3, 1), (Rows{"000001111110", "011111000000"}));
  EXPECT_EQ(hidden(3, 2, 16, 0.05, 4, 0), (Rows{"0000000000000000", "0000000000000000"}));
}

TEST(SpecAugment, spans_stay_where_there_is_sound) {
  EXPECT_EQ(hidden(11, 3, 20, 0.3, 2, 2, {20, 9, 1}),
            (Rows{"00011011011000000000", "00110110000000000000", "00000000000000000001"}));
  EXPECT_EQ(hidden(5, 2, 9, 1.0, 1, 0, {9, 4}), (Rows{"111111111", "111100000"}));
}

TEST(SpecAugment, a_span_longer_than_the_sound_is_an_error_that_says_what_to_change) {
  EXPECT_THAT(error_of([] { spec_augment_mask(1, 3, 0.5, 4, 0); }), testing::HasSubstr("make mask_time_length"));
}

}  // namespace
}  // namespace calque::spec_augment_test
