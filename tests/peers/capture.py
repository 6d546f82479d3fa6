#!/usr/bin/env python3
"""Capture against PyTorch, live: python tests/peers/capture.py [PROGRAM] [--only NAME] [--show] [--all]

Each function of capture_cases.py is traced by PyTorch's make_fx and, written in C++, by Calque's, in real, fake and
symbolic mode, in symbolic mode with PyTorch's own questions (pytorch_guards), and on fake tensors before composite
operators are taken apart (pre_dispatch). Compared are the calls in their order with their arguments, the shapes, strides
and types of every node, the structure of the output, the stored constants, and, in the symbolic modes, the guards, the
ranges of the symbols, the asserts left to run time, and the results with other sizes. Symbols go by the order in which
inputs show them. With pytorch_guards both accept the same sizes; without, Calque asks nothing that PyTorch does not ask.

Two things are put in one form first. What only Python's argument parser writes is dropped: device='cpu',
pin_memory=False, layout=strided. And a symbolic number has one node here, while PyTorch makes one each time the number is
asked for: arguments are compared by the expression, size accessors are dropped, and arithmetic counts once for each result.
"""
import argparse
import itertools
import json
import math
import operator
import os
import random
import subprocess
import sys
import tempfile
import traceback

import sympy
import torch
import torch.utils._pytree as pytree
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._sympy import functions as sympy_functions

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import capture_cases  # noqa: E402

MODES = ("real", "fake", "symbolic", "pytorch_guards", "pre_dispatch")
SYMBOLIC_MODES = ("symbolic", "pytorch_guards")
ACCESSORS = {"aten.sym_size.int", "aten.sym_stride.int", "aten.sym_numel.default", "aten.sym_storage_offset.default"}
SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


# ---- arguments --------------------------------------------------------------------------------------------------------


def filled(spec, seed):
    n = math.prod(spec["sizes"])
    dtype = getattr(torch, spec["dtype"])
    if dtype == torch.int64:
        flat = [(k * 7 + seed * 3 + 2) % spec["below"] for k in range(n)]
    elif dtype == torch.bool:
        flat = [(k * 5 + seed) % 3 == 0 for k in range(n)]
    else:
        flat = [((k * 37 + seed * 11) % 101 - 50) / 16 for k in range(n)]
    return torch.tensor(flat, dtype=dtype).reshape(spec["sizes"])


def arguments(specs):
    seed = 0

    def make(spec):
        nonlocal seed
        if isinstance(spec, int):
            return spec
        if isinstance(spec, list):
            return [make(s) for s in spec]
        if "dtype" in spec:
            seed += 1
            return filled(spec, seed - 1)
        return {key: make(s) for key, s in spec.items()}

    return [make(s) for s in specs]


# ---- both graphs in one form ------------------------------------------------------------------------------------------


class Number:
    """A symbolic number."""

    def __init__(self, expr):
        self.expr = expr

    def __repr__(self):
        return f"<{self.expr}>"


def same(a, b, samples):
    """Equal up to how symbolic numbers are written: those must have the same value for all sizes that are tried."""
    if isinstance(a, Number) and isinstance(b, Number):
        return a.expr == b.expr or all(evaluated(a.expr, s) == evaluated(b.expr, s) for s in samples)
    if isinstance(a, Number) or isinstance(b, Number):
        x, y = (a.expr, b) if isinstance(a, Number) else (b.expr, a)
        return isinstance(y, int) and all(evaluated(x, s) == y for s in samples)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same(x, y, samples) for x, y in zip(a, b))
    return type(a) is type(b) and a == b


PYTHON = {"Max": max, "Min": min, "Mod": lambda a, b: a % b, "PythonMod": lambda a, b: a % b, "FloorDiv": lambda a, b: a // b,
          "CleanDiv": lambda a, b: a // b, "Eq": lambda a, b: a == b, "Ne": lambda a, b: a != b, "Abs": abs, "ToFloat": float,
          "IntTrueDiv": lambda a, b: a / b, "FloatTrueDiv": lambda a, b: a / b, "FloatPow": lambda a, b: a**b, "TruncToInt": int,
          "PowByNatural": lambda a, b: a**b, "CeilToInt": math.ceil, "FloorToInt": math.floor, "true": True, "false": False}
COMPILED = {}


def evaluated(e, sample):
    """With these values of the symbols; values out of tensors are made up from their names."""
    if e not in COMPILED:
        COMPILED[e] = compile(str(e), "expression", "eval"), [s.name for s in e.free_symbols]
    code, names = COMPILED[e]
    return eval(code, PYTHON | {n: sample.get(n, 3 + 2 * int(n[1:])) for n in names})  # sympy's text of an expression


