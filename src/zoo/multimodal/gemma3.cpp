// Gemma 3 as it is shipped: the decoder of texts (gemma3_text), SigLIP's model of pictures, and what brings a picture's patches
// into the text, in the place of tokens that stand for them.
#include <cmath>

#include "calque/base/error.h"
#include "calque/hub/weight_form.h"
#include "calque/nn/init.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/pooling.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/mode.h"
#include "zoo/blocks/decoder_model.h"
#include "zoo/blocks/vision.h"

namespace calque::gemma3 {

namespace {

constexpr const char* names = "transformers.models.gemma3.modeling_gemma3.Gemma3";

struct Gemma3MultiModalProjector : Typed<Gemma3MultiModalProjector> {
  static constexpr const char* torch_type = "transformers.models.gemma3.modeling_gemma3.Gemma3MultiModalProjector";
  static constexpr const char* forward_arguments[] = {"vision_outputs"};
  Gemma3MultiModalProjector(const Config& c, const Config& text, const Config& vision)
      : side(patch_grid(vision).height),
        times(side / whole_root(c.integer("mm_tokens_per_image"))),
        mm_input_projection_weight(register_parameter("mm_input_projection_weight",
                                                      zeros({vision.integer("hidden_size"), text.integer("hidden_size")}))),
        mm_soft_emb_norm(child<DecoderNorm>("mm_soft_emb_norm", std::string(names) + "RMSNorm",
                                            NormDesign{NormKind::rms_around_one, vision.number("layer_norm_eps")},
                                            std::vector<int64_t>{vision.integer("hidden_size")})) {
    if (times < 1)
      throw UserError(ErrorKind::bad_file, "\"mm_tokens_per_image\" is " + std::to_string(c.integer("mm_tokens_per_image")) +
                                               ", but a picture has " + std::to_string(side * side) + " patches");
  }
  Tensor forward(const Tensor& vision_outputs) {
    const Tensor picture = as_picture(vision_outputs, side, side).contiguous();
    const Tensor pooled = avg_pool2d(picture, {times, times}, {times, times});
    return matmul(mm_soft_emb_norm(pooled.flatten(2).transpose(1, 2)), *mm_input_projection_weight)
        .to(vision_outputs.dtype());
  }

  int64_t side, times;
  Parameter mm_input_projection_weight;
  Child<DecoderNorm> mm_soft_emb_norm;

 private:
  static int64_t whole_root(int64_t count) {
    return std::max<int64_t>(1, static_cast<int64_t>(std::sqrt(static_cast<double>(count))));
  }
};

std::shared_ptr<PretrainedModel> made(const char* name, const Config& config) {
  return model_registry().find_class(name)->make(config);
}

struct Gemma3Model : ModelOf<Gemma3Model>, OwnWeightForm {
  static constexpr const char* torch_type = "transformers.models.gemma3.modeling_gemma3.Gemma3Model";
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,      arg::pixel_values,  arg::attention_mask, arg::position_ids,      arg::past_key_values,
      arg::token_type_ids, arg::inputs_embeds, arg::use_cache,      arg::output_attentions, arg::output_hidden_states};
  explicit Gemma3Model(const Config& c)
      : ModelOf(c),
        vision_tower(child_module<PretrainedModel>("vision_tower", made("SiglipVisionModel", c.nested("vision_config")))),
        multi_modal_projector(child<Gemma3MultiModalProjector>("multi_modal_projector", c, c.nested("text_config"),
                                                               c.nested("vision_config"))),
        language_model(child_module<PretrainedModel>("language_model", made("Gemma3TextModel", c.nested("text_config")))) {}

