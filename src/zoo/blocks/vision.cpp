#include "vision.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "calque/base/error.h"
#include "calque/nn/meta_parameters.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/losses.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/upsample.h"
#include "calque/tensor/number_text.h"

namespace calque {

namespace {

constexpr int64_t largest_side = std::numeric_limits<int32_t>::max();

[[noreturn]] void refuse_key(const Config& config, std::string_view key, const std::string& expected) {
  const Value* found = config.find(key);
  throw UserError(ErrorKind::bad_file, config.where() + ": \"" + std::string(key) + "\" is " +
                                           (found ? found->str() : "missing") + ", expected " + expected);
}

const Values& items_a_stage(const Config& config, std::string_view key, size_t stages) {
  const Value* value = config.find(key);
  if (!value || (value->kind() != Value::Kind::list && value->kind() != Value::Kind::tuple))
    refuse_key(config, key, "a list with one number for each stage");
  if (value->to_items().size() != stages)
    refuse_key(config, key, "a list of " + std::to_string(stages) + " numbers, one for each stage");
  return value->to_items();
}

Value texts(const std::vector<std::string>& names) {
  Values out;
  for (const std::string& name : names) out.emplace_back(name);
  return list(std::move(out));
}

}  // namespace

PictureSize picture_size(const Config& config, std::string_view key) {
  const Value* value = config.find(key);
  if (value && value->kind() == Value::Kind::list) {
    const std::vector<int64_t> both = config.integers(key);
    if (both.size() != 2) refuse_key(config, key, "a number, or a list of height and width");
    return {both[0], both[1]};
  }
  const int64_t side = config.integer(key);
  return {side, side};
}

PictureSize patch_grid(const Config& config) {
  const PictureSize picture = picture_size(config, "image_size"), patch = picture_size(config, "patch_size");
  if (patch.height > picture.height || patch.width > picture.width)
    refuse_key(config, "patch_size", "at most image_size, which is " + config.find("image_size")->str());
  return {picture.height / patch.height, picture.width / patch.width};
}

std::vector<int64_t> one_a_stage(const Config& config, std::string_view key, size_t stages) {
  items_a_stage(config, key, stages);
  return config.integers(key);
}

std::vector<double> numbers_a_stage(const Config& config, std::string_view key, size_t stages) {
  std::vector<double> out;
  for (const Value& item : items_a_stage(config, key, stages)) {
    if (item.kind() != Value::Kind::integer && item.kind() != Value::Kind::floating)
      refuse_key(config, key, "a list of numbers, one for each stage");
    out.push_back(item.to_float());
  }
  return out;
}

int64_t scaled_size(const Config& config, std::string_view key, double ratio, int64_t size) {
  const double scaled = ratio * static_cast<double>(size);
  if (!(scaled >= 1 && scaled <= static_cast<double>(largest_side)))
    refuse_key(config, key,
               "a factor that makes a size from 1 to " + std::to_string(largest_side) + " of " + std::to_string(size));
  return static_cast<int64_t>(scaled);
}

Tensor unset_parameter(const std::vector<int64_t>& sizes) {
  const std::vector<SymInt> symbolic(sizes.begin(), sizes.end());
  return empty(symbolic, std::nullopt, std::nullopt,
               MetaParametersScope::active() ? std::optional(Device(DeviceType::meta)) : std::nullopt);
}

Tensor checked_pixels(const Tensor& pixel_values, int64_t channels, DType dtype) {
  if (!pixel_values.defined()) throw UserError("You have to specify pixel_values");
  if (pixel_values.dim() != 4)
    throw UserError("pixel_values has " + std::to_string(pixel_values.dim()) +
                    " dimensions, expected [batch, channels, height, width]");
  if (guard(pixel_values.sym_size(1) != channels))
    throw UserError(
        "Make sure that the channel dimension of the pixel values match with the one set in the configuration. Expected " +
        std::to_string(channels) + " but got " + pixel_values.sym_size(1).str() + ".");
  return pixel_values.dtype() == dtype ? pixel_values : pixel_values.to(dtype);
}

Tensor resized_positions(const Tensor& table, int64_t lead, const SymInt& height, const SymInt& width) {
  const int64_t rows = table.size(1) - lead, size = table.size(2);
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(rows)));
  if (side * side != rows)
    throw UserError("positions of " + std::to_string(rows) +
                    " patches are no square grid, which cannot be interpolated: give pictures of the model's own size");
  const Tensor patches = lead > 0 ? table.slice(1, lead) : table;
  const Tensor grid = patches.reshape({1, side, side, size}).permute({0, 3, 1, 2});
  const Tensor resized = upsample_bicubic2d(grid, OptionalList<SymInt>({height, width}), false, std::nullopt);
  const Tensor flat = resized.permute({0, 2, 3, 1}).reshape({1, -1, size});
  return lead > 0 ? cat({table.slice(1, 0, lead), flat}, 1) : flat;
}

