#include "generate/whisper_segments.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>

#include "calque/base/error.h"
#include "calque/op/operators.h"

namespace calque {
namespace {

TokenIds slice_of(const TokenIds& ids, size_t from, size_t to) {
  return {ids.begin() + static_cast<std::ptrdiff_t>(from), ids.begin() + static_cast<std::ptrdiff_t>(to)};
}

std::vector<float> slice_of(const std::vector<float>& times, size_t from, size_t to, double offset) {
  std::vector<float> out;
  for (size_t i = from; i < to && i < times.size(); ++i) out.push_back(static_cast<float>(times[i] + offset));
  return out;
}

}  // namespace

WhisperSegments segments_of(const TokenIds& ids, const std::vector<float>& times, const WhisperPart& part) {
  const double offset = static_cast<double>(part.seek) * part.time_precision / static_cast<double>(part.stride);
  const auto is_time = [&](size_t i) { return ids[i] >= part.timestamp_begin; };
  const auto seconds = [&](int64_t id) { return static_cast<double>(id - part.timestamp_begin) * part.time_precision; };
  const size_t count = ids.size();
  const bool single_ending = count >= 2 && !is_time(count - 2) && is_time(count - 1);
  std::vector<size_t> ends;  // a segment ends between two timestamps
  for (size_t i = 0; i + 1 < count; ++i)
    if (is_time(i) && is_time(i + 1)) ends.push_back(i + 1);
  WhisperSegments out;
  if (ends.empty()) {
    // The whole part is one segment, to its last timestamp where it has one that says something.
    // In float32, as transformers counts: 60 frames are 29 steps.
    const float steps =
        static_cast<float>(part.frames) * static_cast<float>(part.frame_precision) / static_cast<float>(part.time_precision);
    double last = static_cast<double>(static_cast<int64_t>(steps)) * part.time_precision;
    for (size_t i = count; i-- > 0;)
      if (is_time(i)) {
        if (ids[i] != part.timestamp_begin) last = seconds(ids[i]);
        break;
      }
    out.segments.push_back({offset, offset + last, ids, slice_of(times, 0, count, offset)});
    out.offset = part.frames;
    return out;
  }
  // The last segment keeps both timestamps of its end, so that it can be told from one that ends with the part.
  if (single_ending)
    ends.push_back(count);
  else
    ++ends.back();
  size_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const bool last = i + 1 == ends.size();
    const size_t end = ends[i], behind = last && !single_ending ? 2 : 1;
    out.segments.push_back({offset + seconds(ids[begin]), offset + seconds(ids[end - behind]), slice_of(ids, begin, end),
                            slice_of(times, begin, end, offset)});
    begin = end;
  }
  // Behind a single timestamp nothing is said; what was begun behind a pair is written again with the next part.
  out.offset = single_ending ? part.frames : (ids[begin - 2] - part.timestamp_begin) * part.stride;
  return out;
}

TokenIds previous_ids(const std::vector<SpokenSegment>& segments, int64_t timestamp_begin, int64_t most) {
  TokenIds out;
  for (const SpokenSegment& one : segments) {
    const bool double_ending = one.ids.size() > 2 && one.ids[one.ids.size() - 2] >= timestamp_begin;
    out.insert(out.end(), one.ids.begin(), one.ids.end() - (double_ending ? 1 : 0));
  }
  if (std::ssize(out) > most) out.erase(out.begin(), out.end() - most);
  return out;
}

double compression_ratio(const TokenIds& ids, int64_t vocab_size) {
  const auto width = static_cast<size_t>(std::log2(static_cast<double>(vocab_size)) / 8) + 1;
  std::vector<Bytef> bytes;
  for (const int64_t id : ids)
    for (size_t i = 0; i < width; ++i) bytes.push_back(static_cast<Bytef>(static_cast<uint64_t>(id) >> (8 * i)));
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::vector<Bytef> compressed(size);
  if (compress(compressed.data(), &size, bytes.data(), static_cast<uLong>(bytes.size())) != Z_OK)
    throw InternalError("zlib does not compress " + std::to_string(bytes.size()) + " bytes");
  return static_cast<double>(bytes.size()) / static_cast<double>(size);
}

float mean_log_probability(const std::vector<Tensor>& scores, const TokenIds& ids, double temperature) {
  const double scale = temperature > 0 ? temperature : 1;
  const size_t steps = std::min(scores.size(), ids.size());
  const size_t first = ids.size() - steps;  // of the ids, those that have scores
  float sum = 0;
  for (size_t i = 0; i < steps; ++i) {
    const Tensor logs = (scores[i] * scale).to(DType::float32).log_softmax(-1).contiguous();
    sum += logs.data_as<float>()[ids[first + i]];
  }
  return sum / static_cast<float>(std::max<size_t>(steps, 1));
}

}  // namespace calque
