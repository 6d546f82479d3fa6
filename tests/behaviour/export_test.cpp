// Exported programs: behaviours that PyTorch's test/export/ checks (test_export.py, test_serialize.py, test_unflatten.py,
// test_verifier.py, test_passes.py). The comment of each test names where the behaviour comes from; what is expected is what
// PyTorch gave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/export/unflatten.h"
#include "calque/export/verifier.h"
#include "calque/graph/passes.h"
#include "calque/nn/container.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/splitting.h"
#include "calque/op/aten/unique.h"
#include "calque/op/aten/views.h"
#include "calque/op/aten/zeros.h"
#include "calque/sym/sym_math.h"
#include "calque/sym/unbacked.h"
#include "export/export_support.h"
#include "export/pt2_support.h"

namespace calque::export_test {
namespace {

using nlohmann::json;
using pt2_test::node_of;
using pt2_test::round_trip;
using pt2_test::saved_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string code_of(const ExportedProgram& p) {
  const std::string code = p.graph_module().code();
  const size_t from = code.find("def forward");
  return code.substr(from, code.find_last_not_of(" \n") + 1 - from);
}
// "PARAMETER p_weight weight", one a line.
std::string signature_of(const ExportedProgram& p) {
  std::string out;
  for (const InputSpec& s : p.graph_signature().input_specs)
    out += std::string(name(s.kind)) + " " + s.arg.name + (s.target.empty() ? "" : " " + s.target) + "\n";
  for (const OutputSpec& s : p.graph_signature().output_specs)
    out += "-> " + std::string(name(s.kind)) + " " + s.arg.name + (s.target.empty() ? "" : " " + s.target) + "\n";
  return out;
}
std::string ranges_of(const ExportedProgram& p) {
  std::string out;
  for (const auto& [symbol, range] : p.range_constraints()) out += (out.empty() ? "" : ", ") + symbol + " " + str(range);
  return out;
}
const json& argument(const json& node, const std::string& name) {
  for (const json& in : node.at("inputs"))
    if (in.at("name") == name) return in.at("arg");
  throw std::out_of_range(name);
}

struct NotRegistered : Typed<NotRegistered> {
  static constexpr const char* forward_arguments[] = {"x"};
  Tensor foo = ones({3, 3});
  Tensor forward(const Tensor& x) { return x + foo; }
};

// test_export.py::test_not_registered_parameter
TEST(ExportBehaviour, B301_a_tensor_that_no_module_registered_is_a_lifted_constant) {
  NotRegistered m;
  const ExportedProgram p = export_program(m, {rand({1, 3})});
  EXPECT_EQ(signature_of(p), "CONSTANT_TENSOR c_lifted_tensor_0 lifted_tensor_0\nUSER_INPUT x\n-> USER_OUTPUT add\n");
  EXPECT_TRUE(p.module()->named_parameters().empty());
}

struct ColonName : Typed<ColonName> {
  static constexpr const char* forward_arguments[] = {"x"};
  Parameter parameter = register_parameter("foo:bar", ones({3, 3}));
  Tensor forward(const Tensor& x) { return x + parameter; }
};

// test_export.py::test_colon_parameter
TEST(ExportBehaviour, B302_a_parameter_may_have_a_colon_in_its_name) {
  ColonName m;
  const ExportedProgram p = export_program(m, {rand({3, 3})});
  EXPECT_EQ(signature_of(p), "PARAMETER p_foo_bar foo:bar\nUSER_INPUT x\n-> USER_OUTPUT add\n");
  EXPECT_TRUE(same(p.module()->call({ones({3, 3})}), full({3, 3}, 2.0)));
}

// test_export.py::test_unused_constant
TEST(ExportBehaviour, B303_a_literal_that_nobody_uses_is_no_constant_of_the_program) {
  const auto f = traceable(
      [](const Tensor& x) {
        tensor(3);
        return x * x;
      },
      {"x"});
  const ExportedProgram p = export_program(f, {ones({3})});
  EXPECT_TRUE(p.constants().empty());
  EXPECT_EQ(code_of(p), "def forward(self, x):\n    mul = torch.ops.aten.mul.Tensor(x, x);  x = None\n    return (mul,)");
}

// test_export.py::test_range_constraints_with_replacement
TEST(ExportBehaviour, B304_sizes_that_turn_out_equal_have_one_range) {
  const auto f = traceable([](const Tensor& x, const Tensor& y) { return (x + y).slice(0, 0, 3); }, {"x", "y"});
  const ExportedProgram p = export_program(
      f, {rand({4}), rand({4})}, {}, {.dynamic_shapes = DS::tuple({DS::tuple({Dim::DYNAMIC}), DS::tuple({Dim::DYNAMIC})})});
  ASSERT_EQ(p.range_constraints().size(), 1U);
  EXPECT_EQ(p.range_constraints()[0].second, (ValueRange{3, ValueRange::unbounded_above}));
}

// test_export.py::test_issue_161902
TEST(ExportBehaviour, B305_dims_that_can_only_agree_at_one_size_are_both_named) {
  const auto f = traceable([](const Tensor& x, const Tensor& y) { return x + y; }, {"x", "y"});
  const Dim dx("dx", 1, 2);
  const std::string error = error_of([&] {
    export_program(
        f, {rand({2, 3}), rand({2, 3})}, {},
        {.dynamic_shapes = DS::dict({{"x", DS::tuple({2 * dx, Dim::STATIC})}, {"y", DS::tuple({dx + 1, Dim::STATIC})}})});
  });
  EXPECT_THAT(error, HasSubstr("Constraints violated (2*dx, dx + 1)!"));
  EXPECT_THAT(error, HasSubstr("You marked 2*dx as dynamic but your code specialized it to be a constant (2)."));
  EXPECT_THAT(error, HasSubstr("You marked dx + 1 as dynamic but your code specialized it to be a constant (2)."));
}

struct Convolved : Typed<Convolved> {
  static constexpr const char* forward_arguments[] = {"x", "y"};
  Child<Conv2d> conv = child<Conv2d>("conv", 3, 4, 3, ConvOptions{.padding = Sizes(1)});
  Child<ReLU> relu = child<ReLU>("relu");
  Child<MaxPool2d> pool = child<MaxPool2d>("maxpool", 3);
  Tensor forward(const Tensor& x, const Tensor& y) {
    const Tensor a = conv(x);
    a.add_(y);
    return pool(relu(a));
  }
};

// test_export.py::test_conv_dynamic
TEST(ExportBehaviour, B306_a_convolution_with_an_in_place_sum_has_a_dynamic_batch) {
  Convolved m;
  const Dim batch("batch");
  const ExportedProgram p =
      export_program(m, {rand({2, 3, 9, 9}), rand({2, 4, 9, 9})}, {},
                     {.dynamic_shapes = DS::dict({{"x", DS::dict({{0, batch}})}, {"y", DS::dict({{0, batch}})}})});
  EXPECT_EQ(
      code_of(p),
      "def forward(self, p_conv_weight, p_conv_bias, x, y):\n    conv2d = torch.ops.aten.conv2d.default(x, p_conv_weight, "
      "p_conv_bias, [1, 1], [1, 1]);  x = p_conv_weight = p_conv_bias = None\n    add_ = "
      "torch.ops.aten.add_.Tensor(conv2d, y);  conv2d = y = None\n    relu = torch.ops.aten.relu.default(add_);  add_ = "
      "None\n    max_pool2d = torch.ops.aten.max_pool2d.default(relu, [3, 3], [3, 3]);  relu = None\n    return "
      "(max_pool2d,)");
  const Values other{rand({5, 3, 9, 9}), rand({5, 4, 9, 9})};
  EXPECT_TRUE(same(p.module()->call(copied(other)), m.call(other)));
}

struct MaskedRows : Typed<MaskedRows> {
  static constexpr const char* forward_arguments[] = {"x", "m"};
  Child<Linear> linear = child<Linear>("linear", 7, 5);
  Child<LayerNorm> norm = child<LayerNorm>("layer_norm", Sizes{7});
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const Tensor& m) {
    const Tensor v = x.masked_select(m).view({-1, 7});
    const Tensor a = linear(v);
    return {a, norm(v)};
  }
};

// test_export.py::test_unbacked_linear_layer_norm_input
TEST(ExportBehaviour, B307_rows_chosen_by_a_mask_go_through_layers) {
  MaskedRows m;
  const Tensor x = rand({6, 7});
  const ExportedProgram p = export_program(m, {x, ones({6, 1}, DType::bool_)});
  EXPECT_EQ(ranges_of(p), "u0 [0, 42]");
  EXPECT_THAT(code_of(p), HasSubstr("\"Runtime assertion failed for expression Eq(Mod(u0, 7), 0) on node 'eq'\""));
  const Tensor some = (arange(6) < 2).view({6, 1});
  EXPECT_TRUE(same(p.call({x, some}), m.call({x, some})));
}

// test_export.py::test_unbacked_bincount
TEST(ExportBehaviour, B308_counts_of_at_least_a_length_from_data) {
  const auto f = traceable(
      [](const Tensor& xs) {
        const std::vector<Tensor> each = unbind(xs);
        const SymInt u0 = Value(each[0].item()).to_sym_int();
        const SymInt u1 = Value(each[1].item()).to_sym_int();
        const Tensor x = ones({u0}, DType::int64);
        return bincount(x, {}, u1);
      },
      {"xs"});
  const ExportedProgram p = export_program(f, {tensor({20, 10})});
  for (const Tensor& x : {tensor({20, 10}), tensor({5, 10}), tensor({3, 0})})
    EXPECT_TRUE(same(p.call({x}), f.body({x}))) << p.str();
}

// test_export.py::test_no_check_is_size_error
TEST(ExportBehaviour, B309_a_value_given_to_a_view_is_asserted_to_be_what_fits) {
  const auto f = traceable([](const Tensor& x) { return arange(24).view({Value(x.item()).to_sym_int(), 4}); }, {"x"});
  const ExportedProgram p = export_program(f, {tensor(6)});
  EXPECT_TRUE(same(p.call({tensor(6)}), arange(24).view({6, 4})));
  EXPECT_THAT(error_of([&] { p.call({tensor(5)}); }), HasSubstr("Runtime assertion failed for expression"));
}

struct SharedLayer : Typed<SharedLayer> {
  static constexpr const char* forward_arguments[] = {"x"};
  std::shared_ptr<LayerNorm> layer = std::make_shared<LayerNorm>(Sizes{2});
  Child<ModuleList> norms =
      child_module("norms", std::make_shared<ModuleList>(std::vector<std::shared_ptr<Module>>{layer, layer}));
  Tensor forward(const Tensor& x) {
    Tensor y = x;
    for (size_t i = 0; i < 2; ++i) y = norms->get_submodule(std::to_string(i)).call({y}).to_tensor();
    return y;
  }
};

// test_export.py::test_layer_sharing
TEST(ExportBehaviour, B310_a_layer_in_two_places_is_in_the_state_under_both) {
  SharedLayer m;
  const ExportedProgram p = export_program(m, {rand({3, 2})});
  std::vector<std::string> keys;
  for (const auto& [key, t] : p.state_dict()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("norms.0.weight", "norms.0.bias", "norms.1.weight", "norms.1.bias"));
  EXPECT_EQ(count(p, "aten.layer_norm.default"), 2U);
  EXPECT_TRUE(same(p.call({ones({3, 2})}), m.call({ones({3, 2})})));
}

const auto writes_and_views = traceable(
    [](const Tensor& x) -> Value {
      x.add_(1);
      const Tensor v = x.view({-1});
      return tuple({v, x});
    },
    {"x"});

// test_export.py::test_export_input_mutation_bug and its kin
TEST(ExportBehaviour, B311_a_written_input_that_is_returned_is_the_write_in_training_ir) {
  EXPECT_EQ(code_of(export_program(writes_and_views, {rand({2, 2})})),
            "def forward(self, x):\n    add_ = torch.ops.aten.add_.Tensor(x, 1);  x = None\n    view = "
            "torch.ops.aten.view.default(add_, [-1])\n    return (view, add_)");
}

// test_export.py: the same program, functional (mended)
TEST(ExportBehaviour, B312_a_written_input_that_is_returned_is_a_mutation_and_an_output) {
  const ExportedProgram p = export_program(writes_and_views, {rand({2, 2})}).run_decompositions({});
  EXPECT_EQ(signature_of(p), "USER_INPUT x\n-> USER_INPUT_MUTATION add x\n-> USER_OUTPUT view_1\n-> USER_OUTPUT add\n");
  const Tensor x = ones({2, 2});
  const Value out = p.call({x});
  EXPECT_TRUE(same(x, full({2, 2}, 2.0)));
  EXPECT_TRUE(same(out.to_items()[0], full({4}, 2.0)));
}

struct TwoBuffers : Typed<TwoBuffers> {
  static constexpr const char* forward_arguments[] = {"x"};
  Buffer b = register_buffer("b", zeros({2}));
  Buffer c = register_buffer("c", zeros({2}));
  Tensor forward(const Tensor& x) {
    c->add_(x);
    b->copy_(*c * 2);
    return x + b;
  }
};

// test_export.py: mutations come in the order of the buffers
TEST(ExportBehaviour, B313_mutations_are_returned_in_the_order_of_the_buffers) {
  TwoBuffers m;
  const ExportedProgram p = export_program(m, {rand({2})}).run_decompositions({});
  EXPECT_EQ(
      code_of(p),
      "def forward(self, b_b, b_c, x):\n    add = torch.ops.aten.add.Tensor(b_c, x);  b_c = None\n    mul = "
      "torch.ops.aten.mul.Tensor(add, 2)\n    add_1 = torch.ops.aten.add.Tensor(x, mul);  x = None\n    return (mul, add, "
      "add_1)");
  EXPECT_EQ(signature_of(p),
            "BUFFER b_b b\nBUFFER b_c c\nUSER_INPUT x\n-> BUFFER_MUTATION mul b\n-> BUFFER_MUTATION add c\n-> USER_OUTPUT "
            "add_1\n");
}

struct RowOfABuffer : Typed<RowOfABuffer> {
  static constexpr const char* forward_arguments[] = {"x"};
  Buffer b = register_buffer("b", zeros({2, 2}));
  Tensor forward(const Tensor& x) {
    b->select(0, 0).add_(x);
    return b->sum();
  }
};

// test_export.py::test_export_mutated_buffer through a view
TEST(ExportBehaviour, B314_a_write_to_a_row_of_a_buffer_is_scattered_back) {
  RowOfABuffer m;
  const ExportedProgram p = export_program(m, {rand({2})}).run_decompositions({});
  EXPECT_EQ(code_of(p),
            "def forward(self, b_b, x):\n    select = torch.ops.aten.select.int(b_b, 0, 0)\n    add = "
            "torch.ops.aten.add.Tensor(select, x);  select = x = None\n    select_scatter = "
            "torch.ops.aten.select_scatter.default(b_b, add, 0, 0);  b_b = add = None\n    sum_1 = "
            "torch.ops.aten.sum.default(select_scatter)\n    return (select_scatter, sum_1)");
}

// test_export.py::test_input_output_no_stacktrace and its kin
TEST(ExportBehaviour, B315_an_input_may_be_returned_more_than_once) {
  const auto f = traceable([](const Tensor& x, const Tensor& y) -> Value { return tuple({x, y + 1, x}); }, {"x", "y"});
  const ExportedProgram p = export_program(f, {rand({2}), rand({2})});
  EXPECT_EQ(code_of(p),
            "def forward(self, x, y):\n    add = torch.ops.aten.add.Tensor(y, 1);  y = None\n    return (x, add, x)");
  const Tensor x = ones({2});
  const Value out = p.call({x, x});
  EXPECT_TRUE(out.to_items()[0].to_tensor().is_same(x));
  EXPECT_TRUE(out.to_items()[2].to_tensor().is_same(x));
}

struct ReturnsState : Typed<ReturnsState> {
  static constexpr const char* forward_arguments[] = {"x"};
  Buffer b = register_buffer("b", zeros({2}));
  Parameter p = register_parameter("p", ones({2}));
  std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& x) { return {b, p, x + b}; }
};

