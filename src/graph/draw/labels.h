// What stands in a box of a picture, and how much room it takes.
#pragma once

#include "graph/draw/picture.h"

namespace calque::draw {

Label label_of(const Outline& outline, uint32_t box);

// A text that a person can read whatever is in it: controls and marks that turn the direction of writing are escaped, bytes that
// are no UTF-8 replaced. At most `most` characters; the middle of longer ones is left out.
std::string readable(std::string_view text, size_t most = SIZE_MAX);

}  // namespace calque::draw
