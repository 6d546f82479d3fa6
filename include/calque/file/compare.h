// Are two tensors, or two sets of named tensors, the same? The rules are those of PyTorch's torch._dynamo.utils.same:
// allclose in the tensors' own arithmetic, else root mean square errors against a float64 reference, or cosine
// similarity alone. The figures that explain a verdict come with it. docs/cli.md lists where the rules differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calque/file/safetensors.h"
#include "calque/op/tensor.h"

namespace calque {

struct SameOptions {
  double tol = 1e-4;              // absolute and relative tolerance of allclose
  bool equal_nan = false;         // NaN equals NaN
  bool cosine = false;            // compare by cosine similarity (at least 0.99) instead of by error
  bool exact_dtype = true;        // dtypes must agree; else `a` is cast to the dtype of `b` first
  bool ignore_non_float = false;  // integer and boolean tensors are the same whatever they hold
  bool larger_multiplier_for_small =
      false;                            // allow 10 or 8 times the reference's error for tensors up to 10 or 500 elements
  bool max_multiplier = false;          // allow 10 times the reference's error for all
  std::optional<double> bool_iou = {};  // booleans agree when intersection over union is at least this
};

struct TensorComparison {
  bool same = false;
  std::string reason;  // which rule decided, with its figures
  // Differences of a and b, in float64; over no elements they are 0. A NaN or an infinity shows in them.
  double max_abs = 0, rmse = 0, cosine = 1;
  int64_t worst = -1;       // where the largest difference is, in row-major order; -1 if there is none
  int64_t outside_tol = 0;  // elements that allclose refuses
  int64_t nan_a = 0, nan_b = 0;
  // With a float64 reference: the errors of a and b against it, and how many times a's error b's may be.
  std::optional<double> a_error, b_error, multiplier;
};

// `reference` may be undefined; it is used if it is float64, and `a` stands in for it if `a` is float64. Sizes that
// differ make tensors different (PyTorch's same() broadcasts them); UserError if the reference's sizes are not a's.
TensorComparison compare_tensors(const Tensor& a, const Tensor& b, const Tensor& reference = {},
                                 const SameOptions& options = {});

struct NamedComparison {
  std::string name;
  std::string dtype_a, dtype_b;  // as in the files
  std::vector<int64_t> sizes_a, sizes_b;
  TensorComparison result;
};

struct FileComparison {
  bool same = false;
  std::vector<std::string> only_in_a, only_in_b;  // sorted
  std::vector<NamedComparison> tensors;           // in both, sorted by name
};

// UserError if the reference lacks a tensor that both files hold.
FileComparison compare_files(const SafetensorsFile& a, const SafetensorsFile& b, const SafetensorsFile* reference = nullptr,
                             const SameOptions& options = {});

}  // namespace calque
