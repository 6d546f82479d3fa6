#!/usr/bin/env python3
"""Symbolic traces against torch.fx, live: the same modules written in Python here and in C++ in fx_peer.cpp, traced by both. The
graphs must print the same: opcodes, names, targets, arguments, users; and so must the code. fx_peer also runs each graph against
its module.
"""

import argparse
import json
import os
import subprocess
import sys
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.fx import PH, symbolic_trace, wrap

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

MODULES = {}


def module(name, concrete_args=None, code=True):
    def register(cls):
        MODULES[name] = (cls, concrete_args, code)
        return cls
    return register


@module("mlp")
class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 8)
        self.act = nn.GELU()
        self.down = nn.Linear(8, 4)
        self.bias = nn.Parameter(torch.zeros(4))

    def forward(self, x):
        return torch.relu(self.down(self.act(self.up(x))) + self.bias)


@module("convolutions")
class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3)
        self.bn1 = nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1)
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        x = F.max_pool2d(torch.relu(self.bn1(self.conv1(x))), [2, 2])
        x = x + self.conv2(x)
        x = F.adaptive_avg_pool2d(x, [1, 1])
        return self.fc(torch.flatten(x, 1))


@module("attention")
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(8, 8)
        self.k = nn.Linear(8, 8)
        self.v = nn.Linear(8, 8)
        self.o = nn.Linear(8, 8)

    def forward(self, x, mask):
        b = x.size(0)
        t = x.size(1)
        q = self.q(x).view([b, t, 2, 4]).transpose(1, 2)
        k = self.k(x).view([b, t, 2, 4]).transpose(1, 2)
        v = self.v(x).view([b, t, 2, 4]).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / 2.0
        scores = scores.masked_fill(mask == 0, -10000.0)
        y = torch.matmul(torch.softmax(scores, -1), v)
        return self.o(y.transpose(1, 2).contiguous().view([b, t, 8]))


@module("embeddings")
class Embeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(10, 6)
        self.position = nn.Embedding(5, 6)
        self.norm = nn.LayerNorm(6)
        self.dropout = nn.Dropout(0.1)
        self.register_buffer("ids", torch.arange(5))

    def forward(self, input_ids):
        x = self.word(input_ids) + self.position(self.ids)
        return self.dropout(self.norm(x))


@module("gates")
class Gates(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Linear(4, 12)

    def forward(self, x, c):
        i, f, g = torch.chunk(self.w(x), 3, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * g.tanh()
        return (c, c.sin().neg())


@module("indexing")
class Indexing(nn.Module):
    def forward(self, x):
        y = x[1]
        z = x[..., 1:, None]
        return z[:, -1] + y[1:3:2].sum() + x[x > 0].mean() + x[0, :, None]


@module("operators")
class Operators(nn.Module):
    def forward(self, x, y):
        a = (1 - x) * 2 / (y + 3)
        b = (2 < x) & (x <= y) | ~(x == 0)
        return torch.where(b, -a, a % 2) + (5 != y)


@module("attributes")
class Attributes(nn.Module):
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(3))
            self.register_buffer("b", torch.ones(3))

        def forward(self, x):
            return x * self.w + self.b

    def __init__(self):
        super().__init__()
        self.inner = Attributes.Inner()
        self.tied = self.inner

    def forward(self, x):
        return self.tied(self.inner(x)) - self.inner.w + self.inner.b


@module("constants")
class Constants(nn.Module):
    def forward(self, x):
        scale = torch.tensor([1.0, 2.0])
        return x * scale + torch.tensor([3.0, 4.0]) - scale


@module("results")
class Results(nn.Module):
    def forward(self, x):
        values, indices = torch.max(x, 1)
        a, b = torch.split(x, [1, 2], 1)
        return {"values": values, "rest": [indices, (a, b)]}


@module("specialized", {"y": None, "twice": True, "n": 3})
class Specialized(nn.Module):
    def forward(self, x, y, twice, n):
        if y is not None:
            x = x + y
        if twice:
            x = x * 2
        return x + n


@module("trees", {"tree": {"a": PH, "b": [PH, (PH,)]}}, code=False)  # torch.fx flattens self, too
class Trees(nn.Module):
    def forward(self, tree, y):
        return {"sum": tree["a"] + tree["b"][0], "last": (tree["b"][1][0] * y,)}


@module("containers")
class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 3)))
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.again = nn.LayerNorm(3)

    def forward(self, x):
        x = self.again(self.first(x))
        for layer in self.layers:
            x = self.again(layer(x)) + x
        return x


@module("in_place")
class InPlace(nn.Module):
    def forward(self, x, y):
        x = x.clone().add_(1).mul_(y)
        x.copy_(y).clamp_(0.0, 1.0)
        x = torch.sigmoid(x, out=y)
        return F.leaky_relu(x, 0.1, inplace=True)


