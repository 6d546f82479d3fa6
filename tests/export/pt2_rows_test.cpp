// Conformance rows of area serde: what a saved program holds, and that it survives saving and loading.
#include <gtest/gtest.h>

#include <set>

#include "calque/base/error.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/library.h"
#include "export/pt2_support.h"
#include "support/conformance.h"

namespace calque::pt2_rows_test {
namespace {

using namespace pt2_test;
using nlohmann::json;

std::vector<const Node*> call_nodes(const Graph& graph) {
  std::vector<const Node*> out;
  for (const Node* n : graph.nodes())
    if (n->kind() == NodeKind::call_function) out.push_back(n);
  return out;
}

// Same nodes, targets and arguments, and every value's shape and dtype.
void expect_same(const ExportedProgram& a, const ExportedProgram& b) {
  std::string why;
  EXPECT_TRUE(same_graph(a.graph(), b.graph(), &why, true)) << why;
  EXPECT_EQ(a.graph_module().print_readable(), b.graph_module().print_readable());
}

std::set<std::string> result_names(const json& node) {
  std::set<std::string> names;
  for (const json& o : node.at("outputs")) {
    if (o.contains("as_tensors"))
      for (const json& t : o.at("as_tensors")) names.insert(t.at("name").get<std::string>());
    else
      names.insert(o.at("as_tensor").at("name").get<std::string>());
  }
  return names;
}

const json& argument(const json& node, const std::string& name) {
  for (const json& input : node.at("inputs"))
    if (input.at("name") == name) return input.at("arg");
  throw UserError("no argument " + name);
}

TEST(SerdeRows, T362_a_round_trip_keeps_nodes_and_values) {
  const auto program = load_golden("basic");
  const auto again = round_trip(*program);
  ASSERT_EQ(call_nodes(program->graph()).size(), call_nodes(again->graph()).size());
  for (size_t i = 0; i < call_nodes(program->graph()).size(); ++i) {
    const Node* a = call_nodes(program->graph())[i];
    const Node* b = call_nodes(again->graph())[i];
    EXPECT_EQ(a->target().str(), b->target().str());
    EXPECT_EQ(str(a->meta.val.to_tensor().sym_sizes()), str(b->meta.val.to_tensor().sym_sizes()));
    EXPECT_EQ(a->meta.val.to_tensor().dtype(), b->meta.val.to_tensor().dtype());
  }
  expect_same(*program, *again);
  EXPECT_EQ(difference(*again, "basic"), "");
  EXPECT_TRUE(again->graph().placeholders().at(0)->meta.val.to_tensor().requires_grad());
}

TEST(SerdeRows, T363_saved_to_memory_and_loaded) {
  const auto again = round_trip(*load_golden("two_layers_dynamic"));
  EXPECT_EQ(difference(*again, "two_layers_dynamic"), "");
}

TEST(SerdeRows, T365_extra_files_come_back) {
  SaveProgramOptions options;
  options.extra_files = {{"extra.txt", "moo"}};
  const auto bytes = std::make_shared<const std::string>(serialize_program(*load_golden("basic"), options));
  const auto archive = Pt2Archive::from_bytes(std::as_bytes(std::span(*bytes)), bytes);
  EXPECT_EQ(archive.extra_files().at("extra.txt"), "moo");
  EXPECT_EQ(Pt2Archive::open(golden("several.pt2")).extra_files(),
            (std::map<std::string, std::string>{{"extra.txt", "moo"}, {"folder/é.txt", "ça"}}));
}

TEST(SerdeRows, T366_another_version_is_refused) {
  const std::string old = read_file(golden("old_form.pt2"));
  try {
    load_bytes(with_entry(old, "version", "-1.1"));
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::bad_file);
    EXPECT_NE(std::string(e.what()).find("Serialized version '-1.1' does not match our current schema version"),
              std::string::npos)
        << e.what();
  }
  EXPECT_THROW(load_bytes(with_entry(read_file(golden("basic.pt2")), "archive_version", "-1")), UserError);
}

TEST(SerdeRows, T368_lifted_constants_survive) {
  for (const char* name : {"constants", "state"}) {
    const auto program = load_golden(name);
    EXPECT_FALSE(program->constants().empty());
    EXPECT_EQ(difference(*round_trip(*program), name), "");
  }
}

TEST(SerdeRows, T369_example_inputs_survive) {
  const auto program = load_golden("kwargs");
  const auto again = round_trip(*program);
  ASSERT_TRUE(again->parts().example_inputs.has_value());
  const ExampleInputs& inputs = *again->parts().example_inputs;
  ASSERT_EQ(inputs.args.size(), 1U);
  ASSERT_EQ(inputs.kwargs.size(), 2U);
  const Tensor x = inputs.args[0].to_tensor();
  Tensor y;
  Tensor z;
  for (const auto& [key, value] : inputs.kwargs) (key == "y" ? y : z) = value.to_tensor();
  const Values given = golden_inputs(*program, "kwargs");
  EXPECT_TRUE(equal(x + y * z, program->run_flat(given).at(0).to_tensor()));
}

TEST(SerdeRows, T370_three_results_are_one_node_with_three_names) {
  const json program = saved_json(*load_golden("several_results"));
  const json& node = node_of(program, "torch.ops.aten.native_layer_norm.default");
  ASSERT_EQ(node.at("outputs").size(), 3U);
  EXPECT_EQ(result_names(node).size(), 3U);
  for (const json& n : program.at("graph_module").at("graph").at("nodes"))
    EXPECT_EQ(n.at("target").get<std::string>().find("getitem"), std::string::npos);
}

TEST(SerdeRows, T371_a_list_of_tensors_is_one_result) {
  const json program = saved_json(*load_golden("list_result"));
  const json& node = node_of(program, "torch.ops.aten.split_with_sizes.default");
  ASSERT_EQ(node.at("outputs").size(), 1U);
  EXPECT_EQ(node.at("outputs")[0].at("as_tensors").size(), 3U);
  EXPECT_EQ(result_names(node).size(), 3U);
}

TEST(SerdeRows, T372_unused_results_are_written_too) {
  const json program = saved_json(*load_golden("some_unused"));
  EXPECT_EQ(node_of(program, "torch.ops.aten.var_mean.correction").at("outputs").size(), 2U);
  // A result that nobody takes still has a name.
  ExportedProgram copy = copy_of(*load_golden("some_unused"));
  for (Node* n : copy.graph().node_list())
    if (n->name() == "getitem_1") copy.graph().erase_node(n);
  EXPECT_EQ(node_of(saved_json(copy), "torch.ops.aten.var_mean.correction").at("outputs").size(), 2U);
}

TEST(SerdeRows, T374_no_upper_bound_is_null) {
  const json program = saved_json(*load_golden("two_layers_dynamic"));
  size_t unbounded = 0;
  for (const auto& [symbol, range] : program.at("range_constraints").items()) unbounded += range.at("max_val").is_null();
  EXPECT_EQ(unbounded, 1U);
}

TEST(SerdeRows, T376_keyword_arguments_are_named_and_typed) {
  const json program = saved_json(*load_golden("keyword_default"));
  const json& node = node_of(program, "torch.ops.aten.searchsorted.Tensor");
  EXPECT_EQ(node.at("inputs").size(), 4U);
  EXPECT_EQ(argument(node, "right").at("as_bool"), true);
  EXPECT_EQ(argument(node, "side").at("as_string"), "right");
}

TEST(SerdeRows, T377_an_empty_list_of_integers_is_one) {
  const json program = saved_json(*load_golden("empty_int_list"));
  EXPECT_EQ(argument(node_of(program, "torch.ops.aten.sum.dim_IntList"), "dim"), (json{{"as_ints", json::array()}}));
}

TEST(SerdeRows, T380_symbolic_integers_survive) {
  const auto program = load_golden("shape_arithmetic");
  const auto again = round_trip(*program);
  expect_same(*program, *again);
  const Tensor x = ones({5, 7});
  const Values results = again->run_flat({x});
  EXPECT_EQ(results.at(0).to_int(), 11);
  EXPECT_EQ(results.at(1).to_int(), 3);
  EXPECT_EQ(str(results.at(2).to_tensor().sizes()), "[35]");
}

TEST(SerdeRows, T382_modules_keep_their_metadata) {
  const auto program = load_golden("two_layers_dynamic");
  const auto again = round_trip(*program);
  const auto before = call_nodes(program->graph());
  const auto after = call_nodes(again->graph());
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    ASSERT_TRUE(after[i]->meta.nn_module_stack) << after[i]->name();
    EXPECT_EQ(*before[i]->meta.nn_module_stack, *after[i]->meta.nn_module_stack);
    EXPECT_EQ(*before[i]->meta.stack_trace, *after[i]->meta.stack_trace);
    EXPECT_EQ(*before[i]->meta.torch_fn, *after[i]->meta.torch_fn);
  }
  EXPECT_EQ(before.at(0)->meta.nn_module_stack->back().path, "a");
  EXPECT_EQ(before.at(0)->meta.nn_module_stack->back().type, "torch.nn.modules.linear.Linear");
  // The layer that is called twice keeps its two calls apart.
  EXPECT_NE(before.at(0)->meta.nn_module_stack->back().key, before.at(1)->meta.nn_module_stack->back().key);
}

