// Programs that write and programs of open sizes: behaviours that PyTorch's test/export/test_export.py checks. What is expected
// is what PyTorch gave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/nn/functional.h"
#include "calque/nn/nn.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/pooling.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/zeros.h"
#include "export/export_support.h"

namespace calque::export_writes_test {
namespace {

using ::testing::HasSubstr;

// The functional form of a function, without what Python's front end adds to factories.
std::string functional(const TraceableFunction& f, const Values& args) {
  const std::string code = export_program(f, args).run_decompositions({}).graph_module().code();
  const size_t from = code.find("def forward");
  return code.substr(from, code.find_last_not_of(" \n") + 1 - from);
}
std::string signature(const ExportedProgram& p) {
  std::string out;
  for (const OutputSpec& s : p.graph_signature().output_specs)
    out += std::string(name(s.kind)) + " " + s.arg.name + (s.target.empty() ? "" : " " + s.target) + "\n";
  return out;
}

// x[:, 0] += 1
TEST(ExportWritesBehaviour, B339_a_column_that_is_added_to_is_scattered_into_the_input) {
  const auto f = traceable(
      [](const Tensor& x) {
        x.select(1, 0).add_(1);
        return x.sum();
      },
      {"x"});
  EXPECT_EQ(functional(f, {rand({2, 3})}),
            "def forward(self, x):\n    select = torch.ops.aten.select.int(x, 1, 0)\n    add = "
            "torch.ops.aten.add.Tensor(select, 1);  select = None\n    select_scatter = "
            "torch.ops.aten.select_scatter.default(x, add, 1, 0);  x = add = None\n    sum_1 = "
            "torch.ops.aten.sum.default(select_scatter)\n    return (select_scatter, sum_1)");
}

// x.t().add_(2)
TEST(ExportWritesBehaviour, B340_a_write_through_a_transpose_is_transposed_back) {
  const auto f = traceable(
      [](const Tensor& x) {
        x.t().add_(2);
        return x * 1;
      },
      {"x"});
  EXPECT_EQ(
      functional(f, {rand({2, 3})}),
      "def forward(self, x):\n    t = torch.ops.aten.t.default(x);  x = None\n    add = torch.ops.aten.add.Tensor(t, 2);  t "
      "= None\n    t_1 = torch.ops.aten.t.default(add);  add = None\n    mul = torch.ops.aten.mul.Tensor(t_1, 1)\n    "
      "return (t_1, mul)");
}

// x.view(-1)[1:3].mul_(2)
TEST(ExportWritesBehaviour, B341_a_write_through_two_views_goes_back_through_both) {
  const auto f = traceable(
      [](const Tensor& x) {
        x.view({-1}).slice(0, 1, 3).mul_(2);
        return x + 0;
      },
      {"x"});
  EXPECT_EQ(
      functional(f, {rand({2, 3})}),
      "def forward(self, x):\n    view = torch.ops.aten.view.default(x, [-1])\n    slice_1 = "
      "torch.ops.aten.slice.Tensor(view, 0, 1, 3);  view = None\n    mul = torch.ops.aten.mul.Tensor(slice_1, 2);  slice_1 "
      "= None\n    view_1 = torch.ops.aten.view.default(x, [-1]);  x = None\n    slice_scatter = "
      "torch.ops.aten.slice_scatter.default(view_1, mul, 0, 1, 3);  view_1 = mul = None\n    view_2 = "
      "torch.ops.aten.view.default(slice_scatter, [2, 3]);  slice_scatter = None\n    add = "
      "torch.ops.aten.add.Tensor(view_2, 0)\n    return (view_2, add)");
}

// rows and columns of a fresh tensor (mended)
TEST(ExportWritesBehaviour, B342_a_fresh_tensor_that_is_filled_piece_by_piece) {
  const auto f = traceable(
      [](const Tensor& x) {
        const Tensor y = zeros({3, 2});
        y.select(0, 1).copy_(x);
        y.select(1, 0).fill_(7);
        return y;
      },
      {"x"});
  EXPECT_EQ(
      functional(f, {rand({2})}),
      "def forward(self, x):\n    zeros = torch.ops.aten.zeros.default([3, 2])\n    select = "
      "torch.ops.aten.select.int(zeros, 0, 1)\n    copy = torch.ops.aten.copy.default(select, x);  select = x = None\n    "
      "select_scatter = torch.ops.aten.select_scatter.default(zeros, copy, 0, 1);  zeros = copy = None\n    select_3 = "
      "torch.ops.aten.select.int(select_scatter, 1, 0)\n    fill = torch.ops.aten.fill.Scalar(select_3, 7);  select_3 = "
      "None\n    select_scatter_1 = torch.ops.aten.select_scatter.default(select_scatter, fill, 1, 0);  select_scatter = "
      "fill = None\n    return (select_scatter_1,)");
}

// two views of one memory (mended)
TEST(ExportWritesBehaviour, B343_another_view_sees_what_was_written) {
  const auto f = traceable(
      [](const Tensor& x) -> Value {
        const Tensor y = x.clone();
        const Tensor v = y.select(0, 0);
        const Tensor w = y.slice(0, 0, 1);
        v.add_(1);
        return tuple({w, v});
      },
      {"x"});
  EXPECT_EQ(
      functional(f, {rand({2, 2})}),
      "def forward(self, x):\n    clone = torch.ops.aten.clone.default(x);  x = None\n    select = "
      "torch.ops.aten.select.int(clone, 0, 0)\n    add = torch.ops.aten.add.Tensor(select, 1);  select = None\n    "
      "select_scatter = torch.ops.aten.select_scatter.default(clone, add, 0, 0);  clone = add = None\n    select_1 = "
      "torch.ops.aten.select.int(select_scatter, 0, 0)\n    slice_2 = torch.ops.aten.slice.Tensor(select_scatter, 0, 0, "
      "1);  select_scatter = None\n    return (slice_2, select_1)");
}

// index_copy_
TEST(ExportWritesBehaviour, B344_rows_copied_by_index_into_an_input) {
  const auto f = traceable(
      [](const Tensor& x, const Tensor& y) {
        x.index_copy_(0, y, ones({2, 3}));
        return x.sum();
      },
      {"x", "y"});
  EXPECT_EQ(functional(f, {rand({4, 3}), tensor({0, 2})}),
            "def forward(self, x, y):\n    ones = torch.ops.aten.ones.default([2, 3])\n    index_copy = "
            "torch.ops.aten.index_copy.default(x, 0, y, ones);  x = y = ones = None\n    sum_1 = "
            "torch.ops.aten.sum.default(index_copy)\n    return (index_copy, sum_1)");
}

struct Normalised : Typed<Normalised> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<BatchNorm1d> bn = child<BatchNorm1d>("bn", 3);
  Tensor forward(const Tensor& x) { return bn(x); }
};

// test_export.py::test_export_with_batch_norm in training
TEST(ExportWritesBehaviour, B345_statistics_of_a_training_norm_are_mutations_in_the_order_of_the_buffers) {
  Normalised m;
  m.train();
  const ExportedProgram p = export_program(m, {rand({4, 3})}).run_decompositions();
  EXPECT_EQ(signature(p),
            "BUFFER_MUTATION getitem_3 bn.running_mean\nBUFFER_MUTATION getitem_4 bn.running_var\nBUFFER_MUTATION add "
            "bn.num_batches_tracked\nUSER_OUTPUT getitem\n");
  EXPECT_EQ(count(p, "aten._native_batch_norm_legit_functional.default"), 1U);
}

// the same for inference
TEST(ExportWritesBehaviour, B346_a_norm_for_inference_is_one_operator_and_writes_nothing) {
  Normalised m;
  m.eval();
  const ExportedProgram p = export_program(m, {rand({4, 3})}).run_decompositions();
  EXPECT_EQ(signature(p), "USER_OUTPUT getitem\n");
  EXPECT_EQ(calls(p.graph()), "aten._native_batch_norm_legit_no_training.default operator.getitem");
}

// dropout in training
TEST(ExportWritesBehaviour, B347_dropout_in_training_is_native_dropout) {
  const auto f = traceable([](const Tensor& x) { return dropout(x, 0.5, true); }, {"x"});
  EXPECT_EQ(calls(export_program(f, {rand({4})}).run_decompositions().graph()),
            "aten.native_dropout.default operator.getitem");
}

// ---- sizes of results ---------------------------------------------------------------------------------------------------

template <class F>
ExportedProgram open_export(F f, const Tensor& x, std::vector<std::pair<Value, DS>> dims) {
  return export_program(traceable(f, {"x"}), {x}, {}, {.dynamic_shapes = DS::dict({{"x", DS::dict(std::move(dims))}})});
}
std::string result_size(const ExportedProgram& p) {
  std::string out;
  for (const SymInt s : p.graph().output_value().to_items()[0].to_node()->meta.val.to_tensor().sym_sizes())
    out += (out.empty() ? "" : ", ") + s.str();
  return out;
}
const Dim b("b", 2, 64);

TEST(ExportSizesBehaviour, B348_a_reshape_of_an_even_number_of_rows) {
  const ExportedProgram p = open_export(
      [](const Tensor& x) {
        return x.reshape({-1, 6});
      },
      rand({4, 3}), {{0, 2 * Dim("n", 1, 64)}});
  EXPECT_EQ(str(p.call({rand({6, 3})}).to_tensor().sizes()), "[3, 6]");
  const std::string error = error_of([] {
    open_export([](const Tensor& x) { return x.reshape({-1, 6}); }, rand({4, 3}), {{0, Dim("n", 2, 64)}});
  });
  EXPECT_THAT(error, HasSubstr("Constraints violated (n)!"));
}

TEST(ExportSizesBehaviour, B349_two_open_dimensions_are_flattened_into_their_product) {
  const ExportedProgram p = open_export([](const Tensor& x) { return x.flatten(); }, rand({4, 3}), {{0, b}, {1, Dim("c")}});
  EXPECT_EQ(result_size(p), "s27*s77");
  EXPECT_EQ(p.call({rand({2, 2})}).to_tensor().size(0), 4);
}

TEST(ExportSizesBehaviour, B350_the_last_row_needs_no_bound) {
  const ExportedProgram p = open_export([](const Tensor& x) { return x.select(0, -1); }, rand({4, 3}), {{0, b}});
  EXPECT_EQ(p.range_constraints()[0].second, (ValueRange{2, 64}));
  EXPECT_EQ(result_size(p), "3");
}

TEST(ExportSizesBehaviour, B351_sizes_of_pools_convolutions_and_interpolation) {
  const Dim h("h", 4, 32);
  EXPECT_EQ(result_size(open_export(
                [](const Tensor& x) {
                  return avg_pool2d(x, {2, 2});
                },
                rand({1, 2, 8, 8}), {{2, h}})),
            "1, 2, (s53//2), 4");
  EXPECT_EQ(result_size(open_export(
                [](const Tensor& x) {
                  return conv1d(x, ones({1, 2, 3}));
                },
                rand({1, 2, 8}), {{2, h}})),
            "1, 1, s53 - 2");
  EXPECT_EQ(result_size(open_export(
                [](const Tensor& x) { return functional::interpolate(x, {.scale_factor = std::vector<double>{2.0}}); },
                rand({1, 2, 8}), {{2, h}})),
            "1, 2, 2*s53");
}

TEST(ExportSizesBehaviour, B352_a_square_made_of_a_size_multiplies_the_rows) {
  const ExportedProgram p = open_export(
      [](const Tensor& x) {
        return matmul(ones({x.sym_size(0), x.sym_size(0)}).tril(), x);
      },
      rand({4, 3}), {{0, b}});
  EXPECT_EQ(result_size(p), "s77, 3");
  EXPECT_EQ(str(p.call({rand({6, 3})}).to_tensor().sizes()), "[6, 3]");
}

TEST(ExportSizesBehaviour, B353_a_branch_on_parity_suggests_a_multiple) {
  const std::string error = error_of([] {
    open_export([](const Tensor& x) { return guard(x.sym_size(0) % 2 == 0) ? x + 1 : x - 1; }, rand({4, 3}), {{0, b}});
  });
  EXPECT_THAT(error, HasSubstr("satisfy the generated guard (L['x'].size()[0] % 2) == 0"));
  EXPECT_THAT(error, HasSubstr("Suggested fixes:\n  _b = Dim('_b', min=1, max=32)\n  b = 2*_b"));
}

TEST(ExportSizesBehaviour, B354_an_automatic_size_takes_the_bound_of_a_branch) {
  const ExportedProgram p =
      open_export([](const Tensor& x) { return guard(x.sym_size(0) > 3) ? x + 1 : x - 1; }, rand({4, 3}), {{0, Dim::AUTO}});
  EXPECT_EQ(p.range_constraints()[0].second, (ValueRange{4, ValueRange::unbounded_above}));
  EXPECT_TRUE(same(p.call({zeros({6, 3})}), ones({6, 3})));
  EXPECT_NE(error_of([&] { p.call({zeros({3, 3})}); }, ErrorKind::constraint_violation), "");
}

TEST(ExportSizesBehaviour, B355_an_automatic_size_may_turn_out_fixed_and_a_dynamic_one_may_not) {
  const auto f = [](const Tensor& x) { return x + ones({4, 3}); };
  const ExportedProgram p = open_export(f, rand({4, 3}), {{0, Dim::AUTO}});
  EXPECT_TRUE(p.range_constraints().empty());
  EXPECT_EQ(result_size(p), "4, 3");
  EXPECT_THAT(error_of([&] {
                open_export(f, rand({4, 3}), {{0, Dim::DYNAMIC}});
              }),
              HasSubstr("You marked L['x'].size()[0] as dynamic but your code specialized it to be a constant (4)."));
}

TEST(ExportSizesBehaviour, B356_bounds_of_hints_are_ranges_that_are_checked) {
  const auto f = [](const Tensor& x) { return x + 1; };
  const ExportedProgram dynamic = open_export(f, rand({4, 3}), {{0, Dim::DYNAMIC(2, 5)}});
  EXPECT_EQ(dynamic.range_constraints()[0].second, (ValueRange{2, 5}));
  EXPECT_NE(error_of([&] { dynamic.call({rand({6, 3})}); }, ErrorKind::constraint_violation), "");
  const ExportedProgram automatic = open_export(f, rand({4, 3}), {{0, Dim::AUTO({}, 5)}});
  EXPECT_EQ(automatic.range_constraints()[0].second.upper, 5);
}

TEST(ExportSizesBehaviour, B357_an_automatic_size_that_must_be_even_is_checked_by_the_program) {
  const ExportedProgram p = open_export([](const Tensor& x) { return x.view({-1, 2, 3}); }, rand({4, 3}), {{0, Dim::AUTO}});
  EXPECT_EQ(str(p.call({rand({6, 3})}).to_tensor().sizes()), "[3, 2, 3]");
  EXPECT_NE(error_of([&] { p.call({rand({5, 3})}); }), "");
}

}  // namespace
}  // namespace calque::export_writes_test
