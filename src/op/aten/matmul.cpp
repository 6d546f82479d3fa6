// Matrix products: mm, bmm and their kin with a summand, and matmul and linear, which are made of them.
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/view_metadata.h"
#include "calque/op/aten/views.h"
#include "kernel/cpu/elementwise/binary.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/gemm/matmul.h"
#include "kernel/cpu/gemm/outer.h"
#include "kernel/cpu/not_implemented.h"
#include "op/gradient/formulas.h"
#include "op/gradient/products.h"
#include "op/rule/geometry.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Product;

std::string dims(const Tensor& t) { return std::to_string(t.dim()) + "-D"; }
std::string by(const Tensor& t) { return t.sym_size(0).str() + "x" + t.sym_size(1).str(); }

void check_same_dtype(const char* op, const char* a_name, const Tensor& a, const char* b_name, const Tensor& b) {
  if (a.dtype() != b.dtype())
    throw UserError(std::string(op) + ": expected " + a_name + " and " + b_name + " to have the same dtype, but got: " +
                    std::string(name(a.dtype())) + " != " + std::string(name(b.dtype())));
}
void check_product_dtype(const char* op, const Tensor& a) {
  if (!kernel::has_product(a.dtype())) kernel::not_implemented(op, a.dtype());
}
Meta contiguous(SymInts sizes, const Tensor& like) {
  SymInts strides = contiguous_strides(sizes);
  return {std::move(sizes), std::move(strides), like.dtype(), like.device(), false};
}
// A summand of the product must broadcast to it.
void check_expands(const char* op, const Tensor& self, const Meta& result) {
  const SymIntList own = self.sym_sizes();
  bool fits = own.size() <= result.sizes.size();
  const size_t lead = fits ? result.sizes.size() - own.size() : 0;
  for (size_t d = 0; d < own.size() && fits; ++d)
    fits = guard_or(own[d] == 1, false) || check(own[d] == result.sizes[lead + d]);
  if (!fits)
    throw UserError(std::string(op) + ": self of sizes " + str(own) + " does not expand to the sizes of the product " +
                    str(SymIntList(result.sizes)));
}

// ---- two matrices -------------------------------------------------------------------------------------------------
Meta matrix_rule(const char* op, const Tensor& a, const Tensor& b) {
  if (a.dim() != 2) throw UserError(std::string(op) + ": mat1 must be a matrix, got " + dims(a) + " tensor");
  if (b.dim() != 2) throw UserError(std::string(op) + ": mat2 must be a matrix, got " + dims(b) + " tensor");
  if (!check(a.sym_size(1) == b.sym_size(0)))
    throw UserError(std::string(op) + ": mat1 and mat2 shapes cannot be multiplied (" + by(a) + " and " + by(b) + ")");
  check_same_dtype(op, "m1", a, "m2", b);
  check_product_dtype(op, a);
  return contiguous({a.sym_size(0), b.sym_size(1)}, a);
}
Product matrix_product(const Tensor& a, const Tensor& b, const Tensor& out) {
  Product p;
  p.dtype = a.dtype();
  p.m = a.size(0), p.n = b.size(1), p.k = a.size(1);
  p.a = a.data(), p.a_row = a.stride(0), p.a_col = a.stride(1);
  p.b = b.data(), p.b_row = b.stride(0), p.b_col = b.stride(1);
  p.c = out.mutable_data(), p.c_row = out.stride(0), p.c_col = out.stride(1);
  return p;
}

// The product over out's old values, or over those of `self`: brought into out first unless a row of it can be added as a
// bias, and never read where beta is 0.
void add_product(Product p, const Tensor& self, const Scalar& beta, const Scalar& alpha, const Tensor& out) {
  p.alpha = alpha;
  const bool ignore =
      !beta.is_boolean() &&
      (is_integral(p.dtype) ? (beta.is_floating() ? static_cast<int64_t>(beta.to_double()) : beta.to_int()) == 0
                            : beta.to_double() == 0);
  const bool is_one = beta.equals(1);
  if (!ignore && is_one && !out.is_same(self) && self.dim() <= 1 && self.numel() == (self.dim() == 0 ? 1 : self.size(0))) {
    p.bias = self.data();
    p.bias_stride = self.dim() == 0 || self.size(0) == 1 ? 0 : self.stride(0);
  } else if (!ignore) {
    if (!out.is_same(self)) kernel::copy(self, out);
    p.beta = beta;
  }
  kernel::multiply(p);
}
// In place, factors may lie where the result goes.
template <class F>
void apart_from(const Tensor& out, const Tensor& a, const Tensor& b, F&& compute) {
  if (!op_detail::shares_memory(out, a) && !op_detail::shares_memory(out, b)) return compute(out);
  const Tensor aside = make_tensor(out.meta());
  compute(aside);
  kernel::copy(aside, out);
}

