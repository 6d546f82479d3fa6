#include "kernel/cpu/index/embedding.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "calque/base/memory.h"
#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/convert.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/elementwise/fill.h"
#include "kernel/cpu/index/index.h"
#include "kernel/cpu/require.h"

namespace calque::kernel {
namespace {

int64_t checked(const char* op, int64_t index, int64_t rows) {
  if (index < 0 || index >= rows)
    throw UserError(std::string(op) + ": index " + std::to_string(index) + " is out of bounds for dimension 0 with size " +
                    std::to_string(rows));
  return index;
}

// The dtype sums are kept in.
DType wide_type(DType d) { return d == DType::float64 ? DType::float64 : DType::float32; }

template <class F>
void float_or_double(DType wide, F&& fn) {
  if (wide == DType::float64)
    fn(TypeTag<double>{});
  else
    fn(TypeTag<float>{});
}

template <class W>
struct Bags {
  const TensorBase& weight;
  const int64_t* index;
  const W* factor;  // null without per-sample weights
  int64_t padding_idx;
  BagMode mode;
  W* out;
  int64_t* max_index;  // null unless mode is max
  int64_t width;

  // One bag, rows [begin, end) of the indices; returns how many rows counted.
  int64_t run(int64_t bag, int64_t begin, int64_t end, W* row) const {
    const LoadFn load = load_fn(weight.dtype(), compute_of<W>);
    const int64_t item = weight.element_size();
    const auto* base = static_cast<const char*>(weight.data());
    W* to = out + bag * width;
    std::fill_n(to, width, W{0});
    if (max_index) std::fill_n(max_index + bag * width, width, int64_t{0});
    int64_t count = 0;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = checked("_embedding_bag", index[i], weight.sizes()[0]);
      if (at == padding_idx) continue;
      load(base + at * weight.strides()[0] * item, weight.strides()[1] * item, row, width);
      if (mode == BagMode::max) {
        for (int64_t j = 0; j < width; ++j)
          if (count == 0 || row[j] > to[j]) {
            to[j] = row[j];
            max_index[bag * width + j] = at;
          }
      } else if (factor) {
        for (int64_t j = 0; j < width; ++j) to[j] += factor[i] * row[j];
      } else {
        for (int64_t j = 0; j < width; ++j) to[j] += row[j];
      }
      ++count;
    }
    if (mode == BagMode::mean && count > 0)
      for (int64_t j = 0; j < width; ++j) to[j] /= static_cast<W>(count);
    return count;
  }
};

}  // namespace

void embedding_dense_backward(const TensorBase& grad, const TensorBase& indices, int64_t padding_idx,
                              bool scale_by_frequency, const TensorBase& out) {
  const TensorBase index = as_index(indices, indices.sizes());
  const int64_t n = index.numel();
  const int64_t width = grad.sizes().back();
  require_numel("embedding_dense_backward", "grad_output", grad, n * width);
  const int64_t rows = out.sizes()[0];
  const DType wide = wide_type(grad.dtype());
  const TensorBase from = contiguous_as(grad, wide);
  const bool direct = out.dtype() == wide && out.is_contiguous();
  const TensorBase sums = direct ? out : make_tensor(out.sizes(), wide);
  fill(sums, 0);
  const int64_t* at = index.data_as<int64_t>();
  CountedVector<int64_t> counts;
  if (scale_by_frequency) counts.resize(static_cast<size_t>(rows));
  for (int64_t i = 0; i < n; ++i) {
    if (at[i] == padding_idx) continue;
    checked("embedding_dense_backward", at[i], rows);
    if (scale_by_frequency) ++counts[static_cast<size_t>(at[i])];
  }
  float_or_double(wide, [&](auto tag) {
    using W = typename decltype(tag)::type;
    const W* g = from.data_as<W>();
    W* s = sums.mutable_data_as<W>();
    // Threads own column ranges, so that every sum keeps the order of the indices.
    parallel_for(0, width, std::max<int64_t>(16, 32768 / std::max<int64_t>(1, n)), [&](int64_t b, int64_t e) {
      for (int64_t i = 0; i < n; ++i) {
        if (at[i] == padding_idx) continue;
        const W scale = scale_by_frequency ? W{1} / static_cast<W>(counts[static_cast<size_t>(at[i])]) : W{1};
        for (int64_t j = b; j < e; ++j) s[at[i] * width + j] += g[i * width + j] * scale;
      }
    });
  });
  if (!direct) copy(sums, out);
}

