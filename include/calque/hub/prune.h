// Taking attention heads out of a model. What is gone is noted in config.pruned_heads, and a model made from such a config is made
// without those heads.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "calque/hub/pretrained_model.h"

namespace calque {

using PrunedHeads = std::map<int64_t, std::vector<int64_t>>;  // by layer, sorted

// Of every layer named; heads that are gone already are passed over, and counted by the numbers they had at first. UserError for a
// class that cannot, and for a layer that there is not.
void prune_heads(PretrainedModel& model, const PrunedHeads& heads);
PrunedHeads pruned_heads(const Config& config);  // what the config notes
// Of one attention module alone, such as a decoder's ("decoder.block.0.layer.1.EncDecAttention" of T5), which the layers above do
// not reach: they are the encoder's. The config has no place to note it. UserError for a module that cannot.
void prune_attention_heads(Module& attention, const std::vector<int64_t>& heads);

// An attention that can do without some of its heads. Of a model's self attentions the n-th in order is that of layer n.
struct PrunableAttention {
  virtual ~PrunableAttention() = default;
  virtual void prune_heads(const std::vector<int64_t>& heads) = 0;  // numbered as they were at first
  virtual bool is_self_attention() const { return true; }           // cross attentions stay whole
};

struct PruneableHeads {
  std::set<int64_t> heads;     // without those that are gone
  std::vector<int64_t> index;  // rows (or columns) of the layer's weights that stay
};
// `count` heads are there now; `gone` are numbered as they were at first. UserError for a head that there is not.
PruneableHeads find_pruneable_heads_and_indices(const std::vector<int64_t>& heads, int64_t count, int64_t head_size,
                                                const std::set<int64_t>& gone);

// Attention of the usual kind: a head is rows of the projections and columns of the layer behind them. `count` and `gone` are
// brought up to date.
void prune_attention(const std::vector<int64_t>& heads, int64_t& count, int64_t head_size, std::set<int64_t>& gone,
                     std::initializer_list<Linear*> projections, Linear& output);

// Keeps these entries of a layer's output features (dim 0 of a Linear, 1 of a Conv1D), with its bias, or of its input features. In
// place: who holds the layer sees the smaller one.
void prune_linear_layer(Linear& layer, const std::vector<int64_t>& index, int64_t dim = 0);
// A Linear, or a module of class Conv1D (weight [in, out]); without `dim` the output features. UserError names any other class.
void prune_layer(Module& layer, const std::vector<int64_t>& index, std::optional<int64_t> dim = std::nullopt);

}  // namespace calque
