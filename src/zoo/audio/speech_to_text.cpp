// Speech2Text: convolutions that halve the frames of features, sines counted over what is no padding, layers with the norm in front.
#include <cmath>

#include "calque/base/error.h"
#include "calque/nn/convolution.h"
#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/scans.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "zoo/heads/decoder_heads.h"
#include "zoo/heads/hearing.h"

namespace calque::speech_to_text {

namespace {

constexpr Seq2SeqStyle speech_to_text_style{.module = "transformers.models.speech_to_text.modeling_speech_to_text",
                                            .prefix = "Speech2Text",
                                            .pre_norm = true,
                                            .positions = Seq2SeqStyle::Positions::sinusoidal_of_ids,
                                            .position_offset = 2,
                                            .embedding_scale = Seq2SeqStyle::EmbeddingScale::behind,
                                            .final_logits_bias = false,
                                            .position_rows = "max_target_positions"};
constexpr Seq2SeqStyle speech_to_text_encoder_style = [] {
  Seq2SeqStyle out = speech_to_text_style;
  out.position_rows = "max_source_positions";
  return out;
}();

struct Conv1dSubsampler : Typed<Conv1dSubsampler> {
  static constexpr const char* torch_type = "transformers.models.speech_to_text.modeling_speech_to_text.Conv1dSubsampler";
  static constexpr const char* forward_arguments[] = {"input_features"};
  explicit Conv1dSubsampler(const Config& c) : conv_layers(child<ModuleList>("conv_layers")) {
    const std::vector<int64_t> kernels = c.integers("conv_kernel_sizes");
    for (size_t i = 0; i < kernels.size(); ++i) {
      const int64_t in =
          i == 0 ? c.integer("input_feat_per_channel") * c.integer("input_channels") : c.integer("conv_channels") / 2;
      const int64_t out = i + 1 < kernels.size() ? c.integer("conv_channels") : 2 * c.integer("d_model");
      conv_layers->emplace<Conv1d>(in, out, kernels[i], ConvOptions{.stride = 2, .padding = Sizes(kernels[i] / 2)});
    }
  }
  Tensor forward(const Tensor& input_features) {
    Tensor x = input_features.transpose(1, 2).contiguous();
    for (Conv1d* conv : conv_layers->items<Conv1d>()) x = glu((*conv)(x), 1);
    return x.transpose(1, 2).contiguous();
  }
  Child<ModuleList> conv_layers;
};

// Features [batch, frames, size] with a mask over their frames, as one over the frames that the convolutions leave: 1 is sound.
Tensor frames_left(const Config& c, const SymInt& frames, const Tensor& given) {
  const Tensor attention_mask = given.dim() > 2 ? given.select(2, -1) : given;
  Tensor length = attention_mask.to(DType::int64).sum({-1});
  for (int64_t i = 0; i < c.integer("num_conv_layers"); ++i) length = floor_divide(length - 1, 2) + 1;
  const Tensor last = length - 1;
  const Tensor counted = where(lt(last, 0), last + Scalar(frames), last);  // no sound at all hides nothing
  const Tensor places = arange(frames, DType::int64, std::nullopt, given.device());
  return le(places.unsqueeze(0), counted.unsqueeze(1)).to(DType::int64);
}

struct Speech2TextEncoder : ModelOf<Speech2TextEncoder, Seq2SeqPretrained> {
  static constexpr const char* torch_type = "transformers.models.speech_to_text.modeling_speech_to_text.Speech2TextEncoder";
  static constexpr ModelArgument forward_arguments[] = {arg::input_features, arg::attention_mask, arg::output_attentions,
                                                        arg::output_hidden_states, arg::head_mask};
  explicit Speech2TextEncoder(const Config& c)
      : ModelOf(speech_to_text_style, "Speech2TextEncoder", c),
        conv(child<Conv1dSubsampler>("conv", c)),
        embed_positions(child<PositionEmbedding>("embed_positions", speech_to_text_encoder_style,
                                                 c.integer("max_source_positions"), c.integer("d_model"),
                                                 c.optional_integer("pad_token_id"))),
        layers(child<ModuleList>("layers")),
        layer_norm(child<LayerNorm>("layer_norm", c.integer("d_model"))) {
    for (int64_t i = 0; i < c.integer("encoder_layers"); ++i) layers->emplace<Seq2SeqEncoderLayer>(speech_to_text_style, c);
  }
  std::string main_input_name() const override { return "input_features"; }

