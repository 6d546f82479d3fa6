// Tables, DOT, JSON, pictures and pages.
#include "calque/graph/draw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>

#include "calque/graph/text.h"
#include "graph/draw/labels.h"

namespace calque::draw_test {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Graph example() {
  return parse_graph(R"(
    symbol s0 in [2, 100] = 5
    %x : f32[s0, 3] = placeholder
    %unused = placeholder
    %w : f32[3] = get_attr[layer.weight]
    %add : f32[s0, 3] = aten.add.Tensor(%x, %w, alpha=2)
    %end = call_method[to](%add, torch.float16, text='</script>"<b>')
    return (%end, {'n': inf}))");
}

TEST(Tabular, is_that_of_pytorch) {
  EXPECT_EQ(tabular(example()),
            R"(opcode         name    target           args                  kwargs
-------------  ------  ---------------  --------------------  -------------------------
placeholder    x       x                ()                    {}
placeholder    unused  unused           ()                    {}
get_attr       w       layer.weight     ()                    {}
call_function  add     aten.add.Tensor  (x, w)                {'alpha': 2}
call_method    end     to               (add, torch.float16)  {'text': '</script>"<b>'}
output         output  output           ((end, {'n': inf}),)  {})");
}

TEST(Dot, has_nodes_and_edges) {
  const std::string dot = to_dot(example());
  EXPECT_THAT(dot, HasSubstr("digraph \"graph\" {"));
  EXPECT_THAT(dot, HasSubstr("\"add\" [label=\"add\\naten.add.Tensor\\nf32[s0, 3]\""));
  EXPECT_THAT(dot, HasSubstr("\"x\" -> \"add\";"));
  DrawOptions options;
  options.include_get_attr = false;
  options.skip_unused_inputs = true;
  EXPECT_THAT(to_dot(example(), options), Not(HasSubstr("layer.weight")));
  EXPECT_THAT(to_dot(example(), options), Not(HasSubstr("unused")));
}

TEST(Json, holds_nodes_arguments_users_values_and_symbols) {
  const auto j = nlohmann::json::parse(to_json(example(), 1));
  const auto expected = nlohmann::json::parse(R"([
    {"name": "x", "op": "placeholder", "target": "x", "args": [], "kwargs": {}, "users": ["add"], "val": "f32[s0, 3]"},
    {"name": "unused", "op": "placeholder", "target": "unused", "args": [], "kwargs": {}, "users": []},
    {"name": "w", "op": "get_attr", "target": "layer.weight", "args": [], "kwargs": {}, "users": ["add"], "val": "f32[3]"},
    {"name": "add", "op": "call_function", "target": "aten.add.Tensor", "args": [{"node": "x"}, {"node": "w"}],
     "kwargs": {"alpha": 2}, "users": ["end"], "val": "f32[s0, 3]"},
    {"name": "end", "op": "call_method", "target": "to", "args": [{"node": "add"}, {"dtype": "torch.float16"}],
     "kwargs": {"text": "</script>\"<b>"}, "users": ["output"]},
    {"name": "output", "op": "output", "target": "output",
     "args": [{"tuple": [{"node": "end"}, {"dict": [["n", {"float": "inf"}]]}]}], "kwargs": {}, "users": []}])");
  ASSERT_EQ(j["nodes"].size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    for (const auto& [key, value] : expected[i].items()) EXPECT_EQ(j["nodes"][i][key], value) << i << " " << key;
  ASSERT_EQ(j["symbols"].size(), 1U);
  EXPECT_EQ(j["symbols"][0]["name"], "s0");
  EXPECT_EQ(j["symbols"][0]["lower"], 2);
  EXPECT_EQ(j["symbols"][0]["upper"], 100);
  EXPECT_EQ(j["symbols"][0]["example"], 5);
}

// ---- pictures and pages -----------------------------------------------------------------------------------------------

// A stack of modules for a node, "layers.0/attention".
void put_under(Graph& graph, const char* node, std::vector<std::string> paths) {
  auto stack = std::make_shared<ModuleStack>();
  stack->push_back({"", "", "Model"});
  for (const std::string& path : paths) stack->push_back({path, path, "Layer"});
  Node* found = graph.find_node(node);
  ASSERT_NE(found, nullptr) << node;
  found->meta.nn_module_stack = stack;
}

// Two layers of the same calls, and what is no box: weights, a transposed weight, sizes, items of tuples, a check.
Graph layers() {
  Graph graph = parse_graph(R"(
    symbol s0 in [2, 100] = 5
    %w0 : f32[4, 4] = get_attr[weight0]
    %w1 : f32[4, 4] = get_attr[weight1]
    %x : f32[s0, 4] = placeholder
    %t : f32[4, 4] = aten.t.default(%w0)
    %mm : f32[s0, 4] = aten.mm.default(%x, %t)
    %relu : f32[s0, 4] = aten.relu.default(%mm)
    %t_1 : f32[4, 4] = aten.t.default(%w1)
    %mm_1 : f32[s0, 4] = aten.mm.default(%relu, %t_1)
    %relu_1 : f32[s0, 4] = aten.relu.default(%mm_1)
    %rows : Sym(s0) = aten.sym_size.int(%relu_1, 0)
    %twice : Sym(2*s0) = operator.mul(%rows, 2)
    %top : (f32[s0], i64[s0]) = aten.max.dim(%relu_1, 1)
    %vals : f32[s0] = operator.getitem(%top, 0)
    %view : f32[s0] = aten.view.default(%vals, [%rows])
    return (%view,))");
  for (const char* n : {"t", "mm"}) put_under(graph, n, {"layers.0", "layers.0.linear"});
  put_under(graph, "relu", {"layers.0"});
  for (const char* n : {"t_1", "mm_1"}) put_under(graph, n, {"layers.1", "layers.1.linear"});
  put_under(graph, "relu_1", {"layers.1"});
  for (const char* n : {"rows", "twice", "top", "vals", "view"}) put_under(graph, n, {});
  return graph;
}

DrawOptions named_weights() {
  DrawOptions options;
  options.weights = {{"w0", "layers.0.linear.weight"}, {"w1", "layers.1.linear.weight"}};
  return options;
}

std::vector<std::string> titles(const draw::Picture& picture, uint32_t module) {
  std::vector<std::string> out;
  for (const uint32_t c : picture.outline.boxes[module].children) out.push_back(picture.labels[c].title);
  return out;
}

TEST(Picture, shows_modules_with_what_they_hold) {
  const Graph graph = layers();
  const draw::Picture picture = draw::picture_of(graph, named_weights());
  EXPECT_THAT(titles(picture, 0), ElementsAre("x", "layers.0", "layers.1", "max", "view", "output"));
  EXPECT_THAT(titles(picture, picture.outline.boxes[0].children[1]), ElementsAre("mm", "relu"));
}

TEST(Picture, folds_weights_under_their_own_names) {
  const Graph graph = layers();
  const draw::Picture picture = draw::picture_of(graph, named_weights());
  const uint32_t mm = picture.outline.box_of[graph.find_node("mm")->id()];
  ASSERT_EQ(picture.outline.boxes[mm].weights.size(), 1U);
  EXPECT_EQ(picture.outline.boxes[mm].weights[0].path, "layers.0.linear.weight");
  EXPECT_THAT(picture.labels[mm].lines, ElementsAre("f32[s0, 4]", "linear.weight [4, 4] t"));
  EXPECT_EQ(picture.outline.box_of[graph.find_node("w0")->id()], mm);
  EXPECT_EQ(picture.outline.boxes[0].parameters, 32);
}

TEST(Picture, folds_sizes_and_items_of_tuples) {
  const Graph graph = layers();
  const draw::Outline outline = draw::outline_of(graph, {});
  const uint32_t max = outline.box_of[graph.find_node("top")->id()];
  EXPECT_EQ(outline.box_of[graph.find_node("vals")->id()], max);
  EXPECT_THAT(outline.users[max], ElementsAre(outline.box_of[graph.find_node("view")->id()]));
  for (const draw::OutlineBox& box : outline.boxes)
    if (box.node) {
      EXPECT_THAT(box.node->name(), Not(AnyOf("rows", "twice")));
    }
}

TEST(Picture, modules_of_the_same_calls_are_alike) {
  const Graph graph = layers();
  const draw::Outline outline = draw::outline_of(graph, {});
  const auto kind = [&](size_t child) { return outline.boxes[outline.boxes[0].children[child]].kind; };
  EXPECT_EQ(kind(1), kind(2));
  EXPECT_NE(kind(1), 0U);
  Graph other = layers();
  other.find_node("relu_1")->set_target(Target::resolve("aten.sigmoid.default"));
  const draw::Outline changed = draw::outline_of(other, {});
  EXPECT_EQ(changed.boxes[changed.boxes[0].children[1]].kind, 0U);
}

TEST(Picture, a_value_that_is_read_from_a_tensor_stays_a_box) {
  const Graph graph = parse_graph(R"(
    symbol u0 in [0, 12]
    %x : i64[1] = placeholder
    %item : Sym(u0) = aten._local_scalar_dense.default(%x)
    %next : Sym(u0 + 1) = operator.add(%item, 1)
    %full : f32[u0 + 1] = aten.full.default([%next], 0)
    return (%full,))");
  EXPECT_THAT(titles(draw::picture_of(graph, {}), 0), ElementsAre("x", "_local_scalar_dense", "add", "full", "output"));
}

// The shown boxes of one module, and of the root, are apart; lines keep out of them.
void expect_tidy(const draw::Picture& picture) {
  const draw::Arrangement a = draw::arrange(picture);
  for (size_t i = 0; i < a.boxes.size(); ++i)
    for (size_t j = i + 1; j < a.boxes.size(); ++j) {
      const draw::Rect& r = a.boxes[i].rect;
      const draw::Rect& q = a.boxes[j].rect;
      const bool apart = r.x + r.width < q.x || q.x + q.width < r.x || r.y + r.height < q.y || q.y + q.height < r.y;
      const bool inside = a.boxes[i].open && q.x > r.x && q.y > r.y && q.x + q.width < r.x + r.width + 0.01 &&
                          q.y + q.height < r.y + r.height;
      EXPECT_TRUE(apart || (inside && picture.outline.holds(a.boxes[i].box, a.boxes[j].box)))
          << picture.labels[a.boxes[i].box].title << " and " << picture.labels[a.boxes[j].box].title;
    }
  for (const draw::ArrangedStroke& s : a.strokes)
    for (size_t k = 1; k < s.points.size(); ++k) {
      EXPECT_GE(s.points[k].y, s.points[k - 1].y - 0.01);
      for (const draw::ArrangedBox& b : a.boxes) {
        if (b.open) continue;
        // The part between two points stays between them, across and down.
        const auto [left, right] = std::minmax(s.points[k].x, s.points[k - 1].x);
        const bool above = s.points[k].y <= b.rect.y + 0.1;
        const bool below = s.points[k - 1].y >= b.rect.y + b.rect.height - 0.1;
        EXPECT_TRUE(above || below || right < b.rect.x || left > b.rect.x + b.rect.width) << picture.labels[b.box].title;
      }
    }
}

TEST(Picture, boxes_are_apart_and_lines_keep_out_of_them) {
  const Graph graph = layers();
  draw::Picture picture = draw::picture_of(graph, named_weights());
  expect_tidy(picture);
  for (uint32_t b = 1; b < picture.open.size(); ++b) {
    picture.open[b] = false;
    expect_tidy(picture);
  }
}

TEST(Picture, is_tidy_for_random_graphs_in_random_modules) {
  std::mt19937 random(1);
  for (int round = 0; round < 40; ++round) {
    Graph graph;
    std::vector<Node*> nodes = {graph.placeholder("x"), graph.placeholder("y")};
    auto stack = std::make_shared<ModuleStack>();
    for (int k = 0; k < 40; ++k) {
      if (random() % 3 == 0) {
        auto next = std::make_shared<ModuleStack>(*stack);
        next->resize(random() % (next->size() + 1));
        for (size_t more = random() % 3; more-- > 0;) {
          const std::string key = "m" + std::to_string(random() % 4);
          next->push_back({key + std::to_string(next->size()), key, "M"});
        }
        stack = next;
      }
      const auto some = [&] { return nodes[random() % 2 ? random() % nodes.size() : nodes.size() - 1 - random() % 2]; };
      nodes.push_back(graph.call_function(Target::resolve("aten.add.Tensor"), {some(), some()}));
      nodes.back()->meta.nn_module_stack = stack;
    }
    graph.output(tuple({nodes.back(), nodes[10]}));
    draw::Picture picture = draw::picture_of(graph, {});
    for (int change = 0; change < 3; ++change) {
      expect_tidy(picture);
      for (uint32_t b = 1; b < picture.open.size(); ++b) picture.open[b] = !picture.outline.boxes[b].node && random() % 2;
    }
  }
}

TEST(Picture, depth_says_what_is_open) {
  const Graph graph = layers();
  DrawOptions options;
  options.depth = 0;
  EXPECT_THAT(to_svg(graph, options), Not(HasSubstr(">relu<")));
  options.depth = 1;
  EXPECT_THAT(to_svg(graph, options), HasSubstr(">relu<"));
}

TEST(Svg, texts_fit_their_boxes) {
  Graph graph = parse_graph(R"(
    %x : f32[1000000, 1000000, 1000000] = placeholder
    %a_name_that_is_much_longer_than_any_box_could_ever_be_and_goes_on : f32[3] = placeholder
    %add : f32[3] = aten.add.Tensor(%x, %x, alpha=123456789)
    return (%add,))");
  graph.find_node("add")->set_name("\xe5\x90\x8d\xe5\x89\x8d \xff \xe2\x80\xae<b>&\"'");
  const std::string svg = to_svg(graph);
  static const std::regex rect(R"re(<rect class="\w+" x="([-\d.]+)" y="[-\d.]+" width="([\d.]+)")re");
  static const std::regex text(R"re(<text[^>]* x="([-\d.]+)" y="[-\d.]+" textLength="([\d.]+)")re");
  size_t texts = 0;
  for (size_t at = svg.find("<g>"); at != std::string::npos; at = svg.find("<g>", at + 1)) {
    const std::string box = svg.substr(at, svg.find("</g>", at) - at);
    std::smatch r;
    ASSERT_TRUE(std::regex_search(box, r, rect));
    for (std::sregex_iterator t(box.begin(), box.end(), text); t != std::sregex_iterator(); ++t, ++texts) {
      EXPECT_GE(std::stod((*t)[1]), std::stod(r[1]));
      EXPECT_LE(std::stod((*t)[1]) + std::stod((*t)[2]), std::stod(r[1]) + std::stod(r[2]) + 0.1);
    }
  }
  EXPECT_EQ(texts, 8U);
  EXPECT_EQ(svg, to_svg(graph)) << "the same graph gives the same picture";
}

TEST(Svg, holds_no_characters_that_xml_refuses) {
  EXPECT_EQ(draw::readable(std::string("a\x01\x00\x1b", 4) + "\xff\xe2\x80\xa8\xe2\x80\xae\xef\xbf\xbf"),
            "a\\u0001\\u0000\\u001b\xef\xbf\xbd\\u2028\\u202e\\uffff");
  EXPECT_EQ(draw::readable("0123456789", 5),
            "01\xe2\x80\xa6"
            "89");
}

nlohmann::json page_data(const std::string& html) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t at = html.find(begin) + begin.size();
  return nlohmann::json::parse(html.substr(at, html.find("</script>", at) - at));
}

