// fill_masks: what a masked language model would write in the place of its mask, as transformers' fill-mask pipeline.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "calque/hub/from_pretrained.h"
#include "calque/task/text_inputs.h"

namespace calque {

struct FilledToken {
  double score = 0;
  int64_t id = 0;
  std::string token;     // its text
  std::string sequence;  // the whole text with it; the other masks, and then all special tokens, stay
};

class MaskFiller {
 public:
  static MaskFiller from_folder(const std::filesystem::path& folder, const LoadOptions& options = {});

  const std::string& mask_token() const { return mask_token_; }
  // For each mask of the text, in order, the `top` likeliest tokens. UserError for a text without a mask.
  std::vector<std::vector<FilledToken>> fill(const std::string& text, size_t top = 5) const;

  const Tokenizer& tokenizer() const { return tokenizer_; }
  PretrainedModel& model() const { return *model_; }

 private:
  MaskFiller(std::shared_ptr<PretrainedModel> model, Tokenizer tokenizer);
  std::shared_ptr<PretrainedModel> model_;
  Tokenizer tokenizer_;
  std::string mask_token_;
  int64_t mask_id_ = 0;
};

}  // namespace calque
