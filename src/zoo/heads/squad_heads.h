// Heads for questions whose answer is a span of the text: where it starts, where it ends given the start, and whether there is an
// answer at all. XLNet's, as transformers has them for every model.
#pragma once

#include "calque/hub/config.h"
#include "calque/hub/model_io.h"
#include "calque/nn/activation.h"
#include "calque/nn/linear.h"
#include "calque/nn/normalization.h"

namespace calque {

// A p_mask [batch, length] is 1 where no answer may be.
struct PoolerStartLogits : Typed<PoolerStartLogits> {
  static constexpr const char* torch_type = "transformers.modeling_utils.PoolerStartLogits";
  static constexpr const char* forward_arguments[] = {"hidden_states", "p_mask"};
  explicit PoolerStartLogits(const Config& c);
  Tensor forward(const Tensor& hidden_states, const Tensor& p_mask = {});
  Child<Linear> dense;
};

// The start is given by its position [batch], which counts, or by its state (one for every position).
struct PoolerEndLogits : Typed<PoolerEndLogits> {
  static constexpr const char* torch_type = "transformers.modeling_utils.PoolerEndLogits";
  static constexpr const char* forward_arguments[] = {"hidden_states", "start_states", "start_positions", "p_mask"};
  explicit PoolerEndLogits(const Config& c);
  Tensor forward(const Tensor& hidden_states, const Tensor& start_states = {}, const Tensor& start_positions = {},
                 const Tensor& p_mask = {});
  Child<Linear> dense_0;
  Child<Tanh> activation;
  Child<LayerNorm> LayerNorm_;
  Child<Linear> dense_1;
};

// From the state of the start and of the classification token (by default the last): one logit an example.
struct PoolerAnswerClass : Typed<PoolerAnswerClass> {
  static constexpr const char* torch_type = "transformers.modeling_utils.PoolerAnswerClass";
  static constexpr const char* forward_arguments[] = {"hidden_states", "start_states", "start_positions", "cls_index"};
  explicit PoolerAnswerClass(const Config& c);
  Tensor forward(const Tensor& hidden_states, const Tensor& start_states = {}, const Tensor& start_positions = {},
                 const Tensor& cls_index = {});
  Child<Linear> dense_0;
  Child<Tanh> activation;
  Child<Linear> dense_1;
};

// The search for a span. With labels: loss. Without: start_top_log_probs, start_top_index, end_top_log_probs, end_top_index,
// cls_logits.
struct SpanLayers {
  const Child<PoolerStartLogits>& start_logits;
  const Child<PoolerEndLogits>& end_logits;
  const Child<PoolerAnswerClass>& answer_class;
  int64_t start_n_top, end_n_top;
};
ModelOutput searched_spans(const SpanLayers& layers, const Tensor& hidden_states, const Tensor& start_positions,
                           const Tensor& end_positions, const Tensor& cls_index, const Tensor& is_impossible,
                           const Tensor& p_mask);

// The layers of that search, as a module.
struct SQuADHead : Typed<SQuADHead> {
  static constexpr const char* torch_type = "transformers.modeling_utils.SQuADHead";
  static constexpr const char* forward_arguments[] = {"hidden_states", "start_positions", "end_positions",
                                                      "cls_index",     "is_impossible",   "p_mask"};
  explicit SQuADHead(const Config& c);
  ModelOutput forward(const Tensor& hidden_states, const Tensor& start_positions = {}, const Tensor& end_positions = {},
                      const Tensor& cls_index = {}, const Tensor& is_impossible = {}, const Tensor& p_mask = {});
  int64_t start_n_top, end_n_top;
  Child<PoolerStartLogits> start_logits;
  Child<PoolerEndLogits> end_logits;
  Child<PoolerAnswerClass> answer_class;
};

}  // namespace calque
