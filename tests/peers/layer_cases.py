"""Every public layer of torch.nn and function of torch.nn.functional, listed from the installed torch, with inputs: those of
PyTorch's own test data where it has some, those written here for the rest. A case is (kind, name, make), and make() gives
(module, args, kwargs).
"""

import inspect

import torch
import torch.nn.functional as F
from torch import nn

# Not layers by themselves, or sparse, quantised or distributed.
NOT_LAYERS = {
    "Container": "deprecated, without a forward",
    "DataParallel": "distributed",
    "Module": "the base class",
    "ModuleDict": "a container without a forward",
    "ModuleList": "a container without a forward",
    "ParameterDict": "a container without a forward",
    "ParameterList": "a container without a forward",
    "RNNBase": "a base class",
    "RNNCellBase": "a base class",
    "SyncBatchNorm": "distributed",
}
NOT_FUNCTIONS = {
    "assert_int_or_pair": "a helper",
    "boolean_dispatch": "a helper",
    "has_torch_function": "a helper",
    "has_torch_function_unary": "a helper",
    "has_torch_function_variadic": "a helper",
    "handle_torch_function": "a helper",
    "scaled_mm": "quantised",
    "scaled_grouped_mm": "quantised",
    "grouped_mm": "bfloat16 on accelerators only",
    "upsample": "deprecated, interpolate under another name",
}


class Function(nn.Module):
    """A function as a module, its keyword arguments fixed."""

    def __init__(self, function, **fixed):
        super().__init__()
        self.function = function
        self.fixed = fixed

    def forward(self, *args):
        return self.function(*args, **self.fixed)


def layers():
    return sorted(n for n in dir(nn) if not n.startswith("_") and inspect.isclass(getattr(nn, n)) and issubclass(getattr(nn, n), nn.Module) and n not in NOT_LAYERS)


def functions():
    homes = ("torch.nn.functional", "torch._C._nn", "torch", None, "torch._jit_internal")
    return sorted(
        n
        for n in dir(F)
        if not n.startswith("_") and callable(getattr(F, n)) and not inspect.isclass(getattr(F, n)) and getattr(getattr(F, n), "__module__", None) in homes and n not in NOT_FUNCTIONS
    )


def r(*size):
    return torch.randn(size)


def positive(*size):
    return torch.rand(size) + 0.1


def pooled(dims):
    size = [8, 6, 10][:dims]
    x = r(2, 3, *size)
    y, indices = getattr(F, f"max_pool{dims}d")(x, 2, return_indices=True)
    return (y, indices)


