// Graphs traced by PyTorch 2.13, read from text and printed as PyTorch prints them, byte for byte. The file comes from
// tools/golden/fx_code.py.
#include "calque/graph/code.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "calque/graph/graph_module.h"
#include "calque/graph/text.h"
#include "calque/op/aten/zeros.h"
#include "support/paths.h"

namespace calque::code_test {
namespace {

using nlohmann::json;

struct Empty : Module {};

// Whatever the graph refers to.
GraphModule module_of(Graph graph, const std::string& class_name) {
  Attributes attributes;
  for (const Node* n : graph.nodes()) {
    if (n->kind() == NodeKind::get_attr) attributes.emplace_back(n->target().text(), zeros({1}));
    if (n->kind() == NodeKind::call_module) attributes.emplace_back(n->target().text(), std::make_shared<Empty>());
  }
  return GraphModule(attributes, std::move(graph), class_name);
}

class Golden : public testing::TestWithParam<json> {
 public:
  static std::vector<json> load() {
    std::ifstream in(test::source_folder() + "/tests/graph/golden/code.json");
    return json::parse(in).get<std::vector<json>>();
  }
  std::string expected(const char* key) const { return GetParam().at(key).get<std::string>(); }
  Graph graph() const { return parse_graph(expected("symbols") + expected("text")); }
};

TEST_P(Golden, the_text_reads_back) {
  const Graph g = graph();
  EXPECT_EQ(g.str(), expected("text"));
  std::string why;
  EXPECT_TRUE(same_graph(g, parse_graph(text_with_symbols(g)), &why, true)) << why;
}

TEST_P(Golden, the_graph_is_formatted_as_pytorch_does) { EXPECT_EQ(graph().format_graph(), expected("format")); }

TEST_P(Golden, the_code_is_pytorchs) { EXPECT_EQ(python_code(graph()), expected("code")); }

TEST_P(Golden, the_readable_form_is_pytorchs) {
  const GraphModule module = module_of(graph(), expected("class_name"));
  EXPECT_EQ(module.print_readable(), expected("readable"));
  CodeOptions all;
  all.include_stride = all.include_device = true;
  EXPECT_EQ(module.print_readable(all), expected("readable_all"));
  CodeOptions expanded;
  expanded.expanded_def = true;
  EXPECT_EQ(module.print_readable(expanded), expected("readable_expanded"));
  CodeOptions colored;
  colored.colored = true;
  EXPECT_EQ(module.print_readable(colored), expected("readable_colored"));
}

INSTANTIATE_TEST_SUITE_P(Traced, Golden, testing::ValuesIn(Golden::load()),
                         [](const auto& info) { return info.param.at("name").template get<std::string>(); });

TEST(Code, the_source_line_of_a_node_is_shown) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* relu = g.call_function("torch.relu", {x});
  relu->meta.stack_trace =
      std::make_shared<const std::string>("  File \"model.py\", line 12, in forward\n    return relu(x)\n");
  g.output(relu);
  CodeOptions verbose;
  verbose.verbose = true;
  EXPECT_EQ(python_code(g, "self", verbose),
            "\n\n\ndef forward(self, x):\n    # File: model.py:12 in forward, code: return relu(x)\n    relu = "
            "torch.relu(x);  x = None\n    return relu\n    ");
}

}  // namespace
}  // namespace calque::code_test
