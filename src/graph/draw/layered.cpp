#include "graph/draw/layered.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace calque::draw {
namespace {

constexpr uint32_t no_vertex = std::numeric_limits<uint32_t>::max();
constexpr double box_gap = 22;          // between boxes of a layer
constexpr double line_gap = 12;         // beside a line
constexpr double line_width = 6;        // the room that a line takes in a layer that it passes
constexpr size_t most_bends = 100'000;  // vertices of lines; longer lines are cut

// An item, or the place where a net's line passes a layer.
struct Vertex {
  double width = 0;
  double x = 0;  // of its middle
  uint32_t layer = 0;
  uint32_t place = 0;  // in its layer
  bool is_line = false;
  std::vector<uint32_t> up, down;
};

class Layers {
 public:
  Layers(const std::vector<LayerItem>& items, const std::vector<LayerNet>& nets) : items_(items), nets_(nets) {}

  LayeredPicture picture() {
    if (items_.empty()) return {};
    choose_layers();
    make_vertices();
    order();
    place();
    return drawn();
  }

 private:
  void choose_layers();
  void make_vertices();
  void order();
  void sort_layer(std::vector<uint32_t>& layer, bool by_upper);
  size_t crossings() const;
  void place();
  void place_layer(const std::vector<uint32_t>& layer, bool upper, bool lower);
  void straighten();
  void align(const std::vector<uint32_t>& chain);
  std::pair<double, double> room(uint32_t v) const;
  double distance(uint32_t left, uint32_t right) const {
    const Vertex& a = vertices_[left];
    const Vertex& b = vertices_[right];
    return (a.width + b.width) / 2 + (a.is_line || b.is_line ? line_gap : box_gap);
  }
  LayeredPicture drawn();
  void measure_layers(LayeredPicture& out);
  void choose_ports();
  Stroke stroke(const LayerNet& net, size_t index, uint32_t target, bool whole) const;
  uint32_t first_line(const LayerNet& net) const { return vertices_[net.source].layer + 1; }

