// Plain values: they never touch an environment, follow Python's arithmetic, and refuse to overflow.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "calque/sym/shape_env.h"
#include "calque/sym/sym_int.h"
#include "calque/sym/sym_math.h"
#include "support/error_support.h"

namespace calque::sym_int_test {
namespace {

using test::error_of;

TEST(SymInt, plain_values_are_their_word) {
  EXPECT_EQ(SymInt(42).word(), 42);
  EXPECT_EQ(SymInt(-1).as_int(), -1);
  EXPECT_FALSE(SymInt(-5).is_symbolic());
  EXPECT_EQ(SymInt(-5).expr(), nullptr);
  EXPECT_EQ(SymInt(INT64_MAX).as_int(), INT64_MAX);
  EXPECT_EQ(SymInt(7).guard_int(), 7);
  EXPECT_EQ(SymInt(-12).str(), "-12");
  static_assert(SymInt(3).as_int() == 3);
  static_assert(!SymInt(3).is_symbolic());
}

TEST(SymInt, the_most_negative_values_survive) {
  const SymInt smallest = INT64_MIN;
  EXPECT_EQ(smallest.as_int(), INT64_MIN);
  EXPECT_EQ(smallest.guard_int(), INT64_MIN);
  EXPECT_EQ(smallest.str(), "-9223372036854775808");
  EXPECT_TRUE(identical(smallest, SymInt(INT64_MIN)));
  EXPECT_EQ((smallest + 1).as_int(), INT64_MIN + 1);
  EXPECT_EQ((smallest + INT64_MAX).as_int(), -1);
  EXPECT_TRUE(guard(smallest < 0));
  EXPECT_TRUE(guard(smallest == INT64_MIN));
  EXPECT_FALSE(guard(smallest > -7));
  EXPECT_TRUE(guard(smallest <= smallest));
  EXPECT_TRUE(guard(smallest >= smallest));
  EXPECT_EQ(sym_min(smallest, 4).as_int(), INT64_MIN);
  EXPECT_EQ(sym_max(smallest, 4).as_int(), 4);
  EXPECT_EQ((smallest % 7).as_int(), 6);
  EXPECT_EQ(floor_div(smallest, 2).as_int(), INT64_MIN / 2);
  EXPECT_EQ(env_of(smallest), nullptr);
  const int64_t edge = -(int64_t{1} << 62);
  EXPECT_FALSE(SymInt(edge).is_symbolic());
  EXPECT_EQ(SymInt(edge - 1).as_int(), edge - 1);
}

TEST(SymInt, the_most_negative_values_mix_with_symbols) {
  const auto env = ShapeEnv::make();
  const SymInt s = env->create_size(5, "x");
  EXPECT_TRUE(guard(s > SymInt(INT64_MIN)));
  EXPECT_EQ((s + SymInt(INT64_MIN)).str(), "s0 - 9223372036854775808");
  EXPECT_EQ((s + SymInt(INT64_MIN) - s).as_int(), INT64_MIN);
  EXPECT_TRUE(env->guards().empty());
}

TEST(SymInt, overflow_is_an_error_that_names_it) {
  const SymInt big = INT64_MAX;
  EXPECT_NE(error_of([&] { (void)(big + 1); }).find("overflow in 9223372036854775807 + 1"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)(SymInt(-2) - big); }).find("overflow in -2 - 9223372036854775807"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)(big * 2); }).find("overflow in 9223372036854775807 * 2"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)(-SymInt(INT64_MIN)); }).find("overflow"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)floor_div(INT64_MIN, -1); }).find("overflow"), std::string::npos);
  const auto env = ShapeEnv::make();
  const SymInt s = env->create_size(5, "x");
  EXPECT_NE(error_of([&] { (void)(s * big * 2); }).find("overflow"), std::string::npos);
}

