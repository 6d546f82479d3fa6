"""The functions of capture.py in Python, each with the arguments it is traced with and others that its graph is run on.
tests/peers/capture/*.cpp writes the same ones in C++, under the same names."""
import torch
import torch.nn.functional as F
from torch import nn, tensor

CASES = {}


class Case:
    def __init__(self, name, function, args, others, module=None):
        self.name, self.function, self.args, self.others, self.module = name, function, args, others, module
        self.fewer = False


def f(*sizes):
    return {"dtype": "float32", "sizes": list(sizes)}


def d(*sizes):
    return {"dtype": "float64", "sizes": list(sizes)}


def h(*sizes):
    return {"dtype": "bfloat16", "sizes": list(sizes)}


def i(*sizes, below=10):
    return {"dtype": "int64", "sizes": list(sizes), "below": below}


def b(*sizes):
    return {"dtype": "bool", "sizes": list(sizes)}


def case(args, *others):
    def enter(function):
        assert function.__name__ not in CASES, function.__name__
        CASES[function.__name__] = Case(function.__name__, function, args, list(others))
        return function

    return enter


# ---- gradient mode and autocast ---------------------------------------------------------------------------------------


@case([f(3, 4), f(4, 4)], [f(5, 4), f(4, 4)])
def no_grad_region(x, w):
    y = x + 1
    with torch.no_grad():
        z = y.sin()
        v = z @ w
    a = z * 2
    with torch.enable_grad():
        q = a.cos()
    return q + v


@case([f(3, 4), f(4, 4)], [f(5, 4), f(4, 4)])
def no_grad_nested(x, w):
    with torch.no_grad():
        y = x + 1
        with torch.enable_grad():
            y = y * 2
        y = y - x
    return y @ w


@case([f(3, 4), f(4, 4)], [f(5, 4), f(4, 4)])
def autocast_matmul(x, w):
    y = x + 1
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = torch.matmul(y, w)
        with torch.autocast("cpu", enabled=False):
            u = torch.matmul(z.float(), w)
        q = torch.softmax(z, -1)
        c = torch.cat([z, y])
        s = torch.stack([z, z])
    return z, u, q, c, s


@case([f(2, 3, 8, 8), f(4, 3, 3, 3), f(4)], [f(3, 3, 9, 8), f(4, 3, 3, 3), f(4)])
def autocast_convolution(x, w, bias):
    with torch.autocast("cpu", dtype=torch.float16):
        y = F.conv2d(x, w, bias, padding=1)
        z = F.relu(y) + 1
        p = F.adaptive_avg_pool2d(z, (1, 1))
    return y, p


@case([h(3, 4), h(3, 4), f(4)], [h(5, 4), h(5, 4), f(4)])
def autocast_losses(x, y, w):
    with torch.autocast("cpu"):
        a = torch.ops.aten.mse_loss(x, y)
        c = torch.ops.aten.smooth_l1_loss(x, y)
        p = x.prod(1)
        n = F.layer_norm(x.float(), (4,), w)
    return a, c, p, n


@case([f(2, 3, 4), f(2, 4, 5)], [f(3, 6, 4), f(3, 4, 5)])
def autocast_composite(x, y):
    with torch.autocast("cpu"):
        a = torch.einsum("bij,bjk->bik", x, y)
        e = torch.baddbmm(a, x, y)
        t = torch.tensordot(x, x, dims=([2], [2]))
    return a, e, t


@case([f(2, 2, 5, 8), f(2, 2, 5, 8), f(2, 2, 5, 8)], [f(1, 2, 7, 8), f(1, 2, 7, 8), f(1, 2, 7, 8)])
def autocast_attention(q, k, v):
    with torch.autocast("cpu"):
        return F.scaled_dot_product_attention(q, k, v)


@case([d(3, 4), d(4, 4)], [d(5, 4), d(4, 4)])
def autocast_double(x, w):
    with torch.autocast("cpu"):
        return x @ w, torch.cat([x, x.float()])


