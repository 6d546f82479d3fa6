#include "graph/draw/picture.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "graph/draw/labels.h"

namespace calque::draw {
namespace {

// ---- what runs between the children of each module ------------------------------------------------------------------------

using Values = std::vector<uint32_t>;  // boxes of nodes

class Levels {
 public:
  explicit Levels(Picture& picture)
      : picture_(picture), outline_(picture.outline), entries_(outline_.boxes.size()), exits_(outline_.boxes.size()) {}
  void make() {
    picture_.levels.resize(outline_.boxes.size());
    for (uint32_t b = 0; b < outline_.boxes.size(); ++b)  // outer ones first: they say what goes into the inner ones
      if (outline_.boxes[b].is_module()) make_level(b);
  }

 private:
  void make_level(uint32_t module);
  void make_places(uint32_t module);
  void make_lines(uint32_t module);
  void make_ports(Level& level);
  void lay_out(uint32_t module);
  // The places inside the module that use a value, in order.
  std::vector<uint32_t> users_inside(uint32_t module, uint32_t value) const;
  uint32_t place_with(uint32_t module, uint32_t box) const {
    const std::vector<uint32_t>& children = outline_.boxes[module].children;
    return picture_.levels[module].entries +
           static_cast<uint32_t>(std::ranges::upper_bound(children, box) - children.begin()) - 1;
  }