// test_export.py: state as an output
TEST(ExportBehaviour, B316_a_buffer_and_a_parameter_may_be_returned) {
  ReturnsState m;
  const ExportedProgram p = export_program(m, {rand({2})});
  EXPECT_EQ(signature_of(p),
            "PARAMETER p_p p\nBUFFER b_b b\nUSER_INPUT x\n-> USER_OUTPUT b_b\n-> USER_OUTPUT p_p\n-> USER_OUTPUT add\n");
}

// test_export.py::test_none_input_output and test_constant_output
TEST(ExportBehaviour, B317_none_numbers_and_text_among_the_outputs) {
  const auto f = traceable(
      [](const Tensor& x) -> Value {
        return dict({{"a", x + 1}, {"b", None{}}, {"c", list({3, "t", x})}});
      },
      {"x"});
  const ExportedProgram p = export_program(f, {rand({2})});
  EXPECT_EQ(code_of(p),
            "def forward(self, x):\n    add = torch.ops.aten.add.Tensor(x, 1)\n    return (add, None, 3, 't', x)");
  const Value out = round_trip(p)->call({ones({2})});
  EXPECT_EQ(out.to_dict().find("c")->to_items()[1].to_string(), "t");
  EXPECT_TRUE(out.to_dict().find("b")->is_none());
}

