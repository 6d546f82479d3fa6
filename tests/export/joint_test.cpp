// Programs and modules with their backward pass. What the gradients must be is what eager passes over the same tensors give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/export/aot.h"
#include "calque/grad/autograd.h"
#include "calque/graph/interpreter.h"
#include "calque/nn/functional.h"
#include "calque/op/aten/random.h"
#include "export/export_support.h"

namespace calque::joint_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A loss, and the activations that it was computed of.
struct Regression : Typed<Regression> {
  static constexpr const char* forward_arguments[] = {"x", "y"};
  Child<Linear> first = child<Linear>("first", 3, 4);
  Child<Linear> second = child<Linear>("second", 4, 2);
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const Tensor& y) {
    const Tensor h = first(x).tanh();
    return {functional::mse_loss(second(h), y), h.detach()};
  }
};

struct NormedLoss : Typed<NormedLoss> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<BatchNorm1d> norm = child<BatchNorm1d>("norm", 3);
  Tensor forward(const Tensor& x) { return (norm(x) * x).sum(); }
};

std::vector<std::string> names_of(const GraphSignature& signature, OutputKind kind) {
  std::vector<std::string> out;
  for (const OutputSpec& spec : signature.output_specs)
    if (spec.kind == kind) out.push_back(spec.target);
  return out;
}

TEST(ForwardBackward, gives_the_gradients_of_an_eager_pass) {
  Regression module;
  const Values args{rand({5, 3}).set_requires_grad(), rand({5, 2})};
  const ExportedProgram joint = export_program(module, args).forward_backward();
  EXPECT_THAT(names_of(joint.graph_signature(), OutputKind::gradient_to_parameter),
              ElementsAre("first.weight", "first.bias", "second.weight", "second.bias"));
  EXPECT_EQ(names_of(joint.graph_signature(), OutputKind::gradient_to_user_input).size(), 1u);
  EXPECT_EQ(joint.graph_signature().output_specs.at(0).kind, OutputKind::loss_output);

  TensorVector leaves = module.parameters();
  leaves.push_back(args[0].to_tensor());
  const Values eager = module.call(args).to_items();
  const TensorVector expected = grad({eager[0].to_tensor()}, leaves);
  Values flat;
  for (const auto& [name, tensor] : joint.named_parameters()) flat.emplace_back(tensor.detach());
  flat.emplace_back(args[0].to_tensor().detach());
  flat.push_back(args[1]);
  const Values results = Interpreter(joint.graph()).run(flat).to_items();
  ASSERT_EQ(results.size(), 2 + expected.size());
  EXPECT_TRUE(same(results[0], eager[0].to_tensor().detach()));
  EXPECT_TRUE(same(results[1], eager[1]));
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same(results[2 + i], expected[i])) << i;
}

TEST(ForwardBackward, says_why_there_is_no_backward_pass) {
  const auto error = [](auto f, const Values& args, size_t loss = 0) {
    return error_of([&] { export_program(traceable(f, {"x"}), args).forward_backward(loss); });
  };
  const Tensor x = rand({3}).set_requires_grad();
  EXPECT_THAT(error([](const Tensor& t) { return t * 2; }, {x}),
              HasSubstr("the output marked as the loss (at index 0) must be a scalar, but it has sizes [3]"));
  EXPECT_THAT(error([](const Tensor& t) { return t.sum(); }, {rand({3})}),
              HasSubstr("the loss (output 0) depends on nothing that wants a gradient"));
  EXPECT_THAT(error([](const Tensor& t) { return t.sum(); }, {x}, 1),
              HasSubstr("output 1 is to be the loss, and the program has 1 outputs"));
  EXPECT_THAT(error(
                  [](const Tensor& t) {
                    return std::tuple<Tensor, Tensor>{t.sum(), t * 2};
                  },
                  {x}),
              HasSubstr("output 1 requires gradients and is not the loss"));
  Regression unused;
  unused.register_parameter("spare", rand({2}));
  EXPECT_THAT(error_of([&] {
                export_program(unused, {rand({5, 3}), rand({5, 2})}).forward_backward();
              }),
              HasSubstr("spare wants a gradient and the loss does not depend on it"));
}

TEST(AotExportModule, lifts_state_and_gives_the_gradients_of_an_eager_pass) {
  NormedLoss module;
  const Tensor x = rand({4, 3});
  const AotModule made = aot_export_module(module, {x}, {.trace_joint = true, .output_loss_index = 0});
  EXPECT_THAT(made.signature.parameters(), ElementsAre("norm.weight", "norm.bias"));
  EXPECT_THAT(made.signature.buffers(), ElementsAre("norm.running_mean", "norm.running_var", "norm.num_batches_tracked"));
  EXPECT_THAT(names_of(made.signature, OutputKind::buffer_mutation),
              ElementsAre("norm.running_mean", "norm.running_var", "norm.num_batches_tracked"));
  EXPECT_THAT(names_of(made.signature, OutputKind::gradient_to_parameter), ElementsAre("norm.weight", "norm.bias"));

  Values inputs;
  for (const auto& [name, tensor] : module.named_parameters()) inputs.emplace_back(tensor.detach());
  for (const auto& [name, tensor] : module.named_buffers()) inputs.emplace_back(tensor.clone());
  inputs.emplace_back(x);
  const Values results = made.graph_module->call(inputs).to_items();
  const Value loss = module.call({x});  // it writes its buffers
  const TensorVector expected = grad({loss.to_tensor()}, module.parameters());
  Values eager;
  for (const auto& [name, tensor] : module.named_buffers()) eager.emplace_back(tensor);
  eager.emplace_back(loss.to_tensor().detach());
  for (const Tensor& g : expected) eager.emplace_back(g);
  ASSERT_EQ(results.size(), eager.size());
  for (size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(same(results[i], eager[i])) << i;
}

TEST(AotExportModule, without_a_backward_pass_is_the_module_without_writes) {
  CountingModel module;
  const Tensor x = rand({1});
  const AotModule made = aot_export_module(module, {x});
  EXPECT_THAT(names_of(made.signature, OutputKind::buffer_mutation), ElementsAre("count"));
  EXPECT_EQ(calls(made.graph_module->graph()), "aten.add.Tensor aten.add.Tensor");
  const Values results = made.graph_module->call({zeros({1}), x}).to_items();
  EXPECT_TRUE(same(results[1], x + 1));
  EXPECT_TRUE(same(module.buffers()[0], zeros({1})));
}

TEST(AotExportModule, says_what_is_wrong_with_the_loss) {
  const auto error = [](Module& module, const Values& args, std::optional<size_t> loss) {
    AotModuleOptions options{.trace_joint = true};
    options.output_loss_index = loss;
    return error_of([&] { aot_export_module(module, args, options); });
  };
  LinearModel linear;
  EXPECT_THAT(error(linear, {rand({2, 3})}, std::nullopt), HasSubstr("say which with output_loss_index"));
  EXPECT_THAT(error(linear, {rand({2, 3})}, 0), HasSubstr("must be a scalar, but it has sizes [2, 2]"));
  EXPECT_THAT(error(linear, {rand({2, 3})}, 1), HasSubstr("output 1 is to be the loss, and the module gives 1 outputs"));
  Regression module;
  EXPECT_THAT(error(module, {rand({5, 3}), rand({5, 2})}, 1), HasSubstr("the output at index 0 requires gradients"));
  for (const Tensor& p : module.parameters()) p.set_requires_grad(false);
  EXPECT_THAT(error(module, {rand({5, 3}), rand({5, 2})}, 0), HasSubstr("it does not require gradients"));
}

}  // namespace
}  // namespace calque::joint_test