  Picture& picture_;
  const Outline& outline_;
  std::vector<std::vector<Values>> entries_, exits_;  // of each module: what comes in and goes out, by port
};

void Levels::make_level(uint32_t module) {
  make_places(module);
  make_lines(module);
  make_ports(picture_.levels[module]);
  lay_out(module);
}

void Levels::make_places(uint32_t module) {
  Level& level = picture_.levels[module];
  constexpr double border = 10;  // the room of a value at the border
  level.entries = static_cast<uint32_t>(entries_[module].size());
  for (size_t k = 0; k < entries_[module].size(); ++k) level.places.push_back({no_box, 0, 0, border, 0});
  for (const uint32_t c : outline_.boxes[module].children)
    level.places.push_back({c, 0, 0, picture_.labels[c].width, picture_.labels[c].height});
  for (size_t k = 0; k < exits_[module].size(); ++k) level.places.push_back({no_box, 0, 0, border, 0});
}

std::vector<uint32_t> Levels::users_inside(uint32_t module, uint32_t value) const {
  const std::vector<uint32_t>& users = outline_.users[value];  // they stand in order, as boxes do
  std::vector<uint32_t> out;
  for (auto user = std::ranges::lower_bound(users, module); user != users.end() && outline_.holds(module, *user); ++user) {
    const uint32_t place = place_with(module, *user);
    if (out.empty() || out.back() != place) out.push_back(place);
  }
  return out;
}

void Levels::make_lines(uint32_t module) {
  Level& level = picture_.levels[module];
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, size_t> known;  // values that go the same way are one line
  const auto add = [&](uint32_t source, uint32_t value, const std::vector<uint32_t>& targets) {
    if (targets.empty()) return;
    const auto [at, is_new] = known.try_emplace({source, targets}, level.lines.size());
    if (is_new) {
      Line& line = level.lines.emplace_back();
      line.source = source;
      for (const uint32_t t : targets) line.strokes.push_back({t, false, false, {}});
    }
    level.lines[at->second].values.push_back(value);
  };
  for (uint32_t e = 0; e < level.entries; ++e)
    for (const uint32_t value : entries_[module][e]) add(e, value, users_inside(module, value));
  std::unordered_map<uint32_t, std::vector<uint32_t>> leaving;  // by value: the places where it goes out
  const auto first_exit = static_cast<uint32_t>(level.places.size() - exits_[module].size());
  for (uint32_t x = 0; x < exits_[module].size(); ++x)
    for (const uint32_t value : exits_[module][x]) leaving[value].push_back(first_exit + x);
  for (uint32_t value = module + 1; value < outline_.boxes[module].end; ++value) {
    if (outline_.users[value].empty()) continue;
    const uint32_t source = place_with(module, value);
    std::vector<uint32_t> targets = users_inside(module, value);
    std::erase(targets, source);
    if (const auto out = leaving.find(value); out != leaving.end())
      targets.insert(targets.end(), out->second.begin(), out->second.end());
    add(source, value, targets);
  }
}

void Levels::make_ports(Level& level) {
  for (Line& line : level.lines) {
    if (const uint32_t box = level.places[line.source].box; box != no_box && outline_.boxes[box].is_module()) {
      line.source_port = static_cast<uint32_t>(exits_[box].size());
      exits_[box].push_back(line.values);
    }
    for (const Stroke& stroke : line.strokes) {
      line.ports.push_back(0);
      const uint32_t box = level.places[stroke.target].box;
      if (box == no_box || !outline_.boxes[box].is_module()) continue;
      line.ports.back() = static_cast<uint32_t>(entries_[box].size());
      entries_[box].push_back(line.values);
    }
  }
}

void Levels::lay_out(uint32_t module) {
  Level& level = picture_.levels[module];
  std::vector<LayerItem> items;
  for (size_t p = 0; p < level.places.size(); ++p) {
    const Place& place = level.places[p];
    LayerItem::Kind kind = p < level.entries ? LayerItem::Kind::entry : LayerItem::Kind::exit;
    if (place.box != no_box) {
      const Look look = picture_.labels[place.box].look;
      kind = look == Look::input    ? LayerItem::Kind::entry
             : look == Look::output ? LayerItem::Kind::exit
                                    : LayerItem::Kind::box;
    }
    items.push_back({place.width, place.height, kind});
  }
  std::vector<LayerNet> nets;
  for (const Line& line : level.lines) {
    LayerNet& net = nets.emplace_back(LayerNet{line.source, {}});
    for (const Stroke& stroke : line.strokes) net.targets.push_back(stroke.target);
  }
  LayeredPicture laid = layered(items, nets);
  level.width = laid.width;
  level.height = laid.height;
  for (size_t p = 0; p < level.places.size(); ++p) {
    level.places[p].x = laid.corners[p].x;
    level.places[p].y = laid.corners[p].y;
  }
  for (size_t n = 0; n < nets.size(); ++n) level.lines[n].strokes = std::move(laid.nets[n]);
}

// ---- what is open at first ------------------------------------------------------------------------------------------------

void open_modules(Picture& picture, std::optional<size_t> depth) {
  const std::vector<OutlineBox>& boxes = picture.outline.boxes;
  constexpr size_t many = 70;  // boxes in a picture of a readable size
  const bool is_small = boxes.size() <= many;
  const auto is_module = [&](uint32_t b) { return boxes[b].is_module(); };
  picture.open.assign(boxes.size(), false);
  size_t shown = 1;
  std::vector<std::pair<uint32_t, size_t>> frontier = {{0, 0}};  // modules and their depth, outer ones first
  std::set<uint32_t> kinds;
  for (size_t k = 0; k < frontier.size(); ++k) {
    const auto [m, at] = frontier[k];
    const OutlineBox& box = boxes[m];
    if (depth && at > *depth) break;
    if (!depth && !is_small && m != 0) {
      // Of modules that are alike the first shows what the others hold; what holds only calls is told enough by its name.
      if (box.kind != 0 && !kinds.insert(box.kind).second) continue;
      if (shown + box.children.size() - 1 > many || std::ranges::none_of(box.children, is_module)) continue;
    }
    picture.open[m] = true;
    shown += box.children.size() - 1;
    for (const uint32_t c : box.children)
      if (is_module(c)) frontier.emplace_back(c, at + 1);
  }
}

// ---- arranging ------------------------------------------------------------------------------------------------------------

// x becomes x and what is inserted left of it.
class Stretch {
 public:
  // From here on [begin, end] is at least `size` long.
  void widen(double begin, double end, double size) {
    const double more = size - ((*this)(end) - (*this)(begin));
    if (more > 0) pieces_.push_back({begin, end, more});
  }
  double operator()(double x) const {
    double out = x;
    for (const Piece& p : pieces_) out += p.more * std::clamp((x - p.begin) / (p.end - p.begin), 0.0, 1.0);
    return out;
  }

 private:
  struct Piece {
    double begin, end, more;
  };
  std::vector<Piece> pieces_;
};

class Arranger {
 public:
  explicit Arranger(const Picture& picture)
      : picture_(picture), across_(picture.levels.size()), down_(picture.levels.size()), size_(picture.levels.size()) {}
  Arrangement run() {
    measure(0);
    out_.width = size_[0].width;
    out_.height = size_[0].height;
    place(0, 0, 0, 0, size_[0].height);
    return std::move(out_);
  }

