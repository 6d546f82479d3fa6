"""Writes tests/file/golden/same.jsonl: pairs of tensors with the verdict of PyTorch's torch._dynamo.utils.same().

    python tools/golden/same.py

The first line lists the tensors, bytes as hex. Each other line holds the positions of a, b and perhaps a float64
reference in that list, the options by PyTorch's names, same()'s answer, and where they are defined the figures: the largest difference, rmse(a, b), both errors against the reference and the
cosine similarity, all computed in float64 by PyTorch. "skip" says why Calque is not held to the answer.
"""

import json
import logging
import pathlib

import torch
from torch._dynamo.utils import same

logging.disable(logging.CRITICAL)
OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "file" / "golden" / "same.jsonl"
INF, NAN = float("inf"), float("nan")
g = torch.Generator().manual_seed(20261)
lines = []
tensors = {}


def store(t):
    text = json.dumps({
        "dtype": str(t.dtype).removeprefix("torch."), "sizes": list(t.shape),
        "data": bytes(t.contiguous().reshape(-1).view(torch.uint8).tolist()).hex(),
    })
    return tensors.setdefault(text, len(tensors))


def add(a, b, ref=None, **options):
    line = {"a": store(a), "b": store(b), "options": options}
    if ref is not None:
        line["reference"] = store(ref)
    try:
        line["same"] = bool(same(a, b, ref, **options))
    except (RuntimeError, NotImplementedError) as e:
        line["error"] = str(e)[:80]
    if a.shape == b.shape and a.numel() and a.dtype == b.dtype:
        x, y = a.to(torch.complex128 if a.is_complex() else torch.float64), b.to(torch.complex128 if b.is_complex() else torch.float64)
        if bool(torch.isfinite(x).all() and torch.isfinite(y).all()):
            line["max_abs"] = (x - y).abs().max().item()
            line["rmse"] = (x - y).abs().square().mean().sqrt().item()
            if not a.is_complex() and x.norm() > 0 and y.norm() > 0:
                line["cosine"] = torch.nn.functional.cosine_similarity(x.flatten(), y.flatten(), dim=0, eps=1e-6).item()
            if ref is not None and ref.dtype == torch.float64 and not a.is_complex() and not ref.isnan().any():
                line["a_error"] = (ref - x).square().mean().sqrt().item()
                line["b_error"] = (ref - y).square().mean().sqrt().item()
    lines.append(line)


def randn(*sizes):
    return torch.randn(*sizes, generator=g, dtype=torch.float64)


FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64]

# Tolerance, in each type's own arithmetic: differences around the boundary.
for dtype in FLOATS:
    x = randn(12).to(dtype)
    add(x, x.clone())
    for tol in [0.0, 1e-4, 1e-3, 1e-2, 0.5]:
        for scale in [0.25, 0.9, 0.999, 1.0, 1.001, 1.1, 3.0]:
            add(x, (x.double() * (1 + tol * scale) + tol * scale * torch.sign(x.double())).to(dtype), tol=tol)
for dtype in [torch.float16, torch.bfloat16]:
    for tol in [1e-3, 4e-3, 1e-2, 3e-2]:
        for k in range(1, 12):  # every step of the last place around 1 and 100
            for base in [1.0, 100.0, 0.01, -7.5]:
                a = torch.tensor([base], dtype=dtype)
                add(a, (a.view(torch.int16) + k).view(dtype), tol=tol)
for dtype in INTS:
    a = torch.tensor([0, 1, 100, 127], dtype=torch.int32).to(dtype)
    for b in ([0, 1, 100, 127], [0, 1, 100, 126], [1, 1, 100, 127], [127, 1, 100, 0]):
        for tol in [0.0, 1e-4, 1e-2, 1.0]:
            add(a, torch.tensor(b, dtype=torch.int32).to(dtype), tol=tol)
    add(a, a + 1 if dtype not in INTS[5:] else a.to(torch.int64).add(1).to(dtype), ignore_non_fp=True)
