// Reads graphs in text form from files and writes to standard output: the page of one, the differences of two, with "svg" a
// picture, with "profile" the page of a run of its plan on two ones. A line "name %a = ..." in front of a graph gives its node %a a name that the text form cannot write, as JSON. What
// tests/peers/graph_html.py opens in a browser.
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "calque/base/error.h"
#include "calque/compile/plan_profile.h"
#include "calque/graph/draw.h"
#include "calque/graph/graph_module.h"
#include "calque/graph/text.h"
#include "calque/op/aten/zeros.h"
#include "calque/run/plan.h"

namespace {

calque::Graph read(const char* path) {
  std::ifstream file(path);
  std::vector<std::pair<std::string, std::string>> names;
  std::string text;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("name %")) {
      text += line + "\n";
      continue;
    }
    const size_t equal = line.find(" = ");
    names.emplace_back(line.substr(6, equal - 6), nlohmann::json::parse(line.substr(equal + 3)).get<std::string>());
  }
  calque::Graph graph = calque::parse_graph(text);
  for (const auto& [from, to] : names) graph.find_node(from)->set_name(to);
  return graph;
}

// A plan gives its nodes plain names, so the steps get those of the graph again, also for modules and operators.
std::string profile_page(const char* path) {
  calque::PlanOptions options;
  options.optimize = false;
  const calque::Graph graph = read(path);
  std::vector<std::string> names;
  for (const calque::Node* node : graph.nodes())
    if (node->kind() == calque::NodeKind::call_function) names.push_back(node->name());
  const auto plan = calque::Plan::make(calque::GraphModule(read(path)), options);
  calque::PlanProfile profile = calque::profile_plan(*plan, {calque::ones({2})}, 1);
  for (size_t i = 0; i < names.size(); ++i) {
    calque::ProfiledStep& step = profile.runs[0].at(i);
    step.name = step.op = step.module = names[i];
  }
  return calque::profile_html(profile, "page <test>");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 3 && std::string(argv[1]) == "profile") {
      std::cout << profile_page(argv[2]);
      return 0;
    }
    const bool svg = argc == 3 && std::string(argv[1]) == "svg";
    calque::DrawOptions options;
    options.name = "page <test>";
    const calque::Graph a = read(argv[svg ? 2 : 1]);
    if (svg)
      std::cout << calque::to_svg(a, options);
    else
      std::cout << (argc == 3 ? calque::to_html(a, options, read(argv[2]), options) : calque::to_html(a, options));
  } catch (const calque::Error& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
