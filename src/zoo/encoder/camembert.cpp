// CamemBERT: RoBERTa under another name, for French.
#include "zoo/blocks/roberta_model.h"

namespace calque::camembert {

namespace {

constexpr HeadFamily camembert_heads{"transformers.models.camembert.modeling_camembert.Camembert", "roberta",
                                     [](const Config& config, bool pools) -> std::unique_ptr<PretrainedModel> {
                                       return std::make_unique<RobertaModel>(config, pools, camembert_heads.name);
                                     }};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) { registry.add(roberta_architecture("camembert", camembert_heads, 30522)); }

}  // namespace calque::camembert
