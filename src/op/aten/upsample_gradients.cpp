// The gradients of resampling.
#include "calque/op/aten/upsample.h"
#include "kernel/cpu/not_implemented.h"
#include "kernel/cpu/pooling/resample.h"
#include "op/gradient/upsample.h"
#include "op/rule/geometry.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Resample;
using rule::OpName;
using OptScale = std::optional<double>;

Meta resampled_from(const char* op, const Tensor& grad, SymIntList output_size, SymIntList input_size, int spatial,
                    Resample mode) {
  const std::string text = op;
  const auto n = static_cast<size_t>(spatial);
  if (output_size.size() != n)
    throw UserError(text + ": It is expected output_size equals to " + std::to_string(spatial) + ", but got size " +
                    std::to_string(output_size.size()));
  if (input_size.size() != n + 2)
    throw UserError(text + ": It is expected input_size equals to " + std::to_string(spatial + 2) + ", but got size " +
                    std::to_string(input_size.size()));
  SymInts expected{input_size[0], input_size[1]};
  for (size_t d = 0; d < n; ++d) {
    if (!check(input_size[2 + d] > 0) || !check(output_size[d] > 0))
      throw UserError(text + ": Input and output sizes should be greater than 0, but got input " + str(input_size) +
                      " and output " + str(output_size));
    expected.push_back(output_size[d]);
  }
  if (!rule::equal_sizes(grad.sym_sizes(), expected))
    throw UserError(text + ": expected grad_output of sizes " + str(SymIntList(expected)) + ", found " +
                    str(grad.sym_sizes()));
  const bool antialias = mode == Resample::linear_antialias || mode == Resample::cubic_antialias;
  if (!is_floating(grad.dtype()) || is_float8(grad.dtype()) || (antialias && is_reduced_float(grad.dtype())))
    kernel::not_implemented(text, grad.dtype());
  SymInts sizes(input_size.begin(), input_size.end());
  // Where PyTorch's kernel has channels last.
  const bool nearest = mode == Resample::nearest || mode == Resample::nearest_exact;
  const bool keeps_format = mode == Resample::cubic ? false : nearest ? spatial == 2 : spatial >= 2;
  SymInts strides = strides_for(keeps_format ? grad.suggest_memory_format() : MemoryFormat::contiguous, sizes);
  return {std::move(sizes), std::move(strides), grad.dtype(), grad.device(), false};
}

// Rule and kernel for each list of arguments, as those of the forward operators.
template <OpName op, Resample mode>
struct NearestBack {
  static Meta rule1(const Tensor& g, SymIntList out, SymIntList in, OptScale) {
    return resampled_from(op.text, g, out, in, 1, mode);
  }
  static void run1(const Tensor& g, SymIntList, SymIntList, OptScale w, const Tensor& to) {
    kernel::resample_backward(g, 1, mode, false, {{{}, {}, w}}, to);
  }
  static Meta rule2(const Tensor& g, SymIntList out, SymIntList in, OptScale, OptScale) {
    return resampled_from(op.text, g, out, in, 2, mode);
  }
  static void run2(const Tensor& g, SymIntList, SymIntList, OptScale h, OptScale w, const Tensor& to) {
    kernel::resample_backward(g, 2, mode, false, {{{}, h, w}}, to);
  }
  static Meta rule3(const Tensor& g, SymIntList out, SymIntList in, OptScale, OptScale, OptScale) {
    return resampled_from(op.text, g, out, in, 3, mode);
  }
  static void run3(const Tensor& g, SymIntList, SymIntList, OptScale d, OptScale h, OptScale w, const Tensor& to) {
    kernel::resample_backward(g, 3, mode, false, {{d, h, w}}, to);
  }
};
template <OpName op, Resample mode>
struct SmoothBack {
  static Meta rule1(const Tensor& g, SymIntList out, SymIntList in, bool, OptScale) {
    return resampled_from(op.text, g, out, in, 1, mode);
  }
  static void run1(const Tensor& g, SymIntList, SymIntList, bool align, OptScale w, const Tensor& to) {
    kernel::resample_backward(g, 1, mode, align, {{{}, {}, w}}, to);
  }
  static Meta rule2(const Tensor& g, SymIntList out, SymIntList in, bool, OptScale, OptScale) {
    return resampled_from(op.text, g, out, in, 2, mode);
  }
  static void run2(const Tensor& g, SymIntList, SymIntList, bool align, OptScale h, OptScale w, const Tensor& to) {
    kernel::resample_backward(g, 2, mode, align, {{{}, h, w}}, to);
  }
  static Meta rule3(const Tensor& g, SymIntList out, SymIntList in, bool, OptScale, OptScale, OptScale) {
    return resampled_from(op.text, g, out, in, 3, mode);
  }
  static void run3(const Tensor& g, SymIntList, SymIntList, bool align, OptScale d, OptScale h, OptScale w,
                   const Tensor& to) {
    kernel::resample_backward(g, 3, mode, align, {{d, h, w}}, to);
  }
};

}  // namespace

