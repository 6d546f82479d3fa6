"""Graphs that PyTorch's split_module splits, in Calque's text form, with the code of the result; read by
tests/graph/split_test.cpp.

    python tools/golden/fx_split.py tests/graph/golden/split.json
"""
import json
import random
import sys

import torch
from torch.fx import symbolic_trace
from torch.fx.passes.split_module import split_module

from fx_code import graph_text


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.param = torch.nn.Parameter(torch.rand(3, 4))
        self.inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
        self.linear = torch.nn.Linear(4, 5)

    def forward(self, x, y, k=2.0):
        z = self.linear(x + self.param).clamp(min=0.0, max=1.0)
        a, b = torch.split(self.inner(y), 2)
        w = self.linear(y) * k
        c = torch.cat([a, b], dim=0).sum()
        return {"out": z + w, "parts": (a, b), "c": c - z.mean()}


def main(path):
    gm = symbolic_trace(Net())
    nodes = [n for n in gm.graph.nodes if n.op not in ("placeholder", "get_attr", "output")]
    random.seed(3)
    assignments = {
        "one": {n.name: 0 for n in nodes},
        "pairs": {n.name: i // 2 for i, n in enumerate(nodes)},
        "thirds": {n.name: i * 3 // len(nodes) for i, n in enumerate(nodes)},
        "each": {n.name: i for i, n in enumerate(nodes)},
        "backwards": {n.name: 10 - i // 4 for i, n in enumerate(nodes)},
        "alternating": {n.name: i % 2 for i, n in enumerate(nodes)},
    }
    for i in range(8):
        cuts = sorted(random.sample(range(1, len(nodes)), 2 + i % 4))
        numbers = random.sample(range(10), len(cuts) + 1)
        assignments[f"random{i}"] = {n.name: numbers[sum(c <= j for c in cuts)] for j, n in enumerate(nodes)}
    options = {
        "plain": {},
        "order": {"keep_original_order": True},
        "names": {"keep_original_node_name": True},
        "args": {"keep_original_input_name": False, "partition_affix": "pp", "tuple_return": True},
    }
    cases = []
    for name, parts in assignments.items():
        for option, kwargs in options.items():
            case = {"name": f"{name}_{option}", "parts": parts, "option": option}
            try:
                split = split_module(gm, Net(), lambda n: parts[n.name], **kwargs)
                case["code"] = split.graph.python_code("self").src
                case["submodules"] = {k: m.graph.python_code("self").src for k, m in split.named_children() if isinstance(m, torch.fx.GraphModule)}
            except RuntimeError as e:
                case["error"] = str(e)
            cases.append(case)
            for n in gm.graph.nodes:
                if hasattr(n, "_fx_partition"):
                    del n._fx_partition
    with open(path, "w") as f:
        json.dump({"text": graph_text(gm.graph), "cases": cases}, f, indent=1)
        f.write("\n")
    print(f"{len(cases)} splits, {sum('error' in c for c in cases)} of them refused, PyTorch {torch.__version__}")


if __name__ == "__main__":
    main(sys.argv[1])
