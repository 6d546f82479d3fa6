#include "calque/trace/functional.h"

#include <algorithm>
#include <unordered_map>

#include "calque/base/error.h"
#include "calque/graph/higher_order.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/statistics.h"
#include "calque/op/aten/view_metadata.h"
#include "calque/op/aten/views.h"
#include "calque/op/composite_policy.h"
#include "calque/op/owner.h"
#include "calque/op/tree.h"
#include "op/well_known.h"
#include "trace/functional_form.h"
#include "trace/functionalized_view.h"
#include "trace/view_inverse.h"

namespace calque {
namespace {

struct ViewStep {
  const Operator* op;
  Values args;   // the first one is the tensor it is a view of, and left empty
  size_t index;  // of several results
};

// The memory that a tensor and its views share: its value as a whole, and how often it was written.
struct Base {
  Tensor value;
  uint64_t written = 0;
  Ref<Storage> outer;  // what the tensors of the mode that share it have for a storage
};

class FunctionalExtra : public TensorOwner {
 public:
  explicit FunctionalExtra(std::shared_ptr<FunctionalMode> mode) : mode(std::move(mode)) {}
  Value answer(const Operator& op, const Values& args) override { return mode->call(op, args); }
  Value unknown(const Tensor&, Unknown) override { return {}; }

