// --memory-limit: how much memory a command may use.
#pragma once

#include <cstdint>
#include <string>

namespace calque::cli {

// "8G", "8GiB", "500MB", "1000000": K, M, G and T alone are powers of 1024. UserError for anything else.
uint64_t parse_bytes(const std::string& text);

// Nothing for an empty text.
void apply_memory_limit(const std::string& text);

}  // namespace calque::cli
