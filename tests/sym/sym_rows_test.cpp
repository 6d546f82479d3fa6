// What PyTorch's own tests demand of symbolic integers, row by row of the conformance table. Texts and answers are
// PyTorch 2.13's for the same steps; where Calque knows more, the comment says so. Rows about tensors are in tests/op.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "calque/sym/shape_env.h"
#include "calque/sym/sym_math.h"
#include "calque/sym/symbolic_context.h"
#include "calque/sym/unbacked.h"
#include "support/error_support.h"
#include "sym/range.h"

namespace calque::sym_rows_test {
namespace {

using Texts = std::vector<std::string>;
constexpr int64_t above = ValueRange::unbounded_above;
constexpr int64_t below = ValueRange::unbounded_below;

struct SymRows : testing::Test {
  std::shared_ptr<ShapeEnv> env = ShapeEnv::make();
  SymInt size(int64_t hint) { return env->create_symbol(hint, {2, above}, "x, dimension 0"); }
  Texts guards() const {
    Texts out;
    for (const Guard& g : env->guards()) out.push_back(g.condition.expr()->str());
    return out;
  }
};

using test::error_of;

TEST_F(SymRows, T185_arithmetic_of_symbols_is_arithmetic_of_their_values) {
  std::array<SymInt, 3> symbols{size(2), size(3), size(4)};
  const std::array<int64_t, 3> values{2, 3, 4};
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 3; ++j) {
      const SymInt a = symbols[i], b = symbols[j];
      const int64_t x = values[i], y = values[j];
      for (const auto& [left, right] : {std::pair{a, b}, {SymInt(x), b}, {a, SymInt(y)}}) {
        EXPECT_EQ(env->hint(left + right), x + y);
        EXPECT_EQ(env->hint(left - right), x - y);
        EXPECT_EQ(env->hint(left * right), x * y);
        EXPECT_EQ(env->hint(floor_div(left, right)), x / y);
        EXPECT_EQ(env->hint(left % right), x % y);
      }
    }
  EXPECT_TRUE(guards().empty());
}

TEST_F(SymRows, T189_bitwise_operations_stay_symbolic) {
  const SymInt a = env->create_symbol(0b1100, {0, above}, "a"), b = env->create_symbol(0b1010, {0, above}, "b");
  EXPECT_EQ(sym_bitwise_and(a, b).str(), "BitwiseFn_bitwise_and(s0, s1)");
  EXPECT_TRUE(guard(sym_bitwise_and(a, b) == 0b1000));
  EXPECT_TRUE(guard(sym_bitwise_or(a, b) == 0b1110));
  EXPECT_TRUE(guard(sym_bitwise_xor(a, b) == 0b0110));
  EXPECT_EQ(guards(), (Texts{"Eq(BitwiseFn_bitwise_and(s0, s1), 8)", "Eq(BitwiseFn_bitwise_or(s0, s1), 14)",
                             "Eq(BitwiseFn_bitwise_xor(s0, s1), 6)"}));
  EXPECT_EQ(sym_bitwise_and(12, 10).as_int(), 8);
  EXPECT_TRUE(guard(sym_and(a > 3, b > 3)));
  EXPECT_EQ(env->hint(sym_bitwise_and(sym_int(a > 100), a)), 0);
}

TEST_F(SymRows, T192_floor_division_by_half_of_itself_is_two) {
  const SymInt s = size(8);
  EXPECT_TRUE(guard(s % 2 == 0));
  EXPECT_TRUE(guard(s % floor_div(s, 2) == 0));
  EXPECT_TRUE(guard(2 * floor_div(s, 2) == s));
  EXPECT_TRUE(statically_known_true(floor_div(s, floor_div(s, 2)) == 2));
}

TEST_F(SymRows, T193_to_floats_and_back) {
  const SymInt s = size(6);
  const SymFloat f = sym_float(s) / 4.0;
  EXPECT_EQ(sym_float(s).str(), "ToFloat(s0)");
  EXPECT_EQ(env->hint(f), 1.5);
  EXPECT_EQ(env->hint(sym_int(f)), 1);
  EXPECT_EQ(env->hint(floor_to_int(f)), 1);
  EXPECT_EQ(env->hint(ceil_to_int(f)), 2);
  EXPECT_EQ(env->hint(trunc_to_int(f)), 1);
  EXPECT_EQ(env->hint(round_to_int(f)), 2);
  EXPECT_EQ(floor_to_int(f).str(), "FloorToInt(FloatTrueDiv(ToFloat(s0), 4.0))");
  EXPECT_EQ(ceil_to_int(f).str(), "CeilToInt(FloatTrueDiv(ToFloat(s0), 4.0))");
  EXPECT_EQ(trunc_to_int(sym_true_div(s, 4)).str(), "TruncToInt(IntTrueDiv(s0, 4))");
  EXPECT_EQ(round_to_int(f).str(), "RoundToInt(FloatTrueDiv(ToFloat(s0), 4.0))");
  EXPECT_EQ(sym_round(sym_float(s) / 7.0, 2).str(), "RoundDecimal(FloatTrueDiv(ToFloat(s0), 7.0), 2)");
  EXPECT_EQ(env->hint(sym_round(sym_float(s) / 7.0, 2)), 0.86);
  EXPECT_EQ(sym_is_integer(f).str(), "Eq(ToFloat(floor(FloatTrueDiv(ToFloat(s0), 4.0))), FloatTrueDiv(ToFloat(s0), 4.0))");
  EXPECT_TRUE(guards().empty());
  EXPECT_EQ(floor_to_int(sym_true_div(s, 4)).guard_int(), 1);
  EXPECT_EQ(guards(), Texts{"Eq(FloorToInt(IntTrueDiv(s0, 4)), 1)"});
}

TEST_F(SymRows, T195_guard_int_specialises) {
  const SymInt s = size(2);
  EXPECT_EQ(s.guard_int(), 2);
  EXPECT_EQ(guards(), Texts{"Eq(s0, 2)"});
}

TEST_F(SymRows, T197_checks_may_be_deferred_instead_of_guarded) {
  env = ShapeEnv::make({.prefer_deferred_runtime_asserts = true});
  const SymInt s = size(2), t = size(2);
  EXPECT_TRUE(check(s == 2));
  EXPECT_TRUE(guards().empty());
  ASSERT_EQ(env->runtime_asserts().size(), 1U);
  EXPECT_EQ(env->runtime_asserts()[0].condition.expr()->str(), "Eq(s0, 2)");
  EXPECT_EQ(env->runtime_asserts()[0].symbol, "") << "no tensor data is involved";
  EXPECT_EQ(s.str(), "s0");
  EXPECT_EQ(t.guard_int(), 2);
  EXPECT_EQ(guards(), Texts{"Eq(s1, 2)"});
}

TEST_F(SymRows, T199_square_root_and_logarithm) {
  const SymInt s = size(4);
  EXPECT_EQ(sym_sqrt(sym_float(s)).str(), "OpaqueUnaryFn_sqrt(ToFloat(s0))");
  EXPECT_TRUE(guard(sym_sqrt(sym_float(s)) == 2.0));
  EXPECT_TRUE(guard(sym_log2(sym_float(s)) == 2.0));
  EXPECT_EQ(guards(), (Texts{"Eq(OpaqueUnaryFn_sqrt(ToFloat(s0)), 2.0)", "Eq(OpaqueUnaryFn_log2(ToFloat(s0)), 2.0)"}));
  EXPECT_EQ(sym_sqrt(9.0).as_float(), 3.0);
}

TEST_F(SymRows, T201_choice_does_not_guard) {
  const SymInt s = size(5), t = size(4);
  EXPECT_TRUE(identical(sym_ite(true, s, t), s));
  EXPECT_TRUE(identical(sym_ite(false, s, t), t));
  const SymInt chosen = sym_ite(s == 5, s, t);
  EXPECT_EQ(chosen.str(), "Piecewise((s0, Eq(s0, 5)), (s1, True))");
  EXPECT_TRUE(guards().empty());
  EXPECT_TRUE(guard(chosen == 5));
  EXPECT_EQ(guards(), Texts{"Eq(Piecewise((s0, Eq(s0, 5)), (s1, True)), 5)"});
  EXPECT_EQ(env->evaluate(chosen, {{"s0", 4}, {"s1", 5}}), 5);
  EXPECT_EQ(env->evaluate(chosen, {{"s0", 5}, {"s1", 4}}), 5);
}

TEST_F(SymRows, T204_data_cannot_be_guarded_on) {
  const SymInt u = env->create_unbacked();
  try {
    guard(u == 0);
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::data_dependent);
  }
}

