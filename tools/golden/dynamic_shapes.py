"""Writes tests/export/golden/dynamic_shapes.jsonl: exports with dynamic shapes, and what PyTorch says of each.

One JSON object a line. `function` names a function that the test has too; `args`, `kwargs` and `shapes` describe the inputs
and the spec in tags that the test builds them from. `error` is the text of the error, `refined` the spec that
refine_dynamic_shapes_from_suggested_fixes makes of it and `refined_error` what exporting with that one says; else `ranges`,
`guards` and `sizes` of the inputs. Hints about other interfaces of PyTorch are left out of the errors. `differs` says why
Calque's answer is another one; the test leaves these out and has tests of its own for them.

    python tools/golden/dynamic_shapes.py
"""

import json
import logging
import pathlib
import re

import torch
from torch.export import Dim, export
from torch.export.dynamic_shapes import refine_dynamic_shapes_from_suggested_fixes

logging.disable(logging.CRITICAL)
OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "export" / "golden" / "dynamic_shapes.jsonl"


class Add(torch.nn.Module):
    def forward(self, x, y):
        return x + y


class Matmul(torch.nn.Module):
    def forward(self, x, y):
        return x @ y


class Bmm(torch.nn.Module):
    def forward(self, x, y):
        return torch.bmm(x, y)


class Sin(torch.nn.Module):
    def forward(self, x):
        return x.sin()


class AddConstant(torch.nn.Module):
    def forward(self, x):
        return x + torch.ones(10, 3)


class Branches(torch.nn.Module):
    def forward(self, x, y):
        if x.shape[0] < 16 and y.shape[1] % 3 == 0:
            return torch.ones(3)
        return torch.zeros(3)


class AtLeast(torch.nn.Module):
    def forward(self, x):
        if x.shape[0] >= 4 and x.shape[0] <= 12:
            return x + 1
        return x - 1


class Tail(torch.nn.Module):
    def forward(self, x, y):
        return x + y[1:]


class TailThree(torch.nn.Module):
    def forward(self, x, y, z):
        return x + y[1:] + z[2:]


class Strided(torch.nn.Module):
    def forward(self, x, y):
        return x[1::4] + y


class Doubled(torch.nn.Module):
    def forward(self, x, y):
        return torch.cat([x, x]) + y


class Pairs(torch.nn.Module):
    def forward(self, x):
        return x.reshape(-1, 2)


class Fold(torch.nn.Module):
    def forward(self, x, y):
        return x.reshape(-1, 4, y.shape[0])


class SpecializedRoot(torch.nn.Module):
    def forward(self, x, y):
        return x[:-6] + y.new_ones(6) if x.shape[0] == 12 else x


class Nested(torch.nn.Module):
    def forward(self, inputs):
        out = inputs["a"]
        for t in inputs["b"]:
            out = out + t
        return out + inputs["c"][0] + inputs["c"][1]


class ListIn(torch.nn.Module):
    def forward(self, x, y):
        return x[0] + x[1] + y


class Kw(torch.nn.Module):
    def forward(self, x, y, *, k, j):
        return x + y + k, j * 2



class IntIn(torch.nn.Module):
    def forward(self, x, n):
        return x * n


class IntSlice(torch.nn.Module):
    def forward(self, x, n):
        return x + n if n > 3 else x


class Same(torch.nn.Module):
    def forward(self, x, y):
        return x + y.sum()


class Unrelated(torch.nn.Module):
    def forward(self, x, y):
        return x * 2, y + 1


class DivisibleBoth(torch.nn.Module):
    def forward(self, x, y):
        n = x.shape[0] + y.shape[0]
        return x.sum() + y.sum() if n % 4 == 0 else x


class Nonzero(torch.nn.Module):
    def forward(self, x):
        return x.nonzero() + 1


class Text(torch.nn.Module):
    def forward(self, x, s):
        return x + 1 if s == "a" else x


