#include "calque/op/aten/activation.h"
#include "calque/op/aten/attention.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/convolution.h"
#include "calque/op/aten/einsum.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/losses.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/normalization.h"
#include "calque/op/aten/pooling.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/autocast.h"
#include "programs.h"

namespace calque::capture {

void add_regions(Programs& programs) {
  const Adder add(programs);
  add("no_grad_region", [](const Tensor& x, const Tensor& w) {
    const Tensor y = x + 1;
    Tensor z, v;
    {
      const GradModeScope no_grad(false);
      z = y.sin();
      v = matmul(z, w);
    }
    const Tensor a = z * 2;
    Tensor q;
    {
      const GradModeScope grad(true);
      q = a.cos();
    }
    return q + v;
  });
  add("no_grad_nested", [](const Tensor& x, const Tensor& w) {
    Tensor y;
    {
      const GradModeScope no_grad(false);
      y = x + 1;
      {
        const GradModeScope grad(true);
        y = y * 2;
      }
      y = y - x;
    }
    return matmul(y, w);
  });
  add("autocast_matmul", [](const Tensor& x, const Tensor& w) {
    const Tensor y = x + 1;
    const AutocastScope autocast(DeviceType::cpu, DType::bfloat16);
    const Tensor z = matmul(y, w);
    Tensor u;
    {
      const AutocastScope off(DeviceType::cpu, {}, false);
      u = matmul(z.to(DType::float32), w);
    }
    const Tensor q = softmax(z, -1);
    const Tensor c = cat({z, y});
    const Tensor s = stack({z, z});
    return results(z, u, q, c, s);
  });
  add("autocast_convolution", [](const Tensor& x, const Tensor& w, const Tensor& bias) {
    const AutocastScope autocast(DeviceType::cpu, DType::float16);
    const Tensor y = conv2d(x, w, bias, {1, 1}, {1, 1});
    const Tensor z = relu(y) + 1;
    const Tensor p = adaptive_avg_pool2d(z, {1, 1});
    return results(y, p);
  });
  add("autocast_losses", [](const Tensor& x, const Tensor& y, const Tensor& w) {
    const AutocastScope autocast;
    const Tensor a = mse_loss(x, y);
    const Tensor c = smooth_l1_loss(x, y);
    const Tensor p = x.prod(1);
    const Tensor n = layer_norm(x.to(DType::float32), {4}, w);
    return results(a, c, p, n);
  });
  add("autocast_composite", [](const Tensor& x, const Tensor& y) {
    const AutocastScope autocast;
    const Tensor a = einsum("bij,bjk->bik", {x, y});
    const Tensor e = baddbmm(a, x, y);
    const Tensor t = tensordot(x, x, {2}, {2});
    return results(a, e, t);
  });
  add("autocast_attention", [](const Tensor& q, const Tensor& k, const Tensor& v) {
    const AutocastScope autocast;
    return scaled_dot_product_attention(q, k, v);
  });
  add("autocast_double", [](const Tensor& x, const Tensor& w) {
    const AutocastScope autocast;
    const Tensor product = matmul(x, w);
    return results(product, cat({x, x.to(DType::float32)}));
  });
}

}  // namespace calque::capture
