// Calque's side of bench/tokenizer: commands on standard input, one answer a line.
//   threads N | load TOKENIZER | texts FILE (texts with a zero byte behind each) | encode: nanoseconds and tokens of one batch
#include <chrono>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "calque/base/thread.h"
#include "calque/text/tokenizer.h"

int main() {
  std::optional<calque::Tokenizer> tokenizer;
  std::vector<std::string> texts;
  for (std::string line; std::getline(std::cin, line);) {
    const size_t space = line.find(' ');
    const std::string command = line.substr(0, space), argument = space == std::string::npos ? "" : line.substr(space + 1);
    if (command == "threads") {
      calque::set_num_threads(std::stoi(argument));
    } else if (command == "load") {
      tokenizer.emplace(calque::Tokenizer::from_file(argument));
    } else if (command == "texts") {
      texts.clear();
      std::ifstream in(argument, std::ios::binary);
      for (std::string text; std::getline(in, text, '\0');) texts.push_back(text);
    } else {
      const auto start = std::chrono::steady_clock::now();
      const std::vector<calque::Encoding> rows = tokenizer->encode_batch(texts, {.offsets = calque::OffsetUnit::characters});
      const auto spent = std::chrono::steady_clock::now() - start;
      size_t tokens = 0;
      for (const calque::Encoding& row : rows) tokens += row.size();
      std::cout << std::chrono::nanoseconds(spent).count() << ' ' << tokens << std::endl;
      continue;
    }
    std::cout << "ok" << std::endl;
  }
}
