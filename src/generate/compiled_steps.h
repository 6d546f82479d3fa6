// Steps of one token by a plan (compile/), over keys and values in memory of a fixed capacity: what is new is written behind what is there,
// and nothing is copied until the capacity is reached. The base model is what is compiled; heads are the class's own. It gives the
// numbers that the model gives itself. Where a model cannot be captured so, `answer` says no from then on.
#pragma once

#include <optional>

#include "calque/compile/compile.h"
#include "calque/hub/cache.h"
#include "calque/hub/pretrained_model.h"
#include "calque/nn/observer.h"

namespace calque {

class CompiledSteps {
 public:
  // For a model whose base model is a child of it, and a cache in which every layer holds every token.
  static bool can(PretrainedModel& model, const KeyValueCache& cache);
  CompiledSteps(PretrainedModel& model, const KeyValueCache& cache);

  // The base model is answered by a plan while in scope.
  class Scope;

  int64_t length() const { return length_; }  // tokens that are kept
  bool works() const { return !failed_; }
  KeyValueCache cache() const;  // views; good until the next step

 private:
  struct Room {
    Tensor key, value;  // [batch, heads, capacity, head size]
  };
  std::optional<Value> step(const Tensor& input_ids);
  void make_room(int64_t capacity);
  static CompiledGraph plan_of_step(std::shared_ptr<GraphModule> graph, size_t layers);

  PretrainedModel& base_;
  std::vector<Room> rooms_;
  int64_t length_ = 0;
  bool failed_ = false;
  std::optional<Compiled> compiled_;
};

class CompiledSteps::Scope final : public ModuleObserver {
 public:
  explicit Scope(CompiledSteps& steps) : steps_(steps), scope_(*this) {}
  std::optional<Value> intercept(Module& module, const Values& args, const Kwargs& kwargs) override;
  bool answered() const { return answered_; }

 private:
  CompiledSteps& steps_;
  bool answered_ = false;
  ModuleObserverScope scope_;
};

}  // namespace calque
