// How a picture is to be turned, as its Exif or XMP data say.
#pragma once

#include <string_view>

#include "calque/media/picture.h"

namespace calque {

// 1 (as it is) to 8, Exif's numbers; 1 where nothing says otherwise.
int orientation_of(std::string_view exif, std::string_view xmp);
Picture turned(Picture picture, int orientation);

}  // namespace calque
