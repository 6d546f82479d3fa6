#include "calque/media/feature_extractor.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "calque/base/error.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/zeros.h"
#include "media/settings.h"
#include "media/spectrogram.h"

namespace calque {
namespace {

enum class SoundKind : uint8_t { whisper, wav2vec2, speech_to_text };

struct SoundSettings {
  SoundKind kind = SoundKind::wav2vec2;
  int64_t rate = 16000;
  int64_t bins = 80;
  double padding_value = 0;
  bool pad_left = false, attention_mask = false;
  bool normalize = true;                               // wav2vec2
  int64_t hop = 160, fft = 400, chunk_seconds = 30;    // Whisper
  bool normalize_means = true, normalize_vars = true;  // speech_to_text
};

SoundKind sound_kind(const Json& json) {
  struct Name {
    const char* name;
    SoundKind kind;
  };
  static constexpr Name names[] = {{"WhisperFeatureExtractor", SoundKind::whisper},
                                   {"Wav2Vec2FeatureExtractor", SoundKind::wav2vec2},
                                   {"Speech2TextFeatureExtractor", SoundKind::speech_to_text}};
  const Json* type = setting(json, "feature_extractor_type");
  if (!type) json.fail("no \"feature_extractor_type\"; this folder does not say how a sound is prepared");
  for (const Name& one : names)
    if (type->to_string() == one.name) return one.kind;
  type->fail("the feature extractor \"" + std::string(type->to_string()) +
             "\" is not known; expected WhisperFeatureExtractor, Wav2Vec2FeatureExtractor or Speech2TextFeatureExtractor");
}

SoundSettings read_sound_settings(const Json& json) {
  SoundSettings out;
  out.kind = sound_kind(json);
  out.rate = integer_setting(json, "sampling_rate", 16000, 1000, 384000);
  out.padding_value = number_setting(json, "padding_value", 0);
  out.attention_mask = out.kind == SoundKind::speech_to_text || flag_setting(json, "return_attention_mask", false);
  if (const Json* side = setting(json, "padding_side")) out.pad_left = side->to_string() == "left";
  if (const Json* dither = setting(json, "dither"); dither && dither->to_float() != 0)
    dither->fail("features with random noise (dither) are not computed; expected 0");
  if (out.kind == SoundKind::wav2vec2) {
    out.normalize = flag_setting(json, "do_normalize", true);
    integer_setting(json, "feature_size", 1, 1, 1);
  } else if (out.kind == SoundKind::whisper) {
    out.bins = integer_setting(json, "feature_size", 80, 1, 1024);
    out.hop = integer_setting(json, "hop_length", 160, 1, 65536);
    out.fft = integer_setting(json, "n_fft", 400, 2, 65536);
    out.chunk_seconds = integer_setting(json, "chunk_length", 30, 1, 3600);
  } else {
    out.bins = integer_setting(json, "num_mel_bins", 80, 1, 1024);
    const bool normalize = flag_setting(json, "do_ceptral_normalize", true);
    out.normalize_means = normalize && flag_setting(json, "normalize_means", true);
    out.normalize_vars = normalize && flag_setting(json, "normalize_vars", true);
  }
  return out;
}

Frames frames_of(const SoundSettings& s) {
  Frames out;
  const bool kaldi = s.kind == SoundKind::speech_to_text;
  out.length = kaldi ? 400 : s.fft;
  out.hop = kaldi ? 160 : s.hop;
  out.fft = kaldi ? 512 : s.fft;
  out.centred = !kaldi;
  out.remove_mean = kaldi;
  out.preemphasis = kaldi ? 0.97 : 0;
  const double turns = static_cast<double>(kaldi ? out.length - 1 : out.length);  // Whisper's window is periodic
  for (int64_t i = 0; i < out.length; ++i) {
    const double hann = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / turns);
    out.window.push_back(kaldi ? std::pow(hann, 0.85) : hann);
  }
  return out;
}

MelFilters filters_of(const SoundSettings& s) {
  const int64_t highest = s.rate / 2;  // whole hertz, as transformers divides
  if (s.kind == SoundKind::speech_to_text)
    return MelFilters({257, s.bins, s.rate, 20, static_cast<double>(highest), MelScale::kaldi});
  return MelFilters({s.fft / 2 + 1, s.bins, s.rate, 0, 8000, MelScale::slaney});
}

struct Spread {
  double mean = 0, variance = 0;
};

// Of `count` numbers, `step` apart.
template <class T>
Spread spread_of(const T* values, size_t count, size_t step) {
  Spread out;
  for (size_t i = 0; i < count; ++i) out.mean += static_cast<double>(values[i * step]);
  out.mean /= static_cast<double>(count);
  for (size_t i = 0; i < count; ++i) {
    const double far = static_cast<double>(values[i * step]) - out.mean;
    out.variance += far * far;
  }
  out.variance /= static_cast<double>(count);
  return out;
}

}  // namespace

