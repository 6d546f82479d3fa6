// T5 and mT5: an encoder and a decoder of pre-normed layers with relative attention biases; heads for generation,
// classification of sequences and tokens, question answering.
#include <cmath>

#include "calque/base/error.h"
#include "calque/hub/pretrained_model.h"
#include "calque/hub/registry.h"
#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/matmul.h"
#include "zoo/blocks/encoder_decoder.h"
#include "zoo/blocks/t5_layers.h"
#include "zoo/heads/decoder_heads.h"
#include "zoo/heads/losses.h"
#include "zoo/heads/seq2seq_heads.h"

namespace calque::t5 {

namespace {

const T5Style t5_style{.module = "transformers.models.t5.modeling_t5", .prefix = "T5"};
const T5Style mt5_style{.module = "transformers.models.mt5.modeling_mt5", .prefix = "MT5"};

// What the classes share. A class is made from its style, its name and a config.
struct T5Pretrained : PretrainedModel {
  T5Pretrained(const T5Style& style, std::string name, const Config& config)
      : PretrainedModel(config), style(&style), name(std::move(name)) {}
  std::string type_name() const override { return std::string(style->module) + "." + name; }
  std::string base_model_prefix() const override { return "transformer"; }
  std::vector<std::string> dummy_input_names() const override {
    return {"decoder_input_ids", "input_ids", "decoder_attention_mask"};
  }
  std::vector<std::string> no_split_modules() const override { return {std::string(style->prefix) + "Block"}; }
  std::vector<std::string> keep_in_fp32_modules() const override { return {"wo"}; }
  std::vector<std::string> keys_to_ignore_on_load_unexpected() const override {
    return {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"};
  }
  void init_weights(Module& module) override;

  const T5Style* style;
  std::string name;

 protected:
  T5Pretrained(const T5Pretrained&) = default;
};

// T5Base<D>: the copy of a class that is made from its style and name.
template <class D>
struct T5Base : T5Pretrained {
  using T5Pretrained::T5Pretrained;
  std::span<const ModelArgument> arguments() const override { return D::forward_arguments; }

 protected:
  T5Base(const T5Base&) = default;
  std::shared_ptr<Module> copy_self() const override {
    return nn_detail::shared_module(std::make_unique<D>(static_cast<const D&>(*this)));
  }
};

struct T5Stack : T5Base<T5Stack> {
  static constexpr ModelArgument forward_arguments[] = {arg::input_ids,
                                                        arg::attention_mask,
                                                        arg::encoder_hidden_states,
                                                        arg::encoder_attention_mask,
                                                        arg::inputs_embeds,
                                                        arg::past_key_values,
                                                        arg::use_cache,
                                                        arg::output_attentions,
                                                        arg::output_hidden_states,
                                                        arg::head_mask,
                                                        arg::cross_attn_head_mask};
  T5Stack(const T5Style& style, const Config& c, bool is_decoder)
      : T5Base(style, std::string(style.prefix) + "Stack", c),
        is_decoder(is_decoder),
        embed_tokens(child<Embedding>("embed_tokens", c.integer("vocab_size"), c.integer("d_model"))),
        block(child<ModuleList>("block")),
        final_layer_norm(
            child<T5LayerNorm>("final_layer_norm", style, c.integer("d_model"), c.number("layer_norm_epsilon"))),
        dropout(child<Dropout>("dropout", c.number("dropout_rate"))) {
    config().set("is_decoder", is_decoder);
    if (!is_decoder) config().set("use_cache", false);
    for (int64_t i = 0; i < c.integer(is_decoder ? "num_decoder_layers" : "num_layers"); ++i)
      block->emplace<T5Block>(style, c, is_decoder, i == 0);
  }

