#include "cli/table.h"

#include <algorithm>

#include <fmt/format.h>

namespace calque::cli {
namespace {

size_t width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string Table::str() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(width(columns_[i].title));
    for (const auto& row : rows_) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string out;
  const auto line = [&](const auto& cell) {
    std::string text;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string pad(widths[i] - width(cell(i)), ' ');
      text += (i ? "  " : "") + (columns_[i].align == Align::right ? pad + cell(i) : cell(i) + pad);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line([&](size_t i) { return columns_[i].title; });
  line([&](size_t i) { return std::string(widths[i], '-'); });
  for (const auto& row : rows_) line([&](size_t i) { return row[i]; });
  return out;
}

std::string with_thousands(unsigned long long value) {
  std::string digits = std::to_string(value);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string human_bytes(unsigned long long bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"kB", "MB", "GB", "TB", "PB", "EB"}) {
    value /= 1000;
    unit = next;
    if (value < 999.95) break;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

std::string printable(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out;
}

}  // namespace calque::cli
