// What models of pictures and sound take, and scores of their labels.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calque/hub/model_inputs.h"
#include "calque/media/feature_extractor.h"
#include "calque/task/classify.h"

namespace calque {

class PretrainedModel;

inline constexpr ArgumentName<Tensor> pixel_values_argument{"pixel_values"};

// In the dtype that the model computes in.
Tensor as_model(const PretrainedModel& model, const Tensor& numbers);
// Features at the model's rate, and the mask where the class takes one.
ModelInputs sound_inputs(const PretrainedModel& model, const FeatureExtractor& extractor, const Waveform& waveform,
                         const SoundFeatureOptions& options = {});
// The best first; `scores` is float32, one for each label.
std::vector<LabelScore> sorted_labels(const Tensor& scores, const std::vector<std::string>& labels);

}  // namespace calque
