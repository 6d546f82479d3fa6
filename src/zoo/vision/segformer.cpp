// SegFormer: stages of overlapping patches, attention whose keys and values are taken from a smaller picture, and a head that
// brings all stages' outputs to one size and scores each of its points.
#include <cmath>

#include "calque/hub/checkpointing.h"
#include "calque/hub/registry.h"
#include "calque/nn/activation.h"
#include "calque/nn/functional.h"
#include "calque/nn/normalization.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/upsample.h"
#include "zoo/blocks/activations.h"
#include "zoo/blocks/attention.h"
#include "zoo/blocks/child_if.h"
#include "zoo/heads/vision_heads.h"

namespace calque::segformer {

namespace {

constexpr char segformer_module[] = "transformers.models.segformer.modeling_segformer.";

Tensor resized_bilinear(const Tensor& x, const SymInt& height, const SymInt& width) {
  return upsample_bilinear2d(x, OptionalList<SymInt>({height, width}), false, std::nullopt);
}

struct SegformerOverlapPatchEmbeddings : Typed<SegformerOverlapPatchEmbeddings> {
  static constexpr const char* torch_type =
      "transformers.models.segformer.modeling_segformer.SegformerOverlapPatchEmbeddings";
  static constexpr const char* forward_arguments[] = {"pixel_values"};
  SegformerOverlapPatchEmbeddings(int64_t patch, int64_t stride, int64_t in_channels, int64_t size)
      : proj(child<Conv2d>("proj", in_channels, size, patch, ConvOptions{.stride = stride, .padding = Sizes(patch / 2)})),
        layer_norm(child<LayerNorm>("layer_norm", size)) {}
  // Patches, and the height and width of their grid.
  std::tuple<Tensor, SymInt, SymInt> forward(const Tensor& pixel_values) {
    const Tensor x = proj(pixel_values);
    return {layer_norm(x.flatten(2).transpose(1, 2)), x.sym_size(2), x.sym_size(3)};
  }
  Child<Conv2d> proj;
  Child<LayerNorm> layer_norm;
};

struct SegformerSelfAttention : Typed<SegformerSelfAttention> {
  static constexpr const char* torch_type =
      "transformers.models.segformer.modeling_segformer.SegformerEfficientSelfAttention";
  static constexpr const char* forward_arguments[] = {"hidden_states", "height", "width", "eager"};
  using Result = std::tuple<Tensor, Tensor>;  // output, weights
  SegformerSelfAttention(const Config& c, int64_t hidden_size, int64_t heads, int64_t ratio)
      : heads(heads),
        size(hidden_size / heads),
        query(child<Linear>("query", hidden_size, hidden_size)),
        key(child<Linear>("key", hidden_size, hidden_size)),
        value(child<Linear>("value", hidden_size, hidden_size)),
        dropout(child<Dropout>("dropout", c.number("attention_probs_dropout_prob"))),
        sr(child_if<Conv2d>(ratio > 1, *this, "sr", hidden_size, hidden_size, ratio, ConvOptions{.stride = ratio})),
        layer_norm(child_if<LayerNorm>(ratio > 1, *this, "layer_norm", hidden_size)) {
    if (hidden_size % heads != 0)
      throw UserError(ErrorKind::bad_file, c.where() + ": num_attention_heads has " + std::to_string(heads) +
                                               " heads for a stage of size " + std::to_string(hidden_size) +
                                               ", expected a divisor of it");
  }
  Result forward(const Tensor& hidden_states, const SymInt& height, const SymInt& width, bool eager) {
    const Tensor queries = split_heads(query(hidden_states), heads, size);
    Tensor seen = hidden_states;
    if (sr) {
      const Tensor picture = hidden_states.transpose(1, 2).reshape({seen.sym_size(0), seen.sym_size(2), height, width});
      seen = (*layer_norm)((*sr)(picture).flatten(2).transpose(1, 2));
    }
    const Tensor keys = split_heads(key(seen), heads, size);
    const AttentionResult attended =
        attend(queries, keys, split_heads(value(seen), heads, size), {},
               {.dropout = training() ? dropout->p : 0, .eager = eager, .softmax_in_float32 = true});
    return {attended.output, attended.weights};
  }
  int64_t heads, size;
  Child<Linear> query, key, value;
  Child<Dropout> dropout;
  std::optional<Child<Conv2d>> sr;
  std::optional<Child<LayerNorm>> layer_norm;
};

struct SegformerSelfOutput : Typed<SegformerSelfOutput> {
  static constexpr const char* torch_type = "transformers.models.segformer.modeling_segformer.SegformerSelfOutput";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  SegformerSelfOutput(const Config& c, int64_t size)
      : dense(child<Linear>("dense", size, size)), dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))) {}
  Tensor forward(const Tensor& hidden_states) { return dropout(dense(hidden_states)); }
  Child<Linear> dense;
  Child<Dropout> dropout;
};

