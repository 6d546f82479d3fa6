// Exports: conditions that are checked when the program runs, values from tensor data. Rows of area `export`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/zeros.h"
#include "calque/sym/sym_math.h"
#include "calque/sym/unbacked.h"
#include "calque/trace/make_fx.h"
#include "export/capture/runtime_asserts.h"
#include "export/export_support.h"
#include "support/conformance.h"

namespace calque::export_asserts_test {
namespace {

using ::testing::HasSubstr;

DS dims(std::vector<std::pair<Value, DS>> entries) { return DS::dict(std::move(entries)); }
SymInt integer_in(const Tensor& t) { return Value(t.item()).to_sym_int(); }
size_t asserts(const ExportedProgram& p) { return count(p, "aten._assert_scalar.default"); }

TEST(ExportAsserts, T291_a_divisibility_that_no_dim_can_say) {
  const auto f = traceable([](const Tensor& x) { return x.view({x.sym_size(0) - 1, -1}); }, {"x"});
  const ExportedProgram p =
      export_program(f, {rand({4, 3})}, {},
                     {.dynamic_shapes = DS::dict({{"x", dims({{0, Dim::DYNAMIC}, {1, Dim::DYNAMIC}})}}),
                      .prefer_deferred_runtime_asserts_over_guards = true});
  EXPECT_THAT(p.str(), HasSubstr("Eq(Mod(s27*s77, s77 - 1), 0)"));
  EXPECT_EQ(p.call({rand({4, 3})}).to_tensor().sizes()[0], 3);
  EXPECT_THAT(error_of([&] { p.call({rand({4, 5})}); }), HasSubstr("Mod("));
}

TEST(ExportAsserts, deferred_asserts_are_decomposed_too) {
  const auto f = traceable([](const Tensor& x, const Tensor& y) { return x.reshape({-1}) + y; }, {"x", "y"});
  const DS any = dims({{0, Dim::DYNAMIC}});
  const ExportedProgram p =
      export_program(f, {rand({3, 4}), rand({12})}, {},
                     {.dynamic_shapes = DS::dict({{"x", dims({{0, Dim::DYNAMIC}, {1, Dim::DYNAMIC}})}, {"y", any}}),
                      .prefer_deferred_runtime_asserts_over_guards = true});
  const ExportedProgram q = p.run_decompositions();
  EXPECT_EQ(asserts(q), 1U);
  EXPECT_EQ(q.call({rand({2, 5}), rand({10})}).to_tensor().sizes()[0], 10);
  EXPECT_THAT(error_of([&] { q.call({rand({2, 5}), rand({9})}); }), HasSubstr("Eq(s27*s77, s17)"));
}

TEST(ExportAsserts, T293_a_slice_that_must_fit) {
  const auto f =
      traceable([](const Tensor& x, const Tensor& y) { return y.slice(0, floor_div(x.sym_size(0), 2)); }, {"x", "y"});
  const ExportedProgram p =
      export_program(f, {rand({8}), rand({6})}, {},
                     {.dynamic_shapes = DS::dict({{"x", dims({{0, Dim::DYNAMIC}})}, {"y", dims({{0, Dim::DYNAMIC}})}}),
                      .prefer_deferred_runtime_asserts_over_guards = true});
  EXPECT_THAT(p.str(), HasSubstr("((s77//2)) <= s17"));
  EXPECT_NE(p.call({rand({8}), rand({7})}).to_tensor().numel(), 0);
  EXPECT_THAT(error_of([&] { p.call({rand({10}), rand({4})}); }), HasSubstr("s77//2"));
}

TEST(ExportAsserts, T294_a_size_from_data) {
  const auto f = traceable(
      [](const Tensor& x) {
        const SymInt n = integer_in(x);
        (void)check_is_size(n);
        return full({n, 1}, 1.0);
      },
      {"x"});
  const ExportedProgram p = export_program(f, {tensor(3)});
  EXPECT_TRUE(same(p.call({tensor(3)}), ones({3, 1})));
  const TracedGraph traced = make_fx_values(f.body, {tensor(3)}, {.mode = TracingMode::symbolic});
  EXPECT_TRUE(same(traced.run({tensor(3)}), ones({3, 1})));
}

const auto checked_range = traceable(
    [](const Tensor& x) {
      const SymInt n = integer_in(x);
      (void)check(n >= 4);
      (void)check(n <= 7);
      return zeros({n, 4});
    },
    {"x"});

TEST(ExportAsserts, T295_checks_that_the_example_fails) {
  const ExportedProgram p = export_program(checked_range, {tensor(3)});
  EXPECT_THAT(error_of([&] { p.call({tensor(3)}); }), HasSubstr("Runtime assertion failed for expression u0 >= 4"));
}

TEST(ExportAsserts, T296_a_range_is_two_asserts) {
  const ExportedProgram p = export_program(checked_range, {tensor(5)});
  EXPECT_EQ(asserts(p), 2U);
  EXPECT_THAT(p.str(), testing::AllOf(HasSubstr("expression u0 >= 4"), HasSubstr("expression u0 <= 7")));
  // 2.13 leaves no sym_constrain_range_for_size in the graph: the range is the two asserts' alone.
  EXPECT_EQ(count(p, "aten.sym_constrain_range_for_size.default"), 0U);
  EXPECT_EQ(p.range_constraints().at(0).second, (ValueRange{4, 7}));
  EXPECT_EQ(str(p.call({tensor(6)}).to_tensor().sizes()), "[6, 4]");
  EXPECT_THAT(error_of([&] { p.call({tensor(30)}); }), HasSubstr("u0 <= 7"));
  EXPECT_THAT(error_of([&] { p.call({tensor(2)}); }), HasSubstr("u0 >= 4"));
}

TEST(ExportAsserts, T297_ranges_of_one_value_merge) {
  const auto f = traceable(
      [](const Tensor& x) {
        const SymInt n = integer_in(x);
        (void)check(n >= 0);
        (void)check(n >= 3);
        (void)check(n <= 10);
        (void)check(n <= 6);
        return zeros({n});
      },
      {"x"});
  const ExportedProgram p = export_program(f, {tensor(5)});
  EXPECT_EQ(asserts(p), 2U);
  EXPECT_EQ(p.range_constraints().at(0).second, (ValueRange{3, 6}));
  const ExportedProgram q = p.run_decompositions();
  EXPECT_EQ(asserts(q), 2U);
  EXPECT_EQ(q.range_constraints(), p.range_constraints());
  EXPECT_THAT(error_of([&] { q.call({tensor(2)}); }), HasSubstr("u0 >= 3"));
}

TEST(ExportAsserts, T298_no_assert_twice) {
  const auto f = traceable(
      [](const Tensor& x) {
        const SymInt n = integer_in(x);
        (void)check_is_size(n);
        return zeros({n});
      },
      {"x"});
  const ExportedProgram p = export_program(f, {tensor(5)});
  EXPECT_EQ(asserts(p), 1U);
  EXPECT_EQ(asserts(p.run_decompositions()), 1U);
}

TEST(ExportAsserts, T301_branches_on_data_are_refused) {
  const auto f = traceable(
      [](const Tensor& x) -> Tensor {
        if (guard(nonzero(x).sym_size(0) > 2)) return x + 1;
        return x;
      },
      {"x"});
  try {
    export_program(f, {rand({4})});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::data_dependent);
    EXPECT_THAT(e.what(), HasSubstr("could not guard on data-dependent expression u0 > 2"));
  }
}

TEST(ExportAsserts, T302_the_error_suggests_a_check) {
  const auto f = traceable(
      [](const Tensor& x) -> Tensor {
        const SymInt n = integer_in(x);
        if (guard(n > 5)) return ones({2});
        return zeros({2});
      },
      {"x"});
  const std::string error = error_of([&] { export_program(f, {tensor(7)}); });
  EXPECT_THAT(error, testing::AllOf(HasSubstr("u0 > 5"), HasSubstr("export_asserts_test.cpp"),
                                    HasSubstr("say so with check(u0 > 5); if it never does, with check(u0 <= 5)")));
  const auto fixed = traceable(
      [](const Tensor& x) -> Tensor {
        const SymInt n = integer_in(x);
        (void)check(n > 5);
        if (guard(n > 5)) return ones({2});
        return zeros({2});
      },
      {"x"});
  const ExportedProgram holds = export_program(fixed, {tensor(7)});
  EXPECT_EQ(calls(holds.graph()).find("zeros"), std::string::npos);
  EXPECT_THAT(error_of([&] { holds.call({tensor(3)}); }), HasSubstr("u0"));
  // The other fix takes the other branch.
  const auto negated = traceable(
      [](const Tensor& x) -> Tensor {
        const SymInt n = integer_in(x);
        (void)check(n <= 5);
        if (guard(n > 5)) return ones({2});
        return zeros({2});
      },
      {"x"});
  const ExportedProgram never = export_program(negated, {tensor(3)});
  EXPECT_EQ(calls(never.graph()).find("ones"), std::string::npos);
  EXPECT_THAT(error_of([&] { never.call({tensor(7)}); }), HasSubstr("u0 <= 5"));
  // One fix after the other: each error names what is open next.
  const auto two = [](int fixes) {
    return traceable(
        [fixes](const Tensor& x, const Tensor& y) -> Tensor {
          const SymInt n = integer_in(x);
          const SymInt m = integer_in(y);
          if (fixes > 0) (void)check(n == 4);
          if (fixes > 1) (void)check(m > 2);
          if (!guard(n == 4)) return zeros({2});
          return guard(m > 2) ? ones({2}) : zeros({3});
        },
        {"x", "y"});
  };
  EXPECT_THAT(error_of([&] {
                export_program(two(0), {tensor(4), tensor(3)});
              }),
              HasSubstr("could not guard on data-dependent expression Eq(u0, 4)"));
  EXPECT_THAT(error_of([&] {
                export_program(two(1), {tensor(4), tensor(3)});
              }),
              HasSubstr("could not guard on data-dependent expression u1 > 2"));
  EXPECT_EQ(error_of([&] { export_program(two(2), {tensor(4), tensor(3)}); }), "");
}

// Refused by the release that the row was taken from; 2.13 exports it, with the value's sign left open until view needs it.
TEST(ExportAsserts, T303_a_value_given_to_view) {
  // 2.13 does not refuse it.
  const auto f = traceable([](const Tensor& x, const Tensor& y) { return y.view({integer_in(x), -1}); }, {"x", "y"});
  const ExportedProgram p = export_program(f, {tensor(2), rand({6})});
  EXPECT_EQ(str(p.call({tensor(3), rand({6})}).to_tensor().sizes()), "[3, 2]");
  // What it must be is asserted, though nothing else needs the value then.
  const auto g = traceable([](const Tensor& n, const Tensor& x) { return x.view({integer_in(n), 4}); }, {"n", "x"});
  const ExportedProgram fixed = export_program(g, {tensor(6), rand({24})});
  EXPECT_EQ(str(fixed.call({tensor(6), rand({24})}).to_tensor().sizes()), "[6, 4]");
  EXPECT_THAT(error_of([&] { fixed.call({tensor(-1), rand({24})}); }), HasSubstr("expression u0 >= 6"));
  EXPECT_THAT(fixed.str(), HasSubstr("expression Eq(u0, 6)"));
  EXPECT_THAT(fixed.str(), HasSubstr("Range constraints: {u0: VR[6, 6]}"));
}

TEST(ExportAsserts, T304_masked_select_is_bounded_by_its_input) {
  const auto f = traceable([](const Tensor& x, const Tensor& mask) { return masked_select(x, mask); }, {"x", "mask"});
  const Dim a("a", 2, 100), b("b", 2, 7), c("c", 2, 5);
  const DS shape = dims({{0, a}, {1, b}, {2, c}});
  const ExportedProgram p = export_program(f, {rand({3, 4, 5}), rand({3, 4, 5}) > 0.5}, {},
                                           {.dynamic_shapes = DS::dict({{"x", shape}, {"mask", shape}})});
  int64_t greatest = 0;
  for (const auto& [symbol, range] : p.range_constraints()) greatest = std::max(greatest, range.upper);
  EXPECT_EQ(greatest, 100 * 7 * 5);
}

TEST(ExportAsserts, T305_nonzero_is_bounded_by_its_input) {
  const auto f = traceable([](const Tensor& x) { return nonzero(x); }, {"x"});
  const auto upper = [&](const Tensor& x) {
    const ExportedProgram p = export_program(f, {x});
    return p.range_constraints().at(0).second.upper;
  };
  EXPECT_EQ(upper(rand({2, 3, 4})), 24);
  EXPECT_EQ(upper(tensor(3.0)), 1);
}

TEST(ExportAsserts, T306_where_a_value_is_found) {
  const ExportedProgram p = export_program(traceable([](const Tensor& x) { return nonzero(x); }, {"x"}), {rand({20})});
  const auto bindings = find_unbacked_bindings(p.graph());
  ASSERT_EQ(bindings.size(), 1U);
  EXPECT_EQ(bindings.begin()->first->name(), "nonzero");
  EXPECT_EQ(str(bindings.begin()->second.at("u0")), ".size()[0]");
  // A size that is a multiple of the value.
  const auto env = ShapeEnv::make();
  const auto mode = FakeMode::make({.env = env});
  const SymInt u = env->create_unbacked();
  Graph graph;
  Node* n = graph.placeholder("x");
  n->meta.val = mode->make_fake(Meta{{u * 10}, {1}, DType::float32, Device()});
  EXPECT_EQ(str(find_unbacked_bindings(graph).at(n).at("u0")), ".size()[0].__floordiv__(10)");
}

TEST(ExportAsserts, T341_sizes_are_computed_from_inputs) {
  const auto f = traceable(
      [](const Tensor& x, const Tensor& y) {
        const Tensor z = cat({x, x}, 0);
        const Tensor w = z.repeat({y.sym_size(0)});
        return ones({w.sym_size(0)});
      },
      {"x", "y"});
  const ExportedProgram p =
      export_program(f, {rand({3}), rand({4})}, {},
                     {.dynamic_shapes = DS::dict({{"x", dims({{0, Dim("a")}})}, {"y", dims({{0, Dim("b")}})}})});
  EXPECT_EQ(count(p, "aten.sym_size.int"), 2U);
  for (const Node* n : p.graph().nodes())
    if (n->target().str() == "aten.sym_size.int") {
      EXPECT_EQ(n->args()[0].to_node()->kind(), NodeKind::placeholder);
    }
  EXPECT_EQ(p.call({rand({5}), rand({2})}).to_tensor().numel(), 20);
}

TEST(ExportAsserts, T342_numbers_are_computed_once) {
  const auto f = traceable(
      [](const Tensor& x, const Tensor& y) -> Value {
        const SymInt a = sym_pow(x.sym_size(0), 2), b = sym_pow(y.sym_size(0), 2);
        const SymInt c = sym_pow(x.sym_size(0), 2), d = sym_pow(y.sym_size(0), 2);
        return tuple({zeros({a, b}), zeros({c, d})});
      },
      {"x", "y"});
  const ExportedProgram p =
      export_program(f, {rand({3}), rand({4})}, {},
                     {.dynamic_shapes = DS::dict({{"x", dims({{0, Dim("a")}})}, {"y", dims({{0, Dim("b")}})}})});
  for (const ExportedProgram& program : {p, p.run_decompositions()}) {
    EXPECT_EQ(count(program, "operator.pow"), 2U) << program.str();
    EXPECT_EQ(count(program, "aten.sym_size.int"), 2U);
  }
}

TEST(ExportAsserts, T356_checks_of_a_size_from_data) {
  const auto f = traceable(
      [](const Tensor& x) {
        const Tensor nz = nonzero(x);
        (void)check(nz.sym_size(0) >= 3);
        (void)check(nz.sym_size(0) <= 5);
        return nz;
      },
      {"x"});
  const ExportedProgram p = export_program(f, {tensor({2., 1., 2., 3., 5., 0.})});
  EXPECT_EQ(asserts(p), 2U);
  EXPECT_EQ(count(p, "aten.sym_constrain_range.default"), 0U);
  EXPECT_THAT(error_of([&] { p.call({tensor({1., 1., 0., 0., 0., 0.})}); }), HasSubstr("u0 >= 3"));
  EXPECT_THAT(error_of([&] { p.call({tensor({1., 1., 1., 1., 1., 1.})}); }), HasSubstr("u0 <= 5"));
}

// Neither size is a whole expression of the other, so that no range is narrowed either.
TEST(ExportAsserts, a_branch_on_a_square_is_deferred) {
  const auto f =
      traceable([](const Tensor& x,
                   const Tensor& y) { return guard(x.sym_size(0) * x.sym_size(0) == 3 * y.sym_size(0)) ? x + 1 : x + 2; },
                {"x", "y"});
  const auto exported = [&](int64_t y) {
    return export_program(f, {rand({6}), rand({y})}, {},
                          {.dynamic_shapes = DS::dict({{"x", dims({{0, Dim("a", 3, 64)}})}, {"y", dims({{0, Dim("b")}})}}),
                           .prefer_deferred_runtime_asserts_over_guards = true});
  };
  const ExportedProgram equal = exported(12);
  EXPECT_THAT(equal.str(), HasSubstr("Eq(s77**2, 3*s17)"));
  EXPECT_THAT(equal.str(), HasSubstr("s77: VR[3, 64], s17: VR[0, int_oo]"));
  EXPECT_EQ(equal.call({rand({9}), rand({27})}).to_tensor().sizes()[0], 9);
  EXPECT_THAT(error_of([&] { equal.call({rand({9}), rand({26})}); }), HasSubstr("Eq(s77**2, 3*s17)"));
  const ExportedProgram unequal = exported(13);
  EXPECT_THAT(unequal.str(), HasSubstr("Ne(s77**2, 3*s17)"));
  EXPECT_EQ(unequal.call({rand({9}), rand({26})}).to_tensor().sizes()[0], 9);
  EXPECT_THAT(error_of([&] { unequal.call({rand({9}), rand({27})}); }), HasSubstr("Ne(s77**2, 3*s17)"));
}

TEST(ExportAsserts, a_literal_of_a_size_keeps_the_size) {
  const auto f = traceable(
      [](const Tensor& x) {
        const Tensor sum = x.sum();
        return sum + tensor(Scalar(x.sym_size(0)));
      },
      {"x"});
  const ExportedProgram p =
      export_program(f, {ones({5, 4})}, {}, {.dynamic_shapes = DS::dict({{"x", dims({{0, Dim("d")}})}})});
  EXPECT_EQ(
      calls(p.graph()),
      "aten.sym_size.int aten.sum.default aten.scalar_tensor.default aten._assert_tensor_metadata.default aten.to.device "
      "aten.detach_.default aten.add.Tensor");
  EXPECT_EQ(p.call({ones({7, 4})}).to_tensor().item().to<double>(), 35);
  EXPECT_EQ(p.run_decompositions().call({ones({7, 4})}).to_tensor().item().to<double>(), 35);
}

TEST(ExportAsserts, a_literal_of_several_sizes_is_stacked) {
  const auto f = traceable(
      [](const Tensor& x) {
        return std::vector<Tensor>{tensor({Scalar(x.sym_size(0)), Scalar(3)}),
                                   tensor({{Scalar(x.sym_size(0)), Scalar(1)}, {Scalar(2), Scalar(x.sym_size(1))}}),
                                   tensor(Scalar(x.sym_size(0)), DType::float32)};
      },
      {"x"});
  const ExportedProgram p =
      export_program(f, {ones({5, 4})}, {}, {.dynamic_shapes = DS::dict({{"x", dims({{0, Dim("d")}})}})});
  EXPECT_EQ(count(p, "aten.stack.default"), 4U);
  EXPECT_TRUE(same(p.call({ones({7, 4})}), list({tensor({7, 3}), tensor({{7, 1}, {2, 4}}), tensor(7.0)})));
}

TEST(ExportAsserts, a_literal_of_a_size_from_data_keeps_it) {
  const auto f = traceable([](const Tensor& x) { return tensor(Scalar(x.nonzero().sym_size(0))); }, {"x"});
  const ExportedProgram p = export_program(f, {ones({5})});
  EXPECT_EQ(count(p, "aten.scalar_tensor.default"), 1U);
  EXPECT_EQ(p.call({tensor({1., 0., 2., 0., 0.})}).to_tensor().item().to<int64_t>(), 2);
}

}  // namespace
}  // namespace calque::export_asserts_test
