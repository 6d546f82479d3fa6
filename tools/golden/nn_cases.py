"""Cases of layers, initialisations and functions for Calque's nn room, and PyTorch's answers to them.

cases() lists them; inputs are made from the case's seed. answers(case) runs PyTorch. tests/peers/nn.py compares live,
tools/golden/nn_golden.py writes a sample for tests/nn/golden.
"""
import hashlib
import math
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")


class T:
    """An input tensor: sizes, and how it is filled."""

    def __init__(self, *sizes, kind="normal", high=0, dtype=torch.float32, same_as=None):
        self.sizes, self.kind, self.high, self.dtype, self.same_as = sizes, kind, high, dtype, same_as


def L(layer, args=None, *inputs, kwargs=None, normal=False, call=True):
    return {"layer": layer, "args": args or {}, "inputs": list(inputs), "kwargs": kwargs or {}, "normal": normal, "call": call}


def Fn(function, args, *inputs, normal=False):
    return {"function": function, "args": args, "inputs": list(inputs), "kwargs": {}, "normal": normal, "call": True}


def ints(*sizes, high):
    return T(*sizes, kind="int", high=high)


def prob(*sizes):
    return T(*sizes, kind="uniform")


def signs(*sizes):
    return T(*sizes, kind="sign")


def nest(*modules):
    return {"modules": [{"layer": name, "args": args} for name, args in modules]}


def simple_layers():
    x = T(3, 5, 7)
    out = []
    for name in "Identity Tanh Sigmoid LogSigmoid Softsign Tanhshrink ReLU ReLU6 SiLU SELU Mish Hardswish Hardsigmoid".split():
        out.append(L(name, {}, x))
    for name in "ReLU ReLU6 SiLU SELU Mish Hardswish Hardsigmoid".split():
        out.append(L(name, {"inplace": True}, x))
    for name in "Softmax LogSoftmax Softmin".split():
        out += [L(name, {"dim": d}, x) for d in (None, 0, -1, 1)]
    out += [L("Softmax2d", {}, T(2, 3, 4, 5)), L("Softmax2d", {}, T(3, 4, 5))]
    for name, arg in (("ELU", "alpha"), ("CELU", "alpha"), ("LeakyReLU", "negative_slope")):
        out += [L(name, {}, x), L(name, {arg: 0.3}, x), L(name, {arg: 1.5, "inplace": True}, x)]
    out += [L("Softshrink", {}, x), L("Softshrink", {"lambd": 0.1}, x), L("Hardshrink", {}, x), L("Hardshrink", {"lambd": 1.25}, x),
            L("Hardtanh", {}, x), L("Hardtanh", {"min_val": -0.5, "max_val": 0.25, "inplace": True}, x), L("Softplus", {}, x),
            L("Softplus", {"beta": 2.0, "threshold": 1.0}, x), L("Threshold", {"threshold": 0.1, "value": 20.0}, x),
            L("Threshold", {"threshold": -0.1, "value": -3.0, "inplace": True}, x), L("RReLU", {}, x),
            L("RReLU", {"lower": 0.2, "upper": 0.4, "inplace": True}, x), L("PReLU", {}, x), L("PReLU", {"num_parameters": 5, "init": 0.1}, x),
            L("GLU", {}, T(3, 4, 6)), L("GLU", {"dim": 1}, T(3, 4, 6)), L("GELU", {}, x), L("GELU", {"approximate": "tanh"}, x)]
    for name, sizes in (("Dropout", (3, 40)), ("Dropout1d", (3, 8, 5)), ("Dropout1d", (8, 5)), ("Dropout2d", (3, 8, 4, 4)), ("Dropout3d", (2, 8, 3, 3, 3)),
                        ("AlphaDropout", (3, 40)), ("FeatureAlphaDropout", (3, 8, 5))):
        out += [L(name, {}, T(*sizes)), L(name, {"p": 0.1}, T(*sizes)), L(name, {"p": 0.0}, T(*sizes))]
    out += [L("Dropout", {"p": 0.3, "inplace": True}, T(5, 60)), L("Dropout", {"p": 1.0}, T(5, 6))]
    return out


