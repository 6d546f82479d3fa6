// What a command is doing and how far it has come: drawn on a terminal when it takes longer than a second, never in a pipe and never
// with --quiet; said when Ctrl-C ends the command. Objects nest; the innermost is the one that is shown.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace calque::cli {

class Progress {
 public:
  enum class Unit { none, bytes, tokens };
  enum class Drawn { bar, never };  // never: for a command whose output is the progress

  // "loading tiny-lm"; `after_stop` says what Ctrl-C leaves ("p.pt2 is as it was").
  explicit Progress(std::string doing, std::string after_stop = "", Unit unit = Unit::none, Drawn drawn = Drawn::bar);
  ~Progress();  // takes the bar away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // From any thread. A total of 0: nobody knows.
  void update(uint64_t done, uint64_t total = 0);
  void rename(std::string doing);  // what is drawn from now on
  std::function<void(uint64_t done, uint64_t total)> callback();

  // "saving m: 1.2 GB of 3.4 GB; m is as it was", of the innermost that lives; empty when there is none.
  static std::string so_far();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// The line for a terminal of so many columns: "loading tiny-lm [####------]  41%  3 s". For tests.
std::string progress_line(const std::string& doing, uint64_t done, uint64_t total, Progress::Unit unit, double seconds,
                          size_t columns);

}  // namespace calque::cli
