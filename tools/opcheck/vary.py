"""Variations of a known call: other layouts, sizes, dtypes and values, and the in-place and out= forms.

Each function takes a call and a random generator and gives a new call, or None where the variation makes no sense. A
variation may well be an error to PyTorch; then that is what the case expects.
"""

import math

import torch

from calls import FLOATS, Call, on_storage
from checks import accumulates, base_name, check_for
from oplist import is_inplace, is_out

FLOAT_SPECIALS = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-40, -1e-40, 5e-324, 1e-7, 65504.0, 3.4e38, -3.4e38, 1e300,
                  0.5, -0.5, 1.5, 2.5, 1.0, -1.0, 2147483648.0, 16777217.0]
# A smallest integer over -1 traps on x86 in PyTorch's own kernels.
TRAPPING = {"div", "floor_divide", "remainder", "fmod", "__floordiv__", "true_divide", "divide"}
# Elements of these are indices into something, or sizes; the kernels do not all check them.
INDEX_ARGUMENTS = {"index", "indices", "offsets", "target", "repeats", "batch_sizes", "input_lengths", "target_lengths"}


def written(op):
    """Flat argument positions (schema order) that the call writes to."""
    return {a.name for a in op._schema.arguments if a.alias_info is not None and a.alias_info.is_write}


def bind(call):
    """Pairs of (schema argument, value) for the arguments that are given."""
    pairs = []
    for i, a in enumerate(call.op._schema.arguments):
        if i < len(call.args):
            pairs.append((a, call.args[i]))
        elif a.name in call.kwargs:
            pairs.append((a, call.kwargs[a.name]))
    return pairs


def tensor_roles(call):
    """For each tensor leaf, in the order of Call.map_tensors, its schema argument."""
    roles = []
    given = dict((a.name, a) for a in call.op._schema.arguments)
    for i, v in enumerate(call.args):
        a = call.op._schema.arguments[i]
        for x in v if isinstance(v, (list, tuple)) else [v]:
            if isinstance(x, torch.Tensor):
                roles.append(a)
    for k, v in call.kwargs.items():
        for x in v if isinstance(v, (list, tuple)) else [v]:
            if isinstance(x, torch.Tensor):
                roles.append(given[k])
    return roles


def strided_copy(t, strides, offset, length):
    """A tensor equal to t with the given geometry; the gaps hold a pattern that a stray write would disturb."""
    base = torch.full((length,), 7, dtype=torch.int64).to(t.dtype) if t.dtype != torch.bool else \
        torch.ones(length, dtype=torch.bool)
    v = base.as_strided(t.shape, strides, offset)
    v.copy_(t)
    return v


def relaid(t, rng, allow_expand):
    """t with the same elements in another layout."""
    ways = ["offset", "step"]
    if t.dim() >= 2:
        ways += ["transposed", "transposed", "permuted", "sliced"]
    if t.dim() == 4:
        ways += ["channels_last", "channels_last"]
    if allow_expand and t.dim() >= 1:
        ways += ["expanded"]
    way = rng.choice(ways)
    t = t.detach()
    if way == "channels_last":
        return t.contiguous(memory_format=torch.channels_last).clone(memory_format=torch.preserve_format)
    if way == "offset":
        off = rng.choice([1, 3, 8])
        return strided_copy(t, t.contiguous().stride(), off, t.numel() + off + 2)
    if way == "transposed":
        return t.transpose(-1, -2).contiguous().transpose(-1, -2)
    if way == "permuted":
        order = list(range(t.dim()))
        rng.shuffle(order)
        back = [order.index(i) for i in range(t.dim())]
        return t.permute(order).contiguous().permute(back)
    if way == "expanded":
        dims = [d for d in range(t.dim()) if t.shape[d] > 1]
        if not dims:
            return t.clone()
        d = rng.choice(dims)
        return t.narrow(d, 0, 1).clone().expand(t.shape)
    # Every other element of one dimension of a larger tensor, from an offset on.
    if t.dim() == 0:
        return strided_copy(t, (), 2, 4)
    d = rng.randrange(t.dim()) if way == "sliced" else t.dim() - 1
    k = rng.choice([2, 3])
    shape = list(t.shape)
    shape[d] = max(1, shape[d] * k)
    strides = list(torch.empty(shape, device="meta").stride())
    strides[d] *= k
    return strided_copy(t, strides, 1, math.prod(shape) + 2 if all(shape) else 2)


def layout(call, rng):
    if not call.tensors():
        return None
    writes = written(call.op)
    roles = tensor_roles(call)
    only = rng.randrange(len(roles)) if rng.random() < 0.4 else None

    def fn(i, t):
        if t.numel() > 4096 or (only is not None and i != only):
            return t
        return relaid(t, rng, allow_expand=roles[i].name not in writes and rng.random() < 0.3)

    return call.map_tensors(fn, "layout")


