#include "clip_layers.h"

#include <cmath>

#include "calque/base/error.h"
#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"

namespace calque {

static LayerNormOptions norm_options(const Config& c) { return {.eps = c.number("layer_norm_eps")}; }

ClipAttention::ClipAttention(const Config& c, const std::string& family)
    : NamedModule(family + "Attention", Options{.hidden_size = c.integer("hidden_size"),
                                                .heads = c.integer("num_attention_heads"),
                                                .dropout = c.number("attention_dropout"),
                                                .softmax_in_float32 = true}) {}

ClipMLP::ClipMLP(const Config& c, std::string family)
    : FamilyModule(std::move(family)),
      activation(activation_named(c.text("hidden_act"))),
      fc1(child<Linear>("fc1", c.integer("hidden_size"), c.integer("intermediate_size"))),
      fc2(child<Linear>("fc2", c.integer("intermediate_size"), c.integer("hidden_size"))) {}

ClipEncoderLayer::ClipEncoderLayer(const Config& c, const std::string& family)
    : Checkpointed(family),
      self_attn(child<ClipAttention>("self_attn", c, family)),
      layer_norm1(child<LayerNorm>("layer_norm1", c.integer("hidden_size"), norm_options(c))),
      mlp(child<ClipMLP>("mlp", c, family)),
      layer_norm2(child<LayerNorm>("layer_norm2", c.integer("hidden_size"), norm_options(c))) {}

std::tuple<Tensor, Tensor> ClipEncoderLayer::forward(const Tensor& hidden_states, const AttentionMask& mask,
                                                     const Tensor& head_mask, bool eager) {
  auto [attended, weights, cache] = self_attn(layer_norm1(hidden_states), mask, Tensor(), LayerCache(), head_mask, eager);
  const Tensor x = hidden_states + attended;
  return {x + mlp(layer_norm2(x)), weights};
}

ClipEncoder::ClipEncoder(const Config& c, const std::string& family)
    : FamilyModule(family), layers(child<ModuleList>("layers")) {
  for (int64_t i = 0; i < c.integer("num_hidden_layers"); ++i) layers->emplace<ClipEncoderLayer>(c, family);
}

static int64_t patches_of(const Config& c) {
  const PictureSize grid = patch_grid(c);
  return grid.height * grid.width;
}

ClipVisionEmbeddings::ClipVisionEmbeddings(const Config& c, std::string family, bool has_class_token)
    : FamilyModule(std::move(family)),
      channels(c.integer("num_channels")),
      image_size(picture_size(c, "image_size")),
      patch_size(picture_size(c, "patch_size")),
      class_embedding(
          register_parameter("class_embedding", has_class_token ? unset_parameter({c.integer("hidden_size")}) : Tensor())),
      patch_embedding(child<Conv2d>("patch_embedding", channels, c.integer("hidden_size"), patch_size.both(),
                                    ConvOptions{.stride = patch_size.both(), .bias = !has_class_token})),
      position_embedding(
          child<Embedding>("position_embedding", patches_of(c) + (has_class_token ? 1 : 0), c.integer("hidden_size"))) {}

Tensor ClipVisionEmbeddings::forward(const Tensor& pixel_values, bool interpolate_pos_encoding) {
  const Tensor pixels = checked_pixels(pixel_values, channels, patch_embedding->weight->dtype());
  const SymInt height = pixels.sym_size(2), width = pixels.sym_size(3);
  if (!interpolate_pos_encoding && guard(sym_or(height != image_size.height, width != image_size.width)))
    throw UserError("Input image size (" + height.str() + "*" + width.str() + ") doesn't match model (" +
                    std::to_string(image_size.height) + "*" + std::to_string(image_size.width) +
                    "); interpolate_pos_encoding takes pictures of other sizes");
  Tensor x = patch_embedding(pixels).flatten(2).transpose(1, 2);
  const SymInt patches = x.sym_size(1);
  const bool first = class_embedding.defined();
  if (first) x = cat({class_embedding->expand({x.sym_size(0), 1, -1}), x}, 1);
  const Tensor table = position_embedding->weight->unsqueeze(0);
  return x + (interpolate_pos_encoding ? positions_for(table, first ? 1 : 0, patches, height, width, patch_size) : table);
}

ClipTextEmbeddings::ClipTextEmbeddings(const Config& c, std::string family)
    : FamilyModule(std::move(family)),
      token_embedding(child<Embedding>("token_embedding", c.integer("vocab_size"), c.integer("hidden_size"))),
      position_embedding(
          child<Embedding>("position_embedding", c.integer("max_position_embeddings"), c.integer("hidden_size"))),
      position_ids(register_buffer("position_ids", arange(c.integer("max_position_embeddings")).unsqueeze(0), false)) {}

Tensor ClipTextEmbeddings::forward(const Tensor& input_ids, const Tensor& given_positions) {
  if (!input_ids.defined()) throw UserError("You have to specify input_ids");
  const SymInt length = input_ids.sym_size(-1);
  const int64_t longest = position_ids->size(1);
  if (!length.is_symbolic() && length.as_int() > longest)
    throw UserError("Sequence length must be less than max_position_embeddings (got `sequence length`: " + length.str() +
                    " and max_position_embeddings: " + std::to_string(longest) + ")");
  const Tensor positions = given_positions.defined() ? given_positions : position_ids->slice(1, 0, length);
  const Tensor words = token_embedding(input_ids);
  return words + position_embedding(positions);
}

EncoderInputs unmasked_inputs(const PretrainedModel& model, const ModelInputs& in, const Tensor& embedded) {
  EncoderInputs out;
  out.hidden_states = embedded;
  out.want_hidden_states = model.wants_hidden_states(in);
  out.want_attentions = model.wants_attentions(in);
  out.eager = eager_attention(model.config(), out.want_attentions);
  return out;
}

ClipTexts::ClipTexts(const Config& c, const std::string& family)
    : PretrainedModel(c),
      embeddings(child<ClipTextEmbeddings>("embeddings", c, family)),
      encoder(child<ClipEncoder>("encoder", c, family)),
      final_layer_norm(child<LayerNorm>("final_layer_norm", c.integer("hidden_size"), norm_options(c))) {}

ClipPictures::ClipPictures(const Config& c, const std::string& family)
    : VisionModel(c),
      embeddings(child<ClipVisionEmbeddings>("embeddings", c, family)),
      pre_layrnorm(child<LayerNorm>("pre_layrnorm", c.integer("hidden_size"), norm_options(c))),
      encoder(child<ClipEncoder>("encoder", c, family)),
      post_layernorm(child<LayerNorm>("post_layernorm", c.integer("hidden_size"), norm_options(c))) {}

ModelOutput ClipPictures::forward(const ModelInputs& in) {
  const Tensor embedded = pre_layrnorm(embeddings(in[arg::pixel_values], in[arg::interpolate_pos_encoding].value_or(false)));
  const EncoderResult result = encoder(unmasked_inputs(*this, in, embedded));
  return encoder_output(result, post_layernorm(result.last_hidden_state.select(1, 0)));
}

void ClipPictures::init_weights(Module& module) {
  if (!init_clip_part(module, config())) VisionModel::init_weights(module);
}

bool init_clip_part(Module& module, const Config& config) {
  const double factor = config.optional_number("initializer_factor").value_or(1);
  const auto deviation = [&](int64_t size) { return factor / std::sqrt(static_cast<double>(size)); };
  const auto layers = [&] { return 2 * std::max<int64_t>(config.integer("num_hidden_layers"), 1); };
  const auto set = [](const Child<Linear>& linear, double std) {
    init::normal_(linear->weight, 0, std);
    init::zeros_(linear->bias);
  };
  if (auto* texts = dynamic_cast<ClipTextEmbeddings*>(&module)) {
    init::normal_(texts->token_embedding->weight, 0, factor * 0.02);
    init::normal_(texts->position_embedding->weight, 0, factor * 0.02);
  } else if (auto* pictures = dynamic_cast<ClipVisionEmbeddings*>(&module)) {
    const double range = config.number("initializer_range") * factor;
    if (pictures->class_embedding.defined())
      init::normal_(pictures->class_embedding, 0, deviation(pictures->class_embedding->size(0)));
    init::normal_(pictures->patch_embedding->weight, 0, range);
    init::normal_(pictures->position_embedding->weight, 0, range);
  } else if (auto* attention = dynamic_cast<ClipAttention*>(&module)) {
    const int64_t size = attention->heads * attention->size;
    for (const Child<Linear>* one : {&attention->q_proj, &attention->k_proj, &attention->v_proj})
      set(*one, deviation(size) / std::sqrt(static_cast<double>(layers())));
    set(attention->out_proj, deviation(size));
  } else if (auto* mlp = dynamic_cast<ClipMLP*>(&module)) {
    const int64_t size = mlp->fc1->in_features;
    set(mlp->fc1, deviation(2 * size));
    set(mlp->fc2, deviation(size) / std::sqrt(static_cast<double>(layers())));
  } else {
    return false;
  }
  return true;
}

Tensor normalized_rows(const Tensor& x) { return x / pow(sum(pow(x, 2), {-1}, true), 0.5); }

ModelOutput pairs_output(const Tensor& loss, const Tensor& logits_per_text, const Tensor& text_embeds,
                         const Tensor& image_embeds, const ModelOutput& text, const ModelOutput& vision) {
  ModelOutput out;
  if (loss.defined()) out.set("loss", loss);
  out.set("logits_per_image", logits_per_text.t());
  out.set("logits_per_text", logits_per_text);
  out.set("text_embeds", text_embeds);
  out.set("image_embeds", image_embeds);
  out.set("text_model_output", text.to_value());
  out.set("vision_model_output", vision.to_value());
  return out;
}

Tensor pairs_loss(const Tensor& logits_per_text) {
  const auto loss = [](const Tensor& logits) {
    return functional::cross_entropy(logits, arange(logits.sym_size(0), DType::int64, std::nullopt, logits.device()));
  };
  const Tensor captions = loss(logits_per_text), pictures = loss(logits_per_text.t());
  return (captions + pictures) / 2.0;
}

ModelOutput with_field(const ModelOutput& output, std::string_view name, const Tensor& value) {
  ModelOutput out;
  for (const auto& [field, now] : output.items()) out.set(field, field == name ? Value(value) : now);
  return out;
}

TwoTowers::TwoTowers(const Config& c, std::shared_ptr<PretrainedModel> text, std::shared_ptr<PretrainedModel> vision)
    : PretrainedModel(c),
      text_model(child_module<PretrainedModel>("text_model", std::move(text))),
      vision_model(child_module<PretrainedModel>("vision_model", std::move(vision))) {}

ModelInputs TwoTowers::example_inputs(const ExampleSizes& sizes) const {
  ModelInputs in = text_model->example_inputs(sizes);
  in.set(arg::pixel_values, vision_model->example_inputs(sizes)[arg::pixel_values]);
  return in;
}

ProjectedTowers::ProjectedTowers(const Config& c, std::shared_ptr<PretrainedModel> text,
                                 std::shared_ptr<PretrainedModel> vision, int64_t text_size)
    : TwoTowers(c, std::move(text), std::move(vision)),
      logit_scale(register_parameter("logit_scale", full({}, c.number("logit_scale_init_value")))),
      visual_projection(child<Linear>("visual_projection", vision_model->config().integer("hidden_size"),
                                      c.integer("projection_dim"), false)),
      text_projection(child<Linear>("text_projection", text_size, c.integer("projection_dim"), false)) {}

void ProjectedTowers::init_weights(Module& module) {
  PretrainedModel::init_weights(module);
  if (&module != this) return;
  init::constant_(logit_scale, config().number("logit_scale_init_value"));
  init_projection(text_projection, config());
  init_projection(visual_projection, config());
}

ModelOutput ProjectedTowers::compared(const ModelInputs& in, const Tensor& text_embeds, const Tensor& image_embeds,
                                      const ModelOutput& text, const ModelOutput& vision) const {
  const Tensor logits = matmul(text_embeds, image_embeds.t()) * exp(logit_scale);
  return pairs_output(in[arg::return_loss].value_or(false) ? pairs_loss(logits) : Tensor(), logits, text_embeds,
                      image_embeds, text, vision);
}

void init_projection(const Child<Linear>& projection, const Config& config) {
  init::normal_(projection->weight, 0,
                std::pow(projection->in_features, -0.5) * config.optional_number("initializer_factor").value_or(1));
}

TowerClassification::TowerClassification(const Config& c, std::shared_ptr<PretrainedModel> vision, int64_t lead)
    : PretrainedModel(c),
      lead(lead),
      vision_model(child_module<PretrainedModel>("vision_model", std::move(vision))),
      classifier(label_scores(*this, "classifier", c, vision_model->config().integer("hidden_size"))) {}

ModelOutput TowerClassification::forward(const ModelInputs& in) {
  const ModelOutput base = vision_model(in);
  const Tensor& tokens = base["last_hidden_state"];
  const Tensor pooled = mean(lead > 0 ? tokens.slice(1, lead) : tokens, {1});
  return sequence_classification_output(config(), base, scored(classifier, pooled), in[arg::labels]);
}

}  // namespace calque