class MinusOne(torch.nn.Module):
    def forward(self, x, y):
        return x + y[:-1]


class Specialize(torch.nn.Module):
    def forward(self, x):
        return x + 1 if int(x.shape[0]) == 4 and x.shape[0] == 4 else x


def T(*shape, id=None):
    return {"t": list(shape), **({"id": id} if id else {})}


def spec_json(s):
    from torch.export.dynamic_shapes import _DerivedDim, _DimHint

    if s is None or isinstance(s, int):
        return s
    if isinstance(s, _DimHint):
        return {"hint": s.type.name, "min": s.min, "max": s.max}
    if isinstance(s, _DerivedDim):
        offset = int(s.fn(0))
        return {"dim": dim_json(s.root), "mul": int(s.fn(1)) - offset, "add": offset}
    if isinstance(s, Dim):
        return {"dim": dim_json(s)}
    if isinstance(s, dict):
        return {"dict": [[k, spec_json(v)] for k, v in s.items()]}
    return {"list" if isinstance(s, list) else "tuple": [spec_json(v) for v in s]}


def dim_json(d):
    return [d.__name__, int(d.min), None if "oo" in str(d.max) else int(d.max)]


def arg_json(a):
    if isinstance(a, dict) and "t" not in a:
        return {"dict": [[k, arg_json(v)] for k, v in a.items()]}
    if isinstance(a, (list, tuple)):
        return {"list" if isinstance(a, list) else "tuple": [arg_json(v) for v in a]}
    return a


def build(a, by_id):
    if isinstance(a, dict) and "t" in a:
        if "id" not in a:
            return torch.zeros(a["t"])
        return by_id.setdefault(a["id"], torch.zeros(a["t"]))
    if isinstance(a, dict):
        return {k: build(v, by_id) for k, v in a.items()}
    if isinstance(a, (list, tuple)):
        return type(a)(build(v, by_id) for v in a)
    return a


MARK_DYNAMIC = (
    " If you're using mark_dynamic, either remove it or use maybe_mark_dynamic. "
    "If you're using Dim.DYNAMIC, replace it with either Dim.STATIC or Dim.AUTO."
)


def clean(text):
    text = re.split(r"\sFor more information about this error", text)[0].split("\n\nThe error above")[0]
    text = text.split("\n\nFrom user code")[0]
    text = text.replace(MARK_DYNAMIC, "").replace(", max=oo", "").replace("int_oo]", "inf]")
    text = text.replace('run with TORCH_LOGS="+dynamic".', "see ShapeEnv::explain().")
    return text.rstrip()


def attempt(module, args, kwargs, shapes, options):
    try:
        ep = export(module, args, kwargs, dynamic_shapes=shapes, **options)
    except Exception as e:
        return None, clean(str(e))
    return ep, None


lines = []


def case(row, module, args, shapes, kwargs=None, differs=None, **options):
    by_id = {}
    real = tuple(build(a, by_id) for a in args)
    real_kwargs = {k: build(v, by_id) for k, v in (kwargs or {}).items()}
    ep, error = attempt(module, real, real_kwargs, shapes, options)
    out = {
        "row": row,
        "function": type(module).__name__,
        "args": [arg_json(a) for a in args],
        "kwargs": [[k, arg_json(v)] for k, v in (kwargs or {}).items()],
        "shapes": spec_json(shapes),
        "spec": repr(shapes),
        "defer": bool(options.get("prefer_deferred_runtime_asserts_over_guards")),
        "error": error,
        "differs": differs,
    }
    if ep is None:
        if "Suggested fixes" in error:
            try:
                refined = refine_dynamic_shapes_from_suggested_fixes(error, shapes)
                out["refined"] = repr(refined)
                out["refined_error"] = attempt(module, real, real_kwargs, refined, options)[1]
            except AssertionError as e:
                out["refine_error"] = str(e)
    else:
        sizes = []
        for node in ep.graph.nodes:
            if node.op == "placeholder":
                val = node.meta["val"]
                if isinstance(val, torch.Tensor):
                    sizes.append([str(s) for s in val.shape])
                else:
                    sizes.append(str(val))
        out["sizes"] = sizes[len(sizes) - len(ep.graph_signature.user_inputs):]
        out["ranges"] = [
            [str(k), int(v.lower), None if "oo" in str(v.upper) else int(v.upper)]
            for k, v in ep.range_constraints.items()
        ]
        out["guards"] = ep._guards_code
    lines.append(out)


