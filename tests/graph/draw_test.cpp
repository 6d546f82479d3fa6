// Tables, DOT, JSON and HTML.
#include "calque/graph/draw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "calque/graph/text.h"

namespace calque {
namespace {

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

TEST(Html, is_one_self_contained_page) {
  DrawOptions options;
  options.name = "a <graph> & more";
  const std::string html = to_html(example(), options);
  EXPECT_THAT(html, HasSubstr("<title>a &lt;graph&gt; &amp; more</title>"));
  EXPECT_THAT(html, Not(HasSubstr("src=")));
  EXPECT_THAT(html, Not(HasSubstr("href=")));
  // The graph's own text cannot end the script.
  EXPECT_EQ(html.find("</script>"), html.rfind("</script>"));
  EXPECT_THAT(html, HasSubstr("\\u003c/script>"));
}

TEST(Html, an_empty_graph_is_a_page_too) { EXPECT_THAT(to_html(Graph()), HasSubstr("const boxes=[];")); }

}  // namespace
}  // namespace calque