def shape_layers():
    out = []
    for d, sizes in ((1, (2, 3, 6)), (2, (2, 3, 6, 5)), (3, (2, 3, 6, 5, 4))):
        pads = {1: (1, 2), 2: (1, 2, 0, 3), 3: (1, 2, 0, 3, 2, 1)}[d]
        for name in "ReflectionPad ReplicationPad CircularPad ZeroPad".split():
            out += [L(f"{name}{d}d", {"padding": 1}, T(*sizes)), L(f"{name}{d}d", {"padding": list(pads)}, T(*sizes))]
        out += [L(f"ConstantPad{d}d", {"padding": 2, "value": 0.5}, T(*sizes)), L(f"ConstantPad{d}d", {"padding": list(pads), "value": -3.5}, T(*sizes))]
        for size in (1, 3, [2]) if d == 1 else (1, 3, [None] * (d - 1) + [2]):
            out += [L(f"AdaptiveAvgPool{d}d", {"output_size": size}, T(*sizes)), L(f"AdaptiveMaxPool{d}d", {"output_size": size}, T(*sizes))]
        k = {"kernel_size": 2}
        for more in ({}, {"stride": 1}, {"kernel_size": [3] * d, "stride": [2] * d, "padding": 1}, {"kernel_size": 3, "stride": 2, "ceil_mode": True}):
            out += [L(f"MaxPool{d}d", {**k, **more}, T(*sizes)), L(f"AvgPool{d}d", {**k, **more}, T(*sizes))]
        out += [L(f"MaxPool{d}d", {"kernel_size": 2, "dilation": 2, "stride": 1}, T(*sizes)),
                L(f"AvgPool{d}d", {"kernel_size": 3, "padding": 1, "count_include_pad": False}, T(*sizes))]
        if d > 1:
            out.append(L(f"AvgPool{d}d", {"kernel_size": 2, "divisor_override": 3}, T(*sizes)))
    out += [L("Flatten", {}, T(2, 3, 4, 5)), L("Flatten", {"start_dim": 0, "end_dim": 2}, T(2, 3, 4, 5)),
            L("Unflatten", {"dim": 1, "unflattened_size": [2, 3]}, T(4, 6, 2)), L("Unflatten", {"dim": -1, "unflattened_size": [2, 1, 4]}, T(4, 8)),
            L("PixelShuffle", {"upscale_factor": 2}, T(2, 12, 3, 4)), L("PixelUnshuffle", {"downscale_factor": 2}, T(2, 3, 4, 6)),
            L("ChannelShuffle", {"groups": 3}, T(2, 6, 4, 4)), L("Unfold", {"kernel_size": 3}, T(2, 3, 6, 7)),
            L("Unfold", {"kernel_size": [2, 3], "dilation": 2, "padding": 1, "stride": 2}, T(2, 3, 8, 9)),
            L("Fold", {"output_size": [4, 5], "kernel_size": [2, 3]}, T(2, 12, 9)),
            L("Fold", {"output_size": 6, "kernel_size": 2, "stride": 2, "padding": 1}, T(1, 8, 16)),
            L("CosineSimilarity", {}, T(5, 8), T(5, 8)), L("CosineSimilarity", {"dim": -1, "eps": 1e-4}, T(2, 5, 8), T(5, 8)),
            L("PairwiseDistance", {}, T(5, 8), T(5, 8)), L("PairwiseDistance", {"p": 1.0, "keepdim": True}, T(5, 8), T(5, 8))]
    ups = [({"scale_factor": 2.0}, (2, 3, 5)), ({"scale_factor": 2.0}, (2, 3, 5, 4)), ({"scale_factor": [1.5, 2.5]}, (2, 3, 5, 4)), ({"size": [7, 9]}, (2, 3, 5, 4)),
           ({"size": 6}, (2, 3, 5)), ({"size": [7, 9], "mode": "bilinear"}, (2, 3, 5, 4)), ({"size": [7, 9], "mode": "bilinear", "align_corners": True}, (2, 3, 5, 4)),
           ({"scale_factor": 2.0, "mode": "bicubic", "align_corners": False}, (2, 3, 5, 4)), ({"scale_factor": 2.0, "mode": "linear"}, (2, 3, 5)),
           ({"scale_factor": 1.7, "mode": "trilinear"}, (1, 2, 3, 4, 3)), ({"scale_factor": 1.7, "mode": "nearest-exact"}, (1, 2, 3, 4)),
           ({"scale_factor": 0.5, "mode": "area"}, (1, 2, 8, 6)), ({"scale_factor": 1.3, "mode": "bilinear", "recompute_scale_factor": True}, (1, 2, 8, 6))]
    return out + [L("Upsample", args, T(*sizes)) for args, sizes in ups]


