// Pooling layers: MaxPool, AvgPool, AdaptiveAvgPool, AdaptiveMaxPool in 1, 2 and 3 dimensions.
// Indices of maxima come from the operators themselves (calque::max_pool2d_with_indices).
#pragma once

#include "calque/nn/sizes.h"
#include "calque/nn/typed.h"

namespace calque {

struct MaxPoolOptions {
  std::optional<Sizes> stride = std::nullopt;  // the kernel's size
  Sizes padding = 0;
  Sizes dilation = 1;
  bool ceil_mode = false;
};

struct MaxPoolBase : Module {
  MaxPoolBase(const Sizes& kernel_size, const MaxPoolOptions& options);
  std::string extra_repr() const override;
  Sizes kernel_size, stride, padding, dilation;
  bool ceil_mode;
};

struct AvgPoolOptions {
  std::optional<Sizes> stride = std::nullopt;
  Sizes padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<int64_t> divisor_override = std::nullopt;  // not for AvgPool1d
};

struct AvgPoolBase : Module {
  AvgPoolBase(size_t dims, const Sizes& kernel_size, const AvgPoolOptions& options);
  std::string extra_repr() const override;
  Sizes kernel_size, stride, padding;
  bool ceil_mode, count_include_pad;
  std::optional<int64_t> divisor_override;
};

struct AdaptivePoolBase : Module {
  explicit AdaptivePoolBase(OptionalSizes output_size) : output_size(std::move(output_size)) {}
  std::string extra_repr() const override { return "output_size=" + output_size.str(); }
  OptionalSizes output_size;
};

#define CALQUE_POOLING(DIMS)                                                                        \
  struct MaxPool##DIMS##d : Typed<MaxPool##DIMS##d, MaxPoolBase> {                                  \
    static constexpr const char* torch_type = "torch.nn.modules.pooling.MaxPool" #DIMS "d";         \
    explicit MaxPool##DIMS##d(const Sizes& kernel_size, const MaxPoolOptions& options = {})         \
        : Typed(kernel_size, options) {}                                                            \
    Tensor forward(const Tensor& input);                                                            \
  };                                                                                                \
  struct AvgPool##DIMS##d : Typed<AvgPool##DIMS##d, AvgPoolBase> {                                  \
    static constexpr const char* torch_type = "torch.nn.modules.pooling.AvgPool" #DIMS "d";         \
    explicit AvgPool##DIMS##d(const Sizes& kernel_size, const AvgPoolOptions& options = {})         \
        : Typed(DIMS, kernel_size, options) {}                                                      \
    Tensor forward(const Tensor& input);                                                            \
  };                                                                                                \
  struct AdaptiveAvgPool##DIMS##d : Typed<AdaptiveAvgPool##DIMS##d, AdaptivePoolBase> {             \
    static constexpr const char* torch_type = "torch.nn.modules.pooling.AdaptiveAvgPool" #DIMS "d"; \
    explicit AdaptiveAvgPool##DIMS##d(OptionalSizes output_size) : Typed(std::move(output_size)) {} \
    Tensor forward(const Tensor& input);                                                            \
  };                                                                                                \
  struct AdaptiveMaxPool##DIMS##d : Typed<AdaptiveMaxPool##DIMS##d, AdaptivePoolBase> {             \
    static constexpr const char* torch_type = "torch.nn.modules.pooling.AdaptiveMaxPool" #DIMS "d"; \
    explicit AdaptiveMaxPool##DIMS##d(OptionalSizes output_size) : Typed(std::move(output_size)) {} \
    Tensor forward(const Tensor& input);                                                            \
  };
CALQUE_POOLING(1)
CALQUE_POOLING(2)
CALQUE_POOLING(3)
#undef CALQUE_POOLING

}  // namespace calque
