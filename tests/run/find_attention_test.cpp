// Attention that was written out: what is found, and that it gives what its steps give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "calque/base/error.h"
#include "calque/graph/interpreter.h"
#include "calque/graph/text.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/index.h"
#include "calque/run/check.h"
#include "calque/run/passes.h"
#include "export/export_support.h"

namespace calque::find_attention_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* inputs = R"(
  %q : f32[2, 3, 5, 8] = placeholder
  %k : f32[2, 3, 7, 8] = placeholder
  %v : f32[2, 3, 7, 4] = placeholder
  %m : f32[2, 1, 5, 7] = placeholder
)";
constexpr const char* whole = R"(
  %kt : f32[2, 3, 8, 7] = aten.transpose.int(%k, 2, 3)
  %qk : f32[2, 3, 5, 7] = aten.matmul.default(%q, %kt)
  %scaled : f32[2, 3, 5, 7] = aten.mul.Tensor(%qk, 0.25)
  %masked : f32[2, 3, 5, 7] = aten.add.Tensor(%scaled, %m)
  %softmax : f32[2, 3, 5, 7] = aten.softmax.int(%masked, -1)
  %dropout : f32[2, 3, 5, 7] = aten.dropout.default(%softmax, 0.1, False)
  %out : f32[2, 3, 5, 4] = aten.matmul.default(%dropout, %v)
  return (%out,))";

Tensor numbers(std::initializer_list<int64_t> sizes, double step) {
  int64_t count = 1;
  for (const int64_t n : sizes) count *= n;
  return ((arange(count, DType::float32) * step).sin()).view(SymInts(sizes.begin(), sizes.end()));
}
Values values() {
  return {numbers({2, 3, 5, 8}, 0.7), numbers({2, 3, 7, 8}, 0.3), numbers({2, 3, 7, 4}, 1.1), numbers({2, 1, 5, 7}, 0.9)};
}

std::string found(const std::string& text) {
  GraphModule module(Attributes{}, parse_graph(text));
  run::PassInput input{module};
  run::run_pass("find_attention", input);
  return module.graph().str();
}

void expect_the_interpreters(const std::string& text, const Values& given) {
  const NoGradGuard no_grad;
  const GraphModule module(Attributes{}, parse_graph(text));
  for (const PlanDifference& d : check_plan(module, given).differences) ADD_FAILURE() << d.node << ": " << d.what;
}

TEST(FindAttention, with_scale_mask_and_dropout_of_inference) {
  const std::string text = std::string(inputs) + whole;
  EXPECT_THAT(found(text), HasSubstr("%out : f32[2, 3, 5, 4] = call_module[_attention0](%k, %q, %m, %v)"));
  EXPECT_THAT(found(text), Not(HasSubstr("softmax")));
  expect_the_interpreters(text, values());
}

TEST(FindAttention, without_mask_and_divided) {
  const std::string text = std::string(inputs) + R"(
  %kt : f32[2, 3, 8, 7] = aten.transpose.int(%k, -1, -2)
  %qk : f32[2, 3, 5, 7] = aten.matmul.default(%q, %kt)
  %scaled : f32[2, 3, 5, 7] = aten.div.Tensor(%qk, 2.5)
  %softmax : f32[2, 3, 5, 7] = aten.softmax.int(%scaled, 3)
  %out : f32[2, 3, 5, 4] = aten.matmul.default(%softmax, %v)
  return (%out, %m))";
  EXPECT_THAT(found(text), HasSubstr("call_module[_attention0](%k, %q, %v)"));
  expect_the_interpreters(text, values());
}

TEST(FindAttention, not_where_the_weights_are_read_too) {
  std::string text = std::string(inputs) + whole;
  text.replace(text.find("return (%out,)"), std::string("return (%out,)").size(), "return (%out, %softmax)");
  EXPECT_THAT(found(text), Not(HasSubstr("_attention0")));
}

TEST(FindAttention, not_over_another_dimension) {
  std::string text = std::string(inputs) + whole;
  text.replace(text.find("%masked, -1"), std::string("%masked, -1").size(), "%masked, -2");
  EXPECT_THAT(found(text), Not(HasSubstr("_attention0")));
}

TEST(FindAttention, a_row_without_a_key_is_nan_as_a_softmax_of_nothing_is) {
  Values given = values();
  given[3].to_tensor()[{0, 0, 2}] = full({7}, -std::numeric_limits<float>::infinity());
  const NoGradGuard no_grad;
  const GraphModule module(Attributes{}, parse_graph(std::string(inputs) + whole));
  const Tensor out = Plan::make(module)->call(given).at(0).to_tensor();
  const Tensor expected = Interpreter(module.graph()).run(given).to_items().at(0).to_tensor();
  EXPECT_TRUE(out.isnan().equal(expected.isnan()));
  EXPECT_TRUE(out.isnan().any().item_as<bool>());
  EXPECT_FALSE(out.isnan().all().item_as<bool>());
}

TEST(FindAttention, gradients_and_errors_are_those_of_the_steps) {
  const GraphModule module(Attributes{}, parse_graph(std::string(inputs) + whole));
  Values given = values();
  given[0].to_tensor().set_requires_grad();
  EXPECT_TRUE(Plan::make(module)->call(given).at(0).to_tensor().requires_grad());
  given = values();
  given[1] = numbers({2, 3, 7, 9}, 0.1);
  const std::string expected = test::error_of([&] { Interpreter(module.graph()).run(given); });
  EXPECT_EQ(test::error_of([&] { Plan::make(module)->call(given); }), expected);
}

}  // namespace
}  // namespace calque::find_attention_test
