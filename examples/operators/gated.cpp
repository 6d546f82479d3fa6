// A user's operators, from a shared library that a program loads at run time (calque::load_operator_library(path)). The
// library is compiled against Calque's headers and links nothing: its symbols are those of the program that loads it, which must
// export them (CMake: ENABLE_EXPORTS). tests/trace/operator_library_test.cpp loads this one.
//
//   my::gate        out = self * sigmoid(gate): a rule and a kernel, with in-place and out= forms derived from them
//   my::gate_twice  a composite: written in operators, so it needs neither, and a tracer sees what it is made of

#include <cmath>

#include <calque/op/library.h>
#include <calque/op/ops.h>

namespace {

using namespace calque;

Meta gate_rule(const Tensor& self, const Tensor& gate) {
  if (self.dtype() != DType::float32 || gate.dtype() != DType::float32)
    throw UserError("my::gate: expected float32 tensors, found " + std::string(name(self.dtype())) + " and " +
                    std::string(name(gate.dtype())));
  const SymIntList sizes = self.sym_sizes();
  if (gate.sym_sizes().size() != sizes.size())
    throw UserError("my::gate: self and gate must have the same number of dimensions");
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!check(sizes[d] == gate.sym_sizes()[d]))
      throw UserError("my::gate: expected a gate of sizes " + str(sizes) + ", found " + str(gate.sym_sizes()));
  Meta m = self.meta();
  m.strides = contiguous_strides(m.sizes);
  return m;
}

void gate_kernel(const Tensor& self, const Tensor& gate, const Tensor& out) {
  const Tensor x = self.contiguous(), g = gate.contiguous();
  const float* from = x.data_as<float>();
  const float* by = g.data_as<float>();
  float* to = out.mutable_data_as<float>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] / (1.0F + std::exp(-by[i]));
}

}  // namespace

extern "C" void calque_register_operators() {
  Library my("my");
  my.def("gate(Tensor self, Tensor gate) -> Tensor").compute(gate_rule, gate_kernel).in_place("gate_").out("gate.out");
  my.def("gate_twice(Tensor self, Tensor gate) -> Tensor").composite([](const Tensor& self, const Tensor& gate) {
    const Tensor once = call("my::gate", {self, gate}).to_tensor();
    return call("my::gate", {once, gate}).to_tensor();
  });
}
