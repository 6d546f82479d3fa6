#include "compile/capture.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/grad/autograd.h"
#include "calque/op/tree.h"
#include "trace/recorder.h"

namespace calque::compile_detail {
namespace {

using Kind = Value::Kind;

// Leaves the function at a question that nobody has answered. No exception that a program would catch.
struct StopAtQuestion {};

std::string identifier(const std::string& source) {
  std::string out;
  for (const char c : source) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (letter)
      out += c;
    else if (!out.empty() && out.back() != '_')
      out += '_';
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  return out.starts_with("L_") ? out.substr(2) : out;
}

Source item_source(const Source& source, const Value& key) {
  if (key.kind() == Kind::integer) return source.item(key.to_int());
  return source.item(key.kind() == Kind::string ? key.to_string() : key.str());
}

// The arguments of a call on fake tensors, and what a guard has to know of them.
class InputMaker {
 public:
  InputMaker(const CaptureRequest& request, FakeMode& fake, Guards::Parts& guards)
      : request_(request), fake_(fake), guards_(guards) {
    if (request.root)
      for (const Module* m : request.root->modules())
        for (const auto* slots : {&m->parameter_slots(), &m->buffer_slots(), &m->constant_slots()})
          for (const auto& slot : *slots)
            if (slot->tensor.defined()) state_.insert(&slot->tensor.impl());
  }

  Value make(const Value& v, const Source& source) {
    if (++depth_ > TreeSpec::max_depth) throw UserError("compile: arguments are nested more than 500 deep");
    Value out = made(v, source);
    --depth_;
    return out;
  }
  void count(size_t items, Value names) { guards_.arguments.push_back({"args", Kind::none, std::move(names), items}); }
  // What the guards have made of the sizes.
  void settle() {
    const ShapeEnv& env = *fake_.env();
    const auto plain = [&](SymInt s) {
      const SymInt now = s.is_symbolic() ? env.simplify(s) : s;
      return now.is_symbolic() ? -1 : now.as_int();
    };
    for (const auto& [index, layout] : layouts_) {
      TensorGuard& g = guards_.tensors[index];
      for (const SymInt s : layout.sizes) g.sizes.push_back(plain(s));
      for (const SymInt s : layout.strides) g.strides.push_back(plain(s));
    }
  }

  bool fixed_numbers = false;  // of what is made now
  Values tensors, numbers;
  std::vector<size_t> tensor_indices;
  std::vector<std::string> tensor_names, number_names;
  std::vector<Placeholder> placeholders;
  std::vector<std::unique_ptr<SymbolicContext>> contexts;

 private:
  Value made(const Value& v, const Source& source) {
    if (v.is_tensor()) return tensor(v.to_tensor(), source);
    ArgumentGuard guard{source.name(), v.kind(), v};
    const size_t at = guards_.arguments.size();
    guards_.arguments.push_back(guard);
    const auto items_of = [&](const Values& items, const std::function<Source(size_t)>& place) {
      guards_.arguments[at].items = items.size();
      Values out;
      for (size_t i = 0; i < items.size(); ++i) out.push_back(make(items[i], place(i)));
      return out;
    };
    if (v.is_sequence()) {
      guards_.arguments[at].constant = Value();
      Values out = items_of(v.to_items(), [&](size_t i) { return source.item(static_cast<int64_t>(i)); });
      return v.kind() == Kind::list ? list(std::move(out)) : tuple(std::move(out));
    }
    if (v.kind() == Kind::dict) {
      DictValue out = v.to_dict();
      Values keys;
      guards_.arguments[at].items = out.items.size();
      for (const auto& [key, item] : out.items) keys.push_back(key);
      guards_.arguments[at].constant = list(std::move(keys));
      for (auto& [key, item] : out.items) item = make(item, item_source(source, key));
      return out;
    }
    if (v.kind() == Kind::structure) {
      StructValue out = v.to_struct();
      guards_.arguments[at].constant = out.type;
      const std::vector<std::string> names = out.fields;
      out.items = items_of(v.to_struct().items,
                           [&](size_t i) { return source.attribute(i < names.size() ? names[i] : std::to_string(i)); });
      return out;
    }
    if (v.kind() == Kind::integer || v.kind() == Kind::floating) return number(v, source, at);
    return v;
  }

