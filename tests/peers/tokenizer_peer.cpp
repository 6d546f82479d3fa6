// tokenizer_peer TOKENIZER LINES OUT: encodes each line of LINES (hexadecimal bytes; two with a space between them are a pair) and writes one JSON
// object a line: ids, offsets in characters, tokens, type ids, special tokens mask, and the ids decoded, whole and streamed.
// tokenizer_peer --time TOKENIZER LINES: seconds for all lines, ids alone and everything.
#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "calque/text/tokenizer.h"

namespace {

std::string from_hex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

std::string streamed(const calque::Tokenizer& tokenizer, const std::vector<int64_t>& ids, bool skip) {
  calque::StreamDecoder decoder(tokenizer, skip);
  std::string out;
  for (const int64_t id : ids) out += decoder.push(id);
  return out + decoder.finish();
}

int time_it(const char* file, const char* lines) {
  const auto tokenizer = calque::Tokenizer::from_file(file);
  std::ifstream in(lines);
  std::vector<std::string> texts;
  for (std::string line; std::getline(in, line);) texts.push_back(from_hex(line));
  const auto seconds = [&](auto&& work) {
    double best = 1e9;
    for (int i = 0; i < 5; ++i) {
      const auto start = std::chrono::steady_clock::now();
      for (const std::string& text : texts) work(text);
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
  };
  size_t n = 0;
  std::cout << seconds([&](const std::string& text) { n += tokenizer.encode_ids(text).size(); }) << ' '
            << seconds([&](const std::string& text) { n += tokenizer.encode(text).size(); }) << '\n';
  return n == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: tokenizer_peer TOKENIZER LINES OUT\n       tokenizer_peer --time TOKENIZER LINES\n";
    return 2;
  }
  try {
    if (std::string(argv[1]) == "--time") return time_it(argv[2], argv[3]);
    const auto tokenizer = calque::Tokenizer::from_file(argv[1]);
    std::ifstream in(argv[2]);
    std::ofstream out(argv[3]);
    const calque::EncodeOptions options{.offsets = calque::OffsetUnit::characters};
    for (std::string line; std::getline(in, line);) {
      const size_t space = line.find(' ');
      const std::string first = from_hex(line.substr(0, space));
      const bool pair = space != std::string::npos;
      const calque::Encoding e =
          pair ? tokenizer.encode_pair(first, from_hex(line.substr(space + 1)), options) : tokenizer.encode(first, options);
      nlohmann::json j;
      j["ids"] = e.ids;
      j["offsets"] = e.offsets;
      j["tokens"] = e.tokens;
      j["type_ids"] = e.type_ids;
      j["special"] = e.special_tokens_mask;
      j["decoded"] = tokenizer.decode(e.ids, false);
      j["skipped"] = tokenizer.decode(e.ids, true);
      j["streamed"] = streamed(tokenizer, e.ids, false) == j["decoded"] && streamed(tokenizer, e.ids, true) == j["skipped"];
      j["fast"] = pair || tokenizer.encode_ids(first) == e.ids;
      out << j.dump() << '\n';
    }
  } catch (const std::exception& e) {
    std::cerr << "tokenizer_peer: " << e.what() << '\n';
    return 1;
  }
  return 0;
}
