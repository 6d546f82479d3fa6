// Base 64, as tokenizers' files hold bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace calque {

std::string encode_base64(std::string_view bytes);
// Nothing when a character is none of base 64; '=' at the end may be missing.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace calque
