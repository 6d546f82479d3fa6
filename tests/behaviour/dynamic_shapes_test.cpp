// Symbolic sizes: behaviours that PyTorch's test/test_dynamic_shapes.py checks. The comment of each test names where the behaviour
// comes from; what is expected is what PyTorch gave, expressions as sympy prints them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/op/aten/arange.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/index.h"
#include "calque/sym/expr.h"
#include "calque/sym/shape_env.h"
#include "calque/sym/sym_math.h"
#include "calque/sym/unbacked.h"
#include "calque/trace/fake.h"
#include "calque/trace/make_fx.h"
#include "support/error_support.h"

namespace calque::dynamic_shapes_test {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
constexpr int64_t above = ValueRange::unbounded_above;

struct DynamicShapesBehaviour : ::testing::Test {
  std::shared_ptr<ShapeEnv> env = ShapeEnv::make();
  SymInt size(int64_t hint) { return env->create_symbol(hint, {2, above}, "x, dimension " + std::to_string(made_++)); }
  SymInt unbacked() { return env->create_unbacked(); }
  SymInt unbacked_size() {
    const SymInt u = env->create_unbacked();
    EXPECT_TRUE(check(u >= 0));
    return u;
  }
  std::vector<std::string> guards() const {
    std::vector<std::string> out;
    for (const Guard& g : env->guards()) out.push_back(g.condition.str());
    return out;
  }
  std::vector<std::string> asserts() const {
    std::vector<std::string> out;
    for (const RuntimeAssert& a : env->runtime_asserts()) out.push_back(a.symbol + ": " + a.condition.str());
    return out;
  }
  // A tensor of these sizes without data, of a mode that knows the environment.
  Tensor tensor(SymIntList sizes) {
    if (!mode_) mode_ = FakeMode::make({.env = env});
    const ModeScope scope(*mode_);
    return empty(sizes);
  }
  static std::string sizes(const Tensor& t) {
    std::string out;
    for (const SymInt s : t.sym_sizes()) out += (out.empty() ? "" : ", ") + s.str();
    return "[" + out + "]";
  }

