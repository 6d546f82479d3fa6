// Vector norms, distances, logsumexp and what is made of them.
#include <algorithm>
#include <cmath>

#include "calque/op/aten/cat.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/losses_backward.h"
#include "calque/op/aten/norms.h"
#include "kernel/cpu/elementwise/binary.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/loss/distance.h"
#include "kernel/cpu/reduce/reduce.h"
#include "kernel/cpu/reduce/softmax.h"
#include "op/gradient/formulas.h"
#include "op/gradient/reduction_formulas.h"
#include "op/rule/reduction.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Reduction;
using Dims = std::optional<IntList>;

// The absolute values of complex elements, which is all that a norm sees of them.
Tensor magnitudes(const Tensor& self, DType real) {
  const Tensor dense = make_tensor(self.sizes(), self.dtype());
  kernel::copy(self, dense);
  const Tensor out = make_tensor(self.sizes(), to_real(self.dtype()));
  dispatch(self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>)
      std::transform(dense.data_as<T>(), dense.data_as<T>() + dense.numel(), out.mutable_data_as<typename T::value_type>(),
                     [](T z) { return std::hypot(z.real(), z.imag()); });
  });
  if (out.dtype() == real) return out;
  const Tensor wide = make_tensor(self.sizes(), real);
  kernel::copy(out, wide);
  return wide;
}

void norm_into(const Tensor& self, DType common, double p, const Dims& dim, const Tensor& out) {
  rule::check_kinds("norm_cpu", common, rule::Kinds::floats);
  if (is_complex(self.dtype())) return norm_into(magnitudes(self, common), common, p, dim, out);
  kernel::ReduceParameters parameters;
  parameters.p = p;
  const uint64_t dims = rule::dims_or_all("linalg.vector_norm", dim, self.dim());
  // One value's norm is its magnitude, except where a dimension of a tensor without any is named.
  int64_t count = self.dim() == 0 && dim && !dim->empty() ? 0 : 1;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (dims >> d & 1U) count *= self.size(d);
  const Reduction fn = p == 0                 ? Reduction::norm_zero
                       : p == 1 || count == 1 ? Reduction::norm_one
                       : p == 2               ? Reduction::norm_two
                       : std::isinf(p)        ? (p > 0 ? Reduction::norm_max : Reduction::norm_min)
                                              : Reduction::norm_p;
  kernel::reduce(fn, common, self, dims, out, {}, parameters);
}

// Norms of order inf and below 0 have no value for nothing.
void check_identity(const Tensor& self, double p, uint64_t dims, bool dims_given) {
  if (!(p < 0 || std::isinf(p))) return;
  const std::string order = std::isinf(p) ? (p > 0 ? "inf" : "-inf") : Scalar(p).str();
  if (!dims_given) {
    if (guard_or(self.sym_numel() == 0, false))
      throw UserError("linalg.vector_norm cannot compute the " + order +
                      " norm on an empty tensor because the operation does not have an identity (input has sizes " +
                      str(self.sym_sizes()) + ")");
    return;
  }
  for (int64_t d = 0; d < self.dim(); ++d)
    if ((dims >> d & 1U) && guard_or(self.sym_size(d) == 0, false))
      throw UserError("linalg.vector_norm cannot compute the " + order + " norm on the dimension " + std::to_string(d) +
                      " because this dimension is empty and the operation does not have an identity (input has sizes " +
                      str(self.sym_sizes()) + ")");
}

