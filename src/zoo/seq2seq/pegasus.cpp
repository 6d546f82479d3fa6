// Pegasus: norms in front, sines as positions, the scale behind the embedding.
#include "zoo/heads/seq2seq_heads.h"

namespace calque::pegasus {

namespace {

constexpr Seq2SeqStyle pegasus_style{.module = "transformers.models.pegasus.modeling_pegasus",
                                     .prefix = "Pegasus",
                                     .pre_norm = true,
                                     .positions = Seq2SeqStyle::Positions::sinusoidal,
                                     .embedding_scale = Seq2SeqStyle::EmbeddingScale::behind_given_too};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add(seq2seq_architecture(
      "pegasus", "PegasusConfig",
      std::string(seq2seq_large_defaults) + R"(, "scale_embedding": false, "pad_token_id": 0, "eos_token_id": 1,
        "decoder_start_token_id": 0, "forced_eos_token_id": 1, "is_decoder": false, "tie_word_embeddings": true)",
      seq2seq_classes(pegasus_style, {"seq2seq-lm"})));
}

}  // namespace calque::pegasus
