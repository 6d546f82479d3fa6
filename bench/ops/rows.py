"""The rows of bench/ops: one list, read by both sides.

A row names an ATen operator, the function a user of PyTorch would call for it, and its arguments. A tensor argument is
{"shape", "dtype", "make"[, "high", "permute", "expand"]}: both sides make it with the same generator and seed, so they
compute on the same numbers. Everything else is itself; a list is a list.
"""


def tensor(*shape, dtype="float32", make="randn", **more):
    return {"shape": list(shape), "dtype": dtype, "make": make, **more}


def values(*numbers, dtype):
    return tensor(len(numbers), dtype=dtype, make="values", values=list(numbers))


def ids(*shape, high):
    return tensor(*shape, dtype="int64", make="randint", high=high)


def dtype(name):
    return {"name": name}


def row(group, label, op, function, *args, **keyword):
    return {"group": group, "label": label, "op": op, "function": function, "args": list(args), "keyword": keyword}


SHORT = {"float32": "f32", "bfloat16": "bf16", "float16": "f16", "int64": "i64", "bool": "bool"}


def products():
    for kind in ("float32", "bfloat16"):
        for m in (1, 8, 128, 1024):
            for k in (768, 3072, 4096):
                for n in (768, 3072, 4096):
                    name = f"{SHORT[kind]} {m}x{k}x{n}"
                    a = tensor(m, k, dtype=kind)
                    yield row("linear", name, "aten::linear", "torch.nn.functional.linear", a, tensor(n, k, dtype=kind), tensor(n, dtype=kind))
                    yield row("matmul", name, "aten::matmul", "torch.matmul", a, tensor(k, n, dtype=kind))
        for b, m, k, n in ((12, 128, 64, 128), (12, 128, 128, 64), (96, 64, 64, 64), (32, 1, 128, 512), (8, 512, 64, 512)):
            yield row("bmm", f"{SHORT[kind]} {b}x{m}x{k}x{n}", "aten::bmm", "torch.bmm", tensor(b, m, k, dtype=kind), tensor(b, k, n, dtype=kind))


def experts():
    """Rows by expert with the experts' matrices as a mixture of experts lays them; one row an expert while decoding. The second row of each
    is what it replaces: a loop over the experts."""
    for kind in ("float32", "bfloat16"):
        for k, n, counts in ((1024, 2048, (0, 1, 0, 0, 1, 0, 0, 0)), (1024, 2048, (9, 1, 14, 0, 20, 6, 8, 6)), (1024, 2048, (70, 60, 40, 90, 64, 100, 50, 38)),
                             (512, 256, (3, 0, 5, 1) * 16), (2048, 512, (128,) * 8)):
            ends = [sum(counts[: i + 1]) for i in range(len(counts))]
            a, matrices = tensor(ends[-1], k, dtype=kind), tensor(len(counts), n, k, dtype=kind, permute=[0, 2, 1])
            for function in ("torch._grouped_mm", "torch:experts"):
                name = f"{SHORT[kind]} {ends[-1]} rows, {len(counts)} of {k}x{n}" + (" beside a loop" if ":" in function else "")
                yield row("grouped_mm", name, "aten::_grouped_mm", function, a, matrices, values(*ends, dtype="int32"))


def attention():
    function = "torch.nn.functional.scaled_dot_product_attention"
    for kind in ("float32", "bfloat16"):
        for head in (64, 128):
            heads = 768 // head
            for length in (16, 64, 256, 512, 1024, 2048):
                q = tensor(1, heads, length, head, dtype=kind)
                name = f"{SHORT[kind]} head {head} length {length}"
                op = "aten::scaled_dot_product_attention"
                yield row("attention", name + " causal", op, function, q, q, q, is_causal=True)
                mask = tensor(1, 1, length, length, dtype="bool", make="randint", high=2)
                yield row("attention", name + " masked", op, function, q, q, q, attn_mask=mask)