# ---- elementwise ------------------------------------------------------------------------------------------------------


@case([f(3, 4), f(3, 4)], [f(5, 2), f(5, 2)])
def add_mul(x, y):
    return x + y * 2


@case([f(3, 4), f(4)], [f(6, 5), f(5)])
def broadcast(x, y):
    return x * y + y


@case([f(3, 4), f(3, 1)], [f(6, 5), f(6, 1)])
def broadcast_one(x, y):
    return x - y


@case([f(3, 4)], [f(2, 7)])
def scalars_left(x):
    return 1 - x + 2 / (x * x + 1)


@case([f(3, 4)], [f(2, 7)])
def activations(x):
    return F.gelu(x) + F.silu(x) + torch.sigmoid(x) + torch.tanh(x) + F.relu(x) + F.leaky_relu(x, 0.2)


@case([f(3, 4)], [f(8, 3)])
def gelu_tanh(x):
    return F.gelu(x, approximate="tanh")


@case([f(3, 4)], [f(2, 3)])
def powers(x):
    return x.pow(2) + x.abs().sqrt() + (x * x + 1).rsqrt() + x.exp().log1p()


@case([f(3, 4)], [f(2, 3)])
def clamps(x):
    return x.clamp(-1, 1) + x.clamp(min=0.5) + x.clamp_max(2)


@case([f(3, 4), f(3, 4)], [f(2, 3), f(2, 3)])
def comparisons(x, y):
    return (x > y) & (x < 1) | (y == 0), torch.maximum(x, y), torch.minimum(x, y)


@case([b(3, 4), f(3, 4)], [b(2, 3), f(2, 3)])
def choose(c, x):
    return torch.where(c, x, -x), torch.where(x > 0, x, 0.0), x.masked_fill(c, 3.0)


@case([f(3, 4), i(3, 4)], [f(2, 3), i(2, 3)])
def promotion(x, n):
    return x + n, n + 1, n + 1.5, n / 2, n // 3, n % 3, n * True


@case([f(2, 3), f(2, 3), f(2, 3)], [f(4, 5), f(4, 5), f(4, 5)])
def fused_arithmetic(x, y, z):
    return torch.addcmul(x, y, z, value=0.5) + torch.addcdiv(x, y, z.abs() + 1) + torch.lerp(x, y, 0.25)


# ---- casts ------------------------------------------------------------------------------------------------------------


@case([f(3, 4)], [f(2, 5)])
def casts(x):
    return x.double(), x.to(torch.int32), x.bool(), x.to(torch.bfloat16).float(), x.float()


@case([h(3, 4), f(3, 4)], [h(2, 5), f(2, 5)])
def half_and_float(x, y):
    return x * y, x + 1, x.type_as(y) * 2, y.to(x.dtype)


@case([f(3, 4)], [f(2, 5)])
def like_factories(x):
    return torch.zeros_like(x), torch.full_like(x, 2.0), torch.ones_like(x, dtype=torch.int64), x.new_zeros(2, 3)


# ---- views ------------------------------------------------------------------------------------------------------------


@case([f(3, 4)], [f(5, 6)])
def views(x):
    return x.t(), x.unsqueeze(1), x.view(-1), x[None], x.permute(1, 0)


@case([f(2, 6, 4)], [f(3, 6, 5)])
def view_sizes(x):
    return x.view(x.shape[0], 2, 3, x.shape[2])


@case([f(2, 6, 4)], [f(3, 6, 5)])
def transpose_reshape(x):
    return x.transpose(0, 1).reshape(6, -1)


@case([f(2, 6, 4)], [f(3, 7, 5)])
def flatten_all(x):
    return x.flatten(), x.flatten(1), x.flatten(0, 1)


@case([f(2, 6, 4)], [f(3, 7, 5)])
def merged_by_hand(x):
    return x.reshape(x.shape[0] * x.shape[1], x.shape[2])


