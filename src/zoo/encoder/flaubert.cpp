// FlauBERT: XLM, read in French, with norms before attention and feed-forward where asked for.
#include "zoo/blocks/xlm_model.h"
#include "zoo/heads/xlm_heads.h"

namespace calque::flaubert {

namespace {

constexpr const char* names = "transformers.models.flaubert.modeling_flaubert.Flaubert";

std::unique_ptr<PretrainedModel> make(const Config& config, bool) { return std::make_unique<XlmModel>(config, names); }

constexpr HeadFamily heads{names, "transformer", make};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add(xlm_architecture(
      heads, "flaubert", "FlaubertConfig",
      {"FlaubertModel", {"default"}, [](const Config& config) { return finished_model(make(config, false)); }},
      R"("pre_norm": false, "layerdrop": 0.0, )"));
}

}  // namespace calque::flaubert
