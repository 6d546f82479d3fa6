#include "run/packed_linear.h"

#include "calque/op/mode.h"
#include "kernel/cpu/gemm/packed.h"

namespace calque::run {
namespace {

constexpr std::string_view packed_key = "packed_weights";

}  // namespace

std::string packed_weights_of(const Node& n) {
  const Value* path = n.meta.find(packed_key);
  return path ? path->to_string() : "";
}

void set_packed_weights(Node& n, const std::string& path) { n.meta.set(packed_key, Value(path)); }

const ProductForm* product_form(const Node& n) {
  static const Operator& linear = get_operator(aten_name("linear"));
  static const Operator& addmm = get_operator(aten_name("addmm"));
  static const Operator& mm = get_operator(aten_name("mm"));
  static constexpr ProductForm of_linear{0, 1, 2, true}, of_addmm{1, 2, 0, false}, of_mm{0, 1, std::nullopt, false};
  const Operator* op = n.op();
  if (op == &linear && n.args().size() >= 2) return &of_linear;
  if (op == &mm && n.args().size() == 2) return &of_mm;
  return op == &addmm && n.args().size() == 3 && n.kwargs().empty() ? &of_addmm : nullptr;
}

Tensor PackedLinear::multiply(const void* const* at, const Frame& frame, const Place& place) const {
  const Tensor& input = argument_at<Tensor>(at[form_.input]);
  const Tensor& weight = argument_at<Tensor>(at[form_.weight]);
  const Tensor none;
  const Tensor& bias = form_.bias ? argument_at<Tensor>(at[*form_.bias]) : none;
  const int64_t n = weight.size(form_.weight_is_transposed ? 0 : 1), k = weight.size(form_.weight_is_transposed ? 1 : 0);
  const int64_t d = input.dim();
  if (input.dtype() != DType::float32 || d == 0 || (d != 2 && !form_.weight_is_transposed) || input.size(-1) != k) return {};
  if (input.stride(-1) != 1 || (d != 2 && !input.is_contiguous())) return {};
  if (bias.defined() && (bias.dtype() != DType::float32 || bias.dim() != 1 || bias.size(0) != n)) return {};
  const IntList sizes = input.sizes();
  SymInts out_sizes(sizes.begin(), sizes.end());
  out_sizes.back() = n;
  Meta meta{out_sizes, contiguous_strides(SymIntList(out_sizes)), DType::float32, input.device(), false};
  const Tensor out = new_result(frame, place, meta);
  const int64_t m = input.numel() / k;
  kernel::multiply_packed(m, input.data_as<float>(), d == 2 ? input.stride(0) : k, {n, k, packed_.data_as<float>()},
                          bias.defined() ? bias.data_as<float>() : nullptr, bias.defined() ? bias.stride(0) : 0,
                          out.mutable_data_as<float>());
  return out;
}

Value PackedLinear::run(const Frame& frame, const Place& place) const {
  const void* at[OperatorCall::most_arguments];
  if (!modes_active() && call_.find_arguments(frame, at))
    if (Tensor out = multiply(at, frame, place); out.defined()) return out;
  return call_.run(frame, place);
}

}  // namespace calque::run
