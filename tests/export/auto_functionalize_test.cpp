// Users' operators that write their arguments: exported as they are, in a form that writes nothing after decomposition.
// Programs as torch.export prints them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/export/pt2.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/library.h"
#include "calque/trace/functional.h"
#include "export/export_support.h"
#include "export/pt2_support.h"

namespace calque::auto_functionalize_test {
namespace {

using ::testing::HasSubstr;

void add_to(const Tensor& x, TensorList y, const Tensor& z, SymInt w, const Tensor& n) {
  x.add_(y[0] + static_cast<double>(w.as_int()));
  if (z.defined()) z.add_(y[1] + n);
}
std::tuple<Tensor, Tensor> add_and_give(const Tensor& x, const Tensor& y) {
  x.add_(y);
  return {x + y, x * 2};
}
Tensor scale(const Tensor& x, double by) { return x.mul_(by); }

void register_operators() {
  static const bool done = [] {
    Library library("writers");
    library.def("add_to(Tensor(a!) x, Tensor[] y, Tensor(b!)? z, SymInt w, Tensor n) -> ()")
        .own([](const Tensor&, TensorList, const Tensor&, SymInt, const Tensor&) {}, add_to);
    library.def("add_and_give(Tensor(a!) x, Tensor y) -> (Tensor, Tensor)").own(add_and_give, add_and_give);
    library.def("bump(Tensor(a!) x) -> ()").own([](const Tensor&) {}, [](const Tensor& x) { x.add_(1); });
    library.def("bump_all(Tensor(a!)[] xs) -> ()")
        .own([](TensorList) {},
             [](TensorList xs) {
               for (const Tensor& x : xs) x.add_(1);
             });
    library.def("scale_(Tensor(a!) x, float by) -> Tensor(a!)").own(scale, scale);
    return true;
  }();
  EXPECT_TRUE(done);
}

std::string decomposed(const ExportedProgram& p) { return p.run_decompositions().graph_module().code(); }

struct WritesInputs : Typed<WritesInputs> {
  static constexpr const char* forward_arguments[] = {"x", "y", "z", "n"};
  Tensor forward(const Tensor& x, const Tensor& y, const Tensor& z, const Tensor& n) {
    calque::call("writers::add_to", {x, list({y, n}), z, 2, n});
    const Tensor sum = x + y;
    return sum + z;
  }
};

TEST(AutoFunctionalize, T332_operators_that_write_are_wrapped_on_decomposition) {
  register_operators();
  WritesInputs m;
  const Values args{rand({3}), rand({3}), rand({3}), rand({3})};
  const ExportedProgram p = export_program(m, args);
  EXPECT_EQ(calls(p.graph()), "writers.add_to.default aten.add.Tensor aten.add.Tensor");
  const ExportedProgram functional = p.run_decompositions();
  EXPECT_THAT(
      functional.graph_module().code(),
      HasSubstr("auto_functionalized_v2 = torch.ops.higher_order.auto_functionalized_v2(torch.ops.writers.add_to.default, y "
                "= [y, n], w = 2, n = n, "
                "_x_base_index = 0, _z_base_index = 1, _all_bases = [x, z]);"));
  EXPECT_THAT(functional.graph_module().code(), HasSubstr("return (getitem_1, getitem_2, add_1)"));
  ASSERT_EQ(functional.graph_signature().output_specs.size(), 3U);
  EXPECT_EQ(functional.graph_signature().output_specs[0].kind, OutputKind::user_input_mutation);
  EXPECT_EQ(functional.graph_signature().output_specs[0].target, "x");
  EXPECT_EQ(functional.graph_signature().output_specs[1].target, "z");
  expect_equal_to_eager(m, p, args);
  expect_equal_to_eager(m, functional, args);
  // Taken apart once more it stays one call.
  EXPECT_EQ(decomposed(functional), functional.graph_module().code());
}

struct WritesItsOwn : Typed<WritesItsOwn> {
  static constexpr const char* forward_arguments[] = {"x", "y"};
  Tensor forward(const Tensor& x, const Tensor& y) {
    const Tensor a = x * 2;
    const Values given = calque::call("writers::add_and_give", {a, y}).to_items();
    const Tensor sum = a + given[0].to_tensor();
    return sum + given[1].to_tensor();
  }
};

TEST(AutoFunctionalize, T332_results_come_before_what_was_written) {
  register_operators();
  WritesItsOwn m;
  const Values args{rand({3}), rand({3})};
  const ExportedProgram p = export_program(m, args);
  const std::string code = decomposed(p);
  EXPECT_THAT(code, HasSubstr("torch.ops.higher_order.auto_functionalized_v2(torch.ops.writers.add_and_give.default, y = y, "
                              "_x_base_index = 0, _all_bases = [mul]);"));
  EXPECT_THAT(code, HasSubstr("add = torch.ops.aten.add.Tensor(getitem_2, getitem);"));
  expect_equal_to_eager(m, p, args);
}

struct WritesViews : Typed<WritesViews> {
  static constexpr const char* forward_arguments[] = {"x"};
  Tensor forward(const Tensor& x) {
    const Tensor a = x * 2;
    calque::call("writers::bump", {a.select(0, 0)});
    calque::call("writers::bump", {a.select(1, 1)});
    calque::call("writers::bump", {a.slice(0, 1, 3)});
    calque::call("writers::bump", {a.view({x.sym_size(0), x.sym_size(1)})});
    const Tensor first = a.select(0, 0);
    const Tensor second = a.select(0, 1);
    calque::call("writers::add_to", {first, list({second, second}), a.select(0, 2), 3, second});
    calque::call("writers::bump_all", {list({a, first})});
    return a;
  }
};

TEST(AutoFunctionalize, T332_a_view_is_told_as_part_of_its_memory) {
  register_operators();
  WritesViews m;
  const Values args{rand({3, 3})};
  const ExportedProgram p = export_program(m, args);
  const std::string code = decomposed(p);
  EXPECT_THAT(code,
              HasSubstr("_x_base_index = 0, _x_size = (3,), _x_stride = (1,), _x_storage_offset = 0, _all_bases = [mul]"));
  EXPECT_THAT(
      code,
      HasSubstr("_x_base_index = 0, _x_size = (3,), _x_stride = (3,), _x_storage_offset = 1, _all_bases = [getitem_1]"));
  EXPECT_THAT(
      code,
      HasSubstr("_x_base_index = 0, _x_slice_dim = 0, _x_slice_start = 1, _x_slice_end = 3, _all_bases = [getitem_3]"));
  EXPECT_THAT(code, HasSubstr("_x_base_index = 0, _x_alias = True, _all_bases = [getitem_5]"));
  EXPECT_THAT(
      code,
      HasSubstr("_z_base_index = 0, _z_size = (3,), _z_stride = (1,), _z_storage_offset = 6, _all_bases = [getitem_7]"));
  EXPECT_THAT(code, HasSubstr("_xs_length = 2, _xs_0_base_index = 0, _xs_1_base_index = 0, _xs_1_size = (3,), _xs_1_stride "
                              "= (1,), _xs_1_storage_offset = 0, _all_bases = [getitem_9]"));
  expect_equal_to_eager(m, p, args);
  // With a dynamic size the view's numbers are the program's.
  const ExportedProgram dynamic =
      export_program(m, args, {}, {.dynamic_shapes = DS::tuple({DS::tuple({Dim("rows", 3, 9), Dim::STATIC})})});
  expect_equal_to_eager(m, dynamic, {rand({5, 3})});
}

struct WritesABuffer : Typed<WritesABuffer> {
  static constexpr const char* forward_arguments[] = {"x"};
  Buffer b = register_buffer("b", zeros({3}));
  Tensor forward(const Tensor& x) {
    calque::call("writers::add_to", {*b, list({x, x}), Value(), 3, x});
    return *b + x;
  }
};

TEST(AutoFunctionalize, T332_buffers_and_arguments_left_out) {
  register_operators();
  WritesABuffer m;
  const ExportedProgram p = export_program(m, {rand({3})});
  const ExportedProgram functional = p.run_decompositions();
  EXPECT_THAT(functional.graph_module().code(),
              HasSubstr("y = [x, x], w = 3, n = x, _x_base_index = 0, _z_base_index = None, _all_bases = [b_b]"));
  EXPECT_EQ(functional.graph_signature().buffers_to_mutate().size(), 1U);
  expect_equal_to_eager(m, p, {rand({3})});
  // As a file; what is nothing has a name there, as in PyTorch.
  const auto again = pt2_test::load_bytes(serialize_program(functional));
  EXPECT_THAT(again->graph_module().code(),
              HasSubstr("as_none = auto_functionalized_v2[0];  as_none = None\n    getitem_1 = auto_functionalized_v2[1];"));
  const Tensor x = rand({3});
  EXPECT_TRUE(same(again->module()->call({x}), functional.module()->call({x})));
}

TEST(AutoFunctionalize, T332_an_in_place_operator_gives_its_argument) {
  register_operators();
  const auto f = traceable(
      [](const Tensor& x) {
        const Tensor a = x + 1;
        const Tensor same = calque::call("writers::scale_", {a, 3.0}).to_tensor();
        same.add_(1);
        return a * same;
      },
      {"x"});
  const Tensor x = rand({3});
  const ExportedProgram p = export_program(f, {x});
  const ExportedProgram functional = p.run_decompositions();
  EXPECT_EQ(count(functional, "torch.ops.higher_order.auto_functionalized_v2"), 1U);
  const Tensor expected = ((x + 1) * 3 + 1) * ((x + 1) * 3 + 1);
  EXPECT_TRUE(same(p.module()->call({x}), expected));
  EXPECT_TRUE(same(functional.module()->call({x}), expected));
}

TEST(AutoFunctionalize, T332_functionalize_outside_a_trace_computes) {
  register_operators();
  const Tensor x = rand({3});
  const Tensor before = x.clone();
  functionalize([](const Values& args) -> Value {
    calque::call("writers::bump", {args[0]});
    return args[0];
  })({x});
  EXPECT_TRUE(same(x, before + 1));
}

}  // namespace
}  // namespace calque::auto_functionalize_test
