// The pass that puts batch norms into the convolutions before them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/graph/text.h"
#include "calque/op/aten/arange.h"
#include "calque/run/check.h"
#include "calque/run/passes.h"
#include "export/export_support.h"

namespace calque::fold_batch_norm_test {
namespace {

using testing::HasSubstr;
using testing::Not;

Tensor numbers(std::initializer_list<int64_t> sizes, double step, double first = -1) {
  int64_t count = 1;
  for (const int64_t n : sizes) count *= n;
  return (arange(count, DType::float32) * step + first).view(SymInts(sizes.begin(), sizes.end()));
}

std::shared_ptr<GraphModule> module_of(const std::string& text) {
  return std::make_shared<GraphModule>(Attributes{{"w", Attribute(numbers({4, 3, 3, 3}, 0.02))},
                                                  {"b", Attribute(numbers({4}, 0.5))},
                                                  {"gamma", Attribute(numbers({4}, 0.25, 0.5))},
                                                  {"beta", Attribute(numbers({4}, -0.5))},
                                                  {"mean", Attribute(numbers({4}, 0.3))},
                                                  {"var", Attribute(numbers({4}, 0.7, 0.1))}},
                                       parse_graph(text));
}

// The graph after the pass, which agrees with the one before in its results.
std::string folded(const std::string& text) {
  const NoGradGuard no_grad;
  const Values inputs{numbers({2, 3, 8, 8}, 0.01)};
  for (const PlanDifference& d : check_plan(*module_of(text), inputs).differences) ADD_FAILURE() << d.node << ": " << d.what;
  const auto module = module_of(text);
  run::PassInput input{*module};
  run::run_pass("fold_batch_norm", input);
  return module->graph().str();
}

constexpr const char* head = R"(
  %x = placeholder
  %w = get_attr[w]
  %b = get_attr[b]
  %gamma = get_attr[gamma]
  %beta = get_attr[beta]
  %mean = get_attr[mean]
  %var = get_attr[var]
)";

TEST(FoldBatchNorm, one_convolution_is_left) {
  const std::string plain = folded(std::string(head) + R"(
  %conv = aten.conv2d.default(%x, %w)
  %norm = aten.batch_norm.default(%conv, %gamma, %beta, %mean, %var, False, 0.1, 1e-05, True)
  return (%norm,))");
  EXPECT_THAT(plain, HasSubstr("%norm = aten.conv2d.default(%x, %_normed0, %_normed1)"));
  EXPECT_THAT(plain, Not(HasSubstr("batch_norm")));
  EXPECT_THAT(folded(std::string(head) + R"(
  %conv = aten.conv2d.default(%x, %w, %b, [2, 2], [1, 1])
  %norm = aten.batch_norm.default(%conv, None, None, %mean, %var, False, 0.1, 1e-05, True)
  return (%norm,))"),
              HasSubstr("%norm = aten.conv2d.default(%x, %_normed0, %_normed1, [2, 2], [1, 1])"));
}

TEST(FoldBatchNorm, where_the_result_is_written) {
  EXPECT_THAT(folded(std::string(head) + R"(
  %conv = aten.conv2d.default(%x, %w)
  %norm = aten.batch_norm.default(%conv, %gamma, %beta, %mean, %var, False, 0.1, 1e-05, True)
  %relu_ = aten.relu_.default(%norm)
  return (%relu_,))"),
              Not(HasSubstr("batch_norm")));
}

TEST(FoldBatchNorm, not_in_training_nor_where_the_convolution_is_read_or_the_state_is_written) {
  for (const char* text : {R"(
  %conv = aten.conv2d.default(%x, %w)
  %norm = aten.batch_norm.default(%conv, %gamma, %beta, %mean, %var, False, 0.1, 1e-05, True)
  return (%norm, %conv))",
                           R"(
  %conv = aten.conv2d.default(%x, %w)
  %norm = aten.batch_norm.default(%conv, %gamma, %beta, %mean, %var, True, 0.1, 1e-05, True)
  return (%norm,))",
                           R"(
  %conv = aten.conv2d.default(%x, %w)
  %norm = aten.batch_norm.default(%conv, %gamma, %beta, %mean, %var, False, 0.1, 1e-05, True)
  %add_ = aten.add_.Scalar(%mean, 1)
  return (%norm,))"})
    EXPECT_THAT(folded(std::string(head) + text), HasSubstr("batch_norm")) << text;
}

TEST(FoldBatchNorm, its_weights_want_a_gradient_where_the_parameters_do) {
  const auto module = module_of(std::string(head) + R"(
  %conv = aten.conv2d.default(%x, %w)
  %norm = aten.batch_norm.default(%conv, %gamma, %beta, %mean, %var, False, 0.1, 1e-05, True)
  return (%norm,))");
  module->find_tensor("gamma")->set_requires_grad();
  const auto plan = Plan::make(*module);
  const Tensor x = numbers({1, 3, 8, 8}, 0.01);
  EXPECT_TRUE(plan->call({x}).at(0).to_tensor().requires_grad());
  const NoGradGuard no_grad;
  EXPECT_FALSE(plan->call({x}).at(0).to_tensor().requires_grad());
}

TEST(FoldBatchNorm, a_parameter_that_is_written_makes_the_plan_old) {
  const NoGradGuard no_grad;
  const auto module = module_of(std::string(head) + R"(
  %conv = aten.conv2d.default(%x, %w)
  %norm = aten.batch_norm.default(%conv, %gamma, %beta, %mean, %var, False, 0.1, 1e-05, True)
  return (%norm,))");
  const auto plan = Plan::make(*module);
  EXPECT_TRUE(plan->is_current());
  module->find_tensor("beta")->add_(1.0);
  EXPECT_FALSE(plan->is_current());
}

}  // namespace
}  // namespace calque::fold_batch_norm_test
