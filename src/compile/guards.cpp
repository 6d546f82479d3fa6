#include "compile/guards.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/compile/marks.h"
#include "calque/tensor/default_dtype.h"
#include "nn/hooks_count.h"
#include "sym/evaluate.h"

namespace calque::compile_detail {

GlobalState GlobalState::now() {
  const ThreadContext& c = thread_context();
  return {c.grad_enabled,    calque::default_dtype(),  c.autocast_cpu,
          c.autocast_others, c.autocast_cache_enabled, c.cudnn_enabled};
}

bool same_constant(const Value& a, const Value& b) { return a.kind() == b.kind() && a.equals(b); }

namespace {

bool fail(std::string* why, auto&& text) {
  if (why) *why = text();
  return false;
}

std::string list_text(const std::vector<int64_t>& v) {
  std::string out;
  for (const int64_t i : v) out += (out.empty() ? "" : ", ") + std::to_string(i);
  return "[" + out + "]";
}

std::string list_text(const SmallVector<int64_t, 6>& v) { return list_text(std::vector<int64_t>(v.begin(), v.end())); }

const char* truth(bool b) { return b ? "True" : "False"; }

}  // namespace

Guards::Guards(Parts parts) : parts_(std::move(parts)) {
  for (const auto& module : parts_.modules) add_module("", nullptr, *module, 0);
  if (parts_.checks) add_checks(*parts_.checks);
  write_texts();
}

void Guards::add_module(const std::string& path, const ModuleSlot* slot, const Module& module, int depth) {
  if (depth > static_cast<int>(TreeSpec::max_depth)) throw UserError("compile: modules are nested more than 500 deep");
  paths_.push_back(path.empty() ? "self" : "self." + path);
  const auto number = static_cast<uint32_t>(paths_.size() - 1);
  const auto count = [](const auto& v) { return static_cast<uint32_t>(v.size()); };
  modules_.push_back({slot, &module, module.training(), forward_hooks_state(module), count(module.parameter_slots()),
                      count(module.buffer_slots()), count(module.constant_slots()), count(module.module_slots()), number});
  for (const auto* list : {&module.parameter_slots(), &module.buffer_slots(), &module.constant_slots()})
    for (const auto& s : *list) {
      const bool there = s->tensor.defined();
      const TensorImpl* impl = there ? &s->tensor.impl() : nullptr;
      paths_.push_back(paths_[number] + "." + s->name);
      slots_.push_back({s.get(), impl, there ? impl->storage.get() : nullptr, there ? impl->dtype : DType::float32,
                        there && impl->requires_grad, static_cast<uint32_t>(paths_.size() - 1)});
    }
  for (const auto& s : module.module_slots())
    if (s->module) add_module(path.empty() ? s->name : path + "." + s->name, s.get(), *s->module, depth + 1);
}

std::optional<Guards::Place> Guards::place_of(const std::string& source) const {
  for (size_t i = 0; i < parts_.numbers.size(); ++i)
    if (parts_.numbers[i] == source) return Place{Place::What::number, static_cast<uint32_t>(i), 0};
  for (size_t i = 0; i < parts_.tensors.size(); ++i) {
    const std::string& base = parts_.tensors[i].source;
    if (parts_.tensors[i].alias_of >= 0 || !source.starts_with(base + ".")) continue;
    const Source tensor = Source::constant(base);
    const auto index = static_cast<uint32_t>(i);
    if (source == tensor.storage_offset().name()) return Place{Place::What::offset, index, 0};
    for (size_t d = 0; d < parts_.tensors[i].sizes.size(); ++d) {
      if (source == tensor.size(d).name()) return Place{Place::What::size, index, static_cast<uint32_t>(d)};
      if (source == tensor.stride(d).name()) return Place{Place::What::stride, index, static_cast<uint32_t>(d)};
    }
  }
  return std::nullopt;
}

void Guards::add_checks(const GuardChecks& checks) {
  const auto needed = [&](const std::string& source) {
    const std::optional<Place> place = place_of(source);
    if (!place) throw InternalError("a guard's source is no input: " + source);
    return *place;
  };
  for (const auto& [symbol, source] : checks.symbols)
    bound_.push_back({symbol, needed(source), parts_.env->symbols()[symbol].is_float});
  for (const RunnableCheck& c : checks.checks) {
    check_texts_.push_back(c.text);
    const auto text = static_cast<uint32_t>(check_texts_.size() - 1);
    switch (c.kind) {
      case InputCheck::Kind::equality: equalities_.push_back({needed(c.source), c.expr, text}); break;
      case InputCheck::Kind::guard: conditions_.emplace_back(c.expr, text); break;
      case InputCheck::Kind::range: ranges_.push_back({needed(c.source), c.range, text}); break;
      case InputCheck::Kind::not_nan: not_nan_.push_back(needed(c.source)); break;
    }
  }
  shape_guards_ = checks.checks.size();
}

void Guards::write_texts() {
  for (const ArgumentGuard& a : parts_.arguments) {
    if (a.kind == Value::Kind::tensor || a.is_number) continue;
    const std::string type = std::string(Value::kind_name(a.kind));
    if (a.kind >= Value::Kind::list)
      texts_.push_back(fmt::format("len({}) == {} ({})", a.source, a.items, type));
    else
      texts_.push_back(a.source + " == " + a.constant.str());
  }
  for (const TensorGuard& t : parts_.tensors) {
    if (t.alias_of >= 0)
      texts_.push_back(t.source + " is " + parts_.tensors[static_cast<size_t>(t.alias_of)].source);
    else
      texts_.push_back(fmt::format("check_tensor({}, {}, {}, requires_grad={}, size={}, stride={})", t.source, name(t.dtype),
                                   t.device.str(), truth(t.requires_grad), list_text(t.sizes), list_text(t.strides)));
  }
  texts_.push_back(fmt::format("grad_enabled == {}", truth(parts_.state.grad_enabled)));
  texts_.push_back(fmt::format("default_dtype == {}", name(parts_.state.default_dtype)));
  texts_.push_back(fmt::format("autocast == {}", truth(parts_.state.autocast_cpu.enabled)));
  for (const ModuleGuard& m : modules_)
    texts_.push_back(fmt::format("{}.training == {}", paths_[m.path], truth(m.training)));
  for (const SlotGuard& s : slots_) texts_.push_back(paths_[s.path] + " is the tensor that was captured");
  for (const auto& [name, value] : parts_.values) texts_.push_back(fmt::format("guard_on({}) == {}", name, value.str()));
  texts_.insert(texts_.end(), check_texts_.begin(), check_texts_.end());
}

int64_t Guards::value_at(const Place& place, const GuardedCall& call) const {
  if (place.what == Place::What::number) return call.numbers[place.index];
  const TensorImpl& t = call.tensors[place.index]->impl();
  switch (place.what) {
    case Place::What::size: return t.sizes[place.dimension].as_int();
    case Place::What::stride: return t.strides[place.dimension].as_int();
    case Place::What::offset: return t.offset.as_int();
    case Place::What::number: break;
  }
  throw InternalError("a place outside its enumeration");
}

bool Guards::walk(const Value& v, size_t& at, GuardedCall& found, std::string* why) const {
  if (at >= parts_.arguments.size()) return fail(why, [&] { return "more arguments than were captured"; });
  const ArgumentGuard& g = parts_.arguments[at++];
  if (v.kind() != g.kind)
    return fail(why, [&] {
      return fmt::format("type({}) == {}. actual {}", g.source, Value::kind_name(g.kind), Value::kind_name(v.kind()));
    });
  switch (v.kind()) {
    case Value::Kind::tensor: {
      const size_t index = found.tensors.size();
      found.tensors.push_back(&v.to_tensor());
      return check_tensor(v.to_tensor(), index, found, why);
    }
    case Value::Kind::list:
    case Value::Kind::tuple: {
      const Values& items = v.to_items();
      if (items.size() != g.items)
        return fail(why, [&] { return fmt::format("len({}) == {}. actual {}", g.source, g.items, items.size()); });
      for (const Value& item : items)
        if (!walk(item, at, found, why)) return false;
      return true;
    }
    case Value::Kind::dict: {
      const auto& items = v.to_dict().items;
      const Values& keys = g.constant.to_items();
      bool equal = items.size() == keys.size();
      for (size_t i = 0; equal && i < items.size(); ++i) equal = same_constant(items[i].first, keys[i]);
      if (!equal) return fail(why, [&] { return fmt::format("list(dict.keys({})) == {}", g.source, g.constant.str()); });
      for (const auto& [key, item] : items)
        if (!walk(item, at, found, why)) return false;
      return true;
    }
    case Value::Kind::structure: {
      const StructValue& s = v.to_struct();
      if (s.type != g.constant.to_string() || s.items.size() != g.items)
        return fail(why, [&] { return fmt::format("type({}) == {}. actual {}", g.source, g.constant.to_string(), s.type); });
      for (const Value& item : s.items)
        if (!walk(item, at, found, why)) return false;
      return true;
    }
    case Value::Kind::integer:
      if (g.is_number) {
        found.numbers.push_back(v.to_int());
        return true;
      }
      break;
    case Value::Kind::floating:
      if (g.is_number) {
        found.numbers.push_back(std::bit_cast<int64_t>(v.to_float()));
        return true;
      }
      break;
    case Value::Kind::none:
    case Value::Kind::boolean:
    case Value::Kind::complex:
    case Value::Kind::string:
    case Value::Kind::slice:
    case Value::Kind::dtype:
    case Value::Kind::device:
    case Value::Kind::layout:
    case Value::Kind::memory_format:
    case Value::Kind::generator:
    case Value::Kind::node: break;
  }
  if (same_constant(v, g.constant)) return true;
  return fail(why, [&] { return fmt::format("{} == {}. actual {}", g.source, g.constant.str(), v.str()); });
}

bool Guards::check_tensor(const Tensor& t, size_t index, const GuardedCall& found, std::string* why) const {
  const TensorGuard& g = parts_.tensors[index];
  const TensorImpl& impl = t.impl();
  const auto mismatch = [&](std::string_view what, const auto& expected, const auto& actual) {
    return fmt::format("tensor '{}' {} mismatch. expected {}, actual {}", g.source, what, expected, actual);
  };
  if (impl.special || impl.symbolic)
    return fail(why, [&] { return "tensor '" + g.source + "' is fake or on the meta device"; });
  if (g.identity != nullptr)
    return &impl == g.identity ||
           fail(why, [&] { return "tensor '" + g.source + "' is another than the parameter that was captured"; });
  if (g.alias_of >= 0)
    return &impl == &found.tensors[static_cast<size_t>(g.alias_of)]->impl() ||
           fail(why, [&] { return g.source + " is " + parts_.tensors[static_cast<size_t>(g.alias_of)].source; });
  for (size_t i = 0; i < index; ++i)
    if (parts_.tensors[i].alias_of < 0 && &found.tensors[i]->impl() == &impl)
      return fail(why, [&] { return "Duplicate tensors found: " + g.source + " is " + parts_.tensors[i].source; });
  if (impl.dtype != g.dtype) return fail(why, [&] { return mismatch("dtype", name(g.dtype), name(impl.dtype)); });
  if (!(impl.device == g.device)) return fail(why, [&] { return mismatch("device", g.device.str(), impl.device.str()); });
  if (impl.requires_grad != g.requires_grad)
    return fail(why, [&] { return mismatch("requires_grad", truth(g.requires_grad), truth(impl.requires_grad)); });
  if (impl.sizes.size() != g.sizes.size())
    return fail(why, [&] { return mismatch("rank", g.sizes.size(), impl.sizes.size()); });
  for (size_t d = 0; d < g.sizes.size(); ++d) {
    if (g.sizes[d] >= 0 && impl.sizes[d].as_int() != g.sizes[d])
      return fail(why, [&] { return mismatch(fmt::format("size at index {}", d), g.sizes[d], impl.sizes[d].as_int()); });
  }
  for (size_t d = 0; d < g.strides.size(); ++d) {
    // Where there is one element or none nobody can tell.
    if (g.strides[d] >= 0 && impl.strides[d].as_int() != g.strides[d])
      return fail(why,
                  [&] { return mismatch(fmt::format("stride at index {}", d), g.strides[d], impl.strides[d].as_int()); });
  }
  if (impl.extra)
    if (const DynamicMarks* marks = marks_of(t))
      for (const auto& [dimension, range] : marks->dynamic)
        if (std::find(g.marks.begin(), g.marks.end(), dimension) == g.marks.end())
          return fail(why, [&] { return fmt::format("tensor '{}' dimension {} is marked dynamic", g.source, dimension); });
  return true;
}

bool Guards::check_modules(std::string* why) const {
  // Parents first: as long as a slot holds what it held, what is in it is alive.
  size_t slot = 0;
  for (const ModuleGuard& g : modules_) {
    if (g.slot && g.slot->module.get() != g.module)
      return fail(why, [&] { return paths_[g.path] + " was replaced by another module"; });
    const Module& m = *g.module;
    if (m.training() != g.training)
      return fail(why, [&] {
        return fmt::format("{}.training == {}. actual {}", paths_[g.path], truth(g.training), truth(m.training()));
      });
    if (forward_hooks_state(m) != g.hooks) return fail(why, [&] { return paths_[g.path] + " has other hooks"; });
    if (m.parameter_slots().size() != g.parameters || m.buffer_slots().size() != g.buffers ||
        m.constant_slots().size() != g.constants || m.module_slots().size() != g.children)
      return fail(why, [&] { return paths_[g.path] + " has other parameters, buffers or children"; });
    const size_t tensors = size_t{g.parameters} + g.buffers + g.constants;
    for (const size_t end = slot + tensors; slot < end; ++slot) {
      const SlotGuard& s = slots_[slot];
      const bool there = s.slot->tensor.defined();
      const TensorImpl* impl = there ? &s.slot->tensor.impl() : nullptr;
      if (impl != s.tensor) return fail(why, [&] { return paths_[s.path] + " was replaced by another tensor"; });
      if (!there) continue;
      if (impl->storage.get() != s.storage || impl->dtype != s.dtype)
        return fail(why, [&] { return paths_[s.path] + " was given other data"; });
      if (impl->requires_grad != s.requires_grad)
        return fail(why, [&] {
          return fmt::format("{}.requires_grad == {}. actual {}", paths_[s.path], truth(s.requires_grad),
                             truth(impl->requires_grad));
        });
    }
  }
  return true;
}

bool Guards::check_shapes(const GuardedCall& call, std::string* why) const {
  if (check_texts_.empty()) return true;
  const auto refuse = [&](uint32_t text) { return fail(why, [&] { return check_texts_[text]; }); };
  const auto value_of = [&](size_t symbol) -> std::optional<Number> {
    for (const Bound& b : bound_) {
      if (b.symbol != symbol) continue;
      const int64_t v = value_at(b.place, call);
      return b.is_float ? Number(std::bit_cast<double>(v)) : Number(v);
    }
    return std::nullopt;
  };
  try {
    for (const Range& r : ranges_) {
      const int64_t v = value_at(r.place, call);
      if (v < r.range.lower || v > r.range.upper) return refuse(r.text);
    }
    for (const Place& p : not_nan_)
      if (std::isnan(std::bit_cast<double>(value_at(p, call)))) return fail(why, [] { return "a float argument is NaN"; });
    for (const Equality& e : equalities_) {
      const int64_t v = value_at(e.place, call);
      const std::optional<Number> expected = evaluate_expr(e.expr, value_of);
      const bool equal =
          expected && (expected->is_float ? std::bit_cast<int64_t>(expected->real) == v : expected->integer == v);
      if (!equal) return refuse(e.text);
    }
    for (const auto& [condition, text] : conditions_) {
      const std::optional<Number> holds = evaluate_expr(condition, value_of);
      if (!holds || holds->integer == 0) return refuse(text);
    }
  } catch (const UserError&) {
    return fail(why,
                [] { return "a condition on sizes cannot be computed (a division by zero, or a number of over 64 bits)"; });
  }
  return true;
}

bool Guards::check(const Values& args, const Kwargs& kwargs, const std::vector<std::pair<std::string, Value>>& values,
                   GuardedCall& found, std::string* why) const {
  if (!(GlobalState::now() == parts_.state))
    return fail(why, [&] {
      const GlobalState now = GlobalState::now();
      std::string changed;
      if (now.grad_enabled != parts_.state.grad_enabled) changed += " grad_mode";
      if (now.default_dtype != parts_.state.default_dtype) changed += " default_dtype";
      if (!(now.autocast_cpu == parts_.state.autocast_cpu)) changed += " autocast";
      return "GLOBAL_STATE changed:" + (changed.empty() ? " other switches" : changed);
    });
  size_t at = 0;
  const ArgumentGuard& count = parts_.arguments[at++];
  if (args.size() != count.items)
    return fail(why, [&] { return fmt::format("{} arguments. actual {}", count.items, args.size()); });
  for (const Value& v : args)
    if (!walk(v, at, found, why)) return false;
  const ArgumentGuard& names = parts_.arguments[at++];
  if (kwargs.size() != names.items)
    return fail(why, [&] { return fmt::format("{} keyword arguments. actual {}", names.items, kwargs.size()); });
  for (size_t i = 0; i < kwargs.size(); ++i) {
    if (kwargs[i].first != names.constant.to_items()[i].to_string())
      return fail(why, [&] { return "other keyword arguments than " + names.constant.str(); });
    if (!walk(kwargs[i].second, at, found, why)) return false;
  }
  if (values.size() != parts_.values.size()) return fail(why, [] { return "other values are guarded on"; });
  for (size_t i = 0; i < values.size(); ++i)
    if (!same_constant(values[i].second, parts_.values[i].second))
      return fail(why, [&] {
        return fmt::format("guard_on({}) == {}. actual {}", values[i].first, parts_.values[i].second.str(),
                           values[i].second.str());
      });
  return check_modules(why) && check_shapes(found, why);
}

}  // namespace calque::compile_detail
