#!/usr/bin/env python3
"""The core decompositions against PyTorch's, live: python tests/peers/decompositions.py [--all] [--only OPERATOR] [--show]

The tables must have the same operators, as far as Calque has them. For each operator of the table PyTorch makes calls
(tools/opcheck); both sides trace each call with static and with symbolic sizes, functionalised and decomposed as
run_decompositions() does. Compared are the nodes in their order with all their arguments, the sizes, strides and dtypes of
every node, guards, and what the graphs compute. Calls that PyTorch refuses must be refused. Operators whose graphs are known
to differ are in tests/trace/decomposition_gaps.tsv with the share of their traces that may, and what differs. --all: in-place and out= forms, the composite operators
of the default table (by that table, as run_decompositions() goes by it), and more calls of each.
"""

import argparse
import collections
import contextlib
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings

import torch
import torch.utils._pytree as pytree
from torch._decomp import _core_aten_decompositions_post_autograd, core_aten_decompositions
from torch._dispatch.python import enable_python_dispatcher
from torch._functorch._aot_autograd.functional_utils import from_fun, to_fun
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.export.exported_program import _override_composite_implicit_decomp, _split_decomp_table_to_cia_and_python_decomp, default_decompositions
from torch.fx.experimental.proxy_tensor import make_fx

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tools", "opcheck")]
import calls as opcalls  # noqa: E402
import capture  # noqa: E402
import decompositions_cases  # noqa: E402

TABLE = _core_aten_decompositions_post_autograd()
# Composite for exports alone, in the middle of them: only a whole export shows what becomes of these.
BY_EXPORT = {"aten::upsample_nearest1d.vec", "aten::upsample_nearest3d.vec", "aten::_upsample_nearest_exact1d.vec",
             "aten::_upsample_nearest_exact2d.vec", "aten::_upsample_nearest_exact3d.vec", "aten::upsample_linear1d.vec",
             "aten::upsample_trilinear3d.vec", "aten::upsample_bicubic2d.vec", "aten::rms_norm"}
COMPOSITE, REST = _split_decomp_table_to_cia_and_python_decomp(default_decompositions())


def overload(name):
    """The operator that "aten::add.Tensor" names."""
    space, rest = name.split("::")
    base, _, which = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, space), base), which or "default")


# ---- cases ------------------------------------------------------------------------------------------------------------


class Case:
    def __init__(self, entry, blob):
        self.entry = entry
        self.op = overload(entry["op"])
        self.storages = [blob[o:o + n] for o, n in entry["storages"]]

    def arguments(self):
        storages = [torch.frombuffer(bytearray(b), dtype=torch.uint8).untyped_storage() if b else torch.UntypedStorage(0) for b in self.storages]

        def value(v):
            if isinstance(v, list):
                return [value(x) for x in v]
            if not isinstance(v, dict):
                return v
            if "t" in v:
                return torch.empty(0, dtype=getattr(torch, v["dtype"])).set_(storages[v["t"]], v["offset"], v["sizes"], v["strides"])
            if "f" in v:
                return float(v["f"])
            if "c" in v:
                return complex(*v["c"])
            (kind, name), = v.items()
            return torch.device(name) if kind == "device" else getattr(torch, {"contiguous": "contiguous_format", "preserve": "preserve_format"}.get(name, name))

        return [value(v) for v in self.entry["args"]], {k: value(v) for k, v in sorted(self.entry["kwargs"].items())}

    def traceable(self):
        """Inputs of a graph do not share memory, and are dense."""
        args, kwargs = self.arguments()
        tensors = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        return "error" not in self.entry["expect"] and len({t.untyped_storage()._cdata for t in tensors}) == len(tensors)


def sample(cases, most):
    """As many of each operator, dtypes and kinds of variation taking turns."""
    by_op = {}
    for c in cases:
        args, kwargs = c.entry["args"], c.entry["kwargs"]
        dtype = next((v["dtype"] for v in [*args, *kwargs.values()] if isinstance(v, dict) and "t" in v), None)
        by_op.setdefault(c.entry["op"], {}).setdefault((dtype, c.entry["kind"]), []).append(c)
    out = []
    for groups in by_op.values():
        turns = [c for turn in itertools.zip_longest(*groups.values()) for c in turn if c is not None]
        out += itertools.islice((c for c in turns if c.traceable()), most)
    return out


