// The page: what page.js needs to draw and to tell, as JSON, between a style and a script.
#include "graph/draw/page.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "calque/graph/draw.h"
#include "calque/graph/text.h"
#include "calque/sym/shape_env.h"
#include "graph/draw/labels.h"
#include "graph/draw/match.h"
#include "graph/value_print.h"

namespace calque {
namespace {

using namespace draw;
using Json = nlohmann::ordered_json;

constexpr size_t long_text = 4000;  // characters of one thing that a node says

Json rounded(double v) {
  const double tenths = std::round(v * 10);
  if (std::fmod(tenths, 10) == 0) return static_cast<int64_t>(tenths / 10);
  return tenths / 10;
}

// Lines of a stack trace stay lines.
std::string readable_lines(const std::string& text) {
  std::string out;
  for (size_t begin = 0; begin < text.size() && out.size() < 10 * long_text;) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    out += readable(std::string_view(text).substr(begin, end - begin), 400) + "\n";
    begin = end + 1;
  }
  return out;
}

// Texts that many nodes share, each once.
class Texts {
 public:
  size_t operator()(const std::string& text) { return add(text, readable(text, 400)); }
  size_t lines(const std::string& text) {
    const auto known = known_.find(text);
    return known != known_.end() ? known->second : add(text, readable_lines(text));
  }
  Json list() && { return std::move(list_); }

 private:
  size_t add(const std::string& text, const std::string& shown) {
    const auto [at, is_new] = known_.try_emplace(text, list_.size());
    if (is_new) list_.push_back(shown);
    return at->second;
  }
  std::map<std::string, size_t> known_;
  Json list_ = Json::array();
};

class PageGraph {
 public:
  PageGraph(const Picture& picture, const Graph& graph, const DrawOptions& options, Texts& texts)
      : picture_(picture),
        outline_(picture.outline),
        graph_(graph),
        options_(options),
        texts_(texts),
        index_(graph.id_bound()) {
    for (size_t i = 0; i < outline_.nodes.size(); ++i) index_[outline_.nodes[i]->id()] = i;
  }
  Json json() {
    Json nodes = Json::array();
    for (const Node* n : outline_.nodes) nodes.push_back(node_json(*n));
    Json boxes = Json::array();
    for (uint32_t b = 0; b < outline_.boxes.size(); ++b) boxes.push_back(box_json(b));
    return {{"name", readable(options_.name, 200)}, {"nodes", nodes}, {"boxes", boxes}, {"symbols", symbols()}};
  }

 private:
  Json node_json(const Node& n) {
    const ValuePrinter print;
    Json args = Json::array();
    for (const Value& v : n.args()) args.push_back(readable(print(v), long_text));
    for (const auto& [key, v] : n.kwargs()) args.push_back(readable(key + " = " + print(v), long_text));
    Json inputs = Json::array();
    for (size_t i = 0; i < n.num_input_nodes(); ++i) inputs.push_back(index_[n.input_node(i)->id()]);
    Json out = {{"name", readable(n.name(), 400)},
                {"op", name(n.kind())},
                {"target", readable(n.target().str(), 400)},
                {"args", args},
                {"inputs", inputs}};
    if (n.kind() == NodeKind::get_attr && graph_.owner())  // a branch of cond, the body of a loop
      if (const Graph* inside = graph_.owner()->subgraph(n.target().text())) out["graph"] = texts_.lines(inside->str());
    if (const std::string val = val_text(n.meta.val); !val.empty()) out["val"] = readable(val, long_text);
    if (const uint32_t b = outline_.box_of[n.id()]; b != no_box) out["box"] = b;
    if (const auto weight = options_.weights.find(n.name()); weight != options_.weights.end())
      out["weight"] = readable(weight->second, 400);
    if (n.meta.nn_module_stack) {
      Json stack = Json::array();
      for (const ModuleStackEntry& e : *n.meta.nn_module_stack)
        stack.push_back(Json::array({texts_(e.path), texts_(e.type)}));
      out["modules"] = stack;
    }
    if (n.meta.location.line() != 0)
      out["source"] = texts_(std::string(n.meta.location.file_name()) + ":" + std::to_string(n.meta.location.line()));
    if (n.meta.stack_trace) out["trace"] = texts_.lines(*n.meta.stack_trace);
    if (n.meta.original_aten) out["original"] = n.meta.original_aten->name();
    return out;
  }

