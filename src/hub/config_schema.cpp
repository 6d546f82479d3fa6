#include "calque/hub/config_schema.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "calque/base/error.h"
#include "calque/hub/registry.h"

namespace calque {

namespace {

// The product of two sizes, a few times over, still fits 64 bits.
constexpr int64_t largest_size = std::numeric_limits<int32_t>::max();
// Lengths are computed with as doubles, which hold whole numbers up to this exactly.
constexpr int64_t largest_length = int64_t{1} << 53;
// More than any model has; each is a module to make or a step to compute.
constexpr int64_t most_layers = 4096;

struct KindKeys {
  KeyKind kind;
  std::vector<std::string_view> keys;
};

// The one table of what keys mean wherever an architecture does not say otherwise.
const std::map<std::string_view, KeyKind, std::less<>>& common_kinds() {
  static const std::map<std::string_view, KeyKind, std::less<>> kinds = [] {
    const KindKeys table[] = {
        {KeyKind::layers,
         {"num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers",
          "num_decoder_layers"}},
        {KeyKind::size,
         {"vocab_size",
          "decoder_vocab_size",
          "hidden_size",
          "n_embd",
          "d_model",
          "dim",
          "embedding_size",
          "word_embed_proj_dim",
          "head_dim",
          "d_kv",
          "attention_head_size",
          "intermediate_size",
          "encoder_ffn_dim",
          "decoder_ffn_dim",
          "ffn_dim",
          "d_ff",
          "hidden_dim",
          "n_inner",
          "pooler_hidden_size",
          "cross_attention_hidden_size",
          "n_positions",
          "rotary_dim",
          "moe_intermediate_size",
          "shared_expert_intermediate_size",
          "kv_lora_rank",
          "q_lora_rank",
          "qk_rope_head_dim",
          "qk_nope_head_dim",
          "v_head_dim",
          "ffn_hidden_size",
          "max_position_embeddings",
          "num_channels",
          "projection_dim"}},
        {KeyKind::sizes, {"image_size", "patch_size", "hidden_sizes"}},
        {KeyKind::stages, {"depths"}},
        {KeyKind::repeats, {"pretraining_tp"}},
        {KeyKind::rows, {"type_vocab_size"}},
        {KeyKind::heads,
         {"num_attention_heads", "num_heads", "n_head", "n_heads", "attention_heads", "num_key_value_heads",
          "encoder_attention_heads", "decoder_attention_heads", "num_kv_heads", "num_local_experts", "n_routed_experts",
          "num_experts_per_tok", "n_group", "topk_group"}},
        {KeyKind::length,
         {"window_size", "original_max_position_embeddings", "decoder_sparse_step", "no_rope_layer_interval",
          "sliding_window_pattern"}},
        {KeyKind::rows, {"num_experts", "n_shared_experts", "num_nextn_predict_layers"}},
        {KeyKind::count,
         {"sliding_window", "max_window_layers", "first_k_dense_replace", "chunk_size_feed_forward",
          "encoder_no_repeat_ngram_size", "no_repeat_ngram_size"}},
        {KeyKind::probability, {"hidden_dropout_prob", "attention_probs_dropout_prob",
                                "hidden_dropout",      "attention_dropout",
                                "activation_dropout",  "dropout",
                                "dropout_rate",        "classifier_dropout",
                                "resid_pdrop",         "classifier_dropout_prob",
                                "embd_pdrop",          "attn_pdrop",
                                "resid_dropout",       "embed_dropout",
                                "pooler_dropout",      "qa_dropout",
                                "seq_classif_dropout", "summary_first_dropout",
                                "encoder_layerdrop",   "decoder_layerdrop",
                                "layerdrop",           "summary_last_dropout",
                                "drop_path_rate",      "residual_dropout",
                                "embedding_dropout"}},
        {KeyKind::magnitude,
         {"layer_norm_eps", "layer_norm_epsilon", "rms_norm_eps", "norm_epsilon", "initializer_range", "init_std",
          "initializer_factor", "rope_parameters.beta_fast", "rope_parameters.beta_slow"}},
        {KeyKind::positive,
         {"query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping", "logits_scaling", "swiglu_limit",
          "rope_theta", "rope_local_base_freq", "rotary_emb_base", "rope_parameters.rope_theta", "rope_parameters.factor",
          "rope_parameters.low_freq_factor", "rope_parameters.high_freq_factor", "rope_parameters.short_factor",
          "rope_parameters.long_factor"}},
        {KeyKind::fraction, {"partial_rotary_factor", "rotary_pct", "rope_parameters.partial_rotary_factor"}},
        {KeyKind::length, {"rope_parameters.original_max_position_embeddings"}},
        {KeyKind::number,
         {"rope_parameters.attention_factor", "rope_parameters.mscale", "rope_parameters.mscale_all_dim",
          "logit_scale_init_value", "embedding_multiplier", "residual_multiplier", "attention_multiplier",
          "router_aux_loss_coef", "routed_scaling_factor", "swiglu_alpha", "router_jitter_noise"}},
    };
    std::map<std::string_view, KeyKind, std::less<>> out;
    for (const KindKeys& row : table)
      for (const std::string_view key : row.keys) out.emplace(key, row.kind);
    return out;
  }();
  return kinds;
}

// What a number of a kind may be; the bounds of whole numbers are exact as double.
struct NumberRule {
  bool whole;
  double least, most;
  const char* words = nullptr;  // of what is no whole number, which its bounds describe
  bool least_fits = true;
};

std::optional<NumberRule> number_rule(KeyKind kind) {
  constexpr double any = std::numeric_limits<double>::max();
  switch (kind) {
    case KeyKind::layers:
    case KeyKind::repeats: return NumberRule{true, 0, most_layers};
    case KeyKind::groups:
    case KeyKind::stages: return NumberRule{true, 1, most_layers};
    case KeyKind::size:
    case KeyKind::sizes:
    case KeyKind::heads: return NumberRule{true, 1, largest_size};
    case KeyKind::rows: return NumberRule{true, 0, largest_size};
    case KeyKind::rows_or_not: return NumberRule{true, -1, largest_size};
    case KeyKind::length: return NumberRule{true, 1, largest_length};
    case KeyKind::count: return NumberRule{true, 0, largest_length};
    case KeyKind::probability: return NumberRule{false, 0, 1, "a probability from 0 to 1"};
    case KeyKind::positive: return NumberRule{false, 0, any, "a number above 0", false};
    case KeyKind::magnitude: return NumberRule{false, 0, any, "a number, 0 or more"};
    case KeyKind::fraction: return NumberRule{false, 0, 1, "a number above 0 and at most 1", false};
    case KeyKind::number: return NumberRule{false, -any, any, "a number"};
    case KeyKind::token: return std::nullopt;
  }
  throw InternalError("config schema: no such kind of key");
}

[[noreturn]] void refuse(const Config& config, std::string_view key, const Value& found, const std::string& expected) {
  std::string shown = found.str();
  if (shown.size() > 100) shown = shown.substr(0, 100) + "...";
  throw UserError(ErrorKind::bad_file,
                  config.where() + ": \"" + std::string(key) + "\" is " + shown + ", expected " + expected);
}

void check_token(const Config& config, std::string_view key, const Value& value) {
  const auto is_id = [](const Value& one) { return one.kind() == Value::Kind::integer; };
  if (is_id(value)) return;
  if (value.kind() == Value::Kind::list && !value.to_items().empty() &&
      std::all_of(value.to_items().begin(), value.to_items().end(), is_id))
    return;
  refuse(config, key, value, "a token's id, or a list of one or more");
}

void check_value(const Config& config, KeyKind kind, std::string_view key, const Value& value) {
  if (value.is_none()) return;
  const std::optional<NumberRule> rule = number_rule(kind);
  if (!rule) return check_token(config, key, value);
  // One of each layer or stage.
  if (value.kind() == Value::Kind::list || value.kind() == Value::Kind::tuple) {
    const bool needed = kind == KeyKind::sizes || kind == KeyKind::stages;
    if (needed && value.to_items().empty()) refuse(config, key, value, "one number or more");
    for (const Value& one : value.to_items()) check_value(config, kind, key, one);
    return;
  }
  if (rule->whole) {
    const auto least = static_cast<int64_t>(rule->least), most = static_cast<int64_t>(rule->most);
    if (value.kind() != Value::Kind::integer || value.to_int() < least || value.to_int() > most)
      refuse(config, key, value, "an integer from " + std::to_string(least) + " to " + std::to_string(most));
    return;
  }
  const bool is_number = value.kind() == Value::Kind::integer || value.kind() == Value::Kind::floating;
  const double number = is_number ? value.to_float() : rule->least;
  const bool fits = number <= rule->most && (rule->least_fits ? number >= rule->least : number > rule->least);
  if (!is_number || !fits) refuse(config, key, value, rule->words);
}

// The numbers in a configuration that have a rule: f(kind, key, value).
template <class F>
void for_each_rule(const Config& config, const Architecture* architecture, F&& f) {
  for (const auto& [key, value] : config.items()) {
    // An object is no number: who needs one refuses it.
    const bool object = value.kind() == Value::Kind::dict;
    if (const std::optional<KeyKind> kind = key_kind(architecture, key); kind && !object) f(*kind, key, value);
    if (!object) continue;
    // transformers 4 calls rope_parameters rope_scaling.
    const std::string under = (key == "rope_scaling" ? "rope_parameters" : key) + ".";
    for (const auto& [name, inner] : value.to_dict().items)
      if (name.kind() == Value::Kind::string)
        if (const std::optional<KeyKind> kind = key_kind(architecture, under + name.to_string()))
          f(*kind, key + "." + name.to_string(), inner);
  }
}

std::optional<int64_t> plain_integer(const Config& config, const std::string& key) {
  const Value* value = config.find(key);
  return value && value->kind() == Value::Kind::integer ? std::optional(value->to_int()) : std::nullopt;
}

void check_relation(const Config& config, const KeyRelation& relation) {
  if (!relation.unless.empty() && config.has(relation.unless)) return;
  const std::optional<int64_t> value = plain_integer(config, relation.key), other = plain_integer(config, relation.other);
  if (!value || !other) return;
  const std::string of = relation.other + ", which is " + std::to_string(*other);
  switch (relation.kind) {
    case KeyRelation::Kind::multiple_of:
      if (*value % *other != 0) refuse(config, relation.key, *config.find(relation.key), "a multiple of " + of);
      return;
    case KeyRelation::Kind::at_least:
      if (*value < *other) refuse(config, relation.key, *config.find(relation.key), "at least " + of);
      return;
  }
}

}  // namespace

std::optional<KeyKind> key_kind(const Architecture* architecture, std::string_view key) {
  if (architecture)
    for (const KeyRule& rule : architecture->schema.keys)
      if (rule.key == key) return rule.kind;
  if (key.ends_with("_token_id")) return KeyKind::token;
  const auto& common = common_kinds();
  const auto at = common.find(key);
  return at == common.end() ? std::nullopt : std::optional(at->second);
}

void check_schema(const Config& config, const Architecture* architecture) {
  if (!architecture) return;
  for (const char* rope : {"rope_parameters", "rope_scaling"})
    if (config.has(rope) && config.find(rope)->kind() != Value::Kind::dict)
      refuse(config, rope, *config.find(rope), "an object");
  for_each_rule(config, architecture,
                [&](KeyKind kind, std::string_view key, const Value& value) { check_value(config, kind, key, value); });
  for (const KeyRelation& relation : architecture->schema.relations) check_relation(config, relation);
}

void check_limits(const Config& config, const Architecture* architecture, const ModelLimits& limits) {
  if (!architecture) return;
  const auto check = [&](KeyKind kind, std::string_view key, const Value& value) {
    if (value.kind() != Value::Kind::integer) return;
    const bool sized = kind == KeyKind::size || kind == KeyKind::sizes || kind == KeyKind::rows ||
                       kind == KeyKind::rows_or_not || kind == KeyKind::heads;
    const bool layered = kind == KeyKind::layers || kind == KeyKind::groups || kind == KeyKind::stages;
    if (layered && value.to_int() > limits.layers)
      refuse(config, key, value, "at most " + std::to_string(limits.layers) + " layers: " + limits.reason);
    if (sized && value.to_int() > limits.parameters)
      refuse(config, key, value, "at most " + std::to_string(limits.parameters) + ": " + limits.reason);
  };
  for_each_rule(config, architecture, [&](KeyKind kind, std::string_view key, const Value& value) {
    if (value.kind() != Value::Kind::list) return check(kind, key, value);
    for (const Value& one : value.to_items()) check(kind, key, one);
  });
  // The parts of a configuration that describe models of their own ("text_config").
  for (const auto& [key, value] : config.items()) {
    const Value* type = value.kind() == Value::Kind::dict ? value.to_dict().find("model_type") : nullptr;
    if (!type || type->kind() != Value::Kind::string) continue;
    if (const Architecture* inner = model_registry().find(type->to_string()))
      check_limits(config.nested(key), inner, limits);
  }
  for (const std::vector<std::string>& table : architecture->schema.tables) {
    int64_t elements = 1;
    std::string names;
    for (const std::string& key : table) {
      const int64_t size = plain_integer(config, key).value_or(1);
      if (__builtin_mul_overflow(elements, size, &elements)) elements = std::numeric_limits<int64_t>::max();
      names += (names.empty() ? "" : " x ") + key;
    }
    if (elements > limits.parameters)
      throw UserError(ErrorKind::bad_file, config.where() + ": a table of " + names + " has " + std::to_string(elements) +
                                               " elements, expected at most " + std::to_string(limits.parameters) + ": " +
                                               limits.reason);
  }
}

}  // namespace calque
