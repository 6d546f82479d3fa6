"""Calls written by hand for operators that op_db does not reach, or reaches too thinly.

templates(name) gives a list of (args, kwargs); float tensors are float32 and are recast to the other dtypes later.
"""

import torch

_g = torch.Generator()


def f(*shape):
    return torch.randn(shape, generator=_g)


def i(high, *shape, low=0, dtype=torch.int64):
    return torch.randint(low, high, shape, generator=_g, dtype=dtype)


def b(*shape):
    return torch.rand(shape, generator=_g) > 0.5


def bitwise_scalar():
    out = []
    for d in (torch.int8, torch.int16, torch.int32, torch.int64):
        out += [([i(50, 3, 4, low=-50, dtype=d), s], {}) for s in (0, 1, -1, 7, True)]
    out += [([i(200, 5, dtype=torch.uint8), 12], {}), ([b(2, 3), True], {}), ([b(2, 3), False], {}), ([b(3), 3], {}),
            ([f(3), 1], {})]
    return out


def logical_and_pair():
    out = []
    for d in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        for shape, other in (((3, 4), (3, 4)), ((3, 1), (4,)), ((), (2, 3)), ((2, 1, 3), (4, 1)), ((0, 3), (1, 3))):
            out.append(([i(2 if d == torch.bool else 100, *shape).to(d), i(2 if d == torch.bool else 100, *other).to(d)], {}))
    return out


def division_modes():
    out = []
    for mode in ("trunc", "floor", None):
        for s in (2, -3, 0.7, 2.5, 1):
            out.append(([f(3, 5) * 10, s], {"rounding_mode": mode}))
            for d in (torch.int64, torch.int32, torch.int8, torch.uint8, torch.int16):
                out.append(([i(100, 4, 3, low=0 if d == torch.uint8 else -100).to(d), s], {"rounding_mode": mode}))
    return out


def fmod_scalar():
    out = []
    for s in (2, -3, 0.7, 2.5, 7):
        out.append(([f(3, 5) * 10, s], {}))
        for d in (torch.int64, torch.int32, torch.int8, torch.uint8, torch.int16):
            out.append(([i(100, 4, 3, low=0 if d == torch.uint8 else -100).to(d), s], {}))
    return out


def geometry():
    return [f(3, 4), f(2, 3, 4).transpose(0, 2), f(5)[2:], f(), f(0, 3), f(4, 6)[::2, 1::3], f(3, 1).expand(3, 4),
            f(2, 3, 4, 5).contiguous(memory_format=torch.channels_last), i(9, 3, 2), b(4), f(1, 5), f(1, 0, 1)]


def with_dims(*extra):
    out = []
    for t in geometry():
        for d in range(-t.dim() - 1, t.dim() + 1):
            out.append(([t, d, *extra], {}))
    return out


