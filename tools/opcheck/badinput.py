"""Calls that PyTorch refuses: written by hand, and those of op_db's error inputs.

A few of the hand-written ones PyTorch accepts after all (fill_ on an expanded tensor): they stay, with its answer.
"""

import itertools
import warnings

import torch

import isolate
import record
from calls import Call, Unsupported, find_op, make_case, op_name, snapshot
from checks import check_for

BIG = 2 ** 62


def f(*s):
    return torch.arange(1.0, 1.0 + torch.Size(s).numel()).reshape(s)


def i(*s):
    return torch.zeros(s, dtype=torch.int64)


def ix(*v, dtype=torch.int64):
    return torch.tensor(v, dtype=dtype)


def e(*s):
    """An expanded tensor: several elements at one address."""
    return torch.ones(1).expand(s)


def overlap():
    """Two views of one storage that overlap in part."""
    base = torch.arange(12.0)
    return base[:8], base[2:10]


def binary():
    for op in ("add", "sub", "mul", "div", "maximum", "minimum", "pow", "atan2", "fmod", "remainder", "eq", "lt", "logical_and"):
        overload = {"pow": "Tensor_Tensor", "maximum": "", "minimum": "", "atan2": "", "logical_and": ""}.get(op, "Tensor")
        yield f"aten::{op}" + ("." + overload if overload else ""), [f(3), f(4)], {}
    yield "aten::add.Tensor", [f(2, 3), f(3, 2)], {}
    yield "aten::add.Tensor", [i(3), i(3)], {"alpha": 1.5}
    yield "aten::add.Tensor", [torch.ones(2, dtype=torch.bool), torch.ones(2, dtype=torch.bool)], {"alpha": 0.5}
    yield "aten::sub.Tensor", [torch.ones(2, dtype=torch.bool), torch.ones(2, dtype=torch.bool)], {}
    yield "aten::sub.Tensor", [torch.ones(2, dtype=torch.bool), f(2)], {}
    yield "aten::rsub.Scalar", [torch.ones(2, dtype=torch.bool), 1], {}
    yield "aten::neg", [torch.ones(2, dtype=torch.bool)], {}
    yield "aten::bitwise_and.Tensor", [f(3), f(3)], {}
    yield "aten::bitwise_or.Tensor", [f(3), i(3)], {}
    yield "aten::bitwise_xor.Scalar", [f(3), 1], {}
    yield "aten::bitwise_not", [f(3)], {}
    yield "aten::pow.Tensor_Scalar", [i(3) + 2, -1], {}
    yield "aten::div.Tensor_mode", [f(3), f(3)], {"rounding_mode": "ceil"}
    yield "aten::div.Tensor_mode", [i(3) + 4, i(3)], {"rounding_mode": "floor"}
    yield "aten::div.Tensor_mode", [i(3) + 4, i(3)], {"rounding_mode": "trunc"}
    yield "aten::remainder.Tensor", [i(3) + 4, i(3)], {}
    yield "aten::fmod.Tensor", [i(3) + 4, i(3)], {}
    yield "aten::remainder.Scalar", [i(3) + 4, 0], {}
    yield "aten::where.self", [torch.ones(3, dtype=torch.bool), f(2), f(3)], {}
    yield "aten::where.self", [f(3), f(3), f(3)], {}
    yield "aten::masked_fill.Scalar", [f(3), f(3), 1], {}
    yield "aten::masked_fill.Scalar", [f(3), torch.ones(4, dtype=torch.bool), 1], {}
    yield "aten::masked_fill.Tensor", [f(3), torch.ones(3, dtype=torch.bool), f(2)], {}
    yield "aten::clamp", [f(3)], {}
    yield "aten::clamp.Tensor", [f(3), f(4)], {}
    yield "aten::round.decimals", [i(3)], {"decimals": 1}
    yield "aten::gelu", [f(3)], {"approximate": "sigmoid"}
    yield "aten::gelu", [i(3)], {}
    yield "aten::silu", [i(3)], {}
    yield "aten::hardtanh", [torch.ones(2, dtype=torch.bool)], {}
    yield "aten::lerp.Tensor", [f(3), f(4), f(3)], {}


