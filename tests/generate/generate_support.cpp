#include "generate/generate_support.h"

#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/op/aten/zeros.h"

namespace calque::generate_test {
namespace {

template <class T>
Tensor tensor_from(const std::vector<std::vector<T>>& rows) {
  std::vector<T> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return tensor_of<T>(all, {static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows.at(0).size())});
}

}  // namespace

Tensor ids_of(const std::vector<std::vector<int64_t>>& rows) { return tensor_from(rows); }
Tensor scores_of(const std::vector<std::vector<float>>& rows) { return tensor_from(rows); }

std::vector<float> values(const Tensor& scores) {
  const Tensor t = scores.contiguous();
  return {t.data_as<float>(), t.data_as<float>() + t.numel()};
}

std::vector<std::vector<int64_t>> rows_of(const Tensor& ids) {
  const Tensor t = ids.contiguous();
  std::vector<std::vector<int64_t>> out;
  for (int64_t r = 0; r < t.size(0); ++r)
    out.emplace_back(t.data_as<int64_t>() + r * t.size(1), t.data_as<int64_t>() + (r + 1) * t.size(1));
  return out;
}

NextLogits follows(std::vector<int64_t> next, int64_t vocab) {
  return [next = std::move(next), vocab](const GenerationStep& step) {
    Tensor logits = zeros({step.input_ids.size(0), step.input_ids.size(1), vocab}, DType::float32);
    const Tensor ids = step.input_ids.contiguous();
    float* out = logits.mutable_data_as<float>();
    for (int64_t i = 0; i < ids.numel(); ++i) out[i * vocab + next.at(static_cast<size_t>(ids.data_as<int64_t>()[i]))] = 10;
    return logits;
  };
}

std::vector<std::string> warnings_of(const std::function<void()>& fn) {
  std::vector<std::string> seen;
  reset_warnings();
  const WarningSink before = set_warning_sink([&](std::string_view text) { seen.emplace_back(text); });
  try {
    fn();
  } catch (...) {
    set_warning_sink(before);
    throw;
  }
  set_warning_sink(before);
  return seen;
}

}  // namespace calque::generate_test
