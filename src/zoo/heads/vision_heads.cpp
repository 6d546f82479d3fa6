#include "vision_heads.h"

#include <cmath>

#include "../blocks/child_if.h"
#include "calque/nn/convolution.h"
#include "calque/nn/shaping.h"

namespace calque {

std::optional<Child<Linear>> label_scores(Module& parent, const char* name, const Config& config, int64_t features) {
  return child_if<Linear>(num_labels(config) > 0, parent, name, features, num_labels(config));
}

PictureClassification::PictureClassification(const HeadClass& head, const Config& c, bool pools,
                                             std::span<const ModelArgument> own, int64_t size)
    : VisionHead(head, c, pools, own), classifier(label_scores(*this, "classifier", c, size)) {}

ModelOutput PictureClassification::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  ModelOutput out = sequence_classification_output(config(), base, scored(classifier, features(base)), in[arg::labels]);
  out.take(base, {"reshaped_hidden_states"});
  return out;
}

Child<Sequential> pixel_decoder(Module& parent, const Config& config, int64_t features) {
  const int64_t stride = config.integer("encoder_stride");
  const auto channels = scaled_size(config, "encoder_stride", static_cast<double>(stride) * static_cast<double>(stride),
                                    config.integer("num_channels"));
  return parent.child<Sequential>("decoder", Conv2d(features, channels, 1), PixelShuffle(stride));
}

ModelOutput masked_picture_output(const Config& config, const ModelOutput& base, const Child<Sequential>& decoder,
                                  const Tensor& patches, const ModelInputs& in) {
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(patches.sym_size(1).guard_int())));
  const Tensor pixels = decoder(patches.permute({0, 2, 1}).reshape({patches.sym_size(0), patches.sym_size(2), side, side}));
  ModelOutput out;
  if (in[arg::bool_masked_pos].defined())
    out.set("loss", masked_picture_loss(config, in[arg::pixel_values], pixels, in[arg::bool_masked_pos]));
  out.set("reconstruction", pixels);
  out.take(base, {"hidden_states", "attentions", "reshaped_hidden_states"});
  return out;
}

}  // namespace calque