  ModelOutput forward(const ModelInputs& in) override {
    if (in[arg::input_ids].defined() == in[arg::inputs_embeds].defined()) {
      const std::string of = is_decoder ? "decoder_" : "";
      throw UserError("You must specify exactly one of " + of + "input_ids or " + of + "inputs_embeds");
    }
    const Tensor embeds = in[arg::inputs_embeds].defined() ? in[arg::inputs_embeds] : embed_tokens(in[arg::input_ids]);
    const AttentionMask mask =
        is_decoder ? causal_mask(embeds, in[arg::attention_mask], {.past = in[arg::past_key_values].length()})
                   : bidirectional_mask(in[arg::attention_mask]);
    const AttentionMask encoder_mask =
        in[arg::encoder_hidden_states].defined() ? bidirectional_mask(in[arg::encoder_attention_mask]) : AttentionMask();
    const bool eager = eager_attention(config(), wants_attentions(in),
                                       in[arg::head_mask].defined() ? in[arg::head_mask] : in[arg::cross_attn_head_mask]);

    LayerOutputs outputs(*this, in);
    Tensor x = dropout(embeds);
    Tensor position_bias;
    const std::vector<T5Block*> all = block->items<T5Block>();
    for (size_t i = 0; i < all.size(); ++i) {
      outputs.before_layer(x);
      auto [hidden, bias, weights, cross_weights, now] =
          (*all[i])(x, mask, position_bias, in[arg::encoder_hidden_states], encoder_mask, in[arg::past_key_values].layer(i),
                    layer_head_mask(in[arg::head_mask], i, all.size(), "head_mask"),
                    layer_head_mask(in[arg::cross_attn_head_mask], i, all.size(), "cross_attn_head_mask"), eager);
      x = hidden;
      position_bias = bias;
      outputs.after_layer(weights, is_decoder ? now : LayerCache());
      if (cross_weights.defined()) outputs.cross_attention(cross_weights);
    }
    x = dropout(final_layer_norm(x));
    outputs.before_layer(x);
    return outputs.with("last_hidden_state", x);
  }
  Child<Embedding>* input_embeddings() override { return &embed_tokens; }

  bool is_decoder;
  Child<Embedding> embed_tokens;
  Child<ModuleList> block;
  Child<T5LayerNorm> final_layer_norm;
  Child<Dropout> dropout;
};

// Where no mask of the decoder's heads is given, the encoder's serves for both.
ModelInputs with_head_masks(const Config& config, ModelInputs in) {
  if (in[arg::head_mask].defined() && !in[arg::decoder_head_mask].defined() &&
      config.integer("num_layers") == config.integer("num_decoder_layers"))
    in.set(arg::decoder_head_mask, in[arg::head_mask]);
  return in;
}

// The embedding, the encoder and the decoder, which the model and some heads have as their own children.
template <class D>
struct T5EncoderDecoder : T5Base<D> {
  T5EncoderDecoder(const T5Style& style, const std::string& name, const Config& c)
      : T5Base<D>(style, name, c),
        shared(this->template child<Embedding>("shared", c.integer("vocab_size"), c.integer("d_model"))),
        encoder(this->template child<T5Stack>("encoder", style, c, false)),
        decoder(this->template child<T5Stack>("decoder", style, c, true)) {}
  ModelOutput run(const ModelInputs& given) {
    const ModelInputs in = with_head_masks(this->config(), given);
    const ModelOutput encoded =
        in[arg::encoder_outputs].is_none() ? encoder(encoder_inputs(in)) : given_encoder_outputs(in[arg::encoder_outputs]);
    return encoder_decoder_output(encoded, decoder(decoder_inputs(in, encoded)));
  }
  Child<Embedding>* input_embeddings() override { return &shared; }
  PretrainedModel::TiedWeights tied_weights() const override {
    return {{"encoder.embed_tokens.weight", "shared.weight"}, {"decoder.embed_tokens.weight", "shared.weight"}};
  }

