// One rendering of a template: runs its statements, computes its expressions, and answers the calls of filters and tests, which
// are in filters.cpp, sequence_filters.cpp and tests.cpp.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/syntax.h"
#include "text/jinja/value.h"

namespace calque::jinja {

// The variables of a part of the template; what is not found here is looked for in the part around it.
struct Scope {
  explicit Scope(std::shared_ptr<Scope> around) : parent(std::move(around)) {}
  const Value* find(std::string_view name) const;
  void set(std::string_view name, Value value);  // `name` outlives the rendering
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string_view, Value>> variables;
};
using ScopePtr = std::shared_ptr<Scope>;

// What raise_exception throws: the template's own words.
class RaisedByTemplate : public UserError {
 public:
  using UserError::UserError;
};

class Render {
 public:
  Render(Budget& budget, std::chrono::system_clock::time_point now);
  ~Render();
  Render(const Render&) = delete;
  Render& operator=(const Render&) = delete;

  std::string run(const std::vector<NodePtr>& body, const std::vector<std::pair<std::string, Value>>& variables);

  Budget& budget() { return budget_; }
  Value text(std::string bytes) { return make_text(budget_, std::move(bytes)); }
  Value undefined(std::string message) { return make_undefined(budget_, std::move(message)); }
  Value call(const Value& function, const Arguments& arguments);
  Value filter(const std::string& name, const Value& input, const Arguments& arguments);
  bool test(const std::string& name, const Value& value, const Arguments& arguments);
  Value make_names();
  void keep(const Value& loop);
  void set_member(const Value& names, const std::string& member, const Value& value);
  std::chrono::system_clock::time_point now() const { return now_; }
  uint32_t line() const { return line_; }  // of what runs

 private:
  enum class Flow : uint8_t { on, leave, next };
  class Depth;

  Flow run(const std::vector<NodePtr>& body, const ScopePtr& scope);
  Flow run(const Node& node, const ScopePtr& scope);
  void print(const Node& node, const ScopePtr& scope);
  void print(std::string_view text);
  Flow run_loop(const Node& node, const ScopePtr& scope);
  void run_items(const Node& node, const ScopePtr& scope, const Value& iterable, int64_t depth0);
  Flow run_branch(const Node& node, const ScopePtr& scope);
  std::string captured(const std::vector<NodePtr>& body, const ScopePtr& scope, Flow* flow = nullptr);
  Value macro(const Node& node, const ScopePtr& scope, size_t first_parameter);
  std::string run_macro(const Node& node, const ScopePtr& around, size_t first_parameter, const Arguments& given);
  void assign(const Node& target, const Value& value, const ScopePtr& scope);

  Value value_of(const Node& node, const ScopePtr& scope);
  Value constant(const Node& node);
  Value variable(const Node& node, const ScopePtr& scope);
  Value compare_all(const Node& node, const ScopePtr& scope);
  Value concat(const Node& node, const ScopePtr& scope);
  Value collection(const Node& node, const ScopePtr& scope);
  Value filtered(const Node& node, const ScopePtr& scope, const Value* input);
  Arguments arguments_of(const Node& node, const ScopePtr& scope);
  Value optional_value(const NodePtr& node, const ScopePtr& scope) { return node ? value_of(*node, scope) : Value(); }

  Budget& budget_;
  std::chrono::system_clock::time_point now_;
  Builder* out_ = nullptr;
  int depth_ = 0;
  uint32_t line_ = 1;
  // What can hold itself: emptied at the end.
  std::vector<ScopePtr> kept_scopes_;
  std::vector<std::shared_ptr<Names>> kept_names_;
  std::vector<Value> kept_loops_;
};

// The functions of a template: range, dict, namespace, raise_exception, ...
void add_globals(Render& render, Scope& scope);

using FilterFunction = Value (*)(Render&, const Value& input, const Arguments&);
using TestFunction = bool (*)(Render&, const Value& value, const Arguments&);
FilterFunction find_text_filter(std::string_view name);      // filters.cpp
FilterFunction find_sequence_filter(std::string_view name);  // sequence_filters.cpp
TestFunction find_test(std::string_view name);               // tests.cpp

}  // namespace calque::jinja