class Names:
    """Symbols by the order in which they are first seen."""

    def __init__(self):
        self.of = {}

    def canonical(self, expr):
        """The expression over c0, c1, ... for sizes and v0, v1, ... for what comes out of tensors."""
        if not isinstance(expr, sympy.Basic):
            return expr
        for name in sorted(s.name for s in expr.free_symbols):
            self.add(name)
        return expr.xreplace({s: self.of[s.name] for s in expr.free_symbols})

    def add(self, name):
        if name not in self.of:
            kind = "z" if name[0] == "z" else "v" if name[0] == "u" else "c"
            n = sum(1 for t in self.of.values() if t.name[0] == kind)
            self.of[name] = sympy.Symbol(f"{kind}{n}", integer=kind != "z", positive=True if kind == "c" else None)


class Form:
    """A graph as a list of lines that can be compared; subclasses read PyTorch's and Calque's."""

    def __init__(self):
        self.names = Names()
        self.lines = []
        self.seen = set()
        self.ids = {}
        self.leaves = []

    def expr(self, e):
        return self.names.canonical(self.replaced(e))

    def number(self, e):
        return Number(self.expr(e))


def in_one_form(op, target, args, kwargs):
    kwargs = {k: v for k, v in kwargs.items()
              if not (k == "device" and v == ("text", "device(type='cpu')")) and not (k == "pin_memory" and v is False)
              and not (k == "layout" and v == ("text", "torch.strided"))}
    return op, target, args, tuple(sorted(kwargs.items()))


class TorchForm(Form):
    def __init__(self, gm):
        super().__init__()
        self.env = getattr(gm, "shape_env", None)
        constants = []
        self.inputs = []  # the sizes of each as symbols
        for node in gm.graph.nodes:
            if node.op == "placeholder":
                val = node.meta.get("val")
                for e in self.raw(val):
                    self.names.canonical(e)
                sizes = val.shape if isinstance(val, torch.Tensor) else [val]
                self.inputs.append([s.node._expr if isinstance(s, SYMBOLIC) else s for s in sizes])
        for node in gm.graph.nodes:
            self.add(node)
        for name, t in list(gm.named_parameters()) + list(gm.named_buffers()) + sorted(
                (k, v) for k, v in vars(gm).items() if isinstance(v, torch.Tensor)):
            constants.append((name, str(t.dtype), tuple(t.shape), t.detach().double().flatten().tolist()))
        self.constants = sorted(set((a, b, c, tuple(d)) for a, b, c, d in constants))

    def raw(self, val):
        if isinstance(val, torch.Tensor):
            for s in list(val.shape) + list(val.stride()) + [val.storage_offset()]:
                yield from self.raw(s)
        elif isinstance(val, SYMBOLIC):
            yield val.node._expr

    def replaced(self, e):
        return e

    def value(self, v):
        if isinstance(v, SYMBOLIC):
            e = v.node.expr
            if e.is_number:
                return self.value(int(e) if isinstance(v, torch.SymInt) else bool(e) if isinstance(v, torch.SymBool) else float(e))
            return self.number(e)
        if isinstance(v, torch.fx.Node):
            val = v.meta.get("val")
            if isinstance(val, SYMBOLIC):
                return self.value(val)
            return ("node", self.ids[v])
        if isinstance(v, bool) or v is None or isinstance(v, (int, str)):
            return v
        if isinstance(v, float):
            return ("float", repr(v))
        if isinstance(v, torch.Tensor):
            return ("tensor", str(v.dtype)[6:], tuple(map(self.value, v.shape)), tuple(map(self.value, v.stride())),
                    self.value(v.storage_offset()))
        if isinstance(v, (list, tuple)) and not isinstance(v, torch.Size):
            return ("list", tuple(map(self.value, v)))
        if isinstance(v, torch.Size):
            return ("list", tuple(map(self.value, v)))
        if isinstance(v, dict):
            return ("dict", tuple((k, self.value(x)) for k, x in v.items()))
        if isinstance(v, slice):
            return ("slice", self.value(v.start), self.value(v.stop), self.value(v.step))
        return ("text", repr(v))

    def target(self, node):
        t = node.target
        if isinstance(t, torch._ops.OpOverload):
            return str(t)
        if callable(t):
            module = {"_operator": "operator", "torch": "torch", "math": "math", "builtins": "builtins"}.get(t.__module__, t.__module__)
            return f"{module}.{t.__name__}"
        return str(t)

    def add(self, node):
        val = node.meta.get("val")
        for e in self.raw(val):
            self.names.canonical(e)
        if node.op == "output":
            self.leaves = [self.value(x) for x in pytree.tree_leaves(node.args[0])]
            return
        target = self.target(node)
        if target in ACCESSORS:
            return
        if isinstance(val, SYMBOLIC) and node.op == "call_function" and not target.startswith("aten"):
            if val.node.expr in self.seen:
                return
            self.seen.add(val.node.expr)
        else:
            self.ids[node] = len(self.ids)
        args = tuple(self.value(a) for a in node.args)
        kwargs = {k: self.value(a) for k, a in node.kwargs.items()}
        if node.op == "placeholder":
            target = ""
        shown = None if node.op == "get_attr" or val is None else self.value(val)
        self.lines.append(in_one_form(node.op, target, args, kwargs) + (shown,))

    def knowledge(self):
        env = self.env
        if env is None:
            return None
        guards = [self.names.canonical(g.expr) for g in env.guards]
        asserts = [self.names.canonical(a.expr) for many in env.deferred_runtime_asserts.values() for a in many]
        ranges = {}
        for s, range_ in env.var_to_range.items():
            if s.name in self.names.of and not s.name.startswith("z"):
                e = env.replace(s)
                if e == s:
                    ranges[str(self.names.of[s.name])] = (bound(range_.lower), bound(range_.upper))
                else:
                    ranges[str(self.names.of[s.name])] = "= " + str(self.names.canonical(e))
        return guards, asserts, ranges


