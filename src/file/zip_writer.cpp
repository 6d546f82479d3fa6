#include <cstring>

#include "calque/base/error.h"
#include "calque/file/zip.h"

namespace calque {
namespace {

constexpr uint32_t small_limit = 0xFFFFFFFFU;
// 1980-01-01, the first day that a zip can name: files are the same whenever they are written.
constexpr uint16_t fixed_date = 0x21;

class Record {
 public:
  template <class T>
  Record& put(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out_.append(bytes, sizeof(T));
    return *this;
  }
  Record& put(const std::string& text) {
    out_ += text;
    return *this;
  }
  std::string out_;
};

uint32_t clipped(uint64_t value) { return value >= small_limit ? small_limit : static_cast<uint32_t>(value); }

uint64_t mixed(uint64_t hash, std::span<const std::byte> bytes) {  // FNV-1a
  for (const std::byte b : bytes) hash = (hash ^ static_cast<uint64_t>(b)) * 0x100000001B3U;
  return hash;
}

}  // namespace

ZipWriter::ZipWriter(Sink sink, std::string folder)
    : sink_(std::move(sink)), folder_(std::move(folder)), fingerprint_(0xCBF29CE484222325U) {
  if (!folder_.empty()) folder_ += '/';
}

void ZipWriter::put(const std::string& bytes) {
  sink_(std::as_bytes(std::span(bytes)));
  at_ += bytes.size();
}

void ZipWriter::add(std::string_view name, std::span<const std::byte> data) {
  Written entry{folder_ + std::string(name), at_, data.size(), crc32(data)};
  if (entry.name.size() > 0xFFFF)
    throw UserError("ZipWriter: a name of " + std::to_string(entry.name.size()) + " bytes; zip allows 65535");
  const bool large = data.size() >= small_limit;
  std::string extra;
  if (large) extra = Record().put(uint16_t{1}).put(uint16_t{16}).put(uint64_t{data.size()}).put(uint64_t{data.size()}).out_;
  // Padding is an extra field of its own, as PyTorch has it.
  const uint64_t unpadded = at_ + 30 + entry.name.size() + extra.size() + 4;
  const uint64_t padding = (alignment - unpadded % alignment) % alignment;
  extra += Record().put('F').put('B').put(static_cast<uint16_t>(padding)).put(std::string(padding, 'Z')).out_;
  put(Record()
          .put(uint32_t{0x04034b50})
          .put(static_cast<uint16_t>(large ? 45 : 20))
          .put(uint16_t{1U << 11})  // names are UTF-8
          .put(uint16_t{0})         // stored
          .put(uint16_t{0})
          .put(fixed_date)
          .put(entry.crc)
          .put(clipped(data.size()))
          .put(clipped(data.size()))
          .put(static_cast<uint16_t>(entry.name.size()))
          .put(static_cast<uint16_t>(extra.size()))
          .put(entry.name)
          .put(extra)
          .out_);
  sink_(data);
  at_ += data.size();
  fingerprint_ = mixed(fingerprint_, std::as_bytes(std::span(entry.name)));
  fingerprint_ = mixed(fingerprint_, std::as_bytes(std::span(&entry.crc, 1)));
  fingerprint_ = mixed(fingerprint_, std::as_bytes(std::span(&entry.size, 1)));
  written_.push_back(std::move(entry));
}

void ZipWriter::finish() {
  const uint64_t directory = at_;
  for (const Written& e : written_) {
    Record wide;
    if (e.size >= small_limit) wide.put(e.size).put(e.size);
    if (e.offset >= small_limit) wide.put(e.offset);
    const std::string extra =
        wide.out_.empty() ? std::string()
                          : Record().put(uint16_t{1}).put(static_cast<uint16_t>(wide.out_.size())).put(wide.out_).out_;
    const auto version = static_cast<uint16_t>(extra.empty() ? 20 : 45);
    put(Record()
            .put(uint32_t{0x02014b50})
            .put(version)
            .put(version)
            .put(uint16_t{1U << 11})
            .put(uint16_t{0})
            .put(uint16_t{0})
            .put(fixed_date)
            .put(e.crc)
            .put(clipped(e.size))
            .put(clipped(e.size))
            .put(static_cast<uint16_t>(e.name.size()))
            .put(static_cast<uint16_t>(extra.size()))
            .put(uint16_t{0})
            .put(uint16_t{0})
            .put(uint16_t{0})
            .put(uint32_t{0})
            .put(clipped(e.offset))
            .put(e.name)
            .put(extra)
            .out_);
  }
  const uint64_t size = at_ - directory;
  const uint64_t count = written_.size();
  const uint64_t end = at_;
  // PyTorch's reader takes a zip64 end record whether it is needed or not; so the form does not depend on the size.
  put(Record()
          .put(uint32_t{0x06064b50})
          .put(uint64_t{44})
          .put(uint16_t{45})
          .put(uint16_t{45})
          .put(uint32_t{0})
          .put(uint32_t{0})
          .put(count)
          .put(count)
          .put(size)
          .put(directory)
          .put(uint32_t{0x07064b50})
          .put(uint32_t{0})
          .put(end)
          .put(uint32_t{1})
          .out_);
  const auto short_count = static_cast<uint16_t>(count >= 0xFFFF ? 0xFFFF : count);
  put(Record()
          .put(uint32_t{0x06054b50})
          .put(uint16_t{0})
          .put(uint16_t{0})
          .put(short_count)
          .put(short_count)
          .put(clipped(size))
          .put(clipped(directory))
          .put(uint16_t{0})
          .out_);
}

}  // namespace calque
