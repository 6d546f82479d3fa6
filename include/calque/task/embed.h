// SentenceEncoder: texts to vectors, as sentence-transformers does it. A folder says how in modules.json (the transformer, pooling, dense
// layers, normalisation) and its companions: how long a text may be, lower case, prompts. A folder without them is a transformer
// whose last hidden states are averaged.
//
//   SentenceEncoder encoder = SentenceEncoder::from_folder("all-MiniLM-L6-v2");
//   Tensor vectors = encoder.embed(std::vector<std::string>{"one", "two"});  // float32 [2, 384]
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/hub/from_pretrained.h"
#include "calque/task/text_inputs.h"

namespace calque {

// How one vector is made of the vectors of a text's tokens; several are put side by side, in this order.
enum class Pooling : uint8_t { cls, max, mean, mean_sqrt_len, weighted_mean, last };
std::string_view name_of(Pooling pooling);
// By sentence-transformers' names ("mean", "lasttoken", ...) and "last"; UserError lists them.
Pooling pooling_from_name(std::string_view name);

struct SentenceEncoderOptions {
  LoadOptions load = {};
  std::optional<Pooling> pooling = {};  // instead of what the folder says
  bool normalize = false;               // vectors of length 1 even where the folder does not ask for them
};

struct EmbedOptions {
  size_t batch_size = 32;
  // A text before each text: one of prompts() by name, else as it is given, else the folder's default one.
  std::optional<std::string> prompt_name = {}, prompt = {};
  TaskProgress progress = {};
};

class SentenceEncoder {
 public:
  // UserError (bad_file) names the file, and the module that Calque does not know.
  static SentenceEncoder from_folder(const std::filesystem::path& folder, const SentenceEncoderOptions& options = {});
  SentenceEncoder(SentenceEncoder&&) noexcept;
  SentenceEncoder& operator=(SentenceEncoder&&) noexcept;
  ~SentenceEncoder();

  // float32 [texts, dimension], a row a text, in the order given.
  Tensor embed(std::span<const std::string> texts, const EmbedOptions& options = {}) const;

  const std::vector<std::pair<std::string, std::string>>& prompts() const;  // name, text
  std::optional<size_t> max_length() const;                                 // in tokens
  const Tokenizer& tokenizer() const;
  PretrainedModel& model() const;

 private:
  struct Impl;
  explicit SentenceEncoder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Vectors of texts made of those of their tokens [batch, length, size] and the mask int64 [batch, length].
Tensor pooled(const Tensor& tokens, const Tensor& mask, std::span<const Pooling> how);

}  // namespace calque