TEST(Html, is_one_page_that_asks_for_nothing) {
  DrawOptions options;
  options.name = "a <graph> & more";
  const std::string html = to_html(example(), options);
  EXPECT_THAT(html, HasSubstr("<title>a &lt;graph> &amp; more</title>"));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  EXPECT_THAT(html, Not(HasSubstr("http://")));
  EXPECT_THAT(html, Not(HasSubstr("https://")));
}

TEST(Html, text_of_the_graph_cannot_end_the_script) {
  Graph graph = example();
  graph.find_node("add")->set_name("</script><script>alert(1)</script>");
  const nlohmann::json data = page_data(to_html(graph));
  EXPECT_EQ(data["graphs"][0]["nodes"][3]["name"], "</script><script>alert(1)</script>");
  size_t ends = 0;
  const std::string html = to_html(graph);
  for (size_t at = html.find("</script>"); at != std::string::npos; at = html.find("</script>", at + 1)) ++ends;
  EXPECT_EQ(ends, 2U);
}

TEST(Html, an_empty_graph_is_a_page_too) { EXPECT_EQ(page_data(to_html(Graph()))["graphs"][0]["boxes"].size(), 1U); }

// By node of A: "same", "changed" or "" (not in B).
std::vector<std::string> states(const nlohmann::json& graph) {
  std::vector<std::string> out;
  for (const nlohmann::json& n : graph["nodes"])
    out.push_back(!n.contains("partner") ? "" : n.contains("changed") ? "changed" : "same");
  return out;
}