add(torch.tensor([2**53 + 1]), torch.tensor([2**53]), tol=0.0)
add(torch.tensor([2**53 + 1]), torch.tensor([2**53]))
add(torch.tensor([2**62]), torch.tensor([2**62 + 2**20]))
add(torch.tensor([-(2**63)]), torch.tensor([2**63 - 1]))
add(torch.tensor([16777217], dtype=torch.int32), torch.tensor([16777216], dtype=torch.int32), tol=1e-12)

# Booleans.
t, f = torch.tensor([True, True, False, False] * 5), torch.tensor([True, False, False, False] * 5)
for options in [{}, {"ignore_non_fp": True}, {"tol": 1.0}, {"cos_similarity": True}, {"use_iou_for_bool": True},
                {"use_iou_for_bool": True, "iou_threshold": 0.5}, {"use_iou_for_bool": True, "iou_threshold": 0.51}]:
    add(t, t.clone(), **options)
    add(t, f, **options)
    add(torch.zeros(3, dtype=torch.bool), torch.zeros(3, dtype=torch.bool), **options)
    add(torch.zeros(3, dtype=torch.bool), torch.ones(3, dtype=torch.bool), **options)

# NaN and infinity.
special = [[1.0, NAN], [NAN, NAN], [1.0, INF], [1.0, -INF], [INF, NAN], [1.0, 2.0], [1.0, 3e38]]
for dtype in FLOATS:
    for p in special:
        for q in special:
            for equal_nan in [False, True]:
                add(torch.tensor(p, dtype=dtype), torch.tensor(q, dtype=dtype), equal_nan=equal_nan)
                if dtype == torch.float32:
                    add(torch.tensor(p, dtype=dtype), torch.tensor(q, dtype=dtype), torch.tensor([1.0, 2.0], dtype=torch.float64),
                        equal_nan=equal_nan)
                    add(torch.tensor(p, dtype=dtype), torch.tensor(q, dtype=dtype), torch.tensor([1.0, NAN], dtype=torch.float64),
                        equal_nan=equal_nan)
add(torch.tensor([1.0, NAN]), torch.tensor([1.03, 2.05]), torch.tensor([1.0, 2.0], dtype=torch.float64))
add(torch.tensor([1.0, NAN]), torch.tensor([1.2, 2.05]), torch.tensor([1.0, 2.0], dtype=torch.float64))

# Errors against a float64 reference: every multiplier, on both sides of the boundary.
for sizes, dtypes in [((8,), FLOATS), ((9, 20), [torch.float32]), ((700,), [torch.float32]), ((1000,), [torch.float32, torch.bfloat16]),
                      ((40, 25, 1, 1), [torch.float32]), ((25, 40), [torch.float32, torch.float64])]:
    for dtype in dtypes:
        ref = randn(*sizes)
        noise = randn(*sizes) * 0.02
        for factor in [1.0, 1.9, 2.1, 2.9, 3.1, 7.9, 8.2, 9.9, 10.2]:
            a, b = (ref + noise).to(dtype), (ref - noise * factor).to(dtype)
            if ref.numel() >= 1000 and factor not in [1.9, 2.1, 2.9, 3.1]:
                continue
            add(a, b, ref)
            if ref.numel() < 1000:
                add(a, b, ref, use_larger_multiplier_for_smaller_tensor=True)
                add(a, b, ref, force_max_multiplier=True)
            elif dtype == torch.float32 and len(sizes) == 2:
                add(a, b, ref, tol=2e-2)
                add(a, b, ref, tol=1.9e-2)
                add(a, b, ref, force_max_multiplier=True)
a = randn(20).float()
add(a, a + 1e-2, a)  # a reference that is not float64 is not used
add(a, a + 1e-2, a.double() + 5e-3)
add(a.double(), a.double() + 1e-3)  # a float64 tensor is its own reference
add(a.double(), a.double() + 5e-6 * randn(20), tol=1e-7)
add(a.double(), a.double() * (1 + 1e-3 * (torch.arange(20) == 3)), tol=1e-3)
add(torch.arange(20), torch.arange(20) + 1, torch.arange(20).double())
add(torch.arange(20), torch.arange(20) * 3, torch.arange(20).double() + 4)

