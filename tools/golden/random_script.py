"""Runs a script of random calls on PyTorch (the format is in tests/kernel/random_support.h) and makes such scripts."""
import random as stdlib_random

import torch


def numbers(text):
    return [] if text == "-" else [int(x) for x in text.split("x")]


def word(values):
    return "x".join(str(v) for v in values) if values else "-"


def contiguous(sizes):
    strides, step = [], 1
    for s in reversed(sizes):
        strides.insert(0, step)
        step *= max(s, 1)
    return strides


def buffer(dtype, sizes, strides):
    n = 0 if 0 in sizes else 1 + sum((s - 1) * t for s, t in zip(sizes, strides))
    flat = torch.zeros(n, dtype=dtype)
    return flat, flat.as_strided(sizes, strides)


def weights(words):
    dtype, sizes, strides = getattr(torch, words[0]), numbers(words[1]), numbers(words[2])
    flat, view = buffer(dtype, sizes, strides)
    flat.copy_((torch.arange(flat.numel()) * 37 % 65) / 64.0)
    return view


def raw(tensor):
    return bytes(tensor.contiguous().view(torch.uint8).numpy()) if tensor.numel() else b""


def run(lines):
    """The bytes of every result, in order: [(line, bytes)]."""
    g = torch.Generator()
    results = []
    for line in lines:
        words = line.split()
        op = words[0]
        if op == "seed":
            g.manual_seed(int(words[1]))
            continue
        if op == "load":
            g.set_state(torch.tensor(list(bytes.fromhex(words[1])), dtype=torch.uint8))
            continue
        if op == "state":
            results.append((line, raw(g.get_state())))
            continue
        dtype = getattr(torch, "bool" if words[1] == "bool" else words[1])
        flat, out = buffer(dtype, numbers(words[2]), numbers(words[3]))
        args = words[4:]
        if op in ("uniform", "normal", "log_normal", "cauchy"):
            getattr(out, op + "_")(float(args[0]), float(args[1]), generator=g)
        elif op in ("exponential", "geometric"):
            getattr(out, op + "_")(float(args[0]), generator=g)
        elif op == "bernoulli":
            # On some machines PyTorch draws a scalar p with another library; a tensor of them it never does.
            out.bernoulli_(torch.tensor(float(args[0]), dtype=torch.float64), generator=g)
        elif op == "dropout":
            keep = 1.0 - float(args[0])
            out.bernoulli_(torch.tensor(keep, dtype=torch.float64), generator=g).div_(keep)
        elif op == "bernoulli_p":
            out.bernoulli_(weights(args), generator=g)
        elif op == "multinomial":
            w = weights(args[1:])
            n = numbers(words[2])[-1]
            out.copy_(torch.multinomial(w, n, bool(int(args[0])), generator=g))
        elif op == "random":
            out.random_(generator=g)
        elif op == "random_from_to":
            out.random_(int(args[0]), None if args[1] == "none" else int(args[1]), generator=g)
        elif op == "randperm":
            torch.randperm(out.numel(), generator=g, out=out)
        else:
            raise ValueError(line)
        results.append((line, raw(flat)))
    return results


FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
INT_RANGE = {"bool": (0, 1), "uint8": (0, 255), "int8": (-128, 127), "int16": (-2**15, 2**15 - 1),
             "int32": (-2**31, 2**31 - 1), "int64": (-2**63, 2**63 - 1), "uint16": (0, 2**16 - 1),
             "uint32": (0, 2**32 - 1), "uint64": (0, 2**63 - 1)}