def convolutions():
    out = []
    for n in (1, 2, 3):
        size, k = (7, 6, 5)[:n], (3, 2, 3)[:n]
        for groups in (1, 2):
            for stride, pad, dil in (((1,) * n, (0,) * n, (1,) * n), ((2,) * n, (1,) * n, (1,) * n), ((1,) * n, (2,) * n, (2,) * n)):
                for bias in (True, False):
                    out.append(([f(2, 4, *size), f(6, 4 // groups, *k), f(6) if bias else None, stride, pad, dil, False,
                                 (0,) * n, groups], {}))
                    opad = tuple(s - 1 for s in stride)
                    out.append(([f(2, 4, *size), f(4, 6 // groups, *k), f(6) if bias else None, stride, pad, (1,) * n, True,
                                 opad, groups], {}))
    return out


def convolution_backward():
    out = []
    for args, _ in convolutions():
        x, w, bias, *rest = args
        try:
            y = torch.convolution(x, w, bias, *rest)
        except RuntimeError:
            continue
        for mask in ((True, True, True), (True, False, False), (False, True, True)):
            out.append(([f(*y.shape), x, w, [6] if bias is not None else None, *rest, list(mask)], {}))
    return out


def conv(n):
    out = []
    for args, _ in convolutions():
        x, w, bias, stride, pad, dil, transposed, _, groups = args
        if x.dim() == n + 2 and not transposed:
            out.append(([x, w, bias, stride, pad, dil, groups], {}))
            out.append(([x[0], w, bias, stride, pad, dil, groups], {}))
    # Patch embedding, point-wise and depth-wise shapes of real models.
    k = (4,) * n
    out += [([f(2, 3, *(8,) * n), f(5, 3, *k), f(5), k], {}), ([f(2, 8, *(5,) * n), f(4, 8, *(1,) * n), f(4)], {}),
            ([f(1, 6, *(6,) * n), f(6, 1, *(3,) * n), f(6), [1] * n, [1] * n, [1] * n, 6], {}),
            ([f(0, 3, *(8,) * n), f(5, 3, *k), f(5), k], {})]
    return out


def linear():
    return [([f(*lead, k), f(n, k), f(n) if bias else None], {})
            for lead in ((), (3,), (2, 3), (2, 1, 4), (0,), (2, 0)) for k, n in ((4, 5), (16, 3), (33, 7), (1, 1), (0, 3))
            for bias in (True, False)]


def addmm():
    out = []
    for m, k, n in ((3, 4, 5), (1, 16, 8), (7, 33, 2), (0, 3, 4), (3, 0, 4)):
        for bias in ((m, n), (n,), (1, n), (m, 1), ()):
            out.append(([f(*bias), f(m, k), f(k, n)], {}))
            out.append(([f(*bias), f(m, k), f(n, k).t()], {"beta": 0.5, "alpha": 2}))
            out.append(([f(*bias), f(k, m).t(), f(k, n)], {"beta": 0, "alpha": 1}))
    return out


def mm():
    out = []
    for m, k, n in ((3, 4, 5), (1, 16, 8), (7, 33, 2), (0, 3, 4), (3, 0, 4), (5, 64, 9), (1, 1, 1), (17, 100, 3)):
        out += [([f(m, k), f(k, n)], {}), ([f(k, m).t(), f(k, n)], {}), ([f(m, k), f(n, k).t()], {}),
                ([f(m, 2 * k)[:, ::2], f(k, n)], {})]
    return out


def bmm():
    out = []
    for bs, m, k, n in ((2, 3, 4, 5), (1, 1, 16, 8), (4, 7, 9, 2), (0, 2, 3, 4), (2, 3, 0, 4)):
        out += [([f(bs, m, k), f(bs, k, n)], {}), ([f(bs, k, m).transpose(1, 2), f(bs, k, n)], {}),
                ([f(bs, m, k), f(bs, n, k).transpose(1, 2)], {}), ([f(1, m, k).expand(bs, m, k), f(bs, k, n)], {})]
    return out


def baddbmm():
    return [([f(*shape), *a], kw) for (a, _) in bmm() for shape in ((a[0].shape[0], a[0].shape[1], a[1].shape[2]), (a[1].shape[2],))
            for kw in ({}, {"beta": 0.5, "alpha": 2})]


def matmul():
    shapes = (((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)),
              ((2, 1, 3, 4), (3, 4, 2)), ((3, 4), (2, 4, 5)), ((4,), (2, 4, 5)), ((2, 3, 4), (4,)), ((2, 0, 4), (4, 5)),
              ((2, 3, 0), (0, 5)), ((1, 2, 3, 4), (5, 1, 4, 3)))
    return [([f(*x), f(*y)], {}) for x, y in shapes] + \
        [([f(2, 3, 4, 5), f(2, 3, 6, 5).transpose(-1, -2)], {}), ([f(2, 4, 3, 5).transpose(1, 2), f(2, 4, 5, 3).permute(0, 3, 2, 1)], {})]


def attention():
    out = []
    for bsz, h, lq, lk, d in ((1, 2, 3, 3, 4), (2, 3, 5, 7, 8), (1, 1, 1, 9, 16), (2, 2, 8, 8, 8)):
        q, k, v = f(bsz, h, lq, d), f(bsz, h, lk, d), f(bsz, h, lk, d)
        causal = torch.ones(lq, lk, dtype=torch.bool).tril()
        out += [([q, k, v], {}), ([q, k, v, causal], {}), ([q, k, v, f(bsz, 1, lq, lk)], {}),
                ([q, k, v, None, 0.0, True], {}), ([q, k, v], {"scale": 0.3}), ([q, k, v, None, 0.0, False], {"scale": 0.125}),
                ([q.transpose(1, 2).contiguous().transpose(1, 2), k, v], {}),
                ([f(bsz, 2 * h, lq, d), k, v], {"enable_gqa": True}), ([q, k, f(bsz, h, lk, d + 2)], {}),
                ([q[0], k[0], v[0], causal], {}), ([q, k, v, b(bsz, h, lq, lk)], {}),
                ([q, k, v, torch.zeros(lq, lk, dtype=torch.bool)], {})]
    return out


def layer_norm(native):
    out = []
    for shape, norm in (((3, 4), [4]), ((2, 3, 8), [8]), ((2, 3, 4), [3, 4]), ((5,), [5]), ((0, 4), [4]), ((2, 33), [33]), ((4, 1), [1])):
        for w, c in ((True, True), (True, False), (False, False)):
            args = [f(*shape), norm, f(*norm) if w else None, f(*norm) if c else None, 1e-5]
            out.append((args, {}))
            if not native:
                out.append(([*args[:4]], {}))
                out.append(([f(*shape), norm], {"eps": 1e-3}))
    return out


def layer_norm_backward():
    out = []
    for args, _ in layer_norm(True):
        x, norm, w, c, eps = args
        y, mean, rstd = torch.native_layer_norm(x, norm, w, c, eps)
        for mask in ((True, True, True), (True, False, False), (False, True, True)):
            out.append(([f(*y.shape), x, norm, mean, rstd, w, c, list(mask)], {}))
    return out


def group_norm():
    return [([x, g, f(x.shape[1]) if w else None, f(x.shape[1]) if w else None, 1e-5], {})
            for x in (f(2, 4), f(2, 4, 3), f(2, 6, 3, 2), f(1, 4, 2, 2, 2), f(0, 4, 3)) for g in (1, 2) for w in (True, False)]


def native_group_norm():
    out = []
    for args, _ in group_norm():
        x, g, w, c, eps = args
        if x.numel():
            n, ch = x.shape[:2]
            out.append(([x, w, c, n, ch, x.numel() // (n * ch), g, eps], {}))
    return out


def group_norm_backward():
    out = []
    for args, _ in native_group_norm():
        x, w, c, n, ch, hw, g, eps = args
        y, mean, rstd = torch.native_group_norm(*args)
        for mask in ((True, True, True), (True, False, False)):
            out.append(([f(*y.shape), x, mean, rstd, w, n, ch, hw, g, list(mask)], {}))
    return out


def batch_norm(kind):
    out = []
    for shape in ((3, 4), (2, 4, 5), (2, 3, 4, 2), (4, 3, 1, 1)):
        for affine in (True, False):
            c = shape[1]
            x, w, bias, m, v = f(*shape), f(c) if affine else None, f(c) if affine else None, f(c), f(c).abs() + 0.1
            if kind == "no_training":
                out.append(([x, w, bias, m, v, 0.1, 1e-5], {}))
            elif kind == "no_stats":
                out.append(([x, w, bias, True, 0.1, 1e-5], {}))
            elif kind == "legit":
                out += [([x, w, bias, m, v, True, 0.1, 1e-5], {}), ([x, w, bias, m.clone(), v.clone(), False, 0.2, 1e-3], {})]
            else:
                out += [([x, w, bias, m, v, True, 0.1, 1e-5, True], {}), ([x, w, bias, m.clone(), v.clone(), False, 0.2, 1e-3, False], {}),
                        ([x, w, bias, None, None, True, 0.1, 1e-5, False], {})]
    return out


def embedding():
    return [([f(7, d), i(7, *shape)], kw) for d in (1, 4, 9) for shape in ((), (3,), (2, 3), (0,), (2, 2, 2))
            for kw in ({}, {"padding_idx": 2})] + [([f(7, 3), i(7, 4, dtype=torch.int32)], {}), ([f(3, 4), torch.tensor([3])], {})]


def embedding_backward():
    return [([f(*shape, 4), i(7, *shape), 7, pad, scale], {}) for shape in ((3,), (2, 5), (0,)) for pad in (-1, 2) for scale in (False, True)]


def pool_backward():
    out = []
    for x in (f(1, 2, 6, 6), f(2, 3, 7, 5), f(2, 5, 6)):
        for k, s, p, ceil, count in (((2, 2), (2, 2), (0, 0), False, True), ((3, 3), (2, 2), (1, 1), True, False), ((3, 2), (1, 1), (1, 0), False, True)):
            y = torch._C._nn.avg_pool2d(x, k, s, p, ceil, count)
            out.append(([f(*y.shape), x, k, s, p, ceil, count, None], {}))
    return out


def max_pool_backward():
    out = []
    for x in (f(1, 2, 6, 6), f(2, 3, 7, 5), f(2, 5, 6)):
        for k, s, p, d, ceil in (((2, 2), (2, 2), (0, 0), (1, 1), False), ((3, 3), (2, 2), (1, 1), (1, 1), True), ((2, 2), (1, 1), (0, 0), (2, 2), False)):
            y, idx = torch._C._nn.max_pool2d_with_indices(x, k, s, p, d, ceil)
            out.append(([f(*y.shape), x, k, s, p, d, ceil, idx], {}))
    return out


def max_pool2d():
    return [([x, k, *rest], {}) for x in (f(1, 2, 6, 6), f(2, 3, 7, 5), f(2, 5, 6), f(0, 2, 4, 4))
            for k, rest in (([2], []), ([2, 2], [[2, 2]]), ([3, 3], [[2, 2], [1, 1]]), ([3, 2], [[1, 1], [1, 0], [1, 1], True]),
                            ([2, 2], [[1, 1], [0, 0], [2, 2]]))]


def adaptive_backward():
    return [([f(*x.shape[:-2], *o), x], {}) for x in (f(1, 2, 6, 6), f(2, 3, 7, 5), f(3, 5, 4)) for o in ((1, 1), (3, 2), (5, 4))]


def replication(n):
    pads = {1: ([1, 2], [0, 3]), 2: ([1, 2, 0, 1], [2, 2, 1, 1]), 3: ([1, 1, 0, 2, 1, 0], [1, 1, 1, 1, 1, 1])}[n]
    return [([f(*lead, *(3, 4, 2)[:n]), p], {}) for lead in ((2,), (2, 3)) for p in pads]


def weight_norm():
    out = []
    for v in (f(3, 4), f(3, 2, 5), f(4, 1, 2, 2)):
        for dim in range(v.dim()):
            shape = [1] * v.dim()
            shape[dim] = v.shape[dim]
            out.append(([v, f(*shape), dim], {}))
    return out


def assert_metadata():
    x = f(2, 3)
    return [([x], {}), ([x, [2, 3]], {}), ([x, [2, 3], [3, 1]], {}), ([x, [2, 3], [3, 1], torch.float32], {}),
            ([x, None, None, torch.float32], {"device": torch.device("cpu"), "layout": torch.strided}),
            ([x, [3, 2]], {}), ([x, None, [1, 2]], {}), ([x, None, None, torch.int64], {}), ([i(4, 3), None, None, torch.int64], {})]


def factories(make):
    out = []
    for d in (None, torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
              torch.float32, torch.float64):
        kw = {} if d is None else {"dtype": d}
        out += [(a, {**kw, **k}) for a, k in make(d)]
    return out


def aranges(n):
    def make(d):
        vals = ((5,), (0,), (2.5,), (7,), (-1,)) if n == 1 else \
            ((1, 5), (-3, 3), (0.5, 4.2), (2, 2), (5, 1)) if n == 2 else \
            ((1, 10, 2), (5, 0, -1), (0, 1, 0.1), (-2, 3.5, 0.7), (0, 10, 3), (0, 5, 0), (0, 5, -1), (2, 2, 1))
        bounded = [v for v in vals if d != torch.bool and (d != torch.uint8 or all(x >= 0 for x in v))]
        return [(list(v), {}) for v in bounded]
    return factories(make)


def fulls():
    return factories(lambda d: [([s, v], {}) for s in ([2, 3], [], [0, 4], [5]) for v in ((1, True, 0) if d in (torch.bool, torch.uint8) else (1, -2.5, True, 0, 100)
                                if d is None or d.is_floating_point else (1, 7, True, 0, 100))])


def sized():
    return factories(lambda d: [([s], {}) for s in ([2, 3], [], [0, 4], [5], [2, 1, 3])])


def likes(*extra):
    return [([t, *extra], kw) for t in geometry() for kw in ({}, {"dtype": torch.float64}, {"dtype": torch.int32},
            {"memory_format": torch.contiguous_format}, {"memory_format": torch.preserve_format})]


def casts():
    out = []
    kinds = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
             torch.float64, torch.complex64]
    for a in kinds:
        for c in kinds:
            src = (f(2, 3) * 20).abs() if c == torch.uint8 else f(2, 3) * 20
            src = src.to(a)
            if a.is_complex and not c.is_complex:
                continue
            out.append((src, c))
    return out


def random_sizes():
    return [([s], kw) for s in ([2, 3], [], [0, 4], [5]) for kw in ({}, {"dtype": torch.float64}, {"dtype": torch.bfloat16})]


def integers_for(values, name):
    return [([v], {}) for v in values]


def fills():
    return [([t, v], {}) for t in geometry() for v in (torch.tensor(2), torch.tensor(1.5), torch.tensor(True), torch.ones(1))] + \
        [([i(100, 3).to(d), torch.tensor(3)], {}) for d in (torch.uint8, torch.int8, torch.int16, torch.int32)]


def reshapes():
    out = [([f(2, 3, 4, 5), s], {}) for s in ([2, 12, 5], [6, 20], [2, 3, 20], [2, -1], [2, 3, 4, 5], [-1], [2, 3, 2, 2, 5], [6, 4, 5], [2, 3, -1, 5])]
    out += [([f(2, 3, 4).transpose(0, 1), s], {}) for s in ([3, 2, 2, 2], [3, 2, 4], [3, -1, 4])]
    return out + [([f(6, 5), [3, 2, 5]], {}), ([f(3, 7), [21]], {}), ([f(2, 3, 4).transpose(1, 2), [8, 3]], {})]


def expands():
    return [([f(3, 1), [3, 4]], {}), ([f(1, 5), [2, -1]], {}), ([f(5), [2, 3, 5]], {}), ([f(2, 1, 7), [2, 6, 7]], {}), ([f(2, 3), [2, 3]], {}),
            ([f(), [2, 3]], {}), ([f(1, 1), [0, 3]], {})]


def grouped_products():
    """Of rows by expert with the experts' matrices, of columns, of what is summed over, and of each with each; factors as they lie, transposed
    and cut out of wider ones; groups of nothing; and what is refused."""
    out = []
    for d in (torch.float32, torch.bfloat16, torch.float16):
        def ends(*at):
            return torch.tensor(at, dtype=torch.int32)

        a, matrices = f(10, 16).to(d), f(3, 24, 16).to(d)
        out += [([a, matrices.transpose(-2, -1), ends(2, 5, 10)], {}), ([a, matrices.transpose(-2, -1).contiguous(), ends(0, 10, 10)], {}),
                ([f(16, 10).to(d).t().contiguous(), f(3, 16, 8).to(d), ends(10, 10, 10)], {}), ([f(10, 32).to(d)[:, 8:24], f(3, 16, 8).to(d), ends(1, 2, 10)], {}),
                ([f(3, 6, 16).to(d), f(16, 24).to(d), ends(8, 8, 24)], {}), ([f(3, 6, 16).to(d), f(24, 16).to(d).t(), ends(8, 16, 24)], {}),
                ([f(6, 24).to(d), f(24, 16).to(d), ends(8, 8, 24)], {}), ([f(24, 8).to(d).t(), f(24, 16).to(d), ends(4, 12, 24)], {}),
                ([f(3, 6, 16).to(d), f(3, 16, 8).to(d)], {}), ([f(3, 6, 16).to(d), f(3, 8, 16).to(d).transpose(1, 2)], {}),
                ([a, f(3, 8, 24).to(d), ends(2, 5, 10)], {}), ([a, matrices.transpose(-2, -1)], {}), ([a, matrices.transpose(-2, -1), ends(2, 10)], {}),
                ([a, matrices.transpose(-2, -1), ends(2, 5, 10).long()], {}), ([f(10, 15).to(d), f(3, 15, 8).to(d), ends(2, 5, 10)], {}),
                ([f(3, 6, 16).to(d), f(3, 16, 8).to(d), ends(2, 4, 6)], {}), ([a, f(3, 16, 8).to(d), ends(2, 0, 5, 0, 10, 0)[::2]], {}),
                ([f(0, 16).to(d), f(3, 16, 8).to(d), ends(0, 0, 0)], {}), ([a, f(3, 16, 8).to(d), ends(2, 5, 10)], {"out_dtype": d}),
                ([a, f(3, 16, 8).to(d), ends(2, 5, 10), f(3, 8).to(d)], {}), ([a, f(3, 16, 8).to(d), ends(2, 5, 10)], {"out_dtype": torch.float64}),
                ([f(10, 32).to(d)[:, ::2], f(3, 16, 8).to(d), ends(2, 5, 10)], {}), ([a[0], f(3, 16, 8).to(d), ends(2, 5, 10)], {}),
                ([a[None, None], f(3, 16, 8).to(d), ends(2, 5, 10)], {}), ([a, f(3, 16, 8).to(d), ends(2, 5, 10)[None]], {}),
                ([a, f(3, 16, 8).double(), ends(2, 5, 10)], {}), ([a.double(), f(3, 16, 8).double(), ends(2, 5, 10)], {})]
    return out


def shrink_gradients():
    return [([f(*s), f(*s), v], {}) for s in ((3, 4), (5,), (), (0, 3)) for v in (0.5, 0.0, 2)]


def margin_gradients():
    out = []
    for reduction in (0, 1, 2):
        for p in (1, 2):
            grad = f(5) if reduction == 0 else f()
            out.append(([grad, f(5, 4), i(4, 5), p, 1.0, f(4).abs() if p == 1 else None, reduction], {}))
    return out


def multilabel_gradients():
    target = torch.tensor([[0, 2, -1, 1], [3, -1, 0, 0], [-1, 0, 0, 0]])
    flags = torch.ops.aten.multilabel_margin_loss_forward(f(3, 4), target, 0)[1]
    return [([f(3) if r == 0 else f(), f(3, 4), target, r, flags], {}) for r in (0, 1, 2)]


def ctc_gradients():
    out = []
    for lengths, targets in (((6, 6), (3, 2)), ((6, 4), (1, 3)), ((5, 3), (0, 2))):
        probs, labels = f(6, 2, 5).log_softmax(2), i(5, 2, 3, low=1)
        loss, alpha = torch.ops.aten._ctc_loss(probs, labels, lengths, targets, 0, True)
        out += [([f(2), probs, labels, lengths, targets, loss, alpha, 0, zero], {}) for zero in (True, False)]
    return out


def weight_norm_backward():
    out = []
    for shape in ((3, 4), (5, 2, 3)):
        for dim in (0, len(shape) - 1):
            small = [n if d == dim else 1 for d, n in enumerate(shape)]
            norms = f(*small).abs() + 0.5
            out.append(([f(*shape), f(*shape), f(*small), norms, dim], {}))
    return out


def bag_backward(dense=False):
    out = []
    for mode in (0, 1, 2):
        for by_frequency in (False, True) if mode < 2 else (False,):
            for padding in (-1, 2):
                indices, bags = i(5, 6), torch.tensor([0, 0, 1, 1, 1, 2])
                places = i(5, 3, 4) if mode == 2 else torch.tensor([2, 3, 1])
                sizes = torch.tensor([2, 3, 1])
                offsets = [] if dense else [torch.tensor([0, 2, 5])]
                rest = [by_frequency, mode] + ([] if dense else [False]) + [f(6) if mode == 0 and padding < 0 else None, padding]
                out.append(([f(3, 4), indices, *offsets, bags, sizes, places, 5, *rest], {}))
    return out


def bag_weights_backward():
    return [([f(3, 4), f(5, 4), i(5, 6), torch.tensor([0, 2, 5]), torch.tensor([0, 0, 1, 1, 1, 2]), 0, padding], {}) for padding in (-1, 2)]


def attention_backward():
    out = []
    for heads, kv_heads, causal, masked in ((2, 2, False, False), (2, 2, True, False), (4, 2, False, True), (2, 2, False, True)):
        q, k, v = f(2, 5, heads, 8).transpose(1, 2), f(2, 7, kv_heads, 8).transpose(1, 2), f(2, 7, kv_heads, 8).transpose(1, 2)
        mask = f(5, 7) if masked else None
        o, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, attn_mask=mask)
        out.append(([f(2, heads, 5, 8), q, k, v, o, lse, 0.0, causal], {"attn_mask": mask} if masked else {}))
    return out


TABLE = {
    "aten::softshrink_backward": shrink_gradients, "aten::hardshrink_backward": shrink_gradients,
    "aten::multi_margin_loss_backward": margin_gradients, "aten::multilabel_margin_loss_backward": multilabel_gradients,
    "aten::_ctc_loss_backward": ctc_gradients,
    "aten::_weight_norm_interface_backward": weight_norm_backward,
    "aten::_embedding_bag_backward": bag_backward, "aten::_embedding_bag_dense_backward": lambda: bag_backward(True),
    "aten::_embedding_bag_per_sample_weights_backward": bag_weights_backward,
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": attention_backward,
    "aten::_grouped_mm": grouped_products,
    "aten::view": reshapes, "aten::reshape": reshapes, "aten::expand": expands,
    "aten::fill.Tensor": fills,
    "aten::__and__.Tensor": logical_and_pair, "aten::__or__.Tensor": logical_and_pair, "aten::__xor__.Tensor": logical_and_pair,
    "aten::bitwise_and.Scalar": bitwise_scalar, "aten::bitwise_or.Scalar": bitwise_scalar, "aten::bitwise_xor.Scalar": bitwise_scalar,
    "aten::__and__.Scalar": bitwise_scalar, "aten::__or__.Scalar": bitwise_scalar, "aten::__xor__.Scalar": bitwise_scalar,
    "aten::div.Scalar_mode": division_modes, "aten::fmod.Scalar": fmod_scalar,
    "aten::_assert_scalar": lambda: [([v, "must hold"], {}) for v in (True, False, 1, 0, 2.5, 0.0)],
    "aten::_assert_tensor_metadata": assert_metadata,
    "aten::_weight_norm": weight_norm,
    "aten::lift_fresh_copy": lambda: [([t], {}) for t in geometry()],
    "aten::copy": lambda: [([t, f(*t.shape)], {}) for t in geometry()] + [([f(3, 4), f(4)], {}), ([f(3, 4), i(9, 1, 4)], {}), ([i(5, 3), f(3)], {}),
                                                                        ([f(3), f(4)], {}), ([f(3, 4), f(3, 4)], {"non_blocking": True})],
    "aten::max_pool2d": max_pool2d,
    "aten::sym_size.int": lambda: with_dims(), "aten::sym_stride.int": lambda: with_dims(),
    "aten::sym_numel": lambda: [([t], {}) for t in geometry()], "aten::sym_storage_offset": lambda: [([t], {}) for t in geometry()],
    "aten::sym_is_contiguous": lambda: [([t, m], {}) for t in geometry() for m in (torch.contiguous_format, torch.channels_last)] + [([t], {}) for t in geometry()],
    "aten::randperm": lambda: [([n], kw) for n in (0, 1, 5, 20) for kw in ({}, {"dtype": torch.int32}, {"dtype": torch.float32})] + [([-1], {})],
    "aten::rand": random_sizes, "aten::randn": random_sizes,
    "aten::replication_pad1d": lambda: replication(1), "aten::replication_pad2d": lambda: replication(2), "aten::replication_pad3d": lambda: replication(3),
    "aten::convolution": convolutions, "aten::convolution_backward": convolution_backward,
    "aten::conv1d": lambda: conv(1), "aten::conv2d": lambda: conv(2), "aten::conv3d": lambda: conv(3),
    "aten::linear": linear, "aten::addmm": addmm, "aten::mm": mm, "aten::bmm": bmm, "aten::baddbmm": baddbmm, "aten::matmul": matmul,
    "aten::scaled_dot_product_attention": attention,
    "aten::layer_norm": lambda: layer_norm(False), "aten::native_layer_norm": lambda: layer_norm(True),
    "aten::native_layer_norm_backward": layer_norm_backward,
    "aten::group_norm": group_norm, "aten::native_group_norm": native_group_norm, "aten::native_group_norm_backward": group_norm_backward,
    "aten::batch_norm": lambda: batch_norm("plain"), "aten::_native_batch_norm_legit": lambda: batch_norm("legit"),
    "aten::_native_batch_norm_legit.no_stats": lambda: batch_norm("no_stats"),
    "aten::_native_batch_norm_legit_no_training": lambda: batch_norm("no_training"),
    "aten::embedding": embedding, "aten::embedding_dense_backward": embedding_backward,
    "aten::avg_pool2d_backward": pool_backward, "aten::max_pool2d_with_indices_backward": max_pool_backward,
    "aten::_adaptive_avg_pool2d_backward": adaptive_backward,
    "aten::arange": lambda: aranges(1), "aten::arange.start": lambda: aranges(2), "aten::arange.start_step": lambda: aranges(3),
    "aten::full": fulls, "aten::zeros": sized, "aten::ones": sized, "aten::empty.memory_format": sized,
    "aten::full_like": lambda: likes(2), "aten::zeros_like": likes, "aten::ones_like": likes, "aten::empty_like": likes,
    "aten::scalar_tensor": lambda: factories(lambda d: [([v], {}) for v in ((0, 1, True) if d is not None and not d.is_floating_point else (1.5, 2, True, 0))]),
    "aten::to.dtype": lambda: [([s, c], kw) for s, c in casts() for kw in ({}, {"copy": True})],
    "aten::_to_copy": lambda: [([s], {"dtype": c}) for s, c in casts()] + [([t], {"memory_format": m}) for t in geometry()
                                                                       for m in (torch.contiguous_format, torch.preserve_format)],
    "aten::copy_": lambda: [([torch.zeros(2, 3, dtype=c), s], {}) for s, c in casts()] + [([f(3, 4), f(4)], {}), ([f(2, 3, 4).transpose(0, 2), f(4, 3, 2)], {})],
}


def templates(name, seed):
    make = TABLE.get(name)
    if make is None:
        return []
    _g.manual_seed(seed)
    return make()