void register_upsample_gradients(Library& aten);
void register_upsample_gradients(Library& aten) {
  using N1 = NearestBack<"upsample_nearest1d_backward", Resample::nearest>;
  aten.def(
          "upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales=None) "
          "-> Tensor")
      .compute(N1::rule1, N1::run1)
      .out("upsample_nearest1d_backward.grad_input(grad_input)")
      .tags(Tag::strided_out)
      .gradient("grad_output", "", [](const Gradients& g) {
        return upsample_nearest1d(g.grad(), g.sym_ints("output_size"), gradient::scale_of(g, "scales"));
      });
  using N2 = NearestBack<"upsample_nearest2d_backward", Resample::nearest>;
  aten.def(
          "upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? "
          "scales_h=None, float? scales_w=None) -> Tensor")
      .compute(N2::rule2, N2::run2)
      .out("upsample_nearest2d_backward.grad_input(grad_input)")
      .tags(Tag::strided_out)
      .gradient("grad_output", "", [](const Gradients& g) {
        return upsample_nearest2d(g.grad(), g.sym_ints("output_size"), gradient::scale_of(g, "scales_h"),
                                  gradient::scale_of(g, "scales_w"));
      });
  using N3 = NearestBack<"upsample_nearest3d_backward", Resample::nearest>;
  aten.def(
          "upsample_nearest3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? "
          "scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor")
      .compute(N3::rule3, N3::run3)
      .out("upsample_nearest3d_backward.grad_input(grad_input)")
      .tags(Tag::strided_out)
      .gradient("grad_output", "", [](const Gradients& g) {
        return upsample_nearest3d(g.grad(), g.sym_ints("output_size"), gradient::scale_of(g, "scales_d"),
                                  gradient::scale_of(g, "scales_h"), gradient::scale_of(g, "scales_w"));
      });
  using E1 = NearestBack<"_upsample_nearest_exact1d_backward", Resample::nearest_exact>;
  aten.def(
          "_upsample_nearest_exact1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? "
          "scales=None) -> Tensor")
      .compute(E1::rule1, E1::run1)
      .out("_upsample_nearest_exact1d_backward.grad_input(grad_input)")
      .tags(Tag::strided_out)
      .gradient("grad_output", "", [](const Gradients& g) {
        return _upsample_nearest_exact1d(g.grad(), g.sym_ints("output_size"), gradient::scale_of(g, "scales"));
      });
  using E2 = NearestBack<"_upsample_nearest_exact2d_backward", Resample::nearest_exact>;
  aten.def(
          "_upsample_nearest_exact2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? "
          "scales_h=None, float? scales_w=None) -> Tensor")
      .compute(E2::rule2, E2::run2)
      .out("_upsample_nearest_exact2d_backward.grad_input(grad_input)")
      .tags(Tag::strided_out)
      .gradient("grad_output", "", [](const Gradients& g) {
        return _upsample_nearest_exact2d(g.grad(), g.sym_ints("output_size"), gradient::scale_of(g, "scales_h"),
                                         gradient::scale_of(g, "scales_w"));
      });
  using E3 = NearestBack<"_upsample_nearest_exact3d_backward", Resample::nearest_exact>;
  aten.def(
          "_upsample_nearest_exact3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? "
          "scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor")
      .compute(E3::rule3, E3::run3)
      .out("_upsample_nearest_exact3d_backward.grad_input(grad_input)")
      .tags(Tag::strided_out)
      .gradient("grad_output", "", [](const Gradients& g) {
        return _upsample_nearest_exact3d(g.grad(), g.sym_ints("output_size"), gradient::scale_of(g, "scales_d"),
                                         gradient::scale_of(g, "scales_h"), gradient::scale_of(g, "scales_w"));
      });
  using L1 = SmoothBack<"upsample_linear1d_backward", Resample::linear>;
  aten.def(
          "upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, bool align_corners, "
          "float? scales=None) -> Tensor")
      .compute(L1::rule1, L1::run1)
      .out("upsample_linear1d_backward.grad_input(grad_input)")
      .tags(Tag::strided_out)
      .gradient("grad_output", "", [](const Gradients& g) {
        return upsample_linear1d(g.grad(), g.sym_ints("output_size"), g.flag("align_corners"),
                                 gradient::scale_of(g, "scales"));
      });
  using L2 = SmoothBack<"upsample_bilinear2d_backward", Resample::linear>;
  aten.def(
          "upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool "
          "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor")
      .compute(L2::rule2, L2::run2)
      .out("upsample_bilinear2d_backward.grad_input(grad_input)")
      .tags(Tag::strided_out)
      .gradient("grad_output", "", [](const Gradients& g) {
        return upsample_bilinear2d(g.grad(), g.sym_ints("output_size"), g.flag("align_corners"),
                                   gradient::scale_of(g, "scales_h"), gradient::scale_of(g, "scales_w"));
      });
  using L3 = SmoothBack<"upsample_trilinear3d_backward", Resample::linear>;
  aten.def(
          "upsample_trilinear3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, bool "
          "align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor")
      .compute(L3::rule3, L3::run3)
      .out("upsample_trilinear3d_backward.grad_input(grad_input)")
      .tags(Tag::strided_out)
      .gradient("grad_output", "", [](const Gradients& g) {
        return upsample_trilinear3d(g.grad(), g.sym_ints("output_size"), g.flag("align_corners"),
                                    gradient::scale_of(g, "scales_d"), gradient::scale_of(g, "scales_h"),
                                    gradient::scale_of(g, "scales_w"));
      });
  using C2 = SmoothBack<"upsample_bicubic2d_backward", Resample::cubic>;
  aten.def(
          "upsample_bicubic2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, "
          "float? scales_h=None, float? scales_w=None) -> Tensor")
      .compute(C2::rule2, C2::run2)
      .out("upsample_bicubic2d_backward.grad_input(grad_input)")
      .tags(Tag::strided_out)
      .gradient("grad_output", "", [](const Gradients& g) {
        return upsample_bicubic2d(g.grad(), g.sym_ints("output_size"), g.flag("align_corners"),
                                  gradient::scale_of(g, "scales_h"), gradient::scale_of(g, "scales_w"));
      });
  using A2 = SmoothBack<"_upsample_bilinear2d_aa_backward", Resample::linear_antialias>;
  aten.def(
          "_upsample_bilinear2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool "
          "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor")
      .compute(A2::rule2, A2::run2)
      .out("_upsample_bilinear2d_aa_backward.grad_input(grad_input)")
      .tags(Tag::strided_out)
      .gradient("grad_output", "", [](const Gradients& g) {
        return _upsample_bilinear2d_aa(g.grad(), g.sym_ints("output_size"), g.flag("align_corners"),
                                       gradient::scale_of(g, "scales_h"), gradient::scale_of(g, "scales_w"));
      });
  using B2 = SmoothBack<"_upsample_bicubic2d_aa_backward", Resample::cubic_antialias>;
  aten.def(
          "_upsample_bicubic2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool "
          "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor")
      .compute(B2::rule2, B2::run2)
      .out("_upsample_bicubic2d_aa_backward.grad_input(grad_input)")
      .tags(Tag::strided_out)
      .gradient("grad_output", "", [](const Gradients& g) {
        return _upsample_bicubic2d_aa(g.grad(), g.sym_ints("output_size"), g.flag("align_corners"),
                                      gradient::scale_of(g, "scales_h"), gradient::scale_of(g, "scales_w"));
      });
}

}  // namespace calque
