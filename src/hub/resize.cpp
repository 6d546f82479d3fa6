#include "calque/hub/resize.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/unary.h"

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

Embedding& resize_token_embeddings(PretrainedModel& model, std::optional<int64_t> new_num_tokens,
                                   const ResizeOptions& options) {
  Embedding& embedding = get_input_embeddings(model);
  const int64_t before = (*embedding.weight).size(0);
  if (!new_num_tokens && !options.pad_to_multiple_of) return embedding;
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

  Linear* head = get_output_embeddings(model);
  const GradModeScope no_grad(false);
  if (rows != before) {
    const Tensor old = embedding.weight;
    Tensor added;
    if (rows > before)
      added = options.mean_resizing ? rows_like(old.detach(), rows - before)
                                    : initial_rows(model, &Embedding::weight, rows - before, rows - before, old.size(1),
                                                   EmbeddingOptions{.factory = {.dtype = old.dtype()}});
    replace_everywhere(model, old, resized(old, rows, added));
  }
  // A head of its own; one that is tied has the new matrix already.
  if (head && (*head->weight).size(0) != rows) {
    const Tensor old = head->weight;
    const int64_t missing = rows - old.size(0);
    Tensor added;
    if (missing > 0)
      added = options.mean_resizing
                  ? rows_like(old.detach(), missing)
                  : initial_rows(model, &Linear::weight, missing, old.size(1), missing, true, Factory{.dtype = old.dtype()});
    replace_everywhere(model, old, resized(old, rows, added));
  }
  if (head && head->bias.defined() && (*head->bias).size(0) != rows) {
    const Tensor old = head->bias;
    const int64_t missing = rows - old.size(0);
    Tensor added;
    if (missing > 0) {
      const Tensor wide = old.detach().to(DType::float32);
      added =
          options.mean_resizing
              ? (wide.mean() + randn({missing}) * (calque::sqrt(pow(wide - wide.mean(), 2).sum() /
                                                                static_cast<double>(std::max<int64_t>(old.size(0) - 1, 1))) *
                                                   1e-9))
                    .to(old.dtype())
              : zeros({missing}, old.dtype());
    }
    replace_everywhere(model, old, resized(old, rows, added));
  }
  if (head) head->out_features = rows;
  for (Module* module : model.modules()) {
    // BERT's heads have their bias twice, and only tied ones have it in one tensor.
    const bool holds_head = head && std::any_of(module->module_slots().begin(), module->module_slots().end(),
                                                [&](const auto& slot) { return slot->module.get() == head; });
    for (const auto& slot : module->parameter_slots())
      if (holds_head && slot->name == "bias" && slot->tensor.defined() && slot->tensor.size(0) != rows &&
          head->bias.defined())
        slot->tensor = head->bias;
    auto* columns = dynamic_cast<VocabularyColumns*>(module);
    if (!columns || columns->vocabulary_columns().in_features == rows) continue;
    Linear& layer = columns->vocabulary_columns();
    const Tensor old = layer.weight->t();
    const int64_t missing = rows - old.size(0);
    Tensor added;
    if (missing > 0)
      added = options.mean_resizing ? rows_like(old.detach(), missing)
                                    : initial_rows(model, &Linear::weight, missing, old.size(1), missing, false,
                                                   Factory{.dtype = old.dtype()});
    const Tensor now = resized(old, rows, added).detach().t().contiguous();
    now.set_requires_grad(layer.weight->requires_grad());
    layer.weight = now;
    layer.in_features = rows;
  }
  // BART and its kin add a bias that is no parameter.
  for (Module* module : model.modules())
    for (const auto& slot : module->buffer_slots())
      if (slot->name == "final_logits_bias" && slot->tensor.defined() && slot->tensor.size(-1) != rows) {
        const Tensor old = slot->tensor;
        const int64_t missing = rows - old.size(-1);
        slot->tensor = missing > 0 ? cat({old, zeros({1, missing}, old.dtype())}, 1) : old.slice(1, 0, rows).clone();
      }
  for (Module* module : model.modules())
    if (auto* part = dynamic_cast<PretrainedModel*>(module); part && part->config().has("vocab_size"))
      part->config().set("vocab_size", rows);
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
