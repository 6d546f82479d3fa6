// What Whisper wrote of one part of a recording: its segments between timestamps, what the next part is told of it, and whether it came
// out badly.
#pragma once

#include "calque/generate/whisper.h"

namespace calque {

// One part of a recording.
struct WhisperPart {
  int64_t seek = 0, frames = 0;  // its first frame, and how many frames of it there are
  int64_t stride = 2;            // frames for a state of the encoder
  int64_t timestamp_begin = 0;   // the id of 0.00
  double time_precision = 0.02, frame_precision = 0.01;
};

struct WhisperSegments {
  std::vector<SpokenSegment> segments;
  int64_t offset = 0;  // frames to go on by
};

// `times` are of the ids, or empty.
WhisperSegments segments_of(const TokenIds& ids, const std::vector<float>& times, const WhisperPart& part);

// The last `most` ids of the segments, without the second of two timestamps at a segment's end.
TokenIds previous_ids(const std::vector<SpokenSegment>& segments, int64_t timestamp_begin, int64_t most);

// Bytes of the ids over bytes of them compressed by zlib: high where the text repeats itself.
double compression_ratio(const TokenIds& ids, int64_t vocab_size);

// The mean of the ids' log-probabilities; `scores` are [vocab], one a step, as they were after the warper of this temperature.
float mean_log_probability(const std::vector<Tensor>& scores, const TokenIds& ids, double temperature);

}  // namespace calque
