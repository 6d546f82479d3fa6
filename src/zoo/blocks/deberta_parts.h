// What the two generations of DeBERTa share: embeddings that padding does not enter, layers around a disentangled attention
// of their own, the pooler of the first token, and the new word head. A family gives the prefix of its class names
// ("transformers.models.deberta.modeling_deberta.Deberta") and its norm.
#pragma once

#include <functional>

#include "bert_encoder.h"
#include "calque/hub/checkpointing.h"
#include "calque/hub/model_info.h"

namespace calque {

using DebertaNorm = std::function<std::shared_ptr<Module>(int64_t size, double eps)>;

// Who may look at whom: only pairs of tokens that are no padding. Boolean [batch, 1, length, length].
Tensor deberta_mask(const Tensor& attention_mask);
// The attention mask of a model's inputs, or ones; UserError unless exactly one of input_ids and inputs_embeds is given.
Tensor deberta_given_mask(const ModelInputs& in);
// Scores [batch, heads, query, 2 * span] by distance into scores by position; distances [1, 1, query, key].
Tensor by_distance(const Tensor& scores, const Tensor& distances, int64_t span);
// What both generations ask of a configuration.
ConfigSchema deberta_schema();
// pos_att_type as a list; pooler_hidden_size.
void complete_deberta(Config& config);
bool attends_positions(const Config& config, const char* type);  // "c2p" or "p2c"
int64_t max_relative_positions(const Config& config);
std::optional<int64_t> positive_integer(const Config& config, const char* key);

struct DebertaEmbeddings : FamilyModule<DebertaEmbeddings> {
  static constexpr const char* part = "Embeddings";
  static constexpr const char* forward_arguments[] = {"input_ids", "token_type_ids", "position_ids", "mask",
                                                      "inputs_embeds"};
  DebertaEmbeddings(const Config& c, std::string family, const DebertaNorm& make_norm);
  Tensor forward(const Tensor& input_ids, const Tensor& token_type_ids, const Tensor& position_ids, const Tensor& mask,
                 const Tensor& inputs_embeds);
  Child<Embedding> word_embeddings;
  std::optional<Child<Embedding>> position_embeddings, token_type_embeddings;
  std::optional<Child<Linear>> embed_proj;
  Child<Module> norm;
  Child<Dropout> dropout;
  Buffer position_ids;
};

struct DebertaResidual : NamedModule<DebertaResidual> {
  static constexpr const char* forward_arguments[] = {"hidden_states", "input_tensor"};
  DebertaResidual(const Config& c, std::string name, int64_t in_features, const DebertaNorm& make_norm);
  Tensor forward(const Tensor& hidden_states, const Tensor& input_tensor);
  Child<Linear> dense;
  Child<Module> norm;
  Child<Dropout> dropout;
};

// Self is called as (hidden states, mask, distances, embeddings of distances) and gives (context, weights).
template <class Self>
struct DebertaAttention : FamilyModule<DebertaAttention<Self>> {
  static constexpr const char* part = "Attention";
  static constexpr const char* forward_arguments[] = {"hidden_states", "attention_mask", "relative_pos", "rel_embeddings"};
  DebertaAttention(const Config& c, const std::string& family, const DebertaNorm& make_norm)
      : FamilyModule<DebertaAttention<Self>>(family),
        self(this->template child<Self>("self", c)),
        output(this->template child<DebertaResidual>("output", c, family + "SelfOutput", c.integer("hidden_size"),
                                                     make_norm)) {}
  std::tuple<Tensor, Tensor> forward(const Tensor& hidden_states, const Tensor& mask, const Tensor& distances,
                                     const Tensor& rel_embeddings) {
    auto [attended, weights] = self(hidden_states, mask, distances, rel_embeddings);
    return {output(attended, hidden_states), weights};
  }
  Child<Self> self;
  Child<DebertaResidual> output;
};

template <class Self>
struct DebertaLayer : Checkpointed<FamilyModule<DebertaLayer<Self>>> {
  static constexpr const char* part = "Layer";
  static constexpr auto& forward_arguments = DebertaAttention<Self>::forward_arguments;
  DebertaLayer(const Config& c, const std::string& family, const DebertaNorm& make_norm)
      : Checkpointed<FamilyModule<DebertaLayer<Self>>>(family),
        attention(this->template child<DebertaAttention<Self>>("attention", c, family, make_norm)),
        intermediate(this->template child<BertIntermediate>("intermediate", c, family)),
        output(this->template child<DebertaResidual>("output", c, family + "Output", c.integer("intermediate_size"),
                                                     make_norm)) {}
  std::tuple<Tensor, Tensor> forward(const Tensor& hidden_states, const Tensor& mask, const Tensor& distances,
                                     const Tensor& rel_embeddings) {
    auto [x, weights] = attention(hidden_states, mask, distances, rel_embeddings);
    return {output(intermediate(x), x), weights};
  }
  Child<DebertaAttention<Self>> attention;
  Child<BertIntermediate> intermediate;
  Child<DebertaResidual> output;
};

struct DebertaContextPooler : NamedModule<DebertaContextPooler> {
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  DebertaContextPooler(const Config& c, std::string name);
  Tensor forward(const Tensor& hidden_states);
  Child<Linear> dense;
  Child<Dropout> dropout;
  Activation act_fn;
};

// Words by the embeddings themselves, which are given to it.
struct DebertaLMPredictionHead : FamilyModule<DebertaLMPredictionHead> {
  static constexpr const char* part = "LMPredictionHead";
  static constexpr const char* forward_arguments[] = {"hidden_states", "word_embeddings"};
  DebertaLMPredictionHead(const Config& c, std::string family);
  Tensor forward(const Tensor& hidden_states, const Tensor& word_embeddings);
  Child<Linear> dense;
  Activation act_fn;
  Child<LayerNorm> norm;
  Parameter bias;
};
struct DebertaOnlyMLMHead : FamilyModule<DebertaOnlyMLMHead> {
  static constexpr const char* part = "OnlyMLMHead";
  static constexpr const char* forward_arguments[] = {"sequence_output", "word_embeddings"};
  DebertaOnlyMLMHead(const Config& c, const std::string& family);
  Tensor forward(const Tensor& sequence_output, const Tensor& word_embeddings) {
    return lm_head(sequence_output, word_embeddings);
  }
  Child<DebertaLMPredictionHead> lm_head;
};

// The model: embeddings and an encoder, which a family calls in its own way.
template <class D, class Pretrained, class Encoder>
struct DebertaLikeModel : ModelOf<D, Pretrained> {
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,     arg::attention_mask,    arg::token_type_ids,      arg::position_ids,
      arg::inputs_embeds, arg::output_attentions, arg::output_hidden_states};
  DebertaLikeModel(const Config& c, const char* family, const DebertaNorm& make_norm)
      : ModelOf<D, Pretrained>(c),
        embeddings(this->template child<DebertaEmbeddings>("embeddings", c, family, make_norm)),
        encoder(this->template child<Encoder>("encoder", c)) {}
  // `mask` is what was given, or ones.
  virtual EncoderResult encoded(const EncoderInputs& inner, const Tensor& mask) = 0;
  ModelOutput forward(const ModelInputs& in) override {
    const Tensor mask = deberta_given_mask(in);
    warn_if_padding_and_no_attention_mask(*this, in[arg::input_ids], in[arg::attention_mask]);
    EncoderInputs inner;
    inner.hidden_states =
        embeddings(in[arg::input_ids], in[arg::token_type_ids], in[arg::position_ids], mask, in[arg::inputs_embeds]);
    inner.mask.mask = deberta_mask(mask);
    inner.want_attentions = this->wants_attentions(in);
    inner.want_hidden_states = this->wants_hidden_states(in);
    return encoder_output(encoded(inner, mask));
  }
  Child<Embedding>* input_embeddings() override { return &embeddings->word_embeddings; }
  Child<DebertaEmbeddings> embeddings;
  Child<Encoder> encoder;
};

}  // namespace calque