struct FeatureExtractor::Impl {
  SoundSettings settings;
  Frames frames;
  std::optional<MelFilters> filters;

  explicit Impl(const Json& json) : settings(read_sound_settings(json)) {
    if (settings.kind == SoundKind::wav2vec2) return;
    frames = frames_of(settings);
    filters = filters_of(settings);
  }

  int64_t chunk() const { return settings.kind == SoundKind::whisper ? settings.chunk_seconds * settings.rate : 0; }

  // A mask of rows of this length: ones where a waveform is.
  Tensor mask_of(std::span<const int64_t> lengths, int64_t length) const {
    const Tensor mask = zeros({std::ssize(lengths), length}, DType::int32);
    for (int64_t i = 0; i < std::ssize(lengths); ++i) {
      int32_t* const row = mask.mutable_data_as<int32_t>() + i * length;
      const int64_t own = std::min(lengths[static_cast<size_t>(i)], length);
      std::fill_n(row + (settings.pad_left ? length - own : 0), own, 1);
    }
    return mask;
  }

  SoundFeatures samples(std::span<const Waveform> waveforms, bool with_mask) const {
    std::vector<int64_t> lengths;
    for (const Waveform& one : waveforms) lengths.push_back(std::ssize(one.samples));
    const int64_t length = *std::ranges::max_element(lengths);
    SoundFeatures out{"input_values", empty({std::ssize(waveforms), length}, DType::float32), {}};
    float* row = out.values.mutable_data_as<float>();
    for (const Waveform& one : waveforms) {
      std::fill_n(row, length, static_cast<float>(settings.padding_value));
      const size_t own = one.samples.size();
      float* const to = row + (settings.pad_left ? length - std::ssize(one.samples) : 0);
      Spread spread;
      if (settings.normalize) spread = spread_of(one.samples.data(), own, 1);
      const double scale = settings.normalize ? 1 / std::sqrt(spread.variance + 1e-7) : 1;
      for (size_t i = 0; i < own; ++i)
        to[i] = static_cast<float>((static_cast<double>(one.samples[i]) - spread.mean) * scale);
      row += length;
    }
    if (with_mask) out.attention_mask = mask_of(lengths, length);
    return out;
  }

  SoundFeatures whisper(std::span<const Waveform> waveforms, bool whole, bool with_mask) const {
    int64_t length = chunk();
    std::vector<int64_t> lengths;
    for (const Waveform& one : waveforms) lengths.push_back(std::ssize(one.samples));
    if (whole) length = *std::ranges::max_element(lengths);
    if (length <= settings.fft / 2)
      throw UserError("a sound of " + std::to_string(length) + " samples is too short for frames of " +
                      std::to_string(settings.fft) + "; expected more than " + std::to_string(settings.fft / 2));
    const int64_t count = length / settings.hop;
    SoundFeatures out{"input_features", empty({std::ssize(waveforms), settings.bins, count}, DType::float32), {}};
    float* to = out.values.mutable_data_as<float>();
    CountedVector<float> padded(static_cast<size_t>(length));
    for (const Waveform& one : waveforms) {
      const int64_t own = std::min(std::ssize(one.samples), length);
      std::ranges::fill(padded, static_cast<float>(settings.padding_value));
      std::copy_n(one.samples.begin(), own, padded.begin() + (settings.pad_left ? length - own : 0));
      const CountedVector<double> logs = log_mel(padded, 1, frames, *filters, count, 1e-10, MelLog::ten);
      const double least = *std::ranges::max_element(logs) - 8;
      for (int64_t f = 0; f < settings.bins; ++f)
        for (int64_t t = 0; t < count; ++t)
          *to++ = static_cast<float>((std::max(logs[static_cast<size_t>(t * settings.bins + f)], least) + 4) / 4);
    }
    if (with_mask) {
      const Tensor mask = mask_of(lengths, length);
      out.attention_mask = empty({std::ssize(waveforms), count}, DType::int32);
      int32_t* row = out.attention_mask->mutable_data_as<int32_t>();
      for (int64_t i = 0; i < std::ssize(waveforms); ++i)
        for (int64_t t = 0; t < count; ++t) *row++ = mask.data_as<int32_t>()[i * length + t * settings.hop];
    }
    return out;
  }

