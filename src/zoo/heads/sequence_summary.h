// One vector for a sequence: of its last, first or a given position, or the mean; then a projection, an activation and dropouts as
// the configuration asks ("summary_..." keys).
#pragma once

#include <memory>
#include <string>

#include "../blocks/activations.h"
#include "calque/base/error.h"
#include "calque/hub/config.h"
#include "calque/nn/dropout.h"
#include "calque/nn/linear.h"
#include "calque/op/aten/scatter.h"
#include "losses.h"

namespace calque {

struct SequenceSummary : Typed<SequenceSummary> {
  static constexpr const char* torch_type = "transformers.modeling_utils.SequenceSummary";
  static constexpr const char* forward_arguments[] = {"hidden_states", "cls_index"};
  explicit SequenceSummary(const Config& c)
      : summary_type(c.optional_text("summary_type").value_or("last")),
        summary(child_module<Module>("summary", projection(c))),
        activation(c.has("summary_activation") ? activation_named(c.text("summary_activation")) : nullptr),
        first_dropout(child_module<Module>("first_dropout", dropout_of(c, "summary_first_dropout"))),
        last_dropout(child_module<Module>("last_dropout", dropout_of(c, "summary_last_dropout"))) {
    if (summary_type != "last" && summary_type != "first" && summary_type != "mean" && summary_type != "cls_index")
      throw UserError(ErrorKind::bad_file,
                      c.where() + ": \"summary_type\" is \"" + summary_type + "\", expected last, first, mean or cls_index");
  }
  static std::shared_ptr<Module> projection(const Config& c) {
    if (!c.flag("summary_use_proj")) return std::make_shared<Identity>();
    const bool to_labels = c.flag("summary_proj_to_labels") && num_labels(c) > 0;
    return std::make_shared<Linear>(c.integer("hidden_size"), to_labels ? num_labels(c) : c.integer("hidden_size"));
  }
  static std::shared_ptr<Module> dropout_of(const Config& c, const char* key) {
    const double p = c.optional_number(key).value_or(0);
    if (p > 0) return std::make_shared<Dropout>(p);
    return std::make_shared<Identity>();
  }

  // Hidden states [batch, ..., length, size], positions [batch, ...].
  Tensor forward(const Tensor& hidden_states, const Tensor& cls_index) {
    Tensor x = chosen(hidden_states, cls_index);
    x = first_dropout(x).to_tensor();
    x = summary(x).to_tensor();
    if (activation) x = activation(x);
    return last_dropout(x).to_tensor();
  }
  Tensor chosen(const Tensor& hidden_states, const Tensor& cls_index) const {
    if (summary_type == "last") return hidden_states.select(1, -1);
    if (summary_type == "first") return hidden_states.select(1, 0);
    if (summary_type == "mean") return hidden_states.mean({1});
    if (!cls_index.defined()) return hidden_states.select(-2, -1);
    const Tensor at = cls_index.unsqueeze(-1).unsqueeze(-1);
    SymInts sizes(at.sym_sizes().begin(), at.sym_sizes().end());
    sizes.back() = hidden_states.sym_size(-1);
    return gather(hidden_states, -2, at.expand(sizes)).squeeze(-2);
  }

  std::string summary_type;
  Child<Module> summary;
  Activation activation;
  Child<Module> first_dropout, last_dropout;
};

}  // namespace calque
