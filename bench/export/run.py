"""Export, decomposition, loading and saving of programs, Calque beside PyTorch in one run.

Exports: a GPT-2-small-shaped decoder (12 layers) and a Llama-shaped one (16 layers) with dynamic batch and length, on one thread each,
processor time. Files: a program of about 350 MB, wall time, two threads each, the file in the page cache; saving without sync, the
synced time beside it. Rounds alternate between the two, and so does who comes first; the table shows medians. Imports are not counted.

Before each save the old files are removed, everything is written out, and a file larger than what either side needs is written and removed:
in a virtual machine the first use of a page costs several times the copy into it, and which side met more such pages would be luck.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from models import MODELS  # noqa: E402


def settle(*paths):
    for path in paths:
        if os.path.exists(path):
            os.remove(path)
    os.sync()
    block = bytes(1 << 24)
    with open(paths[0], "wb", buffering=0) as f:
        for _ in range(64):
            f.write(block)
    os.remove(paths[0])


class Torch:
    def __init__(self):
        self.models = {}

    def export(self, kind, layers):
        if (kind, layers) not in self.models:
            self.models[kind, layers] = MODELS[kind](layers).eval()
        model = self.models[kind, layers]
        batch, length = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("length", min=2, max=1024)
        ids = torch.zeros(2, 128, dtype=torch.int64)
        start = time.process_time_ns()
        ep = torch.export.export(model, (ids,), dynamic_shapes=((batch, length),), strict=False)
        return ep, time.process_time_ns() - start

    def run(self, command, *arguments):
        if command == "export":
            ep, spent = self.export(*arguments)
            return spent, len(ep.graph.nodes)
        if command == "decompose":
            ep, _ = self.export(*arguments)
            start = time.process_time_ns()
            ep = ep.run_decompositions()
            return time.process_time_ns() - start, len(ep.graph.nodes)
        if command == "load":
            start = time.perf_counter_ns()
            self.program = torch.export.load(arguments[0])
            return time.perf_counter_ns() - start, len(self.program.state_dict)
        start = time.perf_counter_ns()
        torch.export.save(self.program, arguments[1])
        if arguments[2]:
            with open(arguments[1], "rb+") as f:
                os.fsync(f.fileno())
        return time.perf_counter_ns() - start, os.path.getsize(arguments[1])


class Calque:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, command, *arguments):
        self.process.stdin.write(" ".join(map(str, (command, *arguments))) + "\n")
        self.process.stdin.flush()
        return tuple(map(int, self.process.stdout.readline().split()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", default="build/release/bin/bench_export")
    parser.add_argument("--before", help="the bench_export of another build, to compare with instead of PyTorch: ratios above 1 are faster now")
    parser.add_argument("--only", help="rows whose name contains this; the others in the file of --json stay")
    parser.add_argument("--json", help="where to write the results")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    ours = Calque(options.program)
    peer = Calque(options.before) if options.before else Torch()
    other = "before" if options.before else "PyTorch"
    results = []
    print(f"{options.before or 'PyTorch ' + torch.__version__} beside Calque; milliseconds, medians of {options.rounds} alternating rounds")
    print(f"{'':36}{other:>10}{'Calque':>10}{'ratio':>9}{'nodes or size':>16}")

    def row(name, command, theirs, mine):
        if options.only and options.only not in name:
            return False
        a, b = [], []
        counts = {}
        for i in range(options.rounds):
            sides = [(peer, theirs, a), (ours, mine, b)]
            for side, arguments, times in sides if i % 2 == 0 else reversed(sides):
                if command == "save":
                    settle(theirs[1], mine[1])
                spent, counts[side] = side.run(command, *arguments)
                times.append(spent / 1e6)
        their_count, count = counts[peer], counts[ours]
        a, b = statistics.median(a), statistics.median(b)
        print(f"{name:36}{a:>10.2f}{b:>10.3f}{a / b:>8.{2 if options.before else 1}f}x{their_count:>10}{count:>10}", flush=True)
        results.append({"what": name, f"{other.lower()}_ms": round(a, 3), "calque_ms": round(b, 3), "ratio": round(a / b, 2 if options.before else 1)})
        return True

    torch.set_num_threads(1)
    for kind, layers, name in (("decoder", 12, "GPT-2-small-shaped"), ("llama", 16, "Llama-shaped, 16 layers")):
        for command in ("export", "decompose"):
            row(f"{name}: {command}", command, (kind, layers), (kind, layers))
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.pt2")
        torch.export.save((peer if isinstance(peer, Torch) else Torch()).export("decoder", 7)[0], path)
        size = os.path.getsize(path) / 1e6
        if not row(f"load {size:.0f} MB", "load", (path,), (path,)):  # what is saved has to be there
            peer.run("load", path)
            ours.run("load", path)
        for sync in (0, 1):
            row(f"save {size:.0f} MB" + (", synced" if sync else ""), "save", (path, os.path.join(folder, "a.pt2"), sync), (path, os.path.join(folder, "b.pt2"), sync))
    if options.json:
        if options.only and os.path.exists(options.json):  # the other rows stay
            with open(options.json) as f:
                before = json.load(f)["results"]
            now = {r["what"]: r for r in results}
            results = [now.pop(r["what"], r) for r in before] + list(now.values())
        with open(options.json, "w") as f:
            json.dump({"pytorch": torch.__version__, "results": results}, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    sys.exit(main())
