#include "task/media_inputs.h"

#include <algorithm>

#include "calque/hub/pretrained_model.h"
#include "calque/op/tensor.h"

namespace calque {

Tensor as_model(const PretrainedModel& model, const Tensor& numbers) {
  for (const auto& [name, parameter] : model.named_parameters())
    if (parameter.is_floating_point()) return numbers.to(parameter.dtype());
  return numbers;
}

ModelInputs sound_inputs(const PretrainedModel& model, const FeatureExtractor& extractor, const Waveform& waveform,
                         const SoundFeatureOptions& options) {
  const Waveform at_rate = resampled(waveform, extractor.rate());
  const SoundFeatures features = extractor.extract({&at_rate, 1}, options);
  static constexpr ArgumentName<Tensor> input_values{"input_values"}, input_features{"input_features"};
  ModelInputs inputs;
  inputs.set(features.name == input_values.name ? input_values : input_features, as_model(model, features.values));
  if (features.attention_mask && model.takes(arg::attention_mask))
    inputs.set(arg::attention_mask, features.attention_mask->to(DType::int64));
  return inputs;
}

std::vector<LabelScore> sorted_labels(const Tensor& scores, const std::vector<std::string>& labels) {
  const Tensor row = scores.to(DType::float32).contiguous();
  std::vector<LabelScore> out;
  for (int64_t i = 0; i < row.numel(); ++i) {
    const auto place = static_cast<size_t>(i);
    out.push_back({place < labels.size() ? labels[place] : std::to_string(i), row.data_as<float>()[i]});
  }
  std::ranges::stable_sort(out, std::greater<>(), &LabelScore::score);
  return out;
}

}  // namespace calque