  Value number(const Value& v, const Source& source, size_t at) {
    const SeenInput* seen = seen_at(source);
    const bool changed = !request_.dynamic && seen && seen->number_changed;
    const bool wanted = changed || (request_.dynamic == true && v.kind() == Kind::integer);
    const bool small = v.kind() == Kind::integer && (v.to_int() == 0 || v.to_int() == 1);
    if (!wanted || small || request_.fixed_numbers || fixed_numbers) return v;
    guards_.arguments[at].is_number = true;
    guards_.numbers.push_back(source.name());
    number_names.push_back(identifier(source.name()));
    if (v.kind() == Kind::integer) {
      const SymInt symbol = create_unspecified_symbol(*fake_.env(), v.to_int(), source, DimDynamic::dynamic_size);
      placeholders.push_back({source, symbol});
      numbers.emplace_back(symbol);
    } else {
      const SymFloat symbol = create_float_symbol(*fake_.env(), v.to_float(), source);
      placeholders.push_back({source, symbol});
      numbers.emplace_back(symbol);
    }
    return numbers.back();
  }

  Value tensor(const Tensor& t, const Source& source) {
    guards_.arguments.push_back({source.name(), Kind::tensor, Value()});
    const size_t index = guards_.tensors.size();
    TensorGuard guard;
    guard.source = source.name();
    guard.dtype = t.dtype();
    guard.device = t.device();
    guard.requires_grad = t.requires_grad();
    const auto same = originals_.find(&t.impl());
    const bool is_state = state_.contains(&t.impl());
    if (same != originals_.end()) guard.alias_of = static_cast<int>(same->second);
    if (is_state) guard.identity = &t.impl();
    if (const DynamicMarks* marks = marks_of(t))
      for (const auto& [dimension, range] : marks->dynamic) guard.marks.push_back(dimension);
    guards_.tensors.push_back(guard);
    if (same != originals_.end()) return fakes_.at(same->second);
    originals_.emplace(&t.impl(), index);
    if (is_state) {
      fakes_.emplace(index, t);
      return t;
    }
    contexts.push_back(std::make_unique<SymbolicContext>(context_for(t, source)));
    const Tensor fake = fake_.from_tensor(t, source, contexts.back().get());
    TensorGeometry layout{fake.impl().sizes, fake.impl().strides, fake.impl().offset};
    placeholders.push_back({source, layout, contexts.back().get()});
    layouts_.emplace_back(index, std::move(layout));
    fakes_.emplace(index, fake);
    tensors.emplace_back(fake);
    tensor_indices.push_back(index);
    tensor_names.push_back(identifier(source.name()));
    return fake;
  }

  SymbolicContext context_for(const Tensor& t, const Source& source) const {
    const SeenInput* seen = seen_at(source);
    const DynamicMarks* marks = marks_of(t);
    const auto rank = static_cast<size_t>(t.dim());
    SymbolicContext out;
    out.sizes.assign(rank, DimDynamic::static_size);
    out.constraint_sizes.resize(rank);
    for (size_t d = 0; d < rank; ++d) {
      const auto dimension = static_cast<int64_t>(d);
      if (marks && marks->static_dimensions.contains(dimension)) continue;
      if (marks && marks->dynamic.contains(dimension)) {
        const DynamicMarks::Range& range = marks->dynamic.at(dimension);
        out.sizes[d] = DimDynamic::dynamic_size;
        if (range.min || range.max)
          out.constraint_sizes[d] =
              StrictMinMaxConstraint{{range.min.value_or(0), range.max.value_or(ValueRange::unbounded_above)}};
        else
          out.constraint_sizes[d] = RelaxedUnspecConstraint{};
      } else if ((marks && marks->weakly_dynamic.contains(dimension)) || request_.dynamic == true) {
        out.sizes[d] = DimDynamic::duck;
      } else if (!request_.dynamic && seen && seen->sizes.size() == rank && seen->sizes[d] < 0) {
        out.sizes[d] = DimDynamic::duck;
      }
    }
    return out;
  }

