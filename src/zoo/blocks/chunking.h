// Running a layer over pieces of a dimension, one after the other, to save memory.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "calque/base/error.h"
#include "calque/op/aten/cat.h"

namespace calque {

// fn(inputs...) as a whole when chunk_size is 0; else piece by piece along `dim`, and the results side by side. UserError when the
// inputs differ in that dimension, or it is no multiple of the chunk size.
template <class F, class... T>
Tensor apply_chunking_to_forward(F&& fn, int64_t chunk_size, int64_t dim, const Tensor& first, const T&... rest) {
  static_assert(std::is_invocable_v<F, const Tensor&, const T&...>, "the function takes as many tensors as are given");
  if (chunk_size <= 0) return fn(first, rest...);
  const int64_t length = first.size(dim);
  for (const Tensor& one : {first, rest...})
    if (one.size(dim) != length)
      throw UserError("All input tensors have to be of the same shape: " + std::to_string(length) + ", found shape " +
                      std::to_string(one.size(dim)));
  if (length % chunk_size != 0)
    throw UserError("The dimension to be chunked " + std::to_string(length) + " has to be a multiple of the chunk size " +
                    std::to_string(chunk_size));
  std::vector<Tensor> results;
  for (int64_t start = 0; start < length; start += chunk_size) {
    const auto piece = [&](const Tensor& whole) { return whole.slice(dim, start, start + chunk_size); };
    results.push_back(fn(piece(first), piece(rest)...));
  }
  return cat(results, dim);
}

}  // namespace calque
