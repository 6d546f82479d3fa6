// The few operators of torch's prims namespace that graphs hold after run_decompositions().
#include "kernel/cpu/elementwise/copy.h"
#include "op/rule/factory.h"
#include "op/stanza.h"
#include "op/table.h"

namespace calque {

void register_prims_operators() {
  Library prims("prims");
  prims.def("copy_strided(Tensor a, SymInt[] stride) -> Tensor")
      .compute(
          [](const Tensor& a, SymIntList stride) {
            if (stride.size() != a.sym_sizes().size())
              throw UserError("copy_strided: stride has " + std::to_string(stride.size()) + " entries, the tensor has " +
                              std::to_string(a.dim()) + " dimensions");
            Meta m = a.meta();
            m.strides = SymInts(stride.begin(), stride.end());
            return m;
          },
          [](const Tensor& a, SymIntList, const Tensor& out) { kernel::copy(a, out); });
  prims.def("scalar_tensor(Scalar s, *, ScalarType? dtype=None, Device? device=None) -> Tensor")
      .compute(
          [](const Scalar& s, std::optional<DType> dtype, std::optional<Device> device) {
            return rule::factory("scalar_tensor", {}, dtype.value_or(s.dtype()), std::nullopt, device, std::nullopt);
          },
          [](const Scalar& s, std::optional<DType>, std::optional<Device>, const Tensor& out) {
            kernel::copy(wrapped_scalar(s), out);
          });
}

}  // namespace calque
