#include "decoder_design.h"

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

namespace {

[[noreturn]] void wrong_layer_types(const Config& config, const std::string& expected) {
  throw UserError(ErrorKind::bad_file,
                  config.where() + ": \"layer_types\" is " + config.find("layer_types")->str() + ", expected " + expected);
}

}  // namespace

std::vector<LayerDesign> layer_designs(const Config& config) {
  std::vector<LayerDesign> out(static_cast<size_t>(config.integer("num_hidden_layers")));
  const std::optional<int64_t> window = config.optional_integer("sliding_window");
  if (!config.has("layer_types")) {
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
    if (!window)
      throw UserError(ErrorKind::bad_file, config.where() +
                                               ": \"sliding_window\" is missing, which layers of type "
                                               "sliding_attention look at");
    out[i].window = window;
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

FeedForwardDesign feed_forward_design(const Config& c, bool bias) {
  FeedForwardDesign out;
  out.activation = c.text(c.find("hidden_activation") ? "hidden_activation" : "hidden_act");
  out.size = c.integer("intermediate_size");
  out.bias = bias;
  return out;
}

}  // namespace calque
