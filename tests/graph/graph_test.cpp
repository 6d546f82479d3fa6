// Building and changing graphs, as torch.fx's Graph and Node do.
#include "calque/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/graph/interpreter.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/ternary.h"
#include "support/error_support.h"

namespace calque::graph_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names(const std::vector<Node*>& nodes) {
  std::vector<std::string> out;
  for (const Node* n : nodes) out.push_back(n->name());
  return out;
}
std::vector<std::string> names(const Graph& g) {
  std::vector<std::string> out;
  for (const Node* n : g.nodes()) out.push_back(n->name());
  return out;
}
using test::error_of;
Tensor numbers() { return arange(6, DType::float32).view({2, 3}) - 2; }

TEST(Names, T007_explicit_names_never_collide_with_generated_ones) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* a = g.create_node(NodeKind::call_module, "linear_mod", {x}, {}, "foo_1_1");
  Node* b = g.create_node(NodeKind::call_module, "linear_mod", {x}, {}, "foo_1");
  Node* c = g.create_node(NodeKind::call_module, "linear_mod", {x}, {}, "foo");
  Node* d = g.create_node(NodeKind::call_module, "linear_mod", {c}, {}, "foo_1");
  g.output(tuple({a, b, c, d}));
  Graph g2;
  NodeMapping mapping;
  g2.graph_copy(g, mapping);
  g2.call_function("operator.neg", {mapping.at(d)}, {}, "foo_1");
  g2.lint();
  EXPECT_THAT(names(g2), ElementsAre("x", "foo_1_1", "foo_1", "foo", "foo_2", "foo_3"));
}

// The names are those that torch.fx gives.
TEST(Names, are_made_from_targets_by_fxs_rules) {
  Graph g;
  Node* x = g.placeholder("x");
  EXPECT_EQ(g.call_function("aten.add.Tensor", {x, x})->name(), "add_tensor");
  EXPECT_EQ(g.call_function("aten.relu.default", {x})->name(), "relu_default");
  EXPECT_EQ(g.call_function("operator.and_", {x, x})->name(), "and_");
  EXPECT_EQ(g.call_function("builtins.getattr", {x, "shape"})->name(), "getattr_1");
  EXPECT_EQ(g.call_function("builtins.getattr", {x, "shape"})->name(), "getattr_2");
  EXPECT_EQ(g.call_function("torch.nn.functional.linear", {x, x})->name(), "linear");
  EXPECT_EQ(g.call_method("__getitem__", {x, 0})->name(), "getitem");
  EXPECT_EQ(g.call_method("relu_", {x})->name(), "relu_");
  EXPECT_EQ(g.create_node(NodeKind::call_method, "relu", {x}, {}, "1.x")->name(), "_1_x");
  EXPECT_EQ(g.placeholder("*args")->name(), "_args");
  EXPECT_EQ(g.placeholder("inputIds")->name(), "input_ids");
}

TEST(Names, T008_snake_case_of_the_target_that_stays_untouched) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* a = g.call_module("activations.snake_case", {x});
  Node* b = g.call_module("activations.PascalCase", {x});
  Node* c = g.call_module("activations.ALL_CAPS", {x});
  Node* d = g.call_method("max", {x});
  EXPECT_EQ(a->name(), "activations_snake_case");
  EXPECT_EQ(b->name(), "activations_pascal_case");
  EXPECT_EQ(b->target().text(), "activations.PascalCase");
  EXPECT_EQ(c->name(), "activations_all_caps");
  EXPECT_EQ(d->name(), "max_1");
  EXPECT_EQ(d->target().text(), "max");
}

TEST(Graph, T004_an_output_tuple_keeps_its_structure) {
  Graph g;
  Node* x = g.placeholder("x");
  g.output(tuple({x, g.call_function("operator.add", {x, x})}));
  const Value result = Interpreter(g).run({numbers()});
  ASSERT_EQ(result.kind(), Value::Kind::tuple);
  ASSERT_EQ(result.to_items().size(), 2U);
  EXPECT_TRUE(equal(result.to_items()[1].to_tensor(), numbers() + numbers()));
}

TEST(Graph, dict_input_and_a_tuple_with_a_dict_as_output) {
  Graph g;
  Node* d = g.placeholder("d");
  Node* a = g.call_function("operator.getitem", {d, "a"});
  Node* relu = g.call_method("relu", {a});
  g.output(tuple({relu, dict({{"b", a}, {7, relu}})}));
  const Value result = Interpreter(g).run({dict({{"a", numbers()}})});
  EXPECT_TRUE(equal(result.to_items()[0].to_tensor(), numbers().relu()));
  EXPECT_TRUE(equal(result.to_items()[1].to_dict().find("b")->to_tensor(), numbers()));
}