def inplace():
    yield "aten::add_.Tensor", [f(3), f(2, 3)], {}
    yield "aten::add_.Tensor", [i(3), f(3)], {}
    yield "aten::mul_.Tensor", [torch.ones(3, dtype=torch.bool), i(3)], {}
    yield "aten::div_.Tensor", [i(3), i(3) + 1], {}
    yield "aten::sqrt_", [i(3)], {}
    yield "aten::exp_", [i(3)], {}
    yield "aten::sigmoid_", [i(3)], {}
    yield "aten::add_.Tensor", [e(3), f(3)], {}
    yield "aten::relu_", [e(2, 3)], {}
    yield "aten::fill_.Scalar", [e(3), 1], {}
    yield "aten::copy_", [e(3), f(3)], {}
    yield "aten::copy_", [f(3), f(4)], {}
    yield "aten::copy_", [f(3), f(2, 3)], {}
    yield "aten::masked_fill_.Scalar", [e(3), torch.ones(3, dtype=torch.bool), 0], {}
    a, b = overlap()
    yield "aten::add_.Tensor", [a, b], {}
    a, b = overlap()
    yield "aten::copy_", [a, b.flip(0)[:3]], {}
    a, b = overlap()
    yield "aten::mul_.Tensor", [a, b], {}
    a, b = overlap()
    yield "aten::add.out", [a, f(8)], {"out": b}
    yield "aten::add.out", [f(3), f(3)], {"out": e(3)}
    yield "aten::add.out", [f(3), f(3)], {"out": i(3)}
    yield "aten::sqrt.out", [i(3)], {"out": i(3)}
    yield "aten::mm.out", [f(2, 3), f(3, 2)], {"out": i(2, 2)}
    yield "aten::sum.IntList_out", [f(2, 3), [0]], {"out": i(3)}
    yield "aten::cat.out", [[f(2), f(3)]], {"out": i(5)}
    yield "aten::index_select.out", [f(3), 0, ix(0)], {"out": i(1)}
    yield "aten::scatter_.value", [e(3), 0, ix(0), 1.0], {}
    yield "aten::index_put_", [f(3), [ix(5)], f(1)], {}
    yield "aten::detach_", [f(6)[::2].expand(2, 3)], {}
    yield "aten::bernoulli_.float", [f(3), 1.5], {}
    yield "aten::bernoulli_.float", [f(3), -0.1], {}
    yield "aten::uniform_", [f(3), 2.0, 1.0], {}
    yield "aten::normal_", [f(3), 0.0, -1.0], {}
    yield "aten::clamp_", [i(3), 0.5], {}
    yield "aten::floor_divide_.Tensor", [i(3), i(3)], {}
    yield "aten::eq_.Tensor", [f(3), f(4)], {}
    yield "aten::bitwise_and_.Tensor", [i(3), torch.ones(2, 3, dtype=torch.int64)], {}
    yield "aten::squeeze_.dim", [f(3), 2], {}
    yield "aten::transpose_", [f(3, 2), 0, 2], {}
    yield "aten::unsqueeze_", [f(3), 3], {}
    yield "aten::resize_", [f(3), [-1]], {}
    yield "aten::cumsum_", [f(3), 1], {}


