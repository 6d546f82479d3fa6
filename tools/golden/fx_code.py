"""Graphs traced by PyTorch, in Calque's text form and as PyTorch prints them; read by tests/graph/code_test.cpp.

    python tools/golden/fx_code.py tests/graph/golden/code.json
"""
import collections
import json
import math
import operator
import sys

import torch
import torch.nn.functional as F
from torch.fx import Graph, GraphModule, symbolic_trace
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._dtype_abbrs import dtype_abbrs


# ---- the text form --------------------------------------------------------------------------------------------------

def target_text(node):
    if isinstance(node.target, torch._ops.OpOverload):
        return str(node.target)
    return node._pretty_print_target(node.target)


def contiguous_strides(shape):
    strides, step = [], 1
    for size in reversed(list(shape)):
        strides.insert(0, step)
        step = step * max(size, 1) if isinstance(size, int) else step * size
    return strides


def val_text(val):
    if isinstance(val, torch.Tensor):
        text = dtype_abbrs[val.dtype] + "[" + ", ".join(str(s) for s in val.shape) + "]"
        if [str(s) for s in val.stride()] != [str(s) for s in contiguous_strides(val.shape)]:
            text += "[" + ", ".join(str(s) for s in val.stride()) + "]"
        return text + ("" if val.device.type == "cpu" else str(val.device))
    if isinstance(val, (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool)):
        return f"Sym({val})"
    if isinstance(val, (list, tuple)) and not hasattr(val, "_fields"):
        items = ["None" if v is None else val_text(v) for v in val]
        if not all(items):
            return ""
        return "[" + ", ".join(items) + "]" if isinstance(val, list) else "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"
    return ""


def value_text(v):
    if isinstance(v, torch.fx.Node):
        return "%" + v.name
    if isinstance(v, tuple) and hasattr(v, "_fields"):
        name = f"{type(v).__module__}.{type(v).__qualname__}"
        return f"struct('collections.namedtuple', '\"{name}\"', " + ", ".join(f"{k}={value_text(x)}" for k, x in zip(v._fields, v)) + ")"
    if isinstance(v, tuple):
        return "(" + ", ".join(map(value_text, v)) + (",)" if len(v) == 1 else ")")
    if isinstance(v, list):
        return "[" + ", ".join(map(value_text, v)) + "]"
    if isinstance(v, dict):
        return "{" + ", ".join(f"{value_text(k)}: {value_text(x)}" for k, x in v.items()) + "}"
    if isinstance(v, slice):
        return f"slice({value_text(v.start)}, {value_text(v.stop)}, {value_text(v.step)})"
    return repr(v)


def type_text(n):
    return f" as {torch.fx.node._type_repr(n.type)!r}" if n.type is not None else ""


def graph_text(graph):
    lines = []
    for n in graph.nodes:
        if n.op == "output":
            lines.append("return " + value_text(n.args[0]) + type_text(n))
            continue
        val = val_text(n.meta["val"]) if n.meta.get("val") is not None else ""
        text = f"%{n.name}" + (f" : {val}" if val else "") + type_text(n) + " = "
        if n.op == "placeholder":
            text += "placeholder" + ("" if n.target == n.name else f"[{n.target}]") + (f"({value_text(n.args[0])})" if n.args else "")
        elif n.op == "get_attr":
            text += f"get_attr[{n.target}]"
        else:
            text += target_text(n) if n.op == "call_function" else f"{n.op}[{n.target}]"
            args = [value_text(a) for a in n.args] + [f"{k}={value_text(v)}" for k, v in n.kwargs.items()]
            text += "(" + ", ".join(args) + ")"
        lines.append(text)
    return "".join(line + "\n" for line in lines)


def symbols_text(graph):
    for n in graph.nodes:
        val = n.meta.get("val")
        if isinstance(val, torch.Tensor) and getattr(val, "fake_mode", None) is not None and val.fake_mode.shape_env is not None:
            env = val.fake_mode.shape_env
            lines = ""
            for symbol, bounds in env.var_to_range.items():
                upper = "inf" if "oo" in str(bounds.upper) or bounds.upper >= 2**62 else bounds.upper
                hint = env.backed_var_to_val.get(symbol)
                lines += f"symbol {symbol} in [{bounds.lower}, {upper}]" + ("" if hint is None else f" = {hint}") + "\n"
            return lines
    return ""


# ---- programs -------------------------------------------------------------------------------------------------------

Pair = collections.namedtuple("Pair", ["first", "second"])
Pair.__module__ = "shapes"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.param = torch.nn.Parameter(torch.rand(3, 4))
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.Linear(4, 5)])
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x, bias=None, *, factor: float = 2.0):
        x = self.layers[0](x + self.param) * self.scale
        y = F.relu(self.layers[1](x)).clamp(min=0.0, max=1.0)
        return {"y": y, "pair": Pair(x, y), "list": [y * factor, x.size(0)]}


