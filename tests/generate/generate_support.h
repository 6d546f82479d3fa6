// What the tests of generate/ share: small tensors, and models that are tables.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calque/generate/generate.h"
#include "calque/op/tensor.h"

namespace calque::generate_test {

Tensor ids_of(const std::vector<std::vector<int64_t>>& rows);
Tensor scores_of(const std::vector<std::vector<float>>& rows);
std::vector<float> values(const Tensor& scores);
std::vector<std::vector<int64_t>> rows_of(const Tensor& ids);

// The token that follows each token is certain.
NextLogits follows(std::vector<int64_t> next, int64_t vocab);

std::vector<std::string> warnings_of(const std::function<void()>& fn);

}  // namespace calque::generate_test