  Child<Embedding> shared;
  Child<T5Stack> encoder, decoder;
};

struct T5Model : T5EncoderDecoder<T5Model> {
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,         arg::attention_mask,      arg::decoder_input_ids,    arg::decoder_attention_mask,
      arg::encoder_outputs,   arg::past_key_values,     arg::inputs_embeds,        arg::decoder_inputs_embeds,
      arg::use_cache,         arg::output_attentions,   arg::output_hidden_states, arg::head_mask,
      arg::decoder_head_mask, arg::cross_attn_head_mask};
  using T5EncoderDecoder::T5EncoderDecoder;
  ModelOutput forward(const ModelInputs& in) override { return run(in); }
};

struct T5ForConditionalGeneration : T5EncoderDecoder<T5ForConditionalGeneration> {
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,       arg::attention_mask,    arg::decoder_input_ids,   arg::decoder_attention_mask,
      arg::encoder_outputs, arg::past_key_values,   arg::inputs_embeds,       arg::decoder_inputs_embeds,
      arg::labels,          arg::use_cache,         arg::output_attentions,   arg::output_hidden_states,
      arg::head_mask,       arg::decoder_head_mask, arg::cross_attn_head_mask};
  T5ForConditionalGeneration(const T5Style& style, const std::string& name, const Config& c)
      : T5EncoderDecoder(style, name, c),
        lm_head(child<Linear>("lm_head", c.integer("d_model"), c.integer("vocab_size"), false)) {}
  ModelOutput forward(const ModelInputs& given) override {
    ModelInputs in = given;
    if (in[arg::labels].defined() && !in[arg::decoder_input_ids].defined() && !in[arg::decoder_inputs_embeds].defined())
      in.set(arg::decoder_input_ids, shift_tokens_right(config(), in[arg::labels]));
    const ModelOutput base = run(in);
    Tensor hidden = base["last_hidden_state"];
    if (config().flag("scale_decoder_outputs")) hidden = hidden * std::pow(config().integer("d_model"), -0.5);
    const Tensor logits = lm_head(hidden);
    ModelOutput out;
    if (in[arg::labels].defined()) out.set("loss", token_loss(logits, in[arg::labels]));
    out.set("logits", logits);
    take_encoder_decoder_fields(out, base);
    return out;
  }
  TiedWeights tied_weights() const override {
    TiedWeights out = T5EncoderDecoder::tied_weights();
    if (config().flag("tie_word_embeddings")) out.emplace_back("lm_head.weight", "shared.weight");
    return out;
  }
  bool can_generate() const override { return true; }
  Child<Linear>* output_embeddings() override { return &lm_head; }

  Child<Linear> lm_head;
};

struct T5EncoderModel : T5Base<T5EncoderModel> {
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,         arg::attention_mask,       arg::inputs_embeds,
      arg::output_attentions, arg::output_hidden_states, arg::head_mask};
  T5EncoderModel(const T5Style& style, const std::string& name, const Config& c)
      : T5Base(style, name, c),
        shared(child<Embedding>("shared", c.integer("vocab_size"), c.integer("d_model"))),
        encoder(child<T5Stack>("encoder", style, c, false)) {
    config().set("is_encoder_decoder", false);
    config().set("use_cache", false);
  }
  ModelOutput forward(const ModelInputs& in) override { return encoder(encoder_inputs(in)); }
  Child<Embedding>* input_embeddings() override { return &shared; }
  TiedWeights tied_weights() const override { return {{"encoder.embed_tokens.weight", "shared.weight"}}; }
  std::vector<std::string> keys_to_ignore_on_load_unexpected() const override { return {"decoder"}; }

  Child<Embedding> shared;
  Child<T5Stack> encoder;
};

