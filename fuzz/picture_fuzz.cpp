// Any bytes as a picture (PNG, JPEG or WebP): pixels of the size that was allowed, or one UserError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "calque/base/error.h"
#include "calque/media/picture.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<uint8_t> copy(data, data + size);
  for (const bool labels : {false, true}) {
    calque::PictureOptions options;
    options.max_pixels = 1 << 16;
    options.labels = labels;
    try {
      const calque::Picture picture = calque::decode_picture(std::as_bytes(std::span(copy)), "fuzz", options);
      const auto pixels = static_cast<size_t>(picture.height) * static_cast<size_t>(picture.width);
      if (pixels == 0 || pixels > options.max_pixels || picture.channels != (labels ? 1 : 3) ||
          picture.bytes.size() != pixels * static_cast<size_t>(picture.channels))
        std::abort();
    } catch (const calque::UserError&) {
    }
  }
  return 0;
}
