// What PyTorch's attention makes of NaN and infinities, where its order of doing things shows. The kernel leaves masked keys
// out; PyTorch multiplies their values by a weight of 0, and 0 times infinity is NaN.
#pragma once

#include "kernel/cpu/attention/attention.h"

namespace calque {

// Called after attention(g); writes only rows that hold, or should hold, NaN.
template <class T>
void settle_special_values(const Attention<T>& g);

}  // namespace calque