  ModelOutput forward(const ModelInputs& in) override {
    Tensor embeds = conv(in[arg::input_features]);
    if (config().flag("scale_embedding")) embeds = embeds * std::sqrt(static_cast<double>(config().integer("d_model")));
    Tensor kept = in[arg::attention_mask];
    if (kept.defined()) kept = frames_left(config(), embeds.sym_size(1), kept);
    // Positions count as of ids: padding is 1 here, which the configuration may call something else than padding.
    const int64_t pad = config().integer("pad_token_id");
    const Tensor ids =
        kept.defined() ? ne(kept, 1).to(DType::int64) : zeros({embeds.sym_size(0), embeds.sym_size(1)}, DType::int64);
    const Tensor counts = ne(ids, pad).to(DType::int64);
    const Tensor positions = cumsum(counts, 1) * counts + pad;
    Tensor x = embeds + embed_positions(positions, embeds.sym_size(1) + pad + 1).to(embeds.dtype());
    x = functional::dropout(x, config().number("dropout"), training());
    const AttentionMask mask = bidirectional_mask(kept);
    return through_encoder(*layers, &*layer_norm, x, mask, in, true);
  }

  Child<Conv1dSubsampler> conv;
  Child<PositionEmbedding> embed_positions;
  Child<ModuleList> layers;
  Child<LayerNorm> layer_norm;
};

constexpr HearingStyle speech_to_text_hearing{
    &speech_to_text_style,
    "lm_head",
    [](const Config& c) -> std::shared_ptr<PretrainedModel> { return std::make_shared<Speech2TextEncoder>(c); },
    frames_left,
    [](const PretrainedModel&, const Tensor& features, const Tensor&) { return features; },
    [](const Config& c, int64_t batch, int64_t length) {
      ModelInputs in;
      in.set(arg::input_features,
             example_features({batch, 4 * length, c.integer("input_feat_per_channel") * c.integer("input_channels")}));
      in.set(arg::attention_mask, ones({batch, 4 * length}, DType::int64));
      return in;
    }};

void complete_speech_to_text(Config& c) {
  const size_t kernels = c.integers("conv_kernel_sizes").size();
  if (kernels == 0 || static_cast<int64_t>(kernels) != c.integer("num_conv_layers"))
    throw UserError(ErrorKind::bad_file, c.where() + ": \"conv_kernel_sizes\" has " + std::to_string(kernels) +
                                             " numbers, expected num_conv_layers, which is " +
                                             std::to_string(c.integer("num_conv_layers")) + ", and at least one");
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "speech_to_text",
      .config_class = "Speech2TextConfig",
      .attribute_map = {{"num_attention_heads", "encoder_attention_heads"},
                        {"hidden_size", "d_model"},
                        {"num_hidden_layers", "encoder_layers"}},
      .defaults = R"({"vocab_size": 10000, "encoder_layers": 12, "encoder_ffn_dim": 2048, "encoder_attention_heads": 4,
        "decoder_layers": 6, "decoder_ffn_dim": 2048, "decoder_attention_heads": 4, "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0, "use_cache": true, "is_encoder_decoder": true, "activation_function": "relu", "d_model": 256,
        "dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0, "init_std": 0.02, "decoder_start_token_id": 2,
        "scale_embedding": true, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "max_source_positions": 6000,
        "max_target_positions": 1024, "num_conv_layers": 2, "conv_kernel_sizes": [5, 5], "conv_channels": 1024,
        "input_feat_per_channel": 80, "input_channels": 1, "tie_word_embeddings": true})",
      .schema = {.keys = {{"max_source_positions", KeyKind::size},
                          {"max_target_positions", KeyKind::size},
                          {"num_conv_layers", KeyKind::groups},
                          {"conv_kernel_sizes", KeyKind::size},
                          {"conv_channels", KeyKind::size},
                          {"input_feat_per_channel", KeyKind::size},
                          {"input_channels", KeyKind::size}},
                 .relations = {multiple("d_model", "encoder_attention_heads"),
                               multiple("d_model", "decoder_attention_heads")},
                 .tables = {{"max_source_positions", "d_model"}, {"max_target_positions", "d_model"}}},
      .complete = complete_speech_to_text,
      .classes = hearing_classes(speech_to_text_hearing),
  });
}

}  // namespace calque::speech_to_text
