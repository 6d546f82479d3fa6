// Pooling: maximum and average, over windows and adaptive, with the gradients that core ATen has.
#include "calque/op/aten/pooling.h"
#include "calque/op/aten/pooling_gradients.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/views.h"
#include "op/gradient/pooling.h"
#include "op/rule/geometry.h"
#include "op/rule/pooling.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::PoolWindow;
using rule::PoolDTypes;
using OptInt = std::optional<int64_t>;

// ---- maximum ------------------------------------------------------------------------------------------------------
template <int spatial>
constexpr const char* max_pool_name = spatial == 3 ? "max_pool3d" : "max_pool2d";

template <int spatial>
std::array<Meta, 2> max_pool_rule(const Tensor& self, IntList kernel_size, IntList stride, IntList padding, IntList dilation,
                                  bool ceil_mode) {
  const char* op = max_pool_name<spatial>;
  const PoolWindow w = rule::pool_window(op, spatial, kernel_size, stride, padding, dilation);
  rule::check_pool_input(op, self, spatial);
  rule::check_pool_dtype(op, self.dtype(), PoolDTypes::reals);
  Meta out = rule::pooled(self, rule::pooled_sizes(op, self, w, ceil_mode), spatial, true);
  if (spatial == 3 && self.dim() == 4) {
    // An unbatched volume is looked at with a batch of one.
    const Tensor batched = rule::make(self, rule::unsqueeze(op, rule::geometry(self), 0));
    if (batched.suggest_memory_format() == MemoryFormat::channels_last_3d && !self.is_contiguous()) {
      SymInts sizes{1};
      for (const SymInt s : out.sizes) sizes.push_back(s);
      const SymInts strides = strides_for(MemoryFormat::channels_last_3d, sizes);
      out.strides = SymInts(strides.begin() + 1, strides.end());
    }
  }
  Meta indices = out;
  indices.dtype = DType::int64;
  return {out, indices};
}
template <int spatial>
void max_pool_kernel(const Tensor& self, IntList kernel_size, IntList stride, IntList padding, IntList dilation, bool,
                     const Tensor& out, const Tensor& indices) {
  kernel::max_pool(self, rule::pool_window(max_pool_name<spatial>, spatial, kernel_size, stride, padding, dilation), out,
                   indices);
}

void check_gradient(const char* op, const Tensor& grad_output, const Tensor& self, const SymInts& sizes) {
  if (grad_output.dtype() != self.dtype())
    throw UserError(std::string(op) + ": expected dtype " + std::string(name(self.dtype())) +
                    " for grad_output but got dtype " + std::string(name(grad_output.dtype())));
  if (!rule::equal_sizes(grad_output.sym_sizes(), sizes))
    throw UserError(std::string(op) + ": expected grad_output of sizes " + str(SymIntList(sizes)) + ", found " +
                    str(grad_output.sym_sizes()));
}
Meta max_backward_rule(const Tensor& grad_output, const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                       IntList dilation, bool ceil_mode, const Tensor& indices) {
  const char* op = "max_pool2d_with_indices_backward";
  const PoolWindow w = rule::pool_window(op, 2, kernel_size, stride, padding, dilation);
  rule::check_pool_input(op, self, 2);
  const SymInts sizes = rule::pooled_sizes(op, self, w, ceil_mode);
  check_gradient(op, grad_output, self, sizes);
  if (!rule::equal_sizes(indices.sym_sizes(), sizes))
    throw UserError(std::string(op) + ": expected indices of sizes " + str(SymIntList(sizes)) + ", found " +
                    str(indices.sym_sizes()));
  if (indices.dtype() != DType::int64)
    throw UserError(std::string(op) + ": expected indices of dtype int64, found " + std::string(name(indices.dtype())));
  rule::check_pool_dtype(op, self.dtype(), PoolDTypes::floats);
  return rule::pooled(self, SymInts(self.sym_sizes().begin(), self.sym_sizes().end()), 2, true);
}
void max_backward_kernel(const Tensor& grad_output, const Tensor&, IntList, IntList, IntList, IntList, bool,
                         const Tensor& indices, const Tensor& grad_input) {
  kernel::max_pool_backward(grad_output, indices, 2, grad_input);
}

