// Tensors with data and the meta device, which keeps shapes alone.
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/random.h"
#include "calque/op/library.h"

namespace calque::meta_device_test {
namespace {

TEST(MetaDevice, a_tensor_with_data_goes_there) {
  const Device meta(DeviceType::meta);
  const Tensor x = rand({2, 3}).t();
  for (const Tensor& y : {_to_copy(x, {}, {}, meta), call("aten::to.device", {x, meta, DType::float64}).to_tensor(),
                          call("aten::to.dtype_layout", {x}, {{"device", meta}}).to_tensor()}) {
    EXPECT_EQ(y.device(), meta);
    EXPECT_EQ(str(y.strides()), "[1, 3]");
    EXPECT_THROW(y.data(), UserError);
  }
  EXPECT_EQ(call("aten::to.device", {x, meta, DType::float64}).to_tensor().dtype(), DType::float64);
}

}  // namespace
}  // namespace calque::meta_device_test
