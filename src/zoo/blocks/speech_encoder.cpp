#include "speech_encoder.h"

#include <cmath>

#include "calque/base/error.h"
#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/convolution.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/folding.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "encoder_decoder.h"

namespace calque {

namespace {

int64_t last_channels(const Config& c) { return c.integers("conv_dim").back(); }

SpeechConvLayer::Norm norm_of_layer(const Config& c, size_t number) {
  if (c.text("feat_extract_norm") == "layer") return SpeechConvLayer::Norm::layer;
  return number == 0 ? SpeechConvLayer::Norm::group : SpeechConvLayer::Norm::none;
}

}  // namespace

ConfigSchema speech_schema(std::vector<KeyRule> own) {
  std::vector<KeyRule> keys = {{"num_feat_extract_layers", KeyKind::layers},
                               {"conv_dim", KeyKind::size},
                               {"conv_stride", KeyKind::length},
                               {"conv_kernel", KeyKind::size},
                               {"num_conv_pos_embeddings", KeyKind::size},
                               {"num_conv_pos_embedding_groups", KeyKind::heads},
                               {"feat_proj_dropout", KeyKind::probability},
                               {"final_dropout", KeyKind::probability},
                               {"mask_time_prob", KeyKind::probability},
                               {"mask_time_length", KeyKind::length},
                               {"mask_time_min_masks", KeyKind::count},
                               {"mask_feature_prob", KeyKind::probability},
                               {"mask_feature_length", KeyKind::length},
                               {"mask_feature_min_masks", KeyKind::count},
                               {"classifier_proj_size", KeyKind::size}};
  keys.insert(keys.end(), own.begin(), own.end());
  return {.keys = std::move(keys),
          .relations = {multiple("hidden_size", "num_attention_heads"),
                        multiple("hidden_size", "num_conv_pos_embedding_groups")}};
}

void check_speech_convolutions(const Config& c) {
  const size_t layers = c.integers("conv_dim").size();
  const auto refuse = [&](const std::string& what) { throw UserError(ErrorKind::bad_file, c.where() + ": " + what); };
  if (layers == 0) refuse("\"conv_dim\" is empty, expected the channels of one convolution or more");
  for (const char* key : {"conv_stride", "conv_kernel"})
    if (const size_t found = c.integers(key).size(); found != layers)
      refuse(std::string("\"") + key + "\" has " + std::to_string(found) + " numbers, expected " + std::to_string(layers) +
             ", as conv_dim has");
  if (const std::string norm = c.text("feat_extract_norm"); norm != "group" && norm != "layer")
    refuse("\"feat_extract_norm\" is \"" + norm + "\", expected group or layer");
}

SpeechConvLayer::SpeechConvLayer(const Config& c, std::string family, size_t number, Norm norm)
    : family(std::move(family)),
      kind(norm),
      conv(child<Conv1d>("conv", number == 0 ? 1 : c.integers("conv_dim")[number - 1], c.integers("conv_dim")[number],
                         c.integers("conv_kernel")[number],
                         ConvOptions{.stride = c.integers("conv_stride")[number], .bias = c.flag("conv_bias")})),
      layer_norm(child_if<LayerNorm>(norm == Norm::layer, *this, "layer_norm", c.integers("conv_dim")[number])),
      group_norm(child_if<GroupNorm>(norm == Norm::group, *this, "layer_norm", c.integers("conv_dim")[number],
                                     c.integers("conv_dim")[number])),
      activation(activation_named(c.text("feat_extract_activation"))) {}

std::string SpeechConvLayer::type_name() const {
  return family + (kind == Norm::none ? "NoLayerNorm" : kind == Norm::group ? "GroupNorm" : "LayerNorm") + "ConvLayer";
}

Tensor SpeechConvLayer::forward(const Tensor& hidden_states) {
  Tensor x = conv(hidden_states);
  if (layer_norm) x = (*layer_norm)(x.transpose(-2, -1)).transpose(-2, -1);
  if (group_norm) x = (*group_norm)(x);
  return activation(x);
}

SpeechFeatureEncoder::SpeechFeatureEncoder(const Config& c, const std::string& family)
    : FamilyModule(family), conv_layers(child<ModuleList>("conv_layers")) {
  check_speech_convolutions(c);
  for (size_t i = 0; i < c.integers("conv_dim").size(); ++i)
    conv_layers->emplace<SpeechConvLayer>(c, family, i, norm_of_layer(c, i));
}

Tensor SpeechFeatureEncoder::forward(const Tensor& input_values) {
  Tensor x = input_values.unsqueeze(1);
  const std::vector<SpeechConvLayer*> all = conv_layers->items<SpeechConvLayer>();
  // Sound wants no gradient, and without one no pass goes back through a checkpointed layer.
  const bool checkpointed = !all.empty() && all[0]->gradient_checkpointing && all[0]->conv->weight->requires_grad();
  if (checkpointed && training() && records_gradients()) x.set_requires_grad();
  for (SpeechConvLayer* layer : all) x = (*layer)(x);
  return x;
}

SpeechFeatureProjection::SpeechFeatureProjection(const Config& c, std::string family, bool norm)
    : FamilyModule(std::move(family)),
      layer_norm(child_if<LayerNorm>(norm, *this, "layer_norm", last_channels(c),
                                     LayerNormOptions{.eps = c.number("layer_norm_eps")})),
      projection(child<Linear>("projection", last_channels(c), c.integer("hidden_size"))),
      dropout(child<Dropout>("dropout", c.number("feat_proj_dropout"))) {}

std::tuple<Tensor, Tensor> SpeechFeatureProjection::forward(const Tensor& hidden_states) {
  const Tensor x = layer_norm ? (*layer_norm)(hidden_states) : hidden_states;
  return {dropout(projection(x)), x};
}

WeightNormParts::WeightNormParts(const Tensor& weight)
    : original0(register_parameter("original0", norm_except_dim(weight, 2, 2))),
      original1(register_parameter("original1", weight)) {}

Tensor WeightNormParts::forward() { return _weight_norm(original1, original0, 2); }

namespace {

// What a convolution starts with.
Tensor start_of_convolution(int64_t channels, int64_t kernel, int64_t groups) {
  return init::kaiming_uniform_(empty({channels, channels / groups, kernel}), std::sqrt(5.0));
}

}  // namespace

WeightNormedConv1d::WeightNormedConv1d(int64_t channels, int64_t kernel, int64_t groups)
    : kernel(kernel),
      groups(groups),
      bias(register_parameter("bias", zeros({channels}))),
      parametrizations(child<WeightParametrizations>("parametrizations", start_of_convolution(channels, kernel, groups))) {}

std::string WeightNormedConv1d::extra_repr() const {
  const std::string channels = std::to_string(bias->size(0));
  std::string out = channels + ", " + channels + ", kernel_size=(" + std::to_string(kernel) + ",), stride=(1,)";
  if (kernel / 2 > 0) out += ", padding=(" + std::to_string(kernel / 2) + ",)";
  if (groups != 1) out += ", groups=" + std::to_string(groups);
  return out;
}

Tensor WeightNormedConv1d::forward(const Tensor& input) {
  return conv1d(input, parametrizations(), bias, {1}, {kernel / 2}, {1}, groups);
}

SpeechPositions::SpeechPositions(const Config& c, std::string family)
    : FamilyModule(std::move(family)),
      kernel(c.integer("num_conv_pos_embeddings")),
      normed(child_if<WeightNormedConv1d>(!c.flag("conv_pos_batch_norm"), *this, "conv", c.integer("hidden_size"), kernel,
                                          c.integer("num_conv_pos_embedding_groups"))),
      plain(child_if<Conv1d>(
          c.flag("conv_pos_batch_norm"), *this, "conv", c.integer("hidden_size"), c.integer("hidden_size"), kernel,
          ConvOptions{.padding = Sizes(kernel / 2), .groups = c.integer("num_conv_pos_embedding_groups")})),
      batch_norm(child_if<BatchNorm1d>(c.flag("conv_pos_batch_norm"), *this, "batch_norm", c.integer("hidden_size"))),
      activation(activation_named(c.text("feat_extract_activation"))) {}

Tensor SpeechPositions::forward(const Tensor& hidden_states) {
  Tensor x = hidden_states.transpose(1, 2);
  if (batch_norm) x = (*batch_norm)(x);
  x = normed ? (*normed)(x) : (*plain)(x);
  if (kernel % 2 == 0) x = x.slice(2, 0, -1);
  return activation(x).transpose(1, 2);
}

SpeechAttention::SpeechAttention(const Config& c, std::string family)
    : Typed(Options{.hidden_size = c.integer("hidden_size"),
                    .heads = c.integer("num_attention_heads"),
                    .dropout = c.number("attention_dropout")}),
      family(std::move(family)) {}

SpeechFeedForward::SpeechFeedForward(const Config& c, std::string family)
    : FamilyModule(std::move(family)),
      intermediate_dropout(child<Dropout>("intermediate_dropout", c.number("activation_dropout"))),
      intermediate_dense(child<Linear>("intermediate_dense", c.integer("hidden_size"), c.integer("intermediate_size"))),
      activation(activation_named(c.text("hidden_act"))),
      output_dense(child<Linear>("output_dense", c.integer("intermediate_size"), c.integer("hidden_size"))),
      output_dropout(child<Dropout>("output_dropout", c.number("hidden_dropout"))) {}

Tensor SpeechFeedForward::forward(const Tensor& hidden_states) {
  return output_dropout(output_dense(intermediate_dropout(activation(intermediate_dense(hidden_states)))));
}

SpeechAttnAdapter::SpeechAttnAdapter(const Config& c, std::string family)
    : FamilyModule(std::move(family)),
      norm(child<LayerNorm>("norm", c.integer("hidden_size"))),
      linear_1(child<Linear>("linear_1", c.integer("hidden_size"), c.integer("adapter_attn_dim"))),
      act_fn(child<ReLU>("act_fn")),
      linear_2(child<Linear>("linear_2", c.integer("adapter_attn_dim"), c.integer("hidden_size"))) {}

Tensor SpeechAttnAdapter::forward(const Tensor& hidden_states) { return linear_2(act_fn(linear_1(norm(hidden_states)))); }

SpeechLayer::SpeechLayer(const Config& c, const std::string& family)
    : family(family),
      stable(c.flag("do_stable_layer_norm")),
      attention(child<SpeechAttention>("attention", c, family)),
      dropout(child<Dropout>("dropout", c.number("hidden_dropout"))),
      layer_norm(
          child<LayerNorm>("layer_norm", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
      feed_forward(child<SpeechFeedForward>("feed_forward", c, family)),
      final_layer_norm(child<LayerNorm>("final_layer_norm", c.integer("hidden_size"),
                                        LayerNormOptions{.eps = c.number("layer_norm_eps")})),
      adapter_layer(child_if<SpeechAttnAdapter>(stable && c.has("adapter_attn_dim"), *this, "adapter_layer", c, family)) {}

SpeechLayer::Result SpeechLayer::forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask,
                                         bool eager) {
  const auto [attended, weights, none] =
      attention(stable ? layer_norm(hidden_states) : hidden_states, mask, Tensor(), LayerCache(), head_mask, eager);
  Tensor x = hidden_states + dropout(attended);
  if (!stable) {
    x = layer_norm(x);
    return {final_layer_norm(x + feed_forward(x)), weights};
  }
  x = x + feed_forward(final_layer_norm(x));
  if (adapter_layer) x = x + (*adapter_layer)(x);
  return {x, weights};
}

SpeechEncoder::SpeechEncoder(const Config& c, const std::string& family)
    : family(family),
      stable(c.flag("do_stable_layer_norm")),
      layerdrop(c.number("layerdrop")),
      pos_conv_embed(child<SpeechPositions>("pos_conv_embed", c, family)),
      layer_norm(
          child<LayerNorm>("layer_norm", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
      dropout(child<Dropout>("dropout", c.number("hidden_dropout"))),
      layers(child<ModuleList>("layers")) {
  for (int64_t i = 0; i < c.integer("num_hidden_layers"); ++i) layers->emplace<SpeechLayer>(c, family);
}

EncoderResult SpeechEncoder::forward(const EncoderInputs& in, const Tensor& kept) {
  Tensor x = in.hidden_states;
  if (kept.defined()) x = masked_fill(x, logical_not(kept).unsqueeze(-1), 0);
  x = x + pos_conv_embed(x);
  if (!stable) x = layer_norm(x);
  x = dropout(x);
  EncoderResult out;
  size_t i = 0;
  for (SpeechLayer* layer : layers->items<SpeechLayer>()) {
    const size_t at = i++;
    if (drops_layer(training(), layerdrop)) continue;
    if (in.want_hidden_states && out.hidden_states.empty()) out.hidden_states.push_back(x);
    auto [y, weights] = (*layer)(x, in.mask, at < in.head_mask.size() ? in.head_mask[at] : Tensor(), in.eager);
    x = y;
    if (in.want_hidden_states) out.hidden_states.push_back(x);
    if (in.want_attentions && weights.defined()) out.attentions.push_back(weights);
  }
  out.last_hidden_state = stable ? layer_norm(x) : x;
  return out;
}

Tensor speech_frames(const Config& c, const Tensor& samples, int64_t adapter_layers) {
  const std::vector<int64_t> kernels = c.integers("conv_kernel"), strides = c.integers("conv_stride");
  Tensor length = samples;
  for (size_t i = 0; i < kernels.size(); ++i) length = floor_divide(length - kernels[i], strides[i]) + 1;
  for (int64_t i = 0; i < adapter_layers; ++i) length = floor_divide(length - 1, c.integer("adapter_stride")) + 1;
  return length;
}

Tensor speech_frame_mask(const Config& c, const SymInt& frames, const Tensor& attention_mask, int64_t adapter_layers) {
  const Tensor samples = attention_mask.to(DType::int64).sum({-1});
  const Tensor last = speech_frames(c, samples, adapter_layers) - 1;
  // One before the first is the last: no sound at all hides nothing.
  const Tensor counted = where(lt(last, 0), last + Scalar(frames), last);
  const Tensor places = arange(frames, DType::int64, std::nullopt, attention_mask.device());
  return le(places.unsqueeze(0), counted.unsqueeze(1));
}

}  // namespace calque
