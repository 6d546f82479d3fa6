// FeatureExtractor: waveforms to what a model of sound takes, as the preprocessor_config.json (or the processor_config.json) of its folder
// says: Whisper's log-mel spectrogram, wav2vec2's normalised samples, speech_to_text's Kaldi filter banks. Computed in float64 and rounded
// once, so nothing is further from the formula than what transformers gives.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "calque/media/waveform.h"
#include "calque/op/tensor.h"

namespace calque {

struct SoundFeatures {
  std::string name;                      // the forward's argument: input_features or input_values
  Tensor values;                         // float32, a row a waveform
  std::optional<Tensor> attention_mask;  // int32; where the extractor gives one
};

struct SoundFeatureOptions {
  // Whisper: as long as the longest waveform instead of exactly one chunk.
  bool whole = false;
  std::optional<bool> attention_mask = {};  // else as the folder says
};

class FeatureExtractor {
 public:
  // UserError (bad_file) names the file, and the extractor that Calque does not know.
  static FeatureExtractor from_folder(const std::filesystem::path& folder);
  static FeatureExtractor from_json(std::string_view json, const std::string& what);
  FeatureExtractor(FeatureExtractor&&) noexcept;
  FeatureExtractor& operator=(FeatureExtractor&&) noexcept;
  ~FeatureExtractor();

  int64_t rate() const;
  int64_t chunk_samples() const;  // Whisper's; 0 for others
  int64_t hop_length() const;     // samples between two frames; 1 where samples are given as they are
  // Of several waveforms the shorter ones are padded. Each has to have the extractor's rate: resampled() helps.
  SoundFeatures extract(std::span<const Waveform> waveforms, const SoundFeatureOptions& options = {}) const;

 private:
  struct Impl;
  explicit FeatureExtractor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A folder says how pictures or sounds are prepared.
bool has_preprocessor(const std::filesystem::path& folder);

}  // namespace calque