TEST_F(SymRows, T205_a_check_teaches) {
  const SymInt u = env->create_unbacked();
  EXPECT_TRUE(check(u == 0));
  EXPECT_EQ(env->replacement("u0")->as_int(), 0);
  EXPECT_TRUE(guard(u == 0));
  EXPECT_TRUE(guards().empty());
}

TEST_F(SymRows, T207_an_assert_belongs_to_its_youngest_symbol) {
  std::vector<SymInt> u;
  for (int i = 0; i < 11; ++i) u.push_back(env->create_unbacked());
  EXPECT_TRUE(check(u[0] == u[1]));
  EXPECT_TRUE(check(u[9] < u[10]));
  EXPECT_TRUE(check(u[2] < u[10]));
  ASSERT_EQ(env->runtime_asserts().size(), 3U);
  EXPECT_EQ(env->runtime_asserts()[0].symbol, "u1");
  EXPECT_EQ(env->runtime_asserts()[1].symbol, "u10");
  EXPECT_EQ(env->runtime_asserts()[2].symbol, "u10");
  EXPECT_EQ(env->runtime_asserts_of("u10").size(), 2U);
}

TEST_F(SymRows, T208_a_size_is_not_replaced_by_what_might_not_look_like_one) {
  const SymInt a = env->create_unbacked_size(), b = env->create_unbacked_size();
  EXPECT_TRUE(check(a == 4 * b));
  EXPECT_EQ(a.str(), "u0");
  EXPECT_FALSE(env->replacement("u0").has_value());
  EXPECT_EQ(env->runtime_asserts()[0].condition.expr()->str(), "Eq(u0, 4*u1)");
}

