// Fake tensors: behaviours that PyTorch's test/test_fake_tensor.py checks. The comment of each test names where the behaviour
// comes from; what is expected (sizes, strides, dtype, device) is what PyTorch gave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/nn/functional.h"
#include "calque/nn/nn.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/attention.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/convolution.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/embedding.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/normalization.h"
#include "calque/op/aten/pooling.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/sorting.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/upsample.h"
#include "calque/op/aten/view_copies.h"
#include "calque/op/aten/view_metadata.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/index.h"
#include "calque/op/literal.h"
#include "calque/tensor/generator.h"
#include "calque/trace/fake.h"
#include "support/error_support.h"

namespace calque::fake_tensor_test {
namespace {

using test::error_of;
using ::testing::HasSubstr;
const Device cuda("cuda:0");

struct FakeTensorBehaviour : ::testing::Test {
  std::shared_ptr<FakeMode> mode = FakeMode::make();
  const ModeScope scope{*mode};
  // "[16, 1] [1, 1] torch.float16 cuda:0"
  static std::string meta(const Tensor& t) {
    EXPECT_TRUE(t.is_fake());
    return str(t.sizes()) + " " + str(t.strides()) + " " + Value(t.dtype()).str() + " " + t.device().str();
  }
  static Tensor range(const Scalar& from, const Scalar& to, const Scalar& step) {
    return call("aten::arange.start_step", {from, to, step}).to_tensor();
  }
  static Tensor on_cuda(SymIntList sizes, DType dtype = DType::float32) { return rand(sizes, dtype, {}, cuda); }
};

// test_type_as
TEST_F(FakeTensorBehaviour, B501_type_as_takes_dtype_and_device) {
  EXPECT_EQ(meta(rand({16, 1}).type_as(on_cuda({4, 4}, DType::float16))), "[16, 1] [1, 1] torch.float16 cuda:0");
}

// test_non_kwarg_device
TEST_F(FakeTensorBehaviour, B502_moving_to_where_a_tensor_is_gives_it_back) {
  const Tensor x = rand({16, 1});
  EXPECT_TRUE(to(x, {}, {}, Device("cpu")).is_same(x));
  EXPECT_EQ(to(x, {}, {}, cuda).device(), cuda);
}

// test_setitem
TEST_F(FakeTensorBehaviour, B503_assigning_into_a_tensor_keeps_its_device) {
  const Tensor x = on_cuda({16, 1});
  set_by(x, {ellipsis, 0}, Scalar(0));
  EXPECT_EQ(meta(x), "[16, 1] [1, 1] torch.float32 cuda:0");
}

// test_shape_take_not_device
TEST_F(FakeTensorBehaviour, B504_resizing_as_another_takes_its_sizes_and_not_its_device) {
  const Tensor x = empty({1});
  const Tensor out = x.resize_as_(on_cuda({8, 8}));
  EXPECT_TRUE(out.is_same(x));
  EXPECT_EQ(meta(x), "[8, 8] [8, 1] torch.float32 cpu");
}

// test_full
TEST_F(FakeTensorBehaviour, B505_full_takes_the_dtype_of_its_number) {
  EXPECT_EQ(meta(full({3}, 7)), "[3] [1] torch.int64 cpu");
  EXPECT_EQ(meta(full({3}, true)), "[3] [1] torch.bool cpu");
  EXPECT_EQ(meta(full({3}, 2.5)), "[3] [1] torch.float32 cpu");
}

// test_nan_to_num
TEST_F(FakeTensorBehaviour, B506_nan_to_num_keeps_the_dtype) {
  EXPECT_EQ(meta(nan_to_num(rand({4}, DType::float16))), "[4] [1] torch.float16 cpu");
}

// test_cuda_lstm
TEST_F(FakeTensorBehaviour, B507_a_recurrent_layer_on_another_device_answers_there) {
  LSTM lstm(10, 20, {.num_layers = 2});
  lstm.to(cuda);
  const Value out = lstm.call({on_cuda({5, 3, 10})});
  EXPECT_EQ(meta(out.to_items()[0].to_tensor()), "[5, 3, 20] [60, 20, 1] torch.float32 cuda:0");
  EXPECT_EQ(meta(out.to_items()[1].to_items()[0].to_tensor()), "[2, 3, 20] [60, 20, 1] torch.float32 cuda:0");
}

// test_fast_div_int_to_float
TEST_F(FakeTensorBehaviour, B508_division_of_integers_is_a_float) {
  const Tensor a = tensor({1, 2}), b = tensor({3, 4});
  EXPECT_EQ(meta(a / b), "[2] [1] torch.float32 cpu");
  EXPECT_EQ(meta(floor_divide(a, 2)), "[2] [1] torch.int64 cpu");
  EXPECT_EQ(meta(true_divide(ones({2}, DType::bool_), 2)), "[2] [1] torch.float32 cpu");
}

// test_fake_tensor_where
TEST_F(FakeTensorBehaviour, B509_a_choice_between_numbers_and_tensors_promotes_on_the_device) {
  EXPECT_EQ(meta(where(on_cuda({2}) > 0, 1.0, on_cuda({2}, DType::float16))), "[2] [1] torch.float16 cuda:0");
  EXPECT_EQ(meta(where(on_cuda({3}) > 0.5, Scalar(1), Scalar(2.0))), "[3] [1] torch.float32 cuda:0");
}

// test_tensor_new
TEST_F(FakeTensorBehaviour, B510_new_tensors_are_made_where_the_old_one_is) {
  EXPECT_EQ(meta(on_cuda({2}).new_zeros({3}, DType::int32)), "[3] [1] torch.int32 cuda:0");
  EXPECT_EQ(meta(on_cuda({2}, DType::float64).new_full({2, 2}, 1)), "[2, 2] [2, 1] torch.float64 cuda:0");
}

// test_unsqueeze_copy
TEST_F(FakeTensorBehaviour, B511_copies_of_views_are_contiguous) {
  EXPECT_EQ(meta(unsqueeze_copy(ones({4}), 1)), "[4, 1] [1, 1] torch.float32 cpu");
}

// test_alias_call
TEST_F(FakeTensorBehaviour, B512_an_alias_keeps_strides_and_storage) {
  const Tensor x = ones({4}).view({2, 2}).t();
  const Tensor y = alias(x);
  EXPECT_EQ(meta(y), "[2, 2] [1, 2] torch.float32 cpu");
  EXPECT_EQ(y.storage().get(), x.storage().get());
}

// test_conv_c1_backward's kin: layout of a convolution
TEST_F(FakeTensorBehaviour, B513_a_convolution_on_the_cpu_keeps_channels_last) {
  const Tensor x = rand({2, 3, 8, 8}).contiguous(MemoryFormat::channels_last);
  EXPECT_EQ(meta(conv2d(x, rand({4, 3, 3, 3}))), "[2, 4, 6, 6] [144, 1, 24, 4] torch.float32 cpu");
}

// test_upsample_bilinear_small_channels
TEST_F(FakeTensorBehaviour, B514_interpolation_of_few_channels_keeps_channels_last_on_the_cpu) {
  const Tensor x = rand({1, 3, 8, 8}).contiguous(MemoryFormat::channels_last);
  EXPECT_EQ(meta(upsample_bilinear2d(x, {16, 16}, false)), "[1, 3, 16, 16] [768, 1, 48, 3] torch.float32 cpu");
}

// test_embedding_bag_meta
TEST_F(FakeTensorBehaviour, B515_the_results_of_an_embedding_bag) {
  const Tensor weight = rand({10, 3}), ids = tensor({1, 2, 4, 5, 4, 3, 2, 9}), offsets = tensor({0, 4});
  const auto [sum, offset2bag, bag_size, max_indices] = embedding_bag(weight, ids, offsets, false, 0);
  EXPECT_EQ(meta(sum), "[2, 3] [3, 1] torch.float32 cpu");
  EXPECT_EQ(meta(offset2bag), "[0] [1] torch.int64 cpu");
  EXPECT_EQ(meta(bag_size), "[2] [1] torch.int64 cpu");
  EXPECT_EQ(meta(max_indices), "[2] [1] torch.int64 cpu");
}

// test_cross_entropy_loss
TEST_F(FakeTensorBehaviour, B516_a_cross_entropy_is_a_number_or_one_for_each_row) {
  const Tensor target = tensor({1, 0, 4});
  EXPECT_EQ(meta(functional::cross_entropy(rand({3, 5}), target)), "[] [] torch.float32 cpu");
  EXPECT_EQ(meta(functional::cross_entropy(rand({3, 5}), target, {}, -100, "none")), "[3] [1] torch.float32 cpu");
}

// test_binary_op_type_promotion's kin: reductions of small integers
TEST_F(FakeTensorBehaviour, B517_sums_of_small_integers_are_wide) {
  EXPECT_EQ(meta(ones({3}, DType::int32).sum()), "[] [] torch.int64 cpu");
  EXPECT_EQ(meta(ones({3}, DType::bool_).cumsum(0)), "[3] [1] torch.int64 cpu");
  EXPECT_EQ(meta(ones({3}, DType::uint8).prod()), "[] [] torch.int64 cpu");
}

// what the kernels would refuse
TEST_F(FakeTensorBehaviour, B518_a_mean_of_integers_is_refused_without_data_too) {
  EXPECT_THAT(
      error_of([] { ones({3}, DType::int64).mean(); }),
      HasSubstr("mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype"));
}

// complex dtypes (mended)
TEST_F(FakeTensorBehaviour, B519_complex_numbers_and_their_real_views) {
  EXPECT_EQ(meta(view_as_real(ones({3}, DType::complex64))), "[3, 2] [2, 1] torch.float32 cpu");
  EXPECT_EQ(meta(ones({3}, DType::complex128).abs()), "[3] [1] torch.float64 cpu");
}

// several results on a device
TEST_F(FakeTensorBehaviour, B520_values_and_indices_are_on_the_inputs_device) {
  const auto [values, indices] = topk(on_cuda({3, 7}), 2, 0);
  EXPECT_EQ(meta(values), "[2, 7] [7, 1] torch.float32 cuda:0");
  EXPECT_EQ(meta(indices), "[2, 7] [7, 1] torch.int64 cuda:0");
}

// strides of a sort
TEST_F(FakeTensorBehaviour, B521_sorting_keeps_the_strides) {
  const auto [values, indices] = sort(rand({3, 4}).t());
  EXPECT_EQ(meta(values), "[4, 3] [1, 4] torch.float32 cpu");
  EXPECT_EQ(meta(indices), "[4, 3] [1, 4] torch.int64 cpu");
}

// joining
TEST_F(FakeTensorBehaviour, B522_joining_promotes_and_stays_on_the_device) {
  EXPECT_EQ(meta(cat({ones({2}, DType::int32), ones({3}, DType::float16)})), "[5] [1] torch.float16 cpu");
  EXPECT_EQ(meta(stack({on_cuda({2}), on_cuda({2}), on_cuda({2})}, 1)), "[2, 3] [3, 1] torch.float32 cuda:0");
}

// test_throw
TEST_F(FakeTensorBehaviour, B523_joining_across_devices_names_both) {
  const std::string error = error_of([] { cat({on_cuda({2}), ones({2})}); });
  EXPECT_THAT(error, HasSubstr("cuda:0"));
  EXPECT_THAT(error, HasSubstr("cpu"));
}

// test_zero_dim's counterpart
TEST_F(FakeTensorBehaviour, B524_a_tensor_of_one_element_with_a_dimension_does_not_change_its_device) {
  EXPECT_EQ(meta(tensor(1.0) + on_cuda({3})), "[3] [1] torch.float32 cuda:0");
  EXPECT_THAT(error_of([] { tensor({1.0}) + on_cuda({3}); }), HasSubstr("cuda:0"));
}

// what the kernels would refuse
TEST_F(FakeTensorBehaviour, B525_products_sums_and_views_that_do_not_fit_are_refused) {
  EXPECT_THAT(error_of([] { mm(ones({2, 3}), ones({2, 3})); }), HasSubstr("mm"));
  EXPECT_THAT(error_of([] { ones({2, 3}) + ones({4}); }), HasSubstr("4"));
  EXPECT_THAT(error_of([] { ones({2, 3}).view({4}); }), HasSubstr("shape '[4]' is invalid for input of size 6"));
}

// normalisations
TEST_F(FakeTensorBehaviour, B526_statistics_of_normalisations) {
  const auto [out, mean, rstd] =
      native_batch_norm(rand({2, 3, 4, 4}), ones({3}), zeros({3}), zeros({3}), ones({3}), true, 0.1, 1e-5);
  EXPECT_EQ(meta(out), "[2, 3, 4, 4] [48, 16, 4, 1] torch.float32 cpu");
  EXPECT_EQ(meta(mean), "[3] [1] torch.float32 cpu");
  EXPECT_EQ(meta(rstd), "[3] [1] torch.float32 cpu");
  const auto [normal, m, r] = native_layer_norm(rand({2, 3, 4}, DType::bfloat16), {4}, {}, {}, 1e-5);
  EXPECT_EQ(meta(m), "[2, 3, 1] [3, 1, 1] torch.bfloat16 cpu");
}

// expanded strides
TEST_F(FakeTensorBehaviour, B527_an_expanded_dimension_has_stride_zero) {
  EXPECT_EQ(meta(ones({3, 1}).expand({3, 4})), "[3, 4] [1, 0] torch.float32 cpu");
  EXPECT_EQ(meta(ones({3, 4}).expand({2, -1, -1})), "[2, 3, 4] [0, 4, 1] torch.float32 cpu");
}

// ranges
TEST_F(FakeTensorBehaviour, B528_the_length_and_dtype_of_a_range) {
  EXPECT_EQ(meta(range(0, 5, 2)), "[3] [1] torch.int64 cpu");
  EXPECT_EQ(meta(range(0.0, 1.0, 0.3)), "[4] [1] torch.float32 cpu");
  EXPECT_EQ(meta(arange(3, DType::int16)), "[3] [1] torch.int16 cpu");
}

// test_binary_op_type_promotion
TEST_F(FakeTensorBehaviour, B529_numbers_and_tensors_without_dimensions_do_not_widen) {
  EXPECT_EQ(meta(ones({2}, DType::int32) + 1.5), "[2] [1] torch.float32 cpu");
  EXPECT_EQ(meta(ones({2}, DType::float16) * tensor(2.0)), "[2] [1] torch.float16 cpu");
  EXPECT_EQ(meta(ones({2}, DType::int8) + tensor({1, 1})), "[2] [1] torch.int64 cpu");
}

// pooling
TEST_F(FakeTensorBehaviour, B530_a_pool_that_rounds_up_and_its_indices) {
  const auto [out, indices] = max_pool2d_with_indices(rand({1, 2, 9, 9}), {3, 3}, {2, 2}, {0, 0}, {1, 1}, true);
  EXPECT_EQ(meta(out), "[1, 2, 4, 4] [32, 16, 4, 1] torch.float32 cpu");
  EXPECT_EQ(meta(indices), "[1, 2, 4, 4] [32, 16, 4, 1] torch.int64 cpu");
}

// random numbers
TEST(FakeTensorBehaviourOutside, B531_fake_random_numbers_leave_the_generator_alone) {
  manual_seed(0);
  const Tensor first = rand({3});
  manual_seed(0);
  {
    const auto mode = FakeMode::make();
    const ModeScope scope(*mode);
    rand({3});
    randn({100});
  }
  EXPECT_TRUE(rand({3}).equal(first));
}

// test_parameter_instantiation
TEST_F(FakeTensorBehaviour, B532_a_module_made_under_the_mode_has_fake_parameters) {
  Linear linear(3, 4);
  EXPECT_TRUE(linear.weight->is_fake());
  EXPECT_TRUE(linear.weight->requires_grad());
  EXPECT_EQ(meta(linear(rand({2, 3}))), "[2, 4] [4, 1] torch.float32 cpu");
}

// data cannot be read
TEST_F(FakeTensorBehaviour, B533_values_of_a_fake_tensor_cannot_be_read) {
  const Tensor x = rand({2});
  EXPECT_NE(error_of([&] { (x > 0).all().item_as<bool>(); }, ErrorKind::data_dependent), "");
  EXPECT_NE(error_of([&] { x.nonzero(); }, ErrorKind::data_dependent), "");
}

// test_cache_key_dtype, _shape, _stride, _device, _constants
TEST_F(FakeTensorBehaviour, B534_what_may_change_the_answer_is_part_of_the_caches_key) {
  const Tensor x = rand({4, 3}), y = rand({4, 3});
  const auto misses_of = [&](const std::function<void()>& f) {
    const size_t before = mode->cache_info().misses;
    f();
    return mode->cache_info().misses - before;
  };
  const Tensor wide = rand({4, 3}, DType::float64), tall = rand({5, 3}), turned = rand({3, 4}).t(), far = on_cuda({4, 3});
  EXPECT_EQ(misses_of([&] { x + y; }), 1U);
  EXPECT_EQ(misses_of([&] { x + y; }), 0U);
  EXPECT_EQ(misses_of([&] { wide + wide; }), 1U);
  EXPECT_EQ(misses_of([&] { tall + tall; }), 1U);
  EXPECT_EQ(misses_of([&] { turned + turned; }), 1U);
  EXPECT_EQ(misses_of([&] { far + far; }), 1U);
  const Tensor whole = ones({4}, DType::int64);
  EXPECT_EQ(misses_of([&] { EXPECT_EQ((whole + 1).dtype(), DType::int64); }), 1U);
  EXPECT_EQ(misses_of([&] { EXPECT_EQ((whole + 1.5).dtype(), DType::float32); }), 1U);
  EXPECT_EQ(misses_of([&] { EXPECT_EQ((whole + 1).dtype(), DType::int64); }), 0U);
}

// test_cache_default_dtype (mended)
TEST_F(FakeTensorBehaviour, B535_the_default_dtype_is_part_of_the_caches_key) {
  const Tensor ints = ones({2}, DType::int64);
  EXPECT_EQ((ints + 1.5).dtype(), DType::float32);
  const DType before = default_dtype();
  set_default_dtype(DType::float64);
  const DType found = (ints + 1.5).dtype();
  set_default_dtype(before);
  EXPECT_EQ(found, DType::float64);
}

// test_cache_view_op
TEST_F(FakeTensorBehaviour, B536_a_cached_view_shares_the_storage_of_its_own_input) {
  const Tensor a = rand({4, 3}), b = rand({4, 3});
  const Tensor va = a.t(), vb = b.t();
  EXPECT_EQ(va.storage().get(), a.storage().get());
  EXPECT_EQ(vb.storage().get(), b.storage().get());
  EXPECT_NE(va.storage().get(), vb.storage().get());
}

// test_cache_key_requires_grad
TEST_F(FakeTensorBehaviour, B537_whether_gradients_are_asked_for_does_not_come_from_the_cache) {
  const Tensor a = rand({4});
  Tensor b = rand({4});
  b.requires_grad_();
  EXPECT_FALSE((a * a).requires_grad());
  EXPECT_TRUE((b * b).requires_grad());
  EXPECT_FALSE((a * a).requires_grad());
}

// test_scaled_dot_product's kin
TEST_F(FakeTensorBehaviour, B538_attention_has_the_sizes_of_the_queries) {
  EXPECT_EQ(meta(scaled_dot_product_attention(rand({2, 4, 5, 8}), rand({2, 4, 7, 8}), rand({2, 4, 7, 8}))),
            "[2, 4, 5, 8] [160, 40, 8, 1] torch.float32 cpu");
}

}  // namespace
}  // namespace calque::fake_tensor_test
