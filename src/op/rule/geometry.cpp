#include "op/rule/geometry.h"

#include <algorithm>
#include <limits>

#include "calque/sym/shape_env.h"

namespace calque::rule {
namespace {

std::string named(const char* op) { return std::string(op) + ": "; }

bool any_symbolic(SymIntList values) {
  return std::any_of(values.begin(), values.end(), [](SymInt v) { return v.is_symbolic(); });
}

size_t wrap(int64_t d, size_t ndim, const char* op) {
  return static_cast<size_t>(wrap_dim(d, static_cast<int64_t>(ndim), op));
}

// Multiplication that wraps around: the stride of a slice whose step is so large that it has at most one element.
SymInt wrapping_product(SymInt a, SymInt b) {
  if (a.is_symbolic() || b.is_symbolic()) return a * b;
  int64_t r;
  static_cast<void>(__builtin_mul_overflow(a.as_int(), b.as_int(), &r));
  return r;
}

// Where a slice's start or end falls in [0, size]; none for an unbacked value of unknown sign.
std::optional<SymInt> slice_index(SymInt size, SymInt index) {
  if (guard_or(sym_and(index >= 0, index <= size), false)) return index;
  if (guard_or(sym_and(index < 0, index >= -size), false)) return index + size;
  if (guard_or(index < -size, false)) return SymInt(0);
  if (guard_or(index > size, false)) return size;
  if (guard_or(index >= 0, false)) return sym_min(index, size);
  if (guard_or(index < 0, false)) return sym_max(index + size, 0);
  return std::nullopt;
}

// A fresh value for what depends on data: from the environment of the values that made it unknown.
SymInt unknown(const char* op, std::initializer_list<SymInt> from) {
  for (const SymInt s : from)
    if (const auto env = env_of(s)) return env->create_unbacked();
  throw UserError(ErrorKind::data_dependent, named(op) + "the result depends on values that are not known while tracing");
}

}  // namespace

View geometry(const Tensor& self) { return {self.impl().sizes, self.impl().strides, self.impl().offset}; }

SymInts infer_size(const char* op, SymIntList shape, SymInt numel) {
  const auto invalid = [&] {
    return UserError(named(op) + "shape '" + str(shape) + "' is invalid for input of size " + numel.str());
  };
  SymInts out(shape.begin(), shape.end());
  std::optional<size_t> inferred;
  SymInt known = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (guard_or(shape[d] == -1, false)) {
      if (inferred) throw UserError(named(op) + "only one dimension can be inferred, found -1 twice in " + str(shape));
      inferred = d;
    } else {
      if (!check(shape[d] >= 0))
        throw UserError(named(op) + "invalid shape dimension " + shape[d].str() + " at index " + std::to_string(d) +
                        " of shape " + str(shape));
      known *= shape[d];
    }
  }
  if (!inferred) {
    if (!identical(numel, known) && !check(numel == known)) throw invalid();
    return out;
  }
  if (!check(known != 0)) {
    if (guard_or(numel == 0, false))
      throw UserError(named(op) + "cannot reshape tensor of 0 elements into shape " + str(shape) +
                      " because the unspecified dimension size -1 can be any value and is ambiguous");
    throw invalid();
  }
  if (!check(numel % known == 0)) throw invalid();
  out[*inferred] = floor_div(numel, known);
  return out;
}

std::optional<SymInts> view_strides(SymIntList sizes, SymIntList strides, SymIntList shape) {
  if (sizes.empty()) return SymInts(shape.size(), 1);
  const bool empty = guard_or(product(sizes) == 0, false);
  if (empty && sizes.size() == shape.size() && std::equal(sizes.begin(), sizes.end(), shape.begin(), [](SymInt a, SymInt b) {
        return identical(a, b) || guard_or(a == b, false);
      }))
    return SymInts(strides.begin(), strides.end());
  if (empty) return contiguous_strides(shape);

  // Runs of dimensions that lie one after the other in memory must each be made of whole dimensions of the new shape.
  SymInts out(shape.size(), 0);
  size_t left = shape.size();  // dimensions of the new shape not placed yet
  SymInt base = strides.back();
  SymInt run = 1;
  SymInt placed = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    run *= sizes[d];
    const bool run_ends = d == 0 || (guard_or(sizes[d - 1] != 1, true) && guard_or(strides[d - 1] != run * base, true));
    if (!run_ends) continue;
    while (left > 0 && (guard_or(placed < run, true) || guard_or(shape[left - 1] == 1, false))) {
      --left;
      out[left] = placed * base;
      placed *= shape[left];
    }
    if (guard_or(placed != run, true)) return std::nullopt;
    if (d > 0) {
      base = strides[d - 1];
      run = 1;
      placed = 1;
    }
  }
  if (left != 0) return std::nullopt;
  return out;
}

