// Heads of XLM, FlauBERT and XLNet: words of a masked text, labels and choices by a sequence's summary, labels of words, and spans
// that are searched for (squad_heads.h).
#pragma once

#include <optional>

#include "calque/nn/dropout.h"
#include "calque/nn/linear.h"
#include "head_model.h"
#include "sequence_summary.h"
#include "squad_heads.h"

namespace calque {

namespace arg {

inline constexpr ArgumentName<Tensor> langs{"langs"};                  // [batch, length]: the tokens' languages
inline constexpr ArgumentName<Tensor> input_mask{"input_mask"};        // [batch, length]: 1 is padding
inline constexpr ArgumentName<Tensor> cls_index{"cls_index"};          // [batch]
inline constexpr ArgumentName<Tensor> is_impossible{"is_impossible"};  // [batch]
inline constexpr ArgumentName<Tensor> p_mask{"p_mask"};                // [batch, length]: 1 where no answer may be

}  // namespace arg

// Takes what its base model takes, and labels.
struct SummaryHead : HeadModel {
  SummaryHead(const HeadClass& head, const Config& c);

 protected:
  SummaryHead(const SummaryHead&) = default;
};

// The classifier on the summary is `logits_proj`; without a HeadClass::classifier the summary is the logits.
struct SummaryClassification : CopiedAs<SummaryClassification, SummaryHead> {
  SummaryClassification(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  Child<SequenceSummary> sequence_summary;
  std::optional<Child<Linear>> logits_proj;
};

// Choices [batch, choices, length]; what the summary gives is HeadClass::features, or "num_labels".
struct SummaryChoice : CopiedAs<SummaryChoice, SummaryHead> {
  SummaryChoice(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  ModelInputs example_inputs(const ExampleSizes& sizes) const override;
  Child<SequenceSummary> sequence_summary;
  Child<Linear> logits_proj;
};

struct WordClassification : CopiedAs<WordClassification, SummaryHead> {
  WordClassification(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  std::optional<Child<Dropout>> dropout;  // where the family has one
  Child<Linear> classifier;
};

struct PlainSpans : CopiedAs<PlainSpans, SummaryHead> {
  PlainSpans(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  Child<Linear> qa_outputs;
};

}  // namespace calque