TEST(SerdeRows, T383_subgraphs_survive) {
  for (const char* name : {"cond", "nested_cond", "mapped", "while_loop"}) {
    const auto program = load_golden(name);
    const auto again = round_trip(*program);
    expect_same(*program, *again);
    EXPECT_FALSE(again->graph_module().children().empty());
    for (const auto& [path, child] : program->parts().graph_module->named_modules()) {
      const auto* graph = dynamic_cast<const GraphModule*>(child);
      if (path.empty() || !graph) continue;
      const auto* other = dynamic_cast<const GraphModule*>(again->graph_module().find_submodule(path));
      ASSERT_TRUE(other) << path;
      std::string why;
      EXPECT_TRUE(same_graph(graph->graph(), other->graph(), &why, true)) << path << ": " << why;
    }
    EXPECT_EQ(difference(*again, name), "") << name;
  }
}

TEST(SerdeRows, T385_optional_results_of_an_operator_of_the_users_own) {
  static const bool registered = [] {
    Library library("pt2_cases");
    library.def("pair(Tensor x, Tensor? y) -> (Tensor, Tensor?)")
        .composite([](const Tensor& x, const Tensor& y) -> std::tuple<Tensor, Tensor> {
          return {x + 1, y.defined() ? y * 2 : Tensor()};
        });
    return true;
  }();
  EXPECT_TRUE(registered);
  const auto program = load_golden("custom_optional");
  const auto again = round_trip(*program);
  expect_same(*program, *again);
  EXPECT_EQ(difference(*again, "custom_optional"), "");
}