  const SeenInput* seen_at(const Source& source) const {
    if (!request_.seen) return nullptr;
    const auto at = request_.seen->find(source.name());
    return at == request_.seen->end() ? nullptr : &at->second;
  }

  const CaptureRequest& request_;
  FakeMode& fake_;
  Guards::Parts& guards_;
  std::set<const TensorImpl*> state_;
  std::map<const TensorImpl*, size_t> originals_;
  std::map<size_t, Tensor> fakes_;
  std::vector<std::pair<size_t, TensorGeometry>> layouts_;
  size_t depth_ = 0;
};

// The modules that are called from outside of any other, with the tensors that they hold, so that what the program assigns to them is
// found and taken back.
class ModulesMet : public ModuleObserver {
 public:
  explicit ModulesMet(const std::shared_ptr<Module>& root) {
    if (root) meet(*root, root);
  }
  ~ModulesMet() override { restore(); }
  ModulesMet(const ModulesMet&) = delete;
  ModulesMet& operator=(const ModulesMet&) = delete;

  void enter(Module& module) override {
    if (depth_++ != 0 || known_.contains(&module)) return;
    meet(module, module.weak_from_this().lock());
  }
  void leave(Module&) override { --depth_; }

  struct Assigned {
    TensorSlot* slot;
    Tensor value;
  };
  std::vector<Assigned> assigned() const {
    std::vector<Assigned> out;
    for (const auto& [slot, before] : slots_) {
      const bool same = slot->tensor.defined() ? before.defined() && slot->tensor.is_same(before) : !before.defined();
      if (!same) out.push_back({slot, slot->tensor});
    }
    return out;
  }
  void restore() {
    for (const auto& [slot, before] : slots_) slot->tensor = before;
  }

  std::vector<std::shared_ptr<Module>> roots;

 private:
  void meet(Module& module, const std::shared_ptr<Module>& shared) {
    // One that nobody owns may be gone at the next call: it cannot be looked at then.
    if (shared) roots.push_back(shared);
    for (Module* m : module.modules()) {
      if (!known_.insert(m).second) continue;
      for (const auto* slots : {&m->parameter_slots(), &m->buffer_slots(), &m->constant_slots()})
        for (const auto& slot : *slots) slots_.emplace_back(slot.get(), slot->tensor);
    }
  }

  std::set<const Module*> known_;
  std::vector<std::pair<TensorSlot*, Tensor>> slots_;
  int depth_ = 0;
};

const char* kind_of(const SymNumber& number) {
  if (std::holds_alternative<SymBool>(number)) return "a branch on data";
  return std::holds_alternative<SymInt>(number) ? "an integer out of a tensor" : "a float out of a tensor";
}

// Threads that are inside a capture.
struct Compiling {
  std::mutex mutex;
  std::multimap<std::thread::id, Capturing*> threads;
  std::atomic<size_t> count = 0;
};

Compiling& compiling() {
  static Compiling c;
  return c;
}

struct CompilingScope {
  explicit CompilingScope(Capturing& capturing) {
    const std::lock_guard lock(compiling().mutex);
    place_ = compiling().threads.emplace(std::this_thread::get_id(), &capturing);
    ++compiling().count;
  }
  ~CompilingScope() {
    const std::lock_guard lock(compiling().mutex);
    compiling().threads.erase(place_);
    --compiling().count;
  }
  CompilingScope(const CompilingScope&) = delete;
  CompilingScope& operator=(const CompilingScope&) = delete;