// test_export.py::test_constant_requires_grad_const and its kin: inputs that are no tensors
TEST(ExportBehaviour, B318_numbers_truths_and_texts_given_are_fixed_and_checked) {
  const auto f = traceable(
      [](const Tensor& x, double a, bool b, const std::string& c) {
        const Tensor y = x * a;
        const Tensor z = y + (b ? 1 : 2);
        return z + static_cast<int64_t>(c.size());
      },
      {"x", "a", "b", "c"});
  const ExportedProgram p = export_program(f, {rand({2}), 2.5, true, "str"});
  EXPECT_EQ(
      code_of(p),
      "def forward(self, x, a, b, c):\n    mul = torch.ops.aten.mul.Tensor(x, 2.5);  x = None\n    add = "
      "torch.ops.aten.add.Tensor(mul, 1);  mul = None\n    add_1 = torch.ops.aten.add.Tensor(add, 3);  add = None\n    "
      "return (add_1,)");
  EXPECT_TRUE(same(p.call({ones({2}), 2.5, true, "str"}), full({2}, 6.5)));
  EXPECT_THAT(error_of([&] { p.module()->call({ones({2}), 3.5, true, "str"}); }), HasSubstr("2.5"));
}

// test_export.py::test_export_statically_known_true
TEST(ExportBehaviour, B319_a_slice_up_to_a_polynomial_of_a_size) {
  const auto f = traceable(
      [](const Tensor& x, const Tensor& y) {
        const SymInt n = y.sym_size(0);
        const SymInt square = sym_pow(n, 2);
        return x.slice(1, {}, square - 3 * n);
      },
      {"x", "y"});
  const DS all = DS::tuple({Dim::DYNAMIC, Dim::DYNAMIC});
  const ExportedProgram p = export_program(f, {rand({4, 4}), rand({4, 4})}, {}, {.dynamic_shapes = DS::tuple({all, all})});
  EXPECT_EQ(count(p, "aten.slice.Tensor"), 1U);
  EXPECT_EQ(count(p, "operator.sub"), 1U);
  EXPECT_EQ(str(p.call({rand({4, 20}), rand({5, 4})}).to_tensor().sizes()), "[4, 10]");
}

