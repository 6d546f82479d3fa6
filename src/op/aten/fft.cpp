// Fourier transforms: the three that compute (_fft_r2c, _fft_c2r, _fft_c2c) and the fft_* functions made of them.
#include <algorithm>
#include <cmath>

#include "calque/op/aten/copying.h"
#include "calque/op/aten/fft.h"
#include "calque/op/aten/padding.h"
#include "calque/op/aten/views.h"
#include "kernel/cpu/transform/fft.h"
#include "op/rule/factory.h"
#include "op/rule/geometry.h"
#include "op/stanza.h"

namespace calque {
namespace {

using DimNumbers = SmallVector<int64_t, 8>;
using OptSize = std::optional<SymInt>;
using OptSizes = std::optional<SymIntList>;
using OptDims = std::optional<IntList>;
using OptNorm = std::optional<std::string_view>;

DimNumbers wrapped(const char* op, IntList dims, const Tensor& self) {
  DimNumbers out;
  if (self.dim() == 0 && !dims.empty())
    throw UserError(std::string(op) + ": Dimension specified as " + std::to_string(dims[0]) +
                    " but tensor has no dimensions");
  for (const int64_t d : dims) out.push_back(wrap_dim(d, self.dim(), op));
  rule::dim_set(op, dims, self.dim());
  return out;
}
bool larger_stride(const Tensor& t, int64_t a, int64_t b) {
  return guard_or(t.sym_strides()[static_cast<size_t>(a)] > t.sym_strides()[static_cast<size_t>(b)], false);
}

// Transformed dimensions, those of larger strides first; the last one stays last if `keep_last`.
DimNumbers by_stride(const Tensor& self, DimNumbers dims, bool keep_last) {
  std::stable_sort(dims.begin(), dims.end() - (keep_last ? 1 : 0),
                   [&](int64_t a, int64_t b) { return larger_stride(self, a, b); });
  return dims;
}
// Results are dense: batch dimensions outermost, in the order of the input's strides, then the transformed ones.
SymInts result_strides(const Tensor& self, const DimNumbers& dims, const SymInts& sizes) {
  DimNumbers order;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) order.push_back(d);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return larger_stride(self, a, b); });
  for (const int64_t d : dims) order.push_back(d);
  SymInts strides(sizes.size());
  SymInt running = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[static_cast<size_t>(order[i])] = running;
    running *= sizes[static_cast<size_t>(order[i])];
  }
  return strides;
}

enum Normalization : int64_t { none = 0, by_root = 1, by_count = 2 };
double scale_of(int64_t normalization, double count) {
  return normalization == none ? 1.0 : normalization == by_root ? 1.0 / std::sqrt(count) : 1.0 / count;
}
double count_of(const Tensor& t, const DimNumbers& dims) {
  double n = 1;
  for (const int64_t d : dims) n *= static_cast<double>(t.size(d));
  return n;
}

Meta r2c_rule(const Tensor& self, IntList dim, int64_t, bool onesided) {
  if (self.dtype() != DType::float32 && self.dtype() != DType::float64)
    throw UserError(ErrorKind::unsupported_operator,
                    "_fft_r2c: Only supports float32 and float64, but found: " + std::string(name(self.dtype())));
  if (dim.empty()) throw UserError("_fft_r2c: dim must name at least one dimension");
  const DimNumbers dims = wrapped("_fft_r2c", dim, self);
  Meta m = self.meta();
  m.dtype = self.dtype() == DType::float64 ? DType::complex128 : DType::complex64;
  SymInt& last = m.sizes[static_cast<size_t>(dims.back())];
  if (onesided) last = floor_div(last, 2) + 1;
  m.strides = result_strides(self, by_stride(self, dims, true), m.sizes);
  return m;
}
void r2c_kernel(const Tensor& self, IntList dim, int64_t normalization, bool, const Tensor& out) {
  const DimNumbers dims = wrapped("_fft_r2c", dim, self);
  kernel::fft_real(self, dims, scale_of(normalization, count_of(self, dims)), out);
}

void check_complex(const char* op, const Tensor& self) {
  if (!is_complex(self.dtype()))
    throw UserError(std::string(op) + ": expected a complex tensor, found dtype " + std::string(name(self.dtype())));
}
Meta c2c_meta(const Tensor& self, const DimNumbers& dims) {
  Meta m = self.meta();
  m.strides = dims.empty() ? rule::preserved_strides(self) : result_strides(self, by_stride(self, dims, false), m.sizes);
  return m;
}
Meta c2c_rule(const Tensor& self, SymIntList dim, int64_t, bool) {
  check_complex("_fft_c2c", self);
  DimNumbers dims;
  for (const SymInt d : dim) dims.push_back(d.guard_int());
  return c2c_meta(self, wrapped("_fft_c2c", dims, self));
}
void c2c_kernel(const Tensor& self, SymIntList dim, int64_t normalization, bool forward, const Tensor& out) {
  DimNumbers dims;
  for (const SymInt d : dim) dims.push_back(wrap_dim(d.as_int(), self.dim(), "_fft_c2c"));
  kernel::fft_complex(self, dims, forward, scale_of(normalization, count_of(self, dims)), out);
}