 private:
  std::multimap<std::thread::id, Capturing*>::iterator place_;
};

// The line of user code nearest to a question: of what computes the number, or what that is computed from. Our own lines are relative
// to the tree.
std::source_location users_line(const Value& node, std::source_location where) {
  const auto is_ours = [](const std::source_location& l) {
    const std::string_view file = l.file_name();
    return l.line() == 0 || file.starts_with("src/") || file.starts_with("include/calque/");
  };
  const Node* n = node.is_node() ? node.to_node() : nullptr;
  for (int steps = 0; is_ours(where) && n && steps < 8; ++steps) {
    if (!is_ours(n->meta.location)) return n->meta.location;
    n = n->num_input_nodes() != 0 ? n->input_node(0) : nullptr;
  }
  return where;
}

class Questions : public DataAnswers, public Capturing {
 public:
  // `results` are those of disabled functions, as run_eager_call gives them, on tensors without data.
  Questions(const std::vector<DataAnswer>& answers, ListRef<Value> results, Captured& out)
      : answers_(answers), results_(results), out_(out) {}
  void begin() {
    recorder_ = thread_context().recorder;
    state_ = GlobalState::now();
  }

  std::optional<DataAnswer> answer(const SymNumber& asked, std::source_location where) override {
    if (!may_end_here()) return std::nullopt;
    const Value value = std::visit([](auto n) { return Value(n); }, asked);
    const Value node = recorder_->argument(value);
    out_.marks.push_back({recorder_->recorded().id_bound(), node.is_node() ? node.to_node()->name() : ""});
    const size_t index = out_.marks.size() - 1;
    if (index < answers_.size()) {
      if (answers_[index].index() != (std::holds_alternative<SymBool>(asked)  ? 0u
                                      : std::holds_alternative<SymInt>(asked) ? 1u
                                                                              : 2u))
        throw UserError(
            "compile: the function asked other questions about the same data when it was captured again; is it "
            "deterministic?");
      return answers_[index];
    }
    out_.open = Question{std::visit([](auto n) { return n.str(); }, asked), kind_of(asked), users_line(node, where)};
    asked_ = {value};
    throw StopAtQuestion();
  }

  Value call_eagerly(const std::function<Value(const Values& args)>& function, const Values& args, const std::string& reason,
                     std::source_location where) override {
    if (!may_end_here())
      throw UserError(
          "compile: a disabled function is called inside a branch of the graph, or under another gradient or autocast mode "
          "than the compiled function is");
    const FlatTree flat = tree_flatten(tuple(args));
    for (const Value& leaf : flat.leaves) recorder_->argument(leaf);  // what it needs is recorded before it
    out_.marks.push_back({recorder_->recorded().id_bound(), ""});
    if (out_.marks.size() <= answers_.size()) return next_result(flat.leaves);
    out_.open = Question{reason.empty() ? "no reason was given" : reason, "a disabled function", where,
                         std::make_shared<const EagerCall>(EagerCall{function, flat.spec})};
    asked_ = flat.leaves;
    throw StopAtQuestion();
  }
  // The leaves of what the open question is about.
  const Values& asked() const { return asked_; }

 private:
  // The parts run under the modes that the call began with; a branch is a graph of its own.
  bool may_end_here() const { return recorder_ && thread_context().recorder == recorder_ && GlobalState::now() == state_; }
  Value next_result(const Values& arguments) {
    if (used_ == results_.size())
      throw UserError("compile: the function asked other questions when it was captured again; is it deterministic?");
    const Values& result = results_[used_++].to_items();
    FlatTree tree = tree_flatten(result[1]);
    for (size_t i = 0; i < tree.leaves.size(); ++i)
      if (const int64_t same = result[0].to_items()[i].to_int(); same >= 0)
        tree.leaves[i] = arguments.at(static_cast<size_t>(same));
    return tree.spec.unflatten(tree.leaves);
  }

