// legacy_peer FOLDERS OUT: for each folder that the file FOLDERS names, one a line, writes one JSON object a line: the tokenizer.json that is
// made of its vocabulary files and the class it is of, or the error.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "text/legacy/legacy.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: legacy_peer FOLDERS OUT\n";
    return 2;
  }
  std::ifstream in(argv[1]);
  std::ofstream out(argv[2]);
  for (std::string folder; std::getline(in, folder);) {
    nlohmann::json line;
    try {
      const calque::LegacyTokenizer made = calque::read_legacy_tokenizer(folder);
      line = {{"class", made.class_name}, {"special", made.special_tokens}, {"json", made.json}};
    } catch (const std::exception& e) {
      line = {{"error", e.what()}};
    }
    out << line.dump() << '\n';
  }
  return 0;
}