class Functional(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        a = torch.add(x, y, alpha=2)
        b = a[..., 1:, None]
        c = F.softmax(b, dim=-1) @ b.transpose(-1, -2)
        d = -c + ~(c > 0)
        e = torch.cat([d, d], dim=0).sum((0, 1), keepdim=True)
        return math.sqrt(2.0) * e // 3 % 2 ** 2


class InPlace(torch.nn.Module):
    def forward(self, x, y):
        z = torch.zeros(2)
        z.copy_(y)
        x += y
        return x.to(torch.float64).view(x.shape[0], -1), getattr(x, "T"), x.dtype


def hand_made():
    g = Graph()
    x = g.create_node("placeholder", "x", (3,), type_expr=torch.Tensor)
    star = g.placeholder("*args")
    w = g.get_attr("layers.0.weight")
    lin = g.call_module("layers.0", (x,))
    relu = g.call_method("relu", (lin,))
    g.call_method("copy_", (relu, w))
    op = g.call_function(torch.ops.aten.add.Tensor, (relu, 2.5), {"alpha": 3})
    item = g.call_method("__getitem__", (op, slice(None, x, None)), {"where": torch.device("cpu"), "what": torch.float32, "big": float("inf"), "text": "it's", "z": 1 + 2j})
    iadd = g.call_function(operator.iadd, (item, 1))
    g.call_function(operator.setitem, (iadd, 0, x))
    nots = g.call_function(operator.not_, (iadd,))
    root = g.call_function(math.sqrt, (4,))
    has = g.call_function(getattr, (x, "shape"))
    has3 = g.call_function(getattr, (x, "shape", None))
    keyed = g.call_function(torch.sym_max, (has, has3), {})
    g.output({"a": item, 1: [op, (keyed,)], "p": Pair(nots, root), "s": star})
    return g


def dynamic(x, y):
    flat = x.view(x.shape[0] * x.shape[1])
    half = flat[: flat.shape[0] // 2]
    a, b = y.split(y.shape[0] // 2 + 1)
    return half + 1, torch.cat([a, b]).t(), x.nonzero()


def attention(q, k, v):
    scores = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1)
    top = scores.topk(2, dim=-1)
    return scores @ v, top.values, top.indices, torch.arange(3, device=q.device), q.new_zeros((2,), dtype=torch.bool)


class Child(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(4)

    def forward(self, x):
        return self.norm(x).relu_()


def exported():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.child = Child()
            self.register_buffer("steps", torch.zeros(1))

        def forward(self, x):
            self.steps.add_(1)
            return self.child(x) + self.steps

    return torch.export.export(Model(), (torch.randn(3, 4),), dynamic_shapes={"x": {0: torch.export.Dim("batch")}}).module()


def cases():
    yield "net", symbolic_trace(Net()), Net()
    yield "functional", symbolic_trace(Functional()), Functional()
    yield "in_place", symbolic_trace(InPlace()), InPlace()
    yield "hand_made", GraphModule(Net(), hand_made()), None
    args = (torch.randn(3, 4), torch.randn(5, 2))
    for mode in ("real", "fake", "symbolic"):
        yield "dynamic_" + mode, make_fx(dynamic, tracing_mode=mode, _allow_non_fake_inputs=True)(*args) if mode != "real" else make_fx(lambda x, y: x + y.sum())(*args), None
    qkv = [torch.randn(2, 3, 4) for _ in range(3)]
    yield "attention", make_fx(attention, tracing_mode="symbolic")(*qkv), None
    yield "attention_fake", make_fx(attention, tracing_mode="fake")(*qkv), None
    yield "empty", GraphModule(torch.nn.Module(), Graph()), None
    one = Graph()
    one.output(one.placeholder("x"))
    yield "identity", GraphModule(torch.nn.Module(), one), None


def main(path):
    out = []
    for name, gm, _ in cases():
        # Traces hold this machine's paths; PyTorch writes this line where there is none.
        for node in gm.graph.nodes:
            node.meta.pop("stack_trace", None)
        verbose = dict(print_output=False)
        out.append({
            "name": name,
            "class_name": type(gm).__name__,
            "symbols": symbols_text(gm.graph),
            "text": graph_text(gm.graph),
            "format": str(gm.graph),
            "code": gm.graph.python_code("self").src,
            "readable": gm.print_readable(**verbose),
            "readable_all": gm.print_readable(include_stride=True, include_device=True, **verbose),
            "readable_expanded": gm.print_readable(expanded_def=True, **verbose),
            "readable_colored": gm.print_readable(colored=True, **verbose),
        })
    with open(path, "w") as f:
        json.dump(out, f, indent=1)
        f.write("\n")
    print(f"{len(out)} graphs, PyTorch {torch.__version__}")


if __name__ == "__main__":
    main(sys.argv[1])