def pointwise():
    for kind in ("float32", "bfloat16"):
        for shape in ((8, 768), (128, 768), (1024, 3072), (4096, 4096)):
            name = f"{SHORT[kind]} " + "x".join(map(str, shape))
            x = tensor(*shape, dtype=kind)
            last = tensor(shape[1], dtype=kind)
            first = tensor(shape[0], 1, dtype=kind)
            yield row("gelu", name, "aten::gelu", "torch.nn.functional.gelu", x)
            yield row("gelu", name + " tanh", "aten::gelu", "torch.nn.functional.gelu", x, approximate="tanh")
            yield row("silu", name, "aten::silu", "torch.nn.functional.silu", x)
            yield row("add", name, "aten::add.Tensor", "torch.add", x, x)
            yield row("add", name + " + row", "aten::add.Tensor", "torch.add", x, last)
            yield row("mul", name, "aten::mul.Tensor", "torch.mul", x, x)
            yield row("mul", name + " * column", "aten::mul.Tensor", "torch.mul", x, first)
            yield row("softmax", name, "aten::softmax.int", "torch.softmax", x, -1)
            yield row("layer_norm", name, "aten::layer_norm", "torch.nn.functional.layer_norm", x, [shape[1]], last, last, 1e-5)
            yield row("rms_norm", name, "aten::rms_norm", "torch.nn.functional.rms_norm", x, [shape[1]], last, 1e-5)
            yield row("where", name, "aten::where.self", "torch.where", tensor(*shape, dtype="bool", make="randint", high=2), x, x)
    yield row("softmax", "f32 1x12x512x512", "aten::softmax.int", "torch.softmax", tensor(1, 12, 512, 512), -1)
    yield row("softmax", "f32 512x768 dim 0", "aten::softmax.int", "torch.softmax", tensor(512, 768), 0)
    yield row("add", "f32 8x1x512x64 + 1x12x512x64", "aten::add.Tensor", "torch.add", tensor(8, 1, 512, 64), tensor(1, 12, 512, 64))
    yield row("mul", "f32 1024x3072 transposed", "aten::mul.Tensor", "torch.mul", tensor(1024, 3072), tensor(3072, 1024, permute=[1, 0]))


