#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "programs.h"

namespace calque::capture {

void add_pointwise(Programs& programs) {
  const Adder add(programs);
  add("add_mul", [](const Tensor& x, const Tensor& y) { return x + y * 2; });
  add("broadcast", [](const Tensor& x, const Tensor& y) { return x * y + y; });
  add("broadcast_one", [](const Tensor& x, const Tensor& y) { return x - y; });
  add("scalars_left", [](const Tensor& x) {
    const Tensor first = 1 - x;
    return first + 2 / (x * x + 1);
  });
  // One call to a line where the order counts: C++ leaves it open which operand of + comes first.
  add("activations", [](const Tensor& x) {
    Tensor y = x.gelu();
    y = y + x.silu();
    y = y + x.sigmoid();
    y = y + x.tanh();
    y = y + x.relu();
    return y + x.leaky_relu(0.2);
  });
  add("gelu_tanh", [](const Tensor& x) { return x.gelu("tanh"); });
  add("powers", [](const Tensor& x) {
    Tensor y = x.pow(2);
    y = y + x.abs().sqrt();
    y = y + (x * x + 1).rsqrt();
    return y + x.exp().log1p();
  });
  add("clamps", [](const Tensor& x) {
    Tensor y = x.clamp(-1, 1);
    y = y + x.clamp(0.5);
    return y + x.clamp_max(2);
  });
  add("comparisons", [](const Tensor& x, const Tensor& y) {
    Tensor mask = x > y;
    mask = mask & (x < 1);
    mask = mask | (y == 0);
    return tuple({mask, maximum(x, y), minimum(x, y)});
  });
  add("choose", [](const Tensor& c, const Tensor& x) {
    const Tensor first = where(c, x, -x);
    const Tensor second = where(x > 0, x, 0.0);
    return results(first, second, x.masked_fill(c, 3.0));
  });
  add("promotion", [](const Tensor& x, const Tensor& n) -> Value {
    return tuple(
        {x + n, n + 1, n + 1.5, n / 2, calque::call("aten::floor_divide", {n, wrapped_scalar(3)}), n % 3, n * true});
  });
  add("fused_arithmetic", [](const Tensor& x, const Tensor& y, const Tensor& z) {
    const Tensor first = addcmul(x, y, z, 0.5);
    const Tensor sum = first + addcdiv(x, y, z.abs() + 1);
    return sum + lerp(x, y, 0.25);
  });
  add("casts", [](const Tensor& x) -> Value {
    return tuple({x.to(DType::float64), x.to(DType::int32), x.to(DType::bool_), x.to(DType::bfloat16).to(DType::float32),
                  x.to(DType::float32)});
  });
  add("half_and_float", [](const Tensor& x, const Tensor& y) -> Value {
    return tuple({x * y, x + 1, x.type_as(y) * 2, y.to(x.dtype())});
  });
  add("like_factories", [](const Tensor& x) -> Value {
    return tuple({zeros_like(x), full_like(x, 2.0), ones_like(x, DType::int64), x.new_zeros({2, 3})});
  });

  add("in_place_chain", [](const Tensor& x) {
    const Tensor y = x.clone();
    y.add_(1).mul_(2);
    y.relu_();
    return y;
  });
  add("in_place_through_view", [](const Tensor& x, const Tensor& y) {
    const Tensor z = x * 1;
    z[0].copy_(y);
    const Tensor part = z.index_by({Slice(), Slice(1)});
    part.add_(2);
    z.set_by({Slice(), Slice(1)}, part);
    set_by(z.t(), {{0}}, 5);
    return z;
  });
  add("in_place_input", [](const Tensor& x) {
    x.mul_(2);
    return x + 1;
  });
  add("in_place_masked", [](const Tensor& x, const Tensor& m) {
    const Tensor y = x.clone();
    set_by(y, {{m}}, 0);
    y.masked_fill_(~m, 1);
    return y;
  });
  add("fills", [](const Tensor& x) {
    const Tensor y = empty_like(x);
    y.fill_(3);
    const Tensor z = zeros({x.sym_size(0), 2});
    const Tensor column = x.index_by({Slice(), 0});
    z.set_by({Slice(), 0}, column);
    return results(y, z.zero_());
  });
  add("with_out", [](const Tensor& x, const Tensor& y) {
    const Tensor z = empty_like(x);
    calque::call("aten::add.out", {x, y}, {{"out", z}});
    // A number is a tensor to mul.out, as torch.mul makes it one.
    calque::call("aten::mul.out", {z, wrapped_scalar(2)}, {{"out", z}});
    return z;
  });
  add("same_twice", [](const Tensor& x) {
    const Tensor y = x + 1;
    return results(y, y, x, y);
  });
  add("dead_code", [](const Tensor& x) {
    x.sin();
    (void)(x.sym_size(0) * 2);
    return x.cos();
  });
  add("nothing_returned", [](const Tensor& x) { x.add_(1); });
  add("dict_output", [](const Tensor& x, const Tensor& y) {
    const Tensor sum = x + y;
    return dict({{"sum", sum}, {"parts", tuple({x, list({y, x * 2})})}, {"none", Value()}, {"number", 3}});
  });
  add("tree_input", [](const Values& in) -> Value {
    const Values& pair = in[0].to_items();
    return pair[0].to_tensor() + pair[1].to_tensor() * in[1].to_dict().find("k")->to_tensor();
  });
}

}  // namespace calque::capture
