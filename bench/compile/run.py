"""What a compiled call costs beside its computation, Calque beside torch.compile in one run: a check of the guards of a BERT-base-shaped
encoder, its first call with the captured graph run node by node on both sides, and a call of a function of one addition.

Rounds alternate between the two; the table shows medians. One thread each, wall time.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

import torch
import torch._dynamo

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from models import MODELS  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CASES = ["check encoder 12", "check decoder 12", "first encoder 12", "call small", "eager small"]


def time_of(count, run):
    run()
    start = time.perf_counter_ns()
    for _ in range(count):
        run()
    return (time.perf_counter_ns() - start) / count


def plus(x):
    return x + 1


@torch.no_grad()
def torch_time(case):
    torch._dynamo.reset()
    what, kind, *layers = case.split()
    if kind == "small":
        x = torch.ones(8)
        if what == "eager":
            return time_of(20000, lambda: plus(x))
        f = torch.compile(plus, backend="eager")
        return time_of(20000, lambda: f(x))
    model = MODELS[kind](int(layers[0])).eval()
    ids = torch.zeros(1, 16, dtype=torch.int64)
    f = torch.compile(model, backend="eager")
    start = time.perf_counter_ns()
    f(ids)
    first = time.perf_counter_ns() - start
    if what == "first":
        return first
    (entry,) = torch._dynamo.eval_frame._debug_get_cache_entry_list(type(model).forward.__code__)
    names = type(model).forward.__code__.co_varnames
    local = {names[0]: model, names[1]: ids}
    assert entry.guard_manager.check(local)
    return time_of(20000, lambda: entry.guard_manager.check(local))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", default=os.path.join(ROOT, "build/release/bin/bench_compile"))
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    worker = subprocess.Popen([args.worker], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "CALQUE_NUM_THREADS": "1"})

    def calque_time(case):
        worker.stdin.write(case + "\n")
        worker.stdin.flush()
        return float(worker.stdout.readline())

    print(f"torch {torch.__version__}, one thread; medians of {args.rounds} rounds; microseconds")
    for case in CASES:
        ours, theirs = [], []
        for _ in range(args.rounds):
            ours.append(calque_time(case))
            theirs.append(torch_time(case))
        a, b = statistics.median(ours) / 1000, statistics.median(theirs) / 1000
        print(f"{case:20} Calque {a:12.2f}  PyTorch {b:12.2f}  {b / a:8.2f} times")
    worker.stdin.close()
    worker.wait()


if __name__ == "__main__":
    main()