void embedding_renorm(const TensorBase& weight, const TensorBase& indices, double max_norm, double norm_type) {
  const TensorBase index = as_index(indices, indices.sizes());
  std::vector<int64_t> rows(index.data_as<int64_t>(), index.data_as<int64_t>() + index.numel());
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  const int64_t width = weight.sizes()[1];
  const int64_t item = weight.element_size();
  const LoadFn load = load_fn(weight.dtype(), Compute::f64);
  const StoreFn store = store_fn(Compute::f64, weight.dtype());
  CountedVector<double> row(static_cast<size_t>(width));
  for (const int64_t r : rows) {
    char* at = static_cast<char*>(weight.mutable_data()) +
               checked("embedding_renorm_", r, weight.sizes()[0]) * weight.strides()[0] * item;
    load(at, weight.strides()[1] * item, row.data(), width);
    double norm = 0;
    if (std::isinf(norm_type))
      for (const double x : row) norm = std::max(norm, std::abs(x));
    else if (norm_type == 0)
      for (const double x : row) norm += x != 0 ? 1 : 0;
    else {
      for (const double x : row) norm += std::pow(std::abs(x), norm_type);
      norm = std::pow(norm, 1 / norm_type);
    }
    if (!(norm > max_norm)) continue;
    const double scale = max_norm / (norm + 1e-7);
    for (double& x : row) x *= scale;
    store(row.data(), at, weight.strides()[1] * item, width);
  }
}

void embedding_bag(const TensorBase& weight, const TensorBase& indices, const TensorBase& offsets, BagMode mode,
                   const TensorBase& per_sample_weights, int64_t padding_idx, const TensorBase& out,
                   const TensorBase& offset2bag, const TensorBase& bag_size, const TensorBase& max_indices) {
  const TensorBase index = as_index(indices, indices.sizes());
  const TensorBase starts = as_index(offsets, offsets.sizes());
  const int64_t n = index.numel();
  const int64_t bags = out.sizes()[0];
  const int64_t width = out.sizes()[1];
  const int64_t* offset = starts.data_as<int64_t>();
  if (starts.numel() > 0 && offset[0] != 0)
    throw UserError(
        "_embedding_bag: offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0, "
        "found " +
        std::to_string(offset[0]));
  for (int64_t b = 0; b < starts.numel(); ++b)
    if (offset[b] > n || (b > 0 && offset[b] < offset[b - 1]))
      throw UserError("_embedding_bag: offsets must rise and not pass the number of indices (" + std::to_string(n) +
                      "), found offsets[" + std::to_string(b) + "] = " + std::to_string(offset[b]));
  const auto end_of = [&](int64_t b) { return b + 1 < bags ? offset[b + 1] : n; };
  const DType wide = wide_type(weight.dtype());
  const bool direct = out.dtype() == wide;
  const TensorBase sums = direct ? out : make_tensor(out.sizes(), wide);
  const TensorBase sizes = make_tensor({bags}, DType::int64);
  const TensorBase maxima = mode == BagMode::max ? make_tensor({bags, width}, DType::int64) : TensorBase();
  const TensorBase factors = per_sample_weights.defined() ? contiguous_as(per_sample_weights, wide) : TensorBase();
  auto* size = sizes.mutable_data_as<int64_t>();
  float_or_double(wide, [&](auto tag) {
    using W = typename decltype(tag)::type;
    const Bags<W> work{weight,
                       index.data_as<int64_t>(),
                       factors.defined() ? factors.data_as<W>() : nullptr,
                       padding_idx,
                       mode,
                       sums.mutable_data_as<W>(),
                       maxima.defined() ? maxima.mutable_data_as<int64_t>() : nullptr,
                       width};
    const int64_t each = std::max<int64_t>(1, width * std::max<int64_t>(1, n / std::max<int64_t>(1, bags)));
    parallel_for(0, bags, std::max<int64_t>(1, 32768 / each), [&](int64_t b, int64_t e) {
      CountedVector<W> row(static_cast<size_t>(width));
      for (int64_t i = b; i < e; ++i) size[i] = work.run(i, offset[i], end_of(i), row.data());
    });
  });
  if (!direct) copy(sums, out);
  if (offset2bag.numel() > 0) {
    const TensorBase of = make_tensor({n}, DType::int64);
    auto* to = of.mutable_data_as<int64_t>();
    for (int64_t b = 0; b < bags; ++b) std::fill(to + offset[b], to + end_of(b), b);
    copy(of, offset2bag);
  }
  if (mode == BagMode::sum) {
    fill(bag_size, 0);
    fill(max_indices, 0);
  } else {
    copy(sizes, bag_size);
    copy(mode == BagMode::max ? maxima : sizes, max_indices);
  }
}

