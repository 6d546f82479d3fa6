#include "trace/fake_strides.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "calque/base/error.h"
#include "calque/op/mode.h"

namespace calque {

FakeLayout symbolic_layout(ShapeEnv& env, const Tensor& real, const std::string& name) {
  const IntList sizes = real.sizes();
  const IntList strides = real.strides();
  const size_t n = sizes.size();
  FakeLayout layout;
  const auto origin = [&](size_t d, const char* what) { return name.empty() ? std::string() : name + ", " + what + " " + std::to_string(d); };
  for (size_t d = 0; d < n; ++d) layout.sizes.push_back(env.create_size(sizes[d], origin(d, "dimension")));
  layout.strides.resize(n);
  layout.offset = real.storage_offset() == 0 ? SymInt(0) : env.create_size(real.storage_offset(), origin(0, "storage offset"));

  // From the smallest stride up: each is the product of a dimension that is known already, or a symbol of its own.
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] != strides[b] ? strides[a] < strides[b] : a > b; });
  std::map<int64_t, SymInt> products;  // example value to expression
  const auto known = [&](size_t d) { products.try_emplace(sizes[d] * strides[d], layout.sizes[d] * layout.strides[d]); };
  for (const size_t d : order)
    if (strides[d] == 0 || strides[d] == 1) {
      layout.strides[d] = strides[d];
      known(d);
    }
  for (const size_t d : order) {
    if (strides[d] == 0 || strides[d] == 1) continue;
    const auto it = products.find(strides[d]);
    layout.strides[d] = it != products.end() ? it->second : env.create_size(strides[d], origin(d, "stride"));
    known(d);
  }
  return layout;
}

Value fake_item(ShapeEnv& env, DType dtype) {
  if (dtype == DType::bool_) return env.create_unbacked({0, 1}) == 1;
  if (is_integral(dtype, false)) return env.create_unbacked();
  return {};
}

Value run_rule(const Operator& op, const Values& args, bool fallback) {
  try {
    return op.run_fake(args);
  } catch (const UserError& e) {
    if (!fallback || e.kind() != ErrorKind::unsupported_operator || !op.has_kernel()) throw;
  }
  throw UserError(ErrorKind::unsupported_operator, op.name() + ": has no shape rule, and running its kernel on made-up data would guess; give the operator a shape rule");
}

}  // namespace calque
