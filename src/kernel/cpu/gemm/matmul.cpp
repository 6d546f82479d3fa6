#include "kernel/cpu/gemm/matmul.h"

#include "kernel/cpu/gemm/gemm.h"

namespace calque::kernel {
namespace {

template <class T>
constexpr bool has_gemm = std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, BFloat16> ||
                          std::is_same_v<T, Half> || std::is_same_v<T, uint8_t> || std::is_same_v<T, int8_t> ||
                          std::is_same_v<T, int16_t> || std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;

template <class T>
typename Gemm<T>::Scale scale(const Scalar& s) {
  if constexpr (is_integral_type<T>)
    return s.is_floating() ? static_cast<int64_t>(s.to_double()) : s.to_int();
  else
    return s.to_double();
}

template <class T>
void run(const Product& p) {
  Gemm<T> g;
  g.m = p.m, g.n = p.n, g.k = p.k;
  g.a = static_cast<const T*>(p.a), g.a_row = p.a_row, g.a_col = p.a_col;
  g.b = static_cast<const T*>(p.b), g.b_row = p.b_row, g.b_col = p.b_col;
  g.c = static_cast<T*>(p.c), g.c_row = p.c_row, g.c_col = p.c_col;
  g.bias = static_cast<const T*>(p.bias), g.bias_stride = p.bias_stride;
  g.alpha = scale<T>(p.alpha), g.beta = scale<T>(p.beta);
  g.batch_dims = static_cast<int64_t>(p.batch.size());
  g.batch_sizes = p.batch.data();
  g.a_batch = p.a_batch.data(), g.b_batch = p.b_batch.data(), g.c_batch = p.c_batch.data();
  gemm(g);
}

}  // namespace

bool has_product(DType dtype) {
  return dispatch(dtype, [](auto tag) { return has_gemm<typename decltype(tag)::type>; });
}

void multiply(const Product& product) {
  dispatch(product.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (has_gemm<T>)
      run<T>(product);
    else
      throw InternalError("multiply: no matrix product for dtype " + std::string(name(product.dtype)));
  });
}

}  // namespace calque::kernel