  Json box_json(uint32_t at) {
    const OutlineBox& box = outline_.boxes[at];
    const Label& label = picture_.labels[at];
    Json out = {{"look", name(label.look)},  {"title", label.title},       {"detail", label.detail}, {"lines", label.lines},
                {"w", rounded(label.width)}, {"h", rounded(label.height)}, {"end", box.end}};
    if (at > 0) out["parent"] = box.parent;
    if (!box.path.empty()) out["path"] = readable(box.path, 400);
    if (box.node) out["node"] = index_[box.node->id()];
    if (!box.folded.empty()) {
      Json folded = Json::array();
      for (const Node* n : box.folded) folded.push_back(index_[n->id()]);
      out["folded"] = folded;
    }
    if (!box.weights.empty()) {
      Json weights = Json::array();
      for (const FoldedWeight& w : box.weights)
        weights.push_back({{"path", readable(w.path, 400)},
                           {"view", w.view},
                           {"val", readable(w.val, 400)},
                           {"node", index_[w.node->id()]}});
      out["weights"] = weights;
    }
    if (!box.is_module()) return out;
    out["type"] = readable(box.type, 400);
    out["operators"] = box.operators;
    out["parameters"] = box.parameters;
    out["kind"] = box.kind;
    out["part"] = box.part;
    out["open"] = static_cast<bool>(picture_.open[at]);
    out["level"] = level_json(picture_.levels[at]);
    return out;
  }

  static Json level_json(const Level& level) {
    Json places = Json::array();
    for (const Place& p : level.places)
      places.push_back({p.box == no_box ? -1 : static_cast<int64_t>(p.box), rounded(p.x), rounded(p.y), rounded(p.width),
                        rounded(p.height)});
    Json lines = Json::array();
    for (const Line& line : level.lines) {
      Json strokes = Json::array();
      for (size_t s = 0; s < line.strokes.size(); ++s) {
        const Stroke& stroke = line.strokes[s];
        Json points = Json::array();
        for (const Point& p : stroke.points) {
          points.push_back(rounded(p.x));
          points.push_back(rounded(p.y));
        }
        strokes.push_back({stroke.target, line.ports[s], (stroke.branches ? 1 : 0) + (stroke.is_cut ? 2 : 0), points});
      }
      lines.push_back({line.source, line.source_port, line.values, strokes});
    }
    return {{"w", rounded(level.width)},
            {"h", rounded(level.height)},
            {"entries", level.entries},
            {"places", places},
            {"lines", lines}};
  }

  Json symbols() const {
    Json out = Json::array();
    if (!graph_.shape_env()) return out;
    for (const Symbol& s : graph_.shape_env()->symbols())
      out.push_back(readable(s.name + " in " + str(s.range) + (s.origin.empty() ? "" : ": " + s.origin), 400));
    return out;
  }

  const Picture& picture_;
  const Outline& outline_;
  const Graph& graph_;
  const DrawOptions& options_;
  Texts& texts_;
  std::vector<size_t> index_;  // by node id: which node in order
};

// Inside a script element nothing may look like the end of it, or of a line.
std::string for_script(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

std::string for_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

std::string page(const std::string& title, const Json& data) {
  return html_page(title, page_style, page_script, data.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

std::string draw::html_page(std::string_view title, std::string_view style, std::string_view script, std::string_view data) {
  std::string s =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; "
      "style-src 'unsafe-inline'; img-src data:\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">"
      "<link rel=\"icon\" href=\"data:,\">\n<title>" +
      for_html(title) + "</title>\n<style>\n";
  s += style;
  s += "</style></head><body>\n<script type=\"application/json\" id=\"data\">";
  s += for_script(data);
  s += "</script>\n<script>\n";
  s += script;
  return s + "</script></body></html>\n";
}

std::string to_html(const Graph& graph, const DrawOptions& options) {
  Texts texts;
  const Picture picture = picture_of(graph, options);
  Json data = {{"graphs", Json::array({PageGraph(picture, graph, options, texts).json()})}};
  data["texts"] = std::move(texts).list();
  return page(readable(options.name, 200), data);
}

std::string to_html(const Graph& a, const DrawOptions& options_a, const Graph& b, const DrawOptions& options_b) {
  Texts texts;
  const Picture picture_a = picture_of(a, options_a);
  const Picture picture_b = picture_of(b, options_b);
  Json graph_a = PageGraph(picture_a, a, options_a, texts).json();
  Json graph_b = PageGraph(picture_b, b, options_b, texts).json();
  const Matched matched = match_nodes(picture_a.outline, options_a, picture_b.outline, options_b);
  for (size_t i = 0; i < matched.partner.size(); ++i) {
    if (matched.partner[i] == Matched::nobody) continue;
    graph_a["nodes"][i]["partner"] = matched.partner[i];
    graph_b["nodes"][matched.partner[i]]["partner"] = i;
    if (!matched.changed[i]) continue;
    graph_a["nodes"][i]["changed"] = true;
    graph_b["nodes"][matched.partner[i]]["changed"] = true;
  }
  Json data = {{"graphs", Json::array({std::move(graph_a), std::move(graph_b)})}};
  data["texts"] = std::move(texts).list();
  return page(readable(options_a.name + " and " + options_b.name, 200), data);
}

}  // namespace calque
