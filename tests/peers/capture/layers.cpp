#include <limits>

#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/attention.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/convolution.h"
#include "calque/op/aten/einsum.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/normalization.h"
#include "calque/op/aten/pooling.h"
#include "calque/op/aten/zeros.h"
#include "programs.h"

namespace calque::capture {

void add_layers(Programs& programs) {
  const Adder add(programs);
  add("matmuls", [](const Tensor& x, const Tensor& y) -> Value {
    const Tensor first = matmul(x, y);
    const Tensor second = mm(x, y);
    const Tensor third = matmul(x, y.index_by({Slice(), 0}));
    const Tensor yt = y.t();
    return tuple({first, second, third, matmul(yt, x.t())});
  });
  add("matmul_batched", [](const Tensor& x, const Tensor& y) { return matmul(x, y); });
  add("matmul_broadcast", [](const Tensor& x, const Tensor& y) { return matmul(x, y); });
  add("linears", [](const Tensor& x, const Tensor& w, const Tensor& c) -> Value {
    return tuple({linear(x, w, c), linear(x, w), linear(x.index_by({none}), w, c)});
  });
  add("batched", [](const Tensor& x, const Tensor& y) -> Value {
    return tuple({bmm(x, y), einsum("bij,bjk->bik", {x, y}), einsum("bij->bj", {x})});
  });
  add("affine", [](const Tensor& c, const Tensor& x, const Tensor& y) -> Value {
    const Tensor first = addmm(c, x, y);
    const Tensor second = addmm(c, x, y, 0.5, 2);
    const Tensor x0 = x[0];
    const Tensor third = outer(x0, y[0]);
    const Tensor column = x.index_by({Slice(), 0});
    return tuple({first, second, third, dot(column, c.index_by({Slice(), 0}))});
  });
  add("attention_by_hand", [](const Tensor& x, const Tensor& w, const Tensor& c) {
    const SymInt batch = x.sym_size(0), length = x.sym_size(1), width = x.sym_size(2);
    const auto parts = linear(x, w, c).split(8, 2);
    const auto heads = [&](const Tensor& t) { return t.view({batch, length, 2, 4}).transpose(1, 2); };
    const Tensor q = heads(parts[0]);
    const Tensor k = heads(parts[1]);
    const Tensor v = heads(parts[2]);
    Tensor scores = matmul(q, k.transpose(-2, -1)) * 0.5;
    const Tensor mask = ones({length, length}, DType::bool_).tril();
    scores = scores.masked_fill(~mask, -std::numeric_limits<double>::infinity());
    const Tensor y = matmul(scores.softmax(-1), v);
    return y.transpose(1, 2).contiguous().view({batch, length, width});
  });
  add("attention", [](const Tensor& q, const Tensor& k, const Tensor& v) { return scaled_dot_product_attention(q, k, v); });
  add("attention_causal", [](const Tensor& q, const Tensor& k, const Tensor& v) {
    return scaled_dot_product_attention(q, k, v, {}, 0.0, true);
  });
  add("attention_masked", [](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& m) {
    return scaled_dot_product_attention(q, k, v, m);
  });
  add("rotary", [](const Tensor& x) {
    const Tensor positions = arange(x.sym_size(1), DType::float32);
    const Tensor exponents = calque::call("aten::arange.start", {0, 4}, {{"dtype", DType::float32}}).to_tensor() / 4;
    const Tensor frequencies = pow(10000.0, exponents).reciprocal() * 1.0;
    const Tensor column = positions.index_by({Slice(), none});
    const Tensor angles = column * frequencies.index_by({none, Slice()});
    const Tensor c0 = angles.cos();
    const Tensor cos = cat({c0, angles.cos()}, -1);
    const Tensor s0 = angles.sin();
    const Tensor sin = cat({s0, angles.sin()}, -1);
    const Tensor back = -x.index_by({ellipsis, Slice(4)});
    const Tensor rotated = cat({back, x.index_by({ellipsis, Slice(none, 4)})}, -1);
    const Tensor straight = x * cos;
    return straight + rotated * sin;
  });
  add("convolutions", [](const Tensor& x, const Tensor& w, const Tensor& c, const Tensor& v) {
    Tensor y = conv2d(x, w, c, {2, 2}, {1, 1}).relu();
    y = max_pool2d(conv2d(y, v, {}, {1, 1}, {1, 1}), {2, 2});
    return adaptive_avg_pool2d(y, {1, 1}).flatten(1);
  });
  add("convolution_1d", [](const Tensor& x, const Tensor& w, const Tensor& c) -> Value {
    return tuple({conv1d(x, w, c, {2}, {1}), avg_pool1d(x, {2})});
  });
  add("convolution_transposed", [](const Tensor& x, const Tensor& w) -> Value {
    const Tensor first = conv_transpose2d(x, w, {}, {2, 2}, {1, 1});
    return tuple({first, avg_pool2d(x, {2, 2})});
  });
  add("norms", [](const Tensor& x, const Tensor& w, const Tensor& c) -> Value {
    return tuple({layer_norm(x, {8}, w, c), rms_norm(x, {8}, w, 1e-6)});
  });
  add("rms_by_hand", [](const Tensor& x, const Tensor& w) { return x * (x.pow(2).mean({-1}, true) + 1e-6).rsqrt() * w; });
  add("batch_norms", [](const Tensor& x, const Tensor& w, const Tensor& c, const Tensor& m, const Tensor& v) -> Value {
    return tuple({batch_norm(x, w, c, m, v.abs() + 1, false, 0.1, 1e-5, true), group_norm(x, 2, w, c)});
  });
}

}  // namespace calque::capture