TEST(Graph, a_named_tuple_keeps_its_type_and_fields) {
  Graph g;
  Node* x = g.placeholder("x");
  g.output(StructValue{"collections.namedtuple", "\"my.Pair\"", {"first", "second"}, {x, g.call_method("neg", {x})}});
  const Value result = Interpreter(g).run({numbers()});
  const StructValue& s = result.to_struct();
  EXPECT_EQ(s.context, "\"my.Pair\"");
  EXPECT_THAT(s.fields, ElementsAre("first", "second"));
  EXPECT_TRUE(equal(s.items[1].to_tensor(), numbers().neg()));
}

TEST(Graph, T010_graph_copy_inlines_one_graph_after_another) {
  Graph first;
  first.output(first.call_function("torch.relu", {first.placeholder("x")}));
  Graph second;
  Node* y = second.placeholder("y");
  second.output(second.call_function("torch.neg", {y}));
  Graph both;
  NodeMapping mapping;
  const Value middle = *both.graph_copy(first, mapping);
  NodeMapping mapping2{{y, middle}};
  both.output(*both.graph_copy(second, mapping2));
  both.lint();
  EXPECT_TRUE(equal(Interpreter(both).run({numbers()}).to_tensor(), numbers().relu().neg()));
}

TEST(Users, T012_a_user_counts_once) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* y = g.call_function("torch.relu", {x});
  Node* z = g.call_function("operator.add", {x, x});
  Node* u = g.call_function("torch.neg", {x});
  g.output(tuple({y, z, u}));
  EXPECT_THAT(names(x->users().list()), ElementsAre("relu", "add", "neg"));
  EXPECT_EQ(x->users().size(), 3U);
  EXPECT_EQ(z->all_input_nodes(), (std::vector<Node*>{x}));
  EXPECT_TRUE(x->users().contains(z));
  EXPECT_FALSE(y->users().contains(z));
}

TEST(Users, setting_arguments_moves_a_user_to_the_end) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* relu = g.call_function("torch.relu", {x});
  g.call_function("torch.neg", {x});
  relu->set_args({x});
  EXPECT_THAT(names(x->users().list()), ElementsAre("neg", "relu"));
}

TEST(Users, are_found_inside_every_kind_of_container) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* y = g.placeholder("y");
  Node* n = g.call_function("operator.getitem", {x, tuple({SliceValue{{}, y, {}}, list({dict({{"k", x}})})})},
                            {{"k", StructValue{"t", "", {"f"}, {y}}}});
  EXPECT_THAT(names(n->all_input_nodes()), ElementsAre("x", "y"));
  n->replace_input_with(y, x);
  EXPECT_TRUE(y->users().empty());
  EXPECT_EQ(n->str(), "%getitem = operator.getitem(%x, (slice(None, %x, None), [{'k': %x}]), k=struct('t', '', f=%x))");
}

TEST(Users, T014_replace_all_uses_then_erase) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* relu = g.call_function("torch.relu", {x});
  Node* neg = g.call_function("torch.neg", {relu});
  Node* sin = g.call_function("torch.sin", {relu});
  g.output(tuple({neg, sin}));
  EXPECT_THAT(names(relu->replace_all_uses_with(x, [&](Node* user) { return user == neg; })), ElementsAre("neg"));
  EXPECT_EQ(relu->users().size(), 1U);
  relu->replace_all_uses_with(x);
  g.erase_node(relu);
  g.lint();
  EXPECT_THAT(names(x->users().list()), ElementsAre("neg", "sin"));
  EXPECT_TRUE(relu->erased());
}

TEST(Users, replacing_may_propagate_meta_only_onto_a_node_without_any) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* relu = g.call_function("torch.relu", {x});
  relu->meta.set("key", 7);
  Node* neg = g.call_function("torch.neg", {x});
  Node* user = g.call_function("torch.sin", {relu});
  relu->replace_all_uses_with(neg, {}, true);
  EXPECT_EQ(neg->meta.find("key")->to_int(), 7);
  EXPECT_EQ(user->args()[0].to_node(), neg);
  EXPECT_THAT(error_of([&] { neg->replace_all_uses_with(relu, {}, true); }), HasSubstr("already has meta"));
}

