#include "calque/media/waveform.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "calque/base/error.h"
#include "calque/base/thread.h"
#include "calque/file/mapped_file.h"
#include "media/codec/codec.h"

namespace calque {

void SoundSource::fail(const std::string& why) const { throw UserError(ErrorKind::bad_file, what + ": " + why); }

void SoundSource::check_length(uint64_t frames, uint64_t rate, uint64_t channels) const {
  if (rate == 0 || rate > 10'000'000 || channels == 0 || channels > 1024)
    fail("a sound of " + std::to_string(channels) + " channels at " + std::to_string(rate) +
         " samples a second; expected at most 1024 channels and 10,000,000 samples a second");
  const double seconds = static_cast<double>(frames) / static_cast<double>(rate);
  if (seconds > options.max_seconds)
    fail("a sound of " + std::to_string(std::llround(seconds)) + " seconds; at most " +
         std::to_string(std::llround(options.max_seconds)) +
         " are read (raise the limit with --max-seconds or WaveformOptions::max_seconds)");
}

void append_mean(const float* frames, size_t count, size_t channels, CountedVector<float>& out) {
  if (channels == 1) {
    out.insert(out.end(), frames, frames + count);
    return;
  }
  for (size_t i = 0; i < count; ++i)
    out.push_back(std::accumulate(frames + i * channels, frames + (i + 1) * channels, 0.0f) / static_cast<float>(channels));
}

Waveform decode_waveform(std::span<const std::byte> bytes, const std::string& what, const WaveformOptions& options) {
  const SoundSource source{bytes, what, options};
  Waveform out;
  if (!decode_wav(source, out) && !decode_flac(source, out)) out = decode_with_sndfile(source);
  if (out.samples.empty()) source.fail("a sound without samples");
  return out;
}

Waveform load_waveform(const std::string& path, const WaveformOptions& options) {
  return decode_waveform(MappedFile::open(path)->bytes(), path, options);
}

namespace {

// The weights of one of the places that an output sample can have between input samples.
struct Phase {
  int64_t first = 0;  // of the input, from the start of its block
  size_t begin = 0, count = 0;
};

struct SincKernel {
  std::vector<Phase> phases;
  CountedVector<double> weights;

  SincKernel(int64_t from, int64_t to) {
    constexpr double crossings = 6, rolloff = 0.99;
    const double base = static_cast<double>(std::min(from, to)) * rolloff;
    const auto width = static_cast<int64_t>(std::ceil(crossings * static_cast<double>(from) / base));
    phases.resize(static_cast<size_t>(to));
    for (int64_t p = 0; p < to; ++p) {
      Phase& phase = phases[static_cast<size_t>(p)];
      // Where the window is not zero: |t| < crossings.
      const double centre = static_cast<double>(p) * static_cast<double>(from) / static_cast<double>(to);
      const double reach = crossings * static_cast<double>(from) / base;
      phase.first = std::max(-width, static_cast<int64_t>(std::floor(centre - reach)));
      const int64_t last = std::min(width + from - 1, static_cast<int64_t>(std::ceil(centre + reach)));
      phase.begin = weights.size();
      for (int64_t k = phase.first; k <= last; ++k) {
        double t =
            (static_cast<double>(k) / static_cast<double>(from) - static_cast<double>(p) / static_cast<double>(to)) * base;
        t = std::clamp(t, -crossings, crossings);
        const double window = std::cos(t * std::numbers::pi / crossings / 2);
        const double angle = t * std::numbers::pi;
        weights.push_back((angle == 0 ? 1 : std::sin(angle) / angle) * window * window * base / static_cast<double>(from));
      }
      phase.count = weights.size() - phase.begin;
    }
  }
};

}  // namespace

Waveform resampled(const Waveform& waveform, int64_t rate) {
  if (rate < 1 || rate > 10'000'000 || waveform.rate < 1)
    throw UserError("resample: from " + std::to_string(waveform.rate) + " to " + std::to_string(rate) +
                    " samples a second; both have to be between 1 and 10,000,000");
  if (rate == waveform.rate) return waveform;
  const int64_t common = std::gcd(waveform.rate, rate), from = waveform.rate / common, to = rate / common;
  const SincKernel kernel(from, to);
  const auto length = static_cast<int64_t>(waveform.samples.size());
  Waveform out;
  out.rate = rate;
  out.samples.resize(static_cast<size_t>((length * to + from - 1) / from));
  parallel_for(0, std::ssize(out.samples), 4096, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      const Phase& phase = kernel.phases[static_cast<size_t>(j % to)];
      const double* const weights = kernel.weights.data() + phase.begin;
      const int64_t start = j / to * from + phase.first;
      double sum = 0;
      const int64_t last = std::min<int64_t>(static_cast<int64_t>(phase.count), length - start);
      for (int64_t k = std::max<int64_t>(0, -start); k < last; ++k)
        sum += weights[k] * static_cast<double>(waveform.samples[static_cast<size_t>(start + k)]);
      out.samples[static_cast<size_t>(j)] = static_cast<float>(sum);
    }
  });
  return out;
}

}  // namespace calque