namespace {

// The bag of each index.
std::vector<int64_t> bag_of_index(const BagGradient& b, int64_t count) {
  std::vector<int64_t> out(static_cast<size_t>(count));
  const TensorBase& source = b.offset2bag.numel() ? b.offset2bag : b.offsets;
  const TensorBase numbers = as_index(source, source.sizes());
  const int64_t* at = numbers.data_as<int64_t>();
  const int64_t bags = b.grad.sizes()[0];
  if (b.offset2bag.numel()) {
    require_numel("_embedding_bag_backward", "offset2bag", b.offset2bag, count);
    std::copy_n(at, count, out.begin());
  } else {
    for (int64_t bag = 0; bag < std::min(bags, numbers.numel()); ++bag) {
      const int64_t end = bag + 1 < numbers.numel() ? at[bag + 1] : count;
      for (int64_t i = std::max<int64_t>(0, at[bag]); i < std::min(end, count); ++i) out[static_cast<size_t>(i)] = bag;
    }
  }
  for (const int64_t bag : out) checked("_embedding_bag_backward", bag, bags);
  return out;
}

// How often the index counts that divides each index's gradient. PyTorch takes, for the i-th different index, the i-th of all sorted
// ones.
std::vector<int64_t> bag_frequencies(const int64_t* index, size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return index[a] < index[b]; });
  std::map<int64_t, int64_t> counts;
  for (size_t i = 0; i < count; ++i) ++counts[index[i]];
  std::vector<int64_t> out(count);
  size_t different = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0 && index[order[i]] != index[order[i - 1]]) ++different;
    out[order[i]] = counts[index[order[different]]];
  }
  return out;
}

// How much each index's row gets of its bag's gradient; 0 for those that are left out.
std::vector<double> bag_factors(const BagGradient& b, const int64_t* index, const std::vector<int64_t>& bag, int64_t rows) {
  std::vector<double> out(bag.size(), 1);
  std::vector<int64_t> sizes(static_cast<size_t>(b.grad.sizes()[0])), counts;
  for (size_t i = 0; i < bag.size(); ++i) {
    checked("_embedding_bag_backward", index[i], rows);
    if (index[i] == b.padding_idx)
      out[i] = 0;
    else
      ++sizes[static_cast<size_t>(bag[i])];
  }
  if (b.scale_by_frequency) counts = bag_frequencies(index, bag.size());
  if (b.bag_size.numel() == static_cast<int64_t>(sizes.size()) && b.mode == BagMode::mean) {
    const TensorBase given = as_index(b.bag_size, b.bag_size.sizes());
    std::copy_n(given.data_as<int64_t>(), sizes.size(), sizes.begin());
  }
  const TensorBase weights =
      b.per_sample_weights.defined() ? contiguous_as(b.per_sample_weights, DType::float64) : b.per_sample_weights;
  if (weights.defined())
    require_numel("_embedding_bag_backward", "per_sample_weights", weights, static_cast<int64_t>(bag.size()));
  for (size_t i = 0; i < bag.size(); ++i) {
    if (weights.defined()) out[i] *= weights.data_as<double>()[i];
    if (b.scale_by_frequency) out[i] /= static_cast<double>(counts[i]);
    if (b.mode == BagMode::mean && out[i] != 0) out[i] /= static_cast<double>(sizes[static_cast<size_t>(bag[i])]);
  }
  return out;
}

}  // namespace

