"""Graphs that switch gradient mode and autocast, in Calque's text form, with the code of what PyTorch's passes and
split_module make of them; read by tests/graph/regions_test.cpp.

    python tools/golden/fx_regions.py tests/graph/golden/regions.json
"""
import json
import sys

import torch
from torch._export.passes.replace_autocast_with_hop_pass import replace_autocast_with_hop_pass
from torch._export.passes.replace_set_grad_with_hop_pass import replace_set_grad_with_hop_pass
from torch._export.utils import node_inline_, sequential_split
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.passes.split_module import split_module

from fx_code import graph_text


def regions(x, w):
    y = x + 1
    with torch.no_grad():
        z = y.sin()
        v = z @ w
    a = z * 2
    with torch.enable_grad():
        b = a.cos()
    return b + v


def nested(x, w):
    with torch.no_grad():
        y = x + 1
        with torch.enable_grad():
            y = y * 2
        y = y - x
    return y @ w, y


def whole(x, w):
    with torch.no_grad():
        return x @ w


def unused(x, w):
    y = x * 2
    with torch.no_grad():
        (y + w).sin()
    return y - w


def autocast(x, w):
    y = x + 1
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = torch.matmul(y, w)
        with torch.autocast("cpu", enabled=False):
            u = torch.matmul(z.float(), w)
        q = torch.softmax(z, -1)
        c = torch.cat([z, y])
    return z, u, q, c


def both(x, w):
    with torch.no_grad():
        y = x + 1
    with torch.autocast("cpu"):
        z = torch.matmul(y, w)
        with torch.no_grad():
            z = z * 2
    with torch.autocast("cpu", dtype=torch.float16):
        u = w @ w
    return z + u


def codes(gm, prefix=""):
    out = {prefix: gm.graph.python_code("self").src}
    for name, child in gm.named_children():
        if isinstance(child, torch.fx.GraphModule):
            out.update(codes(child, f"{prefix}.{name}" if prefix else name))
    return out


def traced(f):
    return make_fx(f, tracing_mode="fake", pre_dispatch=True)(torch.rand(4, 4), torch.rand(4, 4))


def switches(n):
    return n.op == "call_function" and "_set_grad_enabled" in str(n.target)


def main(path):
    programs = []
    for f in (regions, nested, whole, unused, autocast, both):
        gm = traced(f)
        entry = {"name": f.__name__, "text": graph_text(gm.graph)}
        grad, _ = replace_set_grad_with_hop_pass(traced(f), None)
        entry["grad"] = codes(grad)
        cast, _ = replace_autocast_with_hop_pass(grad, None)
        entry["autocast"] = codes(cast)
        fresh = traced(f)
        with torch.no_grad():
            under, _ = replace_set_grad_with_hop_pass(fresh, None)
        entry["grad_under_no_grad"] = codes(under)
        split = sequential_split(traced(f), switches)
        entry["sequential"] = codes(split)
        for n in list(split.graph.nodes):
            if n.op == "call_module":
                node_inline_(n)
        entry["inlined"] = split.graph.python_code("self").src
        nodes = [n for n in gm.graph.nodes if n.op == "call_function"]
        entry["splits"] = []
        for count in (2, 3, 5):
            parts = {n.name: i * count // len(nodes) for i, n in enumerate(nodes)}
            made = split_module(traced(f), None, lambda n: parts[n.name])
            entry["splits"].append({"parts": parts, "codes": codes(made)})
        programs.append(entry)
    with open(path, "w") as out:
        json.dump({"programs": programs}, out, indent=1)
        out.write("\n")
    print(f"{len(programs)} programs, PyTorch {torch.__version__}")


if __name__ == "__main__":
    main(sys.argv[1])