def weighted_layers():
    out = []
    for i, o in ((4, 8), (1, 1), (33, 17), (64, 3)):
        out += [L("Linear", {"in_features": i, "out_features": o, "bias": b}, T(*lead, i)) for b in (True, False) for lead in ((), (5,), (2, 3))]
    out += [L("Linear", {"in_features": 16, "out_features": 8, "dtype": t}, T(5, 16, dtype=getattr(torch, t))) for t in ("float64", "bfloat16")]
    out += [L("Bilinear", {"in1_features": 3, "in2_features": 4, "out_features": 5, "bias": b}, T(6, 3), T(6, 4)) for b in (True, False)]
    out += [L("Embedding", {"num_embeddings": 11, "embedding_dim": 6, **more}, ints(4, 5, high=11), normal=True)
            for more in ({}, {"padding_idx": 3}, {"padding_idx": -1}, {"max_norm": 1.0}, {"max_norm": 0.5, "norm_type": 1.0}, {"scale_grad_by_freq": True})]
    out += [L("Embedding", {"num_embeddings": 100, "embedding_dim": 33}, ints(7, high=100), normal=True)]
    out += [L("LayerNorm", {"normalized_shape": s, **more}, T(4, 3, 8)) for s in (8, [8], [3, 8]) for more in
            ({}, {"eps": 1e-12}, {"bias": False}, {"elementwise_affine": False})]
    out += [L("RMSNorm", {"normalized_shape": s, **more}, T(4, 3, 8)) for s in (8, [3, 8]) for more in ({}, {"eps": 1e-6}, {"elementwise_affine": False})]
    out += [L("GroupNorm", {"num_groups": g, "num_channels": 6, **more}, T(2, 6, 4, 5)) for g in (1, 2, 3, 6) for more in ({}, {"eps": 1e-6}, {"affine": False}, {"bias": False})]
    out += [L("LocalResponseNorm", {"size": 2}, T(2, 5, 4, 3)), L("LocalResponseNorm", {"size": 3, "alpha": 0.1, "beta": 0.5, "k": 2.0}, T(2, 5, 7))]
    for d, sizes in ((1, (4, 5, 7)), (2, (3, 5, 4, 6)), (3, (2, 5, 3, 4, 2))):
        for more in ({}, {"eps": 1e-3, "momentum": 0.3}, {"no_momentum": True}, {"affine": False}, {"track_running_stats": False}, {"bias": False}):
            out.append(L(f"BatchNorm{d}d", {"num_features": 5, **more}, T(*sizes)))
        for more in ({}, {"affine": True}, {"affine": True, "track_running_stats": True}, {"track_running_stats": True, "momentum": 0.5}):
            out += [L(f"InstanceNorm{d}d", {"num_features": 5, **more}, T(*sizes)), L(f"InstanceNorm{d}d", {"num_features": 5, **more}, T(*sizes[1:]))]
    out.append(L("BatchNorm1d", {"num_features": 5}, T(6, 5)))
    for d, sizes in ((1, (2, 6, 9)), (2, (2, 6, 9, 8)), (3, (2, 6, 5, 6, 5))):
        base = {"in_channels": 6, "out_channels": 4, "kernel_size": 3}
        for more in ({}, {"stride": 2, "padding": 1}, {"padding": "same"}, {"padding": "valid", "bias": False}, {"dilation": 2, "padding": 2}, {"groups": 2},
                     {"padding": 1, "padding_mode": "reflect"}, {"padding": 2, "padding_mode": "circular"}, {"padding": 1, "padding_mode": "replicate", "stride": 2},
                     {"padding": "same", "padding_mode": "reflect", "kernel_size": 2}, {"kernel_size": [1] * d}, {"kernel_size": [3] * (d - 1) + [2], "stride": [1] * (d - 1) + [2]}):
            out.append(L(f"Conv{d}d", {**base, **more}, T(*sizes)))
        out += [L(f"Conv{d}d", base, T(*sizes[1:])), L(f"Conv{d}d", {"in_channels": 6, "out_channels": 6, "kernel_size": 3, "groups": 6, "padding": 1}, T(*sizes))]
        for more in ({}, {"stride": 2}, {"stride": 2, "padding": 1, "output_padding": 1}, {"groups": 2, "bias": False}, {"dilation": 2}):
            out.append(L(f"ConvTranspose{d}d", {**base, **more}, T(*sizes)))
        want = [n * 2 for n in sizes[2:]]
        out.append(L(f"ConvTranspose{d}d", {**base, "stride": 2, "padding": 1}, T(*sizes), kwargs={"output_size": want}))
    return out


