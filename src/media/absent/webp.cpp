// A build without libwebp.
#include "media/codec/codec.h"

namespace calque {

DecodedPicture decode_webp(const PictureSource& source) {
  library_absent(source.what, "WebP pictures", "libwebp", "libwebp-dev");
}

}  // namespace calque
