#include "kernel/cpu/attention/attention_special.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/move.h"

namespace calque {
namespace {

// Whether one of the values of `rows` rows is infinite or NaN: its exponent is all ones.
template <class T>
bool any_special(const T* x, int64_t rows, int64_t row, int64_t n) {
  using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
  return kernel::any_all_ones(x, rows, row, n, sizeof(T), std::bit_cast<Bits>(T(std::numeric_limits<float>::infinity())));
}

template <class T>
class Rows {
 public:
  using A = Accumulate<T>;
  Rows(const Attention<T>& g, int64_t b, int64_t h) : g_(g), b_(b), h_(h) {
    q_ = g.q + b * g.q_strides[0] + h * g.q_strides[1];
    k_ = g.k + b * g.k_strides[0] + h / g.group * g.k_strides[1];
    v_ = g.v + b * g.v_strides[0] + h / g.group * g.v_strides[1];
    out_ = g.out + b * g.out_strides[0] + h * g.out_strides[1];
  }
  bool output_special(int64_t first, int64_t count) const {
    return any_special(out_ + first * g_.out_strides[2], count, g_.out_strides[2], g_.value_dim);
  }
  bool value_special() const { return any_special(v_, g_.kv_length, g_.v_strides[2], g_.value_dim); }

  // The row's weights as PyTorch multiplies them with the values, and their results where a value is not finite.
  void settle(int64_t i) {
    weights_.resize(static_cast<size_t>(g_.kv_length));
    A most = -std::numeric_limits<A>::infinity();
    bool nan = false;
    for (int64_t j = 0; j < g_.kv_length; ++j) {
      const A s = score(i, j);
      weights_[static_cast<size_t>(j)] = s;
      nan = nan || std::isnan(s);
      if (s > most) most = s;
    }
    // Fewer scores than a vector holds: the maximum passes over NaN, and where it finds nothing else the row counts as masked.
    const bool short_row = g_.mask_kind == MaskKind::none && g_.kv_length < static_cast<int64_t>(64 / sizeof(A));
    if (nan && !(short_row && most == -std::numeric_limits<A>::infinity())) return;  // NaN throughout, as it stands
    A sum = 0;
    for (A& w : weights_) {
      w = most == -std::numeric_limits<A>::infinity() ? 0 : std::exp(w - most);
      if (w < std::numeric_limits<A>::min()) w = 0;
      sum += w;
      w = static_cast<A>(static_cast<T>(w));
    }
    T* out = out_ + i * g_.out_strides[2];
    for (int64_t d = 0; d < g_.value_dim; ++d) {
      A total = 0;
      for (int64_t j = 0; j < g_.kv_length; ++j)
        total += weights_[static_cast<size_t>(j)] * static_cast<A>(v_[j * g_.v_strides[2] + d]);
      if (nan || !std::isfinite(total)) out[d] = static_cast<T>(total / (sum == 0 ? 1 : sum));
    }
    if (nan && g_.logsumexp)
      g_.logsumexp[b_ * g_.logsumexp_strides[0] + h_ * g_.logsumexp_strides[1] + i * g_.logsumexp_strides[2]] = 0;
  }

 private:
  A score(int64_t i, int64_t j) const {
    constexpr A nothing = -std::numeric_limits<A>::infinity();
    if (g_.causal && j > i) return nothing;
    A s = 0;
    for (int64_t d = 0; d < g_.head_dim; ++d)
      s += static_cast<A>(q_[i * g_.q_strides[2] + d]) * static_cast<A>(k_[j * g_.k_strides[2] + d]);
    s *= static_cast<A>(g_.scale);
    const int64_t at = b_ * g_.mask_strides[0] + h_ * g_.mask_strides[1] + i * g_.mask_strides[2] + j * g_.mask_strides[3];
    switch (g_.mask_kind) {
      case MaskKind::none: return s;
      case MaskKind::boolean: return s + (static_cast<const uint8_t*>(g_.mask)[at] ? A{0} : nothing);
      case MaskKind::additive: return s + static_cast<A>(static_cast<const T*>(g_.mask)[at]);
      case MaskKind::additive_float: return s + static_cast<A>(static_cast<const float*>(g_.mask)[at]);
    }
    return s;
  }

  const Attention<T>& g_;
  int64_t b_, h_;
  const T *q_, *k_, *v_;
  T* out_;
  std::vector<A> weights_;
};

}  // namespace

template <class T>
void settle_special_values(const Attention<T>& g) {
  const bool some_masked = g.causal || g.mask_kind != MaskKind::none;
  const int64_t work = (g.q_length + g.kv_length) * g.value_dim;
  parallel_for(0, g.batch * g.heads, std::max<int64_t>(1, (int64_t{1} << 12) / std::max<int64_t>(1, work)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t at = begin; at < end; ++at) {
                   Rows<T> rows(g, at / g.heads, at % g.heads);
                   const bool everywhere = some_masked && rows.value_special();
                   if (!everywhere && !rows.output_special(0, g.q_length)) continue;
                   for (int64_t i = 0; i < g.q_length; ++i)
                     if (everywhere || rows.output_special(i, 1)) rows.settle(i);
                 }
               });
}

template void settle_special_values(const Attention<float>&);
template void settle_special_values(const Attention<double>&);
template void settle_special_values(const Attention<BFloat16>&);
template void settle_special_values(const Attention<Half>&);

}  // namespace calque
