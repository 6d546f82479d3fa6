#!/usr/bin/env python3
"""PyTorch's own samples of its operators (op_db), exported and saved by PyTorch, run by Calque: PyTorch's results.

By default two samples of each operator in float32 and one in another dtype; --all takes every dtype of DTYPES and of each up to
--per (24) samples, spread over all that PyTorch makes. Results are compared as the operators of the exported graph ask (tools/opcheck/checks.py): copies and
selections by their bits, one pointwise operator by steps of its dtype, all else as programs.py does. What Calque has no operator
for and what PyTorch does not export is in op_db_gaps.tsv, which must say neither more nor less. --only NAME,... takes some operators;
--write-gaps writes the list anew; until --all has written it, what only --all finds is counted alone.
"""

import argparse
import collections
import itertools
import logging
import multiprocessing
import os
import re
import sys
import tempfile
import time
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release"))
GAPS = os.path.join(HERE, "op_db_gaps.tsv")
sys.path[:0] = [HERE, os.path.join(ROOT, "tools", "opcheck")]

import checks  # noqa: E402
import programs  # noqa: E402
import torch  # noqa: E402
import torch.utils._pytree as pytree  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)
CHUNK = 12  # operators of one process of Calque


def name_of(info):
    return info.name + (f"/{info.variant_test_name}" if info.variant_test_name else "")


class Sample(torch.nn.Module):
    """A call of an operator in which the tensors are inputs and all else is fixed."""

    def __init__(self, function, sample):
        super().__init__()
        self.function = function
        leaves, self.spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
        self.tensors = tuple(plain(x) for x in leaves if isinstance(x, torch.Tensor))
        self.leaves = [TENSOR if isinstance(x, torch.Tensor) else x for x in leaves]

    def forward(self, *tensors):
        given = iter(tensors)
        args, kwargs = pytree.tree_unflatten([next(given) if x is TENSOR else x for x in self.leaves], self.spec)
        return tuple(x for x in pytree.tree_leaves(self.function(*args, **kwargs)) if isinstance(x, KEPT))


TENSOR = object()
KEPT = (torch.Tensor, bool, int, float, torch.SymBool, torch.SymInt, torch.SymFloat)


def plain(t):
    """Contiguous, in memory of its own: what a file of inputs can hold."""
    return t.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format) if t.layout == torch.strided else t


def as_tensor(x):
    """A result as program_peer writes it: numbers as tensors, complex128 as its parts."""
    if not isinstance(x, torch.Tensor):
        return torch.tensor(x, dtype=torch.float64 if isinstance(x, float) else None)
    return torch.view_as_real(plain(x)) if x.dtype == torch.complex128 else plain(x)


def dtypes_of(number, info, per):
    """(dtype, how many samples) of an operator; per: of each dtype, None for the default part."""
    has = [d for d in DTYPES if info.supports_dtype(d, "cpu")]
    if per is not None:
        return [(d, per) for d in has]
    rest = has[1:]
    return [(d, 2) for d in has[:1]] + ([(rest[number % len(rest)], 1)] if rest else [])


