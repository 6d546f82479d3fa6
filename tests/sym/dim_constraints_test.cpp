// The solver of dimension constraints: rows of the conformance table, and problems that PyTorch's DimConstraints solved
// (golden/dim_constraints.jsonl, written by tools/sym/dim_constraints.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/sym/dim_constraints.h"
#include "calque/sym/shape_env.h"
#include "calque/sym/srepr.h"
#include "support/paths.h"
#include "sym/golden_support.h"
#include "sym/polynomial.h"

namespace calque::dim_constraints_test {
namespace {

using Json = nlohmann::json;
using Texts = std::set<std::string>;
constexpr int64_t above = ValueRange::unbounded_above;

struct Problem {
  std::shared_ptr<ShapeEnv> env = ShapeEnv::make();
  std::vector<SymInt> symbols;
  DimConstraints::SymbolSources sources;
  std::set<size_t> dynamic;

  explicit Problem(const std::vector<int64_t>& examples) {
    for (size_t i = 0; i < examples.size(); ++i) {
      symbols.push_back(env->declare_symbol("s" + std::to_string(i), examples[i], {1, above}));
      sources[i] = {Source::local(std::string(1, "xyzwabcdefg"[i])).size(0)};
      dynamic.insert(i);
    }
  }
  DimConstraints solver(DimConstraints::DebugNames names = {}) const {
    return DimConstraints(*env, sources, dynamic, std::move(names));
  }
};

TEST(DimConstraints, T229_congruences_merge_into_one) {
  Problem p({32});
  const SymInt s = p.symbols[0];
  DimConstraints d = p.solver();
  // s // 2 leaves 0 when divided by 8, 4 and 2; s is even; s // 16 + 2 is a multiple of 4.
  d.add(floor_div(s, 2) % 8 == 0);
  d.add(floor_div(s, 2) % 4 == 0);
  d.add(floor_div(s, 2) % 2 == 0);
  d.add(s % 2 == 0);
  d.add((floor_div(s, 16) + 2) % 4 == 0);
  d.solve();
  EXPECT_EQ(d.dynamic_results(), Texts{"L['x'].size()[0] == ((-32) + 64*_L['x'].size()[0])"}) << "(s + 32) % 64 == 0";
}

TEST(DimConstraints, T231_results_are_static_or_dynamic) {
  Problem p({3, 8, 8, 10, 4, 64});
  const auto& s = p.symbols;
  DimConstraints d = p.solver();
  d.add(s[0] == 3);
  d.add(s[1] >= 2);
  d.add(s[1] <= 100);
  d.add(s[3] < 50);
  d.add(s[0] + s[3] < 20);  // one symbol is left when the other is forced
  d.add(s[4] * s[0] == 12);
  d.add(s[5] % 8 == 0);
  d.add(s[5] >= 16);
  d.add_equality(Source::local("z").size(0), s[1]);
  d.add_equality(Source::local("z").size(1), 2 * s[1] + 1);
  d.add_equality(Source::local("z").size(2), 5 * s[0]);
  d.add_equality(Source::local("z").size(3), 7);
  d.solve();
  EXPECT_EQ(d.static_results(),
            (Texts{"L['x'].size()[0] == 3", "L['a'].size()[0] == 4", "L['z'].size()[2] == 15", "L['z'].size()[3] == 7"}));
  EXPECT_EQ(d.dynamic_results(),
            (Texts{"2 <= L['y'].size()[0]", "L['y'].size()[0] <= 100", "L['w'].size()[0] < 17", "16 <= L['b'].size()[0]",
                   "L['b'].size()[0] == (8*_L['b'].size()[0])", "L['z'].size()[0] == L['y'].size()[0]",
                   "L['z'].size()[1] == 1 + 2*L['y'].size()[0]"}));
  EXPECT_EQ(d.forced_specializations(), (std::map<std::string, int64_t>{{"L['x'].size()[0]", 3}, {"L['a'].size()[0]", 4}}));
  EXPECT_EQ(d.prettify_results({}), "") << "nothing has a name";
}

TEST(DimConstraints, contradictions_name_the_condition) {
  Problem p({6});
  DimConstraints d = p.solver();
  d.add(p.symbols[0] >= 7);
  try {
    d.solve();
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::constraint_violation);
    EXPECT_NE(std::string(e.what()).find("The following inconsistencies were found:\ns0 >= 7 is inconsistent!"),
              std::string::npos);
  }
}

TEST(DimConstraints, bounds_between_integers_are_rounded) {
  Problem p({6});
  DimConstraints d = p.solver();
  EXPECT_FALSE(d.add(p.symbols[0] * p.symbols[0] > 10));  // PyTorch repeats such a condition as it is
  EXPECT_FALSE(d.add(p.symbols[0] * p.symbols[0] < 50));
  d.solve();
  EXPECT_EQ(d.dynamic_results(), (Texts{"4 <= L['x'].size()[0]", "L['x'].size()[0] <= 7"}));
}

TEST(DimConstraints, a_condition_that_cannot_be_solved_stays_as_it_is) {
  Problem p({6});
  DimConstraints d = p.solver();
  EXPECT_FALSE(d.add(p.symbols[0] * p.symbols[0] * p.symbols[0] > 100));
  d.solve();
  EXPECT_EQ(d.dynamic_results(), Texts{"L['x'].size()[0]*L['x'].size()[0]*L['x'].size()[0] > 100"});
}

TEST(DimConstraints, fixes_for_dims) {
  Problem p({6});
  DimConstraints d = p.solver({{"L['x'].size()[0]", "dx"}});
  d.add(p.symbols[0] % 2 == 0);
  d.add(p.symbols[0] >= 2);
  d.add(p.symbols[0] <= 11);
  d.solve();
  EXPECT_EQ(d.prettify_results({{"dx", {0, above}, {}}}),
            "\nSuggested fixes:\n  _dx = Dim('_dx', min=1, max=5)\n  dx = 2*_dx");
}

TEST(Polynomials, comparisons_are_solved_exactly) {
  const Polynomial x = Polynomial::variable();
  const auto texts = [](const std::vector<Interval>& intervals) {
    std::string out;
    for (const Interval& i : intervals)
      out += (i.lower_open ? "(" : "[") + (i.lower ? i.lower->str() : "-") + ", " + (i.upper ? i.upper->str() : "-") +
             (i.upper_open ? ")" : "]");
    return out;
  };
  const auto p = [](int64_t v) { return Polynomial(Rational(v)); };
  EXPECT_EQ(texts(solve_comparison((x - p(3)) * (x - p(10)) * (x - p(4)), Comparison::less)), "(-, 3)(4, 10)");
  EXPECT_EQ(texts(solve_comparison((x - p(3)) * (x - p(3)), Comparison::less_equal)), "[3, 3]");
  EXPECT_EQ(texts(solve_comparison((x - p(3)) * (x - p(3)), Comparison::greater)), "(-, 3)(3, -)");
  EXPECT_EQ(texts(solve_comparison(p(2) * x - p(5), Comparison::greater_equal)), "[5/2, -)");
  EXPECT_EQ(texts(solve_comparison(Quotient(p(12) - p(2) * x, x), Comparison::greater_equal)), "(0, 6]");
  EXPECT_EQ(texts(solve_comparison(x * x + p(1), Comparison::greater)), "(-, -)");
  EXPECT_EQ(texts(solve_comparison(x * x + p(1), Comparison::less)), "");
  EXPECT_EQ(texts(solve_comparison(p(6) * x * x * x - p(11) * x * x + p(6) * x - p(1), Comparison::equal)),
            "[1/3, 1/3][1/2, 1/2][1, 1]");
  EXPECT_EQ(texts(solve_comparison(x * x - p(2), Comparison::less)), "(-3/2, 3/2)");
  EXPECT_EQ(texts(solve_comparison(p(9) * x * x - p(9) * x + p(2), Comparison::less)), "(1/3, 2/3)");
  EXPECT_EQ(texts(solve_comparison(p(8) * x * x - p(8) * x + p(1), Comparison::greater)), "(-, -)")
      << "both roots lie between 0 and 1";
  EXPECT_THROW((void)(x * x * x - p(2)).roots(), Unsolvable);
  EXPECT_THROW((void)(Rational(INT64_MAX) * Rational(3)), Unsolvable);
}

TEST(DimConstraints, problems_that_pytorch_solved) {
  std::ifstream in(test::source_folder() + "/tests/sym/golden/dim_constraints.jsonl");
  ASSERT_TRUE(in);
  size_t rows = 0, same = 0;
  for (std::string line; std::getline(in, line); ++rows) {
    const Json row = Json::parse(line);
    Problem p(row.at("examples").get<std::vector<int64_t>>());
    DimConstraints::DebugNames names;
    for (const Json& n : row.at("names")) names.emplace_back(n[0], n[1]);
    std::vector<NamedDim> dims;
    for (const Json& d : row.at("dims")) {
      NamedDim dim{d.at("name"), {0, above}, {}};
      if (d.contains("root"))
        dim.derived = {d.at("root"), d.at("multiplier"), d.at("offset")};
      else
        dim.range = {d.at("min"), d.at("max").is_null() ? above : d.at("max").get<int64_t>()};
      dims.push_back(dim);
    }
    DimConstraints d = p.solver(names);
    const auto where = [&] { return "row " + std::to_string(rows) + ": " + line; };
    const Json& conditions = row.at("conditions");
    for (size_t i = 0; i < conditions.size(); ++i) {
      const std::string text = conditions[i];
      const bool trivial = d.add(text == "true" ? SymBool(true) : parse_srepr_bool(*p.env, with_symbols(text)));
      const bool theirs = row.at("trivial")[i].get<bool>();
      // The same congruence in another form says nothing new; PyTorch may not see that.
      const bool repeated =
          trivial && !theirs && (text.find("Mod") != std::string::npos || text.find("FloorDiv") != std::string::npos);
      if (!repeated) {
        EXPECT_EQ(trivial, theirs) << text << " in " << where();
      }
    }
    for (const Json& e : row.at("equalities"))
      d.add_equality(Source::local(e[0]).size(e[1].get<size_t>()), parse_srepr(*p.env, with_symbols(e[2])));
    d.solve();
    EXPECT_EQ(d.static_results(), row.at("static").get<Texts>()) << where();
    EXPECT_EQ(d.forced_specializations(), (row.at("forced").get<std::map<std::string, int64_t>>())) << where();
    const Texts theirs = row.at("dynamic").get<Texts>();
    if (row.at("unsolved").get<bool>() && d.dynamic_results() != theirs) {
      // Calque solves a congruence that PyTorch does not: beside it, the same bounds and equations.
      Texts other;
      std::ranges::copy_if(theirs, std::inserter(other, other.end()),
                           [&](const std::string& t) { return !d.dynamic_results().contains(t); });
      for (const std::string& t : other) EXPECT_NE(t.find("_"), std::string::npos) << t << " in " << where();
      continue;
    }
    EXPECT_EQ(d.dynamic_results(), theirs) << where();
    EXPECT_EQ(d.prettify_results(dims), row.at("pretty").get<std::string>()) << where();
    ++same;
  }
  EXPECT_GE(rows, 300U);
  EXPECT_GE(same, rows * 3 / 4);
}

}  // namespace
}  // namespace calque::dim_constraints_test
