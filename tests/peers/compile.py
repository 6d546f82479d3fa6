#!/usr/bin/env python3
"""compile(), same() and .npz against PyTorch and NumPy, live: python tests/peers/compile.py [--all]

Scenarios of calls: how many graphs each side has made after each call. Nested values: same() of both. The structured trace of
Calque's captures: the tlparse program reads it without a complaint, and its pages show the graphs, guards, breaks and metrics."""

import glob
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch._dynamo
from torch._dynamo.utils import same

PROGRAM = os.path.join(os.environ["CALQUE_BUILD"], "bin", "compile_peer")
failed = []
passed = 0

# Where Calque means to differ: the graphs after each call, and why.
DIFFERS = {
    "one break": "PyTorch captures the function's rest as a function of its own, guarded by the answer; both make the part in "
                 "front once and one part for each answer",
}


def check(name, ok, text=""):
    global passed
    if ok:
        passed += 1
    else:
        failed.append(name)
        print(f"FAILED {name}: {text}")


class Counter:
    def __init__(self):
        self.graphs = 0

    def __call__(self, gm, inputs):
        self.graphs += 1
        return gm.forward


def counted(fn, calls, around=None, **options):
    torch._dynamo.reset()
    counter = Counter()
    f = torch.compile(fn, backend=counter, **options)
    out = []
    for call in calls:
        if around:
            with around(call):
                f(torch.ones(3))
        else:
            f(*call())
        out.append(counter.graphs)
    return out


def marked(dims):
    x = torch.ones(3, 4, 5)
    for d in dims:
        torch._dynamo.mark_dynamic(x, d)
    return (x,)


def branching(x):
    y = x + 1
    if (y.sum() > 0).item():
        return y.sin()
    return y.cos()


def expected_counts():
    growing = [(3, 4), (4, 4), (5, 4), (5, 6), (7, 8), (1, 8), (9, 1), (6,)]
    ones = [lambda s=s: (torch.ones(s),) for s in growing]
    plus = lambda x: x.sin() + 1  # noqa: E731
    a, b = torch.ones(3), torch.ones(3)
    return {
        "sizes automatic": counted(plus, ones),
        "sizes static": counted(plus, ones, dynamic=False),
        "sizes dynamic": counted(plus, ones, dynamic=True),
        "square then not": counted(plus, [lambda s=s: (torch.ones(s),) for s in [(4, 4), (5, 5), (4, 5), (6, 7)]], dynamic=True),
        "dtypes": counted(lambda x: x + 1, [lambda d=d: (torch.ones(3, dtype=d),) for d in
                                            (torch.float32, torch.float64, torch.int64, torch.float32, torch.int64)]),
        "strides": counted(lambda x: x + 1, [lambda: (torch.ones(4, 4),), lambda: (torch.ones(4, 4).t(),),
                                             lambda: (torch.ones(4, 4),), lambda: (torch.ones(8, 4)[::2],),
                                             lambda: (torch.ones(5, 4)[1:],)]),
        "integers": counted(lambda x, n: x * n, [lambda n=n: (torch.ones(3), n) for n in (5, 5, 6, 7, 1, 0, -3)]),
        "strings": counted(lambda x, how: x.sin() if how == "sin" else x.cos(),
                           [lambda h=h: (torch.ones(3), h) for h in ("sin", "cos", "sin", "tan")]),
        "lists": counted(lambda xs: torch.stack(xs).sum(), [lambda n=n: ([torch.ones(3) for _ in range(n)],) for n in (2, 3, 2, 4)]),
        "aliases": counted(lambda x, y: x * y, [lambda p=p: p for p in ((a, b), (b, a), (a, a), (b, b), (a, b))]),
        "gradient mode": counted(lambda x: x + 1, (True, False, True, False), torch.set_grad_enabled),
        "requires_grad": counted(lambda x: x + 1, [lambda r=r: (torch.ones(3, requires_grad=r),) for r in (False, True, False)]),
        "marks": counted(lambda x: x.sin(), [lambda m=m: marked(m) for m in ([0], [], [1], [0], [0, 1], [1])]),
        "size questions": counted(lambda x: x + 1 if x.shape[0] < 6 else x - 1,
                                  [lambda n=n: (torch.ones(n),) for n in (3, 4, 7, 8, 5, 2)], dynamic=True),
        "one break": counted(branching, [lambda v=v: (torch.full((3,), v),) for v in (1.0, 2.0, -5.0, -6.0, 1.0)]),
    }


