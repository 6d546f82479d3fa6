// Calque's side of bench/export. Reads commands, a line each, and answers with nanoseconds and a count:
//   export KIND LAYERS       processor time of one export with dynamic batch and length; nodes
//   decompose KIND LAYERS    the same of run_decompositions on it; nodes
//   load PATH                wall time of reading a program; its tensors
//   save PATH TO SYNC        wall time of writing it again, SYNC 0 or 1; bytes
#include <time.h>

#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>

#include "calque/export/export.h"
#include "calque/export/pt2.h"
#include "models.h"

namespace {

using namespace calque;

int64_t now(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

ExportedProgram export_model(Module& model) {
  const Dim batch("batch", 1, 64);
  const Dim length("length", 2, 1024);
  return export_program(model, {zeros({2, 128}, DType::int64)}, {},
                        {.dynamic_shapes = DynamicShapes::tuple({DynamicShapes::tuple({batch, length})})});
}

}  // namespace

int main() {
  std::map<std::string, std::shared_ptr<Module>> models;
  std::map<std::string, std::shared_ptr<const ExportedProgram>> programs;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command, first, second;
    words >> command >> first >> second;
    int64_t nanoseconds = 0;
    size_t count = 0;
    if (command == "export" || command == "decompose") {
      std::shared_ptr<Module>& model = models[first + second];
      if (!model) model = bench::make_model(first, std::stoll(second));
      int64_t start = now(CLOCK_PROCESS_CPUTIME_ID);
      const ExportedProgram program = export_model(*model);
      if (command == "export") {
        nanoseconds = now(CLOCK_PROCESS_CPUTIME_ID) - start;
        count = program.graph().size();
      } else {
        start = now(CLOCK_PROCESS_CPUTIME_ID);
        const ExportedProgram functional = program.run_decompositions();
        nanoseconds = now(CLOCK_PROCESS_CPUTIME_ID) - start;
        count = functional.graph().size();
      }
    } else if (command == "load") {
      const int64_t start = now(CLOCK_MONOTONIC);
      programs[first] = load_program(first);
      nanoseconds = now(CLOCK_MONOTONIC) - start;
      count = programs[first]->state_dict().size();
    } else if (command == "save") {
      int sync = 0;
      words >> sync;
      const int64_t start = now(CLOCK_MONOTONIC);
      save_program(*programs.at(first), second, {.sync = sync != 0});
      nanoseconds = now(CLOCK_MONOTONIC) - start;
      count = std::filesystem::file_size(second);
    }
    std::cout << nanoseconds << ' ' << count << std::endl;
  }
}
