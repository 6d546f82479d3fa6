#include "calque/base/log.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

#include "calque/base/error.h"

namespace calque {
namespace {

constexpr size_t number_of_logs = static_cast<size_t>(Log::timing) + 1;
using Details = std::array<LogDetail, number_of_logs>;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

class Logs {
 public:
  Logs() {
    // A mistake in a variable must not end the program from inside a log line: it is said instead.
    try {
      if (const char* path = std::getenv("CALQUE_LOGS_OUT"); path && *path) open(path);
      if (const char* settings = std::getenv("CALQUE_LOGS"); settings && *settings) set(settings);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "CALQUE_LOGS: %s\n", e.what());
    }
  }

  LogDetail detail(Log log) const { return details_[static_cast<size_t>(log)].load(std::memory_order_relaxed); }
  void set(std::string_view settings);
  LogSink set_sink(LogSink sink) {
    const std::lock_guard lock(mutex_);
    return std::exchange(sink_, std::move(sink));
  }
  void open(const std::string& path);
  void write(Log log, std::string_view text);

 private:
  std::array<std::atomic<LogDetail>, number_of_logs> details_ = {};
  std::mutex mutex_;
  LogSink sink_;
  std::unique_ptr<std::FILE, CloseFile> file_;
};

Logs& logs() {
  static Logs l;
  return l;
}

std::string known_names() {
  std::string out;
  for (const LogName& known : log_names()) out += std::string(out.empty() ? "" : ", ") + std::string(known.name);
  return out;
}

void Logs::set(std::string_view settings) {
  Details details = {};
  while (!settings.empty()) {
    const size_t comma = settings.find(',');
    std::string_view item = settings.substr(0, comma);
    settings = comma == std::string_view::npos ? std::string_view() : settings.substr(comma + 1);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (item.empty()) continue;
    const char sign = item.front();
    const bool has_sign = sign == '+' || sign == '-';
    const std::string_view name = item.substr(has_sign ? 1 : 0);
    const LogDetail detail = sign == '+' ? LogDetail::verbose : sign == '-' ? LogDetail::off : LogDetail::on;
    bool is_known = name == "all";
    for (const LogName& known : log_names()) {
      if (name != "all" && known.name != name) continue;
      details[static_cast<size_t>(known.log)] = detail;
      is_known = true;
    }
    if (!is_known)
      throw UserError("logs: expected names with an optional + or - in front, found '" + std::string(item) +
                      "'; the names are " + known_names() + ", and all");
  }
  for (size_t i = 0; i < number_of_logs; ++i) details_[i].store(details[i], std::memory_order_relaxed);
}

void Logs::open(const std::string& path) {
  std::unique_ptr<std::FILE, CloseFile> file;
  if (!path.empty()) {
    file.reset(std::fopen(path.c_str(), "a"));
    if (!file)
      throw UserError(ErrorKind::bad_file, path + ": expected a file for logs that can be written, could not open it");
  }
  const std::lock_guard lock(mutex_);
  file_ = std::move(file);
}

void Logs::write(Log log, std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (sink_) {
    sink_(log, text);
    return;
  }
  std::string lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines += "[" + std::string(log_name(log)) + "] " + std::string(text.substr(0, end)) + "\n";
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  std::FILE* out = file_ ? file_.get() : stderr;
  std::fwrite(lines.data(), 1, lines.size(), out);
  std::fflush(out);
}

}  // namespace

const std::vector<LogName>& log_names() {
  static const std::vector<LogName> names = {
      {Log::dynamo, "dynamo", "what a capture does, step by step"},
      {Log::graph, "graph", "captured graphs as text"},
      {Log::graph_code, "graph_code", "captured graphs as Python code"},
      {Log::graph_sizes, "graph_sizes", "sizes of every value of a captured graph"},
      {Log::guards, "guards", "what a compiled function checks before it runs"},
      {Log::recompiles, "recompiles", "why something was compiled again; + for every entry that did not fit"},
      {Log::graph_breaks, "graph_breaks", "where a capture had to stop, and why"},
      {Log::dynamic, "dynamic", "symbols and what was learnt of them"},
      {Log::plan, "plan", "plans and their passes"},
      {Log::perf, "perf", "what makes a plan slower than it could be"},
      {Log::cache, "cache", "entries made, used and dropped"},
      {Log::metrics, "metrics", "the record of each compilation"},
      {Log::timing, "timing", "how long each stage took, at the end of the program"},
  };
  return names;
}

std::string_view log_name(Log log) { return log_names()[static_cast<size_t>(log)].name; }
void set_logs(std::string_view settings) { logs().set(settings); }
LogDetail log_detail(Log log) { return logs().detail(log); }
void write_log(Log log, std::string_view text) {
  if (log_enabled(log)) logs().write(log, text);
}
void write_log_verbose(Log log, std::string_view text) {
  if (log_detail(log) == LogDetail::verbose) logs().write(log, text);
}
LogSink set_log_sink(LogSink sink) { return logs().set_sink(std::move(sink)); }
void set_log_file(const std::string& path) { logs().open(path); }

std::string strip_color(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {
      size_t end = i + 2;
      while (end < text.size() && (text[end] < '@' || text[end] > '~')) ++end;
      if (end < text.size()) {
        i = end;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

}  // namespace calque