TEST_F(SymRows, T211_comparisons_narrow_ranges_both_ways) {
  const SymInt s = size(10);
  EXPECT_TRUE(guard(s > 5));
  EXPECT_FALSE(guard(s >= 20));
  EXPECT_EQ(env->symbol("s0").range, (ValueRange{6, 19}));
}

TEST_F(SymRows, T212_unbounded_ranges_multiply_without_nonsense) {
  const SymInt a = size(6), b = size(13), c = size(12);
  EXPECT_TRUE(guard(a * floor_div(b, a) == c));
  const SymInt u = env->create_unbacked(), v = env->create_unbacked(), w = env->create_unbacked();
  EXPECT_TRUE(check(u * floor_div(v, u) == w));
  EXPECT_EQ(env->range(u * floor_div(v, u)), (ValueRange{below, above}));
}

TEST_F(SymRows, T213_some_order_of_dimensions_is_contiguous) {
  const SymInt s = size(5);
  const std::vector<SymInt> sizes{s, 7}, strides{1, s};
  EXPECT_TRUE(guard(is_non_overlapping_and_dense(sizes, strides)));
  EXPECT_EQ(guards(), Texts{"Eq(IsNonOverlappingAndDenseIndicator(s0, 7, 1, s0), 1)"});
  const std::vector<SymInt> plain{3, 7}, gaps{8, 1};
  EXPECT_FALSE(guard(is_non_overlapping_and_dense(plain, gaps)));
  // The size that belongs to the largest stride does not matter.
  const std::vector<SymInt> rows{s, 7}, dense{7, 1};
  EXPECT_FALSE(is_non_overlapping_and_dense(rows, dense).is_symbolic());
}

TEST_F(SymRows, T215_a_quotient_stays_known_when_it_becomes_exact) {
  const SymInt u = env->create_unbacked();
  EXPECT_TRUE(check(floor_div(u, 3) == 1));
  EXPECT_TRUE(guard(floor_div(u, 3) == 1));
  EXPECT_TRUE(check(u % 3 == 0));
  EXPECT_TRUE(guard(floor_div(u, 3) == 1));
}

TEST_F(SymRows, T216_nested_maxima_are_one) {
  const SymInt u = env->create_unbacked();
  EXPECT_TRUE(statically_known_true(sym_max(1, sym_max(257, u)) == sym_max(257, u)));
}

