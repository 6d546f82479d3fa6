// wav2vec 2.0: an encoder of raw sound (blocks/speech_encoder.h) that learns to tell what it did not hear from other frames of the
// same sound, by way of a quantizer; heads for letters, labels, frames and speakers.
#include <cmath>

#include "calque/base/error.h"
#include "calque/hub/registry.h"
#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/convolution.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/indexing.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/scatter.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/aten/statistics.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/unique.h"
#include "calque/op/aten/where.h"
#include "zoo/heads/encoder_heads.h"
#include "zoo/heads/speech_heads.h"

namespace calque::wav2vec2 {

namespace {

constexpr char wav2vec2_family[] = "transformers.models.wav2vec2.modeling_wav2vec2.Wav2Vec2";
constexpr ArgumentName<Tensor> sampled_negative_indices{"sampled_negative_indices"};

// A vector of the codebook for each frame, chosen group by group.
struct Wav2Vec2GumbelVectorQuantizer : Typed<Wav2Vec2GumbelVectorQuantizer> {
  static constexpr const char* torch_type = "transformers.models.wav2vec2.modeling_wav2vec2.Wav2Vec2GumbelVectorQuantizer";
  static constexpr const char* forward_arguments[] = {"hidden_states", "mask_time_indices"};
  explicit Wav2Vec2GumbelVectorQuantizer(const Config& c)
      : groups(c.integer("num_codevector_groups")),
        vectors(c.integer("num_codevectors_per_group")),
        codevectors(register_parameter("codevectors", rand({1, groups * vectors, c.integer("codevector_dim") / groups}))),
        weight_proj(child<Linear>("weight_proj", c.integers("conv_dim").back(), groups * vectors)) {}
  // The vectors, and how many of them are in use (perplexity), of the masked frames where a mask is given.
  std::tuple<Tensor, Tensor> forward(const Tensor& hidden_states, const Tensor& mask) {
    const SymInt batch = hidden_states.sym_size(0), length = hidden_states.sym_size(1), frames = batch * length;
    const Tensor scores = weight_proj(hidden_states).view({frames * groups, vectors});
    Tensor chosen, used;
    if (training()) {
      chosen = functional::gumbel_softmax(scores.to(DType::float32), temperature, true).to(scores.dtype());
      used = softmax(scores.view({frames, groups, vectors}).to(DType::float32), -1);
    } else {
      chosen = scatter(zeros_like(scores), -1, argmax(scores, -1).view({-1, 1}), 1.0);
      used = chosen.view({frames, groups, vectors});
    }
    const Tensor weighted = chosen.view({frames, groups * vectors}).unsqueeze(-1) * *codevectors;
    const Tensor found = weighted.view({frames, groups, vectors, codevectors->size(2)}).sum({-2});
    return {found.view({batch, length, groups * codevectors->size(2)}), perplexity(used, mask)};
  }
  static Tensor perplexity(const Tensor& used, const Tensor& mask) {
    Tensor share;
    if (mask.defined())
      share = where(mask.flatten().view({-1, 1, 1}), used, Scalar(0.0)).sum({0}) / mask.sum();
    else
      share = used.mean({0});
    return exp(neg(xlogy(share, share).sum({-1}))).sum();
  }
  int64_t groups, vectors;
  double temperature = 2;
  Parameter codevectors;
  Child<Linear> weight_proj;
};

struct Wav2Vec2AdapterLayer : Typed<Wav2Vec2AdapterLayer> {
  static constexpr const char* torch_type = "transformers.models.wav2vec2.modeling_wav2vec2.Wav2Vec2AdapterLayer";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit Wav2Vec2AdapterLayer(const Config& c)
      : conv(child<Conv1d>("conv", c.integer("output_hidden_size"), 2 * c.integer("output_hidden_size"),
                           c.integer("adapter_kernel_size"),
                           ConvOptions{.stride = c.integer("adapter_stride"), .padding = Sizes(1)})) {}
  Tensor forward(const Tensor& hidden_states) { return glu(conv(hidden_states), 1); }
  Child<Conv1d> conv;
};

// Behind the encoder: fewer frames, of another size.
struct Wav2Vec2Adapter : Typed<Wav2Vec2Adapter> {
  static constexpr const char* torch_type = "transformers.models.wav2vec2.modeling_wav2vec2.Wav2Vec2Adapter";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit Wav2Vec2Adapter(const Config& c)
      : layerdrop(c.number("layerdrop")),
        proj(child_if<Linear>(resizes(c), *this, "proj", c.integer("hidden_size"), c.integer("output_hidden_size"))),
        proj_layer_norm(child_if<LayerNorm>(resizes(c), *this, "proj_layer_norm", c.integer("output_hidden_size"))),
        layers(child<ModuleList>("layers")) {
    for (int64_t i = 0; i < c.integer("num_adapter_layers"); ++i) layers->emplace<Wav2Vec2AdapterLayer>(c);
  }
  static bool resizes(const Config& c) { return c.integer("output_hidden_size") != c.integer("hidden_size"); }
  Tensor forward(const Tensor& hidden_states) {
    Tensor x = proj ? (*proj_layer_norm)((*proj)(hidden_states)) : hidden_states;
    x = x.transpose(1, 2);
    for (Wav2Vec2AdapterLayer* layer : layers->items<Wav2Vec2AdapterLayer>())
      if (!training() || rand({}).item_as<float>() > static_cast<float>(layerdrop)) x = (*layer)(x);
    return x.transpose(1, 2);
  }
  double layerdrop;
  std::optional<Child<Linear>> proj;
  std::optional<Child<LayerNorm>> proj_layer_norm;
  Child<ModuleList> layers;
};

struct Wav2Vec2Pretrained : SpeechPretrained {
  using SpeechPretrained::SpeechPretrained;
  std::string base_model_prefix() const override { return "wav2vec2"; }
  void init_weights(Module& module) override {
    PretrainedModel::init_weights(module);
    if (auto* quantizer = dynamic_cast<Wav2Vec2GumbelVectorQuantizer*>(&module)) {
      init::normal_(quantizer->weight_proj->weight, 0, 1);
      init::zeros_(quantizer->weight_proj->bias);
      init::uniform_(quantizer->codevectors);
    } else if (auto* projection = dynamic_cast<SpeechFeatureProjection*>(&module)) {
      const double bound = std::sqrt(1.0 / static_cast<double>(projection->projection->weight->size(1)));
      init::uniform_(projection->projection->weight, -bound, bound);
      init::uniform_(projection->projection->bias, -bound, bound);
    } else if (auto* conv = dynamic_cast<Conv1d*>(&module)) {
      init::kaiming_normal_(conv->weight);
      const double bound =
          std::sqrt(static_cast<double>(conv->groups) / static_cast<double>(conv->in_channels * conv->kernel_size[0]));
      if (conv->bias.defined()) init::uniform_(conv->bias, -bound, bound);
    }
  }
};

struct Wav2Vec2Model : ModelOf<Wav2Vec2Model, Wav2Vec2Pretrained> {
  static constexpr const char* torch_type = "transformers.models.wav2vec2.modeling_wav2vec2.Wav2Vec2Model";
  static constexpr auto& forward_arguments = speech_arguments;
  explicit Wav2Vec2Model(const Config& c)
      : ModelOf(c),
        masked_spec_embed(masked_spec_embedding(*this, c)),
        feature_extractor(child<SpeechFeatureEncoder>("feature_extractor", c, wav2vec2_family)),
        feature_projection(child<SpeechFeatureProjection>("feature_projection", c, wav2vec2_family, true)),
        encoder(child<SpeechEncoder>("encoder", c, wav2vec2_family)),
        adapter(child_if<Wav2Vec2Adapter>(c.flag("add_adapter"), *this, "adapter", c)) {}
  void init_weights(Module& module) override {
    Wav2Vec2Pretrained::init_weights(module);
    if (&module == this && masked_spec_embed) init::uniform_(*masked_spec_embed);
  }

