#include "calque/nn/init.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "calque/base/warning.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/index.h"

namespace calque::init {
namespace {

bool has_no_elements(const Tensor& tensor) {
  for (const int64_t size : tensor.sizes()) {
    if (size != 0) continue;
    warn("Initializing zero-element tensors is a no-op");
    return true;
  }
  return false;
}

int64_t correct_fan(const Tensor& tensor, std::string_view mode) {
  const auto [fan_in, fan_out] = fan_in_and_fan_out(tensor);
  if (mode == "fan_in") return fan_in;
  if (mode == "fan_out") return fan_out;
  throw UserError("Mode " + std::string(mode) + " not supported, please use one of ['fan_in', 'fan_out']");
}

double kaiming_std(const Tensor& tensor, double a, std::string_view mode, std::string_view nonlinearity) {
  return calculate_gain(nonlinearity, a) / std::sqrt(static_cast<double>(correct_fan(tensor, mode)));
}

double xavier_std(const Tensor& tensor, double gain) {
  const auto [fan_in, fan_out] = fan_in_and_fan_out(tensor);
  return gain * std::sqrt(2.0 / static_cast<double>(fan_in + fan_out));
}

bool any_true(const Tensor& mask) { return any(mask).item_as<bool>(); }

}  // namespace

double calculate_gain(std::string_view nonlinearity, std::optional<double> param) {
  if (nonlinearity == "linear" || nonlinearity.starts_with("conv") || nonlinearity == "sigmoid") return 1;
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "leaky_relu") {
    const double slope = param.value_or(0.01);
    return std::sqrt(2.0 / (1 + slope * slope));
  }
  if (nonlinearity == "selu") return 3.0 / 4;
  throw UserError("Unsupported nonlinearity " + std::string(nonlinearity));
}

std::pair<int64_t, int64_t> fan_in_and_fan_out(const Tensor& tensor) {
  if (tensor.dim() < 2) throw UserError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
  int64_t field = 1;
  for (int64_t d = 2; d < tensor.dim(); ++d) field *= tensor.size(d);
  return {tensor.size(1) * field, tensor.size(0) * field};
}

Tensor uniform_(const Tensor& tensor, double a, double b, Generator* generator) {
  const GradModeScope no_grad(false);
  return calque::uniform_(tensor, a, b, generator);
}

Tensor normal_(const Tensor& tensor, double mean, double std, Generator* generator) {
  const GradModeScope no_grad(false);
  return calque::normal_(tensor, mean, std, generator);
}

Tensor constant_(const Tensor& tensor, double value) {
  const GradModeScope no_grad(false);
  return tensor.fill_(value);
}

Tensor ones_(const Tensor& tensor) { return constant_(tensor, 1); }

Tensor zeros_(const Tensor& tensor) {
  const GradModeScope no_grad(false);
  return tensor.zero_();
}

Tensor trunc_normal_(const Tensor& tensor, double mean, double std, double a, double b, Generator* generator) {
  if (tensor.device().type == DeviceType::meta) return tensor;
  const auto cdf = [](double x) { return (1 + std::erf(x / std::sqrt(2.0))) / 2; };
  if (mean < a - 2 * std || mean > b + 2 * std)
    warn("mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.");
  const GradModeScope no_grad(false);
  if (cdf((b - mean) / std) - cdf((a - mean) / std) > 0.3) {
    // Draws again where a sample falls outside, the bounds rounded as the tensor would hold them.
    const Tensor low = full({}, a, tensor.dtype()), high = full({}, b, tensor.dtype());
    Tensor result = calque::normal_(tensor, mean, std, generator);
    for (;;) {
      const Tensor outside = logical_or(result<low, result> high);
      if (!any_true(outside)) break;
      result = where(outside, calque::normal_(empty_like(result), mean, std, generator), result);
    }
    if (!result.is_same(tensor)) tensor.copy_(result);
    return tensor;
  }
  // The tail: uniform candidates, accepted by their density relative to the highest one between the bounds.
  const double mode = std::max(a, std::min(mean, b));
  const double log_peak = -0.5 * ((mode - mean) / std) * ((mode - mean) / std);
  const auto density = [&](const Tensor& x) { x.sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(log_peak); };
  const Tensor candidates = empty_like(tensor), accept = empty_like(tensor);
  const auto refused = [&] { return calque::uniform_(accept, 0, 1, generator).log_().gt(candidates); };
  calque::uniform_(tensor, a, b, generator);
  candidates.copy_(tensor);
  density(candidates);
  Tensor pending = refused();
  if (!any_true(pending)) return tensor;
  Tensor result = tensor;
  do {
    calque::uniform_(candidates, a, b, generator);
    result = where(pending, candidates, result);
    density(candidates);
    pending = where(pending, refused(), pending);
  } while (any_true(pending));
  tensor.copy_(result);
  return tensor;
}

