// What each library reads or writes. The files in codec/ call the libraries; where one is absent, the file of its name in absent/ takes its
// place and refuses (cmake/CalqueMedia.cmake chooses).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "calque/media/picture.h"
#include "calque/media/waveform.h"

namespace calque {

// What a library allocates by itself.
class MemoryClaim {
 public:
  explicit MemoryClaim(size_t bytes) : bytes_(bytes) { claim_memory(bytes); }
  ~MemoryClaim() { release_memory(bytes_); }
  MemoryClaim(const MemoryClaim&) = delete;
  MemoryClaim& operator=(const MemoryClaim&) = delete;

 private:
  size_t bytes_;
};

struct PictureSource {
  std::span<const std::byte> bytes;
  const std::string& what;
  const PictureOptions& options;

  [[noreturn]] void fail(const std::string& why) const;  // UserError (bad_file)
  // Before anything is allocated for the pixels.
  void check_size(uint64_t width, uint64_t height) const;
};

struct DecodedPicture {
  Picture picture;
  std::string exif, xmp;  // as the file has them; empty: none
};

DecodedPicture decode_png(const PictureSource& source);
DecodedPicture decode_jpeg(const PictureSource& source);
DecodedPicture decode_webp(const PictureSource& source);
// The whole file.
CountedVector<uint8_t> encode_png(const Picture& picture);

struct SoundSource {
  std::span<const std::byte> bytes;
  const std::string& what;
  const WaveformOptions& options;

  [[noreturn]] void fail(const std::string& why) const;
  void check_length(uint64_t frames, uint64_t rate, uint64_t channels) const;
};

// The mean of the channels of each frame, in float32.
void append_mean(const float* frames, size_t count, size_t channels, CountedVector<float>& out);
// Nothing where it is no FLAC, or there is no libFLAC.
bool decode_flac(const SoundSource& source, Waveform& out);
// Ogg and whatever else libsndfile reads.
Waveform decode_with_sndfile(const SoundSource& source);
// PCM and floating point WAV; nothing for other encodings.
bool decode_wav(const SoundSource& source, Waveform& out);

// The error of a build without a library.
[[noreturn]] void library_absent(const std::string& what, const char* reads, const char* library, const char* package);

}  // namespace calque
