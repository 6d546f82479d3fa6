// The private half of ShapeEnv, and how the operators of SymInt reach it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "calque/sym/shape_env.h"
#include "calque/sym/source.h"
#include "sym/expr_pool.h"
#include "sym/knowledge.h"

namespace calque {

class DataAnswers;

// The line of user code behind a question: a rule's own line says little to the user.
std::source_location user_line(std::source_location where);

struct ShapeEnv::Impl final : KnowledgeListener {
  Impl(ShapeEnv* env, ShapeEnvOptions given) : options(given), pool(env), knowledge(pool) {
    pool.set_knowledge(&knowledge);
    knowledge.set_listener(this);
    knowledge.set_simple_replacements_only(options.prefer_deferred_runtime_asserts);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() = default;

  const Expr* expr(SymInt value);  // a node of this environment, symbols replaced
  const Expr* expr(SymBool value);
  const Expr* expr(SymFloat value);
  SymInt declare(std::string name, std::optional<int64_t> hint, ValueRange range, std::string origin, bool unbacked,
                 bool positive);
  SymFloat declare_float(std::string name, std::optional<double> hint, std::string origin, bool unbacked);
  std::string fresh_name(const char* prefix, size_t& next);
  std::string name_after(const Source& source);  // PyTorch's name for a size from there
  std::optional<Number> hint_of(const Expr* e);
  bool guard(const Expr* boolean, std::source_location where, bool size_oblivious = false);
  bool guard_or(const Expr* boolean, bool otherwise, std::source_location where);
  bool expect_true(const Expr* boolean, std::source_location where);
  int64_t specialize(const Expr* integer, std::source_location where);
  double specialize_float(const Expr* real, std::source_location where);
  void record(const Expr* holds, std::source_location where, bool size_oblivious = false);
  void defer(const Expr* holds, std::source_location where, const Expr* canonical = nullptr);
  void learn(const Expr* holds);
  [[noreturn]] void throw_data_dependent(const Expr* e, std::source_location where);
  // What somebody says that a number out of a tensor is, learnt; none where nobody says it.
  std::optional<Number> answered(const Expr* e, std::source_location where);

  void narrowed(size_t symbol, ValueRange before) override;
  void replaced(size_t symbol, const Expr* target) override;

  // The last products and comparisons, by their operands as they were given: a program asks for the same ones layer by
  // layer. An answer holds for the state of knowledge that it was found in.
  struct Asked {
    int64_t a = 0;
    int64_t b = 0;
    uint32_t epoch = 0;
    ExprKind kind = ExprKind::integer;
    const Expr* result = nullptr;
  };
  template <class F>
  const Expr* answer(ExprKind kind, SymInt a, SymInt b, F&& compute) {
    if (asked.empty()) asked.resize(128);
    const uint64_t key =
        (static_cast<uint64_t>(a.word()) + 3 * static_cast<uint64_t>(b.word()) + static_cast<uint64_t>(kind)) *
        0x9e3779b97f4a7c15ULL;
    Asked& last = asked[key >> 57];
    if (last.a == a.word() && last.b == b.word() && last.kind == kind && last.epoch == knowledge.epoch()) return last.result;
    const Expr* result = compute(expr(a), expr(b));
    last = {a.word(), b.word(), knowledge.epoch(), kind, result};
    return result;
  }

  // log() makes its records of these when somebody asks. Most of them are of inputs' sizes; they are kept small, and the rest of
  // an event is allocated apart.
  struct Event {
    LogRecord::Kind kind;
    const Expr* subject = nullptr;
    const Expr* target = nullptr;
    const Expr* cause = nullptr;
    ValueRange range = {};
    int64_t number = 0;
    std::string text = {};
    GuardOrigin origin = {};
  };
  struct Logged {
    std::unique_ptr<const Event> detail;
    // Without a detail the event is of an input's size. It shares `symbol`, and `source` is its place among the symbol's sources;
    // or, when `symbol` is null, it became a plain number, and `source` is its place in static_sizes.
    const Expr* symbol = nullptr;
    size_t source = 0;
    int64_t example = 0;
  };
  void note(Event event);
  void note_shared(const Expr* symbol, size_t source, int64_t example);
  void note_static(const Source& source, int64_t example);

  // Where each bound of a symbol's range, and its replacement, came from.
  struct SymbolCauses {
    std::string lower, upper, replaced;
  };

  ShapeEnvOptions options;
  ExprPool pool;
  Knowledge knowledge;
  std::vector<Asked> asked;
  std::vector<Guard> guards;
  std::vector<SymBool> deferred_asserts;
  std::vector<RuntimeAssert> runtime_asserts;
  std::vector<Logged> events;
  std::vector<Source> static_sizes;
  std::unordered_map<size_t, SymbolCauses> causes;
  std::unordered_map<int64_t, size_t> by_example;  // duck shaping: example size to symbol
  std::unordered_map<std::string, size_t> by_name;
  std::map<size_t, std::vector<Source>> sources;                 // of each symbol, the first is the one that binds it
  std::vector<std::pair<std::string, std::string>> debug_names;  // of sources: what the user calls the dimension
  std::unordered_map<std::string, size_t> shape_ids;
  std::vector<size_t> pending_unbacked;
  std::unordered_map<size_t, size_t> unbacked_renamings;
  DataAnswers* answers = nullptr;
  const Expr* learning = nullptr;  // the condition being learnt
  std::source_location asked_at;   // for changes that a guard brings about
  size_t next_backed = 0;
  size_t next_unbacked = 0;
  size_t next_float = 0;
  size_t next_unbacked_float = 0;
  bool names_by_source = false;
  std::unordered_map<std::string, std::string> called;  // inputs whose symbols are named after another source
  bool defers_guards = false;
  bool frozen = false;
  bool error_on_new_guards = false;
};

// The environment that the given values have in common; a UserError if they come from different ones.
ShapeEnv::Impl& common_env(std::initializer_list<const Expr*> exprs);

GuardOrigin origin_at(std::source_location where);  // with the calling thread's operator and module

}  // namespace calque