def compare_counts():
    found = json.loads(subprocess.run([PROGRAM, "counts"], check=True, capture_output=True, text=True).stdout)
    expected = expected_counts()
    check("scenarios", sorted(found) == sorted(expected), f"{sorted(found)} {sorted(expected)}")
    for name, counts in expected.items():
        if name in DIFFERS and found[name][-1] == counts[-1]:
            check(name, True)
            continue
        check(name, found[name] == counts, f"graphs after each call: Calque {found[name]}, PyTorch {counts}")


# ---- same ---------------------------------------------------------------------------------------------------------


def tree(rng, depth):
    kind = rng.choice(["tensor"] * 4 + ["float", "int", "bool", "str", "none"] + (["list", "tuple", "dict"] * 2 if depth else []))
    if kind == "tensor":
        dtype = rng.choice(["float32", "float32", "float64", "int64", "bool"])
        n = rng.choice([1, 3, 20, 600, 1500])
        if dtype in ("int64", "bool"):
            return ["tensor", dtype, [rng.randrange(2) for _ in range(n)]]
        return ["tensor", dtype, [round(rng.gauss(0, 1), 3) for _ in range(n)]]
    if kind in ("list", "tuple"):
        return [kind, [tree(rng, depth - 1) for _ in range(rng.randrange(1, 4))]]
    if kind == "dict":
        return ["dict", {rng.choice("abcdef"): tree(rng, depth - 1) for _ in range(rng.randrange(1, 4))}]
    return {"float": ["float", round(rng.gauss(0, 1), 3)], "int": ["int", rng.randrange(5)], "bool": ["bool", rng.random() < 0.5],
            "str": ["str", rng.choice(["x", "y"])], "none": None}[kind]


def shaken(rng, t, size, odds):
    """The same tree with numbers a little off, now and then something else."""
    if t is None:
        return None
    kind = t[0]
    if kind == "tensor" and t[1].startswith("float"):
        return ["tensor", t[1], [v + rng.gauss(0, size) for v in t[2]]]
    if kind in ("list", "tuple"):
        items = [shaken(rng, item, size, odds) for item in t[1]]
        if rng.random() < odds:
            items.append(["int", 1])
        return [rng.choice(["list", "tuple"]), items]
    if kind == "dict":
        return ["dict", {k: shaken(rng, v, size, odds) for k, v in t[1].items()}]
    if kind == "int" and rng.random() < odds:
        return ["int", t[1] + 1]
    if kind == "float":
        return ["float", t[1] + rng.gauss(0, size)]
    return t


def as_double(t):
    if t is None:
        return None
    if t[0] == "tensor" and t[1].startswith("float"):
        return ["tensor", "float64", t[2]]
    if t[0] in ("list", "tuple"):
        return [t[0], [as_double(item) for item in t[1]]]
    if t[0] == "dict":
        return ["dict", {k: as_double(v) for k, v in t[1].items()}]
    return t


def to_python(t):
    if t is None:
        return None
    if t[0] == "tensor":
        return torch.tensor(t[2], dtype=torch.float64).to(getattr(torch, t[1]))
    if t[0] in ("list", "tuple"):
        return (list if t[0] == "list" else tuple)(to_python(item) for item in t[1])
    if t[0] == "dict":
        return {k: to_python(v) for k, v in t[1].items()}
    return t[1]


def python_verdict(case):
    quiet = lambda *args, **kwargs: None  # noqa: E731
    reference = to_python(case["reference"])
    try:
        return "same" if same(to_python(case["a"]), to_python(case["b"]), reference, log_error=quiet, **case["options"]) else "differ"
    except (AssertionError, RuntimeError, TypeError, KeyError):
        return "refused"


def compare_same(count):
    rng = random.Random(7)
    cases = []
    for _ in range(count):
        a = tree(rng, 3)
        options = rng.choice([{}, {}, {"tol": 1e-3}, {"equal_nan": True}, {"cos_similarity": True}, {"exact_dtype": False},
                              {"use_larger_multiplier_for_smaller_tensor": True}, {"force_max_multiplier": True}])
        noisy = shaken(rng, a, rng.choice([1e-6, 1e-4, 1e-3]), 0)
        b = shaken(rng, a, rng.choice([0, 1e-6, 1e-4, 1e-3, 1e-2]), 0.05)
        with_reference = rng.random() < 0.5
        cases.append({"a": noisy if with_reference else a, "b": b, "reference": as_double(a) if with_reference else None,
                      "options": options})
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    found = subprocess.run([PROGRAM, "same"], input=lines, check=True, capture_output=True, text=True).stdout.split()
    verdicts = {}
    for case, got in zip(cases, found, strict=True):
        want = python_verdict(case)
        verdicts[want] = verdicts.get(want, 0) + 1
        check("same", got == want, f"Calque {got}, PyTorch {want}: {json.dumps(case)[:600]}")
    print(f"same: {verdicts}")