Meta vector_norm_rule(const Tensor& self, const Scalar& ord, Dims dim, bool keepdim, std::optional<DType> dtype) {
  if (!is_floating(self.dtype()) && !is_complex(self.dtype()))
    throw UserError("linalg.vector_norm: Expected a floating point or complex tensor as input. Got " +
                    std::string(name(self.dtype())));
  if (ord.is_complex()) throw UserError("linalg.vector_norm: Expected a non-complex scalar as the order of norm.");
  if (dtype) {
    if (!is_floating(*dtype) && !is_complex(*dtype))
      throw UserError("linalg.vector_norm: dtype should be floating point or complex, but got " + std::string(name(*dtype)));
    if (promote_types(self.dtype(), *dtype) != *dtype)
      throw UserError("linalg.vector_norm: the dtype of the input (" + std::string(name(self.dtype())) +
                      ") should be convertible without narrowing to the specified dtype (" + std::string(name(*dtype)) +
                      ")");
  }
  const uint64_t dims = rule::dims_or_all("linalg.vector_norm", dim, self.dim());
  check_identity(self, ord.to_double(), dims, dim && !dim->empty());
  return rule::reduction(self, dims, keepdim, to_real(dtype.value_or(self.dtype())));
}
void vector_norm_kernel(const Tensor& self, const Scalar& ord, Dims dim, bool, std::optional<DType>, const Tensor& out) {
  norm_into(self, out.dtype(), ord.to_double(), dim, out);
}

Meta norm_rule(const Tensor& self, const std::optional<Scalar>& p, Dims dim, bool keepdim, std::optional<DType> dtype) {
  if (!is_floating(self.dtype()) && !is_complex(self.dtype()))
    throw UserError("norm(): input dtype should be either floating point or complex. Got " +
                    std::string(name(self.dtype())) + " instead.");
  return vector_norm_rule(self, p.value_or(Scalar(2.0)), dim, keepdim, dtype);
}
void norm_kernel(const Tensor& self, const std::optional<Scalar>& p, Dims dim, const Tensor& out) {
  norm_into(self, out.dtype(), p ? p->to_double() : 2, dim, out);
}

// ---- logsumexp ----------------------------------------------------------------------------------------------------
Meta logsumexp_rule(const Tensor& self, IntList dim, bool keepdim) {
  return rule::reduction(self, rule::dims_or_all("logsumexp", dim, self.dim()), keepdim, float_type(self.dtype()));
}
void logsumexp_kernel(const Tensor& self, IntList dim, bool, const Tensor& out) {
  kernel::logsumexp(self, rule::dims_or_all("logsumexp", dim, self.dim()), out);
}

// The out= form computes in out's dtype where that is the wider.
Tensor logsumexp_out(const Tensor& self, IntList dim, bool keepdim, const Tensor& out) {
  const DType common = float_type(self.dtype());
  const bool wider = is_floating(out.dtype()) && out.dtype() != common && promote_types(common, out.dtype()) == out.dtype();
  const Tensor result = (wider ? self.to(out.dtype()) : self).logsumexp(dim, keepdim);
  op_detail::prepare_out(get_operator("aten::logsumexp.out"), result.meta(), out);
  return out.copy_(result, false);
}

Tensor nanmean_body(const Tensor& self, Dims dim, bool keepdim, std::optional<DType> dtype) {
  if (!is_floating(self.dtype()) && !is_complex(self.dtype()))
    throw UserError("nanmean(): expected input to have floating point or complex dtype but got " +
                    std::string(name(self.dtype())));
  if (dtype && !is_floating(*dtype) && !is_complex(*dtype))
    throw UserError(
        "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. Got: " +
        std::string(name(*dtype)));
  const Tensor x = self.detach();
  const Tensor factor = x.ne(x).logical_not_().sum(dim, keepdim, std::nullopt);
  return self.nansum(dim, keepdim, dtype).div(factor);
}
Tensor nanmean_out(const Tensor& self, Dims dim, bool keepdim, std::optional<DType> dtype, const Tensor& out) {
  if (dtype && *dtype != out.dtype())
    throw UserError("nanmean: provided dtype must match dtype of result. Got " + std::string(name(out.dtype())) + " and " +
                    std::string(name(*dtype)));
  const Tensor result = nanmean_body(self, dim, keepdim, is_floating(out.dtype()) ? out.dtype() : dtype);
  op_detail::prepare_out(get_operator("aten::nanmean.out"), result.meta(), out);
  return out.copy_(result, false);
}

