// Numbers made of sizes, in graphs: each symbolic function becomes the Python function that PyTorch records for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/op/aten/random.h"
#include "calque/op/literal.h"
#include "calque/sym/sym_math.h"
#include "calque/trace/make_fx.h"
#include "support/error_support.h"

namespace calque::symbolic_scalars_test {
namespace {

const MakeFxOptions symbolic{.mode = TracingMode::symbolic};

std::string calls(const TracedGraph& g) {
  std::string text;
  for (const Node* n : g.graph().nodes())
    if (n->kind() == NodeKind::call_function) text += (text.empty() ? "" : " ") + n->target().str();
  return text;
}

TEST(SymbolicScalars, T202_choosing_between_sizes_records_nodes_and_no_guards) {
  const TracedGraph g =
      make_fx([](const Tensor& x) -> Value { return sym_ite(x.sym_size(0) == 5, x.sym_size(0), x.sym_size(1)); },
              symbolic)(rand({5, 4}));
  EXPECT_EQ(calls(g), "aten.sym_size.int operator.eq aten.sym_size.int torch.sym_ite") << g.graph().str();
  EXPECT_TRUE(g.env->guards().empty());
  EXPECT_EQ(g(rand({4, 5})).to_int(), 5);
  EXPECT_EQ(g(rand({5, 4})).to_int(), 5);
}

TEST(SymbolicScalars, functions_of_sizes_run_on_other_sizes) {
  const TracedGraph g = make_fx(
      [](const Tensor& x) -> Value {
        const SymInt n = x.sym_size(0);
        return tuple({floor_to_int(sym_sqrt(sym_float(n))), round_to_int(sym_float(n) / 4.0), sym_bitwise_and(n, 6),
                      sym_abs(n - 20), sym_max(n, 7)});
      },
      symbolic)(rand({10, 3}));
  EXPECT_TRUE(g.env->guards().empty());
  const Value out = g(rand({17, 3}));
  const std::vector<int64_t> expected{4, 4, 0, 3, 17};
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(out.to_items()[i].to_int(), expected[i]) << i << " in " << g.graph().str();
}

// A bool read from data is a truth, u0 == 1, in the trace and a bool when the graph runs.
TEST(SymbolicScalars, an_item_of_a_bool_tensor_is_a_symbolic_bool) {
  const TracedGraph g = make_fx(
      [](const Tensor& x) -> Value {
        const Scalar any = x.any().item();
        EXPECT_TRUE(any.is_boolean());
        EXPECT_TRUE(any.is_symbolic());
        EXPECT_EQ(any.str(), "Eq(u0, 1)");
        return tuple({any, x});
      },
      symbolic)(tensor({true, false}));
  const Node* item = nullptr;
  for (const Node* n : g.graph().nodes())
    if (n->target().str() == "aten._local_scalar_dense.default") item = n;
  ASSERT_NE(item, nullptr) << g.graph().str();
  EXPECT_EQ(item->meta.val.kind(), Value::Kind::boolean);
  EXPECT_EQ(item->meta.val.str(), "Eq(u0, 1)");
  EXPECT_TRUE(g(tensor({true, false})).to_items()[0].to_bool());
  EXPECT_FALSE(g(tensor({false, false})).to_items()[0].to_bool());
}

TEST(SymbolicScalars, a_symbolic_bool_is_a_scalar_that_says_so) {
  const std::shared_ptr<ShapeEnv> env = ShapeEnv::make();
  const SymBool truth = env->create_unbacked_bool();
  const Scalar s(truth);
  EXPECT_TRUE(s.is_symbolic());
  EXPECT_EQ(s.dtype(), DType::bool_);
  EXPECT_EQ(s.sym_int().str(), "Piecewise((1, Eq(u0, 1)), (0, True))");
  EXPECT_TRUE(Value(s).to_scalar().equals(s));
  EXPECT_FALSE(s.equals(Scalar(true)));
  EXPECT_THAT(test::error_of([&] { s.to_bool(); }),
              testing::HasSubstr("a plain bool was needed, but the value is symbolic: Eq(u0, 1)"));
  EXPECT_THAT(test::error_of([&] { s.to_int(); }), testing::HasSubstr("Eq(u0, 1)"));
  EXPECT_EQ(Scalar(SymBool(true)).str(), "True");
}

}  // namespace
}  // namespace calque::symbolic_scalars_test