# ---- the structured trace -------------------------------------------------------------------------------------------


def traced(what):
    """{page: its text} that tlparse makes of a run of the program; none without tlparse."""
    tlparse = shutil.which("tlparse", path=os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", ""))
    check("tlparse is installed", tlparse is not None, "tools/peers/requirements.txt names it")
    if not tlparse:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([PROGRAM, what], check=True, capture_output=True, env={**os.environ, "CALQUE_TRACE": folder})
        (log,) = glob.glob(os.path.join(folder, "dedicated_log_torch_trace_*.log"))
        out = os.path.join(folder, "pages")
        ran = subprocess.run([tlparse, log, "-o", out, "--strict", "--no-browser"], capture_output=True, text=True)
        check(f"tlparse reads the trace of {what}", ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:])
        pages = [p for p in glob.glob(os.path.join(out, "**", "*"), recursive=True) if os.path.isfile(p)]
        return {os.path.relpath(p, out): open(p).read() for p in pages}


def compare_trace():
    pages = traced("counts")
    for part in ("dynamo_output_graph", "dynamo_guards", "compilation_metrics", "calque_part", "dynamo_graph_break_reason",
                 "recompile_reasons"):
        check(f"tlparse shows {part}", any(part in n for n in pages), f"{list(pages)[:40]}")
    index = pages.get("index.html", "")
    check("tlparse lists the compilations", "compile_peer.cpp" in index and "[0/0]" in index, index[:2000])
    graphs = [text for name, text in pages.items() if "dynamo_output_graph" in name]
    check("tlparse shows the graphs' code", any("aten.sin" in g for g in graphs), f"{graphs[:1]}")
    pages = traced("train")
    for part in ("aot_joint_graph", "aot_forward_graph", "aot_backward_graph", "bwd_compilation_metrics"):
        check(f"tlparse shows {part}", any(part in n for n in pages), f"{list(pages)[:40]}")
    backward = "".join(text for name, text in pages.items() if "aot_backward_graph" in name)
    check("tlparse shows the backward pass", "tangents_1" in backward and "aten.cos" in backward, backward[:500])


# ---- .npz ------------------------------------------------------------------------------------------------------------


def compare_npz():
    arrays = {"f": np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32), "scalar": np.array(2.5), "none": np.zeros((2, 0)),
              "i": np.arange(-5, 5), "b": np.array([True, False]), "half": np.ones(3, np.float16), "c": np.ones(2, np.complex64),
              "bytes": np.arange(4, dtype=np.uint8), "deep/name": np.asfortranarray(np.arange(6.0).reshape(2, 3))}
    with tempfile.TemporaryDirectory() as folder:
        for save in (np.savez, np.savez_compressed):
            given, written = os.path.join(folder, "in.npz"), os.path.join(folder, "out.npz")
            save(given, **arrays)
            ran = subprocess.run([PROGRAM, "npz", given, written], capture_output=True, text=True)
            check(f"npz {save.__name__}", ran.returncode == 0, ran.stderr)
            read = dict(np.load(written))
            check(f"npz {save.__name__} names", sorted(read) == sorted(arrays), str(sorted(read)))
            for name, array in arrays.items():
                same_array = name in read and read[name].dtype == array.dtype and np.array_equal(read[name], array)
                check(f"npz {save.__name__} {name}", same_array, str(read.get(name)))
        np.savez(os.path.join(folder, "objects.npz"), o=np.array([{}], dtype=object))
        ran = subprocess.run([PROGRAM, "npz", os.path.join(folder, "objects.npz"), written], capture_output=True, text=True)
        check("npz of objects is refused", ran.returncode == 2 and "objects.npz" in ran.stderr, ran.stderr)


def main():
    compare_npz()
    compare_counts()
    compare_same(4000 if "--all" in sys.argv else 600)
    compare_trace()
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
