#include "calque/nn/activation.h"

#include "calque/nn/dropout.h"
#include "calque/nn/functional.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"
#include "calque/tensor/number_text.h"

namespace calque {

static std::string numbers(const char* name, double value, bool inplace = false) {
  return std::string(name) + "=" + python_repr(value) + (inplace ? ", inplace=True" : "");
}

Tensor Tanh::forward(const Tensor& input) { return tanh(input); }
Tensor Sigmoid::forward(const Tensor& input) { return sigmoid(input); }
Tensor LogSigmoid::forward(const Tensor& input) { return log_sigmoid(input); }
Tensor Softsign::forward(const Tensor& input) { return functional::softsign(input); }
Tensor Tanhshrink::forward(const Tensor& input) { return functional::tanhshrink(input); }
Tensor Softmax2d::forward(const Tensor& input) {
  if (input.dim() != 3 && input.dim() != 4)
    throw UserError("Softmax2d: expected input to be 3D or 4D, got " + std::to_string(input.dim()) + "D instead");
  return softmax(input, -3);
}

Tensor ReLU::forward(const Tensor& input) { return inplace ? relu_(input) : relu(input); }
Tensor ReLU6::forward(const Tensor& input) { return inplace ? hardtanh_(input, 0.0, 6.0) : hardtanh(input, 0.0, 6.0); }
Tensor SiLU::forward(const Tensor& input) { return inplace ? silu_(input) : silu(input); }
Tensor SELU::forward(const Tensor& input) { return inplace ? selu_(input) : selu(input); }
Tensor Mish::forward(const Tensor& input) { return inplace ? mish_(input) : mish(input); }
Tensor Hardswish::forward(const Tensor& input) { return inplace ? hardswish_(input) : hardswish(input); }
Tensor Hardsigmoid::forward(const Tensor& input) { return inplace ? hardsigmoid_(input) : hardsigmoid(input); }

Tensor Softmax::forward(const Tensor& input) { return functional::softmax(input, dim); }
Tensor LogSoftmax::forward(const Tensor& input) { return functional::log_softmax(input, dim); }
Tensor Softmin::forward(const Tensor& input) { return functional::softmin(input, dim); }
Tensor GLU::forward(const Tensor& input) { return glu(input, dim); }
Tensor GELU::forward(const Tensor& input) { return gelu(input, approximate); }

Tensor ELU::forward(const Tensor& input) { return inplace ? elu_(input, alpha) : elu(input, alpha); }
std::string ELU::extra_repr() const { return numbers("alpha", alpha, inplace); }
Tensor CELU::forward(const Tensor& input) { return inplace ? celu_(input, alpha) : celu(input, alpha); }
std::string CELU::extra_repr() const { return numbers("alpha", alpha, inplace); }
Tensor LeakyReLU::forward(const Tensor& input) {
  return inplace ? leaky_relu_(input, negative_slope) : leaky_relu(input, negative_slope);
}
std::string LeakyReLU::extra_repr() const { return numbers("negative_slope", negative_slope, inplace); }

Tensor Softshrink::forward(const Tensor& input) { return softshrink(input, lambd); }
std::string Softshrink::extra_repr() const { return python_repr(lambd); }
Tensor Hardshrink::forward(const Tensor& input) { return hardshrink(input, lambd); }
std::string Hardshrink::extra_repr() const { return python_repr(lambd); }

Hardtanh::Hardtanh(double min_val, double max_val, bool inplace) : min_val(min_val), max_val(max_val), inplace(inplace) {
  if (!(max_val > min_val)) throw UserError("Hardtanh: max_val must be larger than min_val");
}
Tensor Hardtanh::forward(const Tensor& input) {
  return inplace ? hardtanh_(input, min_val, max_val) : hardtanh(input, min_val, max_val);
}
std::string Hardtanh::extra_repr() const {
  return numbers("min_val", min_val) + ", " + numbers("max_val", max_val, inplace);
}

Tensor Softplus::forward(const Tensor& input) { return softplus(input, beta, threshold); }
std::string Softplus::extra_repr() const { return numbers("beta", beta) + ", " + numbers("threshold", threshold); }

Tensor Threshold::forward(const Tensor& input) {
  return inplace ? threshold_(input, threshold, value) : calque::threshold(input, threshold, value);
}
std::string Threshold::extra_repr() const {
  return numbers("threshold", threshold) + ", " + numbers("value", value, inplace);
}

Tensor RReLU::forward(const Tensor& input) {
  return inplace ? rrelu_(input, lower, upper, training()) : rrelu(input, lower, upper, training());
}
std::string RReLU::extra_repr() const { return numbers("lower", lower) + ", " + numbers("upper", upper, inplace); }

PReLU::PReLU(int64_t num_parameters, double init, Factory factory)
    : num_parameters(num_parameters),
      weight(register_parameter("weight", full({num_parameters}, init, factory.dtype, std::nullopt, factory.device))) {}
Tensor PReLU::forward(const Tensor& input) { return prelu(input, weight); }

// ---- dropout --------------------------------------------------------------------------------------------------------

DropoutBase::DropoutBase(double p, bool inplace) : p(p), inplace(inplace) {
  if (p < 0 || p > 1) throw UserError("dropout probability has to be between 0 and 1, but got " + python_repr(p));
}
std::string DropoutBase::extra_repr() const { return "p=" + python_repr(p) + ", inplace=" + nn_detail::text(inplace); }

Tensor Dropout::forward(const Tensor& input) { return functional::dropout(input, p, training(), inplace); }
Tensor Dropout1d::forward(const Tensor& input) { return functional::dropout1d(input, p, training(), inplace); }
Tensor Dropout2d::forward(const Tensor& input) { return functional::dropout2d(input, p, training(), inplace); }
Tensor Dropout3d::forward(const Tensor& input) { return functional::dropout3d(input, p, training(), inplace); }
Tensor AlphaDropout::forward(const Tensor& input) { return functional::alpha_dropout(input, p, training()); }
Tensor FeatureAlphaDropout::forward(const Tensor& input) { return functional::feature_alpha_dropout(input, p, training()); }

}  // namespace calque
