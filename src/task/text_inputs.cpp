#include "calque/task/text_inputs.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/hub/pretrained_model.h"
#include "calque/nn/linear.h"

namespace calque {
namespace {

// Where the files name no padding, which stands under the mask, the end of texts serves, as transformers' users set it.
void pad_without_token(const Tokenizer& tokenizer, TextSide side, Batch& batch) {
  const int64_t id = tokenizer.special_token_id("eos").value_or(0);
  const std::string token = tokenizer.id_to_token(id).value_or("");
  for (const Encoding& row : batch.rows) batch.width = std::max(batch.width, row.size());
  for (Encoding& row : batch.rows) {
    const size_t missing = batch.width - row.size();
    const auto pad = [&](auto& values, const auto& value) {
      values.insert(side == TextSide::left ? values.begin() : values.end(), missing, value);
    };
    pad(row.ids, id);
    pad(row.tokens, token);
    pad(row.offsets, std::pair<size_t, size_t>(0, 0));
    pad(row.type_ids, int64_t{0});
    pad(row.special_tokens_mask, uint8_t{1});
    pad(row.attention_mask, uint8_t{0});
    pad(row.word_ids, int32_t{-1});
    pad(row.sequence_ids, int8_t{-1});
  }
}

void check_padding(const PretrainedModel& model, const Batch& batch) {
  const bool padded = std::ranges::any_of(
      batch.rows, [](const Encoding& row) { return std::ranges::find(row.attention_mask, 0) != row.attention_mask.end(); });
  if (padded && !model.takes(arg::attention_mask))
    throw UserError("the texts have different numbers of tokens, and " + model.class_name() +
                    " takes no attention_mask, so that padding would count as text; give one text at a time");
}

void check_lengths(const PretrainedModel& model, const Batch& batch, std::optional<size_t> most) {
  size_t longest = 0;
  for (const Encoding& row : batch.rows) longest = std::max(longest, row.size());
  if (longest == 0) throw UserError("the text has no tokens, and " + model.class_name() + " needs at least one");
  if (most && longest > *most)
    throw UserError(
        fmt::format("a text has {} tokens, but {} reads at most {}; shorten it", longest, model.class_name(), *most));
}

template <class T>
Tensor rows_tensor(const Batch& batch, const std::vector<T> Encoding::*part) {
  std::vector<int64_t> values;
  for (const Encoding& row : batch.rows) values.insert(values.end(), (row.*part).begin(), (row.*part).end());
  return tensor_of<int64_t>(values, {std::ssize(batch.rows), std::ssize(batch.rows.front().ids)});
}

void set_tensors(const PretrainedModel& model, const Tokenizer& tokenizer, TextInputs& of) {
  of.inputs.set(arg::input_ids, rows_tensor(of.batch, &Encoding::ids));
  if (model.takes(arg::attention_mask)) of.inputs.set(arg::attention_mask, rows_tensor(of.batch, &Encoding::attention_mask));
  if (const std::vector<std::string>& names = tokenizer.model_input_names();
      model.takes(arg::token_type_ids) && std::ranges::find(names, arg::token_type_ids.name) != names.end())
    of.inputs.set(arg::token_type_ids, rows_tensor(of.batch, &Encoding::type_ids));
}

// Where the tokens of a padded row begin and end.
std::pair<size_t, size_t> unpadded(const Encoding& row) {
  const auto first = std::ranges::find(row.attention_mask, 1);
  const auto last = std::find(row.attention_mask.rbegin(), row.attention_mask.rend(), 1).base();
  if (first == row.attention_mask.end()) return {0, row.size()};
  return {first - row.attention_mask.begin(), last - row.attention_mask.begin()};
}

// The rows of a batch, the longest first, in parts with little padding.
std::vector<std::vector<size_t>> even_parts(const Batch& batch) {
  // How many tokens take as long as one more call does, which reads all weights again.
  constexpr size_t call = 32;
  const auto length = [&](size_t row) {
    const auto [begin, end] = unpadded(batch.rows[row]);
    return end - begin;
  };
  std::vector<size_t> rows(batch.rows.size());
  std::iota(rows.begin(), rows.end(), size_t{0});
  std::ranges::stable_sort(rows, std::greater<>(), length);
  std::vector<std::vector<size_t>> out;
  size_t longest = 0, padding = 0;
  for (const size_t row : rows) {
    padding += longest - std::min(longest, length(row));
    if (out.empty() || padding > call) {
      out.emplace_back();
      longest = length(row);
      padding = 0;
    }
    out.back().push_back(row);
  }
  return out;
}

template <class T>
void keep(std::vector<T>& values, size_t begin, size_t end) {
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(end), values.end());
  values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(begin));
}

