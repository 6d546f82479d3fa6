// What the solver of dimension constraints has found, for the texts made of it.
#pragma once

#include "calque/sym/dim_constraints.h"
#include "calque/sym/expr.h"
#include "sym/polynomial.h"

namespace calque {

// base(s) % divisor == 0, with base linear: s leaves `remainder` when divided by `modulus`.
struct Congruence {
  int64_t remainder;
  int64_t modulus;
};

struct DimConstraints::Impl {
  ShapeEnv& env;
  SymbolSources sources;
  std::set<size_t> marked_dynamic;
  DebugNames debug_names;

  struct Univariate {
    const Expr* written;
    Quotient difference;  // compared with zero
    Comparison comparison;
  };
  std::map<size_t, std::vector<Univariate>> univariate;
  std::set<size_t> with_equalities;
  std::map<size_t, int64_t> substitutions;
  std::map<size_t, std::vector<Congruence>> congruences;
  std::set<std::pair<size_t, std::string>> congruence_keys;  // every distinct one, solvable or not
  std::vector<const Expr*> multivariate;
  std::vector<std::pair<Source, const Expr*>> equivalences;
  std::vector<std::string> inconsistencies;
  std::set<std::string> static_results;
  std::set<std::string> dynamic_results;

  // The same results, for fixes: by the name that the user gave the source.
  struct Result {
    std::optional<int64_t> value;
    struct Linear {
      std::string root;
      int64_t multiplier;
      int64_t offset;
    };
    std::optional<Linear> linear;
    std::optional<int64_t> min, max;
  };
  std::map<std::string, Result> results;

  bool add(const Expr* condition);
  void solve();
  void solve_equalities();
  void solve_congruences();
  void solve_bounds();
  void solve_equivalences();
  void note_equation(const Source& source, const Expr* e, const std::vector<size_t>& free);
  void raise_inconsistencies();
  Quotient converted(const Expr* e, size_t symbol);
  Quotient remainder_of(const Quotient& base, const Quotient& divisor, size_t symbol);
  int64_t example(size_t symbol) const;
  std::vector<size_t> free_symbols(const Expr* e) const;
  std::string source_name(size_t symbol) const;
  std::string text(const Expr* e) const;
  const std::string* debug_name(const std::string& source) const;
  Result* result_for(const std::string& source);
};

}  // namespace calque
