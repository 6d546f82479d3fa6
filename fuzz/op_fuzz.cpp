// Every operator of the table with hostile arguments (tests/op/hostile_calls_support.h), by families. With CALQUE_FUZZ_HASHES=FILE
// a line for each answer, with a checksum of its bytes: two runs whose fresh memory is filled differently (ASAN_OPTIONS=
// max_malloc_fill_size=1000000000:malloc_fill_byte=17) write the same file unless a kernel leaves a part of its result unwritten.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "../tests/op/hostile_calls_support.h"
#include "calque/base/memory.h"
#include "calque/base/thread.h"
#include "calque/base/warning.h"
#include "forked.h"
#include "support/paths.h"

using namespace calque;

int main(int argc, char** argv) {
  set_memory_limit(size_t{64} << 20);
  set_num_threads(1);
  set_warning_sink([](std::string_view) {});
  const char* hashes = std::getenv("CALQUE_FUZZ_HASHES");
  const int file = hashes ? open(hashes, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
  const hostile::Caller caller(calque::test::source_folder() + "/tests/op/golden");
  std::vector<forked::Subject> subjects;
  for (const auto& [family, operators] : hostile::operators_by_family())
    for (const Operator* op : operators)
      subjects.push_back({family, op->name(),
                          [&caller, op, file](uint64_t seed) {
                            const hostile::Outcome outcome = caller.call(*op, seed);
                            if (file >= 0 && outcome.kind == hostile::Outcome::Kind::answered)
                              dprintf(file, "%s:%llu %016llx\n", op->name().c_str(), static_cast<unsigned long long>(seed),
                                      static_cast<unsigned long long>(outcome.hash));
                            return forked::Outcome{static_cast<forked::Kind>(outcome.kind), outcome.what};
                          },
                          [&caller, op](uint64_t seed) { return caller.describe(*op, seed); }});
  return forked::run(argc, argv, subjects);
}
