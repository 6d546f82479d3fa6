// Verifiers: the rows of area `verifier` (docs/conformance.md).
#include "calque/export/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/export/pt2.h"
#include "calque/graph/higher_order.h"
#include "calque/op/aten/random.h"
#include "export/export_support.h"

namespace calque::verifier_test {
namespace {

using ::testing::HasSubstr;

TEST(Verifier, T393_what_was_just_exported_is_valid) {
  const ExportedProgram plain =
      export_program(traceable([](const Tensor& x, const Tensor& y) { return x + y; }, {"x", "y"}), {rand({2}), rand({2})});
  EXPECT_NO_THROW(plain.validate());
  LinearModel linear;
  EXPECT_NO_THROW(export_program(linear, {rand({4, 3})}).validate());
  CountingModel counting;
  const ExportedProgram counted = export_program(counting, {rand({1})});
  EXPECT_NO_THROW(counted.validate());
  EXPECT_NO_THROW(counted.run_decompositions({}).validate());
}

TEST(Verifier, a_write_is_no_functional_operator) {
  CountingModel counting;
  const ExportedProgram p = export_program(counting, {rand({1})});
  EXPECT_NO_THROW(verify_graph(p.graph_module(), Dialect::training));
  EXPECT_THAT(error_of([&] { verify_graph(p.graph_module(), Dialect::aten); }),
              HasSubstr("operator 'aten.add_.Tensor' is not functional"));
}

TEST(Verifier, T396_graphs_inside_are_checked_too) {
  const auto f = traceable(
      [](const Tensor& x, const Tensor& y) {
        return cond(
                   x.sum() > 2, [](const Values& in) -> Value { return in[0].to_tensor() + in[1].to_tensor(); },
                   [](const Values& in) -> Value { return in[0].to_tensor() - in[1].to_tensor(); }, {x, y})
            .to_tensor();
      },
      {"x", "y"});
  const ExportedProgram p = export_program(f, {rand({2}), rand({2})}).run_decompositions({});
  EXPECT_NO_THROW(p.validate());
  auto* branch = dynamic_cast<GraphModule*>(&p.graph_module().get_submodule("true_graph_0"));
  ASSERT_NE(branch, nullptr);
  for (Node* n : branch->graph().nodes())
    if (n->op() && n->op()->name() == "aten::add.Tensor") n->set_target(get_operator("aten::add_.Tensor"));
  EXPECT_THAT(error_of([&] { p.validate(); }), HasSubstr("is not functional"));
}

ExportedProgram::Parts parts_of(const ExportedProgram& p) {
  ExportedProgram::Parts parts = p.parts();
  parts.graph_module = deep_copy(*p.parts().graph_module);
  return parts;
}

TEST(Verifier, T397_a_parameter_that_is_not_there_or_is_a_plain_tensor) {
  LinearModel m;
  ExportedProgram::Parts parts = parts_of(export_program(m, {rand({4, 3})}));
  parts.signature.input_specs[0].target = "bad_param";
  EXPECT_THAT(error_of([&] { ExportedProgram bad(parts); }), HasSubstr("Parameter bad_param is not in the state dict"));
  parts.state_dict.set("bad_param", rand({100}));
  EXPECT_THAT(error_of([&] { ExportedProgram bad(parts); }),
              HasSubstr("State dict entry for parameter bad_param is not an instance of torch.nn.Parameter"));
  parts.parameters.insert("bad_param");
  EXPECT_EQ(error_of([&] { ExportedProgram good(parts); }), "");
}

struct FrozenModel : Typed<FrozenModel> {
  static constexpr const char* forward_arguments[] = {"x"};
  Parameter unused = register_parameter("unused", rand({2}), false);
  Buffer counts = register_buffer("counts", rand({2}));
  Tensor forward(const Tensor& x) { return x + counts; }
};

TEST(Verifier, parameters_are_told_from_buffers_used_or_not) {
  FrozenModel m;
  const ExportedProgram p = export_program(m, {rand({2})});
  EXPECT_THAT(p.parts().parameters, testing::ElementsAre("unused"));
  EXPECT_THAT(p.run_decompositions().parts().parameters, testing::ElementsAre("unused"));
  const auto bytes = std::make_shared<const std::string>(serialize_program(p));
  EXPECT_THAT(load_program(std::as_bytes(std::span(*bytes)), bytes)->parts().parameters, testing::ElementsAre("unused"));
}

TEST(Verifier, T398_a_buffer_that_is_not_there) {
  CountingModel m;
  ExportedProgram::Parts parts = parts_of(export_program(m, {rand({1})}));
  parts.signature.input_specs[0].target = "bad_buffer";
  EXPECT_THAT(error_of([&] { ExportedProgram bad(std::move(parts)); }),
              HasSubstr("Buffer bad_buffer is not in the state dict"));
}

TEST(Verifier, T399_an_output_without_a_spec) {
  CountingModel m;
  ExportedProgram::Parts parts = parts_of(export_program(m, {rand({1})}).run_decompositions({}));
  Node* output = parts.graph_module->graph().output_node();
  Values results = output->args()[0].to_items();
  results.push_back(results[0]);
  output->set_args({tuple(std::move(results))});
  EXPECT_THAT(error_of([&] { ExportedProgram bad(std::move(parts)); }), HasSubstr("Number of output nodes"));
}

TEST(Verifier, names_that_do_not_fit) {
  CountingModel m;
  const ExportedProgram p = export_program(m, {rand({1})}).run_decompositions({});
  const auto broken = [&](const std::function<void(ExportedProgram::Parts&)>& change) {
    ExportedProgram::Parts parts = parts_of(p);
    change(parts);
    return error_of([&] { ExportedProgram bad(std::move(parts)); });
  };
  EXPECT_THAT(broken([](auto& parts) { parts.signature.input_specs[1].arg.name = "z"; }),
              HasSubstr("Input spec name z does not match node name x"));
  EXPECT_THAT(broken([](auto& parts) { parts.signature.input_specs.pop_back(); }), HasSubstr("Number of graph inputs"));
  EXPECT_THAT(broken([](auto& parts) { parts.signature.output_specs[0].target = "nowhere"; }),
              HasSubstr("does not point to a buffer that exists"));
  EXPECT_THAT(broken([](auto& parts) { parts.signature.output_specs[1].arg.name = "z"; }),
              HasSubstr("not in the correct order"));
  EXPECT_THAT(broken([](auto& parts) { parts.signature.input_specs[0].persistent.reset(); }), HasSubstr("persistence"));
  EXPECT_THAT(broken([](auto& parts) {
                Node* x = parts.graph_module->graph().placeholders()[1];
                const auto where = parts.graph_module->graph().inserting_after(x);
                parts.graph_module->graph().call_method("sin", {x});
              }),
              HasSubstr("call_module is not valid"));
  EXPECT_THAT(broken([](auto& parts) {
                Node* x = parts.graph_module->graph().placeholders()[1];
                const auto where = parts.graph_module->graph().inserting_after(x);
                parts.graph_module->graph().call_function(get_function("torch.relu"), {x});
              }),
              HasSubstr("is not an allowed operator type"));
}

}  // namespace
}  // namespace calque::verifier_test
