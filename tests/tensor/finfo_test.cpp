// The limits of floating-point dtypes; the numbers are torch.finfo's.
#include "calque/tensor/finfo.h"

#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/tensor/scalar.h"
#include "support/error_support.h"

namespace calque::finfo_test {
namespace {

TEST(Finfo, limits_are_those_of_pytorch) {
  EXPECT_EQ(largest_finite(DType::float16), 65504);
  EXPECT_EQ(largest_finite(DType::bfloat16), 3.3895313892515355e38);
  EXPECT_EQ(largest_finite(DType::float32), 3.4028234663852886e38);
  EXPECT_EQ(largest_finite(DType::float64), 1.7976931348623157e308);
  EXPECT_EQ(largest_finite(DType::float8_e4m3fn), 448);
  EXPECT_EQ(largest_finite(DType::float8_e5m2), 57344);
  EXPECT_EQ(largest_finite(DType::float8_e4m3fnuz), 240);
  EXPECT_EQ(largest_finite(DType::float8_e5m2fnuz), 57344);
  EXPECT_EQ(largest_finite(DType::float8_e8m0fnu), 1.7014118346046923e38);
  EXPECT_EQ(largest_finite(DType::complex64), 3.4028234663852886e38);
  EXPECT_EQ(lowest_finite(DType::float16), -65504);
  EXPECT_EQ(lowest_finite(DType::float8_e8m0fnu), 5.877471754111438e-39);
}

TEST(Finfo, integers_have_none) {
  EXPECT_EQ(test::error_of([] { largest_finite(DType::int64); }),
            "finfo: int64 is no floating-point dtype; cast the tensor to one first");
}

TEST(Finfo, a_number_beyond_the_largest_does_not_convert) {
  EXPECT_EQ(static_cast<float>(Scalar(448.0).to<Float8E4M3FN>()), 448);
  EXPECT_EQ(test::error_of([] { Scalar(500.0).to<Float8E4M3FN>(); }),
            "value 500.0 cannot be converted to float8_e4m3fn without overflow");
}

}  // namespace
}  // namespace calque::finfo_test
