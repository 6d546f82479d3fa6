"""Records operator calls while PyTorch's own test samples run.

Two modes stand on each other. The one on the pre-dispatch key sees what the user's call became (aten::linear,
aten::softmax.int: composite operators are still whole); the ordinary one sees what reaches the kernels. The pre-dispatch
stack accepts few kinds of mode, SchemaCheckMode among them, and needs the Python dispatcher switched on.
"""

import contextlib
import itertools
import warnings

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.schema_check_mode import SchemaCheckMode
from torch.utils._python_dispatch import TorchDispatchMode

from calls import DTYPES, Call, Unsupported, op_name, snapshot

BYTES_LIMIT = 16384


class Recorder:
    """Keeps up to cap distinct calls for each operator and dtype, from operators in wanted only."""

    def __init__(self, wanted, own_cap=32, other_cap=8):
        self.wanted, self.own_cap, self.other_cap = wanted, own_cap, other_cap
        self.own = None  # base name of the operator whose samples run: its calls get most of the room
        self.calls = {}  # op name -> dtype -> list of Call
        self.seen = set()
        self.added = 0
        self.names = {}

    def add(self, func, args, kwargs):
        name = self.names.get(func)
        if name is None:
            name = self.names[func] = op_name(func)
        if name not in self.wanted:
            return
        probe = Call(func, args, kwargs)
        dtype = probe.primary_dtype()
        bucket = self.calls.setdefault(name, {}).setdefault(dtype, [])
        base = name[6:].partition(".")[0].rstrip("_")
        if len(bucket) >= (self.own_cap if base == self.own else self.other_cap):
            return
        sig = probe.signature()
        if sig in self.seen:
            return
        self.seen.add(sig)
        try:
            args, kwargs = snapshot([list(args), dict(kwargs)], BYTES_LIMIT)
        except Unsupported:
            return
        bucket.append(Call(func, args, kwargs))
        self.added += 1


class PreDispatch(SchemaCheckMode):
    def __init__(self, recorder):
        super().__init__()
        self._dispatch_key = torch._C.DispatchKey.PreDispatch
        self.recorder = recorder

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.recorder.add(func, args, kwargs)
        return func(*args, **kwargs)


class PostDispatch(TorchDispatchMode):
    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.recorder.add(func, args, kwargs)
        return func(*args, **kwargs)


@contextlib.contextmanager
def recording(recorder):
    with enable_python_dispatcher(), PostDispatch(recorder), PreDispatch(recorder):
        yield


# Sample generators that take seconds, or whose operators no model here needs.
SKIPPED_INFOS = ("linalg", "fft", "sparse", "special", "signal", "_refs", "ops.", "masked.", "to_sparse", "svd", "pca",
                 "grid_sampler_3d", "jiterator", "lu", "cholesky", "geqrf", "ormqr", "lobpcg", "empty_permuted")


def sample_tensors_require_grad(sample):
    return any(isinstance(v, torch.Tensor) and v.requires_grad
               for v in [sample.input, *sample.args, *sample.kwargs.values()])


def op_infos():
    from torch.testing._internal.common_methods_invocations import op_db
    keep = ("linalg.vector_norm", "fft.rfft", "fft.irfft")
    return [o for o in op_db if o.name in keep or not any(o.name.startswith(s) for s in SKIPPED_INFOS)]


def record_op_db(recorder, seed, samples=10, dtypes=DTYPES):
    """Runs op_db's samples under the recorder. Returns the number of samples that ran."""
    ran = 0
    bases = {n[6:].partition(".")[0] for n in recorder.wanted}
    infos = sorted(op_infos(), key=lambda o: o.aten_name not in bases)
    # float32 leads: an operator that it finds nothing new for is not asked again with other dtypes.
    order = sorted(dtypes, key=lambda d: d != torch.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for info in infos:
            recorder.own = info.aten_name
            start = recorder.added
            for dtype in order:
                if dtype not in info.dtypes:
                    continue
                if dtype != torch.float32 and torch.float32 in info.dtypes and recorder.added == start:
                    break
                torch.manual_seed(seed)
                grad = dtype == torch.float32 and info.supports_autograd
                count = 2 * samples if dtype == torch.float32 else samples
                try:
                    picked = list(itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=grad), 4 * count))
                except Exception:
                    continue
                # Evenly over the samples: the generators put the plain ones first and the odd ones last.
                step = max(1, len(picked) // count)
                stale = 0
                for i, sample in enumerate(picked[::step][:count]):
                    known = recorder.added
                    ran += run_sample(recorder, info.op, sample, grad and i < 4)
                    stale = stale + 1 if recorder.added == known else 0
                    if stale >= 3:
                        break
                variant = info.inplace_variant
                if variant is not None and info.aten_name in bases and dtype in (torch.float32, torch.int64):
                    for sample in picked[::step][:2]:
                        ran += run_sample(recorder, variant, sample, False)
    return ran


def run_sample(recorder, fn, sample, backward):
    try:
        if backward:
            with recording(recorder):
                out = fn(sample.input, *sample.args, **sample.kwargs)
                if isinstance(out, (list, tuple)):
                    out = next((o for o in out if isinstance(o, torch.Tensor) and o.requires_grad), None)
                if isinstance(out, torch.Tensor) and out.requires_grad:
                    out.backward(torch.randn_like(out))
        else:
            with torch.no_grad(), recording(recorder):
                fn(sample.input, *sample.args, **sample.kwargs)
        return 1
    except Exception:
        return 0