  ModelOutput forward(const ModelInputs& in) override {
    const HeardFrames heard = heard_frames(*this, feature_extractor, feature_projection, masked_spec_embed, true, in);
    const EncoderResult encoded = encoder(encoder_inputs(*this, heard.in, heard.states), heard.kept);
    ModelOutput out;
    out.set("last_hidden_state", adapter ? (*adapter)(encoded.last_hidden_state) : encoded.last_hidden_state);
    out.set("extract_features", heard.before);
    out.set("hidden_states", encoded.hidden_states);
    out.set("attentions", encoded.attentions);
    return out;
  }

  std::optional<Parameter> masked_spec_embed;
  Child<SpeechFeatureEncoder> feature_extractor;
  Child<SpeechFeatureProjection> feature_projection;
  Child<SpeechEncoder> encoder;
  std::optional<Child<Wav2Vec2Adapter>> adapter;
};

struct Wav2Vec2ForPreTraining : CopiedAs<Wav2Vec2ForPreTraining, SpeechHead> {
  static constexpr ModelArgument forward_arguments[] = {arg::input_values,      arg::attention_mask,
                                                        arg::mask_time_indices, sampled_negative_indices,
                                                        arg::output_attentions, arg::output_hidden_states};
  Wav2Vec2ForPreTraining(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, forward_arguments),
        dropout_features(child<Dropout>("dropout_features", c.number("feat_quantizer_dropout"))),
        quantizer(child<Wav2Vec2GumbelVectorQuantizer>("quantizer", c)),
        project_hid(child<Linear>("project_hid", c.integer("hidden_size"), c.integer("proj_codevector_dim"))),
        project_q(child<Linear>("project_q", c.integer("codevector_dim"), c.integer("proj_codevector_dim"))) {}

