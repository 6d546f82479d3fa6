// Phases: how long the stages of capture and compilation take. A Phase measures while it is in scope; phases of a thread nest. Each
// is kept three ways: every duration under its name (compile_times), summed by frame and stage (time_report), and as an event
// with its start, for traces. A process keeps the newest 10,000 durations of a name and 100,000 events. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace calque {

class Phase {
 public:
  // `stage`: under which name the time of a frame is summed; empty: it is not. Stages are not summed when an exception ends them.
  explicit Phase(std::string_view name, std::string_view stage = {});
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;
  double seconds() const;  // so far

 private:
  std::string name_, stage_;
  std::chrono::steady_clock::time_point start_;
  uint64_t frame_;
  int exceptions_;
};

struct PhaseEvent {
  std::string name;
  int64_t start_us = 0;  // since 1970
  int64_t duration_us = 0;
  int depth = 0;        // phases around it, of the same thread
  uint64_t thread = 0;  // 1 for the first that measured, and so on
  uint64_t frame = 0;   // 0: outside of any
};
std::vector<PhaseEvent> phase_events();  // in the order in which they ended

using Durations = std::map<std::string, std::vector<double>, std::less<>>;  // seconds, the oldest first
Durations phase_durations();
std::map<std::string, double, std::less<>> frame_times(uint64_t frame);  // by stage
void reset_phases();

// Durations as a table ("Function", "Runtimes (s)"); `aggregate` sums those of a name.
std::string compile_times(bool aggregate = false);
// The same with six digits, for a file of comma-separated values: names, and values, several in quotes.
struct CompileTimesCsv {
  std::vector<std::string> headers;
  std::vector<std::string> values;
};
CompileTimesCsv compile_times_csv(bool aggregate = false);
// "TIMING: backend_compile:0.00123 entire_frame_compile:0.00213 total_wall_time:0.00213"; empty before any frame.
std::string time_report();

// Text as a table: columns of one space and more apart, a line of dashes below the titles, cells that are numbers to the right.
std::string tabulate(const std::vector<std::vector<std::string>>& rows, const std::vector<std::string>& headers);

}  // namespace calque
