// Reading zip archives whose entries are stored, not compressed: what torch.save and torch.export.save write. Entries
// are views into the caller's bytes. Every offset and length is checked before use; zip64 is understood. It does not
// write and does not inflate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace calque {

struct ZipEntry {
  std::string name;
  std::span<const std::byte> data;
};

class ZipReader {
 public:
  // `what` names the archive in errors. UserError(bad_file) on anything that is no such zip.
  ZipReader(std::span<const std::byte> bytes, std::string what);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  const ZipEntry* find(std::string_view name) const;  // null when absent

 private:
  std::string what_;
  std::vector<ZipEntry> entries_;
};

}  // namespace calque
