"""Small programs that PyTorch exports, chosen for what their .pt2 files hold: every kind of argument, symbols, mutation,
subgraphs, metadata, containers."""

import collections

import torch
from torch.export import Dim, export

Point = collections.namedtuple("Point", ["x", "y"])
torch.utils._pytree._register_namedtuple(Point, serialized_type_name="pt2_cases.Point")

library = torch.library.Library("pt2_cases", "DEF")


def define(schema, body):
    library.define(schema)
    name = schema.split("(")[0]
    library.impl(name, body, "CPU")
    library.impl(name, body, "Meta")
    library.impl(name, body, "Autograd")


define("scaled(Tensor x, float factor, *, int[] dims=[]) -> Tensor", lambda x, factor, dims=(): x * factor)
define("pair(Tensor x, Tensor? y) -> (Tensor, Tensor?)", lambda x, y: (x + 1, None if y is None else y * 2))
define("parts(Tensor[] xs, str mode) -> Tensor[]", lambda xs, mode: [x.clone() for x in xs])


library.define("write(Tensor(a!) x, Tensor[] ys, SymInt n) -> ()")
library.define("write_one(Tensor(a!) x, Tensor y) -> Tensor")
library.define("write_two(Tensor(a!) x, Tensor(b!)[] ys) -> (Tensor, Tensor)")


def write(x, ys, n):
    x.add_(ys[0] * n)


def write_one(x, y):
    x.mul_(2)
    return x + y


def write_two(x, ys):
    x.sub_(1)
    ys[0].mul_(3)
    return x + ys[1], x * 2


for op, body in {"write": write, "write_one": write_one, "write_two": write_two}.items():
    library.impl(op, body, "CompositeExplicitAutograd")


class Fn(torch.nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *args, **kwargs):
        return self.fn(*args, **kwargs)


def t(*size, dtype=torch.float32, seed=0):
    g = torch.Generator().manual_seed(seed + 7 * len(size) + sum(size))
    if dtype == torch.bool:
        return torch.rand(size, generator=g) > 0.5
    if not dtype.is_floating_point and not dtype.is_complex:
        return torch.randint(0, 5, size, generator=g, dtype=dtype)
    return torch.randn(size, generator=g, dtype=torch.float32 if dtype.is_floating_point else torch.complex64).to(dtype)


CASES = {}


def case(fn):
    CASES[fn.__name__] = fn
    return fn


def simple(name, fn, args, kwargs=None, dynamic=None, module=None, **options):
    def build():
        m = module() if module else Fn(fn)
        shapes = {"args": dynamic} if isinstance(dynamic, tuple) else dynamic  # Fn takes *args
        return export(m, args, kwargs or {}, dynamic_shapes=shapes, **options), args, kwargs or {}

    CASES[name] = build


class TwoLayers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a = torch.nn.Linear(6, 6)
        self.b = torch.nn.Linear(6, 6, bias=False)
        self.norm = torch.nn.LayerNorm(6)

    def forward(self, x):
        return self.norm(self.b(torch.relu(self.a(self.a(x)))))