void embedding_bag_backward(const BagGradient& b, const TensorBase& out) {
  const TensorBase index = as_index(b.indices, b.indices.sizes());
  const int64_t count = index.numel(), rows = out.sizes()[0], width = out.sizes()[1], bags = b.grad.sizes()[0];
  const DType wide = wide_type(out.dtype());
  const TensorBase from = contiguous_as(b.grad, wide);
  const bool direct = out.dtype() == wide && out.is_contiguous();
  const TensorBase sums = direct ? out : make_tensor(out.sizes(), wide);
  fill(sums, 0);
  const int64_t* at = index.data_as<int64_t>();
  const std::vector<int64_t> bag = bag_of_index(b, count);
  const std::vector<double> factors = bag_factors(b, at, bag, rows);
  const bool largest = b.mode == BagMode::max;
  const TensorBase places = largest ? as_index(b.max_indices, b.grad.sizes()) : TensorBase();
  if (largest)
    for (int64_t i = 0; i < places.numel(); ++i) checked("_embedding_bag_backward", places.data_as<int64_t>()[i], rows);
  // A bag of which nothing counts has no largest row.
  std::vector<bool> filled(static_cast<size_t>(bags), true);
  if (largest && b.bag_size.numel() == bags) {
    const TensorBase given = as_index(b.bag_size, b.bag_size.sizes());
    for (int64_t i = 0; i < bags; ++i) filled[static_cast<size_t>(i)] = given.data_as<int64_t>()[i] != 0;
  }
  float_or_double(wide, [&](auto tag) {
    using W = typename decltype(tag)::type;
    const W* g = from.data_as<W>();
    W* s = sums.mutable_data_as<W>();
    // Threads own column ranges, so that every sum keeps the order of the indices.
    parallel_for(0, width, std::max<int64_t>(16, 32768 / std::max<int64_t>(1, count)), [&](int64_t begin, int64_t end) {
      if (largest) {
        const int64_t* place = places.data_as<int64_t>();
        for (int64_t i = 0; i < bags; ++i)
          for (int64_t j = begin; filled[static_cast<size_t>(i)] && j < end; ++j)
            s[place[i * width + j] * width + j] += g[i * width + j];
        return;
      }
      for (int64_t i = 0; i < count; ++i) {
        const auto factor = static_cast<W>(factors[static_cast<size_t>(i)]);
        if (at[i] == b.padding_idx) continue;
        const W* row = g + bag[static_cast<size_t>(i)] * width;
        for (int64_t j = begin; j < end; ++j) s[at[i] * width + j] += row[j] * factor;
      }
    });
  });
  if (!direct) copy(sums, out);
}

void embedding_bag_weights_backward(const BagGradient& b, const TensorBase& weight, const TensorBase& out) {
  const TensorBase index = as_index(b.indices, b.indices.sizes());
  const int64_t count = index.numel(), width = weight.sizes()[1];
  const DType wide = wide_type(out.dtype());
  const TensorBase from = contiguous_as(b.grad, wide), table = contiguous_as(weight, wide);
  const TensorBase sums = make_tensor(out.sizes(), wide);
  const std::vector<int64_t> bag = bag_of_index(b, count);
  const int64_t* at = index.data_as<int64_t>();
  for (int64_t i = 0; i < count; ++i) checked("_embedding_bag_per_sample_weights_backward", at[i], weight.sizes()[0]);
  float_or_double(wide, [&](auto tag) {
    using W = typename decltype(tag)::type;
    const W *g = from.data_as<W>(), *w = table.data_as<W>();
    W* s = sums.mutable_data_as<W>();
    parallel_for(0, count, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, width)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        double sum = 0;
        for (int64_t j = 0; at[i] != b.padding_idx && j < width; ++j)
          sum += static_cast<double>(g[bag[static_cast<size_t>(i)] * width + j]) * static_cast<double>(w[at[i] * width + j]);
        s[i] = static_cast<W>(sum);
      }
    });
  });
  copy(sums, out);
}

}  // namespace calque::kernel
