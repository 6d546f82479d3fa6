#include "kernel/cpu/random/random_fill.h"

#include <cstdio>
#include <numbers>

namespace calque {
namespace {

struct Dim {
  int64_t size;
  int64_t out_stride;
  int64_t in_stride;
};

// Should `inner` and `outer` change places? 1 yes, -1 no, 0 undecided. PyTorch's rule: the first operand whose strides
// differ decides, a zero stride says nothing, and of equal strides the larger size goes outside.
int order(const Dim& inner, const Dim& outer, bool with_input) {
  const int64_t pairs[2][2] = {{inner.out_stride, outer.out_stride}, {inner.in_stride, outer.in_stride}};
  for (int k = 0; k < (with_input ? 2 : 1); ++k) {
    const auto [a, b] = pairs[k];
    if (a == 0 || b == 0) continue;
    if (a != b) return a < b ? -1 : 1;
    if (inner.size > outer.size) return 1;
  }
  return 0;
}

// Insertion sort as PyTorch's: the order is partial, so the algorithm is part of the result.
void sort_dims(SmallVector<Dim, 6>& dims, bool with_input) {
  for (size_t i = 1; i < dims.size(); ++i) {
    size_t moving = i;
    for (size_t j = i; j-- > 0;) {
      const int decided = order(dims[j], dims[moving], with_input);
      if (decided > 0) {
        std::swap(dims[j], dims[moving]);
        moving = j;
      } else if (decided < 0) {
        break;
      }
    }
  }
}

FillWalk walk_of(SmallVector<Dim, 6>& dims, bool with_input) {
  sort_dims(dims, with_input);
  FillWalk walk;
  for (const Dim& d : dims) {
    walk.numel *= d.size;
    if (d.size == 1) continue;
    if (!walk.sizes.empty()) {
      int64_t& last = walk.sizes.back();
      if (d.out_stride == last * walk.out_strides.back() && d.in_stride == last * walk.in_strides.back()) {
        last *= d.size;
        continue;
      }
    }
    walk.sizes.push_back(d.size);
    walk.out_strides.push_back(d.out_stride);
    walk.in_strides.push_back(d.in_stride);
  }
  if (walk.sizes.empty()) {
    walk.sizes.push_back(1);
    walk.out_strides.push_back(0);
    walk.in_strides.push_back(0);
  }
  return walk;
}

// PyTorch refuses expanded outputs only; overlaps that need more than a look at the strides it lets pass.
void check_no_overlap(const TensorBase& out, const char* op) {
  if (out.numel() == 0) return;
  for (size_t d = 0; d < out.sizes().size(); ++d)
    if (out.sizes()[d] > 1 && out.strides()[d] == 0)
      throw UserError(std::string(op) + ": more than one element of the written-to tensor refers to a single memory " +
                      "location (sizes " + str(out.sizes()) + ", strides " + str(out.strides()) + "); clone() it first");
}

}  // namespace

FillWalk make_fill_walk(const TensorBase& out, const char* op, const TensorBase* in) {
  check_no_overlap(out, op);
  const IntList sizes = out.sizes();
  SmallVector<Dim, 6> dims;
  size_t pad = 0;
  if (in != nullptr) {
    bool fits = in->dim() <= out.dim();
    if (fits) pad = sizes.size() - in->sizes().size();
    for (size_t d = 0; fits && d < in->sizes().size(); ++d) fits = in->sizes()[d] == 1 || in->sizes()[d] == sizes[pad + d];
    if (!fits)
      throw UserError(std::string(op) + ": the probabilities' sizes " + str(in->sizes()) +
                      " do not broadcast to the output's " + str(sizes));
  }
  for (size_t d = sizes.size(); d-- > 0;) {
    const bool moves = in != nullptr && d >= pad && in->sizes()[d - pad] != 1;
    dims.push_back({sizes[d], out.strides()[d], moves ? in->strides()[d - pad] : 0});
  }
  return walk_of(dims, in != nullptr);
}

FillWalk make_component_walk(const TensorBase& out, const char* op) {
  check_no_overlap(out, op);
  SmallVector<Dim, 6> dims;
  dims.push_back({2, 1, 0});
  for (size_t d = out.sizes().size(); d-- > 0;) dims.push_back({out.sizes()[d], out.strides()[d] * 2, 0});
  return walk_of(dims, false);
}

std::string short_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

void require(bool holds, const char* op, const char* expected, double found) {
  if (!holds) throw UserError(std::string(op) + ": expected " + expected + ", found " + short_text(found));
}

void refuse_dtype(const char* op, DType dtype, const char* expected) {
  throw UserError(ErrorKind::unsupported_operator, std::string(op) + ": no kernel for an output of dtype " +
                                                       std::string(name(dtype)) + "; expected " + expected);
}

double draw_normal(Generator& g) {
  if (g.next_double_normal) {
    const double kept = *g.next_double_normal;
    g.next_double_normal.reset();
    return kept;
  }
  const double u1 = draw_unit<double>(g);
  const double u2 = draw_unit<double>(g);
  const double radius = std::sqrt(-2.0 * std::log1p(-u2));
  const double theta = 2.0 * std::numbers::pi * u1;
  g.next_double_normal = radius * std::sin(theta);
  return radius * std::cos(theta);
}

}  // namespace calque
