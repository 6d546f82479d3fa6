// Operators from a shared library (examples/operators): loaded, called, derived forms, symbolic, traced.

#include <string>

#include <gtest/gtest.h>

#include "calque/graph/interpreter.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/library.h"
#include "calque/trace/make_fx.h"
#include "support/paths.h"

namespace calque::operator_library_test {
namespace {

std::string library_path() { return test::program_folder() + "/libgated_operators.so"; }
void load_once() {
  static const bool done = (load_operator_library(library_path()), true);
  (void)done;
}

TEST(OperatorLibrary, answers_by_name_and_in_its_derived_forms) {
  load_once();
  const Tensor x = tensor_of<float>({1, -2, 3, 4}, {2, 2}), g = tensor_of<float>({0, 1, -1, 100}, {2, 2});
  const Tensor expected = mul(x, sigmoid(g));
  EXPECT_TRUE(allclose(call("my::gate", {x, g}).to_tensor(), expected));
  const Tensor out = empty({4});
  call("my::gate.out", {x, g}, {{"out", out}});
  EXPECT_EQ(str(out.sizes()), "[2, 2]");
  EXPECT_TRUE(allclose(out, expected));
  const Tensor self = x.clone();
  call("my::gate_", {self, g});
  EXPECT_TRUE(allclose(self, expected));
  EXPECT_TRUE(allclose(call("my::gate_twice", {x, g}).to_tensor(), mul(expected, sigmoid(g))));
}

TEST(OperatorLibrary, refuses_what_its_rule_refuses) {
  load_once();
  try {
    call("my::gate", {zeros({2, 3}), zeros({2, 4})});
    FAIL() << "accepted";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("my::gate: expected a gate of sizes [2, 3], found [2, 4]"), std::string::npos)
        << e.what();
  }
}

TEST(OperatorLibrary, is_recorded_as_one_node_and_its_composite_as_its_parts) {
  load_once();
  const TracedGraph traced = make_fx(
      [](const Tensor& x, const Tensor& g) {
        return call("my::gate_twice", {x, g});
      },
      {.mode = TracingMode::symbolic})(zeros({2, 3}), zeros({2, 3}));
  std::string ops;
  for (const Node* n : traced.graph().nodes())
    if (n->op()) ops += n->target().str() + " ";
  EXPECT_EQ(ops, "my.gate.default my.gate.default ") << traced.graph().str();
  const Tensor x = ones({4, 5}), g = zeros({4, 5});
  EXPECT_TRUE(allclose(Interpreter(traced.graph()).run({x, g}).to_tensor(), full({4, 5}, 0.25)));
}

TEST(OperatorLibrary, says_what_is_wrong_with_a_file_that_is_none) {
  EXPECT_THROW(load_operator_library("/no/such/library.so"), UserError);
  EXPECT_THROW(load_operator_library(library_path()), UserError);  // its operators exist already
}

}  // namespace
}  // namespace calque::operator_library_test