  ModelOutput forward(const ModelInputs& in) override {
    Tensor mask = in[arg::mask_time_indices];
    if (mask.defined()) mask = mask.to(DType::bool_);
    const ModelOutput base = model(in);
    const Tensor predicted = project_hid(base["last_hidden_state"]);
    auto [vectors, perplexity] = quantizer(dropout_features(base["extract_features"]), mask);
    const Tensor targets = project_q(vectors.to(project_q->weight->dtype()));
    ModelOutput out;
    Tensor contrastive, diversity;
    if (const Tensor negatives = in[sampled_negative_indices]; negatives.defined()) {
      if (!mask.defined())
        throw UserError(
            "Wav2Vec2ForPreTraining: sampled_negative_indices are given without mask_time_indices, which say "
            "what is to be told from them");
      contrastive = contrastive_loss(predicted, targets, negatives, mask);
      const double all =
          static_cast<double>(config().integer("num_codevectors_per_group") * config().integer("num_codevector_groups"));
      diversity = (all - perplexity) / all * mask.sum();
      out.set("loss", contrastive + config().number("diversity_loss_weight") * diversity);
    }
    out.set("projected_states", predicted);
    out.set("projected_quantized_states", targets);
    out.set("codevector_perplexity", perplexity);
    out.take(base, {"hidden_states", "attentions"});
    out.set("contrastive_loss", contrastive);
    out.set("diversity_loss", diversity);
    return out;
  }
  void init_weights(Module& module) override {
    SpeechHead::init_weights(module);
    if (&module == this) {
      project_hid->reset_parameters();
      project_q->reset_parameters();
    }
  }
  // How well the target of each masked frame is told from its negatives [batch, frames, negatives], which are frames of the batch.
  Tensor contrastive_loss(const Tensor& predicted, const Tensor& targets, const Tensor& negatives, const Tensor& mask) {
    const SymInt batch = targets.sym_size(0), length = targets.sym_size(1), size = targets.sym_size(2);
    const Tensor rows = index(targets.view({batch * length, size}), {negatives.to(DType::int64).view({-1})});
    const Tensor others = rows.view({batch, length, negatives.sym_size(2), size}).permute({2, 0, 1, 3});
    const Tensor all = cat({targets.unsqueeze(0), others}, 0);
    const Tensor alike = cosine_similarity(predicted.to(DType::float32), all.to(DType::float32), -1).to(all.dtype()) /
                         config().number("contrastive_logits_temperature");
    // A negative that is the target itself cannot be told from it.
    const Tensor same = eq(targets, others).all(-1);
    const Tensor told = where(same, -std::numeric_limits<double>::infinity(), alike.slice(0, 1));
    const Tensor scores = cat({alike.slice(0, 0, 1), told}, 0).transpose(0, 2);
    const Tensor wanted = ((1 - mask.to(DType::int64)) * -100).transpose(0, 1).flatten();
    return functional::cross_entropy(scores.reshape({batch * length, scores.sym_size(2)}).to(DType::float32), wanted, {},
                                     -100, "sum");
  }
  Child<Dropout> dropout_features;
  Child<Wav2Vec2GumbelVectorQuantizer> quantizer;
  Child<Linear> project_hid, project_q;
};

// transformers 4 has it: letters without a mask, and without a loss.
struct Wav2Vec2ForMaskedLM : CopiedAs<Wav2Vec2ForMaskedLM, SpeechHead> {
  Wav2Vec2ForMaskedLM(const HeadClass& head, const Config& c)
      : CopiedAs(head, c),
        dropout(child<Dropout>("dropout", c.number("final_dropout"))),
        lm_head(child<Linear>("lm_head", c.integer("hidden_size"), c.integer("vocab_size"))) {}
  ModelOutput forward(const ModelInputs& in) override {
    ModelInputs inner = in;
    inner.set(arg::attention_mask, Tensor());
    const ModelOutput base = model(inner);
    return labelled_output(base, Tensor(), lm_head(dropout(base["last_hidden_state"])));
  }
  Child<Dropout> dropout;
  Child<Linear> lm_head;
};

struct Wav2Vec2ForAudioFrameClassification : CopiedAs<Wav2Vec2ForAudioFrameClassification, SpeechHead> {
  Wav2Vec2ForAudioFrameClassification(const HeadClass& head, const Config& c)
      : CopiedAs(head, c),
        layer_weights(layer_weights_of(*this, c)),
        classifier(child<Linear>("classifier", c.integer("hidden_size"), num_labels(c))) {
    refuse_adapter(c, "classification of frames");
  }
  // Labels are one-hot.
  ModelOutput forward(const ModelInputs& in) override {
    const auto [base, states] = heard_states(model, config(), in, layer_weights);
    const Tensor logits = classifier(states), labels = in[arg::labels];
    const int64_t kinds = num_labels(config());
    Tensor loss;
    if (labels.defined()) loss = functional::cross_entropy(logits.view({-1, kinds}), argmax(labels.view({-1, kinds}), 1));
    return labelled_output(base, loss, logits);
  }
  std::optional<Parameter> layer_weights;
  Child<Linear> classifier;
};

// The loss of speakers: angles with a margin.
struct AMSoftmaxLoss : Typed<AMSoftmaxLoss> {
  static constexpr const char* torch_type = "transformers.models.wav2vec2.modeling_wav2vec2.AMSoftmaxLoss";
  static constexpr const char* forward_arguments[] = {"hidden_states", "labels"};
  AMSoftmaxLoss(int64_t size, int64_t labels)
      : labels(labels), weight(register_parameter("weight", randn({size, labels}))) {}
  Tensor forward(const Tensor& hidden_states, const Tensor& given) {
    const Tensor wanted = given.flatten();
    const Tensor cosines = matmul(functional::normalize(hidden_states, 2, 1), functional::normalize(weight, 2, 0));
    const Tensor logits = where(one_hot(wanted, labels).to(DType::bool_), cosines - margin, cosines) * scale;
    return functional::cross_entropy(logits, wanted);
  }
  static constexpr double scale = 30, margin = 0.4;
  int64_t labels;
  Parameter weight;
};

// A convolution over frames whose weight is that of a Linear.
struct TDNNLayer : Typed<TDNNLayer> {
  static constexpr const char* torch_type = "transformers.models.wav2vec2.modeling_wav2vec2.TDNNLayer";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  TDNNLayer(const Config& c, size_t number)
      : in(c.integers("tdnn_dim")[number == 0 ? 0 : number - 1]),
        out(c.integers("tdnn_dim")[number]),
        size(c.integers("tdnn_kernel")[number]),
        dilation(c.integers("tdnn_dilation")[number]),
        kernel(child<Linear>("kernel", in * size, out)),
        activation(child<ReLU>("activation")) {}
  Tensor forward(const Tensor& hidden_states) {
    const Tensor weight = kernel->weight->view({out, size, in}).transpose(1, 2);
    return activation(conv1d(hidden_states.transpose(1, 2), weight, kernel->bias, {1}, {0}, {dilation}).transpose(1, 2));
  }
  int64_t in, out, size, dilation;
  Child<Linear> kernel;
  Child<ReLU> activation;
};

struct Wav2Vec2ForXVector : CopiedAs<Wav2Vec2ForXVector, SpeechHead> {
  Wav2Vec2ForXVector(const HeadClass& head, const Config& c)
      : CopiedAs(head, c),
        layer_weights(layer_weights_of(*this, c)),
        projector(child<Linear>("projector", c.integer(c.flag("add_adapter") ? "output_hidden_size" : "hidden_size"),
                                tdnn_sizes(c).front())),
        tdnn(child<ModuleList>("tdnn")),
        feature_extractor(child<Linear>("feature_extractor", tdnn_sizes(c).back() * 2, c.integer("xvector_output_dim"))),
        classifier(child<Linear>("classifier", c.integer("xvector_output_dim"), c.integer("xvector_output_dim"))),
        objective(child<AMSoftmaxLoss>("objective", c.integer("xvector_output_dim"), num_labels(c))) {
    for (size_t i = 0; i < tdnn_sizes(c).size(); ++i) tdnn->emplace<TDNNLayer>(c, i);
  }
  static std::vector<int64_t> tdnn_sizes(const Config& c) {
    const std::vector<int64_t> sizes = c.integers("tdnn_dim");
    for (const char* key : {"tdnn_dim", "tdnn_kernel", "tdnn_dilation"})
      if (sizes.empty() || c.integers(key).size() != sizes.size())
        throw UserError(ErrorKind::bad_file, c.where() + ": \"" + key + "\" has " + std::to_string(c.integers(key).size()) +
                                                 " numbers, expected one or more, as many as tdnn_dim has");
    return sizes;
  }

