// Operators with a kernel of their own in ATen that PyTorch's Python side treats as composite: nearest-neighbour
// interpolation and native_channel_shuffle. They are in the default table alone.

#include "calque/op/aten/asserts.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/indexing.h"
#include "calque/op/aten/view_metadata.h"
#include "calque/op/aten/views.h"
#include "calque/sym/sym_math.h"
#include "trace/decompositions/families.h"
#include "trace/decompositions/table.h"

namespace calque {
namespace {

using MaybeDouble = std::optional<double>;

std::optional<Value> with_factors(const Operator& op, const Values& args) {
  const ContextSwitch<&ThreadContext::interpolates_by_factors, true> scope;
  const CompositeBodyScope body(&args);
  return op.run_eager(args);
}

// x.to(dtype) as an export records it: with an assertion of what x is. PyTorch asserts nothing below the form that
// interpolate calls, with a list of factors.
Tensor exported_to(const Tensor& x, DType dtype) {
  if (python_bodies() && !thread_context().interpolates_by_factors)
    _assert_tensor_metadata(x, std::nullopt, std::nullopt, x.dtype(), x.device(), Layout::strided);
  return converted(x, dtype);
}

Tensor nearest(const Tensor& self, SymIntList output_size, const std::vector<MaybeDouble>& scales, bool exact) {
  const Tensor input = exported_to(self, computation_dtype(self.dtype()));
  const size_t dims = output_size.size();
  std::vector<Tensor> indices(2);
  for (size_t d = 0; d < dims; ++d) {
    const SymInt in = input.sym_size(static_cast<int64_t>(d) - static_cast<int64_t>(dims));
    const bool given = scales[d] && *scales[d] > 0;
    const SymFloat scale = given ? sym_float(in) / (sym_float(in) * SymFloat(*scales[d])) : sym_true_div(in, output_size[d]);
    const Tensor out = arange_on(input, Scalar(output_size[d]), DType::float32);
    Tensor index = exported_to((out + (exact ? 0.5 : 0.0)) * Scalar(scale), DType::int64);
    for (size_t k = d + 1; k < dims; ++k) index = index.unsqueeze(-1);
    indices.push_back(index);
  }
  Tensor result = _unsafe_index(input, indices);
  if (result.dim() == 4 || result.dim() == 5) result = contiguous(result, input.suggest_memory_format());
  return exported_to(result, self.dtype());
}

template <bool exact>
void add_nearest(DecompositionBuilder& table, const std::string& stem) {
  table.add(stem + "1d",
            [](const Tensor& self, SymIntList size, MaybeDouble w) -> Tensor { return nearest(self, size, {w}, exact); });
  table.add(stem + "2d", [](const Tensor& self, SymIntList size, MaybeDouble h, MaybeDouble w) -> Tensor {
    return nearest(self, size, {h, w}, exact);
  });
  table.add(stem + "3d", [](const Tensor& self, SymIntList size, MaybeDouble d, MaybeDouble h, MaybeDouble w) -> Tensor {
    return nearest(self, size, {d, h, w}, exact);
  });
}

}  // namespace

void decompose_interpolation(DecompositionBuilder& table) {
  add_nearest<false>(table, "upsample_nearest");
  add_nearest<true>(table, "_upsample_nearest_exact");
  for (const char* name : {"upsample_nearest1d.vec", "upsample_nearest3d.vec", "_upsample_nearest_exact1d.vec",
                           "_upsample_nearest_exact2d.vec", "_upsample_nearest_exact3d.vec"})
    table.add_boxed(name, [&op = get_operator(aten_name(name))](const Values& args) { return with_factors(op, args); });
  table.add("native_channel_shuffle", [](const Tensor& self, SymInt groups) -> Tensor {
    const Tensor split = view(self, SymInts{self.sym_size(0), groups, floor_div(self.sym_size(1), groups), SymInt(-1)});
    return reshape(contiguous(permute(split, IntList{0, 2, 1, 3})), self.sym_sizes());
  });
}

}  // namespace calque
