// What the optimizers share.
#pragma once

#include <utility>

#include "calque/train/optimizer.h"

namespace calque::optim {

// Counts the step and gives its number.
double advance_step(NamedValues& state);
void check_at_least_0(double value, const char* what);  // "Invalid learning rate: -1.0"
// Of files that PyTorch wrote for what Calque does not do.
void refuse_unsupported(const NamedValues& options);
inline Value flag_or_none(bool flag) { return flag ? Value(true) : Value(); }
// UserError unless it is a sequence of two numbers.
std::pair<double, double> pair_of(const NamedValues& options, std::string_view name);

}  // namespace calque::optim
