// FLAC by libFLAC, from memory.
#include <FLAC/stream_decoder.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <vector>

#include "media/codec/codec.h"

namespace calque {
namespace {

constexpr size_t flac_decoder_bytes = size_t{8} << 20;  // of a block of the most channels and samples

struct FlacReading {
  const SoundSource& source;
  Waveform out = {};
  size_t at = 0;
  uint64_t promised = 0;
  std::string broken = {};
  std::exception_ptr thrown = nullptr;  // nothing may be thrown through libFLAC
};

FLAC__StreamDecoderReadStatus flac_read(const FLAC__StreamDecoder*, FLAC__byte to[], size_t* count, void* user) {
  auto& reading = *static_cast<FlacReading*>(user);
  *count = std::min(*count, reading.source.bytes.size() - reading.at);
  if (*count == 0) return FLAC__STREAM_DECODER_READ_STATUS_END_OF_STREAM;
  std::memcpy(to, reading.source.bytes.data() + reading.at, *count);
  reading.at += *count;
  return FLAC__STREAM_DECODER_READ_STATUS_CONTINUE;
}

void take_block(FlacReading& reading, const FLAC__FrameHeader& header, const FLAC__int32* const channels[]) {
  Waveform& out = reading.out;
  if (out.rate == 0) out.rate = header.sample_rate;
  if (out.rate != static_cast<int64_t>(header.sample_rate)) reading.source.fail("a broken sound file: its rate changes");
  reading.source.check_length(out.samples.size() + header.blocksize, header.sample_rate, header.channels);
  const auto scale = static_cast<float>(std::ldexp(1.0, 1 - static_cast<int>(header.bits_per_sample)));
  std::vector<float> frames;
  frames.reserve(size_t{header.blocksize} * header.channels);
  for (size_t i = 0; i < header.blocksize; ++i)
    for (size_t c = 0; c < header.channels; ++c) frames.push_back(static_cast<float>(channels[c][i]) * scale);
  append_mean(frames.data(), header.blocksize, header.channels, out.samples);
}

FLAC__StreamDecoderWriteStatus flac_write(const FLAC__StreamDecoder*, const FLAC__Frame* frame,
                                          const FLAC__int32* const channels[], void* user) {
  auto& reading = *static_cast<FlacReading*>(user);
  try {
    take_block(reading, frame->header, channels);
    return FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE;
  } catch (...) {
    reading.thrown = std::current_exception();
    return FLAC__STREAM_DECODER_WRITE_STATUS_ABORT;
  }
}

void flac_metadata(const FLAC__StreamDecoder*, const FLAC__StreamMetadata* metadata, void* user) {
  auto& reading = *static_cast<FlacReading*>(user);
  if (metadata->type != FLAC__METADATA_TYPE_STREAMINFO || reading.thrown) return;
  const FLAC__StreamMetadata_StreamInfo& info = metadata->data.stream_info;
  reading.promised = info.total_samples;
  try {
    reading.source.check_length(info.total_samples, info.sample_rate, info.channels);
  } catch (...) {
    reading.thrown = std::current_exception();
  }
}

void flac_error(const FLAC__StreamDecoder*, FLAC__StreamDecoderErrorStatus status, void* user) {
  static_cast<FlacReading*>(user)->broken = FLAC__StreamDecoderErrorStatusString[status];
}

}  // namespace

bool decode_flac(const SoundSource& source, Waveform& out) {
  constexpr char mark[] = {'f', 'L', 'a', 'C'};
  if (source.bytes.size() < sizeof mark || std::memcmp(source.bytes.data(), mark, sizeof mark) != 0) return false;
  const MemoryClaim claim(flac_decoder_bytes);
  FlacReading reading{source};
  const std::unique_ptr<FLAC__StreamDecoder, decltype(&FLAC__stream_decoder_delete)> decoder(FLAC__stream_decoder_new(),
                                                                                             &FLAC__stream_decoder_delete);
  if (!decoder ||
      FLAC__stream_decoder_init_stream(decoder.get(), flac_read, nullptr, nullptr, nullptr, nullptr, flac_write,
                                       flac_metadata, flac_error, &reading) != FLAC__STREAM_DECODER_INIT_STATUS_OK)
    source.fail("libFLAC does not start");
  bool goes_on = FLAC__stream_decoder_process_until_end_of_metadata(decoder.get()) != 0;
  if (goes_on && !reading.thrown && reading.broken.empty())
    goes_on = FLAC__stream_decoder_process_until_end_of_stream(decoder.get()) != 0;
  if (reading.thrown) std::rethrow_exception(reading.thrown);
  if (!goes_on && reading.broken.empty()) reading.broken = FLAC__stream_decoder_get_resolved_state_string(decoder.get());
  if (!reading.broken.empty()) source.fail("a broken sound file: " + reading.broken);
  if (reading.out.samples.size() < reading.promised)
    source.fail("a broken sound file: its header promises " + std::to_string(reading.promised) + " samples, " +
                std::to_string(reading.out.samples.size()) + " can be read");
  out = std::move(reading.out);
  return true;
}

}  // namespace calque
