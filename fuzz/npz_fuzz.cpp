// Any bytes as a .npz file: read, the arrays must be written as a file that reads the same; otherwise one UserError, nothing else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "calque/base/error.h"
#include "calque/file/npz.h"

using namespace calque;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data),
                                     reinterpret_cast<const std::byte*>(data) + size);
  NamedArrays arrays;
  try {
    arrays = read_npz(bytes, "fuzz");
  } catch (const UserError&) {
    return 0;
  }
  try {
    const std::vector<std::byte> written = serialize_npz(arrays);
    if (serialize_npz(read_npz(written, "copy")) != written) std::abort();
  } catch (const UserError&) {
    // A name that a writer refuses.
  }
  return 0;
}