// test_export.py::test_export_for_training_run_decomp
TEST(ExportBehaviour, B320_a_decomposed_layer_beside_a_counted_buffer) {
  struct Counted : Typed<Counted> {
    Buffer buffer = register_buffer("buffer", ones({2, 2}));
    Child<Linear> linear = child<Linear>("linear", 2, 2);
    Tensor forward(const Tensor& x) {
      buffer->add_(5);
      const Tensor y = linear(x);
      return y + buffer->sum();
    }
    std::vector<std::string> argument_names() const override { return {"x"}; }
  } m;
  const ExportedProgram p = export_program(m, {ones({2, 2})}).run_decompositions();
  EXPECT_EQ(
      code_of(p),
      "def forward(self, p_linear_weight, p_linear_bias, b_buffer, x):\n    add = torch.ops.aten.add.Tensor(b_buffer, 5);  "
      "b_buffer = None\n    permute = torch.ops.aten.permute.default(p_linear_weight, [1, 0]);  p_linear_weight = None\n    "
      "addmm = torch.ops.aten.addmm.default(p_linear_bias, x, permute);  p_linear_bias = x = permute = None\n    sum_1 = "
      "torch.ops.aten.sum.dim_IntList(add, [])\n    add_1 = torch.ops.aten.add.Tensor(addmm, sum_1);  addmm = sum_1 = "
      "None\n    return (add, add_1)");
}

