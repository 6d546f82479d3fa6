// Copies: copy_, clone, contiguous and the dtype and device conversions.
#include "kernel/cpu/copy.h"
#include "op/stanza.h"

namespace calque {
namespace {

void copy_rule(const Tensor& self, const Tensor& src, bool) {
  const SymInts sizes = broadcast_sizes(self.sym_sizes(), src.sym_sizes(), "copy_");
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes.size() != self.sym_sizes().size() || !check(sizes[d] == self.sym_sizes()[d]))
      throw UserError("copy_: a source of sizes " + str(src.sym_sizes()) + " does not broadcast to self's " + str(self.sym_sizes()));
}

}  // namespace

void register_copying(Library& aten);
void register_copying(Library& aten) {
  aten.def("copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)")
      .mutate(copy_rule, [](const Tensor& self, const Tensor& src, bool non_blocking) {
        copy_rule(self, src, non_blocking);
        if (memory_overlap(self, src) == Overlap::partial)
          throw UserError("copy_: some elements of the source and of self refer to a single memory location; clone() the source first");
        kernel::copy(src, self);
      });
}

}  // namespace calque