def bound(v):
    if "oo" in str(v):
        return "-inf" if str(v).startswith("-") else "inf"
    n = int(v)
    return "inf" if n >= 2**63 - 2 else "-inf" if n <= -(2**63) + 1 else n


def relation(e):
    """As text; equalities have no sides."""
    if isinstance(e, (sympy.Eq, sympy.Ne)):
        return type(e).__name__ + " " + " ".join(sorted(map(str, e.args)))
    if isinstance(e, (sympy.Gt, sympy.Ge)):
        e = e.reversed
    return str(e)


def grid(names, seed=1):
    """Sizes to try conditions on: all small ones for few symbols, else a sample of them."""
    names = sorted(names)
    if len(names) <= 2:
        return [dict(zip(names, point)) for point in itertools.product(range(0, 14), repeat=len(names))]
    chance = random.Random(seed)
    return [{n: chance.randint(0, 13) for n in names} for _ in range(1500)]


def holds(knowledge, point):
    guards, _, ranges = knowledge
    for name, range_ in ranges.items():
        if name in point and isinstance(range_, tuple):
            low, high = (float(x) for x in range_)
            if not low <= point[name] <= high:
                return False
    try:
        return all(evaluated(g, point) for g in guards)
    except ZeroDivisionError:
        return False


def fails(guard, point):
    try:
        return not evaluated(guard, point)
    except ZeroDivisionError:
        return False


def compare_guards(ours, theirs, samples):
    """Sizes that one side accepts and the other refuses, with the condition that does it. Where a guard is in both lists,
    word for word, nothing is tried."""
    problems = {"Calque": [], "PyTorch": []}
    mine, others = {relation(g) for g in ours[0]}, {relation(g) for g in theirs[0]}
    names = {s.name for g in ours[0] + theirs[0] for s in g.free_symbols} | set(ours[2]) | set(theirs[2])
    points = None
    for what, a, b, known_b in (("Calque", ours, theirs, others), ("PyTorch", theirs, ours, mine)):
        conditions = [g for g in a[0] if relation(g) not in known_b and g != sympy.true]
        for name, range_ in a[2].items():
            c = sympy.Symbol(name, integer=True, positive=True if name[0] == "c" else None)
            if name not in b[2] or b[2][name] == range_:
                continue
            if isinstance(range_, str):
                conditions.append(sympy.Eq(c, range_expr(range_), evaluate=False))
            else:
                conditions += [sympy.Ge(c, x, evaluate=False) for x in range_[:1] if x != "-inf"] + [sympy.Le(c, x, evaluate=False) for x in range_[1:] if x != "inf"]
        if not conditions:
            continue
        if points is None:
            points = grid(n for n in names if n[0] == "c") + samples
        allowed = [p for p in points if holds(b, p)]
        for g in conditions:
            broken = next((p for p in allowed if fails(g, p)), None)
            if broken is not None:
                problems[what].append(f"only {what} asks for {relation(g)}; not so for {broken}")
    return problems


