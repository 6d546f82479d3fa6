#include "kernel/cpu/convolution/convolution.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>
#include <vector>

#include "calque/base/thread.h"
#include "kernel/cpu/gemm/gemm_parts.h"
#include "kernel/cpu/scratch.h"

namespace calque {
namespace {

using Sizes = std::array<int64_t, 3>;

int64_t product(const int64_t* sizes) { return sizes[0] * sizes[1] * sizes[2]; }

/// Where one spatial dimension of the output finds its numbers in the image: output position i (of those in this set) and
/// tap t meet at image position i * step + offsets[t]. A transposed convolution has one set for each remainder of the
/// output position by the stride, with those taps that meet any image position at all.
struct Axis {
  int64_t out_first = 0, out_step = 1, out_count = 0;  // output positions of the set
  int64_t step = 1;
  std::vector<int64_t> taps, offsets;
};

template <class T>
std::vector<Axis> axes_of(const Convolution<T>& g, int d) {
  std::vector<Axis> axes;
  if (!g.transposed) {
    Axis axis;
    axis.out_count = g.out_size[d];
    axis.step = g.stride[d];
    for (int64_t t = 0; t < g.kernel[d]; ++t) {
      axis.taps.push_back(t);
      axis.offsets.push_back(t * g.dilation[d] - g.padding[d]);
    }
    axes.push_back(std::move(axis));
    return axes;
  }
  for (int64_t r = 0; r < std::min(g.stride[d], g.out_size[d]); ++r) {
    Axis axis;
    axis.out_first = r;
    axis.out_step = g.stride[d];
    axis.out_count = (g.out_size[d] - r + g.stride[d] - 1) / g.stride[d];
    for (int64_t t = 0; t < g.kernel[d]; ++t) {
      const int64_t from = r + g.padding[d] - t * g.dilation[d];
      if (from % g.stride[d] != 0) continue;
      axis.taps.push_back(t);
      axis.offsets.push_back(from / g.stride[d]);
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

/// True if the three spatial dimensions can be walked with one stride, which is put in `stride`.
bool one_stride(const int64_t* sizes, const int64_t* strides, int64_t& stride) {
  int64_t expected = 0, count = 1;
  stride = 1;
  for (int d = 2; d >= 0; --d) {
    if (sizes[d] == 1) continue;
    if (count == 1)
      stride = strides[d];
    else if (strides[d] != expected)
      return false;
    count *= sizes[d];
    expected = stride * count;
  }
  return true;
}

template <class T>
class Runner {
 public:
  explicit Runner(const Convolution<T>& g) : g_(g) {
    group_in_ = g.in_channels / g.groups;
    group_out_ = g.out_channels / g.groups;
  }

  void run() {
    if (g_.batch <= 0 || group_out_ <= 0 || product(g_.out_size) <= 0) return;
    std::vector<Axis> axes[3] = {axes_of(g_, 0), axes_of(g_, 1), axes_of(g_, 2)};
    const bool depthwise = group_in_ == 1 && group_out_ == 1;  // wants lines that lie contiguous
    const bool pointwise =
        !g_.transposed && !depthwise && product(g_.kernel) == 1 && product(g_.stride) == 1 && product_padding() == 0;
    int64_t stride = 1;
    if (pointwise && one_stride(g_.in_size, g_.in_strides + 2, stride)) {
      run_set(axes[0][0], axes[1][0], axes[2][0], true, stride);
      return;
    }
    if (g_.in_strides[4] != 1 && g_.in_size[2] != 1)
      copy_image();
    else if (!depthwise && worth_spreading())
      spread_image(axes[0][0], axes[1][0], axes[2][0]);
    for (const Axis& z : axes[0])
      for (const Axis& y : axes[1])
        for (const Axis& x : axes[2]) run_set(z, y, x, false, 1);
  }

 private:
  int64_t product_padding() const { return g_.padding[0] | g_.padding[1] | g_.padding[2]; }

  /// Channels last, or any other order: a plain copy whose lines lie contiguous.
  void copy_image() {
    const int64_t positions = product(g_.in_size), planes = g_.batch * g_.in_channels;
    T* const copy = scratch<T>(Scratch::image, static_cast<size_t>(planes * positions));
    const int64_t* const s = g_.in_strides;
    const T* const in = g_.in;
    // Channels in bundles, so that neighbours in memory are used together.
    constexpr int64_t bundle = 16;
    const int64_t bundles = (g_.in_channels + bundle - 1) / bundle;
    parallel_pieces(g_.batch * bundles, g_.in_size[0] * g_.in_size[1], 1, bundle * g_.in_size[2],
                    [&](int64_t item, int64_t begin, int64_t end) {
                      const int64_t n = item / bundles, first = item % bundles * bundle;
                      const int64_t last = std::min(g_.in_channels, first + bundle);
                      for (int64_t line = begin; line < end; ++line) {
                        const T* const from = in + n * s[0] + line / g_.in_size[1] * s[2] + line % g_.in_size[1] * s[3];
                        for (int64_t x = 0; x < g_.in_size[2]; ++x)
                          for (int64_t c = first; c < last; ++c)
                            copy[(n * g_.in_channels + c) * positions + line * g_.in_size[2] + x] =
                                from[c * s[1] + x * s[4]];
                      }
                    });
    g_.in = copy;
    g_.in_strides[0] = g_.in_channels * positions;
    g_.in_strides[1] = positions;
    g_.in_strides[2] = g_.in_size[1] * g_.in_size[2];
    g_.in_strides[3] = g_.in_size[2];
    g_.in_strides[4] = 1;
  }

  /// Whether patches are packed faster, and by enough, from a copy of the image: lines are whole vectors of any instruction set,
  /// and every number is met by several taps.
  bool worth_spreading() const {
    constexpr int64_t line = 16, several = 6;
    constexpr bool numbers = std::is_same_v<T, float> || std::is_same_v<T, double>;
    return numbers && !g_.transposed && g_.out_size[2] % line == 0 && product(g_.kernel) >= several * product(g_.stride);
  }

  /// A copy of the image with zeros around it, each line by remainders of the position by the stride: then what a tap meets along a
  /// line of the output lies next to each other. The axes are changed to follow it.
  void spread_image(Axis& z, Axis& y, Axis& x) {
    Axis* const axes[3] = {&z, &y, &x};
    int64_t low[3], size[3];  // of the copy, in positions of the image
    for (int d = 0; d < 3; ++d) {
      low[d] = axes[d]->offsets.front();
      size[d] = (axes[d]->out_count - 1) * axes[d]->step + axes[d]->offsets.back() - low[d] + 1;
    }
    const int64_t step = x.step, part = (size[2] + step - 1) / step, length = part * step;
    const int64_t lines = size[0] * size[1], plane = lines * length;
    if (group_in_ * plane > std::numeric_limits<int32_t>::max()) return;
    T* const copy = scratch<T>(Scratch::image, static_cast<size_t>(g_.batch * g_.in_channels * plane));
    parallel_pieces(g_.batch * g_.in_channels, lines, 1, length, [&](int64_t item, int64_t begin, int64_t end) {
      const T* const from = g_.in + item / g_.in_channels * g_.in_strides[0] + item % g_.in_channels * g_.in_strides[1];
      for (int64_t line = begin; line < end; ++line) {
        T* const to = copy + item * plane + line * length;
        const int64_t depth = low[0] + line / size[1], height = low[1] + line % size[1];
        if (depth < 0 || depth >= g_.in_size[0] || height < 0 || height >= g_.in_size[1])
          std::fill_n(to, length, T());
        else
          spread_line(from + depth * g_.in_strides[2] + height * g_.in_strides[3], low[2], step, part, to);
      }
    });
    for (int d = 0; d < 3; ++d)
      for (int64_t& offset : axes[d]->offsets) offset -= low[d];
    for (int64_t& offset : x.offsets) offset = offset % step * part + offset / step;
    x.step = 1;
    row_offset_.reserve(static_cast<size_t>(group_in_ * product(g_.kernel)));
    for (int64_t c = 0; c < group_in_; ++c)
      for (const int64_t dz : z.offsets)
        for (const int64_t dy : y.offsets)
          for (const int64_t dx : x.offsets)
            row_offset_.push_back(static_cast<int32_t>(c * plane + (dz * size[1] + dy) * length + dx));
    const int64_t strides[5] = {g_.in_channels * plane, plane, size[1] * length, length, 1};
    std::copy_n(strides, 5, g_.in_strides);
    g_.in_size[0] = size[0], g_.in_size[1] = size[1], g_.in_size[2] = length;
    g_.in = copy;
  }

  static void every_second(const T* from, int64_t count, T* to) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8, from += 16)
      for (int64_t j = 0; j < 8; ++j) to[i + j] = from[j * 2];
    for (; i < count; ++i, from += 2) to[i] = *from;
  }

  /// Number i of part r is the image's at low + i * step + r, or 0.
  void spread_line(const T* from, int64_t low, int64_t step, int64_t part, T* to) const {
    for (int64_t r = 0; r < step; ++r, to += part) {
      const int64_t start = low + r;
      const int64_t first = std::clamp<int64_t>(start >= 0 ? 0 : (-start + step - 1) / step, 0, part);
      const int64_t last = std::clamp<int64_t>((g_.in_size[2] - start + step - 1) / step, first, part);
      std::fill_n(to, first, T());
      if (step == 1)
        std::copy_n(from + start + first, last - first, to + first);
      else if (step == 2)
        every_second(from + start + first * 2, last - first, to + first);
      else
        for (int64_t i = first; i < last; ++i) to[i] = from[start + i * step];
      std::fill_n(to + last, part - last, T());
    }
  }

  /// The weight as [out channel, in channel of the group and taps of the set], where it lies or copied.
  const T* weight_rows(const Axis& z, const Axis& y, const Axis& x) {
    const int64_t* const s = g_.weight_strides;
    const int64_t taps = static_cast<int64_t>(z.taps.size() * y.taps.size() * x.taps.size());
    const bool in_place = !g_.transposed && (g_.kernel[2] == 1 || s[4] == 1) &&
                          (g_.kernel[1] == 1 || s[3] == g_.kernel[2]) &&
                          (g_.kernel[0] == 1 || s[2] == g_.kernel[1] * g_.kernel[2]) && (group_in_ == 1 || s[1] == taps) &&
                          (g_.out_channels == 1 || s[0] == group_in_ * taps);
    if (in_place) return g_.weight;
    T* const copy = scratch<T>(Scratch::weight, static_cast<size_t>(g_.out_channels * group_in_ * taps));
    // In bundles of output channels, so that both reading and writing stay near by.
    constexpr int64_t bundle = 16;
    const int64_t bundles = (group_out_ + bundle - 1) / bundle;
    parallel_pieces(g_.groups, bundles, 1, bundle * group_in_ * taps, [&](int64_t group, int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        for (int64_t i = 0; i < group_in_; ++i)
          for (int64_t o = b * bundle; o < std::min(group_out_, (b + 1) * bundle); ++o) {
            const int64_t channel = group * group_out_ + o;
            const int64_t first = g_.transposed ? group * group_in_ + i : channel;
            const int64_t second = g_.transposed ? o : i;
            const T* const from = g_.weight + first * s[0] + second * s[1];
            T* to = copy + (channel * group_in_ + i) * taps;
            for (const int64_t tz : z.taps)
              for (const int64_t ty : y.taps)
                for (const int64_t tx : x.taps) *to++ = from[tz * s[2] + ty * s[3] + tx * s[4]];
          }
    });
    return copy;
  }

  void run_set(const Axis& z, const Axis& y, const Axis& x, bool pointwise, int64_t in_stride) {
    const Axis* const axes[3] = {&z, &y, &x};
    Patches<T> patches{};
    patches.channel_stride = g_.in_strides[1];
    patches.row_offset = row_offset_.empty() ? nullptr : row_offset_.data();
    int64_t out_strides[3], out_first = 0;
    for (int d = 0; d < 3; ++d) {
      patches.size[d] = g_.in_size[d];
      patches.stride[d] = g_.in_strides[d + 2];
      patches.out_size[d] = axes[d]->out_count;
      patches.step[d] = axes[d]->step;
      patches.taps[d] = static_cast<int64_t>(axes[d]->taps.size());
      patches.tap_offset[d] = axes[d]->offsets.data();
      out_strides[d] = g_.out_strides[d + 2] * axes[d]->out_step;
      out_first += g_.out_strides[d + 2] * axes[d]->out_first;
    }
    const int64_t taps = product(patches.taps), positions = product(patches.out_size);
    if (positions == 0) return;
    const T* const weight = weight_rows(z, y, x);

    // The output where it goes, or aside if its positions are not evenly spaced.
    T* out = g_.out + out_first;
    int64_t out_batch = g_.out_strides[0], out_channel = g_.out_strides[1], out_position = 1;
    const bool even = one_stride(patches.out_size, out_strides, out_position);
    if (!even) {
      out = scratch<T>(Scratch::output, static_cast<size_t>(g_.batch * g_.out_channels * positions));
      out_channel = positions;
      out_batch = g_.out_channels * positions;
      out_position = 1;
    }

    if (group_in_ == 1 && group_out_ == 1 && taps > 0) {
      run_depthwise(patches, weight, taps, positions, out, out_batch, out_channel, out_position);
    } else {
      std::vector<Patches<T>> items(static_cast<size_t>(pointwise ? 0 : g_.batch * g_.groups), patches);
      for (size_t i = 0; i < items.size(); ++i)
        items[i].image = image_of(static_cast<int64_t>(i) / g_.groups, static_cast<int64_t>(i) % g_.groups);
      run_parts<T>(g_.batch * g_.groups, [&](int64_t item) {
        const int64_t n = item / g_.groups, group = item % g_.groups;
        GemmPart<T> part{};
        part.row_count = group_out_;
        part.col_count = positions;
        part.k = group_in_ * taps;
        part.rows = weight + group * group_out_ * part.k;
        part.rows_row = part.k;
        part.rows_k = 1;
        if (pointwise) {
          part.cols = image_of(n, group);
          part.cols_k = g_.in_strides[1];
          part.cols_col = in_stride;
        } else {
          part.patches = &items[static_cast<size_t>(item)];
        }
        part.out = out + n * out_batch + group * group_out_ * out_channel;
        part.out_row = out_channel;
        part.out_col = out_position;
        if (g_.bias != nullptr) part.bias = g_.bias + group * group_out_ * g_.bias_stride;
        part.bias_row = g_.bias_stride;
        part.alpha = 1;
        return part;
      });
    }
    if (!even) scatter(patches, out, out_first, out_strides);
  }

  const T* image_of(int64_t n, int64_t group) const {
    return g_.in + n * g_.in_strides[0] + group * group_in_ * g_.in_strides[1];
  }

  void run_depthwise(const Patches<T>& patches, const T* weight, int64_t taps, int64_t positions, T* out, int64_t out_batch,
                     int64_t out_channel, int64_t out_position) {
    const GemmKernels<T>& kernel = gemm_kernels<T>();
    const auto numbers = static_cast<size_t>(kernel.depthwise_numbers(patches));
    const int64_t grain = 1 + (1 << 15) / (positions * taps + 1);
    parallel_for(0, g_.batch * g_.groups, grain, [&](int64_t begin, int64_t end) {
      auto* const memory = scratch<Accumulate<T>>(Scratch::block, numbers);
      for (int64_t item = begin; item < end; ++item) {
        const int64_t n = item / g_.groups, c = item % g_.groups;
        Patches<T> plane = patches;
        plane.image = image_of(n, c);
        Accumulate<T> bias = 0;
        if (g_.bias != nullptr) bias = static_cast<Accumulate<T>>(g_.bias[c * g_.bias_stride]);
        kernel.depthwise(plane, weight + c * taps, bias, out + n * out_batch + c * out_channel, out_position, memory);
      }
    });
  }

  void scatter(const Patches<T>& patches, const T* from, int64_t out_first, const int64_t* out_strides) {
    const int64_t lines = patches.out_size[0] * patches.out_size[1], length = patches.out_size[2];
    parallel_pieces(g_.batch * g_.out_channels, lines, 1, length, [&](int64_t item, int64_t begin, int64_t end) {
      const int64_t n = item / g_.out_channels, c = item % g_.out_channels;
      T* const plane = g_.out + out_first + n * g_.out_strides[0] + c * g_.out_strides[1];
      for (int64_t line = begin; line < end; ++line) {
        const T* const source = from + (item * lines + line) * length;
        T* const to = plane + line / patches.out_size[1] * out_strides[0] + line % patches.out_size[1] * out_strides[1];
        for (int64_t x = 0; x < length; ++x) to[x * out_strides[2]] = source[x];
      }
    });
  }

  Convolution<T> g_;
  int64_t group_in_, group_out_;
  std::vector<int32_t> row_offset_;  // of a spread image
};

}  // namespace

template <class T>
void convolution(const Convolution<T>& problem) {
  Runner<T>(problem).run();
}

template void convolution(const Convolution<float>&);
template void convolution(const Convolution<double>&);
template void convolution(const Convolution<BFloat16>&);
template void convolution(const Convolution<Half>&);

}  // namespace calque
