"""Makes cases of gradients with the installed PyTorch.

    python make_gradients.py --out DIR --list FILE [--ops a,b] [--per-op N] [--seed S] [--jobs 2]

Writes DIR/gradients-K.jsonl|bin. The calls are those of make_cases.py on float32 and float64. --golden makes the small sample that
the repository keeps. README.md of this folder describes the format.
"""

import os

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import argparse
import contextlib
import random
import subprocess
import sys
import time
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import isolate
import oplist
import record
import vary
from calls import CaseFile, Encoder, Unsupported, error_line, find_op, op_name, plain, results, storage_bytes, tree_leaves, tree_map, upcast
from checks import META, accumulates, base_name, check_for
from make_cases import Pool, has_complex, size_of
from meaningless import is_meaningless

FLOATS = (torch.float32, torch.float64)
# What writes into memory that has no values yet, or gives no tensor that depends on one.
# Operators of backward passes that round nothing.
EXACT_CALLS = {"aten::" + n for n in "neg abs sgn sign zeros zeros_like ones ones_like empty empty_like fill_ scalar_tensor where masked_fill "
               "masked_fill_ eq ne lt le gt ge logical_and logical_and_ logical_or logical_or_ logical_not logical_not_ bitwise_and isnan "
               "expand view unsqueeze squeeze transpose permute slice select _to_copy clone new_zeros threshold_backward".split()}
LEFT_OUT = {*META, "set", "item", "_local_scalar_dense", "empty_like", "requires_grad", "retain_grad", "_backward", "backward"}


def ordered_leaves(call):
    """The tensors in the order in which cases number them: arguments, then keywords by name."""
    return [v for v in tree_leaves([call.args, [call.kwargs[k] for k in sorted(call.kwargs)]]) if isinstance(v, torch.Tensor)]


def seeded(shape, seed, like):
    """The numbers of a gradient that comes in: the same for every dtype."""
    g = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=g, dtype=torch.float64).to(torch.float32).to(like.dtype)


class Calls(TorchDispatchMode):
    """The operators that a backward pass calls. Keeping and detaching results is the engine's affair."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = op_name(func)
        if name not in ("aten::detach", "aten::alias"):
            self.names.append(name)
        return func(*args, **(kwargs or {}))


class Pass:
    """One call with gradients: what went in, and what came back."""

    def __init__(self, call, wants, roots, seed, second, log=None):
        self.call, self.wants, self.seed = call, wants, seed
        leaves = ordered_leaves(call)
        self.inputs = [leaves[i] for i in wants]
        for t in self.inputs:
            t.requires_grad_()
        args = list(call.args)
        if oplist.is_inplace(call.op):
            args[0] = args[0].clone()
        torch.manual_seed(seed)
        out = call.op(*args, **call.kwargs)
        self.outs = tree_leaves(results(call.op, out))
        self.smooth = [isinstance(o, torch.Tensor) and o.requires_grad for o in self.outs]
        if not any(self.smooth):
            return
        self.roots = roots(self.smooth)
        self.grads = [seeded(self.outs[k].shape, seed + k, self.outs[k]) for k in self.roots]
        self.way = random.Random(seed).random()
        if self.way < 0.2:  # as after sum() or in a strided graph
            self.grads = [g if g.numel() == 0 else vary.relaid(g, random.Random(seed), self.way < 0.07) for g in self.grads]
        if second:
            for g in self.grads:
                g.requires_grad_()
        with log or contextlib.nullcontext():
            self.given = torch.autograd.grad([self.outs[k] for k in self.roots], self.inputs, self.grads, create_graph=second,
                                             allow_unused=True)
        self.second = None
        if second:
            again = [k for k, g in enumerate(self.given) if g is not None and g.requires_grad]
            if again:
                self.again = again
                self.directions = [seeded(self.given[k].shape, seed + 100 + k, self.given[k]) for k in again]
                with log or contextlib.nullcontext():
                    self.second = torch.autograd.grad([self.given[k] for k in again], [*self.inputs, *self.grads], self.directions,
                                                      allow_unused=True)


def flat_bytes(tensors):
    return [None if t is None or t.dtype != torch.float64 else t.detach().resolve_conj().contiguous().numpy().tobytes() for t in tensors]


def reference(call, wants, roots, seed, second):
    """The same gradients in float64."""
    default = torch.get_default_dtype()
    try:
        up = upcast(call)
        torch.set_default_dtype(torch.float64)
        p = Pass(up, wants, roots, seed, second)
        return p if any(p.smooth) else None
    except Exception:
        return None
    finally:
        torch.set_default_dtype(default)


def is_pointwise(call, p):
    """Is every gradient one number of one place? Where an argument was broadcast, it is a sum."""
    if torch.Tag.pointwise not in call.op.tags and check_for(call.op, call) != "pointwise":
        return False
    shapes = {tuple(t.shape) for t in p.inputs} | {tuple(p.outs[k].shape) for k in p.roots}
    return len(shapes) == 1


def differs_smoothly(call, wants, p, seed):
    """Do PyTorch's own differences agree with its gradient? At kinks they do not, nor near them: every element moves by four steps too."""
    if any(t.dtype != torch.float64 for t in p.inputs) or not all(bool(torch.isfinite(t).all()) for t in p.inputs):
        return False
    step = 1e-6

    def value(sign, directions):
        c = call.copy()
        leaves = ordered_leaves(c)
        with torch.no_grad():
            for i, d in zip(wants, directions):
                leaves[i].add_(d, alpha=sign * step)
            torch.manual_seed(seed)
            outs = tree_leaves(results(c.op, c.op(*c.args, **c.kwargs)))
            return sum(float((outs[k] * g).sum()) for k, g in zip(p.roots, p.grads))

    def agrees(directions):
        numeric = (value(1, directions) - value(-1, directions)) / (2 * step)
        terms = [g * d for g, d in zip(p.given, directions) if g is not None]
        scale = sum(float(t.abs().sum()) for t in terms)
        return scale < 1e6 and abs(numeric - sum(float(t.sum()) for t in terms)) <= 1e-6 * max(1.0, scale)

    plain = [seeded(t.shape, seed + 50 + k, t) for k, t in enumerate(p.inputs)]
    try:
        return agrees(plain) and agrees([torch.where(d < 0, -4.0, 4.0).to(d.dtype) for d in plain])
    except Exception:
        return False


