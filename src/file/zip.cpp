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

struct Directory {
  uint64_t begin, size, count;
};

Directory find_directory(const Cursor& c) {
  const uint64_t end = find_end_record(c);
  Directory d{.begin = c.at<uint32_t>(end + 16), .size = c.at<uint32_t>(end + 12), .count = c.at<uint16_t>(end + 10)};
  if (end >= 20 && c.at<uint32_t>(end - 20) == end64_locator_signature) {
    const auto end64 = c.at<uint64_t>(end - 20 + 8);
    if (c.at<uint32_t>(end64) != end64_signature) c.fail("the zip64 locator points to no zip64 record");
    d = {.begin = c.at<uint64_t>(end64 + 48), .size = c.at<uint64_t>(end64 + 40), .count = c.at<uint64_t>(end64 + 32)};
  }
  c.slice(d.begin, d.size, "the directory");
  if (d.count > d.size / 46)
    c.fail("the directory of " + std::to_string(d.size) + " bytes cannot hold " + std::to_string(d.count) + " entries");
  return d;
}

// What the directory says of an entry, and where its bytes are.
struct EntryRecord {
  std::string name;
  uint32_t crc;
  uint16_t method;
  uint64_t size, stored, local;     // inflated, in the file, and where its local header is
  std::span<const std::byte> data;  // as it is in the file
  uint64_t length;                  // of the record
  uint64_t end;                     // of the data
};

// A zip64 extra field has only the values that overflowed, in this order.
void read_zip64_sizes(const Cursor& c, std::span<const std::byte> extra, EntryRecord& r) {
  for (size_t at = 0; at + 4 <= extra.size();) {
    uint16_t id;
    uint16_t length;
    std::memcpy(&id, extra.data() + at, 2);
    std::memcpy(&length, extra.data() + at + 2, 2);
    if (length > extra.size() - at - 4) c.fail("the extra field of " + r.name + " is cut off");
    size_t field = at + 4;
    at += 4U + length;
    if (id != 1) continue;
    for (uint64_t* value : {&r.size, &r.stored, &r.local}) {
      if (*value != 0xffffffffU) continue;
      if (field + 8 > at) c.fail("the zip64 sizes of " + r.name + " are missing");
      std::memcpy(value, extra.data() + field, 8);
      field += 8;
    }
  }
}

EntryRecord read_record(const Cursor& c, uint64_t at, uint64_t number) {
  if (c.at<uint32_t>(at) != central_signature) c.fail("entry " + std::to_string(number) + " of the directory is malformed");
  const auto flags = c.at<uint16_t>(at + 8);
  const auto name_length = c.at<uint16_t>(at + 28);
  const auto extra_length = c.at<uint16_t>(at + 30);
  const auto comment_length = c.at<uint16_t>(at + 32);
  const auto name = c.slice(at + 46, name_length, "a name");
  EntryRecord r{.name = std::string(reinterpret_cast<const char*>(name.data()), name.size()),
                .crc = c.at<uint32_t>(at + 16),
                .method = c.at<uint16_t>(at + 10),
                .size = c.at<uint32_t>(at + 24),
                .stored = c.at<uint32_t>(at + 20),
                .local = c.at<uint32_t>(at + 42),
                .data = {},
                .length = 46U + name_length + extra_length + comment_length,
                .end = 0};
  if (escapes(r.name))
    c.fail("the name of entry " + std::to_string(number) + " leads out of the archive: '" + r.name.substr(0, 100) + "'");
  if ((flags & 1U) != 0) c.fail("entry " + r.name + " is encrypted");
  read_zip64_sizes(c, c.slice(at + 46 + name_length, extra_length, "the extra field of " + r.name), r);
  if (r.method != method_stored && r.method != method_deflate)
    c.fail("entry " + r.name + " is compressed by method " + std::to_string(r.method) +
           "; expected stored or deflated entries: zip it anew with the usual method");
  if (r.method == method_stored && r.size != r.stored)
    c.fail("entry " + r.name + " is stored and has two sizes, " + std::to_string(r.stored) + " and " +
           std::to_string(r.size));
  if (c.at<uint32_t>(r.local) != local_signature)
    c.fail("entry " + r.name + " has no local header at offset " + std::to_string(r.local));
  const uint64_t data = r.local + 30 + c.at<uint16_t>(r.local + 26) + c.at<uint16_t>(r.local + 28);
  r.data = c.slice(data, r.stored, "entry " + r.name);
  r.end = data + r.stored;
  return r;
}

std::vector<EntryRecord> read_records(const Cursor& c) {
  const Directory directory = find_directory(c);
  std::vector<EntryRecord> records;
  uint64_t at = directory.begin;
  for (uint64_t i = 0; i < directory.count; ++i) {
    records.push_back(read_record(c, at, i));
    at += records.back().length;
  }
  std::sort(records.begin(), records.end(), [](const EntryRecord& a, const EntryRecord& b) { return a.local < b.local; });
  for (size_t i = 1; i < records.size(); ++i)
    if (records[i].local < records[i - 1].end) c.fail("two entries overlap at offset " + std::to_string(records[i].local));
  if (!records.empty() && records.back().end > directory.begin) c.fail("an entry reaches into the directory");
  std::sort(records.begin(), records.end(), [](const EntryRecord& a, const EntryRecord& b) { return a.name < b.name; });
  for (size_t i = 1; i < records.size(); ++i)
    if (records[i].name == records[i - 1].name) c.fail("entry " + records[i].name + " occurs twice");
  return records;
}

// Asked before anything is inflated.
void check_claimed_size(const Cursor& c, const std::string& what, const std::vector<EntryRecord>& records) {
  uint64_t claimed = 0;
  for (const EntryRecord& r : records)
    if (r.method == method_deflate && __builtin_add_overflow(claimed, r.size, &claimed))
      c.fail("the sizes of its compressed entries overflow");
  if (claimed > ZipReader::always_inflated && claimed / ZipReader::max_ratio > c.size())
    throw UserError(ErrorKind::bad_file, what + ": its compressed entries claim " + std::to_string(claimed) +
                                             " bytes, more than " + std::to_string(ZipReader::max_ratio) +
                                             " times the archive's " + std::to_string(c.size()) +
                                             "; if that is meant, zip it anew without compression (zip -0)");
}

}  // namespace

ZipReader::ZipReader(std::span<const std::byte> bytes, std::string what, ZipContent content) : what_(std::move(what)) {
  const Cursor c(bytes, what_);
  const std::vector<EntryRecord> records = read_records(c);
  if (content == ZipContent::all) check_claimed_size(c, what_, records);
  for (const EntryRecord& r : records) {
    ZipEntry entry{.name = r.name, .data = {}, .crc = r.crc};
    if (r.method == method_stored) {
      entry.data = r.data;
    } else if (content == ZipContent::all) {
      const std::shared_ptr<std::byte> memory = counted_bytes(r.size);
      if (!inflate_whole(r.data, {memory.get(), r.size}))
        c.fail("entry " + r.name + " does not inflate to the " + std::to_string(r.size) +
               " bytes that the directory states");
      entry.data = {memory.get(), r.size};
      entry.inflated = memory;
    }
    entries_.push_back(std::move(entry));
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