def zero_size(call, rng):
    ts = [t for t in call.tensors() if t.dim() > 0]
    if not ts:
        return None
    d = rng.randrange(max(t.dim() for t in ts))
    from_end = rng.random() < 0.5
    size = None

    def fn(i, t):
        nonlocal size
        if t.dim() <= d:
            return t
        k = t.dim() - 1 - d if from_end else d
        if size is None:
            size = t.shape[k]
        if t.shape[k] != size:
            return t
        return t.narrow(k, 0, 0).clone()

    return call.map_tensors(fn, "zero")


def zero_dim(call, rng):
    if not any(t.dim() > 0 and t.numel() for t in call.tensors()):
        return None
    only = rng.randrange(len(call.tensors())) if rng.random() < 0.5 else None

    def fn(i, t):
        if t.numel() == 0 or (only is not None and i != only):
            return t
        return t.reshape(-1)[0].clone()

    return call.map_tensors(fn, "0d")


def broadcast(call, rng):
    """Shrinks one dimension of one tensor to 1, or gives it leading ones."""
    ts = call.tensors()
    if len(ts) < 2:
        return None
    which = rng.randrange(len(ts))
    t = ts[which]
    if t.dim() == 0:
        return None
    d = rng.randrange(t.dim())

    def fn(i, x):
        if i != which:
            return x
        if rng.random() < 0.3:
            return x.unsqueeze(0).clone()
        return x.narrow(d, 0, min(1, x.shape[d])).clone()

    return call.map_tensors(fn, "broadcast")


