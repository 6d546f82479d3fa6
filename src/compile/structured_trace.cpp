// PyTorch's structured trace: lines of a level, a time, a process and a place, then JSON, then the payload behind tabs. tlparse makes pages
// of them.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/compile/structured_trace.h"
#include "calque/graph/text.h"
#include "compile/books.h"
#include "compile/md5.h"

namespace calque {
namespace {

using Json = nlohmann::ordered_json;

struct TraceFile {
  std::mutex mutex;
  std::FILE* file = nullptr;
  std::string path;
  std::map<std::string, size_t> texts;  // interned strings
  bool asked = false;
};

TraceFile& trace_file() {
  static TraceFile f;
  return f;
}

void open_trace(TraceFile& f, const std::string& folder) {
  if (f.file) std::fclose(f.file);
  f.file = nullptr;
  f.texts.clear();
  f.path.clear();
  if (folder.empty()) return;
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  f.path = fmt::format("{}/dedicated_log_torch_trace_calque_{}.log", folder, ::getpid());
  f.file = std::fopen(f.path.c_str(), "w");
  if (!f.file)
    throw UserError(ErrorKind::bad_file,
                    folder + ": expected a folder for traces that can be written, could not make " + f.path);
}

bool trace_enabled() {
  TraceFile& f = trace_file();
  const std::lock_guard lock(f.mutex);
  if (!f.asked) {
    f.asked = true;
    const char* folder = std::getenv("CALQUE_TRACE");
    if (folder && *folder) open_trace(f, folder);
  }
  return f.file != nullptr;
}

void write_line(TraceFile& f, const Json& metadata, const std::string* payload) {
  const int64_t now = compile_detail::microseconds_now();
  const std::time_t seconds = now / 1'000'000;
  std::tm parts = {};
  localtime_r(&seconds, &parts);
  std::string line = fmt::format("V{:02}{:02} {:02}:{:02}:{:02}.{:06} {} calque/compile/trace.cpp:1] {}", parts.tm_mon + 1,
                                 parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, now % 1'000'000, ::getpid(),
                                 metadata.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (payload) {
    line += "\n\t";
    for (const char c : *payload) {
      line += c;
      if (c == '\n') line += '\t';
    }
  }
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), f.file);
  std::fflush(f.file);
}

// Strings that repeat are numbers in stacks; each is said once.
size_t interned(TraceFile& f, const std::string& text) {
  const auto [at, fresh] = f.texts.emplace(text, f.texts.size());
  if (fresh) write_line(f, {{"str", Json::array({text, at->second})}}, nullptr);
  return at->second;
}

void write_event(const CompilationMetrics& m, Json event, const std::string* payload = nullptr) {
  TraceFile& f = trace_file();
  const std::lock_guard lock(f.mutex);
  if (!f.file) return;
  const size_t slash = m.compile_id.find('/');
  event["frame_id"] = std::strtoll(m.compile_id.c_str(), nullptr, 10);
  event["frame_compile_id"] = std::strtoll(m.compile_id.c_str() + slash + 1, nullptr, 10);
  event["attempt"] = 0;
  if (payload) event["has_payload"] = compile_detail::md5_hex(*payload);
  write_line(f, event, payload);
}

Json stack_of(const CompilationMetrics& m) {
  TraceFile& f = trace_file();
  const std::lock_guard lock(f.mutex);
  if (!f.file) return Json::array();
  return Json::array({{{"line", m.co_firstlineno}, {"name", m.co_name}, {"filename", interned(f, m.co_filename)}}});
}

}  // namespace

void set_structured_trace(const std::string& folder) {
  TraceFile& f = trace_file();
  const std::lock_guard lock(f.mutex);
  f.asked = true;
  open_trace(f, folder);
}

std::string structured_trace_path() {
  const std::lock_guard lock(trace_file().mutex);
  return trace_file().path;
}

namespace compile_detail {

void trace_start(const CompilationMetrics& metrics) {
  if (!trace_enabled()) return;
  write_event(metrics, {{"dynamo_start", {{"stack", stack_of(metrics)}}}});
}

void trace_capture(const Captured& captured, const Guards& guards, const CompilationMetrics& metrics) {
  if (!trace_enabled()) return;
  const std::string code = captured.module->print_readable();
  Json sizes = Json::object();
  for (const Node* n : std::as_const(*captured.module).graph().nodes())
    if (n->meta.val.is_tensor()) {
      Json dims = Json::array();
      for (const SymInt s : n->meta.val.to_tensor().sym_sizes())
        dims.push_back(s.is_symbolic() ? Json(s.str()) : Json(s.as_int()));
      sizes[n->name()] = std::move(dims);
    }
  write_event(metrics, {{"dynamo_output_graph", {{"sizes", std::move(sizes)}}}}, &code);
  Json list = Json::array();
  for (const std::string& text : guards.texts())
    list.push_back({{"code", text}, {"stack", nullptr}, {"user_stack", nullptr}});
  const std::string text = list.dump(-1, ' ', false, Json::error_handler_t::replace);
  write_event(metrics, {{"dynamo_guards", Json::object()}}, &text);
  if (captured.open) {
    const std::string reason = captured.open->reason() + "\nat " + captured.open->where.file_name() + ":" +
                               std::to_string(captured.open->where.line());
    write_event(metrics, {{"artifact", {{"name", "dynamo_graph_break_reason"}, {"encoding", "string"}}}}, &reason);
  }
}

void trace_graph(const GraphModule& module, const CompilationMetrics& metrics) {
  if (!trace_enabled()) return;
  const std::string text = module.graph().str();
  write_event(metrics, {{"artifact", {{"name", "calque_part"}, {"encoding", "string"}}}}, &text);
}

void trace_training(const GraphModule& joint, const GraphModule& forward, const GraphModule& backward,
                    const CompilationMetrics& metrics) {
  if (!trace_enabled()) return;
  const auto write = [&](const char* event, const GraphModule& module) {
    const std::string code = module.print_readable();
    write_event(metrics, {{event, Json::object()}}, &code);
  };
  write("aot_joint_graph", joint);
  write("aot_forward_graph", forward);
  write("aot_backward_graph", backward);
}

void trace_metrics(const CompilationMetrics& metrics) {
  if (!trace_enabled()) return;
  if (metrics.recompile_reason) {
    const std::string reasons =
        Json::array({*metrics.recompile_reason}).dump(-1, ' ', false, Json::error_handler_t::replace);
    write_event(metrics, {{"artifact", {{"name", "recompile_reasons"}, {"encoding", "json"}}}}, &reasons);
  }
  Json record = Json::parse(to_json(metrics));
  record.erase("compile_id");
  record["stack"] = stack_of(metrics);
  for (const char* absent : {"non_compliant_ops", "compliant_custom_ops"}) record[absent] = Json::array();
  write_event(metrics, {{metrics.is_forward ? "compilation_metrics" : "bwd_compilation_metrics", std::move(record)}});
}

}  // namespace compile_detail
}  // namespace calque