def views():
    yield "aten::view", [f(6), [4]], {}
    yield "aten::view", [f(6), [-1, -1]], {}
    yield "aten::view", [f(6), [-1, 4]], {}
    yield "aten::view", [f(6), [-2, 3]], {}
    yield "aten::view", [f(2, 3).t(), [6]], {}
    yield "aten::view", [f(0), [-1, 0]], {}
    yield "aten::view.dtype", [f(3), torch.int64], {}
    yield "aten::reshape", [f(6), [4, 2]], {}
    yield "aten::reshape", [f(6), [5, -1]], {}
    yield "aten::reshape", [f(6), [-3, -2]], {}
    yield "aten::expand", [f(3), [4]], {}
    yield "aten::expand", [f(2, 3), [3]], {}
    yield "aten::expand", [f(3), [-1, 3]], {}
    yield "aten::expand", [f(1), [-2]], {}
    yield "aten::permute", [f(2, 3), [0]], {}
    yield "aten::permute", [f(2, 3), [0, 0]], {}
    yield "aten::permute", [f(2, 3), [0, 2]], {}
    yield "aten::transpose.int", [f(2, 3), 0, 2], {}
    yield "aten::transpose.int", [f(2, 3), -3, 0], {}
    yield "aten::t", [f(2, 3, 4)], {}
    yield "aten::squeeze.dim", [f(1, 3), 2], {}
    yield "aten::squeeze.dims", [f(1, 3), [0, 0]], {}
    yield "aten::unsqueeze", [f(3), 2], {}
    yield "aten::unsqueeze", [f(3), -3], {}
    yield "aten::select.int", [f(3), 0, 3], {}
    yield "aten::select.int", [f(3), 0, -4], {}
    yield "aten::select.int", [f(3), 1, 0], {}
    yield "aten::select.int", [torch.tensor(1.0), 0, 0], {}
    yield "aten::slice.Tensor", [f(3), 1], {}
    yield "aten::slice.Tensor", [f(3), 0, 0, 3, 0], {}
    yield "aten::slice.Tensor", [f(3), 0, 0, 3, -1], {}
    yield "aten::slice.Tensor", [torch.tensor(1.0), 0], {}
    yield "aten::narrow", [f(3), 0, 2, 2], {}
    yield "aten::narrow", [f(3), 0, 0, -1], {}
    yield "aten::narrow", [torch.tensor(1.0), 0, 0, 1], {}
    yield "aten::split.Tensor", [f(3), 0], {}
    yield "aten::split.Tensor", [f(3), -1], {}
    yield "aten::split.Tensor", [torch.tensor(1.0), 1], {}
    yield "aten::split_with_sizes", [f(3), [1, 1]], {}
    yield "aten::split_with_sizes", [f(3), [4, -1]], {}
    yield "aten::chunk", [f(3), 0], {}
    yield "aten::unbind.int", [f(3), 1], {}
    yield "aten::diagonal", [f(3)], {}
    yield "aten::diagonal", [f(3, 3), 0, 0, 0], {}
    yield "aten::as_strided", [f(6), [2, 4], [4, 1]], {}
    yield "aten::as_strided", [f(6), [2], [-1]], {}
    yield "aten::as_strided", [f(6), [2], [1], 5], {}
    yield "aten::as_strided", [f(6), [2, 2], [1]], {}
    yield "aten::flatten.using_ints", [f(2, 3), 1, 0], {}
    yield "aten::flatten.using_ints", [f(2, 3), 0, 2], {}
    yield "aten::unfold", [f(3), 0, 4, 1], {}
    yield "aten::unfold", [f(3), 0, 2, 0], {}
    yield "aten::movedim.intlist", [f(2, 3), [0, 0], [0, 1]], {}
    yield "aten::unflatten.int", [f(6), 0, [4, 2]], {}
    yield "aten::pixel_shuffle", [f(1, 3, 2, 2), 2], {}
    yield "aten::broadcast_tensors", [[f(3), f(4)]], {}
    yield "aten::sym_size.int", [f(3), 1], {}
    yield "aten::sym_stride.int", [f(3), -2], {}