// ---- average ------------------------------------------------------------------------------------------------------
template <int spatial>
constexpr const char* avg_name = spatial == 3 ? "avg_pool3d" : "avg_pool2d";
template <int spatial>
PoolWindow avg_window(IntList kernel_size, IntList stride, IntList padding, OptInt divisor) {
  if (divisor && *divisor == 0) throw UserError(std::string(avg_name<spatial>) + ": divisor must be not zero");
  return rule::pool_window(avg_name<spatial>, spatial, kernel_size, stride, padding, {1});
}
template <int spatial>
Meta avg_rule(const Tensor& self, IntList kernel_size, IntList stride, IntList padding, bool ceil_mode, bool,
              OptInt divisor) {
  const char* op = avg_name<spatial>;
  const PoolWindow w = avg_window<spatial>(kernel_size, stride, padding, divisor);
  rule::check_pool_input(op, self, spatial);
  rule::check_pool_dtype(op, self.dtype(), spatial == 3 ? PoolDTypes::wide_floats_and_int64 : PoolDTypes::floats_and_int64);
  return rule::pooled(self, rule::pooled_sizes(op, self, w, ceil_mode), spatial, spatial == 2);
}
template <int spatial>
void avg_kernel(const Tensor& self, IntList kernel_size, IntList stride, IntList padding, bool, bool count_include_pad,
                OptInt divisor, const Tensor& out) {
  kernel::avg_pool(self, avg_window<spatial>(kernel_size, stride, padding, divisor), {count_include_pad, divisor}, out);
}
Meta avg_backward_rule(const Tensor& grad_output, const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                       bool ceil_mode, bool, OptInt divisor) {
  const char* op = "avg_pool2d_backward";
  const PoolWindow w = avg_window<2>(kernel_size, stride, padding, divisor);
  rule::check_pool_input(op, self, 2);
  check_gradient(op, grad_output, self, rule::pooled_sizes(op, self, w, ceil_mode));
  rule::check_pool_dtype(op, self.dtype(), PoolDTypes::floats_and_int64);
  return rule::pooled(self, SymInts(self.sym_sizes().begin(), self.sym_sizes().end()), 2, true);
}
void avg_backward_kernel(const Tensor& grad_output, const Tensor&, IntList kernel_size, IntList stride, IntList padding,
                         bool, bool count_include_pad, OptInt divisor, const Tensor& grad_input) {
  kernel::avg_pool_backward(grad_output, avg_window<2>(kernel_size, stride, padding, divisor), {count_include_pad, divisor},
                            grad_input);
}

