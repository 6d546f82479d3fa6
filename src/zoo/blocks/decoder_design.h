// What decoders with rotary positions differ in, as data: a family makes a DecoderDesign from its configuration, decoder_parts.h
// and decoder_model.h build from it. Sizes that all configurations name alike (hidden_size, num_hidden_layers, vocab_size,
// ...) are read there. Names are those of modules in checkpoints; an absent one is null.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "calque/hub/weight_form.h"
#include "rotary.h"

namespace calque {

enum class NormKind {
  rms,             // the product with the weight in the model's dtype
  rms_wide,        // in float32
  rms_around_one,  // in float32, with the weight and one
  centred,         // mean and variance, a weight, no bias
  layer,           // torch.nn.LayerNorm
};
struct NormDesign {
  NormKind kind = NormKind::rms;
  double eps = 1e-6;
};

// What queries and keys are normed over.
enum class QueryNorm {
  none,
  heads,      // each head, with one weight for all
  whole,      // all heads together
  each_head,  // each head, with a weight of its own
  list,       // the same, as a list of norms
};

enum class Projection {
  separate,  // q_proj, k_proj, v_proj
  joined,    // qkv_proj: all queries, all keys, all values
  by_head,   // query_key_value: of each head of keys its queries, its key and its value
};

enum class Turning {
  halves,            // the numbers i and i + half of a head turn together
  neighbours,        // 2i and 2i + 1
  neighbours_apart,  // 2i and 2i + 1, which are put to i and i + half first
};

struct AttentionDesign {
  const char* name = "self_attn";
  int64_t heads = 1, key_heads = 1, head_size = 1;
  Projection projection = Projection::separate;
  bool repeats_keys = false;  // as many keys and values as queries go to the cache
  bool bias = false;          // of queries, keys and values
  const char* output = "o_proj";
  bool output_bias = false;
  std::optional<double> scale = std::nullopt;
  double dropout = 0, output_dropout = 0;
  QueryNorm query_norm = QueryNorm::none;
  NormDesign query_norm_kind = {};
  const char* query_norm_name = "q_norm";
  const char* key_norm_name = "k_norm";
  Turning turning = Turning::halves;
  bool wide_turning = false;  // in float32
  std::optional<double> soft_cap = std::nullopt;
  bool sinks = false;
};

// Queries and values from small latent states.
struct LatentDesign {
  std::optional<int64_t> query_rank = std::nullopt;
  int64_t value_rank, plain_size, turned_size, value_size;
};

struct FeedForwardDesign {
  enum class Kind { gated, gated_joined, plain };
  Kind kind = Kind::gated;
  const char* up = "up_proj";
  const char* down = "down_proj";
  std::string activation = "silu";
  int64_t size = 1;
  bool bias = false;
  double dropout = 0;
};

// A mixture of experts.
struct ExpertsDesign {
  enum class Scores {
    softmax,          // of all experts, then the best
    softmax_of_best,  // the best, then of these
    sigmoid,          // with a correction that chooses and does not weigh, and groups of experts
  };
  const char* router = "gate";
  const char* block = "SparseMoeBlock";  // the class of the whole
  Scores scores = Scores::softmax;
  int64_t count = 1, chosen = 1, size = 1;
  bool normalised = false;    // the weights of the chosen sum up to one
  bool wide_weights = false;  // which stay float32
  double scale = 1;           // of the weights
  int64_t groups = 1, chosen_groups = 1;
  bool transposed = false;  // weights [experts, in, out], with biases, gate and up by turns
  double gate_alpha = 0, gate_limit = 0;
  const char* shared = nullptr;  // a feed-forward that every token passes
  int64_t shared_size = 0;
  bool shared_gate = false;
};

struct LayerDesign {
  std::optional<int64_t> window = std::nullopt;  // looks back at so many tokens
  int rotary = 0;                                // which angles; -1: none
  bool experts = false;
};

struct DecoderDesign {
  std::string names;            // what the names of its classes begin with, "transformers.models.llama.modeling_llama.Llama"
  const char* model = "Model";  // and end with
  const char* prefix = "model";  // of the base model's weights in checkpoints
  const char* layer = "DecoderLayer";
  const char* norm_class = "RMSNorm";
  const char* router_class = "TopKRouter";
  NormDesign norm = {};
  AttentionDesign attention = {};
  std::optional<LatentDesign> latent = std::nullopt;
  FeedForwardDesign feed_forward = {};
  ExpertsDesign experts = {};

  // Norms around attention and feed-forward. In parallel, both read the state before the layer; without a norm of its own the
  // feed-forward reads what attention reads.
  bool parallel = false;
  bool adds_parts_first = false;  // in parallel: to each other, before dropout and the state
  const char* before_attention = "input_layernorm";
  const char* after_attention = nullptr;
  const char* before_feed_forward = "post_attention_layernorm";
  const char* after_feed_forward = nullptr;
  double residual_scale = 1;
  const char* attention_dropout = nullptr;  // of what is added to the state
  const char* feed_forward_dropout = nullptr;
  double residual_dropout = 0;

  std::vector<LayerDesign> layers = {};
  std::vector<RotaryOptions> rotary = {{}};
  bool alibi = false;  // distances instead of angles

  const char* blocks = "layers";
  const char* embeddings = "embed_tokens";
  bool padding_row = true;         // the embedding knows which row is padding
  bool scaled_embeddings = false;  // by the square root of the hidden size, in the embedding
  double embeddings_scale = 1;     // of whatever comes in
  const char* embeddings_dropout = nullptr;
  double embeddings_dropout_rate = 0;
  const char* last_norm = "norm";

  double logits_scale = 1;
  double logits_divisor = 1;
  std::optional<double> logits_cap = std::nullopt;
  bool fused_attention = true;               // scaled_dot_product_attention serves
  WeightForm form = {};                      // of checkpoints
  std::vector<std::string> unexpected = {};  // keys of checkpoints that count for nothing
};

class Config;

std::vector<LayerDesign> plain_layers(const Config& config);  // all alike, each looks at all
// All layers alike but for "layer_types" and "sliding_window", where the configuration has them.
std::vector<LayerDesign> layer_designs(const Config& config);
// Values that follow from others in nearly all configurations: num_key_value_heads, head_dim (where asked for), rope_parameters.
void complete_key_heads(Config& config);
void complete_head_size(Config& config);
// "layer_types" where there is none: `slides` says which look at a window.
void complete_layer_types(Config& config, const std::function<bool(int64_t layer)>& slides);
// use_sliding_window, sliding_window and max_window_layers: windows in the layers behind so many.
void complete_late_windows(Config& config);
void refuse_bidirectional(const Config& config);  // UserError where attention is to look ahead too
// The part of each head that turns, where the configuration does not say it. Before complete_rope_parameters.
void complete_rotary_part(Config& config, double part);
// rope_parameters with one object for each type of layers; the base of each is `theta_key` in files of old.
struct LayerRope {
  const char* type;
  const char* theta_key;
  double theta;
};
void complete_rope_parameters_by_layer(Config& config, std::initializer_list<LayerRope> types);
// Checkpoints that have each expert's gate_proj, up_proj and down_proj by themselves.
WeightForm experts_one_by_one();
// decoder_sparse_step and mlp_only_layers: which layers have experts.
void put_experts_by_step(const Config& config, std::vector<LayerDesign>& layers, int64_t experts);

// Attention as nearly all have it, from the keys of their configurations.
AttentionDesign attention_design(const Config& config);
FeedForwardDesign feed_forward_design(const Config& config, bool bias = false, const char* activation = "hidden_act");

}  // namespace calque
