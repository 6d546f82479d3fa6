// What the disk itself takes for the files of a folder, by the fastest plain reader measured: four threads, O_DIRECT, 4 MB at a time, into
// huge pages. Knows nothing of Calque.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace disk {

inline constexpr size_t huge = size_t{2} << 20;

[[noreturn]] inline void fail(const std::string& what) {
  std::perror(what.c_str());
  std::exit(1);
}

inline std::vector<std::string> weight_files(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

inline size_t size_of(int descriptor) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) fail("fstat");
  return static_cast<size_t>(info.st_size);
}

// Anonymous memory in huge pages.
class Memory {
 public:
  explicit Memory(size_t bytes) : bytes_(bytes + huge) {
    map_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map_ == MAP_FAILED) fail("mmap");
    const auto address = reinterpret_cast<uintptr_t>(map_);
    data_ = static_cast<std::byte*>(map_) + (huge - address % huge) % huge;
    ::madvise(data_, bytes, MADV_HUGEPAGE);
  }
  ~Memory() { ::munmap(map_, bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* data() const { return data_; }

 private:
  void* map_ = nullptr;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

template <typename Work>
void on_threads(size_t count, const Work& work) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

// Nanoseconds to read all files, opening included: into memory that is new to the process and holds them all, and into the same 4 MB a
// thread again and again, the median of three.
struct Times {
  int64_t keeping = 0, passing = 0;
};

inline Times read(const std::string& folder) {
  constexpr size_t readers = 4, piece = size_t{4} << 20;
  const std::vector<std::string> paths = weight_files(folder);
  struct Piece {
    size_t file, at, bytes, place;
  };
  std::vector<Piece> pieces;
  size_t total = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    const auto size = static_cast<size_t>(std::filesystem::file_size(paths[i]));
    for (size_t at = 0; at < size; at += piece, total += piece) pieces.push_back({i, at, std::min(piece, size - at), total});
  }
  const auto time = [&](std::byte* memory, bool keep) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<int> files;
    for (const std::string& path : paths) {
      files.push_back(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
      if (files.back() < 0) fail(path);
    }
    std::atomic<size_t> next = 0;
    on_threads(readers, [&](size_t reader) {
      for (size_t i = next++; i < pieces.size(); i = next++) {
        const Piece& one = pieces[i];
        std::byte* to = memory + (keep ? one.place : reader * piece);
        for (size_t got = 0; got < one.bytes;) {
          const ssize_t n = ::pread(files[one.file], to + got, piece - got, static_cast<off_t>(one.at + got));
          if (n <= 0) fail(paths[one.file]);
          got += static_cast<size_t>(n);
        }
      }
    });
    for (const int file : files) ::close(file);
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
  };
  int64_t keeping = 0;
  {
    const Memory all(total);
    keeping = time(all.data(), true);
  }
  const Memory some(readers * piece);
  std::memset(some.data(), 1, readers * piece);
  std::array<int64_t, 3> passing{};
  for (int64_t& one : passing) one = time(some.data(), false);
  std::sort(passing.begin(), passing.end());
  return {.keeping = keeping, .passing = passing[1]};
}

}  // namespace disk
