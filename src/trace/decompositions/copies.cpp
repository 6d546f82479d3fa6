// Copies of views are the views: functional graphs have no writes that would tell them apart.

#include "calque/op/aten/copying.h"
#include "calque/op/aten/views.h"
#include "trace/decompositions/families.h"
#include "trace/decompositions/table.h"

namespace calque {

void decompose_copies(DecompositionBuilder& table) {
  static constexpr std::pair<const char*, const char*> views[] = {
      {"alias_copy", "alias"},
      {"diagonal_copy", "diagonal"},
      {"expand_copy", "expand"},
      {"squeeze_copy", "squeeze"},
      {"squeeze_copy.dim", "squeeze.dim"},
      {"squeeze_copy.dims", "squeeze.dims"},
      {"t_copy", "t"},
      {"transpose_copy.int", "transpose.int"},
      {"unsqueeze_copy", "unsqueeze"},
  };
  for (const auto& [copy, view] : views) {
    const Operator& op = get_operator(aten_name(view));
    table.add_boxed(copy, [&op](const Values& args) -> std::optional<Value> { return dispatch(op, args); });
  }
  table.add("unfold_copy", [](const Tensor& self, int64_t dimension, int64_t size, int64_t step) -> Tensor {
    return clone(unfold(self, dimension, size, step), MemoryFormat::contiguous);
  });
}

}  // namespace calque