void mm_kernel(const Tensor& a, const Tensor& b, const Tensor& out) { kernel::multiply(matrix_product(a, b, out)); }

Meta addmm_rule(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar&) {
  Meta m = matrix_rule("addmm", mat1, mat2);
  // Symbolic sizes of a summand that is not read need not fit.
  const bool unread =
      !beta.is_symbolic() && beta.equals(0) && (self.is_symbolic() || mat1.is_symbolic() || mat2.is_symbolic());
  if (!unread) check_expands("addmm", self, m);
  check_same_dtype("addmm", "self", self, "mat2", mat2);
  return m;
}
void addmm_kernel(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha,
                  const Tensor& out) {
  apart_from(out, mat1, mat2, [&](const Tensor& to) { add_product(matrix_product(mat1, mat2, to), self, beta, alpha, to); });
}

// ---- batches of matrices ------------------------------------------------------------------------------------------
Meta batch_rule(const char* op, const Tensor& a, const Tensor& b) {
  if (a.dim() != 3) throw UserError(std::string(op) + ": batch1 must be a 3D tensor, got " + dims(a));
  if (b.dim() != 3) throw UserError(std::string(op) + ": batch2 must be a 3D tensor, got " + dims(b));
  if (!check(a.sym_size(0) == b.sym_size(0)) || !check(a.sym_size(2) == b.sym_size(1)))
    throw UserError(std::string(op) + ": Expected size for first two dimensions of batch2 tensor to be: [" +
                    a.sym_size(0).str() + ", " + a.sym_size(2).str() + "] but got: [" + b.sym_size(0).str() + ", " +
                    b.sym_size(1).str() + "]");
  check_same_dtype(op, "batch1", a, "batch2", b);
  check_product_dtype(op, a);
  return contiguous({a.sym_size(0), a.sym_size(1), b.sym_size(2)}, a);
}
Product batch_product(const Tensor& a, const Tensor& b, const Tensor& out) {
  Product p;
  p.dtype = a.dtype();
  p.m = a.size(1), p.n = b.size(2), p.k = a.size(2);
  p.a = a.data(), p.a_row = a.stride(1), p.a_col = a.stride(2);
  p.b = b.data(), p.b_row = b.stride(1), p.b_col = b.stride(2);
  p.c = out.mutable_data(), p.c_row = out.stride(1), p.c_col = out.stride(2);
  p.batch = {a.size(0)};
  p.a_batch = {a.stride(0)};
  p.b_batch = {b.stride(0)};
  p.c_batch = {out.stride(0)};
  return p;
}
Meta bmm_rule(const Tensor& a, const Tensor& b) { return batch_rule("bmm", a, b); }
void bmm_kernel(const Tensor& a, const Tensor& b, const Tensor& out) { kernel::multiply(batch_product(a, b, out)); }

Meta baddbmm_rule(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar&, const Scalar&) {
  Meta m = batch_rule("baddbmm", batch1, batch2);
  check_expands("baddbmm", self, m);
  check_same_dtype("baddbmm", "input", self, "batch1", batch1);
  return m;
}
void baddbmm_kernel(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha,
                    const Tensor& out) {
  apart_from(out, batch1, batch2,
             [&](const Tensor& to) { add_product(batch_product(batch1, batch2, to), self, beta, alpha, to); });
}

