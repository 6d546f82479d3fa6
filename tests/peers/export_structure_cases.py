"""Programs of tests/peers/export/structure*.cpp in Python: regions, higher-order operators, modules in modules, hooks, state, and
programs that are refused."""
import torch
import torch.nn as nn
from export_cases import AUTO, batch, filled, function, length, module
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

# ---- regions ----------------------------------------------------------------------------------------------------------


@function("no_grad_region", (filled([3, 4]),))
def _(x):
    y = x + 1
    with torch.no_grad():
        z = y.sin()
    return z * 2


@function("no_grad_whole", (filled([3, 4]),))
def _(x):
    with torch.no_grad():
        return (x + 1) * 2


@function("no_grad_nested", (filled([3, 4]),))
def _(x):
    with torch.no_grad():
        a = x + 1
        with torch.enable_grad():
            b = a * 2
        c = b.sin()
    return c + x


@function("no_grad_twice", (filled([3, 4]),))
def _(x):
    with torch.no_grad():
        a = x.sin()
    b = a + 1
    with torch.no_grad():
        c = b.cos()
    return c - x


@function("no_grad_results", (filled([3, 4]),))
def _(x):
    with torch.no_grad():
        a = x.sin()
        b = x.cos()
    return a * b, a


@function("no_grad_dynamic", (filled([3, 4]),), {"x": {0: batch}})
def _(x):
    y = x + 1
    with torch.no_grad():
        z = y.reshape(x.shape[0] * 4)
    return z.sin()


@function("no_grad_write", (filled([3, 4]),))
def _(x):
    y = x.clone()
    with torch.no_grad():
        y.add_(1)
    return y * 2


@function("no_grad_split", (filled([4, 4]),))
def _(x):
    with torch.no_grad():
        parts = x.split(2)
    return parts[0] + parts[1]


@function("grad_region", (filled([3, 4]),))
def _(x):
    with torch.enable_grad():
        y = x.sin()
    return y + 1


@function("autocast_region", (filled([3, 4]), filled([4, 2], 1)))
def _(x, w):
    y = x + 1
    with torch.autocast("cpu", torch.bfloat16):
        z = torch.matmul(y, w)
    return z.to(torch.float32) * 2


@function("autocast_nested", (filled([3, 4]), filled([4, 4], 1)))
def _(x, w):
    with torch.autocast("cpu", torch.bfloat16):
        a = torch.matmul(x, w)
        with torch.autocast("cpu", enabled=False):
            b = torch.matmul(a.to(torch.float32), w)
        c = torch.matmul(b, w)
    return a, b, c


@function("autocast_without_gradients", (filled([3, 4]), filled([4, 4], 1)))
def _(x, w):
    with torch.no_grad():
        y = x.sin()
        with torch.autocast("cpu", torch.bfloat16):
            z = torch.matmul(y, w)
    return z


@function("autocast_dynamic", (filled([3, 4]), filled([4, 2], 1)), {"x": {0: batch}, "w": None})
def _(x, w):
    with torch.autocast("cpu", torch.float16):
        z = torch.matmul(x, w)
    return z + 1


# ---- higher-order operators -------------------------------------------------------------------------------------------


@function("cond_closure", (filled([3, 4]), filled([4], 1)))
def _(x, y):
    z = y * 2
    return torch.cond(x.sum() > 0, lambda a: a + z, lambda a: a - y, (x,))


@function("cond_nested", (filled([3, 4]),))
def _(x):
    def inner(a):
        return torch.cond(a.mean() > 1, lambda b: b * 2, lambda b: b * 3, (a,))

    return torch.cond(x.sum() > 0, inner, lambda a: a.cos(), (x,))


@function("cond_results", (filled([3, 4]), filled([3, 4], 1)))
def _(x, y):
    a, b = torch.cond(x.sum() > 0, lambda p, q: (p + q, p * q), lambda p, q: (p - q, q.sin()), (x, y))
    return a * 2, b


@function("cond_dynamic", (filled([3, 4]),), {"x": {0: batch}})
def _(x):
    return torch.cond(x.sum() > 0, lambda a: a.reshape(-1).sin(), lambda a: a.reshape(-1) + 1, (x,))


@function("cond_region", (filled([3, 4]),))
def _(x):
    def quiet(a):
        with torch.no_grad():
            b = a.sin()
        return b + 1

    return torch.cond(x.sum() > 0, quiet, lambda a: a.cos(), (x,))


@function("cond_in_region", (filled([3, 4]),))
def _(x):
    with torch.no_grad():
        y = torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x,))
    return y + 1