# Cosine similarity.
for dtype in FLOATS + [torch.int32]:
    x = (randn(50) * 20).to(dtype)
    for amount in [0.0, 0.05, 0.13, 0.15, 0.3, 2.0]:
        y = (x.double() + randn(50) * 20 * amount).to(dtype)
        add(x, y, cos_similarity=True)
    add(x, (x.double() * 2).to(dtype), cos_similarity=True)
    add(x, -x, cos_similarity=True)
    add(torch.zeros(5, dtype=dtype), torch.zeros(5, dtype=dtype), cos_similarity=True)
    add(torch.zeros(5, dtype=dtype), torch.ones(5, dtype=dtype), cos_similarity=True)
add(torch.tensor([1.0, NAN]), torch.tensor([1.0, NAN]), cos_similarity=True)
add(torch.tensor([1.0, NAN]), torch.tensor([2.0, NAN]), cos_similarity=True)
add(torch.tensor([1.0, NAN]), torch.tensor([1.0, 1.0]), cos_similarity=True)

# Dtypes and sizes that differ, empty tensors, scalars, complex numbers.
x = randn(10)
for p in FLOATS + [torch.int32, torch.bool]:
    for q in FLOATS + [torch.int32, torch.bool]:
        add(x.to(p), x.to(q))
        add(x.to(p), x.to(q), exact_dtype=False, tol=1e-2)
        add(x.to(p), (x * 1.02).to(q), exact_dtype=False, tol=1e-3)
for dtype in FLOATS + INTS + [torch.bool, torch.complex64]:
    add(torch.zeros(0, dtype=dtype), torch.zeros(0, dtype=dtype))
    add(torch.zeros(2, 0, dtype=dtype), torch.zeros(2, 0, dtype=dtype), cos_similarity=True)
    add(torch.tensor(1, dtype=torch.int32).to(dtype), torch.tensor(1, dtype=torch.int32).to(dtype))
for eps in [0.0, 1e-5, 1e-4, 2e-4, 1e-2]:
    z = torch.complex(randn(6), randn(6)).to(torch.complex64)
    add(z, z + eps)
    add(z, z + 1j * eps)
    add(z, z * (1 + eps))
for p in [complex(1, NAN), complex(INF, 1), complex(1, 1)]:
    for q in [complex(1, NAN), complex(NAN, 1), complex(INF, 1), complex(1, 1)]:
        for equal_nan in [False, True]:
            add(torch.tensor([p]), torch.tensor([q]), equal_nan=equal_nan)
for dtype in [torch.float8_e4m3fn, torch.float8_e5m2]:
    add(torch.tensor([1.0, 2.0]).to(dtype), torch.tensor([1.0, 2.0]).to(dtype), tol=0.0)
    add(torch.tensor([1.0, 2.0]).to(dtype), torch.tensor([1.0, 3.0]).to(dtype), tol=0.0)

# Where Calque decides otherwise, on purpose.
def skipped(why, *args, **options):
    add(*args, **options)
    lines[-1]["skip"] = why


a = randn(4).float()
skipped("ignore_non_fp without a reference lets every floating tensor pass", a, a + 1, ignore_non_fp=True)
skipped("sizes are broadcast", torch.ones(3), torch.ones(1, 3))
skipped("sizes are broadcast", torch.ones(3), torch.ones(1))
skipped("an integer tensor with a float64 reference is not ignored", torch.arange(4), torch.arange(4) * 9, torch.arange(4).double(),
        ignore_non_fp=True)

OUT.parent.mkdir(parents=True, exist_ok=True)
seen, kept = set(), []
for line in lines:
    text = json.dumps(line)
    if text not in seen:
        seen.add(text)
        kept.append(text)
OUT.write_text("[" + ", ".join(tensors) + "]\n" + "".join(t + "\n" for t in kept))
answers = [json.loads(t).get("same") for t in kept]
print(f"{OUT}: {len(kept)} cases, {answers.count(True)} same, {answers.count(False)} different, {answers.count(None)} errors, {OUT.stat().st_size} bytes")
