#include "cli/memory.h"

#include "calque/base/error.h"
#include "calque/base/memory.h"
#include "calque/hub/sharding.h"

namespace calque::cli {

uint64_t parse_bytes(const std::string& text) {
  const bool short_unit = !text.empty() && std::string_view("KMGT").find(text.back()) != std::string_view::npos;
  return parse_file_size(short_unit ? text + "iB" : text);
}

void apply_memory_limit(const std::string& text) {
  if (text.empty()) return;
  uint64_t bytes = 0;
  try {
    bytes = parse_bytes(text);
  } catch (UserError& error) {
    error.prepend("--memory-limit (or CALQUE_MEMORY_LIMIT): ");
    throw;
  }
  if (bytes == 0) throw UserError("--memory-limit (or CALQUE_MEMORY_LIMIT): 0 bytes are not enough for anything");
  set_memory_limit(bytes);
}

}  // namespace calque::cli