TEST(Users, T015_replace_input_changes_that_node_only) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* y = g.placeholder("y");
  Node* b = g.call_function("torch.relu", {x});
  g.output(b);
  b->replace_input_with(x, y);
  const Tensor in = numbers();
  EXPECT_TRUE(equal(Interpreter(g).run({in * 2, in}).to_tensor(), in.relu()));
}

TEST(Users, T016_update_arg_and_update_kwarg) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* y = g.placeholder("y");
  Node* b = g.call_function("torch.relu", {}, {{"input", x}});
  Node* c = g.call_function("torch.neg", {x});
  g.output(tuple({b, c}));
  b->update_kwarg("input", y);
  c->update_arg(0, y);
  EXPECT_TRUE(x->users().empty());
  EXPECT_EQ(y->users().size(), 2U);
  EXPECT_THAT(error_of([&] { c->update_arg(1, y); }), HasSubstr("out of range"));
}

TEST(Users, T017_insert_arg) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* y = g.placeholder("y");
  Node* out = g.output(x);
  out->insert_arg(0, y);
  EXPECT_EQ(out->args().size(), 2U);
  EXPECT_EQ(y->users().size(), 1U);
  out->insert_arg(2, y);
  EXPECT_EQ(out->args().size(), 3U);
  EXPECT_EQ(y->users().size(), 1U);
  EXPECT_THAT(error_of([&] { out->insert_arg(4, y); }), HasSubstr("between 0 and"));
}

TEST(Users, a_hundred_thousand_users_and_inputs_are_cheap) {
  Graph g;
  Node* x = g.placeholder("x");
  Values all;
  for (int i = 0; i < 100000; ++i) all.push_back(g.call_function("operator.neg", {x}));
  Node* out = g.output(list(all));
  Node* y = nullptr;
  {
    const auto scope = g.inserting_after(x);
    y = g.placeholder("y");
  }
  EXPECT_EQ(x->users().size(), 100000U);
  EXPECT_EQ(out->num_input_nodes(), 100000U);
  x->replace_all_uses_with(y);
  EXPECT_TRUE(x->users().empty());
  out->set_args({x});
  EXPECT_EQ(
      g.eliminate_dead_code([](const Node& n) { return n.kind() == NodeKind::placeholder || n.kind() == NodeKind::output; }),
      true);
  EXPECT_EQ(g.size(), 3U);
}

TEST(Order, T019_prepend_moves_a_node) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* add = g.call_function("operator.add", {x, 1});
  Node* neg = g.call_function("torch.neg", {x});
  g.output(tuple({add, neg}));
  add->prepend(neg);
  g.lint();
  EXPECT_THAT(names(g), ElementsAre("x", "neg", "add", "output"));
  EXPECT_TRUE(neg->comes_before(*add));
  EXPECT_EQ(Interpreter(g).run({numbers()}).to_items().size(), 2U);
}

TEST(Order, insertion_points_are_those_of_fx) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* relu = g.call_function("torch.relu", {x});
  {
    const auto scope = g.inserting_after(relu);
    g.call_function("torch.sin", {x});
    g.call_function("torch.cos", {x});
  }
  {
    const auto scope = g.inserting_before(relu);
    g.call_function("torch.neg", {x});
    g.call_function("torch.abs", {x});
  }
  {
    const auto scope = g.inserting_before();
    g.placeholder("a");
    g.placeholder("b");
  }
  g.output(x);
  EXPECT_THAT(names(g), ElementsAre("b", "a", "x", "neg", "abs_1", "relu", "cos", "sin", "output"));
  for (const Node* n : g.nodes())
    if (n->next()) {
      EXPECT_TRUE(n->comes_before(*n->next()));
    }
  Graph other;
  EXPECT_THAT(error_of([&] { static_cast<void>(other.inserting_after(x)); }), HasSubstr("not in this graph"));
}

TEST(Order, many_insertions_at_one_place_keep_the_order_known) {
  for (const bool after : {false, true}) {
    Graph g;
    Node* x = g.placeholder("x");
    Node* y = g.placeholder("y");
    {
      const Graph::InsertScope scope = after ? g.inserting_after(x) : g.inserting_before(y);
      for (int i = 0; i < 20000; ++i) g.call_function("operator.neg", {x});
    }
    for (const Node* n : g.nodes())
      if (n->next()) {
        ASSERT_TRUE(n->comes_before(*n->next()));
      }
  }
}

