// Views, joins, pads and subscripts: the behaviours that programs lean on, and what the errors say. Values, strides and
// dtypes over many inputs are compared with PyTorch by opcheck.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "calque/op/aten/arange.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/padding.h"
#include "calque/op/index.h"
#include "support/error_support.h"

namespace calque::shape_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor range(IntList sizes) {
  Tensor t = make_tensor(sizes, DType::float32);
  std::iota(t.mutable_data_as<float>(), t.mutable_data_as<float>() + t.numel(), 0.0F);
  return t;
}
std::vector<int64_t> list(IntList values) { return {values.begin(), values.end()}; }
std::vector<float> values(const Tensor& t) {
  const Tensor c = t.contiguous();
  return {c.data_as<float>(), c.data_as<float>() + c.numel()};
}
using test::error_of;

TEST(Views, share_storage) {
  const Tensor x = range({2, 3, 4});
  for (const Tensor& v : {x.view({4, 6}), x.transpose(0, 2), x.select(1, 2), x.slice(2, 1, 3), x.unsqueeze(0),
                          x.expand({5, 2, 3, 4}), x.diagonal()})
    EXPECT_EQ(v.storage().get(), x.storage().get());
  x.transpose(0, 1).select(0, 1).fill_(7);
  EXPECT_EQ(x.index_by({1, 1, 3}).item_as<float>(), 7);
}

TEST(Views, infer_one_dimension) {
  EXPECT_THAT(list(range({2, 3, 4}).view({-1, 6}).sizes()), ElementsAre(4, 6));
  EXPECT_THAT(error_of([] { range({2, 3}).view({-1, -1}); }), HasSubstr("view: only one dimension can be inferred"));
  EXPECT_THAT(error_of([] {
                range({2, 3}).view({4, -1});
              }),
              HasSubstr("view: shape '[4, -1]' is invalid for input of size 6"));
  EXPECT_THAT(error_of([] {
                range({0, 3}).view({0, -1});
              }),
              HasSubstr("view: cannot reshape tensor of 0 elements into shape [0, -1]"));
}

TEST(Views, reshape_copies_only_where_a_view_cannot_be) {
  const Tensor x = range({2, 3, 4});
  EXPECT_EQ(x.transpose(1, 2).reshape({2, 2, 2, 3}).storage().get(), x.storage().get());
  const Tensor copied = x.transpose(0, 1).reshape({-1});
  EXPECT_NE(copied.storage().get(), x.storage().get());
  EXPECT_EQ(values(copied)[4], 12);
  EXPECT_THAT(error_of([&] { x.transpose(0, 1).view({24}); }), HasSubstr("Use reshape(...) instead"));
}

TEST(Views, slices_clamp_their_bounds) {
  const Tensor x = range({10});
  EXPECT_THAT(list(x.slice(0, -3).sizes()), ElementsAre(3));
  EXPECT_THAT(list(x.slice(0, 8, 100).sizes()), ElementsAre(2));
  EXPECT_THAT(list(x.slice(0, 7, 3).sizes()), ElementsAre(0));
  EXPECT_THAT(values(x.slice(0, 1, -1, 3)), ElementsAre(1, 4, 7));
  EXPECT_THAT(list(x.slice(0, std::nullopt, std::nullopt, INT64_MAX).sizes()), ElementsAre(1));
  EXPECT_THAT(error_of([&] { x.slice(0, 0, 5, 0); }), HasSubstr("slice step must be positive, found 0"));
}

TEST(Views, errors_name_operator_and_argument) {
  const Tensor x = range({2, 3});
  EXPECT_THAT(error_of([&] { x.select(0, 2); }),
              HasSubstr("select: index 2 out of range for tensor of size [2, 3] at dimension 0"));
  EXPECT_THAT(error_of([&] { x.permute({0, 0}); }), HasSubstr("permute: duplicate dims are not allowed"));
  EXPECT_THAT(
      error_of([&] {
        x.expand({4, 3});
      }),
      HasSubstr(
          "expand: The expanded size of the tensor (4) must match the existing size (2) at non-singleton dimension 0"));
  EXPECT_THAT(error_of([&] { x.as_strided({4}, {3}); }), HasSubstr("are out of bounds for storage of size 24"));
  EXPECT_THAT(error_of([&] { x.narrow(1, 2, 2); }), HasSubstr("narrow: start (2) + length (2) exceeds dimension size (3)"));
  EXPECT_THAT(error_of([&] { x.split_with_sizes({1, 2}); }), HasSubstr("to sum exactly to 2"));
  EXPECT_THAT(
      error_of([&] {
        cat({x, range({3, 2})});
      }),
      HasSubstr(
          "cat: Sizes of tensors must match except in dimension 0. Expected size 3 but got size 2 for tensor number 1"));
}

TEST(Cat, promotes_and_skips_empty_vectors) {
  const Tensor x = range({2, 2});
  const Tensor joined = cat({make_tensor({0}, DType::float64), x, x}, 1);
  EXPECT_EQ(joined.dtype(), DType::float64);
  EXPECT_THAT(list(joined.sizes()), ElementsAre(2, 4));
  EXPECT_EQ(joined.index_by({1, 2}).item_as<double>(), 2);
}