TEST_F(SymRows, T217_zero_one_specialisation) {
  for (const bool specialize : {true, false}) {
    env = ShapeEnv::make({.duck_shape = false, .specialize_zero_one = specialize});
    const SymInt s = env->create_size(5, "x");
    EXPECT_TRUE(guard(s != 1));
    EXPECT_EQ(guards(), specialize ? Texts{} : Texts{"Ne(s0, 1)"});
  }
}

TEST_F(SymRows, T218_duck_sizing) {
  for (const bool duck : {true, false}) {
    env = ShapeEnv::make({.duck_shape = duck});
    const SymInt a = env->create_size(5, "x"), b = env->create_size(5, "y");
    EXPECT_TRUE(guard(a == b));
    EXPECT_EQ(guards(), duck ? Texts{} : Texts{"Eq(s0, s1)"});
  }
}

TEST_F(SymRows, T221_only_what_is_provable_is_statically_known) {
  const SymInt s = size(5), t = size(4);
  EXPECT_TRUE(statically_known_true(s == s));
  EXPECT_TRUE(statically_known_true(s * t > t));
  EXPECT_TRUE(statically_known_true((s + s) % 2 == 0));
  EXPECT_TRUE(statically_known_true(s + t == t + s));
  EXPECT_TRUE(statically_known_true(2 * s >= 4));
  EXPECT_FALSE(statically_known_true(s == 5));
  EXPECT_FALSE(statically_known_true(s > t));
  EXPECT_FALSE(statically_known_false(s == 6));
  EXPECT_TRUE(statically_known_false(s == 0));
  EXPECT_TRUE(guards().empty());
}

TEST_F(SymRows, T224_errors_are_those_of_plain_arithmetic) {
  const SymInt s = size(5);
  EXPECT_NE(error_of([&] { (void)floor_div(s, 0); }).find("floor_div: division of s0 by zero"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)(s % 0); }).find("by zero"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)sym_true_div(s, 0); }).find("true_div: division of s0 by zero"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)(sym_float(s) / 0.0); }).find("by zero"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)(sym_float(s) % 0.0); }).find("mod: division of ToFloat(s0) by zero"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)sym_sqrt(-1.0); }).find("sym_sqrt: the argument -1"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)env->hint(sym_sqrt(sym_float(-s))); }).find("negative"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)sym_lshift(s, -1); }).find("lshift: the shift -1 is negative"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)sym_rshift(s, -1); }).find("rshift: the shift -1 is negative"), std::string::npos);
  // Shifting a float does not compile: sym_lshift takes integers.
  EXPECT_EQ(sym_lshift(s, 2).str(), "4*s0");
  EXPECT_EQ(sym_rshift(s, 2).str(), "(s0//4)");
  EXPECT_EQ(sym_lshift(s, s).str(), "s0*(PowByNatural(2, s0))");
}

TEST_F(SymRows, T225_logic_on_symbolic_booleans) {
  const SymInt s = size(5), t = size(4);
  const SymBool yes = s > t, no = s < t;
  for (const SymBool a : {yes, no})
    for (const SymBool b : {yes, no}) {
      EXPECT_EQ(env->hint(sym_and(a, b)), *env->hint(a) && *env->hint(b));
      EXPECT_EQ(env->hint(sym_or(a, b)), *env->hint(a) || *env->hint(b));
      EXPECT_EQ(env->hint(!a), !*env->hint(a));
      EXPECT_EQ(env->hint(sym_equal(a, b)), *env->hint(a) == *env->hint(b));
    }
  EXPECT_TRUE(sym_and(yes, s != 7).is_symbolic());
  EXPECT_TRUE(guards().empty());
}