TEST(SerdeRows, T386_functionalized_writes_survive) {
  const auto program = load_golden("auto_functionalized_two");
  const auto again = round_trip(*program);
  expect_same(*program, *again);
  EXPECT_NE(again->graph_module().code().find(
                "torch.ops.higher_order.auto_functionalized_v2(torch.ops.pt2_cases.write_two.default, "),
            std::string::npos);
  static const bool registered = [] {
    Library library("pt2_cases");
    library.def("write_two(Tensor(a!) x, Tensor(b!)[] ys) -> (Tensor, Tensor)")
        .composite([](const Tensor& x, TensorList ys) -> std::tuple<Tensor, Tensor> {
          x.sub_(1);
          ys[0].mul_(3);
          return {x + ys[1], x * 2};
        });
    return true;
  }();
  EXPECT_TRUE(registered);
  EXPECT_EQ(difference(*load_bytes(serialize_program(*again)), "auto_functionalized_two"), "");
}

TEST(SerdeRows, T387_constant_outputs_survive) {
  const auto again = round_trip(*load_golden("constant_outputs"));
  const Values results = again->run_flat(golden_inputs(*again, "constant_outputs"));
  ASSERT_EQ(results.size(), 5U);
  EXPECT_TRUE(results[0].is_none());
  EXPECT_EQ(results[1].to_int(), 1024);
  EXPECT_TRUE(results[2].is_tensor());
  EXPECT_EQ(results[3].to_float(), 2.5);
  EXPECT_EQ(results[4].kind(), Value::Kind::boolean);
}