  SoundFeatures filter_banks(std::span<const Waveform> waveforms, bool with_mask) const {
    std::vector<int64_t> lengths;
    for (const Waveform& one : waveforms) {
      if (std::ssize(one.samples) < frames.length)
        throw UserError("a sound of " + std::to_string(one.samples.size()) + " samples is shorter than a frame of " +
                        std::to_string(frames.length));
      lengths.push_back(1 + (std::ssize(one.samples) - frames.length) / frames.hop);
    }
    const int64_t length = *std::ranges::max_element(lengths), bins = settings.bins;
    SoundFeatures out{"input_features", empty({std::ssize(waveforms), length, bins}, DType::float32), {}};
    float* row = out.values.mutable_data_as<float>();
    for (size_t i = 0; i < waveforms.size(); ++i, row += length * bins) {
      const auto own = static_cast<size_t>(lengths[i]), step = static_cast<size_t>(bins);
      CountedVector<double> logs =
          log_mel(waveforms[i].samples, 32768, frames, *filters, lengths[i], 1.192092955078125e-07, MelLog::natural);
      for (size_t f = 0; f < step; ++f) {
        const Spread spread = spread_of(logs.data() + f, own, step);
        const double mean = settings.normalize_means ? spread.mean : 0;
        const double deviation = settings.normalize_vars ? std::sqrt(spread.variance) : 1;
        for (size_t t = 0; t < own; ++t) logs[t * step + f] = (logs[t * step + f] - mean) / deviation;
      }
      std::fill_n(row, length * bins, static_cast<float>(settings.padding_value));
      float* const to = row + (settings.pad_left ? (length - lengths[i]) * bins : 0);
      for (size_t k = 0; k < logs.size(); ++k) to[k] = static_cast<float>(logs[k]);
    }
    if (with_mask) out.attention_mask = mask_of(lengths, length);
    return out;
  }
};

FeatureExtractor::FeatureExtractor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FeatureExtractor::FeatureExtractor(FeatureExtractor&&) noexcept = default;
FeatureExtractor& FeatureExtractor::operator=(FeatureExtractor&&) noexcept = default;
FeatureExtractor::~FeatureExtractor() = default;

FeatureExtractor FeatureExtractor::from_folder(const std::filesystem::path& folder) {
  std::unique_ptr<Impl> impl;
  read_processor_settings(folder, "feature_extractor", [&](const Json& json) { impl = std::make_unique<Impl>(json); });
  return FeatureExtractor(std::move(impl));
}

FeatureExtractor FeatureExtractor::from_json(std::string_view json, const std::string& what) {
  const JsonDocument document(json, what);
  return document.read([](const Json& root) { return FeatureExtractor(std::make_unique<Impl>(root)); });
}

int64_t FeatureExtractor::rate() const { return impl_->settings.rate; }
int64_t FeatureExtractor::chunk_samples() const { return impl_->chunk(); }
int64_t FeatureExtractor::hop_length() const { return impl_->settings.kind == SoundKind::wav2vec2 ? 1 : impl_->frames.hop; }

SoundFeatures FeatureExtractor::extract(std::span<const Waveform> waveforms, const SoundFeatureOptions& options) const {
  if (waveforms.empty()) throw UserError("features of no sounds were asked for; expected at least one");
  for (const Waveform& one : waveforms) {
    if (one.rate != rate())
      throw UserError("a sound of " + std::to_string(one.rate) + " samples a second, but the model takes " +
                      std::to_string(rate()) + "; resampled() changes it");
    if (one.samples.empty()) throw UserError("a sound without samples");
  }
  const bool with_mask = options.attention_mask.value_or(impl_->settings.attention_mask);
  switch (impl_->settings.kind) {
    case SoundKind::whisper: return impl_->whisper(waveforms, options.whole, with_mask);
    case SoundKind::wav2vec2: return impl_->samples(waveforms, with_mask);
    case SoundKind::speech_to_text: return impl_->filter_banks(waveforms, with_mask);
  }
  __builtin_unreachable();
}

}  // namespace calque
