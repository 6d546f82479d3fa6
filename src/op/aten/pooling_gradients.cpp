// The gradients of pooling: where the largest value was, or shared by a window.
#include "calque/op/aten/pooling.h"
#include "op/gradient/pooling.h"
#include "op/rule/geometry.h"
#include "op/rule/pooling.h"
#include "op/stanza.h"

namespace calque {
namespace {

using rule::PoolDTypes;
using OptInt = std::optional<int64_t>;

Meta pooled_from(const char* op, const Tensor& grad_output, const Tensor& self, int spatial, bool channels_last) {
  rule::check_pool_input(op, self, spatial);
  if (grad_output.dim() != self.dim())
    throw UserError(std::string(op) + ": expected grad_output with " + std::to_string(self.dim()) + " dimensions, found " +
                    str(grad_output.sym_sizes()));
  if (grad_output.dtype() != self.dtype())
    throw UserError(std::string(op) + ": expected dtype " + std::string(name(self.dtype())) +
                    " for grad_output but got dtype " + std::string(name(grad_output.dtype())));
  for (int64_t d = 0; d < self.dim() - spatial; ++d)
    if (!check(grad_output.sym_size(d) == self.sym_size(d)))
      throw UserError(std::string(op) + ": expected grad_output with the planes of the input, " + str(self.sym_sizes()) +
                      ", found " + str(grad_output.sym_sizes()));
  return rule::pooled(self, SymInts(self.sym_sizes().begin(), self.sym_sizes().end()), spatial, channels_last);
}
Meta placed(const char* op, const Tensor& grad_output, const Tensor& self, const Tensor& indices, int spatial,
            bool channels_last) {
  if (!rule::equal_sizes(indices.sym_sizes(), grad_output.sym_sizes()))
    throw UserError(std::string(op) + ": expected indices of grad_output's sizes " + str(grad_output.sym_sizes()) +
                    ", found " + str(indices.sym_sizes()));
  if (indices.dtype() != DType::int64)
    throw UserError(std::string(op) + ": expected indices of dtype int64, found " + std::string(name(indices.dtype())));
  rule::check_pool_dtype(op, self.dtype(), PoolDTypes::floats);
  return pooled_from(op, grad_output, self, spatial, channels_last);
}

Meta max3_rule(const Tensor& grad_output, const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
               IntList dilation, bool ceil_mode, const Tensor& indices) {
  const char* op = "max_pool3d_with_indices_backward";
  const kernel::PoolWindow w = rule::pool_window(op, 3, kernel_size, stride, padding, dilation);
  const Meta m = placed(op, grad_output, self, indices, 3, true);
  const SymInts sizes = rule::pooled_sizes(op, self, w, ceil_mode);
  if (!rule::equal_sizes(grad_output.sym_sizes(), sizes))
    throw UserError(std::string(op) + ": expected grad_output of sizes " + str(SymIntList(sizes)) + ", found " +
                    str(grad_output.sym_sizes()));
  return m;
}
void max3_kernel(const Tensor& grad_output, const Tensor&, IntList, IntList, IntList, IntList, bool, const Tensor& indices,
                 const Tensor& grad_input) {
  kernel::max_pool_backward(grad_output, indices, 3, grad_input);
}

template <int spatial>
Meta adaptive_max_back_rule(const Tensor& grad_output, const Tensor& self, const Tensor& indices) {
  return placed(spatial == 3 ? "adaptive_max_pool3d_backward" : "adaptive_max_pool2d_backward", grad_output, self, indices,
                spatial, spatial == 2);
}
template <int spatial>
Meta fractional_back_rule(const Tensor& grad_output, const Tensor& self, IntList, IntList, const Tensor& indices) {
  return placed(spatial == 3 ? "fractional_max_pool3d_backward" : "fractional_max_pool2d_backward", grad_output, self,
                indices, spatial, false);
}

Meta avg3_rule(const Tensor& grad_output, const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
               bool ceil_mode, bool, OptInt divisor) {
  const char* op = "avg_pool3d_backward";
  if (divisor && *divisor == 0) throw UserError(std::string(op) + ": divisor must be not zero");
  const kernel::PoolWindow w = rule::pool_window(op, 3, kernel_size, stride, padding, {1});
  const Meta m = pooled_from(op, grad_output, self, 3, false);
  const SymInts sizes = rule::pooled_sizes(op, self, w, ceil_mode);
  if (!rule::equal_sizes(grad_output.sym_sizes(), sizes))
    throw UserError(std::string(op) + ": expected grad_output of sizes " + str(SymIntList(sizes)) + ", found " +
                    str(grad_output.sym_sizes()));
  rule::check_pool_dtype(op, self.dtype(), PoolDTypes::wide_floats_and_int64);
  return m;
}
void avg3_kernel(const Tensor& grad_output, const Tensor&, IntList kernel_size, IntList stride, IntList padding, bool,
                 bool count_include_pad, OptInt divisor, const Tensor& grad_input) {
  const kernel::PoolWindow w = rule::pool_window("avg_pool3d_backward", 3, kernel_size, stride, padding, {1});
  kernel::avg_pool_backward(grad_output, w, {count_include_pad, divisor}, grad_input);
}
Meta adaptive_avg3_rule(const Tensor& grad_output, const Tensor& self) {
  rule::check_pool_dtype("_adaptive_avg_pool3d_backward", self.dtype(), PoolDTypes::floats);
  return pooled_from("_adaptive_avg_pool3d_backward", grad_output, self, 3, false);
}

}  // namespace

void register_pooling_gradients(Library& aten);
void register_pooling_gradients(Library& aten) {
  aten.def(
          "max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] "
          "padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor")
      .compute(max3_rule, max3_kernel)
      .out("max_pool3d_with_indices_backward.grad_input(grad_input)")
      .gradient("grad_output", "indices", gradient::of_placed<3>)
      .gradient("self", "", gradient::no_second);
  aten.def("adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor")
      .compute(adaptive_max_back_rule<2>,
               [](const Tensor& grad_output, const Tensor&, const Tensor& indices, const Tensor& grad_input) {
                 kernel::max_pool_backward(grad_output, indices, 2, grad_input);
               })
      .out("adaptive_max_pool2d_backward.grad_input(grad_input)")
      .gradient("grad_output", "indices", gradient::of_placed<2>)
      .gradient("self", "", gradient::no_second);
  aten.def("adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor")
      .compute(adaptive_max_back_rule<3>,
               [](const Tensor& grad_output, const Tensor&, const Tensor& indices, const Tensor& grad_input) {
                 kernel::max_pool_backward(grad_output, indices, 3, grad_input);
               })
      .out("adaptive_max_pool3d_backward.grad_input(grad_input)")
      .gradient("grad_output", "indices", gradient::of_placed<3>)
      .gradient("self", "", gradient::no_second);
  aten.def(
          "fractional_max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] output_size, Tensor "
          "indices) -> Tensor")
      .compute(fractional_back_rule<2>,
               [](const Tensor& grad_output, const Tensor&, IntList, IntList, const Tensor& indices,
                  const Tensor& grad_input) { kernel::max_pool_backward(grad_output, indices, 2, grad_input); })
      .out("fractional_max_pool2d_backward.grad_input(grad_input)")
      .gradient("grad_output", "indices", gradient::of_placed<2>)
      .gradient("self", "", gradient::no_second);
  aten.def(
          "fractional_max_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] output_size, Tensor "
          "indices) -> Tensor")
      .compute(fractional_back_rule<3>,
               [](const Tensor& grad_output, const Tensor&, IntList, IntList, const Tensor& indices,
                  const Tensor& grad_input) { kernel::max_pool_backward(grad_output, indices, 3, grad_input); })
      .out("fractional_max_pool3d_backward.grad_input(grad_input)")
      .gradient("grad_output", "indices", gradient::of_placed<3>)
      .gradient("self", "", gradient::no_second);
  aten.def(
          "avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, bool "
          "ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor")
      .compute(avg3_rule, avg3_kernel)
      .out("avg_pool3d_backward.grad_input(grad_input)")
      .tags(Tag::strided_out)
      .gradient("grad_output", "",
                [](const Gradients& g) {
                  return avg_pool3d(g.grad(), g.integers("kernel_size"), g.integers("stride"), g.integers("padding"),
                                    g.flag("ceil_mode"), g.flag("count_include_pad"), gradient::divisor_of(g));
                })
      .gradient("self", "", gradient::no_second);
  aten.def("_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor")
      .compute(adaptive_avg3_rule, [](const Tensor& grad, const Tensor&,
                                      const Tensor& out) { kernel::adaptive_avg_pool_backward(grad, 3, out); })
      .out("_adaptive_avg_pool3d_backward.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("grad_output", "",
                [](const Gradients& g) {
                  const SymIntList sizes = g.sizes("grad_output");
                  return _adaptive_avg_pool3d(g.grad(), {sizes[sizes.size() - 3], sizes[sizes.size() - 2], sizes.back()});
                })
      .gradient("self", "", gradient::no_second);
}

}  // namespace calque