TEST(Differences, an_inserted_node_leaves_the_others_what_they_are) {
  const Graph a = parse_graph(R"(
    %x : f32[3] = placeholder
    %add : f32[3] = aten.add.Tensor(%x, %x)
    %add_1 : f32[3] = aten.add.Tensor(%add, %x)
    return (%add_1,))");
  const Graph b = parse_graph(R"(
    %x : f32[3] = placeholder
    %add : f32[3] = aten.add.Tensor(%x, %x)
    %relu : f32[3] = aten.relu.default(%add)
    %add_1 : f32[3] = aten.add.Tensor(%relu, %x)
    return (%add_1,))");
  const nlohmann::json data = page_data(to_html(a, {}, b, {}));
  EXPECT_THAT(states(data["graphs"][0]), ElementsAre("same", "same", "changed", "same"));
  EXPECT_THAT(states(data["graphs"][1]), ElementsAre("same", "same", "", "changed", "same"));
}

TEST(Differences, names_do_not_count) {
  const Graph a = parse_graph("%x : f32[3] = placeholder\n%add : f32[3] = aten.add.Tensor(%x, 1)\nreturn (%add,)");
  const Graph b = parse_graph("%x : f32[3] = placeholder\n%sum : f32[3] = aten.add.Tensor(%x, 1)\nreturn (%sum,)");
  EXPECT_THAT(states(page_data(to_html(a, {}, b, {}))["graphs"][0]), ElementsAre("same", "same", "same"));
}

TEST(Differences, a_changed_argument_is_a_change) {
  const Graph a = layers();
  Graph b = layers();
  b.find_node("top")->update_arg(1, 0);
  const nlohmann::json data = page_data(to_html(a, named_weights(), b, named_weights()));
  for (const nlohmann::json& n : data["graphs"][0]["nodes"]) {
    EXPECT_TRUE(n.contains("partner")) << n["name"];
    EXPECT_EQ(n.contains("changed"), n["name"] == "top") << n["name"];
  }
}

}  // namespace
}  // namespace calque::draw_test
