#include "kernel/cpu/attention/attention_backward.h"

#include <algorithm>
#include <vector>

#include "calque/base/thread.h"
#include "kernel/cpu/attention/attention_backward_table.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/elementwise/fill.h"
#include "kernel/cpu/gemm/matmul.h"
#include "kernel/cpu/simd/isa_table.h"

namespace calque::kernel {

CALQUE_ISA_ARRAY(AttentionBackwardRow, attention_backward_table)

namespace {

constexpr int64_t query_block = 128, key_block = 256;

// The matrix of one batch and head.
template <class C>
struct HeadRows {
  C* data = nullptr;
  int64_t row = 0, column = 0;

  HeadRows(const TensorBase& t, int64_t batch, int64_t head)
      : data(const_cast<C*>(t.data_as<C>()) + batch * t.stride(0) + head * t.stride(1)),
        row(t.stride(2)),
        column(t.stride(3)) {}
  C* at(int64_t i) const { return data + i * row; }
};

template <class C>
class AttentionGradient {
 public:
  AttentionGradient(const AttentionBackward& p, const TensorBase& mask)
      : p_(p),
        mask_(mask),
        loops_(attention_backward_table()[dtype_v<C> == DType::float64 ? 1 : 0]),
        rows_(p.query.size(2)),
        keys_(p.key.size(2)),
        width_(p.query.size(3)),
        value_width_(p.value.size(3)) {}

  void run() const {
    const int64_t heads = p_.key.size(1), group = heads ? p_.query.size(1) / heads : 1;
    parallel_for(0, p_.query.size(0) * heads, 1, [&](int64_t begin, int64_t end) {
      std::vector<C> weights(static_cast<size_t>(query_block * key_block)), slopes(weights.size());
      std::vector<double> levels(query_block);
      for (int64_t at = begin; at < end; ++at)
        for (int64_t h = 0; h < group; ++h)
          one_head(at / heads, at % heads, at % heads * group + h, weights.data(), slopes.data(), levels.data());
    });
  }

 private:
  void one_head(int64_t batch, int64_t kv_head, int64_t head, C* weights, C* slopes, double* levels) const {
    const HeadRows<C> q(p_.query, batch, head), k(p_.key, batch, kv_head), v(p_.value, batch, kv_head),
        grad(p_.grad_out, batch, head), out(p_.out, batch, head), dq(p_.grad_query, batch, head),
        dk(p_.grad_key, batch, kv_head), dv(p_.grad_value, batch, kv_head);
    for (int64_t i = 0; i < rows_; i += query_block) {
      const int64_t m = std::min(query_block, rows_ - i);
      for (int64_t r = 0; r < m; ++r) levels[r] = level(grad, out, i + r);
      const int64_t seen = p_.causal ? std::min(keys_, i + m) : keys_;
      for (int64_t j = 0; j < seen; j += key_block) {
        const int64_t n = std::min(key_block, seen - j);
        // scores and the weights' gradients
        product(q.at(i), q.row, q.column, k.at(j), k.column, k.row, weights, n, 1, m, n, width_, false);
        product(grad.at(i), grad.row, grad.column, v.at(j), v.column, v.row, slopes, n, 1, m, n, value_width_, false);
        for (int64_t r = 0; r < m; ++r) {
          const int64_t visible = p_.causal ? std::clamp<int64_t>(i + r + 1 - j, 0, n) : n;
          C *w = weights + r * n, *s = slopes + r * n;
          loops_.weights(w, visible, p_.scale, mask_row(batch, head, i + r, j), logsumexp(batch, head, i + r));
          loops_.slopes(w, s, visible, levels[r], p_.scale);
          std::fill(w + visible, w + n, C{0});
          std::fill(s + visible, s + n, C{0});
        }
        product(weights, 1, n, grad.at(i), grad.row, grad.column, dv.at(j), dv.row, dv.column, n, value_width_, m, true);
        product(slopes, n, 1, k.at(j), k.row, k.column, dq.at(i), dq.row, dq.column, m, width_, n, j != 0);
        product(slopes, 1, n, q.at(i), q.row, q.column, dk.at(j), dk.row, dk.column, n, width_, m, true);
      }
    }
  }

