// functional_call: a module called with other parameters and buffers than its own, as torch.func.functional_call. The
// module's own are put back when the call ends, also by an exception. Not for a module that another thread runs.
#pragma once

#include "calque/nn/module.h"

namespace calque {

struct FunctionalCallOptions {
  bool tie_weights = true;  // a tensor given for one name serves the names tied to it
  bool strict = false;      // every name must be given, and no other
};

Value functional_call(Module& module, const StateDict& parameters_and_buffers, Values args, Kwargs kwargs = {},
                      FunctionalCallOptions options = {});

// The exchange alone, for callers who do more than one call with it.
class FunctionalCall {
 public:
  FunctionalCall(Module& module, const StateDict& parameters_and_buffers, FunctionalCallOptions options = {});
  ~FunctionalCall();
  FunctionalCall(const FunctionalCall&) = delete;
  FunctionalCall& operator=(const FunctionalCall&) = delete;

 private:
  std::vector<std::pair<TensorSlot*, Tensor>> own_;
};

}  // namespace calque