TEST(Order, nodes_may_be_erased_while_going_through_them) {
  Graph g;
  Node* x = g.placeholder("x");
  for (int i = 0; i < 10; ++i) g.call_function("operator.neg", {x});
  int seen = 0;
  for (Node* n : g.nodes()) {
    if (n->kind() == NodeKind::placeholder) continue;
    ++seen;
    if (n->next()) g.erase_node(n->next());
    g.erase_node(n);
  }
  EXPECT_EQ(seen, 5);
  EXPECT_EQ(g.size(), 1U);
}

TEST(Order, topological_sort_moves_only_what_must) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* a = g.call_function("torch.relu", {x});
  Node* b = g.call_function("torch.neg", {x});
  Node* c = g.call_function("torch.sin", {b});
  g.output(tuple({a, c}));
  a->set_args({c});
  EXPECT_THROW(g.lint(), UserError);
  g.topological_sort();
  g.lint();
  EXPECT_THAT(names(g), ElementsAre("x", "neg", "sin", "relu", "output"));
  b->set_args({a});
  EXPECT_THAT(error_of([&] { g.topological_sort(); }), HasSubstr("depends on itself"));
}

TEST(Lint, T020_erasing_a_used_node_is_refused) {
  Graph g;
  Node* x = g.placeholder("x");
  g.output(x);
  EXPECT_EQ(error_of([&] { g.erase_node(x); }), "Tried to erase Node x but it still had 1 users in the graph: output");
}

TEST(Lint, T021_a_copy_without_mapping_is_found) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* relu = g.call_function("torch.relu", {x});
  Graph copy;
  copy.node_copy(*relu);
  EXPECT_THAT(error_of([&] { copy.lint(); }), HasSubstr("does not belong to this Graph"));
}

TEST(Lint, T022_use_before_definition_is_found) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* a = g.call_function("torch.relu", {x});
  Node* b = g.call_function("torch.neg", {a});
  g.output(b);
  b->append(a);
  EXPECT_THAT(error_of([&] { g.lint(); }), HasSubstr("was used before it has been defined"));
}

TEST(Lint, a_foreign_node_that_is_gone_does_not_dangle) {
  Graph g;
  {
    Graph other;
    g.output(other.placeholder("x"));
  }
  EXPECT_TRUE(g.output_value().is_none());
}

TEST(Lint, T024_a_dict_key_cannot_be_a_node) {
  Graph g;
  Node* x = g.placeholder("x");
  EXPECT_THAT(error_of([&] { g.output(dict({{x, 1}})); }), HasSubstr("cannot contain a Node"));
  EXPECT_THAT(error_of([&] { g.output(list({dict({{tuple({1, x}), 1}})})); }), HasSubstr("cannot contain a Node"));
  g.output(dict({{7, x}}));
  g.lint();
}

TEST(Copy, T025_a_deep_copy_is_independent) {
  Graph g;
  Node* x = g.placeholder("x");
  g.output(g.call_function("torch.relu", {x}));
  Graph copy = g.copy();
  copy.find_nodes(NodeKind::call_function, "torch.relu").at(0)->set_target("torch.neg");
  EXPECT_TRUE(equal(Interpreter(copy).run({numbers()}).to_tensor(), numbers().neg()));
  EXPECT_TRUE(equal(Interpreter(g).run({numbers()}).to_tensor(), numbers().relu()));
}

TEST(Copy, T026_a_long_chain_is_copied_with_its_users) {
  Graph g;
  Node* x = g.placeholder("x");
  for (int i = 0; i < 50000; ++i) x = g.call_function("torch.relu", {x});
  g.output(x);
  const Graph copy = g.copy();
  ASSERT_EQ(copy.size(), g.size());
  const Node* b = copy.nodes().front();
  for (const Node* a : g.nodes()) {
    ASSERT_EQ(names(a->users().list()), names(b->users().list()));
    b = b->next();
  }
  EXPECT_TRUE(same_graph(g, copy));
}

TEST(Copy, a_moved_graph_keeps_its_nodes) {
  Graph g;
  Node* x = g.placeholder("x");
  Graph moved = std::move(g);
  EXPECT_EQ(&x->graph(), &moved);
  moved.output(moved.call_function("torch.neg", {x}));
  moved.lint();
}

