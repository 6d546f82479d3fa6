// tokenizer_peer TOKENIZER LINES OUT: encodes each line of LINES (hexadecimal bytes; two with a space between them are a pair) and writes one JSON
// object a line: ids, offsets in characters, tokens, type ids, special tokens mask, and the ids decoded, whole and streamed.
// tokenizer_peer --batches TOKENIZER LINES OPTIONS OUT: all lines as one batch, once for each object of the JSON list OPTIONS: one JSON object a
// batch, its rows with their masks, or its error.
// tokenizer_peer --facts FOLDER: what the files of a tokenizer say besides.
// tokenizer_peer --time TOKENIZER LINES: seconds for all lines, ids alone and everything.
#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "calque/text/tokenizer.h"
#include "text/batch_support.h"

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

calque::TextInput input_of(const std::string& line) {
  const size_t space = line.find(' ');
  if (space == std::string::npos) return from_hex(line);
  return {from_hex(line.substr(0, space)), from_hex(line.substr(space + 1))};
}

void batches(char** files) {
  const auto tokenizer = calque::Tokenizer::from_file(files[0]);
  std::ifstream in(files[1]), options(files[2]);
  std::ofstream out(files[3]);
  std::vector<calque::TextInput> inputs;
  for (std::string line; std::getline(in, line);) inputs.push_back(input_of(line));
  for (const nlohmann::json& given : nlohmann::json::parse(options)) {
    nlohmann::json j;
    try {
      const calque::Batch batch = tokenizer.encode_padded(inputs, calque::test::batch_options(given));
      j["row_of"] = batch.row_of;
      j["rows"] = nlohmann::json::array();
      for (const calque::Encoding& e : batch.rows) j["rows"].push_back(calque::test::batch_row(e));
    } catch (const std::exception& e) {
      j = {{"error", e.what()}};
    }
    out << j.dump() << '\n';
  }
}

void facts(const char* folder) {
  const auto tokenizer = calque::Tokenizer::from_file(folder);
  const auto side = [](calque::TextSide s) { return s == calque::TextSide::left ? "left" : "right"; };
  nlohmann::json j{{"padding_side", side(tokenizer.padding_side())}, {"truncation_side", side(tokenizer.truncation_side())},
                   {"pad_token_type_id", tokenizer.pad_type_id()},   {"model_input_names", tokenizer.model_input_names()},
                   {"vocab_size", tokenizer.vocab_size()},           {"additional", tokenizer.additional_special_tokens()}};
  j["model_max_length"] = tokenizer.model_max_length() ? nlohmann::json(*tokenizer.model_max_length()) : nlohmann::json();
  for (const char* role : {"bos", "eos", "unk", "sep", "pad", "cls", "mask"}) {
    const auto id = tokenizer.special_token_id(role);
    j["ids"][role] = id ? nlohmann::json(*id) : nlohmann::json();
  }
  std::cout << j.dump() << '\n';
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
  if (argc < 3) {
    std::cerr << "usage: tokenizer_peer TOKENIZER LINES OUT\n       tokenizer_peer --time TOKENIZER LINES\n";
    return 2;
  }
  try {
    const std::string what = argv[1];
    if (what == "--time" && argc == 4) return time_it(argv[2], argv[3]);
    if (what == "--batches" && argc == 6) return batches(argv + 2), 0;
    if (what == "--facts") return facts(argv[2]), 0;
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