  ModelOutput forward(const ModelInputs& in) override {
    const auto [base, states] = heard_states(model, config(), in, layer_weights);
    Tensor x = projector(states);
    for (TDNNLayer* layer : tdnn->items<TDNNLayer>()) x = (*layer)(x);
    const Tensor embeddings = feature_extractor(statistics(x, in[arg::attention_mask]));
    const Tensor logits = classifier(embeddings), labels = in[arg::labels];
    ModelOutput out;
    if (labels.defined()) out.set("loss", objective(logits, labels));
    out.set("logits", logits);
    out.set("embeddings", embeddings);
    out.take(base, {"hidden_states", "attentions"});
    return out;
  }
  // Mean and standard deviation over the frames of each sound.
  Tensor statistics(const Tensor& x, const Tensor& attention_mask) const {
    if (!attention_mask.defined()) return cat({x.mean({1}), calque::std(x, {1}, true)}, -1);
    Tensor lengths = speech_frames(config(), attention_mask.to(DType::int64).sum({1}), speech_adapter_layers(config()));
    for (const int64_t kernel : config().integers("tdnn_kernel")) lengths = lengths - (kernel - 1);
    const Tensor places = arange(x.sym_size(1), DType::int64, std::nullopt, x.device()).unsqueeze(0);
    const Tensor kept = lt(places, lengths.unsqueeze(1)).unsqueeze(-1);
    const Tensor count = kept.sum({1}).to(x.dtype());
    const Tensor mean = where(kept, x, Scalar(0.0)).sum({1}) / count;
    const Tensor apart = where(kept, x - mean.unsqueeze(1), Scalar(0.0));
    return cat({mean, sqrt((apart * apart).sum({1}) / (count - 1))}, -1);
  }
  void init_weights(Module& module) override {
    SpeechHead::init_weights(module);
    if (auto* loss = dynamic_cast<AMSoftmaxLoss*>(&module)) init::normal_(loss->weight);
  }
  std::optional<Parameter> layer_weights;
  Child<Linear> projector;
  Child<ModuleList> tdnn;
  Child<Linear> feature_extractor, classifier;
  Child<AMSoftmaxLoss> objective;
};

constexpr HeadFamily wav2vec2_heads{wav2vec2_family, "wav2vec2", made_model<Wav2Vec2Model>};

void complete_wav2vec2(Config& config) {
  check_speech_convolutions(config);
  config.set("num_feat_extract_layers", static_cast<int64_t>(config.integers("conv_dim").size()));
  if (!config.has("output_hidden_size")) config.set("output_hidden_size", config.integer("hidden_size"));
}

ConfigSchema wav2vec2_schema() {
  ConfigSchema out = speech_schema({{"num_codevectors_per_group", KeyKind::size},
                                    {"num_codevector_groups", KeyKind::heads},
                                    {"contrastive_logits_temperature", KeyKind::positive},
                                    {"num_negatives", KeyKind::count},
                                    {"codevector_dim", KeyKind::size},
                                    {"proj_codevector_dim", KeyKind::size},
                                    {"diversity_loss_weight", KeyKind::number},
                                    {"feat_quantizer_dropout", KeyKind::probability},
                                    {"tdnn_dim", KeyKind::size},
                                    {"tdnn_kernel", KeyKind::size},
                                    {"tdnn_dilation", KeyKind::length},
                                    {"xvector_output_dim", KeyKind::size},
                                    {"adapter_kernel_size", KeyKind::size},
                                    {"adapter_stride", KeyKind::length},
                                    {"num_adapter_layers", KeyKind::layers},
                                    {"output_hidden_size", KeyKind::size},
                                    {"adapter_attn_dim", KeyKind::size}});
  out.relations.push_back(multiple("codevector_dim", "num_codevector_groups"));
  return out;
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "wav2vec2",
      .config_class = "Wav2Vec2Config",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 32, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout": 0.1, "activation_dropout": 0.1,
        "attention_dropout": 0.1, "feat_proj_dropout": 0.0, "feat_quantizer_dropout": 0.0, "final_dropout": 0.1,
        "layerdrop": 0.1, "initializer_range": 0.02, "layer_norm_eps": 1e-05, "feat_extract_norm": "group",
        "feat_extract_activation": "gelu", "conv_dim": [512, 512, 512, 512, 512, 512, 512],
        "conv_stride": [5, 2, 2, 2, 2, 2, 2], "conv_kernel": [10, 3, 3, 3, 3, 2, 2], "conv_bias": false,
        "num_conv_pos_embeddings": 128, "num_conv_pos_embedding_groups": 16, "do_stable_layer_norm": false,
        "apply_spec_augment": true, "mask_time_prob": 0.05, "mask_time_length": 10, "mask_time_min_masks": 2,
        "mask_feature_prob": 0.0, "mask_feature_length": 10, "mask_feature_min_masks": 0, "num_codevectors_per_group": 320,
        "num_codevector_groups": 2, "contrastive_logits_temperature": 0.1, "num_negatives": 100, "codevector_dim": 256,
        "proj_codevector_dim": 256, "diversity_loss_weight": 0.1, "ctc_loss_reduction": "sum", "ctc_zero_infinity": false,
        "use_weighted_layer_sum": false, "classifier_proj_size": 256, "tdnn_dim": [512, 512, 512, 512, 1500],
        "tdnn_kernel": [5, 3, 3, 1, 1], "tdnn_dilation": [1, 2, 3, 1, 1], "xvector_output_dim": 512, "pad_token_id": 0,
        "bos_token_id": 1, "eos_token_id": 2, "add_adapter": false, "adapter_kernel_size": 3, "adapter_stride": 2,
        "num_adapter_layers": 3, "output_hidden_size": null, "adapter_attn_dim": null})",
      .schema = wav2vec2_schema(),
      .complete = complete_wav2vec2,
      .classes = {model_class<Wav2Vec2Model>("Wav2Vec2Model", {"default"}),
                  head_class<Wav2Vec2ForPreTraining>({"pretraining"}, {&wav2vec2_heads, "ForPreTraining"}),
                  head_class<Wav2Vec2ForMaskedLM>({"masked-lm"}, {&wav2vec2_heads, "ForMaskedLM"}),
                  head_class<SpeechCTC>({"ctc"}, {&wav2vec2_heads, "ForCTC"}),
                  head_class<SpeechClassification>({"audio-classification"}, {&wav2vec2_heads, "ForSequenceClassification"}),
                  head_class<Wav2Vec2ForAudioFrameClassification>({"audio-frame-classification"},
                                                                  {&wav2vec2_heads, "ForAudioFrameClassification"}),
                  head_class<Wav2Vec2ForXVector>({"audio-xvector"}, {&wav2vec2_heads, "ForXVector"})},
  });
}

}  // namespace calque::wav2vec2
