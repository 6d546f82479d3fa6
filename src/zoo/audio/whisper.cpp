// Whisper: two convolutions over log-mel features of a fixed length, sines as positions, layers with the norm in front whose keys
// have no bias; a decoder with learned positions.
#include <cmath>

#include "calque/base/error.h"
#include "calque/nn/convolution.h"
#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/zeros.h"
#include "zoo/blocks/speech_encoder.h"
#include "zoo/heads/decoder_heads.h"
#include "zoo/heads/encoder_heads.h"
#include "zoo/heads/hearing.h"
#include "zoo/heads/speech_heads.h"

namespace calque::whisper {

namespace {

constexpr Seq2SeqStyle whisper_style{.module = "transformers.models.whisper.modeling_whisper",
                                     .prefix = "Whisper",
                                     .pre_norm = true,
                                     .embedding_scale = Seq2SeqStyle::EmbeddingScale::none,
                                     .labels_switch_cache_off = false,
                                     .final_logits_bias = false,
                                     .key_bias = false,
                                     .given_positions = true,
                                     .position_rows = "max_target_positions",
                                     .learned_positions = "PositionalEmbedding"};

// Sines in the first half of a row, cosines in the second.
Tensor whisper_sinusoids(int64_t rows, int64_t size) {
  const int64_t half = size / 2;
  const float step = static_cast<float>(std::log(10000.0)) / static_cast<float>(half - 1);
  std::vector<float> values(static_cast<size_t>(rows * size));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(row) * std::exp(-step * static_cast<float>(i));
      values[static_cast<size_t>(row * size + i)] = std::sin(angle);
      values[static_cast<size_t>(row * size + size / 2 + i)] = std::cos(angle);
    }
  return tensor_of<float>(values, {rows, size});
}

struct WhisperEncoder : ModelOf<WhisperEncoder, Seq2SeqPretrained> {
  static constexpr const char* torch_type = "transformers.models.whisper.modeling_whisper.WhisperEncoder";
  static constexpr ModelArgument forward_arguments[] = {arg::input_features, arg::attention_mask, arg::output_attentions,
                                                        arg::output_hidden_states, arg::head_mask};
  explicit WhisperEncoder(const Config& c)
      : ModelOf(whisper_style, "WhisperEncoder", c),
        conv1(child<Conv1d>("conv1", c.integer("num_mel_bins"), c.integer("d_model"), 3, ConvOptions{.padding = Sizes(1)})),
        conv2(child<Conv1d>("conv2", c.integer("d_model"), c.integer("d_model"), 3,
                            ConvOptions{.stride = 2, .padding = Sizes(1)})),
        embed_positions(child<Embedding>("embed_positions", c.integer("max_source_positions"), c.integer("d_model"))),
        layers(child<ModuleList>("layers")),
        layer_norm(child<LayerNorm>("layer_norm", c.integer("d_model"))) {
    (*embed_positions->weight).set_requires_grad(false);
    for (int64_t i = 0; i < c.integer("encoder_layers"); ++i) layers->emplace<Seq2SeqEncoderLayer>(whisper_style, c);
  }
  std::string main_input_name() const override { return "input_features"; }
  void init_weights(Module& module) override {
    Seq2SeqPretrained::init_weights(module);
    if (auto* encoder = dynamic_cast<WhisperEncoder*>(&module)) {
      const GradModeScope no_grad(false);
      const Tensor& table = *encoder->embed_positions->weight;
      if (table.device().type != DeviceType::meta) table.copy_(whisper_sinusoids(table.size(0), table.size(1)));
    }
  }

  ModelOutput forward(const ModelInputs& in) override {
    const Tensor features = in[arg::input_features];
    const int64_t expected = 2 * config().integer("max_source_positions");
    if (const SymInt length = features.sym_size(-1); guard(length != expected))
      throw UserError("Whisper expects the mel input features to be of length " + std::to_string(expected) + ", but found " +
                      length.str() + ". Make sure to pad the input mel features to " + std::to_string(expected) + ".");
    Tensor x = gelu(conv2(gelu(conv1(features)))).permute({0, 2, 1});
    x = functional::dropout(x + embed_positions->weight, config().number("dropout"), training());
    const bool eager = eager_attention(config(), wants_attentions(in), in[arg::head_mask]);
    return through_encoder(*layers, &*layer_norm, x, AttentionMask(), in, eager);
  }