 private:
  int made_ = 0;
  std::shared_ptr<FakeMode> mode_;
};

// test_sym_floor
TEST_F(DynamicShapesBehaviour, B401_the_floor_of_a_quotient_is_an_integer) {
  const SymInt a = size(5);
  EXPECT_EQ(floor_to_int(sym_true_div(a, 2)).str(), "FloorToInt(IntTrueDiv(s0, 2))");
  EXPECT_EQ(env->hint(floor_to_int(sym_true_div(a, 2))), 2);
}

// test_sym_ceil
TEST_F(DynamicShapesBehaviour, B402_the_ceiling_of_a_quotient_is_an_integer) {
  const SymInt a = size(5);
  EXPECT_EQ(ceil_to_int(sym_true_div(a, 2)).str(), "CeilToInt(IntTrueDiv(s0, 2))");
  EXPECT_EQ(env->hint(ceil_to_int(sym_true_div(a, 2))), 3);
}

// test_sym_trunc
TEST_F(DynamicShapesBehaviour, B403_a_quotient_is_cut_off_towards_zero) {
  const SymInt a = size(5);
  EXPECT_EQ(sym_int(sym_true_div(a, 2)).str(), "TruncToInt(IntTrueDiv(s0, 2))");
  EXPECT_EQ(env->hint(trunc_to_int(sym_true_div(a, 2))), 2);
}

// test_sym_round
TEST_F(DynamicShapesBehaviour, B404_rounding_is_to_even_or_to_digits) {
  const SymInt a = size(5);
  EXPECT_EQ(round_to_int(sym_true_div(a, 2)).str(), "RoundToInt(IntTrueDiv(s0, 2))");
  EXPECT_EQ(env->hint(round_to_int(sym_true_div(a, 2))), 2);
  const SymFloat digits = sym_round(sym_float(a) / 3.0, 1);
  EXPECT_EQ(digits.str(), "RoundDecimal(FloatTrueDiv(ToFloat(s0), 3.0), 1)");
  EXPECT_DOUBLE_EQ(*env->hint(digits), 1.7);
}

// test_sym_sum
TEST_F(DynamicShapesBehaviour, B405_a_sum_of_several_collects_like_terms) {
  const SymInt a = size(5), b = size(7);
  const SymInts all{a, a, b, 3};
  EXPECT_EQ(sym_sum(all).str(), "2*s0 + s1 + 3");
  EXPECT_EQ(env->hint(sym_sum(all)), 20);
}

// test_sym_max_multi_max_simplify and its kin
TEST_F(DynamicShapesBehaviour, B406_a_maximum_of_a_maximum_is_one_and_a_lower_bound_decides_a_minimum) {
  const SymInt a = size(5), b = size(7);
  EXPECT_EQ(sym_max(sym_max(a, b), a).str(), "Max(s0, s1)");
  EXPECT_EQ(sym_max(a, 3).str(), "Max(3, s0)");
  EXPECT_EQ(sym_min(a, 1).str(), "1");
}

// test_method (shifts)
TEST_F(DynamicShapesBehaviour, B407_shifts_multiply_and_divide) {
  const SymInt a = size(5);
  EXPECT_EQ(sym_lshift(a, 2).str(), "4*s0");
  EXPECT_EQ(sym_rshift(a, 1).str(), "(s0//2)");
}

// test_symint_bitwise_or
TEST_F(DynamicShapesBehaviour, B408_bits_are_kept_as_functions_with_an_example) {
  const SymInt a = size(5);
  EXPECT_EQ(sym_bitwise_or(a, 8).str(), "BitwiseFn_bitwise_or(s0, 8)");
  EXPECT_EQ(env->hint(sym_bitwise_or(a, 8)), 13);
}

// test_method (abs)
TEST_F(DynamicShapesBehaviour, B409_the_absolute_value_of_a_negated_size_is_the_size) {
  const SymInt a = size(5);
  EXPECT_EQ(sym_abs(-a).str(), "s0");
}

// test_floordiv_simplify and its kin
TEST_F(DynamicShapesBehaviour, B410_division_is_simplified_where_it_leaves_nothing) {
  const SymInt a = size(5), b = size(7);
  EXPECT_EQ(floor_div(a * b, b).str(), "s0");
  EXPECT_EQ(floor_div(2 * a + 4, 2).str(), "s0 + 2");
  EXPECT_EQ(floor_div(6 * a, 4).str(), "((3*s0)//2)");
  EXPECT_EQ(((a * 4 + 2) % 2).str(), "0");
}

// test_floordiv_static with a negative dividend
TEST_F(DynamicShapesBehaviour, B411_division_and_remainder_of_a_negative_follow_python) {
  const SymInt a = size(5);
  EXPECT_EQ(floor_div(-a, 2).str(), "((-s0)//2)");
  EXPECT_EQ(env->hint(floor_div(-a, 2)), -3);
  EXPECT_EQ(env->hint((-a) % 3), 1);
}

// test_guard_refine_range (a product)
TEST_F(DynamicShapesBehaviour, B412_a_guard_on_a_multiple_narrows_the_range) {
  const SymInt a = size(5);
  EXPECT_TRUE(guard(a > 2));
  EXPECT_TRUE(guard(a < 10));
  EXPECT_EQ(env->range(a), (ValueRange{3, 9}));
  EXPECT_TRUE(guard(a * 2 <= 12));
  EXPECT_EQ(env->range(a), (ValueRange{3, 6}));
  EXPECT_THAT(guards(), ElementsAre("s0 > 2", "s0 < 10", "2*s0 <= 12"));
}

// test_guard_refine_range (a sum)
TEST_F(DynamicShapesBehaviour, B413_a_guard_on_a_sum_narrows_the_range) {
  const SymInt a = size(5);
  EXPECT_TRUE(guard(a + 1 >= 6));
  EXPECT_EQ(env->range(a), (ValueRange{5, above}));
  EXPECT_THAT(guards(), ElementsAre("s0 + 1 >= 6"));
}

// an equality with a multiple of another symbol
TEST_F(DynamicShapesBehaviour, B414_an_equality_writes_one_size_in_terms_of_another) {
  const SymInt a = size(6), b = size(3);
  EXPECT_TRUE(guard(a == 2 * b));
  EXPECT_EQ(env->simplify(a).str(), "2*s1");
  EXPECT_EQ(env->simplify(a + b).str(), "3*s1");
  EXPECT_EQ(env->simplify(floor_div(a, b)).str(), "2");
  EXPECT_THAT(guards(), ElementsAre("Eq(s0, 2*s1)"));
}

// test_guard_int
TEST_F(DynamicShapesBehaviour, B415_reading_a_size_as_an_integer_fixes_it) {
  const SymInt a = size(6);
  EXPECT_EQ(a.guard_int(), 6);
  EXPECT_EQ(env->simplify(a + 1).str(), "7");
  EXPECT_THAT(guards(), ElementsAre("Eq(s0, 6)"));
}

// an inequality that does not hold
TEST_F(DynamicShapesBehaviour, B416_a_difference_that_does_not_hold_fixes_the_size) {
  const SymInt a = size(5);
  EXPECT_FALSE(guard(a != 5));
  EXPECT_THAT(guards(), ElementsAre("Eq(s0, 5)"));
  EXPECT_EQ(env->range(a), (ValueRange{5, 5}));
}

// test_guards_or
TEST_F(DynamicShapesBehaviour, B417_an_alternative_is_one_guard) {
  const SymInt a = size(5);
  EXPECT_TRUE(guard(sym_or(a > 2, a > 100)));
  EXPECT_EQ(guards().size(), 1U);
  EXPECT_EQ(env->range(a), (ValueRange{2, above}));
}

// test_statically_known_true
TEST_F(DynamicShapesBehaviour, B418_what_ranges_do_not_prove_is_neither_known_nor_guarded) {
  const SymInt a = size(5);
  EXPECT_TRUE(statically_known_true(a >= 2));
  EXPECT_TRUE(statically_known_true(a > 1));
  EXPECT_FALSE(statically_known_true(a == 5));
  EXPECT_FALSE(statically_known_true(a > 5));
  EXPECT_TRUE(guards().empty());
}

// guard_or_false and guard_or_true of a value with an example
TEST_F(DynamicShapesBehaviour, B419_a_value_with_an_example_is_guarded_whatever_the_fallback) {
  const SymInt a = size(5);
  EXPECT_TRUE(guard_or_false(a == 5));
  EXPECT_FALSE(guard_or_true(a > 7));
  EXPECT_THAT(guards(), ElementsAre("Eq(s0, 5)"));
}

// test_data_dependent_guard
TEST_F(DynamicShapesBehaviour, B420_data_asked_for_is_named_in_the_error) {
  const SymInt u = unbacked();
  EXPECT_THAT(error_of([&] { guard(u > 3); }, ErrorKind::data_dependent), HasSubstr("u0 > 3"));
  EXPECT_THAT(error_of([&] { u.guard_int(); }, ErrorKind::data_dependent), HasSubstr("u0"));
  EXPECT_TRUE(guard(u == u));
}

// test_expect_true_refine_range
TEST_F(DynamicShapesBehaviour, B421_a_check_of_data_is_known_from_then_on) {
  const SymInt u = unbacked();
  EXPECT_TRUE(check(u >= 5));
  EXPECT_TRUE(guard(u > 3));
  EXPECT_TRUE(check(u <= 9));
  EXPECT_EQ(env->range(u), (ValueRange{5, 9}));
  EXPECT_TRUE(statically_known_true(u * 2 <= 18));
  EXPECT_TRUE(statically_known_true(u - 5 >= 0));
  EXPECT_THAT(asserts(), ElementsAre("u0: 5 <= u0", "u0: u0 <= 9"));
}

// test_expect_true_double_digits
TEST_F(DynamicShapesBehaviour, B422_the_youngest_of_many_values_carries_the_check) {
  std::vector<SymInt> all;
  for (int i = 0; i < 11; ++i) all.push_back(unbacked());
  EXPECT_TRUE(check(sym_sum(ListRef<SymInt>(all.data(), all.size())) == 20));
  ASSERT_EQ(env->runtime_asserts_of("u10").size(), 1U);
  EXPECT_TRUE(env->runtime_asserts_of("u9").empty());
}

// test_unbacked_substitution
TEST_F(DynamicShapesBehaviour, B423_a_checked_number_takes_the_place_of_data) {
  const SymInt u = unbacked();
  EXPECT_TRUE(check(u == 4));
  EXPECT_EQ(env->simplify(u + 1).str(), "5");
  EXPECT_THAT(asserts(), ElementsAre("u0: Eq(u0, 4)"));
}

// a check of a remainder
TEST_F(DynamicShapesBehaviour, B424_a_checked_divisibility_is_known) {
  const SymInt u = unbacked();
  EXPECT_TRUE(check(u % 2 == 0));
  EXPECT_TRUE(statically_known_true(u % 2 == 0));
  EXPECT_THAT(asserts(), ElementsAre("u0: Eq(PythonMod(u0, 2), 0)"));
}

// test_expect_true_with_s0
TEST_F(DynamicShapesBehaviour, B425_a_check_against_a_size_is_deferred_and_used_both_ways) {
  const SymInt s = size(6), u = unbacked();
  EXPECT_TRUE(check(u < s));
  EXPECT_TRUE(statically_known_true(s > u));
  EXPECT_TRUE(statically_known_true(u <= s));
  EXPECT_FALSE(statically_known_true(u >= s));
  EXPECT_THAT(asserts(), ElementsAre("u0: u0 < s0"));
  EXPECT_TRUE(guards().empty());
}

// a check that an earlier one contradicts
TEST_F(DynamicShapesBehaviour, B426_a_check_that_contradicts_an_earlier_one_fails_at_once) {
  const SymInt u = unbacked();
  EXPECT_TRUE(check(u >= 5));
  EXPECT_FALSE(check(u < 3));
}

// a check of a value with an example
TEST_F(DynamicShapesBehaviour, B427_a_check_of_a_size_guards) {
  const SymInt a = size(5);
  EXPECT_TRUE(check(a > 3));
  EXPECT_EQ(env->range(a), (ValueRange{4, above}));
  EXPECT_FALSE(check(a > 7));
  EXPECT_TRUE(guard(a <= 7));
}

// test_duck_shape
TEST_F(DynamicShapesBehaviour, B428_equal_examples_share_a_symbol_unless_told_otherwise) {
  EXPECT_EQ(env->create_size(1, "a").str(), "1");
  EXPECT_EQ(env->create_size(0, "b").str(), "0");
  EXPECT_TRUE(identical(env->create_size(5, "c"), env->create_size(5, "d")));
  const auto apart = ShapeEnv::make({.duck_shape = false});
  EXPECT_FALSE(identical(apart->create_size(5, "c"), apart->create_size(5, "d")));
}

// test_specialize_zero_one switched off
TEST_F(DynamicShapesBehaviour, B429_one_stays_open_where_zero_and_one_are_not_special) {
  const auto open = ShapeEnv::make({.specialize_zero_one = false});
  const SymInt a = open->create_size(1, "a");
  EXPECT_TRUE(a.is_symbolic());
  EXPECT_EQ(open->range(a), (ValueRange{0, above}));
}

// test_sym_eq
TEST_F(DynamicShapesBehaviour, B430_lists_of_sizes_are_compared_without_a_guard) {
  const SymInt c = size(5), d = size(5);
  const SymInts cd{c, d}, c2{c, 2}, c3{c, 3}, only_c{c}, only_d{d};
  EXPECT_TRUE(sym_eq(cd, cd).plain());
  EXPECT_EQ(sym_eq(c2, c3).str(), "False");
  EXPECT_EQ(sym_eq(only_c, only_d).str(), "Eq(s0, s1)");
  EXPECT_TRUE(guards().empty());
}

// test_sym_ite, sym_not
TEST_F(DynamicShapesBehaviour, B431_a_negation_turns_a_comparison_round) {
  const SymInt c = size(5), d = size(7);
  EXPECT_EQ((!(c > 3)).str(), "s0 <= 3");
  EXPECT_EQ(sym_ite(c > 3, c, d).str(), "Piecewise((s0, s0 > 3), (s1, True))");
  EXPECT_EQ(sym_and(c > 3, d < 9).str(), "(s0 > 3) & (s1 < 9)");
}

// test_guards_float_print and its kin
TEST_F(DynamicShapesBehaviour, B432_a_size_becomes_a_float_and_is_guarded_as_one) {
  const SymInt c = size(5);
  EXPECT_EQ((sym_float(c) * 0.5).str(), "0.5*ToFloat(s0)");
  EXPECT_EQ(sym_true_div(c, 2).str(), "IntTrueDiv(s0, 2)");
  EXPECT_TRUE(guard(sym_float(c) > SymFloat(2.5)));
  EXPECT_THAT(guards(), ElementsAre("ToFloat(s0) > 2.5"));
}

// test_mul_int_oo_nan and its kin: ranges of expressions
TEST_F(DynamicShapesBehaviour, B433_the_range_of_an_expression_follows_from_its_symbols) {
  const SymInt u = unbacked();
  EXPECT_TRUE(check(u >= 0));
  EXPECT_TRUE(check(u <= 8));
  EXPECT_EQ(env->range(2 * u + 1), (ValueRange{1, 17}));
  EXPECT_EQ(env->range(u * u), (ValueRange{0, 64}));
  EXPECT_EQ(env->range(floor_div(u, 2)), (ValueRange{0, 4}));
  EXPECT_EQ(env->range(u % 3), (ValueRange{0, 2}));
  EXPECT_EQ(env->range(-u), (ValueRange{-8, 0}));
  EXPECT_EQ(env->range(sym_max(u, 3)), (ValueRange{3, 8}));
}

// checks of several values from data
TEST_F(DynamicShapesBehaviour, B434_a_check_of_a_sum_of_data_is_known_in_any_order) {
  const SymInt u = unbacked_size(), v = unbacked_size();
  EXPECT_TRUE(check(u + v <= 10));
  EXPECT_TRUE(statically_known_true(u + v < 11));
  EXPECT_TRUE(statically_known_true(10 >= v + u));
}

// test_expect_true_basic with a difference
TEST_F(DynamicShapesBehaviour, B435_a_checked_difference_answers_the_equality) {
  const SymInt u = unbacked();
  EXPECT_TRUE(check(u != 3));
  EXPECT_TRUE(statically_known_true(u != 3));
  EXPECT_TRUE(statically_known_false(u == 3));
}

// unbacked floats and truths
TEST_F(DynamicShapesBehaviour, B436_floats_and_truths_of_data_cannot_be_branched_on) {
  const SymFloat f = env->create_unbacked_float();
  EXPECT_EQ(f.str(), "zuf0");
  EXPECT_THAT(error_of([&] { guard(f > SymFloat(1.0)); }, ErrorKind::data_dependent), HasSubstr("zuf0 > 1.0"));
  const SymBool b = env->create_unbacked_bool();
  EXPECT_EQ(b.str(), "Eq(u0, 1)");
  EXPECT_THAT(error_of([&] { guard(b); }, ErrorKind::data_dependent), HasSubstr("Eq(u0, 1)"));
}

// TestUnbacked: factories
TEST_F(DynamicShapesBehaviour, B437_a_factory_takes_a_size_from_data_and_learns_that_it_is_none_below_zero) {
  const SymInt u = unbacked();
  EXPECT_EQ(sizes(tensor({u, 3})), "[u0, 3]");
  EXPECT_EQ(env->range(u), (ValueRange{0, above}));
  EXPECT_THAT(asserts(), ElementsAre("u0: 0 <= u0"));
}

// TestUnbacked::test_unbacked_reshape and its kin
TEST_F(DynamicShapesBehaviour, B438_views_of_a_size_from_data_are_computed) {
  const SymInt u = unbacked();
  const Tensor t = tensor({u, 3});
  EXPECT_EQ(sizes(t.view({-1})), "[3*u0]");
  EXPECT_EQ(sizes(t.t()), "[3, u0]");
  EXPECT_EQ(sizes(t.expand({2, -1, -1})), "[2, u0, 3]");
  EXPECT_EQ(sizes(t.unsqueeze(0)), "[1, u0, 3]");
  EXPECT_EQ(sizes(t.flatten()), "[3*u0]");
  EXPECT_EQ(sizes(t.squeeze(0)), "[u0, 3]");
  EXPECT_EQ(t.sym_numel().str(), "3*u0");
  EXPECT_TRUE(guards().empty());
}

// TestUnbacked: joining
TEST_F(DynamicShapesBehaviour, B439_joining_adds_sizes_from_data) {
  const SymInt u = unbacked();
  const Tensor t = tensor({u, 3});
  EXPECT_EQ(sizes(cat({t, t})), "[2*u0, 3]");
  EXPECT_EQ(sizes(cat({t, tensor({2, 3})})), "[u0 + 2, 3]");
  EXPECT_EQ(sizes(stack({t, t})), "[2, u0, 3]");
}

// TestUnbacked::test_unbacked_reduction
TEST_F(DynamicShapesBehaviour, B440_reductions_over_a_size_from_data) {
  const SymInt u = unbacked();
  const Tensor t = tensor({u, 3});
  EXPECT_EQ(sizes(t.sum({0})), "[3]");
  EXPECT_EQ(sizes(t.sum({1})), "[u0]");
  EXPECT_EQ(sizes(t.mean()), "[]");
  EXPECT_EQ(sizes(t.softmax(0)), "[u0, 3]");
  EXPECT_EQ(sizes(matmul(t, tensor({3, 4}))), "[u0, 4]");
}

// TestUnbacked: two sizes from data
TEST_F(DynamicShapesBehaviour, B441_adding_two_sizes_from_data_asserts_that_they_are_equal) {
  const SymInt u = unbacked(), w = unbacked();
  const Tensor t = tensor({u, 3}), s = tensor({w, 3});
  EXPECT_EQ(sizes(t + s), "[u0, 3]");
  EXPECT_THAT(asserts(), ElementsAre("u0: 0 <= u0", "u1: 0 <= u1", "u1: Eq(u0, u1)"));
}

// TestUnbacked: slices
TEST_F(DynamicShapesBehaviour, B442_a_part_of_a_length_from_data_is_at_most_the_whole) {
  const SymInt u = unbacked_size();
  const Tensor t = tensor({10});
  EXPECT_EQ(sizes(t.slice(0, {}, u)), "[Min(10, u0)]");
  EXPECT_EQ(sizes(t.slice(0, u)), "[10 - Min(10, u0)]");
}

// TestUnbacked: factories and repetition
TEST_F(DynamicShapesBehaviour, B443_repetition_and_ranges_of_a_length_from_data) {
  const SymInt u = unbacked_size();
  const auto mode = FakeMode::make({.env = env});
  const ModeScope scope(*mode);
  EXPECT_EQ(sizes(empty({3}).repeat({u})), "[3*u0]");
  EXPECT_EQ(sizes(arange(Scalar(u))), "[u0]");
  EXPECT_EQ(sizes(full({u}, 2)), "[u0]");
  EXPECT_EQ(sizes(randn({2, u})), "[2, u0]");
  const Tensor wide = empty({1, 3}).expand({u, 3});
  EXPECT_EQ(sizes(wide), "[u0, 3]");
  EXPECT_EQ(wide.sym_strides()[0].str(), "0");
}

// TestUnbacked: splitting
TEST_F(DynamicShapesBehaviour, B444_splitting_by_a_length_from_data_and_the_rest) {
  const SymInt u = unbacked_size();
  const Tensor t = tensor({10});
  const std::vector<Tensor> parts = split_with_sizes(t, {u, 10 - u});
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(sizes(parts[0]), "[u0]");
  EXPECT_EQ(sizes(parts[1]), "[10 - u0]");
}

// test_print_readable_with_symints
TEST_F(DynamicShapesBehaviour, B445_readable_code_shows_symbolic_sizes) {
  MakeFxOptions options{.mode = TracingMode::symbolic};
  options.names = {"x"};
  const TracedGraph g = make_fx(
      [](const Tensor& x) {
        const SymInt rows = x.sym_size(0) + 1;
        const SymInt columns = floor_div(x.sym_size(1), 2);
        return x.new_empty({rows, columns});
      },
      options)(rand({4, 6}));
  const std::string text = g.module->print_readable();
  EXPECT_THAT(text, HasSubstr("def forward(self, x_1: \"f32[s0, s1]\"):"));
  EXPECT_THAT(text, HasSubstr("add: \"Sym(s0 + 1)\" = sym_size_int + 1;  sym_size_int = None"));
  EXPECT_THAT(text, HasSubstr("floordiv: \"Sym((s1//2))\" = sym_size_int_1 // 2"));
  EXPECT_THAT(text,
              HasSubstr("new_empty: \"f32[s0 + 1, (s1//2)]\" = torch.ops.aten.new_empty.default(x_1, [add, floordiv]"));
}

// sympy's order of terms
TEST_F(DynamicShapesBehaviour, B446_expressions_are_printed_in_sympys_order) {
  const SymInt b = size(3), a = size(8);  // s0, s1
  EXPECT_EQ((a * b + a - 2 * b + 3).str(), "s0*s1 - 2*s0 + s1 + 3");
  EXPECT_EQ(((a - b) * (a + b)).str(), "(-s0 + s1)*(s0 + s1)");
  EXPECT_EQ((a * a * a).str(), "s1**3");
  EXPECT_EQ((-(a - b)).str(), "s0 - s1");
  EXPECT_EQ((floor_div(a + b, 2) - b).str(), "-s0 + (((s0 + s1)//2))");
}

}  // namespace
}  // namespace calque::dynamic_shapes_test
