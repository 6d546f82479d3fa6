#include "trace/view_inverse.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "calque/base/error.h"
#include "calque/op/aten/view_copies.h"

namespace calque {
namespace {

std::vector<SymInt> own_sizes(const Tensor& t) { return {t.sym_sizes().begin(), t.sym_sizes().end()}; }

int64_t wrapped(const Value& dim, const Tensor& base, int64_t extra = 0) {
  return wrap_dim(dim.to_int(), base.dim() + extra, "functionalisation");
}

using Inverse = Tensor (*)(const Values& args, size_t index, const Tensor& base, const Tensor& view);

struct Entry {
  std::string_view name;  // with overload where overloads differ
  Inverse inverse;
};

Tensor same_elements(const Values&, size_t, const Tensor& base, const Tensor& view) { return view.view(own_sizes(base)); }
Tensor itself(const Values&, size_t, const Tensor&, const Tensor& view) { return view; }

Tensor from_split(const Tensor& base, const Tensor& view, int64_t dim, SymInt start, SymInt length) {
  return slice_scatter(base, view, dim, start, start + length);
}

constexpr Entry entries[] = {
    {"alias", itself},
    {"detach", itself},
    {"lift_fresh", itself},
    {"view", same_elements},
    {"_unsafe_view", same_elements},
    {"_reshape_alias", same_elements},
    {"view.dtype", [](const Values&, size_t, const Tensor& base, const Tensor& view) { return view.view(base.dtype()); }},
    {"view_as_real", [](const Values&, size_t, const Tensor&, const Tensor& view) { return view.view_as_complex(); }},
    {"view_as_complex", [](const Values&, size_t, const Tensor&, const Tensor& view) { return view.view_as_real(); }},
    {"t", [](const Values&, size_t, const Tensor&, const Tensor& view) { return view.t(); }},
    {"transpose.int", [](const Values& a, size_t, const Tensor&,
                         const Tensor& view) { return view.transpose(a[1].to_int(), a[2].to_int()); }},
    {"permute",
     [](const Values& a, size_t, const Tensor& base, const Tensor& view) {
       const Values& dims = a[1].to_items();
       std::vector<int64_t> back(dims.size());
       for (size_t i = 0; i < dims.size(); ++i) back[static_cast<size_t>(wrapped(dims[i], base))] = static_cast<int64_t>(i);
       return view.permute(back);
     }},
    {"unsqueeze",
     [](const Values& a, size_t, const Tensor& base, const Tensor& view) { return view.squeeze(wrapped(a[1], base, 1)); }},
    {"squeeze", same_elements},
    {"squeeze.dim",
     [](const Values& a, size_t, const Tensor& base, const Tensor& view) {
       return view.dim() == base.dim() ? view : view.unsqueeze(wrapped(a[1], base));
     }},
    {"squeeze.dims",
     [](const Values& a, size_t, const Tensor& base, const Tensor& view) {
       if (view.dim() == base.dim()) return view;
       std::vector<int64_t> dims;
       for (const Value& d : a[1].to_items())
         if (guard(base.sym_size(d.to_int()) == 1)) dims.push_back(wrapped(d, base));
       std::sort(dims.begin(), dims.end());
       Tensor out = view;
       for (const int64_t d : dims) out = out.unsqueeze(d);
       return out;
     }},
    {"expand",
     [](const Values&, size_t, const Tensor& base, const Tensor& view) {
       // Writing one element through several places is refused; writing the same to all of them is their mean, any of them.
       Tensor out = view;
       const int64_t extra = view.dim() - base.dim();
       for (int64_t d = 0; d < extra; ++d) out = out.select(0, 0);
       for (int64_t d = 0; d < base.dim(); ++d)
         if (guard_or(base.sym_size(d) == 1, false) && !guard_or(out.sym_size(d) == 1, false)) out = out.slice(d, 0, 1);
       return out;
     }},
    {"select.int", [](const Values& a, size_t, const Tensor& base,
                      const Tensor& view) { return select_scatter(base, view, a[1].to_int(), a[2].to_sym_int()); }},
    {"slice.Tensor",
     [](const Values& a, size_t, const Tensor& base, const Tensor& view) {
       const auto bound = [](const Value& v) {
         return v.is_none() ? std::optional<SymInt>() : std::optional<SymInt>(v.to_sym_int());
       };
       return slice_scatter(base, view, a[1].to_int(), bound(a[2]), bound(a[3]), a[4].to_sym_int());
     }},
    {"diagonal",
     [](const Values& a, size_t, const Tensor& base, const Tensor& view) {
       return diagonal_scatter(base, view, a[1].to_int(), a[2].to_int(), a[3].to_int());
     }},
    {"as_strided",
     [](const Values& a, size_t, const Tensor& base, const Tensor& view) {
       std::vector<SymInt> sizes, strides;
       for (const Value& s : a[1].to_items()) sizes.push_back(s.to_sym_int());
       for (const Value& s : a[2].to_items()) strides.push_back(s.to_sym_int());
       return as_strided_scatter(base, view, sizes, strides,
                                 a[3].is_none() ? std::optional<SymInt>() : std::optional<SymInt>(a[3].to_sym_int()));
     }},
    {"split.Tensor",
     [](const Values& a, size_t index, const Tensor& base, const Tensor& view) {
       return from_split(base, view, wrapped(a[2], base), a[1].to_sym_int() * SymInt(index), view.sym_size(a[2].to_int()));
     }},
    {"split_with_sizes",
     [](const Values& a, size_t index, const Tensor& base, const Tensor& view) {
       SymInt start = 0;
       for (size_t i = 0; i < index; ++i) start += a[1].to_items()[i].to_sym_int();
       return from_split(base, view, wrapped(a[2], base), start, a[1].to_items()[index].to_sym_int());
     }},
    {"unbind.int", [](const Values& a, size_t index, const Tensor& base,
                      const Tensor& view) { return select_scatter(base, view, a[1].to_int(), SymInt(index)); }},
};

}  // namespace

Tensor view_inverse(const Operator& op, const Values& args, size_t index, const Tensor& base, const Tensor& view) {
  static const std::unordered_map<const Operator*, Inverse> inverses = [] {
    std::unordered_map<const Operator*, Inverse> out;
    for (const Entry& e : entries) out.emplace(&get_operator(aten_name(e.name)), e.inverse);
    return out;
  }();
  if (const auto it = inverses.find(&op); it != inverses.end()) return it->second(args, index, base, view);
  throw UserError(ErrorKind::unsupported_operator, op.name() +
                                                       ": a tensor was written through this view, and there is no "
                                                       "functional form of that; write to a copy and assign it back");
}

}  // namespace calque
