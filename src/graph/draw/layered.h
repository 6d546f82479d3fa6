// Boxes of a directed acyclic graph in layers, as Sugiyama's method has it: layers by the longest path, an order within layers by
// barycentres, places by least squares under the distances that boxes keep. A value that many boxes take is one line that
// branches. Lines run between boxes, never through one. Pure geometry: it knows nothing of graphs, and gives the same picture for
// the same input.
#pragma once

#include <cstdint>
#include <vector>

namespace calque::draw {

struct LayerItem {
  enum class Kind : uint8_t { box, entry, exit };  // entries stand above all boxes, exits below
  double width = 0;
  double height = 0;
  Kind kind = Kind::box;
};

// A value: where it is made and who takes it, each target once.
struct LayerNet {
  uint32_t source = 0;
  std::vector<uint32_t> targets;
};

struct Point {
  double x = 0;
  double y = 0;
};

// Points of one x are joined by a line; others by a curve that leaves and arrives vertically. The last two points are those at
// the target, the first two those at the source, unless it branches off another stroke of its net.
struct Stroke {
  uint32_t target = 0;
  bool branches = false;  // off an earlier stroke, where the first point is
  bool is_cut = false;    // the source is too far away: only the end is drawn
  std::vector<Point> points;
};

struct LayeredPicture {
  double width = 0;
  double height = 0;
  std::vector<Point> corners;             // the upper left one of each item
  std::vector<std::vector<Stroke>> nets;  // the strokes of each net
};

// Items stand in an order in which sources come before their targets.
LayeredPicture layered(const std::vector<LayerItem>& items, const std::vector<LayerNet>& nets);

}  // namespace calque::draw