# name: a list of (constructor arguments, inputs)
LAYERS = {
    "AdaptiveLogSoftmaxWithLoss": lambda: [((8, 20, [5, 10]), {}, (r(4, 8), torch.randint(0, 20, (4,))))],
    "AlphaDropout": lambda: [((0.5,), {}, (r(4, 8),))],
    "ChannelShuffle": lambda: [((2,), {}, (r(2, 4, 3, 5),))],
    "CosineSimilarity": lambda: [((1,), {}, (r(4, 8), r(4, 8))), ((0,), {"eps": 1e-3}, (r(4, 8), r(1, 8)))],
    "CrossMapLRN2d": lambda: [((3,), {}, (r(2, 5, 4, 4),))],
    "Dropout": lambda: [((0.3,), {}, (r(4, 8),))],
    "Dropout1d": lambda: [((0.3,), {}, (r(4, 8, 3),))],
    "Dropout2d": lambda: [((0.3,), {}, (r(4, 8, 3, 3),))],
    "Dropout3d": lambda: [((0.3,), {}, (r(2, 4, 3, 3, 3),))],
    "EmbeddingBag": lambda: [
        ((10, 3), {"mode": mode}, (torch.randint(0, 10, (2, 4)),)) for mode in ("mean", "sum", "max")
    ] + [((10, 3), {"mode": "sum"}, (torch.randint(0, 10, (6,)), torch.tensor([0, 2, 5])))],
    "FeatureAlphaDropout": lambda: [((0.3,), {}, (r(4, 8, 3),))],
    "Flatten": lambda: [((), {}, (r(2, 3, 4),)), ((0, 1), {}, (r(2, 3, 4),))],
    "Fold": lambda: [(((4, 5), (2, 2)), {}, (r(2, 12, 12),))],
    "FractionalMaxPool2d": lambda: [((2,), {"output_size": (4, 3)}, (r(2, 3, 8, 7),)), (((3, 2),), {"output_ratio": (0.5, 0.6)}, (r(3, 9, 8),))],
    "FractionalMaxPool3d": lambda: [((2,), {"output_size": (4, 3, 2)}, (r(2, 3, 8, 7, 5),))],
    "Hardsigmoid": lambda: [((), {}, (r(3, 5) * 4,))],
    "Identity": lambda: [((), {}, (r(3, 5),))],
    "LazyBatchNorm1d": lambda: [((), {}, (r(4, 5),))],
    "LazyBatchNorm2d": lambda: [((), {}, (r(4, 5, 3, 3),))],
    "LazyBatchNorm3d": lambda: [((), {}, (r(2, 5, 3, 3, 2),))],
    "LazyInstanceNorm1d": lambda: [((), {"affine": True}, (r(4, 5, 6),))],
    "LazyInstanceNorm2d": lambda: [((), {"affine": True}, (r(4, 5, 3, 3),))],
    "LazyInstanceNorm3d": lambda: [((), {"affine": True}, (r(2, 5, 3, 3, 2),))],
    "LazyLinear": lambda: [((6,), {}, (r(4, 5),))],
    "MaxUnpool1d": lambda: [((2,), {}, pooled(1))],
    "MaxUnpool2d": lambda: [((2,), {}, pooled(2))],
    "MaxUnpool3d": lambda: [((2,), {}, pooled(3))],
    "NLLLoss2d": lambda: [((), {}, (F.log_softmax(r(2, 4, 3, 3), 1), torch.randint(0, 4, (2, 3, 3))))],
    "PairwiseDistance": lambda: [((), {}, (r(4, 8), r(4, 8))), ((1.0,), {"keepdim": True}, (r(4, 8), r(4, 8)))],
    "PixelShuffle": lambda: [((2,), {}, (r(2, 8, 3, 4),))],
    "PixelUnshuffle": lambda: [((2,), {}, (r(2, 2, 4, 6),))],
    "RReLU": lambda: [((), {}, (r(3, 5),))],
    "Sequential": lambda: [((nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2)), {}, (r(3, 4),))],
    "TransformerDecoder": lambda: [((nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 2), {}, (r(2, 3, 8), r(2, 5, 8)))],
    "TripletMarginLoss": lambda: [((), {}, (r(4, 8), r(4, 8), r(4, 8))), ((), {"swap": True, "reduction": "none"}, (r(4, 8), r(4, 8), r(4, 8)))],
    "TripletMarginWithDistanceLoss": lambda: [((), {}, (r(4, 8), r(4, 8), r(4, 8)))],
    "Unflatten": lambda: [((1, (2, 3)), {}, (r(4, 6, 2),))],
    "Unfold": lambda: [(((2, 3),), {"padding": 1}, (r(2, 3, 5, 6),))],
    "Upsample": lambda: [((), {"scale_factor": 2, "mode": mode}, (r(2, 3, 4, 5),)) for mode in ("nearest", "bilinear", "bicubic")] + [((), {"size": (7, 3)}, (r(2, 3, 4, 5),))],
    "UpsamplingBilinear2d": lambda: [((), {"scale_factor": 2}, (r(2, 3, 4, 5),))],
    "UpsamplingNearest2d": lambda: [((), {"scale_factor": 2}, (r(2, 3, 4, 5),))],
}

