// How fast two threads read weights that do not fit the caches: what a step of decoding, which reads every weight once, can
// reach on this machine. 500 MB of a mapped file in the page cache, and of anonymous memory, read in several ways; nothing of
// Calque is measured. GB/s, medians of 15 passes; 0 where there was no such memory.
#include <fmt/format.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t bytes = size_t{500} << 20;
constexpr int threads = 2, passes = 15;

// `places` parts of the range side by side; lines `ahead` bytes further on are asked for, 0 for none.
template <int places, size_t ahead>
__attribute__((target("avx2"))) uint64_t sum(const char* data, size_t size) {
  const size_t part = size / places / 256 * 256;
  __m256i total[places] = {};
  for (size_t at = 0; at < part; at += 64)
    for (int p = 0; p < places; ++p) {
      const char* const from = data + static_cast<size_t>(p) * part + at;
      if constexpr (ahead != 0) __builtin_prefetch(from + ahead, 0, 2);
      total[p] = _mm256_xor_si256(total[p], _mm256_load_si256(reinterpret_cast<const __m256i*>(from)));
      total[p] = _mm256_xor_si256(total[p], _mm256_load_si256(reinterpret_cast<const __m256i*>(from + 32)));
    }
  for (int p = 1; p < places; ++p) total[0] = _mm256_xor_si256(total[0], total[p]);
  return static_cast<uint64_t>(_mm256_extract_epi64(total[0], 0));
}

using Read = uint64_t (*)(const char*, size_t);

double speed(Read read, const char* data) {
  std::vector<double> seconds;
  volatile uint64_t kept = 0;
  for (int pass = 0; pass < passes; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t)
      others.emplace_back([&, t] { kept = kept + read(data + bytes / threads * static_cast<size_t>(t), bytes / threads); });
    const uint64_t own = read(data, bytes / threads);
    for (std::thread& other : others) other.join();
    kept = kept + own;
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + passes / 2, seconds.end());
  return static_cast<double>(bytes) / seconds[passes / 2] / 1e9;
}

char* mapped_file() {
  std::string name = (std::filesystem::temp_directory_path() / "calque-bench-XXXXXX").string();
  const int file = ::mkstemp(name.data());
  if (file < 0) return nullptr;
  ::unlink(name.c_str());
  const std::vector<char> megabyte(1 << 20, 'x');
  for (size_t i = 0; i < bytes >> 20; ++i)
    if (::write(file, megabyte.data(), megabyte.size()) != std::ssize(megabyte)) return nullptr;
  void* const at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
}

char* anonymous(int advice) {
  void* const at = ::mmap(nullptr, bytes + (2 << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  ::madvise(at, bytes + (2 << 20), advice);
  std::fill_n(static_cast<char*>(at), bytes, 'x');
  return static_cast<char*>(at);
}

}  // namespace

int main() {
  struct Way {
    const char* name;
    Read read;
  };
  const Way ways[] = {{"a plain loop", sum<1, 0>},
                      {"asked for 8 KB ahead", sum<1, 8192>},
                      {"four places at once", sum<4, 0>},
                      {"four places, asked for 2 KB ahead", sum<4, 2048>}};
  struct Memory {
    const char* name;
    char* data;
  };
  const Memory memories[] = {
      {"mapped file", mapped_file()}, {"4 KB pages", anonymous(MADV_NOHUGEPAGE)}, {"huge pages", anonymous(MADV_HUGEPAGE)}};
  fmt::print("{:36}", "GB/s, two threads, 500 MB");
  for (const Memory& memory : memories) fmt::print("{:>14}", memory.name);
  for (const Way& way : ways) {
    fmt::print("\n{:36}", way.name);
    for (const Memory& memory : memories) fmt::print("{:14.1f}", memory.data ? speed(way.read, memory.data) : 0.0);
  }
  fmt::print("\n");
}