struct SegformerAttention : Typed<SegformerAttention> {
  static constexpr const char* torch_type = "transformers.models.segformer.modeling_segformer.SegformerAttention";
  static constexpr auto& forward_arguments = SegformerSelfAttention::forward_arguments;
  SegformerAttention(const Config& c, int64_t size, int64_t heads, int64_t ratio)
      : self(child<SegformerSelfAttention>("self", c, size, heads, ratio)),
        output(child<SegformerSelfOutput>("output", c, size)) {}
  SegformerSelfAttention::Result forward(const Tensor& hidden_states, const SymInt& height, const SymInt& width,
                                         bool eager) {
    auto [attended, weights] = self(hidden_states, height, width, eager);
    return {output(attended), weights};
  }
  Child<SegformerSelfAttention> self;
  Child<SegformerSelfOutput> output;
};

struct SegformerDWConv : Typed<SegformerDWConv> {
  static constexpr const char* torch_type = "transformers.models.segformer.modeling_segformer.SegformerDWConv";
  static constexpr const char* forward_arguments[] = {"hidden_states", "height", "width"};
  explicit SegformerDWConv(int64_t size)
      : dwconv(child<Conv2d>("dwconv", size, size, 3, ConvOptions{.padding = Sizes(1), .groups = size})) {}
  Tensor forward(const Tensor& x, const SymInt& height, const SymInt& width) {
    return dwconv(x.transpose(1, 2).reshape({x.sym_size(0), x.sym_size(2), height, width})).flatten(2).transpose(1, 2);
  }
  Child<Conv2d> dwconv;
};

struct SegformerMixFFN : Typed<SegformerMixFFN> {
  static constexpr const char* torch_type = "transformers.models.segformer.modeling_segformer.SegformerMixFFN";
  static constexpr const char* forward_arguments[] = {"hidden_states", "height", "width"};
  SegformerMixFFN(const Config& c, int64_t size, int64_t inner)
      : dense1(child<Linear>("dense1", size, inner)),
        dwconv(child<SegformerDWConv>("dwconv", inner)),
        activation(activation_named(c.text("hidden_act"))),
        dense2(child<Linear>("dense2", inner, size)),
        dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))) {}
  Tensor forward(const Tensor& hidden_states, const SymInt& height, const SymInt& width) {
    return dropout(dense2(dropout(activation(dwconv(dense1(hidden_states), height, width)))));
  }
  Child<Linear> dense1;
  Child<SegformerDWConv> dwconv;
  Activation activation;
  Child<Linear> dense2;
  Child<Dropout> dropout;
};

