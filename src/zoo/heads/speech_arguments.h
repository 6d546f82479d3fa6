// The arguments of models that hear: samples, or features of frames, instead of ids.
#pragma once

#include "calque/hub/model_inputs.h"

namespace calque::arg {

inline constexpr ArgumentName<Tensor> input_values{"input_values"};      // samples [batch, samples]
inline constexpr ArgumentName<Tensor> input_features{"input_features"};  // log-mel features
inline constexpr ArgumentName<Tensor> mask_time_indices{"mask_time_indices"};

}  // namespace calque::arg
