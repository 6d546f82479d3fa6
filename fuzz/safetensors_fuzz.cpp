// Any bytes as a safetensors file: opened, it must be consistent and round-trip; otherwise one UserError, nothing else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "calque/base/error.h"
#include "calque/file/compare.h"
#include "calque/file/safetensors.h"

using namespace calque;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of its own at an aligned address, as a mapped file is; reading past its end is seen.
  auto owner = std::make_shared<std::vector<std::byte>>(size);
  for (size_t i = 0; i < size; ++i) (*owner)[i] = static_cast<std::byte>(data[i]);
  try {
    const SafetensorsFile file = SafetensorsFile::from_bytes(*owner, owner, "fuzz");
    bool packed = false;
    for (const auto& e : file.entries()) packed |= !e.dtype;
    if (packed) return 0;
    const NamedTensors tensors = file.tensors();
    auto again = std::make_shared<std::vector<std::byte>>(serialize_safetensors(tensors, file.metadata()));
    const SafetensorsFile copy = SafetensorsFile::from_bytes(*again, again, "copy");
    if (copy.names() != file.names() || copy.metadata() != file.metadata()) std::abort();
    SameOptions options;
    options.tol = 0;
    options.equal_nan = true;
    if (!compare_files(file, copy, nullptr, options).same) std::abort();
    for (const auto& [name, t] : tensors)
      if (t.dim() > 0) {
        const Tensor part = file.slice(name, {SafetensorsFile::Range{1, -1, 2}});
        if (serialize_safetensors({{name, part}}).empty()) std::abort();
      }
    find_shared_memory(tensors);
  } catch (const UserError&) {
  }
  return 0;
}