Meta addbmm_rule(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar&, const Scalar&) {
  const Meta batches = batch_rule("addbmm", batch1, batch2);
  Meta m = contiguous({batches.sizes[1], batches.sizes[2]}, batch1);
  check_expands("addbmm", self, m);
  check_same_dtype("addbmm", "self", self, "batch1", batch1);
  return m;
}
void addbmm_kernel(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha,
                   const Tensor& out) {
  // Without batches ATen multiplies in place, which cannot make an integer of a float.
  if (batch1.size(0) == 0 && out.numel() != 0 && beta.is_floating() && is_integral(batch1.dtype()))
    throw UserError("addbmm: result type float32 can't be cast to the desired output type " +
                    std::string(name(batch1.dtype())));
  apart_from(out, batch1, batch2, [&](const Tensor& to) {
    const auto item_of = [&](int64_t i) {
      Product p;
      const int64_t item = batch1.element_size();
      p.dtype = batch1.dtype();
      p.m = batch1.size(1), p.n = batch2.size(2), p.k = batch1.size(2);
      p.a = static_cast<const char*>(batch1.data()) + i * batch1.stride(0) * item, p.a_row = batch1.stride(1),
      p.a_col = batch1.stride(2);
      p.b = static_cast<const char*>(batch2.data()) + i * batch2.stride(0) * item, p.b_row = batch2.stride(1),
      p.b_col = batch2.stride(2);
      p.c = to.mutable_data(), p.c_row = to.stride(0), p.c_col = to.stride(1);
      return p;
    };
    const int64_t count = batch1.size(0);
    Product first = item_of(0);
    if (count == 0) first.k = 0;
    add_product(first, self, beta, alpha, to);
    for (int64_t i = 1; i < count; ++i) {
      Product next = item_of(i);
      next.alpha = alpha;
      next.beta = 1;
      kernel::multiply(next);
    }
  });
}

// ---- vectors ------------------------------------------------------------------------------------------------------
Meta vector_rule(const char* op, const Tensor& mat, const Tensor& vec, const Tensor* self) {
  if (mat.dim() != 2 || vec.dim() != 1 || (self && self->dim() > 1))
    throw UserError(std::string(op) + ": vector + matrix @ vector expected, got " +
                    (self ? std::to_string(self->dim()) : "1") + ", " + std::to_string(mat.dim()) + ", " +
                    std::to_string(vec.dim()));
  bool fits = check(mat.sym_size(1) == vec.sym_size(0));
  if (fits && self && self->dim() == 1)
    fits = guard_or(self->sym_size(0) == 1, false) || check(self->sym_size(0) == mat.sym_size(0));
  if (!fits)
    throw UserError(std::string(op) + ": size mismatch, got input (" + (self ? self->sym_numel() : mat.sym_size(0)).str() +
                    "), mat (" + by(mat) + "), vec (" + vec.sym_size(0).str() + ")");
  check_same_dtype(op, "mat", mat, "vec", vec);
  if (self) check_same_dtype(op, "self", *self, "mat", mat);
  check_product_dtype(op, mat);
  return contiguous({mat.sym_size(0)}, mat);
}
Product vector_product(const Tensor& mat, const Tensor& vec, const Tensor& out) {
  Product p;
  p.dtype = mat.dtype();
  p.m = mat.size(0), p.n = 1, p.k = mat.size(1);
  p.a = mat.data(), p.a_row = mat.stride(0), p.a_col = mat.stride(1);
  p.b = vec.data(), p.b_row = vec.stride(0), p.b_col = 1;
  p.c = out.mutable_data(), p.c_row = out.stride(0), p.c_col = 1;
  return p;
}
bool ignored(const Scalar& beta, DType d) {
  return beta.is_floating() ? (is_integral(d) ? static_cast<int64_t>(beta.to_double()) == 0 : beta.to_double() == 0)
                            : beta.to_int() == 0;
}
// Of an empty matrix ATen returns beta * self as it is, not expanded.
Meta addmv_rule(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar&) {
  const Meta m = vector_rule("addmv", mat, vec, &self);
  if (beta.is_symbolic() || beta.to_double() == 0 || !guard_or(mat.sym_numel() == 0, false)) return m;
  return contiguous(self.impl().sizes, mat);
}
void addmv_kernel(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha,
                  const Tensor& out) {
  if (mat.numel() == 0 && beta.to_double() != 0) {
    if (out.is_same(self) && (self.dim() == 0 || self.size(0) != mat.size(0)))
      throw UserError("addmv_: expected self of sizes [" + std::to_string(mat.size(0)) + "], found " +
                      str(self.sym_sizes()));
    return kernel::binary(kernel::Binary::mul, mat.dtype(), self, beta, out);
  }
  apart_from(out, mat, vec, [&](const Tensor& to) {
    Product p = vector_product(mat, vec, to);
    p.alpha = alpha;
    if (!ignored(beta, p.dtype)) {
      if (!to.is_same(self)) kernel::copy(self, to);
      p.beta = beta;
    }
    kernel::multiply(p);
  });
}
Meta dot_rule(const char* op, const Tensor& a, const Tensor& b) {
  if (a.dim() != 1 || b.dim() != 1)
    throw UserError(std::string(op) + ": 1D tensors expected, but got " + std::to_string(a.dim()) + "D and " +
                    std::to_string(b.dim()) + "D tensors");
  check_same_dtype(op, "self", a, "other", b);
  if (!check(a.sym_size(0) == b.sym_size(0)))
    throw UserError(std::string(op) + ": inconsistent tensor size, expected tensor " + str(a.sym_sizes()) + " and src " +
                    str(b.sym_sizes()) + " to have the same number of elements");
  check_product_dtype(op, a);
  return contiguous({}, a);
}
void dot_kernel(const Tensor& a, const Tensor& b, const Tensor& out) {
  Product p;
  p.dtype = a.dtype();
  p.m = 1, p.n = 1, p.k = a.size(0);
  p.a = a.data(), p.a_row = 1, p.a_col = a.stride(0);
  p.b = b.data(), p.b_row = b.stride(0), p.b_col = 1;
  p.c = out.mutable_data(), p.c_row = 1, p.c_col = 1;
  kernel::multiply(p);
}