// The expected text is what torch.fx 2.13 prints for the same graph.
TEST(Print, T027_a_graph_as_pytorch_prints_it) {
  Graph g;
  Node* x = g.create_node(NodeKind::placeholder, "x", {3}, {}, {}, "torch.Tensor");
  Node* w = g.get_attr("lin.weight");
  Node* lin = g.call_module("lin", {x});
  Node* relu = g.call_method("relu", {lin});
  Node* add = g.call_function("operator.add", {relu, w}, {});
  Node* sum = g.call_function("torch.sum", {add}, {{"dim", -1}, {"keepdim", true}});
  Node* op = g.call_function("aten.add.Tensor", {sum, 2.0}, {{"alpha", 3}});
  Node* item = g.call_method(
      "__getitem__", {op, SliceValue{{}, x, {}}, dict({{"a", x}, {1, 2}}), DType::float32, INFINITY, "hi", Device()});
  g.output(dict({{"a", item}, {"b", list({op})}}));
  EXPECT_EQ(g.format_graph(), R"(graph():
    %x : torch.Tensor [num_users=2] = placeholder[target=x](default=3)
    %lin_weight : [num_users=1] = get_attr[target=lin.weight]
    %lin : [num_users=1] = call_module[target=lin](args = (%x,), kwargs = {})
    %relu : [num_users=1] = call_method[target=relu](args = (%lin,), kwargs = {})
    %add : [num_users=1] = call_function[target=operator.add](args = (%relu, %lin_weight), kwargs = {})
    %sum_1 : [num_users=1] = call_function[target=torch.sum](args = (%add,), kwargs = {dim: -1, keepdim: True})
    %add_tensor : [num_users=2] = call_function[target=torch.ops.aten.add.Tensor](args = (%sum_1, 2.0), kwargs = {alpha: 3})
    %getitem : [num_users=1] = call_method[target=__getitem__](args = (%add_tensor, slice(None, x, None), {a: %x, 1: 2}, torch.float32, inf, hi, cpu), kwargs = {})
    return {'a': getitem, 'b': [add_tensor]})");
}

TEST(Hooks, T060_create_erase_and_replace_hooks_fire) {
  Graph g;
  std::string log;
  const int a = g.on_create([&](Node& n) { log += "create1 " + n.name() + ";"; });
  const int b = g.on_create([&](Node& n) { log += "create2 " + n.name() + ";"; });
  const int c = g.on_erase([&](Node& n) { log += "erase " + n.name() + ";"; });
  const int d = g.on_replace([&](Node& old, const std::string& fresh, Node& user) {
    log += old.name() + "->" + fresh + " in " + user.name() + ";";
  });
  Node* x = g.placeholder("x");
  Node* y = g.placeholder("y");
  Node* relu = g.call_function("torch.relu", {x});
  EXPECT_EQ(log, "create1 x;create2 x;create1 y;create2 y;create1 relu;create2 relu;");
  log.clear();
  x->replace_all_uses_with(y);
  g.erase_node(relu);
  EXPECT_EQ(log, "x->y in relu;erase relu;");
  for (const int handle : {a, b, c, d}) g.remove_hook(handle);
  EXPECT_TRUE(g.hooks()->create.empty() && g.hooks()->erase.empty() && g.hooks()->replace.empty());
}

TEST(Equality, is_up_to_names) {
  Graph a;
  Node* x = a.placeholder("x");
  a.output(a.call_function("torch.add", {x, 1}));
  Graph b;
  Node* y = b.placeholder("y");
  Node* sum = b.call_function("torch.add", {y, 1}, {}, "total");
  b.output(sum);
  std::string why;
  EXPECT_TRUE(same_graph(a, b, &why)) << why;
  sum->update_arg(1, 2);
  EXPECT_FALSE(same_graph(a, b, &why));
  EXPECT_THAT(why, HasSubstr("total"));
}

TEST(Find, by_kind_and_target) {
  Graph g;
  Node* x = g.placeholder("x");
  g.call_function("torch.relu", {x});
  g.call_method("relu", {x});
  EXPECT_EQ(g.find_nodes(NodeKind::call_function, "torch.relu").size(), 1U);
  EXPECT_EQ(g.find_nodes(NodeKind::call_method, "relu").size(), 1U);
  EXPECT_EQ(g.find_nodes(NodeKind::call_method, "neg").size(), 0U);
  EXPECT_EQ(g.find_nodes(NodeKind::placeholder).size(), 1U);
  EXPECT_EQ(g.find_node("x"), x);
}

}  // namespace
}  // namespace calque::graph_test