TEST_F(SymRows, T226_each_dimension_has_its_own_policy) {
  const std::vector<int64_t> sizes{4, 5}, strides{5, 1};
  const auto make = [&](DimDynamic a, DimDynamic b, DimDynamic stride) {
    env = ShapeEnv::make({.duck_shape = false});
    SymbolicContext context;
    context.sizes = {a, b};
    context.strides = {stride, DimDynamic::infer_stride};
    return create_symbolic_geometry(*env, sizes, strides, 0, Source::local("x"), &context);
  };
  using enum DimDynamic;
  TensorGeometry t = make(dynamic_size, dynamic_size, infer_stride);
  EXPECT_EQ(t.sizes[0].str(), "s0");
  EXPECT_EQ(t.strides[0].str(), t.sizes[1].str()) << "inferred";
  EXPECT_EQ(t.strides[1].as_int(), 1);
  t = make(dynamic_size, dynamic_size, dynamic_size);
  EXPECT_EQ(t.strides[0].str(), "s2") << "a symbol of its own";
  EXPECT_EQ(t.strides[1].as_int(), 1);
  t = make(static_size, static_size, infer_stride);
  EXPECT_EQ(t.sizes[0].as_int(), 4);
  EXPECT_EQ(t.strides[0].as_int(), 5);
  t = make(static_size, static_size, dynamic_size);
  EXPECT_EQ(t.sizes[1].as_int(), 5);
  EXPECT_TRUE(t.strides[0].is_symbolic());
  t = make(static_size, dynamic_size, infer_stride);
  EXPECT_EQ(t.strides[0].str(), t.sizes[1].str());
}

TEST_F(SymRows, T227_floor_division_rounds_down) {
  const SymInt u = env->create_unbacked(), v = env->create_unbacked();
  for (const auto& [a, b, q] :
       std::vector<std::array<int64_t, 3>>{{7, 2, 3}, {-7, 2, -4}, {7, -2, -4}, {-7, -2, 3}, {2, 1, 2}}) {
    EXPECT_EQ(floor_div(SymInt(a), SymInt(b)).as_int(), q);
    EXPECT_EQ(env->evaluate(floor_div(u, v), {{"u0", a}, {"u1", b}}), q);
    EXPECT_EQ(sym_float_floor_div(static_cast<double>(a), static_cast<double>(b)).as_float(), static_cast<double>(q));
  }
}

TEST_F(SymRows, T228_floor_division_folds) {
  EXPECT_EQ((7 * floor_div(SymInt(6), SymInt(2))).as_int(), 21);
  const SymInt s = size(6);
  const SymInt e = 7 * floor_div(s, 2);
  EXPECT_EQ(env->evaluate(e, {{"s0", 6}}), 21);
  EXPECT_TRUE(guard(s == 6));
  EXPECT_EQ(env->simplify(e).as_int(), 21);
  EXPECT_FALSE(floor_div(size(4), size(3)).expr()->is_float());
}

TEST_F(SymRows, T233_guards_with_float_division) {
  const SymInt s = size(8);
  const SymBool g = trunc_to_int(sym_float(s) / 2.0) == 4;
  EXPECT_TRUE(guard(g));
  EXPECT_EQ(guards(), Texts{"Eq(TruncToInt(FloatTrueDiv(ToFloat(s0), 2.0)), 4)"});
  EXPECT_EQ(env->evaluate(g, {{"s0", 8}}), true);
  EXPECT_EQ(env->evaluate(g, {{"s0", 7}}), false);
}

TEST_F(SymRows, T234_unbounded_ends_absorb) {
  EXPECT_EQ(range_add({0, above}, {1, 1}), (ValueRange{1, above}));
  EXPECT_EQ(range_scale({0, above}, -1), (ValueRange{below, 0}));
  EXPECT_EQ(range_floor_div({0, above}, {2, 2}), (ValueRange{0, above}));
  const FloatRange half = float_range_div(float_range_of({0, above}), {2, 2});
  EXPECT_TRUE(std::isinf(half.upper));
  // No integer is as large as an unbounded end: the largest one does not close a range.
  EXPECT_EQ(range_of_integer(INT64_MAX).upper, above);
  EXPECT_LT(range_of_integer(INT64_MAX).lower, above);
  EXPECT_FALSE(range_is_single(range_of_integer(INT64_MAX)));
}