@case([f(2, 6, 4)], [f(3, 8, 5)])
def split_by_hand(x):
    return x.view(x.shape[0], x.shape[1] // 2, 2, x.shape[2])


@case([f(3, 4)], [f(5, 2)])
def expanded(x):
    return x.unsqueeze(0).expand(2, -1, -1), x[:, None].expand(-1, 3, x.shape[1])


@case([f(3, 4)], [f(5, 2)])
def contiguity(x):
    return x.t().contiguous(), x.contiguous(), x.t().clone(), x.t() + 1


@case([f(6, 4)], [f(6, 5)])
def strided(x):
    return x[::2], x[1:, ::2], x[1::3, :-1]


@case([f(3, 1, 4, 1)], [f(5, 1, 2, 1)])
def squeezes(x):
    return x.squeeze(), x.squeeze(1), x.squeeze(0), x.squeeze(-1).unsqueeze(-1)


@case([f(6, 4)], [f(7, 5)])
def diagonals(x):
    return x.diagonal(), torch.tril(x), torch.triu(x, 1), x.flip(0), x.roll(1, 0)


@case([f(4, 9)], [f(3, 12)])
def unfolded(x):
    return x.unfold(1, 3, 2), x.movedim(0, 1), x.narrow(1, 2, 3), x.select(0, 1)


@case([f(4, 6)], [f(4, 8)])
def unflattened(x):
    return x.unflatten(1, (2, -1)), x.view(2, 2, -1)


# ---- in place ---------------------------------------------------------------------------------------------------------


@case([f(3, 4)], [f(2, 5)])
def in_place_chain(x):
    y = x.clone()
    y.add_(1).mul_(2)
    y.relu_()
    return y


@case([f(3, 4), f(4)], [f(2, 5), f(5)])
def in_place_through_view(x, y):
    z = x * 1
    z[0].copy_(y)
    z[:, 1:] += 2
    z.t()[0] = 5
    return z


@case([f(3, 4)], [f(2, 5)])
def in_place_input(x):
    x.mul_(2)
    return x + 1


@case([f(3, 4), b(3, 4)], [f(2, 5), b(2, 5)])
def in_place_masked(x, m):
    y = x.clone()
    y[m] = 0
    y.masked_fill_(~m, 1)
    return y


@case([f(3, 4)], [f(2, 5)])
def fills(x):
    y = torch.empty_like(x)
    y.fill_(3)
    z = torch.zeros(x.shape[0], 2)
    z[:, 0] = x[:, 0]
    return y, z.zero_()


@case([f(3, 4), f(3, 4)], [f(2, 5), f(2, 5)])
def with_out(x, y):
    z = torch.empty_like(x)
    torch.add(x, y, out=z)
    torch.mul(z, 2, out=z)
    return z


# ---- indexing ---------------------------------------------------------------------------------------------------------


@case([f(5, 4), i(3, below=5)], [f(7, 4), i(6, below=7)])
def index_rows(x, n):
    return x[n], x[n, :2], x[:, 1]


@case([f(5, 4), i(3, below=4), i(3, below=4)], [f(7, 6), i(2, below=5), i(2, below=5)])
def index_pairs(x, m, n):
    return x[m, n], x[m[:, None], n[None]]


@case([f(5, 4), i(5, 4, below=4)], [f(7, 6), i(7, 6, below=6)])
def gathers(x, n):
    return x.gather(1, n), x.index_select(0, n[:, 0])


@case([f(5, 4), i(5, 4, below=4), f(5, 4)], [f(7, 6), i(7, 6, below=6), f(7, 6)])
def scatters(x, n, y):
    return x.scatter(1, n, 0.5), x.scatter_add(1, n, y), x.scatter(1, n, y)


@case([f(5, 4), i(3, below=5), f(3, 4)], [f(7, 3), i(2, below=7), f(2, 3)])
def index_puts(x, n, y):
    z = x.clone()
    z[n] = y
    z.index_add_(0, n, y)
    return z, x.index_put((n,), y, accumulate=True)


@case([f(5, 4, 3)], [f(6, 5, 3)])
def index_mixed(x):
    n = tensor([0, 2])
    return x[..., 0], x[1, :, None, 1:], x[-1], x[0, ..., -1], x[:, n]


@case([f(5, 4)], [f(6, 5)])
def dynamic_slices(x):
    n = x.shape[0]
    return x[: n - 1], x[n // 2:], x[:, : x.shape[1] - 2], x[1: n - 1]


@case([f(5, 4), 3], [f(7, 3), 5])
def slice_by_argument(x, n):
    return x[:n], x[n:]


# ---- reductions -------------------------------------------------------------------------------------------------------


@case([f(3, 4)], [f(2, 5)])
def reductions(x):
    return x.sum(), x.sum(0), x.mean(1, keepdim=True), x.amax(0), x.prod(), x.var(1), x.std()


@case([f(3, 4)], [f(2, 5)])
def extremes(x):
    values, indices = x.max(1)
    return values, indices, x.argmax(), x.argmin(0), x.min(), x.aminmax(dim=0)


@case([f(3, 4)], [f(2, 5)])
def ordering(x):
    values, indices = x.sort(1)
    top = x.topk(2, 1)
    return values, indices, top.values, top.indices, x.argsort(0)


@case([f(3, 4)], [f(2, 5)])
def cumulative(x):
    return x.cumsum(0), x.cumprod(1), torch.logsumexp(x, 1), torch.norm(x), x.norm(dim=1)


@case([b(3, 4), i(3, 4)], [b(2, 5), i(2, 5)])
def counting(m, n):
    return m.any(), m.all(1), m.sum(), n.sum(1), (n > 3).sum(0)


@case([f(3, 4)], [f(2, 5)])
def softmaxes(x):
    return x.softmax(-1), F.log_softmax(x, 0), torch.softmax(x, 1, dtype=torch.float64)


@case([f(3, 4)], [f(5, 6)])
def mean_by_hand(x):
    return x.sum() / x.numel(), x.sum(1) / x.shape[1]


# ---- joining and splitting --------------------------------------------------------------------------------------------


@case([f(3, 4), f(2, 4)], [f(5, 6), f(7, 6)])
def concatenated(x, y):
    return torch.cat([x, y]), torch.cat([x, x], 1), torch.stack([x, x], 1)


@case([f(6, 4)], [f(8, 4)])
def split_even(x):
    a, c = x.split(2, 1)
    return a + c, torch.cat([a, c])


@case([f(6, 4)], [f(8, 4)])
def chunks(x):
    a, c = x.chunk(2, 1)
    return a * c


@case([f(6, 4)], [f(8, 4)])
def split_sizes(x):
    a, c, e = x.split([1, 1, 2], 1)
    return e, a, c


@case([f(3, 4)], [f(3, 5)])
def unbinding(x):
    a, c, e = x.unbind(0)
    return a + c + e


@case([f(5, 4)], [f(8, 3)])
def halves_by_size(x):
    n = x.shape[0] // 2
    return torch.cat([x[n:], x[:n]])


@case([f(3, 4), f(5, 4)], [f(2, 6), f(4, 6)])
def cat_then_size(x, y):
    z = torch.cat([x, y])
    return z.view(z.shape[0], 2, -1) * z.shape[0]


@case([f(3, 4)], [f(2, 5)])
def padding(x):
    return F.pad(x, (1, 2)), F.pad(x, (0, 1, 2, 0), value=3.0), x.repeat(2, 1), x.repeat_interleave(2, 0), x.tile(2)


# ---- factories and literals -------------------------------------------------------------------------------------------


@case([f(3, 4)], [f(2, 5)])
def factories(x):
    n = x.shape[0]
    return torch.zeros(n, 4), torch.ones(2, n), torch.full((n,), 7.0), torch.arange(n), torch.eye(n)


@case([f(3, 4)], [f(6, 5)])
def ranges(x):
    return torch.arange(0, x.shape[1]) * 2, torch.arange(1, 10, 3), torch.linspace(0, 1, 5), torch.arange(x.shape[0], dtype=torch.float32) + 0.5


@case([f(2, 2)], [f(2, 2)])
def literals(x):
    return x + tensor([1.5, 2.5]), x * tensor(3), x - tensor([[1.0, 2.0], [3.0, 4.0]])


@case([f(3, 4)], [f(6, 5)])
def literal_item(x):
    return x * tensor(3.0).item() + tensor(2)


@case([f(3, 4)], [f(6, 5)])
def literal_written(x):
    c = tensor(1.0)
    c.add_(2)
    return x + c


@case([f(4, 4)], [f(6, 6)])
def causal_mask(x):
    n = x.shape[0]
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    return x.masked_fill(~mask, float("-inf")).softmax(-1)


# ---- sizes ------------------------------------------------------------------------------------------------------------


@case([f(3, 4)], [f(6, 5)])
def size_arithmetic(x):
    n, m = x.shape
    return torch.zeros(n * m), torch.zeros(n + m, 2), torch.zeros(10 - n), torch.zeros(n * m + n), torch.zeros(max(n, 2))


@case([f(3, 8)], [f(6, 10)])
def size_division(x):
    n, m = x.shape
    return torch.zeros(m // 2), torch.zeros(m % 3 + 1), torch.zeros((n + 1) // 2, m), torch.zeros(n ** 2)


@case([f(3, 8)], [f(4, 10)])
def size_outputs(x):
    return x.shape[0], x.shape[1] * 2, x + x.shape[0], x.numel()


@case([f(3, 8)], [f(4, 10)])
def size_scaling(x):
    return x / x.shape[1] ** 0.5, x * (1.0 / x.shape[0])


@case([f(6, 4)], [f(8, 5)])
def branch_on_size(x):
    if x.shape[0] > 5:
        return x[:5]
    return x + 1


@case([f(6, 4)], [f(8, 6)])
def branch_on_divisibility(x):
    if x.shape[1] % 2 == 0:
        return x.view(x.shape[0], -1, 2)
    return x


@case([f(6, 4), f(6, 4)], [f(8, 6), f(8, 6)])
def branch_on_equality(x, y):
    if x.shape == y.shape:
        return x + y
    return x


@case([f(6, 4), f(4, 6)], [f(8, 5), f(5, 8)])
def product_of_guards(x, y):
    return (x @ y).view(-1), x.view(-1) + y.reshape(-1)


@case([f(6, 4)], [f(8, 5)])
def size_minimum(x):
    n = torch.sym_min(x.shape[0], x.shape[1])
    return x[:n], torch.zeros(torch.sym_max(x.shape[0], x.shape[1]))


# ---- products ---------------------------------------------------------------------------------------------------------


@case([f(3, 4), f(4, 5)], [f(6, 2), f(2, 7)])
def matmuls(x, y):
    return x @ y, torch.mm(x, y), x @ y[:, 0], y.t() @ x.t()


@case([f(2, 3, 4), f(4, 5)], [f(5, 6, 2), f(2, 7)])
def matmul_batched(x, y):
    return x @ y


@case([f(2, 1, 3, 4), f(5, 4, 6)], [f(3, 1, 7, 2), f(4, 2, 5)])
def matmul_broadcast(x, y):
    return x @ y


@case([f(3, 4), f(5, 4), f(5)], [f(6, 2), f(7, 2), f(7)])
def linears(x, w, c):
    return F.linear(x, w, c), F.linear(x, w), F.linear(x[None], w, c)


@case([f(2, 3, 4), f(2, 4, 5)], [f(3, 6, 2), f(3, 2, 7)])
def batched(x, y):
    return torch.bmm(x, y), torch.einsum("bij,bjk->bik", x, y), torch.einsum("bij->bj", x)


@case([f(3, 5), f(3, 4), f(4, 5)], [f(6, 7), f(6, 2), f(2, 7)])
def affine(c, x, y):
    return torch.addmm(c, x, y), torch.addmm(c, x, y, beta=0.5, alpha=2), torch.outer(x[0], y[0]), torch.dot(x[:, 0], c[:, 0])


# ---- attention and convolution ----------------------------------------------------------------------------------------


@case([f(2, 3, 8), f(24, 8), f(24)], [f(3, 5, 8), f(24, 8), f(24)])
def attention_by_hand(x, w, c):
    batch, length, width = x.shape
    q, k, v = F.linear(x, w, c).split(8, dim=2)
    q, k, v = (t.view(batch, length, 2, 4).transpose(1, 2) for t in (q, k, v))
    scores = q @ k.transpose(-2, -1) * 0.5
    mask = torch.ones(length, length, dtype=torch.bool).tril()
    scores = scores.masked_fill(~mask, float("-inf"))
    y = F.softmax(scores, dim=-1) @ v
    return y.transpose(1, 2).contiguous().view(batch, length, width)


@case([f(2, 2, 3, 4), f(2, 2, 5, 4), f(2, 2, 5, 4)], [f(3, 2, 7, 4), f(3, 2, 6, 4), f(3, 2, 6, 4)])
def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


@case([f(2, 2, 5, 4), f(2, 2, 5, 4), f(2, 2, 5, 4)], [f(3, 2, 6, 4), f(3, 2, 6, 4), f(3, 2, 6, 4)])
def attention_causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@case([f(2, 2, 3, 4), f(2, 2, 5, 4), f(2, 2, 5, 4), b(3, 5)], [f(3, 2, 7, 4), f(3, 2, 6, 4), f(3, 2, 6, 4), b(7, 6)])
def attention_masked(q, k, v, m):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=m)


@case([f(2, 5, 8)], [f(3, 7, 8)])
def rotary(x):
    positions = torch.arange(x.shape[1], dtype=torch.float32)
    frequencies = 1.0 / (10000.0 ** (torch.arange(0, 4, dtype=torch.float32) / 4))
    angles = positions[:, None] * frequencies[None, :]
    cos, sin = torch.cat([angles.cos(), angles.cos()], -1), torch.cat([angles.sin(), angles.sin()], -1)
    rotated = torch.cat([-x[..., 4:], x[..., :4]], -1)
    return x * cos + rotated * sin


@case([f(2, 3, 9, 9), f(4, 3, 3, 3), f(4), f(5, 4, 3, 3)], [f(3, 3, 11, 11), f(4, 3, 3, 3), f(4), f(5, 4, 3, 3)])
def convolutions(x, w, c, v):
    y = F.relu(F.conv2d(x, w, c, stride=2, padding=1))
    y = F.max_pool2d(F.conv2d(y, v, padding=1), 2)
    return F.adaptive_avg_pool2d(y, 1).flatten(1)


@case([f(2, 3, 9), f(4, 3, 3), f(4)], [f(3, 3, 14), f(4, 3, 3), f(4)])
def convolution_1d(x, w, c):
    return F.conv1d(x, w, c, stride=2, padding=1), F.avg_pool1d(x, 2)


@case([f(2, 4, 5, 5), f(4, 3, 3, 3)], [f(3, 4, 6, 6), f(4, 3, 3, 3)])
def convolution_transposed(x, w):
    return F.conv_transpose2d(x, w, stride=2, padding=1), F.avg_pool2d(x, 2)


# ---- normalisation ----------------------------------------------------------------------------------------------------


@case([f(3, 5, 8), f(8), f(8)], [f(2, 7, 8), f(8), f(8)])
def norms(x, w, c):
    return F.layer_norm(x, (8,), w, c), F.rms_norm(x, (8,), w, 1e-6)


@case([f(3, 5, 8), f(8)], [f(2, 7, 8), f(8)])
def rms_by_hand(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


@case([f(3, 4, 5, 5), f(4), f(4), f(4), f(4)], [f(2, 4, 6, 6), f(4), f(4), f(4), f(4)])
def batch_norms(x, w, c, m, v):
    return F.batch_norm(x, m, v.abs() + 1, w, c), F.group_norm(x, 2, w, c)


# ---- losses -----------------------------------------------------------------------------------------------------------


@case([f(6, 5), i(6, below=5)], [f(7, 8), i(7, below=5)])
def losses(x, n):
    return F.cross_entropy(x, n), F.nll_loss(F.log_softmax(x, 1), n), F.mse_loss(x, x * 2), F.l1_loss(x, x + 1)


@case([f(4, 10, 6), i(4, 10, below=6)], [f(3, 7, 8), i(3, 7, below=6)])
def shifted_loss(logits, labels):
    return F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), labels[:, 1:].reshape(-1))


@case([i(2, 5, below=7), f(7, 4)], [i(3, 6, below=7), f(7, 4)])
def embeddings(n, w):
    return F.embedding(n, w), w[n]


# ---- data dependent ---------------------------------------------------------------------------------------------------


@case([f(10)], [f(12)])
def nonzeros(x):
    n = (x > 0).nonzero()
    return n, n.shape[0], x[n[:, 0]] * 2


@case([f(10), b(10)], [f(12), b(12)])
def masked_rows(x, m):
    y = x[m]
    return y * 2, y.sum(), torch.masked_select(x, m)


@case([i(), f(8)], [i(), f(9)])
def item_as_size(n, x):
    k = n.item()
    torch._check(k >= 0)
    torch._check(k <= 8)
    return torch.zeros(k), x * k


@case([i(6, below=4)], [i(9, below=4)])
def uniques(n):
    values, inverse = torch.unique(n, return_inverse=True)
    return values, inverse, values.shape[0]


@case([i(2, below=4), f(9, 2)], [i(2, below=4), f(9, 2)])
def split_by_data(n, x):
    a, c = (t.item() for t in n.unbind(0))
    torch._check(a >= 0)
    torch._check(c >= 0)
    torch._check(a + c <= 9)
    return x[:a], x[a: a + c].sum(0)


@case([f(3)], [f(5)])
def item_arithmetic(x):
    return x * x[0].item() + x.sum().item()


@case([f(3)], [f(5)])
def truth_from_data(x):
    some = (x > 0).any().item()
    return some, torch.full((2,), some), torch.sym_ite(some, 3, 4), torch.sym_not(some)


@case([f(3)], [f(5)])
def truth_as_factor(x):
    return x * (x > 0).any().item()


# ---- trees ------------------------------------------------------------------------------------------------------------


@case([f(3, 4), f(3, 4)], [f(2, 5), f(2, 5)])
def dict_output(x, y):
    return {"sum": x + y, "parts": (x, [y, x * 2]), "none": None, "number": 3}


@case([[f(3), f(3)], {"k": f(3)}], [[f(5), f(5)], {"k": f(5)}])
def tree_input(pair, named):
    return pair[0] + pair[1] * named["k"]


@case([f(3, 4)], [f(2, 5)])
def same_twice(x):
    y = x + 1
    return y, y, x, y


@case([f(3, 4)], [f(2, 5)])
def dead_code(x):
    x.sin()
    x.shape[0] * 2
    return x.cos()


@case([f(3, 4)], [f(2, 5)])
def nothing_returned(x):
    x.add_(1)


@case([f(3, 4)], [f(2, 5)])
def random_numbers(x):
    return torch.rand_like(x).shape[0], F.dropout(x, 0.5, training=False), torch.randn(x.shape[0], 3).shape[0]


@case([f(3, 4)], [f(2, 5)])
def conditional(x):
    return torch.ops.higher_order.cond(x.sum() > 0, lambda y: (y.sin(),), lambda y: (y.cos() + 1,), (x,))


# ---- modules ----------------------------------------------------------------------------------------------------------


def module(name, args, *others):
    def enter(cls):
        made = cls().eval()
        with torch.no_grad():
            for seed, t in enumerate(list(made.parameters()) + list(made.buffers())):
                if t.dtype == torch.float32:
                    positive = seed >= len(list(made.parameters()))
                    v = torch.tensor([(k * 37 + seed * 11) % 101 for k in range(t.numel())], dtype=torch.float32).reshape(t.shape)
                    t.copy_(v / 64 + 0.5 if positive else (v - 50) / 256)
        assert name not in CASES
        CASES[name] = Case(name, lambda *a: made(*a), args, list(others), made)
        return cls

    return enter


@module("mlp", [f(3, 4)], [f(5, 4)])
class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))


