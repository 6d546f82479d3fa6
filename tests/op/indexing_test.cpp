// Indexing, scattering, masks, order: shapes and layouts, refusals with their texts, sizes that depend on values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/op/aten/embedding.h"
#include "calque/op/aten/indexing.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/scatter.h"
#include "calque/op/aten/sorting.h"
#include "calque/op/aten/unique.h"
#include "calque/op/tensor.h"
#include "calque/sym/shape_env.h"
#include "support/error_support.h"

namespace calque::indexing_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor floats(std::initializer_list<float> values, IntList sizes) {
  return tensor_of<float>(std::vector<float>(values), sizes);
}
Tensor longs(std::initializer_list<int64_t> values, IntList sizes) {
  return tensor_of<int64_t>(std::vector<int64_t>(values), sizes);
}
Tensor bools(std::initializer_list<int> values, IntList sizes) {
  Tensor t = make_tensor(sizes, DType::bool_);
  bool* p = t.mutable_data_as<bool>();
  for (const int v : values) *p++ = v != 0;
  return t;
}
Tensor counting(IntList sizes) {
  Tensor t = make_tensor(sizes, DType::float32);
  for (int64_t i = 0; i < t.numel(); ++i) t.mutable_data_as<float>()[i] = static_cast<float>(i);
  return t;
}
Tensor index_of(const Tensor& self, std::vector<Tensor> indices) { return calque::index(self, TensorList(indices)); }

template <class T>
std::vector<T> read(const Tensor& t) {
  std::vector<T> out;
  std::vector<int64_t> at(static_cast<size_t>(t.dim()), 0);
  for (int64_t i = 0; i < t.numel(); ++i) {
    int64_t offset = 0;
    int64_t rest = i;
    for (size_t d = at.size(); d-- > 0;) {
      offset += rest % t.sizes()[d] * t.strides()[d];
      rest /= t.sizes()[d];
    }
    out.push_back(t.data_as<T>()[offset]);
  }
  return out;
}
std::vector<int64_t> sizes_of(const Tensor& t) { return {t.sizes().begin(), t.sizes().end()}; }
std::vector<int64_t> strides_of(const Tensor& t) { return {t.strides().begin(), t.strides().end()}; }

using test::error_of;

TEST(Index, picks_rows_by_a_long_vector_negatives_from_the_end) {
  EXPECT_THAT(read<float>(index_of(counting({3, 2}), {longs({2, -3, 2}, {3})})), ElementsAre(4, 5, 0, 1, 4, 5));
}
TEST(Index, broadcasts_several_index_tensors) {
  const Tensor out = index_of(counting({3, 4}), {longs({0, 2}, {2, 1}), longs({1, 3}, {2})});
  EXPECT_THAT(sizes_of(out), ElementsAre(2, 2));
  EXPECT_THAT(read<float>(out), ElementsAre(1, 3, 9, 11));
}
TEST(Index, puts_separated_indices_first) {
  const Tensor out = index_of(counting({2, 3, 4}), {longs({0, 1}, {2}), Tensor(), longs({3, 0}, {2})});
  EXPECT_THAT(sizes_of(out), ElementsAre(2, 3));
  EXPECT_THAT(read<float>(out), ElementsAre(3, 7, 11, 12, 16, 20));
}
TEST(Index, keeps_the_order_of_memory_of_a_permuted_tensor) {
  const Tensor self = make_view(counting({4, 3, 2}), {2, 3, 4}, {1, 2, 6}, 0);
  const Tensor out = index_of(self, {Tensor(), longs({0, 2, 1, 0, 1}, {5})});
  EXPECT_THAT(sizes_of(out), ElementsAre(2, 5, 4));
  EXPECT_THAT(strides_of(out), ElementsAre(1, 2, 10));
}
TEST(Index, expands_masks) {
  EXPECT_THAT(read<float>(index_of(counting({2, 2}), {bools({1, 0, 1, 1}, {2, 2})})), ElementsAre(0, 2, 3));
}
TEST(Index, names_the_index_the_dimension_and_the_size) {
  EXPECT_THAT(error_of([] {
                index_of(counting({3, 2}), {Tensor(), longs({0, 2}, {2})});
              }),
              HasSubstr("index: index 2 is out of bounds for dimension 1 with size 2"));
  EXPECT_THAT(error_of([] {
                index_of(counting({3}), {longs({0}, {1}), longs({0}, {1})});
              }),
              HasSubstr("too many indices for tensor of dimension 1 (got 2)"));
  EXPECT_THAT(error_of([] { index_of(counting({3}), {floats({0}, {1})}); }),
              HasSubstr("must be long, int, byte or bool tensors"));
  EXPECT_THAT(error_of([] {
                index_of(counting({3, 4}), {longs({0, 1}, {2}), longs({0, 1, 2}, {3})});
              }),
              HasSubstr("could not be broadcast together with shapes [2], [3]"));
}

TEST(IndexPut, accumulates_equal_indices) {
  const std::vector<Tensor> where{longs({1, 1, 0}, {3})};
  EXPECT_THAT(read<float>(index_put(floats({0, 0}, {2}), TensorList(where), floats({1, 2, 4}, {3}), true)),
              ElementsAre(4, 3));
  EXPECT_THAT(read<float>(index_put(floats({0, 0}, {2}), TensorList(where), floats({1, 2, 4}, {3}), false)),
              ElementsAre(4, 2));
}
TEST(IndexPut, in_place_writes_through_a_view) {
  const Tensor base = counting({2, 3});
  const Tensor column = make_view(base, {2}, {3}, 1);
  const std::vector<Tensor> where{longs({1}, {1})};
  index_put_(column, TensorList(where), floats({9}, {}), false);
  EXPECT_THAT(read<float>(base), ElementsAre(0, 1, 2, 3, 9, 5));
}
TEST(IndexPut, refuses_values_of_another_dtype) {
  const std::vector<Tensor> where{longs({1}, {1})};
  EXPECT_THAT(error_of([&] { index_put(counting({2}), TensorList(where), longs({1}, {1}), false); }),
              HasSubstr("got float32 for the destination and int64 for the source"));
}

