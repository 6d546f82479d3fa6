// How strongly sympy's printers bind: its table, as far as it is needed here.
#pragma once

#include "calque/sym/expr.h"

namespace calque {

enum Precedence : int {
  precedence_or = 20,
  precedence_and = 30,
  precedence_relation = 35,
  precedence_function = 35,  // PyTorch's functions bind less than a sum
  precedence_in_or = 36,     // what stands beside | and & is measured by these
  precedence_in_xor = 37,
  precedence_in_and = 38,
  precedence_add = 40,
  precedence_mul = 50,
  precedence_pow = 60,
  precedence_call = 70,
  precedence_not = 100,
  precedence_atom = 1000,
};

int precedence(const Expr* e);

}  // namespace calque
