#include "calque/task/answer.h"

#include <algorithm>
#include <cmath>

#include "calque/base/error.h"
#include "calque/hub/pretrained_model.h"
#include "calque/op/tensor.h"
#include "task/load.h"
#include "task/text_case.h"

namespace calque {
namespace {

constexpr size_t usual_part = 384, usual_stride = 128;
constexpr double smaller_than_any_logit = -10000;

struct Span {
  double score;
  size_t begin, end;  // tokens, both inside
};

// Where an answer may begin and end: in the context, and at the class token, which stands for no answer.
std::vector<bool> answer_places(const Encoding& row, int8_t context, std::optional<int64_t> class_token) {
  std::vector<bool> out(row.size());
  for (size_t i = 0; i < row.size(); ++i)
    out[i] = row.attention_mask[i] && (row.sequence_ids[i] == context || row.ids[i] == class_token);
  return out;
}

std::vector<double> probabilities(const float* logits, const std::vector<bool>& places) {
  std::vector<double> out(places.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = places[i] ? logits[i] : smaller_than_any_logit;
  const double most = *std::ranges::max_element(out);
  double sum = 0;
  for (double& value : out) sum += value = std::exp(value - most);
  for (double& value : out) value /= sum;
  return out;
}

// The likeliest spans of at most so many tokens.
std::vector<Span> best_spans(const std::vector<double>& begins, const std::vector<double>& ends,
                             const std::vector<bool>& places, size_t longest, size_t count) {
  std::vector<Span> out;
  for (size_t b = 0; b < begins.size(); ++b)
    for (size_t e = b; e < std::min(ends.size(), b + longest); ++e) out.push_back({begins[b] * ends[e], b, e});
  const size_t kept = std::min(count, out.size());
  std::ranges::partial_sort(out, out.begin() + static_cast<ptrdiff_t>(kept), std::greater<>(), &Span::score);
  out.resize(kept);
  std::erase_if(out, [&](const Span& span) { return !places[span.begin] || !places[span.end]; });
  return out;
}

// The characters of the word that a token is in, or of the token where it is in none.
std::pair<size_t, size_t> word_around(const Encoding& row, size_t token) {
  std::pair<size_t, size_t> out = row.offsets[token];
  const auto same = [&](size_t i) {
    return row.word_ids[i] == row.word_ids[token] && row.sequence_ids[i] == row.sequence_ids[token];
  };
  if (row.word_ids[token] < 0) return out;
  size_t first = token, last = token;
  while (first > 0 && same(first - 1)) --first;
  while (last + 1 < row.size() && same(last + 1)) ++last;
  return {row.offsets[first].first, row.offsets[last].second};
}

}  // namespace

Answerer::Answerer(std::shared_ptr<PretrainedModel> model, Tokenizer tokenizer)
    : model_(std::move(model)), tokenizer_(std::move(tokenizer)) {}

Answerer Answerer::from_folder(const std::filesystem::path& folder, const LoadOptions& options) {
  static constexpr std::string_view tasks[] = {"question-answering"};
  TaskModel loaded = load_for_task(folder, options, tasks, "answer");
  return {std::move(loaded.model), std::move(loaded.tokenizer)};
}

std::vector<Answer> Answerer::answer(const std::string& question, const std::string& context,
                                     const AnswerOptions& options) const {
  if (stripped(question).empty()) throw UserError("answer: the question is empty");
  if (stripped(context).empty()) throw UserError("answer: the context is empty; give the text that holds the answer");
  const GradModeScope no_grad(false);
  const bool question_first = tokenizer_.padding_side() == TextSide::right;
  const TextInput pair[] = {question_first ? TextInput(question, context) : TextInput(context, question)};
  TextInputOptions parts;
  const std::optional<size_t> most = longest_input(*model_, tokenizer_);
  parts.max_length = options.max_length ? *options.max_length : std::min(usual_part, most.value_or(usual_part));
  parts.stride = options.stride ? *options.stride : std::min(*parts.max_length / 2, usual_stride);
  parts.overflow = true;
  parts.padding_side = TextSide::right;  // a part has the positions that it has alone
  parts.strategy = question_first ? BatchOptions::Truncation::only_second : BatchOptions::Truncation::only_first;
  const TextInputs made = text_inputs(*model_, tokenizer_, pair, parts);
  const ModelOutput output = (*model_)(made.inputs);
  if (!output.has("start_logits"))
    throw UserError("answer: " + model_->class_name() +
                    " gives no start_logits and end_logits; it finds spans in another way");
  const Tensor begin_logits = output["start_logits"].to(DType::float32).contiguous();
  const Tensor end_logits = output["end_logits"].to(DType::float32).contiguous();

  std::vector<Answer> out;
  double no_answer = 1e6;
  const size_t width = made.batch.width;
  for (size_t r = 0; r < made.batch.rows.size(); ++r) {
    const Encoding& row = made.batch.rows[r];
    const std::vector<bool> places = answer_places(row, question_first ? 1 : 0, tokenizer_.special_token_id("cls"));
    std::vector<double> begins = probabilities(begin_logits.data_as<float>() + r * width, places);
    std::vector<double> ends = probabilities(end_logits.data_as<float>() + r * width, places);
    no_answer = std::min(no_answer, begins[0] * ends[0]);
    begins[0] = ends[0] = 0;
    const size_t looked_at = options.whole_words ? options.top * 2 + 10 : options.top;
    for (const Span& span : best_spans(begins, ends, places, options.longest_answer, looked_at)) {
      const size_t begin = options.whole_words ? word_around(row, span.begin).first : row.offsets[span.begin].first;
      const size_t end = options.whole_words ? word_around(row, span.end).second : row.offsets[span.end].second;
      std::string text(characters(context, begin, end));
      // One text found in several places is one answer.
      const auto same =
          std::ranges::find_if(out, [&](const Answer& one) { return lower_text(one.text) == lower_text(text); });
      if (same != out.end())
        same->score += span.score;
      else
        out.push_back({span.score, begin, end, std::move(text)});
    }
  }
  if (options.may_be_impossible) out.push_back({no_answer, 0, 0, ""});
  std::ranges::stable_sort(out, std::greater<>(), &Answer::score);
  if (out.size() > options.top) out.resize(options.top);
  return out;
}

}  // namespace calque
