// Answerer: the part of a text that answers a question, as transformers' question-answering pipeline finds it. A context longer than
// the model reads is read in parts that overlap.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "calque/hub/from_pretrained.h"
#include "calque/task/text_inputs.h"

namespace calque {

struct Answer {
  double score = 0;
  size_t begin = 0, end = 0;  // in the context's characters
  std::string text;           // empty where no answer is the best one
};

struct AnswerOptions {
  size_t top = 1;
  size_t longest_answer = 15;             // in tokens
  std::optional<size_t> max_length = {};  // of a part with the question; else 384, or less where the tokenizer says so
  std::optional<size_t> stride = {};      // tokens that a part shares with the next; else half of max_length, at most 128
  bool may_be_impossible = false;         // that there is no answer is one too
  bool whole_words = true;                // answers begin and end where words do
};

class Answerer {
 public:
  static Answerer from_folder(const std::filesystem::path& folder, const LoadOptions& options = {});

  // The best first; at least one, unless the context has no place for any.
  std::vector<Answer> answer(const std::string& question, const std::string& context,
                             const AnswerOptions& options = {}) const;

  const Tokenizer& tokenizer() const { return tokenizer_; }
  PretrainedModel& model() const { return *model_; }

 private:
  Answerer(std::shared_ptr<PretrainedModel> model, Tokenizer tokenizer);
  std::shared_ptr<PretrainedModel> model_;
  Tokenizer tokenizer_;
};

}  // namespace calque
