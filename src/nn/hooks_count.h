// Which hooks run around a module's forward, as a number: other hooks have another number, none have 0. For guards.
#pragma once

#include <cstdint>

#include "nn/plain_members.h"

namespace calque {

inline uint64_t forward_hooks_state(const Module& module) { return PlainMembers::forward_hooks(module); }

}  // namespace calque
