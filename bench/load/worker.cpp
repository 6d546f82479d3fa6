// bench_load FOLDER: a model folder to its first logits, once. Prints, on one line: nanoseconds to the model, nanoseconds to the
// logits, nanoseconds of processor time, peak resident bytes, and the mean size of the logits for comparison.
// bench_load FOLDER disk: nanoseconds that a plain reader takes for the weight files, keeping them and passing over them.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <string>

#include "calque/hub/from_pretrained.h"
#include "calque/op/ops.h"
#include "load/disk.h"

// Not getrusage's: that one counts what the process was before exec.
static long peak_bytes() {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;)
    if (long kilobytes = 0; word == "VmHWM:" && in >> kilobytes) return kilobytes * 1024;
  return 0;
}

int main(int argc, char** argv) {
  using namespace calque;
  const std::string what = argc == 3 ? argv[2] : "";
  if (argc < 2 || argc > 3 || (argc == 3 && what != "disk")) {
    fmt::print(stderr, "usage: bench_load FOLDER [disk]\n");
    return 2;
  }
  if (what == "disk") {
    const disk::Times times = disk::read(argv[1]);
    fmt::print("{} {}\n", times.keeping, times.passing);
    return 0;
  }
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto since = [&](auto start) { return std::chrono::duration_cast<std::chrono::nanoseconds>(now() - start).count(); };
  const GradModeScope no_grad(false);
  try {
    ModelInputs inputs;
    inputs.set(arg::input_ids, arange(16, DType::int64).mul(37).add(5).unsqueeze(0));
    const auto start = now();
    const auto model = from_pretrained(argv[1]);
    const auto loaded = since(start);
    const Tensor logits = (*model)(inputs)["logits"];
    const auto first = since(start);
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto spent = [](const timeval& t) { return (t.tv_sec * 1'000'000L + t.tv_usec) * 1000; };
    fmt::print("{} {} {} {} {:.4f}\n", loaded, first, spent(usage.ru_utime) + spent(usage.ru_stime), peak_bytes(),
               logits.to(DType::float32).abs().mean().item_as<double>());
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