  ModelOutput forward(const ModelInputs& in) override {
    const int64_t picture = config().integer("image_token_index");
    const Tensor ids = in[arg::input_ids], given = in[arg::inputs_embeds];
    if (ids.defined() == given.defined()) throw UserError("You must specify exactly one of input_ids or inputs_embeds");
    Tensor embeds = given;
    if (ids.defined()) {
      const bool outside = picture >= language_model->config().integer("vocab_size");
      embeds = (*language_model->input_embeddings())(outside ? ids.masked_fill(eq(ids, picture), 0) : ids);
    }
    Tensor seen;
    if (in[arg::pixel_values].defined()) {
      const ModelInputs pictures{{arg::pixel_values, in[arg::pixel_values]}};
      seen = multi_modal_projector(vision_tower(pictures)["last_hidden_state"]).to(embeds.dtype());
      const Tensor places = ids.defined() ? eq(ids, picture) : all(eq(embeds, embedding_of(picture)), -1);
      check_count(places, seen);
      embeds = embeds.masked_scatter(places.unsqueeze(-1).expand_as(embeds), seen);
    }
    ModelInputs inner = in;
    inner.set(arg::input_ids, Tensor());
    inner.set(arg::inputs_embeds, embeds);
    ModelOutput out = language_model(inner);
    if (seen.defined()) out.set("image_hidden_states", seen);
    return out;
  }
  std::string base_model_prefix() const override { return "model"; }
  std::vector<std::string> no_split_modules() const override { return {"Gemma3DecoderLayer"}; }
  Child<Embedding>* input_embeddings() override { return language_model->input_embeddings(); }
  ModelInputs example_inputs(const ExampleSizes& sizes) const override { return language_model->example_inputs(sizes); }
  WeightForm weight_form() const override {
    return {.renamed = {{"^language_model.model.", "^model.language_model."},
                        {"^language_model.lm_head.", "^lm_head."},
                        {"^vision_tower.", "^model.vision_tower."},
                        {"^multi_modal_projector.", "^model.multi_modal_projector."}},
            .old = {{"^vision_tower.vision_model.", "^vision_tower."},
                    {"^model.vision_tower.vision_model.", "^model.vision_tower."}}};
  }
  void init_weights(Module& module) override {
    if (auto* norm = dynamic_cast<DecoderNorm*>(&module)) norm->reset();
    if (auto* projector = dynamic_cast<Gemma3MultiModalProjector*>(&module))
      init::zeros_(projector->mm_input_projection_weight);
  }

  Child<PretrainedModel> vision_tower;
  Child<Gemma3MultiModalProjector> multi_modal_projector;
  Child<PretrainedModel> language_model;

 private:
  Tensor embedding_of(int64_t token) const { return (*language_model->input_embeddings())(full({}, token, DType::int64)); }
  // Only where numbers are known.
  static void check_count(const Tensor& places, const Tensor& seen) {
    if (modes_active() || places.is_fake()) return;
    const int64_t expected = seen.size(0) * seen.size(1), found = places.sum().item_as<int64_t>();
    if (found != expected)
      throw UserError("the text has " + std::to_string(found) + " tokens that stand for pictures, expected " +
                      std::to_string(expected) + ": the pictures in pixel_values have " + std::to_string(seen.size(1)) +
                      " each");
  }
};

void complete(Config& config) {
  complete_part(config, "text_config", "gemma3_text");
  complete_part(config, "vision_config", "siglip_vision_model");
}

constexpr HeadFamily heads{names, "model", made_model<Gemma3Model>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "gemma3",
      .config_class = "Gemma3Config",
      .attribute_map = {{"image_token_id", "image_token_index"},
                        {"boi_token_id", "boi_token_index"},
                        {"eoi_token_id", "eoi_token_index"}},
      .defaults = R"({"text_config": null, "vision_config": null, "mm_tokens_per_image": 256, "boi_token_index": 255999,
        "eoi_token_index": 256000, "image_token_index": 262144, "initializer_range": 0.02, "tie_word_embeddings": true})",
      .schema = {.keys = {{"mm_tokens_per_image", KeyKind::length},
                          {"boi_token_index", KeyKind::token},
                          {"eoi_token_index", KeyKind::token},
                          {"image_token_index", KeyKind::token}}},
      .complete = complete,
      .classes = {model_class<Gemma3Model>("Gemma3Model", {"default"}),
                  head_class<CausalLM>(
                      {"causal-lm"},
                      {.family = &heads, .part = "ForConditionalGeneration", .embedding = "language_model.embed_tokens"}),
                  head_class<LastTokenClassification>({"sequence-classification"}, {&heads, "ForSequenceClassification"})},
  });
}

}  // namespace calque::gemma3
