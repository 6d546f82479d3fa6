// Layers whose call may be checkpointed while a model is trained: what they compute is not kept but computed again when the pass comes
// back. A model's layer class says so by its base,
//
//   struct BertLayer : Checkpointed<Typed<BertLayer>> { ... };
//
// and PretrainedModel::gradient_checkpointing_enable switches it on.
#pragma once

#include <optional>

#include "calque/grad/checkpointing_options.h"
#include "calque/nn/typed.h"

namespace calque {

struct GradientCheckpointingLayer {
  GradientCheckpointingLayer() = default;
  virtual ~GradientCheckpointingLayer() = default;
  virtual bool can_checkpoint() const { return true; }

  std::optional<CheckpointingOptions> gradient_checkpointing;  // none: off
  bool is_prepared = false;                                    // has the hook that takes its cache away

 protected:
  GradientCheckpointingLayer(const GradientCheckpointingLayer&) = default;
};

namespace hub_detail {
// The layer's computation, checkpointed where that is on and the layer is trained.
Value checkpointed(Module& module, const GradientCheckpointingLayer& layer,
                   Value (*forward)(Module&, const Values&, const Kwargs&), const Values& args, const Kwargs& kwargs);
}  // namespace hub_detail

template <class Base>
struct Checkpointed : Base, GradientCheckpointingLayer {
  using Base::Base;
  Value forward_values(const Values& args, const Kwargs& kwargs) override {
    const auto forward = [](Module& module, const Values& given, const Kwargs& named) {
      return static_cast<Checkpointed&>(module).Base::forward_values(given, named);
    };
    return hub_detail::checkpointed(*this, *this, forward, args, kwargs);
  }
};

}  // namespace calque
