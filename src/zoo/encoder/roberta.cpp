// RoBERTa (blocks/roberta_model.h).
#include "zoo/blocks/roberta_model.h"

namespace calque::roberta {

namespace {

constexpr HeadFamily roberta_heads{"transformers.models.roberta.modeling_roberta.Roberta", "roberta",
                                   [](const Config& config, bool pools) -> std::unique_ptr<PretrainedModel> {
                                     return std::make_unique<RobertaModel>(config, pools, roberta_heads.name);
                                   }};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) { registry.add(roberta_architecture("roberta", roberta_heads, 50265)); }

}  // namespace calque::roberta
