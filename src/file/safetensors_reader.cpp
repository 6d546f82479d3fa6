#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "calque/file/mapped_file.h"
#include "calque/file/safetensors.h"
#include "file/file_format.h"
#include "file/safetensors_format.h"
#include "file/safetensors_header.h"

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian and used as they are");

namespace calque {
namespace {

std::string not_valid(const std::string& path, const std::string& why) {
  return path + ": not a valid safetensors file: " + why;
}

// Python's rule for a slice's bound: negative counts from the end, what lies outside is cut.
int64_t bound(std::optional<int64_t> value, int64_t fallback, int64_t size) {
  if (!value) return fallback;
  const int64_t v = *value < 0 ? *value + size : *value;
  return std::clamp<int64_t>(v, 0, size);
}

}  // namespace

int64_t SafetensorsEntry::numel() const {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  return from_bytes(bytes, std::move(file), path);
}

SafetensorsFile SafetensorsFile::from_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                            std::string what) {
  return reading_format(FileFormat::safetensors, bytes, what, [&]() -> SafetensorsFile {
    constexpr size_t length_bytes = 8;
    if (bytes.size() < length_bytes)
      throw UserError(ErrorKind::bad_file,
                      not_valid(what, fmt::format("expected at least 8 bytes with the header's length, found {}; "
                                                  "the file may be cut off or of another kind",
                                                  bytes.size())));
    uint64_t length;
    std::memcpy(&length, bytes.data(), length_bytes);
    if (length > safetensors_max_header)
      throw UserError(
          ErrorKind::bad_file,
          not_valid(what,
                    fmt::format("its first 8 bytes give a header of {} bytes, more than the {} that the format allows; "
                                "the file may be of another kind",
                                length, safetensors_max_header)));
    if (length > bytes.size() - length_bytes)
      throw UserError(
          ErrorKind::bad_file,
          not_valid(what, fmt::format("its first 8 bytes give a header of {} bytes, but only {} follow; the file may be "
                                      "cut off or of another kind: fetch it again",
                                      length, bytes.size() - length_bytes)));
    SafetensorsFile out;
    out.path_ = what;
    out.owner_ = std::move(owner);
    out.file_bytes_ = bytes.size();
    out.data_ = bytes.subspan(length_bytes + length);
    SafetensorsHeader header = parse_safetensors_header({reinterpret_cast<const char*>(bytes.data()) + length_bytes, length},
                                                        out.data_.size(), out.path_);
    out.entries_ = std::move(header.entries);
    out.by_name_ = std::move(header.by_name);
    out.metadata_ = std::move(header.metadata);
    return out;
  });
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> out;
  out.reserve(by_name_.size());
  for (const uint32_t i : by_name_) out.push_back(entries_[i].name);
  return out;
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                   [&](uint32_t i, std::string_view wanted) { return entries_[i].name < wanted; });
  return at != by_name_.end() && entries_[*at].name == name ? &entries_[*at] : nullptr;
}

const SafetensorsEntry& SafetensorsFile::entry(std::string_view name) const {
  if (const SafetensorsEntry* found = find(name)) return *found;
  std::string first;
  for (size_t i = 0; i < std::min<size_t>(by_name_.size(), 3); ++i)
    first += (i ? ", " : "") + shown(entries_[by_name_[i]].name);
  throw UserError(fmt::format("{}: no tensor {} in the file; it holds {} tensors{}", path_, shown(name), entries_.size(),
                              first.empty() ? "" : ": " + first + (entries_.size() > 3 ? ", ..." : "")));
}

std::span<const std::byte> SafetensorsFile::bytes(const SafetensorsEntry& entry) const {
  return data_.subspan(entry.begin, entry.nbytes());
}

Tensor SafetensorsFile::tensor(std::string_view name) const { return tensor(entry(name)); }

Tensor SafetensorsFile::tensor(const SafetensorsEntry& entry) const {
  if (!entry.dtype)
    throw UserError(fmt::format("{}: tensor {} is of the packed dtype {}, which no tensor can hold; read its bytes instead",
                                path_, shown(entry.name), entry.dtype_name));
  const DType dtype = *entry.dtype;
  const auto raw = bytes(entry);
  const bool aligned = reinterpret_cast<uintptr_t>(raw.data()) % item_size(dtype) == 0;
  const bool proper =
      dtype != DType::bool_ || std::all_of(raw.begin(), raw.end(), [](std::byte b) { return b <= std::byte{1}; });
  if (!raw.empty() && aligned && proper) {
    // Storage has one pointer type for all; read_only keeps writers out.
    auto* data = const_cast<std::byte*>(raw.data());
    std::vector<int64_t> strides(entry.sizes.size());
    int64_t running = 1;
    for (size_t d = strides.size(); d-- > 0;) {
      strides[d] = running;
      running *= std::max<int64_t>(entry.sizes[d], 1);
    }
    return from_storage(Storage::borrow(data, raw.size(), owner_, /*read_only=*/true), dtype, entry.sizes, strides, 0);
  }
  Tensor copy = make_tensor(entry.sizes, dtype);
  if (raw.empty()) return copy;
  auto* out = static_cast<std::byte*>(copy.mutable_data());
  std::memcpy(out, raw.data(), raw.size());
  if (!proper) std::transform(out, out + raw.size(), out, [](std::byte b) { return b == std::byte{0} ? b : std::byte{1}; });
  return copy;
}

Tensor SafetensorsFile::slice(std::string_view name, ListRef<Index> indices) const {
  const Tensor whole = tensor(name);
  const auto refuse = [&](const std::string& why) {
    throw UserError(fmt::format("{}: slice of tensor {} of sizes {}: {}", path_, shown(name), str(whole.sizes()), why));
  };
  if (indices.size() > static_cast<size_t>(whole.dim()))
    refuse(fmt::format("expected at most {} indices, found {}", whole.dim(), indices.size()));
  SymInts sizes, strides;
  int64_t offset = whole.storage_offset();
  for (int64_t d = 0; d < whole.dim(); ++d) {
    const int64_t size = whole.size(d);
    const int64_t stride = whole.stride(d);
    if (static_cast<size_t>(d) >= indices.size()) {
      sizes.push_back(size);
      strides.push_back(stride);
      continue;
    }
    const Index& index = indices[static_cast<size_t>(d)];
    if (const int64_t* at = std::get_if<int64_t>(&index)) {
      if (*at < -size || *at >= size)
        refuse(fmt::format("index {} is out of range for dimension {} of size {}; expected {} to {}", *at, d, size, -size,
                           size - 1));
      offset += (*at < 0 ? *at + size : *at) * stride;
      continue;
    }
    const Range& range = std::get<Range>(index);
    if (range.step < 1) refuse(fmt::format("expected a step of at least 1 in dimension {}, found {}", d, range.step));
    const int64_t start = bound(range.start, 0, size);
    const int64_t stop = std::max(bound(range.stop, size, size), start);
    const int64_t count = (stop - start) / range.step + ((stop - start) % range.step != 0);
    // An empty part may start at the very end; it has no first element to point to.
    if (count > 0) offset += start * stride;
    sizes.push_back(count);
    strides.push_back(count > 1 ? stride * range.step : stride);
  }
  return make_view(whole, sizes, strides, offset);
}

NamedTensors SafetensorsFile::tensors() const {
  NamedTensors out;
  out.reserve(by_name_.size());
  for (const uint32_t i : by_name_) out.emplace_back(entries_[i].name, tensor(entries_[i]));
  return out;
}

}  // namespace calque
