// Calque's side of bench/embed. Commands, one a line:
//   load FOLDER              a sentence-transformers folder
//   embed BATCH FILE TIMES   the texts of a file, a line each, in batches in their order; answers nanoseconds of the median of TIMES passes, and a
//                            checksum of the vectors
//   split BATCH FILE         nanoseconds of the tokenizer alone, and of all
#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <sstream>

#include "calque/base/thread.h"
#include "calque/op/ops.h"
#include "calque/task/embed.h"

using namespace calque;
using Clock = std::chrono::steady_clock;

namespace {

int64_t nanoseconds(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

std::vector<std::vector<std::string>> batches_of(const std::string& file, size_t batch) {
  std::vector<std::vector<std::string>> out;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (out.empty() || out.back().size() == batch) out.emplace_back();
    out.back().push_back(line);
  }
  return out;
}

}  // namespace

int main() {
  set_num_threads(2);
  std::optional<SentenceEncoder> encoder;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string command, file;
    size_t batch = 0;
    int times = 1;
    in >> command;
    if (command == "load") {
      in >> file;
      encoder.emplace(SentenceEncoder::from_folder(file));
      std::cout << "0 0" << std::endl;
      continue;
    }
    in >> batch >> file >> times;
    const auto batches = batches_of(file, batch);
    EmbedOptions options;
    options.batch_size = batch;
    if (command == "split") {
      const Clock::time_point start = Clock::now();
      BatchOptions cut;
      cut.truncate = true, cut.max_length = encoder->max_length();
      for (const auto& texts : batches)
        encoder->tokenizer().encode_padded(std::vector<TextInput>(texts.begin(), texts.end()), cut);
      const int64_t tokenizer = nanoseconds(start);
      const Clock::time_point again = Clock::now();
      for (const auto& texts : batches) encoder->embed(texts, options);
      std::cout << tokenizer << ' ' << nanoseconds(again) << std::endl;
      continue;
    }
    std::vector<int64_t> spent;
    double sum = 0;
    for (int i = 0; i < times; ++i) {
      sum = 0;
      const Clock::time_point start = Clock::now();
      for (const auto& texts : batches) sum += encoder->embed(texts, options).abs().sum().item_as<double>();
      spent.push_back(nanoseconds(start));
    }
    std::ranges::sort(spent);
    std::cout << spent[spent.size() / 2] << ' ' << std::llround(sum * 100) << std::endl;
  }
}
