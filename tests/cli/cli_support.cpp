#include "cli/cli_support.h"

#include <sys/wait.h>

#include <cstdio>

namespace calque::cli_test {

Result calque_run(const std::string& arguments) {
  FILE* pipe = ::popen((std::string(CALQUE_TEST_BIN) + "/calque " + arguments + " 2>&1 </dev/null").c_str(), "r");
  std::string out;
  for (char buffer[4096]; const size_t n = std::fread(buffer, 1, sizeof buffer, pipe);) out.append(buffer, n);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out};
}

}  // namespace calque::cli_test
