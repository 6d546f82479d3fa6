#include "calque/op/autocast.h"

#include <memory>
#include <unordered_map>
#include <utility>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/op/operators.h"

namespace calque {

// Casts of parameters, kept while a scope is open.
class AutocastCache {
 public:
  Tensor cast(const Tensor& t, DType dtype) {
    auto [at, is_new] = casts_.try_emplace(&t.impl());
    if (is_new) at->second = {t, t.to(dtype)};
    return at->second.to;
  }

 private:
  struct Cast {
    Tensor from, to;  // `from` keeps its address from being used again
  };
  std::unordered_map<const TensorImpl*, Cast> casts_;
};

namespace {

// ---- casting --------------------------------------------------------------------------------------------------------

bool is_eligible(const Tensor& t) {
  return t.defined() && t.device().type == DeviceType::cpu && is_floating(t.dtype()) && t.dtype() != DType::float64;
}

AutocastSetting& setting_of(DeviceType device) {
  return device == DeviceType::cpu ? thread_context().autocast_cpu : thread_context().autocast_others;
}
DType autocast_dtype(DeviceType device) {
  return setting_of(device).dtype.value_or(device == DeviceType::cpu ? DType::bfloat16 : DType::float16);
}

Tensor cast(const Tensor& t, DType dtype) {
  if (!is_eligible(t) || t.dtype() == dtype) return t;
  ThreadContext& context = thread_context();
  const bool remember = context.autocast_cache_enabled && dtype == autocast_dtype(DeviceType::cpu) &&
                        t.dtype() == DType::float32 && t.requires_grad() && t.is_leaf() && !t.impl().is_view;
  if (!remember) return t.to(dtype);
  if (!context.autocast_cache) context.autocast_cache = std::make_unique<AutocastCache>().release();
  return context.autocast_cache->cast(t, dtype);
}

Value cast(const Value& v, DType dtype) {
  if (v.is_tensor()) return cast(v.to_tensor(), dtype);
  if (v.kind() != Value::Kind::list) return v;
  Values items;
  items.reserve(v.to_items().size());
  for (const Value& item : v.to_items()) items.push_back(cast(item, dtype));
  return list(std::move(items));
}

DType widest(DType now, const Value& v, DType lower, const Operator& op) {
  if (v.kind() == Value::Kind::list) {
    for (const Value& item : v.to_items()) now = widest(now, item, lower, op);
    return now;
  }
  if (!v.is_tensor() || !is_eligible(v.to_tensor())) return now;
  const DType next = v.to_tensor().dtype();
  if (now == DType::float32 || next == DType::float32) return DType::float32;
  if (next != lower)
    throw UserError(op.name() + ": under autocast to " + std::string(name(lower)) + " its tensors must be " +
                    std::string(name(lower)) + " or float32, found " + std::string(name(next)));
  return now;
}

class AutocastMode : public Mode {
 public:
  ModeSlot slot() const override { return ModeSlot::autocast; }
  Value call(const Operator& op, const Values& args) override {
    if (!thread_context().autocast_cpu.enabled || thread_context().autocast_busy) return call_next(op, args);
    const AutocastPolicy policy = autocast_policy(op);
    if (policy == AutocastPolicy::none) {
      if (!op.is_composite()) return call_next(op, args);
      // Its parts are calls like any other.
      const ModeScope again(*this);
      return op.run_eager(args);
    }
    const ContextSwitch<&ThreadContext::autocast_busy, true> busy;
    const DType lower = autocast_dtype(DeviceType::cpu);
    DType dtype = policy == AutocastPolicy::float32 ? DType::float32 : lower;
    if (policy == AutocastPolicy::promote)
      for (const Value& v : args) dtype = widest(dtype, v, lower, op);
    Values narrowed = args;
    // The last argument first: the order in which PyTorch's traces have the casts.
    for (size_t i = args.size(); i-- > 0;) narrowed[i] = cast(args[i], dtype);
    return call_next(op, narrowed);
  }
};

AutocastMode& autocast_mode() {
  static AutocastMode mode;
  return mode;
}

}  // namespace

AutocastPolicy autocast_policy(const Operator& op) {
  if (op.has_tag(Tag::autocast_lower)) return AutocastPolicy::lower_precision;
  if (op.has_tag(Tag::autocast_float32)) return AutocastPolicy::float32;
  if (op.has_tag(Tag::autocast_promote)) return AutocastPolicy::promote;
  return AutocastPolicy::none;
}

AutocastRegion autocast_region(DeviceType device) {
  return {device, autocast_dtype(device), setting_of(device).enabled, thread_context().autocast_cache_enabled};
}

AutocastScope::AutocastScope(DeviceType device, std::optional<DType> dtype, bool enabled, std::optional<bool> cache_enabled)
    : before_(setting_of(device)),
      device_(device),
      cache_before_(thread_context().autocast_cache_enabled),
      busy_before_(thread_context().autocast_busy) {
  if (device == DeviceType::meta) throw UserError("autocast: expected the device type cpu or cuda, found meta");
  AutocastRegion region = autocast_region(device);
  if (dtype) region.dtype = *dtype;
  region.enabled = enabled;
  if (cache_enabled) region.cache_enabled = *cache_enabled;
  if (enabled && device == DeviceType::cuda) {
    warn("autocast: CUDA is not available, casting is switched off");
    region.enabled = false;
  } else if (enabled && region.dtype != DType::bfloat16 && region.dtype != DType::float16) {
    warn("autocast: expected the dtype bfloat16 or float16 on the CPU, found " + std::string(name(region.dtype)) +
         "; casting is switched off");
    region.enabled = false;
  }
  setting_of(device) = {region.dtype, region.enabled};
  ThreadContext& context = thread_context();
  context.autocast_cache_enabled = region.cache_enabled;
  context.autocast_busy = false;
  ++context.autocast_nesting;
  if (region.enabled && device == DeviceType::cpu) mode_.emplace(autocast_mode());
  if (RegionObserver* observer = region_observer()) observer->autocast_entered(region);
}

AutocastScope::~AutocastScope() {
  if (RegionObserver* observer = region_observer()) observer->autocast_left();
  ThreadContext& context = thread_context();
  setting_of(device_) = before_;
  context.autocast_cache_enabled = cache_before_;
  context.autocast_busy = busy_before_;
  if (--context.autocast_nesting > 0) return;
  const std::unique_ptr<AutocastCache> goes(std::exchange(context.autocast_cache, nullptr));
}

}  // namespace calque