// ---- distances ----------------------------------------------------------------------------------------------------
Meta dist_rule(const Tensor& self, const Tensor& other, const Scalar& p) {
  if (self.dtype() == DType::bool_ || other.dtype() == DType::bool_)
    throw UserError("dist: Subtraction, the `-` operator, with a bool tensor is not supported.");
  const Meta m = rule::binary("dist", self, other);
  if (!is_floating(m.dtype) && !is_complex(m.dtype))
    throw UserError("dist only supports floating point dtypes, dist got: " + std::string(name(m.dtype)));
  if (std::isinf(p.to_double()) && p.to_double() < 0 && guard_or(product(m.sizes) == 0, false))
    check_identity(self, p.to_double(), 0, false);
  Meta out;
  out.dtype = to_real(m.dtype);
  out.device = m.device;
  return out;
}
void dist_kernel(const Tensor& self, const Tensor& other, const Scalar& p, const Tensor& out) {
  const Tensor difference = make_tensor(rule::binary("dist", self, other));
  kernel::binary(kernel::Binary::sub, difference.dtype(), self, other, difference);
  norm_into(difference, out.dtype(), p.to_double(), {}, out);
}

Meta cdist_rule(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode) {
  if (x1.dim() < 2 || x2.dim() < 2)
    throw UserError("cdist only supports at least 2D tensors, X1 got: " + std::to_string(x1.dim()) +
                    "D, X2 got: " + std::to_string(x2.dim()) + "D");
  if (!check(x1.sym_size(-1) == x2.sym_size(-1)))
    throw UserError("X1 and X2 must have the same number of columns. X1: " + x1.sym_size(-1).str() +
                    " X2: " + x2.sym_size(-1).str());
  if (!is_floating(x2.dtype()) || !is_floating(x1.dtype()))
    throw UserError("cdist only supports floating-point dtypes, X1 got: " + std::string(name(x1.dtype())) +
                    ", X2 got: " + std::string(name(x2.dtype())));
  if (p < 0) throw UserError("cdist only supports non-negative p values, found " + Scalar(p).str());
  if (mode && (*mode < 0 || *mode > 2)) throw UserError("possible modes: 0, 1, 2, but was: " + std::to_string(*mode));
  const auto batch = [](const Tensor& t) { return SymIntList(t.sym_sizes().data(), t.sym_sizes().size() - 2); };
  Meta m;
  m.sizes = broadcast_sizes(batch(x1), batch(x2), "cdist");
  m.sizes.push_back(x1.sym_size(-2));
  m.sizes.push_back(x2.sym_size(-2));
  m.strides = contiguous_strides(m.sizes);
  m.dtype = x1.dtype();
  m.device = x1.device();
  return m;
}

void check_pdist(const Tensor& self, double p) {
  if (self.dim() != 2)
    throw UserError("_pdist_forward: pdist only supports 2D tensors, got: " + std::to_string(self.dim()) + "D");
  if (!is_floating(self.dtype()))
    throw UserError("pdist only supports floating-point dtypes, found " + std::string(name(self.dtype())));
  if (p < 0) throw UserError("pdist only supports non-negative p values, found " + Scalar(p).str());
}
Meta pdist_rule(const Tensor& self, double p) {
  check_pdist(self, p);
  if (!self.is_contiguous())
    throw UserError("_pdist_forward requires contiguous input, found strides " + str(self.sym_strides()) + " of sizes " +
                    str(self.sym_sizes()));
  const SymInt n = self.sym_size(0);
  Meta m;
  m.sizes = {guard_or(n <= 1, false) ? SymInt(0) : floor_div(n * (n - 1), 2)};
  m.strides = contiguous_strides(m.sizes);
  m.dtype = self.dtype();
  m.device = self.device();
  return m;
}

