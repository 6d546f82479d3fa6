// Calque's side of bench/models. Commands, one a line:
//   load NAME PROGRAM.pt2 [eager]     a program, kept under the name; answers nanoseconds of making its plan
//   inputs NAME INPUTS.safetensors    what its next runs take, by the names of its inputs
//   run NAME TIMES                    answers nanoseconds: the median of TIMES runs, and processor time of all of them
//   outputs NAME OUTPUT.safetensors   writes the tensors of one run: 0, 1, ...
//   roofline NAME                     answers what the machine does now: millions of multiplications and additions of float32, and of bytes read, a second
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <sstream>

#include "calque/base/thread.h"
#include "calque/export/executor.h"
#include "calque/export/pt2.h"
#include "calque/file/safetensors.h"
#include "calque/op/ops.h"
#include "calque/run/plan.h"

using namespace calque;
using Clock = std::chrono::steady_clock;

namespace {

int64_t nanoseconds(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count();
}

int64_t processor_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) { return (t.tv_sec * 1000000 + t.tv_usec) * 1000; };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

// ---- what the machine can do ------------------------------------------------------------------------------------------

#if defined(__x86_64__)
template <class V>
[[gnu::always_inline]] inline float multiplied(int64_t times) {
  constexpr int chains = 12;
  V sums[chains];
  const V factor = V{} + 0.999F, term = V{} + 0.001F;
#pragma GCC unroll 12
  for (int i = 0; i < chains; ++i) sums[i] = V{} + static_cast<float>(i);
  for (int64_t t = 0; t < times; ++t) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) {
      sums[i] = sums[i] * factor + term;
      asm("" : "+v"(sums[i]));
    }
  }
  V all{};
#pragma GCC unroll 12
  for (int i = 0; i < chains; ++i) all += sums[i];
  return all[0];
}
typedef float Wide __attribute__((vector_size(64)));
typedef float Narrow __attribute__((vector_size(32)));
__attribute__((target("avx512f"))) float multiplied_512(int64_t times) { return multiplied<Wide>(times); }
__attribute__((target("avx2,fma"))) float multiplied_256(int64_t times) { return multiplied<Narrow>(times); }
#endif

volatile float sink = 0;

// Operations of two threads in a second, the best of a few tries.
double operations_per_second() {
#if defined(__x86_64__)
  const bool wide = __builtin_cpu_supports("avx512f");
  constexpr int64_t times = 4'000'000;
  double best = 0;
  for (int tries = 0; tries < 5; ++tries) {
    const Clock::time_point start = Clock::now();
    parallel_for(0, 2, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sink = wide ? multiplied_512(times) : multiplied_256(times);
    });
    best = std::max(best,
                    2.0 * 12 * (wide ? 16 : 8) * 2 * times / (static_cast<double>(nanoseconds(start, Clock::now())) / 1e9));
  }
  return best;
#else
  return 0;
#endif
}

double bytes_per_second() {
  constexpr size_t count = size_t{32} << 20;  // 256 MiB: no cache holds it
  static const std::vector<uint64_t> memory(count, 1);
  double best = 0;
  for (int tries = 0; tries < 5; ++tries) {
    const Clock::time_point start = Clock::now();
    parallel_for(0, 2, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        typedef uint64_t Eight __attribute__((vector_size(64)));
        const auto* at = reinterpret_cast<const Eight*>(memory.data() + static_cast<size_t>(i) * count / 2);
        Eight a{}, b{}, c{}, d{};
        for (size_t k = 0; k < count / 2 / 8; k += 4) a += at[k], b += at[k + 1], c += at[k + 2], d += at[k + 3];
        sink = static_cast<float>((a + b + c + d)[0]);
      }
    });
    best = std::max(best, 8.0 * count / (static_cast<double>(nanoseconds(start, Clock::now())) / 1e9));
  }
  return best;
}

struct Loaded {
  std::shared_ptr<const ExportedProgram> program;
  std::shared_ptr<const Plan> plan;  // null: the interpreter
  Values inputs;
  Values run() const { return plan ? plan->call(inputs) : program->run_flat(inputs); }
};

Values inputs_of(const ExportedProgram& program, const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  Values inputs;
  for (const InputSpec& spec : program.graph_signature().input_specs)
    if (spec.kind == InputKind::user_input)
      inputs.push_back(spec.arg.kind == ArgumentKind::constant ? spec.arg.value : Value(file.tensor(spec.arg.name).clone()));
  return inputs;
}

}  // namespace

int main() {
  set_num_threads(2);
  set_executor_factory(nullptr);
  const NoGradGuard no_grad;
  std::map<std::string, Loaded> programs;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string command, name, file, how;
    in >> command >> name;
    Loaded& loaded = programs[name];
    if (command == "load") {
      in >> file >> how;
      loaded.program = load_program(file);
      const Clock::time_point start = Clock::now();
      if (how != "eager") loaded.plan = Plan::make(*loaded.program);
      std::cout << nanoseconds(start, Clock::now()) << std::endl;
    } else if (command == "inputs") {
      in >> file;
      loaded.inputs = inputs_of(*loaded.program, file);
      std::cout << loaded.inputs.size() << std::endl;
    } else if (command == "outputs") {
      in >> file;
      NamedTensors tensors;
      for (const Value& v : loaded.run())
        if (v.is_tensor()) tensors.emplace_back(std::to_string(tensors.size()), v.to_tensor().contiguous());
      save_safetensors(file, tensors, std::nullopt, true, SharedTensors::written_each);
      std::cout << tensors.size() << std::endl;
    } else if (command == "roofline") {
      std::cout << static_cast<int64_t>(operations_per_second() / 1e6) << " "
                << static_cast<int64_t>(bytes_per_second() / 1e6) << std::endl;
    } else if (command == "run") {
      int64_t times = 1;
      in >> times;
      std::vector<int64_t> spent;
      const int64_t before = processor_time();
      for (int64_t i = 0; i < times; ++i) {
        const Clock::time_point start = Clock::now();
        loaded.run();
        spent.push_back(nanoseconds(start, Clock::now()));
      }
      const int64_t processor = processor_time() - before;
      std::nth_element(spent.begin(), spent.begin() + std::ssize(spent) / 2, spent.end());
      std::cout << spent[spent.size() / 2] << " " << processor / times << std::endl;
    }
  }
}
