// Resampling of images, lines and volumes: upsample_* with sizes, and their .vec forms with sizes or factors.
#include <cmath>

#include "calque/op/aten/upsample.h"
#include "calque/op/aten/upsample_gradients.h"
#include "calque/sym/sym_math.h"
#include "kernel/cpu/not_implemented.h"
#include "kernel/cpu/pooling/resample.h"
#include "op/gradient/upsample.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Resample;
using kernel::ResampleScales;
using rule::OpName;
using OptScale = std::optional<double>;
using OptSizes = std::optional<SymIntList>;
using OptFactors = std::optional<ListRef<double>>;

bool has_kernel(Resample mode, int spatial, DType d) {
  const bool antialias = mode == Resample::linear_antialias || mode == Resample::cubic_antialias;
  if (d == DType::float32 || d == DType::float64) return true;
  if (is_reduced_float(d)) return !antialias;
  return d == DType::uint8 && (mode == Resample::nearest || mode == Resample::nearest_exact || spatial == 2);
}

Meta resampled(const char* op, const Tensor& self, SymIntList output_size, int spatial, Resample mode) {
  const std::string name = op;
  if (output_size.size() != static_cast<size_t>(spatial))
    throw UserError(name + ": It is expected output_size equals to " + std::to_string(spatial) + ", but got size " +
                    std::to_string(output_size.size()));
  if (self.dim() != spatial + 2)
    throw UserError(name + ": It is expected input_size equals to " + std::to_string(spatial + 2) + ", but got size " +
                    std::to_string(self.dim()));
  SymInts sizes{self.sym_size(0), self.sym_size(1)};
  for (int d = 0; d < spatial; ++d) {
    const SymInt in = self.sym_size(2 + d), out = output_size[static_cast<size_t>(d)];
    if (!check(in > 0) || !check(out > 0))
      throw UserError(name + ": Input and output sizes should be greater than 0, but got input " + str(self.sym_sizes()) +
                      " and output " + str(output_size));
    sizes.push_back(out);
  }
  if (!check(self.sym_size(1) > 0))
    throw UserError(name + ": Non-empty " + std::to_string(spatial + 2) +
                    "D data tensor expected but got a tensor with sizes " + str(self.sym_sizes()));
  if (!has_kernel(mode, spatial, self.dtype())) kernel::not_implemented(name, self.dtype());
  const MemoryFormat format = spatial >= 2 ? self.suggest_memory_format() : MemoryFormat::contiguous;
  SymInts strides = strides_for(format, sizes);
  return {std::move(sizes), std::move(strides), self.dtype(), self.device(), false};
}

// Rule and kernel for each list of arguments: with or without align_corners, one to three scales.
template <OpName op, Resample mode>
struct Nearest {
  static Meta rule1(const Tensor& x, SymIntList size, OptScale) { return resampled(op.text, x, size, 1, mode); }
  static void run1(const Tensor& x, SymIntList, OptScale w, const Tensor& out) {
    kernel::resample(x, 1, mode, false, {{{}, {}, w}}, out);
  }
  static Meta rule2(const Tensor& x, SymIntList size, OptScale, OptScale) { return resampled(op.text, x, size, 2, mode); }
  static void run2(const Tensor& x, SymIntList, OptScale h, OptScale w, const Tensor& out) {
    kernel::resample(x, 2, mode, false, {{{}, h, w}}, out);
  }
  static Meta rule3(const Tensor& x, SymIntList size, OptScale, OptScale, OptScale) {
    return resampled(op.text, x, size, 3, mode);
  }
  static void run3(const Tensor& x, SymIntList, OptScale d, OptScale h, OptScale w, const Tensor& out) {
    kernel::resample(x, 3, mode, false, {{d, h, w}}, out);
  }
};
template <OpName op, Resample mode>
struct Smooth {
  static Meta rule1(const Tensor& x, SymIntList size, bool, OptScale) { return resampled(op.text, x, size, 1, mode); }
  static void run1(const Tensor& x, SymIntList, bool align, OptScale w, const Tensor& out) {
    kernel::resample(x, 1, mode, align, {{{}, {}, w}}, out);
  }
  static Meta rule2(const Tensor& x, SymIntList size, bool, OptScale, OptScale) {
    return resampled(op.text, x, size, 2, mode);
  }
  static void run2(const Tensor& x, SymIntList, bool align, OptScale h, OptScale w, const Tensor& out) {
    kernel::resample(x, 2, mode, align, {{{}, h, w}}, out);
  }
  static Meta rule3(const Tensor& x, SymIntList size, bool, OptScale, OptScale, OptScale) {
    return resampled(op.text, x, size, 3, mode);
  }
  static void run3(const Tensor& x, SymIntList, bool align, OptScale d, OptScale h, OptScale w, const Tensor& out) {
    kernel::resample(x, 3, mode, align, {{d, h, w}}, out);
  }
};

