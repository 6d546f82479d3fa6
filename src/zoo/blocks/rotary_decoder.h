// The decoder of Llama and its relatives: word embeddings, layers that are told the angles of their positions, a norm behind
// the last one; and the gated feed-forward of such layers. A family gives the layer, the norm and the names.
#pragma once

#include "../heads/decoder_heads.h"
#include "activations.h"
#include "calque/op/aten/norms.h"
#include "rotary.h"

namespace calque {

struct GatedFeedForward : Typed<GatedFeedForward> {
  static constexpr const char* forward_arguments[] = {"x"};
  GatedFeedForward(const Config& c, bool bias)
      : gate_proj(child<Linear>("gate_proj", c.integer("hidden_size"), c.integer("intermediate_size"), bias)),
        up_proj(child<Linear>("up_proj", c.integer("hidden_size"), c.integer("intermediate_size"), bias)),
        down_proj(child<Linear>("down_proj", c.integer("intermediate_size"), c.integer("hidden_size"), bias)),
        act_fn(activation_named(c.text("hidden_act"))) {}
  Tensor forward(const Tensor& x) {
    const Tensor gate = act_fn(gate_proj(x));
    return down_proj(gate * up_proj(x));
  }
  Child<Linear> gate_proj, up_proj, down_proj;
  Activation act_fn;
};

// Layer: (hidden states, cosines, sines, mask, past, eager) to (hidden states, weights, keys and values). Norm is made from a
// Config.
template <class D, class Pretrained, class Layer, class Norm>
struct RotaryDecoder : ModelOf<D, Pretrained> {
  static constexpr ModelArgument forward_arguments[] = {arg::input_ids,         arg::attention_mask,      arg::position_ids,
                                                        arg::past_key_values,   arg::inputs_embeds,       arg::use_cache,
                                                        arg::output_attentions, arg::output_hidden_states};
  RotaryDecoder(const Config& c, int64_t head_size, bool interleaved)
      : ModelOf<D, Pretrained>(c),
        embed_tokens(this->template child<Embedding>("embed_tokens", c.integer("vocab_size"), c.integer("hidden_size"),
                                                     EmbeddingOptions{.padding_idx = c.optional_integer("pad_token_id")})),
        layers(this->template child<ModuleList>("layers")),
        norm(this->template child<Norm>("norm", c)),
        rotary_emb(this->template child<RotaryEmbedding>("rotary_emb", c, head_size, interleaved)) {
    for (int64_t i = 0; i < c.integer("num_hidden_layers"); ++i) layers->template emplace<Layer>(c);
  }

  ModelOutput forward(const ModelInputs& in) override {
    const Tensor embeds = embedded(in, embed_tokens);
    const SymInt past = in[arg::past_key_values].length();
    const Tensor positions = in[arg::position_ids].defined() ? in[arg::position_ids] : positions_after(past, embeds);
    const bool eager = eager_attention(this->config(), this->wants_attentions(in));
    const AttentionMask mask = causal_mask(embeds, in[arg::attention_mask], {.past = past});
    const std::tuple<Tensor, Tensor> angles = rotary_emb(embeds, positions);
    LayerOutputs outputs(*this, in);
    const Tensor x = outputs.run<Layer>(*layers, embeds, [&](Layer& layer, const Tensor& state, size_t i) {
      return layer(state, std::get<0>(angles), std::get<1>(angles), mask, in[arg::past_key_values].layer(i), eager);
    });
    return outputs.with_last(norm(x));
  }
  Child<Embedding>* input_embeddings() override { return &embed_tokens; }

  Child<Embedding> embed_tokens;
  Child<ModuleList> layers;
  Child<Norm> norm;
  Child<RotaryEmbedding> rotary_emb;
};

}  // namespace calque
