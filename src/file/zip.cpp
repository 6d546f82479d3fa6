#include "calque/file/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "calque/base/error.h"
#include "calque/base/memory.h"

namespace calque {
namespace {

constexpr uint32_t end_signature = 0x06054b50;
constexpr uint32_t end64_locator_signature = 0x07064b50;
constexpr uint32_t end64_signature = 0x06064b50;
constexpr uint32_t central_signature = 0x02014b50;
constexpr uint32_t local_signature = 0x04034b50;
constexpr size_t max_comment = 65535;
constexpr uint16_t method_stored = 0;
constexpr uint16_t method_deflate = 8;

class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& what) : bytes_(bytes), what_(what) {}

  template <class T>
  T at(uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T))
      fail("needs " + std::to_string(sizeof(T)) + " bytes at offset " + std::to_string(offset) + ", the file has " +
           std::to_string(bytes_.size()));
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  std::span<const std::byte> slice(uint64_t offset, uint64_t length, const std::string& of) const {
    if (offset > bytes_.size() || length > bytes_.size() - offset)
      fail(of + " spans bytes " + std::to_string(offset) + " to " + std::to_string(offset) + "+" + std::to_string(length) +
           ", the file has " + std::to_string(bytes_.size()));
    return bytes_.subspan(offset, length);
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw UserError(ErrorKind::bad_file,
                    what_ + ": not a readable zip archive: " + why + "; the file may be cut off or of another kind");
  }
  size_t size() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  const std::string& what_;
};

// A name that could lead out of the folder it is unpacked to, or that two systems would read differently.
bool escapes(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.find('\\') != std::string_view::npos ||
      name.find('\0') != std::string_view::npos)
    return true;
  while (true) {
    const size_t slash = name.find('/');
    if (name.substr(0, slash) == "..") return true;
    if (slash == std::string_view::npos) return false;
    name.remove_prefix(slash + 1);
  }
}

uint64_t find_end_record(const Cursor& c) {
  if (c.size() < 22) c.fail("it has " + std::to_string(c.size()) + " bytes, fewer than an empty archive's 22");
  const uint64_t last = c.size() - 22;
  const uint64_t first = last > max_comment ? last - max_comment : 0;
  for (uint64_t at = last + 1; at-- > first;)
    if (c.at<uint32_t>(at) == end_signature && at + 22 + c.at<uint16_t>(at + 20) == c.size()) return at;
  c.fail("no end-of-archive record");
}

// A piece of a stream as zlib counts it.
unsigned piece_of(size_t bytes) {
  return static_cast<unsigned>(std::min<size_t>(bytes, std::numeric_limits<unsigned>::max()));
}

// Inflates into exactly `to`. False when the stream is damaged or holds another number of bytes.
bool inflate_whole(std::span<const std::byte> from, std::span<std::byte> to) {
  z_stream stream{};
  if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();  // raw: a zip has no zlib header
  std::byte beyond{};                                                       // where a byte too many would go
  int result = Z_OK;
  size_t read = 0, written = 0;
  while (result == Z_OK) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(from.data() + read));
    stream.avail_in = piece_of(from.size() - read);
    const bool full = written == to.size();
    stream.next_out = reinterpret_cast<Bytef*>(full ? &beyond : to.data() + written);
    stream.avail_out = full ? 1 : piece_of(to.size() - written);
    const unsigned in = stream.avail_in, out = stream.avail_out;
    result = ::inflate(&stream, Z_NO_FLUSH);
    read += in - stream.avail_in;
    if (full && stream.avail_out == 0) result = Z_DATA_ERROR;
    if (!full) written += out - stream.avail_out;
  }
  ::inflateEnd(&stream);
  return result == Z_STREAM_END && written == to.size() && read == from.size();
}

// Counted memory that goes back when nobody has it any more.
std::shared_ptr<std::byte> counted_bytes(size_t bytes) {
  auto* memory = static_cast<std::byte*>(allocate_counted(bytes));
  return {memory, [bytes](std::byte* p) { free_counted(p, bytes); }};
}

}  // namespace

