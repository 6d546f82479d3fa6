// Convolutions: Conv1d/2d/3d and ConvTranspose1d/2d/3d.
#pragma once

#include <variant>

#include "calque/nn/sizes.h"
#include "calque/nn/typed.h"

namespace calque {

struct ConvOptions {
  Sizes stride = 1;
  std::variant<Sizes, std::string> padding = Sizes(0);  // or "same", "valid"
  Sizes dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  std::string padding_mode = "zeros";  // or "reflect", "replicate", "circular"
  Factory factory = {};
};

struct ConvTransposeOptions {
  Sizes stride = 1;
  Sizes padding = 0;
  Sizes output_padding = 0;
  int64_t groups = 1;
  bool bias = true;
  Sizes dilation = 1;
  Factory factory = {};
};

// What all convolutions share; `dims` is the number of spatial dimensions.
struct ConvBase : Module {
  ConvBase(size_t dims, int64_t in_channels, int64_t out_channels, const Sizes& kernel_size, const ConvOptions& options,
           bool transposed, const Sizes& output_padding);
  void reset_parameters();
  std::string extra_repr() const override;

  size_t dims;
  int64_t in_channels;
  int64_t out_channels;
  std::vector<int64_t> kernel_size;
  std::vector<int64_t> stride;
  std::vector<int64_t> padding;  // zeros when padding_name is set
  std::string padding_name;
  std::vector<int64_t> dilation;
  std::vector<int64_t> output_padding;
  int64_t groups;
  std::string padding_mode;
  Parameter weight;
  Parameter bias;

 protected:
  Tensor convolve(const Tensor& input);
  Tensor convolve_transposed(const Tensor& input, const std::optional<std::vector<SymInt>>& output_size);
};

#define CALQUE_CONV(NAME, DIMS)                                                                                \
  struct NAME : Typed<NAME, ConvBase> {                                                                        \
    static constexpr const char* torch_type = "torch.nn.modules.conv." #NAME;                                  \
    NAME(int64_t in_channels, int64_t out_channels, const Sizes& kernel_size, const ConvOptions& options = {}) \
        : Typed(DIMS, in_channels, out_channels, kernel_size, options, false, 0) {}                            \
    Tensor forward(const Tensor& input) { return convolve(input); }                                            \
  };
CALQUE_CONV(Conv1d, 1)
CALQUE_CONV(Conv2d, 2)
CALQUE_CONV(Conv3d, 3)
#undef CALQUE_CONV

#define CALQUE_CONV_TRANSPOSE(NAME, DIMS)                                                                               \
  struct NAME : Typed<NAME, ConvBase> {                                                                                 \
    static constexpr const char* torch_type = "torch.nn.modules.conv." #NAME;                                           \
    static constexpr const char* forward_arguments[] = {"input", "output_size"};                                        \
    NAME(int64_t in_channels, int64_t out_channels, const Sizes& kernel_size, const ConvTransposeOptions& options = {}) \
        : Typed(DIMS, in_channels, out_channels, kernel_size,                                                           \
                ConvOptions{options.stride, options.padding, options.dilation, options.groups, options.bias, "zeros",   \
                            options.factory},                                                                           \
                true, options.output_padding) {}                                                                        \
    Tensor forward(const Tensor& input, const std::optional<std::vector<SymInt>>& output_size = std::nullopt) {         \
      return convolve_transposed(input, output_size);                                                                   \
    }                                                                                                                   \
  };
CALQUE_CONV_TRANSPOSE(ConvTranspose1d, 1)
CALQUE_CONV_TRANSPOSE(ConvTranspose2d, 2)
CALQUE_CONV_TRANSPOSE(ConvTranspose3d, 3)
#undef CALQUE_CONV_TRANSPOSE

}  // namespace calque
