// timed: a call run several times from the same seed, with the time that it took.
#pragma once

#include <functional>

#include "calque/op/value.h"

namespace calque {

struct Timed {
  Value result;        // of the last run
  double seconds = 0;  // of all of them
};
// Before each run the default generator is seeded with 1337, as torch._dynamo.utils.timed does. UserError for fewer than one.
Timed timed(const std::function<Value()>& run, int times = 1);

}  // namespace calque
