"""Operator calls as data: snapshots of arguments, execution, and the case-file encoding.

A Call owns its tensors. Tensors that shared a storage when they were snapshot still share one, so aliasing between
arguments is part of a call. The format of a case is described in README.md of this folder.
"""

import ctypes
import json
import math
import re

import mpmath
import numpy
import torch

from meaningless import is_meaningless

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
          torch.float16, torch.bfloat16, torch.float32, torch.float64]
FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
LOW_FLOATS = {torch.float16, torch.bfloat16, torch.float32}


def dtype_name(d):
    return str(d).split(".")[-1]


def op_name(op):
    """aten::add.Tensor; the default overload has no suffix."""
    return op._schema.name + ("." + op._schema.overload_name if op._schema.overload_name else "")


def find_op(name):
    ns, rest = name.split("::")
    base, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, ns), base), overload or "default")


def tree_map(fn, v):
    if isinstance(v, (list, tuple)):
        return [tree_map(fn, x) for x in v]
    if isinstance(v, dict):
        return {k: tree_map(fn, x) for k, x in v.items()}
    return fn(v)


def tree_leaves(v, out=None):
    out = [] if out is None else out
    if isinstance(v, (list, tuple)):
        for x in v:
            tree_leaves(x, out)
    elif isinstance(v, dict):
        for x in v.values():
            tree_leaves(x, out)
    else:
        out.append(v)
    return out


def plain(t):
    """Whether the tensor is one that a case can hold: strided, on the CPU, no lazy conjugation or negation."""
    return (type(t) in (torch.Tensor, torch.nn.Parameter) and t.layout == torch.strided and t.device.type == "cpu"
            and not t.is_quantized and not t.is_conj() and not t.is_neg())


class Unsupported(Exception):
    """The call holds something that a case file cannot."""


def on_storage(storage, t):
    return torch.empty(0, dtype=t.dtype).set_(storage, t.storage_offset(), t.size(), t.stride())


def snapshot(tree, limit=None):
    """A deep copy that keeps geometry and storage sharing."""
    memo = {}

    def leaf(v):
        if not isinstance(v, torch.Tensor):
            return v
        if not plain(v):
            raise Unsupported("tensor kind")
        s = v.untyped_storage()
        if limit is not None and s.nbytes() > limit:
            raise Unsupported("too large")
        if s._cdata not in memo:
            memo[s._cdata] = s.clone() if s.nbytes() else torch.UntypedStorage(0)
        return on_storage(memo[s._cdata], v)

    return tree_map(leaf, tree)


class Call:
    def __init__(self, op, args, kwargs, kind="base"):
        self.op, self.args, self.kwargs, self.kind = op, list(args), dict(kwargs), kind

    def copy(self, kind=None):
        args, kwargs = snapshot([self.args, self.kwargs])
        return Call(self.op, args, kwargs, kind or self.kind)

    def with_op(self, op, kind=None):
        c = self.copy(kind)
        c.op = op
        return c

    def leaves(self):
        return tree_leaves([self.args, self.kwargs])

    def tensors(self):
        return [v for v in self.leaves() if isinstance(v, torch.Tensor)]

    def map_tensors(self, fn, kind=None):
        """A copy in which every tensor is fn(its index, itself). Sharing survives only where fn keeps the storage."""
        c = self.copy(kind)
        i = -1

        def leaf(v):
            nonlocal i
            if not isinstance(v, torch.Tensor):
                return v
            i += 1
            return fn(i, v)

        c.args, c.kwargs = tree_map(leaf, c.args), tree_map(leaf, c.kwargs)
        return c

    def primary_dtype(self):
        for v in self.leaves():
            if isinstance(v, torch.Tensor):
                return v.dtype
        for v in self.leaves():
            if isinstance(v, torch.dtype):
                return v
        return None

    def signature(self):
        """Everything but the elements."""
        ids = {}

        def leaf(v):
            if isinstance(v, torch.Tensor):
                k = ids.setdefault(v.untyped_storage()._cdata, len(ids))
                return f"T{k}:{v.dtype}:{tuple(v.shape)}:{v.stride()}:{v.storage_offset()}"
            return f"{type(v).__name__}={v}"

        return repr((op_name(self.op), tree_map(leaf, self.args), tree_map(leaf, self.kwargs)))

    def run(self):
        with torch.no_grad():
            return self.op(*self.args, **self.kwargs)


