// Autocast regions, run. That traces under autocast are PyTorch's is compared live (tests/peers/capture.py).
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/einsum.h"
#include "calque/op/aten/losses.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/autocast.h"

namespace calque::autocast_test {
namespace {

TEST(Autocast, casts_by_operator) {
  const Tensor x = rand({3, 4}), w = rand({4, 5});
  {
    const AutocastScope autocast;
    EXPECT_EQ(mm(x, w).dtype(), DType::bfloat16);
    EXPECT_EQ(matmul(x, w).dtype(), DType::bfloat16);
    EXPECT_EQ(linear(x, w.t()).dtype(), DType::bfloat16);
    EXPECT_EQ(einsum("ij,jk->ik", {x, w}).dtype(), DType::bfloat16);  // its parts are cast
    EXPECT_EQ(softmax(x, -1).dtype(), DType::float32);
    EXPECT_EQ(mse_loss(x.to(DType::bfloat16), x).dtype(), DType::float32);
    EXPECT_EQ(cat({x.to(DType::bfloat16), x}).dtype(), DType::float32);
    EXPECT_EQ(cat({x.to(DType::bfloat16), x.to(DType::bfloat16)}).dtype(), DType::bfloat16);
    EXPECT_EQ(mm(x.to(DType::float64), w.to(DType::float64)).dtype(), DType::float64);
    EXPECT_EQ(mm(x.to(DType::int64), w.to(DType::int64)).dtype(), DType::int64);
    EXPECT_TRUE(equal(mm(x, w), [&] {
      const AutocastScope off(DeviceType::cpu, {}, false);
      return mm(x.to(DType::bfloat16), w.to(DType::bfloat16));
    }()));
  }
  EXPECT_EQ(mm(x, w).dtype(), DType::float32);
}

TEST(Autocast, nests) {
  const Tensor x = rand({3, 3});
  const AutocastScope outer(DeviceType::cpu, DType::float16);
  EXPECT_EQ(mm(x, x).dtype(), DType::float16);
  {
    const AutocastScope off(DeviceType::cpu, {}, false);
    EXPECT_EQ(mm(x, x).dtype(), DType::float32);
    const AutocastScope on(DeviceType::cpu, DType::bfloat16);
    EXPECT_EQ(mm(x, x).dtype(), DType::bfloat16);
  }
  const AutocastScope again;
  EXPECT_EQ(mm(x, x).dtype(), DType::float16);
  EXPECT_EQ(autocast_region().dtype, DType::float16);
}

TEST(Autocast, remembers_casts_of_parameters) {
  Tensor w = rand({3, 3});
  w.requires_grad_();
  const Tensor x = rand({3, 3});
  const AutocastScope autocast;
  const Tensor first = mm(x, w);
  {
    const GradModeScope no_grad(false);
    w.fill_(0);
  }
  EXPECT_TRUE(equal(mm(x, w), first));  // the cast that was made before, as PyTorch's
  const AutocastScope uncached(DeviceType::cpu, {}, true, false);
  EXPECT_TRUE(equal(mm(x, w), zeros({3, 3}, DType::bfloat16)));
}

TEST(Autocast, refuses_what_it_does_not_know) {
  const Tensor x = rand({3, 3});
  {
    const AutocastScope wide(DeviceType::cpu, DType::float64);
    EXPECT_FALSE(autocast_region().enabled);
    EXPECT_EQ(mm(x, x).dtype(), DType::float32);
  }
  EXPECT_THROW(AutocastScope{DeviceType::meta}, UserError);
  const AutocastScope absent(DeviceType::cuda);
  EXPECT_EQ(mm(x, x).dtype(), DType::float32);
  const AutocastScope autocast;
  EXPECT_THROW(cat({x.to(DType::float16), x.to(DType::bfloat16)}), UserError);
}

}  // namespace
}  // namespace calque::autocast_test