class State(torch.nn.Module):
    """Buffers that change, one that is not saved, a constant, an attribute that is a tensor, a frozen parameter."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("cache", torch.ones(3), persistent=False)
        self.register_buffer("unused", torch.arange(4.0))
        self.table = torch.arange(6.0).reshape(2, 3)
        self.weight = torch.nn.Parameter(torch.randn(3), requires_grad=False)

    def forward(self, x):
        self.count.add_(1)
        return x * self.weight + self.cache + self.table[1] + self.count + torch.tensor([1.0, 2.0, 3.0])


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed = torch.nn.Embedding(7, 5)
        self.head = torch.nn.Linear(5, 7, bias=False)
        self.head.weight = self.embed.weight
        base = torch.randn(4, 5)
        self.register_buffer("whole", base)
        self.register_buffer("row", base[2])
        self.register_buffer("column", base[:, 1])
        self.register_buffer("turned", base.t())

    def forward(self, ids):
        return self.head(self.embed(ids) + self.row) + self.column.sum() + self.turned.sum() + self.whole[0, 0]


class Dtypes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        names = "float64 float16 bfloat16 uint8 int8 int16 int32 int64 bool complex64 complex128 uint16 uint32 uint64 float8_e4m3fn float8_e5m2".split()
        for name in names:
            self.register_buffer("b_" + name, t(2, 3).abs().to(getattr(torch, name)))
        self.register_buffer("empty", torch.zeros(0, 3))

    def forward(self, x):
        out = x + self.b_float64.float() + self.b_float16.float() + self.b_bfloat16.float() + self.b_int64 + self.b_bool
        return out, self.b_complex64.clone(), self.empty.sum(), x.to(torch.float64), self.b_uint16, self.b_float8_e4m3fn.float()


class Conv(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.bn = torch.nn.BatchNorm2d(4)

    def forward(self, x):
        return torch.nn.functional.max_pool2d(self.bn(self.conv(x)).relu(), 2)


class Cond(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.lin = torch.nn.Linear(4, 4)

    def forward(self, x, flag):
        return torch.cond(flag, lambda x: self.lin(x).sin(), lambda x: (x + 1).cos(), (x,))


class NestedCond(torch.nn.Module):
    def forward(self, x, a, b):
        def inner(x):
            return torch.cond(b, lambda x: (x + 1, x * 2), lambda x: (x - 1, x * 3), (x,))

        return torch.cond(a, inner, lambda x: (x * 5, x + 0), (x,))


class NoGrad(torch.nn.Module):
    def forward(self, x):
        with torch.no_grad():
            y = x * 2
        return y + x


class Checked(torch.nn.Module):
    def forward(self, x, mask):
        n = x.max().item()
        torch._check(n >= 2)
        torch._check(n <= 10)
        return torch.zeros(n) + mask.nonzero().shape[0]


simple("two_layers", None, (t(2, 6),), module=TwoLayers)
simple("two_layers_dynamic", None, (t(3, 5, 6),), module=TwoLayers, dynamic={"x": {0: Dim("batch", max=64), 1: Dim("seq", min=2)}})
simple("two_layers_auto", None, (t(3, 5, 6),), module=TwoLayers, dynamic={"x": {0: Dim.AUTO, 1: Dim.DYNAMIC}})
simple("strict", None, (t(3, 6),), module=TwoLayers, dynamic={"x": {0: Dim("batch")}}, strict=True)
simple("state", None, (t(2, 3),), module=State)
simple("tied", None, (torch.tensor([1, 2, 6]),), module=Tied)
simple("dtypes", None, (t(2, 3),), module=Dtypes)
simple("conv_training", None, (t(2, 3, 8, 8),), module=Conv)
simple("cond", None, (t(3, 4), torch.tensor(True)), module=Cond)
simple("nested_cond", None, (t(3), torch.tensor(True), torch.tensor(False)), module=NestedCond)
simple("no_grad_region", None, (t(3).requires_grad_(),), module=NoGrad)
simple("no_grad_region_strict", None, (t(3).requires_grad_(),), module=NoGrad, strict=True)
simple("unbacked", None, (torch.tensor([1, 4, 3]), t(6, dtype=torch.bool)), module=Checked)
simple("basic", lambda x: ((x + x) * x / x).clone(), (t(3, 4).requires_grad_(),))
simple("several_results", lambda x, w, b: torch.ops.aten.native_layer_norm(x, [2, 5], w, b, eps=1e-5), (t(2, 3, 2, 5), t(2, 5), t(2, 5)))
simple("list_result", lambda x: torch.split(x, [2, 3, 1]), (t(6, 2),))
simple("list_result_unused", lambda x: torch.split(x, [2, 3, 1])[1], (t(6, 2),))
simple("some_unused", lambda x: torch.var_mean(x, dim=0)[0], (t(4, 3),))
simple("max_indices", lambda x: tuple(torch.max(x, dim=1)), (t(4, 3),))
simple("keyword_default", lambda s, x: torch.ops.aten.searchsorted.Tensor(s, x, side="right", right=True), (torch.sort(t(6)).values, t(3)))
simple("empty_int_list", lambda x: torch.ops.aten.sum.dim_IntList(x, []), (t(3, 4),))
simple("shape_arithmetic", lambda x: (x.shape[0] * 2 + 1, x.shape[1] // 2, x.view(x.shape[0] * x.shape[1])), (t(4, 6),), dynamic=({0: Dim("a"), 1: Dim("b")},))
simple("shape_compare", lambda x: x.reshape(-1, 2).sum(0) * max(x.shape[0], 3), (t(8),), dynamic=({0: 2 * Dim("half", max=100)},))
simple("derived", lambda x, y: x[:-1] + y, (t(5), t(4)), dynamic=({0: Dim("d", min=3, max=20) + 1}, {0: Dim("d", min=3, max=20)}))
simple("concatenated", lambda x, y: torch.cat([x, y], 1).reshape(x.shape[0], -1), (t(3, 4), t(3, 5)), dynamic=({0: Dim.AUTO, 1: Dim.AUTO}, {0: Dim.AUTO, 1: Dim.AUTO}))
simple("float_sizes", lambda x: torch.nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear"), (t(1, 2, 6, 5),), dynamic=({2: Dim.AUTO, 3: Dim.AUTO},))
simple("constants", lambda x: x + torch.tensor(2.5) + torch.tensor([[1, 2]]).float(), (t(3, 2),))
simple("constant_outputs", lambda x: (None, 1024, x + 1, 2.5, True), (t(3),))
simple("constant_inputs", lambda x, n, s, f, b, z: x * n * f + (1 if b else 0), (t(3), 3, "mode", 1.5, True, None))
simple("kwargs", lambda x, *, y, z: x + y * z, (t(3),), {"z": t(3, seed=2), "y": t(3, seed=1)})
simple("nested_inputs", lambda a, b: {"sum": a["x"] + b[0][1], "list": [a["y"], b[1]], "tuple": (b[0][0],)}, ({"y": t(3), "x": t(3, seed=1)}, [(t(3, seed=2), t(3, seed=3)), t(3, seed=4)]))
simple("ordered_dict", lambda x: collections.OrderedDict(b=x + 1, a=x * 2), (t(3),))
simple("namedtuple", lambda p: Point(p.x + p.y, p.y * 2), (Point(t(3), t(3, seed=1)),))
simple("mutated_input", lambda x, y: x.add_(y).mul_(2), (t(3), t(3, seed=1)))
simple("memory_format", lambda x: x.to(memory_format=torch.channels_last).contiguous(memory_format=torch.contiguous_format), (t(2, 3, 4, 4),))
simple("device_dtype", lambda x: torch.arange(0, 4, dtype=torch.float64, device="cpu") + x.to(torch.float64) + torch.zeros_like(x, dtype=torch.float16), (t(4),))
simple("infinities", lambda x: x.masked_fill(x > 0, float("-inf")).clamp(min=float("-inf"), max=float("inf")).nan_to_num(nan=float("nan")), (t(5),))
simple("complex_argument", lambda x: (torch.full((3,), 1.5 + 2j, dtype=torch.complex64), x + 1), (t(4),))
simple("optional_tensors", lambda x, i: x[:, i] + x[i], (t(4, 4), torch.tensor([0, 2, 1, 3])))
simple("index_put", lambda x, i: torch.ops.aten.index_put(x, [None, i], torch.zeros(()), accumulate=False), (t(4, 4), torch.tensor([0, 2])))
simple("embedding_bag", lambda w, i: torch.nn.functional.embedding_bag(i, w, mode="mean"), (t(6, 3), torch.tensor([[0, 1], [2, 5]])))
simple("einsum", lambda x, y: torch.einsum("bij,bjk->bik", x, y), (t(2, 3, 4), t(2, 4, 5)))
simple("attention", lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True), (t(1, 2, 5, 8), t(1, 2, 5, 8, seed=1), t(1, 2, 5, 8, seed=2)), dynamic=({2: Dim("s")},) * 3)
simple("custom_op", lambda x: torch.ops.pt2_cases.scaled(x, 2.0, dims=[1, 2]) + 1, (t(3),))
simple("custom_optional", lambda x, y: torch.ops.pt2_cases.pair(x, y)[0] + torch.ops.pt2_cases.pair(x, None)[0], (t(3), t(3, seed=1)))
simple("custom_list", lambda x, y: torch.ops.pt2_cases.parts([x, y], "copy")[1] * 2, (t(3), t(3, seed=1)))
simple("nonzero", lambda x: x.nonzero(), (t(3, 4, dtype=torch.bool),))
simple("uint_constants", lambda x: x.to(torch.uint16), (t(3, dtype=torch.int64),))
simple("unicode", lambda x: {"é": x + 1, "数": x * 2, 'quote"': x}, (t(2),))
simple("integer_keys", lambda x: {0: x + 1, 5: x * 2}, (t(2),))


@case
def lstm():
    torch.manual_seed(0)
    m = torch.nn.LSTM(4, 5, num_layers=2, bidirectional=True, batch_first=True).eval()
    args = (t(2, 3, 4),)
    return export(m, args), args, {}


@case
def transformer():
    torch.manual_seed(0)
    m = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    args = (t(2, 5, 8),)
    return export(m, args, dynamic_shapes=({0: Dim("b"), 1: Dim("s")},)), args, {}


@case
def decomposed():
    args = (t(3, 5, 6),)
    return export(TwoLayers(), args, dynamic_shapes={"x": {0: Dim("b")}}).run_decompositions(), args, {}


@case
def decomposed_state():
    args = (t(2, 3),)
    return export(State(), args).run_decompositions(), args, {}


@case
def decomposed_conv():
    args = (t(2, 3, 8, 8),)
    return export(Conv(), args).run_decompositions(), args, {}


@case
def decomposed_cond():
    args = (t(3, 4), torch.tensor(False))
    return export(Cond(), args).run_decompositions(), args, {}


@case
def decomposed_split():
    args = (t(6, 2),)
    return export(Fn(lambda x: torch.split(x, 2)[0] + torch.unbind(x, 0)[1]), args).run_decompositions(), args, {}


@case
def mapped():
    from torch._higher_order_ops.map import map as map_

    args = (t(4, 3), t(3))
    return export(Fn(lambda xs, y: map_(lambda x, y: x.sin() + y, xs, y)), args), args, {}


@case
def while_loop():
    from torch._higher_order_ops.while_loop import while_loop as loop

    args = (torch.tensor(0), t(3))
    return export(Fn(lambda i, x: loop(lambda i, x: i < 4, lambda i, x: (i + 1, x * 1.5), (i, x))), args), args, {}


@case
def preserved_modules():
    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = TwoLayers()

        def forward(self, x):
            return self.inner(x) + self.inner(x * 2)

    args = (t(2, 6),)
    return export(Outer(), args, preserve_module_call_signature=("inner",), strict=False), args, {}


@case
def custom_metadata():
    args = (t(3),)
    ep = export(Fn(lambda x: (x + 1) * 2), args)
    ep.graph_module.meta["custom"] = {"model": "tiny", "n": [1, 2.5, None, True]}
    for node in ep.graph.nodes:
        if node.op == "call_function":
            node.meta["custom"] = {"tag": node.name, "nested": {"é": 1}}
    return ep, args, {}


def functionalized(name, fn, args, dynamic=None):
    def build():
        return export(Fn(fn), args, dynamic_shapes=dynamic).run_decompositions(), args, {}

    CASES[name] = build


def written(x, y, z):
    x = x.clone()
    torch.ops.pt2_cases.write(x, [y, z], x.shape[0])
    return x


def written_one(x, y):
    x = x.clone()
    return torch.ops.pt2_cases.write_one(x, y), x


def written_two(x, y, z):
    x, y = x.clone(), y.clone()
    return torch.ops.pt2_cases.write_two(x, [y, z]), x, y


functionalized("auto_functionalized", written, (t(3), t(3, seed=1), t(3, seed=2)), dynamic={"args": ({0: Dim("n", min=2)},) * 3})
functionalized("auto_functionalized_one", written_one, (t(3), t(3, seed=1)))
functionalized("auto_functionalized_two", written_two, (t(3), t(3, seed=1), t(3, seed=2)))