TEST(SerdeRows, T388_getitems_of_the_same_result_are_merged) {
  ExportedProgram program = copy_of(*load_golden("several_results"));
  Node* first = program.graph().find_node("getitem");
  ASSERT_TRUE(first);
  {
    const auto scope = program.graph().inserting_after(first);
    Node* second = program.graph().call_function(first->target(), first->args());
    second->meta = first->meta;
    Node* output = program.graph().output_node();
    Values results = output->args()[0].to_items();
    results[0] = second;
    output->set_args({tuple(results)});
  }
  const auto again = round_trip(program);
  EXPECT_EQ(call_nodes(again->graph()).size() + 1, call_nodes(program.graph()).size());
  EXPECT_EQ(difference(program, "several_results"), "");
  EXPECT_EQ(difference(*again, "several_results"), "");
}

TEST(SerdeRows, T389_custom_metadata_survives) {
  const auto again = round_trip(*load_golden("custom_metadata"));
  ASSERT_EQ(again->parts().metadata.size(), 1U);
  EXPECT_EQ(json::parse(again->parts().metadata[0].second), json::parse(R"({"model": "tiny", "n": [1, 2.5, null, true]})"));
  const Node* add = call_nodes(again->graph()).at(0);
  const Value* custom = add->meta.find("custom");
  ASSERT_TRUE(custom);
  EXPECT_EQ(custom->to_dict().find("tag")->to_string(), "add");
  EXPECT_EQ(custom->to_dict().find("nested")->to_dict().find("é")->to_int(), 1);
}

TEST(SerdeRows, T390_a_region_without_gradients_stays_one) {
  const auto program = load_golden("no_grad_region_strict");
  const auto again = round_trip(*program);
  expect_same(*program, *again);
  EXPECT_NE(again->graph_module().code().find("wrap_with_set_grad_enabled(False"), std::string::npos)
      << again->graph_module().code();
  EXPECT_EQ(difference(*again, "no_grad_region_strict"), "");
  const Node* output = again->graph().output_node();
  EXPECT_EQ(output->args()[0].to_items().at(0).to_node()->meta.val.to_tensor().requires_grad(),
            program->graph().output_value().to_items().at(0).to_node()->meta.val.to_tensor().requires_grad());
}

TEST(SerdeRows, T391_operators_of_an_extension_keep_their_name) {
  // "#namespace:name" is how PyTorch's extension handlers write their operators.
  json program = json::parse(entry(read_file(golden("custom_op.pt2")), "models/model.json"));
  program.at("graph_module").at("graph").at("nodes")[0].at("target") = "#my_extension:scaled";
  const auto loaded = load_bytes(with_entry(read_file(golden("custom_op.pt2")), "models/model.json", program.dump()));
  const json saved = saved_json(*loaded);
  EXPECT_EQ(node_of(saved, "#my_extension:scaled").at("inputs"),
            program.at("graph_module").at("graph").at("nodes")[0].at("inputs"));
  try {
    loaded->run_flat(golden_inputs(*loaded, "custom_op"));
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unsupported_operator);
    EXPECT_NE(std::string(e.what()).find("#my_extension:scaled"), std::string::npos) << e.what();
  }
}

TEST(SerdeRows, T392_schema_evolution) {
  CALQUE_NOT_APPLICABLE(
      "the check compares PyTorch's own schema.py with its committed form; Calque reads the schema, it does not define it");
}

}  // namespace
}  // namespace calque::pt2_rows_test
