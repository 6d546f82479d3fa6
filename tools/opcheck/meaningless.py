"""Calls whose result in PyTorch says nothing about the operator: it reads memory that is not the arguments', or depends on the
instruction set. No cases are made of them.
"""

import torch

# Arguments that PyTorch's kernels walk through a bare pointer as if they were contiguous. In another layout they read (or
# write) memory in an order that is not the tensor's, and memory between and beyond its elements: such calls mean nothing.
# group_norm and layer_norm pass contiguous ones.
BARE = {"aten::_embedding_bag": ("indices", "offsets"), "aten::_embedding_bag.out": ("indices", "offsets"),
        "aten::_embedding_bag_forward_only": ("indices", "offsets"), "aten::_embedding_bag_forward_only.out": ("indices", "offsets"),
        "aten::_upsample_bilinear2d_aa.out": ("out",), "aten::rrelu_with_noise": ("noise",), "aten::rrelu_with_noise_": ("noise",),
        "aten::native_group_norm": ("weight", "bias"), "aten::native_group_norm.out": ("weight", "bias"),
        "aten::native_group_norm_backward": ("grad_out", "input", "mean", "rstd", "weight"),
        "aten::native_group_norm_backward.out": ("grad_out", "input", "mean", "rstd", "weight"),
        "aten::native_layer_norm_backward": ("mean", "rstd"), "aten::native_layer_norm_backward.out": ("mean", "rstd"),
        "aten::adaptive_max_pool3d_backward": ("indices",), "aten::fractional_max_pool2d_backward": ("indices",),
        "aten::fractional_max_pool3d_backward": ("indices",), "aten::adaptive_max_pool2d_backward": ("indices",),
        "aten::_embedding_bag_backward": ("indices", "offsets", "offset2bag", "bag_size", "maximum_indices"),
        "aten::_embedding_bag_dense_backward": ("indices", "offset2bag", "bag_size", "maximum_indices"),
        "aten::_embedding_bag_per_sample_weights_backward": ("indices", "offsets", "offset2bag"),
        "aten::_softmax.out": ("out",), "aten::_log_softmax.out": ("out",), "aten::softmax.int_out": ("out",),
        "aten::log_softmax.int_out": ("out",), "aten::_softmax_backward_data.out": ("grad_input",),
        "aten::_log_softmax_backward_data.out": ("out",),
        "aten::fractional_max_pool2d.output": ("output", "indices"), "aten::fractional_max_pool3d.output": ("output", "indices"),
        # Of an input that is not contiguous the mean is never computed: save_mean is read as it was allocated.
        "aten::_native_batch_norm_legit.no_stats_out": ("input", "out"), "aten::_native_batch_norm_legit.out": ("input", "out")}


MARGIN_LOSSES = {"aten::multi_margin_loss", "aten::multilabel_margin_loss", "aten::multilabel_margin_loss_forward"}
CONVOLUTIONS = {"aten::" + n for n in ("convolution", "_convolution", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
                                       "conv_transpose3d", "convolution_backward", "_convolution_mode")}


def subnormal_meets_infinity(tensors):
    """Products of bfloat16: instructions for it take subnormal numbers for 0, and 0 times infinity is NaN; others do not. The
    same call differs with MKL_ENABLE_INSTRUCTIONS=AVX512."""
    low = [t for t in tensors if isinstance(t, torch.Tensor) and t.dtype == torch.bfloat16]
    return any(not t.isfinite().all() for t in low) and any(((t != 0) & (t.abs() < 2.0**-126)).any() for t in low)


def leaves_rows_unset(a, b, offs=None, *rest, **more):
    """A grouped product whose last group ends before its factor does: what lies behind is memory as it was allocated."""
    if not isinstance(offs, torch.Tensor) or offs.numel() == 0 or a.dim() == b.dim():
        return False
    return int(offs.flatten()[-1]) != (a.size(0) if a.dim() == 2 else b.size(-1))


def is_meaningless(call):
    if call.op._schema.name == "aten::_grouped_mm" and leaves_rows_unset(*call.args, **call.kwargs):
        return True
    if call.op._schema.name in ("aten::median", "aten::nanmedian") and len(call.args) > 1:  # walks on past an expanded dimension
        return any(n > 1 and s == 0 for n, s in zip(call.args[0].size(), call.args[0].stride()))
    if call.op._schema.name in MARGIN_LOSSES and call.args[0].numel() == 0:  # the result is memory as it was allocated
        return True
    if call.op._schema.name in CONVOLUTIONS:
        # Where oneDNN multiplies bfloat16 infinities with the zeros that fill its blocks depends on the instruction set: the
        # same call has other NaN with ONEDNN_MAX_CPU_ISA=AVX512_CORE than with AVX512_CORE_BF16.
        return any(isinstance(t, torch.Tensor) and t.dtype == torch.bfloat16 and not t.isfinite().all() for t in call.args[:3])
    if "scaled_dot_product" in call.op._schema.name and subnormal_meets_infinity(call.args[:3]):
        return True
    if call.op._schema.name.startswith("aten::_scaled_dot_product_flash_attention_for_cpu"):  # takes rows to be dense
        return any(isinstance(t, torch.Tensor) and t.dim() == 4 and t.stride(3) != 1 and t.size(3) > 1 for t in call.args[:5])
    names = BARE.get(call.op._schema.name + ("." + call.op._schema.overload_name if call.op._schema.overload_name else ""))
    if not names:
        return False
    given = dict(zip((a.name for a in call.op._schema.arguments), call.args)) | call.kwargs
    tensors = {n: t for n, t in given.items() if isinstance(t, torch.Tensor)}
    if call.op._schema.name == "aten::native_group_norm_backward" and all(
            n in tensors and tensors[n].dim() == 4 and tensors[n].is_contiguous(memory_format=torch.channels_last)
            for n in ("grad_out", "input")):
        names = names[2:]  # both channels-last is as good
    return any(n in tensors and not tensors[n].is_contiguous() for n in names)
