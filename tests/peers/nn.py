#!/usr/bin/env python3
"""Layers, losses and initialisations against PyTorch, live: initial parameters from the same seed, forward in training and
evaluation, state dict keys, class name and repr. --all runs every case with ten seeds instead of one. --keep DIR keeps the files.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tools", "golden"))

import nn_cases  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

TOLERANCE = {torch.float32: (1.3e-6, 1e-5), torch.float64: (1e-7, 1e-7), torch.bfloat16: (1.6e-2, 1e-5)}  # torch.testing's


def ulps(a, b):
    """The largest distance of two float32 or float64 tensors, in representable numbers."""
    width = torch.int32 if a.dtype == torch.float32 else torch.int64
    low = torch.iinfo(width).min

    def ordered(t):
        bits = t.contiguous().view(width).to(torch.int64)
        return torch.where(bits < 0, low - bits, bits)

    return (ordered(a) - ordered(b)).abs().max().item() if a.numel() else 0


def differs(name, want, got, normal):
    """None, or what is wrong with a tensor."""
    if got is None:
        return f"{name}: missing"
    if want.shape != got.shape or want.dtype != got.dtype:
        return f"{name}: {list(want.shape)} {want.dtype} expected, {list(got.shape)} {got.dtype} found"
    if want.dtype not in TOLERANCE or torch.equal(want, got):
        return None if torch.equal(want, got) else f"{name}: values differ"
    if "/state/" in name or name.startswith("init."):
        # Uniform samples are the same bits. Normal ones go through logarithms and cosines; the rest are sums.
        if not normal:
            return f"{name}: not bit for bit the same, {ulps(want, got)} ulps"
        if not name.startswith("init.orthogonal_"):
            return None if ulps(want, got) <= 4 else f"{name}: {ulps(want, got)} ulps"
    rtol, atol = TOLERANCE[want.dtype]
    if torch.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True):
        return None
    return f"{name}: differs by {(got - want).abs().max().item():.3g}"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--all", action="store_true")
    p.add_argument("--keep")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", help="cases whose id starts so")
    args = p.parse_args()
    program = os.path.join(os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release")), "bin", "nn_peer")
    torch.set_num_threads(1)
    passed, failures = 0, []
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or scratch
        os.makedirs(folder, exist_ok=True)
        path = lambda name: os.path.join(folder, name)  # noqa: E731
        for seed in range(args.seed, args.seed + (10 if args.all else 1)):
            written, inputs = [], {}
            for case in nn_cases.cases():
                if args.only and not case["id"].startswith(args.only):
                    continue
                w, tensors = nn_cases.materialise(case, seed)
                written.append(w)
                inputs.update(tensors)
            with open(path("cases.jsonl"), "w") as f:
                f.writelines(json.dumps(w) + "\n" for w in written)
            save_file({k: v.contiguous() for k, v in inputs.items()}, path("inputs.safetensors"))
            subprocess.run([program, path("cases.jsonl"), path("inputs.safetensors"), path("out.jsonl"), path("out.safetensors")], check=True)
            with open(path("out.jsonl")) as f:
                found = {r["id"]: r for r in map(json.loads, f)}
            tensors = load_file(path("out.safetensors"))
            for w in written:
                try:
                    said, want = nn_cases.answers(w, inputs)
                except Exception as e:
                    failures.append((w, [f"PyTorch refuses the case: {e!r}"]))
                    continue
                got = found[w["id"]]
                wrong = [got["error"]] if got["error"] else []
                if not wrong:
                    wrong += [f"{k}:\n{said[k]}\n--- found\n{got[k]}" for k in ("repr", "type", "state") if said[k] != got[k]]
                    wrong += filter(None, (differs(k, v, tensors.get(k), w["normal"]) for k, v in want.items()))
                    extra = sorted(k for k in tensors if k.startswith(w["id"] + "/") and k not in want)
                    wrong += [f"{k}: not expected" for k in extra]
                if wrong:
                    failures.append((w, wrong))
                else:
                    passed += 1
    for w, wrong in failures[:40]:
        print(f"{w['id']} {json.dumps(w['args'])} {json.dumps(w['kwargs'])}")
        for text in wrong[:4]:
            print("   " + str(text)[:600])
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
