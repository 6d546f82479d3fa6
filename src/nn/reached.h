// The place through which a module was reached last on this thread: for a module with several names, the one by which it is
// called. It may be gone by the time somebody looks, so it is to be compared, not followed.
#pragma once

namespace calque {

struct ModuleSlot;

namespace nn_detail {
extern thread_local constinit const ModuleSlot* reached_slot;
}  // namespace nn_detail

}  // namespace calque