@function("cond_item", (filled([4]), torch.tensor(2)))
def _(x, i):
    def first(a, n):
        k = n.item()
        torch._check(k >= 0)
        torch._check(k <= 4)
        return torch.ones([k]).sum() + a.sum()

    return torch.cond(x.sum() > 0, first, lambda a, n: a.sum(), (x, i))


@function("cond_constant", (filled([3]),))
def _(x):
    return torch.cond(x.sum() > 0, lambda a: a + torch.tensor([1.0, 2.0, 3.0]), lambda a: a * 2, (x,))


@function("while_loop", (filled([3, 4]),))
def _(x):
    return while_loop(lambda a: a.sum() < 10, lambda a: (a + 1,), (x,))


@function("while_loop_closure", (torch.tensor(0), filled([3]), filled([3], 1)))
def _(i, x, y):
    return while_loop(lambda n, a: n < 3, lambda n, a: (n + 1, a + y), (i, x))


@function("map_closure", (filled([3, 4]), filled([4], 1)))
def _(x, y):
    z = y.sin()
    return torch_map(lambda a: a * z, x)


@function("map_tree", (filled([3, 4]), filled([3, 2], 1)))
def _(x, y):
    return torch_map(lambda p: (p[0].sin(), p[1] + 1), (x, y))


@function("map_dynamic", (filled([3, 4]), filled([4], 1)), {"x": {0: batch}, "y": None})
def _(x, y):
    return torch_map(lambda a, b: a + b, x, y)


@function("scan", (filled([4]), filled([3, 4], 1)))
def _(init, xs):
    def combine(carry, x):
        n = carry + x
        return n, n * 2

    return scan(combine, init, xs)


@function("scan_reverse", (filled([4]), filled([3, 4], 1)))
def _(init, xs):
    def combine(carry, x):
        n = carry * x
        return n, n.sin()

    return scan(combine, init, xs, reverse=True)


# ---- modules ----------------------------------------------------------------------------------------------------------


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        return self.lin(x).relu()


@module("deep", (filled([3, 4]),), dynamic_shapes={"x": {0: batch}})
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(Part(), nn.Linear(4, 4), Part())
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        return self.out(self.layers(x) + 1)


@module("module_list", (filled([3, 4]),))
class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Part(), Part(), Part()])

    def forward(self, x):
        for i in range(3):
            x = self.layers[i](x) + i
        return x


