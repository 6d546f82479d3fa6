#include "calque/compile/metrics.h"

#include <deque>
#include <mutex>

#include <nlohmann/json.hpp>

#include "calque/base/log.h"

namespace calque {
namespace {

struct Kept {
  std::mutex mutex;
  std::deque<CompilationMetrics> records;
  size_t limit = 64;
};

Kept& kept() {
  static Kept k;
  return k;
}

template <class T>
Value optional_value(const std::optional<T>& v) {
  return v ? Value(*v) : Value();
}

nlohmann::ordered_json json_of(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::boolean: return v.to_bool();
    case Value::Kind::integer: return v.to_int();
    case Value::Kind::floating: return v.to_float();
    case Value::Kind::string: return v.to_string();
    case Value::Kind::list: {
      auto out = nlohmann::ordered_json::array();
      for (const Value& item : v.to_items()) out.push_back(json_of(item));
      return out;
    }
    case Value::Kind::none:
    case Value::Kind::complex:
    case Value::Kind::slice:
    case Value::Kind::tensor:
    case Value::Kind::dtype:
    case Value::Kind::device:
    case Value::Kind::layout:
    case Value::Kind::memory_format:
    case Value::Kind::generator:
    case Value::Kind::node:
    case Value::Kind::tuple:
    case Value::Kind::dict:
    case Value::Kind::structure: return nullptr;
  }
  return nullptr;
}

}  // namespace

std::vector<std::pair<std::string, Value>> fields(const CompilationMetrics& m) {
  Values reasons;
  for (const std::string& reason : m.restart_reasons) reasons.emplace_back(reason);
  return {
      {"compile_id", m.compile_id},
      {"frame_key", m.frame_key},
      {"co_name", m.co_name},
      {"co_filename", m.co_filename},
      {"co_firstlineno", m.co_firstlineno},
      {"cache_size", m.cache_size},
      {"accumulated_cache_size", m.accumulated_cache_size},
      {"guard_count", optional_value(m.guard_count)},
      {"shape_env_guard_count", optional_value(m.shape_env_guard_count)},
      {"graph_op_count", optional_value(m.graph_op_count)},
      {"graph_node_count", optional_value(m.graph_node_count)},
      {"graph_input_count", optional_value(m.graph_input_count)},
      {"start_time", m.start_time},
      {"entire_frame_compile_time_s", optional_value(m.entire_frame_compile_time_s)},
      {"backend_compile_time_s", optional_value(m.backend_compile_time_s)},
      {"fail_type", optional_value(m.fail_type)},
      {"fail_reason", optional_value(m.fail_reason)},
      {"fail_user_frame_filename", optional_value(m.fail_user_frame_filename)},
      {"fail_user_frame_lineno", optional_value(m.fail_user_frame_lineno)},
      {"restart_reasons", list(std::move(reasons))},
      {"dynamo_time_before_restart_s", m.dynamo_time_before_restart_s},
      {"graph_node_shapes", m.graph_node_shapes},
      {"has_guarded_code", m.has_guarded_code},
      {"config_suppress_errors", m.config_suppress_errors},
      {"specialize_float", m.specialize_float},
      {"dynamo_config", m.dynamo_config},
      {"is_forward", m.is_forward},
      {"backward_cumulative_compile_time_us", optional_value(m.backward_cumulative_compile_time_us)},
      {"is_runtime", m.is_runtime},
      {"start_time_us", m.start_time_us},
      {"end_time_us", m.end_time_us},
      {"duration_us", m.duration_us},
      {"guard_latency_us", optional_value(m.guard_latency_us)},
      {"recompile_reason", optional_value(m.recompile_reason)},
      {"num_graph_breaks", m.num_graph_breaks},
      {"param_numel", m.param_numel},
      {"param_bytes", m.param_bytes},
      {"param_count", m.param_count},
      {"log_format_version", m.log_format_version},
  };
}

std::string to_json(const CompilationMetrics& metrics) {
  nlohmann::ordered_json out;
  for (const auto& [name, value] : fields(metrics)) out[name] = json_of(value);
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void record_compilation_metrics(CompilationMetrics metrics) {
  if (log_enabled(Log::metrics)) write_log(Log::metrics, to_json(metrics));
  const std::lock_guard lock(kept().mutex);
  kept().records.push_back(std::move(metrics));
  while (kept().records.size() > kept().limit) kept().records.pop_front();
}

std::vector<CompilationMetrics> get_compilation_metrics() {
  const std::lock_guard lock(kept().mutex);
  return {kept().records.begin(), kept().records.end()};
}

void clear_compilation_metrics() {
  const std::lock_guard lock(kept().mutex);
  kept().records.clear();
}

void set_compilation_metrics_limit(size_t limit) {
  const std::lock_guard lock(kept().mutex);
  kept().limit = limit;
  while (kept().records.size() > limit) kept().records.pop_front();
}

}  // namespace calque
