// Normal forms and their text against what sympy and PyTorch's functions gave (golden/sympy.tsv, written by
// tools/golden/sym.py).
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "calque/sym/shape_env.h"
#include "calque/sym/srepr.h"
#include "support/paths.h"
#include "sym/golden_support.h"

namespace calque::sympy_text_test {
namespace {

bool is_boolean_text(const std::string& text) {
  const std::string head = text.substr(0, text.find('('));
  for (const char* name : {"Eq", "Ne", "Lt", "Le", "Gt", "Ge", "And", "Or", "Not", "Equality", "Unequality",
                           "StrictLessThan", "LessThan", "StrictGreaterThan", "GreaterThan"})
    if (head == name) return true;
  return false;
}

struct Texts {
  std::string str, srepr;
};

Texts texts_of(ShapeEnv& env, const std::string& input) {
  const std::string full = with_symbols(input);
  if (is_boolean_text(input)) {
    const SymBool b = parse_srepr_bool(env, full);
    return {b.str(), srepr(b)};
  }
  try {
    const SymInt i = parse_srepr(env, full);
    return {i.str(), srepr(i)};
  } catch (const UserError&) {
    const SymFloat f = parse_srepr_float(env, full);
    return {f.str(), srepr(f)};
  }
}

TEST(SympyText, normal_forms_print_as_sympy_prints_them) {
  std::ifstream in(test::source_folder() + "/tests/sym/golden/sympy.tsv");
  ASSERT_TRUE(in);
  size_t rows = 0;
  for (std::string line; std::getline(in, line); ++rows) {
    const size_t a = line.find('\t'), b = line.find('\t', a + 1);
    const std::string input = line.substr(0, a), str = line.substr(a + 1, b - a - 1), repr = line.substr(b + 1);
    const auto env = ShapeEnv::make();
    for (const char* s : {"s0", "s1", "s2", "s9", "s10"}) env->declare_symbol(s, 7, {1, ValueRange::unbounded_above});
    const Texts got = texts_of(*env, input);
    EXPECT_EQ(got.str, str) << input;
    EXPECT_EQ(got.srepr, with_symbols(repr)) << input;
    // And what was written reads back as the same node.
    const Texts again = texts_of(*env, repr);
    EXPECT_EQ(again.str, got.str) << repr;
  }
  EXPECT_GT(rows, 450U);
}

}  // namespace
}  // namespace calque::sympy_text_test