struct T5ForSequenceClassification : T5Base<T5ForSequenceClassification> {
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,         arg::attention_mask,      arg::decoder_input_ids,     arg::decoder_attention_mask,
      arg::encoder_outputs,   arg::inputs_embeds,       arg::decoder_inputs_embeds, arg::labels,
      arg::use_cache,         arg::output_attentions,   arg::output_hidden_states,  arg::head_mask,
      arg::decoder_head_mask, arg::cross_attn_head_mask};
  T5ForSequenceClassification(const T5Style& style, const std::string& name, const Config& c)
      : T5Base(style, name, c),
        transformer(child<T5Model>("transformer", style, std::string(style.prefix) + "Model", c)),
        classification_head(child<Seq2SeqClassificationHead>("classification_head", style.type("ClassificationHead"),
                                                             c.integer("d_model"), num_labels(c),
                                                             c.number("classifier_dropout"))) {}
  // It reads the state at the end of the text, and makes the decoder's input itself.
  ModelInputs example_inputs(const ExampleSizes& sizes) const override {
    return with_ends_of_text(example_tokens(*this, {sizes.batch, sizes.length}), config());
  }
  ModelOutput forward(const ModelInputs& given) override {
    ModelInputs in = given;
    if (in[arg::labels].defined()) in.set(arg::use_cache, false);
    if (!in[arg::input_ids].defined())
      throw UserError(name + ": the end tokens are looked for in input_ids; inputs_embeds are not supported");
    if (!in[arg::decoder_input_ids].defined() && !in[arg::decoder_inputs_embeds].defined())
      in.set(arg::decoder_input_ids, shift_tokens_right(config(), in[arg::input_ids]));
    const ModelOutput base = transformer(in);
    const Tensor logits = classification_head(state_at_end(config(), in[arg::input_ids], base["last_hidden_state"]));
    ModelOutput out;
    if (in[arg::labels].defined()) out.set("loss", sequence_classification_loss(config(), logits, in[arg::labels]));
    out.set("logits", logits);
    take_encoder_decoder_fields(out, base);
    return out;
  }
  Child<Embedding>* input_embeddings() override { return transformer->input_embeddings(); }
  TiedWeights tied_weights() const override {
    return {{"transformer.encoder.embed_tokens.weight", "transformer.shared.weight"},
            {"transformer.decoder.embed_tokens.weight", "transformer.shared.weight"}};
  }

  Child<T5Model> transformer;
  Child<Seq2SeqClassificationHead> classification_head;
};

struct T5ForTokenClassification : T5Base<T5ForTokenClassification> {
  static constexpr ModelArgument forward_arguments[] = {arg::input_ids, arg::attention_mask,    arg::inputs_embeds,
                                                        arg::labels,    arg::output_attentions, arg::output_hidden_states,
                                                        arg::head_mask};
  T5ForTokenClassification(const T5Style& style, const std::string& name, const Config& c)
      : T5Base(style, name, c),
        transformer(child<T5EncoderModel>("transformer", style, std::string(style.prefix) + "EncoderModel", c)),
        dropout(child<Dropout>("dropout", c.number("classifier_dropout"))),
        classifier(child<Linear>("classifier", c.integer("d_model"), num_labels(c))) {
    config().set("is_encoder_decoder", false);
    config().set("use_cache", false);
  }
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = transformer(in);
    const Tensor logits = classifier(dropout(base["last_hidden_state"]));
    ModelOutput out;
    if (in[arg::labels].defined()) out.set("loss", token_loss(logits, in[arg::labels]));
    out.set("logits", logits);
    out.take(base, {"hidden_states", "attentions"});
    return out;
  }
  Child<Embedding>* input_embeddings() override { return transformer->input_embeddings(); }
  TiedWeights tied_weights() const override {
    return {{"transformer.encoder.embed_tokens.weight", "transformer.shared.weight"}};
  }
  std::vector<std::string> keys_to_ignore_on_load_unexpected() const override { return {"decoder"}; }

  Child<T5EncoderModel> transformer;
  Child<Dropout> dropout;
  Child<Linear> classifier;
};

struct T5ForQuestionAnswering : T5EncoderDecoder<T5ForQuestionAnswering> {
  static constexpr std::span<const ModelArgument> forward_arguments = seq2seq_answer_arguments;
  T5ForQuestionAnswering(const T5Style& style, const std::string& name, const Config& c)
      : T5EncoderDecoder(style, name, c), qa_outputs(child<Linear>("qa_outputs", c.integer("d_model"), num_labels(c))) {}
  // Without the decoder's ids, which the model makes of input_ids.
  ModelInputs example_inputs(const ExampleSizes& sizes) const override {
    return example_tokens(*this, {sizes.batch, sizes.length});
  }
  ModelOutput forward(const ModelInputs& given) override {
    ModelInputs in = given;
    if (in[arg::start_positions].defined() && in[arg::end_positions].defined()) in.set(arg::use_cache, false);
    if (!in[arg::decoder_input_ids].defined() && !in[arg::decoder_inputs_embeds].defined()) {
      if (!in[arg::input_ids].defined())
        throw UserError(
            "without decoder_input_ids and decoder_inputs_embeds the decoder's ids are made from input_ids, which are not "
            "given either");
      in.set(arg::decoder_input_ids, shift_tokens_right(config(), in[arg::input_ids]));
    }
    const ModelOutput base = run(in);
    ModelOutput out;
    set_question_answering(out, qa_outputs(base["last_hidden_state"]), in);
    take_encoder_decoder_fields(out, base);
    return out;
  }

