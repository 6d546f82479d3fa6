#include "calque/hub/example_inputs.h"

#include <algorithm>

#include "calque/hub/pretrained_model.h"
#include "calque/hub/text_part.h"
#include "calque/op/aten/like.h"

namespace calque {
namespace {

// None where the file gives a list of them.
std::optional<int64_t> one_token(const Config& config, const char* key) {
  const Value* value = config.find(key);
  return value && value->kind() == Value::Kind::integer ? std::optional(value->to_int()) : std::nullopt;
}

}  // namespace

Tensor example_ids(const Config& config, const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  const int64_t vocab = std::max<int64_t>(config.optional_integer("vocab_size").value_or(100), 4);
  const std::optional<int64_t> pad = one_token(config, "pad_token_id"), eos = one_token(config, "eos_token_id");
  std::vector<int64_t> ids;
  // By sevens where those reach every id: two of them are left out.
  const int64_t step = vocab % 7 == 0 ? 1 : 7;
  for (int64_t i = 3; std::ssize(ids) < count; ++i) {
    const int64_t id = i % vocab * step % vocab;
    if (id != pad && id != eos) ids.push_back(id);
  }
  return tensor_of<int64_t>(ids, sizes);
}

ModelInputs example_tokens(const PretrainedModel& model, const std::vector<int64_t>& sizes) {
  const Tensor ids = example_ids(text_part(model.config()), sizes);
  ModelInputs in{{arg::input_ids, ids}};
  if (model.takes(arg::attention_mask)) in.set(arg::attention_mask, ones_like(ids));
  if (model.takes(arg::bbox)) {
    std::vector<SymInt> box(sizes.begin(), sizes.end());
    box.emplace_back(4);
    in.set(arg::bbox, tensor_of<int64_t>({1, 2, 5, 7}, {4}).expand(box).contiguous());
  }
  return in;
}

ModelInputs with_ends_of_text(ModelInputs inputs, const Config& config) {
  if (const auto eos = one_token(config, "eos_token_id")) inputs[arg::input_ids].select(-1, -1).fill_(*eos);
  return inputs;
}

ModelInputs PretrainedModel::example_inputs(const ExampleSizes& sizes) const {
  ModelInputs in = example_tokens(*this, {sizes.batch, sizes.length});
  if (takes(arg::decoder_input_ids))
    in.set(arg::decoder_input_ids, example_ids(text_part(config_), {sizes.batch, sizes.decoder_length}));
  return in;
}

}  // namespace calque
