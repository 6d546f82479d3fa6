// The equations that a user stated between input dimensions, ready to be asked: which dimensions are equal, and which is
// a multiple of another plus a number.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "calque/sym/produce_guards.h"

namespace calque {

class EquationView {
 public:
  EquationView(ShapeEnv& env, const EqualityConstraint& stated);

  struct Broken {
    std::string message;
  };
  // Guards on every stated equation; those that the examples break come back.
  std::vector<Broken> apply(const std::vector<Placeholder>& placeholders) const;
  bool is_equal(const Source& a, const Source& b) const;
  // Whether `source` was stated to be `expr`, in which `symbol` stands for `root`.
  bool is_derived(const Source& source, const Source& root, const Expr* expr, size_t symbol) const;

 private:
  // multiplier * root + offset; a root is the name of a source or of a symbol.
  struct Definition {
    std::string root;
    int64_t multiplier = 1;
    int64_t offset = 0;
    friend bool operator==(const Definition&, const Definition&) = default;
  };
  std::string find(const std::string& source) const;
  Definition rewrite(const std::string& source) const;

  ShapeEnv& env_;
  const EqualityConstraint& stated_;
  std::map<std::string, std::string> parents_;
  std::map<std::string, Definition> definitions_;
};

}  // namespace calque
