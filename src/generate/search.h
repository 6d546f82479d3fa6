// What the loops of generate() share.
#pragma once

#include "calque/generate/generate.h"

namespace calque {

// What a search starts from: rows already repeated for the beams.
struct Search {
  Tensor ids, mask;
  const GenerationConfig& config;
  const LogitsProcessorList& processors;
  const StoppingCriteriaList& criteria;
  const GenerateOptions& options;

  // Those of the ids so far that the callback has not seen: none, while a prompt of its own is not all seen.
  Tensor unseen(const Tensor& so_far, int64_t seen) const;
};

// The scores of the last position, [rows, vocab], in float32, a copy of its own.
Tensor last_scores(const Tensor& logits, int64_t rows);

GenerateOutput assisted_search(const NextLogits& next_logits, const Search& search, CandidateGenerator& generator);

}  // namespace calque
