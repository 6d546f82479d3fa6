#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "calque/base/error.h"
#include "cli/command.h"

namespace calque::cli {

void occupy_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    // The lowest free number is the one that open() gives; an output that is open for reading alone refuses to be written.
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) [[maybe_unused]]
      const int taken = ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void flush_output() {
  errno = 0;
  const bool written = std::fflush(stdout) == 0 && !std::ferror(stdout);
  if (written) return;
  static int reason = 0;  // the first one: stdio remembers that writing failed, and not why
  if (reason == 0) reason = errno;
  if (reason == EPIPE) throw ExitStatus{2};
  throw UserError(ErrorKind::bad_file, "cannot write standard output" +
                                           (reason ? ": " + std::string(std::strerror(reason)) : std::string()) +
                                           "; what was printed is not complete");
}

void say(std::string_view message) { write_error_text("calque: " + std::string(message) + "\n"); }

void write_error_text(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace calque::cli
