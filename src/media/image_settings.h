// What an image processor's settings say, with the defaults of its class filled in.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calque/file/json.h"
#include "calque/media/picture.h"

namespace calque {

// One of: height and width; the shortest edge, and no longer than the longest; at most max_height by max_width.
struct PictureSize {
  std::optional<int64_t> height, width, shortest_edge, longest_edge, max_height, max_width;
};

enum class ImageClass : uint8_t { plain, convnext, segformer, beit, donut, glpn };

struct ImageSettings {
  ImageClass kind = ImageClass::plain;
  bool resize = true, center_crop = false, rescale = true, normalize = true, pad = false;
  bool reduce_labels = false, thumbnail = false, align_long_axis = false;
  PictureSize size, crop_size;
  std::optional<PictureSize> pad_size;
  Resample resample = Resample::bilinear;
  double rescale_factor = 1.0 / 255;
  double crop_pct = 0.875;    // convnext
  int64_t size_divisor = 32;  // glpn
  std::vector<double> mean, deviation;
};

// `model_type` tells the class where the settings do not.
ImageSettings read_image_settings(const Json& json, std::string_view model_type);
std::vector<std::string> known_image_processors();

}  // namespace calque
