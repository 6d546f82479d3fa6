// The thin thread through tracing: a function traced with symbolic sizes runs on other sizes.
#include <gtest/gtest.h>

#include "calque/op/ops.h"
#include "calque/graph/interpreter.h"
#include "calque/trace/make_fx.h"

namespace calque {
namespace {

Value normalise(const std::vector<Tensor>& in) {
  const Tensor& x = in[0];
  const Tensor flat = x.view({x.sym_size(0) * x.sym_size(1)});
  return (flat * 2 + 1).view({x.sym_size(1), x.sym_size(0)});
}

TEST(MakeFx, ASymbolicGraphRunsOnOtherSizes) {
  const TracedGraph traced = make_fx(normalise, {zeros({3, 4})});
  EXPECT_EQ(traced.graph.placeholders()[0]->str(), "%arg0_1 : f32[s0, s1] = placeholder");
  Interpreter run(traced.graph);
  const Tensor x = arange(10, DType::float32).view({2, 5});
  const Tensor expected = normalise({x}).to_tensor();
  const Tensor found = run.run({x}).to_tensor();
  EXPECT_EQ(str(found.sizes()), "[5, 2]");
  for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(found.data_as<float>()[i], expected.data_as<float>()[i]);
}

TEST(MakeFx, RecordsOperatorsInOrderWithTheirArguments) {
  const TracedGraph traced = make_fx(normalise, {zeros({3, 4})});
  std::string ops;
  for (const Node* n : traced.graph.nodes())
    if (n->op()) ops += n->target().str() + " ";
  EXPECT_EQ(ops, "aten.sym_size.int aten.sym_size.int aten.view.default aten.mul.Tensor aten.add.Tensor aten.view.default ") << traced.graph.str();
}

TEST(MakeFx, AFunctionThatDependsOnASizeLeavesAGuard) {
  const TracedGraph traced = make_fx([](const std::vector<Tensor>& in) -> Value { return in[0] + in[1]; }, {zeros({3, 4}), zeros({4})});
  EXPECT_TRUE(traced.env->guards().empty());
  const TracedGraph joined = make_fx([](const std::vector<Tensor>& in) -> Value { return guard(in[0].sym_size(0) > 2) ? in[0] * 2 : in[0]; }, {zeros({3, 4})});
  ASSERT_EQ(joined.env->guards().size(), 1U);
  EXPECT_EQ(joined.env->guards()[0].condition.str(), "s0 > 2");
}

}  // namespace
}  // namespace calque
