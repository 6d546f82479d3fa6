"""How the result of each operator is to be compared.

exact: equal bits (copies, views, selections). pointwise: one rounding an element. accumulate: sums of many terms, judged by
their error against float64. meta: only sizes, strides and dtype (uninitialised memory). random: as meta; the random
streams have their own tests.
"""

import torch

from oplist import is_inplace, is_out

ACCUMULATE = """sum mean prod var std var_mean std_mean norm linalg_vector_norm linalg_norm cumsum cumprod logsumexp
logcumsumexp nansum nanmean softmax log_softmax _softmax _log_softmax _safe_softmax _softmax_backward_data
_log_softmax_backward_data layer_norm native_layer_norm group_norm native_group_norm batch_norm native_batch_norm
_native_batch_norm_legit _native_batch_norm_legit_no_training _native_batch_norm_legit_functional _batch_norm_impl_index
_batch_norm_with_update _batch_norm_no_update _batch_norm_with_update_functional
instance_norm rms_norm _fused_rms_norm matmul mm bmm _grouped_mm addmm baddbmm addmv addbmm addr mv dot vdot inner outer linear bilinear
einsum tensordot kron conv1d conv2d conv3d convolution _convolution conv_transpose1d conv_transpose2d conv_transpose3d
convolution_overrideable _slow_conv2d_forward slow_conv3d thnn_conv2d _conv_depthwise2d mkldnn_convolution conv_tbc
scaled_dot_product_attention _scaled_dot_product_attention_math _scaled_dot_product_flash_attention_for_cpu
_scaled_dot_product_flash_attention multi_head_attention_forward _native_multi_head_attention
avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d
_adaptive_avg_pool3d cdist _cdist_forward _euclidean_dist _pdist_forward pdist pairwise_distance cosine_similarity
_fft_r2c _fft_c2r _fft_c2c fft_fft fft_ifft fft_rfft fft_irfft fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2 fft_fftn fft_ifftn
fft_rfftn fft_irfftn embedding_bag _embedding_bag _embedding_bag_forward_only scatter_add index_add scatter_reduce index_put _index_put_impl_ index_reduce
_unsafe_index_put put
upsample_bilinear2d upsample_linear1d upsample_bicubic2d upsample_trilinear3d _upsample_bilinear2d_aa
_upsample_bicubic2d_aa grid_sampler grid_sampler_2d grid_sampler_3d grid_sampler_2d_cpu_fallback affine_grid_generator
l1_loss mse_loss smooth_l1_loss huber_loss nll_loss nll_loss_forward nll_loss2d nll_loss2d_forward nll_loss_nd
cross_entropy_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div ctc_loss _ctc_loss margin_ranking_loss
hinge_embedding_loss cosine_embedding_loss triplet_margin_loss poisson_nll_loss gaussian_nll_loss soft_margin_loss
multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss _weight_norm _weight_norm_interface norm_except_dim
col2im im2col fold trace cov corrcoef trapezoid lerp addcmul addcdiv glu
lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell lstm.input gru.input
histc bincount renorm convolution_backward native_layer_norm_backward native_group_norm_backward
embedding_dense_backward embedding_backward avg_pool2d_backward avg_pool3d_backward _adaptive_avg_pool2d_backward
_adaptive_avg_pool3d_backward upsample_bilinear2d_backward upsample_nearest2d_backward native_batch_norm_backward
max_pool2d_with_indices_backward max_pool3d_with_indices_backward value_selecting_reduction_backward
_ctc_loss_backward _cdist_backward _pdist_backward binary_cross_entropy_backward soft_margin_loss_backward
multi_margin_loss_backward multilabel_margin_loss_backward cumprod_backward cummaxmin_backward
_scaled_dot_product_flash_attention_for_cpu_backward _chunk_cat linalg_matrix_norm linalg_cross cross
_embedding_bag_backward _embedding_bag_dense_backward _embedding_bag_per_sample_weights_backward unfold_backward
upsample_linear1d_backward upsample_trilinear3d_backward upsample_bicubic2d_backward upsample_nearest1d_backward
upsample_nearest3d_backward _upsample_nearest_exact1d_backward _upsample_nearest_exact2d_backward
_upsample_nearest_exact3d_backward _upsample_bilinear2d_aa_backward _upsample_bicubic2d_aa_backward
reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward replication_pad1d_backward
replication_pad2d_backward replication_pad3d_backward grid_sampler_2d_backward grid_sampler_3d_backward
_weight_norm_interface_backward adaptive_max_pool2d_backward adaptive_max_pool3d_backward
fractional_max_pool2d_backward fractional_max_pool3d_backward frobenius_norm nuclear_norm dist _trilinear chain_matmul linalg_multi_dot diff cumulative_trapezoid""".split()