const std::vector<std::pair<std::string, std::function<SymInt(SymInt, SymInt)>>>& integer_operations() {
  static const std::vector<std::pair<std::string, std::function<SymInt(SymInt, SymInt)>>> all{
      {"add", [](SymInt a, SymInt b) { return a + b; }},
      {"sub", [](SymInt a, SymInt b) { return a - b; }},
      {"mul", [](SymInt a, SymInt b) { return a * b; }},
      {"floor_div", [](SymInt a, SymInt b) { return floor_div(a, b); }},
      {"mod", [](SymInt a, SymInt b) { return a % b; }},
      {"min", [](SymInt a, SymInt b) { return sym_min(a, b); }},
      {"max", [](SymInt a, SymInt b) { return sym_max(a, b); }},
      {"and", [](SymInt a, SymInt b) { return sym_bitwise_and(a, b); }},
      {"or", [](SymInt a, SymInt b) { return sym_bitwise_or(a, b); }},
      {"xor", [](SymInt a, SymInt b) { return sym_bitwise_xor(a, b); }},
      {"abs", [](SymInt a, SymInt) { return sym_abs(a); }},
      {"ite", [](SymInt a, SymInt b) { return sym_ite(a < b, a, b); }},
      {"where", [](SymInt a, SymInt b) { return sym_where(a < b, b, a); }},
      {"to_int", [](SymInt a, SymInt b) { return sym_int(a <= b); }},
      {"pow", [](SymInt a, SymInt) { return sym_pow(a, 3); }},
      {"floor", [](SymInt a, SymInt b) { return floor_to_int(sym_true_div(a, b)); }},
      {"ceil", [](SymInt a, SymInt b) { return ceil_to_int(sym_true_div(a, b)); }},
      {"trunc", [](SymInt a, SymInt b) { return trunc_to_int(sym_true_div(a, b)); }},
      {"round", [](SymInt a, SymInt b) { return round_to_int(sym_true_div(a, b)); }},
      {"sqrt", [](SymInt a, SymInt) { return floor_to_int(sym_sqrt(sym_float(sym_abs(a)))); }},
      {"float sum", [](SymInt a, SymInt b) { return floor_to_int(sym_float(a) * 0.5 + sym_float(b)); }},
      {"float max", [](SymInt a, SymInt b) { return floor_to_int(sym_float_max(sym_float(a), sym_float(b) - 0.25)); }},
  };
  return all;
}

TEST_F(SymRows, T235_ranges_contain_every_result) {
  const std::vector<int64_t> ends{-5, -1, 0, 1, 2, 3, 7};
  for (const auto& [name, op] : integer_operations())
    for (const int64_t al : ends)
      for (const int64_t au : ends)
        for (const int64_t bl : {-3, 0, 1, 2})
          for (const int64_t bu : {-1, 0, 2, 4}) {
            if (al > au || bl > bu) continue;
            env = ShapeEnv::make();
            const SymInt a = env->create_unbacked({al, au}), b = env->create_unbacked({bl, bu});
            ValueRange r;
            SymInt result;
            try {
              result = op(a, b);
              r = env->range(result);
            } catch (const UserError&) {
              continue;  // the divisor is known to be zero
            }
            for (int64_t x = al; x <= au; ++x)
              for (int64_t y = bl; y <= bu; ++y) {
                int64_t plain;
                try {
                  plain = op(x, y).as_int();
                } catch (const UserError&) {
                  continue;
                }
                ASSERT_TRUE(range_contains(r, plain))
                    << name << " of " << x << " and " << y << " is " << plain << ", not in " << str(r) << " (a in "
                    << str({al, au}) << ", b in " << str({bl, bu}) << ")";
              }
          }
}

TEST_F(SymRows, T236_ranges_of_one_point_give_one_point) {
  for (const auto& [name, op] : integer_operations())
    for (const int64_t x : {-6, -1, 0, 1, 2, 9})
      for (const int64_t y : {-3, -1, 1, 2, 5}) {
        env = ShapeEnv::make();
        const SymInt a = env->create_unbacked(), b = env->create_unbacked();
        const SymInt e = op(a, b);
        env->constrain_range(a, {x, x});
        env->constrain_range(b, {y, y});
        EXPECT_EQ(env->simplify(e).as_int(), op(x, y).as_int()) << name << " " << x << " " << y;
      }
  EXPECT_EQ(range_mul({0, 0}, {}), (ValueRange{0, 0})) << "nothing times anything is nothing";
}

