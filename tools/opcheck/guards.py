"""Which guards PyTorch's own fake execution makes: the most that a shape rule may make.

A known call is repeated under FakeTensorMode with every size of every tensor input a symbol of its own (sizes 0 and 1 stay
numbers, as PyTorch specialises them). The case holds assignments of the symbols that satisfy all of PyTorch's guards, with the
output geometry that PyTorch's expressions give for each: the reader needs no algebra, only to evaluate its own guards and
sizes at those points.
"""

import random
import re

import sympy
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

import isolate
import vary
from calls import Call, Encoder, Unsupported, dtype_name, error_line, op_name, results, scalar_value, tree_leaves, tree_map
from checks import check_for
from oplist import lookup

ACCEPTED = 8


def is_dense(t):
    """Whether the tensor is a permuted contiguous one: its strides are then products of its sizes."""
    order = sorted(range(t.dim()), key=lambda d: (-t.stride(d), d))
    expect = 1
    for d in reversed(order):
        if t.shape[d] != 1 and t.stride(d) != expect:
            return False
        expect *= t.shape[d]
    return t.storage_offset() == 0


def factors(expr):
    """A stride as the list of its factors, numbers and symbol names."""
    out = []
    for x in sympy.Mul.make_args(expr):
        base, power = x.as_base_exp()
        if x.is_Integer:
            out.append(int(x))
        elif base.is_Symbol and power.is_Integer and power > 0:
            out += [str(base)] * int(power)
        else:
            raise Unsupported("stride")
    return out


def suitable(call):
    ts = call.tensors()
    if not ts or any(t.numel() == 0 or t.numel() > 3000 or not is_dense(t) or t.dtype.is_complex for t in ts):
        return False
    return len({t.untyped_storage()._cdata for t in ts}) == len(ts) and any(s > 1 for t in ts for s in t.shape)


def is_sym(v):
    return isinstance(v, (torch.SymInt, torch.SymFloat, torch.SymBool))


def expression(v):
    return v.node.expr if is_sym(v) else sympy.Integer(int(v))


def number(expr, values):
    v = expr.xreplace(values) if hasattr(expr, "xreplace") else expr
    return int(v)


def holds(expr, values):
    v = expr.xreplace(values)
    v = v.doit() if hasattr(v, "doit") else v
    return v is sympy.true or v is True or v == True  # noqa: E712, sympy's own booleans


def size_arguments(call):
    """Positions of arguments that may hold symbolic integers: [(index or name, is a list)]."""
    # The bound types say int; only the printed schema tells SymInt.
    symbolic = set(re.findall(r"SymInt(?:\[\d*\])?\??\s+(\w+)", str(call.op._schema)))
    found = []
    for i, a in enumerate(call.op._schema.arguments):
        if a.name not in symbolic:
            continue
        key = i if i < len(call.args) else a.name
        if key == i or key in call.kwargs:
            found.append(key)
    return found


def with_symbols(call, fakes, names):
    """A function that replaces integers that equal an input's symbolic size: (the new value, how the case writes it)."""
    by_hint = {}
    for t, real, ns in zip(fakes, call.tensors(), names):
        for s, h, n in zip(t.shape, real.shape, ns):
            if isinstance(n, str):
                by_hint.setdefault(int(h), (s, n))
    for t, real, ns in zip(fakes, call.tensors(), names):
        for d in range(len(ns) - 1):
            if isinstance(ns[d], str) and isinstance(ns[d + 1], str):
                by_hint.setdefault(real.shape[d] * real.shape[d + 1], (t.shape[d] * t.shape[d + 1], [ns[d], ns[d + 1]]))

    def swap(v):
        if isinstance(v, (list, tuple)):
            pairs = [swap(x) for x in v]
            return [p[0] for p in pairs], [p[1] for p in pairs]
        if type(v) is int and v in by_hint:
            return by_hint[v][0], {"s": by_hint[v][1]}
        return v, v

    return swap


def run_symbolic(call, symbolic_arguments):
    """(sizes and strides of each tensor input, size arguments as written, outputs, environment, exception)."""
    env = ShapeEnv(duck_shape=False)
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=False)
    count = 0

    def leaf(v):
        nonlocal count
        if not isinstance(v, torch.Tensor):
            return v
        count += 1
        context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * v.dim())
        return mode.from_tensor(v, symbolic_context=context, source=torch._dynamo.source.ConstantSource(f"t{count}"))

    c = call.copy()
    c.args, c.kwargs = tree_map(leaf, c.args), tree_map(leaf, c.kwargs)
    fakes = [v for v in c.leaves() if isinstance(v, torch.Tensor)]
    sizes = [[str(expression(s)) if is_sym(s) else int(s) for s in t.shape] for t in fakes]
    strides = [[factors(expression(s)) for s in t.stride()] for t in fakes]
    written = {}
    if symbolic_arguments:
        swap = with_symbols(call, fakes, sizes)
        for key in size_arguments(c):
            where = c.args if isinstance(key, int) else c.kwargs
            if where[key] is not None:
                where[key], written[key] = swap(where[key])
    try:
        with mode, torch.no_grad():
            out = results(c.op, c.op(*c.args, **c.kwargs))
        return sizes, strides, written, out, env, None
    except Exception as e:
        return sizes, strides, written, None, env, e


def describe(v):
    if isinstance(v, torch.Tensor):
        return {"dtype": dtype_name(v.dtype), "sizes": [str(expression(s)) for s in v.shape],
                "strides": [str(expression(s)) for s in v.stride()]}
    if is_sym(v):
        return {"expr": str(v.node.expr)}
    return scalar_value(v)


