#!/usr/bin/env python3
"""How far products, attention and convolutions are from float64, beside PyTorch: the shapes of bench/ops.

For each shape, many inputs (100, or 20 where one takes over 2 GFLOP; new numbers every time, the largest operand of big shapes every
tenth time) run in Calque and in PyTorch. The error of one result is the RMS of its difference from float64 over the RMS of the
float64 values; a row is the RMS of that over the inputs. Calque's may be 1.5 times PyTorch's plus half an ulp (2^-24 for float32,
2^-9 for bfloat16). Of large results a fixed sample of rows, heads or channels is compared. Without --all: the shapes below 0.3 GFLOP.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# oneDNN's AMX code inside PyTorch 2.13 dies of an illegal instruction on some virtual machines.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "bench", "ops"))
import rows as row_list  # noqa: E402

GROUPS = ("linear", "matmul", "bmm", "attention", "conv2d", "conv1d")
HALF_ULP = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-9}
SAMPLE = 32


def is_tensor(v):
    return isinstance(v, dict) and "shape" in v


def spread(count):
    """At most SAMPLE of `count` places, evenly."""
    return torch.arange(count) if count <= SAMPLE else torch.linspace(0, count - 1, SAMPLE).long()


def flops(spec):
    shapes = [a["shape"] for a in spec["args"] if is_tensor(a)]
    group = spec["group"]
    if group == "linear":
        return 2 * math.prod(shapes[0]) * shapes[1][0]
    if group in ("matmul", "bmm"):
        return 2 * math.prod(shapes[0]) * shapes[1][-1]
    if group == "attention":
        return 4 * math.prod(shapes[0]) * shapes[0][2]
    image, weight = shapes[0], shapes[1]
    positions = math.prod(n // s for n, s in zip(image[2:], spec["args"][3]))
    return 2 * positions * math.prod(weight)


class Inputs:
    def __init__(self, spec):
        self.spec = spec
        self.kept = {}

    def make(self, v, turn):
        if v["make"] == "randint":
            return torch.randint(v["high"], v["shape"]).to(getattr(torch, v["dtype"]))
        large = math.prod(v["shape"]) > 1 << 20
        key = tuple(v["shape"])
        if not large or turn % 10 == 0 or key not in self.kept:
            self.kept[key] = torch.randn(v["shape"]).to(getattr(torch, v["dtype"]))
        return self.kept[key]

    def draw(self, turn):
        """The arguments for PyTorch, the same for Calque, and the tensors by name."""
        torch.manual_seed(turn)
        tensors = {}

        def one(v):
            if not is_tensor(v):
                return v, v
            name = f"t{len(tensors)}"
            tensors[name] = self.make(v, turn)
            return tensors[name], {"tensor": name}

        positional = [one(a) for a in self.spec["args"]]
        keyword = {k: one(v) for k, v in self.spec["keyword"].items()}
        return [p[0] for p in positional], {k: v[0] for k, v in keyword.items()}, [p[1] for p in positional], {k: v[1] for k, v in keyword.items()}, tensors


def wide(tensors):
    return [t.double() if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in tensors]


def reference(spec, args, keyword):
    """float64 values of a sample of the result, and a function that takes the same sample of a result."""
    group = spec["group"]
    if group == "linear":
        rows = spread(args[0].shape[0])
        x, w, b = wide([args[0][rows], args[1], args[2]])
        return torch.nn.functional.linear(x, w, b), lambda y: y[rows]
    if group == "matmul":
        rows = spread(args[0].shape[0])
        a, b = wide([args[0][rows], args[1]])
        return a @ b, lambda y: y[rows]
    if group == "bmm":
        a, b = wide(args)
        return a @ b, lambda y: y
    if group == "attention":
        q, k, v = wide([t[:, :2] for t in args])
        length = q.shape[2]
        rows = spread(length)
        scores = q[:, :, rows] @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        mask = keyword["attn_mask"][..., rows, :] if "attn_mask" in keyword else torch.arange(length)[None, :] <= rows[:, None]
        return scores.masked_fill(~mask, -math.inf).softmax(-1) @ v, lambda y: y[:, :2, rows]
    groups = args[6]
    channels = spread(args[1].shape[0]) if groups == 1 else slice(None)
    x, w, b = wide([args[0], args[1][channels], args[2][channels]])
    function = torch.nn.functional.conv2d if group == "conv2d" else torch.nn.functional.conv1d
    return function(x, w, b, *args[3:]), lambda y: y[:, channels]


class Peer:
    def __init__(self, folder):
        build = os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release"))
        self.process = subprocess.Popen([os.path.join(build, "bin", "rms_peer")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.inputs, self.outputs = os.path.join(folder, "inputs"), os.path.join(folder, "outputs")

    def run(self, op, args, keyword, tensors):
        save_file(tensors, self.inputs)
        self.process.stdin.write(json.dumps({"op": op, "args": args, "keyword": keyword, "inputs": self.inputs, "outputs": self.outputs}) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if answer != "done":
            sys.exit(f"rms_peer: {answer or 'it died'}")
        return load_file(self.outputs)["result"]


def error(value, exact):
    # A query with no key at all gives 0 here and NaN in the plain formula.
    known = exact.isfinite()
    exact = exact[known]
    return ((value.double()[known] - exact).square().mean() / exact.square().mean()).item()


def measure(peer, spec, count):
    function = torch
    for part in spec["function"].split(".")[1:]:
        function = getattr(function, part)
    inputs = Inputs(spec)
    totals = [0.0, 0.0]
    for turn in range(count):
        args, keyword, peer_args, peer_keyword, tensors = inputs.draw(turn)
        exact, sample = reference(spec, args, keyword)
        results = (peer.run(spec["op"], peer_args, peer_keyword, tensors), function(*args, **keyword))
        for i, result in enumerate(results):
            totals[i] += error(sample(result), exact)
    return [math.sqrt(t / count) for t in totals]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--all", action="store_true")
    p.add_argument("--group", action="append", choices=GROUPS)
    p.add_argument("--match", default="")
    p.add_argument("--json", help="write the rows here")
    args = p.parse_args()
    torch.set_grad_enabled(False)
    results, failed = [], 0
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        peer = Peer(folder)
        print(f"{'group':11}{'shape':38}{'inputs':>7}{'Calque':>11}{'PyTorch':>11}{'ratio':>7}{'limit':>7}")
        for spec in row_list.all_rows():
            if spec["group"] not in (args.group or GROUPS) or args.match not in spec["label"]:
                continue
            work = flops(spec)
            if not args.all and not args.group and work > 3e8:
                continue
            count = 100 if work <= 2e9 else 20
            mine, theirs = measure(peer, spec, count)
            dtype = getattr(torch, next(a["dtype"] for a in spec["args"] if is_tensor(a)))
            limit = 1.5 * theirs + HALF_ULP[dtype]
            failed += mine > limit
            results.append({"group": spec["group"], "row": spec["label"], "inputs": count, "calque": mine, "pytorch": theirs, "limit": limit})
            print(f"{spec['group']:11}{spec['label']:38}{count:7}{mine:11.2e}{theirs:11.2e}{mine / theirs:7.2f}{limit / theirs:7.2f}"
                  f"{'  TOO FAR' if mine > limit else ''}", flush=True)
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"pytorch": torch.__version__, "rows": results}, f, indent=1)
    print(f"{len(results) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
