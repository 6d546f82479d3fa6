#!/usr/bin/env python3
"""Writes tests/sym/golden/dim_constraints.jsonl: constraint problems and how PyTorch's DimConstraints solves them.

Each row: examples of the symbols s0, s1, ... (which are L['x'].size()[0], L['y'].size()[0], ...), the conditions and
equalities as srepr with symbols shortened to their names, the names and bounds that a user gave, and PyTorch's results. Rows that PyTorch itself cannot answer
(it raises, or falls back to repeating a condition whose roots are not rational) are left out. "unsolved" marks rows with
a congruence that PyTorch leaves unsolved; Calque solves all linear ones, so it may say more there.

    python tools/sym/dim_constraints.py [ROWS] [SEED] > tests/sym/golden/dim_constraints.jsonl
"""
import json
import logging
import random
import re
import sys
import warnings

import sympy
from sympy import srepr
from torch._dynamo.source import LocalSource, TensorProperty, TensorPropertySource
from torch.export import Dim
from torch.fx.experimental.symbolic_shapes import DimConstraints
from torch.utils._sympy.functions import FloorDiv, Max, Mod, PythonMod
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
SYMBOLS = [sympy.Symbol(f"s{i}", positive=True, integer=True) for i in range(4)]
LETTERS = "xyzw"


def source(letter, index=0):
    return TensorPropertySource(LocalSource(letter), TensorProperty.SIZE, index)


def shortened(e):
    return re.sub(r"Symbol\('(\w+)', positive=True, integer=True\)", r"\1", srepr(e))


def value(e, examples):
    return e.xreplace(examples)


def oriented(rng, left, right, examples):
    """A comparison of the two that holds for the examples."""
    a, b = value(left, examples), value(right, examples)
    if a == b:
        return rng.choice([sympy.Le, sympy.Ge])(left, right)
    kinds = [sympy.Lt, sympy.Le] if a < b else [sympy.Gt, sympy.Ge]
    return rng.choice(kinds + [sympy.Ne] if rng.random() < 0.1 else kinds)(left, right)


def term(rng, s):
    pick = rng.random()
    if pick < 0.45:
        return s
    if pick < 0.6:
        return rng.randint(1, 4) * s + rng.randint(-3, 5)
    if pick < 0.75:
        return FloorDiv(s + rng.randint(0, 3), rng.randint(2, 4))
    if pick < 0.85:
        return Mod(s + rng.randint(0, 3), rng.randint(2, 6))
    if pick < 0.9:
        return s * (s + rng.randint(-1, 3))
    if pick < 0.95:
        return FloorDiv(sympy.Integer(rng.randint(20, 200)), s)
    return Max(s, 3)


def condition(rng, symbols, examples):
    s = rng.choice(symbols)
    pick = rng.random()
    if pick < 0.35:
        e = term(rng, s)
        return oriented(rng, e, sympy.Integer(int(value(e, examples)) + rng.randint(-4, 4)), examples)
    if pick < 0.6:
        base = rng.choice([1, 1, 1, 2, 3, 5]) * s + rng.randint(0, 5)
        divisor = rng.choice([2, 3, 4, 6, 8])
        e = rng.choice([Mod, Mod, PythonMod])(base, divisor)
        return sympy.Eq(e, value(e, examples))
    if pick < 0.68:
        e = term(rng, s)
        return sympy.Eq(e, value(e, examples))
    if pick < 0.72:
        return sympy.Eq(FloorDiv(s, 2) * 2, s) if examples[s] % 2 == 0 else oriented(rng, FloorDiv(s, 2) * 2, s, examples)
    if pick < 0.92 and len(symbols) > 1:
        t = rng.choice([x for x in symbols if x != s])
        left = rng.choice([s + t, s * t, s, 2 * s, FloorDiv(s, 2)])
        right = rng.choice([t, 2 * t + 1, sympy.Integer(int(value(left, examples)) + rng.randint(-2, 2)), t * t])
        if value(left, examples) == value(right, examples) and rng.random() < 0.7:
            return sympy.Eq(left, right)
        return oriented(rng, left, right, examples)
    a, b = oriented(rng, s, sympy.Integer(int(examples[s]) + 1), examples), sympy.Ge(s, 2)
    return rng.choice([sympy.And, sympy.Or])(a, b)


def dim_row(dim):
    row = {"name": dim.__name__}
    if hasattr(dim, "root") and not isinstance(dim.root, int):
        offset = dim.fn(0)
        row |= {"root": dim.root.__name__, "multiplier": int(dim.fn(1) - offset), "offset": int(offset)}
    else:
        row |= {"min": int(dim.min), "max": None if dim.max is int_oo or dim.max == int_oo else int(dim.max)}
    return row