A, D, S = Dim.AUTO, Dim.DYNAMIC, Dim.STATIC
batch, size, k, m, n = (Dim(name) for name in ("batch", "size", "K", "M", "N"))
dx, dy, dz = Dim("dx"), Dim("dy"), Dim("dz")

case("T261", Bmm(), (T(10, 2, 3), T(10, 3, 4)), {"x": {0: batch}, "y": {0: batch}})
case("T261", ListIn(), ([T(10, 2), T(10, 2)], T(10, 2)), {"x": [{0: batch}, {0: batch}], "y": {0: batch}})
case("T261", Nested(), ({"a": T(5), "b": [T(5), T(5)], "c": (T(5), T(5))},),
     {"inputs": {"a": {0: batch}, "b": [{0: batch}, {0: batch}], "c": ({0: batch}, (batch,))}})
case("T262", Bmm(), (T(10, 3, 3), T(10, 3, 3)), {"x": (batch, size, size), "y": (batch, size, size)})
case("T262", Bmm(), (T(10, 3, 4), T(10, 4, 5)), {"x": (batch, m, k), "y": (batch, k, n)})
case("T262", Bmm(), (T(10, 3, 4), T(10, 4, 5)), {"x": (batch, m, k), "y": (batch, m, n)})
case("T262", Bmm(), (T(10, 3, 4), T(10, 4, 5)), {"x": (batch, m, k), "y": (size, k, n)})
case("T262", Bmm(), (T(10, 3, 4), T(10, 4, 5)), {"x": (batch, m, k), "y": (batch, k, m)})
case("T263", Bmm(), (T(10, 2, 3), T(10, 3, 4)), {"x": {0: batch}, "y": None})
case("T263", AddConstant(), (T(10, 3),), {"x": {0: batch}})
case("T263", AddConstant(), (T(10, 3),), {"x": {0: batch, 1: size}})
case("T265", Branches(), (T(10, 3), T(3, 12)), {"x": {0: batch, 1: m}, "y": {0: m, 1: k}})
case("T265", Branches(), (T(10, 3), T(3, 12)), {"x": {0: Dim("batch", max=15)}, "y": {1: 3 * Dim("_K", min=2)}})
case("T265", AtLeast(), (T(8),), {"x": (batch,)})
case("T265", AtLeast(), (T(8),), {"x": (Dim("batch", min=4, max=12),)})
case("T265", AtLeast(), (T(8),), {"x": (Dim("batch", max=20),)})
case("T268", Sin(), (T(3, 2),), {"x": {0: Dim("b", min=6)}})
case("T268", Sin(), (T(9, 2),), {"x": {0: Dim("b", max=6)}})
case("T269", Add(), (T(4, 4), T(4, 4)), {"x": (4, None), "y": (S, 4)})
case("T269", Add(), (T(4, 4), T(4, 4)), {"x": (5, None), "y": None})
case("T269", Add(), (T(4, 4), T(4, 4)), {"x": {0: dx, 1: 4}, "y": {0: dx, 1: 4}})
case("T270", Add(), (T(2), T(2)), {"x": (Dim("d", min=1, max=2),), "y": (Dim("d", min=1, max=2),)},
     differs="PyTorch takes both sizes to be 2 and does not see that they must be equal")