def joining():
    yield "aten::cat", [[]], {}
    yield "aten::cat", [[f(2, 3), f(3, 2)]], {}
    yield "aten::cat", [[f(2, 3), f(2, 3)], 2], {}
    yield "aten::cat", [[f(2, 3), f(3)]], {}
    yield "aten::cat", [[torch.tensor(1.0), torch.tensor(2.0)]], {}
    yield "aten::stack", [[]], {}
    yield "aten::stack", [[f(2), f(3)]], {}
    yield "aten::stack", [[f(2), f(2)], 2], {}
    yield "aten::repeat", [f(2, 3), [2]], {}
    yield "aten::repeat", [f(2), [-1]], {}
    yield "aten::repeat_interleave.self_int", [f(2), -1], {}
    yield "aten::repeat_interleave.self_Tensor", [f(2), ix(1, 2, 3)], {}
    yield "aten::roll", [f(3), [1, 2], [0]], {}
    yield "aten::roll", [f(3), [1], [1]], {}
    yield "aten::flip", [f(3), [0, 0]], {}
    yield "aten::flip", [f(3), [1]], {}
    yield "aten::constant_pad_nd", [f(3), [1]], {}
    yield "aten::constant_pad_nd", [f(3), [1, 1, 1, 1]], {}
    yield "aten::constant_pad_nd", [f(3), [-2, -2]], {}
    yield "aten::reflection_pad1d", [f(1, 3), [3, 0]], {}
    yield "aten::reflection_pad2d", [f(1, 3, 3), [1, 1]], {}
    yield "aten::replication_pad2d", [f(3, 3), [1, 1, 1, 1]], {}
    yield "aten::tril", [f(3)], {}
    yield "aten::pad", [f(3), [1, 1], "mirror"], {}


def indexing():
    yield "aten::index.Tensor", [f(3), [ix(3)]], {}
    yield "aten::index.Tensor", [f(3), [ix(-4)]], {}
    yield "aten::index.Tensor", [f(3), [ix(0), ix(0)]], {}
    yield "aten::index.Tensor", [f(3, 3), [ix(0, 1), ix(0, 1, 2)]], {}
    yield "aten::index.Tensor", [f(3), [torch.ones(4, dtype=torch.bool)]], {}
    yield "aten::index.Tensor", [f(3), [f(1)]], {}
    yield "aten::index_select", [f(3), 0, ix(3)], {}
    yield "aten::index_select", [f(3), 0, ix(-1)], {}
    yield "aten::index_select", [f(3), 1, ix(0)], {}
    yield "aten::index_select", [f(3), 0, i(1, 1)], {}
    yield "aten::index_select", [f(3), 0, f(1)], {}
    yield "aten::gather", [f(3), 0, ix(3)], {}
    yield "aten::gather", [f(3), 0, i(1, 1)], {}
    yield "aten::gather", [f(3), 0, f(1)], {}
    yield "aten::gather", [f(2, 3), 1, i(3, 1)], {}
    yield "aten::gather", [f(3), 1, ix(0)], {}
    yield "aten::scatter.src", [f(3), 0, ix(3), f(1)], {}
    yield "aten::scatter.src", [f(3), 0, ix(0, 1), f(1)], {}
    yield "aten::scatter.src", [f(3), 0, ix(0), i(1)], {}
    yield "aten::scatter.value", [f(3), 1, ix(0), 1], {}
    yield "aten::scatter_add", [f(3), 0, ix(0), i(1)], {}
    yield "aten::scatter_reduce.two", [f(3), 0, ix(0), f(1), "max"], {}
    yield "aten::masked_scatter", [f(3), torch.ones(3, dtype=torch.bool), f(2)], {}
    yield "aten::masked_scatter", [f(3), f(3), f(3)], {}
    yield "aten::masked_select", [f(3), torch.ones(4, dtype=torch.bool)], {}
    yield "aten::index_put", [f(3), [ix(0, 1)], f(3)], {}
    yield "aten::index_put", [f(3), [ix(0)], i(1)], {}
    yield "aten::select_scatter", [f(2, 3), f(2), 0, 0], {}
    yield "aten::slice_scatter", [f(3), f(3), 0, 0, 2], {}
    yield "aten::embedding", [f(3, 2), ix(3)], {}
    yield "aten::embedding", [f(3, 2), ix(-1)], {}
    yield "aten::embedding", [f(3), ix(0)], {}
    yield "aten::embedding", [f(3, 2), f(1)], {}
    yield "aten::take", [f(3), ix(3)], {}
    yield "aten::_local_scalar_dense", [f(0)], {}
    yield "aten::index_add", [f(3), 0, ix(3), f(1)], {}
    yield "aten::index_copy", [f(3), 0, ix(0, 1), f(3)], {}
    yield "aten::one_hot", [ix(3), 2], {}