  std::shared_ptr<FunctionalMode> mode;
  std::shared_ptr<Base> base;
  std::vector<ViewStep> steps;  // from the base to this tensor
  Tensor value;
  uint64_t seen = 0;  // base->written when `value` was computed
};

FunctionalExtra* functional_extra_of(const Tensor& t) {
  return t.defined() && t.impl().special && t.impl().extra ? dynamic_cast<FunctionalExtra*>(t.impl().extra.get()) : nullptr;
}

Tensor replay(const ViewStep& step, const Tensor& from) {
  Values args = step.args;
  args[0] = from;
  const Value out = dispatch(*step.op, args);
  return out.is_tensor() ? out.to_tensor() : out.to_items()[step.index].to_tensor();
}

// The value as of now.
const Tensor& current(FunctionalExtra& x) {
  if (x.seen != x.base->written) {
    Tensor value = x.base->value;
    for (const ViewStep& step : x.steps) value = replay(step, value);
    x.value = value;
    x.seen = x.base->written;
  }
  return x.value;
}

Tensor make_outer(const std::shared_ptr<FunctionalMode>& mode, std::shared_ptr<Base> base, std::vector<ViewStep> steps,
                  const Tensor& value) {
  Tensor outer(Ref<TensorImpl>(new TensorImpl(base->outer, value.meta(), value.sym_storage_offset())));
  TensorImpl& impl = outer.impl();
  impl.special = true;
  impl.take_marks(value.impl());
  impl.is_view = !steps.empty();
  impl.env = value.impl().env;
  auto extra = std::make_shared<FunctionalExtra>(mode);
  extra->base = std::move(base);
  extra->steps = std::move(steps);
  extra->value = value;
  // As in PyTorch a view of memory that was written is computed anew when it is used.
  extra->seen = extra->steps.empty() ? extra->base->written : 0;
  impl.extra = std::move(extra);
  return outer;
}

// Writes a new value through the views that lead to it.
void commit(const Tensor& outer, const Tensor& value) {
  FunctionalExtra& x = *functional_extra_of(outer);
  std::vector<Tensor> on_the_way{x.base->value};
  for (size_t i = 0; i + 1 < x.steps.size(); ++i) on_the_way.push_back(replay(x.steps[i], on_the_way.back()));
  Tensor whole = value;
  for (size_t i = x.steps.size(); i-- > 0;)
    whole = view_inverse(*x.steps[i].op, x.steps[i].args, x.steps[i].index, on_the_way[i], whole);
  x.base->value = whole;
  ++x.base->written;
  // A view sees the memory that was written, so that results which shared it go on doing so.
  current(x);
  outer.storage()->bump_version();
}

bool may_alias(const Operator& op) {
  const auto annotated = [](const SchemaArgument& a) { return !a.alias.empty(); };
  return std::any_of(op.schema().arguments.begin(), op.schema().arguments.end(), annotated) ||
         std::any_of(op.schema().returns.begin(), op.schema().returns.end(), annotated);
}

bool is_view(const Operator& op) {
  return (op.form() == Operator::Form::view || op.has_tag(Tag::view)) && !op.has_tag(Tag::in_place);
}

// The functional operator with the same result as one that writes its first argument.
const Operator& functional_form(const Operator& op) {
  if (const Operator* found = find_functional_form(op)) return *found;
  const Schema& s = op.schema();
  std::string name = s.name;
  if (name.ends_with('_')) name.pop_back();
  const std::string overload = s.overload.empty() ? "" : "." + s.overload;
  for (const std::string& candidate : {name + overload, name + "_functional" + overload})
    if (const Operator* found = find_operator(s.name_space + "::" + candidate); found && found != &op) return *found;
  // transpose_ is transpose.int without the write.
  for (const Operator* candidate : overloads_of(s.name_space + "::" + name))
    if (std::equal(candidate->schema().arguments.begin(), candidate->schema().arguments.end(), s.arguments.begin(),
                   s.arguments.end(),
                   [](const SchemaArgument& a, const SchemaArgument& b) { return a.name == b.name && a.type == b.type; }))
      return *candidate;
  throw UserError(ErrorKind::unsupported_operator,
                  op.name() + ": writes its argument, and there is no functional operator that computes the same");
}

// A user's operator that writes, and that was not derived from one that does not.
bool has_no_functional_form(const Operator& op) {
  const std::string& owner = op.schema().name_space;
  return owner != "aten" && owner != "prim" && owner != "prims" && !op.base() && !writes_out(op);
}

// The call of an operator that writes as one that gives new values for the memory written; each argument is a view of it.
Value call_functionalized(const FunctionalMode& mode, const Operator& op, const Values& args) {
  std::vector<FunctionalExtra*> bases;  // one of the tensors that share each memory
  std::vector<Tensor> written;
  Kwargs plain, views;
  const auto describe = [&](const std::string& prefix, const Value& v) {
    const Tensor& t = v.to_tensor_or_none();
    if (!t.defined()) {
      views.emplace_back(prefix + "_base_index", Value());
      return;
    }
    FunctionalExtra* x = functional_extra_of(t);
    if (!x)
      throw UserError(op.name() + ": writes a tensor that the functionalised function closes over; pass it as an input");
    const auto same = [&](const FunctionalExtra* other) { return other->base == x->base; };
    const auto at = static_cast<size_t>(std::find_if(bases.begin(), bases.end(), same) - bases.begin());
    if (at == bases.size()) {
      bases.push_back(x);
      written.push_back(t);
    }
    views.emplace_back(prefix + "_base_index", at);
    if (!x->steps.empty()) describe_view(views, prefix, x->base->value, current(*x));
  };
  const auto& schema = op.schema().arguments;
  for (size_t i = 0; i < schema.size(); ++i) {
    if (!schema[i].is_written()) {
      plain.emplace_back(schema[i].name, mode.unwrap(args[i]));
    } else if (!schema[i].type.list) {
      describe("_" + schema[i].name, args[i]);
    } else if (args[i].is_none()) {
      views.emplace_back("_" + schema[i].name + "_length", Value());
    } else {
      const Values& items = args[i].to_items();
      views.emplace_back("_" + schema[i].name + "_length", items.size());
      for (size_t k = 0; k < items.size(); ++k) describe("_" + schema[i].name + "_" + std::to_string(k), items[k]);
    }
  }
  Values values;
  for (const FunctionalExtra* x : bases) values.emplace_back(x->base->value);
  plain.insert(plain.end(), views.begin(), views.end());
  plain.emplace_back("_all_bases", list(std::move(values)));
  const Values results = mode.unwrap(auto_functionalized_v2(op, plain)).to_items();
  const size_t own = results.size() - bases.size();
  for (size_t i = 0; i < bases.size(); ++i) {
    bases[i]->base->value = results[own + i].to_tensor();
    ++bases[i]->base->written;
    written[i].storage()->bump_version();
  }
  const auto& returns = op.schema().returns;
  if (returns.empty()) return {};
  // A result that is one of the written arguments is that argument.
  Values given;
  for (size_t r = 0; r < returns.size(); ++r) {
    const auto is_it = [&](const SchemaArgument& a) {
      return a.is_written() && !a.type.list && a.alias == returns[r].alias;
    };
    const auto at = returns[r].is_written() ? std::find_if(schema.begin(), schema.end(), is_it) : schema.end();
    given.push_back(at == schema.end() ? results[r] : args[static_cast<size_t>(at - schema.begin())]);
  }
  return given.size() == 1 ? given[0] : tuple(std::move(given));
}

// The arguments of the functional form of an out= operator. A factory that has no say of its own makes what out is.
Values without_outs(const Operator& op, const Operator& form, const Values& args) {
  const Schema& s = op.schema();
  const Tensor target = args.back().to_tensor_or_none();
  const auto from_target = [&](const SchemaArgument& a) -> Value {
    if (target.defined() && !s.find_argument("dtype") && a.keyword_only) {
      if (a.name == "dtype") return target.dtype();
      if (a.name == "layout") return Layout::strided;
      if (a.name == "device") return target.device();
      if (a.name == "pin_memory") return false;
    }
    return a.default_value ? *a.default_value : Value();
  };
  Values out;
  for (const SchemaArgument& a : form.schema().arguments) {
    const auto at = s.find_argument(a.name);
    out.push_back(at && !s.arguments[*at].is_written() ? args[*at] : from_target(a));
  }
  return out;
}

// The view that a *_copy operator copies; null for others.
const Operator* copied_view(const Operator& op) {
  const Schema& s = op.schema();
  if (!s.name.ends_with("_copy") || op.has_tag(Tag::lifts) || may_alias(op)) return nullptr;
  const Operator* view = find_operator(s.name_space + "::" + s.name.substr(0, s.name.size() - 5) +
                                       (s.overload.empty() ? "" : "." + s.overload));
  return view && is_view(*view) ? view : nullptr;
}

}  // namespace

bool is_functional(const Tensor& t) { return functional_extra_of(t) != nullptr; }

Tensor FunctionalMode::wrap(const Tensor& value) {
  if (!value.defined() || is_functional(value)) return value;
  auto base = std::make_shared<Base>();
  base->value = value;
  base->outer = Storage::without_data(value.storage()->nbytes());
  return make_outer(shared_from_this(), std::move(base), {}, value);
}

Value FunctionalMode::wrap(const Value& tree) {
  return tree_map_tensors([&](const Tensor& t) -> Value { return wrap(t); }, tree);
}

Tensor FunctionalMode::unwrap(const Tensor& t) const {
  FunctionalExtra* x = functional_extra_of(t);
  return x ? current(*x) : t;
}

Value FunctionalMode::unwrap(const Value& tree) const {
  return tree_map_tensors([&](const Tensor& t) -> Value { return unwrap(t); }, tree);
}

bool FunctionalMode::was_written(const Tensor& t) const {
  const FunctionalExtra* x = functional_extra_of(t);
  return x && x->base->written != 0;
}

Value FunctionalMode::call(const Operator& op, const Values& args) {
  if (off_) return call_next(op, args);
  if (&op == &ops().detach_) return op.run_eager(args);  // writes no data
  if (op.is_composite() && may_alias(op) && !(writes_out(op) && find_functional_form(op))) {
    const ModeScope again(*this);
    const CompositeBodyScope body(&args);
    return op.run_eager(args);
  }
  if (const Operator* view = copied_view(op)) {
    const ModeScope again(*this);
    const Value out = dispatch(*view, args);
    return tree_map_tensors([](const Tensor& t) -> Value { return clone(t, MemoryFormat::contiguous); }, out);
  }
  Values inner;
  inner.reserve(args.size());
  for (const Value& v : args) inner.push_back(unwrap(v));
  if (is_view(op)) return call_view(op, args, inner);
  if (op.has_tag(Tag::inplace_view) && args[0].is_tensor() && is_functional(args[0].to_tensor()))
    return call_inplace_view(op, args, inner);
  const auto& schema = op.schema().arguments;
  std::vector<size_t> written;
  for (size_t i = 0; i < schema.size(); ++i)
    if (schema[i].is_written()) written.push_back(i);
  if (written.empty()) return wrap(call_next(op, inner));
  if (has_no_functional_form(op)) return wrap(call_functionalized(*this, op, args));
  return call_writing(op, args, inner, written);
}

// A view of a tensor of this mode remembers the steps that lead to it from its base.
Value FunctionalMode::call_view(const Operator& op, const Values& args, const Values& inner) {
  const FunctionalExtra* x = args[0].is_tensor() ? functional_extra_of(args[0].to_tensor()) : nullptr;
  if (!x) return call_next(op, inner);
  Values rest = inner;
  rest[0] = Value();
  const Value out = call_next(op, inner);
  const auto self = shared_from_this();
  const auto view = [&](const Tensor& value, size_t index) {
    std::vector<ViewStep> steps = x->steps;
    steps.push_back({&op, rest, index});
    return make_outer(self, x->base, std::move(steps), value);
  };
  if (out.is_tensor()) return view(out.to_tensor(), 0);
  Values items;
  for (size_t i = 0; i < out.to_items().size(); ++i) items.emplace_back(view(out.to_items()[i].to_tensor(), i));
  return list(std::move(items));
}

// The tensor becomes another view of the same memory.
Value FunctionalMode::call_inplace_view(const Operator& op, const Values& args, const Values& inner) {
  const Tensor& outer = args[0].to_tensor();
  FunctionalExtra& x = *functional_extra_of(outer);
  const Operator& form = functional_form(op);
  Values rest = inner;
  const Value out = call_next(form, inner);
  rest[0] = Value();
  if (form.form() == Operator::Form::view || form.has_tag(Tag::view)) {
    x.steps.push_back({&form, rest, 0});
    x.value = out.to_tensor();
  } else {
    commit(outer, out.to_tensor());
  }
  outer.impl().take_layout(out.to_tensor().impl());
  return outer;
}

// out= arguments come last and are results only; an in-place operator writes its first argument.
Value FunctionalMode::call_writing(const Operator& op, const Values& args, const Values& inner,
                                   const std::vector<size_t>& written) {
  const bool is_out = writes_out(op);
  const Operator& form = functional_form(op);
  Value out;
  if (form.is_composite() || copied_view(form)) {  // which may write and alias in its turn
    const ModeScope again(*this);
    out = unwrap(dispatch(form, is_out ? without_outs(op, form, args) : args));
  } else {
    out = call_next(form, is_out ? without_outs(op, form, inner) : inner);
  }
  const Values results = out.is_tensor() ? Values{out} : out.to_items();
  // An operator that gives other tensors than those it writes (_native_batch_norm_legit): the functional one gives both.
  const auto& returns = op.schema().returns;
  const bool gives_others = !returns.empty() && std::none_of(returns.begin(), returns.end(),
                                                             [](const SchemaArgument& r) { return r.is_written(); });
  const size_t first = gives_others ? returns.size() : 0;
  Values given;
  for (size_t i = 0; i < written.size() && first + i < results.size(); ++i) {
    const Value& target = args[written[i]];
    if (!target.is_tensor()) continue;
    const Tensor& outer = target.to_tensor();
    Tensor value = results[first + i].to_tensor();
    if (!is_functional(outer))
      throw UserError(op.name() + ": writes a tensor that the functionalised function closes over; pass it as an input");
    if (value.dtype() != outer.dtype()) value = _to_copy(value, outer.dtype(), Layout::strided);
    commit(outer, value);
    outer.impl().take_layout(functional_extra_of(outer)->value.impl());  // a view lies in what was written as before
    given.emplace_back(outer);
  }
  if (gives_others) {
    given.clear();
    for (size_t i = 0; i < first; ++i) given.push_back(wrap(results[i]));
  }
  if (given.size() == 1) return given[0];
  return tuple(std::move(given));
}

namespace {

// Higher-order calls under a functional mode: graphs are traced from functionalised functions.
class FunctionalTracer : public HigherOrderTracer {
 public:
  FunctionalTracer(FunctionalMode& mode, HigherOrderTracer& below) : mode_(mode), below_(below) {}

