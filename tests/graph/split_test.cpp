// split_module against PyTorch's, part by part. The file comes from tools/golden/fx_split.py.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/graph/passes.h"
#include "calque/graph/text.h"
#include "calque/op/aten/zeros.h"
#include "support/paths.h"

namespace calque::split_test {
namespace {

using nlohmann::json;

struct Empty : Module {};

GraphModule original(const std::string& text) {
  Graph graph = parse_graph(text);
  Attributes attributes;
  for (const Node* n : graph.nodes()) {
    if (n->kind() == NodeKind::get_attr) attributes.emplace_back(n->target().text(), Attribute(zeros({1}), true));
    if (n->kind() == NodeKind::call_module) attributes.emplace_back(n->target().text(), std::make_shared<Empty>());
  }
  return GraphModule(attributes, std::move(graph));
}

SplitOptions options_of(const std::string& name) {
  SplitOptions options;
  options.keep_original_order = name == "order";
  options.keep_original_node_name = name == "names";
  if (name == "args") {
    options.keep_original_input_name = false;
    options.partition_affix = "pp";
    options.tuple_return = true;
  }
  return options;
}

TEST(Split, gives_pytorchs_modules) {
  std::ifstream in(test::source_folder() + "/tests/graph/golden/split.json");
  const json golden = json::parse(in);
  size_t compared = 0;
  for (const json& c : golden.at("cases")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const GraphModule module = original(golden.at("text"));
    const auto part = [&](const Node& n) { return c.at("parts").at(n.name()).get<int64_t>(); };
    if (c.contains("error")) {
      EXPECT_THROW(split_module(module, part, options_of(c.at("option"))), UserError);
      continue;
    }
    const auto split = split_module(module, part, options_of(c.at("option")));
    EXPECT_EQ(split->code(), c.at("code").get<std::string>());
    for (const auto& [name, code] : c.at("submodules").items()) {
      const auto* sub = dynamic_cast<const GraphModule*>(split->find_submodule(name));
      ASSERT_NE(sub, nullptr) << name;
      EXPECT_EQ(sub->code(), code.get<std::string>()) << name;
    }
    ++compared;
  }
  EXPECT_GE(compared, 40U);
}

}  // namespace
}  // namespace calque::split_test