// Some rows of a batch, padded to the longest of them.
TextInputs part_of(const PretrainedModel& model, const Tokenizer& tokenizer, const Batch& whole,
                   std::span<const size_t> rows) {
  TextInputs out;
  size_t begin = whole.width, end = 0;
  for (const size_t row : rows) {
    const auto [first, last] = unpadded(whole.rows[row]);
    begin = std::min(begin, first), end = std::max(end, last);
  }
  for (const size_t row : rows) {
    Encoding kept = whole.rows[row];
    keep(kept.ids, begin, end), keep(kept.tokens, begin, end), keep(kept.offsets, begin, end);
    keep(kept.type_ids, begin, end), keep(kept.special_tokens_mask, begin, end), keep(kept.attention_mask, begin, end);
    keep(kept.word_ids, begin, end), keep(kept.sequence_ids, begin, end);
    out.batch.rows.push_back(std::move(kept));
    out.batch.row_of.push_back(out.batch.row_of.size());
  }
  out.batch.width = end - begin;
  set_tensors(model, tokenizer, out);
  return out;
}

// What a text is cut to is told once for all that were.
void warn_of_cuts(const Tokenizer& tokenizer, std::span<const TextInput> texts, const Batch& batch, size_t most) {
  size_t cut = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const Encoding& row = batch.rows[i];
    const auto kept = static_cast<size_t>(std::ranges::count(row.attention_mask, 1));
    if (kept < most) continue;  // only a full row can have lost anything
    const size_t whole = tokenizer.encode_ids(texts[i].first).size() +
                         (texts[i].second ? tokenizer.encode_ids(*texts[i].second, false).size() : 0);
    cut += whole > most;
  }
  if (cut > 0)
    warn(fmt::format("{} of the texts {} cut to the {} tokens that the model reads at once", cut, cut == 1 ? "was" : "were",
                     most));
}

}  // namespace

std::optional<size_t> model_positions(const PretrainedModel& model) {
  const std::optional<int64_t> most = model.config().optional_integer("max_position_embeddings");
  if (!most) return std::nullopt;
  // Positions that count on from the padding's lose those up to it.
  PretrainedModel& base = const_cast<PretrainedModel&>(model).base_model();  // looking a submodule up changes nothing
  const auto* table = dynamic_cast<const Embedding*>(base.find_submodule("embeddings.position_embeddings"));
  const int64_t lost = table && table->options.padding_idx ? *table->options.padding_idx + 1 : 0;
  return static_cast<size_t>(std::max<int64_t>(1, *most - lost));
}

std::optional<size_t> longest_input(const PretrainedModel& model, const Tokenizer& tokenizer) {
  const std::optional<size_t> positions = model_positions(model);
  const std::optional<int64_t> length = tokenizer.model_max_length();
  if (!length) return positions;
  return std::min(positions.value_or(SIZE_MAX), static_cast<size_t>(*length));
}

TextInputs text_inputs(const PretrainedModel& model, const Tokenizer& tokenizer, std::span<const TextInput> texts,
                       const TextInputOptions& options) {
  if (texts.empty()) throw UserError("there is no text; give at least one");
  const std::optional<size_t> most = options.max_length ? options.max_length : longest_input(model, tokenizer);
  BatchOptions batch_options;
  batch_options.add_special_tokens = options.add_special_tokens;
  batch_options.truncate = options.truncate && most;
  batch_options.max_length = most;
  batch_options.strategy = options.strategy;
  batch_options.stride = options.stride;
  batch_options.overflow = options.overflow;
  batch_options.padding_side = options.padding_side;
  batch_options.offsets = options.offsets;
  batch_options.pad = tokenizer.special_token_id("pad").has_value();
  TextInputs out;
  out.batch = tokenizer.encode_padded(texts, batch_options);
  if (!batch_options.pad) pad_without_token(tokenizer, options.padding_side.value_or(tokenizer.padding_side()), out.batch);
  check_lengths(model, out.batch, options.truncate ? std::nullopt : most);
  check_padding(model, out.batch);
  if (batch_options.truncate && !options.overflow) warn_of_cuts(tokenizer, texts, out.batch, *most);
  set_tensors(model, tokenizer, out);
  return out;
}

void in_batches(const PretrainedModel& model, const Tokenizer& tokenizer, std::span<const TextInput> texts,
                const TextInputOptions& options, size_t batch_size, const TaskProgress& progress,
                const std::function<void(const TextInputs&, std::span<const size_t>)>& fn) {
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) {
    return texts[i].first.size() + (texts[i].second ? texts[i].second->size() : 0);
  });
  batch_size = std::max<size_t>(batch_size, 1);
  for (size_t begin = 0; begin < order.size(); begin += batch_size) {
    const std::span<const size_t> here = std::span(order).subspan(begin, std::min(batch_size, order.size() - begin));
    std::vector<TextInput> batch;
    for (const size_t place : here) batch.push_back(texts[place]);
    TextInputs whole = text_inputs(model, tokenizer, batch, options);
    for (const std::vector<size_t>& rows : even_parts(whole.batch)) {
      std::vector<size_t> places;
      for (const size_t row : rows) places.push_back(here[row]);
      if (rows.size() == here.size())
        fn(whole, here);
      else
        fn(part_of(model, tokenizer, whole.batch, rows), places);
    }
    if (progress) progress(begin + here.size(), order.size());
  }
}

}  // namespace calque
