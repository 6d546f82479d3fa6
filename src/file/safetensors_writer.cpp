#include <algorithm>
#include <cstring>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calque/file/file_writer.h"
#include "calque/file/safetensors.h"
#include "file/row_major.h"
#include "file/safetensors_format.h"
#include "file/safetensors_header.h"

namespace calque {
namespace {

struct Item {
  size_t rank;  // of the dtype
  const std::string* name;
  const Tensor* tensor;
};

std::string json_string(const std::string& text, const std::string& what) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    throw UserError("save_safetensors: " + what + " is not valid UTF-8; the format stores names as UTF-8");
  }
}

size_t rank_of(const std::string& name, const Tensor& tensor) {
  const std::string what = "save_safetensors: tensor " + shown(name);
  if (!tensor.defined()) throw UserError(what + " is undefined; expected a tensor");
  if (tensor.is_fake() || !tensor.storage()->has_data())
    throw UserError(what + " has no data (it is fake or on the meta device); only real tensors can be saved");
  if (static_cast<size_t>(tensor.dim()) > safetensors_max_dims)
    throw UserError(fmt::format("{} has {} dimensions, and safetensors files are read with at most {}; reshape it first",
                                what, tensor.dim(), safetensors_max_dims));
  for (size_t i = 0; i < safetensors_dtypes.size(); ++i)
    if (safetensors_dtypes[i].dtype == tensor.dtype()) return i;
  throw UserError(fmt::format("{} is of dtype {}, which safetensors files cannot hold; cast it first", what,
                              calque::name(tensor.dtype())));
}

std::vector<Item> in_file_order(const NamedTensors& tensors) {
  std::vector<Item> items;
  items.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    if (name == safetensors_metadata_key)
      throw UserError("save_safetensors: a tensor cannot be named '__metadata__'; the format reserves it");
    items.push_back({rank_of(name, tensor), &name, &tensor});
  }
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.rank != b.rank ? a.rank > b.rank : *a.name < *b.name; });
  std::vector<const std::string*> names;
  names.reserve(items.size());
  for (const Item& item : items) names.push_back(item.name);
  std::sort(names.begin(), names.end(), [](const auto* a, const auto* b) { return *a < *b; });
  for (size_t i = 1; i < names.size(); ++i)
    if (*names[i - 1] == *names[i]) throw UserError("save_safetensors: two tensors are named " + shown(*names[i]));
  return items;
}

std::string header_of(const std::vector<Item>& items, const std::optional<SafetensorsMetadata>& metadata) {
  std::string out = "{";
  if (metadata) {
    out += "\"__metadata__\":{";
    for (const auto& [key, value] : *metadata) {
      if (out.back() != '{') out += ',';
      out += json_string(key, "the metadata key " + shown(key)) + ":" +
             json_string(value, "the metadata value of " + shown(key));
    }
    out += '}';
  }
  uint64_t at = 0;
  for (const Item& item : items) {
    if (out.size() > 1) out += ',';
    const uint64_t end = at + item.tensor->nbytes();
    out += json_string(*item.name, "the name " + shown(*item.name));
    out += fmt::format(":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", safetensors_dtypes[item.rank].name,
                       fmt::join(item.tensor->sizes().begin(), item.tensor->sizes().end(), ","), at, end);
    at = end;
  }
  out += '}';
  out.append((8 - out.size() % 8) % 8, ' ');
  if (out.size() > safetensors_max_header)
    throw UserError(
        fmt::format("save_safetensors: the header would take {} bytes, more than the {} that the format allows; "
                    "write several files",
                    out.size(), safetensors_max_header));
  return out;
}

void check_nothing_shared(const NamedTensors& tensors) {
  std::vector<std::string> groups;
  for (const SharedMemory& group : find_shared_memory(tensors)) {
    std::vector<std::string> names;
    for (const std::string& name : group.names) names.push_back(shown(name));
    groups.push_back(fmt::format("{{{}}}", fmt::join(names, ", ")));
  }
  if (groups.empty()) return;
  throw UserError(fmt::format(
      "save_safetensors: some tensors share memory, which would be in the file once for each name and be apart when it is "
      "read: {}. Leave out all but one of a group, or clone() the others; save_pretrained knows which weights of a model "
      "are "
      "tied",
      fmt::join(groups, ", ")));
}

