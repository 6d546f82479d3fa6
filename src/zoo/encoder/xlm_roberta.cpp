// XLM-RoBERTa: RoBERTa under another name, for a hundred languages.
#include "zoo/blocks/roberta_model.h"

namespace calque::xlm_roberta {

namespace {

constexpr HeadFamily xlm_roberta_heads{"transformers.models.xlm_roberta.modeling_xlm_roberta.XLMRoberta", "roberta",
                                       [](const Config& config, bool pools) -> std::unique_ptr<PretrainedModel> {
                                         return std::make_unique<RobertaModel>(config, pools, xlm_roberta_heads.name);
                                       }};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add(roberta_architecture("xlm-roberta", xlm_roberta_heads, 30522));
}

}  // namespace calque::xlm_roberta