FUNCTIONS = {
    "adaptive_max_pool1d_with_indices": lambda: [((r(2, 3, 8),), {"output_size": 4})],
    "adaptive_max_pool2d_with_indices": lambda: [((r(2, 3, 8, 6),), {"output_size": (4, 3)})],
    "adaptive_max_pool3d_with_indices": lambda: [((r(2, 3, 8, 6, 4),), {"output_size": (4, 3, 2)})],
    "affine_grid": lambda: [((r(2, 2, 3),), {"size": [2, 3, 4, 5], "align_corners": corners}) for corners in (False, True)],
    "celu_": lambda: [((r(3, 5),), {"alpha": 1.3})],
    "conv_tbc": lambda: [((r(7, 2, 3), r(3, 3, 4), r(4)), {"pad": 1})],
    "dropout1d": lambda: [((r(2, 3, 4),), {"training": True})],
    "elu_": lambda: [((r(3, 5),), {})],
    "fold": lambda: [((r(2, 12, 12),), {"output_size": (4, 5), "kernel_size": (2, 2)})],
    "fractional_max_pool2d_with_indices": lambda: [((r(2, 3, 8, 6),), {"kernel_size": 2, "output_size": (4, 3)})],
    "fractional_max_pool3d_with_indices": lambda: [((r(2, 3, 8, 6, 5),), {"kernel_size": 2, "output_size": (4, 3, 2)})],
    "gumbel_softmax": lambda: [((r(3, 5),), {"tau": 0.7}), ((r(3, 5),), {"hard": True})],
    "hardtanh_": lambda: [((r(3, 5),), {})],
    "leaky_relu_": lambda: [((r(3, 5),), {})],
    "lp_pool1d": lambda: [((positive(2, 3, 8),), {"norm_type": 2.0, "kernel_size": 2})],
    "lp_pool2d": lambda: [((positive(2, 3, 8, 6),), {"norm_type": 2.0, "kernel_size": 2})],
    "lp_pool3d": lambda: [((positive(2, 3, 8, 6, 4),), {"norm_type": 2.0, "kernel_size": 2})],
    "max_pool1d_with_indices": lambda: [((r(2, 3, 8),), {"kernel_size": 2})],
    "max_pool2d_with_indices": lambda: [((r(2, 3, 8, 6),), {"kernel_size": 2})],
    "max_pool3d_with_indices": lambda: [((r(2, 3, 8, 6, 4),), {"kernel_size": 2})],
    "native_channel_shuffle": lambda: [((r(2, 4, 3, 5),), {"groups": 2})],
    "relu_": lambda: [((r(3, 5),), {})],
    "rrelu_": lambda: [((r(3, 5),), {})],
    "selu_": lambda: [((r(3, 5),), {})],
    "threshold_": lambda: [((r(3, 5),), {"threshold": 0.1, "value": 20.0})],
}


def spread(items, count):
    """`count` of the items, the first and others evenly apart."""
    if len(items) <= count:
        return items
    return [items[i * len(items) // count] for i in range(count)]


def is_tensor(x):
    return isinstance(x, torch.Tensor)


def layer_cases(name, count):
    from torch.testing._internal.common_modules import module_db

    cls = getattr(nn, name)
    if name in LAYERS:
        samples = [(args, kwargs, inputs, {}) for args, kwargs, inputs in LAYERS[name]()]
    else:
        samples = []
        for info in module_db:
            if info.module_cls is cls:
                for training in (False, True):
                    for s in info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=training):
                        samples.append((s.constructor_input.args, s.constructor_input.kwargs, s.forward_input.args, s.forward_input.kwargs))
    for args, kwargs, inputs, named in spread(samples, count):
        torch.manual_seed(0)
        module = cls(*args, **kwargs).eval()
        if any(isinstance(p, nn.parameter.UninitializedTensorMixin) for p in [*module.parameters(), *module.buffers()]):
            module(*inputs, **named)
        yield module, inputs, named


def function_cases(name, count):
    from torch.testing._internal.common_methods_invocations import op_db

    function = getattr(F, name)
    if name in FUNCTIONS:
        for args, fixed in FUNCTIONS[name]():
            yield Function(function, **fixed), args, {}
        return
    samples = []
    for op in op_db:
        if op.name in (f"nn.functional.{name}", name):
            dtypes = op.supported_dtypes("cpu")
            if not dtypes:
                continue
            dtype = torch.float32 if torch.float32 in dtypes else sorted(dtypes, key=str)[0]
            samples += [(op.op, s) for s in op.sample_inputs("cpu", dtype, requires_grad=False)]
    for call, s in spread(samples, count):
        tensors = [s.input, *s.args]
        named = {k: v for k, v in s.kwargs.items() if is_tensor(v)}
        fixed = {k: v for k, v in s.kwargs.items() if not is_tensor(v)}

        class Call(nn.Module):
            def __init__(self, call, fixed):
                super().__init__()
                self.call = call
                self.fixed = fixed

            def forward(self, *args, **kwargs):
                return self.call(*args, **kwargs, **self.fixed)

        yield Call(call, fixed), tuple(tensors), named
