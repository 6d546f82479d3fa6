// Falcon: LayerNorms, one product for queries, keys and values with few heads of keys, feed-forward beside attention, angles or
// distances (ALiBi).
#include "calque/base/error.h"
#include "zoo/blocks/decoder_model.h"

namespace calque::falcon {

namespace {

constexpr const char* names = "transformers.models.falcon.modeling_falcon.Falcon";

[[noreturn]] void cannot_be(const char* what) {
  throw UserError(ErrorKind::bad_file, std::string("\"new_decoder_architecture\", \"parallel_attn\" and ") +
                                           "\"num_ln_in_parallel_attn\" do not fit: " + what);
}

DecoderDesign design(const Config& c) {
  const bool fresh = c.flag("new_decoder_architecture"), parallel = c.flag("parallel_attn");
  const int64_t norms = c.optional_integer("num_ln_in_parallel_attn").value_or(fresh ? 2 : 1);
  if (fresh && !parallel) cannot_be("the new architecture is always parallel");
  if (!fresh && parallel && norms == 2) cannot_be("only the new architecture has two norms");
  const double dropout = c.optional_number("hidden_dropout").value_or(0);
  DecoderDesign out{.names = names,
                    .prefix = "transformer",
                    .norm = {NormKind::layer, c.number("layer_norm_epsilon")},
                    .parallel = parallel,
                    .adds_parts_first = true,
                    .residual_dropout = dropout,
                    .layers = plain_layers(c),
                    .alibi = c.flag("alibi"),
                    .blocks = "h",
                    .embeddings = "word_embeddings",
                    .padding_row = false,
                    .last_norm = "ln_f"};
  const int64_t heads = c.integer("num_attention_heads"), size = c.integer("hidden_size");
  out.attention = {.name = "self_attention",
                   .heads = heads,
                   .key_heads = fresh                   ? c.integer("num_kv_heads")
                                : c.flag("multi_query") ? 1
                                                        : heads,
                   .head_size = size / heads,
                   .projection = Projection::by_head,
                   .repeats_keys = fresh,
                   .bias = c.flag("bias"),
                   .output = "dense",
                   .output_bias = c.flag("bias")};
  const double attention_dropout = c.optional_number("attention_dropout").value_or(0);
  if (out.alibi) out.attention.dropout = attention_dropout;
  out.feed_forward = {.kind = FeedForwardDesign::Kind::plain,
                      .up = "dense_h_to_4h",
                      .down = "dense_4h_to_h",
                      .activation = c.text("activation"),
                      .size = c.integer("ffn_hidden_size"),
                      .bias = c.flag("bias")};
  if (!parallel) {
    out.attention.output_dropout = attention_dropout;
    out.feed_forward.dropout = dropout;
  } else {
    out.before_attention = norms == 2 ? "ln_attn" : "input_layernorm";
    out.before_feed_forward = norms == 2 ? "ln_mlp" : nullptr;
  }
  if (out.alibi) {
    out.rotary = {};
    for (LayerDesign& layer : out.layers) layer.rotary = -1;
  }
  return out;
}

void complete(Config& config) {
  if (config.has("n_embed")) config.set("hidden_size", config.integer("n_embed"));
  if (!config.has("num_kv_heads")) config.set("num_kv_heads", config.integer("num_attention_heads"));
  if (!config.has("ffn_hidden_size")) config.set("ffn_hidden_size", 4 * config.integer("hidden_size"));
  complete_rope_parameters(config, 10000);
}

constexpr HeadFamily heads{names, "transformer", decoder_of<design>};

std::vector<ModelClass> classes() {
  return {
      decoder_base(heads),
      decoder_class(DecoderHeadKind::causal_lm, {.family = &heads, .part = "ForCausalLM", .embedding = "word_embeddings"}),
      decoder_class(DecoderHeadKind::sequence_classification, {&heads, "ForSequenceClassification"}),
      decoder_class(DecoderHeadKind::token_classification, {&heads, "ForTokenClassification"}),
      decoder_class(DecoderHeadKind::question_answering, {&heads, "ForQuestionAnswering"})};
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "falcon",
      .config_class = "FalconConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 65024, "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
        "num_ln_in_parallel_attn": null, "layer_norm_epsilon": 1e-05, "initializer_range": 0.02, "use_cache": true,
        "hidden_dropout": 0.0, "attention_dropout": 0.0, "num_kv_heads": null, "alibi": false, "new_decoder_architecture": false,
        "multi_query": true, "parallel_attn": true, "bias": false, "max_position_embeddings": 2048, "bos_token_id": 11,
        "eos_token_id": 11, "pad_token_id": null, "ffn_hidden_size": null, "activation": "gelu", "tie_word_embeddings": true})",
      .schema = {.keys = {{"n_embed", KeyKind::size},
                          {"num_ln_in_parallel_attn", KeyKind::count},
                          {"max_position_embeddings", KeyKind::length}},
                 .relations = {multiple("hidden_size", "num_attention_heads"),
                               multiple("num_attention_heads", "num_kv_heads")}},
      .complete = complete,
      .classes = classes(),
  });
}

}  // namespace calque::falcon
