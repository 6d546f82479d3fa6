// Functions that a capture keeps whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/compile/compile.h"
#include "calque/op/aten/arange.h"
#include "calque/op/operators.h"
#include "support/error_support.h"

namespace calque::allow_in_graph_test {
namespace {

using testing::HasSubstr;
using testing::Not;

Tensor numbers(int64_t count) { return arange(count, DType::float32) * 0.5; }

TEST(AllowInGraph, a_call_is_one_node) {
  int calls = 0;
  const auto wave = allow_in_graph([&calls](const Tensor& x, const Tensor& y) {
    ++calls;
    return x.sin() + y.cos();
  });
  // A capture that verifies, as debug builds make them, would call it too.
  const auto f = compile([wave](const Tensor& x, const Tensor& y) { return wave(x * 2.0, y) - 1.0; }, {.verify = false});
  const Tensor x = numbers(6), y = numbers(6) + 1.0;
  EXPECT_TRUE(f(x, y).equal((x * 2.0).sin() + y.cos() - 1.0));
  const std::string graph = f.graphs().at(0)->graph().str();
  EXPECT_THAT(graph, HasSubstr("calque.allowed.default"));
  EXPECT_THAT(graph, Not(HasSubstr("sin")));
  const int before = calls;
  EXPECT_TRUE(f(y, x).equal((y * 2.0).sin() + x.cos() - 1.0));
  EXPECT_EQ(calls, before + 1);
}

TEST(AllowInGraph, results_have_their_structure_and_their_sizes) {
  const auto both = allow_in_graph([](const Tensor& x) { return std::tuple<Tensor, Tensor>(x + 1.0, x.sum()); });
  const auto f = compile([both](const Tensor& x) {
    const auto [more, sum] = both(x);
    return more * sum;
  });
  for (const int64_t count : {3, 5, 8}) EXPECT_TRUE(f(numbers(count)).equal((numbers(count) + 1.0) * numbers(count).sum()));
  EXPECT_LE(f.cache_size(), 2U);
}

TEST(AllowInGraph, outside_of_captures_it_is_the_function) {
  const auto f = allow_in_graph([](const Tensor& x) { return x * 3.0; });
  EXPECT_TRUE(f(numbers(4)).equal(numbers(4) * 3.0));
}

TEST(AllowInGraph, other_arguments_than_tensors_are_an_error) {
  const auto scaled = allow_in_graph([](const Tensor& x, double by) { return x * by; }, "scaled");
  CompileOptions options;
  options.fullgraph = true;
  const auto f = compile([scaled](const Tensor& x) { return scaled(x, 2.0); }, options);
  EXPECT_THAT(test::error_of([&] { f(numbers(3)); }),
              HasSubstr("allow_in_graph: scaled takes tensors inside a compiled function"));
}

}  // namespace
}  // namespace calque::allow_in_graph_test
