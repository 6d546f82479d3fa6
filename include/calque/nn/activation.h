// Activations as layers. What has no settings is one line here; the rest says its settings as PyTorch prints them.
#pragma once

#include "calque/nn/sizes.h"
#include "calque/nn/typed.h"

namespace calque {

#define CALQUE_ACTIVATION(NAME)                                                     \
  struct NAME : Typed<NAME> {                                                       \
    static constexpr const char* torch_type = "torch.nn.modules.activation." #NAME; \
    Tensor forward(const Tensor& input);                                            \
  };
CALQUE_ACTIVATION(Tanh)
CALQUE_ACTIVATION(Sigmoid)
CALQUE_ACTIVATION(LogSigmoid)
CALQUE_ACTIVATION(Softsign)
CALQUE_ACTIVATION(Tanhshrink)
CALQUE_ACTIVATION(Softmax2d)
#undef CALQUE_ACTIVATION

// PyTorch prints "inplace=True" for some of those that can work in place, and nothing for the others.
#define CALQUE_INPLACE_ACTIVATION(NAME, REPR)                                       \
  struct NAME : Typed<NAME> {                                                       \
    static constexpr const char* torch_type = "torch.nn.modules.activation." #NAME; \
    explicit NAME(bool inplace = false) : inplace(inplace) {}                       \
    Tensor forward(const Tensor& input);                                            \
    std::string extra_repr() const override { return inplace ? REPR : ""; }         \
    bool inplace;                                                                   \
  };
CALQUE_INPLACE_ACTIVATION(ReLU, "inplace=True")
CALQUE_INPLACE_ACTIVATION(ReLU6, "inplace=True")
CALQUE_INPLACE_ACTIVATION(SiLU, "inplace=True")
CALQUE_INPLACE_ACTIVATION(SELU, "inplace=True")
CALQUE_INPLACE_ACTIVATION(Mish, "inplace=True")
CALQUE_INPLACE_ACTIVATION(Hardswish, "")
CALQUE_INPLACE_ACTIVATION(Hardsigmoid, "")
#undef CALQUE_INPLACE_ACTIVATION

#define CALQUE_DIM_ACTIVATION(NAME)                                                                    \
  struct NAME : Typed<NAME> {                                                                          \
    static constexpr const char* torch_type = "torch.nn.modules.activation." #NAME;                    \
    explicit NAME(std::optional<int64_t> dim = std::nullopt) : dim(dim) {}                             \
    Tensor forward(const Tensor& input);                                                               \
    std::string extra_repr() const override { return "dim=" + (dim ? std::to_string(*dim) : "None"); } \
    std::optional<int64_t> dim;                                                                        \
  };
CALQUE_DIM_ACTIVATION(Softmax)
CALQUE_DIM_ACTIVATION(LogSoftmax)
CALQUE_DIM_ACTIVATION(Softmin)
#undef CALQUE_DIM_ACTIVATION

struct GLU : Typed<GLU> {
  static constexpr const char* torch_type = "torch.nn.modules.activation.GLU";
  explicit GLU(int64_t dim = -1) : dim(dim) {}
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override { return "dim=" + std::to_string(dim); }
  int64_t dim;
};

struct GELU : Typed<GELU> {
  static constexpr const char* torch_type = "torch.nn.modules.activation.GELU";
  explicit GELU(std::string approximate = "none") : approximate(std::move(approximate)) {}  // or "tanh"
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override { return "approximate='" + approximate + "'"; }
  std::string approximate;
};

// One number and perhaps in place.
#define CALQUE_NUMBER_ACTIVATION(NAME, MEMBER, DEFAULT)                                                \
  struct NAME : Typed<NAME> {                                                                          \
    static constexpr const char* torch_type = "torch.nn.modules.activation." #NAME;                    \
    explicit NAME(double MEMBER = DEFAULT, bool inplace = false) : MEMBER(MEMBER), inplace(inplace) {} \
    Tensor forward(const Tensor& input);                                                               \
    std::string extra_repr() const override;                                                           \
    double MEMBER;                                                                                     \
    bool inplace;                                                                                      \
  };
CALQUE_NUMBER_ACTIVATION(ELU, alpha, 1)
CALQUE_NUMBER_ACTIVATION(CELU, alpha, 1)
CALQUE_NUMBER_ACTIVATION(LeakyReLU, negative_slope, 0.01)
#undef CALQUE_NUMBER_ACTIVATION

#define CALQUE_SHRINK(NAME)                                                         \
  struct NAME : Typed<NAME> {                                                       \
    static constexpr const char* torch_type = "torch.nn.modules.activation." #NAME; \
    explicit NAME(double lambd = 0.5) : lambd(lambd) {}                             \
    Tensor forward(const Tensor& input);                                            \
    std::string extra_repr() const override;                                        \
    double lambd;                                                                   \
  };
CALQUE_SHRINK(Softshrink)
CALQUE_SHRINK(Hardshrink)
#undef CALQUE_SHRINK

struct Hardtanh : Typed<Hardtanh> {
  static constexpr const char* torch_type = "torch.nn.modules.activation.Hardtanh";
  explicit Hardtanh(double min_val = -1, double max_val = 1, bool inplace = false);  // UserError unless min < max
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override;
  double min_val, max_val;
  bool inplace;
};

struct Softplus : Typed<Softplus> {
  static constexpr const char* torch_type = "torch.nn.modules.activation.Softplus";
  explicit Softplus(double beta = 1, double threshold = 20) : beta(beta), threshold(threshold) {}
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override;
  double beta, threshold;
};

struct Threshold : Typed<Threshold> {
  static constexpr const char* torch_type = "torch.nn.modules.activation.Threshold";
  Threshold(double threshold, double value, bool inplace = false) : threshold(threshold), value(value), inplace(inplace) {}
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override;
  double threshold, value;
  bool inplace;
};

struct RReLU : Typed<RReLU> {
  static constexpr const char* torch_type = "torch.nn.modules.activation.RReLU";
  explicit RReLU(double lower = 1.0 / 8, double upper = 1.0 / 3, bool inplace = false)
      : lower(lower), upper(upper), inplace(inplace) {}
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override;
  double lower, upper;
  bool inplace;
};

struct PReLU : Typed<PReLU> {
  static constexpr const char* torch_type = "torch.nn.modules.activation.PReLU";
  explicit PReLU(int64_t num_parameters = 1, double init = 0.25, Factory factory = {});
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override { return "num_parameters=" + std::to_string(num_parameters); }
  int64_t num_parameters;
  Parameter weight;
};

}  // namespace calque