std::optional<SymInts> view_strides(const Tensor& self, const SymInts& shape) {
  if (!self.is_symbolic() && !any_symbolic(shape)) return view_strides(self.sym_sizes(), self.sym_strides(), shape);
  // With symbolic sizes the two common cases are decided without looking at products of sizes.
  const SymIntList sizes = self.sym_sizes();
  if (sizes.size() == shape.size() &&
      std::equal(sizes.begin(), sizes.end(), shape.begin(), [](SymInt a, SymInt b) { return identical(a, b); }))
    return SymInts(self.sym_strides().begin(), self.sym_strides().end());
  if (!sizes.empty() && self.is_contiguous()) return contiguous_strides(shape);
  return view_strides(sizes, self.sym_strides(), shape);
}

View view(const char* op, const Tensor& self, SymIntList shape) {
  SymInts sizes = infer_size(op, shape, self.sym_numel());
  std::optional<SymInts> strides = view_strides(self, sizes);
  if (!strides)
    throw UserError(named(op) +
                    "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
                    "two contiguous "
                    "subspaces): sizes " +
                    str(self.sym_sizes()) + ", strides " + str(self.sym_strides()) + ", requested " +
                    str(SymIntList(sizes)) + ". Use reshape(...) instead");
  return {std::move(sizes), std::move(*strides), self.sym_storage_offset()};
}

View permute(const char* op, View v, IntList dims) {
  const size_t n = v.sizes.size();
  if (dims.size() != n)
    throw UserError(named(op) +
                    "number of dimensions in the tensor input does not match the length of the desired ordering of "
                    "dimensions i.e. input.dim() = " +
                    std::to_string(n) + " is not equal to len(dims) = " + std::to_string(dims.size()));
  View out{SymInts(n), SymInts(n), v.offset};
  SmallVector<bool, 16> seen(n, false);
  for (size_t i = 0; i < n; ++i) {
    const size_t d = wrap(dims[i], n, op);
    if (seen[d]) throw UserError(named(op) + "duplicate dims are not allowed, found " + str(dims));
    seen[d] = true;
    out.sizes[i] = v.sizes[d];
    out.strides[i] = v.strides[d];
  }
  return out;
}

View transpose(const char* op, View v, int64_t dim0, int64_t dim1) {
  const size_t a = wrap(dim0, v.sizes.size(), op);
  const size_t b = wrap(dim1, v.sizes.size(), op);
  if (a != b) {
    std::swap(v.sizes[a], v.sizes[b]);
    std::swap(v.strides[a], v.strides[b]);
  }
  return v;
}

namespace {

View squeeze_where(View v, DimSet dims) {
  size_t kept = 0;
  for (size_t d = 0; d < v.sizes.size(); ++d) {
    if ((dims >> d & 1U) && guard_or(v.sizes[d] == 1, false)) continue;
    v.sizes[kept] = v.sizes[d];
    v.strides[kept] = v.strides[d];
    ++kept;
  }
  v.sizes.resize(kept);
  v.strides.resize(kept);
  return v;
}

// More elements than an int64 counts.
void check_count(const char* op, SymIntList sizes) {
  int64_t count = 1;
  for (const SymInt s : sizes) {
    if (s.is_symbolic() || s.as_int() == 0) return;
    if (__builtin_mul_overflow(count, s.as_int(), &count))
      throw UserError(named(op) + "numel: integer multiplication overflow for sizes " + str(sizes));
  }
}

}  // namespace

View squeeze(View v) { return squeeze_where(std::move(v), ~DimSet{0}); }
View squeeze(const char* op, View v, IntList dims) {
  const DimSet set = dim_set(op, dims, static_cast<int64_t>(v.sizes.size()));
  return squeeze_where(std::move(v), set);
}

View unsqueeze(const char* op, View v, int64_t dim) {
  const size_t d = wrap(dim, v.sizes.size() + 1, op);
  const SymInt stride = d < v.sizes.size() ? v.sizes[d] * v.strides[d] : SymInt(1);
  v.sizes.insert(v.sizes.begin() + d, 1);
  v.strides.insert(v.strides.begin() + d, stride);
  return v;
}