def refill(call, rng, scale=1.0):
    """New random values of ordinary size; indices and masks stay."""
    g = torch.Generator().manual_seed(rng.randrange(2 ** 31))

    def fn(i, t):
        if not t.dtype.is_floating_point or t.numel() == 0:
            return t
        s = t.untyped_storage()
        whole = torch.empty(0, dtype=t.dtype).set_(s, 0, (s.nbytes() // t.element_size(),), (1,))
        positive = base_name(call.op) in ("log", "rsqrt", "sqrt", "log2", "log10", "log1p", "acosh", "_native_batch_norm_legit",
                                          "_native_batch_norm_legit_no_training", "batch_norm", "native_batch_norm")
        v = torch.randn(whole.shape, generator=g, dtype=torch.float64) * scale
        whole.copy_(v.abs() + 0.01 if positive else v)
        return t

    return call.map_tensors(fn, "values") if any(t.dtype.is_floating_point for t in call.tensors()) else None


def casts_to_integer(call):
    """Whether a float value would be converted to an integer, which C++ leaves undefined out of range."""
    dtypes = [v for v in call.leaves() if isinstance(v, torch.dtype)]
    if any(not d.is_floating_point for d in dtypes):
        return True
    floats = [t.dtype.is_floating_point for t in call.tensors()]
    mixes = {"copy", "_to_copy", "to", "type_as", "fill", "masked_fill", "copysign"}
    return any(floats) and (not all(floats)) and (base_name(call.op) in mixes or bool(written(call.op)))


def special(call, rng):
    """Puts NaN, infinities, signed zeros, denormals and extreme integers among the values."""
    pointwise = torch.Tag.pointwise in call.op.tags or check_for(call.op) == "pointwise"
    roles = tensor_roles(call)
    if not roles or casts_to_integer(call) or base_name(call.op).startswith("grid_sampler"):
        return None
    low = 1 if base_name(call.op) in TRAPPING else 0
    integers_ok = pointwise or base_name(call.op) in ("sum", "prod", "cumsum", "amax", "amin", "max", "min", "argmax", "argmin",
                                                      "sort", "topk", "any", "all", "cat", "clone", "where", "flip")

    # Which of two zeros is the larger depends on the element's place in PyTorch's vector loops.
    zeros_differ = base_name(call.op) not in ("max", "min", "maximum", "minimum", "amax", "amin", "clamp", "clamp_min", "clamp_max",
                                              "fmax", "fmin", "aminmax")

    def fn(i, t):
        if t.numel() == 0 or t.dtype.is_complex or roles[i].name in INDEX_ARGUMENTS:
            return t
        t = t.clone(memory_format=torch.preserve_format)
        count = max(1, min(t.numel(), 24 if pointwise else 2))
        flat = t.reshape(-1) if t.is_contiguous() else None
        if flat is None or t.dtype == torch.bool:
            return t
        for _ in range(count):
            k = rng.randrange(t.numel())
            if t.dtype.is_floating_point:
                v = rng.choice(FLOAT_SPECIALS if pointwise else FLOAT_SPECIALS[:6])
                flat[k] = v if v != 0 or zeros_differ else 0.0
            elif integers_ok:
                info = torch.iinfo(t.dtype)
                flat[k] = rng.choice([info.max, info.min + low, info.max - 1, 0, 1, info.max // 2])
        return t

    return call.map_tensors(fn, "special")


def recast(call, rng, dtype):
    """The same call with its floating tensors (or, for pointwise integer ones, all tensors) in another dtype."""
    if dtype.is_floating_point:
        def fn(i, t):
            return t.to(dtype) if t.dtype.is_floating_point else t
        if not any(t.dtype.is_floating_point for t in call.tensors()):
            return None
        c = call.map_tensors(fn, call.kind)
        swap = lambda v: dtype if isinstance(v, torch.dtype) and v.is_floating_point else v
        return c if base_name(call.op) in ("to", "_to_copy") else Call(
            c.op, [swap(v) for v in c.args], {k: swap(v) for k, v in c.kwargs.items()}, c.kind)
    if torch.Tag.pointwise not in call.op.tags and check_for(call.op) != "exact":
        return None
    if check_for(call.op) == "exact" and any(not t.dtype.is_floating_point for t in call.tensors()):
        return None
    return call.map_tensors(lambda i, t: t.clamp(-100, 100).nan_to_num().to(dtype), call.kind)


def mixed(call, rng, dtypes):
    """One tensor of several in another dtype."""
    ts = call.tensors()
    if len(ts) < 2 or torch.Tag.pointwise not in call.op.tags and rng.random() < 0.8:
        return None
    which, dtype = rng.randrange(len(ts)), rng.choice(dtypes)
    if tensor_roles(call)[which].name in INDEX_ARGUMENTS and not dtype.is_floating_point:
        return None

    def fn(i, t):
        if i != which or t.dtype.is_complex:
            return t
        return t.clamp(-100, 100).nan_to_num().to(dtype) if t.dtype.is_floating_point else t.to(dtype)

    return call.map_tensors(fn, "mixed")


def scalar(call, rng):
    """Another number where one is given, or where a tensor may be a wrapped number."""
    choices = [0, 1, -1, 2, 3, 0.5, -1.5, 2.0, True, 100, 1e-3, 300, math.inf, math.nan]
    c = call.copy("scalar")
    hit = False
    for i, v in enumerate(c.args):
        a = c.op._schema.arguments[i]
        ty = str(a.type)
        if ty in ("number", "Optional[number]") and rng.random() < 0.7:
            c.args[i], hit = rng.choice(choices), True
        elif ty == "Tensor" and i == 1 and torch.Tag.pointwise in c.op.tags and not a.alias_info and rng.random() < 0.6:
            c.args[i], hit = rng.choice(choices), True
    for a in c.op._schema.arguments:
        if a.name in ("alpha", "beta", "value") and str(a.type) == "number" and rng.random() < 0.5 and a.kwarg_only:
            c.kwargs[a.name], hit = rng.choice([2, -1, 3, 0, 0.5, 1.5]), True
    bad = base_name(c.op) in TRAPPING or any(not t.dtype.is_floating_point for t in c.tensors())
    if bad and any(isinstance(v, float) and not math.isfinite(v) for v in c.leaves()):
        return None
    return c if hit else None


def optional(call, rng):
    """Gives or drops one optional argument."""
    c = call.copy("optional")
    choices = []
    for i, a in enumerate(c.op._schema.arguments):
        ty = str(a.type)
        if a.has_default_value() and a.name in c.kwargs and not a.is_out:
            choices.append((a, None, "drop"))
        if i < len(c.args):
            if ty == "bool":
                choices.append((a, i, "flip"))
            elif ty == "int" and a.name == "dim":
                choices.append((a, i, "dim"))
            continue
        if a.is_out or a.name in c.kwargs:
            continue
        if ty == "bool" and a.has_default_value() and a.kwarg_only:
            choices.append((a, None, "bool"))
        if ty == "Optional[ScalarType]" or (a.name == "dtype" and "int" in ty):
            choices.append((a, None, "dtype"))
        if ty == "Optional[MemoryFormat]" or a.name == "memory_format":
            choices.append((a, None, "memory_format"))
    if not choices:
        return None
    a, i, what = rng.choice(choices)
    if what == "drop":
        del c.kwargs[a.name]
    elif what == "flip":
        c.args[i] = not c.args[i]
    elif what == "dim":
        c.args[i] = rng.choice([0, -1, 1, -2])
    elif what == "bool":
        c.kwargs[a.name] = not a.default_value
    elif what == "dtype":
        c.kwargs[a.name] = rng.choice([torch.float32, torch.float64, torch.int64, torch.bfloat16, torch.int32, torch.float16])
    else:
        c.kwargs[a.name] = rng.choice([torch.contiguous_format, torch.preserve_format, torch.channels_last])
    return c


def as_inplace(call, op, rng):
    c = call.with_op(op, call.kind)
    if not isinstance(c.args[0], (torch.Tensor, list)) and "self" not in c.kwargs:
        return None
    drop = {a.name for a in op._schema.arguments}
    c.kwargs = {k: v for k, v in c.kwargs.items() if k in drop}
    return c


def as_out(call, op, rng):
    """The out= form, with out tensors of the right size, none, a wrong size, a wrong dtype, odd strides or an input."""
    try:
        made = call.copy().run()
    except Exception:
        return None
    made = list(made) if isinstance(made, (list, tuple)) else [made]
    if not all(isinstance(m, torch.Tensor) for m in made):
        return None
    names = [a.name for a in op._schema.arguments if a.is_out]
    is_list = len(names) == 1 and "List" in str([a.type for a in op._schema.arguments if a.is_out][0])
    if not is_list and len(names) != len(made):
        return None
    c = call.with_op(op)
    allowed = {a.name for a in op._schema.arguments}
    c.kwargs = {k: v for k, v in c.kwargs.items() if k in allowed}
    way = rng.choice(["right", "right", "empty", "wrong", "dtype", "strided", "alias"])

    def one(m):
        fresh = torch.full(m.shape, 3, dtype=torch.int64).to(m.dtype)
        if way == "right":
            return fresh
        if way == "empty":
            return torch.empty(0, dtype=m.dtype)
        if way == "wrong":
            return torch.full([s + 1 for s in m.shape] + [1], 3).to(m.dtype)
        if way == "dtype":
            return fresh.to(rng.choice([torch.float64, torch.float32, torch.int64, torch.bool, torch.bfloat16]))
        if way == "strided":
            return relaid(fresh, rng, False)
        for t in c.tensors():
            if t.shape == m.shape and t.dtype == m.dtype:
                return t
        return fresh

    if way == "alias" and torch.Tag.pointwise not in op.tags and torch.Tag.pointwise not in call.op.tags:
        way = "right"
    if way == "dtype" and casts_to_integer(call):
        way = "right"
    outs = [one(m) for m in made]
    if is_list:
        c.kwargs[names[0]] = outs
    else:
        c.kwargs.update(zip(names, outs))
    c.kind = "out-" + way
    return c


TRUSTED = {"_softmax", "_log_softmax", "_to_copy", "_unsafe_view", "_local_scalar_dense", "_assert_scalar",
           "_assert_tensor_metadata", "native_layer_norm", "native_dropout", "_safe_softmax"}


def fragile(op):
    """Internal operators that trust their caller's shapes: a wrong one reads stray memory instead of failing."""
    base = base_name(op)
    internal = base.startswith("_") and not base.startswith("__") or base.startswith("native_") or base.endswith("_backward")
    return internal and base not in TRUSTED


def weights(call):
    """Which variations to try and how often, for the kind of operator."""
    if fragile(call.op):
        return [("base", 3), ("layout", 2), ("values", 4), ("special", 0.5)]
    pointwise = torch.Tag.pointwise in call.op.tags
    if accumulates(call.op):
        return [("base", 3), ("layout", 3), ("values", 4), ("zero", 1), ("special", 1), ("optional", 2), ("0d", 0.3),
                ("mixed", 0.3), ("scalar", 1)]
    if pointwise:
        return [("base", 2), ("layout", 3), ("values", 1), ("zero", 1), ("special", 3), ("optional", 1), ("0d", 1.5),
                ("broadcast", 2), ("mixed", 3), ("scalar", 3)]
    return [("base", 3), ("layout", 3), ("values", 0.3), ("zero", 1), ("special", 1), ("optional", 2), ("0d", 0.7),
            ("mixed", 0.5), ("scalar", 1)]


def vary(call, rng, dtypes):
    ways = weights(call)
    way = rng.choices([w for w, _ in ways], [n for _, n in ways])[0]
    if way == "base":
        return call.copy("base")
    if way == "layout":
        return layout(call, rng)
    if way == "values":
        return refill(call, rng)
    if way == "zero":
        return zero_size(call, rng)
    if way == "special":
        c = refill(call, rng, 4.0) if rng.random() < 0.3 else call
        return special(c, rng) if c is not None else None
    if way == "optional":
        return optional(call, rng)
    if way == "0d":
        return zero_dim(call, rng)
    if way == "broadcast":
        return broadcast(call, rng)
    if way == "mixed":
        return mixed(call, rng, dtypes)
    return scalar(call, rng)