  const std::vector<LayerItem>& items_;
  const std::vector<LayerNet>& nets_;
  std::vector<uint32_t> rank_;
  uint32_t longest_ = std::numeric_limits<uint32_t>::max();  // layers that a line may pass
  std::vector<Vertex> vertices_;                             // the items, then the bends of lines
  std::vector<std::vector<uint32_t>> lines_;                 // of each net: its bends, from the layer below the source on
  std::vector<std::vector<uint32_t>> layers_;
  std::vector<double> top_, bottom_;              // of each layer
  std::vector<double> source_port_;               // of each net: x
  std::vector<std::vector<double>> target_port_;  // of each net's targets: x
};

void Layers::choose_layers() {
  using Kind = LayerItem::Kind;
  const bool has_entries = std::ranges::any_of(items_, [](const LayerItem& i) { return i.kind == Kind::entry; });
  rank_.assign(items_.size(), has_entries ? 1 : 0);
  std::vector<std::vector<uint32_t>> nets_of(items_.size());
  for (uint32_t n = 0; n < nets_.size(); ++n) nets_of[nets_[n].source].push_back(n);
  std::vector<bool> anchored(items_.size());  // below an entry
  uint32_t last = 0;
  for (uint32_t i = 0; i < items_.size(); ++i) {
    if (items_[i].kind == Kind::entry) {
      rank_[i] = 0;
      anchored[i] = true;
    }
    if (items_[i].kind != Kind::exit) last = std::max(last, rank_[i]);
    for (const uint32_t n : nets_of[i])
      for (const uint32_t t : nets_[n].targets) {
        rank_[t] = std::max(rank_[t], rank_[i] + 1);
        if (anchored[i]) anchored[t] = true;
      }
  }
  for (uint32_t i = 0; i < items_.size(); ++i)
    if (items_[i].kind == Kind::exit) rank_[i] = std::max(last + 1, rank_[i]);
  // What depends on no entry comes just before it is used.
  for (uint32_t i = static_cast<uint32_t>(items_.size()); i-- > 0;) {
    if (anchored[i] || items_[i].kind == Kind::exit) continue;
    uint32_t earliest = no_vertex;
    for (const uint32_t n : nets_of[i])
      for (const uint32_t t : nets_[n].targets) earliest = std::min(earliest, rank_[t]);
    if (earliest != no_vertex) rank_[i] = std::max(rank_[i], earliest - 1);
  }
}

void Layers::make_vertices() {
  const auto bends = [&](const LayerNet& net) {
    uint32_t most = 1;
    for (const uint32_t t : net.targets)
      if (const uint32_t span = rank_[t] - rank_[net.source]; span <= longest_) most = std::max(most, span);
    return most - 1;
  };
  const auto total = [&] {
    return std::accumulate(nets_.begin(), nets_.end(), size_t{0},
                           [&](size_t sum, const LayerNet& n) { return sum + bends(n); });
  };
  if (total() > most_bends) {
    longest_ = *std::ranges::max_element(rank_);
    while (longest_ > 1 && total() > most_bends) longest_ /= 2;
  }
  for (uint32_t i = 0; i < items_.size(); ++i) vertices_.push_back({items_[i].width, 0, rank_[i], 0, false, {}, {}});
  const auto join = [&](uint32_t from, uint32_t to) {
    vertices_[from].down.push_back(to);
    vertices_[to].up.push_back(from);
  };
  for (const LayerNet& net : nets_) {
    std::vector<uint32_t> line;
    uint32_t above = net.source;
    for (uint32_t k = 0, count = bends(net); k < count; ++k) {
      line.push_back(static_cast<uint32_t>(vertices_.size()));
      vertices_.push_back({line_width, 0, rank_[net.source] + 1 + k, 0, true, {}, {}});
      join(above, line.back());
      above = line.back();
    }
    for (const uint32_t t : net.targets) {
      const uint32_t span = rank_[t] - rank_[net.source];
      if (span == 1 || span <= longest_) join(span == 1 ? net.source : line[span - 2], t);
    }
    lines_.push_back(std::move(line));
  }
  layers_.resize(*std::ranges::max_element(rank_) + 1);
  // The first order is that of a walk in depth: what belongs together stands together.
  std::vector<bool> seen(vertices_.size());
  std::vector<uint32_t> open;
  for (uint32_t i = 0; i < items_.size(); ++i) {
    open.push_back(i);
    while (!open.empty()) {
      const uint32_t v = open.back();
      open.pop_back();
      if (seen[v]) continue;
      seen[v] = true;
      vertices_[v].place = static_cast<uint32_t>(layers_[vertices_[v].layer].size());
      layers_[vertices_[v].layer].push_back(v);
      const std::vector<uint32_t>& down = vertices_[v].down;
      open.insert(open.end(), down.rbegin(), down.rend());
    }
  }
}

// ---- the order within layers --------------------------------------------------------------------------------------------

void Layers::sort_layer(std::vector<uint32_t>& layer, bool by_upper) {
  std::vector<std::pair<double, uint32_t>> wanted;
  wanted.reserve(layer.size());
  for (const uint32_t v : layer) {
    const std::vector<uint32_t>& others = by_upper ? vertices_[v].up : vertices_[v].down;
    double sum = 0;
    for (const uint32_t o : others)
      sum += (vertices_[o].place + 0.5) / static_cast<double>(layers_[vertices_[o].layer].size());
    const double own = (vertices_[v].place + 0.5) / static_cast<double>(layer.size());
    wanted.emplace_back(others.empty() ? own : sum / static_cast<double>(others.size()), v);
  }
  std::ranges::stable_sort(wanted, {}, &std::pair<double, uint32_t>::first);
  for (uint32_t k = 0; k < layer.size(); ++k) {
    layer[k] = wanted[k].second;
    vertices_[layer[k]].place = k;
  }
}

size_t Layers::crossings() const {
  size_t count = 0;
  std::vector<uint32_t> ends;
  std::vector<uint32_t> tree;  // how many ends stand at a place or left of it: a Fenwick tree
  for (size_t l = 0; l + 1 < layers_.size(); ++l) {
    tree.assign(layers_[l + 1].size() + 1, 0);
    uint32_t before = 0;
    for (const uint32_t v : layers_[l]) {
      ends.clear();
      for (const uint32_t d : vertices_[v].down) ends.push_back(vertices_[d].place);
      std::ranges::sort(ends);
      for (const uint32_t e : ends) {
        uint32_t not_right = 0;
        for (uint32_t k = e + 1; k > 0; k &= k - 1) not_right += tree[k];
        count += before - not_right;
      }
      for (const uint32_t e : ends)
        for (uint32_t k = e + 1; k < tree.size(); k += k & (~k + 1)) ++tree[k];
      before += static_cast<uint32_t>(ends.size());
    }
  }
  return count;
}

void Layers::order() {
  std::vector<std::vector<uint32_t>> best = layers_;
  size_t fewest = crossings();
  const int sweeps = vertices_.size() > 20'000 ? 4 : 14;
  for (int sweep = 0; sweep < sweeps && fewest > 0; ++sweep) {
    if (sweep % 2 == 0)
      for (size_t l = 1; l < layers_.size(); ++l) sort_layer(layers_[l], true);
    else
      for (size_t l = layers_.size() - 1; l-- > 0;) sort_layer(layers_[l], false);
    if (const size_t now = crossings(); now < fewest) {
      fewest = now;
      best = layers_;
    }
  }
  layers_ = std::move(best);
  for (const std::vector<uint32_t>& layer : layers_)
    for (uint32_t k = 0; k < layer.size(); ++k) vertices_[layer[k]].place = k;
}

// ---- places -------------------------------------------------------------------------------------------------------------

// Each vertex as near as can be to the mean of its neighbours, in the order and at the distances of the layer: least squares,
// solved exactly by pooling neighbours that would come too close.
void Layers::place_layer(const std::vector<uint32_t>& layer, bool upper, bool lower) {
  struct Pool {
    double sum = 0;
    double weight = 0;
    size_t count = 0;
    double mean() const { return sum / weight; }
  };
  std::vector<Pool> pools;
  std::vector<double> offset(layer.size());
  for (size_t k = 0; k < layer.size(); ++k) {
    if (k > 0) offset[k] = offset[k - 1] + distance(layer[k - 1], layer[k]);
    const Vertex& v = vertices_[layer[k]];
    double sum = 0;
    double weight = 0;
    const auto pull = [&](const std::vector<uint32_t>& others) {
      for (const uint32_t o : others) {
        const double w = v.is_line != vertices_[o].is_line ? 0.4 : v.is_line ? 4 : 1;  // a line may come from the side
        sum += w * vertices_[o].x;
        weight += w;
      }
    };
    if (upper) pull(v.up);
    if (lower) pull(v.down);
    if (weight == 0) {
      weight = 0.05;
      sum = weight * v.x;
    }
    pools.push_back({sum - weight * offset[k], weight, 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() >= pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().weight += last.weight;
      pools.back().count += last.count;
    }
  }
  size_t k = 0;
  for (const Pool& pool : pools)
    for (size_t end = k + pool.count; k < end; ++k) vertices_[layer[k]].x = pool.mean() + offset[k];
}

// A line that could be straight is, and so are boxes one below the other, beside what passes them.
void Layers::straighten() {
  const auto is_box = [&](uint32_t v) { return !vertices_[v].is_line; };
  const auto only_box = [&](const std::vector<uint32_t>& others) {
    return std::ranges::count_if(others, is_box) == 1 ? *std::ranges::find_if(others, is_box) : no_vertex;
  };
  std::vector<uint32_t> chain;
  for (uint32_t first = 0; first < items_.size(); ++first) {
    const auto follower = [&](uint32_t v) {
      const uint32_t next = only_box(vertices_[v].down);
      return next != no_vertex && only_box(vertices_[next].up) == v ? next : no_vertex;
    };
    if (const uint32_t before = only_box(vertices_[first].up); before != no_vertex && follower(before) == first) continue;
    chain.clear();
    for (uint32_t v = first; v != no_vertex; v = follower(v)) chain.push_back(v);
    if (chain.size() > 1) align(chain);
  }
  for (const std::vector<uint32_t>& line : lines_) align(line);
}

// The vertices to one place across, as many after each other as have room for it: for lines that of what they join.
void Layers::align(const std::vector<uint32_t>& chain) {
  for (size_t begin = 0; begin < chain.size();) {
    double left = -1e300;
    double right = 1e300;
    double sum = 0;
    double count = 0;
    const auto add = [&](uint32_t v) {
      sum += vertices_[v].x;
      ++count;
    };
    size_t end = begin;
    for (; end < chain.size(); ++end) {
      const uint32_t v = chain[end];
      const auto [l, r] = room(v);
      if (std::max(left, l) > std::min(right, r) + 1e-9) break;
      left = std::max(left, l);
      right = std::min(right, r);
      if (!vertices_[v].is_line)
        add(v);
      else
        for (const std::vector<uint32_t>* others : {&vertices_[v].up, &vertices_[v].down})
          for (const uint32_t o : *others)
            if (!vertices_[o].is_line) add(o);
    }
    if (end == begin) {
      ++begin;
      continue;
    }
    if (count == 0) add(chain[begin]);
    const double x = std::clamp(sum / count, left, std::max(left, right));
    for (; begin < end; ++begin) vertices_[chain[begin]].x = x;
  }
}

// How far a vertex can move across.
std::pair<double, double> Layers::room(uint32_t v) const {
  const std::vector<uint32_t>& layer = layers_[vertices_[v].layer];
  const uint32_t k = vertices_[v].place;
  return {k == 0 ? -1e300 : vertices_[layer[k - 1]].x + distance(layer[k - 1], v),
          k + 1 == layer.size() ? 1e300 : vertices_[layer[k + 1]].x - distance(v, layer[k + 1])};
}

void Layers::place() {
  for (const std::vector<uint32_t>& layer : layers_) {
    double x = 0;
    for (size_t k = 0; k < layer.size(); ++k) {
      if (k > 0) x += distance(layer[k - 1], layer[k]);
      vertices_[layer[k]].x = x;
    }
    for (const uint32_t v : layer) vertices_[v].x -= x / 2;
  }
  const int rounds = vertices_.size() > 20'000 ? 3 : 8;
  for (int round = 0; round < rounds; ++round) {
    const bool alone = round < rounds / 2;  // first in one direction at a time, then between both neighbours
    for (size_t l = 0; l < layers_.size(); ++l) place_layer(layers_[l], true, !alone);
    for (size_t l = layers_.size(); l-- > 0;) place_layer(layers_[l], !alone, true);
  }
  straighten();
  straighten();
}

// ---- lines --------------------------------------------------------------------------------------------------------------

void Layers::measure_layers(LayeredPicture& out) {
  double left = 1e300;
  double right = -1e300;
  for (const Vertex& v : vertices_) {
    left = std::min(left, v.x - v.width / 2);
    right = std::max(right, v.x + v.width / 2);
  }
  for (Vertex& v : vertices_) v.x -= left;
  out.width = right - left;
  double y = 0;
  for (const std::vector<uint32_t>& layer : layers_) {
    double height = 0;
    double widest = 0;  // what a line above this layer moves sideways
    for (const uint32_t v : layer) {
      if (v < items_.size()) height = std::max(height, items_[v].height);
      for (const uint32_t u : vertices_[v].up) widest = std::max(widest, std::abs(vertices_[u].x - vertices_[v].x));
    }
    if (!top_.empty()) y += 20 + std::min(44.0, widest * 0.07);
    top_.push_back(y);
    bottom_.push_back(y += height);
  }
  out.height = y;
  for (uint32_t i = 0; i < items_.size(); ++i) {
    const Vertex& v = vertices_[i];
    const double middle = (top_[v.layer] + bottom_[v.layer]) / 2;
    out.corners.push_back({v.x - v.width / 2, middle - items_[i].height / 2});
  }
}

// Lines leave and enter a box beside each other, in the order of where they come from or go to.
void Layers::choose_ports() {
  struct End {
    double towards;
    double* x;
  };
  std::vector<std::vector<End>> above(items_.size());
  std::vector<std::vector<End>> below(items_.size());
  source_port_.resize(nets_.size());
  target_port_.resize(nets_.size());
  for (size_t n = 0; n < nets_.size(); ++n) {
    const LayerNet& net = nets_[n];
    target_port_[n].resize(net.targets.size());
    double sum = 0;
    double count = 0;
    for (size_t t = 0; t < net.targets.size(); ++t) {
      const uint32_t span = rank_[net.targets[t]] - rank_[net.source];
      const uint32_t from = span == 1 || span > longest_ ? net.source : lines_[n][span - 2];
      above[net.targets[t]].push_back({vertices_[from].x, &target_port_[n][t]});
      if (span == 1) {
        sum += vertices_[net.targets[t]].x;
        ++count;
      }
    }
    if (!lines_[n].empty()) {
      sum += vertices_[lines_[n][0]].x;
      ++count;
    }
    below[net.source].push_back({count > 0 ? sum / count : vertices_[net.source].x, &source_port_[n]});
  }
  for (uint32_t i = 0; i < items_.size(); ++i)
    for (std::vector<End>* ends : {&above[i], &below[i]}) {
      std::ranges::stable_sort(*ends, {}, &End::towards);
      const double count = static_cast<double>(ends->size());
      const double step = std::min(16.0, (items_[i].width - 16) / std::max(1.0, count - 1));
      for (size_t k = 0; k < ends->size(); ++k)
        *(*ends)[k].x = vertices_[i].x + (static_cast<double>(k) - (count - 1) / 2) * std::max(0.0, step);
    }
}

Stroke Layers::stroke(const LayerNet& net, size_t index, uint32_t target, bool whole) const {
  const uint32_t t = net.targets[target];
  const uint32_t end = rank_[t];
  const uint32_t span = end - rank_[net.source];
  const double x = target_port_[index][target];
  const double arrive = (top_[end] + bottom_[end]) / 2 - items_[t].height / 2;
  Stroke out;
  out.target = t;
  if (span > 1 && span > longest_) {
    out.is_cut = true;
    out.points = {{x, top_[end] - 14}, {x, arrive}};
    return out;
  }
  const auto bend = [&](uint32_t k) {  // in layer k
    return vertices_[lines_[index][k - first_line(net)]].x;
  };
  if (whole || span == 1) {
    const uint32_t start = rank_[net.source];
    out.points.push_back({source_port_[index], (top_[start] + bottom_[start]) / 2 + items_[net.source].height / 2});
    out.points.push_back({source_port_[index], bottom_[start]});
    for (uint32_t k = start + 1; k < end; ++k) {
      out.points.push_back({bend(k), top_[k]});
      out.points.push_back({bend(k), bottom_[k]});
    }
  } else {
    out.branches = true;
    out.points.push_back({bend(end - 1), bottom_[end - 1]});
  }
  out.points.push_back({x, top_[end]});
  out.points.push_back({x, arrive});
  return out;
}

LayeredPicture Layers::drawn() {
  LayeredPicture out;
  measure_layers(out);
  choose_ports();
  for (size_t n = 0; n < nets_.size(); ++n) {
    const LayerNet& net = nets_[n];
    uint32_t furthest = no_vertex;  // its stroke has the whole line, the others branch off
    for (uint32_t t = 0; t < net.targets.size(); ++t) {
      const auto span = [&](uint32_t k) { return rank_[net.targets[k]] - rank_[net.source]; };
      if (span(t) <= longest_ && (furthest == no_vertex || span(t) > span(furthest))) furthest = t;
    }
    std::vector<Stroke> strokes;
    for (uint32_t t = 0; t < net.targets.size(); ++t) strokes.push_back(stroke(net, n, t, t == furthest));
    out.nets.push_back(std::move(strokes));
  }
  return out;
}

}  // namespace

LayeredPicture layered(const std::vector<LayerItem>& items, const std::vector<LayerNet>& nets) {
  return Layers(items, nets).picture();
}

}  // namespace calque::draw