View expand(const char* op, View v, SymIntList sizes) {
  const size_t n = sizes.size();
  const size_t own = v.sizes.size();
  if (n < own)
    throw UserError(named(op) + "the number of sizes provided (" + std::to_string(n) +
                    ") must be greater or equal to the number of dimensions in the tensor (" + std::to_string(own) +
                    "); tensor sizes " + str(SymIntList(v.sizes)) + ", target sizes " + str(sizes));
  View out{SymInts(n), SymInts(n), v.offset};
  if (own == 0) {  // every element is the same one, even where there is but one
    for (size_t i = 0; i < n; ++i) {
      if (!check(sizes[i] >= 0))
        throw UserError(named(op) + "negative size " + sizes[i].str() + " at dimension " + std::to_string(i) +
                        " of target sizes " + str(sizes));
      out.sizes[i] = sizes[i];
      out.strides[i] = 0;
    }
    check_count(op, out.sizes);
    return out;
  }
  for (size_t i = n; i-- > 0;) {
    const bool exists = i + own >= n;
    SymInt size = exists ? v.sizes[i + own - n] : SymInt(1);
    SymInt stride = exists ? v.strides[i + own - n] : i + 1 < n ? out.sizes[i + 1] * out.strides[i + 1] : SymInt(1);
    SymInt target = sizes[i];
    if (guard_or(target == -1, false)) {
      if (!exists)
        throw UserError(named(op) +
                        "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension " +
                        std::to_string(i) + "; target sizes " + str(sizes));
      target = size;
    }
    if (!identical(size, target)) {
      if (guard_or(size == 1, false)) {
        if (!guard_or(target == 1, false)) stride = 0;
        if (!check(target >= 0))
          throw UserError(named(op) + "negative size " + target.str() + " at dimension " + std::to_string(i) +
                          " of target sizes " + str(sizes));
      } else if (!check(size == target)) {
        throw UserError(named(op) + "The expanded size of the tensor (" + target.str() + ") must match the existing size (" +
                        size.str() + ") at non-singleton dimension " + std::to_string(i) + ". Target sizes: " + str(sizes) +
                        ". Tensor sizes: " + str(SymIntList(v.sizes)));
      }
      size = target;
    }
    out.sizes[i] = size;
    out.strides[i] = stride;
  }
  check_count(op, out.sizes);
  return out;
}

View select(const char* op, View v, int64_t dim, SymInt index) {
  if (v.sizes.empty()) throw UserError(named(op) + "cannot be applied to a 0-dim tensor");
  const size_t d = wrap(dim, v.sizes.size(), op);
  const SymInt size = v.sizes[d];
  if (guard_or(index >= size, false) || guard_or(index < -size, false))
    throw UserError(named(op) + "index " + index.str() + " out of range for tensor of size " + str(SymIntList(v.sizes)) +
                    " at dimension " + std::to_string(d));
  if (guard_or(index >= 0, false))
    v.offset += index * v.strides[d];
  else if (guard_or(index < 0, false))
    v.offset += (index + size) * v.strides[d];
  else
    v.offset = unknown(op, {index, size});
  v.sizes.erase(v.sizes.begin() + d);
  v.strides.erase(v.strides.begin() + d);
  return v;
}

View slice(const char* op, View v, int64_t dim, std::optional<SymInt> start, std::optional<SymInt> end, SymInt step) {
  if (v.sizes.empty()) throw UserError(named(op) + "cannot be applied to a 0-dim tensor");
  const size_t d = wrap(dim, v.sizes.size(), op);
  if (!check(step > 0)) throw UserError(named(op) + "slice step must be positive, found " + step.str());
  const SymInt size = v.sizes[d];
  const SymInt stride = v.strides[d];
  const bool to_end = !end || (!end->is_symbolic() && end->as_int() == std::numeric_limits<int64_t>::max());
  const std::optional<SymInt> first = start ? slice_index(size, *start) : SymInt(0);
  const std::optional<SymInt> last = to_end ? size : slice_index(size, *end);
  const auto count = [&](SymInt length) {
    if (identical(step, 1)) return length;
    // The same number; the first form is what PyTorch writes, the second cannot overflow.
    return step.is_symbolic() || length.is_symbolic() ? floor_div(length + step - 1, step) : floor_div(length - 1, step) + 1;
  };
  SymInt length;
  if (first && last) {
    if (guard_or(*last >= *first, false))
      length = count(*last - *first);
    else if (guard_or(*first >= *last, false))
      length = 0;
    else
      length = count(sym_max(*last - *first, 0));
  } else {
    length = unknown(op, {start.value_or(0), end.value_or(0), size});
    if (!check(length >= 0) || !check(length <= size))
      throw UserError(named(op) + "a slice cannot be longer than its dimension");
  }
  v.sizes[d] = length;
  v.strides[d] = wrapping_product(stride, step);
  if (first)
    v.offset += *first * stride;
  else
    v.offset = unknown(op, {start.value_or(0), size});
  return v;
}

View narrow(View v, size_t dim, SymInt start, SymInt length) {
  v.offset += start * v.strides[dim];
  v.sizes[dim] = length;
  return v;
}

