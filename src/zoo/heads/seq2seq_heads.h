// Heads on BART and its relatives: generation, a decoder alone as a language model, classification by the end token,
// question answering. A family's file registers those that it has, with its style.
#pragma once

#include "../blocks/seq2seq_model.h"
#include "calque/hub/registry.h"
#include "calque/nn/dropout.h"
#include "losses.h"

namespace calque {

// Heads share d_model evenly; sines are a table that is computed.
inline ConfigSchema seq2seq_schema() {
  return {.relations = {multiple("d_model", "encoder_attention_heads"), multiple("d_model", "decoder_attention_heads")},
          .tables = {{"max_position_embeddings", "d_model"}}};
}

struct Seq2SeqConditionalGeneration : Seq2SeqPretrained {
  Seq2SeqConditionalGeneration(const Seq2SeqStyle& style, const std::string& name, const Config& config);
  std::vector<std::string> argument_names() const override;
  ModelOutput forward(const ModelInputs& inputs) override;
  TiedWeights tied_weights() const override;
  bool can_generate() const override { return true; }
  Child<Embedding>* input_embeddings() override { return model->input_embeddings(); }
  Child<Linear>* output_embeddings() override { return &lm_head; }

  Child<Seq2SeqModel> model;
  std::optional<Buffer> final_logits_bias;
  Child<Linear> lm_head;

 protected:
  std::shared_ptr<Module> copy_self() const override { return std::make_shared<Seq2SeqConditionalGeneration>(*this); }
};

// So that the names of a decoder alone are those that it has in the whole model.
struct Seq2SeqDecoderWrapper : Seq2SeqPretrained {
  Seq2SeqDecoderWrapper(const Seq2SeqStyle& style, const Config& config);
  std::vector<std::string> argument_names() const override { return decoder->argument_names(); }
  ModelOutput forward(const ModelInputs& inputs) override { return decoder(inputs); }
  Child<Embedding>* input_embeddings() override { return decoder->input_embeddings(); }

  Child<Seq2SeqDecoder> decoder;

 protected:
  std::shared_ptr<Module> copy_self() const override { return std::make_shared<Seq2SeqDecoderWrapper>(*this); }
};

struct Seq2SeqCausalLM : Seq2SeqPretrained {
  Seq2SeqCausalLM(const Seq2SeqStyle& style, const std::string& name, const Config& config);
  std::vector<std::string> argument_names() const override;
  ModelOutput forward(const ModelInputs& inputs) override;
  TiedWeights tied_weights() const override;
  bool can_generate() const override { return true; }
  Child<Embedding>* input_embeddings() override { return model->input_embeddings(); }
  Child<Linear>* output_embeddings() override { return &lm_head; }

  Child<Seq2SeqDecoderWrapper> model;
  Child<Linear> lm_head;

 protected:
  std::shared_ptr<Module> copy_self() const override { return std::make_shared<Seq2SeqCausalLM>(*this); }
};

struct Seq2SeqClassificationHead : Typed<Seq2SeqClassificationHead> {
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  // `type` is transformers' name of the class.
  Seq2SeqClassificationHead(std::string type, int64_t size, int64_t labels, double dropout_probability)
      : type(std::move(type)),
        dense(child<Linear>("dense", size, size)),
        dropout(child<Dropout>("dropout", dropout_probability)),
        out_proj(child<Linear>("out_proj", size, labels)) {}
  std::string type_name() const override { return type; }
  Tensor forward(const Tensor& hidden_states);

  std::string type;
  Child<Linear> dense;
  Child<Dropout> dropout;
  Child<Linear> out_proj;
};

struct Seq2SeqSequenceClassification : Seq2SeqPretrained {
  Seq2SeqSequenceClassification(const Seq2SeqStyle& style, const std::string& name, const Config& config);
  std::vector<std::string> argument_names() const override;
  ModelOutput forward(const ModelInputs& inputs) override;
  TiedWeights tied_weights() const override;
  Child<Embedding>* input_embeddings() override { return model->input_embeddings(); }

  Child<Seq2SeqModel> model;
  Child<Seq2SeqClassificationHead> classification_head;

 protected:
  std::shared_ptr<Module> copy_self() const override { return std::make_shared<Seq2SeqSequenceClassification>(*this); }
};

struct Seq2SeqQuestionAnswering : Seq2SeqPretrained {
  Seq2SeqQuestionAnswering(const Seq2SeqStyle& style, const std::string& name, const Config& config);
  std::vector<std::string> argument_names() const override;
  ModelOutput forward(const ModelInputs& inputs) override;
  TiedWeights tied_weights() const override;
  Child<Embedding>* input_embeddings() override { return model->input_embeddings(); }

  Child<Seq2SeqModel> model;
  Child<Linear> qa_outputs;

 protected:
  std::shared_ptr<Module> copy_self() const override { return std::make_shared<Seq2SeqQuestionAnswering>(*this); }
};

// start_logits and end_logits of [batch, length, 2], with the loss in front where positions are given.
void set_question_answering(ModelOutput& out, const Tensor& logits, const ModelInputs& inputs);

// A class entry for a class that is made from a style; the style outlives the registry.
template <class M>
ModelClass seq2seq_class(const Seq2SeqStyle& style, const std::string& part, std::vector<std::string> tasks) {
  const std::string name = style.prefix + part;
  return {name, std::move(tasks), [&style, name](const Config& config) { return std::make_shared<M>(style, name, config); }};
}

}  // namespace calque