def reductions():
    yield "aten::sum.dim_IntList", [f(3), [1]], {}
    yield "aten::sum.dim_IntList", [f(2, 3), [0, 0]], {}
    yield "aten::sum.dim_IntList", [f(2, 3), [0, -2]], {}
    yield "aten::mean", [i(3)], {}
    yield "aten::mean.dim", [i(3), [0]], {}
    yield "aten::mean.dim", [f(3), [2]], {}
    yield "aten::mean", [f(3)], {"dtype": torch.int64}
    yield "aten::prod.dim_int", [f(3), 1], {}
    yield "aten::amax", [f(0), [0]], {}
    yield "aten::amax", [f(2, 0)], {}
    yield "aten::amin", [f(3), [1]], {}
    yield "aten::max", [f(0)], {}
    yield "aten::max.dim", [f(2, 0), 1], {}
    yield "aten::min.dim", [f(3), 1], {}
    yield "aten::argmax", [f(0)], {}
    yield "aten::argmax", [f(2, 0), 1], {}
    yield "aten::argmin", [f(3), 2], {}
    yield "aten::argmax", [torch.ones(2, dtype=torch.bool)], {}
    yield "aten::var.correction", [i(3)], {}
    yield "aten::std.dim", [i(3), [0]], {}
    yield "aten::var.correction", [f(3), [1]], {}
    yield "aten::cumsum", [f(3), 1], {}
    yield "aten::softmax.int", [f(3), 1], {}
    yield "aten::softmax.int", [i(3), 0], {}
    yield "aten::_softmax", [i(3), 0, False], {}
    yield "aten::_log_softmax", [f(3), 1, False], {}
    yield "aten::_softmax", [f(3), 0, True], {}
    yield "aten::any.dim", [f(3), 1], {}
    yield "aten::sort", [f(3), 1], {}
    yield "aten::topk", [f(3), 4], {}
    yield "aten::topk", [f(3), -1], {}
    yield "aten::topk", [f(3), 1, 1], {}
    yield "aten::logsumexp", [f(3), [1]], {}
    yield "aten::nonzero.out", [f(3)], {"out": f(1, 1)}
    yield "aten::unique_consecutive", [f(3)], {"dim": 1}
    yield "aten::linalg_vector_norm", [i(3)], {}
    yield "aten::diff", [torch.tensor(1.0)], {}
    yield "aten::kthvalue", [f(3), 4], {}