@module("functions")
class Functions(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 4))

    def forward(self, x):
        y = F.linear(F.gelu(x, approximate="tanh"), self.weight)
        y = F.silu(y) + F.hardswish(y) + F.softplus(y) + F.elu(y, 2.0) + F.relu6(y) + F.mish(y) + F.glu(torch.cat([y, y], -1))
        y = F.layer_norm(y, [4]) + F.dropout(y, 0.5, False) + F.pad(y, [1, -1])
        y = y + torch.special.expit(y) + torch.logsumexp(y, [1], True) + torch.stack([y, y]).mean([0])
        return F.scaled_dot_product_attention(y, y, y)


@module("losses")
class Losses(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 3))
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("var", torch.ones(3))

    def forward(self, ids, target):
        x = F.embedding(ids, self.weight, 0)
        x = F.batch_norm(x, self.mean, self.var)
        x = F.softmax(x, dim=-1, dtype=torch.float64) + F.normalize(F.log_softmax(x, -1))
        loss = F.cross_entropy(x, target, ignore_index=-1, reduction="sum") + F.nll_loss(x, target)
        loss = loss + F.mse_loss(x, x)
        return loss + F.binary_cross_entropy_with_logits(x, x)


@module("shapes")
class Shapes(nn.Module):
    def forward(self, x):
        y = x.reshape([-1, x.size(2)]).permute([1, 0]).unsqueeze(0).expand([2, -1, -1]).contiguous()
        y = y.squeeze(0).flatten(1).repeat([1, 2]).view([x.size(0) * x.size(1), -1]).to(torch.float64)
        m = y.mT.neg()
        return y.T.type_as(x).new_zeros([2, x.size(-1)]), torch.zeros([2, 3]), m


@wrap
def fused(x, by):
    return torch.sin(x * by)


@wrap
def two_of(x):
    return x + 1, x + 2


fused.__module__ = two_of.__module__ = "fx"  # also when this file is the main program


@module("wrapped", code=False)  # torch.fx tells Python again that the functions are wrapped
class Wrapped(nn.Module):
    def forward(self, x):
        a, b = two_of(fused(x, 2.0))
        return a - b


@module("encoder")
class Encoder(nn.Module):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1 = nn.LayerNorm(8)
            self.attention = Attention()
            self.norm2 = nn.LayerNorm(8)
            self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

        def forward(self, x, mask):
            x = x + self.attention(self.norm1(x), mask)
            return x + self.mlp(self.norm2(x))

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Encoder.Block(), Encoder.Block()])
        self.head = nn.Linear(8, 3)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x, mask):
        for block in self.blocks:
            x = block(x, mask)
        return torch.log_softmax(self.head(x * self.scale), -1)


def traced(name):
    cls, concrete_args, _ = MODULES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gm = symbolic_trace(cls(), concrete_args)
    nodes = [n.format_node() for n in gm.graph.nodes]
    meta = [[p for p, _ in n.meta.get("nn_module_stack", {}).values()] for n in gm.graph.nodes]
    return {"nodes": [n for n in nodes if n], "code": gm.code, "modules": meta}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--all", action="store_true")
    p.parse_args()
    build = os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release"))
    found = json.loads(subprocess.run([os.path.join(build, "bin", "fx_peer")], stdout=subprocess.PIPE, check=True).stdout)
    failed = 0
    nodes = 0
    for name in MODULES:
        want = traced(name)
        got = found.get(name)
        problems = []
        if got is None:
            problems.append("fx_peer does not have it")
        elif "error" in got:
            problems.append(got["error"])
        else:
            for key in ("nodes", "modules"):
                for i in range(max(len(want[key]), len(got[key]))):
                    a = want[key][i] if i < len(want[key]) else "nothing"
                    b = got[key][i] if i < len(got[key]) else "nothing"
                    if a != b:
                        problems.append(f"{key}\n    torch.fx: {a}\n    Calque:   {b}")
            if MODULES[name][2] and want["code"] != got["code"]:
                problems.append(f"code\n{want['code']}\n{got['code']}")
            if got["same"] is not True:
                problems.append("the graph computes something else than the module: " + str(got["same"]))
        nodes += len(want["nodes"])
        failed += bool(problems)
        for problem in problems[:4]:
            print(f"FAILED {name}: {problem}")
    print(f"fx: {len(MODULES)} modules, {nodes} nodes traced by torch.fx {torch.__version__} and by Calque, {failed} modules differ")
    return 1 if failed or set(found) != set(MODULES) else 0


if __name__ == "__main__":
    sys.exit(main())
