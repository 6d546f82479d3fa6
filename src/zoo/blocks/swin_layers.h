// Swin and what was made of it: attention within windows of patches, every second layer with the windows shifted by half,
// and stages that halve the picture. What a family does in its own way is in its SwinStyle, which lives as long as the
// program.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "activations.h"
#include "calque/hub/checkpointing.h"
#include "calque/hub/config_schema.h"
#include "calque/nn/container.h"
#include "calque/nn/convolution.h"
#include "calque/nn/dropout.h"
#include "calque/nn/linear.h"
#include "calque/nn/normalization.h"
#include "vision.h"
#include "zoo/heads/vision_heads.h"

namespace calque {

struct SwinStyle {
  const char* family;           // "transformers.models.swin.modeling_swin.Swin"
  const char* base;             // the base model's name in a model with a head
  bool extra_position = false;  // the table of positions has a row more than there are patches
  bool saved_index = false;     // relative_position_index is part of the state
  bool softmax_in_float32 = true;
  bool checkpoints_layers = true;  // those of a stage; the stages always
  std::string type(const char* part) const { return std::string(family) + part; }
};

// What Swin and its relatives have in a configuration: `own` is behind what they share, as JSON.
std::string swin_defaults(std::string_view own = {});
std::vector<std::pair<std::string, std::string>> swin_attributes();
ConfigSchema swin_schema(std::vector<KeyRule> own = {});
// The size of a stage's outputs: each stage is twice as wide as the one before. UserError where that is no size.
int64_t swin_features(const Config& c, size_t stage);
// What follows from depths: num_layers and hidden_size.
void complete_swin_sizes(Config& config);

// Patches on a grid.
struct SwinGrid {
  Tensor x;  // [batch, height * width, size]
  SymInt height, width;
  Value to_value() const { return tuple({x, height, width}); }
  static SwinGrid from_value(const Value& value);
};

struct SwinPatchEmbeddings : Typed<SwinPatchEmbeddings> {
  static constexpr const char* forward_arguments[] = {"pixel_values"};
  SwinPatchEmbeddings(const SwinStyle& style, const Config& c);
  std::string type_name() const override { return style->type("PatchEmbeddings"); }
  SwinGrid forward(const Tensor& pixel_values);  // padded to whole patches
  const SwinStyle* style;
  int64_t channels;
  PictureSize patch_size, grid;
  Child<Conv2d> projection;
};

struct SwinEmbeddings : Typed<SwinEmbeddings> {
  static constexpr const char* forward_arguments[] = {"pixel_values", "bool_masked_pos", "interpolate_pos_encoding"};
  SwinEmbeddings(const SwinStyle& style, const Config& c, bool use_mask_token);
  std::string type_name() const override { return style->type("Embeddings"); }
  SwinGrid forward(const Tensor& pixel_values, const Tensor& bool_masked_pos, bool interpolate_pos_encoding);
  const SwinStyle* style;
  Parameter mask_token, position_embeddings;
  Child<SwinPatchEmbeddings> patch_embeddings;
  Child<LayerNorm> norm;
  Child<Dropout> dropout;
};

// Four neighbours become one patch of twice the size.
struct SwinPatchMerging : Typed<SwinPatchMerging> {
  static constexpr const char* forward_arguments[] = {"input_feature"};
  SwinPatchMerging(const SwinStyle& style, int64_t size);
  std::string type_name() const override { return style->type("PatchMerging"); }
  SwinGrid forward(const SwinGrid& input);
  const SwinStyle* style;
  Child<Linear> reduction;
  Child<LayerNorm> norm;
};

struct SwinSelfAttention : Typed<SwinSelfAttention> {
  static constexpr const char* forward_arguments[] = {"hidden_states", "attention_mask", "eager"};
  using Result = std::tuple<Tensor, Tensor>;  // output, weights
  SwinSelfAttention(const SwinStyle& style, const Config& c, int64_t size, int64_t heads);
  std::string type_name() const override { return style->type("SelfAttention"); }
  // Windows [batch * windows, patches, size]; the mask [batch * windows, 1, patches, patches] is added to the scores.
  Result forward(const Tensor& hidden_states, const Tensor& mask, bool eager);
  const SwinStyle* style;
  int64_t heads, size, area;
  Parameter relative_position_bias_table;
  Buffer relative_position_index;
  Child<Linear> query, key, value;
  Child<Dropout> dropout;
};

// A layer and dropout: what follows attention and feed-forward.
struct SwinDense : NamedModule<SwinDense> {
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  SwinDense(std::string name, int64_t in_features, int64_t out_features, double drop)
      : NamedModule(std::move(name)),
        dense(child<Linear>("dense", in_features, out_features)),
        dropout(child<Dropout>("dropout", drop)) {}
  Tensor forward(const Tensor& hidden_states);
  Child<Linear> dense;
  Child<Dropout> dropout;
};

struct SwinAttention : Typed<SwinAttention> {
  static constexpr auto& forward_arguments = SwinSelfAttention::forward_arguments;
  SwinAttention(const SwinStyle& style, const Config& c, int64_t size, int64_t heads);
  std::string type_name() const override { return style->type("Attention"); }
  SwinSelfAttention::Result forward(const Tensor& hidden_states, const Tensor& mask, bool eager);
  const SwinStyle* style;
  Child<SwinSelfAttention> self;
  Child<SwinDense> output;
};

struct SwinIntermediate : Typed<SwinIntermediate> {
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  SwinIntermediate(const SwinStyle& style, const Config& c, int64_t in_features, int64_t out_features);
  std::string type_name() const override { return style->type("Intermediate"); }
  Tensor forward(const Tensor& hidden_states) { return activation(dense(hidden_states)); }
  const SwinStyle* style;
  Child<Linear> dense;
  Activation activation;
};

struct SwinLayer : Checkpointed<Typed<SwinLayer>> {
  static constexpr const char* forward_arguments[] = {"hidden_states", "always_partition", "eager"};
  SwinLayer(const SwinStyle& style, const Config& c, int64_t size, int64_t heads, double drop, bool shifted);
  std::string type_name() const override { return style->type("Layer"); }
  bool can_checkpoint() const override { return style->checkpoints_layers; }
  SwinSelfAttention::Result forward(const SwinGrid& grid, bool always_partition, bool eager);
  const SwinStyle* style;
  int64_t window_size, shift_size;
  Child<LayerNorm> layernorm_before;
  Child<SwinAttention> attention;
  Child<DropPath> drop_path;
  Child<LayerNorm> layernorm_after;
  Child<SwinIntermediate> intermediate;
  Child<SwinDense> output;
};

struct SwinStage : Checkpointed<Typed<SwinStage>> {
  static constexpr const char* forward_arguments[] = {"hidden_states", "always_partition", "eager"};
  using Result = std::tuple<SwinGrid, SwinGrid, Tensor>;  // output, the same before halving, the last layer's weights
  SwinStage(const SwinStyle& style, const Config& c, size_t stage, const std::vector<double>& drops, bool last);
  std::string type_name() const override { return style->type("Stage"); }
  Result forward(const SwinGrid& grid, bool always_partition, bool eager);
  const SwinStyle* style;
  Child<ModuleList> blocks;
  std::optional<Child<SwinPatchMerging>> downsample;
};

// What a model asks of the stages, and what it gets.
struct SwinWishes {
  bool always_partition = false;     // windows stay as large as they are where a picture is smaller
  bool before_downsampling = false;  // hidden states are those before halving
  bool hidden_states = false, attentions = false, eager = false;
  Value to_value() const { return tuple({always_partition, before_downsampling, hidden_states, attentions, eager}); }
  static SwinWishes from_value(const Value& value);
};
struct SwinResult {
  Tensor last_hidden_state;
  std::vector<Tensor> hidden_states, attentions, reshaped_hidden_states;
  Value to_value() const;
  static SwinResult from_value(const Value& value);
};

struct SwinEncoder : Typed<SwinEncoder> {
  static constexpr const char* forward_arguments[] = {"hidden_states", "wishes"};
  SwinEncoder(const SwinStyle& style, const Config& c);
  std::string type_name() const override { return style->type("Encoder"); }
  SwinResult forward(const SwinGrid& grid, const SwinWishes& wishes);
  const SwinStyle* style;
  Child<ModuleList> layers;
};

inline constexpr ModelArgument swin_arguments[] = {arg::pixel_values, arg::bool_masked_pos, arg::output_attentions,
                                                   arg::output_hidden_states, arg::interpolate_pos_encoding};
SwinWishes swin_wishes(const PretrainedModel& model, const ModelInputs& in);

// The parts of each model.
struct SwinPictures : VisionModel {
  SwinPictures(const SwinStyle& style, const Config& c, bool use_mask_token);
  SwinResult encoded(const ModelInputs& in);
  std::string base_model_prefix() const override { return style->base; }
  std::vector<std::string> no_split_modules() const override;
  void init_weights(Module& module) override;
  const SwinStyle* style;
  Child<SwinEmbeddings> embeddings;
  Child<SwinEncoder> encoder;

 protected:
  SwinPictures(const SwinPictures&) = default;
};

// Pooled is the mean over the patches.
ModelOutput swin_output(const SwinResult& result, const Tensor& last_hidden_state);

struct SwinImageClassification : CopiedAs<SwinImageClassification, PictureClassification> {
  SwinImageClassification(const HeadClass& head, const Config& c);
};

}  // namespace calque
