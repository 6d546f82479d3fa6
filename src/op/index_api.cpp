#include "calque/op/index.h"

#include <limits>

#include "calque/op/aten/copying.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/factories.h"
#include "calque/op/library.h"
#include "calque/sym/expr.h"

namespace calque {
namespace {

bool is_mask(const Tensor& t) { return t.dtype() == DType::bool_ || t.dtype() == DType::uint8; }

// How many dimensions of the tensor an entry takes.
int64_t taken_by(const Index& index) {
  if (const auto* t = std::get_if<Tensor>(&index.entry())) {
    if (!t->defined()) throw UserError("index: an undefined tensor cannot be an index; use none for a new dimension");
    return is_mask(*t) ? t->dim() : 1;
  }
  return std::holds_alternative<SymInt>(index.entry()) || std::holds_alternative<Slice>(index.entry()) ? 1 : 0;
}

// `place`: the dimension in the tensor that the user indexes, for messages.
Tensor apply_select(const Tensor& self, int64_t dim, SymInt index, int64_t place) {
  if (self.dim() == 0) throw UserError("index: invalid index of a 0-dim tensor; use item() to get its value");
  const SymInt size = self.sym_size(dim);
  if (guard_or(index >= size, false) || guard_or(index < -size, false))
    throw UserError("index: index " + index.str() + " is out of bounds for dimension " + std::to_string(place) +
                    " with size " + size.str());
  return self.select(dim, index);
}

Tensor apply_slice(const Tensor& self, int64_t dim, const Slice& slice, bool keep_full) {
  if (self.dim() == 0) throw UserError("index: slice() cannot be applied to a 0-dim tensor");
  const SymInt start = slice.start.value_or(0);
  const SymInt stop = slice.stop.value_or(std::numeric_limits<int64_t>::max());
  const SymInt step = slice.step.value_or(1);
  if (!check(step > 0)) throw UserError("index: slice step must be greater than zero, found " + step.str());
  // Of a size with a symbol it is not asked whether the slice is all of it: that would be a guard. Where the size comes
  // out of tensor data, a slice without bounds is left out all the same, as in PyTorch.
  const SymInt size = self.sym_size(dim);
  const bool all = size.is_symbolic() ? !slice.stop && size.expr()->has_unbacked()
                                      : !stop.is_symbolic() && size.as_int() <= stop.as_int();
  const bool is_full = all && identical(start, 0) && identical(step, 1);
  return is_full && !keep_full ? self : self.slice(dim, start, stop, step);
}

// A boolean is an index into a new dimension of size 1: its element, or none of it.
Tensor boolean_index(const Tensor& self, bool value) {
  const Tensor t = empty({value ? 1 : 0}, DType::int64, std::nullopt, self.device());
  if (value) t.fill_(0);
  return t;
}

struct Applied {
  Tensor self;                  // after the views
  std::vector<Tensor> indices;  // undefined where a dimension is taken whole
};

Applied apply(const Tensor& self, ListRef<Index> indices) {
  int64_t taken = 0;
  for (const Index& i : indices) taken += taken_by(i);
  if (taken > self.dim())
    throw UserError("index: too many indices for tensor of dimension " + std::to_string(self.dim()) + ": " +
                    std::to_string(taken) + " dimensions are indexed");
  Applied a{self, {}};
  int64_t dim = 0;    // of a.self
  int64_t place = 0;  // of self
  const auto record = [&](const Tensor& t) {
    a.indices.resize(static_cast<size_t>(dim));
    a.indices.push_back(t);
    ++dim;
  };
  for (const Index& index : indices) {
    if (const auto* i = std::get_if<SymInt>(&index.entry())) {
      a.self = apply_select(a.self, dim, *i, place);
    } else if (const auto* s = std::get_if<Slice>(&index.entry())) {
      a.self = apply_slice(a.self, dim, *s, false);
      ++dim;
    } else if (std::holds_alternative<None>(index.entry())) {
      a.self = a.self.unsqueeze(dim);
      ++dim;
    } else if (std::holds_alternative<Ellipsis>(index.entry())) {
      // A second ellipsis stands for nothing.
      dim += self.dim() - taken;
      place += self.dim() - taken;
      taken = self.dim();
    } else if (const auto* b = std::get_if<bool>(&index.entry())) {
      a.self = a.self.unsqueeze(dim);
      record(boolean_index(self, *b));
    } else {
      const Tensor& t = std::get<Tensor>(index.entry());
      if (t.dim() == 0 && is_integral(t.dtype(), true)) {
        if (is_mask(t)) {
          a.self = a.self.unsqueeze(dim);
          record(boolean_index(self, t.item().to_bool()));
        } else {
          a.self = apply_select(a.self, dim, t.item().sym_int(), place);
        }
      } else {
        record(t);
      }
    }
    place += taken_by(index);
  }
  return a;
}

// As Python would have it: one entry, or a tuple of them. An ellipsis is a structure without items, as graphs have it.
Value boxed(ListRef<Index> indices) {
  const auto box = [](const Index& index) {
    return std::visit(
        [](const auto& e) -> Value {
          using T = std::decay_t<decltype(e)>;
          const auto bound = [](const std::optional<SymInt>& b) { return b ? Value(*b) : Value(); };
          if constexpr (std::is_same_v<T, Ellipsis>)
            return StructValue{"builtins.Ellipsis", "", {}, {}};
          else if constexpr (std::is_same_v<T, Slice>)
            return SliceValue{bound(e.start), bound(e.stop), bound(e.step)};
          else
            return e;
        },
        index.entry());
  };
  if (indices.size() == 1) return box(indices[0]);
  Values items;
  for (const Index& index : indices) items.push_back(box(index));
  return tuple(std::move(items));
}

// Sizes without their leading ones: what an assignment ignores.
SymInts without_leading_ones(SymIntList sizes) {
  size_t first = 0;
  while (first < sizes.size() && guard_or(sizes[first] == 1, false)) ++first;
  return SymInts(sizes.begin() + first, sizes.end());
}

// Without a guard where that is not known.
bool surely_equal(SymIntList a, SymIntList b) {
  if (a.size() != b.size()) return false;
  for (size_t d = 0; d < a.size(); ++d)
    if (!identical(a[d], b[d]) && !guard_or(a[d] == b[d], false)) return false;
  return true;
}

void copy_to(const Tensor& target, const Tensor& value) {
  if (surely_equal(target.sym_sizes(), value.sym_sizes())) {
    target.copy_(value);
    return;
  }
  if (value.dim() == 0 && value.device().type == DeviceType::cpu) {
    target.fill_(value);
    return;
  }
  const Tensor core = value.view(without_leading_ones(value.sym_sizes()));
  target.copy_(surely_equal(core.sym_sizes(), target.sym_sizes()) ? core : core.expand(target.sym_sizes()));
}

}  // namespace

Index::Index(const char* dots) : entry_(Ellipsis{}) {
  if (std::string_view(dots) != "...")
    throw UserError("index: a text can only be \"...\", which stands for all dimensions that are not indexed; found \"" +
                    std::string(dots) + "\"");
}

Tensor index_by(const Tensor& self, ListRef<Index> indices) {
  if (modes_active())
    if (const auto traced = offer_function("operator.getitem", {self, boxed(indices)})) return traced->to_tensor();
  if (indices.size() == 1) {
    const Index::Entry& only = indices[0].entry();
    if (const auto* i = std::get_if<SymInt>(&only)) return apply_select(self, 0, *i, 0);
    if (const auto* s = std::get_if<Slice>(&only)) return apply_slice(self, 0, *s, true);
  }
  const Applied a = apply(self, indices);
  if (a.indices.empty()) return a.self.is_same(self) ? self.alias() : a.self;
  return call("aten::index.Tensor", {a.self, Argument<TensorList>::box(a.indices)}).to_tensor();
}

namespace {

void assign(const Tensor& self, ListRef<Index> indices, const Tensor& value) {
  if (indices.size() == 1)
    if (const auto* b = std::get_if<bool>(&indices[0].entry())) {
      if (*b) copy_to(self.unsqueeze(0), value);
      return;
    }
  const Applied a = apply(self, indices);
  if (a.indices.empty()) {
    copy_to(a.self, value);
    return;
  }
  const SymInts sizes = without_leading_ones(value.sym_sizes());
  const Tensor core = sizes.size() == static_cast<size_t>(value.dim()) ? value : value.view(sizes);
  call("aten::index_put_", {a.self, Argument<TensorList>::box(a.indices), core});
}

}  // namespace

void set_by(const Tensor& self, ListRef<Index> indices, const Tensor& value) {
  if (modes_active() && offer_function("operator.setitem", {self, boxed(indices), value})) return;
  assign(self, indices, value);
}

void set_by(const Tensor& self, ListRef<Index> indices, const Scalar& value) {
  if (!modes_active() || value.is_symbolic()) {
    set_by(self, indices,
           value.is_symbolic() ? scalar_tensor(value, self.dtype(), Layout::strided, self.device())
                               : wrapped_scalar(value, self.dtype(), self.device()));
    return;
  }
  if (offer_function("operator.setitem", {self, boxed(indices), value})) return;
  // A number written in the program is a literal, as torch.tensor(5) is.
  const auto number = [&] {
    const NoModesScope plain;
    const Tensor t = make_tensor(IntList{}, self.dtype());
    t.fill_(value);
    return t;
  };
  assign(self, indices, lift_fresh(number()));
}

Tensor Tensor::operator[](const Index& index) const { return calque::index_by(*this, ListRef<Index>(&index, 1)); }
Tensor Tensor::index_by(std::initializer_list<Index> indices) const {
  return calque::index_by(*this, ListRef<Index>(indices.begin(), indices.size()));
}
void Tensor::set_by(std::initializer_list<Index> indices, const Tensor& value) const {
  calque::set_by(*this, ListRef<Index>(indices.begin(), indices.size()), value);
}

const Tensor& Tensor::index_put_(std::initializer_list<Index> indices, const Tensor& value) const {
  calque::set_by(*this, ListRef<Index>(indices.begin(), indices.size()), value);
  return *this;
}
const Tensor& Tensor::index_put_(std::initializer_list<Index> indices, const Scalar& value) const {
  calque::set_by(*this, ListRef<Index>(indices.begin(), indices.size()), value);
  return *this;
}
void Tensor::operator=(const Tensor& value) && { copy_to(*this, value); }
void Tensor::operator=(const Scalar& value) && { fill_(value); }

// The options that are not said are written out, as Python's x.to(device) does.
Tensor Tensor::to(Device device, std::source_location where) const {
  return to(dtype(), layout(), device, std::nullopt, false, false, std::nullopt, where);
}

template <class T>
T Tensor::item_as() const {
  return item().to<T>();
}
#define X(name, type, category, number) template type Tensor::item_as<type>() const;
CALQUE_DTYPES(X)
#undef X
template bool Tensor::item_as<bool>() const;

}  // namespace calque