// test_export.py::test_static_dim_constraints
TEST(ExportBehaviour, B321_static_dimensions_have_no_range_and_are_checked) {
  struct Mixed : Typed<Mixed> {
    Child<Linear> l = child<Linear>("l", 6, 4);
    std::tuple<Tensor, Tensor> forward(const Tensor& x, const Tensor& y, const Tensor& z) {
      const Tensor a = l(x);
      return {a + y.slice(0, 1), z * 2.0};
    }
    std::vector<std::string> argument_names() const override { return {"x", "y", "z"}; }
  } m;
  const Values args{rand({4, 6}), rand({5, 4}), rand({3, 3})};
  const Dim dx("dx", 3, 6), dz("dz", 3, 6);
  const ExportedProgram p = export_program(
      m, args, {},
      {.dynamic_shapes = DS::tuple({DS::tuple({dx, Dim::STATIC}), DS::tuple({dx + 1, 4}), DS::tuple({dz, 3})})});
  ASSERT_EQ(p.range_constraints().size(), 3U);
  for (const auto& [symbol, range] : p.range_constraints()) EXPECT_LT(range.lower, range.upper) << symbol;
  EXPECT_NE(error_of([&] { p.call({rand({4, 7}), rand({5, 4}), rand({3, 3})}); }), "");
  EXPECT_THAT(error_of([&] {
                export_program(m, args, {}, {.dynamic_shapes = DS::tuple({DS::tuple({5, Dim::STATIC}), {}, {}})});
              }),
              HasSubstr("Static shape constraint of 5 does not match input size of 4, for L['x'].size()[0]"));
}

// test_export.py::test_derived_dim_out_of_order_simplified_repeat_non_derived
TEST(ExportBehaviour, B322_two_inputs_of_one_derived_dim_must_agree) {
  const auto f = traceable(
      [](const Tensor& x, const Tensor& y, const Tensor& y1, const Tensor& z) {
        const Tensor a = x + y.slice(0, 1);
        const Tensor b = a + y1.slice(0, 1);
        return b + z.slice(0, 2);
      },
      {"x", "y", "y1", "z"});
  const Dim z("_dimz", 6, 8);
  const auto at = [](const DS& d) { return DS::dict({{0, d}}); };
  const ExportedProgram p = export_program(f, {rand({5}), rand({6}), rand({6}), rand({7})}, {},
                                           {.dynamic_shapes = DS::tuple({at(z - 2), at(z - 1), at(z - 1), at(z)})});
  EXPECT_EQ(p.call({rand({6}), rand({7}), rand({7}), rand({8})}).to_tensor().size(0), 6);
  EXPECT_NE(error_of([&] { p.call({rand({6}), rand({7}), rand({5}), rand({8})}); }, ErrorKind::constraint_violation), "");
}

// test_export.py::test_dynamic_shapes_builder_kwargs
TEST(ExportBehaviour, B323_shapes_are_collected_by_tensor_whatever_the_order_of_keywords) {
  const Tensor x = rand({4}), y = rand({4}), z = rand({4});
  struct Sums : Typed<Sums> {
    Tensor forward(const Tensor& a, const std::vector<Tensor>& b, const Value& c) {
      const Tensor d = a + b[0];
      return d + c.to_dict().find("k")->to_tensor();
    }
    std::vector<std::string> argument_names() const override { return {"x", "y", "z"}; }
  } m;
  const Dim dim("dim", {}, 10);
  ShapesCollection shapes;
  for (const Tensor& t : {x, y, z}) shapes.set(t, DS::tuple({dim}));
  const Kwargs kwargs{{"z", dict({{"k", z}})}, {"y", list({y})}};
  const ExportedProgram p =
      export_program(m, {x}, kwargs, {.dynamic_shapes = shapes.dynamic_shapes(combine_args({"x", "y", "z"}, {x}, kwargs))});
  ASSERT_EQ(p.range_constraints().size(), 1U);
  for (const Node* n : p.graph().placeholders())
    EXPECT_EQ(n->meta.val.to_tensor().sym_size(0).str(), p.range_constraints()[0].first);
}