// Exactly one of sizes and factors is given.
SymInts target_sizes(const char* op, const Tensor& input, OptSizes output_size, OptFactors factors) {
  if (output_size.has_value() == factors.has_value())
    throw UserError(std::string(op) + ": Must specify exactly one of output_size and scale_factors");
  if (output_size) return SymInts(output_size->begin(), output_size->end());
  const int64_t spatial = input.dim() - 2;
  if (spatial < 1 || factors->size() != static_cast<size_t>(spatial))
    throw UserError(std::string(op) + ": expected one scale factor for each spatial dimension of an input of sizes " +
                    str(input.sym_sizes()) + ", found " + std::to_string(factors->size()));
  SymInts sizes;
  for (size_t d = 0; d < factors->size(); ++d) {
    const double f = (*factors)[d];
    const SymInt in = input.sym_size(2 + static_cast<int64_t>(d));
    if (f == std::floor(f) && std::abs(f) < 1e9)
      sizes.push_back(in * static_cast<int64_t>(f));
    else
      sizes.push_back(sym_int(sym_float(in) * SymFloat(f)));
  }
  return sizes;
}
OptScale factor(const OptFactors& factors, size_t d) {
  return factors && d < factors->size() ? OptScale((*factors)[d]) : OptScale();
}

}  // namespace

