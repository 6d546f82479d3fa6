// What the tests of the program share: run it as a user does.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace calque::cli_test {

struct Result {
  int status;       // -1: it did not exit by itself
  std::string out;  // stdout and stderr
};

Result calque_run(const std::string& arguments);  // for the shell
// A whole command line, in which $CALQUE is the program; what it leaves of its output and its errors comes back.
Result shell_run(const std::string& command);

// The program, started and watched. Killed with the object.
class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments);  // stdout and stderr go to a pipe that result() reads
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Stops it (SIGSTOP) as soon as the condition holds; false when it ended before.
  bool stop_when(const std::function<bool()>& condition);
  void resume();  // after stop_when
  void send(int signal);

  // Waits for its end.
  struct Ending {
    int status;  // -1: a signal ended it
    int signal;  // 0: it ended by itself
    std::string out;
  };
  Ending wait();

 private:
  pid_t pid_ = -1;
  int out_ = -1;
};

}  // namespace calque::cli_test
