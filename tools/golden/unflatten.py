"""Writes tests/export/golden/unflatten/: programs of torch.export.save and, in unflatten.jsonl, what PyTorch's unflatten makes
of each: the modules in their order, the nodes of their graphs, the names of the state, and outputs for given inputs.

    PYTHONHASHSEED=1 python tools/golden/unflatten.py

The seed: PyTorch puts the subgraphs of a call in the order of a set.
"""

import json
import logging
import pathlib
import random
import warnings

import torch
import torch.utils._pytree as pytree
from program_paths import without_paths
from torch.export import Dim, export, save, unflatten

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "export" / "golden" / "unflatten"
OUT.mkdir(parents=True, exist_ok=True)
for old in OUT.iterdir():
    old.unlink()
torch.manual_seed(0)
nn = torch.nn
lines = []


def tensor_json(t):
    return {"shape": list(t.shape), "dtype": str(t.dtype)[6:], "data": t.detach().flatten().tolist()}


def value_json(v):
    if isinstance(v, torch.Tensor):
        return {"t": tensor_json(v)}
    if isinstance(v, dict):
        return {"dict": [[k, value_json(x)] for k, x in v.items()]}
    if isinstance(v, (list, tuple)):
        return {"list" if isinstance(v, list) else "tuple": [value_json(x) for x in v]}
    return v


def node_text(n):
    if n.op != "call_function":
        return f"{n.op} {n.target}"
    target = n.target
    name = str(target) if isinstance(target, torch._ops.OpOverload) else getattr(target, "__name__", str(target))
    return f"call_function {name}"


def graph_json(m):
    graph = getattr(m, "graph", None)
    if graph is None or len(graph.nodes) == 0:
        return None
    return [node_text(n) for n in graph.nodes if not (n.op == "get_attr" and "_spec_" in n.target)]


def clone(v):
    return pytree.tree_map(lambda t: t.clone() if isinstance(t, torch.Tensor) else t, v)


def case(row, module, args, kwargs=None, shapes=None, preserve=(), functional=False, strict=False, calls=None):
    kwargs = kwargs or {}
    name = f"{row}_{type(module).__name__}" + ("_functional" if functional else "") + ("_strict" if strict else "")
    name += f"_{len(lines)}"
    ep = export(module, clone(args), clone(kwargs), dynamic_shapes=shapes, preserve_module_call_signature=tuple(preserve), strict=strict)
    if functional:
        ep = ep.run_decompositions()
    save(without_paths(ep), OUT / f"{name}.pt2")
    m = unflatten(ep)
    out = {
        "name": name,
        "modules": [n for n, _ in m.named_modules(remove_duplicate=False)],
        "graphs": {n: graph_json(x) for n, x in m.named_modules(remove_duplicate=False)},
        "dispatched": [n for n, x in m.named_modules() if hasattr(x, "_call_modules")],
        "state": list(m.state_dict().keys()),
        "frozen": [n for n, p in m.named_parameters() if not p.requires_grad],
        "calls": [],
    }
    for given in [args, *(calls or [])] * 2:  # twice: state may change
        own, own_kwargs = clone(given), clone(kwargs)
        result = m(*own, **own_kwargs)
        out["calls"].append({
            "args": [value_json(a) for a in given],
            "kwargs": [[k, value_json(v)] for k, v in kwargs.items()],
            "result": value_json(result),
            "after": [value_json(a) for a in own],  # inputs may be written
            "buffers": [[n, tensor_json(b)] for n, b in m.named_buffers(remove_duplicate=False) if "@" not in n],
        })
    lines.append(out)


def x(*shape):
    n = 1
    for s in shape:
        n *= s
    return (torch.arange(n, dtype=torch.float32).reshape(shape) % 7 - 3) / 4


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.foo = Foo()
        self.bar = nn.Linear(4, 4)
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x):
        return self.bar(self.foo(x)) * self.scale + self.foo.nested.weight.sum()


class Foo(nn.Module):
    def __init__(self):
        super().__init__()
        self.nested = nn.Linear(4, 4)
        self.act = nn.ReLU()
        self.p = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return self.act(self.nested(x)) + self.p


for functional in (False, True):
    case("T400", Nested(), (x(3, 4),), shapes=({0: Dim("b")},), functional=functional, calls=[(x(5, 4),)])


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros(3))

    def forward(self, x):
        self.n.add_(1)
        return x * self.n


class Mutating(nn.Module):
    def __init__(self):
        super().__init__()
        self.counter = Counter()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.total += x
        return self.counter(x) + self.total, self.counter.n