TEST(Cat, strided_and_dense_paths_agree) {
  const Tensor x = range({3, 5, 4});
  for (int64_t d = 0; d < 3; ++d) {
    const Tensor dense = cat({x, x, x}, d);
    const Tensor transposed = x.transpose(0, 2).contiguous().transpose(0, 2);
    EXPECT_EQ(values(cat({transposed, x, transposed}, d)), values(dense));
    EXPECT_EQ(values(stack({x, transposed}, d).select(d, 1)), values(x));
  }
}

TEST(Cat, keeps_channels_last) {
  const Tensor x = range({2, 3, 4, 5}).contiguous(MemoryFormat::channels_last);
  EXPECT_THAT(list(cat({x, x}, 1).strides()), ElementsAre(120, 1, 30, 6));
  EXPECT_THAT(list(cat({x, range({2, 3, 4, 5})}, 1).strides()), ElementsAre(120, 20, 5, 1));
}

TEST(Pad, modes_and_crops) {
  const Tensor x = range({1, 1, 4});
  EXPECT_THAT(values(pad(x, {1, 2})), ElementsAre(0, 0, 1, 2, 3, 0, 0));
  EXPECT_THAT(values(pad(x, {2, 1}, "reflect")), ElementsAre(2, 1, 0, 1, 2, 3, 2));
  EXPECT_THAT(values(pad(x, {2, 1}, "replicate")), ElementsAre(0, 0, 0, 1, 2, 3, 3));
  EXPECT_THAT(values(pad(x, {2, 1}, "circular")), ElementsAre(2, 3, 0, 1, 2, 3, 0));
  EXPECT_THAT(values(pad(x, {-1, 1}, "constant", 9.0)), ElementsAre(1, 2, 3, 9));
  EXPECT_THAT(error_of([&] {
                pad(x, {4, 0}, "reflect");
              }),
              HasSubstr("reflection_pad1d: Padding size should be less than the corresponding input dimension"));
}

TEST(Shaping, rearranges) {
  const Tensor x = range({2, 3});
  EXPECT_THAT(values(x.roll({1}, {1})), ElementsAre(2, 0, 1, 5, 3, 4));
  EXPECT_THAT(values(x.roll({-2})), ElementsAre(2, 3, 4, 5, 0, 1));
  EXPECT_THAT(values(x.flip({0, 1})), ElementsAre(5, 4, 3, 2, 1, 0));
  EXPECT_THAT(values(x.rot90()), ElementsAre(2, 5, 1, 4, 0, 3));
  EXPECT_THAT(values(x.tril(-1)), ElementsAre(0, 0, 0, 3, 0, 0));
  EXPECT_THAT(values(x.repeat({1, 2})), ElementsAre(0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5));
  EXPECT_THAT(values(x.repeat_interleave(2, 0)), ElementsAre(0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5));
}

TEST(Subscript, takes_views) {
  const Tensor x = range({2, 3, 4});
  EXPECT_THAT(list(x[0].sizes()), ElementsAre(3, 4));
  EXPECT_THAT(list(x[-1].index_by({ellipsis, Slice(0, none, 2)}).strides()), ElementsAre(4, 2));
  EXPECT_THAT(list(x.index_by({none, Slice(), none, 1}).sizes()), ElementsAre(1, 2, 1, 4));
  EXPECT_EQ(x.index_by({ellipsis}).storage().get(), x.storage().get());
  EXPECT_EQ(x.index_by({1, 2, 3}).item_as<int64_t>(), 23);
  EXPECT_THAT(error_of([&] { x[2]; }), HasSubstr("index 2 is out of bounds for dimension 0 with size 2"));
  EXPECT_THAT(error_of([&] { x.index_by({0, 0, 0, 0}); }), HasSubstr("too many indices for tensor of dimension 3"));
}

TEST(Subscript, writes_through_views) {
  const Tensor x = range({2, 3});
  set_by(x, {Slice(), 1}, 9);
  x.set_by({0}, range({1, 3}));
  EXPECT_THAT(values(x), ElementsAre(0, 1, 2, 3, 9, 5));
}

// PyTorch's values: integers begin and end at integer powers.
TEST(Factories, logspace_of_integers_cuts_its_ends) {
  const auto of = [](double start, double end, int64_t steps, double base) {
    const Tensor t = logspace(start, end, steps, base, DType::int64);
    return std::vector<int64_t>(t.data_as<int64_t>(), t.data_as<int64_t>() + t.numel());
  };
  EXPECT_THAT(of(4.3, -3, 2, 10), ElementsAre(10000, 0));
  EXPECT_THAT(of(0, 1.2, 2, 5), ElementsAre(1, 5));
  EXPECT_THAT(of(1.9, 5.2, 4, 2), ElementsAre(2, 5, 12, 32));
  EXPECT_THAT(of(-1.5, 4.9, 3, 3), ElementsAre(0, 5, 81));
}

}  // namespace
}  // namespace calque::shape_test
