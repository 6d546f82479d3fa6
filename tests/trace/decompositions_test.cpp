// The core decompositions: what PyTorch's tables make of one call each (golden), tables that are changed, and graphs that
// are decomposed after they were traced. tests/peers/decompositions.py compares more calls, live.
#include "calque/trace/decompositions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "calque/nn/functional.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/normalization.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "calque/trace/functional.h"
#include "support/paths.h"

namespace calque::decompositions_test {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;

bool is_input(const Value& v) { return v.is_tensor() && v.to_tensor().defined() && !v.to_tensor().impl().wrapped_number; }

Value argument(const Json& v, bool tensor_wanted) {
  const auto number = [&](const Scalar& s) { return tensor_wanted ? Value(wrapped_scalar(s)) : Value(s); };
  if (v.is_null()) return {};
  if (v.is_boolean()) return number(v.get<bool>());
  if (v.is_number_integer()) return number(v.get<int64_t>());
  if (v.is_number_float()) return number(v.get<double>());
  if (v.is_string()) return v.get<std::string>();
  if (v.is_array()) {
    Values items;
    for (const Json& item : v) items.push_back(argument(item, tensor_wanted));
    return list(std::move(items));
  }
  if (v.contains("tensor")) {
    const auto sizes = v["sizes"].get<std::vector<int64_t>>(), strides = v["strides"].get<std::vector<int64_t>>();
    const DType dtype = dtype_from_name(v["dtype"].get<std::string>()).value();
    int64_t last = 0;
    for (size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
    if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) last = -1;
    const Tensor t =
        from_storage(Storage::allocate(static_cast<size_t>(last + 1) * item_size(dtype)), dtype, sizes, strides, 0);
    return t;
  }
  if (v.contains("dtype")) return dtype_from_name(v["dtype"].get<std::string>()).value();
  if (v.contains("device")) return Device(v["device"].get<std::string>());
  if (v.contains("layout")) return Layout::strided;
  if (v.contains("memory_format"))
    for (const MemoryFormat m :
         {MemoryFormat::contiguous, MemoryFormat::preserve, MemoryFormat::channels_last, MemoryFormat::channels_last_3d})
      if (name(m) == "torch." + v["memory_format"].get<std::string>() + "_format" ||
          name(m) == "torch." + v["memory_format"].get<std::string>())
        return m;
  if (v.contains("f")) return number(std::stod(v["f"].get<std::string>()));
  throw UserError("an argument that this test does not know: " + v.dump());
}

std::string text(const Value& value, const std::unordered_map<const Node*, size_t>& numbers) {
  if (value.is_node()) return "%" + std::to_string(numbers.at(value.to_node()));
  if (value.kind() != Value::Kind::list && value.kind() != Value::Kind::tuple) return value.str();
  std::string out = "[";
  for (const Value& item : value.to_items()) out += (out.size() > 1 ? ", " : "") + text(item, numbers);
  return out + "]";
}

// One line a node, inputs left out.
std::vector<std::string> lines(const Graph& graph) {
  std::vector<std::string> out;
  std::unordered_map<const Node*, size_t> numbers;
  for (const Node* n : graph.nodes()) {
    const size_t number = numbers.size();
    numbers[n] = number;
    if (n->kind() == NodeKind::placeholder) continue;
    std::string line =
        "%" + std::to_string(number) + " = " + (n->kind() == NodeKind::output ? "output" : n->target().str()) + "(";
    const char* comma = "";
    for (const Value& a : n->args()) line += std::exchange(comma, ", ") + text(a, numbers);
    for (const auto& [key, a] : n->kwargs()) line += std::exchange(comma, ", ") + key + "=" + text(a, numbers);
    out.push_back(line + ")");
  }
  return out;
}

std::vector<std::string> targets(const TracedGraph& g) {
  std::vector<std::string> out;
  for (const Node* n : g.graph().nodes())
    if (n->kind() == NodeKind::call_function) out.push_back(n->target().str());
  return out;
}

void gather(const Value& v, Values& out) {
  if (is_input(v))
    out.push_back(v);
  else if (v.kind() == Value::Kind::list)
    for (const Value& item : v.to_items()) gather(item, out);
}
Value replaced(const Value& v, const Values& by, size_t& next) {
  if (is_input(v)) return by[next++];
  if (v.kind() != Value::Kind::list) return v;
  Values items;
  for (const Value& item : v.to_items()) items.push_back(replaced(item, by, next));
  return list(std::move(items));
}

TEST(Decompositions, the_core_table_makes_the_nodes_that_pytorch_makes) {
  std::ifstream file(test::source_folder() + "/tests/trace/golden/decompositions.jsonl");
  ASSERT_TRUE(file);
  const PythonBodiesScope as_exports;
  size_t count = 0;
  for (std::string line; std::getline(file, line);) {
    const Json entry = Json::parse(line);
    const Operator& op = get_operator(entry["op"].get<std::string>());
    SCOPED_TRACE(line.substr(0, 300));
    const auto& schema = op.schema().arguments;
    Values positional, inputs;
    Kwargs keyword;
    const auto wants_tensor = [&](size_t i) { return schema[i].type.kind == SchemaType::Kind::tensor; };
    for (size_t i = 0; i < entry["args"].size(); ++i) positional.push_back(argument(entry["args"][i], wants_tensor(i)));
    for (const auto& [key, v] : entry["kwargs"].items())
      keyword.emplace_back(key, argument(v, wants_tensor(*op.schema().find_argument(key))));
    for (const Value& v : positional) gather(v, inputs);
    for (const auto& [key, v] : keyword) gather(v, inputs);
    const auto again = [&](const Values& tensors) {
      size_t next = 0;
      Values p;
      Kwargs k;
      for (const Value& v : positional) p.push_back(replaced(v, tensors, next));
      for (const auto& [key, v] : keyword) k.emplace_back(key, replaced(v, tensors, next));
      return call(op, std::move(p), std::move(k));
    };
    TracedGraph g = make_fx_values(functionalize(again), inputs,
                                   {.mode = TracingMode::fake, .decompositions = &core_aten_decompositions()});
    g.graph().eliminate_dead_code();
    EXPECT_EQ(lines(g.graph()), entry["graph"].get<std::vector<std::string>>());
    ++count;
  }
  EXPECT_GE(count, 140U);
}

Tensor example() { return ones({2, 3}, DType::float32); }

TEST(Decompositions, a_form_that_writes_is_the_functional_one_and_a_copy) {
  const auto f = [](const Tensor& x) { return x.silu_(); };
  const TracedGraph g = make_fx(f, {.mode = TracingMode::fake, .decompositions = &core_aten_decompositions()})(example());
  EXPECT_THAT(targets(g), ElementsAre("aten.sigmoid.default", "aten.mul.Tensor", "aten.copy_.default"));
}

TEST(Decompositions, half_precision_is_computed_in_float32) {
  const auto f = [](const Tensor& x) { return silu(x); };
  const TracedGraph g =
      make_fx(f, {.mode = TracingMode::fake, .decompositions = &core_aten_decompositions()})(example().to(DType::bfloat16));
  EXPECT_THAT(targets(g),
              ElementsAre("aten._to_copy.default", "aten.sigmoid.default", "aten.mul.Tensor", "aten._to_copy.default"));
}

// linear is composite; whether it stays whole is the table's to say.
TEST(Decompositions, a_composite_operator_that_the_table_does_not_have_stays_whole) {
  const auto f = [](const Tensor& x, const Tensor& w) { return linear(x, w).relu(); };
  const Tensor w = ones({4, 3}, DType::float32);
  const auto traced = [&](const DecompositionTable& table) {
    const CompositesByTable composites(table);
    const CompositePolicyScope policy(&composites);
    return targets(make_fx(f, {.mode = TracingMode::fake, .decompositions = &table})(example(), w));
  };
  EXPECT_THAT(traced(default_decompositions()), ElementsAre("aten.permute.default", "aten.mm.default", "aten.relu.default"));
  DecompositionTable without = default_decompositions();
  without.erase(&get_operator("aten::linear"));
  EXPECT_THAT(traced(without), ElementsAre("aten.linear.default", "aten.relu.default"));
  EXPECT_THAT(traced({}), ElementsAre("aten.linear.default", "aten.relu.default"));
  DecompositionTable own = default_decompositions();
  own[&get_operator("aten::linear")] = [](const Values& args) -> std::optional<Value> { return args[0].to_tensor() * 2; };
  EXPECT_THAT(traced(own), ElementsAre("aten.mul.Tensor", "aten.relu.default"));
}

TEST(Decompositions, what_may_give_an_argument_back_never_stays_whole) {
  EXPECT_TRUE(can_stay_whole(get_operator("aten::linear")));
  EXPECT_FALSE(can_stay_whole(get_operator("aten::dropout")));
  EXPECT_FALSE(can_stay_whole(get_operator("aten::reshape")));
  EXPECT_FALSE(can_stay_whole(get_operator("aten::relu")));
}

TEST(Decompositions, aten_bodies_call_the_overload_for_numbers_and_users_the_one_for_tensors) {
  const Tensor x = example();
  EXPECT_THAT(targets(make_fx([](const Tensor& t) { return t + 1; }, {.mode = TracingMode::fake})(x)),
              ElementsAre("aten.add.Tensor"));
  const auto traced = targets(
      make_fx([](const Tensor& a, const Tensor& b) { return pairwise_distance(a, b); }, {.mode = TracingMode::fake})(x, x));
  EXPECT_THAT(traced, ElementsAre("aten.sub.Tensor", "aten.add.Scalar", "aten.norm.ScalarOpt_dim"));
}

TEST(DecompositionInterpreter, keeps_symbols_source_lines_and_says_what_a_node_was) {
  const auto f = [](const Tensor& x) { return silu(x.t()); };
  const TracedGraph whole = make_fx(f, {.mode = TracingMode::symbolic})(example());
  EXPECT_THAT(targets(whole), ElementsAre("aten.t.default", "aten.silu.default"));
  const TracedGraph g = DecompositionInterpreter(whole, core_aten_decompositions()).decompose();
  EXPECT_THAT(targets(g), ElementsAre("aten.permute.default", "aten.sigmoid.default", "aten.mul.Tensor"));
  EXPECT_EQ(g.env, whole.env);
  const Node* before = nullptr;
  for (const Node* n : whole.graph().nodes())
    if (n->op() == &get_operator("aten::silu")) before = n;
  for (const Node* n : g.graph().nodes())
    if (n->op() == &get_operator("aten::sigmoid") || n->op() == &get_operator("aten::mul.Tensor")) {
      EXPECT_EQ(n->meta.original_aten, before->op());
      EXPECT_EQ(n->meta.location.line(), before->meta.location.line());
      EXPECT_EQ(str(n->meta.val.to_tensor().sym_sizes()), str(before->meta.val.to_tensor().sym_sizes()));
    }
  const Tensor x = arange(Scalar(20), DType::float32).view({4, 5});
  EXPECT_TRUE(allclose(g(x).to_tensor(), f(x)));
}

TEST(DecompositionInterpreter, functional_graphs_write_inputs_once) {
  const auto f = [](const Tensor& x) {
    x.add_(Scalar(1));
    return linear(x, x).silu_();
  };
  const TracedGraph whole = make_fx(f, {.mode = TracingMode::fake, .pre_dispatch = true})(ones({3, 3}, DType::float32));
  const TracedGraph g = DecompositionInterpreter(whole, default_decompositions(), as_exports_do).decompose();
  EXPECT_THAT(targets(g), ElementsAre("aten.add.Tensor", "aten.permute.default", "aten.mm.default", "aten.sigmoid.default",
                                      "aten.mul.Tensor", "aten.copy_.default"));
}

TEST(DecompositionInterpreter, real_graphs_need_arguments) {
  const TracedGraph whole = make_fx([](const Tensor& x) { return silu(x); })(example());
  DecompositionInterpreter interpreter(whole, core_aten_decompositions());
  EXPECT_THROW(interpreter.decompose(), UserError);
  EXPECT_THAT(targets(interpreter.decompose({example()})), ElementsAre("aten.sigmoid.default", "aten.mul.Tensor"));
}

TEST(Functional, an_operator_that_gives_other_tensors_than_it_writes) {
  const auto f = [](const Tensor& x, const Tensor& mean, const Tensor& var) {
    return batch_norm(x, {}, {}, mean, var, true, 0.1, 1e-5, false);
  };
  const PythonBodiesScope as_exports;
  const Tensor x = ones({2, 3, 4}, DType::float32), stats = ones({3}, DType::float32);
  TracedGraph g = make_fx_values(
      functionalize([&](const Values& v) -> Value { return f(v[0].to_tensor(), v[1].to_tensor(), v[2].to_tensor()); }),
      {x, stats, stats.clone()}, {.mode = TracingMode::fake});
  g.graph().eliminate_dead_code();
  EXPECT_THAT(targets(g), ElementsAre("aten._native_batch_norm_legit_functional.default", "operator.getitem",
                                      "operator.getitem", "operator.getitem", "aten.copy_.default", "aten.copy_.default"));
}

}  // namespace
}  // namespace calque::decompositions_test
