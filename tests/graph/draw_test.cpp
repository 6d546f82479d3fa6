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

TEST(Tabular, IsThatOfPyTorch) {
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

TEST(Dot, HasNodesAndEdges) {
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

TEST(Json, HoldsEverything) {
  const auto j = nlohmann::json::parse(to_json(example(), 1));
  ASSERT_EQ(j["nodes"].size(), 6U);
  EXPECT_EQ(j["nodes"][3]["target"], "aten.add.Tensor");
  EXPECT_EQ(j["nodes"][3]["args"][0]["node"], "x");
  EXPECT_EQ(j["nodes"][3]["kwargs"]["alpha"], 2);
  EXPECT_EQ(j["nodes"][3]["users"][0], "end");
  EXPECT_EQ(j["nodes"][3]["val"], "f32[s0, 3]");
  EXPECT_EQ(j["symbols"][0]["upper"], 100);
}

TEST(Html, IsOneSelfContainedPage) {
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

TEST(Html, AnEmptyGraphIsAPageToo) { EXPECT_THAT(to_html(Graph()), HasSubstr("const boxes=[];")); }

}  // namespace
}  // namespace calque