  Value trace(const char* target, std::vector<Branch> branches,
              const std::function<Values(const Values&, const Values&)>& arguments,
              const std::function<Value(const std::vector<Value>&)>& result) override {
    for (Branch& b : branches) {
      b.inputs = [this, inputs = std::move(b.inputs)] {
        Values values = inputs();
        for (Value& v : values) v = mode_.unwrap(v);
        return values;
      };
      b.function = functionalize(std::move(b.function));
    }
    const FunctionalMode::OffScope off(mode_);
    const HigherOrderTracerScope scope(&below_);
    const Value out = below_.trace(
        target, std::move(branches),
        [&](const Values& graphs, const Values& lifted) {
          Values args = arguments(graphs, lifted);
          for (Value& v : args) v = mode_.unwrap(v);
          return args;
        },
        result);
    return mode_.wrap(out);
  }

  Value trace_call(const char* target, const Values& args, const Kwargs& kwargs,
                   const std::function<Value(const Kwargs&)>& result) override {
    Values inner;
    for (const Value& v : args) inner.push_back(mode_.unwrap(v));
    Kwargs named;
    for (const auto& [name, v] : kwargs) named.emplace_back(name, mode_.unwrap(v));
    const FunctionalMode::OffScope off(mode_);
    const HigherOrderTracerScope scope(&below_);
    return mode_.wrap(below_.trace_call(target, inner, named, result));
  }

