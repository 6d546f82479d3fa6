// Logs: lines about what capture and compilation decide, by name: "guards", "recompiles", "plan". All are silent until they are asked for,
// by set_logs() or by the variable CALQUE_LOGS, which the first line asked about reads: CALQUE_LOGS="+guards,recompiles". A plus asks for
// details too, a minus silences. Lines go to standard error, to the file that CALQUE_LOGS_OUT names, or to a sink. Thread-safe; a
// name that is silent costs one load.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace calque {

enum class Log : uint8_t {
  dynamo,
  graph,
  graph_code,
  graph_sizes,
  guards,
  recompiles,
  graph_breaks,
  dynamic,
  plan,
  perf,
  cache,
  metrics,
  timing,
};
enum class LogDetail : uint8_t { off, on, verbose };

struct LogName {
  Log log;
  std::string_view name;
  std::string_view about;  // in a few words
};
const std::vector<LogName>& log_names();
std::string_view log_name(Log log);

// "+guards,recompiles,-graph"; "all" stands for every name. UserError that lists the names for one that is unknown; nothing is
// changed then. Names that are not mentioned become silent.
void set_logs(std::string_view settings);
LogDetail log_detail(Log log);
inline bool log_enabled(Log log) { return log_detail(log) != LogDetail::off; }

// Written where the log is on: "[guards] text", one such line for each line of the text.
void write_log(Log log, std::string_view text);
void write_log_verbose(Log log, std::string_view text);  // where details are asked for

using LogSink = std::function<void(Log log, std::string_view text)>;
LogSink set_log_sink(LogSink sink);  // returns the one before; null: standard error or the file
// Lines go to the end of this file from now on; "" takes that back. UserError when it cannot be opened.
void set_log_file(const std::string& path);

std::string strip_color(std::string_view text);  // without the terminal's colours

}  // namespace calque
