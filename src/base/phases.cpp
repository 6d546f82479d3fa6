#include "calque/base/phases.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>

#include <fmt/format.h>

#include "calque/base/counters.h"

namespace calque {
namespace {

constexpr size_t kept_durations = 10000;
constexpr size_t kept_events = 100000;
constexpr size_t kept_frames = 10000;

struct OfThread {
  uint64_t number = 0;
  int depth = 0;
};

struct Measured {
  std::mutex mutex;
  std::map<std::string, std::deque<double>, std::less<>> durations;
  std::map<uint64_t, std::map<std::string, double, std::less<>>> frames;
  std::deque<PhaseEvent> events;
  std::unordered_map<std::thread::id, OfThread> threads;  // those inside of a phase
  uint64_t threads_seen = 0;
};

Measured& measured() {
  static Measured m;
  return m;
}

int64_t microseconds_now() {
  using namespace std::chrono;
  return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

bool is_number(const std::string& cell) {
  if (cell.empty()) return false;
  char* end = nullptr;
  std::strtod(cell.c_str(), &end);
  return *end == '\0';
}

std::string joined(const std::vector<double>& values, bool aggregate, const char* format) {
  double sum = 0;
  std::string all;
  for (const double v : values) {
    sum += v;
    all += (all.empty() ? "" : ", ") + fmt::format(fmt::runtime(format), v);
  }
  return aggregate ? fmt::format(fmt::runtime(format), sum) : all;
}

}  // namespace

Phase::Phase(std::string_view name, std::string_view stage)
    : name_(name),
      stage_(stage),
      start_(std::chrono::steady_clock::now()),
      frame_(current_frame()),
      exceptions_(std::uncaught_exceptions()) {
  Measured& m = measured();
  const std::lock_guard lock(m.mutex);
  OfThread& thread = m.threads[std::this_thread::get_id()];
  if (thread.number == 0) thread.number = ++m.threads_seen;
  ++thread.depth;
}

double Phase::seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

Phase::~Phase() {
  const double taken = seconds();
  const auto us = static_cast<int64_t>(taken * 1e6);
  Measured& m = measured();
  const std::lock_guard lock(m.mutex);
  const auto thread = m.threads.find(std::this_thread::get_id());
  const int depth = --thread->second.depth;
  std::deque<double>& durations = m.durations[name_];
  durations.push_back(taken);
  if (durations.size() > kept_durations) durations.pop_front();
  if (!stage_.empty() && std::uncaught_exceptions() == exceptions_) {
    m.frames[frame_][stage_] += taken;
    if (m.frames.size() > kept_frames) m.frames.erase(m.frames.begin());
  }
  m.events.push_back({name_, microseconds_now() - us, us, depth, thread->second.number, frame_});
  if (m.events.size() > kept_events) m.events.pop_front();
  if (depth == 0) m.threads.erase(thread);
}

std::vector<PhaseEvent> phase_events() {
  const std::lock_guard lock(measured().mutex);
  return {measured().events.begin(), measured().events.end()};
}

Durations phase_durations() {
  const std::lock_guard lock(measured().mutex);
  Durations out;
  for (const auto& [name, values] : measured().durations) out[name].assign(values.begin(), values.end());
  return out;
}

std::map<std::string, double, std::less<>> frame_times(uint64_t frame) {
  const std::lock_guard lock(measured().mutex);
  const auto at = measured().frames.find(frame);
  return at == measured().frames.end() ? std::map<std::string, double, std::less<>>() : at->second;
}

void reset_phases() {
  const std::lock_guard lock(measured().mutex);
  measured().durations.clear();
  measured().frames.clear();
  measured().events.clear();
}

std::string compile_times(bool aggregate) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, values] : phase_durations()) rows.push_back({name, joined(values, aggregate, "{:.4f}")});
  return "Compilation metrics:\n" + tabulate(rows, {"Function", "Runtimes (s)"});
}

CompileTimesCsv compile_times_csv(bool aggregate) {
  CompileTimesCsv out;
  for (const auto& [name, values] : phase_durations()) {
    const std::string text = joined(values, aggregate, "{:.6f}");
    out.headers.push_back(name);
    out.values.push_back(text.find(',') == std::string::npos ? text : '"' + text + '"');
  }
  return out;
}

std::string time_report() {
  std::map<std::string, double, std::less<>> total;
  {
    const std::lock_guard lock(measured().mutex);
    for (const auto& [frame, stages] : measured().frames)
      for (const auto& [stage, seconds] : stages) total[stage] += seconds;
  }
  if (total.empty()) return "";
  total["total_wall_time"] = total["entire_frame_compile"] + total["entire_backward_compile"];
  if (total["entire_backward_compile"] == 0) total.erase("entire_backward_compile");
  std::string out = "TIMING:";
  for (const auto& [stage, seconds] : total) out += fmt::format(" {}:{:.5f}", stage, seconds);
  return out;
}

std::string tabulate(const std::vector<std::vector<std::string>>& rows, const std::vector<std::string>& headers) {
  std::vector<size_t> widths;
  std::vector<bool> to_the_right;
  for (size_t i = 0; i < headers.size(); ++i) {
    widths.push_back(headers[i].size());
    to_the_right.push_back(!rows.empty());
    for (const auto& row : rows) {
      const std::string cell = i < row.size() ? row[i] : "";
      widths[i] = std::max(widths[i], cell.size());
      if (!is_number(cell)) to_the_right[i] = false;
    }
  }
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (size_t i = 0; i < headers.size(); ++i) {
      const std::string cell = i < cells.size() ? cells[i] : "";
      const std::string pad(widths[i] - cell.size(), ' ');
      text += (i ? "  " : "") + (to_the_right[i] ? pad + cell : cell + pad);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += (out.empty() ? "" : "\n") + text;
  };
  line(headers);
  std::vector<std::string> dashes;
  for (const size_t width : widths) dashes.emplace_back(width, '-');
  line(dashes);
  for (const auto& row : rows) line(row);
  return out;
}

}  // namespace calque