struct SegformerLayer : Checkpointed<Typed<SegformerLayer>> {
  static constexpr const char* torch_type = "transformers.models.segformer.modeling_segformer.SegformerLayer";
  static constexpr auto& forward_arguments = SegformerSelfAttention::forward_arguments;
  SegformerLayer(const Config& c, int64_t size, int64_t heads, double drop, int64_t ratio, double mlp_ratio)
      : layer_norm_1(child<LayerNorm>("layer_norm_1", size)),
        attention(child<SegformerAttention>("attention", c, size, heads, ratio)),
        drop_path(child<DropPath>("drop_path", std::string(segformer_module) + "SegformerDropPath", drop)),
        layer_norm_2(child<LayerNorm>("layer_norm_2", size)),
        mlp(child<SegformerMixFFN>("mlp", c, size, scaled_size(c, "mlp_ratios", mlp_ratio, size))) {}
  SegformerSelfAttention::Result forward(const Tensor& hidden_states, const SymInt& height, const SymInt& width,
                                         bool eager) {
    auto [attended, weights] = attention(layer_norm_1(hidden_states), height, width, eager);
    const Tensor x = drop_path(attended) + hidden_states;
    return {drop_path(mlp(layer_norm_2(x), height, width)) + x, weights};
  }
  Child<LayerNorm> layer_norm_1;
  Child<SegformerAttention> attention;
  Child<DropPath> drop_path;
  Child<LayerNorm> layer_norm_2;
  Child<SegformerMixFFN> mlp;
};

struct SegformerEncoder : Typed<SegformerEncoder> {
  static constexpr const char* torch_type = "transformers.models.segformer.modeling_segformer.SegformerEncoder";
  static constexpr const char* forward_arguments[] = {"pixel_values", "eager"};
  using Result = std::tuple<std::vector<Tensor>, std::vector<Tensor>>;  // the stages' outputs, the layers' weights
  explicit SegformerEncoder(const Config& c)
      : reshapes_last(c.flag("reshape_last_stage")),
        patch_embeddings(child<ModuleList>("patch_embeddings")),
        block(child<ModuleList>("block")),
        layer_norm(child<ModuleList>("layer_norm")) {
    const auto stages = static_cast<size_t>(c.integer("num_encoder_blocks"));
    const std::vector<int64_t> sizes = one_a_stage(c, "hidden_sizes", stages), depths = one_a_stage(c, "depths", stages),
                               patches = one_a_stage(c, "patch_sizes", stages), strides = one_a_stage(c, "strides", stages),
                               heads = one_a_stage(c, "num_attention_heads", stages),
                               ratios = one_a_stage(c, "sr_ratios", stages);
    const std::vector<double> mlp_ratios = numbers_a_stage(c, "mlp_ratios", stages);
    int64_t all = 0, at = 0;
    for (const int64_t depth : depths) all += depth;
    for (size_t i = 0; i < stages; ++i) {
      patch_embeddings->emplace<SegformerOverlapPatchEmbeddings>(
          patches[i], strides[i], i == 0 ? c.integer("num_channels") : sizes[i - 1], sizes[i]);
      auto& layers = block->emplace<ModuleList>();
      for (int64_t j = 0; j < depths[i]; ++j, ++at)
        layers.emplace<SegformerLayer>(
            c, sizes[i], heads[i],
            c.number("drop_path_rate") * static_cast<double>(at) / static_cast<double>(std::max<int64_t>(all - 1, 1)),
            ratios[i], mlp_ratios[i]);
      layer_norm->emplace<LayerNorm>(sizes[i]);
    }
  }
  Result forward(const Tensor& pixel_values, bool eager) {
    std::vector<Tensor> states, attentions;
    Tensor x = pixel_values;
    const auto stages = static_cast<int64_t>(block->size());
    for (int64_t i = 0; i < stages; ++i) {
      auto [patches, height, width] = patch_embeddings->at<SegformerOverlapPatchEmbeddings>(i)(x);
      for (SegformerLayer* layer : block->at<ModuleList>(i).items<SegformerLayer>()) {
        auto [y, weights] = (*layer)(patches, height, width, eager);
        patches = y;
        attentions.push_back(weights);
      }
      x = layer_norm->at<LayerNorm>(i)(patches);
      if (i + 1 < stages || reshapes_last) x = as_picture(x, height, width);
      states.push_back(x);
    }
    return {states, attentions};
  }
  bool reshapes_last;
  Child<ModuleList> patch_embeddings, block, layer_norm;
};

