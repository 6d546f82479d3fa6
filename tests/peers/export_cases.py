"""The programs of tests/peers/export/*.cpp in Python: name -> (module, args, kwargs, options of torch.export.export)."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.export import Dim

AUTO, DYNAMIC = Dim.AUTO, Dim.DYNAMIC
batch, length = Dim("batch"), Dim("length")
CASES = {}


def filled(sizes, seed=0, dtype=torch.float32, below=10):
    n = 1
    for s in sizes:
        n *= s
    if dtype == torch.int64:
        flat = [(k * 7 + seed * 3 + 2) % below for k in range(n)]
    elif dtype == torch.bool:
        flat = [(k * 5 + seed) % 3 == 0 for k in range(n)]
    else:
        flat = [((k * 37 + seed * 11) % 101 - 50) / 16 for k in range(n)]
    return torch.tensor(flat, dtype=dtype).reshape(sizes)


def function(name, args, dynamic_shapes=None, **options):
    def register(f):
        class Function(nn.Module):
            pass

        Function.forward = lambda self, *a: f(*a)
        import inspect

        names = list(inspect.signature(f).parameters)
        scope = {"f": f}
        exec(f"def forward(self, {', '.join(names)}):\n    return f({', '.join(names)})\n", scope)
        Function.forward = scope["forward"]
        CASES[name] = (Function, args, {}, {"dynamic_shapes": dynamic_shapes, **options})
        return f

    return register


def module(name, args, kwargs=None, dynamic_shapes=None, evaluate=False, **options):
    def register(cls):
        make = (lambda: cls().eval()) if evaluate else cls
        CASES[name] = (make, args, kwargs or {}, {"dynamic_shapes": dynamic_shapes, **options})
        return cls

    return register


@function("pointwise", (filled([3, 4]), filled([4], 1)))
def _(x, y):
    a = x * y
    b = (a.sin() + 1).relu()
    return b - y / 2


@function("dynamic_pointwise", (filled([3, 4]), filled([3, 4], 1)), {"x": {0: batch}, "y": {0: batch}})
def _(x, y):
    return (x + y).exp()


@function("auto_equal", (filled([3, 4]), filled([3, 4], 1)), {"x": {0: AUTO, 1: AUTO}, "y": {0: AUTO, 1: AUTO}})
def _(x, y):
    return x + y


@function("sizes", (filled([3, 4]),), {"x": {0: batch, 1: length}})
def _(x):
    n = x.shape[0]
    a = x.reshape(n * x.shape[1])
    return a, n, n * 2 + 1


@function("views", (filled([3, 4]),), {"x": {0: batch}})
def _(x):
    t = x.transpose(0, 1)
    u = t.unsqueeze(0)
    v = u.expand(2, -1, -1)
    return v.contiguous().view(2, -1), t.permute(1, 0), x.flatten(), u.squeeze(0)


@function("slicing", (filled([4, 5]),))
def _(x):
    a = torch.ops.aten.slice.Tensor(x, 0, 1, 3)
    b = x.select(1, 2)
    c = x.narrow(1, 0, 2)
    return a, b, c


@function("inplace", (filled([3, 4]),))
def _(x):
    y = x.clone()
    y.add_(1)
    y.mul_(2)
    v = y.view(-1)
    v.relu_()
    return y + 1


@function("mutated_input", (filled([3, 4]), filled([3, 4], 1)))
def _(x, y):
    x.add_(y)
    return x * 2


@function("view_mutation", (filled([3, 4]),))
def _(x):
    row = x.select(0, 0)
    row.fill_(1)
    return x + 1


@function("matmuls", (filled([3, 4]), filled([4, 5], 1), filled([5], 2)), {"x": {0: batch}, "w": None, "b": None})
def _(x, w, b):
    a = x.matmul(w)
    c = torch.addmm(b, x, w)
    d = F.linear(x, w.t(), b)
    return a, c, d


@function("bmm", (filled([2, 3, 4]), filled([2, 4, 3], 1)), ({0: AUTO}, {0: AUTO}))
def _(x, y):
    a = x.bmm(y)
    return torch.softmax(a, -1)


@function("reductions", (filled([3, 4]),), {"x": {0: batch}})
def _(x):
    a = x.sum()
    b = x.mean([1])
    c = x.amax([0])
    d = x.argmax(1)
    e = x.cumsum(1)
    return a, b, c, d, e


@function("multi_output", (filled([3, 4]),))
def _(x):
    values, indices = torch.topk(x, 2)
    m, i = x.max(1)
    parts = x.split(2, 1)
    return values, indices, m, i, parts[0], parts[1]


@function("unused_outputs", (filled([3, 4]),))
def _(x):
    m, i = x.max(1)
    return m + 1


@function("dead_code", (filled([3, 4]), filled([2])))
def _(x, unused):
    x.sin()
    return x.cos()


@function("cat_stack", (filled([3, 4]), filled([3, 2], 1)), {"x": {0: batch}, "y": {0: batch}})
def _(x, y):
    a = torch.cat([x, y], 1)
    b = torch.stack([x, x], 0)
    return a, b


@function("factories", (filled([3, 4]),), {"x": {0: batch}})
def _(x):
    a = torch.zeros([x.shape[0], 2])
    b = torch.ones_like(x)
    c = torch.arange(x.shape[0])
    d = torch.full([2, 2], 3.5)
    return a, b, c, d


@function("literals", (filled([3, 4]),))
def _(x):
    a = x + torch.tensor([1.0, 2.0, 3.0, 4.0])
    return a * torch.tensor(2.5)


@function("casts", (filled([3, 4]),))
def _(x):
    a = x.to(torch.float64)
    b = x.to(torch.int64)
    c = x.to(torch.float32)
    return a, b, c


@function("comparisons", (filled([3, 4]), filled([3, 4], 5)))
def _(x, y):
    a = x > y
    b = torch.where(a, x, y)
    c = torch.masked_fill(x, a, 0.5)
    return a, b, c


@function("indexing", (filled([4, 5]), filled([3], 0, torch.int64, 4)))
def _(x, i):
    a = x.index_select(0, i)
    b = x.gather(1, i.unsqueeze(1))
    c = F.embedding(i, x)
    return a, b, c


@function("constants", (filled([3, 4]), 3, 2.5, "trunc"))
def _(x, n, k, how):
    a = x * n
    b = a + k
    return b, n, how


@function("nested", ({"foo": [filled([3])], "bar": filled([3], 1)}, [filled([2], 2), filled([4], 3)]))
def _(x, ys):
    c = x["foo"][0] + x["bar"]
    return {"sum": c, "parts": [ys[0] * 2, (ys[1], 1)], "none": None}


@function("item", (filled([3, 4]), torch.tensor(5)))
def _(x, n):
    k = n.item()
    torch._check(k >= 2)
    torch._check(k <= 7)
    a = torch.zeros([k, 4])
    return a, x + 1


@function("nonzero", (filled([3, 4]),), {"x": {0: batch}})
def _(x):
    nz = torch.nonzero(x)
    return nz + 1


# Data that an equality fixes: replaced everywhere, and asserted.
@function("item_fixed_by_view", (torch.tensor(6), filled([24])))
def _(n, x):
    return x.view(n.item(), 4)


@function("item_fixed_by_check", (torch.tensor(6), filled([24])))
def _(n, x):
    k = n.item()
    torch._check(k == 6)
    return x + k


@function("item_fixed_after_use", (torch.tensor(6), filled([6])))
def _(n, x):
    k = n.item()
    torch._check(k >= 0)
    a = torch.zeros([k])
    b = torch.zeros([2 * k])
    return a + x, b


@function("two_equal_items", (torch.tensor(6),))
def _(n):
    a = n.item()
    b = (n * 1).item()
    torch._check(a == b)
    torch._check(a >= 0)
    x = torch.zeros([a])
    y = torch.zeros([b])
    return x + y


@function("item_after_another", (torch.tensor(6),))
def _(n):
    a = n.item()
    b = (n + 1).item()
    torch._check(a == b - 1)
    torch._check(a >= 0)
    x = torch.zeros([a])
    return x, torch.zeros([b])


@function("nonzero_fixed_by_check", (torch.tensor([1.0, 1.0, 1.0, 0.0]),))
def _(x):
    nz = torch.nonzero(x)
    torch._check(nz.shape[0] == 3)
    return nz + torch.ones([3, 1])


@function("nonzero_fixed_by_add", (torch.tensor([1.0, 1.0, 1.0, 0.0]), filled([3])))
def _(x, y):
    nz = torch.nonzero(x)
    return nz.reshape(-1) + y


@function("branch_on_size", (filled([5, 4]),), {"x": {0: AUTO}})
def _(x):
    if x.shape[0] > 3:
        return x + 1
    return x - 1


@function("derived_dim", (filled([5]), filled([6], 1)), {"x": {0: length}, "y": {0: length + 1}})
def _(x, y):
    return x + torch.ops.aten.slice.Tensor(y, 0, 1)


@function("bounded_dim", (filled([5, 4]),), {"x": {0: Dim("b", min=3, max=16)}})
def _(x):
    return x * 2


@function("deferred_assert", (filled([3, 4]), filled([12], 1)), {"x": {0: DYNAMIC, 1: DYNAMIC}, "y": {0: DYNAMIC}}, prefer_deferred_runtime_asserts_over_guards=True)
def _(x, y):
    return x.reshape([-1]) + y


@function("dynamic_integer", (filled([3, 4]), 5), {"x": {0: AUTO}, "n": DYNAMIC})
def _(x, n):
    return x + n, n * 3


@function("attention", (filled([2, 2, 3, 4]), filled([2, 2, 3, 4], 1), filled([2, 2, 3, 4], 2)), ({2: AUTO}, {2: AUTO}, {2: AUTO}))
def _(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


@function("manual_attention", (filled([2, 3, 4]), filled([2, 3, 4], 1), filled([2, 3, 4], 2)), ({1: AUTO}, {1: AUTO}, {1: AUTO}))
def _(q, k, v):
    scores = q.matmul(k.transpose(-2, -1)) / 2
    p = scores.softmax(-1)
    return p.matmul(v)


@function("cond", (filled([3, 4]),))
def _(x):
    return torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x,))


@function("cond_on_size", (filled([3, 4]),), {"x": {0: batch}})
def _(x):
    return torch.cond(x.shape[0] > 4, lambda a: a + 1, lambda a: a - 1, (x,))


@function("truth_returned", (filled([3]),))
def _(x):
    return (x > 0).any().item(), x


@function("truth_fills", (filled([3]),))
def _(x):
    return torch.full((2,), (x > 0).any().item())


@function("truth_checked", (filled([3]),))
def _(x):
    torch._check((x < 100).any().item())
    return x + 1


@function("truth_predicate", (filled([3]),))
def _(x):
    return torch.cond((x > 0).any().item(), lambda a: a.sin(), lambda a: a.cos(), (x,))


@function("truth_factor", (filled([3]),))
def _(x):
    return x * (x > 0).all().item()


@function("truth_chooses", (filled([3]),))
def _(x):
    return torch.sym_ite((x > 0).all().item(), 3, 4)


@function("truth_negated", (filled([3]),))
def _(x):
    return torch.sym_not((x > 0).all().item()), x


@function("truths_either", (filled([3]),))
def _(x):
    a = (x < 100).all().item()
    b = (x > 1).any().item()
    torch._check(a | b)
    return x + 1


@function("truth_refused", (filled([3]),))
def _(x):
    return x + 1 if (x > 0).all().item() else x - 1


@function("map", (filled([3, 4]), filled([4], 1)))
def _(x, y):
    from torch._higher_order_ops.map import map as torch_map

    return torch_map(lambda a, b: a + b, x, y)


@function("input_returned", (filled([2]), filled([2], 1)))
def _(x, y):
    return x, y + 1, x


@function("reserved_names", (filled([3]), filled([3], 1), filled([3], 2)))
def _(input, max, mul):
    return input * max + mul


@function("no_outputs_used", (filled([3]),))
def _(x):
    x.add_(1)


@function("pad_and_roll", (filled([3, 4]),))
def _(x):
    a = torch.constant_pad_nd(x, [1, 2], 0.5)
    b = torch.roll(x, [1], [0])
    c = torch.flip(x, [1])
    return a, b, c


@function("scatter", (filled([4, 5]), filled([2, 2], 0, torch.int64, 4)))
def _(x, i):
    a = x.scatter(1, i, 2.0)
    rows = i.select(1, 0)
    b = x.index_add(0, rows, torch.ops.aten.slice.Tensor(x, 0, 0, 2))
    return a, b


@function("einsum", (filled([2, 3, 4]), filled([2, 4, 3], 1)))
def _(x, y):
    return torch.einsum("bij,bjk->bik", x, y)


@function("chunk_gelu", (filled([3, 8]),), {"x": {0: batch}})
def _(x):
    parts = x.chunk(2, -1)
    return F.gelu(parts[0]) * parts[1]


@function("rotary", (filled([2, 3, 4]), filled([3, 4], 1), filled([3, 4], 2)), ({1: AUTO}, {0: AUTO}, {0: AUTO}))
def _(x, cos, sin):
    a = torch.ops.aten.slice.Tensor(x, -1, None, 2)
    b = torch.ops.aten.slice.Tensor(x, -1, 2)
    rotated = torch.cat([-b, a], -1)
    direct = x * cos
    return direct + rotated * sin


@function("causal_mask", (filled([2, 3, 3]),), {"x": {1: length, 2: length}})
def _(x):
    n = x.shape[1]
    mask = torch.ones([n, n]).tril()
    return x.masked_fill(mask == 0, -1.0)


# ---- with state -------------------------------------------------------------------------------------------------------


@module("mlp", (filled([3, 4]),), dynamic_shapes={"x": {0: batch}})
class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 8)
        self.down = nn.Linear(8, 4)

    def forward(self, x):
        return self.down(self.up(x).relu()) + x


@module("counter", (filled([3]),))
class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("scale", torch.full([1], 2.0), persistent=False)

    def forward(self, x):
        self.count.add_(1)
        return x * self.scale + self.count


@module("assigned", (filled([3]),))
class Assigned(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(3))

    def forward(self, x):
        out = x + self.last
        self.last = out * 2
        return out


@module("tied", (filled([2, 3]),))
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3)
        self.unused = nn.Linear(2, 2)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(self.a(x))


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(filled([3]))
        self.constant = filled([3], 4)

    def forward(self, x, k):
        a = x * self.weight
        return a + self.constant * k


@module("named_constants", (filled([3]),))
@module("preserved", (filled([3]),), preserve_module_call_signature=("nested_1", "nested_2"))
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.nested_1 = Inner()
        self.nested_2 = Inner()

    def forward(self, x):
        a = self.nested_1(x, 1.0)
        b = self.nested_2(a, 2.0)
        return self.nested_1(b, 3.0)


@module("literal_module", (filled([2, 3]),))
class Literal(nn.Module):
    def __init__(self):
        super().__init__()
        self.attribute = filled([3], 2)
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        a = x + self.attribute
        b = a + torch.tensor([1.0, 2.0, 3.0])
        c = torch.tensor([4.0, 5.0, 6.0])
        return self.layer(b) * c


@module("convolutions_training", (filled([2, 3, 8, 8]),), dynamic_shapes={"x": {0: batch}})
@module("convolutions", (filled([2, 3, 8, 8]),), dynamic_shapes={"x": {0: batch}}, evaluate=True)
class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        a = self.norm(self.conv(x)).relu()
        b = F.max_pool2d(a, [2, 2])
        return self.head(F.adaptive_avg_pool2d(b, [1, 1]).flatten(1))


@module("block", (filled([2, 3, 8]),), dynamic_shapes={"x": {0: batch, 1: length}})
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm([8])
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        b, t = x.shape[0], x.shape[1]
        h = self.qkv(self.norm(x))
        parts = h.split(8, -1)

        def heads(p):
            return p.view(b, t, 2, 4).transpose(1, 2)

        q = heads(parts[0])
        k = heads(parts[1])
        v = heads(parts[2])
        y = F.scaled_dot_product_attention(q, k, v, None, 0.0, True)
        return x + self.out(y.transpose(1, 2).reshape(b, t, 8))


@module("language", (filled([2, 5], 0, torch.int64, 16),), dynamic_shapes={"tokens": {0: batch, 1: length}})
class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.first = Block()
        self.second = Block()
        self.norm = nn.LayerNorm([8])

    def forward(self, tokens):
        x = self.second(self.first(self.embed(tokens)))
        y = self.norm(x)
        return y.matmul(self.embed.weight.t())


@module("keywords", (filled([3]),), {"shift": filled([3], 1), "scale": filled([3], 2)})
class Keywords(nn.Module):
    def forward(self, x, scale, shift):
        return x * scale + shift


@module("frozen", (filled([3]),))
class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(filled([3]), requires_grad=False)

    def forward(self, x):
        return x * self.weight


@module("repeated", (filled([2, 3]),))
class Repeated(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(self.layer(x).sin()).cos()


@module("mutates_both", (filled([3]),))
class MutatesBoth(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.ones(3))

    def forward(self, x):
        x.add_(1)
        self.state.mul_(2)
        return x + self.state
