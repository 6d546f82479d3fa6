// Any bytes as a sound: samples of the length that was allowed, or one UserError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "calque/base/error.h"
#include "calque/media/waveform.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<uint8_t> copy(data, data + size);
  calque::WaveformOptions options;
  options.max_seconds = 5;
  try {
    const calque::Waveform waveform = calque::decode_waveform(std::as_bytes(std::span(copy)), "fuzz", options);
    if (waveform.rate < 1 || waveform.samples.empty() ||
        static_cast<double>(waveform.samples.size()) > options.max_seconds * static_cast<double>(waveform.rate))
      std::abort();
    if (waveform.samples.size() < 100000 && waveform.rate >= 1000 && waveform.rate < 100000)
      calque::resampled(waveform, 16000);
  } catch (const calque::UserError&) {
  }
  return 0;
}
