// The pass that packs weights: which products get packed ones.
#include <gtest/gtest.h>

#include "calque/graph/text.h"
#include "calque/op/aten/zeros.h"
#include "calque/run/passes.h"
#include "export/export_support.h"
#include "run/packed_linear.h"

namespace calque::pack_weights_test {
namespace {

// The names of the nodes with packed weights, after these passes.
std::string packed(std::string_view text, std::initializer_list<const char*> passes = {"pack_weights"}) {
  const Attributes state{{"w", Attribute(ones({64, 64}))}, {"v", Attribute(ones({64, 64}))}};
  GraphModule module(state, parse_graph(text));
  run::PassInput input{module};
  for (const char* pass : passes) run::run_pass(pass, input);
  std::string out;
  for (const Node* n : module.graph().nodes())
    if (!run::packed_weights_of(*n).empty()) out += (out.empty() ? "" : " ") + n->name();
  return out;
}

TEST(PackWeights, of_linear_mm_and_addmm) {
  EXPECT_EQ(packed(R"(
  %x = placeholder
  %w = get_attr[w]
  %b = placeholder
  %linear = aten.linear.default(%x, %w)
  %mm = aten.mm.default(%linear, %w)
  %addmm = aten.addmm.default(%b, %mm, %w)
  return (%addmm,))"),
            "linear mm addmm");
}

TEST(PackWeights, not_of_weights_that_are_written) {
  EXPECT_EQ(packed(R"(
  %x = placeholder
  %w = get_attr[w]
  %v = get_attr[v]
  %linear = aten.linear.default(%x, %w)
  %other = aten.linear.default(%linear, %v)
  %t = aten.transpose.int(%w, 0, 1)
  %mul_ = aten.mul_.Scalar(%t, 2)
  return (%other,))"),
            "other");
}

TEST(PackWeights, a_product_that_is_written_is_not_its_weights) {
  EXPECT_EQ(packed(R"(
  %x = placeholder
  %w = get_attr[w]
  %linear = aten.linear.default(%x, %w)
  %relu_ = aten.relu_.default(%linear)
  return (%relu_,))"),
            "linear");
}

TEST(PackWeights, beside_chains_of_pointwise_calls) {
  EXPECT_EQ(packed(R"(
  %x = placeholder
  %y = placeholder
  %w = get_attr[w]
  %add = aten.add.Tensor(%x, %y)
  %add_1 = aten.add.Tensor(%add, %y)
  %linear = aten.linear.default(%add_1, %w)
  return (%linear,))",
                   {"fuse_pointwise", "pack_weights"}),
            "linear");
}

}  // namespace
}  // namespace calque::pack_weights_test
