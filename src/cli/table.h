// A table in plain text: columns as wide as their widest cell, numbers to the right. Widths count characters, not bytes.
#pragma once

#include <string>
#include <vector>

namespace calque::cli {

class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string str() const;  // ends with a newline

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

std::string with_thousands(unsigned long long value);  // 1,234,567
std::string human_bytes(unsigned long long bytes);     // "548.1 MB"; plain bytes below 1000
// A name from a file, safe for a terminal: control characters are escaped.
std::string printable(const std::string& text);

}  // namespace calque::cli
