// Any bytes as a zip archive: its entries lie inside the bytes or are inflated whole, or one UserError. Looked at without inflating
// it has the same names.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "calque/base/error.h"
#include "calque/file/zip.h"
#include "file/file_format.h"

using namespace calque;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<uint8_t> copy(data, data + size);
  const auto bytes = std::as_bytes(std::span(copy));
  if (format_name(format_of(bytes)).empty()) std::abort();  // what a file is can be told of any bytes
  try {
    const ZipReader zip(bytes, "fuzz");
    const uint64_t zip_limit = std::max<uint64_t>(ZipReader::always_inflated, ZipReader::max_ratio * (bytes.size() + 1));
    const ZipReader names(bytes, "fuzz", ZipContent::stored);
    if (names.entries().size() != zip.entries().size()) std::abort();
    unsigned sum = 0;
    for (const ZipEntry& e : zip.entries()) {
      if (e.inflated && zip_limit < e.data.size()) std::abort();
      if (!e.inflated && !e.data.empty() &&
          (e.data.data() < bytes.data() || e.data.data() + e.data.size() > bytes.data() + bytes.size()))
        std::abort();
      // Overlapping entries may claim the same bytes many times over; the ends are enough.
      if (!e.data.empty()) sum += static_cast<unsigned>(e.data.front()) + static_cast<unsigned>(e.data.back());
      if (!zip.find(e.name)) std::abort();
    }
    volatile unsigned keep = sum;
    (void)keep;
  } catch (const UserError&) {
  }
  return 0;
}