TEST(SymInt, division_rounds_down_as_in_python) {
  for (const auto& [a, b, q, r] : std::vector<std::array<int64_t, 4>>{
           {7, 2, 3, 1}, {-7, 2, -4, 1}, {7, -2, -4, -1}, {-7, -2, 3, -1}, {6, -3, -2, 0}, {0, -5, 0, 0}, {-1, 5, -1, 4}}) {
    EXPECT_EQ(floor_div(a, b).as_int(), q) << a << " // " << b;
    EXPECT_EQ((SymInt(a) % b).as_int(), r) << a << " % " << b;
  }
  EXPECT_NE(error_of([] { (void)floor_div(7, 0); }).find("division of 7 by zero"), std::string::npos);
  EXPECT_NE(error_of([] { (void)(SymInt(7) % 0); }).find("division of 7 by zero"), std::string::npos);
  const auto env = ShapeEnv::make();
  const SymInt s = env->create_size(5, "x");
  EXPECT_NE(error_of([&] { (void)floor_div(s, 0); }).find("division of s0 by zero"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)(s % 0); }).find("division of s0 by zero"), std::string::npos);
}

TEST(SymInt, plain_conditions_are_plain) {
  EXPECT_TRUE(guard(SymInt(3) < 4));
  EXPECT_TRUE(guard_or(SymInt(3) != 4, false));
  EXPECT_TRUE(check(SymInt(4) >= 4));
  EXPECT_FALSE(check(SymInt(4) > 4));
  EXPECT_TRUE(guard(!sym_and(SymBool(true), SymBool(false))));
  EXPECT_TRUE(guard(sym_or(SymBool(true), SymBool(false))));
  EXPECT_EQ(SymBool(true).str(), "True");
  EXPECT_EQ(SymBool(false).expr(), nullptr);
}

TEST(SymInt, lists_of_plain_integers_are_viewed) {
  const std::vector<int64_t> values{2, -3, 0};
  const SymIntList view = as_sym(values);
  ASSERT_EQ(view.size(), 3U);
  EXPECT_EQ(view[1].as_int(), -3);
  EXPECT_EQ(static_cast<const void*>(view.data()), static_cast<const void*>(values.data()));
  EXPECT_NE(error_of([] { as_sym(IntList{1, INT64_MIN}); }).find("-9223372036854775808"), std::string::npos);
}

TEST(SymInt, nodes_are_shared_by_equal_expressions) {
  const auto env = ShapeEnv::make();
  const SymInt a = env->create_size(5, "x"), b = env->create_size(6, "y");
  EXPECT_TRUE(identical(a + b + 1, 1 + b + a));
  EXPECT_TRUE(identical(2 * (a + b), a + b + b + a));
  EXPECT_TRUE(identical(a - a, 0));
  EXPECT_FALSE(identical(a * (b + 1), a * b + a));
  EXPECT_TRUE(guard(a * (b + 1) == a * b + a)) << "equal all the same";
  EXPECT_TRUE(env->guards().empty());
}

TEST(SymInt, a_symbolic_value_is_not_an_integer) {
  const auto env = ShapeEnv::make();
  const SymInt a = env->create_size(5, "x");
  EXPECT_NE(error_of([&] { (void)(2 * a).as_int(); }).find("2*s0"), std::string::npos);
}

TEST(SymInt, long_sums_and_products_stay_cheap) {
  const auto env = ShapeEnv::make({.duck_shape = false});
  SymInt sum = 0, product = 1;
  for (int i = 0; i < 300; ++i) {
    const SymInt s = env->create_size(2 + i, "x");
    sum += s;
    if (i < 40) product *= s + 1;
  }
  EXPECT_EQ(env->hint(sum), 300 * 2 + 299 * 150);
  EXPECT_TRUE(guard(sum >= 600));
  EXPECT_TRUE(guard(product > 0)) << "2^40 terms if multiplied out";
  EXPECT_TRUE(guard(sum == sum + 0));
  EXPECT_TRUE(env->guards().empty());
}

