// Programs as modules again: what PyTorch's unflatten makes of the same programs (tools/golden/unflatten.py), and replacing
// submodules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/export/export.h"
#include "calque/export/pt2.h"
#include "calque/export/unflatten.h"
#include "calque/nn/nn.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/views.h"
#include "calque/op/aten/zeros.h"
#include "support/conformance.h"
#include "support/error_support.h"
#include "support/paths.h"

namespace calque::unflatten_test {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::string folder = test::source_folder() + "/tests/export/golden/unflatten/";

Tensor tensor_from(const Json& j) {
  const auto sizes = j["shape"].get<std::vector<int64_t>>();
  const auto values = j["data"].get<std::vector<double>>();
  const std::string dtype = j["dtype"];
  Tensor flat = zeros({static_cast<int64_t>(values.size())}, DType::float64);
  for (size_t i = 0; i < values.size(); ++i) static_cast<double*>(flat.mutable_data())[i] = values[i];
  return flat.to(dtype == "int64" ? DType::int64 : dtype == "bool" ? DType::bool_ : DType::float32).reshape(as_sym(sizes));
}

Value value_from(const Json& j) {
  if (j.is_null()) return {};
  if (j.is_boolean()) return j.get<bool>();
  if (j.is_number_integer()) return j.get<int64_t>();
  if (j.is_number()) return j.get<double>();
  if (j.contains("t")) return tensor_from(j["t"]);
  if (j.contains("dict")) {
    std::vector<std::pair<Value, Value>> entries;
    for (const Json& e : j["dict"]) entries.emplace_back(e[0].get<std::string>(), value_from(e[1]));
    return dict(std::move(entries));
  }
  Values items;
  for (const Json& e : j.contains("list") ? j["list"] : j["tuple"]) items.push_back(value_from(e));
  return j.contains("list") ? list(std::move(items)) : tuple(std::move(items));
}

void expect_close(const Value& found, const Value& expected) {
  const FlatTree a = tree_flatten(found), b = tree_flatten(expected);
  ASSERT_EQ(a.spec.str(), b.spec.str());
  for (size_t i = 0; i < a.leaves.size(); ++i) {
    if (!b.leaves[i].is_tensor()) {
      EXPECT_TRUE(a.leaves[i].equals(b.leaves[i])) << a.leaves[i].str() << " " << b.leaves[i].str();
      continue;
    }
    const Tensor& x = a.leaves[i].to_tensor();
    const Tensor& y = b.leaves[i].to_tensor();
    EXPECT_EQ(x.dtype(), y.dtype());
    ASSERT_EQ(str(x.sizes()), str(y.sizes()));
    EXPECT_TRUE(allclose(x.detach(), y, 1e-5, 1e-5)) << i;
  }
}

std::vector<Json> cases(const std::string& row) {
  std::ifstream in(folder + "unflatten.jsonl");
  std::vector<Json> out;
  for (std::string line; std::getline(in, line);)
    if (Json j = Json::parse(line); j["name"].get<std::string>().starts_with(row)) out.push_back(std::move(j));
  return out;
}

std::string node_text(const Node& n) {
  std::string target = n.target().str();
  if (n.kind() == NodeKind::call_function && n.op() == nullptr) target = target.substr(target.rfind('.') + 1);
  return std::string(name(n.kind())) + " " + target;
}

// Every module has its values, placeholders come first, and the graph holds what PyTorch's does.
void check_graphs(UnflattenedModule& module, const Json& expected) {
  for (const auto& [path, m] : module.named_modules("", false)) {
    const auto* g = dynamic_cast<GraphModule*>(m);
    if (g == nullptr || dynamic_cast<InterpreterModule*>(m) == nullptr) continue;
    SCOPED_TRACE(path);
    std::vector<std::string> nodes;
    bool past_inputs = false;
    for (const Node* n : g->graph().nodes()) {
      nodes.push_back(node_text(*n));
      EXPECT_FALSE(past_inputs && n->kind() == NodeKind::placeholder);
      past_inputs = past_inputs || n->kind() != NodeKind::placeholder;
    }
    ASSERT_TRUE(expected.contains(path));
    EXPECT_EQ(nodes, expected[path].get<std::vector<std::string>>());
  }
}

void compare(const Json& c) {
  SCOPED_TRACE(c["name"].get<std::string>());
  const std::shared_ptr<const ExportedProgram> program = load_program(folder + c["name"].get<std::string>() + ".pt2");
  const std::shared_ptr<UnflattenedModule> module = unflatten(*program);
  std::vector<std::string> modules;
  for (const auto& [path, m] : module->named_modules("", false)) modules.push_back(path);
  EXPECT_EQ(modules, c["modules"].get<std::vector<std::string>>());
  check_graphs(*module, c["graphs"]);
  std::set<std::string> state;
  for (const auto& [name, tensor] : module->state_dict()) state.insert(name);
  auto expected_state = c["state"].get<std::set<std::string>>();
  if (!c["dispatched"].empty()) {
    // PyTorch loses the buffers of modules that are called several times with their signature kept; they are all here.
    expected_state.clear();
    for (const auto& [name, tensor] : program->state_dict()) expected_state.insert(name);
  }
  EXPECT_EQ(state, expected_state);
  std::set<std::string> frozen;
  for (const auto& [name, p] : module->named_parameters())
    if (!p.requires_grad()) frozen.insert(name);
  EXPECT_EQ(frozen, c["frozen"].get<std::set<std::string>>());
  for (const Json& call : c["calls"]) {
    Values args;
    Kwargs kwargs;
    for (const Json& a : call["args"]) args.push_back(value_from(a));
    for (const Json& a : call["kwargs"]) kwargs.emplace_back(a[0].get<std::string>(), value_from(a[1]));
    expect_close(module->call(args, kwargs), value_from(call["result"]));
    for (size_t i = 0; i < args.size(); ++i) expect_close(args[i], value_from(call["after"][i]));
    for (const Json& b : call["buffers"]) {
      const Tensor* found = module->find_tensor(b[0].get<std::string>());
      ASSERT_NE(found, nullptr) << b[0];
      expect_close(*found, tensor_from(b[1]));
    }
  }
}

void compare_all(const std::string& row) {
  const std::vector<Json> all = cases(row);
  EXPECT_FALSE(all.empty());
  for (const Json& c : all) compare(c);
}

TEST(Unflatten, T400_the_hierarchy_comes_back) { compare_all("T400"); }
TEST(Unflatten, T401_buffers_and_inputs_are_written) { compare_all("T401"); }
TEST(Unflatten, T402_a_parent_reads_its_childs_buffer) { compare_all("T402"); }
TEST(Unflatten, T404_kept_signatures) { compare_all("T404"); }

// The module that T404's programs were exported with, written here.
class Taking : public Module {
 public:
  explicit Taking(std::shared_ptr<Module> linear) { register_module("lin", std::move(linear)); }
  std::string type_name() const override { return "Taking"; }
  Value forward_values(const Values& args, const Kwargs& kwargs) override {
    ++calls;
    const Values& pair = args.at(0).to_items();
    Tensor sum = pair[0].to_tensor() + pair[1].to_tensor() + args.at(1).to_dict().find("u")->to_tensor();
    sum = get_submodule("lin").call({sum}).to_tensor();
    if (!kwargs.empty()) sum = sum + kwargs.at(0).second.to_tensor();
    return dict({{"sum", sum}, {"both", tuple({pair[0], sum * 2})}});
  }
  int calls = 0;
};

TEST(Unflatten, T404_a_module_with_a_kept_signature_can_be_replaced) {
  size_t replaced = 0;
  for (const Json& c : cases("T404")) {
    SCOPED_TRACE(c["name"].get<std::string>());
    const std::shared_ptr<const ExportedProgram> program = load_program(folder + c["name"].get<std::string>() + ".pt2");
    const std::shared_ptr<UnflattenedModule> module = unflatten(*program);
    const auto linear = std::make_shared<Linear>(3, 3);
    linear->set_tensor("weight", module->get_parameter("foo.lin.weight"));
    linear->set_tensor("bias", module->get_parameter("foo.lin.bias"));
    const auto own = std::make_shared<Taking>(linear);
    module->set_submodule("foo", own);
    for (const Json& call : c["calls"]) {
      Values args;
      for (const Json& a : call["args"]) args.push_back(value_from(a));
      expect_close(module->call(args), value_from(call["result"]));
    }
    EXPECT_EQ(own->calls, static_cast<int>(c["calls"].size()));
    ++replaced;
  }
  EXPECT_EQ(replaced, 5u);
}

TEST(Unflatten, T406_a_kept_signature_with_an_unused_input) { compare_all("T406"); }
TEST(Unflatten, T407_wrong_inputs_are_refused) {
  compare_all("T407");
  const auto module = unflatten(*load_program(folder + cases("T407")[0]["name"].get<std::string>() + ".pt2"));
  const auto error_with = [&](const Values& args) { return test::reason_of([&] { module->call(args); }); };
  EXPECT_THAT(error_with({zeros({6, 4})}), HasSubstr("Expected input at *args[0].shape[0] to be equal to 2, but got 6"));
  EXPECT_THAT(error_with({}), HasSubstr("Trying to flatten user inputs with exported input tree spec"));
}

TEST(Unflatten, T408_a_grandchild_is_called_directly) { compare_all("T408"); }
TEST(Unflatten, T409_results_that_are_tuples) { compare_all("T409"); }
TEST(Unflatten, T410_frozen_parameters_stay_frozen) { compare_all("T410"); }
TEST(Unflatten, T411_placeholders_come_before_reads) { compare_all("T411"); }
TEST(Unflatten, T412_constants_of_submodules) { compare_all("T412"); }
TEST(Unflatten, T413_the_order_of_modules) { compare_all("T413"); }
TEST(Unflatten, T414_shared_parameters_are_one) {
  compare_all("T414");
  const auto module = unflatten(*load_program(folder + cases("T414")[0]["name"].get<std::string>() + ".pt2"));
  EXPECT_EQ(&module->get_parameter("p").impl(), &module->get_parameter("inner.p").impl());
  EXPECT_EQ(&module->get_parameter("p").impl(), &module->get_parameter("inner.unused").impl());
}
TEST(Unflatten, T415_a_buffer_passed_to_children) { compare_all("T415"); }
TEST(Unflatten, T416_sizes_are_computed_where_they_cannot_be_passed) { compare_all("T416"); }
TEST(Unflatten, T417_one_module_under_two_names) { compare_all("T417"); }
TEST(Unflatten, T418_a_module_called_with_different_graphs) { compare_all("T418"); }
TEST(Unflatten, T419_calls_at_random_that_write_buffers) { compare_all("T419"); }
TEST(Unflatten, T420_the_same_with_signatures_kept) { compare_all("T420"); }
TEST(Unflatten, T421_asserts) { compare_all("T421"); }
TEST(Unflatten, T422_regions_and_branches) { compare_all("T422"); }

// ---- programs exported here -----------------------------------------------------------------------------------------

class Block : public Typed<Block> {
 public:
  Block() : lin_(child<Linear>("lin", 4, 4)), count_(register_buffer("count", zeros({1}))) {}
  Tensor forward(const Tensor& x, const Tensor& y) {
    count_->add_(1);
    return lin_(x).relu() + y * *count_;
  }

