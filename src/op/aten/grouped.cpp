// Products of groups of rows (or columns, or of what is summed over) with a matrix each: what mixtures of experts are made of.
#include "calque/op/aten/grouped.h"
#include "kernel/cpu/elementwise/fill.h"
#include "kernel/cpu/gemm/matmul.h"
#include "op/stanza.h"

namespace calque {
namespace {

std::string dims_text(const Tensor& t) { return std::to_string(t.dim()) + "-D"; }

void check_factor(const char* name_of, const Tensor& t) {
  const DType dtype = t.dtype();
  if (dtype != DType::float32 && dtype != DType::bfloat16 && dtype != DType::float16)
    throw UserError(std::string("_grouped_mm: expected ") + name_of + " to be float32, bfloat16 or float16, found " +
                    std::string(name(dtype)));
  if (t.dim() != 2 && t.dim() != 3)
    throw UserError(std::string("_grouped_mm: ") + name_of + " has to be 2-D or 3-D, found " + dims_text(t));
  // Rows or columns lie one after the other, each at a multiple of 16 bytes.
  const auto last = static_cast<size_t>(t.dim() - 1);
  const SymIntList strides = t.sym_strides(), sizes = t.sym_sizes();
  const auto alignment = static_cast<int64_t>(16 / item_size(dtype));
  const auto aligned = [&](const SymInt& stride) { return stride.is_symbolic() || stride.as_int() % alignment == 0; };
  const auto at_least = [&](const SymInt& stride, const SymInt& size) { return guard_or(stride >= size, true); };
  const bool columns = guard_or(strides[last - 1] == 1, false) && at_least(strides[last], sizes[last - 1]);
  const bool rows = guard_or(strides[last] == 1, false) && at_least(strides[last - 1], sizes[last]);
  if (!columns && !rows)
    throw UserError(std::string("_grouped_mm: invalid strides/sizes of ") + name_of + ": strides " + str(strides) +
                    ", sizes " + str(sizes));
  if (!aligned(columns ? strides[last] : strides[last - 1]))
    throw UserError(std::string("_grouped_mm: strides of ") + name_of + " should be a multiple of 16 bytes, found " +
                    str(strides) + " of " + std::string(name(dtype)));
}

Meta grouped_rule(const Tensor& a, const Tensor& b, const Tensor& offs, const Tensor& bias, std::optional<DType> out_dtype) {
  check_factor("self", a);
  check_factor("mat2", b);
  if (a.dtype() != b.dtype())
    throw UserError("_grouped_mm: expected self and mat2 to have the same dtype, found " + std::string(name(a.dtype())) +
                    " and " + std::string(name(b.dtype())));
  const bool flat_a = a.dim() == 2, flat_b = b.dim() == 2;
  if (offs.defined() != (flat_a || flat_b))
    throw UserError("_grouped_mm: offs have to be given where a factor is 2-D, and not where both are 3-D");
  if (bias.defined()) throw UserError(ErrorKind::unsupported_operator, "_grouped_mm: a bias is not supported");
  if (out_dtype && *out_dtype != a.dtype())
    throw UserError("_grouped_mm: out_dtype has to be that of self, found " + std::string(name(*out_dtype)));
  if (!check(a.sym_size(-1) == b.sym_size(-2)))
    throw UserError("_grouped_mm: contraction dimension of self and mat2 must match, found " + a.sym_size(-1).str() +
                    " and " + b.sym_size(-2).str());
  if (offs.defined()) {
    if (offs.dim() != 1) throw UserError("_grouped_mm: offs has to be 1-D, found " + dims_text(offs));
    if (offs.dtype() != DType::int32)
      throw UserError("_grouped_mm: offsets have to be int32, found " + std::string(name(offs.dtype())));
  }
  const SymInt count = offs.defined() ? offs.sym_size(0) : a.sym_size(0);
  if ((!flat_a && !check(a.sym_size(0) == count)) || (!flat_b && !check(b.sym_size(0) == count)))
    throw UserError("_grouped_mm: matrix batch sizes have to match: self " + str(a.sym_sizes()) + ", mat2 " +
                    str(b.sym_sizes()) + ", " + count.str() + " groups");
  const SymInt rows = a.sym_size(-2), columns = b.sym_size(-1);
  const auto alignment = static_cast<int64_t>(16 / item_size(a.dtype()));
  const SymInt row = floor_div(columns + (alignment - 1), alignment) * alignment;
  if (flat_a != flat_b) return {{rows, columns}, {row, 1}, a.dtype(), a.device(), false};
  return {{count, rows, columns}, {rows * row, row, 1}, a.dtype(), a.device(), false};
}

// Memory of a tensor from an index of a dimension on.
int64_t bytes_to(const Tensor& t, int64_t dim, int64_t index) {
  return index * t.stride(dim) * static_cast<int64_t>(item_size(t.dtype()));
}
const void* at(const void* data, const Tensor& t, int64_t dim, int64_t index) {
  return static_cast<const std::byte*>(data) + bytes_to(t, dim, index);
}
void* at(void* data, const Tensor& t, int64_t dim, int64_t index) {
  return static_cast<std::byte*>(data) + bytes_to(t, dim, index);
}

void grouped_kernel(const Tensor& a, const Tensor& b, const Tensor& offs, const Tensor&, std::optional<DType>,
                    const Tensor& out) {
  const bool flat_a = a.dim() == 2, flat_b = b.dim() == 2;
  const int64_t groups = flat_a && flat_b ? out.size(0) : flat_a ? b.size(0) : a.size(0);
  // What is cut into groups: rows of self, columns of mat2, or what is summed over.
  const int64_t whole = flat_a && flat_b ? a.size(1) : flat_a ? a.size(0) : flat_b ? b.size(1) : 0;
  if (flat_a != flat_b) kernel::fill(out, 0);  // what no group has
  int64_t from = 0;
  for (int64_t i = 0; i < groups; ++i) {
    int64_t to = from;
    if (offs.defined()) {
      to = offs.data_as<int32_t>()[i * offs.stride(0)];
      if (to < from || to > whole)
        throw UserError("_grouped_mm: offs has " + std::to_string(to) + " behind " + std::to_string(from) +
                        ", expected no less, and at most " + std::to_string(whole));
    }
    kernel::Product p;
    p.dtype = a.dtype();
    p.m = a.size(-2), p.n = b.size(-1), p.k = a.size(-1);
    p.a = a.data(), p.a_row = a.stride(-2), p.a_col = a.stride(-1);
    p.b = b.data(), p.b_row = b.stride(-2), p.b_col = b.stride(-1);
    p.c = out.mutable_data(), p.c_row = out.stride(-2), p.c_col = out.stride(-1);
    if (!flat_a) p.a = at(p.a, a, 0, i);
    if (!flat_b) p.b = at(p.b, b, 0, i);
    if (flat_a == flat_b) p.c = at(p.c, out, 0, i);
    if (flat_a && flat_b) {
      p.a = at(p.a, a, 1, from), p.b = at(p.b, b, 0, from), p.k = to - from;
    } else if (flat_a) {
      p.a = at(p.a, a, 0, from), p.c = at(p.c, out, 0, from), p.m = to - from;
    } else if (flat_b) {
      p.b = at(p.b, b, 1, from), p.c = at(p.c, out, 1, from), p.n = to - from;
    }
    if (p.m > 0 && p.n > 0) kernel::multiply(p);
    from = to;
  }
}

// ---- gradients ----------------------------------------------------------------------------------------------------
// Laid out as the factor was, where its columns are contiguous.
bool lies_by_columns(const Meta& m) {
  const size_t n = m.sizes.size();
  return guard_or(m.strides[n - 2] == 1, false) && guard_or(m.strides[n - 1] == m.sizes[n - 2], false);
}
Tensor of_grouped_left(const Gradients& g) {
  const Tensor right = g["mat2"], offs = g["offs"];
  if (lies_by_columns(g.meta("self"))) return _grouped_mm(right, g.grad().transpose(-2, -1), offs).transpose(-2, -1);
  return _grouped_mm(g.grad(), right.transpose(-2, -1), offs);
}
Tensor of_grouped_right(const Gradients& g) {
  const Tensor left = g["self"], offs = g["offs"];
  if (lies_by_columns(g.meta("mat2"))) return _grouped_mm(g.grad().transpose(-2, -1), left, offs).transpose(-2, -1);
  return _grouped_mm(left.transpose(-2, -1), g.grad(), offs);
}

}  // namespace

void register_grouped(Library& aten);
void register_grouped(Library& aten) {
  aten.def(
          "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> "
          "Tensor")
      .compute(grouped_rule, grouped_kernel)
      .gradient("self", "mat2 offs", of_grouped_left)
      .gradient("mat2", "self offs", of_grouped_right);
}

}  // namespace calque