def products():
    yield "aten::mm", [f(2, 3), f(2, 3)], {}
    yield "aten::mm", [f(2), f(2, 3)], {}
    yield "aten::mm", [f(2, 3), i(3, 2)], {}
    yield "aten::bmm", [f(2, 3, 4), f(2, 3, 4)], {}
    yield "aten::bmm", [f(2, 3, 4), f(3, 4, 5)], {}
    yield "aten::bmm", [f(2, 3), f(3, 4)], {}
    yield "aten::addmm", [f(4), f(2, 3), f(3, 2)], {}
    yield "aten::addmm", [f(2, 2), f(2, 3), f(2, 2)], {}
    yield "aten::addmm", [i(2), f(2, 3), f(3, 2)], {}
    yield "aten::baddbmm", [f(5), f(2, 3, 4), f(2, 4, 3)], {}
    yield "aten::matmul", [f(3), f(4)], {}
    yield "aten::matmul", [f(2, 3), f(2, 3)], {}
    yield "aten::matmul", [torch.tensor(1.0), f(3)], {}
    yield "aten::matmul", [f(2, 3, 4), f(3, 4, 5)], {}
    yield "aten::matmul", [f(2, 3), i(3, 2)], {}
    yield "aten::linear", [f(2, 3), f(4, 2)], {}
    yield "aten::linear", [f(2, 3), f(4, 3), f(3)], {}
    yield "aten::linear", [f(2, 3), f(4, 3).double()], {}
    yield "aten::dot", [f(3), f(4)], {}
    yield "aten::dot", [f(3, 1), f(3)], {}
    yield "aten::mv", [f(2, 3), f(2)], {}
    yield "aten::scaled_dot_product_attention", [f(1, 1, 2, 3), f(1, 1, 2, 4), f(1, 1, 2, 3)], {}
    yield "aten::scaled_dot_product_attention", [f(1, 1, 2, 3), f(1, 1, 2, 3), f(1, 1, 2, 3), f(2, 2), 0.0, True], {}
    yield "aten::scaled_dot_product_attention", [f(1, 1, 2, 3), f(1, 1, 2, 3), f(1, 1, 2, 3), i(2, 2)], {}
    yield "aten::scaled_dot_product_attention", [f(1, 1, 2, 3), f(1, 1, 2, 3).double(), f(1, 1, 2, 3)], {}
    yield "aten::scaled_dot_product_attention", [f(3), f(3), f(3)], {}


