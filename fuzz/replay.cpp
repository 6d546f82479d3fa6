// A fuzz target without libFuzzer: TARGET FOLDER... runs it once on every file of the folders, which tests the seeds. With an option
// of forked.h (-max_total_time=SECONDS, -calls=N, -repeat=FILE:SEED, ...) it goes on from them: each try is a seed, changed a few
// times one upon the other, by the target's own mutator where it has one. -repeat writes the input that it tries to ./FILE.SEED.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "forked.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);

namespace {

using Bytes = std::vector<uint8_t>;

struct SeedFile {
  std::string name;
  Bytes bytes;
};
std::vector<SeedFile> seeds;
std::mt19937 chance;

void read_folder(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    seeds.push_back({file.filename().string(), Bytes(bytes.begin(), bytes.end())});
  }
}

size_t below(size_t n) { return n == 0 ? 0 : chance() % n; }

// Puts `part` at a place of the data, in front of what is there or over it, as far as there is room.
size_t put(const uint8_t* part, size_t count, bool over, uint8_t* data, size_t size, size_t max_size) {
  const size_t at = below(size + 1);
  if (over) {
    count = std::min(count, size - at);
  } else {
    count = std::min(count, max_size - size);
    std::copy_backward(data + at, data + size, data + size + count);
    size += count;
  }
  std::copy(part, part + count, data + at);
  return size;
}

}  // namespace

// What libFuzzer would do: a byte, a number or a stretch changed, put in, taken out or repeated, or a stretch of another seed put in.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  static constexpr std::array<uint64_t, 10> numbers = {
      0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF};
  const bool over = below(2) == 0;
  switch (below(6)) {
    case 0: {
      const auto byte = static_cast<uint8_t>(chance());
      return put(&byte, 1, over, data, size, max_size);
    }
    case 1: {
      const uint64_t number = numbers[below(numbers.size())];
      std::array<uint8_t, 8> bytes;
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(number >> 8 * i);
      return put(bytes.data(), size_t{1} << below(4), over, data, size, max_size);
    }
    case 2: {  // takes a stretch out
      const size_t at = below(size + 1), count = std::min(size - at, 1 + below(below(2) ? 4 : 64));
      std::copy(data + at + count, data + size, data + at);
      return size - count;
    }
    case 3: {
      if (size == 0) return size;
      data[below(size)] ^= static_cast<uint8_t>(1u << below(8));
      return size;
    }
    case 4: {  // repeats a stretch elsewhere
      const size_t from = below(size + 1);
      const Bytes part(data + from, data + from + std::min(size - from, 1 + below(32)));
      return put(part.data(), part.size(), over, data, size, max_size);
    }
    default: {
      const Bytes& other = seeds[below(seeds.size())].bytes;
      const size_t from = below(other.size() + 1);
      return put(other.data() + from, std::min(other.size() - from, 1 + below(64)), over, data, size, max_size);
    }
  }
}

namespace {

Bytes changed(const Bytes& seed, uint64_t number) {
  chance.seed(static_cast<unsigned>(number));
  Bytes data = seed;
  size_t size = data.size();
  data.resize(size + 4096);
  for (size_t times = 1 + below(6); times > 0; --times) {
    if (LLVMFuzzerCustomMutator != nullptr)
      size = LLVMFuzzerCustomMutator(data.data(), size, data.size(), static_cast<unsigned>(chance()));
    else
      size = LLVMFuzzerMutate(data.data(), size, data.size());
  }
  data.resize(size);
  data.shrink_to_fit();  // so that a sanitizer sees where it ends
  return data;
}

}  // namespace

int main(int argc, char** argv) {
  bool mutate = false;
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] == '-')
      mutate = true;
    else
      read_folder(argv[i]);
  }
  if (!mutate) {
    for (const SeedFile& seed : seeds) LLVMFuzzerTestOneInput(seed.bytes.data(), seed.bytes.size());
    std::printf("%zu inputs\n", seeds.size());
    return seeds.empty() ? 1 : 0;
  }
  if (seeds.empty()) {
    std::fprintf(stderr, "usage: %s [-max_total_time=SECONDS] [-calls=N] [-repeat=FILE:SEED] FOLDER...\n", argv[0]);
    return 2;
  }
  using namespace calque::forked;
  const std::string target = std::filesystem::path(argv[0]).filename().string();
  std::vector<Subject> subjects;
  for (const SeedFile& seed : seeds) {
    const auto attempt = [&seed](uint64_t number) {
      const Bytes data = changed(seed.bytes, number);
      LLVMFuzzerTestOneInput(data.data(), data.size());
      return Outcome{Kind::answered, ""};
    };
    const auto describe = [&seed](uint64_t number) {
      const Bytes data = changed(seed.bytes, number);
      const std::string name = seed.name + "." + std::to_string(number);
      std::ofstream(name, std::ios::binary)
          .write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
      return name + ": " + std::to_string(data.size()) + " bytes";
    };
    subjects.push_back({target, seed.name, attempt, describe});
  }
  return run(argc, argv, subjects);
}
