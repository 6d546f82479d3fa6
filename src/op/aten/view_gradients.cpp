// Where the gradient of a part goes: into zeros of the whole's sizes. The operators that the gradients of views call.
#include "kernel/cpu/elementwise/binary.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/elementwise/fill.h"
#include "op/rule/factory.h"
#include "op/rule/geometry.h"
#include "op/stanza.h"

namespace calque {
namespace {

View whole_sizes(SymIntList sizes) { return {SymInts(sizes.begin(), sizes.end()), contiguous_strides(sizes), 0}; }

Meta gradient_of_whole(const char* op, const Tensor& grad, SymIntList sizes, const View& part) {
  for (const SymInt size : sizes)
    if (!check(size >= 0))
      throw UserError(std::string(op) + ": expected sizes of at least 0, found input_sizes " + str(sizes));
  if (!rule::equal_sizes(grad.sym_sizes(), part.sizes))
    throw UserError(std::string(op) + ": expected a gradient of sizes " + str(SymIntList(part.sizes)) + ", as the part of " +
                    str(sizes) + " has, found " + str(grad.sym_sizes()));
  return rule::contiguous_like(grad, SymInts(sizes.begin(), sizes.end()));
}
void put_part(const Tensor& grad, const View& part, const Tensor& out) {
  kernel::fill(out, 0);
  kernel::copy(grad, rule::make(out, part));
}

Meta select_back_rule(const Tensor& grad, SymIntList sizes, int64_t dim, SymInt index) {
  return gradient_of_whole("select_backward", grad, sizes, rule::select("select_backward", whole_sizes(sizes), dim, index));
}
void select_back_kernel(const Tensor& grad, SymIntList, int64_t dim, SymInt index, const Tensor& out) {
  put_part(grad, rule::select("select_backward", rule::geometry(out), dim, index), out);
}

Meta slice_back_rule(const Tensor& grad, SymIntList sizes, int64_t dim, SymInt start, SymInt end, SymInt step) {
  return gradient_of_whole("slice_backward", grad, sizes,
                           rule::slice("slice_backward", whole_sizes(sizes), dim, start, end, step));
}
void slice_back_kernel(const Tensor& grad, SymIntList, int64_t dim, SymInt start, SymInt end, SymInt step,
                       const Tensor& out) {
  put_part(grad, rule::slice("slice_backward", rule::geometry(out), dim, start, end, step), out);
}

Meta diagonal_back_rule(const Tensor& grad, SymIntList sizes, int64_t offset, int64_t dim1, int64_t dim2) {
  return gradient_of_whole("diagonal_backward", grad, sizes,
                           rule::diagonal("diagonal_backward", whole_sizes(sizes), offset, dim1, dim2));
}
void diagonal_back_kernel(const Tensor& grad, SymIntList, int64_t offset, int64_t dim1, int64_t dim2, const Tensor& out) {
  put_part(grad, rule::diagonal("diagonal_backward", rule::geometry(out), offset, dim1, dim2), out);
}

Meta unfold_back_rule(const Tensor& grad, SymIntList sizes, int64_t dim, int64_t size, int64_t step) {
  return gradient_of_whole("unfold_backward", grad, sizes,
                           rule::unfold("unfold_backward", whole_sizes(sizes), dim, size, step));
}
// Windows may overlap: the first elements of all windows are added at once, then the second ones, ... The last come first, so
// that each element gets its windows' gradients in their order.
void unfold_back_kernel(const Tensor& grad, SymIntList, int64_t dim, int64_t size, int64_t step, const Tensor& out) {
  const View windows = rule::unfold("unfold_backward", rule::geometry(out), dim, size, step);
  if (step >= size) return put_part(grad, windows, out);
  kernel::fill(out, 0);
  if (grad.numel() == 0) return;
  for (int64_t i = size; i-- > 0;) {
    const Tensor from = rule::make(grad, rule::select("unfold_backward", rule::geometry(grad), -1, i));
    const Tensor to = rule::make(out, rule::select("unfold_backward", windows, -1, i));
    kernel::binary(kernel::Binary::add, out.dtype(), to, from, to);
  }
}

}  // namespace

void register_view_gradients(Library& aten);
void register_view_gradients(Library& aten) {
  aten.def("select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor")
      .compute(select_back_rule, select_back_kernel)
      .out("select_backward.out")
      .gradient("grad_output", "", [](const Gradients& g) { return g.grad().select(g.integer("dim"), g.sym_int("index")); });
  aten.def(
          "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) -> "
          "Tensor")
      .compute(slice_back_rule, slice_back_kernel)
      .out("slice_backward.out")
      .gradient("grad_output", "", [](const Gradients& g) {
        return g.grad().slice(g.integer("dim"), g.sym_int("start"), g.sym_int("end"), g.sym_int("step"));
      });
  aten.def("diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor")
      .compute(diagonal_back_rule, diagonal_back_kernel)
      .out("diagonal_backward.out")
      .gradient("grad_output", "", [](const Gradients& g) {
        return g.grad().diagonal(g.integer("offset"), g.integer("dim1"), g.integer("dim2"));
      });
  aten.def("unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor")
      .compute(unfold_back_rule, unfold_back_kernel)
      .out("unfold_backward.out")
      .gradient("grad_in", "",
                [](const Gradients& g) { return g.grad().unfold(g.integer("dim"), g.integer("size"), g.integer("step")); });
}

}  // namespace calque
