// Distinct values and counts: the unique family, bincount, one_hot.
#include "kernel/cpu/index/unique.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/asserts.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/views.h"

#include "kernel/cpu/elementwise/fill.h"
#include "kernel/cpu/index/scatter.h"
#include "kernel/cpu/index/search.h"
#include "op/rule/indexing.h"
#include "op/stanza.h"

namespace calque {
namespace {

using Three = std::tuple<Tensor, Tensor, Tensor>;

Tensor none_asked() { return make_tensor({0}, DType::int64); }
Tensor fake_of(SymIntList sizes, DType d, Device device) { return make_tensor(rule::contiguous(sizes, d, device), true); }

Three answer(const kernel::Unique& u, bool inverse, bool counts) {
  return {u.values, inverse ? u.inverse : none_asked(), counts ? u.counts : none_asked()};
}

Three elements_fake(const char* op, const Tensor& self, bool inverse, bool counts) {
  const SymInt n = rule::unbacked_size(op, TensorOwner::Unknown::unique, {&self});
  return {fake_of({n}, self.dtype(), self.device()),
          inverse ? fake_of(self.sym_sizes(), DType::int64, self.device()) : fake_of({0}, DType::int64, self.device()),
          counts ? fake_of({n}, DType::int64, self.device()) : fake_of({0}, DType::int64, self.device())};
}

void check_slices(const char* op, const Tensor& self, int64_t dim) {
  if (self.dim() == 0) throw UserError(std::string(op) + ": expected a tensor with at least one dimension, found a 0-d one");
  if (guard_or(self.sym_sizes()[static_cast<size_t>(dim)] == 0, false)) {
    for (size_t d = 0; d < self.sym_sizes().size(); ++d)
      if (static_cast<int64_t>(d) != dim && guard_or(self.sym_sizes()[d] == 0, false))
        throw UserError(std::string(op) + ": Number of zero sized dimensions is more than one, so unique cannot be applied");
  } else if (guard_or(self.sym_numel() == 0, false)) {
    throw UserError(std::string(op) +
                    ": There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  }
}
Three slices_fake(const char* op, const Tensor& self, int64_t dim, bool inverse, bool counts) {
  dim = wrap_dim(dim, self.dim(), op);
  check_slices(op, self, dim);
  const SymInt n = rule::unbacked_size(op, TensorOwner::Unknown::unique, {&self});
  SymInts moved{n};
  for (size_t d = 0; d < self.sym_sizes().size(); ++d)
    if (static_cast<int64_t>(d) != dim) moved.push_back(self.sym_sizes()[d]);
  const SymInts dense = contiguous_strides(moved);
  SymInts sizes(moved.begin() + 1, moved.end());
  SymInts strides(dense.begin() + 1, dense.end());
  sizes.insert(sizes.begin() + dim, moved[0]);
  strides.insert(strides.begin() + dim, dense[0]);
  return {make_tensor(Meta{sizes, strides, self.dtype(), self.device()}, true),
          fake_of({inverse ? self.sym_sizes()[static_cast<size_t>(dim)] : SymInt(0)}, DType::int64, self.device()),
          fake_of({counts ? n : SymInt(0)}, DType::int64, self.device())};
}
Three slices(const char* op, const Tensor& self, int64_t dim, bool sorted, bool inverse, bool counts) {
  dim = wrap_dim(dim, self.dim(), op);
  check_slices(op, self, dim);
  return answer(kernel::unique_slices(self, dim, sorted), inverse, counts);
}

// The slices of a vector are its elements.
bool by_slices(const Tensor& self, std::optional<int64_t> dim) { return dim && !(*dim == 0 && self.dim() == 1); }
Three consecutive_fake(const Tensor& self, bool inverse, bool counts, std::optional<int64_t> dim) {
  return by_slices(self, dim) ? slices_fake("unique_consecutive", self, *dim, inverse, counts)
                              : elements_fake("unique_consecutive", self, inverse, counts);
}
Three consecutive(const Tensor& self, bool inverse, bool counts, std::optional<int64_t> dim) {
  if (by_slices(self, dim)) return slices("unique_consecutive", self, *dim, false, true, true);
  return answer(kernel::unique_elements(self, false), inverse, counts);
}

// ---- bincount ---------------------------------------------------------------------------------------------------------
void check_bincount(const Tensor& self, const Tensor& weights, SymInt minlength) {
  if (!is_integral(self.dtype(), false))
    throw UserError(ErrorKind::unsupported_operator,
                    "bincount: not implemented for '" + std::string(name(self.dtype())) + "'");
  if (self.dim() != 1)
    throw UserError("bincount: only supports 1-d non-negative integral inputs, found sizes " + str(self.sym_sizes()));
  if (!check(minlength >= 0)) throw UserError("bincount: minlength should be >= 0, found " + minlength.str());
  if (weights.defined() && (weights.dim() != 1 || !check(weights.sym_sizes()[0] == self.sym_sizes()[0])))
    throw UserError("bincount: weights should be 1-d and have the same length as input, found sizes " +
                    str(weights.sym_sizes()) + " and " + str(self.sym_sizes()));
}
DType bincount_type(const Tensor& weights) {
  return !weights.defined() ? DType::int64 : weights.dtype() == DType::float32 ? DType::float32 : DType::float64;
}
Tensor bincount_fake(const Tensor& self, const Tensor& weights, SymInt minlength) {
  check_bincount(self, weights, minlength);
  const SymInt n = rule::fresh_size("bincount", {&self, &weights});
  (void)check(n >= minlength);
  return fake_of({n}, bincount_type(weights), self.device());
}
Tensor bincount_kernel(const Tensor& self, const Tensor& weights, SymInt minlength) {
  check_bincount(self, weights, minlength);
  if (self.numel() == 0) {
    Tensor out = make_tensor({minlength.as_int()}, DType::int64);
    kernel::fill(out, 0);
    return out;
  }
  const kernel::IntegerRange range = kernel::integer_range(self);
  if (range.lowest < 0)
    throw UserError("bincount: only supports 1-d non-negative integral inputs, found " + std::to_string(range.lowest));
  if (range.highest == INT64_MAX)
    throw UserError("bincount: a count for each value up to " + std::to_string(INT64_MAX) + " is more than there is");
  Tensor out = make_tensor({std::max(minlength.as_int(), range.highest + 1)}, bincount_type(weights));
  kernel::bincount(self, weights, out);
  return out;
}

// ---- one_hot ----------------------------------------------------------------------------------------------------------
Tensor one_hot_body(const Tensor& self, int64_t num_classes) {
  if (self.dtype() != DType::int64)
    throw UserError("one_hot: is only applicable to index tensor of type int64, found " + std::string(name(self.dtype())));
  if (self.is_fake() || modes_active()) {  // in terms of operators, so that a trace sees no values
    if (num_classes == -1)
      throw UserError(ErrorKind::data_dependent,
                      "one_hot: num_classes=-1 takes the number of classes from the values, which are not known while "
                      "tracing; pass num_classes");
    _assert_async(all(ge(self, 0)), "one_hot: Class values must be non-negative.");
    _assert_async(all(lt(self, num_classes)), "one_hot: Class values must be smaller than num_classes.");
    const Tensor column = unsqueeze(self, -1);
    return to(eq(column, arange(num_classes, DType::int64, Layout::strided, self.device())), DType::int64);
  }
  SymInts sizes(self.sym_sizes().begin(), self.sym_sizes().end());
  if (self.numel() == 0) {
    if (num_classes <= 0)
      throw UserError("one_hot: Can not infer total number of classes from empty tensor; found num_classes " +
                      std::to_string(num_classes));
  } else {
    const kernel::IntegerRange range = kernel::integer_range(self);
    if (range.lowest < 0)
      throw UserError("one_hot: Class values must be non-negative, found " + std::to_string(range.lowest));
    if (num_classes == -1) num_classes = (SymInt(range.highest) + 1).as_int();
    if (num_classes <= range.highest)
      throw UserError("one_hot: Class values must be smaller than num_classes, found " + std::to_string(range.highest) +
                      " with num_classes " + std::to_string(num_classes));
  }
  sizes.push_back(num_classes);
  Tensor out = make_tensor(rule::contiguous(sizes, DType::int64, self.device()));
  kernel::fill(out, 0);
  kernel::scatter("one_hot", out, out.dim() - 1, unsqueeze(self, -1), Scalar(1), kernel::Put::assign);
  return out;
}

}  // namespace

void register_unique(Library& aten);
void register_unique(Library& aten) {
  aten.def(
          "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, "
          "Tensor, Tensor)")
      .python("torch.unique_consecutive", "torch.functional.unique_consecutive")
      .own(consecutive_fake, consecutive)
      .tags(Tag::data_dependent, Tag::allocates_own);
  aten.def(
          "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, "
          "Tensor)")
      .own([](const Tensor& self, bool, bool inverse,
              bool counts) { return elements_fake("_unique2", self, inverse, counts); },
           [](const Tensor& self, bool, bool inverse, bool counts) {
             return answer(kernel::unique_elements(self, true), inverse, counts);
           })
      .tags(Tag::data_dependent, Tag::allocates_own);
  aten.def("_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)")
      .own(
          [](const Tensor& self, bool, bool inverse) {
            auto [values, where, counts] = elements_fake("_unique", self, inverse, false);
            return std::make_tuple(values, where);
          },
          [](const Tensor& self, bool, bool inverse) {
            auto [values, where, counts] = answer(kernel::unique_elements(self, true), inverse, false);
            return std::make_tuple(values, where);
          })
      .tags(Tag::data_dependent, Tag::allocates_own);
  aten.def(
          "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
          "(Tensor, Tensor, Tensor)")
      .own([](const Tensor& self, int64_t dim, bool, bool inverse,
              bool counts) { return slices_fake("unique_dim", self, dim, inverse, counts); },
           [](const Tensor& self, int64_t dim, bool, bool, bool) {
             return slices("unique_dim", self, dim, true, true, true);
           })
      .tags(Tag::data_dependent, Tag::allocates_own);
  aten.def(
          "unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, "
          "Tensor, Tensor)")
      .own([](const Tensor& self, int64_t dim, bool inverse,
              bool counts) { return slices_fake("unique_dim_consecutive", self, dim, inverse, counts); },
           [](const Tensor& self, int64_t dim, bool, bool) {
             return slices("unique_dim_consecutive", self, dim, false, true, true);
           })
      .tags(Tag::data_dependent, Tag::allocates_own);
  aten.def("bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor")
      .own(bincount_fake, bincount_kernel)
      .out("bincount.out")
      .tags(Tag::dense_out, Tag::data_dependent, Tag::allocates_own)
      .no_gradient();
  aten.def("one_hot(Tensor self, int num_classes=-1) -> Tensor")
      .python_alias("torch.nn.functional.one_hot", "torch._C._nn.one_hot")
      .python("torch.nn.functional.one_hot")
      .composite(one_hot_body);
}

}  // namespace calque
