// CompilationMetrics: what is known of one compilation, in the words of PyTorch's record of the same name: fields that have a meaning
// here, under its names. The newest 64 are kept; how many is set_compilation_metrics_limit. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "calque/op/value.h"

namespace calque {

struct CompilationMetrics {
  std::string compile_id;  // "2/0": the function's number, which of its compilations
  std::string frame_key;   // the number of the capture
  std::string co_name;     // what was compiled
  std::string co_filename;
  int64_t co_firstlineno = 0;
  int64_t cache_size = 0;              // entries of the function before this one
  int64_t accumulated_cache_size = 0;  // captures of the function before this one
  std::optional<int64_t> guard_count;
  std::optional<int64_t> shape_env_guard_count;
  std::optional<int64_t> graph_op_count;
  std::optional<int64_t> graph_node_count;
  std::optional<int64_t> graph_input_count;
  double start_time = 0;  // since 1970, in seconds
  std::optional<double> entire_frame_compile_time_s;
  std::optional<double> backend_compile_time_s;
  std::optional<std::string> fail_type, fail_reason;
  std::optional<std::string> fail_user_frame_filename;
  std::optional<int64_t> fail_user_frame_lineno;
  std::set<std::string> restart_reasons;  // the graph break at which this capture ended
  double dynamo_time_before_restart_s = 0;
  std::string graph_node_shapes;
  bool has_guarded_code = false;
  bool config_suppress_errors = false;
  bool specialize_float = false;
  std::string dynamo_config;  // the options, as JSON
  bool is_forward = true;     // false: the record of a backward pass, with the identity of the forward's
  std::optional<int64_t> backward_cumulative_compile_time_us;
  bool is_runtime = false;
  int64_t start_time_us = 0, end_time_us = 0, duration_us = 0;
  std::optional<double> guard_latency_us;  // of the first check
  std::optional<std::string> recompile_reason;
  int64_t num_graph_breaks = 0;
  int64_t param_numel = 0, param_bytes = 0, param_count = 0;
  int64_t log_format_version = 3;
};

// Every field by its name, absent ones as None; sets as sorted lists.
std::vector<std::pair<std::string, Value>> fields(const CompilationMetrics& metrics);
std::string to_json(const CompilationMetrics& metrics);

void record_compilation_metrics(CompilationMetrics metrics);
std::vector<CompilationMetrics> get_compilation_metrics();  // the oldest first
void clear_compilation_metrics();
void set_compilation_metrics_limit(size_t limit);  // the oldest go

}  // namespace calque
