#include "media/spectrogram.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "calque/base/error.h"
#include "calque/base/thread.h"
#include "kernel/cpu/simd/isa_table.h"

namespace calque {

CALQUE_ISA_ARRAY(MelFramesKernel, mel_frames_kernel)

namespace {

double mel_of(double hertz, MelScale scale) {
  if (scale == MelScale::kaldi) return 1127 * std::log(1 + hertz / 700);
  return hertz < 1000 ? 3 * hertz / 200 : 15 + std::log(hertz / 1000) * (27 / std::log(6.4));
}

double hertz_of(double mel, MelScale scale) {
  if (scale == MelScale::kaldi) return 700 * (std::exp(mel / 1127) - 1);
  return mel < 15 ? 200 * mel / 3 : 1000 * std::exp(std::log(6.4) / 27 * (mel - 15));
}

// The place i of a signal that is mirrored at its ends, without them standing twice.
int64_t mirrored(int64_t i, int64_t length) {
  if (length == 1) return 0;
  const int64_t period = 2 * (length - 1);
  i = ((i % period) + period) % period;
  return i < length ? i : period - i;
}

// One frame as the transform takes it, beside seven others; false where it is silence.
bool cut_frame(std::span<const float> waveform, double scale, const Frames& frames, int64_t number, double* frame,
               double* out) {
  const auto length = static_cast<int64_t>(waveform.size());
  const int64_t start = number * frames.hop - (frames.centred ? frames.length / 2 : 0);
  const bool whole = start >= 0 && start + frames.length <= length;
  double sum = 0;
  bool sounds = false;
  for (int64_t i = 0; i < frames.length; ++i) {
    const int64_t at = whole ? start + i : mirrored(start + i, length);
    frame[i] = static_cast<double>(waveform[static_cast<size_t>(at)]) * scale;
    sounds |= frame[i] != 0;
    sum += frame[i];
  }
  if (!sounds) return false;
  if (frames.remove_mean)
    for (int64_t i = 0; i < frames.length; ++i) frame[i] -= sum / static_cast<double>(frames.length);
  if (frames.preemphasis != 0) {
    for (int64_t i = frames.length - 1; i > 0; --i) frame[i] -= frames.preemphasis * frame[i - 1];
    frame[0] *= 1 - frames.preemphasis;
  }
  for (int64_t i = 0; i < frames.length; ++i) out[i * frames_at_once] = frame[i] * frames.window[static_cast<size_t>(i)];
  return true;
}

struct TransformPlan {
  std::vector<int64_t> factors;  // of half the length
  std::vector<double> roots;     // cos and -sin of 2 pi i / length

  explicit TransformPlan(int64_t length) {
    int64_t rest = length / 2;
    for (const int64_t p : {5, 4, 3, 2})
      for (; rest % p == 0; rest /= p) factors.push_back(p);
    if (length % 2 != 0 || rest != 1)
      throw UserError("a transform of " + std::to_string(length) +
                      " samples is not computed; expected twice a product of 2, 3 and 5");
    for (int64_t i = 0; i <= length; ++i) {
      const long double angle =
          2 * std::numbers::pi_v<long double> * static_cast<long double>(i) / static_cast<long double>(length);
      roots.push_back(static_cast<double>(std::cos(angle))), roots.push_back(static_cast<double>(-std::sin(angle)));
    }
  }
};

}  // namespace

MelFilters::MelFilters(const Options& o) {
  const double low = mel_of(o.lowest, o.scale), high = mel_of(o.highest, o.scale);
  const bool in_mels = o.scale == MelScale::kaldi;
  std::vector<double> edges, bins;
  for (int64_t i = 0; i < o.filters + 2; ++i) {
    const double mel =
        i == o.filters + 1 ? high : low + (high - low) / static_cast<double>(o.filters + 1) * static_cast<double>(i);
    edges.push_back(in_mels ? mel : hertz_of(mel, o.scale));
  }
  const double width = static_cast<double>(in_mels ? o.rate : o.rate / 2 * 2) / static_cast<double>((o.bins - 1) * 2);
  for (int64_t i = 0; i < o.bins; ++i) {
    const double hertz = width * static_cast<double>(i);
    bins.push_back(in_mels ? mel_of(hertz, o.scale) : hertz);
  }
  for (size_t f = 0; f < static_cast<size_t>(o.filters); ++f) {
    const double area = in_mels ? 1 : 2 / (edges[f + 2] - edges[f]);
    MelSpan span{o.bins, std::ssize(weights_), 0};
    for (size_t b = 0; b < bins.size(); ++b) {
      const double up = (bins[b] - edges[f]) / (edges[f + 1] - edges[f]);
      const double down = (edges[f + 2] - bins[b]) / (edges[f + 2] - edges[f + 1]);
      const double weight = std::min(up, down);
      if (weight <= 0) continue;
      span.first = std::min(span.first, static_cast<int64_t>(b));
      weights_.push_back(weight * area);
      ++span.count;
    }
    spans_.push_back(span);
  }
}

CountedVector<double> log_mel(std::span<const float> waveform, double scale, const Frames& frames, const MelFilters& filters,
                              int64_t count, double floor, MelLog log) {
  const TransformPlan plan(frames.fft);
  CountedVector<double> out(static_cast<size_t>(count * filters.count()));
  const double silence = log == MelLog::ten ? std::log10(floor) : std::log(floor);
  parallel_for(0, (count + frames_at_once - 1) / frames_at_once, 4, [&](int64_t first_block, int64_t last_block) {
    CountedVector<double> frame(static_cast<size_t>(frames.length));
    CountedVector<double> samples(static_cast<size_t>(frames.fft * frames_at_once)),
        logs(static_cast<size_t>(filters.count() * frames_at_once));
    CountedVector<double> work(static_cast<size_t>((frames.fft + 2) * frames_at_once)), other(work.size());
    const MelFramesJob job{frames.fft,
                           plan.factors.data(),
                           std::ssize(plan.factors),
                           plan.roots.data(),
                           samples.data(),
                           work.data(),
                           other.data(),
                           filters.spans().data(),
                           filters.count(),
                           filters.weights().data(),
                           floor,
                           log == MelLog::ten,
                           logs.data()};
    for (int64_t block = first_block; block < last_block; ++block) {
      const int64_t begin = block * frames_at_once, used = std::min(count - begin, frames_at_once);
      std::ranges::fill(samples, 0.0);
      bool sounds = false;
      for (int64_t i = 0; i < used; ++i)
        sounds |= cut_frame(waveform, scale, frames, begin + i, frame.data(), samples.data() + i);
      double* const rows = out.data() + begin * filters.count();
      if (!sounds) {
        std::fill_n(rows, used * filters.count(), silence);
        continue;
      }
      mel_frames_kernel()->run(job);
      for (int64_t i = 0; i < used; ++i)
        for (int64_t f = 0; f < filters.count(); ++f)
          rows[i * filters.count() + f] = logs[static_cast<size_t>(f * frames_at_once + i)];
    }
  });
  return out;
}

}  // namespace calque
