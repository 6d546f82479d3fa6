#include "calque/grad/checkpoint.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/op/autocast.h"
#include "calque/op/mode.h"
#include "calque/op/tree.h"
#include "calque/tensor/generator.h"

namespace calque {
namespace {

// What a computation depends on besides its inputs, as it was the first time.
class Surroundings {
 public:
  explicit Surroundings(bool with_random) {
    const ThreadContext& context = thread_context();
    cpu_ = context.autocast_cpu;
    others_ = context.autocast_others;
    cache_enabled_ = context.autocast_cache_enabled;
    if (!with_random) return;
    Generator& generator = default_generator();
    const std::lock_guard lock(generator.mutex());
    random_ = generator.get_state();
  }

  // Puts them in place for the life of the scope.
  class Scope {
   public:
    explicit Scope(const Surroundings& there) : others_(there.others_) {
      if (there.cpu_.enabled || thread_context().autocast_cpu.enabled)
        autocast_.emplace(DeviceType::cpu, there.cpu_.dtype, there.cpu_.enabled, there.cache_enabled_);
      if (there.random_.empty()) return;
      Generator& generator = default_generator();
      const std::lock_guard lock(generator.mutex());
      before_ = generator.get_state();
      generator.set_state(there.random_);
    }
    ~Scope() {
      if (before_.empty()) return;
      Generator& generator = default_generator();
      const std::lock_guard lock(generator.mutex());
      generator.set_state(before_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ContextScope<&ThreadContext::autocast_others> others_;
    std::optional<AutocastScope> autocast_;
    std::vector<uint8_t> before_;
  };

 private:
  AutocastSetting cpu_;
  AutocastSetting others_;
  bool cache_enabled_;
  std::vector<uint8_t> random_;
};

TensorVector detached(const TensorVector& inputs) {
  TensorVector out;
  for (const Tensor& t : inputs) {
    if (!t.defined()) {
      out.emplace_back();
      continue;
    }
    out.push_back(t.detach());
    if (t.requires_grad()) out.back().set_requires_grad();
  }
  return out;
}

// ---- with a pass inside of the pass ---------------------------------------------------------------------------------

class Reentrant final : public GradFunction {
 public:
  Reentrant(CheckpointedFunction function, bool with_random) : function_(std::move(function)), before_(with_random) {}
  std::string name() const override { return "CheckpointFunction"; }

  TensorVector forward(const TensorVector& inputs) override {
    save_for_backward(inputs);
    set_materialize_grads(false);
    return function_(inputs);
  }

  TensorVector backward(const TensorVector& grads) override {
    const TensorVector inputs = detached(saved_tensors());
    TensorVector outputs;
    {
      const Surroundings::Scope scope(before_);
      const EnableGradGuard on;
      outputs = function_(inputs);
    }
    TensorVector roots, given;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (grads[i].defined() && outputs[i].defined() && outputs[i].requires_grad()) {
        roots.push_back(outputs[i]);
        given.push_back(grads[i]);
      }
    if (roots.empty())
      throw UserError("checkpoint: none of the outputs has requires_grad; this checkpoint is not necessary");
    calque::backward(roots, {.gradients = given});
    TensorVector out;
    for (const Tensor& t : inputs) out.push_back(t.defined() ? grad_of(t) : Tensor());
    return out;
  }

 private:
  CheckpointedFunction function_;
  Surroundings before_;
};

// ---- with the kept tensors computed again -----------------------------------------------------------------------------

struct Enough {};  // every tensor that was kept is there again: leaves the computation

// What a checkpointed part has instead of the tensors that its nodes keep.
struct Frame {
  Frame(CheckpointedFunction function, TensorVector inputs, const CheckpointingOptions& options)
      : function(std::move(function)), inputs(std::move(inputs)), options(options), before(options.preserve_rng_state) {}

  CheckpointedFunction function;
  TensorVector inputs;
  CheckpointingOptions options;
  Surroundings before;
  std::vector<Meta> kept;                    // what the first time kept, in order
  std::unordered_map<size_t, Tensor> again;  // computed again, by number

  void compute();
};

struct Place {
  std::shared_ptr<Frame> frame;
  size_t number;
};

class Collect final : public SavedTensorHooks {
 public:
  explicit Collect(Frame& frame) : frame_(frame) {}
  std::shared_ptr<void> pack(const Tensor& t) override {
    const size_t number = count_++;
    if (number >= frame_.kept.size()) differs(std::to_string(frame_.kept.size()), "more");
    check(number, t);
    const Tensor kept = t.detach();
    frame_.again[number] = kept;
    if (frame_.options.early_stop && count_ == frame_.kept.size()) throw Enough();
    return std::make_shared<Tensor>(kept);
  }
  Tensor unpack(const std::shared_ptr<void>& packed) override { return *std::static_pointer_cast<Tensor>(packed); }
  size_t count() const { return count_; }

  [[noreturn]] static void differs(const std::string& first, const std::string& second) {
    throw UserError(
        "checkpoint: a different number of tensors was saved during the original forward and recomputation. Number "
        "of tensors saved during forward: " +
        first + ", during recomputation: " + second + "; the function must do the same each time");
  }

