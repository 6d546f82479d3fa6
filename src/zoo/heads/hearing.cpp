#include "hearing.h"

#include <cmath>

#include "../blocks/encoder_decoder.h"
#include "calque/base/error.h"
#include "losses.h"

namespace calque {

namespace {

std::string class_of(const HearingStyle& style, const char* part) { return style.seq2seq->prefix + std::string(part); }

// Of the model, and in front of use_cache of the one with a head.
constexpr ModelArgument hearing_arguments[] = {arg::input_features,         arg::attention_mask,  arg::decoder_input_ids,
                                               arg::decoder_attention_mask, arg::encoder_outputs, arg::past_key_values,
                                               arg::decoder_inputs_embeds,  arg::use_cache,       arg::output_attentions,
                                               arg::output_hidden_states,   arg::head_mask,       arg::decoder_head_mask,
                                               arg::cross_attn_head_mask};
constexpr auto hearing_positions_arguments =
    with_arguments(names_of(hearing_arguments), arg::decoder_inputs_embeds, {arg::decoder_position_ids});
constexpr auto hearing_labelled_arguments =
    with_arguments(names_of(hearing_arguments), arg::decoder_inputs_embeds, {arg::labels});
constexpr auto hearing_labelled_positions_arguments =
    with_arguments(hearing_positions_arguments, arg::decoder_position_ids, {arg::labels});

}  // namespace

Tensor example_features(const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes)
    if (__builtin_mul_overflow(count, size, &count) || count > int64_t{1} << 28)
      throw UserError("example inputs: the configuration asks for features of more than 2^28 numbers");
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i % 1009) * 0.37F);
  return tensor_of<float>(values, sizes);
}

HearingModel::HearingModel(const HearingStyle& style, const Config& c)
    : Seq2SeqPretrained(*style.seq2seq, class_of(style, "Model"), c),
      hearing(&style),
      encoder(child_module<PretrainedModel>("encoder", style.make_encoder(c))),
      decoder(child<Seq2SeqDecoder>("decoder", *style.seq2seq, c)) {}

std::span<const ModelArgument> HearingModel::arguments() const {
  if (style->given_positions) return hearing_positions_arguments;
  return hearing_arguments;
}

ModelInputs HearingModel::example_inputs(const ExampleSizes& sizes) const {
  ModelInputs in = hearing->example(config(), sizes.batch, sizes.length);
  in.set(arg::decoder_input_ids, example_ids(config(), {sizes.batch, sizes.decoder_length}));
  return in;
}

ModelOutput HearingModel::forward(const ModelInputs& in) {
  ModelOutput encoded;
  const Tensor attention_mask = in[arg::attention_mask];
  if (in[arg::encoder_outputs].is_none()) {
    if (!in[arg::input_features].defined()) throw UserError(class_name() + ": expected input_features or encoder_outputs");
    ModelInputs inner = encoder_inputs(in);
    inner.set(arg::input_features, hearing->heard(*this, in[arg::input_features], attention_mask));
    encoded = encoder(inner);
  } else {
    encoded = given_encoder_outputs(in[arg::encoder_outputs]);
  }
  ModelInputs inner = decoder_inputs(in, encoded);
  inner.set(arg::encoder_attention_mask,
            attention_mask.defined()
                ? hearing->frame_mask(config(), encoded["last_hidden_state"].sym_size(1), attention_mask)
                : Tensor());
  inner.set(arg::position_ids, in[arg::decoder_position_ids]);
  return encoder_decoder_output(encoded, decoder(inner));
}

HearingConditionalGeneration::HearingConditionalGeneration(const HearingStyle& style, const Config& c)
    : Seq2SeqPretrained(*style.seq2seq, class_of(style, "ForConditionalGeneration"), c),
      model(child<HearingModel>("model", style, c)),
      head(child<Linear>(style.head, c.integer("d_model"), c.integer("vocab_size"), false)) {}

std::span<const ModelArgument> HearingConditionalGeneration::arguments() const {
  if (style->given_positions) return hearing_labelled_positions_arguments;
  return hearing_labelled_arguments;
}

ModelOutput HearingConditionalGeneration::forward(const ModelInputs& given) {
  ModelInputs in = given;
  const Tensor labels = in[arg::labels];
  if (labels.defined() && !in[arg::decoder_input_ids].defined() && !in[arg::decoder_inputs_embeds].defined())
    in.set(arg::decoder_input_ids, shift_tokens_right(config(), labels));
  const ModelOutput base = model(in);
  const Tensor logits = head(base["last_hidden_state"]);
  ModelOutput out;
  if (labels.defined()) out.set("loss", token_loss(logits, labels));
  out.set("logits", logits);
  take_encoder_decoder_fields(out, base);
  return out;
}

PretrainedModel::TiedWeights HearingConditionalGeneration::tied_weights() const {
  if (!config().flag("tie_word_embeddings")) return {};
  return {{std::string(model->hearing->head) + ".weight", "model.decoder.embed_tokens.weight"}};
}

std::vector<ModelClass> hearing_classes(const HearingStyle& style) {
  const HearingStyle* its = &style;
  std::vector<ModelClass> out;
  out.push_back({class_of(style, "Model"), {"default"}, [its](const Config& config) {
                   return finished_model(std::make_shared<HearingModel>(*its, config));
                 }});
  out.push_back({class_of(style, "ForConditionalGeneration"), {"speech-seq2seq"}, [its](const Config& config) {
                   return finished_model(std::make_shared<HearingConditionalGeneration>(*its, config));
                 }});
  return out;
}

}  // namespace calque
