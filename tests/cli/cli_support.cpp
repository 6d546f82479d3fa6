#include "cli/cli_support.h"
#include "support/paths.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>

namespace calque::cli_test {
namespace {

const std::string program = test::program_folder() + "/calque";

}  // namespace

Result calque_run(const std::string& arguments) { return shell_run("$CALQUE " + arguments + " 2>&1"); }

Result shell_run(const std::string& command) {
  FILE* pipe = ::popen(("CALQUE='" + program + "'; { " + command + "\n} 2>&1 </dev/null").c_str(), "r");
  std::string out;
  for (char buffer[4096]; const size_t n = std::fread(buffer, 1, sizeof buffer, pipe);) out.append(buffer, n);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out};
}

Process::Process(const std::vector<std::string>& arguments) {
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& one : arguments) argv.push_back(const_cast<char*>(one.c_str()));
  argv.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  out_ = ends[0];
}

Process::~Process() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) ::close(out_);
}

bool Process::stop_when(const std::function<bool()>& condition) {
  for (;;) {
    // Asked while it stands still: a process that runs on may be past what was seen.
    ::kill(pid_, SIGSTOP);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT);
    if (info.si_code != CLD_STOPPED) return false;
    if (condition()) return true;
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG);  // takes the report of this stop
    resume();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void Process::resume() { ::kill(pid_, SIGCONT); }
void Process::send(int signal) { ::kill(pid_, signal); }

Process::Ending Process::wait() {
  std::string out;
  char buffer[4096];
  for (ssize_t n; (n = ::read(out_, buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<size_t>(n));
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0, out};
}

}  // namespace calque::cli_test