def samples_of(info, dtype, count):
    """[(number, sample)], spread over all samples of the operator."""
    torch.manual_seed(programs.SEED)
    every = list(info.sample_inputs("cpu", dtype))
    if len(every) <= count:
        return list(enumerate(every))
    # Those of the default part are among those of --all.
    chosen = {len(every) * (2 * k + 1) // (2 * n) for n in ({count, 2, 1} if count > 2 else {count}) for k in range(n)}
    return [(k, every[k]) for k in sorted(chosen)]


# ---- comparison -------------------------------------------------------------------------------------------------------


def kind_of(ep):
    """The loosest check that an operator of the graph asks for."""
    called = [n.target for n in ep.graph.nodes if isinstance(n.target, torch._ops.OpOverload)]
    kinds = [checks.check_for(op) if checks.known(op) else "accumulate" for op in called]
    if kinds.count("pointwise") > 1 or "accumulate" in kinds or "random" in kinds:
        return "close"
    return "pointwise" if "pointwise" in kinds else "exact"


def steps(t):
    """Integers in the order of the floats: a difference counts representable numbers."""
    bits = t.contiguous().view({2: torch.int16, 4: torch.int32, 8: torch.int64}[t.itemsize]).long()
    return torch.where(bits < 0, -(2 ** (8 * t.itemsize - 1)) - bits, bits)


def real(t):
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def bits_differ(want, got):
    want, got = real(want), real(got)
    same = (steps(want) == steps(got)) | (want.isnan() & got.isnan()) if want.is_floating_point() else want == got
    return None if same.all() else f"{(~same).sum().item()} of {same.numel()} elements differ"


def steps_differ(want, got, wide):
    """wide: what float64 gives, which may be nearer to Calque's answer than to PyTorch's."""
    want, got = real(want), real(got)
    if want.dtype not in (torch.float32, torch.float64):
        return bits_differ(want, got)
    good = (want == got) | (want.isnan() & got.isnan()) | ((steps(want) - steps(got)).abs() <= 2)
    if wide is not None:
        wide = real(wide).double()
        good |= (got.double() - wide).abs() <= (want.double() - wide).abs()
        good |= (got == wide.to(got.dtype)) | (got.isnan() & wide.isnan())
    return None if good.all() else f"{(~good).sum().item()} of {good.numel()} elements differ by more than 2 steps"


class Samples(programs.Batch):
    def __init__(self, folder):
        super().__init__(folder)
        self.programs = {}
        self.modules = {}

    def add_sample(self, name, module):
        with torch.no_grad():
            ep = torch.export.export(module, module.tensors, strict=False)
            torch.manual_seed(programs.SEED)
            want = module(*programs.clone(module.tensors))
            self.programs[name], self.modules[name] = ep, module
            self.add(name, ep, [(module.tensors, {}, tuple(as_tensor(w) for w in want))])

    def difference(self, name, got):
        case = name.rpartition("#")[0]
        if case.startswith(META):
            return None
        try:
            return self.difference_of(case, self.expected[name], got)
        except Exception as e:
            return f"the comparison failed: {type(e).__name__}: {e}"

    def difference_of(self, case, want, got):
        wrong = self.compare(case, want, got)
        if wrong:  # PyTorch's own program may say something else than the operator
            with torch.no_grad():
                again = programs.run(self.programs[case], self.modules[case].tensors, {})
            if self.compare(case, [as_tensor(w) for w in again], got) is None:
                return None
        return wrong

    def compare(self, case, want, got):
        kind = kind_of(self.programs[case])
        if kind == "close":
            return programs.compare(want, got)
        wide = self.in_float64(case) if kind == "pointwise" else [None] * len(want)
        for i, (w, r) in enumerate(zip(want, wide)):
            g = got.get(str(i))
            if g is None:
                return f"result {i} is missing"
            if g.shape != w.shape or g.dtype != w.dtype:
                return f"result {i}: {list(w.shape)} {w.dtype} expected, {list(g.shape)} {g.dtype} found"
            if wrong := bits_differ(w, g) if kind == "exact" else steps_differ(w, g, r):
                return f"result {i}: {wrong}"
        return None

    def refused_by_pytorch(self, case):
        """What is said of a sample that PyTorch's own program refuses, or None."""
        try:
            with torch.no_grad():
                programs.run(self.programs[case], self.modules[case].tensors, {})
        except Exception:
            return "PyTorch's program refuses the sample it was made from"
        return None

    def in_float64(self, case):
        module = self.modules[case]
        wider = {torch.float32: torch.float64, torch.complex64: torch.complex128}
        if not any(t.is_floating_point() or t.is_complex() for t in module.tensors):
            wider = {torch.int64: torch.float64, torch.bool: torch.float64}
        try:
            with torch.no_grad():
                return [as_tensor(x) for x in module(*(t.to(wider.get(t.dtype, t.dtype)) for t in module.tensors))]
        except Exception:
            return [None] * len(self.expected[case + "#0"])


META = tuple(f"{n} " for n in ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted", "resize_", "resize_as_"))


# ---- the run ----------------------------------------------------------------------------------------------------------


def missing(error):
    """What a refusal of Calque says is not there, or None."""
    if names := re.findall(r"^  %\S+: torch\.ops\.(\S+)", error, re.M):
        return "Calque has no " + ", ".join(sorted(set(names)))
    if "the dtype number 9 is unknown" in error:
        return "Calque has no complex32"
    if dtype := re.search(r"not implemented for (?:dtype )?'?(\w+)", error):
        calls = re.findall(r"in (aten::[\w.]+)\(", error)
        return f"Calque has no {dtype[1]} in {calls[-1] if calls else error[:60]}"
    return None


def silence():
    """PyTorch prints the graphs of what it does not export."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def run_chunk(job):
    """(operator, dtype, what: "equal" or "gap" or "wrong", text) of every sample of some operators."""
    numbers, per, only = job
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        batch, of = Samples(folder), {}
        for number in numbers:
            info = op_db[number]
            op = name_of(info)
            if only and op not in only and info.name not in only:
                continue
            chosen = dtypes_of(number, info, per)
            if not chosen:
                outcomes.append((op, "", "gap", "no dtype of the samples here"))
            for dtype, count in chosen:
                try:
                    samples = samples_of(info, dtype, count)
                except Exception as e:
                    outcomes.append((op, dtype, "gap", "PyTorch makes no sample: " + type(e).__name__))
                    continue
                for k, sample in samples:
                    name = f"{op} {str(dtype)[6:]} {k}"
                    try:
                        batch.add_sample(name, Sample(info.op, sample))
                        of[name + "#0"] = op, dtype
                    except Exception as e:
                        outcomes.append((op, dtype, "gap", f"PyTorch does not export it: {type(e).__name__}"))
        for name, wrong in batch.run(os.path.join(BUILD, "bin", "program_peer")).items():
            op, dtype = of[name]
            if why := wrong and (missing(wrong) or batch.refused_by_pytorch(name[:-2])):
                outcomes.append((op, dtype, "gap", why))
            else:
                outcomes.append((op, dtype, "wrong" if wrong else "equal", f"{name[:-2]}: {wrong}"))
    return outcomes


def read_gaps():
    """{(operator, what): whether it shows in the default part}."""
    with open(GAPS) as f:
        rows = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    return {(op, what): part == "part" for op, what, part in rows}


def write_gaps(found, old, everything):
    """What this run found; of the other kind of run what the list said before."""
    if everything:
        rows = {key: old.get(key, False) for key in found}
    else:
        rows = {**{key: False for key, part in old.items() if not part}, **{key: True for key in found}}
    with open(GAPS, "w") as f:
        f.write("# Samples of op_db that are not run: OPERATOR<tab>WHY<tab>part (found by default too) or all (with --all alone).\n")
        f.writelines(f"{op}\t{what}\t{'part' if rows[op, what] else 'all'}\n" for op, what in sorted(rows))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--all", action="store_true")
    p.add_argument("--only")
    p.add_argument("--per", type=int, default=24)
    p.add_argument("--write-gaps", action="store_true")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    options = p.parse_args()
    if options.write_gaps and options.only:
        p.error("--write-gaps lists all operators, --only runs some")
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    start = time.time()
    only = set(options.only.split(",")) if options.only else None
    numbers = list(range(len(op_db)))
    chunks = len(numbers) // CHUNK
    with multiprocessing.get_context("fork").Pool(options.jobs, silence) as pool:
        jobs = [(numbers[k::chunks], options.per if options.all else None, only) for k in range(chunks)]
        outcomes = list(itertools.chain.from_iterable(pool.imap_unordered(run_chunk, jobs)))
    count = collections.Counter(what for _, _, what, _ in outcomes)
    for text in sorted(text for _, _, what, text in outcomes if what == "wrong"):
        print("DIFFERENT:", text)
    found = {(op, text) for op, _, what, text in outcomes if what == "gap"}
    listed = read_gaps() if os.path.exists(GAPS) else {}
    if options.write_gaps:
        write_gaps(found, listed, options.all)
        listed = read_gaps()
    expected = {key for key, part in listed.items() if part or options.all}
    if only:
        expected = {(op, what) for op, what in expected if op in only or op.partition("/")[0] in only}
    new, stale = sorted(found - expected), sorted(expected - found)
    if options.all and all(listed.values()):  # the list was never written by --all
        print(f"{len(new)} gaps beyond those of the default part are not listed yet: --all --write-gaps lists them")
        new = []
    for op, what in new:
        print(f"NEW GAP: {op}: {what}")
    for op, what in stale:
        print(f"STALE in op_db_gaps.tsv: {op}: {what}")
    equal = {op for op, _, what, _ in outcomes if what == "equal"}
    absent = {n for _, text in found if text.startswith("Calque has no aten") for n in text[14:].split(", ")}
    print(f"{len(outcomes)} samples of {len({op for op, *_ in outcomes})} operators in {time.time() - start:.0f} s, torch {torch.__version__}: {count['equal']} equal "
          f"({len(equal)} operators), {count['gap']} not run; operators that Calque does not have: {len(absent)}")
    failed = count["wrong"] + len(new) + len(stale)
    print(f"{count['equal']} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
