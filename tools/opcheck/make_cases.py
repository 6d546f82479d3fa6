"""Makes operator cases with the installed PyTorch.

    python make_cases.py --out DIR [--list FILE] [--ops a,b] [--per-op N] [--seed S] [--jobs 2] [--what cases,guards,errors]

Writes DIR/cases-K.jsonl|bin (one pair a job), DIR/guards-K.*, DIR/errors.*, and the number of cases per operator into
DIR/counts-K.tsv. The same seed and PyTorch give the same files. --golden makes the small sample that the repository keeps.
"""

import os

# AMX in virtual machines is not always usable though the processor claims it; and goldens should not depend on it.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import argparse
import collections
import random
import subprocess
import sys
import time
import warnings

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import badinput
import guards
import handmade
import isolate
import oplist
import record
import vary
from calls import DTYPES, FLOATS, Call, CaseFile, Unsupported, find_op, make_case
from checks import accumulates, check_for, functional


def has_complex(call):
    return any(isinstance(v, complex) or (isinstance(v, torch.Tensor) and v.dtype.is_complex) or
               (isinstance(v, torch.dtype) and v.is_complex) for v in call.leaves())


class Pool:
    """Known calls of each operator by dtype; in-place and out= forms borrow from the functional one."""

    def __init__(self, names, seed):
        self.families = oplist.Families()
        self.seed = seed
        self.names = names
        wanted = set(names)
        for n in names:
            op = oplist.lookup(n)
            base = self.families.functional_of(op) if op is not None else None
            if base is not None:
                wanted.add(oplist.op_name(base))
        self.recorder = record.Recorder(wanted)

    def record(self):
        return record.record_op_db(self.recorder, self.seed)

    def known(self, name):
        """dtype -> calls, recorded and hand-made."""
        op = find_op(name)
        found = {d: list(c) for d, c in self.recorder.calls.get(name, {}).items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for args, kwargs in handmade.templates(name, self.seed):
                c = Call(op, args, kwargs)
                found.setdefault(c.primary_dtype(), []).append(c)
        # Complex numbers are for storing, copying and casting.
        if check_for(op) not in ("exact", "meta"):
            found = {d: [c for c in calls if not has_complex(c)] for d, calls in found.items()}
        return {d: calls for d, calls in found.items() if calls}

    def templates(self, name):
        """(calls by dtype, how to make this operator's call from one of them)."""
        op = find_op(name)
        own = self.known(name)
        base = self.families.functional_of(op)
        if base is None:
            return own, None
        borrowed = self.known(oplist.op_name(base))
        if oplist.is_out(op):
            return borrowed, lambda c, rng: vary.as_out(c, op, rng)
        for d, calls in borrowed.items():
            own.setdefault(d, []).extend(filter(None, (vary.as_inplace(c, op, None) for c in calls)))
        return own, None


def quota(op, golden):
    """How many cases each dtype gets: errors of accumulating operators are averaged over at least 100 inputs."""
    if golden:
        return {}, 1
    if accumulates(op) and functional(op):
        return {torch.float32: 104, torch.bfloat16: 104, torch.float16: 104, torch.float64: 20}, 5
    return {}, None


def size_of(case):
    blobs = [*case["storages"], *case.get("out_storages", []), *case.get("storages_after", {}).values(), *case.get("ref", [])]
    return sum(len(b) for b in blobs if b is not None)


def cases_for(pool, name, per_op, seed, golden, tick):
    op = find_op(name)
    rng = random.Random(f"{seed}/{name}")
    by_dtype, convert = pool.templates(name)
    by_dtype = {d: [c for c in cs] for d, cs in by_dtype.items() if cs}
    if not by_dtype:
        return []
    floats = [c for d, cs in by_dtype.items() if d is not None and d.is_floating_point for c in cs]
    sized, rest = quota(op, golden)
    dtypes = [d for d in DTYPES if d in by_dtype]
    if floats:
        dtypes += [d for d in FLOATS if d not in dtypes]
    others = [d for d in by_dtype if d not in dtypes]
    # Integer dtypes that the samples lack, where a cast from float samples makes sense.
    if floats and (torch.Tag.pointwise in op.tags or check_for(op) == "exact"):
        dtypes += [d for d in DTYPES if d not in dtypes]
    if others:
        dtypes.append(None)
    made, seen = [], set()
    each = max(3, -(-per_op // len(dtypes)))
    fruitful = []
    for dtype in dtypes:
        want = sized.get(dtype, rest if rest is not None else each)
        before = len(made)
        errors = more_cases(op, name, dtype, want, by_dtype, floats, others, convert, rng, seen, made, tick)
        if len(made) - before > errors:
            fruitful.append(dtype)
    if golden:
        rng.shuffle(made)
        return [c for c in made if size_of(c) <= 3000][:per_op]
    # What dtypes without a kernel left over goes to those that have one.
    for dtype in fruitful:
        want = -(-(per_op - len(made)) // len(fruitful))
        if want > 0:
            more_cases(op, name, dtype, want, by_dtype, floats, others, convert, rng, seen, made, tick)
    return made


def more_cases(op, name, dtype, want, by_dtype, floats, others, convert, rng, seen, made, tick):
    """Adds up to want cases of one dtype (None: the odd ones) to made; returns how many of them expect an error."""
    done = tries = bad = 0
    source = [c for d in others for c in by_dtype[d]] if dtype is None else by_dtype.get(dtype)
    while done < want and tries < 8 * want:
        tries += 1
        if not source or (dtype in FLOATS and floats and rng.random() < 0.2):
            if not floats or dtype is None:
                break
            call = vary.recast(rng.choice(floats), rng, dtype)
        else:
            call = rng.choice(source)
        if call is None:
            continue
        try:
            call = vary.vary(call, rng, DTYPES)
            if tick():
                continue
            if call is not None and convert is not None:
                call = convert(call, rng)
            if call is None:
                continue
            # Accumulating operators are judged by their values, so a case with new values is a new case.
            key = call.signature() + (str(tries) if call.kind in ("values", "special") else "")
            if key in seen:
                continue
            seen.add(key)
            case = make_case(call, f"{name}/{len(made)}", check_for(op, call))
        except (Unsupported, RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
            continue
        if size_of(case) > (48 << 10):
            continue
        if "error" in case["expect"]:
            if bad >= max(1, want // 6):
                continue
            bad += 1
        made.append(case)
        done += 1
    return bad


def worker(args, names):
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    start = time.time()
    mine = names[args.job::args.jobs]
    suffix = "" if args.jobs == 1 else f"-{args.job}"
    pool = Pool(mine, args.seed)
    ran = pool.record()
    print(f"job {args.job}: {ran} samples in {time.time() - start:.0f} s", flush=True)
    if "cases" in args.what:
        out = CaseFile(os.path.join(args.out, "cases" + suffix))
        with open(os.path.join(args.out, "counts" + suffix + ".tsv"), "w") as counts:
            for name in mine:
                counts.flush()
                cases, crashes = isolate.run(lambda tick: cases_for(pool, name, args.per_op, args.seed, args.golden, tick))
                cases = cases or []
                for c in cases:
                    out.write(c)
                errs = sum("error" in c["expect"] for c in cases)
                kinds = collections.Counter(c["kind"] for c in cases)
                counts.write(f"{name}\t{check_for(find_op(name))}\t{len(cases)}\t{errs}\t{crashes}\t{dict(kinds)}\n")
        out.close()
        print(f"job {args.job}: {out.count} cases, {out.offset >> 20} MiB, {time.time() - start:.0f} s", flush=True)
    if "guards" in args.what:
        out = CaseFile(os.path.join(args.out, "guards" + suffix))
        guards.warm_up()
        for name in mine:
            # The other forms share the functional one's rule.
            count = args.guards_per_op if functional(find_op(name)) else args.guards_per_op // 4
            for c in guards.cases_for(pool, name, count, args.seed):
                out.write(c)
        out.close()
        print(f"job {args.job}: {out.count} guard cases, {time.time() - start:.0f} s", flush=True)
    if "errors" in args.what and args.job == 0:
        out = CaseFile(os.path.join(args.out, "errors"))
        for c in badinput.cases(args.seed, set(names), args.golden):
            out.write(c)
        out.close()
        print(f"job {args.job}: {out.count} bad-input cases, {time.time() - start:.0f} s", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", required=True)
    p.add_argument("--list", help="operators to cover beside the required ones, one a line (opcheck --list prints them)")
    p.add_argument("--ops", help="only these operators")
    p.add_argument("--per-op", type=int, default=40)
    p.add_argument("--guards-per-op", type=int, default=8)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--job", type=int)
    p.add_argument("--golden", action="store_true")
    p.add_argument("--what", default="cases,guards,errors")
    args = p.parse_args()
    args.what = args.what.split(",")
    os.makedirs(args.out, exist_ok=True)
    names = args.ops.split(",") if args.ops else oplist.default_list()
    if args.list:
        names = sorted({*names, *oplist.read_list(args.list)})
    names = [n for n in names if oplist.lookup(n) is not None]
    if not args.golden:
        random.Random(0).shuffle(names)  # neighbours cost alike; the jobs should not
    if args.job is not None:
        worker(args, names)
        return 0
    if args.jobs == 1:
        args.job = 0
        worker(args, names)
        return 0
    # Each job is a process of its own: recording changes PyTorch's global state.
    command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--jobs", str(args.jobs)]
    procs = [subprocess.Popen([*command, "--job", str(j)]) for j in range(args.jobs)]
    return 1 if any([p.wait() for p in procs]) else 0


if __name__ == "__main__":
    sys.exit(main())