View diagonal(const char* op, View v, int64_t offset, int64_t dim1, int64_t dim2) {
  const size_t a = wrap(dim1, v.sizes.size(), op);
  const size_t b = wrap(dim2, v.sizes.size(), op);
  if (v.sizes.empty() || a == b)
    throw UserError(named(op) + "diagonal dimensions cannot be identical " + std::to_string(dim1) + ", " +
                    std::to_string(dim2));
  const SymInt length = offset >= 0 ? sym_max(sym_min(v.sizes[a], v.sizes[b] - offset), 0)
                                    : sym_max(sym_min(v.sizes[a] + offset, v.sizes[b]), 0);
  const SymInt stride = v.strides[a] + v.strides[b];
  if (length.is_symbolic() || length.as_int() != 0) {
    if (offset >= 0)
      v.offset += v.strides[b] * offset;
    else
      v.offset -= v.strides[a] * offset;
  }
  for (const size_t d : {std::max(a, b), std::min(a, b)}) {
    v.sizes.erase(v.sizes.begin() + d);
    v.strides.erase(v.strides.begin() + d);
  }
  v.sizes.push_back(length);
  v.strides.push_back(stride);
  return v;
}

View unfold(const char* op, View v, int64_t dimension, int64_t size, int64_t step) {
  const size_t d = wrap(dimension, v.sizes.size(), op);
  const bool scalar = v.sizes.empty();
  const SymInt available = scalar ? SymInt(1) : v.sizes[d];
  if (size < 0) throw UserError(named(op) + "size is " + std::to_string(size) + " but must be >= 0");
  if (!check(available >= size))
    throw UserError(named(op) + "maximum size for tensor at dimension " + std::to_string(d) + " is " + available.str() +
                    " but size is " + std::to_string(size));
  if (step <= 0) throw UserError(named(op) + "step is " + std::to_string(step) + " but must be > 0");
  const SymInt stride = scalar ? SymInt(1) : v.strides[d];
  if (!scalar) {
    v.sizes[d] = floor_div(available - size, step) + 1;
    v.strides[d] = wrapping_product(stride, step);
  }
  v.sizes.push_back(size);
  v.strides.push_back(stride);
  return v;
}

View as_strided(const char* op, const Tensor& self, SymIntList size, SymIntList stride, std::optional<SymInt> offset) {
  if (size.size() != stride.size())
    throw UserError(named(op) + "mismatch in length of strides and shape: " + std::to_string(stride.size()) + " strides, " +
                    std::to_string(size.size()) + " sizes");
  View v{SymInts(size.begin(), size.end()), SymInts(stride.begin(), stride.end()),
         offset.value_or(self.sym_storage_offset())};
  bool symbolic = v.offset.is_symbolic();
  SymInt last = 1;
  for (size_t d = 0; d < size.size(); ++d) {
    symbolic = symbolic || size[d].is_symbolic() || stride[d].is_symbolic();
    if (!stride[d].is_symbolic() && stride[d].as_int() < 0)
      throw UserError(named(op) + "Negative strides are not supported at the moment, got strides: " + str(stride));
    if (!size[d].is_symbolic() && size[d].as_int() < 0)
      throw UserError(named(op) + "negative size at dimension " + std::to_string(d) + " of " + str(size));
  }
  if (symbolic) return v;
  if (v.offset.as_int() < 0)
    throw UserError(named(op) + "invalid storage offset " + v.offset.str() + "; it must be 0 or more");
  for (size_t d = 0; d < size.size(); ++d) {
    if (size[d].as_int() == 0) return v;
    last += (size[d] - 1) * stride[d];
  }
  // A fake tensor of symbolic sizes has a storage of unknown length.
  const auto available = static_cast<int64_t>(self.storage()->nbytes());
  if (self.is_fake() && available == 0) return v;
  const SymInt needed = (v.offset + last) * self.element_size();
  if (!check(needed <= available))
    throw UserError(named(op) + "sizes " + str(size) + ", strides " + str(stride) + ", storage offset " + v.offset.str() +
                    ", and itemsize " + std::to_string(self.element_size()) + " requiring a storage size of " +
                    needed.str() + " are out of bounds for storage of size " + std::to_string(available));
  return v;
}

DimSet dim_set(const char* op, IntList dims, int64_t ndim) {
  if (ndim > 64) throw UserError(named(op) + "only tensors with up to 64 dims are supported, found " + std::to_string(ndim));
  DimSet set = 0;
  for (const int64_t dim : dims) {
    const DimSet bit = DimSet{1} << wrap(dim, static_cast<size_t>(ndim), op);
    if (set & bit)
      throw UserError(named(op) + "dim " + std::to_string(dim) + " appears multiple times in the list of dims " + str(dims));
    set |= bit;
  }
  return set;
}

Meta contiguous_like(const Tensor& self, SymInts sizes) {
  SymInts strides = contiguous_strides(sizes);
  return {std::move(sizes), std::move(strides), self.dtype(), self.device(), false};
}

bool equal_sizes(SymIntList a, SymIntList b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](SymInt x, SymInt y) { return identical(x, y) || guard(x == y); });
}

}  // namespace calque::rule