// test_export.py::test_python_asserts_with_sym_int
TEST(ExportBehaviour, B324_a_checked_value_is_asserted_by_the_program) {
  const auto f = traceable(
      [](const Tensor& x) {
        const Tensor y = x + 1;
        if (!check(Value(y.max().item()).to_sym_int() > 0)) throw UserError("the largest value is not above 0");
        return y;
      },
      {"x"});
  const ExportedProgram p = export_program(f, {zeros({4}, DType::int32)});
  EXPECT_TRUE(same(p.call({ones({4}, DType::int32)}), full({4}, 2, DType::int32)));
  EXPECT_THAT(error_of([&] { p.call({full({4}, -1, DType::int32)}); }),
              HasSubstr("Runtime assertion failed for expression"));
}

// test_export.py::test_predispatch_grad_wrappers
TEST(ExportBehaviour, B325_only_the_region_of_another_gradient_mode_is_wrapped) {
  const auto f = traceable(
      [](const Tensor& x, const Tensor& y) {
        Tensor z;
        {
          const GradModeScope on(true);
          z = x - y;
        }
        const GradModeScope off(false);
        return z + y;
      },
      {"x", "y"});
  const auto wrapped = [&](bool grad) {
    const GradModeScope outside(grad);
    const ExportedProgram p = export_program(f, {tensor(10), tensor(12)});
    const std::vector<Node*> reads = p.graph().find_nodes(NodeKind::get_attr);
    EXPECT_EQ(reads.size(), 1U);
    auto& region = dynamic_cast<GraphModule&>(p.graph_module().get_submodule(reads.at(0)->target().text()));
    return calls(region.graph());
  };
  EXPECT_EQ(wrapped(false), "aten.sub.Tensor");
  EXPECT_EQ(wrapped(true), "aten.add.Tensor");
}

// test_export.py::test_fake_weights
TEST(ExportBehaviour, B326_a_module_of_fake_weights_is_exported) {
  const auto mode = FakeMode::make({.env = ShapeEnv::make()});
  std::shared_ptr<LinearModel> m;
  {
    const ModeScope scope(*mode);
    m = std::make_shared<LinearModel>();
  }
  const ExportedProgram p = export_program(*m, {rand({4, 3})});
  EXPECT_EQ(inputs(p), "p_linear_weight, p_linear_bias, x");
  EXPECT_EQ(str(p.graph().output_value().to_items()[0].to_node()->meta.val.to_tensor().sizes()), "[4, 2]");
}

// test_serialize.py: every kind of argument
TEST(ExportBehaviour, B327_numbers_dtypes_devices_layouts_and_formats_are_written_by_their_kind) {
  const auto f = traceable(
      [](const Tensor& x) -> Value {
        const Tensor a = full({2}, std::numeric_limits<double>::infinity(), DType::float64, {}, Device("cpu"));
        const Tensor b = clamp(x, Scalar(-1.5));
        const Tensor c = x.to(DType::bfloat16, false, false, MemoryFormat::contiguous);
        const Tensor d = cat({x, x}, 1);
        const Tensor e = empty({2}, {}, Layout::strided);
        return tuple({a, b, c, d, e});
      },
      {"x"});
  const json program = saved_json(export_program(f, {rand({2, 3})}));
  const json& fill = node_of(program, "torch.ops.aten.full.default");
  EXPECT_EQ(argument(fill, "size"), (json{{"as_ints", {2}}}));
  EXPECT_EQ(argument(fill, "fill_value"), (json{{"as_float", "Infinity"}}));
  EXPECT_EQ(argument(fill, "dtype"), (json{{"as_scalar_type", 8}}));
  EXPECT_EQ(argument(fill, "device"), (json{{"as_device", {{"type", "cpu"}, {"index", nullptr}}}}));
  EXPECT_EQ(argument(node_of(program, "torch.ops.aten.clamp.default"), "min"), (json{{"as_float", -1.5}}));
  const json& cast = node_of(program, "torch.ops.aten.to.dtype");
  EXPECT_EQ(argument(cast, "dtype"), (json{{"as_scalar_type", 13}}));
  EXPECT_EQ(argument(cast, "memory_format"), (json{{"as_memory_format", 1}}));
  const json& joined = node_of(program, "torch.ops.aten.cat.default");
  EXPECT_EQ(argument(joined, "tensors"), (json{{"as_tensors", {{{"name", "x"}}, {{"name", "x"}}}}}));
  EXPECT_EQ(argument(joined, "dim"), (json{{"as_int", 1}}));
  EXPECT_EQ(argument(node_of(program, "torch.ops.aten.empty.memory_format"), "layout"), (json{{"as_layout", 7}}));
}