# Copies, selections and counting: the bits must be equal even for floats.
EXACT = """cat concat concatenate stack hstack vstack dstack clone copy contiguous to _to_copy type_as view reshape flatten
unflatten expand expand_as permute transpose t numpy_T mT T squeeze unsqueeze select slice narrow narrow_copy split
split_with_sizes chunk unbind tensor_split diagonal diag diag_embed diagonal_scatter select_scatter slice_scatter
as_strided as_strided_scatter alias detach lift_fresh lift_fresh_copy lift view_as reshape_as unfold movedim moveaxis
swapaxes swapdims ravel
gather index index_select masked_select masked_fill masked_scatter scatter index_fill index_copy take take_along_dim
where flip fliplr flipud rot90 roll repeat repeat_interleave tile tril triu tril_indices triu_indices constant_pad_nd pad
reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d _pad_circular
_pad_enum
max min amax amin aminmax argmax argmin sort argsort topk kthvalue median nanmedian mode unique unique_consecutive _unique2
unique_dim msort searchsorted bucketize nonzero nonzero_static nonzero_numpy argwhere count_nonzero any all cummax cummin
max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices
adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
embedding one_hot pixel_shuffle pixel_unshuffle channel_shuffle upsample_nearest1d upsample_nearest2d upsample_nearest3d
_upsample_nearest_exact1d _upsample_nearest_exact2d
meshgrid broadcast_tensors broadcast_to block_diag combinations cartesian_prod
zeros ones full zeros_like ones_like full_like new_zeros new_ones new_full scalar_tensor eye fill zero fill_ zero_
tensor item _local_scalar_dense is_nonzero equal isclose allclose isin
sym_size sym_numel sym_stride sym_storage_offset sym_is_contiguous size numel dim
_assert_scalar _assert_tensor_metadata _assert_async real imag view_as_real view_as_complex complex
resolve_conj resolve_neg conj _conj _unsafe_view unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze_copy
view_copy atleast_1d atleast_2d atleast_3d im2col bitwise_not set_ resize_""".split()

META = "empty empty_strided empty_like new_empty new_empty_strided empty_permuted resize resize_ resize_as_".split()

RANDOM = """rand randn randint randperm rand_like randn_like randint_like bernoulli normal normal_functional uniform
multinomial exponential geometric cauchy log_normal random native_dropout dropout feature_dropout alpha_dropout
feature_alpha_dropout rrelu rrelu_with_noise poisson binomial""".split()

# _foo_functional and friends are not the only traps: these bases end in an underscore that is not "in place".
def base_name(op):
    b = op._schema.name.split("::")[1]
    return b[:-1] if is_inplace(op) else b


def accumulates(op):
    return base_name(op) in ACCUMULATE


def check_for(op, call=None):
    base = base_name(op)
    full = op._schema.name.split("::")[1]
    if base in META or full in META:
        return "meta"
    if base in RANDOM:
        if call is not None and base in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout",
                                         "native_dropout"):
            train = call.args[2] if len(call.args) > 2 else call.kwargs.get("train", True)
            if train is False:
                return "exact"
        if call is not None and base in ("rrelu", "rrelu_with_noise"):
            at = 4 if base == "rrelu_with_noise" else 3
            if not (call.args[at] if len(call.args) > at else call.kwargs.get("training", False)):
                return "pointwise"
        return "random"
    if base in ("scaled_dot_product_attention", "_scaled_dot_product_attention_math") and call is not None:
        given = dict(zip((a.name for a in op._schema.arguments), call.args)) | call.kwargs
        if given.get("dropout_p") and given.get("dropout_mask") is None:
            return "random"
    if base in ACCUMULATE:
        return "accumulate"
    if base in EXACT or full in EXACT:
        return "exact"
    return "pointwise"


def known(op):
    base = base_name(op)
    return base in ACCUMULATE or base in EXACT or base in META or base in RANDOM or torch.Tag.pointwise in op.tags


def functional(op):
    return not is_out(op) and not is_inplace(op)