// All dimensions but the last are transformed first, into a tensor of their own.
Meta c2r_rule(const Tensor& self, IntList dim, int64_t, SymInt last_dim_size) {
  check_complex("_fft_c2r", self);
  if (dim.empty()) throw UserError("_fft_c2r: dim must name at least one dimension");
  const DimNumbers dims = wrapped("_fft_c2r", dim, self);
  if (!check(self.sym_size(dims.back()) >= floor_div(last_dim_size, 2) + 1))
    throw UserError("_fft_c2r: last_dim_size " + last_dim_size.str() + " needs at least " +
                    (floor_div(last_dim_size, 2) + 1).str() + " values, found " + self.sym_size(dims.back()).str());
  const Tensor first =
      dims.size() > 1 ? Tensor(make_tensor(c2c_meta(self, DimNumbers(dims.begin(), dims.end() - 1)), true)) : self;
  Meta m = self.meta();
  m.dtype = self.dtype() == DType::complex128 ? DType::float64 : DType::float32;
  m.sizes[static_cast<size_t>(dims.back())] = last_dim_size;
  DimNumbers last;
  last.push_back(dims.back());
  m.strides = result_strides(first, last, m.sizes);
  return m;
}
void c2r_kernel(const Tensor& self, IntList dim, int64_t normalization, SymInt last_dim_size, const Tensor& out) {
  const DimNumbers dims = wrapped("_fft_c2r", dim, self);
  Tensor from = self;
  if (dims.size() > 1) {
    const DimNumbers first(dims.begin(), dims.end() - 1);
    from = make_tensor(c2c_meta(self, first));
    kernel::fft_complex(self, first, false, scale_of(normalization, count_of(self, first)), from);
  }
  kernel::fft_to_real(from, dims.back(), scale_of(normalization, static_cast<double>(last_dim_size.as_int())), out);
}

// The out= forms take any dtype: they resize and copy.
Tensor written(const Tensor& result, const Tensor& out) {
  const SymIntList a = result.sym_sizes(), b = out.sym_sizes();
  if (!std::equal(a.begin(), a.end(), b.begin(), b.end(),
                  [](SymInt x, SymInt y) { return identical(x, y) || guard(x == y); }))
    resize_(out, a);
  return copy_(out, result, false);
}