// Calls put(pointer, bytes) with the parts of the file in order.
template <class Put>
void write_parts(const NamedTensors& tensors, const std::optional<SafetensorsMetadata>& metadata, SharedTensors shared,
                 Put&& put) {
  const std::vector<Item> items = in_file_order(tensors);
  if (shared == SharedTensors::refused) check_nothing_shared(tensors);
  const std::string header = header_of(items, metadata);
  const uint64_t length = header.size();
  put(&length, sizeof length);
  put(header.data(), header.size());
  constexpr size_t piece_bytes = size_t{1} << 20;
  std::vector<std::byte> buffer;
  for (const Item& item : items) {
    const size_t element = static_cast<size_t>(item.tensor->element_size());
    if (!item.tensor->is_contiguous()) buffer.resize(piece_bytes);
    RowMajorReader reader(*item.tensor);
    while (reader.remaining() > 0) {
      const size_t count = std::min(reader.remaining(), piece_bytes / element);
      put(reader.next(buffer.data(), count), count * element);
    }
  }
}

}  // namespace

void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const std::optional<SafetensorsMetadata>& metadata, bool sync, SharedTensors shared) {
  // Opened at the first bytes: what the caller got wrong is found before anything is created.
  std::optional<FileWriter> file;
  write_parts(tensors, metadata, shared, [&](const void* data, size_t nbytes) {
    if (!file) file.emplace(path);
    file->write(data, nbytes);
  });
  file->commit(sync);
}

std::vector<std::byte> serialize_safetensors(const NamedTensors& tensors, const std::optional<SafetensorsMetadata>& metadata,
                                             SharedTensors shared) {
  std::vector<std::byte> out;
  write_parts(tensors, metadata, shared, [&](const void* data, size_t nbytes) {
    const auto* bytes = static_cast<const std::byte*>(data);
    out.insert(out.end(), bytes, bytes + nbytes);
  });
  return out;
}

std::vector<SharedMemory> find_shared_memory(const NamedTensors& tensors) {
  struct Extent {
    uintptr_t begin, end;
    const std::string* name;
    const Tensor* tensor;
  };
  std::vector<Extent> extents;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined() || tensor.is_fake() || !tensor.storage()->has_data() || tensor.numel() == 0) continue;
    int64_t last = 0;
    for (int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
    const auto begin = reinterpret_cast<uintptr_t>(tensor.data());
    extents.push_back({begin, begin + static_cast<uintptr_t>((last + 1) * tensor.element_size()), &name, &tensor});
  }
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::tie(a.begin, a.end, *a.name) < std::tie(b.begin, b.end, *b.name);
  });

  std::vector<SharedMemory> out;
  for (size_t first = 0; first < extents.size();) {
    size_t after = first + 1;
    for (uintptr_t end = extents[first].end; after < extents.size() && extents[after].begin < end; ++after)
      end = std::max(end, extents[after].end);
    if (after - first > 1) {
      std::vector<Extent> members(extents.begin() + static_cast<ptrdiff_t>(first),
                                  extents.begin() + static_cast<ptrdiff_t>(after));
      std::sort(members.begin(), members.end(), [](const Extent& a, const Extent& b) { return *a.name < *b.name; });
      SharedMemory group;
      group.identical = true;
      const Extent& one = members.front();
      for (const Extent& m : members) {
        group.names.push_back(*m.name);
        const auto same_list = [](IntList a, IntList b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); };
        group.identical &= m.begin == one.begin && m.tensor->dtype() == one.tensor->dtype() &&
                           same_list(m.tensor->sizes(), one.tensor->sizes()) &&
                           same_list(m.tensor->strides(), one.tensor->strides());
        if (!group.complete && m.tensor->is_contiguous() && m.tensor->nbytes() == m.tensor->storage()->nbytes())
          group.complete = *m.name;
      }
      out.push_back(std::move(group));
    }
    first = after;
  }
  std::sort(out.begin(), out.end(),
            [](const SharedMemory& a, const SharedMemory& b) { return a.names.front() < b.names.front(); });
  return out;
}

}  // namespace calque
