// Initial values of parameters, as torch.nn.init: the same formulas over the same random stream. A namespace of its own,
// because the operators uniform_ and normal_ are others. Each writes the tensor without recording gradients and returns it.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "calque/op/tensor.h"

namespace calque::init {

// Of "linear", "conv1d", ..., "sigmoid", "tanh", "relu", "leaky_relu" (with its slope), "selu".
double calculate_gain(std::string_view nonlinearity, std::optional<double> param = std::nullopt);
std::pair<int64_t, int64_t> fan_in_and_fan_out(const Tensor& tensor);  // UserError below two dimensions

Tensor uniform_(const Tensor& tensor, double a = 0, double b = 1, Generator* generator = nullptr);
Tensor normal_(const Tensor& tensor, double mean = 0, double std = 1, Generator* generator = nullptr);
Tensor trunc_normal_(const Tensor& tensor, double mean = 0, double std = 1, double a = -2, double b = 2,
                     Generator* generator = nullptr);
Tensor constant_(const Tensor& tensor, double value);
Tensor ones_(const Tensor& tensor);
Tensor zeros_(const Tensor& tensor);
Tensor eye_(const Tensor& tensor);
Tensor dirac_(const Tensor& tensor, int64_t groups = 1);
Tensor xavier_uniform_(const Tensor& tensor, double gain = 1, Generator* generator = nullptr);
Tensor xavier_normal_(const Tensor& tensor, double gain = 1, Generator* generator = nullptr);
Tensor kaiming_uniform_(const Tensor& tensor, double a = 0, std::string_view mode = "fan_in",
                        std::string_view nonlinearity = "leaky_relu", Generator* generator = nullptr);
Tensor kaiming_normal_(const Tensor& tensor, double a = 0, std::string_view mode = "fan_in",
                       std::string_view nonlinearity = "leaky_relu", Generator* generator = nullptr);
Tensor orthogonal_(const Tensor& tensor, double gain = 1, Generator* generator = nullptr);
Tensor sparse_(const Tensor& tensor, double sparsity, double std = 0.01, Generator* generator = nullptr);

}  // namespace calque::init
