// Reductions, norms and products of vectors and matrices.

#include <cmath>
#include <limits>
#include <numeric>

#include "calque/op/aten/activation.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/einsum.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/statistics.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/view_metadata.h"
#include "calque/op/aten/views.h"
#include "calque/op/aten/where.h"
#include "calque/sym/sym_math.h"
#include "trace/decompositions/families.h"
#include "trace/decompositions/table.h"

namespace calque {
namespace {

using Kind = DecompositionBuilder::Kind;

Tensor all_of(const Tensor& a, const Tensor& not_all) {
  const Tensor result = logical_not(not_all);
  return a.dtype() == DType::uint8 ? to(result, DType::uint8) : result;
}

Tensor vector_norm(const Tensor& input, const std::optional<Scalar>& p, std::optional<IntList> dim, bool keepdim,
                   std::optional<DType> dtype) {
  return linalg_vector_norm(input, p.value_or(Scalar(2)), dim, keepdim, dtype);
}

Scalar correction_of(const std::optional<Scalar>& correction) {
  if (!correction) return Scalar(1.0);
  return correction->is_floating() ? *correction : Scalar(static_cast<double>(correction->to_int()));
}

DType real_of(DType dtype) {
  return dtype == DType::complex64 ? DType::float32 : dtype == DType::complex128 ? DType::float64 : dtype;
}

bool is_unit(const Scalar& s) {
  return !s.is_symbolic() && (s.is_floating()  ? s.to_double() == 1
                              : s.is_complex() ? s.to_complex() == 1.0
                                               : s.to_int() == 1);
}
bool is_nought(const Scalar& s) {
  return !s.is_symbolic() && (s.is_floating()  ? s.to_double() == 0
                              : s.is_complex() ? s.to_complex() == 0.0
                                               : s.to_int() == 0);
}

}  // namespace

void decompose_reductions(DecompositionBuilder& table) {
  table.add("all", [](const Tensor& a) -> Tensor { return all_of(a, any_dims(logical_not(a))); });
  table.add("all.dim", [](const Tensor& a, int64_t dim, bool keepdim) -> Tensor {
    return all_of(a, any(logical_not(a), dim, keepdim));
  });
  table.add("all.dims", [](const Tensor& a, std::optional<IntList> dim, bool keepdim) -> Tensor {
    return all_of(a, any_dims(logical_not(a), dim, keepdim));
  });
  table.add("aminmax", [](const Tensor& self, std::optional<int64_t> dim, bool keepdim) -> std::tuple<Tensor, Tensor> {
    const std::vector<int64_t> dims = dim ? std::vector<int64_t>{*dim} : std::vector<int64_t>{};
    const Tensor least = amin(self, dims, keepdim);
    return {least, amax(self, dims, keepdim)};
  });
  table.add("count_nonzero", [](const Tensor& self, std::optional<int64_t> dim) -> Tensor {
    const Tensor counted = ne(self, Scalar(0));
    return dim ? sum(counted, IntList{*dim}) : sum(counted, OptionalList<int64_t>(std::nullopt));
  });
  table.add("count_nonzero.dim_IntList",
            [](const Tensor& self, IntList dim) -> Tensor { return sum(ne(self, Scalar(0)), dim); });
  table.add("sum",
            [](const Tensor& self, std::optional<DType> dtype) -> Tensor { return sum(self, IntList{}, false, dtype); });
  table.add("nansum",
            [](const Tensor& self, std::optional<IntList> dim, bool keepdim, std::optional<DType> dtype) -> Tensor {
              return sum(where(isnan(self), Scalar(0), self), dim, keepdim, dtype);
            });
  table.add_promoted("logsumexp", {0}, Kind::int_to_float, [](const Tensor& self, IntList dim, bool keepdim) -> Tensor {
    if (guard(self.sym_numel() == SymInt(0))) return log(sum(exp(self), dim, keepdim));
    Tensor most = amax(real(self), dim, true);
    const Tensor infinite = eq(abs(most), Scalar(std::numeric_limits<double>::infinity()));
    most = masked_fill(most, infinite, Scalar(0));
    const Tensor squeezed = keepdim ? most : squeeze(most, dim);
    const Tensor result = sum(exp(self - most), dim, keepdim);
    return add(log(result), squeezed);
  });
  table.add("std.correction",
            [](const Tensor& self, std::optional<IntList> dim, std::optional<Scalar> correction, bool keepdim) -> Tensor {
              const Tensor a = converted(self, computation_dtype(self.dtype()));
              return converted(sqrt(var(a, dim, correction_of(correction), keepdim)), real_of(self.dtype()));
            });
  table.add("std_mean.correction",
            [](const Tensor& self, std::optional<IntList> dim, std::optional<Scalar> correction,
               bool keepdim) -> std::tuple<Tensor, Tensor> {
              const Tensor a = converted(self, computation_dtype(self.dtype()));
              const auto [variance, mean] = var_mean(a, dim, correction_of(correction), keepdim);
              const Tensor deviation = sqrt(variance);
              return {converted(deviation, real_of(self.dtype())), converted(mean, self.dtype())};
            });
  table.add("norm.Scalar", [](const Tensor& self, const Scalar& p) -> Tensor {
    return vector_norm(self, p, std::nullopt, false, std::nullopt);
  });
  table.add("norm.ScalarOpt_dtype", [](const Tensor& self, std::optional<Scalar> p, DType dtype) -> Tensor {
    return vector_norm(self, p, std::nullopt, false, dtype);
  });
  table.add("norm.ScalarOpt_dim", [](const Tensor& self, std::optional<Scalar> p, IntList dim, bool keepdim) -> Tensor {
    return vector_norm(self, p, dim, keepdim, std::nullopt);
  });
  table.add("norm.ScalarOpt_dim_dtype",
            [](const Tensor& self, std::optional<Scalar> p, IntList dim, bool keepdim, DType dtype) -> Tensor {
              return vector_norm(self, p, dim, keepdim, dtype);
            });
  table.add("_euclidean_dist", [](const Tensor& x1, const Tensor& x2) -> Tensor {
    const Tensor norm1 = sum(pow(x1, Scalar(2)), IntList{-1}, true);
    const Tensor pad1 = ones_like(norm1, std::nullopt, std::nullopt, std::nullopt, false, MemoryFormat::contiguous);
    const Tensor norm2 = sum(pow(x2, Scalar(2)), IntList{-1}, true);
    const Tensor pad2 = ones_like(norm2, std::nullopt, std::nullopt, std::nullopt, false, MemoryFormat::contiguous);
    const Tensor left = cat(TensorList{x1 * -2, norm1, pad1}, -1);
    const Tensor right = cat(TensorList{x2, pad2, norm2}, -1);
    return sqrt(clamp_min(matmul(left, mT(right)), Scalar(0)));
  });
  table.add_promoted("dot", {0, 1}, Kind::standard,
                     [](const Tensor& self, const Tensor& other) -> Tensor { return sum(self * other); });
  table.add_promoted("vdot", {0, 1}, Kind::standard, [](const Tensor& self, const Tensor& other) -> Tensor {
    if (!is_complex(self.dtype())) return dot(self, other);
    return sum(conj_physical(self) * other);
  });
  table.add_cast("mv", [](const Tensor& self, const Tensor& vec) -> Tensor {
    require(SymBool(self.dim() == 2 && vec.dim() == 1), "mv", "expected a matrix and a vector");
    require(self.sym_size(1) == vec.sym_size(0), "mv", "the matrix has not as many columns as the vector has elements");
    return sum(self * vec, IntList{1});
  });
  table.add_promoted(
      "addr", {0, 1, 2}, Kind::standard,
      [](const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha) -> Tensor {
        require(SymBool(vec1.dim() == 1 && vec2.dim() == 1), "addr", "expected vectors");
        const Tensor expanded = expand(self, SymInts{vec1.sym_size(0), vec2.sym_size(0)});
        if (self.dtype() == DType::bool_) {
          const auto product = [&] {
            return is_nought(alpha) ? full_like(expanded, Scalar(false), std::nullopt, std::nullopt, std::nullopt, false)
                                    : outer(vec1, vec2);
          };
          return is_nought(beta) ? product() : logical_or(expanded, product());
        }
        if (is_nought(beta)) return outer(vec1, vec2) * alpha;
        const Tensor scaled = expanded * beta;
        return scaled + outer(vec1, vec2) * alpha;
      });
  table.add_cast(
      "baddbmm",
      [](const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha) -> Tensor {
        const bool whole = is_integral(self.dtype());
        const Scalar b = whole ? Scalar(beta.to_int()) : beta;
        const Scalar a = whole ? Scalar(alpha.to_int()) : alpha;
        Tensor result = bmm(batch1, batch2);
        if (!is_unit(a)) result = result * a;
        if (is_nought(b)) return result;
        return is_unit(b) ? self + result : self * b + result;
      });
}

}  // namespace calque