// ---- adaptive -----------------------------------------------------------------------------------------------------
SymInts adaptive_sizes(const char* op, const Tensor& self, SymIntList output_size, int spatial) {
  if (output_size.size() != static_cast<size_t>(spatial))
    throw UserError(std::string(op) + ": output_size must have " + std::to_string(spatial) + " elements, found " +
                    str(output_size));
  for (const SymInt s : output_size)
    if (!check(s >= 0))
      throw UserError(std::string(op) + ": elements of output_size must be greater than or equal to 0 but received " +
                      str(output_size));
  const int64_t lead = self.dim() - spatial;
  if (lead != 1 && lead != 2)
    throw UserError(std::string(op) + ": Expected " + std::to_string(spatial + 1) + "D or " + std::to_string(spatial + 2) +
                    "D tensor, but got " + str(self.sym_sizes()));
  SymInts sizes(self.sym_sizes().begin(), self.sym_sizes().begin() + lead);
  for (const SymInt s : output_size) sizes.push_back(s);
  return sizes;
}
void check_filled(const char* op, const Tensor& self, int64_t from) {
  for (int64_t d = from; d < self.dim(); ++d)
    if (!check(self.sym_size(d) > 0))
      throw UserError(std::string(op) +
                      ": Expected input to have non-zero size for non-batch dimensions, but input has sizes " +
                      str(self.sym_sizes()) + " with dimension " + std::to_string(d) + " being empty");
}
template <int spatial>
Meta adaptive_avg_rule(const Tensor& self, SymIntList output_size) {
  const char* op = spatial == 3 ? "_adaptive_avg_pool3d" : "_adaptive_avg_pool2d";
  SymInts sizes = adaptive_sizes(op, self, output_size, spatial);
  check_filled(op, self, spatial == 3 ? 1 : self.dim() - spatial);  // ATen takes dimension 0 for the batch
  rule::check_pool_dtype(op, self.dtype(), PoolDTypes::floats);
  return rule::pooled(self, std::move(sizes), spatial, spatial == 2);
}
template <int spatial>
std::array<Meta, 2> adaptive_max_rule(const Tensor& self, IntList output_size) {
  const char* op = spatial == 3 ? "adaptive_max_pool3d" : "adaptive_max_pool2d";
  SymInts sizes = adaptive_sizes(op, self, as_sym(output_size), spatial);
  check_filled(op, self, 1);
  rule::check_pool_dtype(op, self.dtype(), PoolDTypes::floats);
  Meta out = rule::pooled(self, std::move(sizes), spatial, spatial == 2);
  Meta indices = out;
  indices.dtype = DType::int64;
  return {out, indices};
}
Meta adaptive_avg_backward_rule(const Tensor& grad_output, const Tensor& self) {
  const char* op = "_adaptive_avg_pool2d_backward";
  rule::check_pool_input(op, self, 2);
  rule::check_pool_input(op, grad_output, 2);
  if (grad_output.dim() != self.dim())
    throw UserError(std::string(op) + ": expected grad_output with " + std::to_string(self.dim()) + " dimensions, found " +
                    str(grad_output.sym_sizes()));
  if (grad_output.dtype() != self.dtype())
    throw UserError(std::string(op) + ": expected dtype " + std::string(name(self.dtype())) +
                    " for grad_output but got dtype " + std::string(name(grad_output.dtype())));
  rule::check_pool_dtype(op, self.dtype(), PoolDTypes::floats);
  return rule::pooled(self, SymInts(self.sym_sizes().begin(), self.sym_sizes().end()), 2, true);
}

bool all_ones(SymIntList sizes) {
  for (const SymInt s : sizes)
    if (!guard(s == 1)) return false;
  return true;
}
// Pooling to a single number is a mean, laid out as pooling would.
Tensor adaptive_avg2_body(const Tensor& self, SymIntList output_size) {
  if (output_size.size() != 2)
    throw UserError("adaptive_avg_pool2d: output_size must be 2 numbers, found " + str(output_size));
  for (const SymInt s : output_size)
    if (!check(s >= 0))
      throw UserError("adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but received " +
                      str(output_size));
  if (!all_ones(output_size)) return _adaptive_avg_pool2d(self, output_size);
  const Tensor out = mean(self, {-1, -2}, true);
  if (self.suggest_memory_format() != MemoryFormat::channels_last) return out;
  const SymInt n = self.sym_size(0), c = self.sym_size(1);
  return as_strided(out, {n, c, 1, 1}, {c, 1, c, c});
}
Tensor adaptive_avg3_body(const Tensor& self, SymIntList output_size) {
  if (output_size.size() != 3)
    throw UserError("adaptive_avg_pool3d: output_size must be 3 numbers, found " + str(output_size));
  for (const SymInt s : output_size)
    if (!check(s >= 0))
      throw UserError("adaptive_avg_pool3d: elements of output_size must be greater than or equal to 0 but received " +
                      str(output_size));
  if (!all_ones(output_size)) return _adaptive_avg_pool3d(self, output_size);
  const Tensor out = mean(self, {-1, -2, -3}, true);
  if (self.suggest_memory_format() != MemoryFormat::channels_last_3d) return out;
  const SymInt n = self.sym_size(0), c = self.sym_size(1);
  return as_strided(out, {n, c, 1, 1, 1}, {c, 1, c, c, c});
}

