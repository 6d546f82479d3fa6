#include "compile/books.h"

#include <chrono>

#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/base/log.h"

namespace calque::compile_detail {

int64_t microseconds_now() {
  using namespace std::chrono;
  return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

std::string options_json(const CompileOptions& o) {
  nlohmann::ordered_json out;
  out["backend"] = o.with ? "a function" : o.backend;
  out["dynamic"] = o.dynamic ? nlohmann::ordered_json(*o.dynamic) : nlohmann::ordered_json();
  out["fullgraph"] = o.fullgraph;
  out["recompile_limit"] = o.recompile_limit;
  out["fail_on_recompile_limit_hit"] = o.fail_on_recompile_limit_hit;
  out["error_on_recompile"] = o.error_on_recompile;
  out["suppress_errors"] = o.suppress_errors;
  return out.dump();
}

std::string fail_type_of(const Error& error) {
  if (dynamic_cast<const UnsupportedError*>(&error)) return "Unsupported";
  if (dynamic_cast<const BackendCompilerError*>(&error)) return "BackendCompilerFailed";
  if (const auto* user = dynamic_cast<const UserError*>(&error)) {
    switch (user->kind()) {
      case ErrorKind::constraint_violation: return "ConstraintViolationError";
      case ErrorKind::data_dependent: return "UserError: data_dependent";
      case ErrorKind::unsupported_operator: return "UserError: unsupported_operator";
      case ErrorKind::invalid_input: return "UserError";
      case ErrorKind::bad_file: return "UserError: bad_file";
    }
  }
  return "InternalError";
}

void write_guards_log(const Guards& guards, const CompilationMetrics& metrics) {
  if (!log_enabled(Log::guards)) return;
  std::string text = "GUARDS of " + metrics.co_name + " [" + metrics.compile_id + "]:";
  for (const std::string& g : guards.texts()) text += "\n| " + g;
  write_log(Log::guards, text);
}

}  // namespace calque::compile_detail