class WritesInput(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Counter()

    def forward(self, x):
        x.add_(1)
        return self.inner(x)


for functional in (False, True):
    case("T401", Mutating(), (x(3),), functional=functional)
    case("T401", WritesInput(), (x(3),), functional=functional)


class Child(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("buf", torch.ones(4, 4))

    def forward(self, x):
        return self.buf.sum() + x


class Access(nn.Module):
    def __init__(self):
        super().__init__()
        self.foo = Child()

    def forward(self, x):
        y = self.foo.buf + x
        return self.foo(y) + y


case("T402", Access(), (x(4, 4),))
case("T402", Access(), (x(4, 4),), functional=True)


class Taking(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, pair, named, *, k=None):
        a, b = pair
        out = self.lin(a + b + named["u"])
        if k is not None:
            out = out + k
        return {"sum": out, "both": (a, out * 2)}


class Giving(nn.Module):
    def __init__(self):
        super().__init__()
        self.foo = Taking()
        self.bar = Outer()

    def forward(self, x, y):
        r = self.foo((x, y), {"u": x}, k=y)
        return self.bar(r["sum"]) + r["both"][1]


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.leaf = nn.Linear(3, 3)

    def forward(self, x):
        return self.leaf(x).relu()


for functional in (False, True):
    case("T404", Giving(), (x(2, 3), x(2, 3)), preserve=("foo",), functional=functional)
    case("T404", Giving(), (x(2, 3), x(2, 3)), preserve=("foo", "bar", "bar.leaf"), functional=functional)
case("T404", Giving(), (x(2, 3), x(2, 3)), shapes=({0: Dim("b")}, {0: Dim("b")}), preserve=("foo",), calls=[(x(5, 3), x(5, 3))])


class Unused(nn.Module):
    class M1(nn.Module):
        def forward(self, x, a, b):
            return x + a, b

    def __init__(self):
        super().__init__()
        self.m1 = self.M1()

    def forward(self, x, y):
        return self.m1(x, x + 1, y + 2)[0]


case("T406", Unused(), (x(3), x(3)), preserve=("m1",))
case("T407", Nested(), (x(2, 4),))


class SubSub(nn.Module):
    def forward(self, x):
        return x * x


class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.subsub = SubSub()

    def forward(self, x):
        return x - x


class DoubleNested(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()

    def forward(self, x):
        return x + self.sub.subsub(x)


case("T408", DoubleNested(), (x(3),))


class Tuples(nn.Module):
    class Two(nn.Module):
        def forward(self, x):
            return x.sin(), x.cos()

    def __init__(self):
        super().__init__()
        self.two = self.Two()

    def forward(self, x):
        a, b = self.two(x)
        return a + b


case("T409", Tuples(), (x(3),))


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.lin.weight.requires_grad_(False)

    def forward(self, x):
        return self.lin(x)


case("T410", Frozen(), (x(2, 3),))


class Ordering(nn.Module):
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3, 3))
            self.register_buffer("b", torch.ones(3))

        def forward(self, x, y):
            return x @ self.weight + y + self.b

    def __init__(self):
        super().__init__()
        self.inner = self.Inner()

    def forward(self, x, y):
        return self.inner(x + 1, y * 2)


case("T411", Ordering(), (x(3, 3), x(3, 3)))


class Literal(nn.Module):
    class Inner(nn.Module):
        def forward(self, x):
            return x + torch.tensor([1.0, 2.0, 3.0])

    def __init__(self):
        super().__init__()
        self.sub = self.Inner()

    def forward(self, x):
        return self.sub(x) * torch.tensor(2.0)


case("T412", Literal(), (x(3),))
case("T412", Literal(), (x(3),), functional=True)


class Aliased(nn.Module):
    def __init__(self):
        super().__init__()
        self.alpha = nn.Linear(3, 3)
        self.beta = nn.ModuleDict({"z": nn.Linear(3, 3), "a": nn.ReLU()})
        self.again = self.alpha
        self.idle = nn.Dropout()

    def forward(self, x):
        return self.beta["a"](self.beta["z"](self.alpha(x))) + self.again(x)


case("T413", Aliased(), (x(2, 3),))
case("T413", Aliased(), (x(2, 3),), functional=True)


class SharedParameter(nn.Module):
    class Inner(nn.Module):
        def __init__(self, p):
            super().__init__()
            self.p = p
            self.unused = p

        def forward(self, x):
            return x * self.p

    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.full((3,), 1.5))
        self.inner = self.Inner(self.p)

    def forward(self, x):
        return self.inner(x) + self.p


case("T414", SharedParameter(), (x(3),))


class Passed(nn.Module):
    class Inner(nn.Module):
        def forward(self, x, b):
            return x + b

    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.ones(3))
        self.first = self.Inner()
        self.second = self.Inner()

    def forward(self, x):
        return self.second(self.first(x, self.b), self.b)


case("T415", Passed(), (x(3),))