  Child<Conv1d> conv1, conv2;
  Child<Embedding> embed_positions;
  Child<ModuleList> layers;
  Child<LayerNorm> layer_norm;
};

ModelInputs whisper_example(const Config& c, int64_t batch, int64_t) {
  ModelInputs in;
  in.set(arg::input_features, example_features({batch, c.integer("num_mel_bins"), 2 * c.integer("max_source_positions")}));
  return in;
}

// While training: frames and bins that are not heard.
Tensor heard(const PretrainedModel& model, const Tensor& features, const Tensor& attention_mask) {
  if (!model.training()) return features;
  const Tensor kept = attention_mask.defined() ? attention_mask : Tensor();
  return spec_augmented(model, features.transpose(1, 2), Tensor(), zeros({features.sym_size(1)}), kept).transpose(1, 2);
}

constexpr HearingStyle whisper_hearing{
    &whisper_style,
    "proj_out",
    [](const Config& c) -> std::shared_ptr<PretrainedModel> { return std::make_shared<WhisperEncoder>(c); },
    [](const Config&, const SymInt&, const Tensor&) { return Tensor(); },
    heard,
    whisper_example};

// The decoder alone, with what it looks at given as encoder_outputs.
struct WhisperForCausalLM : ModelOf<WhisperForCausalLM, Seq2SeqPretrained> {
  static constexpr const char* torch_type = "transformers.models.whisper.modeling_whisper.WhisperForCausalLM";
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,    arg::attention_mask, arg::encoder_outputs, arg::past_key_values,   arg::inputs_embeds,
      arg::position_ids, arg::labels,         arg::use_cache,       arg::output_attentions, arg::output_hidden_states};
  explicit WhisperForCausalLM(const Config& c)
      : ModelOf(whisper_style, "WhisperForCausalLM", alone(c)),
        model(child<Seq2SeqDecoderWrapper>("model", whisper_style, config())),
        proj_out(child<Linear>("proj_out", c.integer("d_model"), c.integer("vocab_size"), false)) {}
  static Config alone(Config c) {
    c.set("is_encoder_decoder", false);
    return c;
  }
  ModelOutput forward(const ModelInputs& given) override {
    ModelInputs in = given;
    if (!in[arg::encoder_outputs].is_none())
      in.set(arg::encoder_hidden_states, given_encoder_outputs(in[arg::encoder_outputs])["last_hidden_state"]);
    const ModelOutput base = model->decoder(in);
    const Tensor logits = proj_out(base["last_hidden_state"]);
    ModelOutput out;
    if (in[arg::labels].defined()) out.set("loss", token_loss(logits, in[arg::labels]));
    out.set("logits", logits);
    out.take(base, {"past_key_values", "hidden_states", "attentions", "cross_attentions"});
    return out;
  }
  TiedWeights tied_weights() const override {
    if (!config().flag("tie_word_embeddings")) return {};
    return {{"proj_out.weight", "model.decoder.embed_tokens.weight"}};
  }
  bool can_generate() const override { return true; }
  Child<Embedding>* input_embeddings() override { return model->input_embeddings(); }
  Child<Linear>* output_embeddings() override { return &proj_out; }
  Child<Seq2SeqDecoderWrapper> model;
  Child<Linear> proj_out;
};

