#include "decoder_design.h"

#include <algorithm>

#include "calque/base/error.h"

namespace calque {

void complete_key_heads(Config& config) {
  if (!config.has("num_key_value_heads")) config.set("num_key_value_heads", config.integer("num_attention_heads"));
}

void complete_head_size(Config& config) {
  if (!config.has("head_dim")) config.set("head_dim", config.integer("hidden_size") / config.integer("num_attention_heads"));
}

void complete_layer_types(Config& config, const std::function<bool(int64_t)>& slides) {
  if (config.has("layer_types")) return;
  Values types;
  const int64_t count = config.integer("num_hidden_layers");
  for (int64_t i = 0; i < count; ++i) types.emplace_back(slides(i) ? "sliding_attention" : "full_attention");
  config.set("layer_types", list(std::move(types)));
}

void complete_late_windows(Config& config) {
  if (!config.flag("use_sliding_window")) config.set("sliding_window", Value());
  const bool windows = config.has("sliding_window");
  const int64_t first = config.optional_integer("max_window_layers").value_or(0);
  complete_layer_types(config, [&](int64_t layer) { return windows && layer >= first; });
}

void refuse_bidirectional(const Config& config) {
  if (config.flag("use_bidirectional_attention"))
    throw UserError(ErrorKind::unsupported_operator,
                    "\"use_bidirectional_attention\" is true, but only attention to what comes before is supported");
}

void complete_rotary_part(Config& config, double part) {
  if (config.has("partial_rotary_factor")) return;
  for (const char* name : {"rope_parameters", "rope_scaling"})
    if (config.has(name) && config.find(name)->to_dict().find("partial_rotary_factor")) return;
  config.set("partial_rotary_factor", part);
}

void complete_rope_parameters_by_layer(Config& config, std::initializer_list<LayerRope> types) {
  std::vector<std::pair<Value, Value>> all;
  for (const LayerRope& type : types) {
    // One of the types, as a configuration of its own: what is said of all layers belongs to the first alone.
    Config one({{"max_position_embeddings", config.integer("max_position_embeddings")}}, config.where());
    if (config.has(type.theta_key)) one.set("rope_theta", config.number(type.theta_key));
    if (&type == types.begin() && config.has("rope_scaling")) one.set("rope_scaling", *config.find("rope_scaling"));
    if (config.has("rope_parameters")) {
      const Value* own = config.find("rope_parameters")->to_dict().find(type.type);
      if (own && !own->is_none()) {
        if (own->kind() != Value::Kind::dict)
          throw UserError(ErrorKind::bad_file,
                          "\"rope_parameters." + std::string(type.type) + "\" is " + own->str() + ", expected an object");
        one.set("rope_parameters", *own);
      }
    }
    complete_rope_parameters(one, type.theta);
    all.emplace_back(type.type, *one.find("rope_parameters"));
  }
  config.set("rope_parameters", dict(std::move(all)));
  config.erase("rope_scaling");
  for (const LayerRope& type : types) config.erase(type.theta_key);
}

WeightForm experts_one_by_one() {
  return {.joined = {{"mlp.experts.gate_up_proj", {"mlp.experts.*.gate_proj.weight", "mlp.experts.*.up_proj.weight"}},
                     {"mlp.experts.down_proj", {"mlp.experts.*.down_proj.weight"}}}};
}

void put_experts_by_step(const Config& config, std::vector<LayerDesign>& layers, int64_t experts) {
  const std::vector<int64_t> plain = config.integers("mlp_only_layers");
  const int64_t step = config.integer("decoder_sparse_step");
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto layer = static_cast<int64_t>(i);
    layers[i].experts =
        experts > 0 && (layer + 1) % step == 0 && std::find(plain.begin(), plain.end(), layer) == plain.end();
  }
}

namespace {

std::optional<int64_t> window_of(const Config& config) {
  const std::optional<int64_t> window = config.optional_integer("sliding_window");
  if (window && *window < 1)
    throw UserError(ErrorKind::bad_file, config.where() + ": \"sliding_window\" is " + std::to_string(*window) +
                                             ", expected a whole number of tokens, 1 or more");
  return window;
}

[[noreturn]] void wrong_layer_types(const Config& config, const std::string& expected) {
  throw UserError(ErrorKind::bad_file,
                  config.where() + ": \"layer_types\" is " + config.find("layer_types")->str() + ", expected " + expected);
}

}  // namespace

std::vector<LayerDesign> plain_layers(const Config& config) {
  return std::vector<LayerDesign>(static_cast<size_t>(config.integer("num_hidden_layers")));
}

std::vector<LayerDesign> layer_designs(const Config& config) {
  std::vector<LayerDesign> out = plain_layers(config);
  if (!config.has("layer_types")) {
    const std::optional<int64_t> window = window_of(config);
    for (LayerDesign& layer : out) layer.window = window;
    return out;
  }
  const Value& types = *config.find("layer_types");
  if (!types.is_container() || types.to_items().size() < out.size())
    wrong_layer_types(config, "a list of " + std::to_string(out.size()) + " types, one a layer");
  for (size_t i = 0; i < out.size(); ++i) {
    const Value& type = types.to_items()[i];
    const std::string name = type.kind() == Value::Kind::string ? type.to_string() : type.str();
    if (name == "full_attention") continue;
    if (name != "sliding_attention") wrong_layer_types(config, "full_attention or sliding_attention for each layer");
    out[i].window = window_of(config);
    if (!out[i].window)
      throw UserError(ErrorKind::bad_file, config.where() +
                                               ": \"sliding_window\" is missing, which layers of type "
                                               "sliding_attention look at");
  }
  return out;
}

AttentionDesign attention_design(const Config& c) {
  AttentionDesign out;
  out.heads = c.integer("num_attention_heads");
  out.key_heads = c.optional_integer("num_key_value_heads").value_or(out.heads);
  out.head_size = c.optional_integer("head_dim").value_or(c.integer("hidden_size") / out.heads);
  out.bias = out.output_bias = c.flag("attention_bias");
  out.dropout = c.optional_number("attention_dropout").value_or(0);
  return out;
}

FeedForwardDesign feed_forward_design(const Config& c, bool bias, const char* activation) {
  FeedForwardDesign out;
  out.activation = c.text(activation);
  out.size = c.integer("intermediate_size");
  out.bias = bias;
  return out;
}

}  // namespace calque
