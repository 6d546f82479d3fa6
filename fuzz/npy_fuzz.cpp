// Any bytes as a .npy file: read, the tensor must be written as a file that reads the same; otherwise one UserError, nothing else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "calque/base/error.h"
#include "calque/file/npy.h"

using namespace calque;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data),
                                     reinterpret_cast<const std::byte*>(data) + size);
  try {
    const Tensor tensor = read_npy(bytes, "fuzz");
    const std::vector<std::byte> written = serialize_npy(tensor);
    if (serialize_npy(read_npy(written, "copy")) != written) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