def convolutions():
    for kind in ("float32", "bfloat16"):
        s = SHORT[kind]

        def conv2d(label, n, c, h, w, out, k, stride=1, padding=0, groups=1):
            return row("conv2d", f"{s} {label}", "aten::conv2d", "torch.nn.functional.conv2d", tensor(n, c, h, w, dtype=kind),
                       tensor(out, c // groups, k, k, dtype=kind), tensor(out, dtype=kind), [stride, stride], [padding, padding], [1, 1], groups)

        def conv1d(label, n, c, length, out, k, stride=1, padding=0, groups=1):
            return row("conv1d", f"{s} {label}", "aten::conv1d", "torch.nn.functional.conv1d", tensor(n, c, length, dtype=kind),
                       tensor(out, c // groups, k, dtype=kind), tensor(out, dtype=kind), [stride], [padding], [1], groups)

        yield conv2d("ViT 16x16 patches", 1, 3, 224, 224, 768, 16, 16)
        yield conv2d("ViT 32x32 patches", 1, 3, 224, 224, 768, 32, 32)
        yield conv2d("ViT 14x14 patches", 1, 3, 224, 224, 1024, 14, 14)
        yield conv2d("ResNet stem 7x7", 1, 3, 224, 224, 64, 7, 2, 3)
        yield conv2d("ResNet 3x3 64", 1, 64, 56, 56, 64, 3, 1, 1)
        yield conv2d("ResNet 3x3 128 stride 2", 1, 128, 56, 56, 128, 3, 2, 1)
        yield conv2d("ResNet 3x3 256", 1, 256, 14, 14, 256, 3, 1, 1)
        yield conv2d("ResNet 3x3 512", 1, 512, 7, 7, 512, 3, 1, 1)
        yield conv2d("ResNet 1x1 64-256", 1, 64, 56, 56, 256, 1)
        yield conv2d("ResNet 1x1 1024-256", 1, 1024, 14, 14, 256, 1)
        yield conv2d("ResNet 1x1 256-512 stride 2", 1, 256, 56, 56, 512, 1, 2)
        yield conv2d("depthwise 3x3 96", 1, 96, 56, 56, 96, 3, 1, 1, 96)
        yield conv1d("wav2vec2 first", 1, 1, 16000, 512, 10, 5)
        yield conv1d("wav2vec2 3", 1, 512, 3199, 512, 3, 2)
        yield conv1d("wav2vec2 2", 1, 512, 99, 512, 2, 2)
        yield conv1d("wav2vec2 positions", 1, 768, 49, 768, 128, 1, 64, 16)
        yield conv1d("1x1 768", 1, 768, 128, 768, 1)
    for shape in ((1, 64, 112, 112), (1, 256, 56, 56), (8, 512, 7, 7)):
        c = tensor(shape[1], make="rand")
        yield row("batch_norm", "f32 " + "x".join(map(str, shape)), "aten::batch_norm", "torch.nn.functional.batch_norm:running",
                  tensor(*shape), c, c, c, c, False, 0.1, 1e-5, False)


def movement():
    for kind in ("float32", "bfloat16"):
        s = SHORT[kind]
        yield row("embedding", f"{s} 128 of 32000x768", "aten::embedding", "torch.embedding", tensor(32000, 768, dtype=kind), ids(1, 128, high=32000))
        yield row("embedding", f"{s} 8x512 of 32000x768", "aten::embedding", "torch.embedding", tensor(32000, 768, dtype=kind), ids(8, 512, high=32000))
        x = tensor(1, 512, 768, dtype=kind)
        yield row("cat", f"{s} 2 of 1x512x768 dim 1", "aten::cat", "torch.cat", [x, x], 1)
        yield row("cat", f"{s} 2 of 1x512x768 dim 2", "aten::cat", "torch.cat", [x, x], 2)
        cache = tensor(1, 12, 511, 64, dtype=kind)
        yield row("cat", f"{s} cache 511 + 1", "aten::cat", "torch.cat", [cache, tensor(1, 12, 1, 64, dtype=kind)], 2)
        for label, shape, order in (("heads 1x512x12x64", (1, 512, 12, 64), [0, 2, 1, 3]), ("transpose 1024x1024", (1024, 1024), [1, 0]),
                                    ("NCHW to NHWC 1x64x56x56", (1, 64, 56, 56), [0, 2, 3, 1]), ("reverse 64x64x64", (64, 64, 64), [2, 1, 0])):
            yield row("copy", f"{s} {label}", "aten::clone", "torch.clone", tensor(*shape, dtype=kind, permute=order),
                      memory_format=dtype("contiguous_format"))
        y = tensor(64, 128, 256, dtype=kind)
        for dim in (0, 1, 2):
            yield row("sum", f"{s} 64x128x256 dim {dim}", "aten::sum.dim_IntList", "torch.sum", y, [dim])
            yield row("mean", f"{s} 64x128x256 dim {dim}", "aten::mean.dim", "torch.mean", y, [dim])
            yield row("argmax", f"{s} 64x128x256 dim {dim}", "aten::argmax", "torch.argmax", y, dim)
        yield row("sum", f"{s} 64x128x256 all", "aten::sum", "torch.sum", y)
        yield row("argmax", f"{s} 1x32000", "aten::argmax", "torch.argmax", tensor(1, 32000, dtype=kind), -1)
        table = tensor(4096, 768, dtype=kind)
        yield row("gather", f"{s} 4096x768 dim 1", "aten::gather", "torch.gather", table, 1, ids(4096, 64, high=768))
        yield row("gather", f"{s} 4096x768 dim 0", "aten::gather", "torch.gather", table, 0, ids(512, 768, high=4096))
        yield row("index", f"{s} rows 512 of 4096x768", "aten::index.Tensor", "torch:index", table, [ids(512, high=4096)])
        yield row("index_select", f"{s} rows 512 of 4096x768", "aten::index_select", "torch.index_select", table, 0, ids(512, high=4096))
    for a, b in (("float32", "bfloat16"), ("bfloat16", "float32"), ("float32", "float16"), ("float16", "float32"),
                 ("int64", "float32"), ("float32", "int64"), ("bool", "float32"), ("float32", "float64")):
        x = tensor(1024, 1024, dtype=a, make="randint" if a in ("int64", "bool") else "randn", high=2)
        yield row("cast", f"{SHORT[a]} to {SHORT.get(b, 'f64')} 1024x1024", "aten::to.dtype", "torch:to", x, dtype(b))
    for n in (512, 1 << 20):
        yield row("arange", f"i64 {n}", "aten::arange", "torch.arange", n)
        yield row("full", f"f32 {n}", "aten::full", "torch.full", [n], 1.5)


def overhead():
    x = tensor(8)
    yield row("overhead", "add of 8 elements", "typed:add", "torch.add", x, x)
    yield row("overhead", "view of 8 elements", "typed:view", "torch:view", x, [2, 4])
    yield row("overhead", "add of 8 elements, by name", "aten::add.Tensor", "torch.ops.aten.add.Tensor", x, x)


def all_rows():
    for part in (overhead, products, experts, attention, pointwise, convolutions, movement):
        yield from part()
