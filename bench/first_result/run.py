"""The first result of a program: `calque run` from its start to its end, of a .pt2 file, of the compiled file made of it, and of both with cold pages, beside reading the compiled file.

Rounds alternate; medians of wall time, and the most memory that the process held. Two threads. Without --program a BERT-base of random weights is made (bench/models has more).
"""
import argparse
import os
import statistics
import subprocess
import tempfile
import time

import torch
from safetensors.torch import save_file

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CALQUE = os.path.join(ROOT, "build/release/bin/calque")


def made_program(folder):
    import transformers
    torch.manual_seed(0)
    model = transformers.BertModel(transformers.BertConfig()).eval()
    path = os.path.join(folder, "bert.pt2")
    ids = torch.ones(1, 16, dtype=torch.int64)
    torch.export.save(torch.export.export(model, (), {"input_ids": ids, "return_dict": False}, strict=False), path)
    return path


def drop_pages(path):
    with open(path) as f:
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def run(command):
    """Milliseconds and megabytes of a process."""
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        raise SystemExit(" ".join(command) + f" ended with {status}")
    return (time.perf_counter() - start) * 1e3, usage.ru_maxrss / 1e3


def read(path):
    start = time.perf_counter()
    buffer = bytearray(1 << 20)
    with open(path, "rb", buffering=0) as f:
        while f.readinto(buffer):
            pass
    return (time.perf_counter() - start) * 1e3, 0.0


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--program", help="a .pt2 file with example inputs")
    p.add_argument("--inputs", help="a .safetensors file for it")
    p.add_argument("--rounds", type=int, default=9)
    options = p.parse_args()
    with tempfile.TemporaryDirectory(dir=os.path.expanduser("~/.cache")) as folder:
        program = options.program or made_program(folder)
        inputs = options.inputs
        if not inputs:
            inputs = os.path.join(folder, "in.safetensors")
            ep = torch.export.load(program)
            user = torch.export.graph_signature.InputKind.USER_INPUT
            names = [s.arg.name for s in ep.graph_signature.input_specs if s.kind == user]
            leaves = torch.utils._pytree.tree_leaves(ep.example_inputs)
            save_file({n: x.contiguous() for n, x in zip(names, leaves) if isinstance(x, torch.Tensor)}, inputs)
        compiled = os.path.join(folder, "compiled.pt2")
        subprocess.run([CALQUE, "compile", program, "-o", compiled, "-q"], check=True)

        def first(path, cold):
            if cold:
                drop_pages(path)
            return run([CALQUE, "run", path, "--inputs", inputs, "--threads", "2", "-q", "--outputs", os.path.join(folder, "out.safetensors")])

        def reading(cold):
            if cold:
                drop_pages(compiled)
            return read(compiled)

        cases = {"read the compiled file": lambda: reading(False), "first result, compiled": lambda: first(compiled, False), "first result, plain": lambda: first(program, False),
                 "read the compiled file, cold": lambda: reading(True), "first result, compiled, cold": lambda: first(compiled, True), "first result, plain, cold": lambda: first(program, True)}
        got = {name: [] for name in cases}
        for _ in range(options.rounds):
            for name, case in cases.items():
                got[name].append(case())
        sizes = os.path.getsize(program) / 1e6, os.path.getsize(compiled) / 1e6
        print(f"# {os.path.basename(program)}: {sizes[0]:.0f} MB, compiled {sizes[1]:.0f} MB; medians of {options.rounds} rounds")
        for name, values in got.items():
            memory = max(m for _, m in values)
            print(f"{name:32} {statistics.median(t for t, _ in values):8.1f} ms" + (f"  at most {memory:.0f} MB" if memory else ""))


if __name__ == "__main__":
    main()