def attention_layers():
    out = []
    q, k = T(5, 3, 8), T(7, 3, 8)
    mha = {"embed_dim": 8, "num_heads": 2}
    one = [T(5, 3, 8), T(5, 3, 8, same_as=0), T(5, 3, 8, same_as=0)]
    pair = [q, k, T(7, 3, 8, same_as=1)]
    for more in ({}, {"bias": False}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"dropout": 0.2}, {"batch_first": True}, {"add_bias_kv": True, "add_zero_attn": True}):
        normal = bool(more.get("add_bias_kv"))
        for kwargs in ({}, {"need_weights": False}, {"average_attn_weights": False}):
            out += [L("MultiheadAttention", {**mha, **more}, *one, kwargs=kwargs, normal=normal)]
            if not more.get("batch_first"):
                out += [L("MultiheadAttention", {**mha, **more}, *pair, kwargs=kwargs, normal=normal),
                        L("MultiheadAttention", {**mha, **more}, q, k, T(7, 3, 8), kwargs=kwargs, normal=normal)]
    for weights in (True, False):
        for mask in (T(5, 7), T(5, 7, kind="bool"), T(6, 5, 7)):
            out.append(L("MultiheadAttention", mha, *pair, kwargs={"attn_mask": mask, "need_weights": weights}))
        out += [L("MultiheadAttention", mha, *pair, kwargs={"key_padding_mask": T(3, 7, kind="bool"), "need_weights": weights}),
                L("MultiheadAttention", {**mha, "add_bias_kv": True}, *pair, kwargs={"key_padding_mask": T(3, 7), "attn_mask": T(5, 7), "need_weights": weights}, normal=True),
                L("MultiheadAttention", {**mha, "kdim": 6, "vdim": 4}, q, T(7, 3, 6), T(7, 3, 4), kwargs={"need_weights": weights}),
                L("MultiheadAttention", mha, T(5, 8), T(5, 8, same_as=0), T(5, 8, same_as=0), kwargs={"need_weights": weights}),
                L("MultiheadAttention", {**mha, "batch_first": True}, T(3, 5, 8), T(3, 7, 8), T(3, 7, 8, same_as=1), kwargs={"need_weights": weights}),
                L("MultiheadAttention", mha, *one, kwargs={"attn_mask": T(5, 5, kind="causal"), "is_causal": True, "need_weights": weights})]
    layer = {"d_model": 8, "nhead": 2, "dim_feedforward": 16}
    for more in ({}, {"activation": "gelu"}, {"norm_first": True}, {"batch_first": True, "dropout": 0.0}, {"bias": False}, {"layer_norm_eps": 1e-12}):
        out += [L("TransformerEncoderLayer", {**layer, **more}, T(5, 3, 8)),
                L("TransformerDecoderLayer", {**layer, **more}, T(5, 3, 8), T(5, 3, 8) if more.get("batch_first") else T(7, 3, 8))]
    out += [L("TransformerEncoderLayer", layer, T(5, 3, 8), kwargs={"src_mask": T(5, 5, kind="causal"), "src_key_padding_mask": T(3, 5, kind="somebool")}),
            L("TransformerEncoderLayer", layer, T(5, 3, 8), kwargs={"src_mask": T(5, 5, kind="causal"), "is_causal": True}),
            L("TransformerDecoderLayer", layer, T(5, 3, 8), T(7, 3, 8), kwargs={"tgt_mask": T(5, 5, kind="causal"), "memory_mask": T(5, 7)})]
    for norm in (False, True):
        out += [L("TransformerEncoder", {**layer, "num_layers": 3, "norm": norm}, T(5, 3, 8)),
                L("TransformerEncoder", {**layer, "num_layers": 2, "norm": norm}, T(5, 3, 8), kwargs={"mask": T(5, 5, kind="causal")}),
                L("TransformerDecoder", {**layer, "num_layers": 2, "norm": norm}, T(5, 3, 8), T(7, 3, 8), kwargs={"tgt_mask": T(5, 5, kind="causal")})]
    return out