def scalar_value(v):
    if v is None or isinstance(v, (bool, str)):
        return v
    if isinstance(v, int):
        return v
    if isinstance(v, float):
        if math.isnan(v):
            return {"f": "nan"}
        if math.isinf(v):
            return {"f": "inf" if v > 0 else "-inf"}
        return v
    if isinstance(v, complex):
        return {"c": [v.real, v.imag]}
    if isinstance(v, torch.dtype):
        return {"dtype": dtype_name(v)}
    if isinstance(v, torch.device):
        return {"device": str(v)}
    if isinstance(v, torch.layout):
        return {"layout": str(v).split(".")[-1]}
    if isinstance(v, torch.memory_format):
        return {"memory_format": str(v).split(".")[-1]}
    raise Unsupported(f"argument of type {type(v).__name__}")


def geometry(t):
    return {"dtype": dtype_name(t.dtype), "sizes": list(t.shape), "strides": list(t.stride()), "offset": t.storage_offset()}


def storage_bytes(s):
    if s.nbytes() == 0:
        return b""
    return ctypes.string_at(s.data_ptr(), s.nbytes())  # numpy() would make the storage refuse to grow


class CaseFile:
    """Writes NAME.jsonl and NAME.bin side by side."""

    def __init__(self, path):
        self.json, self.bin = open(path + ".jsonl", "w"), open(path + ".bin", "wb")
        self.offset = 0
        self.blobs = {}
        self.count = 0

    def blob(self, data):
        # Equal blobs are stored once: in-place and out= cases often repeat the inputs of the functional one.
        if data in self.blobs:
            return [self.blobs[data], len(data)]
        at = self.offset
        self.bin.write(data)
        pad = -len(data) % 16
        self.bin.write(b"\0" * pad)
        self.offset += len(data) + pad
        self.blobs[data] = at
        return [at, len(data)]

    def write(self, case):
        case = dict(case)
        for key in ("storages", "out_storages"):
            if key in case:
                case[key] = [self.blob(b) for b in case[key]]
        if "storages_after" in case:
            case["storages_after"] = {k: self.blob(b) for k, b in case["storages_after"].items()}
        if "ref" in case:
            case["ref"] = [None if b is None else self.blob(b) for b in case["ref"]]
        self.json.write(json.dumps(case, separators=(",", ":")) + "\n")
        self.count += 1

    def close(self):
        self.json.close()
        self.bin.close()


class Encoder:
    """Numbers the storages of one call, then tells its outputs apart from its inputs."""

    def __init__(self):
        self.storages, self.index = [], {}
        self.out_storages, self.out_index = [], {}

    def input(self, v):
        if not isinstance(v, torch.Tensor):
            return scalar_value(v)
        s = v.untyped_storage()
        k = self.index.get(s._cdata)
        if k is None:
            k = self.index[s._cdata] = len(self.storages)
            self.storages.append(s)
        return {"t": k, **geometry(v)}

    def output(self, v):
        if not isinstance(v, torch.Tensor):
            return scalar_value(v)
        if not plain(v):
            raise Unsupported("output kind")
        s = v.untyped_storage()
        if s._cdata in self.index:
            return {"alias": self.index[s._cdata], **geometry(v)}
        k = self.out_index.get(s._cdata)
        if k is None:
            k = self.out_index[s._cdata] = len(self.out_storages)
            self.out_storages.append(s)
        return {"t": k, **geometry(v)}


def results(op, out):
    """The call's results as a list with one entry for each return of the schema."""
    n = len(op._schema.returns)
    if n == 0:
        return []
    return [out] if n == 1 else list(out)


