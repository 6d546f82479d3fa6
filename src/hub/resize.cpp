#include "calque/hub/resize.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"

namespace calque {
namespace {

// Rows for new tokens: the mean, and normal numbers with a billionth of the covariance. Those are made of the rows themselves
// (a random combination of centred rows has their covariance), which needs no factorisation.
Tensor rows_like(const Tensor& old, int64_t count) {
  const Tensor wide = old.to(DType::float32);
  const Tensor mean = wide.mean({0}, true);
  if (old.size(0) <= old.size(1)) return mean.expand({count, old.size(1)}).to(old.dtype());
  const double scale = std::sqrt(1e-9 / static_cast<double>(old.size(0)));
  return (mean + matmul(randn({count, old.size(0)}), wide - mean) * scale).to(old.dtype());
}

// Every place in the model that holds `old` holds `now`; modules that count rows count them anew.
void replace_everywhere(PretrainedModel& model, const Tensor& old, const Tensor& now) {
  for (Module* module : model.modules()) {
    bool found = false;
    for (const auto& slot : module->parameter_slots())
      if (slot->tensor.defined() && slot->tensor.is_same(old)) {
        slot->tensor = now;
        found = true;
      }
    if (!found) continue;
    if (auto* embedding = dynamic_cast<Embedding*>(module)) {
      embedding->num_embeddings = now.size(0);
      if (embedding->options.padding_idx && *embedding->options.padding_idx >= now.size(0))
        embedding->options.padding_idx.reset();
    } else if (auto* linear = dynamic_cast<Linear*>(module)) {
      linear->out_features = now.size(0);
    }
  }
}

Tensor resized(const Tensor& old, int64_t rows, const Tensor& added) {
  const GradModeScope no_grad(false);
  const int64_t kept = std::min(rows, old.size(0));
  Tensor now = old.detach().slice(0, 0, kept);
  now = rows > kept ? cat({now, added}, 0) : now.clone();
  now.set_requires_grad(old.requires_grad());
  return now;
}

// What the architecture would start new rows with.
template <class M, class... A>
Tensor initial_rows(PretrainedModel& model, Parameter M::*member, int64_t count, A&&... args) {
  M made(std::forward<A>(args)...);
  model.init_weights(made);
  return (*(made.*member)).detach().slice(0, 0, count);
}

// How many rows there will be.
int64_t rows_asked_for(int64_t before, std::optional<int64_t> new_num_tokens, const ResizeOptions& options) {
  int64_t rows = new_num_tokens.value_or(before);
  if (options.pad_to_multiple_of) {
    const double multiple = *options.pad_to_multiple_of;
    if (multiple != std::floor(multiple) || multiple < 1)
      throw UserError(
          fmt::format("Asking to pad the embedding matrix to a multiple of `{}`, which is not an integer. Please make sure "
                      "to pass an integer",
                      multiple));
    const auto whole = static_cast<int64_t>(multiple);
    rows = (rows + whole - 1) / whole * whole;
  }
  if (rows < 1) throw UserError("resize_token_embeddings: " + std::to_string(rows) + " tokens; expected at least one");
  return rows;
}

// A matrix of a row a token with `rows` of them. New ones are drawn around the mean of the old ones, or as `initial` makes so many.
template <class Initial>
Tensor with_rows(const Tensor& old, int64_t rows, const ResizeOptions& options, Initial&& initial) {
  const int64_t missing = rows - old.size(0);
  Tensor added;
  if (missing > 0) added = options.mean_resizing ? rows_like(old.detach(), missing) : initial(missing);
  return resized(old, rows, added);
}

// New numbers of a bias: around the mean of the old ones, or zero.
Tensor numbers_like(const Tensor& old, int64_t missing, const ResizeOptions& options) {
  if (!options.mean_resizing) return zeros({missing}, old.dtype());
  const Tensor wide = old.detach().to(DType::float32);
  const Tensor spread =
      calque::sqrt(pow(wide - wide.mean(), 2).sum() / static_cast<double>(std::max<int64_t>(old.size(0) - 1, 1)));
  return (wide.mean() + randn({missing}) * (spread * 1e-9)).to(old.dtype());
}

void resize_head(PretrainedModel& model, Linear& head, int64_t rows, const ResizeOptions& options) {
  if (const Tensor old = head.weight; old.size(0) != rows)  // one that is tied has the new matrix already
    replace_everywhere(model, old, with_rows(old, rows, options, [&](int64_t missing) {
                         return initial_rows(model, &Linear::weight, missing, old.size(1), missing, true,
                                             Factory{.dtype = old.dtype()});
                       }));
  if (head.bias.defined() && (*head.bias).size(0) != rows) {
    const Tensor old = head.bias;
    const int64_t missing = rows - old.size(0);
    replace_everywhere(model, old, resized(old, rows, missing > 0 ? numbers_like(old, missing, options) : Tensor()));
  }
  head.out_features = rows;
  // BERT's heads have their bias twice, and only tied ones have it in one tensor; LXMERT's has it beside the matrix alone, where new
  // numbers are zeros.
  for (Module* module : model.modules()) {
    if (std::none_of(module->module_slots().begin(), module->module_slots().end(),
                     [&](const auto& slot) { return slot->module.get() == &head; }))
      continue;
    for (const auto& slot : module->parameter_slots())
      if (slot->name == "bias" && slot->tensor.defined() && slot->tensor.size(0) != rows) {
        const Tensor old = slot->tensor;
        const int64_t missing = rows - old.size(0);
        if (head.bias.defined())
          slot->tensor = head.bias;
        else
          slot->tensor = resized(old, rows, missing > 0 ? zeros({missing}, old.dtype()) : Tensor());
      }
  }
}

// A layer whose columns are tokens.
void resize_columns(PretrainedModel& model, Linear& layer, int64_t rows, const ResizeOptions& options) {
  if (layer.in_features == rows) return;
  const Tensor old = layer.weight->t();
  const Tensor now = with_rows(old, rows, options,
                               [&](int64_t missing) {
                                 return initial_rows(model, &Linear::weight, missing, old.size(1), missing, false,
                                                     Factory{.dtype = old.dtype()});
                               })
                         .detach()
                         .t()
                         .contiguous();
  now.set_requires_grad(layer.weight->requires_grad());
  layer.weight = now;
  layer.in_features = rows;
}

// BART and its kin add a bias that is no parameter.
void resize_final_bias(Module& module, int64_t rows) {
  for (const auto& slot : module.buffer_slots()) {
    if (slot->name != "final_logits_bias" || !slot->tensor.defined() || slot->tensor.size(-1) == rows) continue;
    const Tensor old = slot->tensor;
    const int64_t missing = rows - old.size(-1);
    slot->tensor = missing > 0 ? cat({old, zeros({1, missing}, old.dtype())}, 1) : old.slice(1, 0, rows).clone();
  }
}

}  // namespace

Embedding& get_input_embeddings(PretrainedModel& model) {
  if (Child<Embedding>* own = model.input_embeddings()) return own->get();
  PretrainedModel& base = model.base_model();
  Child<Embedding>* embedding = &base == &model ? nullptr : base.input_embeddings();
  if (!embedding) throw UserError(model.class_name() + " has no input embeddings that it could give");
  return embedding->get();
}

Linear* get_output_embeddings(PretrainedModel& model) {
  Child<Linear>* own = model.output_embeddings();
  return own && *own ? &own->get() : nullptr;
}

// Of the configuration, and of the text's inside it.
static void set_vocabulary(Config& config, int64_t rows) {
  if (config.has("vocab_size")) config.set("vocab_size", rows);
  std::vector<std::string> parts;
  for (const auto& [key, value] : config.items())
    if (value.kind() == Value::Kind::dict && value.to_dict().find("model_type") && value.to_dict().find("vocab_size"))
      parts.push_back(key);
  for (const std::string& key : parts) {
    Config inner = config.nested(key);
    inner.set("vocab_size", rows);
    config.set(key, dict({inner.items().begin(), inner.items().end()}));
  }
}

Embedding& resize_token_embeddings(PretrainedModel& model, std::optional<int64_t> new_num_tokens,
                                   const ResizeOptions& options) {
  Embedding& embedding = get_input_embeddings(model);
  if (!new_num_tokens && !options.pad_to_multiple_of) return embedding;
  const Tensor old = embedding.weight;
  const int64_t rows = rows_asked_for(old.size(0), new_num_tokens, options);

  Linear* head = get_output_embeddings(model);
  const GradModeScope no_grad(false);
  if (rows != old.size(0))
    replace_everywhere(model, old, with_rows(old, rows, options, [&](int64_t missing) {
                         return initial_rows(model, &Embedding::weight, missing, missing, old.size(1),
                                             EmbeddingOptions{.factory = {.dtype = old.dtype()}});
                       }));
  if (head) resize_head(model, *head, rows, options);
  for (Module* module : model.modules()) {
    if (auto* columns = dynamic_cast<VocabularyColumns*>(module))
      resize_columns(model, columns->vocabulary_columns(), rows, options);
    resize_final_bias(*module, rows);
    if (auto* part = dynamic_cast<PretrainedModel*>(module)) set_vocabulary(part->config(), rows);
  }
  model.tie_weights();
  return embedding;
}

void resize_position_embeddings(PretrainedModel& model, int64_t count) {
  if (count < 1)
    throw UserError("resize_position_embeddings: the number of positions has to be positive, found " +
                    std::to_string(count));
  const GradModeScope no_grad(false);
  bool found = false;
  for (Module* module : model.modules())
    if (auto* positions = dynamic_cast<ResizablePositions*>(module)) {
      positions->resize_positions(count);
      found = true;
    }
  if (!found) throw UserError("resize_position_embeddings: " + model.class_name() + " cannot have other positions");
  for (Module* module : model.modules())
    if (auto* part = dynamic_cast<PretrainedModel*>(module)) part->config().set("max_position_embeddings", count);
}

}  // namespace calque
