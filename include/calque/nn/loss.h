// Losses as layers. Weights given to a loss are buffers, as in PyTorch. `reduction` is "none", "mean" or "sum".
#pragma once

#include "calque/nn/typed.h"

namespace calque {

struct LossBase : Module {
  explicit LossBase(std::string reduction) : reduction(std::move(reduction)) {}
  std::string reduction;
};

// Losses of an input and a target that have no other setting.
#define CALQUE_LOSS(NAME)                                                          \
  struct NAME : Typed<NAME, LossBase> {                                            \
    static constexpr const char* torch_type = "torch.nn.modules.loss." #NAME;      \
    static constexpr const char* forward_arguments[] = {"input", "target"};        \
    explicit NAME(std::string reduction = "mean") : Typed(std::move(reduction)) {} \
    Tensor forward(const Tensor& input, const Tensor& target);                     \
  };
CALQUE_LOSS(MSELoss)
CALQUE_LOSS(L1Loss)
CALQUE_LOSS(SoftMarginLoss)
#undef CALQUE_LOSS

// ... and of one number.
#define CALQUE_NUMBER_LOSS(NAME, MEMBER, DEFAULT)                                                                           \
  struct NAME : Typed<NAME, LossBase> {                                                                                     \
    static constexpr const char* torch_type = "torch.nn.modules.loss." #NAME;                                               \
    static constexpr const char* forward_arguments[] = {"input", "target"};                                                 \
    explicit NAME(std::string reduction = "mean", double MEMBER = DEFAULT) : Typed(std::move(reduction)), MEMBER(MEMBER) {} \
    Tensor forward(const Tensor& input, const Tensor& target);                                                              \
    double MEMBER;                                                                                                          \
  };
CALQUE_NUMBER_LOSS(SmoothL1Loss, beta, 1)
CALQUE_NUMBER_LOSS(HuberLoss, delta, 1)
CALQUE_NUMBER_LOSS(HingeEmbeddingLoss, margin, 1)
#undef CALQUE_NUMBER_LOSS

struct CrossEntropyOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  std::string reduction = "mean";
  double label_smoothing = 0;  // not for NLLLoss
};

struct CrossEntropyLoss : Typed<CrossEntropyLoss, LossBase> {
  static constexpr const char* torch_type = "torch.nn.modules.loss.CrossEntropyLoss";
  static constexpr const char* forward_arguments[] = {"input", "target"};
  explicit CrossEntropyLoss(const CrossEntropyOptions& options = {});
  Tensor forward(const Tensor& input, const Tensor& target);
  int64_t ignore_index;
  double label_smoothing;
  Buffer weight;
};

struct NLLLoss : Typed<NLLLoss, LossBase> {
  static constexpr const char* torch_type = "torch.nn.modules.loss.NLLLoss";
  static constexpr const char* forward_arguments[] = {"input", "target"};
  explicit NLLLoss(const CrossEntropyOptions& options = {});
  Tensor forward(const Tensor& input, const Tensor& target);
  int64_t ignore_index;
  Buffer weight;
};

struct BCELoss : Typed<BCELoss, LossBase> {
  static constexpr const char* torch_type = "torch.nn.modules.loss.BCELoss";
  static constexpr const char* forward_arguments[] = {"input", "target"};
  explicit BCELoss(const Tensor& weight = {}, std::string reduction = "mean");
  Tensor forward(const Tensor& input, const Tensor& target);
  Buffer weight;
};

struct BCEWithLogitsLoss : Typed<BCEWithLogitsLoss, LossBase> {
  static constexpr const char* torch_type = "torch.nn.modules.loss.BCEWithLogitsLoss";
  static constexpr const char* forward_arguments[] = {"input", "target"};
  explicit BCEWithLogitsLoss(const Tensor& weight = {}, std::string reduction = "mean", const Tensor& pos_weight = {});
  Tensor forward(const Tensor& input, const Tensor& target);
  Buffer weight;
  Buffer pos_weight;
};

