#include "cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "cli/output.h"
#include "cli/table.h"

namespace calque::cli {

using Steady = std::chrono::steady_clock;

struct Progress::State {
  std::string doing, after_stop;
  Unit unit = Unit::none;
  std::atomic<uint64_t> done{0}, total{0};
  Steady::time_point start = Steady::now();
  // Of the thread that draws; none in a pipe.
  std::mutex mutex;
  std::condition_variable ended;
  bool over = false, shown = false;
  std::thread painter;
};

namespace {

struct Living {
  std::mutex mutex;
  std::vector<Progress*> all;
};
Living& living() {
  static Living* const it = new Living;  // the thread that watches signals may ask until the process is gone
  return *it;
}

std::string amount(uint64_t value, Progress::Unit unit) {
  return unit == Progress::Unit::bytes ? human_bytes(value) : with_thousands(value);
}

size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string progress_line(const std::string& doing, uint64_t done, uint64_t total, Progress::Unit unit, double seconds,
                          size_t columns) {
  std::string tail = fmt::format("{:.0f} s", seconds);
  if (total == 0) {
    if (done > 0) tail = amount(done, unit) + "  " + tail;
  } else {
    constexpr size_t width = 20;
    const double part = static_cast<double>(std::min(done, total)) / static_cast<double>(total);
    const auto full = static_cast<size_t>(part * width);
    tail = fmt::format("[{:#<{}}{:-<{}}] {:3.0f}%  {}", "", full, "", width - full, 100 * part, tail);
  }
  const size_t room = columns > tail.size() + 3 ? columns - tail.size() - 3 : 0;
  return (doing.size() > room ? doing.substr(0, room) : doing) + "  " + tail;
}

Progress::Progress(std::string doing, std::string after_stop, Unit unit, Drawn drawn) : state_(std::make_shared<State>()) {
  state_->doing = std::move(doing);
  state_->after_stop = std::move(after_stop);
  state_->unit = unit;
  {
    const std::lock_guard lock(living().mutex);
    living().all.push_back(this);
  }
  if (drawn == Drawn::never || is_quiet() || ::isatty(STDERR_FILENO) == 0) return;
  state_->painter = std::thread([&s = *state_] {
    std::unique_lock lock(s.mutex);
    s.ended.wait_for(lock, std::chrono::seconds(1), [&] { return s.over; });
    while (!s.over) {
      const double seconds = std::chrono::duration<double>(Steady::now() - s.start).count();
      write_error_text("\r\x1b[K" + progress_line(s.doing, s.done, s.total, s.unit, seconds, terminal_columns()));
      s.shown = true;
      s.ended.wait_for(lock, std::chrono::milliseconds(100), [&] { return s.over; });
    }
  });
}

Progress::~Progress() {
  {
    const std::lock_guard lock(living().mutex);
    std::erase(living().all, this);
  }
  if (!state_->painter.joinable()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->over = true;
  }
  state_->ended.notify_all();
  state_->painter.join();
  if (state_->shown) write_error_text("\r\x1b[K");
}

void Progress::update(uint64_t done, uint64_t total) {
  state_->total = total;
  state_->done = done;
}

void Progress::rename(std::string doing) {
  const std::lock_guard lock(state_->mutex);
  state_->doing = std::move(doing);
}

std::function<void(uint64_t, uint64_t)> Progress::callback() {
  return [this](uint64_t done, uint64_t total) { update(done, total); };
}

std::string Progress::so_far() {
  const std::lock_guard lock(living().mutex);
  if (living().all.empty()) return "";
  State& s = *living().all.back()->state_;
  std::string text;
  {
    const std::lock_guard text_lock(s.mutex);
    text = s.doing;
  }
  const uint64_t done = s.done, total = s.total;
  const char* unit = s.unit == Unit::tokens ? " tokens" : "";
  if (total > 0)
    text += ": " + amount(done, s.unit) + " of " + amount(total, s.unit) + unit + " done";
  else if (done > 0)
    text += ": " + amount(done, s.unit) + unit + " done";
  for (const Progress* p : living().all)
    if (!p->state_->after_stop.empty()) text += "; " + p->state_->after_stop;
  return text;
}

}  // namespace calque::cli
