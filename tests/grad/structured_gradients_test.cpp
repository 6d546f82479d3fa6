// Gradients of products, views, norms, attention, indexing, convolutions, pooling and resampling against finite differences in
// float64, of the first and of the second order.
#include <functional>

#include <gtest/gtest.h>

#include "calque/calque.h"
#include "calque/grad/autograd.h"

namespace calque::structured_gradients_test {
namespace {

using Call = std::function<Tensor(const TensorVector&)>;

// Values that differ from each other, without ties and zeros.
Tensor values(IntList sizes, double shift = 0) {
  const SymInts wide(sizes.begin(), sizes.end());
  const Tensor n = arange(Scalar(product(wide)), DType::float64);
  return ((n * 1.7 + shift).sin() * 1.3 + n / Scalar(std::max<int64_t>(100, wide.empty() ? 0 : product(wide).as_int())))
      .reshape(wide);
}

// One number of all that the call gives.
Tensor total(const Call& call, const TensorVector& inputs) {
  const Tensor out = call(inputs);
  return (out * values(out.sizes(), 0.4)).sum();
}

TensorVector leaves(const TensorVector& inputs) {
  TensorVector out;
  for (const Tensor& t : inputs) out.push_back(t.detach().clone().set_requires_grad());
  return out;
}

void compare_with_differences(const Call& call, const TensorVector& inputs) {
  const TensorVector x = leaves(inputs);
  // A linear call's gradient depends on nothing.
  const Tensor number = total(call, x);
  TensorVector found;
  if (number.requires_grad())
    found = grad({number}, x, {.materialize_grads = true});
  else
    for (const Tensor& t : x) found.push_back(zeros_like(t));
  const NoGradGuard no_grad;
  constexpr double step = 1e-6;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor flat = found[i].contiguous();
    for (int64_t k = 0; k < inputs[i].numel(); ++k) {
      const auto at = [&](double by) {
        TensorVector moved = inputs;
        moved[i] = inputs[i].clone(MemoryFormat::contiguous);
        moved[i].mutable_data_as<double>()[k] += by;
        return total(call, moved).item<double>();
      };
      const double expected = (at(step) - at(-step)) / (2 * step);
      ASSERT_NEAR(flat.data_as<double>()[k], expected, 1e-6 * std::max(1.0, std::abs(expected)))
          << "input " << i << ", element " << k;
    }
  }
}

void check(const Call& call, const TensorVector& inputs, bool second = true) {
  compare_with_differences(call, inputs);
  if (!second || ::testing::Test::HasFatalFailure()) return;
  const Call gradient = [&call](const TensorVector& x) {
    TensorVector at;
    const EnableGradGuard on;
    for (const Tensor& t : x) at.push_back(t.requires_grad() ? t : t.detach().clone().set_requires_grad());
    const TensorVector g = grad({total(call, at)}, at, {.create_graph = true, .materialize_grads = true});
    Tensor sum = (g[0] * values(g[0].sizes(), 0.9)).sum();
    for (size_t i = 1; i < g.size(); ++i) sum = sum + (g[i] * values(g[i].sizes(), 0.9)).sum();
    return sum;
  };
  compare_with_differences(gradient, inputs);
}

Tensor longs(const std::vector<int64_t>& numbers) { return tensor(numbers); }

TEST(StructuredGradients, products) {
  check([](const TensorVector& x) { return x[0].mm(x[1]); }, {values({2, 3}), values({3, 4})});
  check([](const TensorVector& x) { return x[0].mm(x[1].t()); }, {values({2, 3}), values({4, 3})});
  check([](const TensorVector& x) { return addmm(x[0], x[1], x[2], 0.5, 2); },
        {values({4}), values({2, 3}), values({3, 4})});
  check([](const TensorVector& x) { return x[0].bmm(x[1]); }, {values({2, 2, 3}), values({2, 3, 2})});
  check([](const TensorVector& x) { return baddbmm(x[0], x[1], x[2], 3, 2); },
        {values({2, 1, 2}), values({2, 2, 3}), values({2, 3, 2})});
  check([](const TensorVector& x) { return addbmm(x[0], x[1], x[2], 3, 2); },
        {values({2, 2}), values({2, 2, 3}), values({2, 3, 2})});
  check([](const TensorVector& x) { return addmv(x[0], x[1], x[2], 3, 2); }, {values({2}), values({2, 3}), values({3})});
  check([](const TensorVector& x) { return addr(x[0], x[1], x[2], 3, 2); }, {values({2, 3}), values({2}), values({3})});
  check([](const TensorVector& x) { return x[0].dot(x[1]) * x[0].vdot(x[1]); }, {values({3}), values({3}, 1)});
  check([](const TensorVector& x) { return linear(x[0], x[1], x[2]); }, {values({2, 2, 3}), values({4, 3}), values({4})});
  check([](const TensorVector& x) { return matmul(x[0], x[1]); }, {values({2, 1, 2, 3}), values({3, 3, 2})});
}

TEST(StructuredGradients, views) {
  check([](const TensorVector& x) { return x[0].permute({2, 0, 1}).reshape({4, 6}).t(); }, {values({2, 3, 4})});
  check([](const TensorVector& x) { return x[0].expand({4, 2, 3}).transpose(0, 2); }, {values({2, 1})});
  check([](const TensorVector& x) { return x[0].squeeze().unsqueeze(1) * x[0].squeeze(0); }, {values({1, 3, 1})});
  check([](const TensorVector& x) { return x[0].slice(1, 1, 4, 2).select(0, -1); }, {values({3, 5})});
  check([](const TensorVector& x) { return x[0].diagonal(1, 0, 2); }, {values({3, 2, 4})});
  check([](const TensorVector& x) { return x[0].unfold(1, 3, 1) * 2; }, {values({2, 5})});
  check([](const TensorVector& x) { return x[0].as_strided({2, 2, 2}, {1, 2, 1}, 1); }, {values({3, 4})});
  check([](const TensorVector& x) { return x[0].expand({3, 2}).as_strided({2, 1}, {1, 1}); }, {values({2})});
  check([](const TensorVector& x) { return x[0].repeat({2, 1, 3}); }, {values({2, 2})});
  check([](const TensorVector& x) { return x[0].roll({1, 2}, {0, 1}).flip({1}).rot90(1, {0, 1}); }, {values({3, 4})});
  check([](const TensorVector& x) { return x[0].tril(-1) + x[0].triu(1); }, {values({3, 4})});
  check([](const TensorVector& x) { return x[0].slice_scatter(x[1], 1, 1, 3); }, {values({2, 4}), values({2, 2})});
  check([](const TensorVector& x) { return x[0].diag_embed(1); }, {values({2, 2})});
}

TEST(StructuredGradients, norms) {
  check(
      [](const TensorVector& x) {
        return layer_norm(x[0], {3, 2}, x[1], x[2]);
      },
      {values({4, 3, 2}), values({3, 2}, 1), values({3, 2}, 2)});
  check([](const TensorVector& x) { return batch_norm(x[0], x[1], x[2], {}, {}, true, 0.1, 1e-5, false); },
        {values({3, 2, 4}), values({2}, 1), values({2}, 2)});
  const Tensor mean = values({2}), var = values({2}).square() + 1;
  check([&](const TensorVector& x) { return batch_norm(x[0], x[1], x[2], mean, var, false, 0.1, 1e-5, false); },
        {values({3, 2, 4}), values({2}, 1), values({2}, 2)});
  check([](const TensorVector& x) { return group_norm(x[0], 2, x[1], x[2]); },
        {values({2, 4, 3}), values({4}, 1), values({4}, 2)});
  check([](const TensorVector& x) { return rms_norm(x[0], {4}, x[1]); }, {values({3, 4}), values({4}, 1)});
}

TEST(StructuredGradients, attention) {
  const Call plain = [](const TensorVector& x) { return scaled_dot_product_attention(x[0], x[1], x[2]); };
  check(plain, {values({1, 2, 3, 4}), values({1, 2, 5, 4}, 1), values({1, 2, 5, 4}, 2)}, false);
  check([](const TensorVector& x) { return scaled_dot_product_attention(x[0], x[1], x[2], {}, 0, true); },
        {values({1, 2, 3, 4}), values({1, 2, 3, 4}, 1), values({1, 2, 3, 4}, 2)}, false);
  const Tensor mask = values({3, 5});
  check([&](const TensorVector& x) { return scaled_dot_product_attention(x[0], x[1], x[2], mask, 0, false, 0.3, true); },
        {values({1, 4, 3, 4}), values({1, 2, 5, 4}, 1), values({1, 2, 5, 4}, 2)}, false);
}

// Blocks of queries and keys, shared heads, a mask: as the composition of matrix products has it.
TEST(StructuredGradients, attention_over_many_blocks_is_that_of_its_matrix_products) {
  const TensorVector inputs = leaves({values({2, 4, 150, 8}), values({2, 2, 300, 8}, 1), values({2, 2, 300, 8}, 2)});
  for (const bool causal : {false, true}) {
    const Tensor mask = causal ? Tensor() : values({150, 300});
    const Tensor one = scaled_dot_product_attention(inputs[0], inputs[1], inputs[2], mask, 0, causal, std::nullopt, true);
    const Tensor other = std::get<0>(
        _scaled_dot_product_attention_math(inputs[0], inputs[1], inputs[2], mask, 0, causal, {}, std::nullopt, true));
    const Tensor weight = values(one.sizes(), 0.3);
    const TensorVector found = grad({one}, inputs, {.grad_outputs = {weight}});
    const TensorVector expected = grad({other}, inputs, {.grad_outputs = {weight}});
    for (size_t i = 0; i < 3; ++i) EXPECT_LT((found[i] - expected[i]).abs().max().item<double>(), 1e-12) << i;
  }
}

TEST(StructuredGradients, indexing) {
  const Tensor rows = longs({2, 0, 2}), places = longs({0, 2, 1, 1, 0, 2}).reshape({2, 3});
  check([&](const TensorVector& x) { return index(x[0], std::vector<Tensor>{{}, rows}); }, {values({2, 3})});
  check(
      [&](const TensorVector& x) {
        return index_put(x[0], std::vector<Tensor>{longs({1, 0})}, x[1]);
      },
      {values({3, 2}), values({2, 2}, 1)});
  check([&](const TensorVector& x) { return x[0].index_select(1, rows); }, {values({2, 3})});
  check([&](const TensorVector& x) { return x[0].gather(1, places) * x[0].take(places); }, {values({2, 3})});
  check(
      [&](const TensorVector& x) {
        return x[0].scatter(1, longs({2, 0}).reshape({2, 1}), x[1]);
      },
      {values({2, 3}), values({2, 1}, 1)});
  check([&](const TensorVector& x) { return x[0].scatter_add(1, places, x[1]); }, {values({2, 3}), values({2, 3}, 1)});
  for (const char* reduce : {"sum", "prod", "mean", "amax", "amin"})
    for (const bool with_self : {true, false}) {
      check([&](const TensorVector& x) { return x[0].scatter_reduce(1, places, x[1], reduce, with_self); },
            {values({2, 3}), values({2, 3}, 1)});
      if (std::string_view(reduce) != "sum")
        check([&](const TensorVector& x) { return x[0].index_reduce(1, rows, x[1], reduce, with_self); },
              {values({2, 3}), values({2, 3}, 1)});
    }
  check([&](const TensorVector& x) { return x[0].index_add(1, rows, x[1], 2); }, {values({2, 3}), values({2, 3}, 1)});
  check([&](const TensorVector& x) { return x[0].index_copy(1, longs({2, 0}), x[1]); }, {values({2, 3}), values({2, 2}, 1)});
  check([&](const TensorVector& x) { return embedding(x[0], places); }, {values({3, 2})});
  for (const int64_t mode : {0, 1, 2})
    check(
        [&](const TensorVector& x) {
          return std::get<0>(embedding_bag(x[0], longs({0, 2, 1, 2}), longs({0, 1}), false, mode));
        },
        {values({3, 2})}, false);
}

TEST(StructuredGradients, convolutions) {
  const auto conv = [](SymInts stride, SymInts padding, SymInts dilation, bool transposed, SymInts output_padding,
                       SymInt groups) {
    return [=](const TensorVector& x) {
      return convolution(x[0], x[1], x[2], stride, padding, dilation, transposed, output_padding, groups);
    };
  };
  check(conv({1, 1}, {1, 0}, {1, 1}, false, {0, 0}, 1), {values({2, 2, 4, 4}), values({3, 2, 3, 2}), values({3})});
  check(conv({2, 1}, {1, 1}, {1, 2}, false, {0, 0}, 2), {values({1, 4, 4, 5}), values({4, 2, 2, 2}), values({4})});
  check(conv({2}, {1}, {1}, true, {1}, 1), {values({2, 3, 4}), values({3, 2, 3}), values({2})});
  check(conv({1, 1, 1}, {0, 1, 0}, {1, 1, 1}, false, {0, 0, 0}, 1),
        {values({1, 2, 2, 3, 3}), values({2, 2, 2, 2, 2}), values({2})});
  check([](const TensorVector& x) { return conv_tbc(x[0], x[1], x[2], 1); },
        {values({4, 2, 3}), values({3, 3, 2}), values({2})});
}

TEST(StructuredGradients, pooling_and_borders) {
  check([](const TensorVector& x) { return max_pool2d(x[0], {2, 2}, {1, 1}); }, {values({1, 2, 4, 4})});
  check([](const TensorVector& x) { return max_pool3d(x[0], {2, 2, 1}); }, {values({1, 1, 2, 4, 2})});
  check([](const TensorVector& x) { return avg_pool2d(x[0], {3, 2}, {1, 2}, {1, 1}, true, false); }, {values({1, 2, 4, 4})});
  check([](const TensorVector& x) { return avg_pool3d(x[0], {2, 2, 1}); }, {values({1, 1, 2, 4, 2})});
  check([](const TensorVector& x) { return adaptive_avg_pool2d(x[0], {2, 3}); }, {values({1, 2, 5, 4})});
  check([](const TensorVector& x) { return adaptive_avg_pool3d(x[0], {2, 1, 3}); }, {values({1, 1, 3, 2, 4})});
  check([](const TensorVector& x) { return std::get<0>(adaptive_max_pool2d(x[0], {2, 3})); }, {values({1, 2, 5, 4})});
  check([](const TensorVector& x) { return constant_pad_nd(x[0], {1, -1, 2, 0}, 3); }, {values({2, 3})});
  check([](const TensorVector& x) { return reflection_pad2d(x[0], {2, 1, 1, 2}); }, {values({1, 2, 3, 4})});
  check([](const TensorVector& x) { return replication_pad3d(x[0], {2, 1, 1, 2, 0, 1}); }, {values({1, 1, 2, 3, 2})});
  check([](const TensorVector& x) { return pad(x[0], {2, 1}, "circular"); }, {values({1, 2, 4})});
}

TEST(StructuredGradients, resampling) {
  check([](const TensorVector& x) { return upsample_nearest2d(x[0], {5, 7}); }, {values({1, 2, 3, 4})});
  check([](const TensorVector& x) { return _upsample_nearest_exact1d(x[0], {7}); }, {values({1, 2, 4})});
  check([](const TensorVector& x) { return upsample_bilinear2d(x[0], {5, 7}, false); }, {values({1, 2, 3, 4})});
  check([](const TensorVector& x) { return upsample_bicubic2d(x[0], {5, 7}, true); }, {values({1, 1, 3, 4})});
  check([](const TensorVector& x) { return _upsample_bilinear2d_aa(x[0], {2, 3}, false); }, {values({1, 1, 5, 4})});
  check([](const TensorVector& x) { return upsample_trilinear3d(x[0], {3, 3, 4}, false); }, {values({1, 1, 2, 2, 3})});
  for (const int64_t mode : {0, 2})
    for (const int64_t padding : {0, 1, 2})
      check([&](const TensorVector& x) { return grid_sampler_2d(x[0], x[1], mode, padding, false); },
            {values({1, 2, 3, 4}), values({1, 2, 3, 2}, 0.2) * 0.8}, false);
  check([](const TensorVector& x) { return grid_sampler_3d(x[0], x[1], 0, 1, true); },
        {values({1, 2, 2, 3, 2}), values({1, 2, 1, 2, 3}, 0.2) * 0.8}, false);
  check([](const TensorVector& x) { return _weight_norm(x[0], x[1], 0); }, {values({3, 4}), values({3, 1}, 1)}, false);
  check([](const TensorVector& x) { return affine_grid_generator(x[0], {1, 1, 2, 3}, false); }, {values({1, 2, 3})}, false);
}

TEST(StructuredGradients, fourier_transforms) {
  check([](const TensorVector& x) { return view_as_real(fft_rfft(x[0])); }, {values({2, 5})});
  check([](const TensorVector& x) { return fft_irfft(view_as_complex(x[0])); }, {values({2, 4, 2})});
  check([](const TensorVector& x) { return view_as_real(fft_fft(view_as_complex(x[0]))); }, {values({2, 4, 2})});
}

// Two passes forward before one back, as accumulation has it: a moving mean is no tensor that was kept and then written.
TEST(StructuredGradients, batch_norm_may_move_its_statistics_between_forward_and_backward) {
  const Tensor mean = zeros({2}), var = ones({2}), x = randn({3, 2, 4}).set_requires_grad();
  const Tensor one = std::get<0>(native_batch_norm(x, {}, {}, mean, var, true, 0.1, 1e-5));
  const Tensor two = std::get<0>(native_batch_norm(x, {}, {}, mean, var, true, 0.1, 1e-5));
  EXPECT_EQ(mean.version(), 0U);
  EXPECT_NO_THROW(grad({(one.square() + two.square()).sum()}, {x}));
}

}  // namespace
}  // namespace calque::structured_gradients_test