 private:
  bool is_open(uint32_t box) const { return box != no_box && picture_.open[box]; }
  void measure(uint32_t module);
  Rect frame_size(uint32_t module) const {
    return {0, 0, std::max(size_[module].width + 2 * frame_pad, picture_.labels[module].width),
            size_[module].height + frame_head + frame_pad};
  }
  void place(uint32_t module, double x, double y, double top, double bottom);
  double port(const Place& place, const Rect& rect, double x, uint32_t number, bool comes_in) const;

  const Picture& picture_;
  std::vector<Stretch> across_, down_;  // of each open module
  std::vector<Rect> size_;              // of what is inside
  Arrangement out_;
};

void Arranger::measure(uint32_t module) {
  const Level& level = picture_.levels[module];
  std::vector<const Place*> open;
  for (const Place& p : level.places)
    if (is_open(p.box)) {
      measure(p.box);
      open.push_back(&p);
    }
  // The largest first: what it makes room for may do for the others.
  std::ranges::stable_sort(open, std::greater<>(), [&](const Place* p) { return frame_size(p->box).width; });
  for (const Place* p : open) across_[module].widen(p->x, p->x + p->width, frame_size(p->box).width);
  std::ranges::stable_sort(open, std::greater<>(), [&](const Place* p) { return frame_size(p->box).height; });
  for (const Place* p : open) down_[module].widen(p->y, p->y + p->height, frame_size(p->box).height);
  size_[module] = {0, 0, across_[module](level.width), down_[module](level.height)};
}

// Where a line meets a box, across.
double Arranger::port(const Place& place, const Rect& rect, double x, uint32_t number, bool comes_in) const {
  if (!is_open(place.box)) return rect.x + (x - place.x);
  const Level& inside = picture_.levels[place.box];
  const size_t exits = inside.entries + picture_.outline.boxes[place.box].children.size();
  const Place& border = inside.places[comes_in ? number : exits + number];
  return rect.x + (rect.width - size_[place.box].width) / 2 + across_[place.box](border.x + border.width / 2);
}

void Arranger::place(uint32_t module, double x, double y, double top, double bottom) {
  const Level& level = picture_.levels[module];
  const Stretch& across = across_[module];
  const Stretch& down = down_[module];
  std::vector<Rect> rects;
  for (const Place& p : level.places) {
    const Rect size = is_open(p.box) ? frame_size(p.box) : Rect{0, 0, p.width, p.height};
    const double cx = (across(p.x) + across(p.x + p.width)) / 2;
    const double cy = (down(p.y) + down(p.y + p.height)) / 2;
    Rect rect = {x + cx - size.width / 2, y + cy - size.height / 2, size.width, size.height};
    if (p.box == no_box) {  // at the border
      rect.y = &p - level.places.data() < level.entries ? top : bottom;
    } else {
      out_.boxes.push_back({p.box, rect, is_open(p.box)});
    }
    rects.push_back(rect);
    if (is_open(p.box))
      place(p.box, rect.x + (rect.width - size_[p.box].width) / 2, rect.y + frame_head, rect.y, rect.y + rect.height);
  }
  for (const Line& line : level.lines)
    for (size_t s = 0; s < line.strokes.size(); ++s) {
      const Stroke& stroke = line.strokes[s];
      ArrangedStroke out = {line.values[0], level.places[stroke.target].box != no_box, {}};
      const size_t count = stroke.points.size();
      for (const Point& p : stroke.points) out.points.push_back({x + across(p.x), y + down(p.y)});
      const Rect& to = rects[stroke.target];
      const double arrives = port(level.places[stroke.target], to, stroke.points[count - 1].x, line.ports[s], true);
      out.points[count - 1] = {arrives, to.y};
      out.points[count - 2].x = arrives;
      if (!stroke.branches && !stroke.is_cut) {
        const Rect& from = rects[line.source];
        const double leaves = port(level.places[line.source], from, stroke.points[0].x, line.source_port, false);
        out.points[0] = {leaves, from.y + from.height};
        out.points[1].x = leaves;
      }
      out_.strokes.push_back(std::move(out));
    }
}

}  // namespace

Picture picture_of(const Graph& graph, const DrawOptions& options) {
  Picture out;
  out.outline = outline_of(graph, options);
  for (uint32_t b = 0; b < out.outline.boxes.size(); ++b) out.labels.push_back(label_of(out.outline, b));
  Levels(out).make();
  open_modules(out, options.depth);
  return out;
}

Arrangement arrange(const Picture& picture) { return Arranger(picture).run(); }

}  // namespace calque::draw
