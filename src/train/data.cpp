#include "calque/train/data.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "calque/base/crc32.h"
#include "calque/base/error.h"
#include "calque/hub/pretrained_model.h"
#include "calque/hub/registry.h"
#include "calque/task/text_inputs.h"
#include "calque/tensor/generator.h"

namespace calque {
namespace {

constexpr int64_t ignored = -100;  // what losses leave out

struct NamedTask {
  const char* name;
  TrainTask task;
  const char* of_class;  // among the tasks of a class in the registry
};
constexpr NamedTask named_tasks[] = {{"causal-lm", TrainTask::causal_lm, "causal-lm"},
                                     {"masked-lm", TrainTask::masked_lm, "masked-lm"},
                                     {"seq2seq-lm", TrainTask::seq2seq_lm, "seq2seq-lm"},
                                     {"classification", TrainTask::classification, "sequence-classification"}};

// A number below `count` of a stream.
size_t below(Generator& stream, size_t count) { return static_cast<size_t>(stream.random64() % count); }

template <class T>
void shuffle(std::vector<T>& values, Generator& stream) {
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(stream, i)]);
}

// One stream for each pair: streams of neighbouring seeds have nothing in common.
uint64_t mixed(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9E3779B97F4A7C15U + b + 0x632BE59BD9B4E019U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

}  // namespace

TrainTask train_task(std::string_view name) {
  std::string known;
  for (const NamedTask& task : named_tasks) {
    if (task.name == name) return task.task;
    known += std::string(known.empty() ? "" : ", ") + task.name;
  }
  throw UserError("there is no task \"" + std::string(name) + "\" to train for; there are " + known);
}

std::string_view name(TrainTask task) {
  for (const NamedTask& named : named_tasks)
    if (named.task == task) return named.name;
  return "";
}

TrainTask train_task_of(const PretrainedModel& model) {
  if (const ModelClass* found = model_registry().find_class(model.class_name()))
    for (const NamedTask& task : named_tasks)
      if (std::ranges::find(found->tasks, task.of_class) != found->tasks.end()) return task.task;
  throw UserError(model.class_name() +
                  " is no class for causal-lm, masked-lm, seq2seq-lm or classification; take another class of "
                  "this architecture (calque models shows them)");
}

// ---- examples -------------------------------------------------------------------------------------------------------------

TrainData::TrainData(const PretrainedModel& model, const Tokenizer& tokenizer, std::span<const TrainText> texts,
                     TrainTask task, std::optional<size_t> max_length)
    : model_(model), task_(task) {
  const std::optional<size_t> most = longest_input(model, tokenizer);
  max_length_ = max_length && most ? std::min(*max_length, *most) : max_length.value_or(most.value_or(0));
  pad_id_ = tokenizer.special_token_id("pad").value_or(tokenizer.special_token_id("eos").value_or(0));
  mask_id_ = tokenizer.special_token_id("mask").value_or(-1);
  vocab_size_ = static_cast<int64_t>(tokenizer.vocab_size());
  takes_mask_ = model.takes(arg::attention_mask);
  const std::vector<std::string>& names = tokenizer.model_input_names();
  takes_types_ = model.takes(arg::token_type_ids) && std::ranges::find(names, arg::token_type_ids.name) != names.end();
  if (task == TrainTask::masked_lm && mask_id_ < 0)
    throw UserError("the tokenizer of " + model.class_name() + " has no mask token; a masked language model needs one");
  if (!model.takes(arg::labels)) throw UserError(model.class_name() + " takes no labels, so that it gives no loss");
  for (const TrainText& text : texts) {
    switch (task) {
      case TrainTask::causal_lm: add_causal(tokenizer, text); break;
      case TrainTask::seq2seq_lm: add_seq2seq(tokenizer, text); break;
      case TrainTask::masked_lm:
      case TrainTask::classification: add_encoded(tokenizer, text); break;
    }
  }
  if (examples_.empty()) throw UserError("there is no text with enough tokens to train on");
}

