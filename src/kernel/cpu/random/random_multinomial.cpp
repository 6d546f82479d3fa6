// multinomial: rows of weights to indices drawn by them, along PyTorch's two paths. Without replacement, and for a
// single sample, every weight is divided by an exponential draw and the largest quotients win; with replacement each
// sample is looked up in the row's cumulative distribution.
#include <vector>

#include "kernel/cpu/random/random.h"
#include "kernel/cpu/random/random_fill.h"

namespace calque {
namespace {

struct Distributions {
  int64_t count;
  int64_t categories;
  int64_t row_stride;
  int64_t stride;
};

Distributions rows_of(const TensorBase& t) {
  if (t.dim() == 1) return {1, t.size(0), 0, t.stride(0)};
  return {t.size(0), t.size(1), t.stride(0), t.stride(1)};
}

template <class T>
void check_weights(const T* weights, const Distributions& rows) {
  using C = Compute<T>;
  for (int64_t r = 0; r < rows.count; ++r) {
    bool any = false;
    for (int64_t j = 0; j < rows.categories; ++j) {
      const C w = static_cast<C>(weights[r * rows.row_stride + j * rows.stride]);
      if (!(w >= 0 && w <= std::numeric_limits<C>::max()))
        throw UserError("multinomial: expected finite weights >= 0, found " + short_text(static_cast<double>(w)) +
                        " in row " + std::to_string(r) + ", category " + std::to_string(j));
      any = any || w > 0;
    }
    if (!any)
      throw UserError("multinomial: expected a positive sum of weights, found none above 0 in row " + std::to_string(r));
  }
}

// NaN (0 divided by a draw of 0) counts as largest.
template <class C>
bool larger(C a, C b) {
  return (std::isnan(a) && !std::isnan(b)) || a > b;
}

// The `n` largest quotients of a row, largest first. Which of equal ones come first is left to the same standard
// algorithms that PyTorch's topk uses.
template <class C>
void take_largest(std::vector<std::pair<C, int64_t>>& row, int64_t n, int64_t* out, int64_t step) {
  const auto before = [](const auto& a, const auto& b) { return larger(a.first, b.first); };
  const auto size = static_cast<int64_t>(row.size());
  if (n == 1) {
    size_t best = 0;
    for (size_t j = 1; j < row.size(); ++j)
      if (larger(row[j].first, row[best].first)) best = j;
    out[0] = row[best].second;
    return;
  }
  if (n * 64 <= size) {
    std::partial_sort(row.begin(), row.begin() + n, row.end(), before);
  } else {
    std::nth_element(row.begin(), row.begin() + n - 1, row.end(), before);
    std::sort(row.begin(), row.begin() + n - 1, before);
  }
  for (int64_t j = 0; j < n; ++j) out[j * step] = row[static_cast<size_t>(j)].second;
}

template <class T>
void by_exponentials(int64_t* out, const Distributions& to, const T* weights, const Distributions& rows, Generator& g) {
  using C = Compute<T>;
  // The draws fill a tensor laid out like the weights, so a transposed matrix is drawn column by column.
  const bool by_column = rows.row_stride != 0 && rows.stride != 0 &&
                         (rows.row_stride < rows.stride || (rows.row_stride == rows.stride && rows.categories > rows.count));
  std::vector<C> quotients(static_cast<size_t>(rows.count * rows.categories));
  const auto draw = [&](int64_t r, int64_t j) {
    const T e = from_double<T>(-1.0 * std::log1p(-draw_unit<double>(g)));
    const T q = static_cast<T>(static_cast<C>(weights[r * rows.row_stride + j * rows.stride]) / static_cast<C>(e));
    quotients[static_cast<size_t>(r * rows.categories + j)] = static_cast<C>(q);
  };
  if (by_column) {
    for (int64_t j = 0; j < rows.categories; ++j)
      for (int64_t r = 0; r < rows.count; ++r) draw(r, j);
  } else {
    for (int64_t r = 0; r < rows.count; ++r)
      for (int64_t j = 0; j < rows.categories; ++j) draw(r, j);
  }
  std::vector<std::pair<C, int64_t>> row(static_cast<size_t>(rows.categories));
  for (int64_t r = 0; r < rows.count; ++r) {
    for (int64_t j = 0; j < rows.categories; ++j)
      row[static_cast<size_t>(j)] = {quotients[static_cast<size_t>(r * rows.categories + j)], j};
    take_largest(row, to.categories, out + r * to.row_stride, to.stride);
  }
}

template <class T>
void by_cumulative(int64_t* out, const Distributions& to, const T* weights, const Distributions& rows, Generator& g) {
  using C = Compute<T>;
  std::vector<C> cumulative(static_cast<size_t>(rows.categories));
  for (int64_t r = 0; r < rows.count; ++r) {
    C sum = 0;
    for (int64_t j = 0; j < rows.categories; ++j) {
      sum += static_cast<C>(weights[r * rows.row_stride + j * rows.stride]);
      cumulative[static_cast<size_t>(j)] = sum;
    }
    for (C& c : cumulative) c /= sum;
    cumulative.back() = 1;
    for (int64_t k = 0; k < to.categories; ++k) {
      const double u = draw_unit<double>(g);
      const auto found = std::lower_bound(cumulative.begin(), cumulative.end(), u,
                                          [](C c, double value) { return static_cast<double>(c) < value; });
      out[r * to.row_stride + k * to.stride] = found - cumulative.begin();
    }
  }
}

}  // namespace

void multinomial_kernel(const TensorBase& out, const TensorBase& weights, bool replacement, Generator* generator) {
  if (weights.dim() != 1 && weights.dim() != 2)
    throw UserError("multinomial: expected weights of 1 or 2 dimensions, found sizes " + str(weights.sizes()));
  if (!is_floating(weights.dtype()))
    throw UserError("multinomial: expected weights of a floating-point dtype, found " + std::string(name(weights.dtype())));
  if (out.dtype() != DType::int64)
    throw UserError("multinomial: expected an int64 output, found " + std::string(name(out.dtype())));
  if (out.dim() != weights.dim() || (out.dim() == 2 && out.size(0) != weights.size(0)))
    throw UserError("multinomial: the output's sizes " + str(out.sizes()) + " do not fit the weights' " +
                    str(weights.sizes()));
  const Distributions rows = rows_of(weights);
  const Distributions to = rows_of(out);
  if (to.categories <= 0) throw UserError("multinomial: expected num_samples > 0, found " + std::to_string(to.categories));
  if (!replacement && to.categories > rows.categories)
    throw UserError("multinomial: cannot draw num_samples = " + std::to_string(to.categories) + " of " +
                    std::to_string(rows.categories) + " categories without replacement");
  if (rows.categories > int64_t{1} << 24)
    throw UserError("multinomial: expected at most 2^24 categories, found " + std::to_string(rows.categories));
  if (rows.count == 0) return;
  if (rows.categories == 0) throw UserError("multinomial: expected at least one category, found none");
  dispatch_floating(weights.dtype(), "multinomial", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(weights.data());
    auto* into = static_cast<int64_t*>(out.mutable_data());
    check_weights(from, rows);
    Generator& g = or_default(generator);
    const std::lock_guard lock(g.mutex());
    if (!replacement || to.categories == 1)
      by_exponentials(into, to, from, rows, g);
    else
      by_cumulative(into, to, from, rows, g);
  });
}

}  // namespace calque
