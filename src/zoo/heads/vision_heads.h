// Heads on models of pictures: what they share is that they take pixels, and labels where they classify.
#pragma once

#include "../blocks/vision.h"
#include "calque/nn/container.h"
#include "encoder_heads.h"

namespace calque {

struct VisionHead : HeadModel {
  using HeadModel::HeadModel;
  std::string main_input_name() const override { return "pixel_values"; }
  ModelInputs example_inputs(const ExampleSizes& sizes) const override { return model->example_inputs(sizes); }

 protected:
  VisionHead(const VisionHead&) = default;
};

// Scores of labels, or the features themselves where there are no labels.
std::optional<Child<Linear>> label_scores(Module& parent, const char* name, const Config& config, int64_t features);
inline Tensor scored(const std::optional<Child<Linear>>& classifier, const Tensor& features) {
  return classifier ? (*classifier)(features) : features;
}

// Scores from a picture's features, which are the base model's pooled output where a family says nothing else.
struct PictureClassification : VisionHead {
  PictureClassification(const HeadClass& head, const Config& c, bool pools, std::span<const ModelArgument> own,
                        int64_t size);
  ModelOutput forward(const ModelInputs& in) override;
  virtual Tensor features(const ModelOutput& base) const { return base["pooler_output"]; }
  std::optional<Child<Linear>> classifier;

 protected:
  PictureClassification(const PictureClassification&) = default;
};

// Pixels from the outputs of the patches: a convolution and a shuffle of its channels into place.
Child<Sequential> pixel_decoder(Module& parent, const Config& config, int64_t features);
// Of outputs [batch, patches, size] of a square grid: the reconstruction, and the loss where patches were masked.
ModelOutput masked_picture_output(const Config& config, const ModelOutput& base, const Child<Sequential>& decoder,
                                  const Tensor& patches, const ModelInputs& in);

}  // namespace calque
