// A build without libjpeg.
#include "media/codec/codec.h"

namespace calque {

DecodedPicture decode_jpeg(const PictureSource& source) {
  library_absent(source.what, "JPEG pictures", "libjpeg", "libjpeg62-turbo-dev");
}

}  // namespace calque
