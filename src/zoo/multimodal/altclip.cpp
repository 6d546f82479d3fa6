// AltCLIP: CLIP whose texts are read by XLM-RoBERTa, whose first token is projected.
#include "calque/base/error.h"
#include "calque/hub/registry.h"
#include "calque/nn/init.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/scans.h"
#include "zoo/blocks/bert_embeddings.h"
#include "zoo/blocks/clip_layers.h"

namespace calque::altclip {

namespace {

constexpr char altclip_family[] = "transformers.models.altclip.modeling_altclip.AltCLIP";
constexpr char altroberta_family[] = "transformers.models.altclip.modeling_altclip.AltRoberta";

std::vector<std::string> altclip_wholes() {
  return {"AltRobertaEmbeddings", "AltRobertaLayer", "AltCLIPEncoderLayer", "AltCLIPVisionEmbeddings"};
}

constexpr ModelArgument altclip_text_arguments[] = {arg::input_ids,           arg::attention_mask, arg::token_type_ids,
                                                    arg::position_ids,        arg::inputs_embeds,  arg::output_attentions,
                                                    arg::output_hidden_states};

struct AltRobertaEncoder : Typed<AltRobertaEncoder> {
  static constexpr const char* torch_type = "transformers.models.altclip.modeling_altclip.AltRobertaEncoder";
  static constexpr const char* forward_arguments[] = {"inputs"};
  explicit AltRobertaEncoder(const Config& c) : layers(child<ModuleList>("layers")) {
    for (int64_t i = 0; i < c.integer("num_hidden_layers"); ++i) layers->emplace<BertLayer>(c, altroberta_family);
  }
  EncoderResult forward(const EncoderInputs& in) { return run_layers<BertLayer>(*layers, in); }
  Child<ModuleList> layers;
};

struct AltRobertaModel : ModelOf<AltRobertaModel> {
  static constexpr const char* torch_type = "transformers.models.altclip.modeling_altclip.AltRobertaModel";
  static constexpr auto& forward_arguments = altclip_text_arguments;
  explicit AltRobertaModel(const Config& c)
      : ModelOf(c),
        embeddings(child<BertEmbeddings>("embeddings", c, altroberta_family,
                                         BertEmbeddingsOptions{.position_padding = c.optional_integer("pad_token_id")})),
        encoder(child<AltRobertaEncoder>("encoder", c)) {}
  ModelOutput forward(const ModelInputs& given) override {
    ModelInputs in = given;
    check_one_input(in);
    if (!in[arg::position_ids].defined()) in.set(arg::position_ids, positions(in));
    return encoder_output(encoder(encoder_inputs(*this, in, embed(embeddings, in))));
  }
  std::vector<std::string> no_split_modules() const override { return altclip_wholes(); }
  Child<Embedding>* input_embeddings() override { return &embeddings->word_embeddings; }
  Child<BertEmbeddings> embeddings;
  Child<AltRobertaEncoder> encoder;

