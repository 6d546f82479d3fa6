// An operator of one's own: a schema, a shape rule and a kernel in one stanza. In-place and out= forms are derived from it,
// and it is traced, faked and exported like any other. (operators/gated.cpp is the same in a shared library.)
#include <calque/calque.h>
#include <calque/op/library.h>

#include <iostream>

using namespace calque;

// Sizes, strides and dtype of the result. It sees symbolic sizes too.
static Meta leaky_rule(const Tensor& self, double) {
  if (self.dtype() != DType::float32)
    throw UserError("demo::leaky: expected float32, found " + std::string(name(self.dtype())));
  Meta result = self.meta();
  result.strides = contiguous_strides(result.sizes);
  return result;
}

// The values, written into what the rule has described.
static void leaky_kernel(const Tensor& self, double slope, const Tensor& out) {
  const Tensor dense = self.contiguous();
  const float* from = dense.data_ptr<const float>();
  float* to = out.data_ptr<float>();
  for (int64_t i = 0; i < dense.numel(); ++i) to[i] = from[i] > 0 ? from[i] : from[i] * static_cast<float>(slope);
}

static Tensor leaky(const Tensor& x, double slope) { return call("demo::leaky", {x, slope}).to_tensor(); }

int main() try {
  Library demo("demo");
  demo.def("leaky(Tensor self, float slope=0.1) -> Tensor")
      .compute(leaky_rule, leaky_kernel)
      .in_place("leaky_")
      .out("leaky.out");

  const Tensor x = tensor({-1.0, 0.0, 2.0});
  std::cout << leaky(x, 0.5) << "\n";
  call("demo::leaky_", {x});  // in place, with the schema's default
  std::cout << x << "\n";

  const TracedGraph traced = make_fx([](const Tensor& t) { return leaky(t * 2, 0.25); }, {.mode = TracingMode::symbolic})(x);
  std::cout << traced.graph();
  return equal(traced(ones({5})).to_tensor(), full({5}, 2.0)) ? 0 : 1;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
