#include "calque/op/autocast.h"

#include <unordered_map>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/op/ops.h"

namespace calque {
namespace {

// ---- casting --------------------------------------------------------------------------------------------------------

bool is_eligible(const Tensor& t) {
  return t.defined() && t.device().type == DeviceType::cpu && is_floating(t.dtype()) && t.dtype() != DType::float64;
}

struct State {
  AutocastRegion cpu;
  AutocastRegion others;  // of devices that are not there: what was asked for is kept, nothing is cast
  bool cache_enabled = true;
  bool busy = false;  // a call is being handled: what it comes down to is not cast again
  int nesting = 0;
  struct Cast {
    Tensor from, to;  // `from` keeps its address from being used again
  };
  std::unordered_map<const TensorImpl*, Cast> cache;

  State() {
    cpu.enabled = others.enabled = false;
    others.dtype = DType::float16;
  }
  AutocastRegion& of(DeviceType device) { return device == DeviceType::cpu ? cpu : others; }
};

State& state() {
  thread_local State s;
  return s;
}

class BusyScope {
 public:
  explicit BusyScope(bool busy) : before_(state().busy) { state().busy = busy; }
  ~BusyScope() { state().busy = before_; }
  BusyScope(const BusyScope&) = delete;
  BusyScope& operator=(const BusyScope&) = delete;

 private:
  bool before_;
};

Tensor cast(const Tensor& t, DType dtype) {
  if (!is_eligible(t) || t.dtype() == dtype) return t;
  State& s = state();
  const bool remember = s.cache_enabled && dtype == s.cpu.dtype && t.dtype() == DType::float32 && t.requires_grad() &&
                        t.is_leaf() && !t.impl().is_view;
  if (!remember) return t.to(dtype);
  auto [at, is_new] = s.cache.try_emplace(&t.impl());
  if (is_new) at->second = {t, t.to(dtype)};
  return at->second.to;
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
    const AutocastRegion& region = state().cpu;
    if (!region.enabled || state().busy) return call_next(op, args);
    const AutocastPolicy policy = autocast_policy(op);
    if (policy == AutocastPolicy::none) {
      if (!op.is_composite()) return call_next(op, args);
      // Its parts are calls like any other.
      const ModeScope again(*this);
      return op.run_eager(args);
    }
    const BusyScope busy(true);
    DType dtype = policy == AutocastPolicy::float32 ? DType::float32 : region.dtype;
    if (policy == AutocastPolicy::promote)
      for (const Value& v : args) dtype = widest(dtype, v, region.dtype, op);
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
  AutocastRegion region = state().of(device);
  region.device = device;
  region.cache_enabled = state().cache_enabled;
  return region;
}

AutocastScope::AutocastScope(DeviceType device, std::optional<DType> dtype, bool enabled, std::optional<bool> cache_enabled)
    : before_(autocast_region(device)), device_(device), busy_before_(state().busy) {
  if (device == DeviceType::meta) throw UserError("autocast: expected the device type cpu or cuda, found meta");
  State& s = state();
  AutocastRegion region = before_;
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
  s.of(device) = region;
  s.cache_enabled = region.cache_enabled;
  s.busy = false;
  ++s.nesting;
  if (region.enabled && device == DeviceType::cpu) mode_.emplace(autocast_mode());
  if (RegionObserver* observer = region_observer()) observer->autocast_entered(region);
}

AutocastScope::~AutocastScope() {
  State& s = state();
  if (RegionObserver* observer = region_observer()) observer->autocast_left();
  s.of(device_) = before_;
  s.cache_enabled = before_.cache_enabled;
  s.busy = busy_before_;
  if (--s.nesting == 0) s.cache.clear();
}

NoAutocastCacheScope::NoAutocastCacheScope() : before_(state().cache_enabled) { state().cache_enabled = false; }
NoAutocastCacheScope::~NoAutocastCacheScope() { state().cache_enabled = before_; }

}  // namespace calque