 private:
  // As RoBERTa counts: padding has the position of its own id, the other tokens count on from there.
  Tensor positions(const ModelInputs& in) const {
    const int64_t padding = config().integer("pad_token_id");
    const Tensor ids = in[arg::input_ids];
    if (!ids.defined()) {
      const SymInt batch = in[arg::inputs_embeds].sym_size(0), length = in[arg::inputs_embeds].sym_size(1);
      return arange(padding + 1, length + (padding + 1), DType::int64, std::nullopt, in[arg::inputs_embeds].device())
          .unsqueeze(0)
          .expand({batch, length});
    }
    const Tensor kept = ne(ids, padding).to(DType::int32);
    return (cumsum(kept, 1).to(DType::int32) * kept).to(DType::int64) + padding;
  }
};

struct AltCLIPTextModel : ModelOf<AltCLIPTextModel> {
  static constexpr const char* torch_type = "transformers.models.altclip.modeling_altclip.AltCLIPTextModel";
  static constexpr auto& forward_arguments = altclip_text_arguments;
  explicit AltCLIPTextModel(const Config& c)
      : ModelOf(c),
        roberta(child<AltRobertaModel>("roberta", c)),
        transformation(child<Linear>("transformation", c.integer("hidden_size"), c.integer("project_dim"))),
        pre_LN(child<LayerNorm>("pre_LN", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = roberta(in);
    const Tensor projected = transformation(pre_LN(base["last_hidden_state"]));
    ModelOutput out;
    out.set("last_hidden_state", projected);
    out.set("pooler_output", projected.select(1, 0));
    out.take(base, {"hidden_states", "attentions"});
    return out;
  }
  std::string base_model_prefix() const override { return "text_model"; }  // of a whole model's checkpoint
  std::vector<std::string> no_split_modules() const override { return altclip_wholes(); }
  Child<Embedding>* input_embeddings() override { return roberta->input_embeddings(); }
  Child<AltRobertaModel> roberta;
  Child<Linear> transformation;
  Child<LayerNorm> pre_LN;
};

struct AltCLIPVisionModel : ModelOf<AltCLIPVisionModel, ClipPictures> {
  static constexpr const char* torch_type = "transformers.models.altclip.modeling_altclip.AltCLIPVisionModel";
  explicit AltCLIPVisionModel(const Config& c) : ModelOf(c, altclip_family) {}
  std::vector<std::string> no_split_modules() const override { return altclip_wholes(); }
};

struct AltCLIPModel : ModelOf<AltCLIPModel, ProjectedTowers> {
  static constexpr const char* torch_type = "transformers.models.altclip.modeling_altclip.AltCLIPModel";
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,         arg::pixel_values,         arg::attention_mask,
      arg::position_ids,      arg::token_type_ids,       arg::return_loss,
      arg::output_attentions, arg::output_hidden_states, arg::interpolate_pos_encoding};
  explicit AltCLIPModel(const Config& c)
      : ModelOf(c, std::make_shared<AltCLIPTextModel>(c.nested("text_config")),
                std::make_shared<AltCLIPVisionModel>(c.nested("vision_config")),
                c.nested("text_config").integer("project_dim")) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput texts = text_model(in), pictures = vision_model(in);
    const Tensor image_embeds = normalized_rows(visual_projection(pictures["pooler_output"]));
    const Tensor text_embeds = normalized_rows(text_projection(texts["pooler_output"]));
    return compared(in, text_embeds, image_embeds, texts, pictures);
  }
  std::string base_model_prefix() const override { return "altclip"; }
  std::vector<std::string> no_split_modules() const override { return altclip_wholes(); }
};

void complete_altclip(Config& config) {
  complete_part(config, "text_config", "altclip_text_model");
  complete_part(config, "vision_config", "altclip_vision_model");
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "altclip_text_model",
      .config_class = "AltCLIPTextConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 250002, "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
        "num_attention_heads": 16, "max_position_embeddings": 514, "hidden_act": "gelu", "layer_norm_eps": 1e-05,
        "initializer_range": 0.02, "initializer_factor": 0.02, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
        "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0, "type_vocab_size": 1, "project_dim": 768})",
      .schema = bert_schema({{"project_dim", KeyKind::size}}),
      .classes = {model_class<AltCLIPTextModel>("AltCLIPTextModel", {"special"})},
  });
  registry.add({
      .model_type = "altclip_vision_model",
      .config_class = "AltCLIPVisionConfig",
      .attribute_map = {},
      .defaults = R"({"hidden_size": 768, "intermediate_size": 3072, "projection_dim": 512, "num_hidden_layers": 12,
        "num_attention_heads": 12, "num_channels": 3, "image_size": 224, "patch_size": 32, "hidden_act": "quick_gelu",
        "layer_norm_eps": 1e-05, "attention_dropout": 0.0, "initializer_range": 0.02, "initializer_factor": 1.0})",
      .schema = {.relations = {multiple("hidden_size", "num_attention_heads")}},
      .classes = {model_class<AltCLIPVisionModel>("AltCLIPVisionModel", {"special"})},
  });
  registry.add({
      .model_type = "altclip",
      .config_class = "AltCLIPConfig",
      .attribute_map = {},
      .defaults = R"({"text_config": null, "vision_config": null, "projection_dim": 768, "logit_scale_init_value": 2.6592,
        "initializer_factor": 1.0})",
      .complete = complete_altclip,
      .classes = {model_class<AltCLIPModel>("AltCLIPModel", {"default", "zero-shot-image-classification"})},
  });
}

}  // namespace calque::altclip
