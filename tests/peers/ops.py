#!/usr/bin/env python3
"""Every operator of Calque's table against PyTorch: schemas, values, strides, dtypes, aliasing, errors, guards of shape rules.

PyTorch makes the cases (tools/opcheck), opcheck runs them. --all makes three times as many. --keep DIR keeps the case files.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

SCHEMA_GAPS = {
    "aten::multilabel_margin_loss_forward.output": "its results have the names of the functional form's, PyTorch's have none",
}


def schema_of(name):
    """What PyTorch prints as the schema of `name`, None where it has no such operator."""
    import torch

    qualified, _, overload = name.partition(".")
    namespace, _, base = qualified.partition("::")
    try:
        return str(getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")._schema)
    except AttributeError:
        return None


def check_schemas(opcheck):
    """Compares the schemas of all operators as text: how many agree, how many differ."""
    passed = failed = own = 0
    gaps = dict(SCHEMA_GAPS)
    for ours in subprocess.run([opcheck, "--schemas"], capture_output=True, text=True, check=True).stdout.splitlines():
        name = ours.partition("(")[0]
        theirs = schema_of(name)
        if theirs is None:
            own += 1
        elif ours == theirs:
            passed += 1
        elif gaps.pop(name, None):
            print(f"known: the schema of {name}: {SCHEMA_GAPS[name]}")
        else:
            failed += 1
            print(f"SCHEMA  Calque:  {ours}\n        PyTorch: {theirs}")
    for name in gaps:
        failed += 1
        print(f"SCHEMA_GAPS lists {name}, whose schema does not differ")
    print(f"{passed} schemas print as PyTorch's, {failed} differ, {own} operators are not PyTorch's", flush=True)
    return passed, failed


def run_and_add(command, passed, failed):
    """Runs a command that closes with "N passed, N failed"; closes with its counts and the ones given."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        last = ""
        for line in process.stdout:
            print(last, end="", flush=True)
            last = line
    counted = re.fullmatch(r"(\d+) passed, (\d+) failed\n", last)
    if not counted:
        print(last, end="")
        return process.returncode or 1
    print(f"{int(counted[1]) + passed} passed, {int(counted[2]) + failed} failed")
    return process.returncode or int(failed > 0)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--all", action="store_true")
    p.add_argument("--keep")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--ops")
    args = p.parse_args()
    build = os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release"))
    opcheck = os.path.join(build, "bin", "opcheck")
    with tempfile.TemporaryDirectory() as scratch:
        out = args.keep or scratch
        os.makedirs(out, exist_ok=True)
        listed = os.path.join(scratch, "list.txt")
        with open(listed, "w") as f:
            subprocess.run([opcheck, "--list"], stdout=f, check=True)
        passed, failed = check_schemas(opcheck)
        start = time.time()
        command = [sys.executable, os.path.join(ROOT, "tools", "opcheck", "make_cases.py"), "--out", out, "--list", listed,
                   "--seed", str(args.seed), "--per-op", "120" if args.all else "12",
                   "--guards-per-op", "24" if args.all else "2", "--jobs", str(os.cpu_count() or 2)]
        if not args.all:  # the guards of shape rules take PyTorch minutes; ./test has a sample of them
            command += ["--what", "cases,errors"]
        if args.ops:
            command = [c for c in command if c not in ("--list", listed)] + ["--ops", args.ops]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "0"})  # the same cases every time
        print(f"cases made in {time.time() - start:.0f} s", flush=True)
        files = sorted(os.path.join(out, f) for f in os.listdir(out) if f.endswith(".jsonl"))
        lists = os.path.join(ROOT, "tests", "op")
        return run_and_add([opcheck, *files, "--exclusions", os.path.join(lists, "exclusions.tsv"),
                            "--gaps", os.path.join(lists, "known_gaps.tsv")], passed, failed)


if __name__ == "__main__":
    sys.exit(main())
