#include "activations.h"

#include <cmath>
#include <numbers>

#include "calque/base/error.h"
#include "calque/nn/functional.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/alias.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/unary.h"

namespace calque {

namespace {

const double sqrt_2_over_pi = std::sqrt(2.0 / std::numbers::pi);

// The tanh approximation written out, as models saved with "gelu_new" were trained.
Tensor gelu_new(const Tensor& x) {
  const Tensor cubed = pow(x, 3.0);
  const Tensor inner = sqrt_2_over_pi * (x + 0.044715 * cubed);
  const Tensor half = 0.5 * x;
  return half * (1.0 + tanh(inner));
}
Tensor gelu_fast(const Tensor& x) {
  const Tensor scaled = x * 0.7978845608;
  const Tensor factor = 1.0 + 0.044715 * x * x;
  const Tensor half = 0.5 * x;
  return half * (1.0 + tanh(scaled * factor));
}
Tensor gelu_python(const Tensor& x) {
  const Tensor half = x * 0.5;
  return half * (1.0 + erf(x / std::sqrt(2.0)));
}
Tensor gelu_accurate(const Tensor& x) {
  const Tensor half = 0.5 * x;
  return half * (1 + tanh(sqrt_2_over_pi * (x + 0.044715 * pow(x, 3))));
}
Tensor laplace(const Tensor& x) {
  const Tensor centred = (x - 0.707107) / (0.282095 * std::sqrt(2.0));
  return 0.5 * (1.0 + erf(centred));
}

struct Named {
  const char* name;
  Activation apply;
};
const Named activations[] = {
    {"gelu", [](const Tensor& x) { return gelu(x); }},
    {"gelu_10", [](const Tensor& x) { return clamp(gelu(x), -10, 10); }},
    {"gelu_fast", gelu_fast},
    {"gelu_new", gelu_new},
    {"gelu_python", gelu_python},
    {"gelu_pytorch_tanh", [](const Tensor& x) { return gelu(x, "tanh"); }},
    {"gelu_python_tanh", gelu_new},
    {"gelu_accurate", gelu_accurate},
    {"hardswish", [](const Tensor& x) { return hardswish(x); }},
    {"laplace", laplace},
    {"leaky_relu", [](const Tensor& x) { return leaky_relu(x); }},
    {"linear", [](const Tensor& x) { return x; }},
    {"mish", [](const Tensor& x) { return mish(x); }},
    {"quick_gelu", [](const Tensor& x) { return x * sigmoid(1.702 * x); }},
    {"relu", [](const Tensor& x) { return relu(x); }},
    {"relu2", [](const Tensor& x) { return square(relu(x)); }},
    {"relu6", [](const Tensor& x) { return relu6(x); }},
    {"sigmoid", [](const Tensor& x) { return sigmoid(x); }},
    {"silu", [](const Tensor& x) { return silu(x); }},
    {"swish", [](const Tensor& x) { return silu(x); }},
    {"tanh", [](const Tensor& x) { return tanh(x); }},
};

}  // namespace

Activation activation_named(const std::string& name) {
  std::string all;
  for (const Named& one : activations) {
    if (one.name == name) return one.apply;
    all += (all.empty() ? "" : ", ") + std::string(one.name);
  }
  throw UserError("no activation \"" + name + "\"; there are " + all);
}

}  // namespace calque