struct SegformerModel : ModelOf<SegformerModel, VisionModel> {
  static constexpr const char* torch_type = "transformers.models.segformer.modeling_segformer.SegformerModel";
  static constexpr ModelArgument forward_arguments[] = {arg::pixel_values, arg::output_attentions,
                                                        arg::output_hidden_states};
  explicit SegformerModel(const Config& c, bool = true) : ModelOf(c), encoder(child<SegformerEncoder>("encoder", c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const Tensor pixels = in[arg::pixel_values];
    const bool attentions = wants_attentions(in);
    auto [states, weights] = encoder(checked_pixels(pixels, config().integer("num_channels"), pixels.dtype()),
                                     eager_attention(config(), attentions));
    ModelOutput out;
    out.set("last_hidden_state", states.back());
    if (wants_hidden_states(in)) out.set("hidden_states", states);
    if (attentions) out.set("attentions", weights);
    return out;
  }
  std::string base_model_prefix() const override { return "segformer"; }
  std::vector<std::string> no_split_modules() const override { return {"SegformerLayer"}; }
  Child<SegformerEncoder> encoder;
};

struct SegformerForImageClassification : CopiedAs<SegformerForImageClassification, VisionHead> {
  static constexpr ModelArgument forward_arguments[] = {arg::pixel_values, arg::labels, arg::output_attentions,
                                                        arg::output_hidden_states};
  SegformerForImageClassification(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, true, forward_arguments),
        classifier(label_scores(*this, "classifier", c, c.integers("hidden_sizes").back())) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    Tensor x = base["last_hidden_state"];
    if (config().flag("reshape_last_stage")) x = x.permute({0, 2, 3, 1});
    const Tensor pooled = mean(x.reshape({x.sym_size(0), -1, x.sym_size(-1)}), {1});
    return sequence_classification_output(config(), base, scored(classifier, pooled), in[arg::labels]);
  }
  std::optional<Child<Linear>> classifier;
};

struct SegformerMLP : Typed<SegformerMLP> {
  static constexpr const char* torch_type = "transformers.models.segformer.modeling_segformer.SegformerMLP";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  SegformerMLP(int64_t in_features, int64_t out_features) : proj(child<Linear>("proj", in_features, out_features)) {}
  Tensor forward(const Tensor& hidden_states) { return proj(hidden_states.flatten(2).transpose(1, 2)); }
  Child<Linear> proj;
};

struct SegformerDecodeHead : Typed<SegformerDecodeHead> {
  static constexpr const char* torch_type = "transformers.models.segformer.modeling_segformer.SegformerDecodeHead";
  static constexpr const char* forward_arguments[] = {"encoder_hidden_states"};
  explicit SegformerDecodeHead(const Config& c)
      : linear_c(child<ModuleList>("linear_c")),
        linear_fuse(child<Conv2d>(
            "linear_fuse",
            scaled_size(c, "decoder_hidden_size", c.number("num_encoder_blocks"), c.integer("decoder_hidden_size")),
            c.integer("decoder_hidden_size"), 1, ConvOptions{.bias = false})),
        batch_norm(child<BatchNorm2d>("batch_norm", c.integer("decoder_hidden_size"))),
        activation(child<ReLU>("activation")),
        dropout(child<Dropout>("dropout", c.number("classifier_dropout_prob"))),
        classifier(child<Conv2d>("classifier", c.integer("decoder_hidden_size"), std::max<int64_t>(num_labels(c), 1), 1)) {
    for (const int64_t size : c.integers("hidden_sizes"))
      linear_c->emplace<SegformerMLP>(size, c.integer("decoder_hidden_size"));
  }
  Tensor forward(const std::vector<Tensor>& encoder_hidden_states) {
    const SymInt high = encoder_hidden_states[0].sym_size(2), wide = encoder_hidden_states[0].sym_size(3);
    std::vector<Tensor> all;
    for (size_t i = 0; i < encoder_hidden_states.size(); ++i) {
      Tensor x = encoder_hidden_states[i];
      if (x.dim() ==
          3) {  // a last stage that is left as rows is taken for a square of as many columns as transformers counts
        const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(x.sym_size(-1).guard_int())));
        x = as_picture(x, side, side);
      }
      const Tensor y = linear_c->at<SegformerMLP>(static_cast<int64_t>(i))(x).transpose(1, 2);
      all.insert(all.begin(), resized_bilinear(y.reshape({x.sym_size(0), -1, x.sym_size(2), x.sym_size(3)}), high, wide));
    }
    return classifier(dropout(activation(batch_norm(linear_fuse(cat(all, 1))))));
  }
  Child<ModuleList> linear_c;
  Child<Conv2d> linear_fuse;
  Child<BatchNorm2d> batch_norm;
  Child<ReLU> activation;
  Child<Dropout> dropout;
  Child<Conv2d> classifier;
};

