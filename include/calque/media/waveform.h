// Waveform: the samples of a sound file, one channel, float32 in [-1, 1], as torchaudio.load and libsndfile give them; several channels
// become their mean. WAV files of PCM and floating point need no library, FLAC, Ogg and others need libsndfile. Files are refused from their
// header when they last longer than allowed; samples are counted against the limit on memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "calque/base/memory.h"

namespace calque {

struct Waveform {
  int64_t rate = 0;  // samples a second
  CountedVector<float> samples;
};

struct WaveformOptions {
  double max_seconds = 6 * 3600;
};

// UserError (bad_file) names `what`.
Waveform decode_waveform(std::span<const std::byte> bytes, const std::string& what, const WaveformOptions& options = {});
Waveform load_waveform(const std::string& path, const WaveformOptions& options = {});

// As torchaudio.functional.resample by default: sinc interpolation in a Hann window, 6 zero crossings wide, rolled off at 0.99.
// The kernel is computed in float64.
Waveform resampled(const Waveform& waveform, int64_t rate);

}  // namespace calque
