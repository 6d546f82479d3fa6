// What people ask of models of pictures, one class a question, as transformers' pipelines answer it: which labels (image-classification), which label
// each pixel has (image-segmentation, semantic), a vector (image-feature-extraction), which of some texts fits (zero-shot-image-classification).
// Each is made of a folder with a model and its preprocessor_config.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "calque/hub/from_pretrained.h"
#include "calque/media/image_processor.h"
#include "calque/task/classify.h"

namespace calque {

class PictureClassifier {
 public:
  static PictureClassifier from_folder(const std::filesystem::path& folder, const LoadOptions& options = {});
  // All labels, the most likely first.
  std::vector<LabelScore> classify(const Picture& picture) const;
  PretrainedModel& model() const { return *model_; }

 private:
  PictureClassifier(std::shared_ptr<PretrainedModel> model, ImageProcessor processor);
  std::shared_ptr<PretrainedModel> model_;
  ImageProcessor processor_;
  std::vector<std::string> labels_;
};

struct Segment {
  std::string label;
  int64_t id = 0;
  double share = 0;  // of all pixels
};

struct Segmentation {
  Tensor ids;                     // int64 [height, width], of the picture that was given
  std::vector<Segment> segments;  // by id, those that there are
  // Each label in a colour of its own, the same in every picture.
  Picture coloured() const;
};

class Segmenter {
 public:
  static Segmenter from_folder(const std::filesystem::path& folder, const LoadOptions& options = {});
  Segmentation segment(const Picture& picture) const;
  PretrainedModel& model() const { return *model_; }

 private:
  Segmenter(std::shared_ptr<PretrainedModel> model, ImageProcessor processor);
  std::shared_ptr<PretrainedModel> model_;
  ImageProcessor processor_;
  std::vector<std::string> labels_;
};

// The projected vector of a model of pictures and texts (image_embeds), else what the class pools with weights that the checkpoint has, else
// the mean of the last hidden states.
class PictureEncoder {
 public:
  static PictureEncoder from_folder(const std::filesystem::path& folder, const LoadOptions& options = {},
                                    bool normalize = false);
  Tensor embed(const Picture& picture) const;  // float32 [1, dimension]
  PretrainedModel& model() const { return *model_; }

 private:
  PictureEncoder(std::shared_ptr<PretrainedModel> model, ImageProcessor processor, bool normalize, bool pools);
  std::shared_ptr<PretrainedModel> model_;
  ImageProcessor processor_;
  bool normalize_, pools_;
};

// How well each of several texts fits a picture: CLIP's add up to 1, SigLIP's stand each for itself.
class PictureMatcher {
 public:
  static PictureMatcher from_folder(const std::filesystem::path& folder, const LoadOptions& options = {});
  std::vector<double> match(const Picture& picture, std::span<const std::string> texts) const;
  PretrainedModel& model() const { return *model_; }

 private:
  PictureMatcher(std::shared_ptr<PretrainedModel> model, Tokenizer tokenizer, ImageProcessor processor);
  std::shared_ptr<PretrainedModel> model_;
  Tokenizer tokenizer_;
  ImageProcessor processor_;
};

}  // namespace calque
