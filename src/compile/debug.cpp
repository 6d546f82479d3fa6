#include "compile/debug.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/compile/debug.h"
#include "calque/graph/text.h"
#include "compile/books.h"

namespace calque {
namespace {

namespace fs = std::filesystem;

struct DebugFolder {
  std::mutex mutex;
  bool asked = false;
  fs::path run;
  std::map<std::string, size_t> parts;  // of a capture, so far
  std::map<std::thread::id, fs::path> now;
};

DebugFolder& debug_folder() {
  static DebugFolder d;
  return d;
}

void open_debug(DebugFolder& d, const std::string& folder) {
  d.run.clear();
  d.parts.clear();
  if (folder.empty()) return;
  const int64_t us = compile_detail::microseconds_now();
  const std::time_t seconds = us / 1'000'000;
  std::tm t = {};
  localtime_r(&seconds, &t);
  const fs::path run =
      fs::path(folder) / fmt::format("run_{}_{:02}_{:02}_{:02}_{:02}_{:02}_{:06}-pid_{}", t.tm_year + 1900, t.tm_mon + 1,
                                     t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec, us % 1'000'000, ::getpid());
  std::error_code failed;
  fs::create_directories(run, failed);
  if (failed)
    throw UserError(ErrorKind::bad_file,
                    folder + ": expected a folder that can be made for debug files: " + failed.message());
  d.run = run;
}

fs::path run_folder() {
  DebugFolder& d = debug_folder();
  const std::lock_guard lock(d.mutex);
  if (!d.asked) {
    d.asked = true;
    const char* wanted = std::getenv("CALQUE_COMPILE_DEBUG");
    if (wanted && std::string_view(wanted) == "1") open_debug(d, "calque_compile_debug");
  }
  return d.run;
}

fs::path capture_folder(const std::string& compile_id) {
  std::string name = "capture_" + compile_id;
  for (char& c : name)
    if (c == '/') c = '_';
  return run_folder() / name;
}

// A disk that is full must not end a compilation: what is missing is seen in the folder.
void write_text(const fs::path& path, const std::string& text) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  std::ofstream(path) << text;
}

}  // namespace

void set_compile_debug(const std::string& folder) {
  DebugFolder& d = debug_folder();
  const std::lock_guard lock(d.mutex);
  d.asked = true;
  open_debug(d, folder);
}

std::string get_debug_dir() { return run_folder().string(); }

namespace compile_detail {

bool debug_enabled() { return !run_folder().empty(); }

void debug_capture(const Captured& captured, const Guards& guards, const CompilationMetrics& metrics) {
  if (!debug_enabled()) return;
  const fs::path folder = capture_folder(metrics.compile_id);
  write_text(folder / "graph.txt", text_with_symbols(std::as_const(*captured.module).graph()));
  write_text(folder / "code.py", captured.module->print_readable());
  std::string lines;
  for (const std::string& g : guards.texts()) lines += g + "\n";
  write_text(folder / "guards.txt", lines);
  write_text(folder / "symbols.txt", captured.fake->env()->explain());
  if (captured.open)
    write_text(folder / "graph_break.txt", fmt::format("{}\nat {}:{}\n", captured.open->reason(),
                                                       captured.open->where.file_name(), captured.open->where.line()));
}

void debug_metrics(const CompilationMetrics& metrics) {
  if (debug_enabled()) write_text(capture_folder(metrics.compile_id) / "metrics.json", to_json(metrics) + "\n");
}

DebugPartScope::DebugPartScope(const std::string& compile_id, const GraphModule& module) {
  if (!debug_enabled()) return;
  is_open_ = true;
  DebugFolder& d = debug_folder();
  {
    const std::lock_guard lock(d.mutex);
    const size_t number = d.parts[compile_id]++;
    d.now[std::this_thread::get_id()] = fs::path(fmt::format("part_{}", number));
  }
  const fs::path folder = capture_folder(compile_id);
  {
    const std::lock_guard lock(d.mutex);
    fs::path& part = d.now[std::this_thread::get_id()];
    part = folder / part;
  }
  debug_part_file("graph.txt", text_with_symbols(module.graph()));
}

DebugPartScope::~DebugPartScope() {
  if (!is_open_) return;
  const std::lock_guard lock(debug_folder().mutex);
  debug_folder().now.erase(std::this_thread::get_id());
}

void debug_part_file(const std::string& name, const std::string& text) {
  fs::path folder;
  {
    const std::lock_guard lock(debug_folder().mutex);
    const auto at = debug_folder().now.find(std::this_thread::get_id());
    if (at == debug_folder().now.end()) return;
    folder = at->second;
  }
  write_text(folder / name, text);
}

}  // namespace compile_detail
}  // namespace calque
