// A module that is answered for, and its own answer all the same: what compile_in_place() needs.
#pragma once

#include <functional>

#include "calque/nn/module.h"

namespace calque::nn_detail {

// From then on calls of the module that nobody observes give what the function gives. An empty function ends it.
void call_instead(Module& module, std::function<Value(const Values& args, const Kwargs& kwargs)> function);
// Observers, hooks, forward.
Value call_itself(Module& module, Values args, Kwargs kwargs);

}  // namespace calque::nn_detail