  const std::vector<DataAnswer>& answers_;
  const ListRef<Value> results_;
  size_t used_ = 0;
  Captured& out_;
  GlobalState state_;
  Recorder* recorder_ = nullptr;
  Values asked_;
};

std::string name_at(const std::vector<std::string>& names, size_t i) {
  return i < names.size() ? names[i] : "arg" + std::to_string(i);
}

// A graph has the calls that a function of the user's makes, and not the gradient that the user gave it.
void refuse_functions(const Values& results) {
  if (!records_gradients()) return;
  TensorVector tensors;
  for (const Value& v : results)
    if (v.is_tensor()) tensors.push_back(v.to_tensor());
  if (const std::string name = function_behind(tensors); !name.empty())
    throw UserError("compile: " + name +
                    " has a gradient of its own (GradFunction), which a graph does not keep; call it outside "
                    "of the compiled function, or under NoGradGuard");
}

void finish_guards(Captured& out, InputMaker& inputs) {
  GuardChecks checks = collect_guard_checks(*out.fake->env(), inputs.placeholders);
  if (!checks.guards.violations().empty()) throw UserError(ErrorKind::constraint_violation, checks.guards.violations());
  for (const std::string& text : checks.guards.warnings()) warn(text);
  out.guards.env = out.fake->env();
  inputs.settle();
  if (!checks.checks.empty()) out.guards.checks = std::move(checks);
}

}  // namespace

bool is_inside_capture() { return capturing() != nullptr; }

Capturing* capturing() {
  if (compiling().count == 0) return nullptr;
  const std::lock_guard lock(compiling().mutex);
  const auto [begin, end] = compiling().threads.equal_range(std::this_thread::get_id());
  return begin == end ? nullptr : std::prev(end)->second;
}

std::string result_name(size_t index) { return "eager_" + std::to_string(index); }

// Of each leaf of the result which argument it is, or -1; and the result without those that are.
Value run_eager_call(const EagerCall& call, const Values& leaves) {
  FlatTree result = tree_flatten(call.function(call.arguments.unflatten(leaves).to_items()));
  Values same;
  for (Value& leaf : result.leaves) {
    int64_t found = -1;
    if (leaf.is_tensor() && leaf.to_tensor().defined()) {
      if (leaf.to_tensor().is_fake())
        throw UserError(
            "compile: a disabled function gave a tensor without data, one of the capture; what it takes from the function "
            "around it has to be an argument");
      const auto at = std::find_if(leaves.begin(), leaves.end(), [&](const Value& v) {
        return v.is_tensor() && v.to_tensor().defined() && v.to_tensor().is_same(leaf.to_tensor());
      });
      if (at != leaves.end()) {
        found = at - leaves.begin();
        leaf = Value();
      }
    }
    same.emplace_back(found);
  }
  return tuple({list(std::move(same)), result.spec.unflatten(result.leaves)});
}

std::string Question::reason() const { return kind + ": " + text; }

Captured capture(const CaptureRequest& request, const Call& call) {
  Captured out;
  out.fake = FakeMode::make({.env = ShapeEnv::make(), .allow_non_fake_inputs = true});
  out.guards.state = GlobalState::now();
  out.guards.values = request.values;
  InputMaker inputs(request, *out.fake, out.guards);
  inputs.count(call.args.size(), Value());
  Values args, results;
  const size_t given = call.args.size() - request.results;
  for (size_t i = 0; i < given; ++i) args.push_back(inputs.make(call.args[i], Source::local(name_at(request.names, i))));
  inputs.fixed_numbers = true;
  for (size_t i = 0; i < request.results; ++i)
    results.push_back(inputs.make(call.args[given + i], Source::local(result_name(i))));
  inputs.fixed_numbers = false;
  Values kwarg_names;
  for (const auto& [name, value] : call.kwargs) kwarg_names.emplace_back(name);
  inputs.count(call.kwargs.size(), list(std::move(kwarg_names)));
  Kwargs kwargs;
  for (const auto& [name, value] : call.kwargs) kwargs.emplace_back(name, inputs.make(value, Source::local(name)));

  Values flat = inputs.tensors;
  flat.insert(flat.end(), inputs.numbers.begin(), inputs.numbers.end());
  std::vector<std::string> names = inputs.tensor_names;
  names.insert(names.end(), inputs.number_names.begin(), inputs.number_names.end());

  ModulesMet met(request.root);
  Questions questions(request.answers, results, out);
  const CompilingScope inside(questions);
  const auto body = [&](const Values&) -> Value {
    questions.begin();
    const DataAnswersScope scope(*out.fake->env(), questions);
    const ModuleObserverScope observe(met);
    try {
      const FlatTree result = tree_flatten(request.callee(args, kwargs));
      out.out_spec = result.spec;
      refuse_functions(result.leaves);
      Values results = result.leaves;
      for (const ModulesMet::Assigned& a : met.assigned()) {
        if (!a.value.defined())
          throw UserError("compile: the function takes the tensor '" + a.slot->name + "' from a module");
        out.assigned.push_back(a.slot);
        results.emplace_back(a.value);
      }
      return tuple(std::move(results));
    } catch (const StopAtQuestion&) {
      return tuple(questions.asked());
    }
  };
  const TracedGraph traced = make_fx_values(body, flat,
                                            {.mode = TracingMode::symbolic,
                                             .pre_dispatch = true,
                                             .record_module_stack = true,
                                             .runtime_asserts = true,
                                             .names = std::move(names),
                                             .fake = out.fake});
  met.restore();
  out.module = traced.module;
  out.input_tensors = inputs.tensor_indices;
  for (const Value& n : inputs.numbers) out.float_numbers.push_back(n.kind() == Kind::floating);
  for (const Node* p : out.module->graph().placeholders()) out.inputs.push_back(p->name());
  for (const Node* n : out.module->graph().nodes())
    if (n->kind() == NodeKind::call_function || n->kind() == NodeKind::call_method || n->kind() == NodeKind::call_module)
      ++out.num_ops;
  out.guards.modules = met.roots;
  finish_guards(out, inputs);
  return out;
}

namespace {

void see(SeenInputs& seen, const Value& v, const Source& source) {
  const auto fresh = !seen.contains(source.name());
  if (v.is_tensor()) {
    const IntList sizes = v.to_tensor().sizes();
    SeenInput& s = seen[source.name()];
    if (fresh || s.sizes.size() != sizes.size()) {
      s.sizes.assign(sizes.begin(), sizes.end());
      return;
    }
    for (size_t d = 0; d < sizes.size(); ++d)
      if (s.sizes[d] != sizes[d]) s.sizes[d] = -1;
  } else if (v.is_sequence()) {
    const Values& items = v.to_items();
    for (size_t i = 0; i < items.size(); ++i) see(seen, items[i], source.item(static_cast<int64_t>(i)));
  } else if (v.kind() == Kind::dict) {
    for (const auto& [key, item] : v.to_dict().items) see(seen, item, item_source(source, key));
  } else if (v.kind() == Kind::structure) {
    const StructValue& s = v.to_struct();
    for (size_t i = 0; i < s.items.size(); ++i)
      see(seen, s.items[i], source.attribute(i < s.fields.size() ? s.fields[i] : std::to_string(i)));
  } else if (v.kind() == Kind::integer || v.kind() == Kind::floating) {
    SeenInput& s = seen[source.name()];
    if (s.number && !same_constant(*s.number, v)) s.number_changed = true;
    s.number = v;
  }
}

}  // namespace

void see_inputs(SeenInputs& seen, const std::vector<std::string>& names, const Call& call) {
  for (size_t i = 0; i < call.args.size(); ++i) see(seen, call.args[i], Source::local(name_at(names, i)));
  for (const auto& [name, value] : call.kwargs) see(seen, value, Source::local(name));
}

}  // namespace calque::compile_detail
