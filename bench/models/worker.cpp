// Calque's side of bench/models. Commands, one a line:
//   load NAME PROGRAM.pt2 [eager]     a program, kept under the name; answers nanoseconds of making its plan
//   inputs NAME INPUTS.safetensors    what its next runs take, by the names of its inputs
//   run NAME TIMES                    answers nanoseconds: the median of TIMES runs, and processor time of all of them
//   outputs NAME OUTPUT.safetensors   writes the tensors of one run: 0, 1, ...
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