// ---- fft_* --------------------------------------------------------------------------------------------------------
int64_t norm_of(const char* op, OptNorm norm, bool forward) {
  if (!norm || *norm == "backward") return forward ? none : by_count;
  if (*norm == "forward") return forward ? by_count : none;
  if (*norm == "ortho") return by_root;
  throw UserError(std::string(op) + ": Invalid normalization mode: \"" + std::string(*norm) +
                  "\", expected backward, forward or ortho");
}
Tensor promoted(const char* op, const Tensor& x, bool to_complex) {
  DType d = float_type(x.dtype());
  if (is_reduced_float(d) || is_float8(d))
    throw UserError(ErrorKind::unsupported_operator, std::string(op) + ": Unsupported dtype " + std::string(name(d)));
  if (to_complex && !is_complex(d)) d = d == DType::float64 ? DType::complex128 : DType::complex64;
  return x.to(d);
}
// Cut or padded with zeros to the sizes asked for.
Tensor resized(const char* op, Tensor x, const DimNumbers& dims, const SymInts& sizes) {
  SymInts pad(static_cast<size_t>(2 * x.dim()), 0);
  bool must_pad = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!check(sizes[i] >= 1))
      throw UserError(std::string(op) + ": Invalid number of data points (" + sizes[i].str() + ") specified");
    const SymInt now = x.sym_size(dims[i]);
    if (guard(now < sizes[i])) {
      must_pad = true;
      pad[pad.size() - 2 * static_cast<size_t>(dims[i]) - 1] = sizes[i] - now;
    } else if (guard(now > sizes[i])) {
      x = slice(x, dims[i], 0, sizes[i]);
    }
  }
  return must_pad ? constant_pad_nd(x, pad, 0) : x;
}
struct Request {
  DimNumbers dims;
  SymInts sizes;
};
// The dimensions and sizes of an n-dimensional transform; `half` where the last size is the real result's.
Request request(const char* op, const Tensor& x, OptSizes s, OptDims dim, bool half, bool must_transform) {
  Request r;
  if (dim) {
    r.dims = wrapped(op, *dim, x);
  } else if (s) {
    if (static_cast<int64_t>(s->size()) > x.dim())
      throw UserError(std::string(op) + ": Got shape with " + std::to_string(s->size()) +
                      " values but input tensor only has " + std::to_string(x.dim()) + " dimensions");
    for (int64_t d = x.dim() - static_cast<int64_t>(s->size()); d < x.dim(); ++d) r.dims.push_back(d);
  } else {
    for (int64_t d = 0; d < x.dim(); ++d) r.dims.push_back(d);
  }
  if (s && s->size() != r.dims.size())
    throw UserError(std::string(op) + ": When given, dim and shape arguments must have the same length");
  if (r.dims.empty() && must_transform) throw UserError(std::string(op) + ": must transform at least one axis");
  for (size_t i = 0; i < r.dims.size(); ++i) {
    const bool last = i + 1 == r.dims.size();
    const SymInt own = x.sym_size(r.dims[i]);
    r.sizes.push_back(s && !identical((*s)[i], -1) ? (*s)[i] : half && last ? 2 * (own - 1) : own);
  }
  return r;
}
Tensor forward_real(const char* op, const Tensor& self, OptSizes s, OptDims dim, OptNorm norm) {
  if (is_complex(self.dtype()))
    throw UserError(std::string(op) + ": expects a real input tensor, but got " + std::string(name(self.dtype())));
  const Tensor x = promoted(op, self, false);
  const Request r = request(op, x, s, dim, false, true);
  return _fft_r2c(resized(op, x, r.dims, r.sizes), r.dims, norm_of(op, norm, true), true);
}
Tensor backward_real(const char* op, const Tensor& self, OptSizes s, OptDims dim, OptNorm norm) {
  const Tensor x = promoted(op, self, true);
  Request r = request(op, x, s, dim, true, true);
  const SymInt last = r.sizes.back();
  if (!check(last >= 1)) throw UserError(std::string(op) + ": Invalid number of data points (" + last.str() + ") specified");
  r.sizes.back() = floor_div(last, 2) + 1;
  return _fft_c2r(resized(op, x, r.dims, r.sizes), r.dims, norm_of(op, norm, false), last);
}
Tensor complex_transform(const char* op, const Tensor& self, OptSizes s, OptDims dim, OptNorm norm, bool forward) {
  const Tensor x = promoted(op, self, false);
  const Request r = request(op, x, s, dim, false, false);
  const Tensor fitted = resized(op, x, r.dims, r.sizes);
  if (forward && !r.dims.empty() && !is_complex(x.dtype())) return _fft_r2c(fitted, r.dims, norm_of(op, norm, true), false);
  SymInts dims;
  for (const int64_t d : r.dims) dims.push_back(d);
  return _fft_c2c(promoted(op, fitted, true), dims, norm_of(op, norm, forward), forward);
}
OptSizes one_size(const OptSize& n, SymInt& held) {
  if (!n) return std::nullopt;
  held = *n;
  return SymIntList(&held, 1);
}

template <rule::OpName op, Tensor (*transform)(const char*, const Tensor&, OptSizes, OptDims, OptNorm)>
struct Forms {
  static Tensor line(const Tensor& self, OptSize n, int64_t dim, OptNorm norm) {
    SymInt held = 0;
    return transform(op.text, self, one_size(n, held), IntList(&dim, 1), norm);
  }
  static Tensor plane(const Tensor& self, OptSizes s, IntList dim, OptNorm norm) {
    return transform(op.text, self, s, dim, norm);
  }
  static Tensor all(const Tensor& self, OptSizes s, OptDims dim, OptNorm norm) {
    return transform(op.text, self, s, dim, norm);
  }
};
Tensor forward_complex(const char* op, const Tensor& self, OptSizes s, OptDims dim, OptNorm norm) {
  return complex_transform(op, self, s, dim, norm, true);
}
Tensor backward_complex(const char* op, const Tensor& self, OptSizes s, OptDims dim, OptNorm norm) {
  return complex_transform(op, self, s, dim, norm, false);
}