Tensor eye_(const Tensor& tensor) {
  if (tensor.dim() != 2) throw UserError("Only tensors with 2 dimensions are supported");
  const GradModeScope no_grad(false);
  return tensor.copy_(eye(tensor.size(0), tensor.size(1), tensor.dtype(), std::nullopt, tensor.device()));
}

Tensor dirac_(const Tensor& tensor, int64_t groups) {
  const int64_t dims = tensor.dim();
  if (dims < 3 || dims > 5) throw UserError("Only tensors with 3, 4, or 5 dimensions are supported");
  if (tensor.size(0) % groups != 0) throw UserError("dim 0 must be divisible by groups");
  if (tensor.device().type == DeviceType::meta) return tensor;
  const GradModeScope no_grad(false);
  tensor.zero_();
  const int64_t per_group = tensor.size(0) / groups;
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t d = 0; d < std::min(per_group, tensor.size(1)); ++d) {
      Tensor cell = tensor.select(0, g * per_group + d).select(0, d);
      for (int64_t i = 2; i < dims; ++i) cell = cell.select(0, tensor.size(i) / 2);
      cell.fill_(1);
    }
  }
  return tensor;
}

Tensor xavier_uniform_(const Tensor& tensor, double gain, Generator* generator) {
  const double bound = std::sqrt(3.0) * xavier_std(tensor, gain);
  return init::uniform_(tensor, -bound, bound, generator);
}

Tensor xavier_normal_(const Tensor& tensor, double gain, Generator* generator) {
  return init::normal_(tensor, 0, xavier_std(tensor, gain), generator);
}

Tensor kaiming_uniform_(const Tensor& tensor, double a, std::string_view mode, std::string_view nonlinearity,
                        Generator* generator) {
  if (has_no_elements(tensor)) return tensor;
  const double bound = std::sqrt(3.0) * kaiming_std(tensor, a, mode, nonlinearity);
  return init::uniform_(tensor, -bound, bound, generator);
}

Tensor kaiming_normal_(const Tensor& tensor, double a, std::string_view mode, std::string_view nonlinearity,
                       Generator* generator) {
  if (has_no_elements(tensor)) return tensor;
  return init::normal_(tensor, 0, kaiming_std(tensor, a, mode, nonlinearity), generator);
}

// The orthonormal basis that Gram and Schmidt find in the columns of a rows x columns matrix (row-major), orthogonalised
// twice. It is the Q of the one QR decomposition whose R has a positive diagonal.
static void orthonormalize(std::vector<double>& m, size_t rows, size_t columns) {
  for (size_t c = 0; c < columns; ++c) {
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t before = 0; before < c; ++before) {
        double dot = 0;
        for (size_t r = 0; r < rows; ++r) dot += m[r * columns + before] * m[r * columns + c];
        for (size_t r = 0; r < rows; ++r) m[r * columns + c] -= dot * m[r * columns + before];
      }
    }
    double norm = 0;
    for (size_t r = 0; r < rows; ++r) norm += m[r * columns + c] * m[r * columns + c];
    norm = std::sqrt(norm);
    for (size_t r = 0; r < rows; ++r) m[r * columns + c] /= norm;
  }
}

Tensor orthogonal_(const Tensor& tensor, double gain, Generator* generator) {
  if (tensor.dim() < 2) throw UserError("Only tensors with 2 or more dimensions are supported");
  if (tensor.numel() == 0 || tensor.device().type == DeviceType::meta) return tensor;
  const GradModeScope no_grad(false);
  const int64_t rows = tensor.size(0), columns = tensor.numel() / rows;
  const Tensor drawn = calque::normal_(empty({rows, columns}, tensor.dtype()), 0, 1, generator);
  // Wide matrices have orthonormal rows: those of the transpose's basis.
  const Tensor tall = (rows < columns ? drawn.t() : drawn).to(DType::float64).contiguous();
  std::vector<double> values(tall.data_as<double>(), tall.data_as<double>() + tall.numel());
  orthonormalize(values, static_cast<size_t>(tall.size(0)), static_cast<size_t>(tall.size(1)));
  Tensor q = tensor_of<double>(values, tall.sizes());
  if (rows < columns) q = q.t();
  tensor.copy_(q.reshape(tensor.sym_sizes()));
  return tensor.mul_(gain);
}

Tensor sparse_(const Tensor& tensor, double sparsity, double std, Generator* generator) {
  if (tensor.dim() != 2) throw UserError("Only tensors with 2 dimensions are supported");
  const GradModeScope no_grad(false);
  const auto zeros = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(tensor.size(0))));
  calque::normal_(tensor, 0, std, generator);
  for (int64_t c = 0; c < tensor.size(1); ++c) {
    const Tensor rows = randperm(tensor.size(0)).slice(0, 0, zeros);
    tensor.select(1, c).index_fill_(0, rows, 0);
  }
  return tensor;
}

}  // namespace calque::init
