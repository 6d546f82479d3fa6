// Layers: what a comparison with PyTorch's numbers does not show. Numbers: the goldens here, and tests/peers/nn.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/nn/nn.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "calque/tensor/generator.h"
#include "support/error_support.h"

namespace calque::layers_test {
namespace {

using test::error_of;
std::vector<std::string> names(const StateDict& state) {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : state) out.push_back(name);
  return out;
}
using Names = std::vector<std::string>;

struct Mlp : Typed<Mlp> {
  Child<Linear> up = child<Linear>("up", 4, 8);
  Child<Linear> down = child<Linear>("down", 8, 4);
  Tensor forward(const Tensor& x) { return down(up(x).relu()); }
};

TEST(Layers, a_module_of_layers_prints_as_pytorch_does) {
  EXPECT_EQ(Mlp().str(),
            "Mlp(\n  (up): Linear(in_features=4, out_features=8, bias=True)\n  (down): Linear(in_features=8, "
            "out_features=4, bias=True)\n)");
}

TEST(Layers, names_are_those_of_pytorch_and_of_derived_classes_their_own) {
  struct Special : Typed<Special, Linear> {
    using Typed::Typed;
  };
  EXPECT_EQ(Linear(2, 3).type_name(), "torch.nn.modules.linear.Linear");
  EXPECT_EQ(MultiheadAttention(4, 2).out_proj->type_name(), "torch.nn.modules.linear.NonDynamicallyQuantizableLinear");
  EXPECT_EQ(Special(2, 3).class_name(), "Special");
  EXPECT_EQ(Special(2, 3).str(), "Special(in_features=2, out_features=3, bias=True)");
  EXPECT_EQ(Sequential().type_name(), "torch.nn.modules.container.Sequential");
}

TEST(Layers, forward_may_be_called_by_pytorchs_argument_names) {
  MultiheadAttention attention(4, 2);
  const Tensor x = randn({3, 1, 4});
  const Value out = attention.call({x, x, x}, {{"average_attn_weights", false}});
  EXPECT_EQ(out.to_items()[1].to_tensor().dim(), 4);
  EXPECT_TRUE(attention.call({x, x, x}, {{"need_weights", false}}).to_items()[1].is_none());
  EXPECT_EQ(attention.argument_names()[3], "key_padding_mask");
}

TEST(Layers, on_the_meta_device_nothing_is_allocated) {
  const Linear layer(1 << 20, 1 << 20, true, {.device = Device(DeviceType::meta)});
  EXPECT_EQ(layer.weight->device().type, DeviceType::meta);
  EXPECT_EQ(layer.weight->size(0), 1 << 20);
}

TEST(Layers, convolution_options_are_checked) {
  EXPECT_EQ(error_of([] { Conv2d(3, 4, 3, {.groups = 2}); }), "in_channels must be divisible by groups");
  EXPECT_EQ(error_of([] { Conv2d(4, 3, 3, {.groups = 2}); }), "out_channels must be divisible by groups");
  EXPECT_EQ(error_of([] { Conv2d(4, 4, 3, {.stride = 2, .padding = "same"}); }),
            "padding='same' is not supported for strided convolutions");
  EXPECT_EQ(error_of([] { Conv2d(4, 4, {3, 3, 3}); }), "kernel_size: expected one number or 2, found 3");
  EXPECT_THAT(error_of([] { Conv2d(4, 4, 3, {.padding_mode = "mirror"}); }),
              testing::HasSubstr("padding_mode must be one of"));
}

TEST(Layers, wrong_settings_are_refused) {
  EXPECT_EQ(error_of([] { Dropout(1.5); }), "dropout probability has to be between 0 and 1, but got 1.5");
  EXPECT_EQ(error_of([] { GroupNorm(2, 5); }), "num_channels (5) must be divisible by num_groups (2)");
  EXPECT_EQ(error_of([] { Embedding(3, 4, {.padding_idx = 3}); }), "Padding_idx must be within num_embeddings");
  EXPECT_EQ(error_of([] { MultiheadAttention(5, 2); }), "embed_dim must be divisible by num_heads");
  EXPECT_EQ(error_of([] {
              BatchNorm2d bn(3);
              bn(zeros({2, 3}));
            }),
            "BatchNorm2d: expected 4D input (got 2D input)");
  EXPECT_EQ(error_of([] {
              BatchNorm1d bn(3);
              bn(zeros({1, 3}));
            }),
            "Expected more than 1 value per channel when training, got input size torch.Size([1, 3])");
  EXPECT_EQ(error_of([] { MSELoss("average")(zeros({2}), zeros({2})); }), "average is not a valid value for reduction");
  EXPECT_EQ(error_of([] {
              functional::interpolate(zeros({1, 1, 2}), {});
            }),
            "either size or scale_factor should be defined");
}

TEST(Layers, batch_norm_loads_checkpoints_that_do_not_count_batches) {
  BatchNorm2d layer(3);
  StateDict state = layer.state_dict();
  state.erase("num_batches_tracked");
  EXPECT_THAT(error_of([&] { layer.load_state_dict(state); }),
              testing::HasSubstr("Missing key(s) in state_dict: \"num_batches_tracked\". "));
  state.versions.clear();
  layer.load_state_dict(state);
}

TEST(Layers, embedding_from_pretrained_keeps_the_tensor) {
  const Tensor table = randn({5, 3});
  const auto frozen = Embedding::from_pretrained(table);
  EXPECT_TRUE(frozen->weight->is_same(table));
  EXPECT_FALSE(frozen->weight->requires_grad());
  EXPECT_TRUE(equal((*frozen)(tensor_of<int64_t>({4}, {1})).select(0, 0), table.select(0, 4)));
}

TEST(Containers, sequential_calls_its_modules_in_turn) {
  manual_seed(1);
  Sequential net({std::make_shared<Linear>(4, 3), std::make_shared<ReLU>(), std::make_shared<Linear>(3, 2)});
  const Tensor x = randn({2, 4});
  const Tensor expected = net.at<Linear>(2)(net.at<Linear>(0)(x).relu());
  EXPECT_TRUE(equal(net(x), expected));
  EXPECT_EQ(names(net.state_dict()), (Names{"0.weight", "0.bias", "2.weight", "2.bias"}));
  EXPECT_THAT(error_of([&] { net.at<Linear>(1); }),
              testing::HasSubstr("the module at 1 is a torch.nn.modules.activation.ReLU"));
  EXPECT_EQ(error_of([&] { net[3]; }), "Sequential: index 3 is out of range");
}

TEST(Containers, sequential_under_given_names) {
  Sequential net(std::vector<std::pair<std::string, std::shared_ptr<Module>>>{{"fc", std::make_shared<Linear>(4, 3)},
                                                                              {"act", std::make_shared<ReLU>()}});
  EXPECT_EQ(net.str(), "Sequential(\n  (fc): Linear(in_features=4, out_features=3, bias=True)\n  (act): ReLU()\n)");
}

TEST(Containers, lists_can_be_changed) {
  ModuleList list;
  for (int i = 1; i <= 3; ++i) list.emplace<Linear>(1, i);
  list.insert(1, std::make_shared<ReLU>());
  EXPECT_EQ(list.size(), 4U);
  EXPECT_EQ(list.at<Linear>(2).out_features, 2);
  list.erase(0);
  EXPECT_EQ(list[0].class_name(), "ReLU");
  EXPECT_EQ(names(list.state_dict()), (Names{"1.weight", "1.bias", "2.weight", "2.bias"}));
  list.set(-1, std::make_shared<Identity>());
  EXPECT_EQ(list[2].class_name(), "Identity");
}

TEST(Containers, parameters_print_their_type_and_size) {
  EXPECT_EQ(ParameterList({ones({2, 3}), ones({2})}).str(),
            "ParameterList(\n    (0): Parameter containing: [torch.float32 of size 2x3]\n    (1): Parameter containing: "
            "[torch.float32 of size 2]\n)");
  EXPECT_EQ(ParameterList({ones({2, 3})}).str(), "ParameterList(  (0): Parameter containing: [torch.float32 of size 2x3])");
  EXPECT_EQ(ParameterDict({{"a", ones({2, 3})}}).str(),
            "ParameterDict(  (a): Parameter containing: [torch.FloatTensor of size 2x3])");
  EXPECT_EQ(names(ParameterDict({{"b", ones({2})}, {"a", ones({1})}}).state_dict()), (Names{"b", "a"}));
}

TEST(Containers, are_copied_with_what_they_hold) {
  const auto net = std::make_shared<Sequential>(
      std::vector<std::shared_ptr<Module>>{std::make_shared<Mlp>(), std::make_shared<ModuleList>()});
  const auto copy = deep_copy(*net);
  EXPECT_EQ(copy->str(), net->str());
  const GradModeScope no_grad(false);
  copy->at<Mlp>(0).up->weight->zero_();
  EXPECT_NE(net->at<Mlp>(0).up->weight->abs().sum().item_as<double>(), 0);
  copy->at<Mlp>(0)(ones({1, 4}));
}

TEST(Containers, dicts_hold_modules_by_key) {
  ModuleDict dict({{"relu", std::make_shared<ReLU>()}, {"linear", std::make_shared<Linear>(2, 2)}});
  EXPECT_TRUE(dict.contains("linear"));
  EXPECT_EQ(dict["relu"].class_name(), "ReLU");
  EXPECT_EQ(error_of([&] { dict["gelu"]; }), "ModuleDict has no attribute `gelu`");
}

TEST(Init, orthogonal_rows_or_columns_are_orthonormal) {
  const Tensor wide = empty({3, 5}), tall = empty({5, 3});
  init::orthogonal_(wide);
  init::orthogonal_(tall);
  EXPECT_TRUE(allclose(wide.matmul(wide.t()), eye(3), 1e-5, 1e-6));
  EXPECT_TRUE(allclose(tall.t().matmul(tall), eye(3), 1e-5, 1e-6));
}

TEST(Init, truncated_normal_stays_within_its_bounds) {
  const Tensor t = empty({10000});
  init::trunc_normal_(t, 0, 1, -0.5, 2);
  EXPECT_GE(t.min().item_as<double>(), -0.5);
  EXPECT_LE(t.max().item_as<double>(), 2);
}

}  // namespace
}  // namespace calque::layers_test
