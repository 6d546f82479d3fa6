// Unicode normal forms of a piece, with the origins of what they made.
#pragma once

#include "text/piece.h"

namespace calque {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

// Is every character so low that no normal form can change the text? (A quick no costs nothing but time.)
bool surely_normal(std::string_view text, NormalForm form);
Piece normalize(const Piece& piece, NormalForm form, TextStore& store);

}  // namespace calque
