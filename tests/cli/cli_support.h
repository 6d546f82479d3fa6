// What the tests of the program share: run it as a user does.
#pragma once

#include <string>

namespace calque::cli_test {

struct Result {
  int status;       // -1: it did not exit by itself
  std::string out;  // stdout and stderr
};

Result calque_run(const std::string& arguments);  // for the shell

}  // namespace calque::cli_test
