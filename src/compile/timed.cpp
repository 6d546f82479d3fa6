#include "calque/compile/timed.h"

#include <chrono>

#include "calque/base/error.h"
#include "calque/tensor/generator.h"

namespace calque {

Timed timed(const std::function<Value()>& run, int times) {
  if (times < 1) throw UserError("timed: expected at least one run, found " + std::to_string(times));
  Timed out;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) {
    manual_seed(1337);
    out.result = run();
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

}  // namespace calque
