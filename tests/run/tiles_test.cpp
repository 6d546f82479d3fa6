// Chains of pointwise calls: what the pass makes of graphs, and that tiles give eager's bits, for every pointwise operator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "calque/graph/interpreter.h"
#include "calque/graph/text.h"
#include "calque/op/aten/arange.h"
#include "calque/op/library.h"
#include "calque/run/passes.h"
#include "calque/run/plan.h"
#include "run/operator_call.h"
#include "support/error_support.h"

namespace calque::tiles_test {
namespace {

using test::error_of;
using ::testing::HasSubstr;

std::string fused(std::string_view text) {
  GraphModule module(Attributes{}, parse_graph(text));
  run::PassInput input{module};
  run::run_pass("fuse_pointwise", input);
  return module.graph().str();
}

TEST(FusePointwise, a_chain_becomes_one_call_under_its_last_name) {
  const std::string text = fused(R"(
    %x = placeholder
    %bias = placeholder
    %add = aten.add.Tensor(%x, %bias)
    %tanh = aten.tanh.default(%add)
    %mul = aten.mul.Tensor(%tanh, %x)
    %sum_1 = aten.sum.default(%mul)
    return %sum_1)");
  EXPECT_THAT(text, HasSubstr("%mul = call_module[_chain0](%x, %bias)"));
  EXPECT_THAT(text, Not(HasSubstr("%tanh")));
}

TEST(FusePointwise, what_others_read_stays_a_result) {
  const std::string text = fused(R"(
    %x = placeholder
    %exp = aten.exp.default(%x)
    %neg = aten.neg.default(%exp)
    return (%exp, %neg))");
  EXPECT_THAT(text, HasSubstr("%exp = aten.exp.default(%x)"));
  EXPECT_THAT(text, HasSubstr("%neg = aten.neg.default(%exp)"));
}

TEST(FusePointwise, nothing_moves_past_a_write_of_what_it_reads) {
  const std::string text = fused(R"(
    %x = placeholder
    %exp = aten.exp.default(%x)
    %fill = aten.fill_.Scalar(%x, 1.0)
    %neg = aten.neg.default(%exp)
    return (%neg, %fill))");
  EXPECT_THAT(text, Not(HasSubstr("_chain")));
}

TEST(FusePointwise, random_and_converting_calls_stay) {
  const std::string text = fused(R"(
    %x = placeholder
    %n = placeholder
    %noise = aten.rand_like.default(%x)
    %add = aten.add.Tensor(%x, %noise, alpha=%n)
    %neg = aten.neg.default(%add)
    return %neg)");
  EXPECT_THAT(text, Not(HasSubstr("_chain")));
}

// ---- every operator -----------------------------------------------------------------------------------------------------

constexpr int64_t rows = 90, columns = 401;

Tensor operand(DType dtype, IntList sizes, int64_t seed) {
  int64_t count = 1;
  for (const int64_t n : sizes) count *= n;
  const Tensor x =
      ((arange(count) * Scalar(36 + seed)).remainder(Scalar(101)) - Scalar(50)).view(SymInts(sizes.begin(), sizes.end()));
  if (dtype == DType::bool_) return x.gt(Scalar(0));
  return is_floating(dtype) ? (x.to(DType::float64) / 23.0).to(dtype) : x.to(dtype);
}

// A value for an argument that is no tensor; nothing where its default is taken or nobody can guess one.
std::optional<Value> plain_argument(const SchemaArgument& a) {
  if (a.default_value) return std::nullopt;
  const std::string type = a.type.str();
  if (type == "Scalar" || type == "float") return Value(0.75);
  if (type == "int" || type == "SymInt") return Value(1);
  if (type == "bool") return Value(true);
  if (type == "ScalarType") return Value(DType::float32);
  return std::nullopt;
}

std::string bits_differ(const Value& a, const Value& b) {
  const Tensor &x = a.to_tensor(), &y = b.to_tensor();
  if (x.dtype() != y.dtype() || x.sizes() != y.sizes() || x.strides() != y.strides()) return "other geometry";
  return std::memcmp(x.data(), y.data(), x.nbytes()) == 0 ? "" : "other bits";
}

struct Case {
  DType dtype;
  int shape;  // of the operands after the first: as large, a row, a column, a number
};

// x.abs() op others, negated: a chain around the operator. Gives how the plan differs from the interpreter.
std::optional<std::string> difference(const Operator& op, const Case& c) {
  Graph graph;
  Values inputs, args;
  Kwargs kwargs;
  int64_t tensors = 0;
  for (const SchemaArgument& a : op.schema().arguments) {
    Value value;
    if (a.type.str().starts_with("Tensor")) {
      if (a.default_value) continue;
      const std::vector<std::vector<int64_t>> sizes = {{rows, columns}, {columns}, {rows, 1}, {}};
      const auto which = static_cast<size_t>(tensors == 0 ? 0 : c.shape);
      inputs.emplace_back(operand(c.dtype, {sizes[which].data(), sizes[which].size()}, ++tensors));
      value = graph.placeholder("x" + std::to_string(tensors));
      if (tensors == 1) value = graph.call_function("aten.clone.default", {value});
    } else if (const std::optional<Value> plain = plain_argument(a)) {
      value = *plain;
    } else if (a.default_value) {
      continue;
    } else {
      return std::nullopt;
    }
    if (a.keyword_only)
      kwargs.emplace_back(a.name, value);
    else
      args.push_back(value);
  }
  if (tensors == 0) return std::nullopt;
  Node* result = graph.call_function(op, std::move(args), std::move(kwargs));
  graph.output(graph.call_function("aten.logical_not.default", {result}));
  GraphModule chain(Attributes{}, graph.copy());
  graph.erase_node(graph.output_node());
  graph.erase_node(result->users().list().at(0));
  graph.output(result);
  GraphModule module(Attributes{}, std::move(graph));
  for (GraphModule* m : {&module, &chain}) {
    Value expected, found;
    const std::string refused = error_of([&] { expected = Interpreter(m->graph()).run(inputs); });
    const std::shared_ptr<const Plan> plan = Plan::make(*m);
    const std::string refused_too = error_of([&] { found = plan->run(inputs); });
    if (refused != refused_too) return "the interpreter says: " + refused + "\nthe plan says: " + refused_too;
    if (!refused.empty()) continue;
    if (std::string what = bits_differ(expected, found); !what.empty()) return what;
  }
  return "";
}

TEST(Tiles, every_pointwise_operator_gives_eagers_bits_and_errors) {
  size_t operators = 0, cases = 0;
  for (const Operator* op : all_operators()) {
    if (op->base() || op->alias_of() || !run::is_pointwise_operator(*op)) continue;
    bool tried = false;
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::int64, DType::bool_})
      for (int shape = 0; shape < 4; ++shape)
        if (const std::optional<std::string> what = difference(*op, {dtype, shape})) {
          tried = true;
          ++cases;
          EXPECT_EQ(*what, "") << op->name() << ", " << name(dtype) << ", shape " << shape;
        }
    operators += tried;
  }
  EXPECT_GT(operators, 150U);
  EXPECT_GT(cases, 2000U);
}

TEST(Tiles, are_what_runs) {
  const std::string text = R"(
    %x = placeholder
    %y = placeholder
    %add = aten.add.Tensor(%x, %y)
    %gelu = aten.gelu.default(%add)
    %mul = aten.mul.Tensor(%gelu, 2.0)
    return %mul)";
  const GraphModule module(Attributes{}, parse_graph(text));
  const auto plan = Plan::make(module);
  EXPECT_EQ(plan->num_steps(), 1U);
  for (const int64_t n : {1, 7, 90, 400}) {
    const Values inputs{operand(DType::float32, {n, columns}, 1), operand(DType::float32, {columns}, 2)};
    EXPECT_EQ(bits_differ(plan->run(inputs), Interpreter(module.graph()).run(inputs)), "") << n;
    const Values turned{operand(DType::float32, {columns, n}, 1).t(), operand(DType::float32, {columns}, 2)};
    EXPECT_EQ(bits_differ(plan->run(turned).to_tensor().contiguous(),
                          Interpreter(module.graph()).run(turned).to_tensor().contiguous()),
              "");
  }
}

}  // namespace
}  // namespace calque::tiles_test
