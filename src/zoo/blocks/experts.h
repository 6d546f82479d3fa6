// Mixtures of experts: a router that says which experts a token goes to and how much each counts, and the experts, whose products
// are grouped by expert (aten::_grouped_mm), so that no program depends on who was chosen.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "calque/hub/adaptable.h"
#include "decoder_parts.h"

namespace calque {

struct Router : NamedModule<Router> {
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  Router(std::string type, int64_t hidden_size, const ExpertsDesign& design);
  // Of [tokens, hidden]: logits [tokens, experts], weights and numbers of the chosen [tokens, chosen].
  std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& hidden_states);
  void reset(double range);

  ExpertsDesign design;
  Parameter weight;
  std::optional<Parameter> bias;
  std::optional<Buffer> correction;

 private:
  Tensor chosen_of_groups(const Tensor& scores) const;
};

struct ExpertWeights : NamedModule<ExpertWeights>, StackedExperts {
  static constexpr const char* forward_arguments[] = {"hidden_states", "top_k_index", "top_k_weights"};
  ExpertWeights(std::string type, int64_t hidden_size, const ExpertsDesign& design, const std::string& activation);
  Tensor forward(const Tensor& hidden_states, const Tensor& chosen, const Tensor& weights);
  void reset(double range);
  bool is_transposed() const override { return design.transposed; }

  ExpertsDesign design;
  Activation activation;
  Parameter gate_up_proj;
  std::optional<Parameter> gate_up_proj_bias;
  Parameter down_proj;
  std::optional<Parameter> down_proj_bias;

 private:
  Tensor gated(const Tensor& both) const;
};

struct Experts : NamedModule<Experts> {
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  Experts(int64_t hidden_size, const DecoderDesign& design);
  std::tuple<Tensor, Tensor> forward(const Tensor& hidden_states);  // and the router's logits

  Child<Router> router;
  Child<ExpertWeights> experts;
  std::optional<Child<DecoderFeedForward>> shared;
  std::optional<Child<Linear>> shared_gate;
};

// What is added to a loss so that all experts are used alike, from the router's logits of each layer. `attention_mask` [batch,
// length], which may be undefined, says which tokens count.
Tensor balancing_loss(const std::vector<Tensor>& logits, const ExpertsDesign& design, const Tensor& attention_mask);

}  // namespace calque
