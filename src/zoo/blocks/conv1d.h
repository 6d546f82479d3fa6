// Conv1D: GPT-2's linear layer, with the weight the other way round, (in, out).
#pragma once

#include <string>

#include "calque/nn/typed.h"

namespace calque {

struct Conv1D : Typed<Conv1D> {
  static constexpr const char* torch_type = "transformers.pytorch_utils.Conv1D";
  static constexpr const char* forward_arguments[] = {"x"};
  Conv1D(int64_t out_features, int64_t in_features);
  Tensor forward(const Tensor& x);
  std::string str() const override;

  int64_t out_features;
  int64_t in_features;
  Parameter weight;  // (in_features, out_features)
  Parameter bias;
};

}  // namespace calque
