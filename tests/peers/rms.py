#!/usr/bin/env python3
"""How far products, attention and convolutions are from float64, beside PyTorch: the shapes of bench/ops.

For each shape, many inputs (100, or 20 where one takes over 2 GFLOP; new numbers every time, in tensors of over a million every
tenth time) run in Calque and in PyTorch. The error of one result is the RMS of its difference from float64 over the RMS of the
float64 values; a row is the RMS of that over the inputs. Calque's may be 1.5 times PyTorch's plus half an ulp (2^-24 for float32,
2^-9 for bfloat16). Of large results a fixed sample of rows, heads or channels is compared. Without --all: the shapes below 20 MFLOP.
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
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # the two sides take turns

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
    """The arguments of a row: new numbers every turn, for large tensors every tenth, with a file for Calque and float64 beside."""

    def __init__(self, spec, folder):
        self.spec = spec
        self.folder = folder
        self.tensors = {}
        self.doubles = {}

    def tensor(self, v, name, turn):
        if name in self.tensors and turn % 10 and math.prod(v["shape"]) > 1 << 20:
            return self.tensors[name]
        made = torch.randint(v["high"], v["shape"]) if v["make"] == "randint" else torch.randn(v["shape"])
        self.tensors[name] = made.to(getattr(torch, v["dtype"]))
        self.doubles.pop(name, None)
        save_file({"x": self.tensors[name]}, os.path.join(self.folder, name))
        return self.tensors[name]

    def draw(self, turn):
        torch.manual_seed(turn)
        self.args = [self.tensor(a, f"a{i}", turn) if is_tensor(a) else a for i, a in enumerate(self.spec["args"])]
        self.keyword = {k: self.tensor(v, k, turn) if is_tensor(v) else v for k, v in self.spec["keyword"].items()}

    def for_calque(self):
        def one(v, name):
            return {"file": os.path.join(self.folder, name)} if is_tensor(v) else v

        return [one(a, f"a{i}") for i, a in enumerate(self.spec["args"])], {k: one(v, k) for k, v in self.spec["keyword"].items()}

    def double(self, i):
        name = f"a{i}"
        if name not in self.doubles:
            self.doubles[name] = self.tensors[name].double()
        return self.doubles[name]


def reference(inputs):
    """float64 values of a sample of the result, and a function that takes the same sample of a result."""
    group, args, double = inputs.spec["group"], inputs.args, inputs.double
    if group in ("linear", "matmul"):
        rows = spread(args[0].shape[0])
        exact = double(0)[rows] @ double(1) if group == "matmul" else torch.nn.functional.linear(double(0)[rows], double(1), double(2))
        return exact, lambda y: y[rows]
    if group == "bmm":
        return double(0) @ double(1), lambda y: y
    if group == "attention":
        q, k, v = (double(i)[:, :2] for i in range(3))
        length = q.shape[2]
        rows = spread(length)
        scores = q[:, :, rows] @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        mask = inputs.keyword["attn_mask"][..., rows, :] if "attn_mask" in inputs.keyword else torch.arange(length)[None, :] <= rows[:, None]
        return scores.masked_fill(~mask, -math.inf).softmax(-1) @ v, lambda y: y[:, :2, rows]
    channels = spread(args[1].shape[0]) if args[6] == 1 else slice(None)
    function = torch.nn.functional.conv2d if group == "conv2d" else torch.nn.functional.conv1d
    return function(double(0), double(1)[channels], double(2)[channels], *args[3:]), lambda y: y[:, channels]


class Peer:
    def __init__(self, folder):
        build = os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release"))
        self.process = subprocess.Popen([os.path.join(build, "bin", "rms_peer")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.outputs = os.path.join(folder, "result")

    def run(self, inputs):
        args, keyword = inputs.for_calque()
        self.process.stdin.write(json.dumps({"op": inputs.spec["op"], "args": args, "keyword": keyword, "outputs": self.outputs}) + "\n")
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


def measure(peer, folder, spec, count):
    function = torch
    for part in spec["function"].split(".")[1:]:
        function = getattr(function, part)
    inputs = Inputs(spec, folder)
    totals = [0.0, 0.0]
    for turn in range(count):
        inputs.draw(turn)
        exact, sample = reference(inputs)
        for i, result in enumerate((peer.run(inputs), function(*inputs.args, **inputs.keyword))):
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
            if not args.all and not args.group and work > 2e7:
                continue
            count = 100 if work <= 2e9 else 20
            mine, theirs = measure(peer, folder, spec, count)
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
