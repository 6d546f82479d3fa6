// Cohere: Llama's parts side by side, with norms of queries and keys where asked for.
#include "zoo/blocks/cohere_design.h"
#include "zoo/blocks/decoder_model.h"

namespace calque::cohere {

namespace {

constexpr const char* names = "transformers.models.cohere.modeling_cohere.Cohere";

DecoderDesign design(const Config& c) {
  DecoderDesign out = cohere_design(names, c, plain_layers(c));
  if (c.flag("use_qk_norm")) out.attention.query_norm = QueryNorm::each_head;
  out.attention.query_norm_kind = out.norm;
  return out;
}

void complete(Config& config) {
  complete_key_heads(config);
  complete_rope_parameters(config, 500000);
}

constexpr HeadFamily heads{names, "model", decoder_of<design>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "cohere",
      .config_class = "CohereConfig",
      .attribute_map = {},
      .defaults = cohere_defaults(R"(, "use_qk_norm": false)"),
      .schema = rotary_schema({{"logit_scale", KeyKind::number}}),
      .complete = complete,
      .classes = decoder_classes(heads, 1),
  });
}

}  // namespace calque::cohere