def recurrent_layers():
    out = []
    base = {"input_size": 3, "hidden_size": 5}
    x = T(6, 2, 3)
    for name in ("RNN", "GRU", "LSTM"):
        for more in ({}, {"bias": False}, {"num_layers": 2}, {"bidirectional": True}, {"num_layers": 3, "bidirectional": True, "bias": False},
                     {"num_layers": 2, "dropout": 0.5}):
            out.append(L(name, {**base, **more}, x))
        out += [L(name, {**base, "batch_first": True, "num_layers": 2}, T(2, 6, 3)), L(name, base, T(6, 3)), L(name, {**base, "batch_first": True}, T(6, 3)), L(name, base, T(1, 2, 3))]
        cell = name + "Cell"
        out += [L(cell, base, T(4, 3)), L(cell, {**base, "bias": False}, T(4, 3)), L(cell, base, T(3))]
        states = (lambda *s: [T(*s), T(*s)]) if name == "LSTM" else (lambda *s: T(*s))
        out += [L(name, base, x, kwargs={"hx": states(1, 2, 5)}), L(name, {**base, "num_layers": 2, "bidirectional": True}, x, kwargs={"hx": states(4, 2, 5)}),
                L(name, base, T(6, 3), kwargs={"hx": states(1, 5)}), L(cell, base, T(4, 3), kwargs={"hx": states(4, 5)})]
    out += [L("RNN", {**base, "nonlinearity": "relu", "num_layers": 2}, x), L("RNNCell", {**base, "nonlinearity": "relu"}, T(4, 3)),
            L("LSTM", {**base, "proj_size": 2}, x), L("LSTM", {**base, "proj_size": 2, "num_layers": 2, "bidirectional": True}, x)]
    return out


def containers():
    return [L("Sequential", nest(("Linear", {"in_features": 4, "out_features": 8}), ("ReLU", {}), ("Linear", {"in_features": 8, "out_features": 2})), T(3, 4)),
            L("Sequential", nest(("Conv2d", {"in_channels": 3, "out_channels": 4, "kernel_size": 3, "bias": False}), ("BatchNorm2d", {"num_features": 4}), ("SiLU", {"inplace": True}),
                                 ("AdaptiveAvgPool2d", {"output_size": 1}), ("Flatten", {}), ("Dropout", {"p": 0.2}), ("Linear", {"in_features": 4, "out_features": 5})), T(2, 3, 8, 8)),
            L("Sequential", nest(), T(2, 3)), L("ModuleList", nest(), call=False),
            L("ModuleList", nest(*[("Linear", {"in_features": 4, "out_features": 4})] * 3, ("ReLU", {}), *[("TransformerEncoderLayer", {"d_model": 4, "nhead": 2, "dim_feedforward": 8})] * 2), call=False)]