def make_gradient_case(call, case_id, rng, second):
    if is_meaningless(call) or has_complex(call):
        raise Unsupported("PyTorch reads other memory than the arguments', or the call is one of complex numbers")
    c = call.copy()
    leaves = ordered_leaves(c)
    written = vary.written(c.op)
    able = [i for i, t in enumerate(leaves) if t.dtype in FLOATS]
    if not able or (written and not oplist.is_inplace(c.op)):
        raise Unsupported("no argument to differentiate")
    wants = able if rng.random() < 0.75 else sorted(rng.sample(able, rng.randint(1, len(able))))
    some = rng.random()

    def roots(smooth):
        every = [k for k, s in enumerate(smooth) if s]
        return every if some < 0.7 else [every[int(some * 997) % len(every)]]

    seed = rng.randrange(1 << 30)
    enc = Encoder()
    case = {"id": case_id, "op": op_name(c.op), "kind": call.kind, "seed": seed, "args": tree_map(enc.input, c.args),
            "kwargs": tree_map(enc.input, c.kwargs), "wants": wants}
    if oplist.is_inplace(c.op):
        case["clone"] = True
    p = Pass(c, wants, roots, seed, second)
    case["smooth"] = p.smooth
    if not any(p.smooth):
        case["storages"] = [storage_bytes(s) for s in enc.storages]
        return case
    if not all(plain(t) for t in [*p.grads, *(g for g in p.given if g is not None)]):
        raise Unsupported("a gradient of a kind that a case cannot hold")
    node = p.outs[p.roots[0]].grad_fn
    case["node"] = node.name() if node is not None else None
    case["roots"] = [[k, enc.input(g.detach())] for k, g in zip(p.roots, p.grads)]
    if p.second is not None:
        case["again"] = [[k, enc.input(d)] for k, d in zip(p.again, p.directions)]
    case["storages"] = [storage_bytes(s) for s in enc.storages]
    case["gradients"] = [None if g is None else enc.output(g.detach()) for g in p.given]
    if p.second is not None:
        case["second"] = [None if g is None else enc.output(g.detach()) for g in p.second]
    case["out_storages"] = [storage_bytes(s) for s in enc.out_storages]
    case["check"] = "pointwise" if is_pointwise(c, p) else "accumulate"
    log = Calls()
    again = Pass(call.copy(), wants, roots, seed, p.second is not None, log)
    if case["check"] == "pointwise":  # each operator of the pass may be two steps off
        case["ulps"] = 2 * max(1, sum(n.partition(".")[0] not in EXACT_CALLS for n in log.names)) if again.smooth == p.smooth else 2
    if any(t.dtype == torch.float32 for t in leaves) and check_for(c.op, c) != "random":
        r = reference(call.copy(), wants, roots, seed, p.second is not None)
        if r is not None and r.roots == p.roots and len(r.given) == len(p.given):
            case["ref"] = flat_bytes(r.given) + (flat_bytes(r.second) if r.second is not None and p.second is not None else [])
    if p.second is None and rng.random() < 0.3:
        case["calls"] = log.names
    if differs_smoothly(call, wants, p, seed):
        case["numeric"] = True
    return case


