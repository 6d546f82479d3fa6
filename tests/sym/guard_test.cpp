// Guards, replacements, ranges and deferred asserts. The texts and answers are PyTorch 2.13's for the same steps on a
// ShapeEnv with the same examples, except where a comment says that Calque knows more.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "calque/sym/shape_env.h"
#include "calque/sym/sym_math.h"

namespace calque::guard_test {
namespace {

using Texts = std::vector<std::string>;

struct Guards : testing::Test {
  std::shared_ptr<ShapeEnv> env = ShapeEnv::make();

  SymInt size(int64_t hint) { return env->create_symbol(hint, {2, ValueRange::unbounded_above}, "x, dimension 0"); }
  Texts guards() const {
    Texts out;
    for (const Guard& g : env->guards()) out.push_back(g.condition.expr()->str());
    return out;
  }
  Texts asserts() const {
    Texts out;
    for (const SymBool b : env->deferred_asserts()) out.push_back(b.expr()->str());
    return out;
  }
  void expect_range(const char* name, int64_t lower, int64_t upper = ValueRange::unbounded_above) const {
    EXPECT_EQ(env->symbol(name).range.lower, lower) << name;
    EXPECT_EQ(env->symbol(name).range.upper, upper) << name;
  }
};

TEST_F(Guards, equal_sizes_become_one_symbol) {
  const SymInt a = size(4), b = size(4);
  EXPECT_TRUE(guard(a == b));
  EXPECT_EQ((a + b).str(), "2*s0");
  EXPECT_EQ(b.str(), "s0");
  EXPECT_TRUE(guard(a == b));
  EXPECT_EQ(guards(), Texts{"Eq(s0, s1)"});
  EXPECT_EQ(env->replacement("s1")->str(), "s0");
  EXPECT_FALSE(env->replacement("s0").has_value());
}

TEST_F(Guards, unequal_sizes_are_asked_once) {
  const SymInt a = size(4), b = size(5);
  EXPECT_FALSE(guard(a == b));
  EXPECT_TRUE(guard(a != b));
  EXPECT_FALSE(guard(b == a));
  EXPECT_EQ(guards(), Texts{"Ne(s0, s1)"});
}

TEST_F(Guards, equality_with_a_number_specialises) {
  const SymInt a = size(4);
  EXPECT_TRUE(guard(a == 4));
  EXPECT_EQ((a + 1).str(), "5");
  EXPECT_EQ(a.as_int(), 4);
  EXPECT_EQ(guards(), Texts{"Eq(s0, 4)"});
  expect_range("s0", 4, 4);
}

TEST_F(Guards, guard_int_specialises_once) {
  const SymInt a = size(4);
  EXPECT_EQ(a.guard_int(), 4);
  EXPECT_EQ(a.guard_int(), 4);
  EXPECT_EQ((2 * a).guard_int(), 8);
  EXPECT_EQ(guards(), Texts{"Eq(s0, 4)"});
}

TEST_F(Guards, bounds_narrow_the_range_and_answer_later_questions) {
  const SymInt a = size(4);
  EXPECT_TRUE(guard(a > 3));
  EXPECT_TRUE(guard(a > 2));
  EXPECT_TRUE(guard(a >= 4));
  expect_range("s0", 4);
  EXPECT_FALSE(guard(a >= 5));
  EXPECT_EQ(guards(), (Texts{"s0 > 3", "s0 < 5"}));
  EXPECT_EQ(a.as_int(), 4) << "one value is left";
}

TEST_F(Guards, an_order_implies_its_weaker_forms) {
  const SymInt a = size(4), b = size(9);
  EXPECT_TRUE(guard(a < b));
  EXPECT_TRUE(guard(a <= b));
  EXPECT_FALSE(guard(a == b));
  EXPECT_TRUE(guard(b > a));
  EXPECT_FALSE(guard(a > b));
  EXPECT_TRUE(guard(a + 1 <= b));
  EXPECT_EQ(guards(), Texts{"s0 < s1"});
  expect_range("s0", 2);
  expect_range("s1", 3);
}

TEST_F(Guards, a_symbol_stands_for_what_it_equals) {
  const SymInt a = size(4), b = size(8), c = size(12);
  EXPECT_TRUE(guard(b == 2 * a));
  EXPECT_EQ(b.str(), "2*s0");
  EXPECT_TRUE(guard(b > a));
  EXPECT_TRUE(guard(c == a + b));
  EXPECT_EQ(c.str(), "3*s0");
  EXPECT_EQ(guards(), (Texts{"Eq(s1, 2*s0)", "Eq(s2, 3*s0)"}));
  expect_range("s1", 4);
}

TEST_F(Guards, the_range_of_a_replaced_symbol_moves_to_what_replaces_it) {
  const SymInt a = size(8), b = size(4);
  EXPECT_TRUE(guard(a >= 8));
  EXPECT_TRUE(guard(a == 2 * b));
  EXPECT_EQ(a.str(), "2*s1");
  EXPECT_EQ(guards(), (Texts{"s0 >= 8", "Eq(s0, 2*s1)"}));
  expect_range("s0", 8);
  expect_range("s1", 4);
}

TEST_F(Guards, an_equation_without_integer_solution_replaces_nothing) {
  const SymInt a = size(6), b = size(4);
  EXPECT_TRUE(guard(2 * a == 3 * b));
  EXPECT_EQ(a.str(), "s0");
  EXPECT_TRUE(guard(2 * a == 3 * b));
  EXPECT_EQ(guards(), Texts{"Eq(2*s0, 3*s1)"});
}

TEST_F(Guards, divisibility_is_remembered) {
  const SymInt a = size(4);
  EXPECT_TRUE(guard(a % 2 == 0));
  EXPECT_TRUE(guard(a % 2 == 0));
  EXPECT_EQ(floor_div(a, 2).str(), "(s0//2)");
  // PyTorch takes a second guard here: Eq(2*((s0//2)), s0).
  EXPECT_TRUE(guard(floor_div(a, 2) * 2 == a));
  EXPECT_EQ(guards(), Texts{"Eq(Mod(s0, 2), 0)"});
}

TEST_F(Guards, what_ranges_and_algebra_know_takes_no_guard) {
  const SymInt a = size(4), b = size(5);
  EXPECT_TRUE(guard(a > 1));
  EXPECT_TRUE(guard(a * b >= 4));
  EXPECT_TRUE(guard(a + b > 3));
  EXPECT_TRUE(guard(a * b >= a));
  EXPECT_TRUE(guard(a * b > a));
  EXPECT_FALSE(guard(a * b == 0));
  EXPECT_TRUE(guard(a + 1 > a));
  EXPECT_TRUE(guard((a + 1) * (a - 1) == a * a - 1));
  EXPECT_FALSE(guard(2 * a == 2 * b + 1));
  EXPECT_EQ(guards(), Texts{});
}

TEST_F(Guards, inequality_excludes_a_value) {
  const SymInt a = size(4);
  EXPECT_TRUE(guard(a != 2));
  EXPECT_FALSE(guard(a == 2));
  EXPECT_TRUE(guard(a > 2));  // PyTorch asks again: s0 > 2
  EXPECT_EQ(guards(), Texts{"Ne(s0, 2)"});
}

TEST_F(Guards, a_bound_on_a_quotient_bounds_the_dividend) {
  const SymInt a = size(8);
  EXPECT_TRUE(guard(floor_div(a, 2) > 3));
  EXPECT_EQ(guards(), Texts{"((s0//2)) > 3"});
  expect_range("s0", 8);
}

TEST_F(Guards, a_conjunction_teaches_its_parts) {
  const SymInt a = size(4), b = size(5);
  EXPECT_TRUE(guard(sym_and(a > 3, b > 4)));
  EXPECT_EQ(guards(), Texts{"(s0 > 3) & (s1 > 4)"});
  expect_range("s0", 4);
  expect_range("s1", 5);
}

TEST_F(Guards, a_disjunction_is_recorded_whole_and_remembered) {
  const SymInt a = size(4), b = size(5);
  EXPECT_FALSE(guard(sym_or(a > 9, b > 7)));
  EXPECT_EQ(guards(), Texts{"~((s0 > 9) | (s1 > 7))"});
  EXPECT_FALSE(guard(sym_or(b > 7, a > 9)));
  EXPECT_FALSE(guard(a > 9));
  EXPECT_EQ(env->guards().size(), 1U);
  expect_range("s0", 2, 9);
}

TEST_F(Guards, a_product_is_known_by_its_bounds) {
  const SymInt a = size(4), b = size(5);
  EXPECT_TRUE(guard(a * b > 10));
  EXPECT_TRUE(guard(a * b > 9));  // implied; PyTorch asks again
  EXPECT_TRUE(guard(a * b > 11));
  EXPECT_EQ(guards(), (Texts{"s0*s1 > 10", "s0*s1 > 11"}));
}

TEST_F(Guards, facts_follow_a_symbol_that_is_replaced) {
  const SymInt a = size(4), b = size(6), c = size(6);
  EXPECT_TRUE(guard(a < c));
  EXPECT_TRUE(guard(b == c));
  EXPECT_EQ(c.str(), "s1");
  EXPECT_TRUE(guard(a < b));
  EXPECT_EQ(guards(), (Texts{"s0 < s2", "Eq(s1, s2)"}));
}

TEST_F(Guards, a_guard_names_operator_and_place) {
  const SymInt a = size(4);
  {
    const GuardOperatorScope outer("aten::view");
    const GuardOperatorScope scope("aten::add.Tensor");
    EXPECT_TRUE(guard(a > 3));
  }
  EXPECT_TRUE(guard(a < 100));
  ASSERT_EQ(env->guards().size(), 2U);
  EXPECT_EQ(env->guards()[0].operator_name, "aten::add.Tensor");
  EXPECT_NE(std::string(env->guards()[0].where.file_name()).find("guard_test.cpp"), std::string::npos);
  EXPECT_EQ(env->guards()[1].operator_name, "");
}

TEST_F(Guards, is_known_records_nothing) {
  const SymInt a = size(4), b = size(4);
  bool value = false;
  EXPECT_FALSE((a == b).is_known(value));
  EXPECT_FALSE((a > 3).is_known(value));
  EXPECT_TRUE((a * b > 1).is_known(value));
  EXPECT_TRUE(value);
  EXPECT_TRUE(SymBool(false).is_known(value));
  EXPECT_FALSE(value);
  EXPECT_TRUE(env->guards().empty());
  EXPECT_EQ(b.str(), "s1");
}

TEST_F(Guards, a_guard_on_data_says_what_and_where) {
  const SymInt u = env->create_unbacked();
  const GuardOperatorScope scope("aten::reshape");
  try {
    guard(u > 3);
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::data_dependent);
    const std::string text = e.what();
    EXPECT_NE(text.find("u0 > 3"), std::string::npos) << text;
    EXPECT_NE(text.find("aten::reshape"), std::string::npos) << text;
    EXPECT_NE(text.find("guard_test.cpp"), std::string::npos) << text;
  }
  EXPECT_THROW(u.guard_int(), UserError);
  EXPECT_THROW(u.as_int(), UserError);
}

TEST_F(Guards, data_that_cancels_out_can_be_guarded_on) {
  const SymInt u = env->create_unbacked(), a = size(4);
  EXPECT_TRUE(guard(u + a > u + 3));
  EXPECT_EQ(guards().size(), 1U);
}

TEST_F(Guards, guard_or_takes_the_fallback_for_data) {
  const SymInt u = env->create_unbacked();
  EXPECT_FALSE(guard_or(u == 1, false));
  EXPECT_TRUE(guard_or(u == 1, true));
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(Guards, guard_or_guards_on_examples) {
  const SymInt a = size(4), b = size(4);
  EXPECT_TRUE(guard_or(a == b, false));
  EXPECT_FALSE(guard_or(a == 5, true));
  EXPECT_EQ(guards(), (Texts{"Eq(s0, s1)", "Ne(s0, 5)"}));
}

TEST_F(Guards, check_of_examples_guards) {
  const SymInt a = size(4), b = size(5);
  EXPECT_TRUE(check(2 * a > b));
  EXPECT_EQ(guards(), Texts{"2*s0 > s1"});
  EXPECT_FALSE(check(a > b));
  EXPECT_EQ(env->guards().size(), 1U) << "what does not hold is not recorded";
  EXPECT_TRUE(env->deferred_asserts().empty());
}

TEST_F(Guards, check_of_data_defers) {
  const SymInt u = env->create_unbacked();
  EXPECT_TRUE(check(u >= 0));
  EXPECT_EQ(asserts(), Texts{"0 <= u0"});
  expect_range("u0", 0);
  EXPECT_TRUE(guard(u >= 0));
  EXPECT_TRUE(guard(u + 1 > 0));
  EXPECT_TRUE(check(u >= 0));
  EXPECT_EQ(env->deferred_asserts().size(), 1U);
  EXPECT_FALSE(check(u < 0));
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(Guards, checks_narrow_data_from_both_sides) {
  const SymInt u = env->create_unbacked();
  EXPECT_TRUE(check(u <= 10));
  EXPECT_TRUE(check(u >= 2));
  EXPECT_EQ(asserts(), (Texts{"u0 <= 10", "2 <= u0"}));
  expect_range("u0", 2, 10);
  EXPECT_TRUE(guard(u < 20));
  EXPECT_FALSE(guard(u == 1));
}

TEST_F(Guards, data_that_equals_a_size_is_that_size) {
  const SymInt a = size(4), u = env->create_unbacked(), v = env->create_unbacked();
  EXPECT_TRUE(check(u == a));
  EXPECT_EQ(u.str(), "s0");
  EXPECT_TRUE(guard(u > 1));
  EXPECT_EQ(env->hint(u), 4);
  EXPECT_TRUE(check(v + 1 == a));
  EXPECT_EQ(v.str(), "s0 - 1");
  EXPECT_EQ(asserts(), (Texts{"Eq(u0, s0)", "Eq(u1 + 1, s0)"}));
  expect_range("u0", 2);
  expect_range("u1", 1);
}

TEST_F(Guards, equal_data_is_not_replaced_but_known) {
  const SymInt u = env->create_unbacked(), v = env->create_unbacked();
  EXPECT_TRUE(check(u == v));
  EXPECT_EQ(u.str(), "u0");
  EXPECT_EQ(v.str(), "u1");
  EXPECT_TRUE(guard(u == v));
  EXPECT_TRUE(guard(u <= v));
  EXPECT_TRUE(guard(2 * u == 2 * v));
  EXPECT_EQ(asserts(), Texts{"Eq(u0, u1)"});
}

TEST_F(Guards, excluded_data_is_known) {
  const SymInt u = env->create_unbacked();
  EXPECT_TRUE(check(u != 1));
  EXPECT_FALSE(guard(u == 1));
  EXPECT_EQ(asserts(), Texts{"Ne(u0, 1)"});
}

TEST(ShapeEnv, small_examples_are_plain_and_equal_examples_share_a_symbol) {
  const auto env = ShapeEnv::make();
  EXPECT_FALSE(env->create_size(0, "x, dimension 0").is_symbolic());
  EXPECT_EQ(env->create_size(1, "x, dimension 1").as_int(), 1);
  const SymInt a = env->create_size(5, "x, dimension 2"), b = env->create_size(5, "y, dimension 0");
  EXPECT_TRUE(identical(a, b));
  EXPECT_FALSE(identical(a, env->create_size(6, "y, dimension 1")));
  EXPECT_EQ(env->symbol("s0").origin, "x, dimension 2");
  EXPECT_EQ(env->symbol("s0").range.lower, 2);
  EXPECT_EQ(env->symbols().size(), 2U);
  EXPECT_EQ(env_of(a), env);
  EXPECT_EQ(env_of(3), nullptr);
  EXPECT_THROW(env->symbol("s9"), UserError);
  EXPECT_THROW(env->create_size(-1, "z"), UserError);

  const auto other = ShapeEnv::make({.duck_shape = false, .specialize_zero_one = false});
  EXPECT_EQ(other->create_size(1, "x").str(), "s0");
  EXPECT_EQ(other->create_size(1, "x").str(), "s1");
  EXPECT_EQ(other->symbol("s0").range.lower, 0);
  EXPECT_THROW(a + other->create_size(1, "x"), UserError);
}

TEST(ShapeEnv, ranges_can_be_constrained) {
  const auto env = ShapeEnv::make();
  const SymInt a = env->create_size(5, "x, dimension 0"), u = env->create_unbacked();
  env->constrain_range(a, {3, 64});
  EXPECT_EQ(env->range(2 * a + 1).lower, 7);
  EXPECT_EQ(env->range(2 * a + 1).upper, 129);
  env->constrain_range(2 * u, {3, 9});
  EXPECT_EQ(env->range(u).lower, 2);
  EXPECT_EQ(env->range(u).upper, 4);
  EXPECT_TRUE(env->guards().empty());
  const auto kind_of = [](auto&& f) {
    try {
      f();
    } catch (const UserError& e) {
      return e.kind();
    }
    return ErrorKind::bad_file;
  };
  EXPECT_EQ(kind_of([&] { env->constrain_range(a, {6, 64}); }), ErrorKind::constraint_violation) << "the example is 5";
  EXPECT_EQ(kind_of([&] { env->constrain_range(a, {100, 200}); }), ErrorKind::constraint_violation);
  EXPECT_EQ(kind_of([&] { env->constrain_range(a, {9, 3}); }), ErrorKind::constraint_violation);
  EXPECT_EQ(kind_of([&] { env->constrain_range(7, {9, 13}); }), ErrorKind::constraint_violation);
  EXPECT_EQ(kind_of([&] { env->create_symbol(1, {2, 9}, "batch"); }), ErrorKind::constraint_violation);
  EXPECT_EQ(env->range(a).lower, 3);
}

TEST(ShapeEnv, evaluates_with_hints_and_with_other_values) {
  const auto env = ShapeEnv::make();
  const SymInt a = env->create_size(5, "x"), b = env->create_size(7, "y"), u = env->create_unbacked();
  const SymInt e = floor_div(a * b - 40, 3) + (a - b) % 4 + sym_max(a, b);
  EXPECT_EQ(env->hint(e), -2 + 2 + 7);
  EXPECT_EQ(env->evaluate(e, {{"s0", 2}, {"s1", 9}}), floor_div(-22, 3).as_int() + 1 + 9);
  EXPECT_EQ(env->hint(e + u), std::nullopt);
  EXPECT_EQ(env->evaluate(e, {{"s0", 2}}), std::nullopt);
  EXPECT_EQ(env->evaluate(a < b, {{"s0", 2}, {"s1", 9}}), true);
  EXPECT_EQ(env->evaluate(SymInt(3), {}), 3);
  EXPECT_THROW(env->evaluate(floor_div(a, b), {{"s0", 2}, {"s1", 0}}), UserError);
  // A symbol that was replaced may be left out.
  EXPECT_TRUE(guard(b == a + 2));
  EXPECT_EQ(env->evaluate(e, {{"s0", 2}}), env->evaluate(e, {{"s0", 2}, {"s1", 4}}));
}

TEST(ShapeEnv, simplify_uses_what_is_known) {
  const auto env = ShapeEnv::make();
  const SymInt a = env->create_size(8, "x"), u = env->create_unbacked();
  const SymInt e = sym_max(u, 1) * 3 + floor_div(a, 4) * 4;
  EXPECT_EQ(e.str(), "4*((s0//4)) + 3*Max(1, u0)");
  EXPECT_TRUE(check(u >= 1));
  EXPECT_TRUE(guard(a % 4 == 0));
  EXPECT_EQ(env->simplify(e).str(), "s0 + 3*u0");
  EXPECT_EQ(env->simplify(SymInt(4)).as_int(), 4);
}

TEST(ShapeEnv, declared_symbols_are_found_by_name) {
  const auto env = ShapeEnv::make();
  const SymInt a = env->declare_symbol("s77", 6, {2, 128}, "tokens, dimension 1");
  EXPECT_EQ(a.str(), "s77");
  EXPECT_TRUE(identical(a, env->declare_symbol("s77", 6, {4, ValueRange::unbounded_above})));
  EXPECT_EQ(env->symbol("s77").range.lower, 4);
  EXPECT_EQ(env->symbol("s77").range.upper, 128);
  EXPECT_THROW(env->declare_symbol("s77", 7, {}), UserError);
  EXPECT_THROW(env->declare_symbol("u3", 7, {}), UserError);
  EXPECT_THROW(guard(env->declare_symbol("u3", std::nullopt, {}) == 2), UserError);
  EXPECT_EQ(env->create_unbacked().str(), "u0");
}

}  // namespace
}  // namespace calque::guard_test
