#include "speech_heads.h"

#include <cmath>

#include "calque/base/error.h"
#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/mode.h"
#include "encoder_heads.h"

namespace calque {

ModelInputs example_sound(const Config& c, int64_t batch, int64_t frames) {
  const std::vector<int64_t> kernels = c.integers("conv_kernel"), strides = c.integers("conv_stride");
  int64_t samples = frames;
  for (size_t i = kernels.size(); i-- > 0;) {
    int64_t span = 0;
    if (__builtin_mul_overflow(samples - 1, strides[i], &span) || __builtin_add_overflow(span, kernels[i], &samples) ||
        samples > int64_t{1} << 28)
      throw UserError(c.where() + ": conv_kernel and conv_stride ask for too many samples for " + std::to_string(frames) +
                      " frames");
  }
  std::vector<float> values(static_cast<size_t>(batch * samples));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i % 1009) * 0.37F);
  ModelInputs in;
  in.set(arg::input_values, tensor_of<float>(values, {batch, samples}));
  return in;
}

int64_t speech_adapter_layers(const Config& c) { return c.flag("add_adapter") ? c.integer("num_adapter_layers") : 0; }

Tensor weighted_layers(const ModelOutput& base, const Tensor& layer_weights) {
  const Tensor layers = stack(base.hidden_states(), 1);
  return (layers * softmax(layer_weights, -1).view({-1, 1, 1})).sum({1});
}

std::optional<Parameter> layer_weights_of(Module& module, const Config& c) {
  if (!c.flag("use_weighted_layer_sum")) return std::nullopt;
  const int64_t layers = c.integer("num_hidden_layers") + 1;
  return module.register_parameter("layer_weights", full({layers}, 1.0 / static_cast<double>(layers)));
}

void refuse_adapter(const Config& c, const char* what) {
  if (c.flag("add_adapter"))
    throw UserError(ErrorKind::bad_file, c.where() + ": \"add_adapter\" is true, expected false: " + what +
                                             " does not support an adapter behind the encoder");
}

HeardStates heard_states(const Child<PretrainedModel>& model, const Config& c, const ModelInputs& in,
                         const std::optional<Parameter>& layer_weights) {
  ModelInputs inner = in;
  if (layer_weights) inner.set(arg::output_hidden_states, true);
  ModelOutput base = model(inner);
  const Tensor states = layer_weights ? weighted_layers(base, *layer_weights) : Tensor(base["last_hidden_state"]);
  if (layer_weights && !in[arg::output_hidden_states].value_or(c.flag("output_hidden_states"))) {
    ModelOutput without;
    without.take(base, {"attentions"});
    base = without;
  }
  return {base, states};
}

SpeechCTC::SpeechCTC(const HeadClass& head, const Config& c)
    : CopiedAs(head, c),
      dropout(child<Dropout>("dropout", c.number("final_dropout"))),
      lm_head(child<Linear>("lm_head", c.integer(c.flag("add_adapter") ? "output_hidden_size" : "hidden_size"),
                            c.integer("vocab_size"))) {}

ModelOutput SpeechCTC::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  const Tensor logits = lm_head(dropout(base["last_hidden_state"]));
  const Tensor labels = in[arg::labels];
  if (!labels.defined()) return labelled_output(base, Tensor(), logits);
  const int64_t words = config().integer("vocab_size"), blank = config().integer("pad_token_id");
  if (!modes_active() && !labels.is_fake() && labels.numel() > 0 && ge(labels, words).any().item_as<bool>())
    throw UserError(class_name() + ": a label is not below vocab_size, which is " + std::to_string(words));
  const Tensor given = in[arg::attention_mask];
  const Tensor heard = given.defined() ? given : ones_like(in[arg::input_values], DType::int64);
  const Tensor lengths = speech_frames(config(), heard.to(DType::int64).sum({-1}), speech_adapter_layers(config()));
  const Tensor counts = logical_and(ne(labels, -100), ne(labels, blank));
  const Tensor log_probs = log_softmax(logits, -1, DType::float32).transpose(0, 1);
  const Tensor loss = functional::ctc_loss(log_probs, masked_select(labels, counts), lengths, counts.sum({-1}), blank,
                                           config().text("ctc_loss_reduction"), config().flag("ctc_zero_infinity"));
  return labelled_output(base, loss, logits);
}

SpeechClassification::SpeechClassification(const HeadClass& head, const Config& c)
    : CopiedAs(head, c),
      layer_weights(layer_weights_of(*this, c)),
      projector(child<Linear>("projector", c.integer("hidden_size"), c.integer("classifier_proj_size"))),
      classifier(child<Linear>("classifier", c.integer("classifier_proj_size"), num_labels(c))) {
  refuse_adapter(c, "sequence classification");
}

void SpeechClassification::init_weights(Module& module) {
  SpeechHead::init_weights(module);
  if (&module == this && layer_weights)
    init::constant_(*layer_weights, 1.0 / static_cast<double>(config().integer("num_hidden_layers") + 1));
}

ModelOutput SpeechClassification::forward(const ModelInputs& in) {
  const auto [base, states] = heard_states(model, config(), in, layer_weights);
  const Tensor x = projector(states), attention_mask = in[arg::attention_mask];
  Tensor pooled;
  if (attention_mask.defined()) {
    const Tensor kept = speech_frame_mask(config(), x.sym_size(1), attention_mask);
    pooled = where(kept.unsqueeze(-1), x, Scalar(0.0)).sum({1}) / kept.sum({1}).view({-1, 1});
  } else {
    pooled = x.mean({1});
  }
  const Tensor logits = classifier(pooled), labels = in[arg::labels];
  return labelled_output(base, labels.defined() ? token_loss(logits, labels) : Tensor(), logits);
}

std::optional<Parameter> masked_spec_embedding(Module& model, const Config& config) {
  if (config.number("mask_time_prob") <= 0 && config.number("mask_feature_prob") <= 0) return std::nullopt;
  return model.register_parameter("masked_spec_embed", rand({config.integer("hidden_size")}));
}

HeardFrames heard_frames(const PretrainedModel& model, Child<SpeechFeatureEncoder>& extractor,
                         Child<SpeechFeatureProjection>& projection, const std::optional<Parameter>& masked_spec_embed,
                         bool hides_kept_alone, const ModelInputs& in) {
  const Tensor features = extractor(in[arg::input_values]).transpose(1, 2);
  HeardFrames out;
  out.in = in;
  out.kept = in[arg::attention_mask];
  if (out.kept.defined()) out.kept = speech_frame_mask(model.config(), features.sym_size(1), out.kept);
  auto [x, before] = projection(features);
  out.states =
      spec_augmented(model, x, in[arg::mask_time_indices], masked_spec_embed ? Tensor(*masked_spec_embed) : Tensor(),
                     hides_kept_alone ? out.kept : Tensor());
  out.before = before;
  out.in.set(arg::attention_mask, out.kept);
  return out;
}

}  // namespace calque