Tensor as_column(const Tensor& vec) {
  return make_view(vec, {vec.sym_size(0), 1}, {vec.sym_stride(0), 1}, vec.sym_storage_offset());
}

Meta addr_rule(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha) {
  if (vec1.dim() != 1) throw UserError("addr: Expected 1-D argument vec1, but got " + dims(vec1));
  if (vec2.dim() != 1) throw UserError("addr: Expected 1-D argument vec2, but got " + dims(vec2));
  const DType dtype = TypePromotion().add(self).add(vec1).add(vec2).result();
  for (const Scalar* s : {&beta, &alpha}) {
    if (s->is_boolean() && dtype != DType::bool_)
      throw UserError("addr: Boolean alpha and beta only supported for Boolean results");
    if (s->is_floating() && is_integral(dtype))
      throw UserError("addr: For integral input tensors, alpha and beta must not be floating point numbers, found " +
                      s->str());
  }
  const Meta product = contiguous({vec1.sym_size(0), vec2.sym_size(0)}, vec1);
  check_expands("addr", self, product);
  if (is_float8(dtype)) check_product_dtype("addr", self);
  const Tensor column = as_column(vec1);
  return rule::pointwise("addr", dtype, {&self, &column, &vec2});
}
void addr_kernel(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha,
                 const Tensor& out) {
  kernel::add_outer(self, as_column(vec1), vec2, beta, alpha, out);
}

// ---- gradients ----------------------------------------------------------------------------------------------------
// Of a summand that was multiplied by beta.
Tensor of_summand(const Gradients& g) { return gradient::maybe_times(g.grad(), g.scalar("beta")); }

// Each batch adds into the same result.
Tensor for_each_batch(const Gradients& g) {
  const SymIntList left = g.sizes("batch1"), right = g.sizes("batch2");
  return g.grad().unsqueeze(0).expand({left[0], left[1], right[2]});
}

// ---- matmul and linear --------------------------------------------------------------------------------------------
bool runs_now(const Tensor& a, const Tensor& b, const Tensor& bias) {
  return !modes_active() && !a.is_fake() && !b.is_fake() &&
         !(records_gradients() && (a.requires_grad() || b.requires_grad() || (bias.defined() && bias.requires_grad())));
}

