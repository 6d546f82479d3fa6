#include <algorithm>
#include <mutex>
#include <numeric>

#include "calque/base/error.h"
#include "calque/op/aten/where.h"
#include "calque/tensor/generator.h"
#include "speech_encoder.h"

namespace calque {

namespace {

// numpy's: 53 bits of two numbers.
double uniform_double(Generator& stream) {
  const uint32_t high = stream.random() >> 5, low = stream.random() >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

// numpy's: 0 to `most`, numbers above it drawn again.
uint32_t at_most(Generator& stream, uint32_t most) {
  uint32_t mask = most;
  for (const int by : {1, 2, 4, 8, 16}) mask |= mask >> by;
  uint32_t drawn = stream.random() & mask;
  while (drawn > most) drawn = stream.random() & mask;
  return drawn;
}

// `count` of the numbers below `of`, none twice.
std::vector<int64_t> chosen(Generator& stream, int64_t of, int64_t count) {
  std::vector<int64_t> all(static_cast<size_t>(of));
  std::iota(all.begin(), all.end(), 0);
  for (size_t i = all.size(); i-- > 1;) std::swap(all[i], all[at_most(stream, static_cast<uint32_t>(i))]);
  all.resize(static_cast<size_t>(count));
  return all;
}

}  // namespace

Tensor spec_augment_mask(int64_t batch, int64_t length, double probability, int64_t span, int64_t least,
                         const std::vector<int64_t>& lengths) {
  if (span > length)
    throw UserError("SpecAugment: a span of " + std::to_string(span) + " is to be hidden, and there are " +
                    std::to_string(length) + ": make mask_time_length or mask_feature_length shorter, or the sound longer");
  Generator& stream = default_generator();
  const std::lock_guard lock(stream.mutex());
  const double rounding = uniform_double(stream);
  const auto spans_in = [&](int64_t of) {
    const double expected = probability * static_cast<double>(of) / static_cast<double>(span) + rounding;
    int64_t spans = std::max(static_cast<int64_t>(expected), least);
    if (spans * span > length) spans = length / span;
    return std::min(spans, std::max<int64_t>(of - (span - 1), 0));
  };
  std::vector<uint8_t> hidden(static_cast<size_t>(batch * length));
  if (spans_in(length) > 0)
    for (int64_t row = 0; row < batch; ++row) {
      const int64_t own = lengths.empty() ? length : lengths[static_cast<size_t>(row)];
      std::vector<int64_t> starts = chosen(stream, std::max<int64_t>(own - (span - 1), 0), spans_in(own));
      // A row that is too short for a span loses its last place, which is padding.
      if (starts.empty()) starts.push_back(length - 1);
      for (const int64_t start : starts)
        for (int64_t place = start; place < std::min(start + span, length); ++place)
          hidden[static_cast<size_t>(row * length + place)] = 1;
    }
  return tensor_of<uint8_t>(hidden, {batch, length}).to(DType::bool_);
}

Tensor spec_augmented(const PretrainedModel& model, const Tensor& hidden_states, const Tensor& mask_time_indices,
                      const Tensor& embed, const Tensor& kept) {
  const Config& c = model.config();
  if (c.find("apply_spec_augment") && !c.flag("apply_spec_augment")) return hidden_states;
  const auto probability = [&](const char* key) { return model.training() ? c.number(key) : 0; };
  Tensor x = hidden_states;
  Tensor frames = mask_time_indices.defined() ? mask_time_indices.to(DType::bool_) : mask_time_indices;
  if (!frames.defined() && probability("mask_time_prob") > 0) {
    std::vector<int64_t> lengths;
    if (kept.defined()) {
      const Tensor counted = kept.to(DType::int64).sum({-1});
      for (int64_t row = 0; row < counted.size(0); ++row) lengths.push_back(counted.select(0, row).item_as<int64_t>());
    }
    frames = spec_augment_mask(x.size(0), x.size(1), c.number("mask_time_prob"), c.integer("mask_time_length"),
                               c.integer("mask_time_min_masks"), lengths);
  }
  if (frames.defined()) {
    if (!embed.defined())
      throw UserError(
          model.class_name() +
          ": frames are to be hidden (mask_time_indices), but the model has no masked_spec_embed: its config has a "
          "mask_time_prob and a mask_feature_prob of 0");
    x = where(frames.unsqueeze(-1), embed.to(x.dtype()), x);
  }
  if (probability("mask_feature_prob") > 0) {
    const Tensor features = spec_augment_mask(x.size(0), x.size(2), c.number("mask_feature_prob"),
                                              c.integer("mask_feature_length"), c.integer("mask_feature_min_masks"));
    x = where(features.unsqueeze(1), Scalar(0.0), x);
  }
  return x;
}

}  // namespace calque