def upcast(call):
    """The same call on float64, for the reference value. None where the call has no lower float to raise."""
    memo = {}

    def leaf(v):
        if isinstance(v, torch.dtype):
            return torch.float64 if v in LOW_FLOATS else v
        if not isinstance(v, torch.Tensor) or v.dtype not in LOW_FLOATS:
            return v
        s = v.untyped_storage()
        key = s._cdata
        if key not in memo:
            whole = torch.empty(0, dtype=v.dtype).set_(s, 0, (s.nbytes() // v.element_size(),), (1,))
            memo[key] = (v.dtype, whole.to(torch.float64))
        if memo[key][0] != v.dtype:
            raise Unsupported("two dtypes on one storage")
        return torch.as_strided(memo[key][1], v.size(), v.stride(), v.storage_offset())

    c = call.copy()
    c.args, c.kwargs = tree_map(leaf, c.args), tree_map(leaf, c.kwargs)
    return c


LONG_DOUBLE = {"fmod": numpy.fmod, "remainder": numpy.remainder, "pow": numpy.power, "atan2": numpy.arctan2, "exp": numpy.exp,
               "exp2": numpy.exp2, "expm1": numpy.expm1, "log": numpy.log, "log2": numpy.log2, "log10": numpy.log10,
               "log1p": numpy.log1p, "sin": numpy.sin, "cos": numpy.cos, "tan": numpy.tan, "asin": numpy.arcsin,
               "acos": numpy.arccos, "atan": numpy.arctan, "sinh": numpy.sinh, "cosh": numpy.cosh, "tanh": numpy.tanh,
               "asinh": numpy.arcsinh, "acosh": numpy.arccosh, "atanh": numpy.arctanh, "sqrt": numpy.sqrt,
               "rsqrt": lambda x: 1 / numpy.sqrt(x), "reciprocal": lambda x: 1 / x,
               "sigmoid": lambda x: 1 / (1 + numpy.exp(-x)), "hypot": numpy.hypot, "logaddexp": numpy.logaddexp,
               "logaddexp2": numpy.logaddexp2}


def digits(fn):
    """fn of mpmath's numbers on every element."""
    def each(x):
        with mpmath.workdps(60):
            flat = [float(fn(mpmath.mpf(float(v)))) if numpy.isfinite(v) else numpy.nan for v in numpy.ravel(x)]
        return numpy.reshape(numpy.array(flat, dtype=numpy.longdouble), numpy.shape(x))
    return each


def gelu(x):
    return x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def gelu_tanh(x):
    return x * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf(0.044715) * x ** 3))) / 2


def gelu_reference(call):
    return digits(gelu_tanh if call.kwargs.get("approximate") == "tanh" else gelu)(call.args[0].contiguous().numpy())


def line_reference(call):
    """arange and linspace, every element from the numbers given."""
    base = call.op._schema.name.split("::")[1]
    numbers = [v for v in call.args if isinstance(v, (int, float)) and not isinstance(v, bool)]
    with mpmath.workdps(60):
        if base == "linspace":
            start, end, steps = mpmath.mpf(numbers[0]), mpmath.mpf(numbers[1]), int(numbers[2])
            return numpy.array([float(start + (end - start) * i / (steps - 1) if steps > 1 else start) for i in range(steps)])
        start, step = (0, 1) if len(numbers) == 1 else (numbers[0], numbers[2] if len(numbers) > 2 else 1)
        n = call.copy().run().numel()
        return numpy.array([float(mpmath.mpf(start) + mpmath.mpf(step) * i) for i in range(n)])


WRITTEN_OUT = {"gelu": gelu_reference, "arange": line_reference, "linspace": line_reference}


def bessel_i(order, x):
    """Modified Bessel functions by their power series, whose terms are all of one sign."""
    a = numpy.abs(x)
    q, term = a * a / 4, (numpy.ones_like(a) if order == 0 else a / 2)
    total = term.copy()
    for k in range(1, 1500):
        term = term * q / (k * (k + order))
        total = total + term
        if not (term > total * 1e-22).any():
            break
    return total if order == 0 else numpy.where(x < 0, -total, total)


