// Spectrograms in float64: frames of a waveform, their power by frequency, mel filters.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "calque/base/memory.h"
#include "media/mel_frames.h"

namespace calque {

enum class MelScale : uint8_t { slaney, kaldi };

// Triangles over the frequencies of a transform; each knows where it is not zero.
class MelFilters {
 public:
  struct Options {
    int64_t bins = 0, filters = 0, rate = 0;
    double lowest = 0, highest = 0;
    MelScale scale = MelScale::slaney;
  };
  // slaney: triangles in hertz, of equal area. kaldi: triangles in mels, of equal height.
  explicit MelFilters(const Options& options);

  int64_t count() const { return static_cast<int64_t>(spans_.size()); }
  const std::vector<MelSpan>& spans() const { return spans_; }
  const std::vector<double>& weights() const { return weights_; }

 private:
  std::vector<MelSpan> spans_;
  std::vector<double> weights_;
};

struct Frames {
  int64_t length = 0, hop = 0, fft = 0;
  bool centred = false;        // the waveform is mirrored at its ends, and frame t lies around t * hop
  std::vector<double> window;  // of `length`
  bool remove_mean = false;    // of each frame
  double preemphasis = 0;
};

enum class MelLog : uint8_t { natural, ten };

// log(max(mel power, floor)) of `count` frames, row by row [count, filters].
CountedVector<double> log_mel(std::span<const float> waveform, double scale, const Frames& frames, const MelFilters& filters,
                              int64_t count, double floor, MelLog log);

}  // namespace calque