TEST(SymInt, deep_and_shared_expressions_do_not_exhaust_anything) {
  const auto env = ShapeEnv::make();
  const SymInt a = env->create_size(1000, "x"), b = env->create_size(3, "y");
  SymInt e = a;
  for (int i = 0; i < 100; ++i) e = floor_div(e + b, e + 1) + b;  // as a tree, 2^100 nodes
  int64_t plain = 9;
  for (int i = 0; i < 100; ++i) plain = (plain + 4) / (plain + 1) + 4;
  EXPECT_EQ(env->evaluate(e, {{"s0", 9}, {"s1", 4}}), plain);
  EXPECT_GE(env->range(e).lower, 2);
  std::string message;
  SymInt deep = a;
  message = error_of([&] {
    for (int i = 0; i < 5000; ++i) deep = floor_div(deep + 1, b) + floor_div(deep, b + 1);
  });
  EXPECT_NE(message.find("levels deep"), std::string::npos) << message;
}

TEST(SymInt, immortal_integers_are_shared_between_threads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int64_t i = 0; i < 500; ++i) EXPECT_EQ((SymInt(INT64_MIN + i) + 1).as_int(), INT64_MIN + i + 1);
    });
  for (std::thread& t : threads) t.join();
}

TEST(SymMath, plain_values_give_plain_results) {
  EXPECT_EQ(sym_pow(3, 4).as_int(), 81);
  EXPECT_EQ(sym_pow(-1, 1'000'000'001).as_int(), -1);
  EXPECT_THROW(sym_pow(10, 30), UserError);
  EXPECT_THROW(sym_pow(2, -1), UserError);
  EXPECT_EQ(sym_where(true, 3, 4).as_int(), 3);
  EXPECT_EQ(sym_float(3).as_float(), 3.0);
  EXPECT_EQ(sym_true_div(7, 2).as_float(), 3.5);
  EXPECT_THROW(sym_true_div(7, 0), UserError);
  EXPECT_EQ(floor_to_int(-1.5).as_int(), -2);
  EXPECT_EQ(ceil_to_int(-1.5).as_int(), -1);
  EXPECT_EQ(trunc_to_int(-1.5).as_int(), -1);
  EXPECT_THROW(floor_to_int(1e30), UserError);
  EXPECT_EQ(sym_add(1.5, 2.0).as_float(), 3.5);
  EXPECT_EQ(sym_mul(1.5, 2.0).as_float(), 3.0);
  EXPECT_EQ(sym_float_pow(4.0, 0.5).as_float(), 2.0);
}

TEST(SymMath, symbolic_values_print_as_sympy_and_evaluate) {
  const auto env = ShapeEnv::make();
  const SymInt a = env->create_size(5, "x"), b = env->create_size(2, "y");
  EXPECT_EQ(sym_pow(a, 2).str(), "s0**2");
  EXPECT_EQ(sym_pow(2, a).str(), "PowByNatural(2, s0)");
  EXPECT_EQ(env->hint(sym_pow(2, a)), 32);
  EXPECT_EQ(sym_where(a < b, a, b).str(), "Where(s0 < s1, s0, s1)");
  EXPECT_EQ(env->hint(sym_where(a < b, a, b)), 2);
  const SymFloat ratio = sym_true_div(a, b);
  EXPECT_EQ(ratio.str(), "IntTrueDiv(s0, s1)");
  EXPECT_EQ(ceil_to_int(ratio).str(), "CeilToInt(IntTrueDiv(s0, s1))");
  EXPECT_EQ(env->hint(ceil_to_int(ratio)), 3);
  EXPECT_EQ(env->hint(trunc_to_int(ratio)), 2);
  EXPECT_EQ(sym_mul(sym_float(a), 0.5).str(), "0.5*ToFloat(s0)");
  EXPECT_EQ(sym_add(sym_float(a), 1.5).str(), "ToFloat(s0) + 1.5");
  EXPECT_EQ((sym_float(a) - sym_float(a)).as_float(), 0.0);
  EXPECT_THROW(ratio.as_float(), UserError);
  EXPECT_EQ(ratio.guard_float(), 2.5);
  EXPECT_EQ(ratio.guard_float(), 2.5);
  EXPECT_EQ(env->guards().size(), 1U);
  EXPECT_EQ(env->guards()[0].condition.str(), "Eq(IntTrueDiv(s0, s1), 2.5)");
}

}  // namespace
}  // namespace calque::sym_int_test
