// MD5 (RFC 1321), by which tlparse checks that a payload is whole. Not for anything that needs to be secure.
#pragma once

#include <string>
#include <string_view>

namespace calque::compile_detail {

std::string md5_hex(std::string_view text);  // 32 hexadecimal digits

}  // namespace calque::compile_detail
