// Any text as the settings of an image processor, and a small picture through it: floats or bytes of one shape, or one UserError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "calque/base/error.h"
#include "calque/base/memory.h"
#include "calque/media/image_processor.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  calque::set_memory_limit(size_t{64} << 20);
  try {
    const calque::ImageProcessor processor =
        calque::ImageProcessor::from_json({reinterpret_cast<const char*>(data), size}, "fuzz");
    const calque::Tensor out = processor.process(calque::Picture(5, 7, 3));
    if (out.dim() != 4 || out.size(0) != 1 || out.size(1) != 3) std::abort();
  } catch (const calque::UserError&) {
  }
  return 0;
}
