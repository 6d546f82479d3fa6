#include "file/zip_support.h"

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace calque::test {
namespace {

template <class T>
void append(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

std::string deflated(const std::string& text) {
  z_stream stream{};
  if (::deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2");
  std::string out(::deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (::deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

}  // namespace

std::string deflated_archive(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out, directory;
  for (const auto& [name, text] : entries) {
    const std::string data = deflated(text);
    const auto crc =
        static_cast<uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
    const auto local = static_cast<uint32_t>(out.size());
    const auto facts = [&](std::string& to) {  // what both headers say
      append<uint16_t>(to, 20);                // version
      append<uint16_t>(to, 0);                 // flags
      append<uint16_t>(to, 8);                 // deflate
      append<uint32_t>(to, 0x21U << 16);       // time and date
      append<uint32_t>(to, crc);
      append<uint32_t>(to, static_cast<uint32_t>(data.size()));
      append<uint32_t>(to, static_cast<uint32_t>(text.size()));
      append<uint16_t>(to, static_cast<uint16_t>(name.size()));
      append<uint16_t>(to, 0);  // extra
    };
    out += "PK\3\4";
    facts(out);
    out += name + data;
    directory += "PK\1\2";
    append<uint16_t>(directory, 20);
    facts(directory);
    append<uint16_t>(directory, 0);  // comment
    append<uint16_t>(directory, 0);  // disk
    append<uint16_t>(directory, 0);  // attributes
    append<uint32_t>(directory, 0);
    append<uint32_t>(directory, local);
    directory += name;
  }
  const auto begin = static_cast<uint32_t>(out.size());
  out += directory + "PK\5\6";
  append<uint32_t>(out, 0);
  append<uint16_t>(out, static_cast<uint16_t>(entries.size()));
  append<uint16_t>(out, static_cast<uint16_t>(entries.size()));
  append<uint32_t>(out, static_cast<uint32_t>(directory.size()));
  append<uint32_t>(out, begin);
  append<uint16_t>(out, 0);
  return out;
}

}  // namespace calque::test
