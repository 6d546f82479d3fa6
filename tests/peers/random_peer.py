"""Random numbers against PyTorch, live: python tests/peers/random_peer.py [PROGRAM] [--calls N] [--seed S] [--all]

PROGRAM is the random_peer executable ($CALQUE_BUILD/bin/random_peer if not given). Both run the same random scripts; integers, uniform and bernoulli results and the
generator's state must be equal to the bit, normal samples within 4 ulp.
"""
import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools", "golden"))

import numpy as np  # noqa: E402
import random_script  # noqa: E402

APPROXIMATE = {"normal", "log_normal", "cauchy", "exponential"}
WIDTH = {"float16": np.int16, "bfloat16": np.int16, "float32": np.int32, "float64": np.int64, "complex64": np.int32,
         "complex128": np.int64}


def ordered(raw, dtype):
    """Floats as integers whose differences are ulps."""
    bits = np.frombuffer(raw, dtype=WIDTH[dtype]).astype(object if dtype in ("float64", "complex128") else np.int64)
    lowest = -(1 << (8 * np.dtype(WIDTH[dtype]).itemsize - 1))
    return np.where(bits < 0, lowest - bits, bits)


def ulps(a, b, dtype):
    return int(np.max(np.abs(ordered(a, dtype) - ordered(b, dtype)))) if a else 0


def compare(program, lines, worst):
    expected = random_script.run(lines)
    with tempfile.TemporaryDirectory() as folder:
        script, out = os.path.join(folder, "script"), os.path.join(folder, "out")
        with open(script, "w") as f:
            f.write("\n".join(lines) + "\n")
        subprocess.run([program, script, out], check=True)
        with open(out, "rb") as f:
            found = f.read()
    at = 0
    failures = []
    for line, want in expected:
        got = found[at:at + len(want)]
        at += len(want)
        words = line.split()
        op = words[0]
        key = op if op == "state" else f"{op} {words[1]}"
        entry = worst.setdefault(key, [0, 0, 0])
        entry[0] += 1
        if got == want:
            entry[1] += 1
        elif op in APPROXIMATE and len(got) == len(want):
            entry[2] = max(entry[2], ulps(got, want, words[1]))
            if entry[2] > 4:
                failures.append((line, got, want))
        else:
            failures.append((line, got, want))
    if at != len(found):
        failures.append(("the lengths differ", b"", b""))
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?", default=os.path.join(os.environ.get("CALQUE_BUILD", ""), "bin/random_peer"))
    parser.add_argument("--all", action="store_true", help="ten times as many calls")
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.all:
        args.calls *= 10
    worst, failures = {}, []
    # Every small size, one stream; then larger and mixed ones. A state is compared after each script, then loaded.
    scripts = []
    for dtype in random_script.FLOATS:
        for n in list(range(1, 101)) + [1000, 10000]:
            scripts.append([f"seed {n}"] + [f"{op} {dtype} {n} 1 {a}" for op in ("uniform", "normal")
                                            for a in ("0 1", "-1.3 2.7")] + ["state"])
    step = 100
    for k in range(args.calls // step):
        scripts.append(random_script.make(args.seed * 1000 + k, step, list(range(0, 101)) + [1000, 10000]) + ["state"])
    joined = [line for s in scripts[:len(random_script.FLOATS) * 102] for line in s]
    failures += compare(args.program, joined, worst)
    state = None
    for lines in scripts[len(random_script.FLOATS) * 102:]:
        if state is not None:
            lines = ["load " + state.hex()] + lines[1:]
        failures += compare(args.program, lines, worst)
        state = random_script.run(lines)[-1][1]
    total = sum(e[0] for e in worst.values())
    for key in sorted(worst):
        count, equal, distance = worst[key]
        print(f"{key:28} {count:6} calls {equal:6} bit-equal" + (f"   worst {distance} ulp" if distance else ""))
    for line, got, want in failures[:10]:
        print("DIFFERENT:", line[:200], "\n  found   ", got[:64].hex(), "\n  expected", want[:64].hex())
    print(f"{total - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
