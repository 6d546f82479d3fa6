"""Writes tests/tensor/golden/print.jsonl: tensors with the text that PyTorch prints for them, one JSON object a line.

A case holds what rebuilds the tensor (dtype, sizes, strides, offset and the storage's bytes as hex, or "arange" for
0, 1, 2, ...), the print options and default dtype where they are not the usual ones, and PyTorch's text.

    python tools/golden/print.py
"""

import json
import pathlib

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "tensor" / "golden" / "print.jsonl"
INF, NAN = float("inf"), float("nan")
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
FLOAT8 = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu]
INTS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64]
cases = []


def storage_hex(t):
    raw = torch.empty(0, dtype=torch.uint8).set_(t.detach().untyped_storage())
    return bytes(raw.tolist()).hex()


def add(t, arange=False, default=None, **options):
    if default:
        torch.set_default_dtype(default)
    with torch._tensor_str.printoptions(**options):
        text = repr(t)
    torch.set_default_dtype(torch.float32)
    case = {"dtype": str(t.dtype).removeprefix("torch."), "sizes": list(t.shape), "strides": list(t.stride())}
    case["offset"] = t.storage_offset()
    kind = "fake" if "FakeTensor" in type(t).__name__ else t.device.type
    if kind != "cpu":
        case["kind"] = kind
        if kind == "fake":
            case["device"] = str(t.device)
    else:
        case["data"] = "arange" if arange else storage_hex(t)
        case["numel"] = t.untyped_storage().nbytes() // t.element_size()
    if t.requires_grad:
        case["requires_grad"] = True
    if options:
        profile = options.pop("profile", None)
        if profile == "full":
            options["threshold"] = 2**62
        case["options"] = options
    if default:
        case["default"] = str(default).removeprefix("torch.")
    case["text"] = text
    cases.append(case)


def arange(n, dtype=torch.float32):
    return torch.arange(n).to(dtype)


generator = torch.Generator().manual_seed(20260)


def randn(*sizes, dtype=torch.float32):
    return torch.randn(*sizes, generator=generator, dtype=torch.float64).to(dtype)


# Scalars and empty tensors of every dtype.
for dtype in INTS + FLOATS + FLOAT8 + [torch.bool, torch.complex64, torch.complex128]:
    add(torch.tensor(1).to(dtype))
    add(torch.ones(3).to(dtype))
    add(torch.empty(0, dtype=dtype))
    add(torch.empty(0, 3, dtype=dtype))
    add(torch.empty(2, 0, 3, dtype=dtype, device="meta"))
for shape in [(), (3,), (0,), (2, 3), (4, 1, 5)]:
    add(torch.empty(shape, device="meta"))
    with FakeTensorMode():
        add(torch.empty(shape))
        add(torch.empty(shape, dtype=torch.int64))
        add(torch.empty(shape, dtype=torch.bfloat16, device="cuda"))
add(torch.empty(2, 3, requires_grad=True, device="meta"))

# Notation: whole numbers, fractions, scientific, special values.
sets = [
    [0.0], [-0.0], [0.0, -0.0], [1.0, 2.0], [1.5], [NAN], [INF], [-INF], [NAN, INF, -INF], [0.0, NAN], [1.0, NAN, -INF],
    [1.5, NAN, INF, -INF], [1e-3, 1.0], [1e-3, 1.01], [1e-4, 1e-3], [9.9e-5, 1e-3], [1e8, 1.0], [1e8], [1.1e8], [99999999.0],
    [1000.0, 1.0], [1001.0, 1.0], [1000.5, 1.0], [1001.5, 1.0], [-1.0, 2.5, -300.125], [0.1, 0.2, 0.3], [0.99995, 0.99994],
    [2.5, 3.5, 4.5], [0.00005, 0.5], [123456.0, 654321.0], [123456.7, 0.0], [1e-45], [3.4e38], [1e300, 1e-300], [65504.0],
    [5e-324], [1e10, NAN, INF], [1e-10, -INF, 0.0], [100000.0, 5.0, 0.0], [12345678.0, 12345678.5], [-1e-5, 1e-5],
    [1 / 3] * 20, [1e-6 * i for i in range(12)], [float(i) for i in range(40)], [i + 0.25 for i in range(40)],
]
for values in sets:
    for dtype in FLOATS:
        add(torch.tensor(values, dtype=torch.float64).to(dtype))
for values in sets[:30]:
    add(torch.tensor(values, dtype=torch.float64).to(torch.float8_e4m3fn))
    add(torch.tensor(values, dtype=torch.float64).to(torch.float8_e5m2))
for dtype in FLOAT8:
    bits = torch.arange(256, dtype=torch.uint8)
    add(bits.view(dtype))
    for first in range(0, 256, 32):
        add(bits[first : first + 32].clone().view(dtype))
    add(torch.tensor([127, 128, 129], dtype=torch.uint8).view(dtype))
    add(torch.tensor([0, 1, 126], dtype=torch.uint8).view(dtype))
    add(torch.tensor([255], dtype=torch.uint8).view(dtype))
    add(torch.tensor(0, dtype=torch.uint8).view(dtype))

# Integers and booleans.
for dtype in INTS:
    info = torch.iinfo(dtype)
    add(torch.tensor([info.min, info.max], dtype=dtype))
    add(torch.tensor([0, 7, 100], dtype=dtype))
    add(arange(30, dtype))
    add(arange(12, dtype).view(3, 4))
