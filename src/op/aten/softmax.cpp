// softmax, log_softmax, their gradients and kin.
#include "calque/op/aten/softmax.h"
#include "kernel/cpu/reduce/softmax.h"

#include "kernel/cpu/elementwise/copy.h"
#include "op/rule/reduction.h"
#include "op/stanza.h"

namespace calque {
namespace {

template <bool is_log>
constexpr const char* op_name = is_log ? "log_softmax" : "softmax";

template <bool is_log>
Meta forward_rule(const Tensor& self, int64_t dim, bool half_to_float) {
  rule::one_dim(op_name<is_log>, dim, self);
  if (half_to_float && self.device().type == DeviceType::cpu)
    throw UserError(std::string(op_name<is_log>) + " with half to float conversion is not supported on CPU");
  if (half_to_float && self.dtype() != DType::float16)
    throw UserError(std::string(op_name<is_log>) + ": conversion is supported for Half type only, found " +
                    std::string(name(self.dtype())));
  return rule::contiguous_like(self, half_to_float ? DType::float32 : self.dtype());
}
template <bool is_log>
void forward_kernel(const Tensor& self, int64_t dim, bool, const Tensor& out) {
  kernel::softmax(self, rule::one_dim(op_name<is_log>, dim, self), is_log, out);
}

template <bool is_log>
Meta backward_rule(const Tensor& grad, const Tensor& output, int64_t dim, DType input_dtype) {
  rule::one_dim("softmax_backward", dim, grad);
  if (grad.dim() != output.dim())
    throw UserError("_softmax_backward_data: expected grad_output of sizes " + str(output.sym_sizes()) + ", found " +
                    str(grad.sym_sizes()));
  for (int64_t d = 0; d < grad.dim(); ++d)
    if (!check(grad.sym_size(d) == output.sym_size(d)))
      throw UserError("_softmax_backward_data: expected grad_output of sizes " + str(output.sym_sizes()) + ", found " +
                      str(grad.sym_sizes()));
  if (grad.dtype() != input_dtype && !(grad.dtype() == DType::float32 && input_dtype == DType::float16))
    throw UserError(
        "_softmax_backward_data: expected input and grad types to match, or input to be at::Half and grad to be at::Float, "
        "found " +
        std::string(name(input_dtype)) + " and " + std::string(name(grad.dtype())));
  return rule::contiguous_like(grad, input_dtype);
}
template <bool is_log>
void backward_kernel(const Tensor& grad, const Tensor& output, int64_t dim, DType, const Tensor& out) {
  kernel::softmax_backward(grad, output, rule::one_dim("softmax_backward", dim, grad), is_log, out);
}

template <bool is_log>
Tensor with_dtype(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  const Tensor in = dtype && *dtype != self.dtype() ? self.to(*dtype, Layout::strided, self.device()) : self;
  if constexpr (is_log)
    return _log_softmax(in, dim, false);
  else
    return _softmax(in, dim, false);
}

// A slice that is masked off entirely (all -inf) gives zeros instead of NaN.
Tensor safe_rule(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  rule::one_dim("_safe_softmax", dim, self);
  return make_tensor(rule::contiguous_like(self, dtype.value_or(self.dtype())), true);
}
Tensor safe_softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  const Tensor out = with_dtype<false>(self, dim, dtype);
  kernel::zero_masked_slices(self, rule::one_dim("_safe_softmax", dim, self), out);
  return out;
}

// ---- gradients of gradients -----------------------------------------------------------------------------------------
Tensor softmax_twice(const Gradients& g) {
  const Tensor output = g["output"], given = g["grad_output"], grad = g.grad().to(output.dtype());
  const int64_t dim = g.integer("dim");
  const Tensor of_grad = given.mul(grad.mul(output).sum({dim}, true));
  const Tensor of_given = output.mul(given).sum({dim}, true).mul(grad);
  return given.mul(grad).sub(of_given).sub(of_grad).to(output.dtype());
}
Tensor log_softmax_twice_given(const Gradients& g) {
  const Tensor output = g["output"], grad = g.grad().to(output.dtype());
  return grad.sub(grad.mul(output.exp()).sum({g.integer("dim")}, true));
}
Tensor log_softmax_twice(const Gradients& g) {
  const Tensor output = g["output"];
  const Tensor power = output.exp();
  return g["grad_output"].sum({g.integer("dim")}, true).neg().mul(power).mul(g.grad().to(output.dtype())).to(output.dtype());
}

}  // namespace

void register_softmax(Library& aten);
void register_softmax(Library& aten) {
  aten.def("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor")
      .compute(forward_rule<false>, forward_kernel<false>)
      .out("_softmax.out")
      .tags(Tag::reduction, Tag::core)
      .gradient("self", "result", [](const Gradients& g) {
        return _softmax_backward_data(g.grad(), g["result"], g.integer("dim"), g.dtype("self"));
      });
  aten.def("_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor")
      .compute(forward_rule<true>, forward_kernel<true>)
      .out("_log_softmax.out")
      .tags(Tag::reduction, Tag::core)
      .gradient("self", "result", [](const Gradients& g) {
        return _log_softmax_backward_data(g.grad(), g["result"], g.integer("dim"), g.dtype("self"));
      });
  aten.def("_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor")
      .compute(backward_rule<false>, backward_kernel<false>)
      .out("_softmax_backward_data.out(grad_input)")
      .tags(Tag::reduction)
      .gradient("grad_output", "output",
                [](const Gradients& g) {
                  return _softmax_backward_data(g.grad().to(g.dtype("output")), g["output"], g.integer("dim"),
                                                g.argument("input_dtype").to_dtype());
                })
      .gradient("output", "grad_output output", softmax_twice);
  aten.def("_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor")
      .compute(backward_rule<true>, backward_kernel<true>)
      .out("_log_softmax_backward_data.out")
      .tags(Tag::reduction)
      .gradient("grad_output", "output", log_softmax_twice_given)
      .gradient("output", "grad_output output", log_softmax_twice);
  aten.def("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
      .composite(with_dtype<false>)
      .out("softmax.int_out");
  aten.def("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
      .composite(with_dtype<true>)
      .out("log_softmax.int_out");
  aten.def("special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor").composite(with_dtype<false>);
  aten.def("special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor").composite(with_dtype<true>);
  aten.def("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
      .own(safe_rule, safe_softmax)
      .tags(Tag::reduction)
      .gradient("self", "result", [](const Gradients& g) {
        return _softmax_backward_data(g.grad(), g["result"], g.integer("dim"), g.dtype("self"));
      });
}

}  // namespace calque
