// ImageProcessor: pictures to the pixel_values that a model of pictures takes, as the preprocessor_config.json (or the processor_config.json)
// of its folder says, with the arithmetic of transformers' PIL backend: the same bytes after resizing, the same floats after normalising.
//
//   ImageProcessor processor = ImageProcessor::from_folder("vit-base-patch16-224");
//   Tensor pixels = processor.process(load_picture("cat.jpg"));  // float32 [1, 3, 224, 224]
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calque/media/picture.h"
#include "calque/op/tensor.h"

namespace calque {

class ImageProcessor {
 public:
  // UserError (bad_file) names the file, and the processor that Calque does not know.
  static ImageProcessor from_folder(const std::filesystem::path& folder);
  static ImageProcessor from_json(std::string_view json, const std::string& what);
  static std::vector<std::string> known();  // names of processors: "ViTImageProcessor", ...
  ImageProcessor(ImageProcessor&&) noexcept;
  ImageProcessor& operator=(ImageProcessor&&) noexcept;
  ~ImageProcessor();

  // float32 [pictures, channels, height, width], or uint8 where the folder asks for neither rescaling nor normalising. UserError where the
  // pictures come out in different sizes.
  Tensor process(std::span<const Picture> pictures) const;
  Tensor process(const Picture& picture) const { return process({&picture, 1}); }
  // Maps of labels as they go beside such pictures (segformer, beit): int64 [maps, height, width].
  Tensor process_labels(std::span<const Picture> maps) const;

 private:
  struct Impl;
  explicit ImageProcessor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace calque