// ---- one dimension, by way of two ---------------------------------------------------------------------------------
void check_line(const char* op, const Tensor& self) {
  if (self.dim() != 2 && self.dim() != 3)
    throw UserError(std::string(op) + ": Expected 2 to 3 dimensions, but got " + std::to_string(self.dim()) +
                    "-dimensional tensor for argument self");
}
int64_t one(const char* op, const char* what, IntList values) {
  if (values.size() != 1) throw UserError(std::string(op) + ": " + what + " should contain one int, found " + str(values));
  return values[0];
}
Tensor avg_pool1d_body(const Tensor& self, IntList kernel_size, IntList stride, IntList padding, bool ceil_mode,
                       bool count_include_pad) {
  if (stride.empty()) stride = kernel_size;
  check_line("avg_pool1d", self);
  const int64_t k = one("avg_pool1d", "kernel_size", kernel_size), s = one("avg_pool1d", "stride", stride),
                p = one("avg_pool1d", "padding", padding);
  return squeeze(avg_pool2d(unsqueeze(self, -2), {1, k}, {1, s}, {0, p}, ceil_mode, count_include_pad), -2);
}
std::tuple<Tensor, Tensor> max_pool1d_indices_body(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                                                   IntList dilation, bool ceil_mode) {
  if (stride.empty()) stride = kernel_size;
  check_line("max_pool1d", self);
  const int64_t k = one("max_pool1d", "kernel_size", kernel_size), s = one("max_pool1d", "stride", stride),
                p = one("max_pool1d", "padding", padding), d = one("max_pool1d", "dilation", dilation);
  const auto [out, indices] = max_pool2d_with_indices(unsqueeze(self, -2), {1, k}, {1, s}, {0, p}, {1, d}, ceil_mode);
  return {squeeze(out, -2), squeeze(indices, -2)};
}
Tensor max_pool1d_body(const Tensor& self, IntList kernel_size, IntList stride, IntList padding, IntList dilation,
                       bool ceil_mode) {
  const bool plain = !modes_active() && !self.is_fake() && !(self.requires_grad() && grad_enabled());
  // Without need of indices the result is contiguous, and only floats are pooled.
  if (plain) rule::check_pool_dtype("max_pool1d", self.dtype(), PoolDTypes::floats);
  return std::get<0>(max_pool1d_with_indices(plain && (self.dim() == 2 || self.dim() == 3) ? self.contiguous() : self,
                                             kernel_size, stride, padding, dilation, ceil_mode));
}
Tensor adaptive_avg1_body(const Tensor& self, IntList output_size) {
  check_line("adaptive_avg_pool1d", self);
  return squeeze(adaptive_avg_pool2d(unsqueeze(self, -2), {1, one("adaptive_avg_pool1d", "output_size", output_size)}), -2);
}
std::tuple<Tensor, Tensor> adaptive_max1_body(const Tensor& self, IntList output_size) {
  check_line("adaptive_max_pool1d", self);
  const auto [out, indices] =
      adaptive_max_pool2d(unsqueeze(self, -2), {1, one("adaptive_max_pool1d", "output_size", output_size)});
  const Tensor flat_indices = squeeze(indices, -2);
  return {squeeze(out, -2), flat_indices};
}

}  // namespace

