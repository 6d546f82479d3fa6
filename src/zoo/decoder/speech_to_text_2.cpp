// Speech2Text2: a decoder of Speech2Text's kind with the norms behind, for encoders of sound; transformers 4 has it.
#include "zoo/heads/seq2seq_heads.h"

namespace calque::speech_to_text_2 {

namespace {

constexpr Seq2SeqStyle speech_to_text_2_style{.module = "transformers.models.speech_to_text_2.modeling_speech_to_text_2",
                                              .prefix = "Speech2Text2",
                                              .positions = Seq2SeqStyle::Positions::sinusoidal_of_ids,
                                              .position_offset = 2,
                                              .embedding_scale = Seq2SeqStyle::EmbeddingScale::behind,
                                              .saved_sinusoids = true,
                                              .position_rows = "max_target_positions"};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "speech_to_text_2",
      .config_class = "Speech2Text2Config",
      .attribute_map = {{"num_attention_heads", "decoder_attention_heads"}, {"hidden_size", "d_model"}},
      .defaults = R"({"vocab_size": 10000, "decoder_layers": 6, "decoder_ffn_dim": 2048, "decoder_attention_heads": 4,
        "decoder_layerdrop": 0.0, "use_cache": true, "activation_function": "relu", "d_model": 256, "dropout": 0.1,
        "attention_dropout": 0.0, "activation_dropout": 0.0, "init_std": 0.02, "decoder_start_token_id": 2,
        "scale_embedding": true, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "max_target_positions": 1024,
        "num_hidden_layers": 6, "tie_word_embeddings": true})",
      .schema = {.keys = {{"max_target_positions", KeyKind::size}},
                 .relations = {multiple("d_model", "decoder_attention_heads")},
                 .tables = {{"max_target_positions", "d_model"}}},
      .classes = {seq2seq_class<Seq2SeqCausalLM>(speech_to_text_2_style, "ForCausalLM", {"causal-lm"}),
                  {"Speech2Text2Decoder",
                   {"special"},
                   [](const Config& config) {
                     return finished_model(std::make_shared<Seq2SeqDecoder>(speech_to_text_2_style, config));
                   }}},
  });
}

}  // namespace calque::speech_to_text_2