// test_serialize.py::test_list_of_optional_tensors
TEST(ExportBehaviour, B328_a_list_with_missing_tensors_is_written_and_read) {
  const auto f = traceable([](const Tensor& x, const Tensor& i) { return x.index_by({Slice(), Slice(), i}); }, {"x", "i"});
  const ExportedProgram p = export_program(f, {rand({2, 3, 8}), tensor({1, 3, 5, 7})});
  const json program = saved_json(p);
  const json& indices = argument(node_of(program, "torch.ops.aten.index.Tensor"), "indices").at("as_optional_tensors");
  ASSERT_EQ(indices.size(), 3U);
  EXPECT_EQ(indices[0], (json{{"as_none", true}}));
  EXPECT_EQ(indices[2], (json{{"as_tensor", {{"name", "i"}}}}));
  const Tensor x = rand({2, 3, 8});
  EXPECT_TRUE(same(round_trip(p)->call({x, tensor({1, 3, 5, 7})}), x.index_by({Slice(), Slice(), tensor({1, 3, 5, 7})})));
}

const auto returns_sizes = traceable(
    [](const Tensor& x) -> Value {
      const SymInt n = x.sym_size(0);
      const Tensor y = x + 1;
      const SymInt twice = n * 2;
      return tuple({y, twice, sym_float(n) / 2.0});
    },
    {"x"});
ExportedProgram with_dynamic_rows() {
  return export_program(returns_sizes, {rand({4, 3})}, {},
                        {.dynamic_shapes = DS::dict({{"x", DS::dict({{0, Dim("n", 2, 16)}})}})});
}

// test_serialize.py::test_shape: symbolic integers and floats as outputs
TEST(ExportBehaviour, B329_symbolic_integers_and_floats_are_outputs_of_a_file) {
  const ExportedProgram p = with_dynamic_rows();
  const json graph = saved_json(p).at("graph_module").at("graph");
  EXPECT_EQ(graph.at("outputs")[1], (json{{"as_sym_int", {{"as_name", "mul"}}}}));
  EXPECT_EQ(graph.at("outputs")[2], (json{{"as_sym_float", {{"as_name", "truediv"}}}}));
  const json program = saved_json(p);
  EXPECT_EQ(argument(node_of(program, "_operator.mul"), "a"), (json{{"as_sym_int", {{"as_name", "sym_size_int_1"}}}}));
  const Value out = round_trip(p)->call({rand({6, 3})});
  EXPECT_EQ(out.to_items()[1].to_int(), 12);
  EXPECT_EQ(out.to_items()[2].to_float(), 3.0);
}

// test_serialize.py: ranges and hints
TEST(ExportBehaviour, B330_a_file_has_ranges_by_symbol_and_expressions_with_hints) {
  const json program = saved_json(with_dynamic_rows());
  ASSERT_EQ(program.at("range_constraints").size(), 1U);
  EXPECT_EQ(program.at("range_constraints").begin().value(), (json{{"min_val", 2}, {"max_val", 16}}));
  const json& values = program.at("graph_module").at("graph").at("sym_int_values");
  EXPECT_THAT(values.at("mul").at("as_expr").at("expr_str").get<std::string>(), HasSubstr("Mul(Integer(2), Symbol("));
  EXPECT_EQ(values.at("mul").at("as_expr").at("hint"), (json{{"as_int", 8}}));
}

struct Layered : Typed<Layered> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Sequential> sub = child_module("sub", std::make_shared<Sequential>(std::vector<std::shared_ptr<Module>>{
                                                  std::make_shared<Linear>(3, 4), std::make_shared<ReLU>()}));
  Child<Linear> lin = child<Linear>("lin", 4, 2);
  Tensor forward(const Tensor& x) { return lin(sub->call({x}).to_tensor()); }
};

// test_unflatten.py::test_unflatten_nested (graphs of the parts)
TEST(ExportBehaviour, B331_an_unflattened_module_calls_its_parts_by_path) {
  Layered m;
  const auto u = unflatten(export_program(m, {rand({2, 3})}));
  std::vector<std::string> names;
  for (const auto& [path, module] : u->named_modules()) names.push_back(path);
  EXPECT_THAT(names, ElementsAre("", "sub", "sub.0", "sub.1", "lin"));
  EXPECT_EQ(
      u->graph().format_graph(),
      "graph():\n    %x : [num_users=1] = placeholder[target=x]\n    %sub : [num_users=1] = call_module[target=sub](args = "
      "(%x,), kwargs = {})\n    %lin : [num_users=1] = call_module[target=lin](args = (%sub,), kwargs = {})\n    return "
      "(lin,)");
  const auto& inner = dynamic_cast<GraphModule&>(u->get_submodule("sub"));
  EXPECT_EQ(
      inner.graph().format_graph(),
      "graph():\n    %x : [num_users=1] = placeholder[target=x]\n    %_0 : [num_users=1] = call_module[target=0](args = "
      "(%x,), kwargs = {})\n    %_1 : [num_users=1] = call_module[target=1](args = (%_0,), kwargs = {})\n    return _1");
}

