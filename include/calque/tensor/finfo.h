// The limits of floating-point dtypes as torch.finfo has them, as doubles. A complex dtype has its component's.
#pragma once

#include "calque/tensor/dtype.h"

namespace calque {

double largest_finite(DType d);  // torch.finfo(d).max; a UserError for integers and bool
double lowest_finite(DType d);   // torch.finfo(d).min

}  // namespace calque