def problem(rng):
    n = rng.randint(1, 3)
    symbols = SYMBOLS[:n]
    examples = {s: sympy.Integer(rng.randint(2, 24)) for s in symbols}
    conditions = [condition(rng, symbols, examples) for _ in range(rng.randint(1, 4))]
    # A ShapeEnv never hands over what ranges decide.
    ranges = {s: ValueRanges(1, int_oo) for s in symbols}
    conditions = [c for c in conditions if c not in (sympy.true, sympy.false) and not bound_sympy(c, ranges).is_singleton()]
    for s in symbols:
        if rng.random() < 0.7:
            conditions.append(sympy.Ge(s, rng.choice([2, 2, 2, int(examples[s]) - 1])))
        if rng.random() < 0.4:
            conditions.append(sympy.Le(s, int(examples[s]) + rng.randint(0, 60)))
    # Further inputs whose size is made of the symbols.
    equalities = []
    for i in range(rng.choice([0, 0, 1, 2])):
        s = rng.choice(symbols)
        e = rng.choice([s, s, 2 * s, s + 1, 3 * s - 2, s * symbols[0], sympy.Integer(7)])
        equalities.append((source(LETTERS[n % 4], i + 1), e))
    names, dims, shapes = {}, {}, {}
    if rng.random() < 0.65:
        for i, s in enumerate(symbols):
            name = "d" + LETTERS[i]
            low = rng.choice([None, None, 2, int(examples[s]) - 1])
            high = rng.choice([None, None, int(examples[s]) + 10, 1024])
            dims[name] = Dim(name, min=max(low, 0) if low is not None else None, max=high)
            names[source(LETTERS[i]).name] = name
            shapes[LETTERS[i]] = {0: dims[name]}
        for src, e in equalities:
            if e.is_number or len(e.free_symbols) != 1 or not sympy.Poly(e, *e.free_symbols).degree() == 1:
                continue
            root = dims["d" + LETTERS[symbols.index(next(iter(e.free_symbols)))]]
            form = rng.choice(["own", "derived", "none", "same"])
            if form == "none":
                continue
            if form == "same" and e.is_Symbol:
                dim = root
            elif form == "derived" and not e.is_Symbol:
                coefficient = int(sympy.Poly(e, *e.free_symbols).all_coeffs()[0])
                offset = int(sympy.Poly(e, *e.free_symbols).all_coeffs()[1])
                dim = root * coefficient if coefficient != 1 else root
                dim = dim + offset if offset > 0 else dim - -offset if offset < 0 else dim
            else:
                dim = Dim("d" + src.base.local_name + str(src.idx), max=rng.choice([None, 4096]))
            dims[dim.__name__] = dim
            names[src.name] = dim.__name__
            shapes.setdefault(src.base.local_name, {})[src.idx] = dim
    return symbols, examples, conditions, equalities, names, dims, shapes


def solve(rng):
    symbols, examples, conditions, equalities, names, dims, shapes = problem(rng)
    sources = {s: [source(LETTERS[i])] for i, s in enumerate(symbols)}
    constraints = DimConstraints(sources, examples, set(symbols), names)
    row = {"examples": [int(examples[s]) for s in symbols], "conditions": [shortened(c) for c in conditions],
           "equalities": [[src.base.local_name, src.idx, shortened(e)] for src, e in equalities],
           "names": [[k, v] for k, v in names.items()], "dims": [dim_row(d) for d in dims.values()]}
    row["trivial"] = [bool(constraints.add(c)) for c in conditions]
    for src, e in equalities:
        constraints.add_equality(src, e)
    unsolved = [s for s, cs in constraints._reduce_congruences().items() for c in cs
                if not constraints._is_supported_congruence(c)]
    constraints.solve()
    row["unsolved"] = bool(unsolved)
    row["static"] = sorted(constraints._static_results)
    row["dynamic"] = sorted(constraints._dynamic_results)
    if any("*" in r and " == " not in r or "//" in r for r in row["dynamic"]):
        raise NotImplementedError("a condition that was only repeated")
    lower = [r.split(" ")[-1] for r in row["dynamic"] if re.match(r"[0-9/]+ <=? ", r)]
    upper = [r.split(" ")[0] for r in row["dynamic"] if re.search(r" <=? [0-9/]+$", r)]
    if len(lower) != len(set(lower)) or len(upper) != len(set(upper)):
        raise NotImplementedError("two bounds of one dimension")
    forced = constraints.forced_specializations()
    row["forced"] = {k: int(v) for k, v in forced.items()}
    pretty = constraints.prettify_results(None, shapes, None, forced)
    # An unbounded new dim is written "max=oo", which nobody can type.
    row["pretty"] = pretty.replace('run with TORCH_LOGS="+dynamic".', "see ShapeEnv::explain().").replace(", max=oo", "")
    return row


def main():
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 7)
    errors = {}
    made = 0
    while made < wanted:
        try:
            row = solve(rng)
        except Exception as error:  # PyTorch cannot answer
            key = type(error).__name__ + re.sub(r"\d+", "", str(error))[:60]
            errors[key] = errors.get(key, 0) + 1
            continue
        print(json.dumps(row))
        made += 1
    print(errors, file=sys.stderr)


main()
