// FlauBERT: XLM, read in French, with norms before attention and feed-forward where asked for.
#include "zoo/blocks/xlm_model.h"
#include "zoo/heads/xlm_heads.h"

namespace calque::flaubert {

namespace {

constexpr const char* names = "transformers.models.flaubert.modeling_flaubert.Flaubert";

std::unique_ptr<PretrainedModel> make(const Config& config, bool) {
  return std::make_unique<XlmModel>(config, names, "transformers.models.flaubert.modeling_flaubert.");
}

constexpr HeadFamily heads{names, "transformer", make};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "flaubert",
      .config_class = "FlaubertConfig",
      .attribute_map = {{"hidden_size", "emb_dim"},
                        {"num_attention_heads", "n_heads"},
                        {"num_hidden_layers", "n_layers"},
                        {"n_words", "vocab_size"},
                        {"bos_index", "bos_token_id"},
                        {"eos_index", "eos_token_id"},
                        {"pad_index", "pad_token_id"}},
      .defaults =
          R"({"pre_norm": false, "layerdrop": 0.0, "vocab_size": 30145, "emb_dim": 2048, "n_layers": 12, "n_heads": 16, "dropout": 0.1,
        "attention_dropout": 0.1, "gelu_activation": true, "sinusoidal_embeddings": false, "causal": false, "asm": false,
        "n_langs": 1, "use_lang_emb": true, "max_position_embeddings": 512, "embed_init_std": 0.02209708691207961,
        "layer_norm_eps": 1e-12, "init_std": 0.02, "unk_index": 3, "mask_index": 5, "is_encoder": true,
        "summary_type": "first", "summary_use_proj": true, "summary_activation": null, "summary_proj_to_labels": true,
        "summary_first_dropout": 0.1, "start_n_top": 5, "end_n_top": 5, "mask_token_id": 0, "lang_id": 0,
        "pad_token_id": 2, "bos_token_id": 0, "eos_token_id": 1, "tie_word_embeddings": true})",
      .schema = {.keys = {{"emb_dim", KeyKind::size},
                          {"n_langs", KeyKind::groups},
                          {"embed_init_std", KeyKind::magnitude},
                          {"lang_id", KeyKind::token},
                          {"unk_index", KeyKind::token},
                          {"mask_index", KeyKind::token},
                          {"start_n_top", KeyKind::length},
                          {"end_n_top", KeyKind::length}},
                 .relations = {multiple("emb_dim", "n_heads")}},
      .classes = xlm_classes(
          heads, {"FlaubertModel", {"default"}, [](const Config& config) { return finished_model(make(config, false)); }}),
  });
}

}  // namespace calque::flaubert