def layers():
    yield "aten::conv2d", [f(1, 3, 4, 4), f(2, 4, 3, 3)], {}
    yield "aten::conv2d", [f(1, 3, 4, 4), f(2, 3, 5, 5)], {}
    yield "aten::conv2d", [f(3, 4), f(2, 3, 3, 3)], {}
    yield "aten::conv2d", [f(1, 3, 4, 4), f(2, 3, 3, 3), f(3)], {}
    yield "aten::conv2d", [f(1, 3, 4, 4), f(2, 3, 3, 3), None, [0, 0]], {}
    yield "aten::conv2d", [f(1, 3, 4, 4), f(2, 3, 3, 3), None, [1, 1], [-1, 0]], {}
    yield "aten::conv2d", [f(1, 3, 4, 4), f(2, 3, 3, 3), None, [1, 1], [0, 0], [0, 1]], {}
    yield "aten::conv2d", [f(1, 3, 4, 4), f(2, 1, 3, 3), None, [1, 1], [0, 0], [1, 1], 2], {}
    yield "aten::conv2d", [f(1, 3, 4, 4), f(2, 3, 3, 3), None, [1, 1], [0, 0], [1, 1], 0], {}
    yield "aten::conv2d", [f(1, 3, 4, 4), f(2, 3, 3, 3).double()], {}
    yield "aten::conv1d", [f(1, 3, 4), f(2, 3, 5)], {}
    yield "aten::conv1d", [f(1, 3, 4, 4), f(2, 3, 3)], {}
    yield "aten::convolution", [f(1, 3, 4), f(3, 2, 3), None, [1], [0], [1], True, [1], 1], {}
    yield "aten::convolution", [f(1, 3, 4), f(2, 3, 3), None, [1, 1, 1], [0], [1], False, [0], 1], {}
    yield "aten::max_pool2d", [f(1, 4, 4), [3, 3], [1, 1], [2, 2]], {}
    yield "aten::max_pool2d", [f(4, 4), [2, 2]], {}
    yield "aten::max_pool2d", [f(1, 4, 4), [5, 5]], {}
    yield "aten::max_pool2d", [f(1, 4, 4), [0, 2]], {}
    yield "aten::avg_pool2d", [f(1, 4, 4), [2, 2], [1, 1], [2, 2]], {}
    yield "aten::avg_pool2d", [f(1, 4, 4), [2, 2], [1, 1], [0, 0], False, True, 0], {}
    yield "aten::avg_pool1d", [f(1, 4), [5]], {}
    yield "aten::adaptive_avg_pool2d", [f(4, 4), [2, 2]], {}
    yield "aten::adaptive_avg_pool2d", [f(1, 4, 4), [2]], {}
    yield "aten::adaptive_avg_pool2d", [f(1, 4, 4), [-1, 2]], {}
    yield "aten::adaptive_avg_pool1d", [f(4), [2]], {}
    yield "aten::layer_norm", [f(2, 3), [4]], {}
    yield "aten::layer_norm", [f(2, 3), [3], f(4)], {}
    yield "aten::layer_norm", [f(2, 3), []], {}
    yield "aten::native_layer_norm", [f(2, 3), [2, 3], f(3), None, 1e-5], {}
    yield "aten::layer_norm", [i(2, 3), [3]], {}
    yield "aten::group_norm", [f(2, 3, 4), 2], {}
    yield "aten::group_norm", [f(2, 4, 4), 2, f(3)], {}
    yield "aten::group_norm", [f(2, 4, 4), 0], {}
    yield "aten::batch_norm", [f(2, 3), f(4), f(3), f(3), f(3), False, 0.1, 1e-5, False], {}
    yield "aten::batch_norm", [f(2, 3), None, None, None, None, False, 0.1, 1e-5, False], {}
    yield "aten::batch_norm", [f(2, 3), None, None, f(2), f(3), False, 0.1, 1e-5, False], {}
    yield "aten::dropout", [f(3), 1.5, True], {}
    yield "aten::dropout", [f(3), -0.5, True], {}
    yield "aten::glu", [f(3)], {}
    yield "aten::glu", [f(4), 1], {}
    yield "aten::upsample_bilinear2d.vec", [f(1, 3, 4), [2, 2], False, None], {}
    yield "aten::upsample_bilinear2d.vec", [f(1, 1, 3, 4), [2, 2], False, [2.0, 2.0]], {}
    yield "aten::upsample_bilinear2d.vec", [f(1, 1, 3, 4), None, False, None], {}
    yield "aten::upsample_nearest2d.vec", [f(1, 1, 3, 4), [0, 2], None], {}
    yield "aten::l1_loss", [f(3), f(4)], {}
    yield "aten::cross_entropy_loss", [f(3, 4), ix(0, 1)], {}
    yield "aten::nll_loss_forward", [f(2, 3), ix(0, 3), None, 1, -100], {}
    yield "aten::_weight_norm", [f(3, 4), f(3, 4), 5], {}
    yield "aten::grid_sampler_2d", [f(1, 1, 3, 3), f(1, 2, 2, 3), 0, 0, False], {}
    yield "aten::col2im", [f(1, 4, 4), [3, 3], [2, 2], [1, 1], [0, 0], [0, 1]], {}
    yield "aten::rms_norm", [f(2, 3), [4]], {}


