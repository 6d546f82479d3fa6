// Normalizations: LayerNorm, RMSNorm, GroupNorm, BatchNorm1d/2d/3d, InstanceNorm1d/2d/3d, LocalResponseNorm.
#pragma once

#include "calque/nn/sizes.h"
#include "calque/nn/typed.h"

namespace calque {

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;
  bool bias = true;
  Factory factory = {};
};

struct LayerNorm : Typed<LayerNorm> {
  static constexpr const char* torch_type = "torch.nn.modules.normalization.LayerNorm";
  explicit LayerNorm(const Sizes& normalized_shape, LayerNormOptions options = {});
  void reset_parameters();
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override;

  std::vector<int64_t> normalized_shape;
  double eps;
  bool elementwise_affine;
  Parameter weight;
  Parameter bias;
};

struct RMSNormOptions {
  std::optional<double> eps = std::nullopt;  // none: the dtype's epsilon
  bool elementwise_affine = true;
  Factory factory = {};
};

struct RMSNorm : Typed<RMSNorm> {
  static constexpr const char* torch_type = "torch.nn.modules.normalization.RMSNorm";
  static constexpr const char* forward_arguments[] = {"x"};
  explicit RMSNorm(const Sizes& normalized_shape, RMSNormOptions options = {});
  void reset_parameters();
  Tensor forward(const Tensor& x);
  std::string extra_repr() const override;

  std::vector<int64_t> normalized_shape;
  std::optional<double> eps;
  bool elementwise_affine;
  Parameter weight;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
  bool bias = true;
  Factory factory = {};
};

struct GroupNorm : Typed<GroupNorm> {
  static constexpr const char* torch_type = "torch.nn.modules.normalization.GroupNorm";
  GroupNorm(int64_t num_groups, int64_t num_channels, GroupNormOptions options = {});
  void reset_parameters();
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override;

  int64_t num_groups;
  int64_t num_channels;
  double eps;
  bool affine;
  Parameter weight;
  Parameter bias;
};

struct LocalResponseNorm : Typed<LocalResponseNorm> {
  static constexpr const char* torch_type = "torch.nn.modules.normalization.LocalResponseNorm";
  explicit LocalResponseNorm(int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1)
      : size(size), alpha(alpha), beta(beta), k(k) {}
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override;

  int64_t size;
  double alpha, beta, k;
};

struct RunningNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  // none: a cumulative average
  bool affine = true;
  bool track_running_stats = true;
  bool bias = true;
  Factory factory = {};
};

// What batch and instance normalization share.
struct RunningNorm : Module {
  RunningNorm(int64_t num_features, const RunningNormOptions& options);
  void reset_running_stats();
  void reset_parameters();
  int64_t version() const override { return 2; }
  std::string extra_repr() const override;

  int64_t num_features;
  double eps;
  std::optional<double> momentum;
  bool affine;
  bool track_running_stats;
  Parameter weight;
  Parameter bias;
  Buffer running_mean;
  Buffer running_var;
  Buffer num_batches_tracked;

 protected:
  void upgrade_state(StateDict& state, const std::string& prefix, std::optional<int64_t> version) override;
  Tensor batch_norm(const Tensor& input, std::initializer_list<int64_t> dims);
  Tensor instance_norm(const Tensor& input, int64_t unbatched_dims);
};

#define CALQUE_BATCH_NORM(NAME, ...)                                                                       \
  struct NAME : Typed<NAME, RunningNorm> {                                                                 \
    static constexpr const char* torch_type = "torch.nn.modules.batchnorm." #NAME;                         \
    explicit NAME(int64_t num_features, RunningNormOptions options = {}) : Typed(num_features, options) {} \
    Tensor forward(const Tensor& input) { return batch_norm(input, {__VA_ARGS__}); }                       \
  };
CALQUE_BATCH_NORM(BatchNorm1d, 2, 3)
CALQUE_BATCH_NORM(BatchNorm2d, 4)
CALQUE_BATCH_NORM(BatchNorm3d, 5)
#undef CALQUE_BATCH_NORM

#define CALQUE_INSTANCE_NORM(NAME, UNBATCHED)                                                                         \
  struct NAME : Typed<NAME, RunningNorm> {                                                                            \
    static constexpr const char* torch_type = "torch.nn.modules.instancenorm." #NAME;                                 \
    explicit NAME(int64_t num_features, RunningNormOptions options = {.affine = false, .track_running_stats = false}) \
        : Typed(num_features, options) {}                                                                             \
    Tensor forward(const Tensor& input) { return instance_norm(input, UNBATCHED); }                                   \
  };
CALQUE_INSTANCE_NORM(InstanceNorm1d, 2)
CALQUE_INSTANCE_NORM(InstanceNorm2d, 3)
CALQUE_INSTANCE_NORM(InstanceNorm3d, 4)
#undef CALQUE_INSTANCE_NORM

}  // namespace calque