def losses():
    out = []
    x, y = T(4, 5), T(4, 5)
    for r in ("none", "mean", "sum"):
        red = {"reduction": r}
        out += [L("MSELoss", red, x, y), L("L1Loss", red, x, y), L("SoftMarginLoss", red, x, signs(4, 5)), L("SmoothL1Loss", {**red, "beta": 0.5}, x, y),
                L("HuberLoss", {**red, "delta": 0.7}, x, y), L("HingeEmbeddingLoss", {**red, "margin": 0.5}, x, signs(4, 5)),
                L("CrossEntropyLoss", red, x, ints(4, high=5)), L("CrossEntropyLoss", {**red, "label_smoothing": 0.1, "weight": prob(5)}, x, ints(4, high=5)),
                L("CrossEntropyLoss", {**red, "ignore_index": 2}, T(2, 5, 3), ints(2, 3, high=5)), L("CrossEntropyLoss", red, x, prob(4, 5)),
                L("NLLLoss", red, x, ints(4, high=5)), L("NLLLoss", {**red, "weight": prob(5), "ignore_index": 1}, T(2, 5, 3, 2), ints(2, 3, 2, high=5)),
                L("BCELoss", red, prob(4, 5), prob(4, 5)), L("BCELoss", {**red, "weight": prob(5)}, prob(4, 5), prob(4, 5)),
                L("BCEWithLogitsLoss", red, x, prob(4, 5)), L("BCEWithLogitsLoss", {**red, "weight": prob(4, 5), "pos_weight": prob(5)}, x, prob(4, 5)),
                L("MultiLabelSoftMarginLoss", red, x, prob(4, 5)), L("MultiLabelSoftMarginLoss", {**red, "weight": prob(5)}, x, prob(4, 5)),
                L("KLDivLoss", red, x, prob(4, 5)), L("KLDivLoss", {**red, "log_target": True}, x, y),
                L("CosineEmbeddingLoss", {**red, "margin": 0.2}, x, y, signs(4)), L("MarginRankingLoss", {**red, "margin": 0.2}, T(6), T(6), signs(6)),
                L("TripletMarginLoss", red, x, y, T(4, 5)), L("TripletMarginLoss", {**red, "margin": 0.5, "p": 1.0, "swap": True}, x, y, T(4, 5)),
                L("PoissonNLLLoss", red, x, prob(4, 5)), L("PoissonNLLLoss", {**red, "log_input": False, "full": True}, prob(4, 5), T(4, 5, kind="int", high=9, dtype=torch.float32)),
                L("GaussianNLLLoss", red, x, y, prob(4, 5)), L("GaussianNLLLoss", {**red, "full": True}, x, y, prob(4, 1)), L("GaussianNLLLoss", red, x, y, prob(4)),
                L("CTCLoss", red, T(6, 2, 4, kind="log_softmax"), T(2, 3, kind="int1", high=4), T(2, kind="full", high=6), T(2, kind="full", high=2)),
                L("CTCLoss", {**red, "blank": 3, "zero_infinity": True}, T(6, 2, 4, kind="log_softmax"), T(2, 3, kind="int", high=3), T(2, kind="full", high=6), T(2, kind="full", high=3))]
    return out + [L("KLDivLoss", {"reduction": "batchmean"}, x, prob(4, 5)), L("MSELoss", {}, x, T(5)), L("SmoothL1Loss", {"beta": 0.0}, x, y)]


