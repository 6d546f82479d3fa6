// tokenizer_fuzz by numbers, without libFuzzer: every seed of the corpus, changed a few times one upon the other, with its texts.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "forked.h"
#include "support/paths.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {
std::mt19937 chance;
}

// What libFuzzer would do: a byte changed, put in or taken out, or a part of the data repeated.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  const size_t at = chance() % (size + 1);
  switch (chance() % 4) {
    case 0:
      if (at < size) data[at] = static_cast<uint8_t>(chance());
      return size;
    case 1:
      if (size == max_size) return size;
      std::copy_backward(data + at, data + size, data + size + 1);
      data[at] = static_cast<uint8_t>(chance());
      return size + 1;
    case 2:
      if (at == size) return size;
      std::copy(data + at + 1, data + size, data + at);
      return size - 1;
    default: {
      const size_t count = std::min({size - at, max_size - size, size_t{1} + chance() % 16});
      std::copy(data + at, data + at + count, data + size);
      return size + count;
    }
  }
}

int main(int argc, char** argv) {
  using namespace calque::forked;
  std::vector<Subject> subjects;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(calque::test::source_folder() + "/fuzz/corpus/tokenizer"))
    files.push_back(entry.path());
  std::ranges::sort(files);
  for (const std::filesystem::path& path : files) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    const auto changed = [bytes = text.str()](uint64_t seed) {
      chance.seed(static_cast<unsigned>(seed));
      std::vector<uint8_t> data(bytes.begin(), bytes.end());
      size_t size = data.size();
      data.resize(size + 4096);
      for (size_t times = 1 + chance() % 6; times > 0; --times) {
        const auto one = static_cast<unsigned>(chance());
        size = LLVMFuzzerCustomMutator(data.data(), size, data.size(), one);
      }
      data.resize(size);
      return data;
    };
    subjects.push_back({"tokenizer", path.filename().string(),
                        [changed](uint64_t seed) {
                          const std::vector<uint8_t> data = changed(seed);
                          LLVMFuzzerTestOneInput(data.data(), data.size());
                          return Outcome{Kind::answered, ""};
                        },
                        [changed](uint64_t seed) {
                          const std::vector<uint8_t> data = changed(seed);
                          return std::string(data.begin(), data.end());
                        }});
  }
  return run(argc, argv, subjects);
}
