// Zip archives as torch.save and torch.export.save write them. Read: stored entries are views into the caller's bytes, compressed
// ones (other tools zip a file anew) are inflated into memory that counts towards the limit; every offset, length and name is
// checked before use. Written: stored entries, one after the other to a sink, each starting at a multiple of 64 bytes, with
// zip64 where sizes or offsets need it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calque/base/crc32.h"

namespace calque {

struct ZipEntry {
  std::string name;
  std::span<const std::byte> data;
  uint32_t crc = 0;  // as the archive states it; check() compares
  std::shared_ptr<const void> inflated =
      {};  // what keeps the data of a compressed entry; null: it lies in the caller's bytes
  std::string_view text() const { return {reinterpret_cast<const char*>(data.data()), data.size()}; }
};

enum class ZipContent {
  all,
  stored,  // compressed entries have their names and no data: to look what an archive is
};

class ZipReader {
 public:
  // Compressed entries may come to so many times the archive's bytes, and to this much in any case.
  static constexpr uint64_t max_ratio = 200;
  static constexpr uint64_t always_inflated = uint64_t{64} << 20;

  // `what` names the archive in errors. UserError(bad_file) on anything that is no such zip: entries that overlap, names
  // that lead out of the archive's folder, entries that are encrypted, compressed by another method than deflate or beyond the limits.
  ZipReader(std::span<const std::byte> bytes, std::string what, ZipContent content = ZipContent::all);

  const std::vector<ZipEntry>& entries() const { return entries_; }  // sorted by name
  const ZipEntry* find(std::string_view name) const;                 // null when absent
  void check(const ZipEntry& entry) const;  // UserError(bad_file) unless its bytes have its checksum

 private:
  std::string what_;
  std::vector<ZipEntry> entries_;
};

class ZipWriter {
 public:
  using Sink = std::function<void(std::span<const std::byte>)>;
  static constexpr uint64_t alignment = 64;

  // Entries are put under `folder`, which may be empty.
  ZipWriter(Sink sink, std::string folder);

  void add(std::string_view name, std::span<const std::byte> data);
  void add(std::string_view name, std::string_view text) { add(name, std::as_bytes(std::span(text.data(), text.size()))); }
  // Writes the directory; nothing may be added afterwards.
  void finish();
  // A checksum of all entries' names and checksums so far: the same for the same content.
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  struct Written {
    std::string name;
    uint64_t offset, size;
    uint32_t crc;
  };
  void put(const std::string& bytes);

  Sink sink_;
  std::string folder_;
  uint64_t at_ = 0;
  uint64_t fingerprint_ = 0;
  std::vector<Written> written_;
};

}  // namespace calque