// ---- gradients ----------------------------------------------------------------------------------------------------
// The half that a real transform leaves out has no gradient.
Tensor of_r2c(const Gradients& g) {
  const std::vector<int64_t> dims = g.integers("dim");
  const SymInts along(dims.begin(), dims.end());
  const int64_t normalization = g.integer("normalization");
  Tensor whole = g.grad();
  if (g.flag("onesided")) {
    const int64_t last = wrap_dim(dims.back(), g.dim("self"), "_fft_r2c");
    SymInts sizes = whole.impl().sizes;
    const SymInt half = sizes[static_cast<size_t>(last)], length = g.sizes("self")[static_cast<size_t>(last)];
    if (guard(length > half)) {
      sizes[static_cast<size_t>(last)] = length;
      whole = g.grad().new_zeros(sizes);
      whole.slice(last, 0, half).copy_(g.grad());
    }
  }
  return _fft_c2c(whole, along, normalization, false).real();
}
// What stands for two frequencies counts twice.
Tensor of_c2r(const Gradients& g) {
  const std::vector<int64_t> dims = g.integers("dim");
  const Tensor out = _fft_r2c(g.grad(), dims, g.integer("normalization"), true);
  const SymInt twice = g.grad().sym_size(dims.back()) - out.sym_size(dims.back());
  if (guard(twice > 0)) out.narrow(dims.back(), 1, twice).view_as_real().mul_(2);
  return out;
}

}  // namespace

void register_fft(Library& aten);
void register_fft(Library& aten) {
  aten.def("_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor")
      .compute(r2c_rule, r2c_kernel)
      .tags(Tag::core)
      .gradient("self", "", of_r2c);
  aten.def("_fft_r2c.out(Tensor self, int[] dim, int normalization, bool onesided, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, IntList dim, int64_t normalization, bool onesided, const Tensor& out) {
        return written(_fft_r2c(self, dim, normalization, onesided), out);
      })
      .tags(Tag::out);
  aten.def("_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor")
      .compute(c2r_rule, c2r_kernel)
      .tags(Tag::core)
      .gradient("self", "", of_c2r);
  aten.def("_fft_c2r.out(Tensor self, int[] dim, int normalization, SymInt last_dim_size, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, IntList dim, int64_t normalization, SymInt last_dim_size, const Tensor& out) {
        return written(_fft_c2r(self, dim, normalization, last_dim_size), out);
      })
      .tags(Tag::out);
  aten.def("_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor")
      .compute(c2c_rule, c2c_kernel)
      .gradient("self", "", [](const Gradients& g) {
        return _fft_c2c(g.grad(), g.sym_ints("dim"), g.integer("normalization"), !g.flag("forward"));
      });
  aten.def("_fft_c2c.out(Tensor self, SymInt[] dim, int normalization, bool forward, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, SymIntList dim, int64_t normalization, bool forward, const Tensor& out) {
        return written(_fft_c2c(self, dim, normalization, forward), out);
      })
      .tags(Tag::out);
  aten.def("fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite(Forms<"fft_rfft", forward_real>::line)
      .out("fft_rfft.out")
      .tags(Tag::cast_out, Tag::dense_out);
  aten.def("fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite(Forms<"fft_irfft", backward_real>::line)
      .out("fft_irfft.out")
      .tags(Tag::cast_out, Tag::dense_out);
  aten.def("fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite(Forms<"fft_fft", forward_complex>::line)
      .out("fft_fft.out")
      .tags(Tag::cast_out, Tag::dense_out);
  aten.def("fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite(Forms<"fft_ifft", backward_complex>::line)
      .out("fft_ifft.out")
      .tags(Tag::cast_out, Tag::dense_out);
  aten.def("fft_rfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite(Forms<"fft_rfft2", forward_real>::plane)
      .out("fft_rfft2.out")
      .tags(Tag::cast_out, Tag::dense_out);
  aten.def("fft_irfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite(Forms<"fft_irfft2", backward_real>::plane)
      .out("fft_irfft2.out")
      .tags(Tag::cast_out, Tag::dense_out);
  aten.def("fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite(Forms<"fft_fft2", forward_complex>::plane)
      .out("fft_fft2.out")
      .tags(Tag::cast_out, Tag::dense_out);
  aten.def("fft_ifft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite(Forms<"fft_ifft2", backward_complex>::plane)
      .out("fft_ifft2.out")
      .tags(Tag::cast_out, Tag::dense_out);
  aten.def("fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite(Forms<"fft_rfftn", forward_real>::all)
      .out("fft_rfftn.out")
      .tags(Tag::cast_out, Tag::dense_out);
  aten.def("fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite(Forms<"fft_irfftn", backward_real>::all)
      .out("fft_irfftn.out")
      .tags(Tag::cast_out, Tag::dense_out);
  aten.def("fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite(Forms<"fft_fftn", forward_complex>::all)
      .out("fft_fftn.out")
      .tags(Tag::cast_out, Tag::dense_out);
  aten.def("fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite(Forms<"fft_ifftn", backward_complex>::all)
      .out("fft_ifftn.out")
      .tags(Tag::cast_out, Tag::dense_out);
}

}  // namespace calque
