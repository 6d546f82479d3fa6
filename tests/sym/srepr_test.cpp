// Reading and writing sympy's srepr: what .pt2 files hold, and what broken or hostile ones might.
#include <gtest/gtest.h>

#include <string>

#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "calque/sym/shape_env.h"
#include "calque/sym/srepr.h"
#include "support/error_support.h"

namespace calque::srepr_test {
namespace {

std::string error_of(std::string_view text) {
  const auto env = ShapeEnv::make();
  return test::error_of([&] { parse_srepr(*env, text); }, ErrorKind::bad_file);
}

TEST(Srepr, symbols_of_a_file_are_declared_on_first_sight) {
  const auto env = ShapeEnv::make();
  const SymInt s = parse_srepr(*env, "Symbol('s77', positive=True, integer=True)");
  EXPECT_EQ(s.str(), "s77");
  EXPECT_EQ(env->symbol("s77").range.lower, 0);
  EXPECT_FALSE(env->symbol("s77").hint.has_value());
  EXPECT_TRUE(identical(s, parse_srepr(*env, "Symbol('s77', positive=True, integer=True)")));
  env->declare_symbol("s77", 12, {2, 64});
  EXPECT_EQ(env->hint(2 * s), 24);
  const SymInt u = parse_srepr(*env, "Symbol('u0', integer=True)");
  EXPECT_EQ(env->symbol("u0").range.lower, ValueRange::unbounded_below);
  EXPECT_TRUE(u.expr()->has_unbacked());
  EXPECT_EQ(srepr(u), "Symbol('u0', integer=True)");
  EXPECT_EQ(srepr(s), "Symbol('s77', positive=True, integer=True)");
}

TEST(Srepr, texts_written_by_torch_export_read_back) {
  const auto env = ShapeEnv::make();
  const char* texts[] = {
      "Integer(12)",
      "Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)), Integer(1))",
      "Mul(Integer(-1), Integer(2), Symbol('s27', positive=True, integer=True), Symbol('s77', positive=True, integer=True))",
      "FloorDiv(Add(Symbol('s77', positive=True, integer=True), Integer(-1)), Integer(2))",
      "Mod(Symbol('s77', positive=True, integer=True), Integer(8))",
      "Max(Integer(1), Symbol('u0', integer=True))",
      "Pow(Symbol('s77', positive=True, integer=True), Integer(2))",
      "Where(StrictLessThan(Symbol('u0', integer=True), Integer(3)), Symbol('u0', integer=True), Integer(3))",
      "CeilToInt(IntTrueDiv(Symbol('s77', positive=True, integer=True), Integer(3)))",
      "FloorToInt(Mul(Float('0.29999999999999999', precision=53), ToFloat(Symbol('s77', positive=True, integer=True))))",
  };
  for (const char* text : texts) EXPECT_EQ(srepr(parse_srepr(*env, text)), text);
  const char* booleans[] = {
      "true",
      "false",
      "Equality(Symbol('u0', integer=True), Symbol('s77', positive=True, integer=True))",
      "And(GreaterThan(Symbol('u0', integer=True), Integer(0)), LessThan(Symbol('u0', integer=True), Integer(9)))",
  };
  for (const char* text : booleans) EXPECT_EQ(srepr(parse_srepr_bool(*env, text)), text);
  EXPECT_EQ(srepr(parse_srepr_float(*env, "Float('0.5', precision=53)")), "Float('0.5', precision=53)");
  EXPECT_EQ(srepr(parse_srepr_float(*env, "ToFloat(Symbol('u0', integer=True))")), "ToFloat(Symbol('u0', integer=True))");
}

TEST(Srepr, bare_numbers_and_short_names_are_understood) {
  const auto env = ShapeEnv::make();
  EXPECT_EQ(parse_srepr(*env, " Add( Symbol('s0') , -3 ) ").str(), "s0 - 3");
  EXPECT_EQ(parse_srepr_bool(*env, "Gt(Symbol(\"u0\", integer=True), 4)").str(), "u0 > 4");
}

TEST(Srepr, errors_say_what_and_where) {
  EXPECT_NE(error_of("Foo(Integer(1))").find("unknown function Foo at position 0"), std::string::npos);
  EXPECT_NE(error_of("Add(Integer(1), Bar(Integer(2)))").find("unknown function Bar at position 16"), std::string::npos);
  EXPECT_NE(error_of("Add(Integer(1)").find("expected ')' at position 14"), std::string::npos);
  EXPECT_NE(error_of("").find("expected a name at position 0"), std::string::npos);
  EXPECT_NE(error_of("Integer(x)").find("expected an integer at position 8"), std::string::npos);
  EXPECT_NE(error_of("Integer(99999999999999999999)").find("does not fit 64 bits"), std::string::npos);
  EXPECT_NE(error_of("Integer(1) Integer(2)").find("unexpected text"), std::string::npos);
  EXPECT_NE(error_of("Symbol('s0").find("does not end"), std::string::npos);
  EXPECT_NE(error_of("Symbol('s0', positive=Maybe)").find("expected True or False"), std::string::npos);
  EXPECT_NE(error_of("Symbol('')").find("without a name"), std::string::npos);
  EXPECT_NE(error_of("FloorDiv(Integer(1))").find("takes 2 arguments, not 1"), std::string::npos);
  EXPECT_NE(error_of("FloorDiv(Symbol('s0'), Integer(0))").find("FloorDiv by zero"), std::string::npos);
  EXPECT_NE(error_of("Add(Integer(1), true)").find("argument 2 of Add is a boolean"), std::string::npos);
  EXPECT_NE(error_of("Where(Integer(1), Integer(2), Integer(3))").find("is not a boolean"), std::string::npos);
  EXPECT_NE(error_of("CleanDiv(Float('1.5'), Integer(2))").find("takes integers"), std::string::npos);
  EXPECT_NE(error_of("Pow(Symbol('s0'), Integer(-1))").find("not a natural number"), std::string::npos);
  EXPECT_NE(error_of("Float('abc')").find("not a float"), std::string::npos);
  EXPECT_NE(error_of("Float('0.5')").find("expected an integer expression"), std::string::npos);
  EXPECT_NE(error_of("true").find("expected an integer expression"), std::string::npos);
  EXPECT_NE(error_of("Mul(Integer(9223372036854775807), Integer(2), Symbol('s0'))").find("overflow"), std::string::npos);
  EXPECT_NE(error_of("Max()").find("takes 1 arguments, not 0"), std::string::npos);
  const auto env = ShapeEnv::make();
  EXPECT_THROW(parse_srepr_bool(*env, "Integer(1)"), UserError);
  EXPECT_THROW(parse_srepr_float(*env, "true"), UserError);
}

TEST(Srepr, nesting_and_length_are_bounded) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "Not(";
  EXPECT_NE(error_of(deep).find("nested more than"), std::string::npos);
  std::string wide = "Add(Integer(1)";
  for (int i = 0; i < 20000; ++i) wide += ", Symbol('s" + std::to_string(i) + "')";
  const auto env = ShapeEnv::make();
  EXPECT_TRUE(parse_srepr(*env, wide + ")").is_symbolic());
  EXPECT_THROW(parse_srepr(*env, "Pow(Integer(7), Integer(9223372036854775807))"), UserError);
  EXPECT_TRUE(parse_srepr(*env, "Pow(Add(Symbol('s0'), Symbol('s1')), Integer(9223372036854775807))").is_symbolic());
}

TEST(Srepr, broken_text_is_refused_never_crashes) {
  const std::string text =
      "Add(Mul(Integer(2), Symbol('s7', positive=True, integer=True)), FloorDiv(Symbol('u0', integer=True), Integer(3)))";
  for (size_t n = 0; n < text.size(); ++n) EXPECT_NE(error_of(text.substr(0, n)), "") << n;
  for (size_t n = 0; n < text.size(); ++n) {
    for (const char c : {'(', ')', ',', '\'', '-', '0', 'x', '\0'}) {
      std::string changed = text;
      changed[n] = c;
      error_of(changed);
    }
  }
}

}  // namespace
}  // namespace calque::srepr_test
