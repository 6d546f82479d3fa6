// Encoder, decoder and both together of BART and its relatives; their heads are in heads/seq2seq_heads.h.
#pragma once

#include <memory>

#include "calque/hub/pretrained_model.h"
#include "calque/nn/container.h"
#include "seq2seq_layers.h"

namespace calque {

// What the classes of a family share. A class is made from its style, its name and a config.
struct Seq2SeqPretrained : PretrainedModel {
  Seq2SeqPretrained(const Seq2SeqStyle& style, std::string name, const Config& config)
      : PretrainedModel(config), style(&style), name(std::move(name)) {}
  std::string type_name() const override { return std::string(style->module) + "." + name; }
  std::string base_model_prefix() const override { return "model"; }
  std::vector<std::string> dummy_input_names() const override;
  std::vector<std::string> no_split_modules() const override;
  std::vector<std::string> keys_to_ignore_on_load_unexpected() const override {
    return {"encoder.version", "decoder.version"};
  }
  std::vector<std::string> keys_to_ignore_on_load_missing() const override;
  std::vector<std::string> keys_to_ignore_on_save() const override;
  void init_weights(Module& module) override;

  bool shares_embeddings() const {
    return !style->separate_vocabularies || config().flag("share_encoder_decoder_embeddings");
  }

  const Seq2SeqStyle* style;
  std::string name;

 protected:
  Seq2SeqPretrained(const Seq2SeqPretrained&) = default;
  // An encoder's states behind its layers and the norm that may follow them, with what is asked for of those before.
  ModelOutput through_encoder(ModuleList& layers, LayerNorm* norm, Tensor x, const AttentionMask& mask,
                              const ModelInputs& in, bool eager) const;
  // Embeddings and their scale, in or behind the module.
  std::shared_ptr<Embedding> make_embedding(int64_t vocabulary) const;
  double scale_behind() const;
};

// What an encoder and a decoder have alike. `part` is "Encoder" or "Decoder", `vocabulary` the configuration's name for its size.
struct Seq2SeqStack : Seq2SeqPretrained {
  Seq2SeqStack(const Seq2SeqStyle& style, const char* part, const char* vocabulary, const Config& config);
  Child<Embedding>* input_embeddings() override { return &embed_tokens; }

  Child<Embedding> embed_tokens;
  Child<PositionEmbedding> embed_positions;
  Child<ModuleList> layers;
  std::optional<Child<LayerNorm>> layernorm_embedding, layer_norm;
};

struct Seq2SeqEncoder : Seq2SeqStack {
  Seq2SeqEncoder(const Seq2SeqStyle& style, const Config& config);
  std::span<const ModelArgument> arguments() const override;
  ModelOutput forward(const ModelInputs& inputs) override;

 protected:
  std::shared_ptr<Module> copy_self() const override {
    return nn_detail::shared_module(std::make_unique<Seq2SeqEncoder>(*this));
  }
};

struct Seq2SeqDecoder : Seq2SeqStack {
  Seq2SeqDecoder(const Seq2SeqStyle& style, const Config& config);
  std::span<const ModelArgument> arguments() const override;
  ModelOutput forward(const ModelInputs& inputs) override;

 protected:
  std::shared_ptr<Module> copy_self() const override {
    return nn_detail::shared_module(std::make_unique<Seq2SeqDecoder>(*this));
  }
};

struct Seq2SeqModel : Seq2SeqPretrained {
  Seq2SeqModel(const Seq2SeqStyle& style, const std::string& name, const Config& config);
  std::span<const ModelArgument> arguments() const override;
  ModelOutput forward(const ModelInputs& inputs) override;
  // transformers 4 shares the embeddings whatever tie_word_embeddings says, and saves them once. So without it the pairs are tied
  // that are one tensor already, and those into one of which nothing was loaded.
  TiedWeights tied_weights() const override;
  Child<Embedding>* input_embeddings() override { return shared ? &*shared : &encoder->embed_tokens; }

  // The ids that the decoder starts from where labels or ids are shifted.
  Tensor shifted(const Tensor& ids) const;

  std::optional<Child<Embedding>> shared;
  Child<Seq2SeqEncoder> encoder;
  Child<Seq2SeqDecoder> decoder;

 protected:
  std::shared_ptr<Module> copy_self() const override {
    return nn_detail::shared_module(std::make_unique<Seq2SeqModel>(*this));
  }
};

}  // namespace calque
