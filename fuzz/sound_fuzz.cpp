// Any bytes as a sound: samples of the length that was allowed, or one UserError. A FLAC frame has sums at the ends of its header and of
// itself, and libFLAC reads no further than a wrong one: the mutator writes them anew, so that what is changed inside is read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "calque/base/error.h"
#include "calque/media/waveform.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

// The remainder of the bytes as a polynomial, of `bits` bits.
unsigned remainder(const uint8_t* data, size_t size, unsigned polynomial, unsigned bits) {
  unsigned sum = 0;
  for (size_t i = 0; i < size; ++i) {
    sum ^= static_cast<unsigned>(data[i]) << (bits - 8);
    for (int k = 0; k < 8; ++k) sum = sum >> (bits - 1) & 1 ? sum << 1 ^ polynomial : sum << 1;
  }
  return sum & ((1u << bits) - 1);
}

bool begins_frame(const uint8_t* data, size_t size) { return size >= 6 && data[0] == 0xFF && (data[1] & 0xFE) == 0xF8; }

// Of a frame's header without its sum: four bytes, the frame's number as in UTF-8, and sizes that the codes say follow.
size_t header_bytes(const uint8_t* frame) {
  size_t number = 1;
  while (number < 7 && (frame[4] << number & 0x80) != 0) ++number;
  const int block = frame[2] >> 4, rate = frame[2] & 15;
  return 4 + (frame[4] < 0x80 ? 1 : number) +
         (block == 6   ? 1u
          : block == 7 ? 2u
                       : 0u) +
         (rate == 12                 ? 1u
          : rate == 13 || rate == 14 ? 2u
                                     : 0u);
}

void sum_frames(uint8_t* data, size_t size) {
  for (size_t at = 0, end; at + 6 <= size; at = end) {
    end = at + 1;
    if (!begins_frame(data + at, size - at)) continue;
    while (end < size && !begins_frame(data + end, size - end)) ++end;
    const size_t header = header_bytes(data + at);
    if (end - at < header + 3) continue;
    data[at + header] = static_cast<uint8_t>(remainder(data + at, header, 0x07, 8));
    const unsigned sum = remainder(data + at, end - at - 2, 0x8005, 16);
    data[end - 2] = static_cast<uint8_t>(sum >> 8);
    data[end - 1] = static_cast<uint8_t>(sum);
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  constexpr char mark[] = {'f', 'L', 'a', 'C'};
  if (seed % 4 != 0 && size > 4 && std::memcmp(data, mark, 4) == 0) sum_frames(data, size);
  return size;
}

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
