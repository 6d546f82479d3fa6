// Values that are only known when the program runs: what may be asked of them, and how they are found and renamed.
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "calque/sym/shape_env.h"
#include "calque/sym/sym_math.h"
#include "calque/sym/symbolic_context.h"
#include "calque/sym/unbacked.h"

namespace calque::unbacked_test {
namespace {

using Texts = std::vector<std::string>;
constexpr int64_t above = ValueRange::unbounded_above;

struct Unbacked : testing::Test {
  std::shared_ptr<ShapeEnv> env = ShapeEnv::make();
  Texts asserts() const {
    Texts out;
    for (const RuntimeAssert& a : env->runtime_asserts()) out.push_back(a.symbol + ": " + a.condition.expr()->str());
    return out;
  }
};

TEST_F(Unbacked, a_size_is_taken_to_be_at_least_two_by_size_oblivious_tests) {
  const SymInt u = env->create_unbacked(), v = env->create_unbacked();
  EXPECT_TRUE(check_is_size(u));
  EXPECT_EQ(asserts(), Texts{"u0: 0 <= u0"});
  EXPECT_EQ(env->symbol("u0").range, (ValueRange{0, above}));
  EXPECT_FALSE(guard_size_oblivious(u == 0));
  EXPECT_FALSE(guard_size_oblivious(u == 1));
  EXPECT_TRUE(guard_size_oblivious(u != 1));
  EXPECT_FALSE(guard_size_oblivious(u < 2));
  EXPECT_FALSE(guard_size_oblivious(sym_or(u == 0, 2 * u == 2)));
  EXPECT_FALSE(guard_size_oblivious(u == INT64_MAX)) << "a sentinel is no size";
  EXPECT_THROW(guard_size_oblivious(u == 5), UserError);
  EXPECT_THROW(guard_size_oblivious(v == 0), UserError) << "not known to be a size";
  EXPECT_THROW(guard(u == 0), UserError) << "an ordinary test still cannot know";
  EXPECT_FALSE(guard_or_false(u == 0));
  EXPECT_TRUE(guard_or_true(u == 0));
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(Unbacked, a_size_is_never_learnt_to_be_zero_or_one) {
  const SymInt u = env->create_unbacked_size();
  EXPECT_TRUE(check(u <= 1));
  EXPECT_EQ(env->symbol("u0").range, (ValueRange{0, 2}));
  EXPECT_FALSE(guard_size_oblivious(u == 1));
  EXPECT_FALSE(env->replacement("u0").has_value());
}

TEST_F(Unbacked, being_a_size_passes_on_by_equality) {
  const SymInt u = env->create_unbacked_size(), v = env->create_unbacked_size();
  const SymInt s = env->create_size(5, "x");
  EXPECT_TRUE(check(u == s));
  EXPECT_EQ(u.str(), "s0");
  EXPECT_TRUE(check(v == s + 1));
  EXPECT_EQ(v.str(), "s0 + 1");
}

TEST_F(Unbacked, size_constraints_are_checked) {
  const SymInt u = env->create_unbacked();
  env->constrain_range_for_size(u, 3, 10);
  EXPECT_EQ(env->symbol("u0").range, (ValueRange{3, 10}));
  EXPECT_TRUE(env->symbol("u0").size_like);
  EXPECT_THROW(env->constrain_range_for_size(u, 5, 4), UserError);
  const SymInt s = env->create_size(5, "x");
  env->constrain_range_for_size(s);  // only tensor data becomes a size
  EXPECT_FALSE(env->symbol("s0").size_like);
}

TEST_F(Unbacked, unify_makes_two_symbols_one_without_a_guard) {
  const SymInt u = env->create_unbacked(), s = env->create_size(5, "x"), t = env->create_size(6, "y");
  env->constrain_unify(s, u);
  EXPECT_EQ(u.str(), "s0");
  env->constrain_unify(t, 6);
  EXPECT_EQ(t.as_int(), 6);
  EXPECT_TRUE(env->guards().empty());
  EXPECT_TRUE(env->runtime_asserts().empty());
  EXPECT_THROW(env->constrain_unify(s + 1, u * 2), UserError);
  EXPECT_THROW(env->constrain_unify(3, 4), UserError);
}

TEST_F(Unbacked, floats_from_data) {
  const SymFloat f = env->create_unbacked_float();
  EXPECT_EQ(f.str(), "zuf0");
  EXPECT_EQ((f * 2.0 + 1.5).str(), "2.0*zuf0 + 1.5");
  EXPECT_THROW(guard(f < 1.5), UserError);
  EXPECT_TRUE(check(f < 1.5));
  EXPECT_TRUE(guard(f < 1.5)) << "checked, so known";
  EXPECT_TRUE(check(f == 1.0));
  EXPECT_EQ(asserts(), (Texts{"zuf0: zuf0 < 1.5", "zuf0: Eq(zuf0, 1.0)"}));
  EXPECT_EQ(f.str(), "1.00000000000000") << "as sympy prints it";
}

TEST_F(Unbacked, bools_from_data) {
  const SymBool b = env->create_unbacked_bool();
  EXPECT_EQ(b.str(), "Eq(u0, 1)");
  EXPECT_THROW(guard(b), UserError);
  EXPECT_EQ(sym_int(b).str(), "Piecewise((1, Eq(u0, 1)), (0, True))");
  EXPECT_TRUE(check(b));
  EXPECT_TRUE(guard(b));
  EXPECT_EQ(env->replacement("u0")->as_int(), 1);
}

TEST_F(Unbacked, data_of_an_input_may_replace_other_data) {
  SymbolicContext context;
  context.sizes = {DimDynamic::unbacked, DimDynamic::unbacked};
  context.shape_ids = {{1, "seq"}};
  context.unbacked_bounds = {{0, {3, 64}}};
  const std::vector<int64_t> sizes{4, 5}, strides{5, 1};
  const TensorGeometry t = create_symbolic_geometry(*env, sizes, strides, 0, Source::local("x"), &context);
  EXPECT_EQ(t.sizes[0].str(), "u0");
  EXPECT_EQ(env->symbol("u0").range, (ValueRange{3, 64}));
  EXPECT_EQ(t.strides[0].str(), "u1");
  EXPECT_TRUE(pending_unbacked(*env).empty()) << "an input is bound already";
  const SymInt v = env->create_unbacked_size();
  EXPECT_TRUE(check(v == t.sizes[1]));
  EXPECT_EQ(v.str(), "u1");
  // A second dimension with the same id is checked to be equal.
  const TensorGeometry y = create_symbolic_geometry(*env, sizes, strides, 0, Source::local("y"), &context);
  EXPECT_TRUE(guard(y.sizes[1] == t.sizes[1]));
  EXPECT_FALSE(guard_or_false(y.sizes[0] == t.sizes[0]));
}

TEST_F(Unbacked, fresh_symbols_are_found_in_the_results) {
  const SymInt u = env->create_unbacked_size(), v = env->create_unbacked();
  const SymFloat f = env->create_unbacked_float();
  const SymBool b = env->create_unbacked_bool();
  const SymInt s = env->create_size(5, "x");
  EXPECT_EQ(pending_unbacked(*env), (Texts{"u0", "u1", "zuf0", "u2"}));
  TensorGeometry t;
  t.sizes = {u, 3};
  t.strides = {3 * v, 1};
  const std::vector<ResultLeaf> results{{{BindingKey::item(0)}, t}, {{BindingKey::item(1)}, f}, {{BindingKey::item(2)}, b}};
  EXPECT_EQ(compute_unbacked_bindings(*env, results, true).size(), 4U);
  const UnbackedBindings found = compute_unbacked_bindings(*env, results);
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(str(found.at("u0")), "[0].size()[0]");
  EXPECT_EQ(str(found.at("u1")), "[0].stride()[0].__floordiv__(3)");
  EXPECT_EQ(str(found.at("zuf0")), "[1]");
  EXPECT_EQ(str(found.at("u2")), "[2].to_int()");
  EXPECT_TRUE(compute_unbacked_bindings(*env, results).empty()) << "nothing is pending any more";

  const SymInt w = env->create_unbacked();
  const UnbackedBindings scaled = compute_unbacked_bindings(*env, {{{}, s * w}});
  EXPECT_EQ(str(scaled.at("u3")), ".__floordiv__(s0)");

  (void)env->create_unbacked();
  try {
    compute_unbacked_bindings(*env, {{{}, SymInt(4)}});
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("u4"), std::string::npos) << e.what();
  }
  {
    const IgnoreFreshUnbacked ignore;
    (void)env->create_unbacked();
  }
  EXPECT_TRUE(pending_unbacked(*env).empty());
  (void)env->create_unbacked();
  forget_pending_unbacked(*env);
  EXPECT_TRUE(pending_unbacked(*env).empty());
}

TEST_F(Unbacked, a_second_trace_takes_the_names_of_the_first) {
  const SymInt u = env->create_unbacked_size();
  TensorGeometry t;
  t.sizes = {u};
  t.strides = {1};
  const UnbackedBindings first = compute_unbacked_bindings(*env, {{{}, t}});
  const SymInt v = env->create_unbacked_size();
  TensorGeometry again;
  again.sizes = {v};
  again.strides = {1};
  compute_unbacked_bindings(*env, {{{}, again}});
  rebind_unbacked(*env, first, {{{}, again}});
  EXPECT_EQ(v.str(), "u0");
  EXPECT_EQ(resolve_unbacked_bindings(*env, {{"u1", {}}}).begin()->first, "u0");

  // What the new symbol was known to equal, the old one equals too.
  const SymInt a = env->create_unbacked(), b = env->create_unbacked();
  EXPECT_TRUE(check(b == 7));
  rename_unbacked(*env, b, a);
  EXPECT_EQ(a.as_int(), 7);
  EXPECT_THROW(rename_unbacked(*env, SymInt(3), a), UserError);
}

TEST_F(Unbacked, suppressed_guards_leave_no_trace_but_in_the_log) {
  const SymInt s = env->create_size(5, "x"), u = env->create_unbacked();
  {
    const SuppressGuards suppress;
    EXPECT_TRUE(guard(s > 3));
    EXPECT_TRUE(check(u > 3));
  }
  EXPECT_TRUE(env->guards().empty());
  EXPECT_TRUE(env->runtime_asserts().empty());
  EXPECT_EQ(env->symbol("s0").range.lower, 2);
  EXPECT_NE(env->explain().find("not recorded: s0 > 3"), std::string::npos);
  {
    const ErrorOnNewGuards strict(*env);
    EXPECT_TRUE(guard(s > 1)) << "known";
    EXPECT_THROW(guard(s > 3), UserError);
    EXPECT_THROW((void)check(u > 3), UserError);
  }
  env->freeze();
  EXPECT_TRUE(env->frozen());
  EXPECT_TRUE(guard(s > 3));
  EXPECT_EQ(env->guards().size(), 1U);
  EXPECT_NE(env->explain().find("taken after the environment was frozen"), std::string::npos);
}

TEST_F(Unbacked, the_log_explains_guards_and_specialisations) {
  const SymInt a = env->create_size(5, "ids, dimension 0"), b = env->create_size(6, "ids, dimension 1");
  EXPECT_TRUE(identical(env->create_size(5, "mask, dimension 0"), a));
  (void)env->create_size(1, "mask, dimension 1");
  {
    const GuardModuleScope module("layers.0");
    const GuardOperatorScope op("aten::view");
    EXPECT_TRUE(guard(a < 9));
    EXPECT_EQ(b.guard_int(), 6);
    EXPECT_FALSE(guard_or_false(env->create_unbacked() == 0));
  }
  ASSERT_EQ(env->guards().size(), 2U);
  EXPECT_EQ(env->guards()[0].module_path, "layers.0");
  const std::string text = env->explain();
  for (const char* line :
       {"s0 = ids, dimension 0: example 5, range [2, inf]\n", "mask, dimension 0 shares s0: its example is 5 as well\n",
        "mask, dimension 1 is the plain integer 1: sizes 0 and 1 are specialised\n",
        "guard s0 < 9  (aten::view in layers.0, at unbacked_test.cpp:",
        "s0 is in [2, 8], because s0 < 9  (aten::view in layers.0, at unbacked_test.cpp:",
        "s1 is specialised to 6, because Eq(s1, 6)  (aten::view in layers.0, at unbacked_test.cpp:",
        "u0 = a value from tensor data: range [-inf, inf]\n", "assumed Eq(u0, 0) to be False, without a check"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n in\n" << text;
  bool found = false;
  for (const LogRecord& r : env->log())
    if (r.kind == LogRecord::Kind::specialization) {
      found = true;
      EXPECT_EQ(r.subject, "s1");
      EXPECT_EQ(r.detail, "6");
      EXPECT_EQ(r.origin.operator_name, "aten::view");
    }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace calque::unbacked_test
