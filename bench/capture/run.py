"""Tracing and fake execution, Calque beside PyTorch in one run: a GPT-2-small-shaped decoder and a BERT-base-shaped encoder.

Both sides trace the same modules (parameters are inputs, as functional_call has them) with make_fx in symbolic and in fake
mode, and run them on fake tensors. Rounds alternate between the two; the table shows medians. Each side uses one thread; the time is its
process's processor time.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from models import MODELS  # noqa: E402

class Torch:
    def __init__(self):
        self.models = {}

    def case(self, kind, layers):
        if (kind, layers) not in self.models:
            mode = FakeTensorMode()
            with mode:
                model = MODELS[kind](layers).eval()
            self.models[kind, layers] = mode, model
        return self.models[kind, layers]

    def run(self, kind, layers, what):
        mode, model = self.case(kind, layers)
        if what == "forward":
            with torch.no_grad(), mode:
                ids = torch.zeros(2, 128, dtype=torch.int64)
                start = time.process_time_ns()
                model(ids)
                return time.process_time_ns() - start, 0
        parameters = dict(model.named_parameters())
        # make_fx makes its own fake tensors; real ones without memory behind them stand for the weights.
        real = {n: torch.empty(1).expand(p.shape) if p.dim() < 2 else torch.empty(p.shape) for n, p in parameters.items()}

        def f(ids, params):
            return torch.func.functional_call(model, params, (ids,))

        with torch.no_grad():
            ids = torch.zeros(2, 128, dtype=torch.int64)
            start = time.process_time_ns()
            graph = make_fx(f, tracing_mode=what)(ids, real)
            return time.process_time_ns() - start, len(graph.graph.nodes)


class Calque:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, kind, layers, what):
        self.process.stdin.write(f"{kind} {layers} {what}\n")
        self.process.stdin.flush()
        nanoseconds, nodes, per_node = map(int, self.process.stdout.readline().split())
        self.per_node = per_node
        return nanoseconds, nodes


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", default="build/release/bin/bench_capture")
    parser.add_argument("--before", help="the bench_capture of another build, to compare with instead of PyTorch: ratios above 1 are faster now")
    parser.add_argument("--json", help="where to write the results")
    options = parser.parse_args()
    torch.set_num_threads(1)
    os.environ["CALQUE_THREADS"] = "1"
    peer, ours = Calque(options.before) if options.before else Torch(), Calque(options.program)
    other = "before" if options.before else "PyTorch"
    results = []
    print(f"{options.before or 'PyTorch ' + torch.__version__} beside Calque; milliseconds, medians of {options.rounds} alternating rounds")
    print(f"{'':28}{other:>12}{'Calque':>12}{'ratio':>9}{'nodes':>14}")
    for kind in ("decoder", "encoder"):
        for what in ("symbolic", "fake", "forward"):
            theirs, mine = [], []
            nodes = {}
            for i in range(options.rounds):
                sides = [(peer, theirs), (ours, mine)]
                for side, times in sides if i % 2 == 0 else reversed(sides):
                    spent, nodes[side] = side.run(kind, 12, what)
                    times.append(spent / 1e6)
            a, b = statistics.median(theirs), statistics.median(mine)
            name = f"{kind}, 12 layers, " + ("fake forward" if what == "forward" else f"make_fx {what}")
            print(f"{name:36}{a:>10.2f}{b:>10.3f}{a / b:>8.{2 if options.before else 0}f}x{nodes[peer]:>7}{nodes[ours]:>7}")
            results.append({"model": kind, "layers": 12, "what": what, f"{other.lower()}_ms": a, "calque_ms": b, "ratio": a / b, "nodes": nodes[ours]})
    alone = () if options.before else ("decoder", "encoder")
    if alone:
        print("\nCalque alone, symbolic")
    for kind in alone:
        per_layer = {}
        for layers in (12, 24, 48, 96):
            times = [ours.run(kind, layers, "symbolic") for _ in range(2 * options.rounds)]
            ms = statistics.median(t for t, _ in times) / 1e6
            per_layer[layers] = ms / layers
            print(f"{kind}, {layers:>2} layers: {ms:8.3f} ms, {ms / layers * 1000:7.1f} us a layer, {times[0][1]} nodes, {ours.per_node} bytes a node")
            results.append({"model": kind, "layers": layers, "what": "symbolic", "calque_ms": ms, "nodes": times[0][1], "bytes_per_node": ours.per_node})
        static = statistics.median(ours.run(kind, 12, "fake")[0] for _ in range(4 * options.rounds)) / 1e6
        dynamic = statistics.median(ours.run(kind, 12, "symbolic")[0] for _ in range(4 * options.rounds)) / 1e6
        print(f"{kind}: 96 layers cost {per_layer[96] / per_layer[12]:.2f} of 12 layers' time a layer; symbolic {dynamic / static:.2f} of fake")
        results.append({"model": kind, "per_layer_96_over_12": per_layer[96] / per_layer[12], "symbolic_over_fake": dynamic / static})
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"pytorch": torch.__version__, "results": results}, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    sys.exit(main())
