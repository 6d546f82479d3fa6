// GPT-NeoX: LayerNorms, queries, keys and values by head in one product, a part of each head turned, feed-forward beside attention.
#include "zoo/blocks/decoder_model.h"

namespace calque::gpt_neox {

namespace {

constexpr const char* names = "transformers.models.gpt_neox.modeling_gpt_neox.GPTNeoX";

DecoderDesign design(const Config& c) {
  DecoderDesign out{.names = names,
                    .prefix = "gpt_neox",
                    .layer = "Layer",
                    .norm = {NormKind::layer, c.number("layer_norm_eps")},
                    .attention = attention_design(c),
                    .feed_forward = feed_forward_design(c, true),
                    .parallel = c.flag("use_parallel_residual"),
                    .attention_dropout = "post_attention_dropout",
                    .feed_forward_dropout = "post_mlp_dropout",
                    .residual_dropout = c.number("hidden_dropout"),
                    .layers = plain_layers(c),
                    .rotary = {{.partial = true}},
                    .embeddings = "embed_in",
                    .padding_row = false,
                    .embeddings_dropout = "emb_dropout",
                    .embeddings_dropout_rate = c.number("hidden_dropout"),
                    .last_norm = "final_layer_norm",
                    .form = {.renamed = {{"^embed_out.", "^lm_head."}}},
                    .unexpected = {"attention.bias", "attention.masked_bias"}};
  out.attention.name = "attention";
  out.attention.projection = Projection::by_head;
  out.attention.output = "dense";
  out.feed_forward.kind = FeedForwardDesign::Kind::plain;
  out.feed_forward.up = "dense_h_to_4h";
  out.feed_forward.down = "dense_4h_to_h";
  return out;
}

void complete(Config& config) {
  // The names of old.
  if (config.has("rotary_pct") && !config.has("partial_rotary_factor"))
    config.set("partial_rotary_factor", config.number("rotary_pct"));
  complete_rotary_part(config, 0.25);
  complete_rope_parameters(config, config.optional_number("rotary_emb_base").value_or(10000));
  for (const char* old : {"rotary_pct", "rotary_emb_base"}) config.erase(old);
}

constexpr HeadFamily heads{names, "gpt_neox", decoder_of<design>};

std::vector<ModelClass> classes() {
  return {decoder_base(heads),
          decoder_class(DecoderHeadKind::causal_lm, {.family = &heads, .part = "ForCausalLM", .embedding = "embed_in"}),
          decoder_class(DecoderHeadKind::sequence_classification, {&heads, "ForSequenceClassification"}),
          decoder_class(DecoderHeadKind::token_classification, {&heads, "ForTokenClassification"}),
          decoder_class(DecoderHeadKind::question_answering, {&heads, "ForQuestionAnswering"})};
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "gpt_neox",
      .config_class = "GPTNeoXConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 50432, "hidden_size": 6144, "num_hidden_layers": 44, "num_attention_heads": 64,
        "intermediate_size": 24576, "hidden_act": "gelu", "attention_dropout": 0.0, "hidden_dropout": 0.0,
        "classifier_dropout": 0.1, "max_position_embeddings": 2048, "initializer_range": 0.02,
        "layer_norm_eps": 1e-05, "use_cache": true, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id":
        null, "tie_word_embeddings": false, "use_parallel_residual": true, "attention_bias": true})",
      .schema = rotary_schema(),
      .complete = complete,
      .classes = classes(),
  });
}

}  // namespace calque::gpt_neox