struct WhisperForAudioClassification : ModelOf<WhisperForAudioClassification, Seq2SeqPretrained> {
  static constexpr const char* torch_type = "transformers.models.whisper.modeling_whisper.WhisperForAudioClassification";
  static constexpr ModelArgument forward_arguments[] = {arg::input_features, arg::encoder_outputs, arg::labels,
                                                        arg::output_attentions, arg::output_hidden_states};
  explicit WhisperForAudioClassification(const Config& c)
      : ModelOf(whisper_style, "WhisperForAudioClassification", c),
        layer_weights(layer_weights_of(*this, c)),
        encoder(child<WhisperEncoder>("encoder", c)),
        projector(child<Linear>("projector", c.integer("d_model"), c.integer("classifier_proj_size"))),
        classifier(child<Linear>("classifier", c.integer("classifier_proj_size"), num_labels(c))) {}
  std::string main_input_name() const override { return "input_features"; }
  bool is_encoder_decoder() const override { return false; }
  ModelInputs example_inputs(const ExampleSizes& sizes) const override {
    return whisper_example(config(), sizes.batch, sizes.length);
  }
  ModelOutput forward(const ModelInputs& given) override {
    ModelInputs in = given;
    if (layer_weights) in.set(arg::output_hidden_states, true);
    const ModelOutput base =
        in[arg::encoder_outputs].is_none() ? encoder(in) : given_encoder_outputs(in[arg::encoder_outputs]);
    const Tensor states = layer_weights ? weighted_layers(base, *layer_weights) : Tensor(base["last_hidden_state"]);
    const Tensor logits = classifier(projector(states).mean({1})), labels = in[arg::labels];
    return labelled_output(base, labels.defined() ? token_loss(logits, labels) : Tensor(), logits);
  }
  void init_weights(Module& module) override {
    encoder->init_weights(module);
    if (&module == this && layer_weights)
      init::constant_(*layer_weights, 1.0 / static_cast<double>(config().integer("num_hidden_layers") + 1));
  }
  std::optional<Parameter> layer_weights;
  Child<WhisperEncoder> encoder;
  Child<Linear> projector, classifier;
};

std::vector<ModelClass> whisper_classes() {
  std::vector<ModelClass> out = hearing_classes(whisper_hearing);
  out.push_back(model_class<WhisperForCausalLM>("WhisperForCausalLM", {"causal-lm"}));
  out.push_back(model_class<WhisperForAudioClassification>("WhisperForAudioClassification", {"audio-classification"}));
  return out;
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "whisper",
      .config_class = "WhisperConfig",
      .attribute_map = {{"num_key_value_heads", "encoder_attention_heads"},
                        {"num_attention_heads", "encoder_attention_heads"},
                        {"hidden_size", "d_model"},
                        {"num_hidden_layers", "encoder_layers"}},
      .defaults = R"({"vocab_size": 51865, "num_mel_bins": 80, "encoder_layers": 4, "encoder_attention_heads": 6,
        "decoder_layers": 4, "decoder_attention_heads": 6, "decoder_ffn_dim": 1536, "encoder_ffn_dim": 1536,
        "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "decoder_start_token_id": 50257, "use_cache": true,
        "is_encoder_decoder": true, "activation_function": "gelu", "d_model": 384, "dropout": 0.0, "attention_dropout": 0.0,
        "activation_dropout": 0.0, "init_std": 0.02, "scale_embedding": false, "max_source_positions": 1500,
        "max_target_positions": 448, "pad_token_id": 50256, "bos_token_id": 50256, "eos_token_id": 50256,
        "suppress_tokens": null, "begin_suppress_tokens": [220, 50256], "use_weighted_layer_sum": false,
        "classifier_proj_size": 256, "apply_spec_augment": false, "mask_time_prob": 0.05, "mask_time_length": 10,
        "mask_time_min_masks": 2, "mask_feature_prob": 0.0, "mask_feature_length": 10, "mask_feature_min_masks": 0,
        "median_filter_width": 7, "tie_word_embeddings": true})",
      .schema = {.keys = {{"num_mel_bins", KeyKind::size},
                          {"max_source_positions", KeyKind::size},
                          {"max_target_positions", KeyKind::size},
                          {"classifier_proj_size", KeyKind::size},
                          {"mask_time_prob", KeyKind::probability},
                          {"mask_time_length", KeyKind::length},
                          {"mask_time_min_masks", KeyKind::count},
                          {"mask_feature_prob", KeyKind::probability},
                          {"mask_feature_length", KeyKind::length},
                          {"mask_feature_min_masks", KeyKind::count},
                          {"median_filter_width", KeyKind::length}},
                 .relations = {multiple("d_model", "encoder_attention_heads"),
                               multiple("d_model", "decoder_attention_heads")},
                 .tables = {{"max_source_positions", "d_model"}}},
      .classes = whisper_classes(),
  });
}

}  // namespace calque::whisper
