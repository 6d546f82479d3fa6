// Reads graphs in text form from files and writes to standard output: the page of one, the differences of two, or with "svg" a
// picture. A line "name %a = ..." in front of a graph gives its node %a a name that the text form cannot write, as JSON. What
// tests/peers/graph_html.py opens in a browser.
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "calque/base/error.h"
#include "calque/graph/draw.h"
#include "calque/graph/text.h"

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

}  // namespace

int main(int argc, char** argv) {
  try {
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
