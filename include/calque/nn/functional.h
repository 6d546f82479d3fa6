// torch.nn.functional where it differs from the operators: other defaults, other order of arguments, argument checks,
// several operators in one. What is missing here is an operator with the same meaning (calque::linear, calque::gelu).
// A namespace of its own, because some names are operators with other arguments (embedding, dropout).
#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "calque/nn/sizes.h"
#include "calque/op/tensor.h"

namespace calque::functional {

// "none", "mean", "sum" as ATen's number; UserError otherwise.
int64_t reduction_enum(std::string_view reduction);

// ---- embeddings, dropout, normalization -----------------------------------------------------------------------------
Tensor embedding(const Tensor& input, const Tensor& weight, std::optional<int64_t> padding_idx = std::nullopt,
                 std::optional<double> max_norm = std::nullopt, double norm_type = 2, bool scale_grad_by_freq = false,
                 bool sparse = false);
Tensor dropout(const Tensor& input, double p = 0.5, bool training = true, bool inplace = false);
Tensor dropout1d(const Tensor& input, double p = 0.5, bool training = true, bool inplace = false);
Tensor dropout2d(const Tensor& input, double p = 0.5, bool training = true, bool inplace = false);
Tensor dropout3d(const Tensor& input, double p = 0.5, bool training = true, bool inplace = false);
Tensor alpha_dropout(const Tensor& input, double p = 0.5, bool training = false, bool inplace = false);
Tensor feature_alpha_dropout(const Tensor& input, double p = 0.5, bool training = false, bool inplace = false);
Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight = {},
                  const Tensor& bias = {}, bool training = false, double momentum = 0.1, double eps = 1e-5);
Tensor instance_norm(const Tensor& input, const Tensor& running_mean = {}, const Tensor& running_var = {},
                     const Tensor& weight = {}, const Tensor& bias = {}, bool use_input_stats = true, double momentum = 0.1,
                     double eps = 1e-5);
Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);
Tensor local_response_norm(const Tensor& input, int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);
Tensor normalize(const Tensor& input, double p = 2, int64_t dim = 1, double eps = 1e-12);

// ---- activations ----------------------------------------------------------------------------------------------------
// Without `dim` the one that PyTorch guesses, with a warning.
Tensor softmax(const Tensor& input, std::optional<int64_t> dim = std::nullopt, std::optional<DType> dtype = std::nullopt);
Tensor log_softmax(const Tensor& input, std::optional<int64_t> dim = std::nullopt,
                   std::optional<DType> dtype = std::nullopt);
Tensor softmin(const Tensor& input, std::optional<int64_t> dim = std::nullopt, std::optional<DType> dtype = std::nullopt);
Tensor gumbel_softmax(const Tensor& logits, double tau = 1, bool hard = false, int64_t dim = -1);
Tensor softsign(const Tensor& input);
Tensor tanhshrink(const Tensor& input);

// ---- shapes ---------------------------------------------------------------------------------------------------------
struct InterpolateOptions {
  std::optional<Sizes> size = std::nullopt;
  std::optional<std::vector<double>> scale_factor = std::nullopt;  // one, or one for each dimension
  std::string_view mode = "nearest";
  std::optional<bool> align_corners = std::nullopt;
  std::optional<bool> recompute_scale_factor = std::nullopt;
  bool antialias = false;
};
Tensor interpolate(const Tensor& input, const InterpolateOptions& options);
Tensor adaptive_avg_pool1d(const Tensor& input, const OptionalSizes& output_size);
Tensor adaptive_avg_pool2d(const Tensor& input, const OptionalSizes& output_size);
Tensor adaptive_avg_pool3d(const Tensor& input, const OptionalSizes& output_size);
std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& input, const OptionalSizes& output_size);
std::tuple<Tensor, Tensor> adaptive_max_pool2d(const Tensor& input, const OptionalSizes& output_size);
std::tuple<Tensor, Tensor> adaptive_max_pool3d(const Tensor& input, const OptionalSizes& output_size);
Tensor unfold(const Tensor& input, const Sizes& kernel_size, const Sizes& dilation = 1, const Sizes& padding = 0,
              const Sizes& stride = 1);
Tensor fold(const Tensor& input, const Sizes& output_size, const Sizes& kernel_size, const Sizes& dilation = 1,
            const Sizes& padding = 0, const Sizes& stride = 1);
Tensor grid_sample(const Tensor& input, const Tensor& grid, std::string_view mode = "bilinear",
                   std::string_view padding_mode = "zeros", bool align_corners = false);

// ---- losses ---------------------------------------------------------------------------------------------------------
Tensor cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight = {}, int64_t ignore_index = -100,
                     std::string_view reduction = "mean", double label_smoothing = 0);
Tensor nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight = {}, int64_t ignore_index = -100,
                std::string_view reduction = "mean");
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                            std::string_view reduction = "mean");
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                                        std::string_view reduction = "mean", const Tensor& pos_weight = {});
Tensor mse_loss(const Tensor& input, const Tensor& target, std::string_view reduction = "mean");
Tensor l1_loss(const Tensor& input, const Tensor& target, std::string_view reduction = "mean");
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, std::string_view reduction = "mean", double beta = 1);
Tensor huber_loss(const Tensor& input, const Tensor& target, std::string_view reduction = "mean", double delta = 1);
Tensor kl_div(const Tensor& input, const Tensor& target, std::string_view reduction = "mean",
              bool log_target = false);  // also "batchmean"
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
                int64_t blank = 0, std::string_view reduction = "mean", bool zero_infinity = false);
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin = 0,
                             std::string_view reduction = "mean");
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin = 0,
                           std::string_view reduction = "mean");
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin = 1,
                            std::string_view reduction = "mean");
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin = 1,
                           double p = 2, double eps = 1e-6, bool swap = false, std::string_view reduction = "mean");
Tensor soft_margin_loss(const Tensor& input, const Tensor& target, std::string_view reduction = "mean");
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input = true, bool full = false,
                        double eps = 1e-8, std::string_view reduction = "mean");
Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var, bool full = false, double eps = 1e-6,
                         std::string_view reduction = "mean");
Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                                   std::string_view reduction = "mean");

// ---- attention ------------------------------------------------------------------------------------------------------
struct MultiHeadAttentionWeights {
  int64_t embed_dim = 0;
  int64_t num_heads = 0;
  Tensor in_proj_weight = {};  // of all three, or
  Tensor q_proj_weight = {};
  Tensor k_proj_weight = {};
  Tensor v_proj_weight = {};  // one each, when in_proj_weight is undefined
  Tensor in_proj_bias = {};
  Tensor bias_k = {};
  Tensor bias_v = {};
  Tensor out_proj_weight = {};
  Tensor out_proj_bias = {};
  bool add_zero_attn = false;
  double dropout_p = 0;
};
struct MultiHeadAttentionCall {
  bool training = true;
  Tensor key_padding_mask = {};  // (N, S); bool: True is ignored; floating: added
  bool need_weights = true;
  Tensor attn_mask = {};  // (L, S) or (N * num_heads, L, S)
  bool average_attn_weights = true;
  bool is_causal = false;
};
// Length first: (L, N, E), or (L, E) for one sample. The weights are undefined unless asked for.
std::tuple<Tensor, Tensor> multi_head_attention_forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                        const MultiHeadAttentionWeights& weights,
                                                        const MultiHeadAttentionCall& call = {});

}  // namespace calque::functional
