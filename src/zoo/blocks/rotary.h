// Rotary position embeddings: the angles of a configuration's rope_parameters, and the turning of queries and keys. A pair of
// numbers that turns together is (i, i + half) or, interleaved, (2i, 2i + 1).
// Frequencies that depend on the length of the text (dynamic, longrope) follow from the positions of the call alone: a
// module keeps nothing of calls before.
#pragma once

#include <optional>
#include <tuple>

#include "calque/hub/config.h"
#include "calque/hub/config_schema.h"
#include "calque/nn/typed.h"

namespace calque {

// What models with rotary positions ask of a configuration: no table has a row for each position.
ConfigSchema rotary_schema(std::vector<KeyRule> own = {});
// Old files have "rope_theta" and "rope_scaling", new ones "rope_parameters"; this makes the new form of either.
void complete_rope_parameters(Config& config, double default_theta);

struct RotaryOptions {
  bool interleaved = false;
  bool partial = false;         // the part of a head that turns is asked of plain angles too
  bool wide = false;            // cosines and sines stay float32
  const char* among = nullptr;  // rope_parameters has several, by this name
};

struct RotaryEmbedding : Typed<RotaryEmbedding> {
  static constexpr const char* forward_arguments[] = {"x", "position_ids"};
  RotaryEmbedding(const Config& config, int64_t head_size, const RotaryOptions& options = {});
  RotaryEmbedding(double theta, int64_t head_size, bool interleaved);  // without scaling
  // Cosines and sines [batch, length, head size or the part that turns], in the dtype of x.
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const Tensor& position_ids);

  bool interleaved;
  bool wide = false;
  double attention_scaling = 1;
  Buffer inv_freq;

 private:
  enum class Length { any, dynamic, longrope };  // what the frequencies ask of the text's length
  Tensor frequencies(const Tensor& position_ids) const;

  Length length_ = Length::any;
  double limit_ = 0;                     // the length that the model was trained with
  double theta_ = 0, factor_ = 1;        // of dynamic
  std::optional<Buffer> long_inv_freq_;  // of longrope
};

Tensor rotate_half(const Tensor& x);
Tensor rotate_every_two(const Tensor& x);
// x [batch, heads, length, head size]; of a head that is larger than the angles the first part turns.
Tensor apply_rotary(const Tensor& x, const Tensor& cosine, const Tensor& sine);
Tensor apply_interleaved_rotary(const Tensor& x, const Tensor& cosine, const Tensor& sine);

}  // namespace calque