def digamma(x):
    x = numpy.array(x)
    reflected = x < 0
    y = numpy.where(reflected, 1 - x, x)
    total = numpy.zeros_like(y)
    for _ in range(25):
        total, y = numpy.where(y < 25, total - 1 / y, total), numpy.where(y < 25, y + 1, y)
    z = 1 / (y * y)
    one = numpy.longdouble(1)
    total = total + numpy.log(y) - one / 2 / y - z * (one / 12 - z * (one / 120 - z * (one / 252 - z * (one / 240 - z * (one / 132 - z * 691 / 32760)))))
    pi = numpy.longdouble("3.14159265358979323846264338327950288")
    return numpy.where(reflected, total - pi / numpy.tan(pi * numpy.fmod(x, one)), total)


LONG_DOUBLE |= {"i0": lambda x: bessel_i(0, x), "special_i1": lambda x: bessel_i(1, x), "digamma": digamma,
                "special_i0e": lambda x: bessel_i(0, x) * numpy.exp(-numpy.abs(x)),
                "special_i1e": lambda x: bessel_i(1, x) * numpy.exp(-numpy.abs(x))}


def long_double_reference(call, outs):
    """The reference of a pointwise float64 call, in long double and rounded; None for functions not listed."""
    base = call.op._schema.name.split("::")[1].rstrip("_")
    if base in WRITTEN_OUT and len(outs) == 1 and outs[0].dtype == torch.float64:
        r = numpy.asarray(WRITTEN_OUT[base](call)).astype(numpy.float64)
        return [numpy.ascontiguousarray(r).tobytes()] if list(r.shape) == list(outs[0].shape) else None
    if base not in LONG_DOUBLE or len(outs) != 1 or not isinstance(outs[0], torch.Tensor) or outs[0].dtype != torch.float64:
        return None
    values = []
    for v in call.args:
        if isinstance(v, torch.Tensor) and not v.dtype.is_complex and call.kind != "out-dtype":
            values.append(v.contiguous().to(torch.float64).numpy().astype(numpy.longdouble))
        elif isinstance(v, (int, float)) and not isinstance(v, bool):
            values.append(numpy.longdouble(v))
        else:
            return None
    if set(call.kwargs) - {"out"}:
        return None
    with numpy.errstate(all="ignore"):
        r = numpy.asarray(LONG_DOUBLE[base](*values)).astype(numpy.float64)
    return [numpy.ascontiguousarray(r).tobytes()] if list(r.shape) == list(outs[0].shape) else None


def computed_lower(call):
    """Whether the call computes in less than float64: an out= argument can be wider than what goes into it."""
    tensors = [v for v in tree_leaves(call.args) if isinstance(v, torch.Tensor)]
    return any(v.dtype in LOW_FLOATS for v in tensors) or not any(v.is_floating_point() or v.is_complex() for v in tensors)


def reference(call, outs):
    """float64 results of the call, flat, None for a result that is not a float tensor; None as a whole without use."""
    flat = tree_leaves(outs)
    wanted = (*LOW_FLOATS, torch.float64) if computed_lower(call) else LOW_FLOATS
    if not any(isinstance(v, torch.Tensor) and v.dtype in wanted for v in flat):
        return None
    default = torch.get_default_dtype()
    try:
        up = upcast(call)
        torch.set_default_dtype(torch.float64)
        got = tree_leaves(results(call.op, up.run()))
    except Exception:
        return None
    finally:
        torch.set_default_dtype(default)
    if len(got) != len(flat):
        return None
    refs = []
    for a, b in zip(flat, got):
        if not (isinstance(a, torch.Tensor) and a.dtype in wanted):
            refs.append(None)
        elif not isinstance(b, torch.Tensor) or b.dtype != torch.float64 or a.shape != b.shape:
            return None
        else:
            refs.append(b.contiguous().numpy().tobytes())
    return refs