ZipReader::ZipReader(std::span<const std::byte> bytes, std::string what, ZipContent content) : what_(std::move(what)) {
  const Cursor c(bytes, what_);
  const uint64_t end = find_end_record(c);
  uint64_t count = c.at<uint16_t>(end + 10);
  uint64_t directory_size = c.at<uint32_t>(end + 12);
  uint64_t directory = c.at<uint32_t>(end + 16);
  if (end >= 20 && c.at<uint32_t>(end - 20) == end64_locator_signature) {
    const auto end64 = c.at<uint64_t>(end - 20 + 8);
    if (c.at<uint32_t>(end64) != end64_signature) c.fail("the zip64 locator points to no zip64 record");
    count = c.at<uint64_t>(end64 + 32);
    directory_size = c.at<uint64_t>(end64 + 40);
    directory = c.at<uint64_t>(end64 + 48);
  }
  c.slice(directory, directory_size, "the directory");
  if (count > directory_size / 46)
    c.fail("the directory of " + std::to_string(directory_size) + " bytes cannot hold " + std::to_string(count) +
           " entries");

  struct Extent {
    uint64_t begin, end;
  };
  std::vector<Extent> extents;
  struct Compressed {
    std::string name;
    std::span<const std::byte> stored;
    uint64_t size;
  };
  std::vector<Compressed> compressed;
  uint64_t inflated_bytes = 0;
  uint64_t at = directory;
  for (uint64_t i = 0; i < count; ++i) {
    if (c.at<uint32_t>(at) != central_signature) c.fail("entry " + std::to_string(i) + " of the directory is malformed");
    const auto flags = c.at<uint16_t>(at + 8);
    const auto method = c.at<uint16_t>(at + 10);
    uint64_t stored = c.at<uint32_t>(at + 20);
    uint64_t size = c.at<uint32_t>(at + 24);
    const auto name_length = c.at<uint16_t>(at + 28);
    const auto extra_length = c.at<uint16_t>(at + 30);
    const auto comment_length = c.at<uint16_t>(at + 32);
    uint64_t local = c.at<uint32_t>(at + 42);
    const auto name_bytes = c.slice(at + 46, name_length, "a name");
    ZipEntry entry;
    entry.name.assign(reinterpret_cast<const char*>(name_bytes.data()), name_bytes.size());
    entry.crc = c.at<uint32_t>(at + 16);
    if (escapes(entry.name))
      c.fail("the name of entry " + std::to_string(i) + " leads out of the archive: '" + entry.name.substr(0, 100) + "'");
    if ((flags & 1U) != 0) c.fail("entry " + entry.name + " is encrypted");
    // zip64 extra field: only the values that overflowed, in this order.
    const auto extra = c.slice(at + 46 + name_length, extra_length, "the extra field of " + entry.name);
    for (size_t e = 0; e + 4 <= extra.size();) {
      uint16_t id;
      uint16_t length;
      std::memcpy(&id, extra.data() + e, 2);
      std::memcpy(&length, extra.data() + e + 2, 2);
      if (length > extra.size() - e - 4) c.fail("the extra field of " + entry.name + " is cut off");
      if (id == 1) {
        size_t f = e + 4;
        const auto next = [&](uint64_t& value) {
          if (value != 0xffffffffU) return;
          if (f + 8 > e + 4 + length) c.fail("the zip64 sizes of " + entry.name + " are missing");
          std::memcpy(&value, extra.data() + f, 8);
          f += 8;
        };
        next(size);
        next(stored);
        next(local);
      }
      e += 4U + length;
    }
    if (method != method_stored && method != method_deflate)
      c.fail("entry " + entry.name + " is compressed by method " + std::to_string(method) +
             "; expected stored or deflated entries: zip it anew with the usual method");
    if (method == method_stored && size != stored)
      c.fail("entry " + entry.name + " is stored and has two sizes, " + std::to_string(stored) + " and " +
             std::to_string(size));
    if (c.at<uint32_t>(local) != local_signature)
      c.fail("entry " + entry.name + " has no local header at offset " + std::to_string(local));
    const uint64_t data = local + 30 + c.at<uint16_t>(local + 26) + c.at<uint16_t>(local + 28);
    const auto in_file = c.slice(data, stored, "entry " + entry.name);
    if (method == method_stored) {
      entry.data = in_file;
    } else {
      if (__builtin_add_overflow(inflated_bytes, size, &inflated_bytes))
        c.fail("the sizes of its compressed entries overflow");
      compressed.push_back({entry.name, in_file, size});
    }
    extents.push_back({local, data + stored});
    entries_.push_back(std::move(entry));
    at += 46U + name_length + extra_length + comment_length;
  }
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < extents.size(); ++i)
    if (extents[i].begin < extents[i - 1].end) c.fail("two entries overlap at offset " + std::to_string(extents[i].begin));
  if (!extents.empty() && extents.back().end > directory) c.fail("an entry reaches into the directory");
  std::sort(entries_.begin(), entries_.end(), [](const ZipEntry& a, const ZipEntry& b) { return a.name < b.name; });
  for (size_t i = 1; i < entries_.size(); ++i)
    if (entries_[i].name == entries_[i - 1].name) c.fail("entry " + entries_[i].name + " occurs twice");
  if (content == ZipContent::stored) return;
  // Before anything is inflated.
  if (inflated_bytes > always_inflated && inflated_bytes / max_ratio > bytes.size())
    throw UserError(ErrorKind::bad_file, what_ + ": its compressed entries claim " + std::to_string(inflated_bytes) +
                                             " bytes, more than " + std::to_string(max_ratio) + " times the archive's " +
                                             std::to_string(bytes.size()) +
                                             "; if that is meant, zip it anew without compression (zip -0)");
  for (const Compressed& one : compressed) {
    ZipEntry& entry = *std::lower_bound(entries_.begin(), entries_.end(), one.name,
                                        [](const ZipEntry& e, const std::string& n) { return e.name < n; });
    const std::shared_ptr<std::byte> memory = counted_bytes(one.size);
    if (!inflate_whole(one.stored, {memory.get(), one.size}))
      c.fail("entry " + one.name + " does not inflate to the " + std::to_string(one.size) +
             " bytes that the directory states");
    entry.data = {memory.get(), one.size};
    entry.inflated = memory;
  }
}

void ZipReader::check(const ZipEntry& entry) const {
  if (crc32(entry.data) != entry.crc)
    throw UserError(ErrorKind::bad_file, what_ + ": entry " + entry.name +
                                             " is damaged: its bytes do not have the checksum that the archive states");
}

const ZipEntry* ZipReader::find(std::string_view name) const {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), name,
                                   [](const ZipEntry& e, std::string_view n) { return e.name < n; });
  return it != entries_.end() && it->name == name ? &*it : nullptr;
}

}  // namespace calque