struct MultiLabelSoftMarginLoss : Typed<MultiLabelSoftMarginLoss, LossBase> {
  static constexpr const char* torch_type = "torch.nn.modules.loss.MultiLabelSoftMarginLoss";
  static constexpr const char* forward_arguments[] = {"input", "target"};
  explicit MultiLabelSoftMarginLoss(const Tensor& weight = {}, std::string reduction = "mean");
  Tensor forward(const Tensor& input, const Tensor& target);
  Buffer weight;
};

struct KLDivLoss : Typed<KLDivLoss, LossBase> {
  static constexpr const char* torch_type = "torch.nn.modules.loss.KLDivLoss";
  static constexpr const char* forward_arguments[] = {"input", "target"};
  explicit KLDivLoss(std::string reduction = "mean", bool log_target = false)
      : Typed(std::move(reduction)), log_target(log_target) {}  // also "batchmean"
  Tensor forward(const Tensor& input, const Tensor& target);
  bool log_target;
};

struct CTCLoss : Typed<CTCLoss, LossBase> {
  static constexpr const char* torch_type = "torch.nn.modules.loss.CTCLoss";
  static constexpr const char* forward_arguments[] = {"log_probs", "targets", "input_lengths", "target_lengths"};
  explicit CTCLoss(int64_t blank = 0, std::string reduction = "mean", bool zero_infinity = false)
      : Typed(std::move(reduction)), blank(blank), zero_infinity(zero_infinity) {}
  Tensor forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths);
  int64_t blank;
  bool zero_infinity;
};

#define CALQUE_PAIR_LOSS(NAME)                                                                                        \
  struct NAME : Typed<NAME, LossBase> {                                                                               \
    static constexpr const char* torch_type = "torch.nn.modules.loss." #NAME;                                         \
    static constexpr const char* forward_arguments[] = {"input1", "input2", "target"};                                \
    explicit NAME(double margin = 0, std::string reduction = "mean") : Typed(std::move(reduction)), margin(margin) {} \
    Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target);                                 \
    double margin;                                                                                                    \
  };
CALQUE_PAIR_LOSS(CosineEmbeddingLoss)
CALQUE_PAIR_LOSS(MarginRankingLoss)
#undef CALQUE_PAIR_LOSS

struct TripletMarginLoss : Typed<TripletMarginLoss, LossBase> {
  static constexpr const char* torch_type = "torch.nn.modules.loss.TripletMarginLoss";
  static constexpr const char* forward_arguments[] = {"anchor", "positive", "negative"};
  explicit TripletMarginLoss(double margin = 1, double p = 2, double eps = 1e-6, bool swap = false,
                             std::string reduction = "mean")
      : Typed(std::move(reduction)), margin(margin), p(p), eps(eps), swap(swap) {}
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative);
  double margin, p, eps;
  bool swap;
};

struct PoissonNLLLoss : Typed<PoissonNLLLoss, LossBase> {
  static constexpr const char* torch_type = "torch.nn.modules.loss.PoissonNLLLoss";
  static constexpr const char* forward_arguments[] = {"log_input", "target"};
  explicit PoissonNLLLoss(bool log_input = true, bool full = false, double eps = 1e-8, std::string reduction = "mean")
      : Typed(std::move(reduction)), log_input(log_input), full(full), eps(eps) {}
  Tensor forward(const Tensor& input, const Tensor& target);
  bool log_input, full;
  double eps;
};

struct GaussianNLLLoss : Typed<GaussianNLLLoss, LossBase> {
  static constexpr const char* torch_type = "torch.nn.modules.loss.GaussianNLLLoss";
  static constexpr const char* forward_arguments[] = {"input", "target", "var"};
  explicit GaussianNLLLoss(bool full = false, double eps = 1e-6, std::string reduction = "mean")
      : Typed(std::move(reduction)), full(full), eps(eps) {}
  Tensor forward(const Tensor& input, const Tensor& target, const Tensor& var);
  bool full;
  double eps;
};

}  // namespace calque
