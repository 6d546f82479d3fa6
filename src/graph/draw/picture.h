// A picture of an outline: a label for each box, and for each module where its children stand while they are closed. What is open
// decides the rest: an open module needs more room, and what is around it is stretched (arrange), which keeps every order and
// distance. So one layout serves every state; the page does the same stretching in the browser (page.js).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/draw/layered.h"
#include "graph/draw/outline.h"

namespace calque::draw {

enum class Look : uint8_t { input, output, weights, view, pointwise, reduction, other, module };
std::string_view name(Look look);

struct Label {
  Look look = Look::other;
  std::string title;               // "linear"
  std::string detail;              // what is small beside it: "(1, 2)"
  std::vector<std::string> lines;  // below: values, weights
  double width = 0;
  double height = 0;
};

constexpr double title_size = 12;  // of letters, in pixels
constexpr double line_size = 10;
constexpr double frame_head = 26;  // of an open module: the line with its name
constexpr double frame_pad = 14;   // and the room at its other sides
double text_width(std::string_view text, double size, bool bold = false);

// Where a child of a module stands, or where a value comes in or goes out.
struct Place {
  uint32_t box = no_box;  // none: a value at the module's border
  double x = 0, y = 0, width = 0, height = 0;
};

// A value on its way between the children of a module; or several that go the same way.
struct Line {
  uint32_t source = 0;           // a place
  uint32_t source_port = 0;      // of a module: which of the values that go out
  std::vector<uint32_t> values;  // boxes of the nodes that make them
  std::vector<Stroke> strokes;
  std::vector<uint32_t> ports;  // of each stroke's target, where it is a module: which of the values that come in
};

struct Level {
  double width = 0;
  double height = 0;
  std::vector<Place> places;  // values that come in, children, values that go out
  uint32_t entries = 0;       // how many come in
  std::vector<Line> lines;
};

struct Picture {
  Outline outline;
  std::vector<Label> labels;  // of each box
  std::vector<Level> levels;  // of each box; empty for nodes
  std::vector<bool> open;     // of each box, as it is shown at first
};

Picture picture_of(const Graph& graph, const DrawOptions& options);

// ---- with the open modules ------------------------------------------------------------------------------------------------

struct Rect {
  double x = 0, y = 0, width = 0, height = 0;
};

struct ArrangedBox {
  uint32_t box;
  Rect rect;
  bool open;
};
struct ArrangedStroke {
  uint32_t source_value;      // the box of the node that makes it, of several the first
  bool arrives;               // at a box, and not at a border
  std::vector<Point> points;  // as a Stroke's
};
struct Arrangement {
  double width = 0;
  double height = 0;
  std::vector<ArrangedBox> boxes;  // a module before what it holds
  std::vector<ArrangedStroke> strokes;
};
Arrangement arrange(const Picture& picture);

}  // namespace calque::draw
