// Picture: the pixels of a PNG, JPEG or WebP file as Pillow gives them, 8 bits a channel. load_picture is transformers' load_image: what the
// file says of its orientation (Exif, XMP) is applied, and everything becomes RGB. Files are refused from their header when they have more
// pixels than allowed; pixels are counted against the limit on memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "calque/base/memory.h"

namespace calque {

struct Picture {
  int64_t height = 0, width = 0;
  int64_t channels = 3;          // 3: red, green, blue; 1: grey, or the labels of a map
  CountedVector<uint8_t> bytes;  // row by row, the channels of a pixel side by side

  Picture() = default;
  Picture(int64_t height, int64_t width, int64_t channels);  // black
  uint8_t* row(int64_t y) { return bytes.data() + y * width * channels; }
  const uint8_t* row(int64_t y) const { return bytes.data() + y * width * channels; }
};

struct PictureOptions {
  size_t max_pixels = size_t{2} * 89'478'485;  // what Pillow refuses
  // Grey stays grey and a palette's indices stay indices, as a map of labels needs them; other pictures are a UserError.
  bool labels = false;
};

// UserError (bad_file) names `what`. Which formats are known depends on the libraries that Calque was built with; an absent one is named.
Picture decode_picture(std::span<const std::byte> bytes, const std::string& what, const PictureOptions& options = {});
Picture load_picture(const std::string& path, const PictureOptions& options = {});

// Writes a PNG, grey or RGB.
void save_png(const std::string& path, const Picture& picture);

// Pillow's filters, by its numbers.
enum class Resample : uint8_t { nearest = 0, lanczos = 1, bilinear = 2, bicubic = 3, box = 4, hamming = 5 };

// Bit for bit Pillow's Image.resize of the whole picture.
Picture resized(const Picture& picture, int64_t height, int64_t width, Resample filter);
// The middle; where the picture is smaller, with black around it.
Picture center_cropped(const Picture& picture, int64_t height, int64_t width);

}  // namespace calque