def quota(op, per_op):
    """How many cases of each dtype: errors of sums are averaged over at least 100 gradients."""
    if oplist.is_inplace(op):
        return {torch.float32: max(2, per_op // 6), torch.float64: 1}
    if accumulates(op):
        return {torch.float32: per_op * 2, torch.float64: max(2, per_op // 3)}
    return {torch.float32: per_op, torch.float64: max(2, per_op // 2)}


def cases_for(pool, name, per_op, seed, golden, tick):
    op = find_op(name)
    rng = random.Random(f"{seed}/{name}/gradients")
    by_dtype, _ = pool.templates(name)
    source = [c for d, cs in by_dtype.items() for c in cs if any(isinstance(t, torch.Tensor) and t.dtype.is_floating_point
                                                                 for t in c.tensors())]
    if not source:
        return []
    made, seen, constant = [], set(), 0
    for dtype, want in ({torch.float32: 1, torch.float64: 1} if golden else quota(op, per_op)).items():
        done = tries = 0
        while done < want and tries < 8 * want + 8:
            tries += 1
            # Errors are found once a call; a constant operator is one after a few.
            if constant > 6 and done == 0:
                break
            try:
                call = vary.recast(rng.choice(source), rng, dtype)
                call = call and (call if tries == 1 else vary.vary(call, rng, list(FLOATS)))
                if tick() or call is None:
                    continue
                key = call.signature() + (str(tries) if call.kind in ("values", "special") else "")
                if key in seen:
                    continue
                seen.add(key)
                case = make_gradient_case(call, f"{name}/g{len(made)}", rng, rng.random() < (0.5 if golden else 0.25))
            except (Unsupported, RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
                continue
            if size_of(case) > (32 << 10):
                continue
            if "gradients" not in case:
                constant += 1
                if constant > 1:
                    continue
            elif golden and dtype == torch.float64 and tries < 6 and "numeric" not in case:
                continue
            made.append(case)
            done += 1
    if golden:
        made = [c for c in made if size_of(c) <= 2500]
    return made


def worker(args, names):
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    start = time.time()
    mine = names[args.job::args.jobs]
    suffix = "" if args.jobs == 1 else f"-{args.job}"
    pool = Pool(mine, args.seed)
    ran = record.record_op_db(pool.recorder, args.seed, dtypes=[torch.float32])
    print(f"job {args.job}: {ran} samples in {time.time() - start:.0f} s", flush=True)
    out = CaseFile(os.path.join(args.out, "gradients" + suffix))
    for name in mine:
        cases, _ = isolate.run(lambda tick: cases_for(pool, name, args.per_op, args.seed, args.golden, tick))
        for c in cases or []:
            out.write(c)
    out.close()
    print(f"job {args.job}: {out.count} cases, {out.offset >> 20} MiB, {time.time() - start:.0f} s", flush=True)


def has_gradient(name):
    op = oplist.lookup(name)
    return op is not None and not oplist.is_out(op) and base_name(op) not in LEFT_OUT and bool(op._schema.returns)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", required=True)
    p.add_argument("--list", help="the operators, one a line (opcheck --list prints them)")
    p.add_argument("--ops", help="only these operators")
    p.add_argument("--per-op", type=int, default=12)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--job", type=int)
    p.add_argument("--golden", action="store_true")
    args = p.parse_args()
    os.makedirs(args.out, exist_ok=True)
    names = args.ops.split(",") if args.ops else oplist.read_list(args.list)
    names = [n for n in names if has_gradient(n)]
    if not args.golden:
        random.Random(0).shuffle(names)  # neighbours cost alike; the jobs should not
    if args.job is not None or args.jobs == 1:
        args.job = args.job or 0
        worker(args, names)
        return 0
    command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--jobs", str(args.jobs)]
    procs = [subprocess.Popen([*command, "--job", str(j)]) for j in range(args.jobs)]
    return 1 if any([p.wait() for p in procs]) else 0


if __name__ == "__main__":
    sys.exit(main())