 private:
  FunctionalMode& mode_;
  HigherOrderTracer& below_;
};

}  // namespace

struct FunctionalScope::Impl {
  Impl(FunctionalMode& mode, HigherOrderTracer* below) : modes(mode) {
    if (below) tracer.emplace(mode, *below);
    higher_order.emplace(tracer ? &*tracer : nullptr);
  }
  ModeScope modes;
  std::optional<FunctionalTracer> tracer;
  std::optional<HigherOrderTracerScope> higher_order;
};

FunctionalScope::FunctionalScope(FunctionalMode& mode) : impl_(std::make_unique<Impl>(mode, higher_order_tracer())) {}
FunctionalScope::~FunctionalScope() = default;

std::function<Value(const Values&)> functionalize(std::function<Value(const Values&)> fn, bool pre_dispatch) {
  return [fn = std::move(fn), pre_dispatch](const Values& args) -> Value {
    const auto mode = FunctionalMode::make(pre_dispatch);
    const FlatTree flat = tree_flatten(tuple(args));
    Values wrapped;
    std::unordered_map<const TensorImpl*, Tensor> known;  // one tensor given twice stays one
    for (const Value& leaf : flat.leaves) {
      if (!leaf.is_tensor()) {
        wrapped.push_back(leaf);
        continue;
      }
      Tensor& w = known[&leaf.to_tensor().impl()];
      if (!w.defined()) w = mode->wrap(leaf.to_tensor());
      wrapped.emplace_back(w);
    }
    Value out;
    {
      const FunctionalScope scope(*mode);
      out = fn(flat.spec.unflatten(wrapped).to_items());
    }
    const Value result = mode->unwrap(out);
    for (size_t i = 0; i < wrapped.size(); ++i)
      if (wrapped[i].is_tensor() && known.erase(&flat.leaves[i].to_tensor().impl()) != 0 &&
          mode->was_written(wrapped[i].to_tensor()))
        flat.leaves[i].to_tensor().copy_(mode->unwrap(wrapped[i].to_tensor()));
    return result;
  };
}

}  // namespace calque
