// Max pooling of float32 line by line beside a plain loop over every window: maxima and where they are, to the last bit.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "calque/op/aten/pooling.h"
#include "calque/op/make.h"

namespace calque::pooling_test {
namespace {

struct Window {
  int64_t kernel, stride, padding, dilation;
};

// Numbers with equal ones among them, infinities and NaN.
std::vector<float> numbers(size_t count, unsigned seed) {
  std::mt19937 chance(seed);
  std::vector<float> out(count);
  for (float& x : out) {
    x = static_cast<float>(static_cast<int>(chance() % 41) - 20);
    if (chance() % 97 == 0) x = std::numeric_limits<float>::quiet_NaN();
    if (chance() % 23 == 0) x = -std::numeric_limits<float>::infinity();
  }
  return out;
}

void expect_maxima(int64_t height, int64_t width, const Window& w) {
  const std::vector<float> image =
      numbers(static_cast<size_t>(2 * height * width), static_cast<unsigned>(width * 8 + w.stride));
  const Tensor in = from_blob(const_cast<float*>(image.data()), {1, 2, height, width}, DType::float32);
  const auto [out, at] = max_pool2d_with_indices(in, {w.kernel, w.kernel}, {w.stride, w.stride}, {w.padding, w.padding},
                                                 {w.dilation, w.dilation}, false);
  const int64_t rows = out.size(2), columns = out.size(3);
  // The numbers are whole and small: bfloat16 has them too.
  const auto [narrow, narrow_at] =
      max_pool2d_with_indices(in.to(DType::bfloat16), {w.kernel, w.kernel}, {w.stride, w.stride}, {w.padding, w.padding},
                              {w.dilation, w.dilation}, false);
  EXPECT_TRUE(narrow_at.equal(at));
  EXPECT_TRUE(narrow.nan_to_num(77.0).to(DType::float32).equal(out.nan_to_num(77.0)));
  for (int64_t i = 0; i < 2 * rows * columns; ++i) {
    const int64_t plane = i / (rows * columns), y = i / columns % rows, x = i % columns;
    float best = -std::numeric_limits<float>::infinity();
    int64_t place = -1;
    for (int64_t a = 0; a < w.kernel; ++a)
      for (int64_t b = 0; b < w.kernel; ++b) {
        const int64_t from_y = y * w.stride - w.padding + a * w.dilation, from_x = x * w.stride - w.padding + b * w.dilation;
        if (from_y < 0 || from_y >= height || from_x < 0 || from_x >= width) continue;
        const float v = image[static_cast<size_t>((plane * height + from_y) * width + from_x)];
        const bool wins = v > best || std::isnan(v);
        if (wins || place < 0) place = from_y * width + from_x;
        if (wins) best = v;
      }
    const float found = out.data_as<float>()[i];
    ASSERT_TRUE(found == best || (std::isnan(found) && std::isnan(best))) << i << ": " << found << ", expected " << best;
    ASSERT_EQ(at.data_as<int64_t>()[i], place) << i;
  }
}

TEST(MaxPooling, is_a_plain_loop_at_every_width) {
  for (const Window& w : {Window{3, 2, 1, 1}, Window{2, 2, 0, 1}, Window{3, 1, 1, 1}, Window{2, 1, 0, 2}, Window{3, 3, 1, 1},
                          Window{4, 2, 2, 1}, Window{3, 2, 1, 2}})
    for (int64_t width = 5; width < 80; width += 3) expect_maxima(9, width, w);
  expect_maxima(112, 112, {3, 2, 1, 1});
}

}  // namespace
}  // namespace calque::pooling_test