case("T271", Tail(), (T(5), T(6)), {"x": (Dim("dimx", min=3, max=6),), "y": (Dim("dimy", min=4, max=7),)})
case("T271", Tail(), (T(5), T(6)), {"x": (dx,), "y": (dx,)})
dimx = Dim("dimx", min=3, max=6)
case("T271", Tail(), (T(5), T(6)), {"x": (dimx,), "y": (dimx + 1,)})
case("T271", Tail(), (T(5), T(6)), {"x": (dimx,), "y": (dimx + 2,)})
case("T271", Doubled(), (T(5), T(10)), {"x": (dx,), "y": (2 * dx,)})
case("T271", Doubled(), (T(5), T(10)), {"x": (dx,), "y": (dy,)})
case("T273", Tail(), (T(9), T(10)), {"x": (dx,), "y": (2 * dx + 1,)})
case("T273", Sin(), (T(10),), {"x": (2 * dx + 1,)})
case("T273", Sin(), (T(10),), {"x": (2 * dx,)})
dimy = Dim("dimy", min=5, max=7)
case("T274", TailThree(), (T(5), T(6), T(7)), {"x": (dimy - 1,), "y": (dimy,), "z": (dimy + 1,)})
case("T274", TailThree(), (T(5), T(6), T(7)), {"x": (dimy,), "y": (dimy + 1,), "z": (dimy + 2,)})
case("T274", TailThree(), (T(5), T(6), T(7)), {"x": (2 * dx + 1,), "y": (2 * dx + 2,), "z": (2 * dx + 3,)})
dimz = Dim("dimz", min=6, max=8)
case("T275", TailThree(), (T(5), T(6), T(7)), {"x": (dimz - 2,), "y": (dimz - 1,), "z": (dimz,)})
case("T275", TailThree(), (T(5), T(6), T(7)), {"x": (dimz - 2,), "y": (Dim("dimy", min=5, max=7),), "z": (dimz,)})
case("T275", TailThree(), (T(5), T(6), T(7)), {"x": (dx,), "y": (dy,), "z": (dz,)})
case("T276", SpecializedRoot(), (T(12), T(6)), {"x": (dy,), "y": (dy - 6,)})
dy7 = Dim("dy", min=7, max=100)
case("T276", SpecializedRoot(), (T(12), T(6)), {"x": (dy7,), "y": (dy7 - 6,)})
case("T276", SpecializedRoot(), (T(12), T(6)), {"x": (2 * dx,), "y": (dx,)})
case("T278", Pairs(), (T(8),), {"x": (dx,)})
case("T278", Pairs(), (T(8),), {"x": (Dim("dx", min=4, max=32),)})
case("T278", Nested(), ({"a": T(5), "b": [T(5), T(5)], "c": (T(5), T(5))},),
     {"inputs": {"a": (dx,), "b": [(dy,), (dz,)], "c": ((m,), (n,))}})