void register_upsample(Library& aten);
void register_upsample(Library& aten) {
  using N1 = Nearest<"upsample_nearest1d", Resample::nearest>;
  using N2 = Nearest<"upsample_nearest2d", Resample::nearest>;
  using N3 = Nearest<"upsample_nearest3d", Resample::nearest>;
  using E1 = Nearest<"_upsample_nearest_exact1d", Resample::nearest_exact>;
  using E2 = Nearest<"_upsample_nearest_exact2d", Resample::nearest_exact>;
  using E3 = Nearest<"_upsample_nearest_exact3d", Resample::nearest_exact>;
  using L1 = Smooth<"upsample_linear1d", Resample::linear>;
  using L2 = Smooth<"upsample_bilinear2d", Resample::linear>;
  using L3 = Smooth<"upsample_trilinear3d", Resample::linear>;
  using C2 = Smooth<"upsample_bicubic2d", Resample::cubic>;
  using A2 = Smooth<"_upsample_bilinear2d_aa", Resample::linear_antialias>;
  using B2 = Smooth<"_upsample_bicubic2d_aa", Resample::cubic_antialias>;

  aten.def("upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor")
      .python("torch._C._nn.upsample_nearest1d")
      .compute(N1::rule1, N1::run1)
      .out("upsample_nearest1d.out")
      .tags(Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) {
        return upsample_nearest1d_backward(g.grad(), g.sym_ints("output_size"), g.sizes("self"),
                                           gradient::scale_of(g, "scales"));
      });
  aten.def("upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor")
      .python("torch._C._nn.upsample_nearest2d")
      .compute(N2::rule2, N2::run2)
      .out("upsample_nearest2d.out")
      .tags(Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) {
        return upsample_nearest2d_backward(g.grad(), g.sym_ints("output_size"), g.sizes("self"),
                                           gradient::scale_of(g, "scales_h"), gradient::scale_of(g, "scales_w"));
      });
  aten.def(
          "upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? "
          "scales_w=None) -> Tensor")
      .python("torch._C._nn.upsample_nearest3d")
      .compute(N3::rule3, N3::run3)
      .out("upsample_nearest3d.out")
      .tags(Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) {
        return upsample_nearest3d_backward(g.grad(), g.sym_ints("output_size"), g.sizes("self"),
                                           gradient::scale_of(g, "scales_d"), gradient::scale_of(g, "scales_h"),
                                           gradient::scale_of(g, "scales_w"));
      });
  aten.def("_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor")
      .python("torch._C._nn._upsample_nearest_exact1d")
      .compute(E1::rule1, E1::run1)
      .out("_upsample_nearest_exact1d.out")
      .tags(Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) {
        return _upsample_nearest_exact1d_backward(g.grad(), g.sym_ints("output_size"), g.sizes("self"),
                                                  gradient::scale_of(g, "scales"));
      });
  aten.def(
          "_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> "
          "Tensor")
      .python("torch._C._nn._upsample_nearest_exact2d")
      .compute(E2::rule2, E2::run2)
      .out("_upsample_nearest_exact2d.out")
      .tags(Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) {
        return _upsample_nearest_exact2d_backward(g.grad(), g.sym_ints("output_size"), g.sizes("self"),
                                                  gradient::scale_of(g, "scales_h"), gradient::scale_of(g, "scales_w"));
      });
  aten.def(
          "_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? "
          "scales_w=None) -> Tensor")
      .python("torch._C._nn._upsample_nearest_exact3d")
      .compute(E3::rule3, E3::run3)
      .out("_upsample_nearest_exact3d.out")
      .tags(Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) {
        return _upsample_nearest_exact3d_backward(g.grad(), g.sym_ints("output_size"), g.sizes("self"),
                                                  gradient::scale_of(g, "scales_d"), gradient::scale_of(g, "scales_h"),
                                                  gradient::scale_of(g, "scales_w"));
      });
  aten.def("upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor")
      .python("torch._C._nn.upsample_linear1d")
      .compute(L1::rule1, L1::run1)
      .out("upsample_linear1d.out")
      .tags(Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) {
        return upsample_linear1d_backward(g.grad(), g.sym_ints("output_size"), g.sizes("self"), g.flag("align_corners"),
                                          gradient::scale_of(g, "scales"));
      });
  aten.def(
          "upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
          "scales_w=None) -> Tensor")
      .tags(Tag::always_apart)
      .python("torch._C._nn.upsample_bilinear2d")
      .compute(L2::rule2, L2::run2)
      .out("upsample_bilinear2d.out", Tag::decomposes)
      .tags(Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) {
        return upsample_bilinear2d_backward(g.grad(), g.sym_ints("output_size"), g.sizes("self"), g.flag("align_corners"),
                                            gradient::scale_of(g, "scales_h"), gradient::scale_of(g, "scales_w"));
      });
  aten.def(
          "upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? "
          "scales_h=None, float? scales_w=None) -> Tensor")
      .python("torch._C._nn.upsample_trilinear3d")
      .compute(L3::rule3, L3::run3)
      .out("upsample_trilinear3d.out", Tag::decomposes)
      .tags(Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) {
        return upsample_trilinear3d_backward(g.grad(), g.sym_ints("output_size"), g.sizes("self"), g.flag("align_corners"),
                                             gradient::scale_of(g, "scales_d"), gradient::scale_of(g, "scales_h"),
                                             gradient::scale_of(g, "scales_w"));
      });
  aten.def(
          "upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
          "scales_w=None) -> Tensor")
      .tags(Tag::always_apart)
      .python("torch._C._nn.upsample_bicubic2d")
      .compute(C2::rule2, C2::run2)
      .out("upsample_bicubic2d.out")
      .tags(Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) {
        return upsample_bicubic2d_backward(g.grad(), g.sym_ints("output_size"), g.sizes("self"), g.flag("align_corners"),
                                           gradient::scale_of(g, "scales_h"), gradient::scale_of(g, "scales_w"));
      });
  aten.def(
          "_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
          "scales_w=None) -> Tensor")
      .python("torch._C._nn._upsample_bilinear2d_aa")
      .compute(A2::rule2, A2::run2)
      .out("_upsample_bilinear2d_aa.out")
      .tags(Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) {
        return _upsample_bilinear2d_aa_backward(g.grad(), g.sym_ints("output_size"), g.sizes("self"),
                                                g.flag("align_corners"), gradient::scale_of(g, "scales_h"),
                                                gradient::scale_of(g, "scales_w"));
      });
  aten.def(
          "_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
          "scales_w=None) -> Tensor")
      .python("torch._C._nn._upsample_bicubic2d_aa")
      .compute(B2::rule2, B2::run2)
      .out("_upsample_bicubic2d_aa.out")
      .tags(Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) {
        return _upsample_bicubic2d_aa_backward(g.grad(), g.sym_ints("output_size"), g.sizes("self"), g.flag("align_corners"),
                                               gradient::scale_of(g, "scales_h"), gradient::scale_of(g, "scales_w"));
      });

  aten.def("upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
      .python("torch._C._nn.upsample_nearest1d")
      .composite([](const Tensor& x, OptSizes size, OptFactors f) {
        return upsample_nearest1d(x, target_sizes("upsample_nearest1d", x, size, f), factor(f, 0));
      });
  aten.def("upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
      .tags(Tag::core_composite)
      .python("torch._C._nn.upsample_nearest2d")
      .composite([](const Tensor& x, OptSizes size, OptFactors f) {
        return upsample_nearest2d(x, target_sizes("upsample_nearest2d", x, size, f), factor(f, 0), factor(f, 1));
      })
      .out("upsample_nearest2d.vec_out")
      .tags(Tag::dense_out, Tag::core);
  aten.def("upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
      .python("torch._C._nn.upsample_nearest3d")
      .composite([](const Tensor& x, OptSizes size, OptFactors f) {
        return upsample_nearest3d(x, target_sizes("upsample_nearest3d", x, size, f), factor(f, 0), factor(f, 1),
                                  factor(f, 2));
      });
  aten.def("_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
      .python("torch._C._nn._upsample_nearest_exact1d")
      .composite([](const Tensor& x, OptSizes size, OptFactors f) {
        return _upsample_nearest_exact1d(x, target_sizes("_upsample_nearest_exact1d", x, size, f), factor(f, 0));
      });
  aten.def("_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
      .python("torch._C._nn._upsample_nearest_exact2d")
      .composite([](const Tensor& x, OptSizes size, OptFactors f) {
        return _upsample_nearest_exact2d(x, target_sizes("_upsample_nearest_exact2d", x, size, f), factor(f, 0),
                                         factor(f, 1));
      });
  aten.def("_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
      .python("torch._C._nn._upsample_nearest_exact3d")
      .composite([](const Tensor& x, OptSizes size, OptFactors f) {
        return _upsample_nearest_exact3d(x, target_sizes("_upsample_nearest_exact3d", x, size, f), factor(f, 0),
                                         factor(f, 1), factor(f, 2));
      });
  aten.def(
          "upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor")
      .python("torch._C._nn.upsample_linear1d")
      .composite([](const Tensor& x, OptSizes size, bool align, OptFactors f) {
        return upsample_linear1d(x, target_sizes("upsample_linear1d", x, size, f), align, factor(f, 0));
      });
  aten.def(
          "upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
          "Tensor")
      .tags(Tag::core_composite)
      .python("torch._C._nn.upsample_bilinear2d")
      .composite([](const Tensor& x, OptSizes size, bool align, OptFactors f) {
        return upsample_bilinear2d(x, target_sizes("upsample_bilinear2d", x, size, f), align, factor(f, 0), factor(f, 1));
      })
      .out("upsample_bilinear2d.vec_out")
      .tags(Tag::dense_out, Tag::core);
  aten.def(
          "upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
          "Tensor")
      .python("torch._C._nn.upsample_trilinear3d")
      .composite([](const Tensor& x, OptSizes size, bool align, OptFactors f) {
        return upsample_trilinear3d(x, target_sizes("upsample_trilinear3d", x, size, f), align, factor(f, 0), factor(f, 1),
                                    factor(f, 2));
      });
  aten.def(
          "upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
          "Tensor")
      .python("torch._C._nn.upsample_bicubic2d")
      .composite([](const Tensor& x, OptSizes size, bool align, OptFactors f) {
        return upsample_bicubic2d(x, target_sizes("upsample_bicubic2d", x, size, f), align, factor(f, 0), factor(f, 1));
      });
  aten.def(
          "_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
          "Tensor")
      .python("torch._C._nn._upsample_bilinear2d_aa")
      .composite([](const Tensor& x, OptSizes size, bool align, OptFactors f) {
        return _upsample_bilinear2d_aa(x, target_sizes("_upsample_bilinear2d_aa", x, size, f), align, factor(f, 0),
                                       factor(f, 1));
      });
  aten.def(
          "_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
          "Tensor")
      .python("torch._C._nn._upsample_bicubic2d_aa")
      .composite([](const Tensor& x, OptSizes size, bool align, OptFactors f) {
        return _upsample_bicubic2d_aa(x, target_sizes("_upsample_bicubic2d_aa", x, size, f), align, factor(f, 0),
                                      factor(f, 1));
      });
}

}  // namespace calque
