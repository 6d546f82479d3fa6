// A build without libpng.
#include "media/codec/codec.h"

namespace calque {

DecodedPicture decode_png(const PictureSource& source) {
  library_absent(source.what, "PNG pictures", "libpng", "libpng-dev");
}

CountedVector<uint8_t> encode_png(const Picture&) {
  library_absent("writing a picture", "PNG pictures", "libpng", "libpng-dev");
}
}  // namespace calque
