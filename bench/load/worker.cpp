// bench_load FOLDER: a model folder to its first logits, once. Prints, on one line: nanoseconds to the model, nanoseconds to the
// logits, peak resident bytes, and the sum of the logits' sizes for comparison.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>

#include "calque/hub/from_pretrained.h"
#include "calque/op/ops.h"

int main(int argc, char** argv) {
  using namespace calque;
  if (argc != 2) {
    fmt::print(stderr, "usage: bench_load FOLDER\n");
    return 2;
  }
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto since = [&](auto start) { return std::chrono::duration_cast<std::chrono::nanoseconds>(now() - start).count(); };
  const GradModeScope no_grad(false);
  try {
    ModelInputs inputs;
    inputs.input_ids = arange(16, DType::int64).mul(37).add(5).unsqueeze(0);
    const auto start = now();
    const auto model = from_pretrained(argv[1]);
    const auto loaded = since(start);
    const Tensor logits = (*model)(inputs)["logits"];
    const auto first = since(start);
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    fmt::print("{} {} {} {:.4f}\n", loaded, first, usage.ru_maxrss * 1024L, logits.to(DType::float32).abs().mean().item_as<double>());
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
