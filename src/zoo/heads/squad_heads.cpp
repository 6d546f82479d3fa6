#include "squad_heads.h"

#include "calque/base/error.h"
#include "calque/nn/functional.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/scatter.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/aten/sorting.h"
#include "losses.h"

namespace calque {
namespace {

Tensor without_masked(const Tensor& logits, const Tensor& p_mask, DType dtype) {
  if (!p_mask.defined()) return logits;
  return logits * (1 - p_mask) - (dtype == DType::float16 ? 65500 : 1e30) * p_mask;
}

// The states [batch, 1, size] at positions [batch].
Tensor states_at(const Tensor& hidden_states, const Tensor& positions) {
  const Tensor at = positions.unsqueeze(-1).unsqueeze(-1).expand({positions.sym_size(0), 1, hidden_states.sym_size(-1)});
  return gather(hidden_states, -2, at);
}

void check_start(const char* what, const Tensor& states, const Tensor& positions) {
  if (!states.defined() && !positions.defined())
    throw UserError(std::string(what) + ": one of start_states, start_positions should be given");
}

Tensor squeezed(const Tensor& labels) { return labels.defined() && labels.dim() > 1 ? labels.squeeze(-1) : labels; }

}  // namespace

PoolerStartLogits::PoolerStartLogits(const Config& c) : dense(child<Linear>("dense", c.integer("hidden_size"), 1)) {}

Tensor PoolerStartLogits::forward(const Tensor& hidden_states, const Tensor& p_mask) {
  return without_masked(dense(hidden_states).squeeze(-1), p_mask, dense->weight->dtype());
}

PoolerEndLogits::PoolerEndLogits(const Config& c)
    : dense_0(child<Linear>("dense_0", 2 * c.integer("hidden_size"), c.integer("hidden_size"))),
      activation(child<Tanh>("activation")),
      LayerNorm_(
          child<LayerNorm>("LayerNorm", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
      dense_1(child<Linear>("dense_1", c.integer("hidden_size"), 1)) {}

Tensor PoolerEndLogits::forward(const Tensor& hidden_states, const Tensor& start_states, const Tensor& start_positions,
                                const Tensor& p_mask) {
  check_start("PoolerEndLogits", start_states, start_positions);
  Tensor starts = start_states;
  if (start_positions.defined()) starts = states_at(hidden_states, start_positions).expand(hidden_states.sym_sizes());
  const Tensor x = LayerNorm_(activation(dense_0(cat({hidden_states, starts}, -1))));
  return without_masked(dense_1(x).squeeze(-1), p_mask, dense_0->weight->dtype());
}

PoolerAnswerClass::PoolerAnswerClass(const Config& c)
    : dense_0(child<Linear>("dense_0", 2 * c.integer("hidden_size"), c.integer("hidden_size"))),
      activation(child<Tanh>("activation")),
      dense_1(child<Linear>("dense_1", c.integer("hidden_size"), 1, false)) {}

Tensor PoolerAnswerClass::forward(const Tensor& hidden_states, const Tensor& start_states, const Tensor& start_positions,
                                  const Tensor& cls_index) {
  check_start("PoolerAnswerClass", start_states, start_positions);
  const Tensor start = start_positions.defined() ? states_at(hidden_states, start_positions).squeeze(-2) : start_states;
  const Tensor token = cls_index.defined() ? states_at(hidden_states, cls_index).squeeze(-2) : hidden_states.select(1, -1);
  return dense_1(activation(dense_0(cat({start, token}, -1)))).squeeze(-1);
}

SQuADHead::SQuADHead(const Config& c)
    : start_n_top(c.integer("start_n_top")),
      end_n_top(c.integer("end_n_top")),
      start_logits(child<PoolerStartLogits>("start_logits", c)),
      end_logits(child<PoolerEndLogits>("end_logits", c)),
      answer_class(child<PoolerAnswerClass>("answer_class", c)) {}

ModelOutput searched_spans(const SpanLayers& layers, const Tensor& hidden_states, const Tensor& start_positions,
                           const Tensor& end_positions, const Tensor& cls_index, const Tensor& is_impossible,
                           const Tensor& p_mask) {
  const auto& [start_logits, end_logits, answer_class, start_n_top, end_n_top] = layers;
  const Tensor starts = start_logits(hidden_states, p_mask);
  ModelOutput out;
  if (start_positions.defined() && end_positions.defined()) {
    const Tensor start = squeezed(start_positions), end = squeezed(end_positions), token = squeezed(cls_index),
                 impossible = squeezed(is_impossible);
    const Tensor ends = end_logits(hidden_states, Tensor(), start, p_mask);
    Tensor loss = (class_loss(starts, start) + class_loss(ends, end)) / 2;
    if (token.defined() && impossible.defined())
      loss = loss +
             functional::binary_cross_entropy_with_logits(answer_class(hidden_states, Tensor(), start, token), impossible) *
                 0.5;
    out.set("loss", loss);
    return out;
  }
  // The best starts, and for each of them the best ends.
  const SymInt batch = hidden_states.sym_size(0), length = hidden_states.sym_size(1), size = hidden_states.sym_size(2);
  const Tensor start_probs = softmax(starts, -1);
  const auto [top_starts, top_start_index] = topk(start_probs, start_n_top, -1);
  const Tensor chosen = gather(hidden_states, -2, top_start_index.unsqueeze(-1).expand({batch, start_n_top, size}));
  const Tensor start_states = chosen.unsqueeze(1).expand({batch, length, start_n_top, size});
  const Tensor repeated = hidden_states.unsqueeze(2).expand({batch, length, start_n_top, size});
  const Tensor ends = end_logits(repeated, start_states, Tensor(), p_mask.defined() ? p_mask.unsqueeze(-1) : p_mask);
  const auto [top_ends, top_end_index] = topk(softmax(ends, 1), end_n_top, 1);
  const Tensor mean_start = matmul(start_probs.unsqueeze(1), hidden_states).squeeze(1);
  out.set("start_top_log_probs", top_starts);
  out.set("start_top_index", top_start_index);
  out.set("end_top_log_probs", top_ends.view({-1, start_n_top * end_n_top}));
  out.set("end_top_index", top_end_index.view({-1, start_n_top * end_n_top}));
  out.set("cls_logits", answer_class(hidden_states, mean_start, Tensor(), cls_index));
  return out;
}

ModelOutput SQuADHead::forward(const Tensor& hidden_states, const Tensor& start_positions, const Tensor& end_positions,
                               const Tensor& cls_index, const Tensor& is_impossible, const Tensor& p_mask) {
  return searched_spans({start_logits, end_logits, answer_class, start_n_top, end_n_top}, hidden_states, start_positions,
                        end_positions, cls_index, is_impossible, p_mask);
}

}  // namespace calque
