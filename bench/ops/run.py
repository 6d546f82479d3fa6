#!/usr/bin/env python3
"""Calque beside PyTorch's eager mode, operator by operator, interleaved on the same threads.

For every row both sides make the same inputs (same generator, same seed), the sums of their results are compared, and
then they take turns: a slice of Calque, a slice of PyTorch, the order swapped every round. A round gives one ratio
(PyTorch's time a call / Calque's); a row is the median of its rounds with a 95 % bootstrap interval.
"""

import argparse
import json
import math
import os
import platform
import random
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# oneDNN's AMX code inside PyTorch 2.13 dies of an illegal instruction on some virtual machines; see docs/performance.md.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", os.environ.get("CALQUE_BENCH_ISA", "AVX512_CORE_FP16"))

import torch  # noqa: E402

sys.path.insert(0, HERE)
import rows as row_list  # noqa: E402


def make_value(v):
    if isinstance(v, list):
        return [make_value(x) for x in v]
    if not isinstance(v, dict):
        return v
    if "shape" not in v:
        return getattr(torch, v["name"])
    if v["make"] == "values":
        t = torch.tensor(v["values"])
    elif v["make"] == "randint":
        t = torch.randint(v["high"], v["shape"])
    else:
        t = getattr(torch, v["make"])(v["shape"])
    t = t.to(getattr(torch, v["dtype"]))
    return t.permute(v["permute"]) if "permute" in v else t


def make_call(spec):
    torch.manual_seed(0)
    args = [make_value(a) for a in spec["args"]]
    keyword = {k: make_value(v) for k, v in spec["keyword"].items()}
    name = spec["function"]
    if name == "torch:index":
        return lambda: args[0][args[1][0]]
    if name == "torch:experts":
        rows, matrices, ends = args
        counts = [b - a for a, b in zip([0, *ends.tolist()], ends.tolist())]
        return lambda: torch.cat([part @ matrix for part, matrix in zip(rows.split(counts), matrices) if part.shape[0]])
    if name == "torch:to":
        return lambda: args[0].to(args[1])
    if name == "torch:view":
        return lambda: args[0].view(2, 4)
    if name.endswith("batch_norm:running"):  # the functional form takes the statistics first
        x, weight, bias, mean, var, training, momentum, eps, _ = args
        return lambda: torch.nn.functional.batch_norm(x, mean, var, weight, bias, training, momentum, eps)
    function = torch
    for part in name.split(".")[1:]:
        function = getattr(function, part)
    return (lambda: function(*args, **keyword)) if keyword else (lambda: function(*args))


def sums(value):
    if isinstance(value, (list, tuple)):
        parts = [sums(v) for v in value]
        return sum(p[0] for p in parts), sum(p[1] for p in parts)
    t = value.double()
    return t.sum().item(), t.abs().sum().item()


now = time.perf_counter_ns


def time_slice(call, limit_ns):
    calls, batch, start, elapsed = 0, 1, now(), 0
    while elapsed < limit_ns:
        for _ in range(batch):
            call()
        calls += batch
        elapsed = now() - start
        if elapsed * 16 < limit_ns:
            batch *= 2
    return elapsed / calls


class Worker:
    def __init__(self, program, threads, clock):
        self.command = [program, clock]
        self.environment = {**os.environ, "CALQUE_NUM_THREADS": str(threads)}
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment)

    def answer(self, line):
        self.tell(line)
        return self.process.stdout.readline().strip()

    def knows(self, spec):
        """Begins a row, unless the program is older than the row: then it has ended, and starts anew."""
        answer = self.answer(json.dumps(spec))
        known = answer and not answer.startswith("error")
        if not known:
            self.process.kill()
            self.process.wait()
            self.start()
        return known

    def ask(self, line):
        answer = self.answer(line)
        if not answer or answer.startswith("error"):
            sys.exit(f"bench_ops: {answer or 'the worker died'}")
        return answer

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def time_slice(self, limit_ns):
        calls, elapsed = map(int, self.ask(f"time {limit_ns}").split())
        return elapsed / calls