  Child<Linear> qa_outputs;
};

// Deviations by what a weight sums over, as the original's.
void T5Pretrained::init_weights(Module& module) {
  const double factor = config().number("initializer_factor");
  const double model = std::pow(config().integer("d_model"), -0.5);
  const auto linear = [](const Child<Linear>& one, double deviation) {
    init::normal_(one->weight, 0, deviation);
    if (one->bias.defined()) init::zeros_(one->bias);
  };
  if (auto* norm = dynamic_cast<T5LayerNorm*>(&module)) {
    init::constant_(norm->weight, factor);
  } else if (auto* feed_forward = dynamic_cast<T5FeedForward*>(&module)) {
    linear(feed_forward->wi, factor * model);
    if (feed_forward->linear) linear(*feed_forward->linear, factor * model);
    linear(feed_forward->wo, factor * std::pow(config().integer("d_ff"), -0.5));
  } else if (auto* attention = dynamic_cast<T5Attention*>(&module)) {
    const double size = static_cast<double>(attention->head_size);
    linear(attention->q, factor * model * std::pow(size, -0.5));
    linear(attention->k, factor * model);
    linear(attention->v, factor * model);
    linear(attention->o, factor * std::pow(static_cast<double>(attention->heads) * size, -0.5));
    if (attention->relative_attention_bias) init::normal_((*attention->relative_attention_bias)->weight, 0, factor * model);
  } else if (auto* head = dynamic_cast<Seq2SeqClassificationHead*>(&module)) {
    linear(head->dense, factor * model);
    linear(head->out_proj, factor * model);
  } else if (auto* tokens = dynamic_cast<T5ForTokenClassification*>(&module)) {
    linear(tokens->classifier, factor);
  } else if (auto* answering = dynamic_cast<T5ForQuestionAnswering*>(&module)) {
    init::normal_(answering->shared->weight, 0, factor);
    linear(answering->qa_outputs, factor * model);
  } else if (auto* generation = dynamic_cast<T5ForConditionalGeneration*>(&module)) {
    init::normal_(generation->shared->weight, 0, factor);
    if (!config().flag("tie_word_embeddings")) linear(generation->lm_head, factor);
  } else if (auto* whole = dynamic_cast<T5Model*>(&module)) {
    init::normal_(whole->shared->weight, 0, factor);
  } else if (auto* encoder = dynamic_cast<T5EncoderModel*>(&module)) {
    init::normal_(encoder->shared->weight, 0, factor);
  } else if (dynamic_cast<Linear*>(&module) || dynamic_cast<Embedding*>(&module)) {
    return;  // their owners', above
  } else {
    PretrainedModel::init_weights(module);
  }
}

// "gated-gelu" is a gate and an activation; "relu" an activation alone. The tanh form is what "gated-gelu" has always meant.
void complete_feed_forward(Config& config) {
  if (!config.has("num_decoder_layers")) config.set("num_decoder_layers", config.integer("num_layers"));
  const std::string text = config.text("feed_forward_proj");
  const size_t dash = text.find('-');
  if (dash != std::string::npos && (text.substr(0, dash) != "gated" || text.find('-', dash + 1) != std::string::npos))
    throw UserError(ErrorKind::bad_file, config.where() + ": \"feed_forward_proj\" is \"" + text +
                                             "\", expected an activation or gated- and an activation");
  config.set("is_gated_act", dash != std::string::npos);
  config.set("dense_act_fn", text == "gated-gelu" ? "gelu_new" : dash == std::string::npos ? text : text.substr(dash + 1));
}