def range_expr(text):
    return sympy.sympify(text[2:], locals={f"{k}{n}": sympy.Symbol(f"{k}{n}", integer=True, positive=True if k == "c" else None) for k in "cv" for n in range(20)})


NAMESPACE = {name: getattr(sympy, name) for name in
             ("Symbol", "Integer", "Add", "Mul", "Pow", "Rational", "Float", "Equality", "Unequality", "StrictLessThan", "LessThan",
              "StrictGreaterThan", "GreaterThan", "And", "Or", "Not", "true", "false", "Piecewise", "Eq", "Ne", "Lt", "Le",
              "Gt", "Ge", "floor", "Abs")}
NAMESPACE["ExprCondPair"] = sympy.functions.elementary.piecewise.ExprCondPair
NAMESPACE.update({name: getattr(sympy_functions, name) for name in dir(sympy_functions)
                  if isinstance(getattr(sympy_functions, name), type) and issubclass(getattr(sympy_functions, name), sympy.Basic)})


class CalqueForm(Form):
    def __init__(self, answer):
        super().__init__()
        self.answer = answer
        self.parsed = {}
        self.replacements = {}
        for s in answer.get("symbols", []):
            if s["replacement"] is not None:
                r = s["replacement"]
                self.replacements[s["name"]] = sympy.Integer(r) if isinstance(r, int) else self.parse(r["int"])
        vals = {n["name"]: n["val"] for n in answer["nodes"]}
        self.vals = vals
        for s in answer.get("symbols", []):  # in the order in which the inputs have them
            if s["name"][0] == "s":
                self.names.add(s["name"])
        for node in answer["nodes"]:
            self.add(node)
        self.constants = sorted((name, "torch." + t["tensor"], tuple(t["sizes"]), tuple(number_of(x) for x in t["data"]))
                                for name, t in answer["attributes"])

    def parse(self, text):
        if text not in self.parsed:
            self.parsed[text] = eval(text, NAMESPACE)  # srepr, by our own program
        return self.parsed[text]

    def raw(self, val):
        if isinstance(val, dict):
            if "tensor" in val:
                for s in val["sizes"] + val["strides"] + [val["offset"]]:
                    yield from self.raw(s)
            for key in ("int", "sym_float", "sym_bool"):
                if key in val:
                    yield self.parse(val[key])

    def replaced(self, e):
        for _ in range(10):
            now = e.xreplace({s: self.replacements[s.name] for s in e.free_symbols if s.name in self.replacements})
            if now == e:
                return e
            e = now
        return e

    def symbolic(self, v):
        return isinstance(v, dict) and ("int" in v or "sym_float" in v or "sym_bool" in v)

    def number_valued(self, v):
        return self.symbolic(v) or isinstance(v, (bool, int)) or isinstance(v, dict) and "float" in v

    def value(self, v):
        if self.symbolic(v):
            e = self.replaced(self.parse(next(iter(v.values()))))
            if e.is_number:
                return int(e) if "int" in v else ("float", repr(float(e)))
            if e in (sympy.true, sympy.false):
                return bool(e)
            return self.number(e)
        if isinstance(v, dict):
            if "node" in v:
                val = self.vals[v["node"]]
                return self.value(val) if self.number_valued(val) or v["node"] not in self.ids else ("node", self.ids[v["node"]])
            if "float" in v:
                return ("float", repr(float(v["float"])))
            if "tensor" in v:
                return ("tensor", v["tensor"], tuple(map(self.value, v["sizes"])), tuple(map(self.value, v["strides"])), self.value(v["offset"]))
            if "list" in v or "tuple" in v:
                return ("list", tuple(map(self.value, v.get("list", v.get("tuple")))))
            if "dict" in v:
                return ("dict", tuple((k, self.value(x)) for k, x in v["dict"]))
            return ("text", v["text"])
        return v

    def add(self, node):
        val = node["val"]
        for e in self.raw(val):
            self.names.canonical(e)
        if node["op"] == "output":
            self.leaves = [self.value(x) for x in leaves(node["args"][0])]
            return
        if node["target"] in ACCESSORS:
            return
        if self.number_valued(val) and node["op"] == "call_function" and not node["target"].startswith("aten"):
            e = self.replaced(self.parse(next(iter(val.values())))) if self.symbolic(val) else str(val)
            if e in self.seen:
                return
            self.seen.add(e)
        else:
            self.ids[node["name"]] = len(self.ids)
        args = tuple(self.value(a) for a in node["args"])
        kwargs = {k: self.value(a) for k, a in node["kwargs"].items()}
        target = "" if node["op"] == "placeholder" else node["target"]
        shown = None if node["op"] == "get_attr" or val is None else self.value(val)
        self.lines.append(in_one_form(node["op"], target, args, kwargs) + (shown,))

    def knowledge(self):
        if "guards" not in self.answer:
            return None
        guards = [self.names.canonical(self.parse(g["condition"])) for g in self.answer["guards"]]
        asserts = [self.names.canonical(self.parse(a)) for a in self.answer["asserts"]]
        ranges = {}
        by_name = self.names.of
        for s in self.answer["symbols"]:
            if s["name"] in by_name and not s["name"].startswith("z"):
                if s["name"] in self.replacements:
                    e = self.replaced(self.replacements[s["name"]])
                    ranges[str(by_name[s["name"]])] = "= " + str(self.names.canonical(e))
                else:
                    ranges[str(by_name[s["name"]])] = (bound(s["lower"]), bound(s["upper"]))
        return guards, asserts, ranges