// A text that is longer goes on in further examples. Of a prompt with its completion only the completion counts.
void TrainData::add_causal(const Tokenizer& tokenizer, const TrainText& text) {
  std::vector<int64_t> ids = tokenizer.encode_ids(text.first, !text.second);
  const size_t prompt = text.second ? ids.size() : 0;
  if (text.second) {
    const std::vector<int64_t> completion = tokenizer.encode_ids(*text.second, false);
    ids.insert(ids.end(), completion.begin(), completion.end());
  }
  if (const std::optional<int64_t> eos = tokenizer.special_token_id("eos"); eos && (ids.empty() || ids.back() != *eos))
    ids.push_back(*eos);
  const size_t length = max_length_ == 0 ? ids.size() : max_length_;
  for (size_t begin = 0; begin + 1 < ids.size(); begin += length) {
    const size_t end = std::min(begin + length, ids.size());
    if (end - begin < 2) break;  // nothing to go on with
    Example example;
    example.ids.assign(ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.begin() + static_cast<std::ptrdiff_t>(end));
    example.labels = example.ids;
    for (size_t i = begin; i < std::min(prompt, end); ++i) example.labels[i - begin] = ignored;
    examples_.push_back(std::move(example));
  }
}

void TrainData::add_seq2seq(const Tokenizer& tokenizer, const TrainText& text) {
  Example example;
  example.ids = tokenizer.encode_ids(text.first);
  example.labels = tokenizer.encode_ids(text.second.value_or(""));
  const auto cut = [&](std::vector<int64_t>& ids) {  // the last token ends the text
    if (max_length_ == 0 || ids.size() <= max_length_) return;
    ids[max_length_ - 1] = ids.back();
    ids.resize(max_length_);
  };
  cut(example.ids), cut(example.labels);
  if (!example.ids.empty() && !example.labels.empty()) examples_.push_back(std::move(example));
}

void TrainData::add_encoded(const Tokenizer& tokenizer, const TrainText& text) {
  BatchOptions options;
  options.pad = false;
  options.truncate = max_length_ > 0;
  if (max_length_ > 0) options.max_length = max_length_;
  const TextInput input = text.second ? TextInput(text.first, *text.second) : TextInput(text.first);
  Encoding encoding = tokenizer.encode_padded(std::span(&input, 1), options).rows.at(0);
  if (encoding.ids.empty()) return;
  Example example{std::move(encoding.ids), std::move(encoding.type_ids), {}, std::move(encoding.special_tokens_mask)};
  if (task_ == TrainTask::classification) example.labels = {label_number(text.label.value_or(""))};
  examples_.push_back(std::move(example));
}

// By the model's names of labels, or a number.
int64_t TrainData::label_number(const std::string& label) const {
  const int64_t count = model_.config().num_labels();
  std::string known;
  if (const Value* names = model_.config().find("id2label"); names && names->kind() == Value::Kind::dict)
    for (const auto& [id, name] : names->to_dict().items) {
      if (name.kind() == Value::Kind::string && name.to_string() == label)
        return id.kind() == Value::Kind::string ? std::stoll(id.to_string()) : id.to_int();
      known += (known.empty() ? "" : ", ") + name.str();
    }
  const bool digits = !label.empty() && label.size() < 10 && label.find_first_not_of("0123456789") == std::string::npos;
  if (digits && std::stoll(label) < count) return std::stoll(label);
  throw UserError("the label \"" + label + "\" is none of the model's; expected " + known + (known.empty() ? "" : ", or ") +
                  "a number from 0 to " + std::to_string(count - 1));
}

uint32_t TrainData::fingerprint() const {
  uint32_t sum = 0;
  for (const Example& example : examples_) {
    sum = crc32(std::as_bytes(std::span(example.ids)), sum);
    sum = crc32(std::as_bytes(std::span(example.labels)), sum);
  }
  return sum;
}

// ---- batches --------------------------------------------------------------------------------------------------------------

