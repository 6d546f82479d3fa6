// Calque's side of bench/compile: what a compiled call costs beside the computation. Reads commands, a line each, and answers with
// nanoseconds: "check encoder 12" (one check of the guards), "first encoder 12" (the first call, capture and guards, run node by node),
// "call small" (a call of a compiled function of one addition), "eager small".

#include <time.h>

#include <iostream>
#include <memory>
#include <sstream>
#include <string>

#include "calque/compile/compile.h"
#include "calque/op/ops.h"
#include "models.h"

namespace {

using namespace calque;

int64_t now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

template <class F>
double time_of(int64_t count, const F& run) {
  run();
  const int64_t start = now();
  for (int64_t i = 0; i < count; ++i) run();
  return static_cast<double>(now() - start) / static_cast<double>(count);
}

double measure(const std::string& what, const std::string& kind, int64_t layers) {
  CompileOptions options;
  options.backend = "eager";
  if (kind == "small") {
    const auto body = [](const Tensor& x) { return x + 1; };
    const Tensor x = ones({8});
    if (what == "eager") return time_of(20000, [&] { body(x); });
    const auto f = compile(body);
    return time_of(20000, [&] { f(x); });
  }
  const std::shared_ptr<Module> model = bench::make_model(kind, layers);
  model->eval();
  const Compiled f = compile(model, options);
  const Values args{zeros({1, 16}, DType::int64)};
  const int64_t start = now();
  f.call(args);
  const double first = static_cast<double>(now() - start);
  if (what == "first") return first;
  return time_of(20000, [&] {
    if (!f.serves(args)) std::abort();
  });
}

}  // namespace

int main() {
  const GradModeScope no_grad(false);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string what, kind;
    int64_t layers = 0;
    words >> what >> kind >> layers;
    std::cout << measure(what, kind, layers) << std::endl;
  }
}