void register_pooling(Library& aten);
void register_pooling(Library& aten) {
  aten.def(
          "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, "
          "bool ceil_mode=False) -> (Tensor, Tensor)")
      .python("torch._C._nn.max_pool2d_with_indices")
      .compute(max_pool_rule<2>, max_pool_kernel<2>)
      .out("max_pool2d_with_indices.out(out, indices)")
      .tags(Tag::core)
      .gradient("self", "self result1",
                [](const Gradients& g) {
                  return max_pool2d_with_indices_backward(g.grad(), g["self"], g.integers("kernel_size"),
                                                          g.integers("stride"), g.integers("padding"),
                                                          g.integers("dilation"), g.flag("ceil_mode"), g["result1"]);
                })
      .no_gradient("result1");
  aten.def(
          "max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, "
          "bool ceil_mode=False) -> (Tensor, Tensor)")
      .python("torch._C._nn.max_pool3d_with_indices")
      .compute(max_pool_rule<3>, max_pool_kernel<3>)
      .out("max_pool3d_with_indices.out(out, indices)")
      .tags(Tag::restrides_out, Tag::core)
      .gradient("self", "self result1",
                [](const Gradients& g) {
                  return max_pool3d_with_indices_backward(g.grad(), g["self"], g.integers("kernel_size"),
                                                          g.integers("stride"), g.integers("padding"),
                                                          g.integers("dilation"), g.flag("ceil_mode"), g["result1"]);
                })
      .no_gradient("result1");
  aten.def(
          "max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] "
          "dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor)")
      .composite(max_pool1d_indices_body);
  aten.def(
          "max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool "
          "ceil_mode=False) -> Tensor")
      .python("torch.nn.functional.max_pool1d")
      .composite(max_pool1d_body);
  aten.def(
          "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool "
          "ceil_mode=False) -> Tensor")
      .python("torch.nn.functional.max_pool2d")
      .composite(
          [](const Tensor& self, IntList kernel_size, IntList stride, IntList padding, IntList dilation, bool ceil_mode) {
            return std::get<0>(max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
          });
  aten.def(
          "max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool "
          "ceil_mode=False) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch.nn.functional.max_pool3d")
      .composite(
          [](const Tensor& self, IntList kernel_size, IntList stride, IntList padding, IntList dilation, bool ceil_mode) {
            return std::get<0>(max_pool3d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
          });
  aten.def(
          "max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] "
          "padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor")
      .compute(max_backward_rule, max_backward_kernel)
      .out("max_pool2d_with_indices_backward.grad_input(grad_input)")
      .tags(Tag::core)
      .gradient("grad_output", "indices", gradient::of_placed<2>)
      .gradient("self", "", gradient::no_second);

  aten.def(
          "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool ceil_mode=False, bool "
          "count_include_pad=True) -> Tensor")
      .python_alias("torch.nn.functional.avg_pool1d", "torch.avg_pool1d")
      .composite(avg_pool1d_body)
      .out("avg_pool1d.out")
      .tags(Tag::dense_out, Tag::core);
  aten.def(
          "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool "
          "count_include_pad=True, int? divisor_override=None) -> Tensor")
      .python("torch.nn.functional.avg_pool2d", "torch._C._nn.avg_pool2d")
      .compute(avg_rule<2>, avg_kernel<2>)
      .out("avg_pool2d.out")
      .tags(Tag::core, Tag::strided_out)
      .gradient("self", "self", [](const Gradients& g) {
        return avg_pool2d_backward(g.grad(), g["self"], g.integers("kernel_size"), g.integers("stride"),
                                   g.integers("padding"), g.flag("ceil_mode"), g.flag("count_include_pad"),
                                   gradient::divisor_of(g));
      });
  aten.def(
          "avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool "
          "count_include_pad=True, int? divisor_override=None) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch.nn.functional.avg_pool3d", "torch._C._nn.avg_pool3d")
      .compute(avg_rule<3>, avg_kernel<3>)
      .out("avg_pool3d.out")
      .tags(Tag::core, Tag::strided_out)
      .gradient("self", "self", [](const Gradients& g) {
        return avg_pool3d_backward(g.grad(), g["self"], g.integers("kernel_size"), g.integers("stride"),
                                   g.integers("padding"), g.flag("ceil_mode"), g.flag("count_include_pad"),
                                   gradient::divisor_of(g));
      });
  aten.def(
          "avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool "
          "ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor")
      .compute(avg_backward_rule, avg_backward_kernel)
      .out("avg_pool2d_backward.grad_input(grad_input)")
      .tags(Tag::core, Tag::strided_out)
      .gradient("grad_output", "",
                [](const Gradients& g) {
                  return avg_pool2d(g.grad(), g.integers("kernel_size"), g.integers("stride"), g.integers("padding"),
                                    g.flag("ceil_mode"), g.flag("count_include_pad"), gradient::divisor_of(g));
                })
      .gradient("self", "", gradient::no_second);

  aten.def("_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor")
      .compute(adaptive_avg_rule<2>,
               [](const Tensor& self, SymIntList, const Tensor& out) { kernel::adaptive_avg_pool(self, 2, out); })
      .out("_adaptive_avg_pool2d.out")
      .tags(Tag::dense_out, Tag::core, Tag::strided_out)
      .gradient("self", "self", [](const Gradients& g) { return _adaptive_avg_pool2d_backward(g.grad(), g["self"]); });
  aten.def("_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor")
      .compute(adaptive_avg_rule<3>,
               [](const Tensor& self, SymIntList, const Tensor& out) { kernel::adaptive_avg_pool(self, 3, out); })
      .out("_adaptive_avg_pool3d.out")
      .tags(Tag::dense_out, Tag::core, Tag::strided_out)
      .gradient("self", "self", [](const Gradients& g) { return _adaptive_avg_pool3d_backward(g.grad(), g["self"]); });
  aten.def("_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor")
      .compute(adaptive_avg_backward_rule, [](const Tensor& grad, const Tensor&,
                                              const Tensor& out) { kernel::adaptive_avg_pool_backward(grad, 2, out); })
      .out("_adaptive_avg_pool2d_backward.out")
      .tags(Tag::dense_out, Tag::core, Tag::strided_out)
      .gradient("grad_output", "",
                [](const Gradients& g) {
                  const SymIntList sizes = g.sizes("grad_output");
                  return _adaptive_avg_pool2d(g.grad(), {sizes[sizes.size() - 2], sizes.back()});
                })
      .gradient("self", "", gradient::no_second);
  aten.def("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor")
      .python_alias("torch.nn.functional.adaptive_avg_pool1d", "torch.adaptive_avg_pool1d")
      .composite(adaptive_avg1_body)
      .out("adaptive_avg_pool1d.out")
      .tags(Tag::dense_out, Tag::core);
  aten.def("adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor")
      .python("torch.nn.functional.adaptive_avg_pool2d")
      .composite(adaptive_avg2_body)
      .out("adaptive_avg_pool2d.out")
      .tags(Tag::restrides_image);
  aten.def("adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch.nn.functional.adaptive_avg_pool3d")
      .composite(adaptive_avg3_body);
  aten.def("adaptive_avg_pool3d.out(Tensor self, SymInt[3] output_size, *, Tensor(a!) out) -> Tensor(a!)")
      .python("torch.nn.functional.adaptive_avg_pool3d")
      .composite([](const Tensor& self, SymIntList output_size, const Tensor& out) {
        return _adaptive_avg_pool3d(self, output_size, Out(out));
      });
  aten.def("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)").composite(adaptive_max1_body);
  aten.def("adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)")
      .python("torch._C._nn.adaptive_max_pool2d")
      .compute(adaptive_max_rule<2>, [](const Tensor& self, IntList, const Tensor& out,
                                        const Tensor& indices) { kernel::adaptive_max_pool(self, 2, out, indices); })
      .out("adaptive_max_pool2d.out(out, indices)")
      .gradient("self", "self result1",
                [](const Gradients& g) { return adaptive_max_pool2d_backward(g.grad(), g["self"], g["result1"]); })
      .no_gradient("result1");
  aten.def("adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.adaptive_max_pool3d")
      .compute(adaptive_max_rule<3>, [](const Tensor& self, IntList, const Tensor& out,
                                        const Tensor& indices) { kernel::adaptive_max_pool(self, 3, out, indices); })
      .out("adaptive_max_pool3d.out(out, indices)")
      .gradient("self", "self result1",
                [](const Gradients& g) { return adaptive_max_pool3d_backward(g.grad(), g["self"], g["result1"]); })
      .no_gradient("result1");
}

}  // namespace calque