def leaves(v):
    if isinstance(v, dict) and ("list" in v or "tuple" in v):
        return [leaf for item in v.get("list", v.get("tuple")) for leaf in leaves(item)]
    if isinstance(v, dict) and "dict" in v:
        return [leaf for _, item in v["dict"] for leaf in leaves(item)]
    return [v]


# ---- results ----------------------------------------------------------------------------------------------------------


def number_of(v):
    return float(v) if isinstance(v, str) else v


def same_result(found, expected, where="result"):
    """What differs, as text; nothing when they agree."""
    if isinstance(expected, torch.Tensor):
        if not isinstance(found, dict) or "tensor" not in found:
            return f"{where}: a tensor was expected"
        if found["tensor"] != str(expected.dtype)[6:] or found["sizes"] != list(expected.shape) or found["strides"] != list(expected.stride()):
            return f"{where}: {found['tensor']}{found['sizes']} strides {found['strides']}, expected {str(expected.dtype)[6:]}{list(expected.shape)} strides {list(expected.stride())}"
        data = torch.tensor([number_of(x) for x in found["data"]], dtype=torch.float64).reshape(expected.shape).to(expected.dtype)
        try:
            torch.testing.assert_close(data, expected, equal_nan=True)
        except AssertionError as e:
            return f"{where}: " + str(e).split("\n")[0]
        return None
    if isinstance(expected, (list, tuple)):
        key = "list" if isinstance(expected, list) else "tuple"
        if not isinstance(found, dict) or key not in found or len(found[key]) != len(expected):
            return f"{where}: a {key} of {len(expected)} was expected, not {str(found)[:80]}"
        for k, item in enumerate(expected):
            if problem := same_result(found[key][k], item, f"{where}[{k}]"):
                return problem
        return None
    if isinstance(expected, dict):
        if not isinstance(found, dict) or [k for k, _ in found.get("dict", [])] != list(expected):
            return f"{where}: a dict was expected"
        for key, item in found["dict"]:
            if problem := same_result(item, expected[key], f"{where}[{key!r}]"):
                return problem
        return None
    if isinstance(expected, float):
        return None if isinstance(found, dict) and math.isclose(float(found["float"]), expected, rel_tol=1e-6) else f"{where}: {found}, expected {expected}"
    return None if found == expected else f"{where}: {found}, expected {expected}"


# ---- one case ---------------------------------------------------------------------------------------------------------


def traced(case, mode):
    args = arguments(case.args)
    with torch.enable_grad():
        return make_fx(case.function, tracing_mode={"pre_dispatch": "fake", "pytorch_guards": "symbolic"}.get(mode, mode), pre_dispatch=mode == "pre_dispatch",
                       _allow_non_fake_inputs=case.module is not None)(*args)


def samples_of(case, form):
    """The values of the symbols in every run."""
    out = []
    for specs in [case.args] + case.others:
        sample = {}
        flat = pytree.tree_leaves(arguments(specs))
        for symbols, value in zip(form.inputs, flat):
            numbers = list(value.shape) if isinstance(value, torch.Tensor) else [value]
            for e, v in zip(symbols, numbers):
                if isinstance(e, sympy.Symbol):
                    sample[form.names.of[e.name].name] = int(v)
        out.append(sample)
    return out