def functionalized(f):
    """As torch.export functionalises: writes to inputs are one copy_ to each at the end."""

    def g(*inputs):
        with FunctionalTensorMode(pre_dispatch=False, export=True):
            wrapped = [to_fun(t) for t in inputs]
            out = f(*wrapped)
            results = pytree.tree_map_only(FunctionalTensor, from_fun, out)
            written = [(t, from_fun(w)) for t, w in zip(inputs, wrapped) if torch._functionalize_has_data_mutation(w.elem)]
        for target, new in written:
            target.copy_(new)
        return results

    return g


def traced(case, mode):
    args, kwargs = case.arguments()
    flat, spec = pytree.tree_flatten((args, kwargs))
    at = [k for k, v in enumerate(flat) if isinstance(v, torch.Tensor)]

    def call(*tensors):
        values = list(flat)
        for k, t in zip(at, tensors):
            values[k] = t
        a, kw = pytree.tree_unflatten(values, spec)
        return case.op(*a, **kw)

    inputs = [flat[k] for k in at]
    if case.entry["op"] in BY_EXPORT:
        with torch.no_grad():
            return torch.export.export(Call(call), tuple(inputs)).run_decompositions().graph_module, inputs
    with torch.no_grad(), enable_python_dispatcher():
        gm = make_fx(functionalized(call), decomposition_table=TABLE if case.op in TABLE else REST, tracing_mode=mode)(*inputs)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return gm, inputs


class Call(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *tensors):
        return self.function(*tensors)


def in_turn(cases):
    """Cases and modes; around those of composite operators, these are treated as run_decompositions() treats them."""

    def by_table(case):
        return case.op not in TABLE and case.entry["op"] not in BY_EXPORT

    for composite, group in itertools.groupby(sorted(cases, key=by_table), by_table):
        with _override_composite_implicit_decomp(COMPOSITE) if composite else contextlib.nullcontext():
            for case in group:
                yield from ((case, mode) for mode in ("fake", "symbolic") if mode == "fake" or case.entry["op"] not in BY_EXPORT)


# ---- comparison -------------------------------------------------------------------------------------------------------


def samples(form, inputs):
    out = {}
    for symbols, t in zip(form.inputs, inputs):
        for e, v in zip(symbols, t.shape):
            if hasattr(e, "free_symbols") and e.is_Symbol:
                out[form.names.of[e.name].name] = int(v)
    return [out]


def in_full(op, target, args, kwargs):
    return op, target, args, tuple(sorted(kwargs.items()))


def plain_geometry(v):
    """Strides that say something, and no offset: PyTorch's fake tensors do not keep to what its kernels give for the others."""
    if isinstance(v, tuple) and v[:1] == ("tensor",):
        _, dtype, sizes, strides, _ = v
        if any(s == 0 for s in sizes if isinstance(s, int)):
            return ("tensor", dtype, sizes)
        return ("tensor", dtype, sizes, tuple(0 if n == 1 and isinstance(n, int) else s for n, s in zip(sizes, strides)))
    return tuple(map(plain_geometry, v)) if isinstance(v, tuple) else v


def calls(form):
    """Without the arithmetic on sizes: arguments are compared by what it gives."""
    kept = [line for line in form.lines if line[0] != "call_function" or line[1].startswith(("aten", "prims", "operator.getitem")) and not isinstance(line[4], capture.Number)]
    return [line[:4] + (plain_geometry(line[4]),) for line in kept]


def same_values(found, expected, where="result"):
    if isinstance(expected, torch.Tensor) and expected.dtype.is_complex:
        return None
    if isinstance(expected, torch.Tensor) and isinstance(found, dict) and "tensor" in found:
        strides = [0 if n == 1 else k for n, k in zip(expected.shape, expected.stride())] if expected.numel() else []
        if found["tensor"] != str(expected.dtype)[6:] or found["sizes"] != list(expected.shape) or (
                expected.numel() and [0 if n == 1 else k for n, k in zip(found["sizes"], found["strides"])] != strides):
            return f"{where}: {found['tensor']}{found['sizes']} strides {found['strides']}, expected {str(expected.dtype)[6:]}{list(expected.shape)} strides {list(expected.stride())}"
        data = torch.tensor([capture.number_of(x) for x in found["data"]], dtype=torch.float64).reshape(expected.shape)
        wide = expected.double()
        if expected.is_floating_point():  # where one of the two overflows or is undefined, both are large
            odd = ~torch.isfinite(wide) | ~torch.isfinite(data) | (wide.abs() > 0.01 * torch.finfo(expected.dtype).max)
            data, wide = torch.where(odd, 0, data), torch.where(odd, 0, wide)
        try:
            torch.testing.assert_close(data.to(expected.dtype), wide.to(expected.dtype), equal_nan=True)
        except AssertionError as e:
            return f"{where}: " + str(e).split("\n")[0]
        return None
    if isinstance(expected, (list, tuple)):
        items = found.get("list", found.get("tuple")) if isinstance(found, dict) else None
        if items is None or len(items) != len(expected):
            return f"{where}: {len(expected)} results were expected"
        for k, (a, b) in enumerate(zip(items, expected)):
            if problem := same_values(a, b, f"{where}[{k}]"):
                return problem
        return None
    return capture.same_result(found, expected, where)