TEST_F(SymRows, T238_inequalities_are_divided_by_known_signs) {
  const SymInt s = size(10), t = size(3), u = env->create_unbacked();
  EXPECT_TRUE(guard(3 * s > 15));
  EXPECT_EQ(env->symbol("s0").range.lower, 6);
  EXPECT_TRUE(guard(-2 * t >= -9)) << "flipped";
  EXPECT_EQ(env->symbol("s1").range, (ValueRange{2, 4}));
  EXPECT_TRUE(check(u * t > 8)) << "the sign of the factor is known, its value is not";
  EXPECT_EQ(env->symbol("u0").range, (ValueRange{below, above}));
  const SymInt v = env->create_unbacked();
  EXPECT_TRUE(check(u * v > 8)) << "an unknown sign: nothing can be said";
  EXPECT_EQ(env->symbol("u1").range, (ValueRange{below, above}));
}

TEST_F(SymRows, T239_floor_division_inequalities_bound_the_dividend) {
  const auto range_after = [&](const std::function<SymBool(SymInt)>& condition) {
    env = ShapeEnv::make();
    const SymInt u = env->create_unbacked();
    EXPECT_TRUE(check(condition(floor_div(u, 4))));
    return env->symbol("u0").range;
  };
  EXPECT_EQ(range_after([](SymInt q) { return q >= 3; }), (ValueRange{12, above}));
  EXPECT_EQ(range_after([](SymInt q) { return q > 3; }), (ValueRange{16, above}));
  EXPECT_EQ(range_after([](SymInt q) { return q <= 3; }), (ValueRange{below, 15}));
  EXPECT_EQ(range_after([](SymInt q) { return q < 3; }), (ValueRange{below, 11}));
  EXPECT_EQ(range_after([](SymInt q) { return q != 3; }), (ValueRange{below, above}));
  // PyTorch gives up here, as an equality is two inequalities.
  EXPECT_EQ(range_after([](SymInt q) { return q == 3; }), (ValueRange{12, 15}));
}

TEST_F(SymRows, T240_common_factors_leave_a_floor_division) {
  const SymInt x = size(4), y = size(5);
  EXPECT_EQ(floor_div(128 * x + 128 * y, 2304).str(), "((s0 + s1)//18)");
  EXPECT_EQ(floor_div(256 * x * y, 8 * x).str(), "32*s1");
  EXPECT_EQ(floor_div(x * y + x + y + 1, x + 1).str(), "s1 + 1");
  EXPECT_EQ(floor_div(3 * x, 2 * y).str(), "((3*s0)//(2*s1))");
}

TEST_F(SymRows, T241_evaluating_a_tree_is_computing_it) {
  const std::vector<int64_t> values{-7, -2, -1, 0, 1, 2, 3, 10};
  for (const auto& [name, op] : integer_operations()) {
    env = ShapeEnv::make();
    const SymInt a = env->create_unbacked(), b = env->create_unbacked();
    const SymInt e = op(a, b);
    for (const int64_t x : values)
      for (const int64_t y : values) {
        int64_t plain;
        try {
          plain = op(x, y).as_int();
        } catch (const UserError&) {
          EXPECT_THROW((void)env->evaluate(e, {{"u0", x}, {"u1", y}}), UserError) << name;
          continue;
        }
        EXPECT_EQ(env->evaluate(e, {{"u0", x}, {"u1", y}}), plain) << name << " " << x << " " << y;
      }
  }
  const SymInt a = env->create_unbacked(), b = env->create_unbacked();
  for (const int64_t x : values)
    for (const int64_t y : values) {
      const ShapeEnv::Assignment at{{env->symbols()[2].name, x}, {env->symbols()[3].name, y}};
      EXPECT_EQ(env->evaluate(a == b, at), x == y);
      EXPECT_EQ(env->evaluate(a != b, at), x != y);
      EXPECT_EQ(env->evaluate(a < b, at), x < y);
      EXPECT_EQ(env->evaluate(a <= b, at), x <= y);
      EXPECT_EQ(env->evaluate(a > b, at), x > y);
      EXPECT_EQ(env->evaluate(a >= b, at), x >= y);
      EXPECT_EQ(env->evaluate(sym_and(a<b, b> 0), at), x < y && y > 0);
      EXPECT_EQ(env->evaluate(sym_or(a<b, b> 0), at), x < y || y > 0);
      EXPECT_EQ(env->evaluate(!sym_or(a<b, b> 0), at), !(x < y || y > 0));
    }
}

}  // namespace
}  // namespace calque::sym_rows_test