struct SegformerForSemanticSegmentation : CopiedAs<SegformerForSemanticSegmentation, VisionHead> {
  SegformerForSemanticSegmentation(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, true, SegformerForImageClassification::forward_arguments),
        decode_head(child<SegformerDecodeHead>("decode_head", c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    ModelInputs all = in;
    all.set(arg::output_hidden_states, true);
    const ModelOutput base = model(all);
    const Tensor logits = decode_head(base.hidden_states());
    ModelOutput out;
    if (in[arg::labels].defined()) out.set("loss", loss(logits, in[arg::labels]));
    out.set("logits", logits);
    if (wants_hidden_states(in)) out.take(base, {"hidden_states"});
    out.take(base, {"attentions"});
    return out;
  }
  Child<SegformerDecodeHead> decode_head;

 private:
  // Of scores as large as the labels; semantic_loss_ignore_index does not count.
  Tensor loss(const Tensor& logits, const Tensor& labels) const {
    const int64_t ignored = config().integer("semantic_loss_ignore_index"), count = num_labels(config());
    const Tensor scores = resized_bilinear(logits, labels.sym_size(-2), labels.sym_size(-1));
    if (count > 1) return functional::cross_entropy(scores, labels, {}, ignored);
    if (count == 0) throw UserError(class_name() + ": labels are given, but the config has none");
    const Tensor counts = bitwise_and(ge(labels, 0), ne(labels, ignored)).to(DType::float32);
    const Tensor each =
        functional::binary_cross_entropy_with_logits(scores.squeeze(1), labels.to(DType::float32), {}, "none");
    return mean(each * counts);
  }
};

constexpr HeadFamily segformer_heads{"transformers.models.segformer.modeling_segformer.Segformer", "segformer",
                                     made_model<SegformerModel>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "segformer",
      .config_class = "SegformerConfig",
      .attribute_map = {},
      .defaults = R"({"num_channels": 3, "num_encoder_blocks": 4, "depths": [2, 2, 2, 2], "sr_ratios": [8, 4, 2, 1],
        "hidden_sizes": [32, 64, 160, 256], "patch_sizes": [7, 3, 3, 3], "strides": [4, 2, 2, 2],
        "num_attention_heads": [1, 2, 5, 8], "mlp_ratios": [4, 4, 4, 4], "hidden_act": "gelu", "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0, "classifier_dropout_prob": 0.1, "initializer_range": 0.02,
        "drop_path_rate": 0.1, "layer_norm_eps": 1e-06, "decoder_hidden_size": 256, "semantic_loss_ignore_index": 255,
        "reshape_last_stage": true})",
      .schema = {.keys = {{"num_encoder_blocks", KeyKind::groups},
                          {"sr_ratios", KeyKind::sizes},
                          {"patch_sizes", KeyKind::sizes},
                          {"strides", KeyKind::sizes},
                          {"num_attention_heads", KeyKind::sizes},
                          {"mlp_ratios", KeyKind::positive},
                          {"decoder_hidden_size", KeyKind::size},
                          {"semantic_loss_ignore_index", KeyKind::token}}},
      .classes = {model_class<SegformerModel>("SegformerModel", {"default", "image-feature-extraction"}),
                  head_class<SegformerForImageClassification>({"image-classification"},
                                                              {&segformer_heads, "ForImageClassification"}),
                  head_class<SegformerForSemanticSegmentation>({"semantic-segmentation"},
                                                               {&segformer_heads, "ForSemanticSegmentation"})},
  });
}

}  // namespace calque::segformer
