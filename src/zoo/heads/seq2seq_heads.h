// Heads on BART and its relatives: generation, a decoder alone as a language model, classification by the end token,
// question answering. A family's file registers those that it has, with its style.
#pragma once

#include "../blocks/family_module.h"
#include "../blocks/seq2seq_model.h"
#include "calque/hub/registry.h"
#include "calque/nn/dropout.h"
#include "losses.h"

namespace calque {

struct Seq2SeqConditionalGeneration : Seq2SeqPretrained {
  Seq2SeqConditionalGeneration(const Seq2SeqStyle& style, const std::string& name, const Config& config);
  std::span<const ModelArgument> arguments() const override;
  ModelOutput forward(const ModelInputs& inputs) override;
  TiedWeights tied_weights() const override;
  bool can_generate() const override { return true; }
  Child<Embedding>* input_embeddings() override { return model->input_embeddings(); }
  Child<Linear>* output_embeddings() override { return &lm_head; }

  Child<Seq2SeqModel> model;
  std::optional<Buffer> final_logits_bias;
  Child<Linear> lm_head;

 protected:
  std::shared_ptr<Module> copy_self() const override {
    return nn_detail::shared_module(std::unique_ptr<Module>(new Seq2SeqConditionalGeneration(*this)));
  }
};

// So that the names of a decoder alone are those that it has in the whole model.
struct Seq2SeqDecoderWrapper : Seq2SeqPretrained {
  Seq2SeqDecoderWrapper(const Seq2SeqStyle& style, const Config& config);
  std::span<const ModelArgument> arguments() const override { return decoder->arguments(); }
  ModelOutput forward(const ModelInputs& inputs) override { return decoder(inputs); }
  Child<Embedding>* input_embeddings() override { return decoder->input_embeddings(); }

  Child<Seq2SeqDecoder> decoder;

 protected:
  std::shared_ptr<Module> copy_self() const override {
    return nn_detail::shared_module(std::unique_ptr<Module>(new Seq2SeqDecoderWrapper(*this)));
  }
};

struct Seq2SeqCausalLM : Seq2SeqPretrained {
  Seq2SeqCausalLM(const Seq2SeqStyle& style, const std::string& name, const Config& config);
  std::span<const ModelArgument> arguments() const override;
  ModelOutput forward(const ModelInputs& inputs) override;
  TiedWeights tied_weights() const override;
  bool can_generate() const override { return true; }
  Child<Embedding>* input_embeddings() override { return model->input_embeddings(); }
  Child<Linear>* output_embeddings() override { return &lm_head; }

  Child<Seq2SeqDecoderWrapper> model;
  Child<Linear> lm_head;

 protected:
  std::shared_ptr<Module> copy_self() const override {
    return nn_detail::shared_module(std::unique_ptr<Module>(new Seq2SeqCausalLM(*this)));
  }
};

struct Seq2SeqClassificationHead : NamedModule<Seq2SeqClassificationHead> {
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  // `type` is transformers' name of the class.
  Seq2SeqClassificationHead(std::string type, int64_t size, int64_t labels, double dropout_probability)
      : NamedModule(std::move(type)),
        dense(child<Linear>("dense", size, size)),
        dropout(child<Dropout>("dropout", dropout_probability)),
        out_proj(child<Linear>("out_proj", size, labels)) {}
  Tensor forward(const Tensor& hidden_states);

  Child<Linear> dense;
  Child<Dropout> dropout;
  Child<Linear> out_proj;
};

struct Seq2SeqSequenceClassification : Seq2SeqPretrained {
  Seq2SeqSequenceClassification(const Seq2SeqStyle& style, const std::string& name, const Config& config);
  std::span<const ModelArgument> arguments() const override;
  ModelOutput forward(const ModelInputs& inputs) override;
  // The end of the text is what it reads; the decoder's input it makes itself.
  ModelInputs example_inputs(const ExampleSizes& sizes) const override {
    return with_ends_of_text(example_tokens(*this, {sizes.batch, sizes.length}), config());
  }
  TiedWeights tied_weights() const override;
  Child<Embedding>* input_embeddings() override { return model->input_embeddings(); }

  Child<Seq2SeqModel> model;
  Child<Seq2SeqClassificationHead> classification_head;

 protected:
  std::shared_ptr<Module> copy_self() const override {
    return nn_detail::shared_module(std::unique_ptr<Module>(new Seq2SeqSequenceClassification(*this)));
  }
};

struct Seq2SeqQuestionAnswering : Seq2SeqPretrained {
  Seq2SeqQuestionAnswering(const Seq2SeqStyle& style, const std::string& name, const Config& config);
  std::span<const ModelArgument> arguments() const override;
  ModelOutput forward(const ModelInputs& inputs) override;
  // Without the decoder's ids, which the model makes of input_ids.
  ModelInputs example_inputs(const ExampleSizes& sizes) const override {
    return example_tokens(*this, {sizes.batch, sizes.length});
  }
  TiedWeights tied_weights() const override;
  Child<Embedding>* input_embeddings() override { return model->input_embeddings(); }

  Child<Seq2SeqModel> model;
  Child<Linear> qa_outputs;

 protected:
  std::shared_ptr<Module> copy_self() const override {
    return nn_detail::shared_module(std::unique_ptr<Module>(new Seq2SeqQuestionAnswering(*this)));
  }
};

// What an encoder-decoder that answers questions takes.
inline constexpr ModelArgument seq2seq_answer_arguments[] = {arg::input_ids,
                                                             arg::attention_mask,
                                                             arg::decoder_input_ids,
                                                             arg::decoder_attention_mask,
                                                             arg::encoder_outputs,
                                                             arg::start_positions,
                                                             arg::end_positions,
                                                             arg::inputs_embeds,
                                                             arg::decoder_inputs_embeds,
                                                             arg::use_cache,
                                                             arg::output_attentions,
                                                             arg::output_hidden_states,
                                                             arg::head_mask,
                                                             arg::decoder_head_mask,
                                                             arg::cross_attn_head_mask};

// start_logits and end_logits of [batch, length, 2], with the loss in front where positions are given.
void set_question_answering(ModelOutput& out, const Tensor& logits, const ModelInputs& inputs);

// A class entry for a class that is made from a style; the style outlives the registry.
ModelClass seq2seq_class(const Seq2SeqStyle& style, const char* part, std::initializer_list<std::string_view> tasks,
                         std::unique_ptr<PretrainedModel> (*make)(const Seq2SeqStyle&, const std::string& name,
                                                                  const Config&));
template <class M>
ModelClass seq2seq_class(const Seq2SeqStyle& style, const char* part, std::initializer_list<std::string_view> tasks) {
  return seq2seq_class(
      style, part, tasks,
      [](const Seq2SeqStyle& its, const std::string& name, const Config& config) -> std::unique_ptr<PretrainedModel> {
        return std::unique_ptr<PretrainedModel>(new M(its, name, config));
      });
}

// The classes that nearly all of them have: Model, ForConditionalGeneration for these tasks, ForCausalLM.
std::vector<ModelClass> seq2seq_classes(const Seq2SeqStyle& style, std::initializer_list<std::string_view> generation_tasks);

// What BART and its relatives register; `defaults` is JSON without its braces. Heads share d_model evenly, and sines are a
// table that is computed.
Architecture seq2seq_architecture(const char* model_type, const char* config_class, const std::string& defaults,
                                  std::vector<ModelClass> classes);
// The first defaults of mBART and Pegasus.
extern const char* const seq2seq_large_defaults;

}  // namespace calque