// Interpolating to the same size changes nothing: where the sizes are not known, no guard asks for them.
Tensor positions_for(const Tensor& table, int64_t lead, const SymInt& patches, const SymInt& picture_height,
                     const SymInt& picture_width, const PictureSize& patch) {
  const bool known = !patches.is_symbolic() && !picture_height.is_symbolic() && !picture_width.is_symbolic();
  if (known && patches.as_int() == table.size(1) - lead && picture_height.as_int() == picture_width.as_int()) return table;
  return resized_positions(table, lead, floor_div(picture_height, patch.height), floor_div(picture_width, patch.width));
}

Tensor with_mask_token(const Tensor& embeddings, const Tensor& mask_token, const Tensor& masked) {
  if (!masked.defined()) return embeddings;
  if (!mask_token.defined()) throw UserError("bool_masked_pos is given, but the model has no mask token");
  const Tensor tokens = mask_token.expand({embeddings.sym_size(0), embeddings.sym_size(1), -1});
  const Tensor mask = masked.unsqueeze(-1).to(tokens.dtype());
  return embeddings * (1.0 - mask) + tokens * mask;
}

Tensor masked_picture_loss(const Config& config, const Tensor& pixel_values, const Tensor& reconstruction,
                           const Tensor& masked) {
  const PictureSize grid = patch_grid(config), patch = picture_size(config, "patch_size");
  const Tensor mask = masked.reshape({-1, grid.height, grid.width})
                          .repeat_interleave(patch.height, 1)
                          .repeat_interleave(patch.width, 2)
                          .unsqueeze(1)
                          .contiguous();
  const Tensor each = l1_loss(pixel_values, reconstruction, 0);
  const Tensor sum = (each * mask).sum(), count = mask.sum();
  return sum / (count + 1e-5) / config.integer("num_channels");
}

Tensor as_picture(const Tensor& x, const SymInt& height, const SymInt& width) {
  return x.reshape({x.sym_size(0), height, width, -1}).permute({0, 3, 1, 2}).contiguous();
}

std::string DropPath::extra_repr() const { return "p=" + python_repr(p); }

Tensor DropPath::forward(const Tensor& hidden_states) {
  if (p == 0 || !training()) return hidden_states;
  SymInts shape(static_cast<size_t>(hidden_states.dim()), 1);
  shape[0] = hidden_states.sym_size(0);
  const Tensor random = rand(shape, hidden_states.dtype(), std::nullopt, hidden_states.device());
  return hidden_states / (1 - p) * floor(random + (1 - p));
}

std::string stage_name(int64_t stage) { return stage == 0 ? "stem" : "stage" + std::to_string(stage); }

