// Pegasus: norms in front, sines as positions, the scale behind the embedding.
#include "heads/seq2seq_heads.h"

namespace calque::pegasus {

namespace {

const Seq2SeqStyle pegasus_style{.module = "transformers.models.pegasus.modeling_pegasus",
                                 .prefix = "Pegasus",
                                 .pre_norm = true,
                                 .positions = Seq2SeqStyle::Positions::sinusoidal,
                                 .scaled_embedding = false,
                                 .scales_given_embeds = true};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "pegasus",
      .config_class = "PegasusConfig",
      .attribute_map = {{"num_attention_heads", "encoder_attention_heads"},
                        {"hidden_size", "d_model"},
                        {"num_hidden_layers", "encoder_layers"}},
      .defaults = R"({"vocab_size": 50265, "max_position_embeddings": 1024, "encoder_layers": 12, "encoder_ffn_dim": 4096,
        "encoder_attention_heads": 16, "decoder_layers": 12, "decoder_ffn_dim": 4096, "decoder_attention_heads": 16,
        "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "use_cache": true, "is_encoder_decoder": true,
        "activation_function": "gelu", "d_model": 1024, "dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0,
        "init_std": 0.02, "scale_embedding": false, "pad_token_id": 0, "eos_token_id": 1,
        "decoder_start_token_id": 0, "forced_eos_token_id": 1, "is_decoder": false, "tie_word_embeddings": true})",
      .schema = seq2seq_schema(),
      .classes = {seq2seq_class<Seq2SeqModel>(pegasus_style, "Model", {"default"}),
                  seq2seq_class<Seq2SeqConditionalGeneration>(pegasus_style, "ForConditionalGeneration", {"seq2seq-lm"}),
                  seq2seq_class<Seq2SeqCausalLM>(pegasus_style, "ForCausalLM", {"causal-lm"})},
  });
}

}  // namespace calque::pegasus
