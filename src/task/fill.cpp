#include "calque/task/fill.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/hub/pretrained_model.h"
#include "calque/op/aten/sorting.h"
#include "task/load.h"

namespace calque {

MaskFiller::MaskFiller(std::shared_ptr<PretrainedModel> model, Tokenizer tokenizer)
    : model_(std::move(model)), tokenizer_(std::move(tokenizer)) {
  const std::optional<int64_t> id = tokenizer_.special_token_id("mask");
  if (!id)
    throw UserError(ErrorKind::bad_file, "fill: the model's tokenizer names no mask token; take a masked language model");
  mask_id_ = *id;
  mask_token_ = *tokenizer_.special_token("mask");
}

MaskFiller MaskFiller::from_folder(const std::filesystem::path& folder, const LoadOptions& options) {
  static constexpr std::string_view tasks[] = {"masked-lm"};
  TaskModel loaded = load_for_task(folder, options, tasks, "fill");
  return {std::move(loaded.model), std::move(loaded.tokenizer)};
}

std::vector<std::vector<FilledToken>> MaskFiller::fill(const std::string& text, size_t top) const {
  const GradModeScope no_grad(false);
  const TextInput one[] = {text};
  const TextInputs made = text_inputs(*model_, tokenizer_, one);
  const std::vector<int64_t>& ids = made.batch.rows.front().ids;
  std::vector<int64_t> masks;
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] == mask_id_) masks.push_back(static_cast<int64_t>(i));
  if (masks.empty()) throw UserError("fill: the text has no " + mask_token_ + "; write it where a word is missing");

  const Tensor logits = (*model_)(made.inputs)["logits"].select(0, 0).to(DType::float32);
  const Tensor rows = logits.index_select(0, tensor_of<int64_t>(masks, {std::ssize(masks)})).softmax(-1);
  const auto count = std::min(static_cast<int64_t>(top), rows.size(1));
  const auto [scores, tokens] = topk(rows, count);
  const Tensor values = scores.contiguous(), places = tokens.contiguous();
  std::vector<std::vector<FilledToken>> out(masks.size());
  for (size_t m = 0; m < masks.size(); ++m)
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = static_cast<int64_t>(m) * count + k;
      const int64_t id = places.data_as<int64_t>()[at];
      std::vector<int64_t> whole = ids;
      whole[static_cast<size_t>(masks[m])] = id;
      if (const std::optional<int64_t> pad = tokenizer_.special_token_id("pad")) std::erase(whole, *pad);
      const int64_t alone[] = {id};
      out[m].push_back(
          {values.data_as<float>()[at], id, tokenizer_.decode(alone, false), tokenizer_.decode(whole, masks.size() == 1)});
    }
  return out;
}

}  // namespace calque