 private:
  Child<Linear> lin_;
  Buffer count_;
};

class Twice : public Typed<Twice> {
 public:
  Twice() : block_(child<Block>("block")), out_(child<Linear>("out", 4, 2)) {}
  Tensor forward(const Tensor& x) { return out_(block_(block_(x, x), x + 1)); }

 private:
  Child<Block> block_;
  Child<Linear> out_;
};

TEST(Unflatten, programs_exported_here) {
  for (const bool functional : {false, true})
    for (const bool kept : {false, true}) {
      SCOPED_TRACE(std::string(functional ? "functional" : "training") + (kept ? ", kept" : ""));
      const auto model = std::make_shared<Twice>();
      const auto eager = deep_copy(*model);
      const auto batch = DynamicShapes::tuple({DynamicShapes::dict({{0, Dim("batch")}})});
      ExportedProgram program = export_program(
          *model, {ones({3, 4})}, {},
          {.dynamic_shapes = batch,
           .preserve_module_call_signature = kept ? std::vector<std::string>{"block"} : std::vector<std::string>{}});
      if (functional) program = program.run_decompositions();
      const auto module = unflatten(program);
      for (const int64_t n : {3, 1, 5}) {
        const Tensor x = rand({n, 4});
        EXPECT_TRUE(allclose(module->call({x}).to_tensor().detach(), eager->call({x}).to_tensor().detach(), 1e-5, 1e-6))
            << n;
      }
      EXPECT_TRUE(equal(module->get_buffer("block.count"), eager->get_buffer("block.count")));
      EXPECT_NE(module->find_submodule("block.lin"), nullptr);
    }
}

TEST(Unflatten, submodules_can_be_called_by_themselves) {
  const auto module = unflatten(*load_program(folder + cases("T400")[0]["name"].get<std::string>() + ".pt2"));
  const Tensor x = ones({2, 4});
  Module& linear = module->get_submodule("foo.nested");
  const Tensor y = linear.call({x}).to_tensor();
  const Tensor expected =
      matmul(x, module->get_parameter("foo.nested.weight").t()) + module->get_parameter("foo.nested.bias");
  EXPECT_TRUE(allclose(y.detach(), expected.detach(), 1e-5, 1e-6));
  EXPECT_EQ(dynamic_cast<InterpreterModule&>(linear).original_type(), "torch.nn.modules.linear.Linear");
}

TEST(Unflatten, running_leaves_the_program_alone) {
  const std::shared_ptr<const ExportedProgram> program =
      load_program(folder + cases("T401")[0]["name"].get<std::string>() + ".pt2");
  const auto module = unflatten(*program), copy = deep_copy(*module);
  module->call({ones({3})});
  EXPECT_TRUE(equal(*program->state_dict().find("total"), zeros({3})));
  EXPECT_TRUE(equal(module->get_buffer("total"), ones({3})));
  EXPECT_TRUE(equal(copy->get_buffer("total"), zeros({3})));
  copy->call({ones({3}) * 2});
  EXPECT_TRUE(equal(copy->get_buffer("total"), ones({3}) * 2));
  EXPECT_TRUE(equal(module->get_buffer("total"), ones({3})));
}

struct SumOfList : Typed<SumOfList> {
  static constexpr const char* forward_arguments[] = {"xs"};
  Child<Linear> linear = child<Linear>("linear", 3, 2);
  Tensor forward(const std::vector<Tensor>& xs) { return linear(xs[0] + xs[1]); }
};

TEST(Unflatten, a_module_that_takes_a_list_is_exported_again) {
  SumOfList m;
  const Tensor a = rand({4, 3}), b = rand({4, 3});
  const ExportedProgram p = export_program(m, {list({a, b})});
  const ExportedProgram again = export_program(*unflatten(p), {list({a, b})});
  expect_close(again.call({list({a, b})}), p.call({list({a, b})}));
  EXPECT_EQ(again.graph_signature().str(), p.graph_signature().str());
}

}  // namespace
}  // namespace calque::unflatten_test