def geometry_at(v, values):
    if isinstance(v, torch.Tensor):
        return [[number(expression(s), values) for s in v.shape], [number(expression(s), values) for s in v.stride()]]
    if isinstance(v, torch.SymBool):
        return holds(v.node.expr, values)
    if is_sym(v):
        return number(v.node.expr, values)
    return None


def same_as_eager(call, leaves, values):
    """Whether fake execution gives the geometry that the kernel gives; PyTorch does not always agree with itself."""
    try:
        real = tree_leaves(results(call.op, call.copy().run()))
    except Exception:
        return False
    if len(real) != len(leaves):
        return False
    for a, b in zip(real, leaves):
        if isinstance(a, torch.Tensor) and geometry_at(b, values) != [list(a.shape), list(a.stride())]:
            return False
    return True


def guard_case(call, case_id, rng):
    sizes, strides, written, out, env, error = run_symbolic(call, rng.random() < 0.6)
    enc = Encoder()
    case = {"id": case_id, "op": op_name(call.op), "kind": call.kind, "check": check_for(call.op, call),
            "args": tree_map(enc.input, call.args), "kwargs": tree_map(enc.input, call.kwargs)}
    for key, value in written.items():
        case["args" if isinstance(key, int) else "kwargs"][key] = value
    case["storages"] = [b"" for _ in enc.storages]
    # Hints: the sizes of the real tensors.
    symbols = {}
    for t, s in zip(call.tensors(), sizes):
        for name, value in zip(s, t.shape):
            if isinstance(name, str):
                symbols[name] = int(value)
    sym = {"sizes": sizes, "strides": strides, "hints": symbols}
    if error is not None:
        sym["error"] = f"{type(error).__name__}: {error_line(error)}"
        case["sym"] = sym
        return case
    leaves = [v for v in tree_leaves(out)]
    unbacked = any(str(x).startswith(("u", "zuf")) for v in leaves if isinstance(v, torch.Tensor) for s in [*v.shape, *v.stride()]
                   for x in expression(s).free_symbols)
    table = {str(k): k for k in env.backed_var_to_val} if hasattr(env, "backed_var_to_val") else {str(k): k for k in env.var_to_val}
    guards = [g.expr for g in env.guards]
    # A symbol that is no size stands for the value of a tensor, which a case of sizes does not tell.
    if {str(x) for g in guards for x in g.free_symbols} - set(symbols):
        raise Unsupported("depends on the value of a tensor")
    sym["guards"] = [str(g) for g in guards]
    sym["outputs"] = tree_map(describe, out)
    if unbacked:
        sym["unbacked"] = True
        case["sym"] = sym
        return case
    replaced = {str(k): v for k, v in env.replacements.items()}
    names = list(symbols)
    if not same_as_eager(call, leaves, {table[n]: sympy.Integer(v) for n, v in symbols.items()}):
        raise Unsupported("fake and eager execution differ")
    accepted, tried = [], set()
    for attempt in range(160):
        if attempt == 0:
            pick = dict(symbols)
        else:
            low, high = (2, 12) if rng.random() < 0.7 else (2, 40)
            keep = rng.random() if attempt % 2 else 0.0
            pick = {n: symbols[n] if rng.random() < keep else rng.randint(low, high) for n in names}
            values = {table[n]: sympy.Integer(pick[n]) for n in names}
            for n in names:
                if n in replaced:
                    r = replaced[n].xreplace(values)
                    if r.is_Integer:
                        pick[n] = int(r)
        key = tuple(pick[n] for n in names)
        if key in tried:
            continue
        tried.add(key)
        values = {table[n]: sympy.Integer(pick[n]) for n in names}
        if any(v < 2 for v in pick.values()) or not all(holds(g, values) for g in guards):
            continue
        try:
            outputs = [geometry_at(v, values) for v in leaves]
        except (TypeError, ValueError):
            continue
        accepted.append({"at": pick, "outputs": outputs})
        if len(accepted) >= ACCEPTED:
            break
    sym["accept"] = accepted
    case["sym"] = sym
    return case


def warm_up():
    """Loads what fake execution loads lazily, so that the children need not do it again each."""
    guard_case(Call(torch.ops.aten.add.Tensor, [torch.ones(2, 3), torch.ones(2, 3)], {}), "", random.Random(0))
    guard_case(Call(torch.ops.aten.mm.default, [torch.ones(2, 3), torch.ones(3, 2)], {}), "", random.Random(0))


def cases_for(pool, name, count, seed):
    def make(tick):
        op = lookup(name)
        rng = random.Random(f"guards/{seed}/{name}")
        by_dtype, convert = pool.templates(name)
        dtypes = sorted((d for d in by_dtype if d is not None), key=lambda d: (d != torch.float32, str(d)))
        calls = [c for d in dtypes[:2] for c in by_dtype[d] if suitable(c)]
        rng.shuffle(calls)
        made, seen = [], set()
        for call in calls[:6 * count]:
            if len(made) >= count or tick():
                continue
            if convert is not None:
                # Only outs of the right size: the others are about resizing, not about shapes.
                for _ in range(6):
                    out = vary.as_out(call, op, rng)
                    if out is not None and out.kind == "out-right":
                        break
                else:
                    continue
                call = out
                if not suitable(call):
                    continue
            if call.signature() in seen:
                continue
            seen.add(call.signature())
            try:
                made.append(guard_case(call, f"{name}/g{len(made)}", rng))
            except Unsupported:
                continue
        return made

    made, _ = isolate.run(make)
    return made or []
