// Texts to train on: read from a file, made tokens once, given in batches of about equal lengths. What a batch holds depends on the
// file, the seed and the batch's number alone, so that training can go on where it stopped.
//
//   .txt     a text a line; with a tab, a source and its target, or a label and its text
//   .jsonl   an object a line      .csv   with a header: "text"; "text" (or "sentence1", "sentence2") and "label"; "source" and
//            "target"; "prompt" and "completion"
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calque/hub/model_inputs.h"
#include "calque/text/tokenizer.h"

namespace calque {

class PretrainedModel;

enum class TrainTask : uint8_t { causal_lm, masked_lm, seq2seq_lm, classification };
// "causal-lm", "masked-lm", "seq2seq-lm", "classification"; UserError lists them.
TrainTask train_task(std::string_view name);
std::string_view name(TrainTask task);
// What the model's class is for; UserError names the class where it is none of these.
TrainTask train_task_of(const PretrainedModel& model);

// A line of a file.
struct TrainText {
  std::string first;                  // the text, source or prompt
  std::optional<std::string> second;  // the second text, target or completion
  std::optional<std::string> label;
};
// By the file's ending. UserError (bad_file) names the file, the line and what was expected.
std::vector<TrainText> read_train_texts(const std::string& path, TrainTask task);
std::vector<TrainText> parse_train_texts(std::string_view content, const std::string& path, TrainTask task);

class TrainData {
 public:
  // The longest example has `max_length` tokens: a longer text becomes several examples where the task is to go on with texts, and
  // is cut where it is not. UserError where a label is none of the model's.
  TrainData(const PretrainedModel& model, const Tokenizer& tokenizer, std::span<const TrainText> texts, TrainTask task,
            std::optional<size_t> max_length = std::nullopt);

  size_t size() const { return examples_.size(); }
  TrainTask task() const { return task_; }
  uint32_t fingerprint() const;  // of everything that was read

  // The batches of an epoch: which examples are in each. Every example is in one of them; those of a batch have about one length.
  std::vector<std::vector<size_t>> epoch(size_t batch_size, uint64_t seed, int64_t number) const;
  // In the file's order, for evaluation.
  std::vector<std::vector<size_t>> in_order(size_t batch_size) const;
  // What the model takes. `noise` chooses the tokens that masked language models do not see.
  ModelInputs batch(std::span<const size_t> rows, uint64_t noise) const;
  int64_t tokens(std::span<const size_t> rows) const;  // without padding

 private:
  struct Example {
    std::vector<int64_t> ids, type_ids, labels;
    std::vector<uint8_t> special;
  };
  void add_causal(const Tokenizer& tokenizer, const TrainText& text);
  void add_seq2seq(const Tokenizer& tokenizer, const TrainText& text);
  void add_encoded(const Tokenizer& tokenizer, const TrainText& text);
  int64_t label_number(const std::string& label) const;
  void mask_tokens(std::vector<int64_t>& ids, std::vector<int64_t>& labels, const std::vector<uint8_t>& special,
                   uint64_t noise) const;

  const PretrainedModel& model_;
  TrainTask task_;
  std::vector<Example> examples_;
  size_t max_length_ = 0;  // 0: no limit
  int64_t pad_id_ = 0, mask_id_ = -1, vocab_size_ = 0;
  bool takes_types_ = false, takes_mask_ = false;
};

}  // namespace calque
