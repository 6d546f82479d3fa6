#include "text/jinja/render.h"

#include <algorithm>

#include "text/jinja/python_text.h"

namespace calque::jinja {
namespace {

constexpr int deepest_call = 1000;

}  // namespace

// ---- variables --------------------------------------------------------------------------------------------------------

const Value* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope; scope = scope->parent.get())
    for (const auto& [known, value] : scope->variables)
      if (known == name) return &value;
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  for (auto& [known, old] : variables)
    if (known == name) {
      old = std::move(value);
      return;
    }
  variables.emplace_back(name, std::move(value));
}

class Render::Depth {
 public:
  explicit Depth(Render& render) : render_(render) {
    if (++render_.depth_ > deepest_call) {
      --render_.depth_;
      fail("the template calls itself too deeply (maximum recursion depth exceeded)");
    }
    render_.budget_.spend(1);
  }
  ~Depth() { --render_.depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  Render& render_;
};

Render::Render(Budget& budget, std::chrono::system_clock::time_point now) : budget_(budget), now_(now) {}

Render::~Render() {
  for (const ScopePtr& scope : kept_scopes_) scope->variables.clear();
  for (const auto& names : kept_names_) names->values.clear();
  for (const Value& loop : kept_loops_) loop.loop().changed.reset();
}

void Render::keep(const Value& loop) {
  budget_.take(sizeof(Value));
  kept_loops_.push_back(loop);
}

Value Render::make_names() {
  kept_names_.push_back(std::make_shared<Names>(budget_));
  return {Kind::names, kept_names_.back()};
}

std::string Render::run(const std::vector<NodePtr>& body, const std::vector<std::pair<std::string, Value>>& variables) {
  const auto globals = std::make_shared<Scope>(nullptr);
  add_globals(*this, *globals);
  const auto scope = std::make_shared<Scope>(globals);
  kept_scopes_.push_back(scope);
  for (const auto& [name, value] : variables) scope->set(name, value);
  Builder out(budget_);
  out_ = &out;
  run(body, std::make_shared<Scope>(scope));
  budget_.check_output(out.size());
  return out.take();
}

// ---- statements -------------------------------------------------------------------------------------------------------

Render::Flow Render::run(const std::vector<NodePtr>& body, const ScopePtr& scope) {
  for (const NodePtr& node : body)
    if (const Flow flow = run(*node, scope); flow != Flow::on) return flow;
  return Flow::on;
}

void Render::print(std::string_view text) {
  *out_ += text;
  budget_.check_output(out_->size());
}

void Render::print(const Node& node, const ScopePtr& scope) {
  for (const NodePtr& child : node.children) {
    const Value value = value_of(*child, scope);
    if (value.is(Kind::text))
      print(value.text().bytes);
    else
      print(str(budget_, value));
  }
}

Render::Flow Render::run(const Node& node, const ScopePtr& scope) {
  const Depth depth(*this);
  line_ = node.line;
  switch (node.kind) {
    case NodeKind::data: print(std::get<std::string>(node.constant)); return Flow::on;
    case NodeKind::print: print(node, scope); return Flow::on;
    case NodeKind::loop: return run_loop(node, scope);
    case NodeKind::branch: return run_branch(node, scope);
    case NodeKind::assign: assign(*node.children[0], value_of(*node.children[1], scope), scope); return Flow::on;
    case NodeKind::assign_block: {
      const auto inner = std::make_shared<Scope>(scope);
      Flow flow = Flow::on;
      Value value = text(captured(node.body, inner, &flow));
      if (flow != Flow::on) return flow;
      if (node.children[1]) value = filtered(*node.children[1], inner, &value);
      assign(*node.children[0], value, scope);
      return Flow::on;
    }
    case NodeKind::macro: scope->set(node.name, macro(node, scope, 0)); return Flow::on;
    case NodeKind::call_block: {
      const Value caller = macro(node, scope, 1);
      const Node& called = *node.children[0];
      const Value function = value_of(*called.children[0], scope);
      Arguments arguments = arguments_of(called, scope);
      arguments.named.emplace_back("caller", caller);
      print(str(budget_, call(function, arguments)));
      return Flow::on;
    }
    case NodeKind::filter_block: {
      const auto inner = std::make_shared<Scope>(scope);
      Flow flow = Flow::on;
      const Value value = text(captured(node.body, inner, &flow));
      if (flow != Flow::on) return flow;
      print(str(budget_, filtered(*node.children[0], inner, &value)));
      return Flow::on;
    }
    case NodeKind::with: {
      const auto inner = std::make_shared<Scope>(scope);
      for (size_t i = 0; i < node.children.size(); i += 2)
        assign(*node.children[i], value_of(*node.children[i + 1], scope), inner);
      return run(node.body, inner);
    }
    case NodeKind::scope: return run(node.body, std::make_shared<Scope>(scope));
    case NodeKind::leave: return Flow::leave;
    case NodeKind::next: return Flow::next;
    case NodeKind::refused: fail("{% " + node.name + " %} needs another template, and a chat template has no others");
    case NodeKind::constant:
    case NodeKind::name:
    case NodeKind::member:
    case NodeKind::attribute:
    case NodeKind::item:
    case NodeKind::slice:
    case NodeKind::call:
    case NodeKind::filter:
    case NodeKind::test:
    case NodeKind::binary:
    case NodeKind::negative:
    case NodeKind::positive:
    case NodeKind::invert:
    case NodeKind::comparison:
    case NodeKind::both:
    case NodeKind::either:
    case NodeKind::conditional:
    case NodeKind::concat:
    case NodeKind::list:
    case NodeKind::tuple:
    case NodeKind::dict: break;
  }
  throw InternalError("an expression stands where a statement should");
}

std::string Render::captured(const std::vector<NodePtr>& body, const ScopePtr& scope, Flow* flow) {
  Builder text(budget_);
  Builder* const before = out_;
  out_ = &text;
  const Flow ended = run(body, scope);
  out_ = before;
  if (flow) *flow = ended;
  return text.take();
}

Render::Flow Render::run_branch(const Node& node, const ScopePtr& scope) {
  if (truth(value_of(*node.children[0], scope))) return run(node.body, scope);
  for (const NodePtr& other : node.arguments) {
    line_ = other->line;
    if (truth(value_of(*other->children[0], scope))) return run(other->body, scope);
  }
  return run(node.otherwise, scope);
}

Render::Flow Render::run_loop(const Node& node, const ScopePtr& scope) {
  run_items(node, scope, value_of(*node.children[1], scope), 0);
  return Flow::on;
}

void Render::run_items(const Node& node, const ScopePtr& scope, const Value& iterable, int64_t depth0) {
  std::shared_ptr<Iterator> items = iterate(budget_, iterable);
  Value over = iterable;
  if (node.children[2]) {
    items = std::make_shared<Iterator>(budget_, [this, &node, scope, source = items](Value& item) {
      while (source->next(item)) {
        const auto inner = std::make_shared<Scope>(scope);
        assign(*node.children[0], item, inner);
        if (truth(value_of(*node.children[2], inner))) return true;
      }
      return false;
    });
    items->contains(iterable);
    over = Value(Kind::iterator, items);
  }
  const auto loop = std::make_shared<Loop>(budget_, over, items, depth0);
  if (node.recursive)
    loop->recurse = [&node, scope, depth0](Render& render, const Value& inner) {
      Builder out(render.budget_);
      Builder* const before = render.out_;
      render.out_ = &out;
      render.run_items(node, scope, inner, depth0 + 1);
      render.out_ = before;
      return render.text(out.take());
    };
  bool any = false;
  for (Value item; loop->advance(item);) {
    any = true;
    const Depth depth(*this);
    const auto inner = std::make_shared<Scope>(scope);
    inner->set("loop", Value(Kind::loop, loop));
    assign(*node.children[0], item, inner);
    if (run(node.body, inner) == Flow::leave) break;
  }
  if (!any) run(node.otherwise, std::make_shared<Scope>(scope));
}

void Render::assign(const Node& target, const Value& value, const ScopePtr& scope) {
  if (target.kind == NodeKind::name) {
    scope->set(target.name, value);
  } else if (target.kind == NodeKind::member) {
    const Value* found = scope->find(target.name);
    if (!found || !found->is(Kind::names)) fail("cannot assign attribute on non-namespace object");
    set_member(*found, target.member, value);
  } else {
    internal_assert(target.kind == NodeKind::tuple, "an expression is assigned to");
    const std::vector<Value> items = collect(budget_, value);
    const size_t wanted = target.children.size();
    if (items.size() < wanted)
      fail("not enough values to unpack (expected " + std::to_string(wanted) + ", got " + std::to_string(items.size()) +
           ")");
    if (items.size() > wanted) fail("too many values to unpack (expected " + std::to_string(wanted) + ")");
    for (size_t i = 0; i < wanted; ++i) assign(*target.children[i], items[i], scope);
  }
}

void Render::set_member(const Value& names, const std::string& member, const Value& value) {
  if (member.starts_with('_'))
    fail("Chat templates cannot store underscore-prefixed attributes on a namespace, but got " + repr_text(member) +
         ". Please rename the attribute.");
  names.names().set(member, value);
}

// ---- macros -----------------------------------------------------------------------------------------------------------

Value Render::macro(const Node& node, const ScopePtr& scope, size_t first_parameter) {
  budget_.take(256);
  kept_scopes_.push_back(scope);
  auto function =
      std::make_shared<Function>(budget_, node.name, [this, &node, scope, first_parameter](Render&, const Arguments& given) {
        return text(run_macro(node, scope, first_parameter, given));
      });
  function->shown = first_parameter == 0 ? "<Macro " + repr_text(node.name) + ">" : "<Macro anonymous>";
  return {Kind::function, std::move(function)};
}

std::string Render::run_macro(const Node& node, const ScopePtr& around, size_t first_parameter, const Arguments& given) {
  const Depth depth(*this);
  const auto scope = std::make_shared<Scope>(around);
  const size_t count = node.children.size() - first_parameter;
  const size_t without_default = count - node.arguments.size();
  std::vector<std::string_view> used;
  for (size_t i = 0; i < count; ++i) {
    const std::string& name = node.children[first_parameter + i]->name;
    if (i < given.positional.size()) {
      scope->set(name, given.positional[i]);
      continue;
    }
    used.push_back(name);
    if (const Value* named = given.find(name))
      scope->set(name, *named);
    else if (i >= without_default)
      scope->set(name, value_of(*node.arguments[i - without_default], scope));
    else
      scope->set(name, undefined("parameter '" + name + "' was not provided"));
  }
  if (node.takes_caller) {
    const Value* caller = given.find("caller");
    scope->set("caller", caller ? *caller : undefined("No caller defined"));
    used.push_back("caller");
  }
  auto rest = std::make_shared<Dict>(budget_);
  for (const auto& [name, value] : given.named)
    if (std::find(used.begin(), used.end(), name) == used.end()) rest->set(text(name), value);
  const std::string called = "macro " + (node.name.empty() ? std::string("None") : repr_text(node.name));
  if (node.takes_named)
    scope->set("kwargs", Value(Kind::dict, rest));
  else if (!rest->items.empty())
    type_error(called + " takes no keyword argument " + repr(budget_, rest->items[0].first));
  std::vector<Value> more;
  for (size_t i = count; i < given.positional.size(); ++i) more.push_back(given.positional[i]);
  if (node.takes_more)
    scope->set("varargs", make_tuple(budget_, std::move(more)));
  else if (!more.empty())
    type_error(called + " takes not more than " + std::to_string(count) + " argument(s)");
  return captured(node.body, scope);
}

// ---- expressions ------------------------------------------------------------------------------------------------------

Value Render::constant(const Node& node) {
  if (const auto* text = std::get_if<std::string>(&node.constant)) return make_text(budget_, *text);
  if (const auto* truth = std::get_if<bool>(&node.constant)) return Value(*truth);
  if (const auto* integer = std::get_if<int64_t>(&node.constant)) return Value(*integer);
  if (const auto* floating = std::get_if<double>(&node.constant)) return Value(*floating);
  return {};
}

Value Render::variable(const Node& node, const ScopePtr& scope) {
  if (const Value* found = scope->find(node.name)) return *found;
  return undefined("'" + node.name + "' is undefined");
}

Value Render::value_of(const Node& node, const ScopePtr& scope) {
  const Depth depth(*this);
  const auto child = [&](size_t i) { return value_of(*node.children[i], scope); };
  switch (node.kind) {
    case NodeKind::constant: return constant(node);
    case NodeKind::name: return variable(node, scope);
    case NodeKind::attribute: return get_attribute(budget_, child(0), node.name);
    case NodeKind::item: {
      const Value object = child(0);
      return get_item(budget_, object, child(1));
    }
    case NodeKind::slice: {
      const Value object = child(0), start = optional_value(node.children[1], scope);
      const Value stop = optional_value(node.children[2], scope);
      return get_slice(budget_, object, start, stop, optional_value(node.children[3], scope));
    }
    case NodeKind::call: {
      const Value function = child(0);
      return call(function, arguments_of(node, scope));
    }
    case NodeKind::filter: return filtered(node, scope, nullptr);
    case NodeKind::test: {
      const Value value = child(0);
      return Value(test(node.name, value, arguments_of(node, scope)));
    }
    case NodeKind::binary: {
      const Value left = child(0);
      return apply(budget_, node.op, left, child(1));
    }
    case NodeKind::negative: return negate(budget_, child(0));
    case NodeKind::positive: return plus(child(0));
    case NodeKind::invert: return Value(!truth(child(0)));
    case NodeKind::comparison: return compare_all(node, scope);
    case NodeKind::both: {
      Value left = child(0);
      return truth(left) ? child(1) : left;
    }
    case NodeKind::either: {
      Value left = child(0);
      return truth(left) ? left : child(1);
    }
    case NodeKind::conditional:
      if (truth(child(0))) return child(1);
      if (node.children[2]) return child(2);
      return undefined("the inline if-expression on line " + std::to_string(node.line) +
                       " evaluated to false and no else section was defined.");
    case NodeKind::concat: return concat(node, scope);
    case NodeKind::list:
    case NodeKind::tuple:
    case NodeKind::dict: return collection(node, scope);
    case NodeKind::member:
    case NodeKind::data:
    case NodeKind::print:
    case NodeKind::loop:
    case NodeKind::branch:
    case NodeKind::assign:
    case NodeKind::assign_block:
    case NodeKind::macro:
    case NodeKind::call_block:
    case NodeKind::filter_block:
    case NodeKind::with:
    case NodeKind::scope:
    case NodeKind::leave:
    case NodeKind::next:
    case NodeKind::refused: break;
  }
  throw InternalError("a statement stands where an expression should");
}

Value Render::compare_all(const Node& node, const ScopePtr& scope) {
  Value left = value_of(*node.children[0], scope);
  for (size_t i = 0; i < node.comparisons.size(); ++i) {
    Value right = value_of(*node.children[i + 1], scope);
    if (!compare(budget_, node.comparisons[i], left, right)) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Render::concat(const Node& node, const ScopePtr& scope) {
  Builder out(budget_);
  for (const NodePtr& part : node.children) out += str(budget_, value_of(*part, scope));
  return text(out.take());
}

Value Render::collection(const Node& node, const ScopePtr& scope) {
  if (node.kind == NodeKind::dict) {
    auto dict = std::make_shared<Dict>(budget_);
    for (size_t i = 0; i < node.children.size(); i += 2) {
      const Value key = value_of(*node.children[i], scope);
      dict->set(key, value_of(*node.children[i + 1], scope));
    }
    return {Kind::dict, std::move(dict)};
  }
  std::vector<Value> items;
  for (const NodePtr& item : node.children) items.push_back(value_of(*item, scope));
  return node.kind == NodeKind::list ? make_list(budget_, std::move(items)) : make_tuple(budget_, std::move(items));
}

Arguments Render::arguments_of(const Node& node, const ScopePtr& scope) {
  Arguments out;
  for (const NodePtr& argument : node.arguments) out.positional.push_back(value_of(*argument, scope));
  if (node.star)
    for (Value& value : collect(budget_, value_of(*node.star, scope))) out.positional.push_back(std::move(value));
  for (const auto& [name, value] : node.named) out.named.emplace_back(name, value_of(*value, scope));
  if (node.star_star) {
    const Value more = value_of(*node.star_star, scope);
    if (!more.is(Kind::dict)) type_error(std::string("argument after ** must be a mapping, not ") + type_name(more));
    for (const auto& [key, value] : more.dict().items) {
      if (!key.is(Kind::text)) type_error("keywords must be strings");
      if (out.find(key.text().bytes)) type_error("got multiple values for keyword argument " + repr_text(key.text().bytes));
      out.named.emplace_back(key.text().bytes, value);
    }
  }
  return out;
}

// A chain of filters ends, in a filter block, at the text of the block.
Value Render::filtered(const Node& node, const ScopePtr& scope, const Value* input) {
  const Node* first = node.children[0].get();
  Value value;
  if (!first)
    value = *input;
  else if (input && first->kind == NodeKind::filter)
    value = filtered(*first, scope, input);
  else
    value = value_of(*first, scope);
  return filter(node.name, value, arguments_of(node, scope));
}

// ---- calls ------------------------------------------------------------------------------------------------------------

Value Render::call(const Value& function, const Arguments& arguments) {
  const Depth depth(*this);
  if (function.is(Kind::undefined)) undefined_error(function);
  if (function.is(Kind::function)) {
    // A namespace may let go of it meanwhile. NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
    const Value keep = function;
    return keep.function().call(*this, arguments);
  }
  if (function.is(Kind::loop)) {
    const Bound given("loop", arguments, {"iterable"}, 1);
    if (!function.loop().recurse) type_error("The loop must have the 'recursive' marker to be called recursively.");
    return function.loop().recurse(*this, *given[0]);
  }
  type_error(std::string("'") + type_name(function) + "' object is not callable");
}

Value Render::filter(const std::string& name, const Value& input, const Arguments& arguments) {
  const Depth depth(*this);
  FilterFunction found = find_text_filter(name);
  if (!found) found = find_sequence_filter(name);
  if (!found) fail("No filter named " + repr_text(name) + " found.");
  return found(*this, input, arguments);
}

bool Render::test(const std::string& name, const Value& value, const Arguments& arguments) {
  const Depth depth(*this);
  const TestFunction found = find_test(name);
  if (!found) fail("No test named " + repr_text(name) + " found.");
  return found(*this, value, arguments);
}

bool is_known_filter(std::string_view name) { return find_text_filter(name) || find_sequence_filter(name); }
bool is_known_test(std::string_view name) { return find_test(name) != nullptr; }

}  // namespace calque::jinja