// |x - y|^2 = |x|^2 - 2 xy + |y|^2, as one product of widened rows. Less exact than the differences, and what PyTorch computes.
void euclidean_kernel(const Tensor& x1, const Tensor& x2, const Tensor& out) {
  const auto squares = [](const Tensor& x) { return x.pow(Scalar(2)).sum(IntList({-1}), true, std::nullopt); };
  const Tensor left = squares(x1);
  const Tensor right = squares(x2);
  const Tensor a = cat(std::vector<Tensor>{x1.mul(Scalar(-2)), left, ones_like(left)}, -1);
  const Tensor b = cat(std::vector<Tensor>{x2, ones_like(right), right}, -1);
  out.copy_(a.matmul(b.transpose(-2, -1)).clamp_min_(Scalar(0)).sqrt_(), false);
}
// compute_mode: 0 takes the product for p = 2 and more than 25 rows, 1 for p = 2, 2 never.
void cdist_kernel(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode, const Tensor& out) {
  const int64_t chosen = mode.value_or(0);
  const bool many = x1.size(-2) > 25 || x2.size(-2) > 25;
  if (p == 2 && (chosen == 1 || (chosen == 0 && many)) && out.numel() && x1.size(-1)) return euclidean_kernel(x1, x2, out);
  if (x1.dtype() != x2.dtype() && out.numel() && x1.size(-1))
    throw UserError("cdist: expected X2 of scalar type " + std::string(name(x1.dtype())) + " but found " +
                    std::string(name(x2.dtype())));
  kernel::cdist(x1, x2, p, out);
}

Tensor pairwise_distance_body(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  const int64_t dim = std::max(x1.dim(), x2.dim()) - 1;
  return x1.sub(x2).add(Scalar(eps)).norm(Scalar(p), IntList({dim}), keepdim);
}

Tensor cosine_similarity_body(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  const DType common = result_type(x1, x2);
  if (!is_floating(common))
    throw UserError("expected common dtype to be floating point, yet common dtype is " + std::string(name(common)));
  Tensor a = is_floating(x1.dtype()) ? x1 : x1.to(common);
  Tensor b = is_floating(x2.dtype()) ? x2 : x2.to(common);
  bool same = a.dim() == b.dim();
  for (int64_t d = 0; same && d < a.dim(); ++d) same = guard_or(a.sym_size(d) == b.sym_size(d), false);
  if (!same) {
    const SymInts sizes = broadcast_sizes(x1.sym_sizes(), x2.sym_sizes(), "cosine_similarity");
    b = b.expand(sizes);
    a = a.expand(sizes);
  }
  // The vectors are divided by their norms before they are multiplied: large ones do not overflow.
  const Tensor a_norm = linalg_vector_norm(a, Scalar(2), Dims(IntList({dim})), true, std::nullopt).clone();
  const Tensor b_norm = linalg_vector_norm(b, Scalar(2), Dims(IntList({dim})), true, std::nullopt).clone();
  const DType computed = common == DType::float16 || common == DType::bfloat16 ? DType::float32 : common;
  const Tensor least = scalar_tensor(Scalar(eps), computed, std::nullopt, a.device(), std::nullopt);
  a_norm.clamp_min_(least);
  b_norm.clamp_min_(least);
  const Tensor right = b.div(b_norm);
  return a.div(a_norm).mul(right).sum(Dims(IntList({dim})), false, std::nullopt);
}