// The whole product by one kernel where the call is plain and its operands fit; an undefined tensor otherwise, and the
// body below, which knows the errors, takes over.
Tensor product_at_once(const Tensor& a, const Tensor& b, bool b_is_transposed, const Tensor& bias) {
  if (!runs_now(a, b, bias) || a.dtype() != b.dtype() || a.dim() == 0 || b.dim() == 0 || !kernel::has_product(a.dtype()))
    return {};
  const IntList as = a.sizes(), bs = b.sizes();
  const size_t ad = as.size(), bd = bs.size();
  Product p;
  p.dtype = a.dtype();
  p.a = a.data();
  p.b = b.data();
  p.k = as.back();
  p.m = ad > 1 ? as[ad - 2] : 1;
  p.a_col = a.strides().back();
  p.a_row = ad > 1 ? a.strides()[ad - 2] : 0;
  const size_t b_rows = bd == 1 ? 0 : b_is_transposed ? bd - 1 : bd - 2;
  const size_t b_cols = b_is_transposed ? bd - 2 : bd - 1;
  if (bs[b_rows] != p.k) return {};
  p.b_row = b.strides()[b_rows];
  p.n = bd > 1 ? bs[b_cols] : 1;
  p.b_col = bd > 1 ? b.strides()[b_cols] : 0;
  if (bias.defined()) {
    if (bias.is_fake() || bias.dim() != 1 || bias.sizes()[0] != p.n || bias.dtype() != a.dtype()) return {};
    p.bias = bias.data();
    p.bias_stride = bias.strides()[0];
  }
  const size_t a_batches = ad > 2 ? ad - 2 : 0, b_batches = bd > 2 ? bd - 2 : 0;
  const size_t batches = std::max(a_batches, b_batches);
  SymInts sizes(batches, 1);
  p.batch.resize(batches), p.a_batch.resize(batches), p.b_batch.resize(batches);
  for (size_t d = 0; d < batches; ++d) {
    const bool in_a = d + a_batches >= batches, in_b = d + b_batches >= batches;
    const int64_t x = in_a ? as[d + a_batches - batches] : 1, y = in_b ? bs[d + b_batches - batches] : 1;
    if (x != y && x != 1 && y != 1) return {};
    p.batch[d] = x == 1 ? y : x;
    p.a_batch[d] = x == 1 ? 0 : a.strides()[d + a_batches - batches];
    p.b_batch[d] = y == 1 ? 0 : b.strides()[d + b_batches - batches];
    sizes[d] = p.batch[d];
  }
  if (ad > 1) sizes.push_back(p.m);
  if (bd > 1) sizes.push_back(p.n);
  const Tensor out = make_tensor(contiguous(std::move(sizes), a));
  p.c = out.mutable_data();
  p.c_row = p.n, p.c_col = 1;
  // Batches that lie one after another become rows of one matrix.
  while (!p.batch.empty() && p.b_batch.back() == 0 && (p.a_batch.back() == p.a_row * p.m || p.m == 1)) {
    if (p.m == 1) p.a_row = p.a_batch.back();
    p.m *= p.batch.back();
    p.batch.pop_back(), p.a_batch.pop_back(), p.b_batch.pop_back();
  }
  p.c_batch.resize(p.batch.size());
  int64_t stride = p.m * p.n;
  for (size_t d = p.batch.size(); d-- > 0; stride *= p.batch[d]) p.c_batch[d] = stride;
  kernel::multiply(p);
  return out;
}

// May the batches of the larger operand become rows of one matrix without a copy?
bool should_fold(const Tensor& a, const Tensor& b) {
  const Tensor& large = a.dim() >= b.dim() ? a : b;
  const Tensor& small = a.dim() >= b.dim() ? b : a;
  if (large.dim() < 3 || small.dim() > 2) return false;
  if (small.requires_grad()) return true;  // saves expanding it for the gradient
  if (a.dim() == 2) return false;
  if (guard_or(large.sym_numel() == 0, false)) return true;
  const SymIntList sizes = large.sym_sizes(), strides = large.sym_strides();
  if (!large.is_fake()) {
    // A larger second operand is folded transposed.
    const auto at = [&](SymIntList list, size_t d) {
      const size_t n = list.size();
      return large.is_same(a) || d < n - 2 ? list[d] : list[d == n - 2 ? n - 1 : n - 2];
    };
    for (size_t d = 0; d + 2 < sizes.size(); ++d)
      if (!guard(at(strides, d) == at(strides, d + 1) * at(sizes, d + 1))) return false;
    return true;
  }
  SymInt expected = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (!guard_or(sizes[d] == 1, false) && !guard_or(strides[d] == expected, false)) return false;
    expected = expected * sizes[d];
  }
  return true;
}