// test_unflatten.py: a part without a kept signature replaced by a module of one argument
TEST(ExportBehaviour, B332_a_part_of_one_input_is_replaced_by_another_module) {
  Layered m;
  const auto u = unflatten(export_program(m, {rand({2, 3})}));
  u->set_submodule("lin", std::make_shared<Identity>());
  EXPECT_EQ(str(u->call({rand({2, 3})}).to_tensor().sizes()), "[2, 4]");
}

// test_export.py::test_module: the module of a program
TEST(ExportBehaviour, B333_the_module_of_a_program_reads_state_first_and_checks_its_inputs) {
  Layered m;
  const auto module = export_program(m, {rand({2, 3})}).module();
  std::vector<std::string> lines;
  for (const Node* n : module->graph().nodes()) lines.push_back(n->format_node());
  ASSERT_EQ(lines.size(), 10U);
  EXPECT_EQ(lines[0], "%sub_0_weight : [num_users=1] = get_attr[target=sub.0.weight]");
  EXPECT_EQ(lines[3], "%lin_bias : [num_users=1] = get_attr[target=lin.bias]");
  EXPECT_EQ(lines[4], "%x : [num_users=2] = placeholder[target=x]");
  EXPECT_EQ(lines[5], "%_guards_fn : [num_users=0] = call_module[target=_guards_fn](args = (%x,), kwargs = {})");
  EXPECT_EQ(lines[9], "return (linear_1,)");
}

// test_export.py::test_module_call_graph
TEST(ExportBehaviour, B334_the_calls_of_modules_are_listed_outermost_first) {
  Layered m;
  const ExportedProgram p = export_program(m, {rand({2, 3})});
  std::vector<std::string> calls;
  for (const ModuleCallEntry& e : p.module_call_graph()) calls.push_back(e.fqn + (e.signature ? " kept" : ""));
  EXPECT_THAT(calls, ElementsAre(" kept", "sub", "sub.0", "sub.1", "lin"));
}

// test_export.py: printing a signature
TEST(ExportBehaviour, B335_a_signature_prints_inputs_and_outputs) {
  Layered m;
  EXPECT_EQ(
      export_program(m, {rand({2, 3})}).graph_signature().str(),
      "\n# inputs\np_sub_0_weight: PARAMETER target='sub.0.weight'\np_sub_0_bias: PARAMETER target='sub.0.bias'\n"
      "p_lin_weight: PARAMETER target='lin.weight'\np_lin_bias: PARAMETER target='lin.bias'\nx: USER_INPUT\n\n# outputs\n"
      "linear_1: USER_OUTPUT\n");
}

// test_verifier.py::test_verifier_higher_order and its kin: what a dialect allows
TEST(ExportBehaviour, B336_a_graph_with_a_module_call_is_no_program) {
  Layered m;
  ExportedProgram::Parts parts = export_program(m, {rand({2, 3})}).parts();
  parts.graph_module = deep_copy(*parts.graph_module);
  Graph& g = parts.graph_module->graph();
  Node* relu = g.find_node("relu");
  parts.graph_module->add_submodule("act", std::make_shared<ReLU>());
  {
    const auto where = g.inserting_after(relu);
    relu->replace_all_uses_with(g.call_module("act", {relu}), [&](Node* user) { return user->name() != "act"; });
  }
  EXPECT_THAT(error_of([&] { ExportedProgram bad(std::move(parts)); }), HasSubstr("call_module"));
}

// test_passes.py: a pass that keeps the signature
TEST(ExportBehaviour, B337_a_pass_over_a_program_leaves_the_old_one_alone) {
  LinearModel m;
  const ExportedProgram p = export_program(m, {rand({4, 3})});
  const ExportedProgram doubled = p.transform({[](GraphModule& gm) {
    Node* linear = gm.graph().find_node("linear");
    const auto where = gm.graph().inserting_after(linear);
    Node* twice = gm.graph().call_function(get_operator("aten::mul.Tensor"), {linear, 2});
    twice->meta.val = linear->meta.val;
    linear->replace_all_uses_with(twice, [&](Node* user) { return user != twice; });
    return true;
  }});
  const Tensor x = rand({4, 3});
  EXPECT_TRUE(same(doubled.call({x}), m.call({x}).to_tensor() * 2));
  EXPECT_TRUE(same(p.call({x}), m.call({x})));
  EXPECT_EQ(doubled.graph_signature().output_specs[0].arg.name,
            doubled.graph().output_value().to_items()[0].to_node()->name());
  EXPECT_NO_THROW(doubled.validate());
}

// test_export.py::test_export_func_with_default_kwargs and its kin
TEST(ExportBehaviour, B338_a_missing_optional_tensor_is_an_input_that_is_none) {
  const auto f =
      traceable([](const Tensor& x, const std::optional<Tensor>& y) { return y && y->defined() ? x + *y : x; }, {"x", "y"});
  const ExportedProgram p = export_program(f, {rand({2}), None{}});
  EXPECT_EQ(code_of(p), "def forward(self, x, y):\n    return (x,)");
  EXPECT_TRUE(same(p.call({ones({2}), None{}}), ones({2})));
}

}  // namespace
}  // namespace calque::export_test
