"""Calls of operators that PyTorch's own test samples (tools/opcheck) do not reach, for tests/peers/decompositions.py."""

import torch


def t(*sizes, dtype=torch.float32, low=-2.0, high=2.0):
    """Evenly spread values."""
    n = 1
    for s in sizes:
        n *= s
    flat = torch.linspace(low, high, max(n, 1), dtype=torch.float64)[:n]
    return flat.reshape(sizes).to(dtype)


def calls():
    """(operator, arguments, keyword arguments)"""
    half, bfloat = torch.float16, torch.bfloat16
    for dtype in (torch.float32, half, torch.int32):
        yield "aten::clamp_max", [t(3, 4, dtype=dtype), 1], {}
        yield "aten::floor_divide.Scalar", [t(3, 4, dtype=dtype), 2], {}
        yield "aten::xlogy.Scalar_Other", [t(3, 4, dtype=dtype), 2], {}
        yield "aten::xlogy.Scalar_Self", [2.5, t(3, 4, dtype=dtype, low=1)], {}
        yield "aten::special_entr", [t(7, dtype=dtype)], {}
        yield "aten::special_log_ndtr", [t(7, dtype=dtype)], {}
        yield "aten::zero", [t(4, 5, dtype=dtype)], {}
        yield "aten::isin.Tensor_Scalar", [t(5, dtype=dtype), 1], {}
        yield "aten::isin.Tensor_Scalar", [t(5, dtype=dtype), 1], {"invert": True}
        yield "aten::isin.Scalar_Tensor", [1, t(5, dtype=dtype)], {}
        yield "aten::squeeze_copy.dims", [t(1, 3, 1, dtype=dtype), [0, 2]], {}
        yield "aten::count_nonzero.dim_IntList", [t(2, 3, 4, dtype=dtype), [0, 2]], {}
        yield "aten::unsafe_split_with_sizes", [t(5, 3, dtype=dtype), [2, 3]], {}
    for dtype in (torch.float32, half, bfloat):
        yield "aten::norm.Scalar", [t(3, 4, dtype=dtype), 3], {}
        yield "aten::norm.ScalarOpt_dtype", [t(3, 4, dtype=dtype), 2], {"dtype": torch.float32}
        yield "aten::norm.ScalarOpt_dim_dtype", [t(3, 4, dtype=dtype), None, [1], True], {"dtype": torch.float32}
        yield "aten::_fused_rms_norm", [t(2, 3, 8, dtype=dtype), [8], t(8, dtype=dtype), 1e-5], {}
        yield "aten::_fused_rms_norm", [t(2, 3, 8, dtype=dtype), [3, 8], None, None], {}
        yield "aten::_weight_norm_interface", [t(4, 3, dtype=dtype), t(4, 1, dtype=dtype, low=1), 0], {}
        yield "aten::upsample_linear1d", [t(2, 3, 5, dtype=dtype), [9], False], {}
        yield "aten::upsample_linear1d", [t(2, 3, 5, dtype=dtype), [9], True], {}
        yield "aten::upsample_linear1d", [t(2, 3, 5, dtype=dtype), [10], False, 2.0], {}
        yield "aten::reflection_pad3d", [t(1, 2, 4, 5, 6, dtype=dtype), [1, 2, 2, 1, 1, 0]], {}
        yield "aten::celu", [t(3, 4, dtype=dtype), 0.5], {}
        yield "aten::softplus", [t(3, 4, dtype=dtype), 2, 10], {}
        yield "aten::glu", [t(4, 6, dtype=dtype), 0], {}
    yield "aten::_euclidean_dist", [t(3, 4), t(5, 4)], {}
    yield "aten::select_backward", [t(3, 5), [3, 4, 5], 1, 2], {}
    yield "aten::slice_backward", [t(3, 2), [3, 7], 1, 1, 6, 3], {}
    yield "aten::diagonal_backward", [t(2, 3), [3, 2, 4], 1, 0, 2], {}
    yield "aten::unfold_backward", [t(3, 4, 2), [3, 5], 1, 2, 1], {}
    yield "aten::unfold_backward", [t(2, 3, 2), [7, 3], 0, 2, 4], {}
    yield "aten::_euclidean_dist", [t(2, 3, 4), t(2, 5, 4)], {}
    yield "aten::_reshape_alias", [t(3, 4), [4, 3], [3, 1]], {}
    q, k, v = t(2, 4, 5, 8), t(2, 4, 6, 8), t(2, 4, 6, 8)
    yield "aten::_scaled_dot_product_flash_attention_for_cpu", [q, k, v], {}
    yield "aten::_scaled_dot_product_flash_attention_for_cpu", [q, k, v], {"attn_mask": t(2, 4, 5, 6), "scale": 0.3}
    yield "aten::_scaled_dot_product_flash_attention_for_cpu", [t(2, 4, 6, 8), k, v, 0.0, True], {}
    yield "aten::_scaled_dot_product_flash_attention_for_cpu", [q.to(bfloat), k.to(bfloat), v.to(bfloat)], {}
