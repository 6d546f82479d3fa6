#include "calque/task/classify.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "calque/base/error.h"
#include "calque/hub/pretrained_model.h"
#include "calque/op/tensor.h"
#include "task/load.h"
#include "task/text_case.h"

namespace calque {
namespace {

enum class ScoreRule { none, sigmoid, softmax };

// As the pipeline chooses where nobody says.
ScoreRule score_rule(const Config& config) {
  const std::string problem = config.optional_text("problem_type").value_or("");
  if (problem == "regression") return ScoreRule::none;
  if (problem == "multi_label_classification" || config.num_labels() == 1) return ScoreRule::sigmoid;
  return ScoreRule::softmax;
}

Tensor scores_of(const Tensor& logits, ScoreRule rule) {
  const Tensor numbers = logits.to(DType::float32);
  switch (rule) {
    case ScoreRule::none: return numbers.contiguous();
    case ScoreRule::sigmoid: return numbers.sigmoid().contiguous();
    case ScoreRule::softmax: return numbers.softmax(-1).contiguous();
  }
  __builtin_unreachable();
}

// A label without what says where in its group it stands; `begins` is true of "B-".
std::string_view tag_of(std::string_view label, bool& begins) {
  begins = label.starts_with("B-");
  return begins || label.starts_with("I-") ? label.substr(2) : label;
}

// Rows of padding need an id that the class knows as padding where it looks for the last token.
size_t rows_at_once(const PretrainedModel& model, const Tokenizer& tokenizer, size_t wanted) {
  const bool known = tokenizer.special_token_id("pad") && model.config().optional_integer("pad_token_id");
  return known || !model.config().flag("use_cache") ? wanted : 1;
}

// Rows of a batch have the positions that they have alone.
TextInputOptions beside_each_other() {
  TextInputOptions options;
  options.padding_side = TextSide::right;
  return options;
}

}  // namespace

Classifier::Classifier(std::shared_ptr<PretrainedModel> model, Tokenizer tokenizer, bool labels_tokens)
    : model_(std::move(model)),
      tokenizer_(std::move(tokenizer)),
      labels_tokens_(labels_tokens),
      labels_(labels_of(model_->config())) {}

Classifier Classifier::from_folder(const std::filesystem::path& folder, const LoadOptions& options) {
  static constexpr std::string_view tasks[] = {"sequence-classification", "token-classification"};
  TaskModel loaded = load_for_task(folder, options, tasks, "classify");
  return {std::move(loaded.model), std::move(loaded.tokenizer), loaded.task == tasks[1]};
}

std::vector<std::vector<LabelScore>> Classifier::classify(std::span<const TextInput> texts,
                                                          const ClassifyOptions& options) const {
  if (labels_tokens_)
    throw UserError("classify: " + model_->class_name() + " labels the words of a text; ask for classify_words");
  const GradModeScope no_grad(false);
  const ScoreRule rule = score_rule(model_->config());
  std::vector<std::vector<LabelScore>> out(texts.size());
  const auto take = [&](const TextInputs& made, std::span<const size_t> places) {
    const Tensor scores = scores_of((*model_)(made.inputs)["logits"], rule);
    const auto count = static_cast<size_t>(scores.size(-1));
    for (size_t i = 0; i < places.size(); ++i) {
      std::vector<LabelScore>& all = out[places[i]];
      for (size_t k = 0; k < count; ++k)
        all.push_back({k < labels_.size() ? labels_[k] : std::to_string(k), scores.data_as<float>()[i * count + k]});
      std::ranges::stable_sort(all, std::greater<>(), &LabelScore::score);
    }
  };
  in_batches(*model_, tokenizer_, texts, beside_each_other(), rows_at_once(*model_, tokenizer_, options.batch_size),
             options.progress, take);
  return out;
}

std::vector<WordGroup> Classifier::groups_of(const std::string& text, const Encoding& row, const float* scores) const {
  struct Open {
    std::string label;
    std::vector<int64_t> ids;
    std::vector<double> scores;
    std::vector<std::string_view> unknown;  // the text of tokens that the vocabulary lacks
    size_t begin, end;
  };
  std::vector<Open> open;
  const std::optional<int64_t> unknown = tokenizer_.special_token_id("unk");
  std::string last_tag;
  for (size_t i = 0; i < row.size(); ++i) {
    if (row.special_tokens_mask[i]) continue;
    const float* mine = scores + i * labels_.size();
    const size_t best = static_cast<size_t>(std::max_element(mine, mine + labels_.size()) - mine);
    const std::string& label = labels_[best];
    bool begins = false;
    const std::string tag(tag_of(label, begins));
    if (open.empty() || begins || tag != last_tag) {
      const size_t dash = label.find('-');
      open.push_back({label.substr(dash == std::string::npos ? 0 : dash + 1), {}, {}, {}, row.offsets[i].first, 0});
    }
    Open& group = open.back();
    group.ids.push_back(row.ids[i]);
    group.scores.push_back(mine[best]);
    if (row.ids[i] == unknown) group.unknown.push_back(characters(text, row.offsets[i].first, row.offsets[i].second));
    group.end = row.offsets[i].second;
    last_tag = tag;
  }
  std::vector<WordGroup> out;
  for (const Open& group : open) {
    if (group.label == "O") continue;
    std::string word = tokenizer_.decode(group.ids, false);
    size_t at = 0;
    for (const std::string_view one : group.unknown) {
      const std::string name = *tokenizer_.id_to_token(*unknown);
      if ((at = word.find(name, at)) == std::string::npos) break;
      word.replace(at, name.size(), one);
      at += one.size();
    }
    const double sum = std::accumulate(group.scores.begin(), group.scores.end(), 0.0);
    out.push_back({group.label, sum / static_cast<double>(group.scores.size()), std::move(word), group.begin, group.end});
  }
  return out;
}

std::vector<std::vector<WordGroup>> Classifier::classify_words(std::span<const TextInput> texts,
                                                               const ClassifyOptions& options) const {
  if (!labels_tokens_) throw UserError("classify_words: " + model_->class_name() + " labels whole texts; ask for classify");
  const GradModeScope no_grad(false);
  std::vector<std::vector<WordGroup>> out(texts.size());
  const auto take = [&](const TextInputs& made, std::span<const size_t> places) {
    const Tensor scores = scores_of((*model_)(made.inputs)["logits"], ScoreRule::softmax);
    if (scores.dim() != 3 || static_cast<size_t>(scores.size(2)) != labels_.size())
      throw UserError("classify: expected scores of " + std::to_string(labels_.size()) + " labels for every token, found " +
                      str(scores.sizes()));
    const size_t one = static_cast<size_t>(scores.size(1)) * labels_.size();
    for (size_t i = 0; i < places.size(); ++i)
      out[places[i]] = groups_of(texts[places[i]].first, made.batch.rows[i], scores.data_as<float>() + i * one);
  };
  in_batches(*model_, tokenizer_, texts, beside_each_other(), options.batch_size, options.progress, take);
  return out;
}

}  // namespace calque