@module("child_without_gradients", (filled([3, 4]),))
class Quiet(nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = Part()
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        with torch.no_grad():
            h = self.frozen(x)
        return self.head(h)


class QuietPart(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            y = self.lin(x)
        return y.sin()


@module("region_in_child", (filled([3, 4]),))
class HoldsQuiet(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = QuietPart()

    def forward(self, x):
        return self.part(x) + self.part(x + 1)


@module("autocast_module", (filled([3, 4]),))
class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 2)

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            h = self.first(x)
        return self.second(h.to(torch.float32))


@module("shared_module", (filled([3, 4]),))
class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        one = Part()
        self.a = one
        self.b = one

    def forward(self, x):
        y = self.a(x)
        return self.b(y + 1)


@module("shared_in_list", (filled([3, 4]),))
class SharedInList(nn.Module):
    def __init__(self):
        super().__init__()
        one = Part()
        self.layers = nn.Sequential(one, nn.Linear(4, 4), one)

    def forward(self, x):
        return self.layers(x)


@module("called_three_times", (filled([3, 4]),))
class Thrice(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x):
        return self.part(self.part(self.part(x) + 1).sin())


@module("forward_hook", (filled([3, 4]),))
class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.part.register_forward_hook(lambda m, args, result: result.sin())

    def forward(self, x):
        return self.part(x) + 1


@module("forward_pre_hook", (filled([3, 4]),))
class PreHooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.part.register_forward_pre_hook(lambda m, args: (args[0] * 2,))

    def forward(self, x):
        return self.part(x) + 1


@module("root_hook", (filled([3, 4]),))
class RootHooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.register_forward_hook(lambda m, args, result: result.cos())

    def forward(self, x):
        return self.part(x) + 1


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count.add_(1)
        return x * self.count


@module("counted_child", (filled([3]),))
class HoldsCounting(nn.Module):
    def __init__(self):
        super().__init__()
        self.counter = Counting()

    def forward(self, x):
        return self.counter(self.counter(x) + 1)


class Remembering(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(3))

    def forward(self, x):
        y = x + self.last
        self.last = y.sin()
        return y


@module("assigned_in_child", (filled([3]),))
class HoldsRemembering(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = Remembering()

    def forward(self, x):
        return self.memory(x) * 2


@module("written_without_gradients", (filled([3]),))
class WritesQuietly(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        with torch.no_grad():
            self.total.add_(x)
        return x + self.total


@module("written_through_a_view", (filled([3]),))
class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(4, 3))

    def forward(self, x):
        self.cache.select(0, 1).copy_(x)
        return self.cache.sum(0)


@module("buffer_returned", (filled([3]),))
class GivesState(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.ones(3))
        self.weight = nn.Parameter(filled([3], 2))

    def forward(self, x):
        return self.state, x + self.weight, self.weight


@module("non_persistent_child", (filled([3]),))
class HoldsTable(nn.Module):
    def __init__(self):
        super().__init__()

        class Table(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("table", filled([3], 5), persistent=False)

            def forward(self, x):
                return x * self.table

        self.inner = Table()

    def forward(self, x):
        return self.inner(x) + self.inner.table


@module("cond_with_state", (filled([3]),))
class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(filled([3], 2))
        self.register_buffer("shift", filled([3], 3))

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda a: a * self.weight + self.shift, lambda a: a - self.weight, (x,))


@module("cond_calls_modules", (filled([3, 4]),))
class Choosing(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(4, 4)
        self.right = nn.Linear(4, 4)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda a: self.left(a), lambda a: self.right(a).sin(), (x,))


@module("map_calls_module", (filled([3, 4]),))
class Mapping(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x):
        return torch_map(lambda a: self.part(a), x)


@module("preserved_deep", (filled([3, 4]),), preserve_module_call_signature=("layers.0.lin", "out"))
class PreservedDeep(Deep):
    pass


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, y):
        a = self.lin(x)
        return {"sum": a + y, "parts": (a, y * 2)}


@module("preserved_tree", (filled([3, 4]), filled([3, 4], 1)), preserve_module_call_signature=("pair",))
class HoldsPair(nn.Module):
    def __init__(self):
        super().__init__()
        self.pair = Pair()

    def forward(self, x, y):
        out = self.pair(x, y)
        return out["sum"] + out["parts"][1]


@module("defaults", (filled([3]),))
class Defaults(nn.Module):
    def forward(self, x, scale=2.0, mask=None):
        y = x * scale
        return y if mask is None else y * mask


@module("none_given", (filled([3]), 3.0, None))
class NoneGiven(Defaults):
    pass


@module("dict_result", (filled([3, 4]),), dynamic_shapes={"x": {0: AUTO}})
class Results(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 2)

    def forward(self, x):
        y = self.lin(x)
        return {"logits": y, "hidden": [x, y.sin()]}


@module("dropout_and_norm", (filled([4, 4]),))
class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.norm(x))


captured = filled([3], 6)


@function("captured_tensor", (filled([3]),))
def _(x):
    return x + captured * 2


# ---- refused ----------------------------------------------------------------------------------------------------------


@function("refused_branch_on_data", (filled([3]),))
def _(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


@function("refused_fixed_dim", (filled([3, 4]),), {"x": {0: batch}})
def _(x):
    return x.reshape(3, 4) + 1


@function("refused_equal_dims", (filled([3]), filled([3], 1)), {"x": {0: batch}, "y": {0: length}})
def _(x, y):
    return x + y


@function("refused_dim_below_range", (filled([3]),), {"x": {0: torch.export.Dim("b", min=5, max=9)}})
def _(x):
    return x + 1


@function("refused_unknown_name", (filled([3]),), {"z": {0: batch}})
def _(x):
    return x + 1


@function("refused_arguments", (filled([3]), filled([3]), filled([3])))
def _(x):
    return x + 1


@function("refused_missing_argument", (filled([3]),))
def _(x, y):
    return x + y


@function("refused_cond_sizes", (filled([3]),))
def _(x):
    return torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: torch.cat([a, a]).reshape(2, 3), (x,))


@function("refused_cond_dtypes", (filled([3]),))
def _(x):
    return torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a.to(torch.int64), (x,))


@function("refused_while_loop", (filled([3]),))
def _(x):
    return while_loop(lambda a: a.sum() < 10, lambda a: (torch.cat([a, a]),), (x,))


@function("refused_size_from_data", (filled([4]), torch.tensor(2)))
def _(x, n):
    k = n.item()
    if k > 3:
        return x + 1
    return x


@module("refused_unknown_preserved", (filled([3, 4]),), preserve_module_call_signature=("nowhere",))
class Nowhere(Part):
    pass