EXACT = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def layout(rng, numel):
    """Sizes and strides of an output with about `numel` elements: plain, transposed, stepped, padded, channels last."""
    kind = rng.randrange(6)
    if kind <= 1 or numel < 2:
        sizes = rng.choice([[numel], [1, numel], [numel, 1]])
        return sizes, contiguous(sizes)
    if kind == 2:
        return [numel], [rng.randrange(2, 4)]
    rows = rng.randrange(1, min(numel, 9) + 1)
    columns = max(numel // rows, 1)
    if kind == 3:
        return [rows, columns], [1, rows]
    if kind == 4:
        return [rows, columns], rng.choice([[columns + 3, 1], [2, 2 * rows], [1, rows + 2]])
    sizes = [2, rows, max(columns // 2, 1), 1]
    n, c, h, w = sizes
    return sizes, rng.choice([[c * h * w, 1, w * c, c], [1, 2, 2 * c, 0], contiguous(sizes)])


def call(rng, numel, complexes=False):
    op = rng.choice(["uniform", "uniform", "normal", "normal", "normal", "log_normal", "cauchy", "exponential",
                     "geometric", "bernoulli", "bernoulli_p", "dropout", "random", "random_from_to", "random_from_to",
                     "randperm", "multinomial"])
    sizes, strides = layout(rng, numel)
    tail = f"{word(sizes)} {word(strides)}"
    floating = rng.choice(FLOATS)
    if complexes and op in ("uniform", "normal") and rng.random() < 0.15:
        floating = rng.choice(["complex64", "complex128"])
    any_dtype = rng.choice(FLOATS + INTEGERS + ["bool"])
    if op == "uniform":
        low, high = rng.choice([(0, 1), (0, 1), (-1, 1), (0.1, 0.7), (-3.7, 12.9), (2, 2), (-30000, 1234.5)])
        return f"uniform {floating} {tail} {low} {high}"
    if op == "normal":
        mean, std = rng.choice([(0, 1), (0, 1), (0, 0.02), (1.5, 2.25), (-3.1, 0.7), (0.3, 0)])
        return f"normal {floating} {tail} {mean} {std}"
    if op == "log_normal":
        return f"log_normal {floating} {tail} {rng.choice(['1 2', '0 0.5', '-2 0.1'])}".replace("complex", "float")
    floating = floating.replace("complex", "float")
    if op == "cauchy":
        return f"cauchy {floating} {tail} {rng.choice(['0 1', '2.5 0.3'])}"
    if op == "exponential":
        return f"exponential {floating} {tail} {rng.choice(['1', '0.3', '7.5'])}"
    if op == "geometric":
        return f"geometric {rng.choice(FLOATS + INTEGERS)} {tail} {rng.choice(['0.5', '0.05', '0.9', '0.001'])}"
    if op == "bernoulli":
        return f"bernoulli {any_dtype} {tail} {rng.choice(['0', '0.1', '0.5', '0.9', '1'])}"
    if op == "dropout":
        return f"dropout {floating} {tail} {rng.choice(['0', '0.1', '0.5', '0.9'])}"
    if op == "bernoulli_p":
        p_sizes = list(sizes)
        if rng.random() < 0.4:
            p_sizes = [1 if rng.random() < 0.5 else s for s in p_sizes]
        if rng.random() < 0.3:
            p_sizes = p_sizes[1:]
        p_strides = contiguous(p_sizes)
        if rng.random() < 0.4:
            p_strides = contiguous(p_sizes[::-1])[::-1]
        return f"bernoulli_p {any_dtype} {tail} {rng.choice(FLOATS)} {word(p_sizes)} {word(p_strides)}"
    if op == "random":
        return f"random {any_dtype} {tail}"
    if op == "randperm":
        dtype = rng.choice(FLOATS + INTEGERS)
        if dtype in ("uint8", "int8") or dtype == "bfloat16":
            numel = min(numel, 128)
        if dtype == "float16":
            numel = min(numel, 2000)
        return f"randperm {dtype} {numel} 1"
    if op == "multinomial":
        replacement = rng.randrange(2)
        categories = rng.randrange(3, 200)
        n = rng.randrange(1, categories + (50 if replacement else 1))
        if rng.random() < 0.3:
            n = 1
        if rng.random() < 0.5:
            return f"multinomial int64 {n} 1 {replacement} {rng.choice(FLOATS)} {categories} {rng.choice([1, 2])}"
        rows = rng.randrange(1, 5)
        w_strides = rng.choice([[categories, 1], [1, rows], [categories + 1, 1], [2, 2 * rows]])
        return (f"multinomial int64 {rows}x{n} {n}x1 {replacement} {rng.choice(FLOATS)} {rows}x{categories} "
                f"{word(w_strides)}")
    dtype = rng.choice(FLOATS + INTEGERS + ["bool", "uint16", "uint32", "uint64", "int64", "int64"])
    if dtype in EXACT:
        bound = 1 << EXACT[dtype]
        if rng.random() < 0.2:
            return f"random_from_to {dtype} {tail} {rng.randrange(-bound, bound)} none"
        if dtype == "float16":
            low, high = sorted(rng.sample(range(-65504, 65504), 2))
        else:
            low, high = sorted(rng.randrange(-2**rng.randrange(1, 62), 2**rng.randrange(1, 62)) for _ in range(2))
        high = max(high, low + max(4, abs(low) // 32))
        return f"random_from_to {dtype} {tail} {low} {high}"
    lowest, largest = INT_RANGE[dtype]
    if dtype == "int64" and rng.random() < 0.2:
        return f"random_from_to {dtype} {tail} {lowest} none"
    if dtype != "uint64" and rng.random() < 0.2:
        return f"random_from_to {dtype} {tail} {rng.randint(max(lowest, -2**63 + 1), largest)} none"
    low = rng.choice([0, 0, rng.randint(lowest, largest), lowest])
    high = rng.choice([largest, rng.randint(low, largest), min(largest, low + rng.randrange(1, 2**33))])
    high = max(high, low + 1) if low < largest else high
    if high <= low:
        low = high - 1
    return f"random_from_to {dtype} {tail} {low} {high}"


def make(seed, calls, numels, complexes=True):
    """`calls` random calls; the stream is carried over, and now and then restarted, saved or loaded."""
    rng = stdlib_random.Random(seed)
    lines = [f"seed {rng.randrange(2**64)}"]
    while calls > 0:
        lines.append(call(rng, rng.choice(numels), complexes))
        calls -= 1
        if rng.random() < 0.03:
            lines.append(f"seed {rng.choice([0, 1, 42, 2**32, 2**63 + 5, 2**64 - 1, rng.randrange(2**64)])}")
    return lines
