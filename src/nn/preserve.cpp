#include "calque/nn/preserve.h"

#include <unordered_set>

#include "calque/op/operators.h"
#include "calque/tensor/generator.h"

namespace calque {

RngStateScope::RngStateScope() {
  Generator& generator = default_generator();
  const std::lock_guard lock(generator.mutex());
  state_ = generator.get_state();
}

RngStateScope::~RngStateScope() {
  Generator& generator = default_generator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state_);
}

StateSnapshot::StateSnapshot(Module& module) {
  const NoModesScope plain;
  const GradModeScope no_grad(false);
  std::unordered_set<const TensorImpl*> seen;
  for (Module* m : module.modules())
    for (const auto* slots : {&m->parameter_slots(), &m->buffer_slots()})
      for (const auto& slot : *slots) {
        places_.push_back({slot.get(), slot->tensor});
        const Tensor& t = slot->tensor;
        if (t.defined() && !t.is_fake() && seen.insert(&t.impl()).second) values_.emplace_back(t, t.clone());
      }
}

void StateSnapshot::restore() const {
  const NoModesScope plain;
  const GradModeScope no_grad(false);
  for (const auto& [tensor, held] : values_) tensor.copy_(held);
  for (const Place& place : places_) place.slot->tensor = place.tensor;
}

}  // namespace calque