def median(values):
    values = sorted(values)
    n = len(values)
    return values[n // 2] if n % 2 else (values[n // 2 - 1] + values[n // 2]) / 2


def interval(values, draws=2000):
    """95 % bootstrap interval of the median."""
    r = random.Random(0)
    medians = sorted(median(r.choices(values, k=len(values))) for _ in range(draws))
    return medians[int(draws * 0.025)], medians[int(draws * 0.975)]


def take_turns(sides, rounds, slice_ns, pause):
    for side in sides:
        side(slice_ns // 4)  # warm
    times = ([], [])
    for turn in range(rounds):
        for which in ((0, 1) if turn % 2 == 0 else (1, 0)):
            time.sleep(pause)
            times[which].append(sides[which](slice_ns))
    return times


def result(spec, times):
    ratios = [p / c for c, p in zip(*times)]
    low, high = interval(ratios)
    return {"group": spec["group"], "row": spec["label"], "calque_us": median(times[0]) / 1e3, "pytorch_us": median(times[1]) / 1e3,
            "ratio": median(ratios), "low": low, "high": high}


def compare(worker, before, spec, rounds, slice_ns):
    """The same row in another build of Calque."""
    if not before.knows(spec):
        return None
    worker.ask(json.dumps(spec))
    times = take_turns([worker.time_slice, before.time_slice], rounds, slice_ns, 0.001)
    for w in (worker, before):
        w.tell("done")
    return result(spec, times)


def measure(worker, spec, rounds, slice_ns):
    worker.ask(json.dumps(spec))
    call = make_call(spec)
    with torch.inference_mode():
        mine = [float(x) for x in worker.ask("check").split()]
        theirs = sums(call())
        tolerance = (2e-2 if "bf16" in spec["label"] else 1e-4) * max(theirs[1], 1e-30)
        if not (abs(mine[0] - theirs[0]) <= tolerance and abs(mine[1] - theirs[1]) <= tolerance):
            sys.exit(f"{spec['group']} {spec['label']}: the results differ: sum {mine[0]} and {theirs[0]}, magnitude {mine[1]} and {theirs[1]}")
        # A pause: the other side's threads fall asleep; libgomp's spin for 5 ms after their last work.
        times = take_turns([worker.time_slice, lambda ns: time_slice(call, ns)], rounds, slice_ns, 0.01)
    worker.tell("done")
    return result(spec, times)


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--group", action="append", help="only these groups")
    p.add_argument("--match", help="only rows whose label contains this")
    p.add_argument("--rounds", type=int, default=11)
    p.add_argument("--slice-ms", type=float, default=20)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--clock", choices=("wall", "cpu"), default="wall",
                   help="cpu: processor time of the calling thread, with one thread; for a machine that is not quiet")
    p.add_argument("--json", help="write the results here")
    p.add_argument("--worker", default=os.path.join(ROOT, "build", "release", "bin", "bench_ops"))
    p.add_argument("--before", help="the bench_ops of another build, to compare with instead of PyTorch: ratios above 1 are faster now")
    args = p.parse_args()
    if args.clock == "cpu":
        global now
        now, args.threads = time.thread_time_ns, 1
    torch.set_num_threads(args.threads)
    torch.set_grad_enabled(False)
    worker = Worker(args.worker, args.threads, args.clock)
    before = Worker(args.before, args.threads, args.clock) if args.before else None
    results = []
    print(f"{'group':14}{'row':38}{'Calque us':>12}{'before us' if before else 'PyTorch us':>12}{'ratio':>8}   95 % interval")
    for spec in row_list.all_rows():
        if args.group and spec["group"] not in args.group or args.match and args.match not in spec["label"]:
            continue
        rounds = args.rounds, int(args.slice_ms * 1e6)
        r = compare(worker, before, spec, *rounds) if before else measure(worker, spec, *rounds)
        if r is None:
            print(f"{spec['group']:14}{spec['label']:38}   not in the older build", flush=True)
            continue
        results.append(r)
        mark = "  below" if r["high"] < 0.97 else ""
        print(f"{r['group']:14}{r['row']:38}{r['calque_us']:12.2f}{r['pytorch_us']:12.2f}{r['ratio']:8.2f}   {r['low']:.2f} .. {r['high']:.2f}{mark}", flush=True)
    if not results:
        sys.exit("no such row")
    print()
    groups = list(dict.fromkeys(r["group"] for r in results))
    for g in groups:
        print(f"{g:14}{geomean([r['ratio'] for r in results if r['group'] == g]):8.2f}")
    measured = [r for r in results if r["group"] != "overhead"] or results
    total, below = geomean([r["ratio"] for r in measured]), [r for r in measured if r["high"] < 0.97]
    print(f"{len(measured)} rows, geometric mean {total:.2f}, {len(below)} with an interval wholly below 0.97")
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"pytorch": torch.__version__, "threads": args.threads, "clock": args.clock, "machine": platform.processor() or platform.machine(),
                       "onednn_max_cpu_isa": os.environ["ONEDNN_MAX_CPU_ISA"], "geomean": total, "below": len(below), "rows": results}, f, indent=1)


if __name__ == "__main__":
    main()