@module("residual", [f(3, 4)], [f(5, 4)])
class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mix = nn.LayerNorm(4), nn.Linear(4, 4, bias=False)

    def forward(self, x):
        return x + self.mix(self.norm(x))


@module("gated", [f(2, 3, 4)], [f(5, 6, 4)])
class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = (nn.Linear(4, 6, bias=False), nn.Linear(4, 6, bias=False), nn.Linear(6, 4, bias=False))

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


@module("rms", [f(2, 3, 4)], [f(5, 6, 4)])
class Rms(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


@module("words", [i(3, 5, below=7)], [i(2, 6, below=7)])
class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(7, 4), nn.Linear(4, 7)

    def forward(self, ids):
        return self.head(self.embed(ids).mean(1))


@module("tied", [i(3, 5, below=7)], [i(2, 6, below=7)])
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 4)

    def forward(self, ids):
        return F.linear(self.embed(ids), self.embed.weight)


@module("conv_net", [f(2, 3, 9, 9)], [f(3, 3, 11, 11)])
class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.Linear(4, 5)

    def forward(self, x):
        return self.head(F.relu(self.norm(self.conv(x))).mean((2, 3)))


@module("waves", [f(3, 2, 9)], [f(4, 2, 12)])
class Waves(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Conv1d(2, 4, 3), nn.GroupNorm(2, 4), nn.Conv1d(4, 4, 3, padding=1)

    def forward(self, x):
        y = F.gelu(self.norm(self.first(x)))
        return self.second(y) + y


@module("self_attention", [f(2, 3, 4)], [f(5, 6, 4)])
class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(4, 12), nn.Linear(4, 4)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (t.view(batch, length, 2, 2).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, 4))


@module("block", [f(2, 3, 4)], [f(5, 6, 4)])
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first_norm, self.attention = nn.LayerNorm(4), SelfAttention()
        self.second_norm, self.mlp = nn.LayerNorm(4), Mlp()

    def forward(self, x):
        y = x + self.attention(self.first_norm(x))
        return y + self.mlp(self.second_norm(y))


@module("decoder", [i(2, 3, below=7)], [i(5, 6, below=7)])
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(7, 4), nn.Embedding(16, 4)
        self.first, self.second = Block(), Block()
        self.norm, self.head = nn.LayerNorm(4), nn.Linear(4, 7, bias=False)

    def forward(self, ids):
        places = torch.arange(0, ids.shape[1])
        x = self.tokens(ids) + self.positions(places)
        return self.head(self.norm(self.second(self.first(x))))


@module("table", [f(2, 3, 4)], [f(5, 6, 4)])
class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(16, 4))
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        rows = self.table[: x.shape[1]]
        return x * self.scale + rows


@module("two_results", [f(3, 4)], [f(5, 4)])
class TwoResults(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.spread = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x):
        return self.mean(x), F.softplus(self.spread(x))
