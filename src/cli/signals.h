// How the program ends on a signal. The library installs no handlers; this does, for the program.
#pragma once

namespace calque::cli {

// From here on SIGINT, SIGTERM and SIGHUP (those that are not ignored) end the program as they always do, after what it has on
// disk under temporary names is removed; a second one ends it at once. SIGBUS, which reading a mapped file that was cut off
// brings, ends it with status 2 and a message that names the file. A pipe that nobody reads and a file that may not grow are
// errors of writing, not signals.
void end_cleanly_on_signals();

// While it lives the first Ctrl-C (or SIGTERM, SIGHUP) asks instead of ending the program; a second one ends it at once.
class StopRequest {
 public:
  // "after this step": what is said when the signal comes.
  explicit StopRequest(const char* when);  // kept, not copied
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;
  bool asked() const;
};

// Ends the process with status 2 and a message when so many seconds have passed; 0 is no limit.
void limit_time(unsigned seconds);

}  // namespace calque::cli
