// Reads a graph's text from its input and writes its HTML page: what tests/peers/graph_html.py opens in a browser.
#include <iostream>
#include <iterator>
#include <string>

#include "calque/base/error.h"
#include "calque/graph/draw.h"
#include "calque/graph/text.h"

int main() {
  try {
    const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    calque::DrawOptions options;
    options.name = "page <test>";
    std::cout << calque::to_html(calque::parse_graph(text), options);
  } catch (const calque::Error& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