def show(form, title):
    print(f"  {title}:")
    for line in form.lines:
        print("   ", *line)
    print("    ->", form.leaves)


def compare(case, mode, answer, verbose):
    """The differences."""
    try:
        gm = traced(case, mode)
    except Exception as e:
        if "error" in answer:
            return []
        return [f"PyTorch refuses ({type(e).__name__}: {str(e).splitlines()[0][:200] if str(e) else ''}), Calque does not"]
    if "error" in answer:
        return [f"Calque refuses: {answer['error'][:400]}"]
    theirs, ours = TorchForm(gm), CalqueForm(answer["graph"])
    if verbose:
        show(theirs, "PyTorch")
        show(ours, "Calque")
    problems = []
    samples = samples_of(case, theirs)
    for k in range(max(len(theirs.lines), len(ours.lines))):
        a = ours.lines[k] if k < len(ours.lines) else None
        b = theirs.lines[k] if k < len(theirs.lines) else None
        if a is None or b is None or not same(a, b, samples):
            problems.append(f"call {k}:\n      Calque  {a}\n      PyTorch {b}")
            break
    if not same(tuple(ours.leaves), tuple(theirs.leaves), samples):
        problems.append(f"outputs:\n      Calque  {ours.leaves}\n      PyTorch {theirs.leaves}")
    if ours.constants != theirs.constants:
        problems.append(f"constants:\n      Calque  {ours.constants}\n      PyTorch {theirs.constants}")
    if mode in SYMBOLIC_MODES:
        mine, others = ours.knowledge(), theirs.knowledge()
        by_side = compare_guards(mine, others, samples)
        found = by_side["Calque"] + (by_side["PyTorch"] if mode == "pytorch_guards" else [])
        if found:
            problems.append("guards:\n      " + "\n      ".join(found) + f"\n      Calque  {[relation(g) for g in mine[0]]} {mine[2]}\n      PyTorch {[relation(g) for g in others[0]]} {others[2]}")
        if mode == "symbolic" and by_side["PyTorch"]:
            case.fewer = True
        if sorted(map(relation, mine[1])) != sorted(map(relation, others[1])):
            problems.append(f"asserts:\n      Calque  {mine[1]}\n      PyTorch {others[1]}")
    runs = [case.args] + (case.others if mode in SYMBOLIC_MODES else [])
    for specs, run in zip(runs, answer["results"]):
        if "error" in run:
            problems.append(f"run on {specs}: {run['error'][:300]}")
            continue
        torch.manual_seed(0)
        with torch.no_grad():
            expected = case.function(*arguments(specs))
        if problem := same_result(run["result"], expected):
            problems.append(f"run on {specs}: {problem}")
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?", default=os.path.join(os.environ.get("CALQUE_BUILD", ""), "bin/capture"))
    parser.add_argument("--all", action="store_true", help="(the comparison is always whole)")
    parser.add_argument("--only", help="one function")
    parser.add_argument("--mode", help="one mode")
    parser.add_argument("--show", action="store_true", help="both graphs")
    args = parser.parse_args()
    cases = [c for c in capture_cases.CASES.values() if args.only in (None, c.name)]
    modes = [m for m in MODES if args.mode in (None, m)]
    requests = [{"name": c.name, "mode": m, "args": c.args, "run": [c.args] + (c.others if m in SYMBOLIC_MODES else []),
                 "allow_non_fake_inputs": c.module is not None} for c in cases for m in modes]
    with tempfile.TemporaryDirectory() as folder:
        ask, told = os.path.join(folder, "requests"), os.path.join(folder, "answers")
        with open(ask, "w") as f:
            json.dump(requests, f)
        subprocess.run([args.program, ask, told], check=True)
        with open(told) as f:
            answers = json.load(f)
    passed, failed = 0, []
    for request, answer in zip(requests, answers):
        case = capture_cases.CASES[request["name"]]
        if args.show:
            print(f"{case.name}, {request['mode']}")
        try:
            problems = compare(case, request["mode"], answer, args.show)
        except Exception:
            problems = ["the comparison failed: " + traceback.format_exc(limit=-3)]
        if problems:
            failed.append(case.name)
            print(f"DIFFERENT: {case.name}, {request['mode']}")
            for p in problems:
                print("   ", p)
        else:
            passed += 1
    print(f"{sum(c.fewer for c in cases)} functions of which PyTorch asks more than Calque does without pytorch_guards")
    print(f"{len(cases)} functions ({sum(c.module is not None for c in cases)} of them modules) in {len(modes)} modes, torch {torch.__version__}")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