def compare(case, mode, answer, show):
    try:
        gm, inputs = traced(case, mode)
    except Exception as e:
        if "error" in answer:
            return "refused", []
        return "differs", [f"PyTorch refuses ({type(e).__name__}: {str(e).splitlines()[0][:200] if str(e) else ''}), Calque does not"]
    if "error" in answer:
        return "differs", [f"Calque refuses: {answer['error'][:400]}"]
    theirs, ours = capture.TorchForm(gm), capture.CalqueForm(answer["graph"])
    if show:
        capture.show(theirs, "PyTorch")
        capture.show(ours, "Calque")
    points, problems = samples(theirs, inputs), []
    for k, (a, b) in enumerate(itertools.zip_longest(calls(ours), calls(theirs))):
        if a is None or b is None or not capture.same(a, b, points):
            problems.append(f"call {k}:\n      Calque  {a}\n      PyTorch {b}")
            break
    if not problems and not capture.same(tuple(ours.leaves), tuple(theirs.leaves), points):
        problems.append(f"outputs:\n      Calque  {ours.leaves}\n      PyTorch {theirs.leaves}")
    if mode == "symbolic" and not problems:
        found, _ = capture.compare_guards(ours.knowledge(), theirs.knowledge(), points)
        found = [p for p in found if p.startswith("only Calque")]
        if found:
            problems.append("guards: " + "; ".join(found))
    random = any(torch.Tag.nondeterministic_seeded in n.target.tags for n in gm.graph.nodes if isinstance(n.target, torch._ops.OpOverload))
    empty = "empty" in str(case.op)
    if not random and not empty:
        with torch.no_grad():
            expected = gm(*inputs)
        if case.entry["op"] in BY_EXPORT:  # the results of a program, in a tuple
            expected, = expected
        if problem := same_values(answer["result"], expected):
            problems.append(problem)
    return "differs" if problems else "same", problems


# ---- the tables -------------------------------------------------------------------------------------------------------


def canonical(name):
    space, rest = name.split("::")
    return f"{space}.{rest}" if "." in rest else f"{space}.{rest}.default"


# The gradient of reflected borders is not taken apart yet; logit's is, in its out= form too.
NOT_YET = {f"aten.reflection_pad{d}d_backward.{form}" for d in (1, 2, 3) for form in ("default", "grad_input")} | {"aten.logit_backward.grad_input"}


def compare_tables(program):
    told = json.loads(subprocess.run([program, "--list"], check=True, capture_output=True, text=True).stdout)
    has = {canonical(n) for n in told["operators"]}
    failed = 0
    for what, torchs, ours in (("core decompositions", {str(o) for o in TABLE}, told["core"]),
                               ("default decompositions", {str(o) for o in core_aten_decompositions()}, told["default"])):
        mine = {canonical(n) for n in ours}
        missing, extra = sorted((torchs & has) - mine - NOT_YET), sorted(mine - torchs - NOT_YET)
        absent = sorted(torchs - has)
        print(f"{what}: PyTorch has {len(torchs)}, Calque {len(mine)}; {len(absent)} are of operators that Calque does not have")
        for names, text in ((missing, "Calque does not decompose"), (extra, "only Calque decomposes")):
            if names:
                failed += 1
                print(f"  {text}: {' '.join(names)}")
    return told, failed


def writes(name):
    return any(a.alias_info is not None and a.alias_info.is_write for a in overload(name)._schema.arguments)


def read_gaps():
    """{operator: the largest share of its traces that may differ}."""
    with open(os.path.join(ROOT, "tests", "trace", "decomposition_gaps.tsv")) as f:
        rows = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    return {op: float(share) for op, share, _ in rows}


def shares_exceeded(gaps, traces, different):
    """A line for each listed operator more of whose traces differ than its share, rounded up to whole traces."""
    return [f"{op}: {different[op]} of {traces[op]} traces differ, the share that may is {share}"
            for op, share in gaps.items() if different[op] > math.ceil(share * traces[op])]