class Sizes(nn.Module):
    class M1(nn.Module):
        def forward(self, x, y):
            d = x.size(0)
            return y[:d]

    class M2(nn.Module):
        def forward(self, x):
            return torch.full((x.size(0),), 2.0)

    def __init__(self):
        super().__init__()
        self.m1 = self.M1()
        self.m2 = self.M2()

    def forward(self, x, y):
        d = x.size(0)
        a = self.m1(x, y)
        return a + self.m2(x) + y[:d]


for preserve in ((), ("m1",), ("m2",), ("m1", "m2")):
    case("T416", Sizes(), (x(4), x(6)), shapes=({0: Dim("a", max=6)}, None), preserve=preserve, calls=[(x(3), x(6))])


class SharedSub(nn.Module):
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.leaf = nn.Linear(3, 3)
            self.register_buffer("b", torch.ones(3))

        def forward(self, x):
            return self.leaf(x) + self.b

    def __init__(self):
        super().__init__()
        self.bar = nn.ModuleDict({"leaf": self.Inner()})
        self.leaf = self.bar["leaf"]

    def forward(self, x):
        return self.leaf(x) + self.bar["leaf"](x) + self.leaf(x * 2)


case("T417", SharedSub(), (x(2, 3),))
case("T417", SharedSub(), (x(2, 3),), strict=True)


class Branching(nn.Module):
    class N(nn.Module):
        def forward(self, x, flag):
            return x + 1 if flag else x * 2

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = Branching.N()

        def forward(self, x):
            x = self.n(x, True)
            x = self.n(x, True)
            return self.n(x, False)

    def __init__(self):
        super().__init__()
        self.m = self.M()

    def forward(self, x):
        x = self.m(x)
        x = self.m.n(x, False)
        return self.m(x)


case("T418", Branching(), (x(3),))
case("T418", Branching(), (x(3),), preserve=("m", "m.n"))
case("T418", Branching(), (x(3),), preserve=("m.n",))


class Asserting(nn.Module):
    class Inner(nn.Module):
        def forward(self, x, n):
            torch._check(n > 1)
            torch._check(n < 10)
            return torch.full((n,), 1.0).sum() + x

    def __init__(self):
        super().__init__()
        self.sub = self.Inner()

    def forward(self, x, n):
        return self.sub(x, n.item()) + 1


case("T421", Asserting(), (x(3), torch.tensor(4)))


class Cond(nn.Module):
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(3, 3)

        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), [self.lin(x)])

    def __init__(self):
        super().__init__()
        self.inner = self.Inner()

    def forward(self, x):
        return self.inner(x) + 1


class NoGrad(nn.Module):
    class Inner(nn.Module):
        def forward(self, x):
            y = x.sin()
            with torch.no_grad():
                z = y + 1
            return z * 2

    def __init__(self):
        super().__init__()
        self.inner = self.Inner()

    def forward(self, x):
        return self.inner(x) + 1


case("T422", Cond(), (x(2, 3),), calls=[(x(2, 3) + 5,)])
case("T422", NoGrad(), (x(3),))


def random_dag(seed, n=6, mutate=True):
    """Modules of a chain; each calls some of those below it and writes a buffer of one of them."""
    rng = random.Random(seed)

    class Leaf(nn.Module):
        def __init__(self, i):
            super().__init__()
            self.i = i
            self.register_buffer("buf", torch.ones(1))

        def forward(self, x):
            return x + self.buf

    class Link(nn.Module):
        def __init__(self, i):
            super().__init__()
            self.i = i
            self.register_buffer("buf", torch.ones(1))
            if i > 0:
                setattr(self, f"n{i - 1}", Link(i - 1))
            self.plan = [(rng.randrange(i), rng.random() < 0.5) for _ in range(rng.randint(1, 3))] if i > 0 else []

        def below(self, j):
            m = self
            for i in range(self.i - 1, j - 1, -1):
                m = getattr(m, f"n{i}")
            return m

        def forward(self, x):
            for j, write in self.plan:
                m = self.below(j)
                if write and mutate:
                    m.buf.add_(1)
                x = m(x + m.buf)
            return x + self.buf + 1

    class Dag(Link):
        pass

    return Dag(n)


for seed in range(6):
    case("T419", random_dag(seed, 4), (x(1),))
for seed in range(4):
    dag = random_dag(seed + 100, 4)
    names = [n for n, _ in dag.named_modules() if n]
    try:
        case("T420", dag, (x(1),), preserve=names)
    except Exception as e:
        print("T420", seed, "PyTorch:", type(e).__name__, str(e)[:100])

(OUT / "unflatten.jsonl").write_text("".join(json.dumps(l) + "\n" for l in lines))
print(len(lines), "programs,", sum(f.stat().st_size for f in OUT.iterdir()) // 1024, "KiB")