TEST(Gather, follows_the_index_along_one_dimension) {
  EXPECT_THAT(read<float>(gather(counting({2, 3}), 1, longs({2, 0, 1, 1}, {2, 2}))), ElementsAre(2, 0, 4, 4));
  EXPECT_THAT(error_of([] {
                gather(counting({2, 3}), 1, longs({3}, {1, 1}));
              }),
              HasSubstr("gather: index 3 is out of bounds for dimension 1 with size 3"));
}
TEST(Scatter, reduces_into_self) {
  const Tensor index = longs({0, 0, 2}, {3});
  EXPECT_THAT(read<float>(scatter_add(counting({3}), 0, index, floats({1, 2, 3}, {3}))), ElementsAre(3, 1, 5));
  EXPECT_THAT(read<float>(scatter_reduce(floats({10, 10, 10}, {3}), 0, index, floats({1, 3, 4}, {3}), "mean", false)),
              ElementsAre(2, 10, 4));
  EXPECT_THAT(error_of([&] { scatter_reduce(counting({3}), 0, index, counting({3}), "median", true); }),
              HasSubstr("must be either sum, prod, mean, amax or amin, got median"));
}

TEST(Embedding, names_the_row_that_is_missing) {
  EXPECT_THAT(read<float>(embedding(counting({3, 2}), longs({2, 0}, {1, 2}))), ElementsAre(4, 5, 0, 1));
  EXPECT_THAT(error_of([] {
                embedding(counting({3, 2}), longs({3}, {1}));
              }),
              HasSubstr("embedding: index 3 is out of bounds for dimension 0 with size 3"));
}

TEST(Nonzero, lays_columns_out_contiguously) {
  const Tensor out = nonzero(bools({0, 1, 1, 0, 0, 1}, {2, 3}));
  EXPECT_THAT(sizes_of(out), ElementsAre(3, 2));
  EXPECT_THAT(strides_of(out), ElementsAre(1, 3));
  EXPECT_THAT(read<int64_t>(out), ElementsAre(0, 1, 0, 2, 1, 2));
}
TEST(Nonzero, of_a_fake_tensor_has_an_unbacked_size) {
  const auto env = ShapeEnv::make();
  const SymInt n = env->create_symbol(5, {2, 100}, "x, dimension 0");
  const Tensor fake = make_tensor(Meta{{n}, {1}, DType::float32, Device{}}, true);
  const Tensor out = nonzero(fake);
  EXPECT_TRUE(out.sym_sizes()[0].is_symbolic());
  EXPECT_FALSE(env->hint(out.sym_sizes()[0]).has_value());
  EXPECT_TRUE(identical(out.sym_sizes()[1], 1));
}
TEST(Nonzero, of_a_fake_tensor_without_environment_is_data_dependent) {
  const Tensor fake = make_tensor(Meta{{5}, {1}, DType::float32, Device{}}, true);
  try {
    nonzero(fake);
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::data_dependent);
  }
}

TEST(Sort, puts_nan_last_and_keeps_short_lines_stable) {
  const auto [values, indices] = sort(floats({2, NAN, -0.0F, 1, 0, 2}, {6}), 0, false);
  EXPECT_THAT(read<int64_t>(indices), ElementsAre(2, 4, 3, 0, 5, 1));
  EXPECT_THAT(read<int64_t>(std::get<1>(sort(floats({2, NAN, -0.0F, 1, 0, 2}, {6}), 0, true))),
              ElementsAre(1, 0, 5, 3, 2, 4));
}
TEST(Sort, long_lines_agree_with_the_library) {
  for (const int64_t n : {1, 95, 96, 1000, 5000}) {
    Tensor t = make_tensor({n}, DType::float32);
    uint32_t state = 7;
    for (int64_t i = 0; i < n; ++i) {
      state = state * 1664525U + 1013904223U;
      t.mutable_data_as<float>()[i] = static_cast<float>(static_cast<int32_t>(state >> 8) - (1 << 23)) / 64;
    }
    std::vector<float> expected = read<float>(t);
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(read<float>(std::get<0>(sort(t, 0, false))), expected);
  }
}
TEST(Topk, takes_the_best_first) {
  const auto [values, indices] = topk(floats({1, 5, 3, NAN, 4}, {5}), 3, -1, true, true);
  EXPECT_THAT(read<int64_t>(indices), ElementsAre(3, 1, 4));
  EXPECT_THAT(error_of([] { topk(counting({3}), 4, -1, true, true); }), HasSubstr("k is 4, dimension 0 has size 3"));
}
TEST(Unique, counts_and_inverts) {
  const auto [values, inverse, counts] = unique_consecutive(longs({1, 1, 2, 1}, {4}), true, true, std::nullopt);
  EXPECT_THAT(read<int64_t>(values), ElementsAre(1, 2, 1));
  EXPECT_THAT(read<int64_t>(inverse), ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(read<int64_t>(counts), ElementsAre(2, 1, 1));
}

}  // namespace
}  // namespace calque::indexing_test
