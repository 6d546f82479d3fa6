// Graphs that switch gradient mode and autocast: run, split, and with the regions as calls, against PyTorch's. The file
// comes from tools/golden/fx_regions.py.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/graph/interpreter.h"
#include "calque/graph/passes.h"
#include "calque/graph/text.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/autocast.h"
#include "support/paths.h"

namespace calque::regions_test {
namespace {

using nlohmann::json;

const json& programs() {
  static const json golden = json::parse(std::ifstream(test::source_folder() + "/tests/graph/golden/regions.json"));
  return golden.at("programs");
}

std::unique_ptr<GraphModule> original(const json& program) {
  return std::make_unique<GraphModule>(parse_graph(program.at("text").get<std::string>()));
}

void expect_codes(const GraphModule& found, const json& expected) {
  size_t graphs = 0;
  for (const auto& [path, module] : const_cast<GraphModule&>(found).named_modules()) {
    const auto* graph = dynamic_cast<const GraphModule*>(module);
    if (!graph) continue;
    ++graphs;
    ASSERT_TRUE(expected.contains(path)) << path << graph->code();
    EXPECT_EQ(graph->code(), expected.at(path).get<std::string>()) << path;
    graph->graph().lint();
  }
  EXPECT_EQ(graphs, expected.size());
}

// Parts that nothing depends on may run last, and leave the mode that they have set.
Value run(GraphModule& module, const Tensor& x, const Tensor& w) {
  const GradModeScope as_it_was(grad_enabled());
  return module({x, w});
}

// Values, dtypes and whether gradients are wanted.
void expect_same(const Value& found, const Value& expected) {
  const Values a = found.is_tensor() ? Values{found} : found.to_items(),
               b = expected.is_tensor() ? Values{expected} : expected.to_items();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].to_tensor().dtype(), b[i].to_tensor().dtype());
    EXPECT_EQ(a[i].to_tensor().requires_grad(), b[i].to_tensor().requires_grad()) << i;
    EXPECT_TRUE(equal(a[i].to_tensor(), b[i].to_tensor())) << i;
  }
}

TEST(Regions, T358_become_calls_as_pytorchs) {
  for (const json& program : programs()) {
    SCOPED_TRACE(program.at("name").get<std::string>());
    Tensor x = rand({4, 4});
    const Tensor w = rand({4, 4});
    x.requires_grad_();
    const auto plain = original(program);
    const Value expected = run(*plain, x, w);
    EXPECT_TRUE(grad_enabled());

    const auto module = original(program);
    wrap_grad_mode_regions(*module);
    expect_codes(*module, program.at("grad"));
    expect_same(run(*module, x, w), expected);
    wrap_autocast_regions(*module);
    expect_codes(*module, program.at("autocast"));
    expect_same(run(*module, x, w), expected);
    EXPECT_FALSE(wrap_grad_mode_regions(*module));
    EXPECT_FALSE(wrap_autocast_regions(*module));

    const auto other = original(program);
    const GradModeScope no_grad(false);
    wrap_grad_mode_regions(*other);
    expect_codes(*other, program.at("grad_under_no_grad"));
  }
}

TEST(Regions, T359_sequential_split_is_a_chain_and_inlining_brings_the_graph_back) {
  for (const json& program : programs()) {
    SCOPED_TRACE(program.at("name").get<std::string>());
    const auto module = original(program);
    const auto split =
        sequential_split(*module, [](const Node& n) { return n.target().str() == "torch._C._set_grad_enabled"; });
    expect_codes(*split, program.at("sequential"));
    const Tensor x = rand({4, 4}), w = rand({4, 4});
    expect_same(run(*split, x, w), run(*module, x, w));
    for (Node* n : split->graph().node_list())
      if (n->kind() == NodeKind::call_module) inline_module_call(*split, n);
    EXPECT_EQ(split->code(), program.at("inlined").get<std::string>());
    const bool casts =
        module->code().find("_enter_autocast") != std::string::npos;  // parts enter and leave it, inlined or not
    EXPECT_TRUE(casts || same_graph(split->graph(), module->graph()));
  }
}

TEST(Regions, parts_of_a_split_enter_and_leave_what_is_open) {
  for (const json& program : programs())
    for (const json& c : program.at("splits")) {
      SCOPED_TRACE(program.at("name").get<std::string>());
      const auto module = original(program);
      const auto split = split_module(*module, [&](const Node& n) { return c.at("parts").at(n.name()).get<int64_t>(); });
      expect_codes(*split, c.at("codes"));
      Tensor x = rand({4, 4});
      x.requires_grad_();
      const Tensor w = rand({4, 4});
      expect_same(run(*split, x, w), run(*module, x, w));
    }
}

TEST(Regions, numbers_of_parts_must_not_go_down) {
  const auto module = original(programs()[0]);
  int64_t next = 10;
  EXPECT_THROW(split_module(*module, [&](const Node&) { return next--; }), UserError);
}

TEST(Regions, an_error_puts_the_thread_back) {
  const Graph graph = parse_graph(
      "%x : f32[3] = placeholder\n"
      "%_set_grad_enabled = torch._C._set_grad_enabled(False)\n"
      "%_enter_autocast = torch.amp.autocast_mode._enter_autocast('cpu', torch.bfloat16, True, None)\n"
      "%mm : f32[3, 3] = aten.mm.default(%x, %x)\n"
      "%_exit_autocast = torch.amp.autocast_mode._exit_autocast(%_enter_autocast)\n"
      "%_set_grad_enabled_1 = torch._C._set_grad_enabled(True)\n"
      "return %mm\n");
  EXPECT_THROW(Interpreter(graph).run({rand({3})}), UserError);
  EXPECT_TRUE(grad_enabled());
  EXPECT_FALSE(autocast_region().enabled);
  EXPECT_EQ(mm(rand({2, 2}), rand({2, 2})).dtype(), DType::float32);
}

}  // namespace
}  // namespace calque::regions_test
