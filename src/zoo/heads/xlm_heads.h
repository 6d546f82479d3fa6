// The classes of XLM and FlauBERT: both have the same, on the same model (blocks/xlm_model.h).
#pragma once

#include <vector>

#include "calque/hub/next_word.h"
#include "calque/hub/registry.h"
#include "summary_heads.h"
#include "zoo/blocks/family_module.h"

namespace calque {

// Of a masked text, or one that goes on.
struct XlmWords : CopiedAs<XlmWords, SummaryHead>, NextWordModel {
  XlmWords(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  TiedWeights tied_weights() const override;
  Child<Linear>* output_embeddings() override;
  bool can_generate() const override { return true; }
  ModelInputs next_word_inputs(const Tensor& ids, const ModelOutput& before, const Tensor& rows) const override;

  struct PredLayer : NamedModule<PredLayer> {
    static constexpr const char* forward_arguments[] = {"x"};
    PredLayer(std::string type, const Config& c);
    Tensor forward(const Tensor& x) { return proj(x); }
    Child<Linear> proj;
  };
  Child<PredLayer> pred_layer;
};

struct XlmSpanSearch : CopiedAs<XlmSpanSearch, SummaryHead> {
  XlmSpanSearch(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  Child<SQuADHead> qa_outputs;
};

// A family of them, whose configuration has `more` defaults than XLM's ("\"pre_norm\": false, "). The family lives as long as
// the program.
Architecture xlm_architecture(const HeadFamily& family, std::string model_type, std::string config_class, ModelClass base,
                              const std::string& more = "");

}  // namespace calque
