// What is behind a Compiled: the function, its entries (guards with the parts that serve), and the books on them. Entries are added
// under a lock and read by any number of threads; an entry's parts form a tree, with a branch for each answer to a question.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "calque/compile/metrics.h"
#include "compile/segments.h"

namespace calque::compile_detail {

// A part with what runs it, and what follows. `built`, `answers` and `skip_reason_` are read and written under the function's locks; the
// rest is as it was made, but for `wanted`, `gives_all` and `results`, which captures alone touch.
struct Step {
  struct Built {
    Part part;
    CompiledGraph graph;
    bool has_calls = false;
    std::optional<std::vector<size_t>> places;  // of what it takes among the call's inputs, where it takes nothing else
  };
  std::shared_ptr<const Captured> source;                             // whose last part it is
  std::optional<Guards> guards;                                       // of that capture; the first part's are the entry's
  SeenInputs seen;                                                    // what was known of the inputs when it was captured
  SeenInputs results;                                                 // of the disabled function that ends it, by name
  Part whole;                                                         // gives every value that it computes
  std::set<std::string> values;                                       // their names
  std::vector<std::string> needs;                                     // of earlier parts
  std::set<std::string> wanted;                                       // by later parts
  bool gives_all = false;                                             // something is written on the way: it cannot run twice
  std::shared_ptr<const Built> built;                                 // null until it is known what it has to give
  std::vector<std::pair<DataAnswer, std::shared_ptr<Step>>> answers;  // what follows
  bool is_end() const { return !source->open; }
};

struct Entry {
  explicit Entry(Guards::Parts parts) : guards(std::move(parts)) {}
  Guards guards;
  std::shared_ptr<Step> first;
  std::atomic<uint32_t> verifications = 0;
};

// Values of a call by the names of the nodes that compute them.
using Bindings = std::unordered_map<std::string, Value>;

class Function {
 public:
  Function(Callee callee, std::shared_ptr<Module> root, std::vector<std::string> names, CompileOptions options,
           std::source_location where);
  ~Function();
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;

  Value call(const Values& args, const Kwargs& kwargs);
  void reset();
  void guard_on(std::string name, std::function<Value()> value);

  size_t cache_size() const;
  std::vector<std::string> guards(size_t entry) const;
  std::vector<std::shared_ptr<GraphModule>> graphs() const;
  std::vector<GraphBreak> graph_breaks() const;
  std::vector<std::string> reasons() const;
  bool serves(const Values& args, const Kwargs& kwargs) const;
  std::vector<std::string> failures(const Values& args, const Kwargs& kwargs) const;

 private:
  using Entries = std::vector<std::shared_ptr<Entry>>;
  struct Run;

  std::shared_ptr<const Entries> entries() const;
  Value eager(const Call& call) const { return callee_(call.args, call.kwargs); }
  Value miss(const Call& call, const Entries& before);
  std::string failed_reasons(const Call& call, const Entries& list);
  std::shared_ptr<Entry> add_entry(const Call& call, const std::string& why);
  void skip(const UserError& why);
  bool fix_symbols();
  Value run_uncaptured(const Call& call);
  [[noreturn]] void give_up(Run& run, const UserError& why);
  void drop(const Entry& entry);
  // A capture with its books: what it found, or why it failed, is recorded once.
  void with_books(const std::string& why, const std::function<void(CompilationMetrics&)>& body);
  Captured captured(CaptureRequest request, const Call& call, CompilationMetrics& metrics) const;
  CaptureRequest request(const SeenInputs& seen) const;
  void ask(Run& run, const Question& question, const Values& results);
  void note_break(const Question& question, CompilationMetrics& metrics);
  CompilationMetrics new_metrics() const;
  void set_up(Step& step, const std::vector<std::shared_ptr<Step>>& before, CompilationMetrics* metrics);
  void build(Step& step, CompilationMetrics* metrics);
  void rebuild_if_needed(Step& step, CompilationMetrics* metrics);
  Value serve(Entry& entry, const Call& call, const GuardedCall& found);
  std::shared_ptr<const Step::Built> current(Step& step);
  Values run_step(Step& step, Bindings& bindings, bool whole = false);
  std::shared_ptr<Step> next_step(Run& run);
  std::shared_ptr<Step> make_step(Run& run);
  Value finish(const Step& step, Values results) const;
  void verify(Entry& entry, const Call& call);
  std::vector<std::pair<std::string, Value>> guarded_values() const;

  const Callee callee_;
  const std::shared_ptr<Module> root_;
  const std::vector<std::string> names_;
  const CompileOptions options_;
  const std::source_location where_;
  const Backend backend_;
  const uint64_t number_;

  mutable std::shared_mutex mutex_;     // of the list of entries and the books
  std::recursive_mutex compile_mutex_;  // of captures, steps and their compiled graphs
  std::shared_ptr<const Entries> entries_;
  SeenInputs seen_;
  bool fixed_numbers_ = false;  // it takes plain numbers: they cannot be symbols
  bool fixed_sizes_ = false;    // it asks for plain sizes, likewise
  uint64_t captures_ = 0;
  std::atomic<bool> limit_hit_ = false;
  std::string skip_reason_;  // why it cannot be captured at all
  std::vector<GraphBreak> breaks_;
  std::vector<std::string> reasons_;
  std::vector<std::pair<std::string, std::function<Value()>>> guarded_;
};

// The sizes of a graph's inputs, as logs and metrics have them.
std::string sizes_text(const GraphModule& module);

// Of the process: how many functions there were, and why something was captured again.
uint64_t next_function_number();
void note_recompile(const std::string& text);

}  // namespace calque::compile_detail
