// Numbers made of sizes, in graphs: each symbolic function becomes the Python function that PyTorch records for it.
#include <gtest/gtest.h>

#include "calque/op/ops.h"
#include "calque/sym/sym_math.h"
#include "calque/trace/make_fx.h"

namespace calque {
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

}  // namespace
}  // namespace calque
