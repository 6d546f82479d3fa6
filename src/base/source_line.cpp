#include "calque/base/source_line.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace calque {

std::string source_line(const std::source_location& where) {
  return source_line(where.file_name(), where.line(), where.column());
}

std::string source_line(const char* file, unsigned line, unsigned column) {
  std::error_code ignored;
  if (line == 0 || !std::filesystem::is_regular_file(file, ignored)) return {};
  std::ifstream in(file);
  std::string text;
  for (unsigned i = 0; i < line; ++i)
    if (!std::getline(in, text)) return {};
  const size_t start = text.find_first_not_of(" \t");
  if (start == std::string::npos) return {};
  const size_t length = std::min<size_t>(text.size() - start, 160);
  std::string out = "\n    " + text.substr(start, length);
  if (column > start && column - 1 - start < length) out += "\n    " + std::string(column - 1 - start, ' ') + "^";
  return out;
}

}  // namespace calque
