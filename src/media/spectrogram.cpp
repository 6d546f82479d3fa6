#include "media/spectrogram.h"

#include <algorithm>
#include <cmath>

#include "calque/base/thread.h"
#include "calque/op/aten/factories.h"
#include "calque/op/tensor.h"
#include "kernel/cpu/transform/fft.h"

namespace calque {
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

// One frame as the transform takes it; false where it is silence.
bool cut_frame(std::span<const float> waveform, double scale, const Frames& frames, int64_t number, double* out) {
  const auto length = static_cast<int64_t>(waveform.size());
  const int64_t start = number * frames.hop - (frames.centred ? frames.length / 2 : 0);
  bool sounds = false;
  if (start >= 0 && start + frames.length <= length)
    for (int64_t i = 0; i < frames.length; ++i) out[i] = waveform[static_cast<size_t>(start + i)];
  else
    for (int64_t i = 0; i < frames.length; ++i) out[i] = waveform[static_cast<size_t>(mirrored(start + i, length))];
  for (int64_t i = 0; i < frames.length; ++i) sounds |= out[i] != 0;
  if (!sounds) return false;
  double sum = 0;
  for (int64_t i = 0; i < frames.length; ++i) sum += out[i] *= scale;
  if (frames.remove_mean)
    for (int64_t i = 0; i < frames.length; ++i) out[i] -= sum / static_cast<double>(frames.length);
  if (frames.preemphasis != 0) {
    for (int64_t i = frames.length - 1; i > 0; --i) out[i] -= frames.preemphasis * out[i - 1];
    out[0] *= 1 - frames.preemphasis;
  }
  for (int64_t i = 0; i < frames.length; ++i) out[i] *= frames.window[static_cast<size_t>(i)];
  std::fill(out + frames.length, out + frames.fft, 0.0);
  return true;
}

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
    Span span{bins.size(), weights_.size(), 0};
    for (size_t b = 0; b < bins.size(); ++b) {
      const double up = (bins[b] - edges[f]) / (edges[f + 1] - edges[f]);
      const double down = (edges[f + 2] - bins[b]) / (edges[f + 2] - edges[f + 1]);
      const double weight = std::min(up, down);
      if (weight <= 0) continue;
      span.first = std::min(span.first, b);
      weights_.push_back(weight * area);
      ++span.count;
    }
    spans_.push_back(span);
  }
}

void MelFilters::apply(const double* power, double* out) const {
  for (size_t f = 0; f < spans_.size(); ++f) {
    double sum = 0;
    for (size_t i = 0; i < spans_[f].count; ++i) sum += power[spans_[f].first + i] * weights_[spans_[f].begin + i];
    out[f] = sum;
  }
}

CountedVector<double> log_mel(std::span<const float> waveform, double scale, const Frames& frames, const MelFilters& filters,
                              int64_t count, double floor, double (*log)(double)) {
  CountedVector<double> out(static_cast<size_t>(count * filters.count()));
  const double silence = log(floor);
  constexpr int64_t at_once = 64;
  const int64_t bins = frames.fft / 2 + 1;
  parallel_for(0, (count + at_once - 1) / at_once, 1, [&](int64_t first_block, int64_t last_block) {
    const Tensor cut = empty({at_once, frames.fft}, DType::float64), spectrum = empty({at_once, bins}, DType::complex128);
    std::vector<double> power(static_cast<size_t>(bins));
    std::vector<int64_t> sounding;
    for (int64_t block = first_block; block < last_block; ++block) {
      sounding.clear();
      for (int64_t t = block * at_once; t < std::min(count, (block + 1) * at_once); ++t) {
        double* const place = cut.mutable_data_as<double>() + static_cast<int64_t>(sounding.size()) * frames.fft;
        if (cut_frame(waveform, scale, frames, t, place))
          sounding.push_back(t);
        else
          std::fill_n(out.begin() + t * filters.count(), filters.count(), silence);
      }
      if (sounding.empty()) continue;
      const auto used = static_cast<int64_t>(sounding.size());
      kernel::fft_real(cut.narrow(0, 0, used), IntList({1}), 1.0, spectrum.narrow(0, 0, used));
      const auto* values = static_cast<const double*>(spectrum.data());
      for (size_t i = 0; i < sounding.size(); ++i) {
        for (int64_t b = 0; b < bins; ++b) {
          const double* const z = values + 2 * (static_cast<int64_t>(i) * bins + b);
          power[static_cast<size_t>(b)] = z[0] * z[0] + z[1] * z[1];
        }
        double* const row = out.data() + sounding[i] * filters.count();
        filters.apply(power.data(), row);
        for (int64_t f = 0; f < filters.count(); ++f) row[f] = log(std::max(row[f], floor));
      }
    }
  });
  return out;
}

}  // namespace calque
