// Classifier: labels of texts, or of pairs of texts, with scores, and the labels of words in a text, as transformers' pipelines
// text-classification and token-classification (aggregation_strategy="simple") give them. What the labels are and how scores are
// made of logits the model's config says.
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

struct LabelScore {
  std::string label;
  double score = 0;
};

// Neighbouring tokens with one label, begun anew at a "B-".
struct WordGroup {
  std::string label;  // without "B-" and "I-"
  double score = 0;   // the mean of its tokens'
  std::string word;
  size_t begin = 0, end = 0;  // in the text's characters
};

struct ClassifyOptions {
  size_t batch_size = 32;
  TaskProgress progress = {};
};

class Classifier {
 public:
  // A folder whose class labels texts or tokens; UserError names the classes that do otherwise.
  static Classifier from_folder(const std::filesystem::path& folder, const LoadOptions& options = {});

  bool labels_tokens() const { return labels_tokens_; }
  const std::vector<std::string>& labels() const { return labels_; }

  // Of each text all labels, the most likely first. UserError for a model that labels tokens.
  std::vector<std::vector<LabelScore>> classify(std::span<const TextInput> texts, const ClassifyOptions& options = {}) const;
  // Of each text the groups whose label is not "O". UserError for a model that labels texts.
  std::vector<std::vector<WordGroup>> classify_words(std::span<const TextInput> texts,
                                                     const ClassifyOptions& options = {}) const;

  const Tokenizer& tokenizer() const { return tokenizer_; }
  PretrainedModel& model() const { return *model_; }

 private:
  Classifier(std::shared_ptr<PretrainedModel> model, Tokenizer tokenizer, bool labels_tokens);
  std::vector<WordGroup> groups_of(const std::string& text, const Encoding& row, const float* scores) const;

  std::shared_ptr<PretrainedModel> model_;
  Tokenizer tokenizer_;
  bool labels_tokens_;
  std::vector<std::string> labels_;
};

}  // namespace calque
