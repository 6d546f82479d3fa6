// What happened to an environment's knowledge, and why: kept as events, printed when somebody asks.
#include <algorithm>

#include "calque/sym/expr.h"
#include "sym/env_impl.h"

namespace calque {

std::string str(ValueRange r) {
  return "[" + (r.lower == ValueRange::unbounded_below ? "-inf" : std::to_string(r.lower)) + ", " +
         (r.upper == ValueRange::unbounded_above ? "inf" : std::to_string(r.upper)) + "]";
}

std::string GuardOrigin::str() const {
  std::string out = operator_name;
  if (!module_path.empty()) out += (out.empty() ? "in " : " in ") + module_path;
  if (where.line() != 0) {
    const std::string_view file = where.file_name();
    const std::string_view name = file.substr(file.find_last_of('/') + 1);
    out += (out.empty() ? "at " : ", at ") + std::string(name) + ":" + std::to_string(where.line());
  }
  return out;
}

void ShapeEnv::Impl::note(Event event) {
  if (!options.keep_log) return;
  events.push_back({std::make_unique<const Event>(std::move(event))});
}

void ShapeEnv::Impl::note_shared(const Expr* symbol, size_t source, int64_t example) {
  if (options.keep_log) events.push_back({nullptr, symbol, source, example});
}

void ShapeEnv::Impl::note_static(const Source& source, int64_t example) {
  if (!options.keep_log) return;
  events.push_back({nullptr, nullptr, static_sizes.size(), example});
  static_sizes.push_back(source);
}

void ShapeEnv::Impl::narrowed(size_t symbol, ValueRange before) {
  const ValueRange now = knowledge.symbols()[symbol].range;
  const std::string why = learning != nullptr ? origin_at(asked_at).str() : "";
  if (learning != nullptr) {
    if (now.lower != before.lower) causes[symbol].lower = why;
    if (now.upper != before.upper) causes[symbol].upper = why;
  }
  const bool is_new = before == ValueRange{} && learning == nullptr;
  if (!is_new)
    note({.kind = LogRecord::Kind::range,
          .subject = knowledge.node(symbol),
          .cause = learning,
          .range = now,
          .text = {},
          .origin = origin_at(learning != nullptr ? asked_at : std::source_location{})});
}

void ShapeEnv::Impl::replaced(size_t symbol, const Expr* target) {
  const bool is_number = target->is_integer() || target->kind() == ExprKind::float_number;
  if (learning != nullptr) causes[symbol].replaced = origin_at(asked_at).str();
  note({.kind = is_number ? LogRecord::Kind::specialization : LogRecord::Kind::replacement,
        .subject = knowledge.node(symbol),
        .target = target,
        .cause = learning,
        .range = {},
        .text = {},
        .origin = origin_at(learning != nullptr ? asked_at : std::source_location{})});
}

std::vector<LogRecord> ShapeEnv::log() const {
  std::vector<LogRecord> out;
  for (const Impl::Logged& logged : impl_->events) {
    if (!logged.detail) {
      const bool shared = logged.symbol != nullptr;
      const Source& source =
          shared ? impl_->sources.at(logged.symbol->symbol_index())[logged.source] : impl_->static_sizes[logged.source];
      out.push_back({shared ? LogRecord::Kind::shared_symbol : LogRecord::Kind::static_size,
                     shared ? logged.symbol->str() : "",
                     std::to_string(logged.example),
                     source.described(),
                     "",
                     {}});
      continue;
    }
    const Impl::Event& e = *logged.detail;
    LogRecord r{e.kind, e.subject == nullptr ? "" : e.subject->str(), "", "", "", e.origin};
    if (e.cause != nullptr) r.cause = e.cause->str();
    switch (e.kind) {
      case LogRecord::Kind::symbol: {
        const Symbol& s = impl_->knowledge.symbols()[e.subject->symbol_index()];
        r.description = s.origin;
        if (s.hint) r.detail = "example " + std::to_string(*s.hint);
        if (s.float_hint) r.detail = "example " + std::to_string(*s.float_hint);
        if (!s.is_float) r.detail += (r.detail.empty() ? "range " : ", range ") + str(e.range);
        break;
      }
      case LogRecord::Kind::shared_symbol:
      case LogRecord::Kind::static_size:
        r.description = e.text;
        r.detail = std::to_string(e.number);
        break;
      case LogRecord::Kind::assumption: r.detail = e.number != 0 ? "True" : "False"; break;
      case LogRecord::Kind::range: r.detail = str(e.range); break;
      case LogRecord::Kind::replacement:
      case LogRecord::Kind::specialization: r.detail = e.target->str(); break;
      case LogRecord::Kind::guard:
      case LogRecord::Kind::late_guard:
      case LogRecord::Kind::suppressed_guard:
      case LogRecord::Kind::runtime_assert: break;
    }
    out.push_back(std::move(r));
  }
  return out;
}

std::string LogRecord::str() const {
  const std::string place = origin.str();
  const std::string asked = place.empty() ? "" : "  (" + place + ")";
  const std::string because = cause.empty() ? "" : ", because " + cause;
  switch (kind) {
    case Kind::symbol:
      return subject + " = " + (description.empty() ? "a value from tensor data" : description) + ": " + detail;
    case Kind::shared_symbol: return description + " shares " + subject + ": its example is " + detail + " as well";
    case Kind::static_size: return description + " is the plain integer " + detail + ": sizes 0 and 1 are specialised";
    case Kind::guard: return "guard " + subject + asked;
    case Kind::late_guard: return "guard " + subject + ", taken after the environment was frozen" + asked;
    case Kind::suppressed_guard: return "not recorded: " + subject + asked;
    case Kind::runtime_assert: return "checked at run time: " + subject + asked;
    case Kind::assumption: return "assumed " + subject + " to be " + detail + ", without a check" + asked;
    case Kind::range: return subject + " is in " + detail + because + asked;
    case Kind::replacement: return subject + " stands for " + detail + because + asked;
    case Kind::specialization: return subject + " is specialised to " + detail + because + asked;
  }
  return subject;
}

std::string ShapeEnv::explain() const {
  std::string out;
  for (const LogRecord& r : log()) out += r.str() + "\n";
  return out;
}

}  // namespace calque
