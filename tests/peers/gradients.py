#!/usr/bin/env python3
"""The gradients of every operator of Calque's table against PyTorch: values, strides, second gradients, and differences in float64.

PyTorch makes the cases (tools/opcheck/make_gradients.py), opcheck runs them; README.md of tools/opcheck describes them. An operator
whose gradients differ stands in tests/op/gradient_gaps.tsv. --all makes four times as many cases; --op NAME[,NAME] and --family F
(a file of src/op/aten) take some; --missing alone lists the operators with a derivative in PyTorch and none in Calque.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GAPS = os.path.join(ROOT, "tests", "op", "gradient_gaps.tsv")


def table(opcheck):
    """name -> (family, how gradients go through it: formula, none, composite or missing)."""
    out = subprocess.run([opcheck, "--gradients"], capture_output=True, text=True, check=True).stdout
    return {n: (f, how) for n, f, how in (line.split("\t") for line in out.splitlines())}


def derivatives():
    """The operators to which PyTorch gives a derivative of their own, by name."""
    import torchgen
    import yaml

    path = os.path.join(os.path.dirname(torchgen.__file__), "packaged", "autograd", "derivatives.yaml")
    with open(path) as f:
        entries = yaml.safe_load(f)
    found = set()
    for e in entries:
        formulas = e["dispatch"].get("Default", {}) if "dispatch" in e else e
        own = [v for k, v in formulas.items() if k != "name" and k != "output_differentiability" and not k.startswith("result")]
        if any(isinstance(v, str) and v != "non_differentiable" and not v.startswith("not_implemented") for v in own):
            found.add("aten::" + e["name"].partition("(")[0])
    return found


def gaps():
    with open(GAPS) as f:
        return {line.partition("\t")[0] for line in f if line.strip() and not line.startswith("#")}


def report_missing(operators):
    """Prints what PyTorch differentiates and Calque does not; how many of these are not known gaps."""
    known = gaps()
    theirs = derivatives()
    missing = sorted(n for n, (_, how) in operators.items() if how in ("missing", "none") and n in theirs)
    composite = sorted(n for n, (_, how) in operators.items() if how == "composite" and n in theirs)
    for n in missing:
        print(f"missing: {n} ({operators[n][0]}){' - a known gap' if n in known else ''}")
    if composite:
        print("composite here, with a derivative of their own in PyTorch: " + ", ".join(composite))
    bad = [n for n in missing if n not in known]
    print(f"{len(theirs & set(operators)) - len(missing)} of {len(theirs & set(operators))} derivatives are there, "
          f"{len(missing)} missing, {len(bad)} of them not known gaps", flush=True)
    return len(bad)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--all", action="store_true")
    p.add_argument("--keep")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--op")
    p.add_argument("--family")
    p.add_argument("--missing", action="store_true")
    p.add_argument("--per-op", type=int)
    args = p.parse_args()
    build = os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release"))
    opcheck = os.path.join(build, "bin", "opcheck")
    operators = table(opcheck)
    names = sorted(n for n, (family, _) in operators.items() if not args.family or family == args.family)
    if args.op:
        names = args.op.split(",")
    bad = report_missing({n: operators[n] for n in names if n in operators})
    if args.missing:
        return 1 if bad else 0
    with tempfile.TemporaryDirectory() as scratch:
        out = args.keep or scratch
        os.makedirs(out, exist_ok=True)
        listed = os.path.join(scratch, "list.txt")
        with open(listed, "w") as f:
            f.write("\n".join(names) + "\n")
        start = time.time()
        jobs = 1 if len(names) < 20 else os.cpu_count() or 2
        subprocess.run([sys.executable, os.path.join(ROOT, "tools", "opcheck", "make_gradients.py"), "--out", out, "--list", listed,
                        "--seed", str(args.seed), "--per-op", str(args.per_op or (80 if args.all else 20)), "--jobs", str(jobs)],
                       check=True, env={**os.environ, "PYTHONHASHSEED": "0"})
        print(f"cases made in {time.time() - start:.0f} s", flush=True)
        files = sorted(os.path.join(out, f) for f in os.listdir(out) if f.startswith("gradients") and f.endswith(".jsonl"))
        from ops import run_and_add
        return run_and_add([opcheck, *files, "--gaps", GAPS], 0, bad)


if __name__ == "__main__":
    sys.exit(main())