def factories():
    yield "aten::zeros", [[-1]], {}
    yield "aten::ones", [[2, -3]], {}
    yield "aten::full", [[-2], 1], {}
    yield "aten::empty.memory_format", [[-1]], {}
    yield "aten::empty.memory_format", [[2, 3]], {"memory_format": torch.channels_last}
    yield "aten::zeros", [[BIG, BIG]], {}
    yield "aten::empty.memory_format", [[BIG, 4]], {}
    yield "aten::empty_strided", [[2, 2], [1]], {}
    yield "aten::empty_strided", [[2], [-1]], {}
    yield "aten::arange", [-1], {}
    yield "aten::arange.start", [5, 1], {}
    yield "aten::arange.start_step", [0, 5, 0], {}
    yield "aten::arange.start_step", [0, 5, -1], {}
    yield "aten::arange", [float("inf")], {}
    yield "aten::arange", [float("nan")], {}
    yield "aten::randint", [0, [2]], {}
    yield "aten::randint.low", [5, 5, [2]], {}
    yield "aten::randperm", [-1], {}
    yield "aten::eye", [-1], {}
    yield "aten::linspace", [0, 1, -1], {}
    yield "aten::new_zeros", [f(2), [-1]], {}
    yield "aten::contiguous", [f(2, 3)], {"memory_format": torch.channels_last}
    yield "aten::contiguous", [f(2, 3)], {"memory_format": torch.preserve_format}
    yield "aten::clone", [f(2, 3)], {"memory_format": torch.channels_last}
    yield "aten::_to_copy", [f(2, 3)], {"memory_format": torch.channels_last}
    yield "aten::full_like", [f(2), 1], {"memory_format": torch.channels_last}
    yield "aten::expand", [f(1), [BIG, BIG]], {}
    yield "aten::repeat", [f(2), [BIG, 8]], {}
    yield "aten::resize_", [f(2), [BIG, 8]], {}
    yield "aten::_assert_scalar", [False, "no"], {}
    yield "aten::_assert_scalar", [0, "no"], {}
    yield "aten::_assert_tensor_metadata", [f(2), [3]], {}
    yield "aten::_assert_tensor_metadata", [f(2), None, None, torch.int64], {}


GROUPS = [binary, inplace, views, joining, indexing, reductions, products, layers, factories]


def hand_written():
    for group in GROUPS:
        for name, args, kwargs in group():
            yield group.__name__, Call(find_op(name), args, kwargs, group.__name__)


class LastCall:
    """Stands in for a Recorder; remembers the outermost call that is running."""

    def __init__(self):
        self.last = None

    def add(self, func, args, kwargs):
        try:
            args, kwargs = snapshot([list(args), dict(kwargs)], 65536)
            self.last = Call(func, args, kwargs, "op_db")
        except Unsupported:
            self.last = None


class First(LastCall):
    """Only the first call: the composite one that the user made."""

    def add(self, func, args, kwargs):
        if self.last is None:
            super().add(func, args, kwargs)


def op_db_errors(seed):
    """The operator calls that op_db's error inputs become, where one operator alone repeats the error."""
    found = []
    for info in record.op_infos():
        if info.error_inputs_func is None:
            continue
        torch.manual_seed(seed)
        try:
            samples = list(itertools.islice(info.error_inputs("cpu"), 24))
        except Exception:
            continue
        for s in samples:
            s = s.sample_input
            for probe in (First(), LastCall()):
                try:
                    with torch.no_grad(), record.recording(probe):
                        info.op(s.input, *s.args, **s.kwargs)
                except Exception:
                    if probe.last is not None:
                        found.append(probe.last)
    return found


def cases(seed, wanted, hand_only=False):
    """The hand-written cases and those of op_db, of the wanted operators."""
    out, seen = [], set()

    def hand(tick):
        made = []
        for n, (group, call) in enumerate(hand_written()):
            if op_name(call.op) not in wanted or tick():
                continue
            try:
                made.append(make_case(call, f"{group}/{n}", check_for(call.op, call)))
            except Unsupported as e:
                print(f"badinput: {group}/{n} {op_name(call.op)}: {e}", flush=True)
        return made

    def from_op_db(tick):
        made = []
        for call in op_db_errors(seed):
            name = op_name(call.op)
            if name not in wanted or call.signature() in seen or tick():
                continue
            seen.add(call.signature())
            try:
                case = make_case(call, f"op_db/{name}/{len(made)}", check_for(call.op, call))
            except Unsupported:
                continue
            if "error" in case["expect"]:
                made.append(case)
        return made

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for f_ in (hand,) if hand_only else (hand, from_op_db):
            made, crashes = isolate.run(f_)
            if crashes:
                print(f"badinput: {crashes} calls crash PyTorch and are left out", flush=True)
            out += made or []
    return out