// Outputs are scaled where the head is the embedding. Files of transformers 5 say so; in older ones the tie itself does.
void complete_t5(Config& config) {
  complete_feed_forward(config);
  if (!config.has("scale_decoder_outputs")) config.set("scale_decoder_outputs", config.flag("tie_word_embeddings"));
}

using MakeT5 = std::unique_ptr<PretrainedModel>(const T5Style& style, const std::string& name, const Config& config);

template <class M>
std::unique_ptr<PretrainedModel> made_t5(const T5Style& style, const std::string& name, const Config& config) {
  return std::make_unique<M>(style, name, config);
}

ModelClass t5_class_entry(const T5Style& style, const char* part, std::initializer_list<std::string_view> tasks,
                          MakeT5* make) {
  const std::string name = std::string(style.prefix) + part;
  return {name, {tasks.begin(), tasks.end()}, [&style, name, make](const Config& config) {
            return finished_model(make(style, name, config));
          }};
}

template <class M>
ModelClass t5_class(const T5Style& style, const char* part, std::initializer_list<std::string_view> tasks) {
  return t5_class_entry(style, part, tasks, made_t5<M>);
}

std::vector<ModelClass> t5_classes(const T5Style& style, std::initializer_list<std::string_view> generation) {
  return {t5_class<T5Model>(style, "Model", {"default"}),
          t5_class<T5ForConditionalGeneration>(style, "ForConditionalGeneration", generation),
          t5_class<T5EncoderModel>(style, "EncoderModel", {"text-encoding"}),
          t5_class<T5ForQuestionAnswering>(style, "ForQuestionAnswering", {"question-answering"}),
          t5_class<T5ForSequenceClassification>(style, "ForSequenceClassification", {"sequence-classification"}),
          t5_class<T5ForTokenClassification>(style, "ForTokenClassification", {"token-classification"})};
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  const ConfigSchema t5_schema = {
      .keys = {{"relative_attention_num_buckets", KeyKind::size}, {"relative_attention_max_distance", KeyKind::length}}};
  const std::vector<std::pair<std::string, std::string>> other_names = {{"hidden_size", "d_model"},
                                                                        {"num_attention_heads", "num_heads"},
                                                                        {"num_hidden_layers", "num_layers"},
                                                                        {"head_dim", "d_kv"}};
  registry.add({
      .model_type = "t5",
      .config_class = "T5Config",
      .attribute_map = other_names,
      .defaults =
          R"({"vocab_size": 32128, "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_decoder_layers": null,
        "num_heads": 8, "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128, "dropout_rate": 0.1,
        "layer_norm_epsilon": 1e-06, "initializer_factor": 1.0, "feed_forward_proj": "relu", "is_encoder_decoder": true,
        "use_cache": true, "pad_token_id": 0, "eos_token_id": 1, "classifier_dropout": 0.0, "is_decoder": false,
        "tie_word_embeddings": true})",
      .schema = t5_schema,
      .complete = complete_t5,
      .classes = t5_classes(t5_style, {"pretraining", "seq2seq-lm"}),
  });
  registry.add({
      .model_type = "mt5",
      .config_class = "MT5Config",
      .attribute_map = other_names,
      .defaults =
          R"({"vocab_size": 250112, "d_model": 512, "d_kv": 64, "d_ff": 1024, "num_layers": 8, "num_decoder_layers": null,
        "num_heads": 6, "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128, "dropout_rate": 0.1,
        "layer_norm_epsilon": 1e-06, "initializer_factor": 1.0, "feed_forward_proj": "gated-gelu", "is_encoder_decoder": true,
        "use_cache": true, "tie_word_embeddings": true, "bos_token_id": null, "pad_token_id": 0, "eos_token_id": 1,
        "decoder_start_token_id": 0, "classifier_dropout": 0.0, "is_decoder": false})",
      .schema = t5_schema,
      .complete = complete_feed_forward,
      .classes = t5_classes(mt5_style, {"seq2seq-lm"}),
  });
}

}  // namespace calque::t5