def functions():
    out = []
    for sizes in ((6, 4), (4, 6), (5, 3, 2), (4, 2, 3, 3)):
        t = T(*sizes)
        out += [Fn("init.uniform_", {"a": -0.5, "b": 2.0}, t), Fn("init.normal_", {"mean": 1.0, "std": 0.02}, t, normal=True), Fn("init.constant_", {"val": 0.3}, t),
                Fn("init.xavier_uniform_", {"gain": 2.0}, t), Fn("init.xavier_normal_", {}, t, normal=True), Fn("init.kaiming_uniform_", {}, t),
                Fn("init.kaiming_uniform_", {"mode": "fan_out", "nonlinearity": "relu"}, t), Fn("init.kaiming_uniform_", {"a": math.sqrt(5)}, t),
                Fn("init.kaiming_normal_", {"mode": "fan_out", "nonlinearity": "tanh"}, t, normal=True), Fn("init.trunc_normal_", {}, t, normal=True),
                Fn("init.trunc_normal_", {"std": 0.02}, t, normal=True), Fn("init.trunc_normal_", {"mean": 0.5, "std": 1.0, "a": 0.0, "b": 1.0}, t, normal=True),
                Fn("init.trunc_normal_", {"std": 1.0, "a": 1.5, "b": 2.5}, t, normal=True), Fn("init.trunc_normal_", {"std": 3.0, "a": -0.5, "b": 0.5}, t, normal=True),
                Fn("init.orthogonal_", {}, t, normal=True), Fn("init.orthogonal_", {"gain": 1.5}, t, normal=True)]
        if len(sizes) == 2:
            out += [Fn("init.eye_", {}, t), Fn("init.sparse_", {"sparsity": 0.4}, t, normal=True)]
        else:
            out.append(Fn("init.dirac_", {}, t))
    out += [Fn("init.dirac_", {"groups": 2}, T(6, 3, 3)), Fn("init.uniform_", {}, T(1000)), Fn("init.normal_", {}, T(1000), normal=True),
            Fn("init.trunc_normal_", {}, T(2000), normal=True), Fn("init.trunc_normal_", {"std": 0.5, "a": 0.8, "b": 1.2}, T(2000), normal=True)]
    out += [Fn("normalize", a, T(3, 4, 5)) for a in ({}, {"dim": -1}, {"p": 1.0}, {"p": 3.0, "dim": 0, "eps": 1e-3})]
    out += [Fn("softmin", {"dim": 1}, T(3, 4)), Fn("gumbel_softmax", {"tau": 0.5}, T(3, 4)), Fn("gumbel_softmax", {"hard": True, "dim": 0}, T(3, 4))]
    out += [Fn("grid_sample", {"mode": m, "padding_mode": p, "align_corners": c}, T(2, 3, 5, 6), T(2, 4, 4, 2)) for m in ("bilinear", "nearest", "bicubic")
            for p in ("zeros", "border", "reflection") for c in (False, True)]
    out += [Fn("interpolate", {"size": [4, 5], "mode": m, "antialias": True}, T(2, 3, 9, 8)) for m in ("bilinear", "bicubic")]
    return out


def cases():
    groups = [simple_layers(), shape_layers(), weighted_layers(), attention_layers(), recurrent_layers(), containers(), losses(), functions()]
    out, count = [], {}
    for case in (c for group in groups for c in group):
        name = case.get("layer") or case["function"]
        count[name] = count.get(name, -1) + 1
        out.append({**case, "id": f"{name}.{count[name]}"})
    return out


def fill(t, generator):
    n = lambda: torch.randn(t.sizes, generator=generator)  # noqa: E731
    u = lambda: torch.rand(t.sizes, generator=generator)  # noqa: E731
    if t.kind == "normal":
        return n().to(t.dtype)
    if t.kind == "uniform":
        return (u() * 0.98 + 0.01).to(t.dtype)
    if t.kind in ("int", "int1"):
        out = torch.randint(1 if t.kind == "int1" else 0, t.high, t.sizes, generator=generator)
        return out if t.dtype == torch.float32 and t.kind == "int1" else out.to(t.dtype) if t.dtype != torch.float32 else out
    if t.kind == "full":
        return torch.full(t.sizes, t.high)
    if t.kind == "sign":
        return (u() > 0.5).float() * 2 - 1
    if t.kind == "bool":
        mask = u() > 0.6
        mask[..., 0] = False  # something is left to look at
        return mask
    if t.kind == "somebool":
        mask = torch.zeros(t.sizes, dtype=torch.bool)
        mask[0, -1] = True
        return mask
    if t.kind == "causal":
        return torch.triu(torch.full(t.sizes, float("-inf")), 1)
    if t.kind == "log_softmax":
        return n().log_softmax(-1)
    raise ValueError(t.kind)