std::vector<std::vector<size_t>> TrainData::epoch(size_t batch_size, uint64_t seed, int64_t number) const {
  Generator stream(mixed(seed, static_cast<uint64_t>(number)));
  std::vector<size_t> order(examples_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  shuffle(order, stream);
  // Sorted in stretches of the shuffled examples: batches of one length that are others in the next epoch.
  const size_t stretch = batch_size * 50;
  std::vector<std::vector<size_t>> out;
  for (size_t begin = 0; begin < order.size(); begin += stretch) {
    const auto first = order.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = order.begin() + static_cast<std::ptrdiff_t>(std::min(begin + stretch, order.size()));
    std::stable_sort(first, last, [&](size_t a, size_t b) { return examples_[a].ids.size() > examples_[b].ids.size(); });
    for (auto at = first; at < last; at += std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(batch_size), last - at))
      out.emplace_back(at, at + std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(batch_size), last - at));
  }
  shuffle(out, stream);
  return out;
}

std::vector<std::vector<size_t>> TrainData::in_order(size_t batch_size) const {
  std::vector<std::vector<size_t>> out;
  for (size_t i = 0; i < examples_.size(); ++i) {
    if (i % batch_size == 0) out.emplace_back();
    out.back().push_back(i);
  }
  return out;
}

int64_t TrainData::tokens(std::span<const size_t> rows) const {
  int64_t sum = 0;
  for (const size_t row : rows) sum += static_cast<int64_t>(examples_[row].ids.size());
  return sum;
}

// 15 of 100 tokens are to be found again; 80 of 100 of these are masked, 10 are another token, 10 stay.
void TrainData::mask_tokens(std::vector<int64_t>& ids, std::vector<int64_t>& labels, const std::vector<uint8_t>& special,
                            uint64_t noise) const {
  Generator stream(noise);
  labels.assign(ids.size(), ignored);
  for (size_t i = 0; i < ids.size(); ++i) {
    const size_t chosen = below(stream, 100), how = below(stream, 10);
    const auto other = static_cast<int64_t>(below(stream, static_cast<size_t>(vocab_size_)));
    if (special[i] != 0 || chosen >= 15) continue;
    labels[i] = ids[i];
    if (how < 8)
      ids[i] = mask_id_;
    else if (how == 8)
      ids[i] = other;
  }
}

ModelInputs TrainData::batch(std::span<const size_t> rows, uint64_t noise) const {
  size_t width = 0, label_width = 0;
  for (const size_t row : rows) {
    width = std::max(width, examples_[row].ids.size());
    label_width = std::max(label_width, examples_[row].labels.size());
  }
  const bool padded = std::ranges::any_of(rows, [&](size_t row) { return examples_[row].ids.size() < width; });
  if (padded && !takes_mask_ && task_ != TrainTask::causal_lm)
    throw UserError(model_.class_name() +
                    " takes no attention_mask, so that padding would count as text; train with a batch size of 1");
  std::vector<int64_t> ids, mask, types, labels;
  for (const size_t row : rows) {
    const Example& example = examples_[row];
    std::vector<int64_t> own = example.ids, own_labels = example.labels, own_types = example.type_ids;
    if (task_ == TrainTask::masked_lm) {
      mask_tokens(own, own_labels, example.special, mixed(noise, row));
      label_width = width;
    }
    mask.insert(mask.end(), own.size(), 1);
    mask.insert(mask.end(), width - own.size(), 0);
    own.resize(width, pad_id_);
    own_types.resize(width, 0);
    own_labels.resize(label_width, ignored);
    ids.insert(ids.end(), own.begin(), own.end());
    types.insert(types.end(), own_types.begin(), own_types.end());
    labels.insert(labels.end(), own_labels.begin(), own_labels.end());
  }
  const auto count = static_cast<int64_t>(rows.size());
  const auto matrix = [&](const std::vector<int64_t>& values) {
    return tensor_of<int64_t>(values, {count, static_cast<int64_t>(values.size()) / count});
  };
  ModelInputs out;
  out.set(arg::input_ids, matrix(ids));
  if (takes_mask_) out.set(arg::attention_mask, matrix(mask));
  if (takes_types_) out.set(arg::token_type_ids, matrix(types));
  out.set(arg::labels, task_ == TrainTask::classification ? tensor_of<int64_t>(labels, {count}) : matrix(labels));
  if (model_.takes(arg::use_cache)) out.set(arg::use_cache, false);
  return out;
}

}  // namespace calque