case("T278", Fold(), (T(8, 4), T(4)), {"x": {0: dx}, "y": None})
case("T278", MinusOne(), (T(5), T(6)), ((dx,), (dy,)))
case("T279", Add(), (T(4), T(4)), {"x": (Dim("dx", min=1),), "y": (Dim("dx", min=2),)})
case("T279", Add(), (T(4), T(4)), {"x": (Dim("dx", max=8),), "y": (Dim("dx", min=3, max=9) + 1,)})
case("T280", ListIn(), ([T(4, 2), T(4, 2)], T(4, 2)), {"x": ({0: batch}, {0: batch}), "y": {0: batch}})
case("T280", ListIn(), ([T(4, 2), T(4, 2)], T(4, 2)), {"x": {0: batch}, "y": {0: batch}})
case("T280", ListIn(), ([T(4, 2), T(4, 2)], T(4, 2)), {"x": [{0: batch}], "y": {0: batch}})
case("T280", ListIn(), ([T(4, 2), T(4, 2)], T(4, 2)), {"x": None, "y": {0: batch}})
case("T280", ListIn(), ([T(4, 2), T(4, 2)], T(4, 2)), {"x": batch, "y": {0: batch}})
case("T280", ListIn(), ([T(4, 2), T(4, 2)], T(4, 2)), [[{0: batch}, {0: batch}]])
case("T280", ListIn(), ([T(4, 2), T(4, 2)], T(4, 2)), {"x": [{0: batch}, (batch,)], "y": {0: batch}})
case("T280", ListIn(), ([T(4, 2), T(4, 2)], T(4, 2)), {"x": [{0: batch}, batch], "y": {0: batch}})
case("T280", ListIn(), ([T(4, 2), T(4, 2)], T(4, 2)), {"x": [{0: batch}, (batch, [3])], "y": {0: batch}})
case("T280", ListIn(), ([T(4, 2), T(4, 2)], T(4, 2)), {"x": [{0: (batch,)}, None], "y": {0: batch}})
nested = ({"a": T(5), "b": [T(5), T(5)], "c": (T(5), T(5))},)
case("T280", Nested(), nested, {"inputs": {"a": (dx,), "b": [(dx,), (dx,)]}})
case("T280", Nested(), nested, {"inputs": {"a": (dx,), "b": [(dx,), (dx,)], "d": ((dx,), (dx,))}})
case("T280", Nested(), nested, {"inputs": {"a": (dx,), "b": ((dx,), (dx,)), "c": ((dx,), (dx,))}})
case("T280", Nested(), nested, {"inputs": {"a": (dx,), "b": [(dx,), (dx,), (dx,)], "c": ((dx,), (dx,))}})
case("T280", Text(), (T(3), "a"), {"x": (dx,), "s": (dx,)})
case("T280", Text(), (T(3), "a"), {"x": (dx,), "s": None})
case("T281", ListIn(), ([T(4, 2), T(4, 2)], T(4, 2)), {"x": [{0: batch}, {0: batch}], "z": {0: batch}})
case("T281", ListIn(), ([T(4, 2), T(4, 2)], T(4, 2)), {"x": [{0: batch}, {0: batch}]})
case("T281", ListIn(), ([T(4, 2), T(4, 2)], T(4, 2)), {"y": {0: batch}, "x": [{0: batch}, {0: batch}]})
case("T281", Nested(), nested, {"a": (dx,), "b": [(dx,), (dx,)], "c": ((dx,), (dx,))})
case("T281", Nested(), nested, {"inputs": {"c": ((dx,), (dx,)), "b": [(dx,), (dx,)], "a": (dx,)}})
case("T282", Kw(), (T(4), T(4)), ({0: dx}, {0: dx}, {0: dx}, None), kwargs={"k": T(4), "j": T(7)})
case("T282", Kw(), (T(4), T(4)), ({0: dx}, {0: dx}, {0: dx}, (dy,)), kwargs={"j": T(7), "k": T(4)})
case("T282", Kw(), (T(4), T(4)), {"x": {0: dx}, "y": {0: dx}, "k": {0: dx}, "j": {0: dy}}, kwargs={"j": T(7), "k": T(4)})
case("T282", Kw(), (T(4), T(4)), ({0: dx}, {0: dx}, {0: dx}), kwargs={"k": T(4), "j": T(7)})
case("T283", Nested(), nested, {"inputs": {"a": (dx,), "b": [(dx,), (dx,)], "c": ((dx,), (dx,))}})
case("T284", Add(), (T(4, 3), T(4, 3)), {"x": (A, A), "y": (A, A)})
case("T284", Add(), (T(4, 3), T(4, 3)), {"x": (A, A), "y": (A, S)})
case("T284", Add(), (T(4, 3), T(4, 3)), {"x": (A, A), "y": None})
case("T284", Add(), (T(4, 1), T(4, 3)), {"x": (A, A), "y": (A, A)})
case("T285", Tail(), (T(10), T(11)), {"x": (A,), "y": (A,)})
case("T285", Tail(), (T(10), T(11)), {"x": (A,), "y": (S,)})
case("T286", Strided(), (T(32), T(8)), {"x": (A,), "y": (A,)})
case("T286", Strided(), (T(32), T(8)), {"x": (A,), "y": (S,)}, differs="PyTorch finds a wider range, and checks by the guard")
case("T287", Add(), (T(4), T(4)), {"x": (Dim("dx", max=8),), "y": (A,)})
case("T287", Add(), (T(4), T(4)), {"x": (D,), "y": (Dim("dx", min=3),)})
case("T287", Tail(), (T(4), T(5)), {"x": (dx,), "y": (A,)})
case("T287", Tail(), (T(4), T(5)), {"x": (A,), "y": (dx + 1,)})
case("T287", Add(), (T(4), T(4)), {"x": (A(min=2, max=20),), "y": (A(min=3, max=30),)})
case("T287", Add(), (T(4), T(4)), {"x": (D(max=20),), "y": (D(min=3),)})
case("T288", Add(), (T(4, 3), T(4, 3)), {"x": (D, D), "y": (D, D)})
case("T288", Add(), (T(4, 3), T(4, 3)), {"x": (D, D), "y": (D, S)})
case("T288", Specialize(), (T(4),), {"x": (D,)})
case("T288", AddConstant(), (T(10, 3),), {"x": (D, D)})
case("T288", DivisibleBoth(), (T(4), T(8)), {"x": (D,), "y": (D,)})
case("T288", DivisibleBoth(), (T(4), T(8)), {"x": (dx,), "y": (dy,)})
case("T288", AtLeast(), (T(8),), {"x": (D(min=20),)})
case("T288", AtLeast(), (T(8),), {"x": (A(max=3),)})
case("T288", AtLeast(), (T(8),), {"x": (D,)})
case("T289", Unrelated(), (T(4), T(4)), {"x": (A,), "y": (A,)})
case("T289", Unrelated(), (T(4), T(4)), {"x": (D,), "y": (D,)})
case("T289", Unrelated(), (T(4), T(4)), {"x": (dx,), "y": (dy,)})
case("defer", DivisibleBoth(), (T(4), T(8)), {"x": (dx,), "y": (dy,)}, prefer_deferred_runtime_asserts_over_guards=True)
case("defer", Pairs(), (T(8),), {"x": (dx,)}, prefer_deferred_runtime_asserts_over_guards=True)
case("defer", Add(), (T(4), T(4)), {"x": (dx,), "y": (dy,)}, prefer_deferred_runtime_asserts_over_guards=True)
case("ints", IntIn(), (T(4), 3), {"x": (dx,), "n": A})
case("ints", IntIn(), (T(4), 3), {"x": (dx,), "n": D})
case("ints", IntIn(), (T(4), 3), {"x": (dx,), "n": None})
case("ints", IntIn(), (T(4), 3), {"x": (dx,), "n": dx})
case("ints", IntSlice(), (T(4), 5), {"x": (dx,), "n": D(max=9)})
case("ints", IntSlice(), (T(4), 5), {"x": (dx,), "n": A})
case("same", Same(), (T(4, id="a"), T(4, id="a")), {"x": (dx,), "y": (dx,)})
case("same", Same(), (T(4, id="a"), T(4, id="a")), {"x": (A,), "y": (A,)})
case("unbacked", Nonzero(), (T(4, 3),), {"x": {0: Dim("dx", max=100)}})
case("unbacked", Nonzero(), (T(4, 3),), None)
case("none", Add(), (T(4), T(4)), None)
case("none", Add(), (T(4), T(4)), {})
case("none", Add(), (T(4), T(4)), (None, None))

OUT.write_text("".join(json.dumps(l) + "\n" for l in lines))
print(len(lines), "cases,", sum(l["error"] is not None for l in lines), "errors")
