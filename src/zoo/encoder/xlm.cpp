// XLM: an encoder of texts in many languages, each token with its language.
#include "zoo/blocks/xlm_model.h"
#include "zoo/heads/xlm_heads.h"

namespace calque::xlm {

namespace {

constexpr const char* names = "transformers.models.xlm.modeling_xlm.XLM";

std::unique_ptr<PretrainedModel> make(const Config& config, bool) { return std::make_unique<XlmModel>(config, names); }

constexpr HeadFamily heads{names, "transformer", make};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add(xlm_architecture(heads, "xlm", "XLMConfig", {"XLMModel", {"default"}, [](const Config& config) {
                                                              return finished_model(make(config, false));
                                                            }}));
}

}  // namespace calque::xlm