def materialise(case, seed):
    """The case as it is written down, and its tensors: {name: tensor}."""
    tensors = {}
    own = int.from_bytes(hashlib.sha256(f"{case['id']}/{seed}".encode()).digest()[:4], "little")
    generator = torch.Generator().manual_seed(own)
    names = []

    def write(value):
        if isinstance(value, T):
            if value.same_as is not None:
                return {"tensor": names[value.same_as]}
            name = f"{case['id']}/in/{len(tensors)}"
            tensors[name] = fill(value, generator)
            names.append(name)
            return {"tensor": name}
        return [write(v) for v in value] if isinstance(value, list) and any(isinstance(v, T) for v in value) else value

    written = {"id": case["id"], "seed": own, "normal": case["normal"], "call": case["call"]}
    written["layer" if "layer" in case else "function"] = case.get("layer") or case["function"]
    written["inputs"] = [write(v) for v in case["inputs"]]
    written["args"] = {k: write(v) for k, v in case["args"].items()}
    written["kwargs"] = {k: write(v) for k, v in case["kwargs"].items()}
    return written, tensors


STACK = ("TransformerEncoder", "TransformerDecoder")


def build(name, args):
    args = {k: tuple(v) if isinstance(v, list) and k != "modules" else v for k, v in args.items()}
    if "dtype" in args:
        args["dtype"] = getattr(torch, args["dtype"])
    if args.pop("no_momentum", False):
        args["momentum"] = None
    if "modules" in args:
        built = [build(m["layer"], m["args"]) for m in args["modules"]]
        return nn.Sequential(*built) if name == "Sequential" else nn.ModuleList(built)
    if name in STACK:
        num, norm = args.pop("num_layers"), args.pop("norm")
        layer = getattr(nn, name + "Layer")(**args)
        return getattr(nn, name)(layer, num, nn.LayerNorm(args["d_model"]) if norm else None)
    return getattr(nn, name)(**args)


def flatten(value, prefix, out):
    if isinstance(value, torch.Tensor):
        out[prefix] = value.detach().clone().contiguous()
    elif isinstance(value, (tuple, list)):
        for i, v in enumerate(value):
            flatten(v, f"{prefix}.{i}", out)


def answers(written, tensors):
    """What PyTorch says: {repr, type, state}, {name: tensor}."""
    case_id = written["id"]
    out = {}

    def read(value):
        if isinstance(value, dict) and "tensor" in value:
            return tensors[value["tensor"]].clone()
        if isinstance(value, list) and value and isinstance(value[0], dict) and "tensor" in value[0]:
            return tuple(read(v) for v in value)
        return value

    def arguments():
        shared = {}
        got = []
        for v in written["inputs"]:
            key = v["tensor"] if isinstance(v, dict) else None
            if key is not None and key in shared:
                got.append(shared[key])
                continue
            got.append(read(v))
            if key is not None:
                shared[key] = got[-1]
        return got

    args = {k: read(v) for k, v in written["args"].items()}
    torch.manual_seed(written["seed"])
    if "function" in written:
        name = written["function"]
        args = {k: tuple(v) if isinstance(v, list) else v for k, v in args.items()}
        target = getattr(nn.init, name[5:]) if name.startswith("init.") else getattr(F, name)
        flatten(target(*arguments(), **args), f"{case_id}/out/0", out)
        return {"repr": "", "type": "", "state": []}, out
    module = build(written["layer"], args)
    said = {"repr": repr(module), "type": f"{type(module).__module__}.{type(module).__qualname__}", "state": list(module.state_dict())}

    def note(when):
        for k, v in module.state_dict().items():
            if when == "state" or not torch.equal(v, out[f"{case_id}/state/{k}"]):  # what the call changed
                out[f"{case_id}/{when}/{k}"] = v.detach().clone()

    note("state")
    if not written["call"]:
        return said, out
    kwargs = {k: read(v) for k, v in written["kwargs"].items()}
    for training in (True, False):
        module.train(training)
        torch.manual_seed(written["seed"] + 1)
        flatten(module(*arguments(), **kwargs), f"{case_id}/{'train' if training else 'eval'}/0", out)
        if training:
            note("after")
    return said, out
