#include "calque/task/pictures.h"

#include <algorithm>
#include <array>

#include "calque/base/error.h"
#include "calque/hub/model_io.h"
#include "calque/hub/pretrained_model.h"
#include "calque/hub/registry.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/upsample.h"
#include "calque/op/make.h"
#include "calque/task/text_inputs.h"
#include "task/load.h"
#include "task/media_inputs.h"

namespace calque {
namespace {

namespace fs = std::filesystem;

ImageProcessor processor_of(const fs::path& folder) {
  return ImageProcessor::from_folder(ModelFiles(folder.string()).folder());
}

ModelInputs picture_inputs(const PretrainedModel& model, const ImageProcessor& processor, const Picture& picture) {
  ModelInputs inputs;
  inputs.set(pixel_values_argument, as_model(model, processor.process(picture)));
  return inputs;
}

// The bits of a label spread over the three channels, the lowest ones counting most.
std::array<uint8_t, 3> colour_of(int64_t id) {
  std::array<uint8_t, 3> out{};
  for (int bit = 7; id > 0 && bit >= 0; --bit)
    for (size_t c = 0; c < 3; ++c, id >>= 1) out[c] = static_cast<uint8_t>(out[c] | (id & 1) << bit);
  return out;
}

bool is_siglip(const PretrainedModel& model) { return model.config().model_type().find("siglip") != std::string::npos; }

}  // namespace

PictureClassifier::PictureClassifier(std::shared_ptr<PretrainedModel> model, ImageProcessor processor)
    : model_(std::move(model)), processor_(std::move(processor)), labels_(labels_of(model_->config())) {}

PictureClassifier PictureClassifier::from_folder(const fs::path& folder, const LoadOptions& options) {
  static constexpr std::string_view tasks[] = {"image-classification"};
  return {load_model_for_task(folder, options, tasks, "classify --image").model, processor_of(folder)};
}

std::vector<LabelScore> PictureClassifier::classify(const Picture& picture) const {
  const GradModeScope no_grad(false);
  const Tensor logits = (*model_)(picture_inputs(*model_, processor_, picture)).logits().to(DType::float32);
  const Config& config = model_->config();
  const bool each =
      config.optional_text("problem_type").value_or("") == "multi_label_classification" || config.num_labels() == 1;
  return sorted_labels(each ? logits.sigmoid() : logits.softmax(-1), labels_);
}

Segmenter::Segmenter(std::shared_ptr<PretrainedModel> model, ImageProcessor processor)
    : model_(std::move(model)), processor_(std::move(processor)), labels_(labels_of(model_->config())) {}

Segmenter Segmenter::from_folder(const fs::path& folder, const LoadOptions& options) {
  static constexpr std::string_view tasks[] = {"semantic-segmentation"};
  return {load_model_for_task(folder, options, tasks, "segment").model, processor_of(folder)};
}

Segmentation Segmenter::segment(const Picture& picture) const {
  const GradModeScope no_grad(false);
  const Tensor logits = (*model_)(picture_inputs(*model_, processor_, picture)).logits().to(DType::float32);
  Segmentation out;
  out.ids = argmax(upsample_bilinear2d(logits, {picture.height, picture.width}, false), 1).squeeze(0).contiguous();
  std::vector<int64_t> counts(static_cast<size_t>(logits.size(1)));
  for (int64_t i = 0; i < out.ids.numel(); ++i) ++counts[static_cast<size_t>(out.ids.data_as<int64_t>()[i])];
  for (size_t id = 0; id < counts.size(); ++id)
    if (counts[id] > 0)
      out.segments.push_back({id < labels_.size() ? labels_[id] : std::to_string(id), static_cast<int64_t>(id),
                              static_cast<double>(counts[id]) / static_cast<double>(out.ids.numel())});
  return out;
}

Picture Segmentation::coloured() const {
  Picture out(ids.size(0), ids.size(1), 3);
  uint8_t* to = out.bytes.data();
  for (int64_t i = 0; i < ids.numel(); ++i) to = std::ranges::copy(colour_of(ids.data_as<int64_t>()[i]), to).out;
  return out;
}

PictureEncoder::PictureEncoder(std::shared_ptr<PretrainedModel> model, ImageProcessor processor, bool normalize, bool pools)
    : model_(std::move(model)), processor_(std::move(processor)), normalize_(normalize), pools_(pools) {}

PictureEncoder PictureEncoder::from_folder(const fs::path& folder, const LoadOptions& given, bool normalize) {
  const Config config = config_from_pretrained(folder, given);
  LoadOptions options = given;
  if (options.model_class.empty()) {
    // The vectors of both sides lie in one space behind the projection.
    const ModelClass* projected = nullptr;
    if (const Architecture* architecture = model_registry().find(config.model_type()))
      for (const ModelClass& one : architecture->classes)
        if (one.name.ends_with("VisionModelWithProjection")) projected = &one;
    if (projected)
      options.model_class = projected->name;
    else
      options.task = "default";
  }
  LoadedModel loaded = load_pretrained(folder, options);
  // Checkpoints of classifiers often have no pooler; what new weights pool would be another vector each time.
  const bool pools =
      std::ranges::none_of(loaded.report.missing_keys, [](const std::string& key) { return key.starts_with("pooler."); });
  return {std::move(loaded.model), processor_of(folder), normalize, pools};
}

Tensor PictureEncoder::embed(const Picture& picture) const {
  const GradModeScope no_grad(false);
  const ModelOutput out = (*model_)(picture_inputs(*model_, processor_, picture));
  Tensor vector;
  if (out.has("image_embeds")) {
    vector = out["image_embeds"];
  } else if (pools_ && out.has("pooler_output")) {
    vector = out["pooler_output"].flatten(1);
  } else {
    // Tokens [1, tokens, size], or planes [1, size, height, width].
    const Tensor& states = out.last_hidden_state();
    vector = states.dim() == 4 ? states.flatten(2).mean({2}) : states.mean({1});
  }
  vector = vector.to(DType::float32);
  if (normalize_) vector = vector / (vector * vector).sum({1}, true).sqrt();
  return vector.contiguous();
}

PictureMatcher::PictureMatcher(std::shared_ptr<PretrainedModel> model, Tokenizer tokenizer, ImageProcessor processor)
    : model_(std::move(model)), tokenizer_(std::move(tokenizer)), processor_(std::move(processor)) {}

PictureMatcher PictureMatcher::from_folder(const fs::path& folder, const LoadOptions& options) {
  static constexpr std::string_view tasks[] = {"zero-shot-image-classification", "default"};
  TaskModel found = load_for_task(folder, options, tasks, "match");
  if (!found.model->takes(pixel_values_argument) || !found.model->takes(arg::input_ids))
    throw UserError("match needs a model of pictures and texts (CLIP, SigLIP), but " + found.model->class_name() +
                    " does not take both pixel_values and input_ids");
  return {std::move(found.model), std::move(found.tokenizer), processor_of(folder)};
}

std::vector<double> PictureMatcher::match(const Picture& picture, std::span<const std::string> texts) const {
  const GradModeScope no_grad(false);
  const std::vector<TextInput> given(texts.begin(), texts.end());
  ModelInputs inputs;
  if (is_siglip(*model_)) {
    // As SigLIP was trained: always 64 tokens. A mask only where the tokenizer's files ask for one.
    BatchOptions padded;
    padded.pad_to = 64, padded.truncate = true, padded.max_length = 64;
    const Batch batch = tokenizer_.encode_padded(given, padded);
    std::vector<int64_t> ids, mask;
    for (const Encoding& row : batch.rows) {
      ids.insert(ids.end(), row.ids.begin(), row.ids.end());
      mask.insert(mask.end(), row.attention_mask.begin(), row.attention_mask.end());
    }
    inputs.set(arg::input_ids, tensor(ids).view({std::ssize(given), 64}));
    const std::vector<std::string>& names = tokenizer_.model_input_names();
    if (std::ranges::find(names, arg::attention_mask.name) != names.end() && model_->takes(arg::attention_mask))
      inputs.set(arg::attention_mask, tensor(mask).view({std::ssize(given), 64}));
  } else {
    inputs = text_inputs(*model_, tokenizer_, given).inputs;
  }
  inputs.set(pixel_values_argument, as_model(*model_, processor_.process(picture)));
  const Tensor logits = (*model_)(inputs)["logits_per_image"].to(DType::float32);
  const Tensor scores = (is_siglip(*model_) ? logits.sigmoid() : logits.softmax(-1)).contiguous();
  return {scores.data_as<float>(), scores.data_as<float>() + scores.numel()};
}

}  // namespace calque
