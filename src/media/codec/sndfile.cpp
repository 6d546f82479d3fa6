// Sound by libsndfile, from memory.
#include <sndfile.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "media/codec/codec.h"

namespace calque {
namespace {

struct SoundBytes {
  std::span<const std::byte> bytes;
  sf_count_t at = 0;
  sf_count_t size() const { return static_cast<sf_count_t>(bytes.size()); }
};

sf_count_t sound_size(void* user) { return static_cast<SoundBytes*>(user)->size(); }

sf_count_t sound_seek(sf_count_t offset, int whence, void* user) {
  auto& sound = *static_cast<SoundBytes*>(user);
  const sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? sound.at : sound.size();
  if (offset < -from || offset > sound.size() - from) return -1;
  return sound.at = from + offset;
}

sf_count_t sound_read(void* to, sf_count_t count, void* user) {
  auto& sound = *static_cast<SoundBytes*>(user);
  count = std::clamp<sf_count_t>(count, 0, sound.size() - sound.at);
  if (count > 0) std::memcpy(to, sound.bytes.data() + sound.at, static_cast<size_t>(count));
  sound.at += count;
  return count;
}

sf_count_t sound_write(const void*, sf_count_t, void*) { return 0; }
sf_count_t sound_tell(void* user) { return static_cast<SoundBytes*>(user)->at; }

}  // namespace

Waveform decode_with_sndfile(const SoundSource& source) {
  SoundBytes bytes{source.bytes};
  SF_VIRTUAL_IO io{sound_size, sound_seek, sound_read, sound_write, sound_tell};
  SF_INFO info = {};
  const std::unique_ptr<SNDFILE, decltype(&sf_close)> file(sf_open_virtual(&io, SFM_READ, &info, &bytes), &sf_close);
  if (!file) source.fail(std::string("no sound that libsndfile reads: ") + sf_strerror(nullptr));
  if (info.frames < 0 || info.samplerate <= 0 || info.channels <= 0)
    source.fail("a broken sound file: no rate or no channels");
  const auto channels = static_cast<size_t>(info.channels);
  // A stream may not say how long it is: the limit holds while it is read.
  source.check_length(info.frames == SF_COUNT_MAX ? 0 : static_cast<uint64_t>(info.frames),
                      static_cast<uint64_t>(info.samplerate), channels);
  Waveform out;
  out.rate = info.samplerate;
  const sf_count_t step = std::max<sf_count_t>(1, 65536 / info.channels);
  CountedVector<float> frames(static_cast<size_t>(step) * channels);
  for (;;) {
    const sf_count_t read = sf_readf_float(file.get(), frames.data(), step);
    if (read <= 0) break;
    source.check_length(out.samples.size() + static_cast<size_t>(read), static_cast<uint64_t>(info.samplerate), channels);
    append_mean(frames.data(), static_cast<size_t>(read), channels, out.samples);
  }
  if (sf_error(file.get()) != SF_ERR_NO_ERROR) source.fail(std::string("a broken sound file: ") + sf_strerror(file.get()));
  if (info.frames != SF_COUNT_MAX && out.samples.size() < static_cast<size_t>(info.frames))
    source.fail("a broken sound file: its header promises " + std::to_string(info.frames) + " samples, " +
                std::to_string(out.samples.size()) + " can be read");
  return out;
}

}  // namespace calque
