// Calls that once led outside their tensors, never ended or overflowed: one of each kind that the fuzzer of operators found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <memory>

#include "calque/base/memory.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/mode.h"
#include "support/error_support.h"

namespace calque::hostile_arguments_test {
namespace {

using test::error_of;
using testing::HasSubstr;

constexpr int64_t huge = std::numeric_limits<int64_t>::max();
constexpr int64_t lowest = std::numeric_limits<int64_t>::min();

Values ints(std::initializer_list<int64_t> values) {
  Values out;
  for (const int64_t v : values) out.emplace_back(v);
  return out;
}
Value numbers(std::initializer_list<int64_t> values) { return list(ints(values)); }
std::string refusal(const char* op, Values args, Kwargs kwargs = {}) {
  return error_of([&] { call(op, std::move(args), std::move(kwargs)); });
}

TEST(HostileArguments, views_stay_inside_their_storage) {
  const Tensor x = zeros({2, 3});
  EXPECT_THAT(refusal("aten::_reshape_alias", {x, numbers({20000}), numbers({1})}), HasSubstr("into a storage of 24"));
  EXPECT_THAT(refusal("aten::_reshape_alias", {x, numbers({6, 10}), numbers({127})}), HasSubstr("one stride for each size"));
  EXPECT_THAT(refusal("aten::_reshape_alias", {x, numbers({-3, 2}), numbers({1, 1})}), HasSubstr("0 or more"));
  EXPECT_NE(refusal("aten::as_strided", {x, numbers({2}), numbers({huge})}), "");
  EXPECT_NE(refusal("prims::copy_strided", {x, numbers({-1, -1})}), "");
}

TEST(HostileArguments, sums_and_products_of_sizes_do_not_wrap) {
  const Tensor image = zeros({1, 1, 4, 4});
  EXPECT_NE(refusal("aten::repeat_interleave.Tensor", {tensor_of<int64_t>({huge, huge, 2}, {3})}), "");
  EXPECT_NE(refusal("aten::tril_indices", {huge, huge, 0}), "");
  EXPECT_NE(refusal("aten::triu_indices", {huge, 1, lowest}), "");
  EXPECT_EQ(refusal("aten::triu_indices", {huge / 2, 33, 0}), "");  // few indices, in rows without end
  EXPECT_EQ(refusal("aten::tril_indices", {huge / 2, 33, -(huge / 2) + 2}), "");
  EXPECT_NE(refusal("aten::im2col", {image, numbers({huge, huge}), numbers({1, 1}), numbers({0, 0}), numbers({1, 1})}), "");
  EXPECT_NE(refusal("aten::max_pool2d", {image, numbers({2, 2}), numbers({1, 1}), numbers({0, 0}), numbers({huge, huge})}),
            "");
  EXPECT_NE(refusal("aten::diag_embed", {zeros({2}), lowest}), "");
  EXPECT_NE(refusal("aten::one_hot", {tensor_of<int64_t>({huge}, {1}), -1}), "");
  EXPECT_NE(refusal("aten::max_pool2d", {image, numbers({int64_t{1} << 40, 2})}), "");
  EXPECT_NE(refusal("aten::replication_pad2d", {image, numbers({huge - 1, -huge, 0, 0})}), "");
  EXPECT_NE(refusal("aten::arange.start", {lowest, 2}, {{"dtype", DType::int64}}), "");
  EXPECT_NE(refusal("aten::conv2d", {image, zeros({1, 1, 1, 1}), Value(), numbers({huge, huge})}), "");
  EXPECT_NE(refusal("aten::fractional_max_pool2d", {image, numbers({huge, huge}), numbers({2, 2}), zeros({1, 1, 2})}), "");
  EXPECT_NE(refusal("aten::unsafe_chunk", {zeros({5, 0}), huge, 1}), "");
  EXPECT_NE(refusal("aten::gru.input",
                    {zeros({2, 17, 3}), zeros({0, 2, 5}), list({}), false, int64_t{1} << 62, 0.0, false, true, false}),
            "");
}

TEST(HostileArguments, backward_operators_look_at_their_other_arguments) {
  const Tensor x = zeros({2, 3, 4, 4});
  const Tensor none;
  EXPECT_NE(refusal("aten::native_batch_norm_backward",
                    {x, x, none, none, none, zeros({0}), zeros({0}), true, 1e-5, list({true, true, true})}),
            "");
  EXPECT_NE(refusal("aten::native_group_norm_backward",
                    {x, x, zeros({2, 1}), zeros({2, 1}), none, 2, 3, huge, 1, list({true, false, false})}),
            "");
  EXPECT_NE(refusal("aten::_adaptive_avg_pool2d_backward", {zeros({0, 3, 2, 2}), x}), "");
  EXPECT_NE(refusal("aten::embedding_dense_backward", {zeros({2, 3}), zeros({7}, DType::int64), 5, -1, false}), "");
  EXPECT_NE(refusal("aten::binary_cross_entropy", {zeros({4}), zeros({0})}), "");
  EXPECT_NE(
      refusal("aten::_trilinear", {zeros({2, 2}), zeros({2, 2}), zeros({2, 2}), list({}), list({}), list({}), list({}), -2}),
      "");
  EXPECT_NE(refusal("aten::gru_cell", {zeros({2, 3}), zeros({2, 3}), zeros({2, 3}), zeros({2, 3})}), "");
}

TEST(HostileArguments, an_attention_mask_has_the_sizes_of_the_scores) {
  const Tensor q = zeros({3, 8, 17, 4});
  const auto with_mask = [&](const Tensor& mask) {
    return refusal("aten::_scaled_dot_product_flash_attention_for_cpu", {q, q, q, 0.0, false}, {{"attn_mask", mask}});
  };
  EXPECT_NE(with_mask(zeros({3, 8, 17, 4})), "");
  EXPECT_NE(with_mask(zeros({2, 17})), "");
  EXPECT_NE(with_mask(zeros({2, 8, 17, 17})), "");
  EXPECT_EQ(with_mask(zeros({1, 17})), "");
  EXPECT_EQ(with_mask(zeros({3, 1, 17, 1})), "");
}

TEST(HostileArguments, indices_that_are_data_are_checked) {
  const Tensor x = zeros({10, 3});
  EXPECT_NE(refusal("aten::index.Tensor", {x, list({tensor_of<int64_t>({huge / 2}, {1})})}), "");
  EXPECT_NE(refusal("aten::index_select", {x, 0, tensor_of<int64_t>({lowest}, {1})}), "");
  const Tensor target = tensor_of<int64_t>({int64_t{1} << 40, 1}, {1, 2});
  EXPECT_NE(refusal("aten::ctc_loss.IntList", {zeros({6, 1, 5}), target, numbers({6}), numbers({2})}), "");
  // Labels behind the length are padding.
  EXPECT_EQ(refusal("aten::ctc_loss.IntList",
                    {zeros({6, 1, 5}), tensor_of<int64_t>({1, -100}, {1, 2}), numbers({6}), numbers({1})}),
            "");
}

TEST(HostileArguments, numbers_lead_nowhere) {
  const Tensor image = zeros({1, 1, 4, 4});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double scale : {nan, -1.0, 1e300, 1e-300, 0.0})
    EXPECT_EQ(refusal("aten::upsample_nearest2d", {image, numbers({3, 3}), scale, scale}), "") << scale;
  EXPECT_NE(refusal("aten::upsample_bilinear2d.vec", {image, Value(), true, list({2.0})}), "");
  EXPECT_NE(refusal("aten::mvlgamma", {ones({2}), 1000000000}), "");
  EXPECT_NE(refusal("aten::_fft_c2r", {zeros({3}, DType::complex64), numbers({0}), 0, 0}), "");
  EXPECT_EQ(refusal("aten::polygamma", {3, full({2}, -1e15 - 0.25, DType::float64)}), "");  // ends
  EXPECT_EQ(refusal("aten::round.decimals", {ones({2})}, {{"decimals", lowest}}), "");
  EXPECT_EQ(refusal("aten::sub.Tensor", {ones({2}, DType::int64), ones({2}, DType::int64)}, {{"alpha", lowest}}), "");
}

TEST(HostileArguments, dtypes_without_a_kernel_are_refused) {
  const Tensor z = zeros({2}, DType::complex64);
  EXPECT_THAT(refusal("aten::pow.Tensor_Scalar", {z, 2}), HasSubstr("not implemented"));
  EXPECT_THAT(refusal("aten::_unique2", {z}), HasSubstr("not implemented"));
}

void expect_all_true(const Tensor& mask) {
  const Tensor x = ones({36});
  EXPECT_EQ(masked_select(x, mask).numel(), 36);
  EXPECT_EQ(nonzero(mask).size(0), 36);
  EXPECT_EQ(sum(mask).item_as<int64_t>(), 36);
  EXPECT_EQ(call("aten::index.Tensor", {x, list({mask})}).to_tensor().numel(), 36);
  EXPECT_TRUE(all(mask).item_as<bool>());
  EXPECT_TRUE(equal(mask, ones({36}, DType::bool_)));
  EXPECT_EQ(std::get<0>(mask.sort()).to(DType::uint8).max().item_as<int64_t>(), 1);
}

// Written into a bool tensor, seen as one, and in memory of the caller's.
TEST(HostileArguments, any_byte_but_zero_is_true) {
  std::array<uint8_t, 36> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(2 + 7 * i);
  const Tensor mask = make_tensor({36}, DType::bool_);
  std::copy(bytes.begin(), bytes.end(), static_cast<uint8_t*>(mask.mutable_data()));
  expect_all_true(mask);
  const Tensor numbers = make_tensor({36}, DType::uint8);
  std::copy(bytes.begin(), bytes.end(), static_cast<uint8_t*>(numbers.mutable_data()));
  expect_all_true(call("aten::view.dtype", {numbers, DType::bool_}).to_tensor());
  const auto owner = std::make_shared<std::array<uint8_t, 36>>(bytes);
  expect_all_true(
      from_storage(Storage::borrow(owner->data(), owner->size(), owner), DType::bool_, IntList{36}, IntList{1}, 0));
}

TEST(HostileArguments, values_up_to_the_largest_number_are_not_counted) {
  EXPECT_NE(refusal("aten::bincount", {tensor_of<int64_t>({huge}, {1})}), "");
  EXPECT_NE(refusal("aten::bincount", {tensor_of<int64_t>({huge - 1}, {1})}), "");
}

TEST(HostileArguments, a_copy_between_views_of_one_storage_reads_before_it_writes) {
  const Tensor x = arange(Scalar(400)).view({2, 200});
  const Tensor expected = x.slice(1, 0, 199).clone();
  x.slice(1, 1, 200).copy_(x.slice(1, 0, 199));
  EXPECT_TRUE(equal(x.slice(1, 1, 200), expected));
}

TEST(HostileArguments, an_input_that_is_also_the_result_is_read_before_it_changes_its_size) {
  const Tensor x = arange(6).view({2, 3});
  const Tensor expected = x.transpose(0, 1).contiguous();
  call("aten::transpose_copy.int_out", {x, 0, 1}, {{"out", x}});
  EXPECT_TRUE(equal(x, expected));
  const Tensor y = arange(6).view({2, 3});
  call("aten::max.dim_max", {y, 1}, {{"max", y}, {"max_values", zeros({0}, DType::int64)}});
  EXPECT_TRUE(equal(y, tensor_of<int64_t>({2, 5}, {2})));
}

TEST(HostileArguments, distances_go_back_to_pairs_that_there_are) {
  const Tensor x1 = zeros({3, 4}), x2 = zeros({2, 4}), pairs = zeros({3, 2});
  EXPECT_THAT(refusal("aten::_cdist_backward", {pairs, x1, zeros({2, 400}), 1.5, pairs}), HasSubstr("of as many numbers"));
  EXPECT_THAT(refusal("aten::_cdist_backward", {zeros({3, 1}), x1, x2, 1.5, pairs}),
              HasSubstr("each pair of 3 and 2 points"));
  EXPECT_THAT(refusal("aten::_cdist_backward", {pairs, x1, x2, 1.5, zeros({1, 2})}),
              HasSubstr("each pair of 3 and 2 points"));
}

TEST(HostileArguments, memory_beyond_the_limit_is_refused) {
  const size_t before = memory_limit();
  set_memory_limit(memory_in_use() + (size_t{64} << 20));
  EXPECT_THAT(refusal("aten::full", {numbers({1000000000000}), 1.0}), HasSubstr("out of memory"));
  EXPECT_THAT(error_of([] {
                std::vector<Tensor> kept;
                for (int i = 0; i < 100000; ++i) kept.push_back(ones({1000}));
              }),
              HasSubstr("out of memory"));
  set_memory_limit(before);
}

}  // namespace
}  // namespace calque::hostile_arguments_test
