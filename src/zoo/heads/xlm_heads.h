// The classes of XLM and FlauBERT: both have the same, on the same model (blocks/xlm_model.h).
#pragma once

#include <vector>

#include "calque/hub/registry.h"
#include "summary_heads.h"

namespace calque {

// Of a masked text, or one that goes on.
struct XlmWords : CopiedAs<XlmWords, SummaryHead> {
  XlmWords(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  TiedWeights tied_weights() const override;
  Child<Linear>* output_embeddings() override;

  struct PredLayer : Typed<PredLayer> {
   private:
    std::string type_;  // first: registering asks for it

   public:
    static constexpr const char* forward_arguments[] = {"x"};
    PredLayer(std::string type, const Config& c);
    Tensor forward(const Tensor& x) { return proj(x); }
    std::string type_name() const override { return type_; }
    Child<Linear> proj;
  };
  Child<PredLayer> pred_layer;
};

struct XlmSpanSearch : CopiedAs<XlmSpanSearch, SummaryHead> {
  XlmSpanSearch(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  Child<SQuADHead> qa_outputs;
};

// All of them; the family lives as long as the program.
std::vector<ModelClass> xlm_classes(const HeadFamily& family, ModelClass base);

}  // namespace calque