def computed_dtypes(call, outs):
    """For an out= of another dtype: the narrower floating dtypes in which PyTorch computes before it casts, None elsewhere.

    Results are then compared in that dtype. Where PyTorch computes in out's own dtype, its values tell."""
    names = [a.name for a in call.op._schema.arguments if not a.is_out]
    packet = call.op.overloadpacket
    for overload in (getattr(packet, o) for o in packet.overloads()):
        arguments = overload._schema.arguments
        if [a.name for a in arguments] == names and not any(a.alias_info is not None for a in arguments):
            break
    else:
        return None
    c = call.copy()
    c.op = overload
    c.kwargs = {k: v for k, v in c.kwargs.items() if k in names}
    try:
        made = results(overload, c.run())
    except Exception:
        return None

    def one(m, o):
        tensors = isinstance(m, torch.Tensor) and isinstance(o, torch.Tensor)
        if not tensors or m.dtype not in LOW_FLOATS or not o.dtype.is_floating_point or o.element_size() <= m.element_size():
            return None
        finite = o[torch.isfinite(o)]
        return dtype_name(m.dtype) if torch.equal(finite, finite.to(m.dtype).to(o.dtype)) else None

    found = [one(m, o) for m, o in zip(made, outs)]
    return found if any(found) else None


# Of two zeros of different sign, or for a result that vanishes, PyTorch's vector loops give another sign than its scalar
# ones: which elements are meant depends on the tensor's length and layout.
SIGN_BY_LOOP = {"maximum", "minimum", "max", "min", "clamp_min", "clamp_max", "clamp", "softshrink", "hardtanh"}


def zero_sign_varies(call, outs):
    if call.op._schema.name.split("::")[1].rstrip("_") not in SIGN_BY_LOOP:
        return False
    if not all(isinstance(o, torch.Tensor) and o.dtype.is_floating_point for o in outs) or not any((o == 0).any() for o in outs):
        return False

    def stepped(i, t):
        wide = torch.zeros([*t.shape, 2], dtype=t.dtype)
        wide[..., 0] = t
        return wide[..., 0]

    again = results(call.op, call.map_tensors(stepped).run())
    return any(bool((torch.signbit(a) != torch.signbit(b))[(a == 0) & (b == 0)].any()) for a, b in zip(outs, again))


BINDING_ERROR = re.compile(r"Expected a value of type|missing value for argument|positional argument\(s\) but|Unknown keyword argument|"
                           r"Overflow when unpacking|cannot be converted to type|must be real number, not")


def error_line(e):
    text = str(e).strip()
    return text.splitlines()[0][:300] if text else type(e).__name__


def make_case(call, case_id, check, want_ref=True):
    """Runs the call on PyTorch and returns its case with bytes still inline (CaseFile.write places them)."""
    if is_meaningless(call):
        raise Unsupported("PyTorch reads other memory than the arguments'")
    c = call.copy()
    enc = Encoder()
    case = {"id": case_id, "op": op_name(c.op), "kind": call.kind, "check": check,
            "args": tree_map(enc.input, c.args), "kwargs": tree_map(enc.input, c.kwargs)}
    before = [storage_bytes(s) for s in enc.storages]
    case["storages"] = before
    try:
        out = c.run()
    except Exception as e:
        if BINDING_ERROR.search(str(e)):
            raise Unsupported("refused by the Python binding, not by the operator") from None
        case["expect"] = {"error": error_line(e), "type": type(e).__name__}
        return case
    outs = results(c.op, out)
    case["expect"] = {"outputs": tree_map(enc.output, outs)}
    case["out_storages"] = [storage_bytes(s) for s in enc.out_storages]
    after = {}
    for i, s in enumerate(enc.storages):
        b = storage_bytes(s)
        if b != before[i]:
            after[str(i)] = b
    if after:
        case["storages_after"] = after
    if call.kind == "out-dtype" and check in ("pointwise", "accumulate"):
        computed = computed_dtypes(call, outs)
        if computed is not None:
            case["computed"] = computed
    if zero_sign_varies(call, outs):
        case["zero_sign"] = "any"
    if want_ref and check in ("pointwise", "accumulate"):
        ref = reference(call, outs)
        if ref is None and check == "pointwise":
            ref = long_double_reference(call, outs)
        if ref is not None:
            case["ref"] = ref
    return case
