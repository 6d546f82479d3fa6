#include "cli/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include "calque/file/mapped_file.h"
#include "calque/file/temporaries.h"
#include "cli/progress.h"

namespace calque::cli {
namespace {

// Handlers do what is async-signal-safe: they write the signal's number to a pipe. A thread reads it and does the rest.
int pipe_to_watcher = -1;

void tell_watcher(int signal) {
  const int kept = errno;
  const auto number = static_cast<unsigned char>(signal);
  [[maybe_unused]] const ssize_t written = ::write(pipe_to_watcher, &number, 1);
  errno = kept;
}

void put(const char* text) { [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text)); }

extern "C" void on_end_signal(int signal) { tell_watcher(signal); }

// The thread that read the file cannot go on: it waits for the end.
extern "C" void on_bus_error(int, siginfo_t* info, void*) {
  const char* path = mapped_file_at(info->si_addr);
  if (!path) {  // no file: whatever it is, it ends as it would without a handler
    ::signal(SIGBUS, SIG_DFL);
    return;
  }
  static std::atomic_flag told;
  if (!told.test_and_set()) {  // several threads may read it
    put("calque: ");
    put(path);
    put(": its bytes cannot be read any more: the file was cut off, or its disk failed, while in use; fetch it again\n");
    tell_watcher(SIGBUS);
  }
  for (;;) ::pause();
}

std::atomic<const char*> stops_when{nullptr};  // of the StopRequest that lives
std::atomic<bool> stop_asked{false};

// Is it for who asked to be told, instead of ending?
bool hand_over(int signal) {
  const char* when = stops_when.load();
  if (!when || signal == SIGALRM || signal == SIGBUS || stop_asked.exchange(true)) return false;
  if (::isatty(STDERR_FILENO) != 0) put("\n");
  put(("calque: stopping " + std::string(when) + " (again: at once)\n").c_str());
  return true;
}

void watch(int pipe) {
  unsigned char signal = 0;
  while (::read(pipe, &signal, 1) != 1 || hand_over(signal)) {
  }
  const std::string so_far = Progress::so_far();
  abandon_writing();
  if (signal == SIGINT) {
    // Behind what was being printed, and behind the ^C of a terminal.
    if (::isatty(STDERR_FILENO) != 0) put("\n");
    if (!so_far.empty()) put(("calque: stopped by Ctrl-C while " + so_far + "\n").c_str());
  }
  if (signal == SIGALRM) put("calque: the command took longer than --time-limit allows\n");
  if (signal == SIGBUS || signal == SIGALRM) ::_exit(2);
  ::signal(signal, SIG_DFL);
  ::kill(::getpid(), signal);
}

}  // namespace

void end_cleanly_on_signals() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  pipe_to_watcher = ends[1];
  std::thread(watch, ends[0]).detach();

  struct sigaction action {};
  ::sigemptyset(&action.sa_mask);
  action.sa_handler = on_end_signal;
  action.sa_flags = static_cast<int>(SA_RESTART | static_cast<unsigned>(SA_RESETHAND));
  ::sigaction(SIGALRM, &action, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

StopRequest::StopRequest(const char* when) {
  stop_asked = false;
  stops_when = when;
}
StopRequest::~StopRequest() { stops_when = nullptr; }
bool StopRequest::asked() const { return stop_asked; }

void limit_time(unsigned seconds) { ::alarm(seconds); }

}  // namespace calque::cli
