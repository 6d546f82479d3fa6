// ThreadContext: the modes, scopes and switches of the calling thread, all of them. A scope changes a member while it lives
// and puts back what was there; the headers named below declare the scopes, and programs use these alone. The context
// owns nothing but the memory of its lists, which the last scope gives back. So it needs no constructor and no destructor: a
// read costs one load, also from other files, and nothing can be read too early or too late.
// What a thread keeps for reuse (scratch memory, small blocks) is no context and stays with its owner; tests/layering has
// the list of these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace calque {

// Types of the rooms above. The context holds pointers to them and does not look inside.
class AutocastCache;
class CompositePolicy;
class GradNode;
class GraphOwner;
class HigherOrderTracer;
class Mode;
class ModuleObserver;
class Recorder;
class RegionObserver;
class SavedTensorHooks;
class SymObserver;
class Value;
struct CallSite;
struct EnteredAutocast;
struct ModuleCopies;
struct NodeMeta;
enum class DType : uint8_t;

// Autocast on one kind of device.
struct AutocastSetting {
  std::optional<DType> dtype;  // none: the device's own
  bool enabled = false;
  bool operator==(const AutocastSetting&) const = default;
};

// What can be copied and compared: between two copies lies what a piece of code has left behind.
struct ThreadSwitches {
  // op/autograd.h
  bool below_autograd = false;  // what is called now is not recorded for a backward pass, or has been
  enum class Anomaly : uint8_t { off, named, nan_too };
  Anomaly detect_anomaly = Anomaly::off;  // a pass that fails names the line of the call; NaN is a failure, too

  // op/mode.h
  int active_modes = 0;                 // modes that a call would meet now
  size_t mode_position = 0;             // modes before this one have handled the call already
  const CallSite* call_site = nullptr;  // of the outermost call being handled

  // nn/observer.h, nn/typed.h, nn/backends.h, nn/meta_parameters.h, nn/module_copy.cpp
  const std::source_location* module_call_line = nullptr;  // of the module call that is about to be made
  // The place through which a module was reached last, by number: for a module with several names, the one by which it is
  // called. Numbers are not used twice, so that a place that is gone equals no other.
  uint64_t reached_slot = 0;
  bool cudnn_enabled = true;
  bool meta_parameters = false;           // modules are made without data in their parameters
  ModuleCopies* module_copies = nullptr;  // of the deep_copy that is going on

  // tensor/tensor_base.h, tensor/regions.h, tensor/default_dtype.h
  bool grad_enabled = true;
  RegionObserver* region_observer = nullptr;
  std::optional<DType> default_dtype;  // none: the process's

  // sym/observer.h, sym/shape_env.h, sym/unbacked.h
  SymObserver* sym_observer = nullptr;
  std::string_view guard_operator;
  std::string_view guard_module;
  bool guards_suppressed = false;
  bool fresh_unbacked_ignored = false;

  // op/composite_policy.h
  const CompositePolicy* composite_policy = nullptr;
  const std::vector<Value>* composite_arguments = nullptr;
  bool python_bodies = false;

  // op/autocast.h, graph/region_functions.cpp
  AutocastSetting autocast_cpu;
  AutocastSetting autocast_others;  // of devices that are not there: what was asked for is kept, nothing is cast
  bool autocast_cache_enabled = true;
  bool autocast_busy = false;  // a call is being handled: what it comes down to is not cast again
  int autocast_nesting = 0;
  AutocastCache* autocast_cache = nullptr;      // the outermost scope takes it away
  EnteredAutocast* entered_autocast = nullptr;  // the region that a graph has entered last

  // op/literal.h. What tensor(...) makes of a symbolic number: it is specialised, as PyTorch's make_fx has it, or stays what
  // it is in a call of scalar_tensor, as torch.export has it.
  bool symbolic_literals = false;

  // graph/interpreter.h, graph/higher_order.h
  const GraphOwner* running_owner = nullptr;
  HigherOrderTracer* higher_order_tracer = nullptr;

  // trace/make_fx.h, trace/tracer.h, trace/decompositions
  Recorder* recorder = nullptr;           // of those on the stack of modes the one that records; the others let calls pass
  const NodeMeta* origin_meta = nullptr;  // of the node that is being run again
  int symbolic_traces = 0;                // that are going on
  bool interpolates_by_factors = false;   // the call comes from the form that interpolate calls, with a list of factors

  // export/export.h
  int exports = 0;  // that are going on

  bool operator==(const ThreadSwitches&) const = default;
};

// A list of pointers that has no destructor: its memory is given back with the last pointer, which the scope that put it
// in takes out.
template <class T>
class PointerList {
 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* operator[](size_t i) const { return items_[i]; }
  T* const* begin() const { return items_; }
  T* const* end() const { return items_ + size_; }
  // Where the item stands from `first` on; size() when it does not.
  size_t find(T* item, size_t first = 0) const {
    while (first < size_ && items_[first] != item) ++first;
    return first < size_ ? first : size_;
  }
  void insert(size_t at, T* item) {
    if (size_ == capacity_) {
      const size_t capacity = capacity_ == 0 ? 8 : 2 * capacity_;
      void* grown = std::realloc(items_, capacity * sizeof(T*));
      if (grown == nullptr) throw std::bad_alloc();
      items_ = static_cast<T**>(grown);
      capacity_ = capacity;
    }
    if (at < size_) std::memmove(items_ + at + 1, items_ + at, (size_ - at) * sizeof(T*));
    items_[at] = item;
    ++size_;
  }
  void erase(size_t at) {
    --size_;
    if (at < size_) std::memmove(items_ + at, items_ + at + 1, (size_ - at) * sizeof(T*));
    if (size_ != 0) return;
    std::free(std::exchange(items_, nullptr));
    capacity_ = 0;
  }

 private:
  T** items_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

struct ThreadContext : ThreadSwitches {
  // op/grad_node.h
  GradNode* dying_nodes = nullptr;                             // that wait for the one that is being destroyed
  bool nodes_die = false;                                      // one is being destroyed
  uint64_t grad_nodes = 0;                                     // that the thread has made
  PointerList<std::shared_ptr<SavedTensorHooks>> saved_hooks;  // op/grad_node.h: the innermost last
  PointerList<Mode> modes;                                     // op/mode.h: ordered by slot, the newest of a slot first
  PointerList<ModuleObserver> module_observers;                // nn/observer.h: the innermost last
};
static_assert(std::is_trivially_destructible_v<ThreadContext>);

namespace context_detail {
extern thread_local constinit ThreadContext context;
}  // namespace context_detail

inline ThreadContext& thread_context() { return context_detail::context; }

// A member of the calling thread's context has another value while in scope: ContextScope<&ThreadContext::call_site>.
template <auto member>
class ContextScope {
 public:
  using Type = std::remove_reference_t<decltype(std::declval<ThreadContext&>().*member)>;
  explicit ContextScope(Type value) : before_(std::exchange(thread_context().*member, value)) {}
  ~ContextScope() { thread_context().*member = before_; }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  Type before_;
};

// The same with the value in the type.
template <auto member, auto value>
class ContextSwitch {
 public:
  ContextSwitch() : scope_(value) {}

 private:
  ContextScope<member> scope_;
};

// Counts the scopes that are open, which need not be closed in the reverse of the order in which they were opened.
template <auto member>
class ContextCount {
 public:
  ContextCount() { ++(thread_context().*member); }
  ~ContextCount() { --(thread_context().*member); }
  ContextCount(const ContextCount&) = delete;
  ContextCount& operator=(const ContextCount&) = delete;
};

}  // namespace calque
