#include "conv1d.h"

#include "calque/nn/init.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/zeros.h"

namespace calque {

Conv1D::Conv1D(int64_t out_features, int64_t in_features)
    : out_features(out_features),
      in_features(in_features),
      weight(register_parameter("weight", empty({in_features, out_features}))),
      bias(register_parameter("bias", zeros({out_features}))) {
  init::normal_(weight, 0, 0.02);
}

Tensor Conv1D::forward(const Tensor& x) {
  SymInts sizes(x.sym_sizes().begin(), x.sym_sizes().end());
  sizes.back() = out_features;
  return addmm(bias, x.view({-1, in_features}), weight).view(sizes);
}

std::string Conv1D::str() const {
  return "Conv1D(nf=" + std::to_string(out_features) + ", nx=" + std::to_string(in_features) + ")";
}

}  // namespace calque
