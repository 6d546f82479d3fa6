// Any text as a graph: one UserError, or a graph that lints, can be drawn, and whose text reads back to an equal graph.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "calque/base/error.h"
#include "calque/graph/draw.h"
#include "calque/graph/text.h"

using namespace calque;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::string printed;
  Graph graph;
  try {
    graph = parse_graph(text);
    graph.lint();
    printed = text_with_symbols(graph);
  } catch (const UserError&) {
    return 0;
  }
  // From here on nothing may fail.
  const Graph back = parse_graph(printed);
  if (!same_graph(graph, back)) std::abort();
  if (to_svg(graph) != to_svg(back)) std::abort();
  if (to_html(graph, {}, back, {}).find("\"changed\":true") != std::string::npos) std::abort();
  return 0;
}