  // The sum of the weights' gradients times the weights.
  double level(const HeadRows<C>& grad, const HeadRows<C>& out, int64_t i) const {
    if (grad.column == 1 && out.column == 1) return loops_.dot(grad.at(i), out.at(i), value_width_);
    double sum = 0;
    for (int64_t d = 0; d < value_width_; ++d)
      sum += static_cast<double>(grad.at(i)[d * grad.column]) * static_cast<double>(out.at(i)[d * out.column]);
    return sum;
  }

  double logsumexp(int64_t batch, int64_t head, int64_t i) const {
    const TensorBase& t = p_.logsumexp;
    return static_cast<double>(t.data_as<C>()[batch * t.stride(0) + head * t.stride(1) + i * t.stride(2)]);
  }

  const C* mask_row(int64_t batch, int64_t head, int64_t i, int64_t j) const {
    if (!mask_.defined()) return nullptr;
    const int64_t at[] = {batch, head, i};
    int64_t offset = j;
    for (int64_t d = 0; d < 3; ++d)
      if (mask_.size(d) != 1) offset += at[d] * mask_.stride(d);
    return mask_.data_as<C>() + offset;
  }

  static void product(const C* a, int64_t a_row, int64_t a_col, const C* b, int64_t b_row, int64_t b_col, C* c,
                      int64_t c_row, int64_t c_col, int64_t m, int64_t n, int64_t k, bool adds) {
    Product p;
    p.dtype = dtype_v<C>;
    p.m = m, p.n = n, p.k = k;
    p.a = a, p.a_row = a_row, p.a_col = a_col;
    p.b = b, p.b_row = b_row, p.b_col = b_col;
    p.c = c, p.c_row = c_row, p.c_col = c_col;
    if (adds) p.beta = 1;
    multiply(p);
  }

  const AttentionBackward& p_;
  const TensorBase& mask_;
  const AttentionBackwardRow& loops_;
  int64_t rows_, keys_, width_, value_width_;
};

// The mask with four dimensions, of the type that is computed in, a number for each key.
TensorBase plain_mask(const TensorBase& mask, int64_t keys, DType wide) {
  if (!mask.defined()) return mask;
  std::vector<int64_t> sizes(static_cast<size_t>(4 - mask.dim()), 1);
  for (const int64_t s : mask.sizes()) sizes.push_back(s);
  sizes[3] = keys;
  const TensorBase out = make_tensor(IntList(sizes), wide);
  copy(mask, out);
  return out;
}

}  // namespace

void attention_backward(const AttentionBackward& problem) {
  const DType wide = problem.query.dtype() == DType::float64 ? DType::float64 : DType::float32;
  AttentionBackward p = problem;
  for (TensorBase* t : {&p.grad_out, &p.query, &p.key, &p.value, &p.out, &p.logsumexp})
    if (t->dtype() != wide) *t = contiguous_as(*t, wide);
  for (TensorBase* t : {&p.grad_query, &p.grad_key, &p.grad_value}) {
    if (t->dtype() != wide) *t = make_tensor(t->sizes(), wide);
    fill(*t, 0);
  }
  const TensorBase mask = plain_mask(p.mask, p.key.size(2), wide);
  if (wide == DType::float64)
    AttentionGradient<double>(p, mask).run();
  else
    AttentionGradient<float>(p, mask).run();
  if (problem.query.dtype() == wide) return;
  copy(p.grad_query, problem.grad_query);
  copy(p.grad_key, problem.grad_key);
  copy(p.grad_value, problem.grad_value);
}

}  // namespace calque::kernel
