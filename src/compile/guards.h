// Guards: what must hold of a call's arguments, of the modules that a capture met and of the calling thread for its result to serve
// again. Immutable once built; any number of threads check them. A check allocates nothing; why it failed is made on request.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calque/base/small_vector.h"
#include "calque/base/thread_context.h"
#include "calque/nn/module.h"
#include "calque/op/tree.h"
#include "sym/guard_checks.h"

namespace calque::compile_detail {

// The switches of a thread on which results depend.
struct GlobalState {
  bool grad_enabled = true;
  DType default_dtype = DType::float32;
  AutocastSetting autocast_cpu, autocast_others;
  bool autocast_cache = true;
  bool cudnn = true;
  static GlobalState now();
  bool operator==(const GlobalState&) const = default;
};

// A leaf of the arguments in order, or a container in front of its items.
struct ArgumentGuard {
  std::string source;  // "L['x'][0]"
  Value::Kind kind = Value::Kind::none;
  Value constant;          // of a leaf that is no tensor and no symbolic number; of a container its keys or type
  size_t items = 0;        // of a container
  bool is_number = false;  // a symbolic integer or float
};

struct TensorGuard {
  std::string source;
  DType dtype = DType::float32;
  Device device;
  bool requires_grad = false;
  SmallVector<int64_t, 6> sizes, strides;  // -1 where a symbol says it
  std::vector<int64_t> marks;              // dimensions that were marked dynamic
  int alias_of = -1;                       // an earlier tensor that is the same
  const TensorImpl* identity = nullptr;    // it has to be this one: a parameter of a module that the capture met
};

// The tensors and symbolic numbers of a call, as the walk over its arguments finds them.
struct GuardedCall {
  SmallVector<const Tensor*, 32> tensors;
  SmallVector<int64_t, 8> numbers;  // floats by their bits
};

class Guards {
 public:
  // What the capture knew. `kwargs` are named leaves after the arguments.
  struct Parts {
    std::vector<ArgumentGuard> arguments;
    std::vector<TensorGuard> tensors;
    std::vector<std::string> numbers;  // sources of symbolic numbers
    GlobalState state;
    std::vector<std::shared_ptr<Module>> modules;       // roots that the capture met
    std::vector<std::pair<std::string, Value>> values;  // guard_on: by name
    std::shared_ptr<ShapeEnv> env;
    std::optional<GuardChecks> checks;
  };
  explicit Guards(Parts parts);

  // Whether the call may be served. Fills what it found; `why` gets the first thing that does not hold.
  bool check(const Values& args, const Kwargs& kwargs, const std::vector<std::pair<std::string, Value>>& values,
             GuardedCall& found, std::string* why = nullptr) const;
  size_t size() const { return texts_.size(); }
  size_t num_shape_guards() const { return shape_guards_; }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  struct SlotGuard {
    const TensorSlot* slot;
    const TensorImpl* tensor;
    const Storage* storage;
    DType dtype;
    bool requires_grad;
    uint32_t path;
  };
  struct ModuleGuard {
    const ModuleSlot* slot;  // null for a root
    const Module* module;
    bool training;
    uint64_t hooks;
    uint32_t parameters, buffers, constants, children;  // how many it has
    uint32_t path;
  };
  // A number of the call: a size, a stride, an offset or an argument.
  struct Place {
    enum class What : uint8_t { size, stride, offset, number } what = What::number;
    uint32_t index = 0;
    uint32_t dimension = 0;
  };
  struct Bound {
    size_t symbol;
    Place place;
    bool is_float;
  };
  struct Equality {
    Place place;
    const Expr* expr;
    uint32_t text;
  };
  struct Range {
    Place place;
    ValueRange range;
    uint32_t text;
  };

  void add_module(const std::string& path, const ModuleSlot* slot, const Module& module, int depth);
  void add_checks(const GuardChecks& checks);
  void write_texts();
  std::optional<Place> place_of(const std::string& source) const;
  int64_t value_at(const Place& place, const GuardedCall& call) const;
  bool walk(const Value& v, size_t& at, GuardedCall& found, std::string* why) const;
  bool check_tensor(const Tensor& t, size_t index, const GuardedCall& found, std::string* why) const;
  bool check_modules(std::string* why) const;
  bool check_shapes(const GuardedCall& call, std::string* why) const;

  Parts parts_;
  std::vector<SlotGuard> slots_;
  std::vector<ModuleGuard> modules_;
  std::vector<std::string> paths_;
  std::vector<Bound> bound_;
  std::vector<Equality> equalities_;
  std::vector<std::pair<const Expr*, uint32_t>> conditions_;
  std::vector<Range> ranges_;
  std::vector<Place> not_nan_;
  std::vector<std::string> check_texts_;
  std::vector<std::string> texts_;
  size_t shape_guards_ = 0;
};

// A value that is no tensor, as a guard: equal kinds, equal contents, floats bit by bit.
bool same_constant(const Value& a, const Value& b);

}  // namespace calque::compile_detail