 private:
  void check(size_t number, const Tensor& t) const {
    if (!frame_.options.check_determinism) return;
    const Meta& first = frame_.kept[number];
    if (str(SymIntList(first.sizes)) == str(t.sym_sizes()) && first.dtype == t.dtype()) return;
    throw UserError("checkpoint: recomputed values have different metadata than during the forward pass: tensor " +
                    std::to_string(number) + " had sizes " + str(SymIntList(first.sizes)) + " and dtype " +
                    std::string(name(first.dtype)) + ", now " + str(t.sym_sizes()) + " and " + std::string(name(t.dtype())) +
                    "; the function must do the same each time");
  }
  Frame& frame_;
  size_t count_ = 0;
};

void Frame::compute() {
  const Surroundings::Scope scope(before);
  const EnableGradGuard on;
  const auto collect = std::make_shared<Collect>(*this);
  const SavedTensorHooksScope hooks(collect);
  try {
    (void)function(inputs);
  } catch (const Enough&) {
    return;
  }
  if (collect->count() < kept.size()) Collect::differs(std::to_string(kept.size()), std::to_string(collect->count()));
}

class Forget final : public SavedTensorHooks {
 public:
  explicit Forget(std::shared_ptr<Frame> frame) : frame_(std::move(frame)) {}
  std::shared_ptr<void> pack(const Tensor& t) override {
    frame_->kept.push_back(t.meta());
    return std::make_shared<Place>(Place{frame_, frame_->kept.size() - 1});
  }
  Tensor unpack(const std::shared_ptr<void>& packed) override {
    const Place& place = *std::static_pointer_cast<Place>(packed);
    Frame& frame = *place.frame;
    if (frame.again.find(place.number) == frame.again.end()) frame.compute();
    const auto found = frame.again.find(place.number);
    if (found == frame.again.end()) throw InternalError("checkpoint: a tensor was not computed again");
    Tensor t = std::move(found->second);
    frame.again.erase(found);
    return t;
  }

 private:
  std::shared_ptr<Frame> frame_;
};

}  // namespace

TensorVector checkpoint(const CheckpointedFunction& function, const TensorVector& inputs,
                        const CheckpointingOptions& options) {
  if (!records_gradients()) return function(inputs);
  if (options.use_reentrant) {
    if (std::none_of(inputs.begin(), inputs.end(), [](const Tensor& t) { return t.defined() && t.requires_grad(); }))
      warn("checkpoint: none of the inputs has requires_grad. Gradients will be none");
    return apply_function(std::make_shared<Reentrant>(function, options.preserve_rng_state), inputs);
  }
  const auto frame = std::make_shared<Frame>(function, inputs, options);
  const SavedTensorHooksScope hooks(std::make_shared<Forget>(frame));
  return function(inputs);
}

Value checkpoint_values(const std::function<Value(const Value& inputs)>& function, const Value& inputs,
                        const CheckpointingOptions& options) {
  // A tree with its tensors taken out and put in again: what stays behind may not keep them.
  struct Tree {
    explicit Tree(const Value& value) : flat(tree_flatten(value)) {
      for (size_t i = 0; i < flat.leaves.size(); ++i)
        if (flat.leaves[i].is_tensor()) {
          places.push_back(i);
          tensors.push_back(flat.leaves[i].to_tensor());
          flat.leaves[i] = Value();
        }
    }
    Value with(const TensorVector& given) const {
      Values leaves = flat.leaves;
      for (size_t i = 0; i < places.size(); ++i) leaves[places[i]] = given[i];
      return tree_unflatten(leaves, flat.spec);
    }
    FlatTree flat;
    std::vector<size_t> places;
    TensorVector tensors;
  };
  Tree given(inputs);
  const TensorVector tensors = std::exchange(given.tensors, {});
  const auto result = std::make_shared<std::optional<Tree>>();
  const auto computed = [function, given, result](const TensorVector& x) {
    result->emplace(function(given.with(x)));
    return std::exchange((*result)->tensors, {});
  };
  const TensorVector out = checkpoint(computed, tensors, options);
  return (*result)->with(out);
}

TensorVector checkpoint_sequential(const std::vector<CheckpointedFunction>& functions, size_t segments,
                                   const TensorVector& inputs, const CheckpointingOptions& options) {
  if (segments == 0 || segments > functions.size())
    throw UserError("checkpoint_sequential: " + std::to_string(functions.size()) + " functions cannot be " +
                    std::to_string(segments) + " parts");
  // A part is run again later: it has its functions itself.
  const auto part = [&](size_t first, size_t end) -> CheckpointedFunction {
    const auto at = [&](size_t i) { return functions.begin() + static_cast<std::ptrdiff_t>(i); };
    return [own = std::vector<CheckpointedFunction>(at(first), at(end))](const TensorVector& x) {
      TensorVector values = x;
      for (const CheckpointedFunction& f : own) values = f(values);
      return values;
    };
  };
  const size_t length = functions.size() / segments;
  TensorVector values = inputs;
  size_t first = 0;
  for (size_t i = 0; i + 1 < segments; ++i, first += length)
    values = checkpoint(part(first, first + length), values, options);
  return part(first, functions.size())(values);
}

}  // namespace calque
