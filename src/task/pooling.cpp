// Vectors of texts from the vectors of their tokens.
#include <algorithm>

#include <fmt/format.h>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/cat.h"
#include "calque/op/operators.h"
#include "calque/task/embed.h"

namespace calque {
namespace {

struct PoolingName {
  Pooling pooling;
  std::string_view name;
};
constexpr PoolingName pooling_names[] = {{Pooling::cls, "cls"},
                                         {Pooling::max, "max"},
                                         {Pooling::mean, "mean"},
                                         {Pooling::mean_sqrt_len, "mean_sqrt_len_tokens"},
                                         {Pooling::weighted_mean, "weightedmean"},
                                         {Pooling::last, "lasttoken"}};

// A text without tokens divides by this instead of zero.
constexpr double smallest_count = 1e-9;

Tensor weighted_sum(const Tensor& tokens, const Tensor& weights) {  // weights [batch, length, 1]
  return (tokens * weights).sum({1});
}

Tensor last_tokens(const Tensor& tokens, const Tensor& mask) {
  const int64_t length = tokens.size(1);
  const Tensor places = arange(length).unsqueeze(0).expand({mask.size(0), length});
  const Tensor last =
      places.masked_fill(mask.eq(0), 0).amax({1}, true);  // of a text without tokens the first, which counts nothing
  const Tensor rows = last.unsqueeze(-1).expand({tokens.size(0), 1, tokens.size(2)});
  return (tokens * mask.unsqueeze(-1).to(DType::float32)).gather(1, rows).squeeze(1);
}

}  // namespace

std::string_view name_of(Pooling pooling) { return std::ranges::find(pooling_names, pooling, &PoolingName::pooling)->name; }

Pooling pooling_from_name(std::string_view name) {
  if (name == "last") return Pooling::last;
  const auto* found = std::ranges::find(pooling_names, name, &PoolingName::name);
  if (found != std::end(pooling_names)) return found->pooling;
  throw UserError(fmt::format("there is no pooling '{}'; expected one of {}", name,
                              join(pooling_names, ", ", [](const PoolingName& one) { return std::string(one.name); })));
}

Tensor pooled(const Tensor& given, const Tensor& mask, std::span<const Pooling> how) {
  const Tensor tokens = given.to(DType::float32);
  const Tensor counts = mask.unsqueeze(-1).to(DType::float32);
  std::vector<Tensor> parts;
  for (const Pooling pooling : how) switch (pooling) {
      case Pooling::cls: parts.push_back(tokens.select(1, 0)); break;
      case Pooling::max: parts.push_back(tokens.masked_fill(mask.unsqueeze(-1).eq(0), -1e9).amax({1})); break;
      case Pooling::mean: parts.push_back(weighted_sum(tokens, counts) / counts.sum({1}).clamp_min(smallest_count)); break;
      case Pooling::mean_sqrt_len:
        parts.push_back(weighted_sum(tokens, counts) / counts.sum({1}).clamp_min(smallest_count).sqrt());
        break;
      case Pooling::weighted_mean: {
        const Tensor places = arange(1, tokens.size(1) + 1).to(DType::float32).view({1, -1, 1});
        const Tensor weights = counts * places;
        parts.push_back(weighted_sum(tokens, weights) / weights.sum({1}).clamp_min(smallest_count));
        break;
      }
      case Pooling::last: parts.push_back(last_tokens(tokens, mask)); break;
    }
  return parts.size() == 1 ? parts[0] : cat(parts, 1);
}

}  // namespace calque