Tensor matmul_body(const Tensor& a, const Tensor& b) {
  if (Tensor out = product_at_once(a, b, false, {}); out.defined()) return out;
  const int64_t ad = a.dim(), bd = b.dim();
  if (ad == 0 || bd == 0)
    throw UserError("matmul: both arguments need to be at least 1D, but they are " + std::to_string(ad) + "D and " +
                    std::to_string(bd) + "D");
  if (ad == 1 && bd == 1) return dot(a, b);
  if (ad == 2 && bd == 1) return mv(a, b);
  if (ad == 1 && bd == 2) return squeeze(mm(unsqueeze(a, 0), b), 0);
  if (ad == 2 && bd == 2) return mm(a, b);
  if (should_fold(a, b)) {
    const bool swapped = bd > ad;
    const Tensor large = swapped ? transpose(b, -2, -1) : a;
    const Tensor small = swapped ? (ad == 2 ? t(a) : a) : b;
    const SymIntList sizes = large.sym_sizes();
    SymInts result(sizes.begin(), sizes.end() - 1);
    const SymInt rows = product(result);
    if (small.dim() == 2) result.push_back(small.sym_size(1));
    const Tensor folded = reshape(large, {rows, sizes.back()});
    if (small.dim() == 1) return _unsafe_view(mv(folded, small), result);
    const Tensor out = _unsafe_view(mm(folded, small), result);
    return swapped ? transpose(out, -2, -1).contiguous() : out;
  }
  const SymInt n = ad > 1 ? a.sym_size(-2) : SymInt(1), k = a.sym_size(-1);
  const SymInt b_rows = bd > 1 ? b.sym_size(-2) : b.sym_size(0), columns = bd > 1 ? b.sym_size(-1) : SymInt(1);
  const SymIntList a_batch(a.sym_sizes().data(), static_cast<size_t>(std::max<int64_t>(ad - 2, 0)));
  const SymIntList b_batch(b.sym_sizes().data(), static_cast<size_t>(std::max<int64_t>(bd - 2, 0)));
  if (ad == 3 && bd == 3 && guard_or(a_batch[0] != b_batch[0], true)) {
    if (guard_or(a_batch[0] == 1, false) && a.requires_grad()) return matmul(squeeze(a, 0), b);
    if (guard_or(b_batch[0] == 1, false) && b.requires_grad()) return matmul(a, squeeze(b, 0));
  }
  const SymInts batch = broadcast_sizes(a_batch, b_batch, "matmul");
  const SymInt count = product(batch);
  SymInts a_sizes = batch, b_sizes = batch, result = batch;
  a_sizes.push_back(n);
  a_sizes.push_back(k);
  b_sizes.push_back(b_rows);
  if (bd > 1) b_sizes.push_back(columns);
  if (ad > 1) result.push_back(n);
  if (bd > 1) result.push_back(columns);
  // With symbolic sizes PyTorch's traces show a plain view.
  const auto viewed = [&](const Tensor& t, const SymInts& sizes) {
    return a.is_symbolic() || b.is_symbolic() ? t.view(sizes) : _unsafe_view(t, sizes);
  };
  const Tensor left = reshape(expand(a, a_sizes), {count, n, k});
  if (bd == 1) {
    const Tensor right = unsqueeze(reshape(expand(b, b_sizes), {count, b_rows}), 2);
    return viewed(squeeze(bmm(left, right), -1), result);
  }
  return viewed(bmm(left, reshape(expand(b, b_sizes), {count, b_rows, columns})), result);
}

Tensor linear_body(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  if (weight.dim() == 2)
    if (Tensor out = product_at_once(input, weight, true, bias); out.defined()) return out;
  const int64_t dim = input.dim();
  if (dim == 0 || weight.dim() == 0)
    throw UserError("linear: both arguments need to be at least 1D, but they are " + std::to_string(dim) + "D and " +
                    std::to_string(weight.dim()) + "D");
  if (bias.defined() && dim == 2) return addmm(bias, input, t(weight));
  if (bias.defined() && input.is_contiguous()) {
    const SymIntList sizes = input.sym_sizes();
    SymInts result(sizes.begin(), sizes.end() - 1);
    const Tensor flat = reshape(input, {product(result), sizes.back()});
    const Tensor out = addmm(bias, flat, t(weight));
    result.push_back(out.sym_size(1));
    return view(out, result);
  }
  const Tensor out = matmul(input, t(weight));
  return bias.defined() ? add(out, bias) : out;
}

