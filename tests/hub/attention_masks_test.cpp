#include "calque/hub/attention_masks.h"

#include <gtest/gtest.h>

#include "calque/file/safetensors.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/shaping.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/literal.h"
#include "calque/tensor/finfo.h"
#include "hub/hub_support.h"

namespace calque::attention_masks_test {
namespace {

using namespace hub_test;

const SafetensorsFile& masks() {
  static const SafetensorsFile file = SafetensorsFile::open(golden("masks.safetensors").string());
  return file;
}
int64_t hidden(const Tensor& mask) { return ne(mask, 0).sum().item().to_int(); }

TEST(Masks, H148_inverted_masks) {
  EXPECT_TRUE(same_bits(invert_attention_mask(masks().tensor("padded"), DType::float32), masks().tensor("inverted_2d")));
  EXPECT_TRUE(same_bits(invert_attention_mask(masks().tensor("cube"), DType::float32), masks().tensor("inverted_3d")));
}

TEST(Masks, H150_a_cached_prefix_is_seen) {
  EXPECT_TRUE(
      same_bits(create_extended_attention_mask_for_decoder(3, 4, masks().tensor("padded")), masks().tensor("decoder")));
  EXPECT_TRUE(same_bits(get_extended_attention_mask(masks().tensor("padded"), 3, 4, true, DType::float32),
                        masks().tensor("extended_decoder")));
  EXPECT_TRUE(same_bits(get_extended_attention_mask(masks().tensor("padded"), 3, 7, false, DType::float32),
                        masks().tensor("extended_encoder")));
  EXPECT_EQ(error_of([] { get_extended_attention_mask(zeros({3}), 3, 7, false, DType::float32); }),
            "wrong shape for input_ids (shape [3, 7]) or attention_mask (shape [3])");
}

TEST(Masks, H151_head_masks) {
  const auto compare = [](const std::vector<Tensor>& found, const Tensor& expected) {
    ASSERT_EQ(static_cast<int64_t>(found.size()), expected.size(0));
    for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(same_bits(found[i], expected.select(0, static_cast<int64_t>(i))));
  };
  compare(get_head_mask(masks().tensor("heads_1d"), 3, DType::float32), masks().tensor("head_mask_1d"));
  compare(get_head_mask(masks().tensor("heads_2d"), 3, DType::float32), masks().tensor("head_mask_2d"));
  compare(get_head_mask(masks().tensor("heads_2d"), 3, DType::float32, true), masks().tensor("head_mask_chunked"));
  for (const Tensor& none : get_head_mask({}, 3, DType::float32)) EXPECT_FALSE(none.defined());
  EXPECT_EQ(error_of([] {
              get_head_mask(zeros({1, 2, 3}), 3, DType::float32);
            }),
            "head_mask has 3 dimensions, expected 1 (heads) or 2 (layers, heads)");
}

TEST(Masks, H152_H153_H155_all_of_transformers) {
  for (const char* dtype : {"float32", "bfloat16", "float16"})
    for (const auto& [causal, window] : std::vector<std::pair<bool, int64_t>>{{true, 0}, {true, 5}, {false, 0}})
      for (const int64_t query : {1, 3, 7}) {
        const AttentionMaskConverter converter(causal, window ? std::optional(window) : std::nullopt);
        const std::string kind = std::string(dtype) + "/" + (causal ? "causal" : "plain") + "/" + std::to_string(window) +
                                 "/" + std::to_string(query);
        SCOPED_TRACE(kind);
        EXPECT_TRUE(same_bits(converter.to_4d(masks().tensor("padded"), query, *dtype_from_name(dtype), 7),
                              masks().tensor("to_4d/" + kind)));
        if (!causal) continue;
        const Tensor made = converter.to_causal_4d(3, query, 7, *dtype_from_name(dtype));
        ASSERT_EQ(made.defined(), masks().find("to_causal_4d/" + kind) != nullptr);
        EXPECT_TRUE(!made.defined() || same_bits(made, masks().tensor("to_causal_4d/" + kind)));
      }
}

TEST(Masks, H152_H153_how_many_are_hidden) {
  const Tensor all = ones({3, 7}, DType::int64);
  const AttentionMaskConverter causal(true), window(true, 5), plain(false);
  EXPECT_EQ(hidden(causal.to_4d(all, 1, DType::float32, 7)), 0);
  EXPECT_EQ(hidden(causal.to_4d(all, 3, DType::float32, 7)), 9);
  EXPECT_EQ(hidden(causal.to_4d(all, 7, DType::float32, 7)), 63);
  EXPECT_EQ(hidden(window.to_4d(all, 1, DType::float32, 7)), 3);
  EXPECT_EQ(hidden(window.to_4d(all, 3, DType::float32, 7)), 12);
  EXPECT_EQ(hidden(window.to_4d(all, 7, DType::float32, 7)), 66);
  EXPECT_EQ(hidden(plain.to_4d(all, 7, DType::float32, 7)), 0);
}

TEST(Masks, H154_H155_what_converters_refuse) {
  EXPECT_FALSE(AttentionMaskConverter(true).to_causal_4d(3, 1, 7, DType::float32).defined());
  EXPECT_EQ(hidden(AttentionMaskConverter(true).to_causal_4d(3, 7, 7, DType::float32)), 63);
  EXPECT_EQ(error_of([] { AttentionMaskConverter(false).to_causal_4d(3, 7, 7, DType::float32); }),
            "AttentionMaskConverter: to_causal_4d is for a causal converter, and this one is not");
  EXPECT_NE(error_of([] {
              AttentionMaskConverter(true).to_4d(ones({3, 7}), 7, DType::float32);
            }).find("needs the key length"),
            std::string::npos);
  EXPECT_EQ(error_of([] { AttentionMaskConverter(true, 0); }),
            "AttentionMaskConverter: sliding_window must be a strictly positive integer, not `0`");
}

TEST(Masks, H157_rows_that_see_nothing_see_everything) {
  const Tensor mask = AttentionMaskConverter(true).to_4d(masks().tensor("padded"), 7, DType::float32, 7);
  EXPECT_TRUE(same_bits(AttentionMaskConverter::unmask_unattended(mask, lowest_finite(DType::float32)).abs(),
                        masks().tensor("unmasked").abs()));
  EXPECT_NE(error_of([] {
              AttentionMaskConverter::unmask_unattended(ones({1, 1, 2, 2}, DType::bool_), 0);
            }).find("got a boolean one"),
            std::string::npos);
}

// Three sequences with one prefix in a row, told apart by the mask alone.
TEST(Masks, H159_packed_sequences_with_a_4d_mask) {
  const auto model = tiny_llama();
  const GradModeScope no_grad(false);
  const Tensor prefix = tensor({3, 4, 5}, DType::int64), ends = tensor({6, 7, 8}, DType::int64);
  const Tensor batch = cat({prefix.unsqueeze(0).expand({3, 3}), ends.unsqueeze(1)}, 1);
  const Tensor expected = (*model)({{arg::input_ids, batch}})["logits"].select(1, -1);
  const Tensor packed = cat({prefix, ends}, 0).unsqueeze(0);
  Tensor mask = tril(ones({6, 6}), 0);
  for (int64_t row = 3; row < 6; ++row)
    for (int64_t column = 3; column < row; ++column) mask.select(0, row).select(0, column).fill_(0);
  const Tensor additive = (1 - mask).unsqueeze(0).unsqueeze(0) * lowest_finite(DType::float32);
  const Tensor positions = tensor({0, 1, 2, 3, 3, 3}, DType::int64).unsqueeze(0);
  const Tensor found =
      (*model)({{arg::input_ids, packed}, {arg::attention_mask, additive}, {arg::position_ids, positions}})["logits"]
          .select(0, 0)
          .slice(0, 3);
  EXPECT_LT((found - expected).abs().max().item().to_double(), 1e-5);
}

}  // namespace
}  // namespace calque::attention_masks_test