add(torch.tensor([True, False]))
add(torch.tensor([[True, True], [False, True]]))
add(torch.tensor([False, False]))
add(torch.arange(50) % 3 == 0)

# Complex numbers.
for dtype in [torch.complex64, torch.complex128]:
    add(torch.tensor(1 + 2j, dtype=dtype))
    add(torch.tensor(1.5 - 2j, dtype=dtype))
    add(torch.tensor([complex(0.0, -0.0), complex(-0.0, 0.0)], dtype=dtype))
    add(torch.tensor([complex(NAN, 1), complex(1, NAN), complex(-INF, INF)], dtype=dtype))
    add(torch.tensor([1 + 2j, 3.5 - 100j, 1e-5 + 1e9j], dtype=dtype))
    add(torch.complex(randn(3, 5, dtype=torch.float64), randn(3, 5, dtype=torch.float64)).to(dtype))
    add(torch.complex(arange(30, torch.float64), -arange(30, torch.float64)).to(dtype))
    add(torch.complex(randn(40, dtype=torch.float64), randn(40, dtype=torch.float64)).to(dtype), threshold=10)

# Shapes, line breaks, summaries.
for shape in [(1,), (1, 1), (2, 3), (3, 1), (1, 1, 1, 1), (2, 2, 2), (2, 3, 4), (2, 1, 2, 2), (1, 2, 1, 3, 2), (3, 20), (30,)]:
    add(randn(*shape))
    add(torch.arange(torch.Size(shape).numel()).view(shape))
for n in [1000, 1001, 5000]:
    add(arange(n), arange=True)
    add(arange(n, torch.int64), arange=True)
for shape in [(40, 40), (7, 200), (6, 200), (200, 6), (200, 7), (2, 3, 300), (10, 11, 12), (1, 1200), (1200, 1), (9, 8, 7, 6)]:
    add(arange(torch.Size(shape).numel()).view(shape), arange=True)
    add(arange(torch.Size(shape).numel(), torch.int32).view(shape), arange=True)
for threshold in [0, 5, 100]:
    for edgeitems in [0, 1, 2, 5]:
        for shape in [(), (6,), (12,), (5, 5), (3, 4, 5)]:
            add(arange(torch.Size(shape).numel()).view(shape) / 4, threshold=threshold, edgeitems=edgeitems)
            add(arange(torch.Size(shape).numel(), torch.int16).view(shape), threshold=threshold, edgeitems=edgeitems)
for linewidth in [0, 1, 10, 20, 40, 79, 81, 200]:
    add(randn(3, 9), linewidth=linewidth)
    add(randn(9, dtype=torch.float64), linewidth=linewidth)
    add(arange(9, torch.uint8), linewidth=linewidth)
for precision in [0, 1, 2, 8, 17, 30]:
    for sci_mode in [None, True, False]:
        add(randn(4) * 100, precision=precision, sci_mode=sci_mode)
        add(torch.tensor([1.0, 2.0, 1e9]), precision=precision, sci_mode=sci_mode)
        add(torch.tensor([0.0, NAN, INF]), precision=precision, sci_mode=sci_mode)
        add(torch.tensor([1e-7, NAN, -INF, 2.5], dtype=torch.float16), precision=precision, sci_mode=sci_mode)
add(randn(20, 3), profile="short", precision=2, edgeitems=2)
add(arange(1100), arange=True, profile="full")

# The dtype suffix against the width of the last line.
for n in range(1, 24):
    add(randn(n, dtype=torch.float64))
    add(arange(n, torch.int32))
    add(torch.randn(n, generator=generator).requires_grad_())
    add(torch.randn(n, generator=generator, dtype=torch.float64).requires_grad_())
for default in [torch.float64, torch.float16, torch.bfloat16]:
    for dtype in [torch.float32, torch.float64, torch.float16, torch.complex64, torch.complex128, torch.int64, torch.bool]:
        add(torch.ones(2).to(dtype), default=default)
        add(torch.empty(0, dtype=dtype), default=default)
        add(torch.empty(2, dtype=dtype, device="meta"), default=default)

# Strides and offsets.
base = randn(6, 8)
for view in [base.t(), base[1:, ::2], base[:, 3], base[2], base[::3, ::3].t(), base[1, 1], base[5:, 7:], base[6:]]:
    add(view)
add(torch.tensor([1.0, 2.0]).expand(3, 2))
add(torch.tensor(7, dtype=torch.int8).expand(2, 2))
add(arange(48, torch.int64).view(2, 3, 8).permute(2, 0, 1))
add(torch.arange(1600.0).view(40, 40).t(), arange=True)
add(arange(4000, torch.int64).view(40, 100)[3:, ::2], arange=True)
add(torch.complex(randn(4, 4), randn(4, 4)).t())
add(torch.tensor([[True, False], [True, True]]).t())

# Values at random.
for i in range(80):
    dtype = FLOATS[i % 4]
    scale = 10.0 ** float(torch.randint(-8, 9, (1,), generator=generator))
    shape = torch.randint(1, 6, (int(torch.randint(0, 4, (1,), generator=generator)),), generator=generator).tolist()
    add((randn(*shape, dtype=torch.float64) * scale).to(dtype) if shape else (randn(1, dtype=torch.float64) * scale).to(dtype)[0])

OUT.parent.mkdir(parents=True, exist_ok=True)
with OUT.open("w", encoding="utf-8") as f:
    for case in cases:
        f.write(json.dumps(case) + "\n")
print(f"{len(cases)} cases, {OUT.stat().st_size} bytes, PyTorch {torch.__version__}")