// n differences; fewer where the dimension is shorter, and self itself where it is empty.
Tensor differences(const Tensor& self, int64_t n, int64_t dim) {
  if (n == 0) return zeros_like(self).copy_(self, false);
  const SymInt size = self.sym_size(dim);
  const int64_t rounds = !size.is_symbolic() && size.as_int() < n ? size.as_int() : n;
  Tensor result = self;
  SymInt length = size;
  for (int64_t i = 0; i < rounds; ++i) {
    length = length - 1;
    const Tensor left = result.slice(dim, SymInt(0), length, 1);
    const Tensor right = result.slice(dim, SymInt(1), length + 1, 1);
    result = self.dtype() == DType::bool_ ? right.logical_xor(left) : right.sub(left);
  }
  return result;
}
void check_diff(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
  if (self.dim() < 1) throw UserError("diff expects input to be at least one-dimensional");
  if (n < 0) throw UserError("order must be non-negative but got " + std::to_string(n));
  for (const Tensor* t : {&prepend, &append})
    if (t->defined() && t->dim() != self.dim())
      throw UserError("diff expects prepend or append to be the same dimension as input, found " + std::to_string(t->dim()) +
                      " and " + std::to_string(self.dim()));
  for (const Tensor* t : {&prepend, &append}) {
    if (!t->defined()) continue;
    const int64_t along = wrap_dim(dim, self.dim(), "diff");
    for (int64_t d = 0; d < self.dim(); ++d)
      if (d != along && !check(t->sym_size(d) == self.sym_size(d)))
        throw UserError(
            "diff expects the shape of tensor to prepend or append to match that of input except along the differencing "
            "dimension; input has sizes " +
            str(self.sym_sizes()) + ", but got " + str(t->sym_sizes()));
  }
}
Tensor joined(const Tensor& self, int64_t dim, const Tensor& prepend, const Tensor& append) {
  if (!prepend.defined() && !append.defined()) return self;
  std::vector<Tensor> parts;
  if (prepend.defined()) parts.push_back(prepend);
  parts.push_back(self);
  if (append.defined()) parts.push_back(append);
  return cat(parts, dim);
}
Tensor diff_body(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
  check_diff(self, n, dim, prepend, append);
  if (n == 0) return differences(self, 0, 0);  // neither the dimension nor what would be joined matters
  return differences(joined(self, dim, prepend, append), n, wrap_dim(dim, self.dim(), "diff"));
}
Tensor diff_out(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append, const Tensor& out) {
  check_diff(self, n, dim, prepend, append);
  const Tensor from = n == 0 ? self : joined(self, dim, prepend, append);
  if (n == 0 && out.dtype() != self.dtype())
    throw UserError("diff: expected out= of scalar_type " + std::string(name(self.dtype())) + " but found " +
                    std::string(name(out.dtype())));
  if (n != 0 && guard_or(from.sym_size(wrap_dim(dim, self.dim(), "diff")) == 0, false))
    throw UserError("diff: start out of range (expected to be in range of [0, 0], but got 1): the dimension " +
                    std::to_string(dim) + " of sizes " + str(from.sym_sizes()) + " is empty");
  const Tensor result = n == 0 ? self.contiguous() : differences(from, n, wrap_dim(dim, self.dim(), "diff"));
  op_detail::prepare_out(get_operator("aten::diff.out"), result.meta(), out);
  return out.copy_(result, false);
}

// ---- gradients ------------------------------------------------------------------------------------------------------
double order_of(const Gradients& g) { return g.argument("p").is_none() ? 2 : g.scalar("p").to_double(); }

Tensor logsumexp_gradient(const Gradients& g) {
  const Tensor grad = gradient::restored(g, g.grad()), result = gradient::restored(g, g["result"]);
  return grad.mul(g["self"].sub(result).exp());
}

Tensor dist_gradient(const Gradients& g) {
  const Tensor difference = g["self"].sub(g["other"]);
  return gradient::norm_backward(g.grad(), difference, g.scalar("p").to_double(), g["result"], {}, true);
}

Tensor cdist_second(const Gradients& g) {
  const Tensor grad = g.grad().transpose(-2, -1).contiguous(), result = g["result"].transpose(-2, -1).contiguous();
  return _cdist_backward(grad, g["x2"], g["x1"], g.number("p"), result);
}
TensorVector euclidean_gradient(const Gradients& g) {
  const Tensor x1 = g["x1"], x2 = g["x2"], result = g["result"];
  const Tensor ratio = g.grad().div(result);
  ratio.masked_fill_(result.eq(Scalar(0)), Scalar(0));
  TensorVector out(2);
  if (g.needs("x1")) {
    const Tensor others = ratio.matmul(x2);
    out[0] = x1.mul(ratio.sum({-1}, true)).sub(others);
  }
  if (g.needs("x2")) {
    const Tensor others = ratio.transpose(-2, -1).matmul(x1);
    out[1] = x2.mul(ratio.sum({-2}).unsqueeze(-1)).sub(others);
  }
  return out;
}

}  // namespace