void complete_backbone(Config& config, int64_t stages) {
  std::vector<std::string> names;
  for (int64_t i = 0; i <= stages; ++i) names.push_back(stage_name(i));
  const auto count = static_cast<int64_t>(names.size());
  std::vector<std::string> features;
  std::vector<int64_t> indices;
  if (config.has("out_features")) {
    const Value* given = config.find("out_features");
    if (given->kind() != Value::Kind::list) refuse_key(config, "out_features", "a list of names of stages");
    for (const Value& item : given->to_items()) {
      const auto at =
          item.kind() == Value::Kind::string ? std::find(names.begin(), names.end(), item.to_string()) : names.end();
      if (at == names.end())
        refuse_key(config, "out_features", "names of stages: \"stem\", \"stage1\" to \"" + names.back() + "\"");
      features.push_back(*at);
      indices.push_back(at - names.begin());
    }
  }
  if (config.has("out_indices")) {
    std::vector<int64_t> given = config.integers("out_indices");
    for (const int64_t index : given)
      if (index < -count || index >= count)
        refuse_key(config, "out_indices", "numbers of stages, from 0 to " + std::to_string(count - 1));
    std::vector<int64_t> positive;
    for (const int64_t index : given) positive.push_back(index < 0 ? index + count : index);
    if (config.has("out_features") && positive != indices)
      refuse_key(config, "out_indices", "the stages of out_features, which is " + config.find("out_features")->str());
    indices = positive;
  } else if (!config.has("out_features")) {
    indices = {count - 1};
  }
  if (std::adjacent_find(indices.begin(), indices.end(), std::greater_equal<>()) != indices.end())
    refuse_key(config, config.has("out_features") ? "out_features" : "out_indices", "stages in their order, each once");
  if (!config.has("out_indices")) config.set("out_indices", list({indices.begin(), indices.end()}));
  if (!config.has("out_features")) {
    for (const int64_t index : indices) features.push_back(names[static_cast<size_t>(index)]);
    config.set("out_features", texts(features));
  }
  config.set("stage_names", texts(names));
}

ModelOutput stages_output(const std::vector<Tensor>& states, const Tensor& pooled, bool want_hidden_states) {
  ModelOutput out;
  out.set("last_hidden_state", states.back());
  out.set("pooler_output", pooled);
  if (want_hidden_states) out.set("hidden_states", states);
  return out;
}

StageNorms::StageNorms(Module& parent, const Config& config, const std::function<std::shared_ptr<Module>(size_t)>& make)
    : norms_(parent.child<ModuleDict>("hidden_states_norms")) {
  for (const int64_t stage : out_stages(config))
    norms_->set(stage_name(stage), make(stage > 0 ? static_cast<size_t>(stage - 1) : 0));
}

Tensor StageNorms::operator()(int64_t stage, const Tensor& x) const {
  return (*norms_)[stage_name(stage)].call({x}).to_tensor();
}

std::vector<int64_t> out_stages(const Config& config) {
  const auto count = static_cast<int64_t>(config.find("stage_names")->to_items().size());
  std::vector<int64_t> out = config.integers("out_indices");
  for (int64_t& index : out)
    if (index < 0) index += count;
  return out;
}

void complete_part(Config& config, std::string_view key, std::string_view model_type) {
  const auto typed_part = [&](std::string_view name) {
    std::vector<std::pair<Value, Value>> parts;
    if (config.has(name)) {
      if (config.find(name)->kind() != Value::Kind::dict) refuse_key(config, name, "an object");
      for (const auto& [inner, value] : config.find(name)->to_dict().items)
        if (!(inner.kind() == Value::Kind::string && inner.to_string() == "model_type")) parts.emplace_back(inner, value);
    }
    parts.emplace_back("model_type", std::string(model_type));
    config.set(name, dict(std::move(parts)));
    return config.nested(name);  // checked, with defaults
  };
  Config whole = typed_part(key);
  // The first files have it a second time, which counts.
  const std::string again = std::string(key) + "_dict";
  if (config.has(again)) {
    const Config counts = typed_part(again);
    for (const auto& [inner, value] : counts.items()) whole.set(inner, value);
  }
  config.erase(again);
  config.set(key, dict({whole.items().begin(), whole.items().end()}));
}

Tensor example_pixels(int64_t batch, int64_t channels, const PictureSize& size) {
  const Tensor values = arange(batch * channels * size.height * size.width, DType::int64).remainder(251);
  return (values.to(DType::float32) / 125 - 1).reshape({batch, channels, size.height, size.width});
}

ModelInputs VisionModel::example_inputs(const ExampleSizes& sizes) const {
  constexpr int64_t any_size = 64;
  const PictureSize size =
      config().has("image_size") ? picture_size(config(), "image_size") : PictureSize{any_size, any_size};
  return {{arg::pixel_values, example_pixels(sizes.batch, config().integer("num_channels"), size)}};
}

}  // namespace calque
