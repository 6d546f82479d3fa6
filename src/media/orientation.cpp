#include "media/orientation.h"

#include <cstring>
#include <optional>

namespace calque {
namespace {

// A directory of TIFF entries, of either byte order; reads outside it are nothing.
class Tiff {
 public:
  explicit Tiff(std::string_view data) : data_(data) {}

  // The value of the tag in the first directory.
  std::optional<uint32_t> value(uint32_t tag) const {
    if (!data_.starts_with(std::string_view("II*\0", 4)) && !data_.starts_with(std::string_view("MM\0*", 4))) return {};
    const auto directory = number(4, 4);
    if (!directory) return {};
    const uint32_t entries = number(*directory, 2).value_or(0);
    std::optional<uint32_t> found;
    for (uint32_t i = 0; i < entries; ++i) {
      const size_t at = size_t{*directory} + 2 + size_t{12} * i;
      if (number(at, 2) != tag || number(at + 4, 4) != 1) continue;
      switch (number(at + 2, 2).value_or(0)) {
        case 1: found = number(at + 8, 1); break;
        case 3: found = number(at + 8, 2); break;
        case 4: found = number(at + 8, 4); break;
        default: break;
      }
    }
    return found;
  }

 private:
  std::optional<uint32_t> number(size_t at, size_t bytes) const {
    if (at > data_.size() || bytes > data_.size() - at) return {};
    uint32_t out = 0;
    for (size_t i = 0; i < bytes; ++i)
      out = out << 8 | static_cast<unsigned char>(data_[at + (data_[0] == 'M' ? i : bytes - 1 - i)]);
    return out;
  }
  std::string_view data_;
};

}  // namespace

int orientation_of(std::string_view exif, std::string_view xmp) {
  constexpr std::string_view head("Exif\0\0", 6), name("tiff:Orientation");
  while (exif.starts_with(head)) exif.remove_prefix(head.size());
  if (const auto said = Tiff(exif).value(0x0112)) return *said >= 1 && *said <= 8 ? static_cast<int>(*said) : 1;
  for (size_t at = xmp.find(name); at != std::string_view::npos; at = xmp.find(name, at + 1)) {
    std::string_view rest = xmp.substr(at + name.size());
    if (rest.starts_with("=\""))
      rest.remove_prefix(2);
    else if (rest.starts_with(">"))
      rest.remove_prefix(1);
    else
      continue;
    if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') return rest[0] >= '1' && rest[0] <= '8' ? rest[0] - '0' : 1;
  }
  return 1;
}

Picture turned(Picture picture, int orientation) {
  if (orientation == 1) return picture;
  const bool across = orientation >= 5;  // rows become columns
  const int64_t h = picture.height, w = picture.width;
  Picture out(across ? w : h, across ? h : w, picture.channels);
  const bool flip_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool flip_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const auto size = static_cast<size_t>(picture.channels);
  for (int64_t y = 0; y < out.height; ++y)
    for (int64_t x = 0; x < out.width; ++x) {
      const int64_t from_x = across ? y : x, from_y = across ? x : y;
      std::memcpy(out.row(y) + x * picture.channels,
                  picture.row(flip_y ? h - 1 - from_y : from_y) + (flip_x ? w - 1 - from_x : from_x) * picture.channels,
                  size);
    }
  return out;
}

}  // namespace calque
