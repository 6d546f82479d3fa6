// What models of pictures share: their arguments, sizes in the configuration, tables of positions for other sizes, stages of
// a backbone, layers dropped in training, and masked pictures.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calque/hub/pretrained_model.h"
#include "calque/nn/container.h"
#include "family_module.h"

namespace calque {

namespace arg {

inline constexpr ArgumentName<Tensor> pixel_values{"pixel_values"};        // [batch, channels, height, width]
inline constexpr ArgumentName<Tensor> bool_masked_pos{"bool_masked_pos"};  // [batch, patches]
inline constexpr ArgumentName<bool> interpolate_pos_encoding{"interpolate_pos_encoding"};  // pictures of other sizes
inline constexpr ArgumentName<bool> return_loss{"return_loss"};

}  // namespace arg

struct PictureSize {
  int64_t height, width;
  std::vector<int64_t> both() const { return {height, width}; }
};
// A number, or a list of height and width.
PictureSize picture_size(const Config& config, std::string_view key);
// How many patches lie below and beside each other. UserError where a patch is larger than the picture.
PictureSize patch_grid(const Config& config);
// The list under a key, with one number for each stage.
std::vector<int64_t> one_a_stage(const Config& config, std::string_view key, size_t stages);
std::vector<double> numbers_a_stage(const Config& config, std::string_view key, size_t stages);
// size * ratio, cut to a whole number. UserError names the key that has the ratio when that is no size.
int64_t scaled_size(const Config& config, std::string_view key, double ratio, int64_t size);

// A parameter's tensor, without values.
Tensor unset_parameter(const std::vector<int64_t>& sizes);

// In the dtype of the weights. UserError for pictures of another number of channels, or of another form.
Tensor checked_pixels(const Tensor& pixel_values, int64_t channels, DType dtype);
// A table [1, rows, size] of a square grid, behind `lead` rows that belong to no patch, for a grid of another size.
Tensor resized_positions(const Tensor& table, int64_t lead, const SymInt& height, const SymInt& width);
// The same as it is where the sizes are known to be its own.
Tensor positions_for(const Tensor& table, int64_t lead, const SymInt& patches, const SymInt& picture_height,
                     const SymInt& picture_width, const PictureSize& patch);
// `tokens` where `masked` [batch, patches] says so.
Tensor with_mask_token(const Tensor& embeddings, const Tensor& mask_token, const Tensor& masked);
// Of the pixels that were masked: their mean difference. Reconstructions of other sizes than the picture's are UserErrors.
Tensor masked_picture_loss(const Config& config, const Tensor& pixel_values, const Tensor& reconstruction,
                           const Tensor& masked);
// [batch, height * width, size] to [batch, size, height, width].
Tensor as_picture(const Tensor& x, const SymInt& height, const SymInt& width);

// Drops a sample's whole branch in training.
struct DropPath : NamedModule<DropPath> {
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  DropPath(std::string name, double p) : NamedModule(std::move(name)), p(p) {}
  std::string extra_repr() const override;
  Tensor forward(const Tensor& hidden_states);
  double p;
};

// Sets stage_names ("stem", "stage1", ...), and out_features and out_indices by each other, or to the last stage.
void complete_backbone(Config& config, int64_t stages);
std::string stage_name(int64_t stage);
// Which of the stages' outputs a backbone gives, in order: numbers in stage_names.
std::vector<int64_t> out_stages(const Config& config);
// What goes in, and the output of each stage.
template <class Stage>
std::vector<Tensor> through_stages(ModuleList& stages, const Tensor& x) {
  std::vector<Tensor> out{x};
  for (Stage* stage : stages.items<Stage>()) out.push_back((*stage)(out.back()));
  return out;
}
ModelOutput stages_output(const std::vector<Tensor>& states, const Tensor& pooled, bool want_hidden_states);
// Of outputs one a stage those that were asked for, each through `norm`; hidden states only where they are wanted.
template <class Norm>
ModelOutput backbone_output(const std::vector<Tensor>& states, const Config& config, bool want_hidden_states, Norm&& norm) {
  std::vector<Tensor> maps;
  for (const int64_t stage : out_stages(config)) maps.push_back(norm(stage, states.at(static_cast<size_t>(stage))));
  ModelOutput out;
  out.set("feature_maps", maps);
  if (want_hidden_states) out.set("hidden_states", states);
  return out;
}

// A backbone's norms, one for each stage that it gives: a child `hidden_states_norms` of `parent`.
class StageNorms {
 public:
  // `make` is given the number of the stage, counted from 0, whose width the norm has.
  StageNorms(Module& parent, const Config& config, const std::function<std::shared_ptr<Module>(size_t)>& make);
  Tensor operator()(int64_t stage, const Tensor& x) const;

 private:
  Child<ModuleDict> norms_;
};

// A part's configuration is there, says its model type and has its defaults.
void complete_part(Config& config, std::string_view key, std::string_view model_type);

// [batch, channels, height, width], of values that differ.
Tensor example_pixels(int64_t batch, int64_t channels, const PictureSize& size);

// Takes pictures of the configuration's size, or of any where it names none.
struct VisionModel : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string main_input_name() const override { return "pixel_values"; }
  ModelInputs example_inputs(const ExampleSizes& sizes) const override;

 protected:
  VisionModel(const VisionModel&) = default;
};

}  // namespace calque
