// Unicode normal forms of a piece, with the origins of what they made.
#pragma once

#include "text/piece.h"

namespace calque {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

Piece normalize(const Piece& piece, NormalForm form, TextStore& store);

}  // namespace calque