// A vector times a matrix is a matrix of one row in ATen, into which an out= argument is made.
Tensor written(const char* op, const Tensor& result, const Tensor& out, bool one_row) {
  if (out.dtype() != result.dtype())
    throw UserError(std::string(op) + ": expected out= of dtype " + std::string(name(result.dtype())) + ", found " +
                    std::string(name(out.dtype())));
  if (one_row)
    out.resize_(result.sym_sizes(), MemoryFormat::contiguous);
  else if (!rule::equal_sizes(out.sym_sizes(), result.sym_sizes()))
    out.resize_(result.sym_sizes());
  return out.copy_(result);
}

}  // namespace

void register_matmul(Library& aten);
void register_matmul(Library& aten) {
  aten.def("mm(Tensor self, Tensor mat2) -> Tensor")
      .tags(Tag::autocast_lower)
      .compute([](const Tensor& a, const Tensor& b) { return matrix_rule("mm", a, b); }, mm_kernel)
      .out("mm.out")
      .tags(Tag::core, Tag::strided_out)
      .gradient("self", "mat2",
                [](const Gradients& g) { return gradient::of_left_matrix(g.grad(), g["mat2"], g.meta("self"), 1); })
      .gradient("mat2", "self",
                [](const Gradients& g) { return gradient::of_right_matrix(g.grad(), g["self"], g.meta("mat2"), 1); });
  aten.def("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .tags(Tag::autocast_lower)
      .compute(addmm_rule, addmm_kernel)
      .in_place("addmm_")
      .out("addmm.out")
      .tags(Tag::core, Tag::strided_out, Tag::self_in_out)
      .gradient("self", "", of_summand)
      .gradient("mat1", "mat2",
                [](const Gradients& g) {
                  return gradient::of_left_matrix(g.grad(), g["mat2"], g.meta("mat1"), g.scalar("alpha"));
                })
      .gradient("mat2", "mat1", [](const Gradients& g) {
        return gradient::of_right_matrix(g.grad(), g["mat1"], g.meta("mat2"), g.scalar("alpha"));
      });
  aten.def("bmm(Tensor self, Tensor mat2) -> Tensor")
      .tags(Tag::autocast_lower)
      .compute(bmm_rule, bmm_kernel)
      .out("bmm.out")
      .tags(Tag::core, Tag::strided_out)
      .gradient("self", "mat2", [](const Gradients& g) { return gradient::of_left_batch(g.grad(), g["mat2"], 1); })
      .gradient("mat2", "self", [](const Gradients& g) { return gradient::of_right_batch(g.grad(), g["self"], 1); });
  aten.def("baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .tags(Tag::autocast_lower)
      .compute(baddbmm_rule, baddbmm_kernel)
      .in_place("baddbmm_", Tag::left_whole)
      .out("baddbmm.out")
      .tags(Tag::strided_out, Tag::self_in_out)
      .gradient("self", "", of_summand)
      .gradient("batch1", "batch2",
                [](const Gradients& g) { return gradient::of_left_batch(g.grad(), g["batch2"], g.scalar("alpha")); })
      .gradient("batch2", "batch1",
                [](const Gradients& g) { return gradient::of_right_batch(g.grad(), g["batch1"], g.scalar("alpha")); });
  aten.def("addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .tags(Tag::autocast_lower)
      .compute(addbmm_rule, addbmm_kernel)
      .in_place("addbmm_")
      .out("addbmm.out")
      .tags(Tag::resizes_self, Tag::strided_out, Tag::self_in_out)
      .gradient("self", "", of_summand)
      .gradient(
          "batch1", "batch2",
          [](const Gradients& g) { return gradient::of_left_batch(for_each_batch(g), g["batch2"], g.scalar("alpha")); })
      .gradient("batch2", "batch1", [](const Gradients& g) {
        const Tensor left = gradient::conjugated(g["batch1"].transpose(1, 2));
        return gradient::maybe_times(left.bmm(for_each_batch(g)), g.scalar("alpha"));
      });
  aten.def("mv(Tensor self, Tensor vec) -> Tensor")
      .compute(
          [](const Tensor& mat, const Tensor& vec) { return vector_rule("mv", mat, vec, nullptr); },
          [](const Tensor& mat, const Tensor& vec, const Tensor& out) { kernel::multiply(vector_product(mat, vec, out)); })
      .out("mv.out")
      .tags(Tag::strided_out)
      .gradient("self", "vec", [](const Gradients& g) { return g.grad().outer(gradient::conjugated(g["vec"])); })
      .gradient("vec", "self", [](const Gradients& g) { return gradient::conjugated(g["self"]).t().mv(g.grad()); });
  aten.def("addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .compute(addmv_rule, addmv_kernel)
      .in_place("addmv_")
      .out("addmv.out")
      .tags(Tag::strided_out, Tag::self_in_out)
      .gradient("self", "", of_summand)
      .gradient("mat", "vec",
                [](const Gradients& g) {
                  return gradient::maybe_times(g.grad().outer(gradient::conjugated(g["vec"])), g.scalar("alpha"));
                })
      .gradient("vec", "mat", [](const Gradients& g) {
        return gradient::maybe_times(gradient::conjugated(g["mat"].t()).mv(g.grad()), g.scalar("alpha"));
      });
  aten.def("dot(Tensor self, Tensor tensor) -> Tensor")
      .compute([](const Tensor& a, const Tensor& b) { return dot_rule("dot", a, b); }, dot_kernel)
      .out("dot.out")
      .tags(Tag::strided_out)
      .gradient("self", "tensor", [](const Gradients& g) { return g.grad().mul(gradient::conjugated(g["tensor"])); })
      .gradient("tensor", "self", [](const Gradients& g) { return g.grad().mul(gradient::conjugated(g["self"])); });
  aten.def("vdot(Tensor self, Tensor other) -> Tensor")
      .compute([](const Tensor& a, const Tensor& b) { return dot_rule("vdot", a, b); }, dot_kernel)
      .out("vdot.out")
      .tags(Tag::strided_out)
      .gradient("self", "other", [](const Gradients& g) { return gradient::conjugated(g.grad()).mul(g["other"]); })
      .gradient("other", "self", [](const Gradients& g) { return g.grad().mul(g["self"]); });
  aten.def("addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .compute(addr_rule, addr_kernel)
      .in_place("addr_", Tag::left_whole)
      .out("addr.out")
      .tags(Tag::cast_out)
      .gradient("self", "", of_summand)
      .gradient("vec1", "vec2",
                [](const Gradients& g) {
                  return gradient::maybe_times(g.grad().mv(gradient::conjugated(g["vec2"])), g.scalar("alpha"));
                })
      .gradient("vec2", "vec1", [](const Gradients& g) {
        return gradient::maybe_times(g.grad().t().mv(gradient::conjugated(g["vec1"])), g.scalar("alpha"));
      });
  aten.def("matmul(Tensor self, Tensor other) -> Tensor")
      .python_alias("operator.matmul")
      .tags(Tag::autocast_lower)
      .composite(matmul_body);
  aten.def("matmul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, const Tensor& other, const Tensor& out) {
        return written("matmul", matmul(self, other), out, self.dim() == 1 && other.dim() == 2);
      });
  aten.def("linalg_matmul(Tensor self, Tensor other) -> Tensor")
      .composite([](const Tensor& a, const Tensor& b) { return matmul(a, b); })
      .out("linalg_matmul.out");
  aten.def("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor")
      .tags(Tag::autocast_lower)
      .python("torch.nn.functional.linear", "torch._C._nn.linear")
      .composite(linear_body);
  aten.def("linear.out(Tensor input, Tensor weight, Tensor? bias=None, *, Tensor(a!) out) -> Tensor(a!)")
      .python("torch.nn.functional.linear")
      .composite([](const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& out) {
        return written("linear", linear(input, weight, bias), out, input.dim() == 1);
      });
}

}  // namespace calque
