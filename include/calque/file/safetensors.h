// Safetensors files: 8 bytes of header length, a JSON header, the tensors' bytes. A SafetensorsFile checks the whole
// header when it is opened; its tensors are read-only views into the mapped file, which they keep alive, so nothing is
// read before it is used. Saving writes the bytes that the `safetensors` library writes, under a temporary name first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "calque/op/tensor.h"

namespace calque {

using SafetensorsMetadata = std::map<std::string, std::string>;
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// What the header says of one tensor.
struct SafetensorsEntry {
  std::string name;
  std::string_view dtype_name;  // as in the file: "F32", "BF16", ...
  std::optional<DType> dtype;   // none for the packed types F4, F6_E2M3 and F6_E3M2, which no tensor can hold
  std::vector<int64_t> sizes;
  uint64_t begin = 0, end = 0;  // of its bytes, counted from the first byte after the header

  int64_t numel() const;
  uint64_t nbytes() const { return end - begin; }
};

class SafetensorsFile {
 public:
  struct Range {  // start:stop:step of a slice; negative bounds count from the end, bounds beyond the size are cut
    std::optional<int64_t> start, stop;
    int64_t step = 1;
  };
  using Index = std::variant<int64_t, Range>;

  // UserError(bad_file) naming the file, the tensor, what was expected and what was found; nothing is half-opened.
  static SafetensorsFile open(const std::string& path);
  // The same over bytes in memory, alive as long as `owner`; `what` names them in errors.
  static SafetensorsFile from_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, std::string what);

  const std::string& path() const { return path_; }
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }  // in the order of their bytes
  std::vector<std::string> names() const;                                    // sorted
  const SafetensorsEntry* find(std::string_view name) const;                 // null when absent
  const SafetensorsEntry& entry(std::string_view name) const;                // UserError when absent
  const std::optional<SafetensorsMetadata>& metadata() const { return metadata_; }
  uint64_t file_bytes() const { return file_bytes_; }
  uint64_t header_bytes() const { return file_bytes_ - data_.size(); }  // with the 8 of its length

  // A view into the file. Two kinds of bytes cannot be viewed and are copied: a tensor that does not start at a multiple
  // of its element size, and booleans stored as anything but 0 and 1 (which PyTorch takes for true).
  Tensor tensor(std::string_view name) const;
  Tensor tensor(const SafetensorsEntry& entry) const;
  // A part of a tensor, as indexing it in PyTorch gives: x[0, :2] is slice("x", {0, Range{{}, 2}}).
  Tensor slice(std::string_view name, ListRef<Index> indices) const;
  std::span<const std::byte> bytes(const SafetensorsEntry& entry) const;
  NamedTensors tensors() const;  // all of them, sorted by name

 private:
  SafetensorsFile() = default;

  std::string path_;
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> data_;
  uint64_t file_bytes_ = 0;
  std::vector<SafetensorsEntry> entries_;
  std::vector<uint32_t> by_name_;
  std::optional<SafetensorsMetadata> metadata_;
};

// What becomes of tensors that share memory (find_shared_memory): a file holds them once for each name, and what is read from it
// no longer shares anything.
enum class SharedTensors : uint8_t { refused, written_each };

// Writes the file whole or not at all. Tensors of any strides are written row-major. UserError for tensors that share memory,
// unless each is to be written, for a dtype that the format lacks, a fake tensor, a name given twice or not in UTF-8. Metadata is
// written sorted by key.
void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const std::optional<SafetensorsMetadata>& metadata = std::nullopt, bool sync = true,
                      SharedTensors shared = SharedTensors::refused);
// The same bytes in memory.
std::vector<std::byte> serialize_safetensors(const NamedTensors& tensors,
                                             const std::optional<SafetensorsMetadata>& metadata = std::nullopt,
                                             SharedTensors shared = SharedTensors::refused);

// Tensors whose bytes overlap. Views of one storage that lie side by side are not in a group; empty tensors never are.
struct SharedMemory {
  std::vector<std::string> names;       // sorted, at least two
  bool identical = false;               // all start at the same byte with the same dtype, sizes and strides
  std::optional<std::string> complete;  // the first of them that is contiguous and covers its whole storage
};
std::vector<SharedMemory> find_shared_memory(const NamedTensors& tensors);  // sorted by first name

}  // namespace calque