def write_handmade(folder, names):
    out = opcalls.CaseFile(os.path.join(folder, "cases-hand"))
    for k, (name, args, kwargs) in enumerate(decompositions_cases.calls()):
        if name in names:
            out.write(opcalls.make_case(opcalls.Call(overload(name), args, kwargs), f"{name}/hand{k}", "meta"))
    out.close()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--all", action="store_true", help="more calls of each operator")
    p.add_argument("--only", help="operators, separated by commas: aten::silu")
    p.add_argument("--calls", type=int, help="of each operator, at most")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--keep", help="a folder for the cases; reused where it has some")
    p.add_argument("--show", action="store_true", help="both graphs")
    p.add_argument("--id", help="one case")
    p.add_argument("--strict", action="store_true", help="operators with known gaps too")
    args = p.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    capture.in_one_form = in_full  # factories too are compared with all they are given
    program = os.path.join(os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release")), "bin", "decompositions")
    told, bad_tables = compare_tables(program)
    names = [n for n in told["core"] if args.all or not writes(n)]
    if args.all:
        names += sorted({n for n in told["default"] if n not in told["core"]})
    if args.only:
        names = args.only.split(",")
    gaps = read_gaps()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or scratch
        os.makedirs(folder, exist_ok=True)
        start = time.time()
        if not any(f.startswith("cases") and f.endswith(".jsonl") for f in os.listdir(folder)):
            subprocess.run([sys.executable, os.path.join(ROOT, "tools", "opcheck", "make_cases.py"), "--out", folder, "--ops", ",".join(sorted(names)),
                            "--per-op", "12" if args.all else "3", "--seed", str(args.seed), "--what", "cases", "--jobs", str(os.cpu_count() or 2)],
                           check=True, env={**os.environ, "PYTHONHASHSEED": "0"}, stdout=subprocess.DEVNULL)
        write_handmade(folder, names)
        count, failures, covered = collections.Counter(), [], set()
        traces, different = collections.Counter(), collections.Counter()
        for file in sorted(f for f in os.listdir(folder) if f.startswith("cases") and f.endswith(".jsonl")):
            path = os.path.join(folder, file)
            with open(path[:-6] + ".bin", "rb") as f:
                blob = f.read()
            with open(path) as f:
                entries = [json.loads(line) for line in f]
            cases = [Case(e, blob) for e in entries]
            chosen = sample([c for c in cases if args.id in (None, c.entry["id"]) and (not args.only or c.entry["op"] in names)], args.calls or (12 if args.all else 2))
            some = os.path.join(scratch, "chosen.jsonl")
            with open(some, "w") as f:
                f.writelines(json.dumps(c.entry) + "\n" for c in chosen)
            with open(some[:-6] + ".bin", "wb") as f:
                f.write(blob)
            answers = os.path.join(scratch, "answers")
            subprocess.run([program, some, answers], check=True)
            with open(answers) as f:
                told = {(a["id"], a["mode"]): a for a in map(json.loads, f)}
            for c, mode in in_turn(chosen):
                if args.show:
                    print(c.entry["id"], mode)
                try:
                    outcome, problems = compare(c, mode, told[c.entry["id"], mode], args.show)
                except Exception:
                    outcome, problems = "differs", ["the comparison failed: " + traceback.format_exc(limit=-3)]
                traces[c.entry["op"]] += 1
                different[c.entry["op"]] += bool(problems)
                if problems and c.entry["op"] in gaps and not args.strict:
                    outcome, problems = "known", []
                count[outcome] += 1
                if outcome == "same":
                    covered.add(c.entry["op"])
                if problems:
                    failures.append(c.entry["op"])
                    print(f"DIFFERENT: {c.entry['id']} {mode} ({c.entry['kind']})")
                    for p in problems:
                        print("   ", p)
    by_op = collections.Counter(failures)
    beyond = shares_exceeded(gaps, traces, different)
    for line in beyond:
        print("GAP:", line)
    if args.strict:
        for op in sorted(gaps):
            print(f"SHARE: {op}: {different[op]} of {traces[op]} differ, {gaps[op]} may")
    if failures:
        print("by operator:", ", ".join(f"{op} {n}" for op, n in by_op.most_common()))
    print(f"{len(names)} operators, {len(covered)} with equal graphs; {sum(count.values())} traces in {time.time() - start:.0f} s, torch {torch.__version__}; both refuse {count['refused']}, known to differ {count['known']}")
    failed = count["differs"] + bad_tables + len(beyond)
    print(f"{count['same'] + count['refused']} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
