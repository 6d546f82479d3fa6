// HuBERT: wav2vec 2.0's encoder of raw sound (blocks/speech_encoder.h) without a quantizer.
#include "calque/hub/registry.h"
#include "calque/nn/init.h"
#include "zoo/heads/encoder_heads.h"
#include "zoo/heads/speech_heads.h"

namespace calque::hubert {

namespace {

constexpr char hubert_family[] = "transformers.models.hubert.modeling_hubert.Hubert";

struct HubertPretrained : SpeechPretrained {
  using SpeechPretrained::SpeechPretrained;
  std::string base_model_prefix() const override { return "hubert"; }
  std::vector<std::string> no_split_modules() const override { return {"HubertEncoderLayer", "ParametrizedConv1d"}; }
  void init_weights(Module& module) override {
    PretrainedModel::init_weights(module);
    if (auto* conv = dynamic_cast<Conv1d*>(&module)) {
      init::kaiming_normal_(conv->weight);
      if (conv->bias.defined()) init::zeros_(conv->bias);
    }
  }
};

struct HubertModel : ModelOf<HubertModel, HubertPretrained> {
  static constexpr const char* torch_type = "transformers.models.hubert.modeling_hubert.HubertModel";
  static constexpr auto& forward_arguments = speech_arguments;
  explicit HubertModel(const Config& c)
      : ModelOf(c),
        masked_spec_embed(masked_spec_embedding(*this, c)),
        feature_extractor(child<SpeechFeatureEncoder>("feature_extractor", c, hubert_family)),
        feature_projection(
            child<SpeechFeatureProjection>("feature_projection", c, hubert_family, c.flag("feat_proj_layer_norm"))),
        encoder(child<SpeechEncoder>("encoder", c, hubert_family)) {}
  void init_weights(Module& module) override {
    HubertPretrained::init_weights(module);
    if (&module == this && masked_spec_embed) init::uniform_(*masked_spec_embed);
  }

  ModelOutput forward(const ModelInputs& in) override {
    const HeardFrames heard = heard_frames(*this, feature_extractor, feature_projection, masked_spec_embed, false, in);
    return encoder_output(encoder(encoder_inputs(*this, heard.in, heard.states), heard.kept));
  }

  std::optional<Parameter> masked_spec_embed;
  Child<SpeechFeatureEncoder> feature_extractor;
  Child<SpeechFeatureProjection> feature_projection;
  Child<SpeechEncoder> encoder;
};

constexpr HeadFamily hubert_heads{hubert_family, "hubert", made_model<HubertModel>};

void complete_hubert(Config& config) {
  check_speech_convolutions(config);
  config.set("num_feat_extract_layers", static_cast<int64_t>(config.integers("conv_dim").size()));
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "hubert",
      .config_class = "HubertConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 32, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout": 0.1, "activation_dropout": 0.1,
        "attention_dropout": 0.1, "feat_proj_layer_norm": true, "feat_proj_dropout": 0.0, "final_dropout": 0.1,
        "layerdrop": 0.1, "initializer_range": 0.02, "layer_norm_eps": 1e-05, "feat_extract_norm": "group",
        "feat_extract_activation": "gelu", "conv_dim": [512, 512, 512, 512, 512, 512, 512],
        "conv_stride": [5, 2, 2, 2, 2, 2, 2], "conv_kernel": [10, 3, 3, 3, 3, 2, 2], "conv_bias": false,
        "num_conv_pos_embeddings": 128, "num_conv_pos_embedding_groups": 16, "conv_pos_batch_norm": false,
        "do_stable_layer_norm": false, "apply_spec_augment": true, "mask_time_prob": 0.05, "mask_time_length": 10,
        "mask_time_min_masks": 2, "mask_feature_prob": 0.0, "mask_feature_length": 10, "mask_feature_min_masks": 0,
        "ctc_loss_reduction": "sum", "ctc_zero_infinity": false, "use_weighted_layer_sum": false,
        "classifier_proj_size": 256, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2})",
      .schema = speech_schema({{"adapter_attn_dim", KeyKind::size}}),
      .complete = complete_hubert,
      .classes = {model_class<HubertModel>("HubertModel", {"default"}),
                  head_class<SpeechCTC>({"ctc"}, {&hubert_heads, "ForCTC"}),
                  head_class<SpeechClassification>({"audio-classification"}, {&hubert_heads, "ForSequenceClassification"})},
  });
}

}  // namespace calque::hubert
