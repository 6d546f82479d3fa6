#include "alibi.h"

#include <cmath>
#include <vector>

#include "calque/base/error.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/scans.h"

namespace calque {

// Powers of 2^(-8/n) for n heads; where n is no power of two, those of the next smaller one, then every other one of the
// next larger.
Tensor alibi_slopes(int64_t heads) {
  const int64_t lower = int64_t{1} << static_cast<int64_t>(std::floor(std::log2(static_cast<double>(heads))));
  const auto base = [](int64_t n) { return std::exp2(-std::exp2(-(std::log2(static_cast<double>(n)) - 3))); };
  std::vector<float> slopes;
  for (int64_t i = 1; i <= lower; ++i) slopes.push_back(std::pow(static_cast<float>(base(lower)), static_cast<float>(i)));
  for (int64_t i = 1; static_cast<int64_t>(slopes.size()) < heads; i += 2)
    slopes.push_back(std::pow(static_cast<float>(base(2 * lower)), static_cast<float>(i)));
  return tensor_of<float>(slopes, {heads});
}

Tensor alibi_positions(const Tensor& embeds, const Tensor& attention_mask, const SymInt& past) {
  if (!attention_mask.defined()) return arange(past + embeds.sym_size(1), DType::int64, std::nullopt, embeds.device());
  if (attention_mask.dim() != 2)
    throw UserError("attention_mask has " + std::to_string(attention_mask.dim()) +
                    " dimensions, expected 2 (batch, length): distances are counted over what it keeps");
  const Tensor kept = attention_mask.dtype() == DType::bool_ ? attention_mask.to(DType::int64) : attention_mask;
  return ((cumsum(kept, -1) - 1) * kept).unsqueeze(1).unsqueeze(1);
}

}  // namespace calque
