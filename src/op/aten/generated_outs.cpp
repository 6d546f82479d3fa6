// out= forms that PyTorch generates where the result's dtype and device are the out argument's, or where a result may be
// masked off: the functional form, then resize and copy. The others are `.out(...)` of their stanzas.
#include <optional>
#include <tuple>

#include "calque/op/aten/arange.h"
#include "calque/op/aten/convolution.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/normalization.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/unique.h"
#include "calque/op/aten/view_metadata.h"
#include "calque/op/aten/views.h"
#include "calque/op/library.h"
#include "op/rule/factory.h"

namespace calque {
namespace {

using Three = std::tuple<Tensor, Tensor, Tensor>;

Tensor sized(const Tensor& out, SymIntList sizes) {
  const SymIntList own = out.sym_sizes();
  bool same = own.size() == sizes.size();
  for (size_t d = 0; same && d < sizes.size(); ++d) same = guard(own[d] == sizes[d]);
  return same ? out : resize_(out, sizes);
}

Tensor give(const char* op, const Tensor& result, const Tensor& out) {
  if (!result.defined())
    throw UserError(std::string(op) + ": an out argument is given for a result that output_mask leaves out");
  if (result.dtype() != out.dtype())
    throw UserError(std::string(op) + ": expected an out argument of dtype " + std::string(name(result.dtype())) +
                    ", found " + std::string(name(out.dtype())));
  return copy_(sized(out, result.sym_sizes()), result);
}
Three give(const char* op, const Three& results, const Tensor& a, const Tensor& b, const Tensor& c) {
  return {give(op, std::get<0>(results), a), give(op, std::get<1>(results), b), give(op, std::get<2>(results), c)};
}

// As many values as asked for, in out's dtype; an out argument of that many elements keeps its shape.
Tensor arange_out(const Scalar& start, const Scalar& end, const Scalar& step, const Tensor& out) {
  const Tensor values = arange(start, end, step, out.dtype(), std::nullopt, out.device());
  if (!guard(out.sym_numel() == values.sym_numel())) resize_(out, values.sym_sizes());
  return copy_(out, view(values, out.sym_sizes()));
}

}  // namespace

void register_generated_outs(Library& aten);
void register_generated_outs(Library& aten) {
  aten.def("empty.out(SymInt[] size, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)")
      .composite([](SymIntList size, OptFormat format, const Tensor& out) -> Tensor {
        if (format) throw UserError("empty: memory_format cannot be combined with an out argument");
        return resize_(out, size);
      });
  aten.def("empty_strided.out(SymInt[] size, SymInt[] stride, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](SymIntList size, SymIntList stride, const Tensor& out) {
        return sized(out, empty_strided(size, stride, out.dtype(), std::nullopt, Device(DeviceType::meta)).sym_sizes());
      });
  aten.def("zeros_like.out(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, OptFormat, const Tensor& out) { return sized(out, self.sym_sizes()).zero_(); });
  aten.def(
          "full_like.out(Tensor self, Scalar fill_value, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, const Scalar& value, OptFormat, const Tensor& out) {
        return sized(out, self.sym_sizes()).fill_(value);
      });
  aten.def("new_zeros.out(Tensor self, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
      .python("torch.Tensor.new_zeros")
      .composite([](const Tensor&, SymIntList size, const Tensor& out) { return sized(out, size).zero_(); });
  aten.def("new_ones.out(Tensor self, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
      .python("torch.Tensor.new_ones")
      .composite([](const Tensor&, SymIntList size, const Tensor& out) { return sized(out, size).fill_(Scalar(1)); });
  aten.def("scalar_tensor.out(Scalar s, *, Tensor(a!) out) -> Tensor(a!)").composite([](const Scalar& s, const Tensor& out) {
    return sized(out, {}).fill_(s);
  });
  aten.def("arange.out(Scalar end, *, Tensor(a!) out) -> Tensor(a!)")
      .tags(Tag::left_whole)
      .composite([](const Scalar& end, const Tensor& out) { return arange_out(0, end, 1, out); });
  aten.def("arange.start_out(Scalar start, Scalar end, Scalar step=1, *, Tensor(a!) out) -> Tensor(a!)")
      .composite(arange_out);
  aten.def("rand.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](SymIntList size, const Tensor& out) { return sized(out, size).uniform_(0, 1); })
      .tags(Tag::random);
  aten.def("randn.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](SymIntList size, const Tensor& out) { return sized(out, size).normal_(0, 1); })
      .tags(Tag::random);
  aten.def("randperm.out(SymInt n, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](SymInt n, const Tensor& out) { return give("randperm", randperm(n, out.dtype()), out); })
      .tags(Tag::random);
  aten.def(
          "_to_copy.out(Tensor self, *, bool non_blocking=False, MemoryFormat? memory_format=None, Tensor(a!) out) -> "
          "Tensor(a!)")
      .tags(Tag::number_for_tensor)
      .composite([](const Tensor& self, bool non_blocking, OptFormat, const Tensor& out) {
        return copy_(sized(out, self.sym_sizes()), self, non_blocking);
      });
  aten.def(
          "unique_consecutive.out(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None, *, "
          "Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> "
          "(Tensor(a!), Tensor(b!), Tensor(c!))")
      .composite([](const Tensor& self, bool inverse, bool counts, std::optional<int64_t> dim, const Tensor& a,
                    const Tensor& b, const Tensor& c) {
        return give("unique_consecutive", unique_consecutive(self, inverse, counts, dim), a, b, c);
      })
      .tags(Tag::data_dependent);
  aten.def(
          "_native_batch_norm_legit.out(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) "
          "running_var, bool training, float momentum, float eps, *, "
          "Tensor(d!) out, Tensor(e!) save_mean, Tensor(f!) save_invstd) -> (Tensor(d!), Tensor(e!), Tensor(f!))")
      .composite([](const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
                    bool training, double momentum, double eps, const Tensor& a, const Tensor& b, const Tensor& c) -> Three {
        const Three results = _native_batch_norm_legit(input, weight, bias, mean, var, training, momentum, eps);
        if (training) return give("_native_batch_norm_legit", results, a, b, c);
        return Three{give("_native_batch_norm_legit", std::get<0>(results), a), b, c};  // there are no statistics to save
      });
  aten.def(
          "convolution_backward.out(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, "
          "SymInt[] padding, SymInt[] dilation, bool transposed, "
          "SymInt[] output_padding, SymInt groups, bool[3] output_mask, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) "
          "out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))")
      .composite([](const Tensor& grad, const Tensor& input, const Tensor& weight, std::optional<SymIntList> bias_sizes,
                    SymIntList stride, SymIntList padding, SymIntList dilation, bool transposed, SymIntList output_padding,
                    SymInt groups, BoolMask mask, const Tensor& a, const Tensor& b, const Tensor& c) {
        return give("convolution_backward",
                    convolution_backward(grad, input, weight, bias_sizes, stride, padding, dilation, transposed,
                                         output_padding, groups, mask),
                    a, b, c);
      });
  aten.def(
          "native_layer_norm_backward.out(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor "
          "rstd, Tensor? weight, Tensor? bias, bool[3] output_mask, *, "
          "Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))")
      .composite([](const Tensor& grad, const Tensor& input, SymIntList shape, const Tensor& mean, const Tensor& rstd,
                    const Tensor& weight, const Tensor& bias, BoolMask mask, const Tensor& a, const Tensor& b,
                    const Tensor& c) {
        return give("native_layer_norm_backward",
                    native_layer_norm_backward(grad, input, shape, mean, rstd, weight, bias, mask), a, b, c);
      });
  aten.def(
          "native_group_norm_backward.out(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt "
          "N, SymInt C, SymInt HxW, int group, bool[3] output_mask, *, "
          "Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))")
      .composite([](const Tensor& grad, const Tensor& input, const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                    SymInt n, SymInt c, SymInt hxw, int64_t group, BoolMask mask, const Tensor& out0, const Tensor& out1,
                    const Tensor& out2) {
        return give("native_group_norm_backward",
                    native_group_norm_backward(grad, input, mean, rstd, weight, n, c, hxw, group, mask), out0, out1, out2);
      });
}

}  // namespace calque
