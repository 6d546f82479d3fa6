// Layers that move, repeat or pad values: Flatten, Unflatten, padding, Upsample, PixelShuffle, Fold, Unfold; and the
// distances CosineSimilarity and PairwiseDistance.
#pragma once

#include "calque/nn/sizes.h"
#include "calque/nn/typed.h"

namespace calque {

struct Flatten : Typed<Flatten> {
  static constexpr const char* torch_type = "torch.nn.modules.flatten.Flatten";
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1) : start_dim(start_dim), end_dim(end_dim) {}
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override;
  int64_t start_dim, end_dim;
};

struct Unflatten : Typed<Unflatten> {
  static constexpr const char* torch_type = "torch.nn.modules.flatten.Unflatten";
  Unflatten(int64_t dim, std::vector<int64_t> unflattened_size) : dim(dim), unflattened_size(std::move(unflattened_size)) {}
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override;
  int64_t dim;
  std::vector<int64_t> unflattened_size;
};

struct PixelShuffle : Typed<PixelShuffle> {
  static constexpr const char* torch_type = "torch.nn.modules.pixelshuffle.PixelShuffle";
  explicit PixelShuffle(int64_t upscale_factor) : upscale_factor(upscale_factor) {}
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override { return "upscale_factor=" + std::to_string(upscale_factor); }
  int64_t upscale_factor;
};

struct PixelUnshuffle : Typed<PixelUnshuffle> {
  static constexpr const char* torch_type = "torch.nn.modules.pixelshuffle.PixelUnshuffle";
  explicit PixelUnshuffle(int64_t downscale_factor) : downscale_factor(downscale_factor) {}
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override { return "downscale_factor=" + std::to_string(downscale_factor); }
  int64_t downscale_factor;
};

struct ChannelShuffle : Typed<ChannelShuffle> {
  static constexpr const char* torch_type = "torch.nn.modules.channelshuffle.ChannelShuffle";
  explicit ChannelShuffle(int64_t groups) : groups(groups) {}
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override { return "groups=" + std::to_string(groups); }
  int64_t groups;
};

struct UpsampleOptions {
  std::optional<Sizes> size = std::nullopt;
  std::optional<std::vector<double>> scale_factor = std::nullopt;  // one stands for all dimensions
  std::string mode = "nearest";
  std::optional<bool> align_corners = std::nullopt;
  std::optional<bool> recompute_scale_factor = std::nullopt;
};

struct Upsample : Typed<Upsample> {
  static constexpr const char* torch_type = "torch.nn.modules.upsampling.Upsample";
  explicit Upsample(UpsampleOptions options) : options(std::move(options)) {}
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override;
  UpsampleOptions options;
};

struct PadBase : Module {
  PadBase(size_t dims, const Sizes& padding);
  std::string extra_repr() const override { return nn_detail::tuple_text(padding); }
  std::vector<int64_t> padding;  // left, right of the last dimension, then of the one before it, ...

 protected:
  Tensor pad_with(const Tensor& input, const char* mode, std::optional<double> value) const;
};

#define CALQUE_PADDING(NAME, DIMS, MODE)                                                \
  struct NAME : Typed<NAME, PadBase> {                                                  \
    static constexpr const char* torch_type = "torch.nn.modules.padding." #NAME;        \
    explicit NAME(const Sizes& padding) : Typed(DIMS, padding) {}                       \
    Tensor forward(const Tensor& input) { return pad_with(input, MODE, std::nullopt); } \
  };
CALQUE_PADDING(ReflectionPad1d, 1, "reflect")
CALQUE_PADDING(ReflectionPad2d, 2, "reflect")
CALQUE_PADDING(ReflectionPad3d, 3, "reflect")
CALQUE_PADDING(ReplicationPad1d, 1, "replicate")
CALQUE_PADDING(ReplicationPad2d, 2, "replicate")
CALQUE_PADDING(ReplicationPad3d, 3, "replicate")
CALQUE_PADDING(CircularPad1d, 1, "circular")
CALQUE_PADDING(CircularPad2d, 2, "circular")
CALQUE_PADDING(CircularPad3d, 3, "circular")
#undef CALQUE_PADDING

#define CALQUE_CONSTANT_PADDING(DIMS)                                                                \
  struct ConstantPad##DIMS##d : Typed<ConstantPad##DIMS##d, PadBase> {                               \
    static constexpr const char* torch_type = "torch.nn.modules.padding.ConstantPad" #DIMS "d";      \
    ConstantPad##DIMS##d(const Sizes& padding, double value) : Typed(DIMS, padding), value(value) {} \
    Tensor forward(const Tensor& input) { return pad_with(input, "constant", value); }               \
    std::string extra_repr() const override;                                                         \
    double value;                                                                                    \
  };                                                                                                 \
  struct ZeroPad##DIMS##d : Typed<ZeroPad##DIMS##d, PadBase> {                                       \
    static constexpr const char* torch_type = "torch.nn.modules.padding.ZeroPad" #DIMS "d";          \
    explicit ZeroPad##DIMS##d(const Sizes& padding) : Typed(DIMS, padding) {}                        \
    Tensor forward(const Tensor& input) { return pad_with(input, "constant", 0); }                   \
  };
CALQUE_CONSTANT_PADDING(1)
CALQUE_CONSTANT_PADDING(2)
CALQUE_CONSTANT_PADDING(3)
#undef CALQUE_CONSTANT_PADDING

struct Unfold : Typed<Unfold> {
  static constexpr const char* torch_type = "torch.nn.modules.fold.Unfold";
  explicit Unfold(Sizes kernel_size, Sizes dilation = 1, Sizes padding = 0, Sizes stride = 1)
      : kernel_size(std::move(kernel_size)),
        dilation(std::move(dilation)),
        padding(std::move(padding)),
        stride(std::move(stride)) {}
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override;
  Sizes kernel_size, dilation, padding, stride;
};

struct Fold : Typed<Fold> {
  static constexpr const char* torch_type = "torch.nn.modules.fold.Fold";
  Fold(Sizes output_size, Sizes kernel_size, Sizes dilation = 1, Sizes padding = 0, Sizes stride = 1)
      : output_size(std::move(output_size)),
        kernel_size(std::move(kernel_size)),
        dilation(std::move(dilation)),
        padding(std::move(padding)),
        stride(std::move(stride)) {}
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override;
  Sizes output_size, kernel_size, dilation, padding, stride;
};

struct CosineSimilarity : Typed<CosineSimilarity> {
  static constexpr const char* torch_type = "torch.nn.modules.distance.CosineSimilarity";
  static constexpr const char* forward_arguments[] = {"x1", "x2"};
  explicit CosineSimilarity(int64_t dim = 1, double eps = 1e-8) : dim(dim), eps(eps) {}
  Tensor forward(const Tensor& x1, const Tensor& x2);
  int64_t dim;
  double eps;
};

struct PairwiseDistance : Typed<PairwiseDistance> {
  static constexpr const char* torch_type = "torch.nn.modules.distance.PairwiseDistance";
  static constexpr const char* forward_arguments[] = {"x1", "x2"};
  explicit PairwiseDistance(double p = 2, double eps = 1e-6, bool keepdim = false) : p(p), eps(eps), keepdim(keepdim) {}
  Tensor forward(const Tensor& x1, const Tensor& x2);
  double p, eps;
  bool keepdim;
};

}  // namespace calque