void register_norms(Library& aten);
void register_norms(Library& aten) {
  aten.def(
          "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
          "-> Tensor")
      .compute(vector_norm_rule, vector_norm_kernel)
      .out("linalg_vector_norm.out")
      .tags(Tag::reduction, Tag::strided_out)
      .gradient("self", "self result", [](const Gradients& g) {
        return gradient::norm_backward(g.grad(), g["self"], g.scalar("ord").to_double(), g["result"], g.integers("dim"),
                                       g.flag("keepdim"));
      });
  aten.def("norm.Scalar(Tensor self, Scalar p=2) -> Tensor")
      .python("torch.norm", "torch.functional.norm")
      .compute([](const Tensor& self, const Scalar& p) { return norm_rule(self, p, {}, false, {}); },
               [](const Tensor& self, const Scalar& p, const Tensor& out) { norm_kernel(self, p, {}, out); })
      .out("norm.Scalar_out")
      .tags(Tag::dense_out, Tag::reduction, Tag::strided_out)
      .gradient("self", "self result", [](const Gradients& g) {
        return gradient::norm_backward(g.grad(), g["self"], g.scalar("p").to_double(), g["result"], {}, true);
      });
  aten.def("norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor")
      .compute([](const Tensor& self, std::optional<Scalar> p, IntList dim,
                  bool keepdim) { return norm_rule(self, p, dim, keepdim, {}); },
               [](const Tensor& self, std::optional<Scalar> p, IntList dim, bool, const Tensor& out) {
                 norm_kernel(self, p, dim, out);
               })
      .out("norm.out")
      .tags(Tag::reduction, Tag::strided_out)
      .gradient("self", "self result", [](const Gradients& g) {
        return gradient::norm_backward(g.grad(), g["self"], order_of(g), g["result"], g.integers("dim"), g.flag("keepdim"));
      });
  aten.def("norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor")
      .compute([](const Tensor& self, std::optional<Scalar> p, IntList dim, bool keepdim,
                  DType dtype) { return norm_rule(self, p, dim, keepdim, dtype); },
               [](const Tensor& self, std::optional<Scalar> p, IntList dim, bool, DType, const Tensor& out) {
                 norm_kernel(self, p, dim, out);
               })
      .out("norm.dtype_out")
      .tags(Tag::reduction, Tag::strided_out)
      .gradient("self", "self result", [](const Gradients& g) {
        return gradient::norm_backward(g.grad(), g["self"].to(g.grad().dtype()), order_of(g), g["result"], g.integers("dim"),
                                       g.flag("keepdim"));
      });
  aten.def("norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor")
      .compute([](const Tensor& self, std::optional<Scalar> p, DType dtype) { return norm_rule(self, p, {}, false, dtype); },
               [](const Tensor& self, std::optional<Scalar> p, DType, const Tensor& out) { norm_kernel(self, p, {}, out); })
      .out("norm.ScalarOpt_dtype_out")
      .tags(Tag::dense_out, Tag::reduction, Tag::strided_out)
      .gradient("self", "self result", [](const Gradients& g) {
        return gradient::norm_backward(g.grad(), g["self"].to(g.grad().dtype()), order_of(g), g["result"], {}, true);
      });
  aten.def("frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor")
      .composite(
          [](const Tensor& self, IntList dim, bool keepdim) -> Tensor { return self.norm(Scalar(2.0), dim, keepdim); })
      .out("frobenius_norm.out");
  aten.def("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor")
      .compute(logsumexp_rule, logsumexp_kernel)
      .tags(Tag::reduction)
      .gradient("self", "self result", logsumexp_gradient);
  aten.def("logsumexp.out(Tensor self, int[1] dim, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)")
      .tags(Tag::left_whole)
      .composite(logsumexp_out)
      .tags(Tag::out, Tag::cast_out);
  aten.def("special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor")
      .composite([](const Tensor& self, IntList dim, bool keepdim) -> Tensor { return self.logsumexp(dim, keepdim); })
      .out("special_logsumexp.out")
      .tags(Tag::cast_out);
  aten.def("nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .composite(nanmean_body);
  aten.def(
          "nanmean.out(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> "
          "Tensor(a!)")
      .composite(nanmean_out)
      .tags(Tag::out, Tag::cast_out);

  aten.def("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor")
      .compute(dist_rule, dist_kernel)
      .out("dist.out")
      .tags(Tag::dense_out, Tag::reduction)
      .gradient("other", "self other result",
                [](const Gradients& g) {
                  const Tensor slope = dist_gradient(g);
                  return slope.defined() ? slope.neg() : slope;
                })
      .gradient("self", "self other result", dist_gradient);
  aten.def("_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor")
      .compute(cdist_rule, cdist_kernel)
      .out("_cdist_forward.out")
      .tags(Tag::dense_out, Tag::core)
      .gradient("x1", "x1 x2 result",
                [](const Gradients& g) {
                  return _cdist_backward(g.grad().contiguous(), g["x1"], g["x2"], g.number("p"), g["result"]);
                })
      .gradient("x2", "x1 x2 result", cdist_second);
  aten.def("_pdist_forward(Tensor self, float p=2.0) -> Tensor")
      .compute(pdist_rule, [](const Tensor& self, double p, const Tensor& out) { kernel::pdist(self, p, out); })
      .out("_pdist_forward.out")
      .tags(Tag::dense_out, Tag::core)
      .gradient("self", "self result",
                [](const Gradients& g) { return _pdist_backward(g.grad(), g["self"], g.number("p"), g["result"]); });
  aten.def("_euclidean_dist(Tensor x1, Tensor x2) -> Tensor")
      .compute([](const Tensor& x1, const Tensor& x2) { return cdist_rule(x1, x2, 2, {}); }, euclidean_kernel)
      .out("_euclidean_dist.out", Tag::left_whole)
      .tags(Tag::dense_out)
      .gradient("x1 x2", "x1 x2 result", euclidean_gradient);
  aten.def("cdist(Tensor x1, Tensor x2, float p=2.0, int? compute_mode=None) -> Tensor")
      .python("torch.cdist", "torch.functional.cdist")
      .tags(Tag::autocast_float32)
      .composite([](const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode) -> Tensor {
        cdist_rule(x1, x2, p, mode);
        return _cdist_forward(x1, x2, p, mode);
      });
  aten.def("pdist(Tensor self, float p=2.0) -> Tensor")
      .python_alias("torch.nn.functional.pdist", "torch.pdist")
      .composite([](const Tensor& self, double p) -> Tensor {
        check_pdist(self, p);
        return _pdist_forward(self.is_contiguous() ? self : self.contiguous(), p);
      });
  aten.def("pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool keepdim=False) -> Tensor")
      .python_alias("torch.nn.functional.pairwise_distance", "torch.pairwise_distance")
      .composite(pairwise_distance_body);
  aten.def("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor")
      .python_alias("torch.nn.functional.cosine_similarity", "torch.cosine_similarity")
      .composite(cosine_similarity_body);
  aten.def("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor")
      .tags(Tag::repeatable)
      .composite(diff_body);
  aten.def(
          "diff.out(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None, *, Tensor(a!) out) -> "
          "Tensor(a!)")
      .composite(diff_out)
      .tags(Tag::out, Tag::cast_out);
}

}  // namespace calque
