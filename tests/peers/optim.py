#!/usr/bin/env python3
"""Optimizers, schedules and gradient clipping beside torch.optim, torch.nn.utils and transformers, live.

One step from equal parameters, states and gradients, at every step of several. The reference is what PyTorch's optimizers do on the CPU
when nothing is said (`foreach=None, fused=None`): one tensor after the other. But the square root that they call is not the rounded
one: MKL's is off by one unit in one of six float32 numbers. So their code is run with a correctly rounded root ("exact root"):
parameters and states within 1 ulp. `fused=True`, which has a root of its own, against Calque's `fused`: 1 ulp. As they are, the default
and `foreach=True` must be within 2 units of the larger of a number before and after the step, and of what MKL's root makes of the same step.
PyTorch's loops end with elements that fill no two vectors, which it computes in another order, and rounds twice in 16 bits: 4 and 16 units for them.
Its fused SGD leaves all other elements of 16-bit parameters as they were (2.13.0): that is not compared.
Adafactor takes norms of whole tensors: units of the same kind, the bound beside it.
State files go both ways; the step after is compared too. Learning rates must be equal to the bit.
--all: every configuration in every dtype.
"""
import contextlib
import copy
import itertools
import json
import math
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

import parts
from parts import check

PEER = os.path.join(parts.BUILD, "bin", "optim_peer")
DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16, "float16": torch.float16}
SHAPES = [(1,), (7,), (16, 33), (3, 4, 5), (), (64, 129), (2, 3, 2, 2)]


def run_peer(folder, cases, tensors):
    paths = [os.path.join(folder, name) for name in ("cases.jsonl", "in.safetensors", "out.safetensors")]
    with open(paths[0], "w") as f:
        f.writelines(json.dumps(c) + "\n" for c in cases)
    save_file({name: t.contiguous().clone() for name, t in tensors.items()} or {"none": torch.zeros(1)}, paths[1])
    done = subprocess.run([PEER, *paths], capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return load_file(paths[2])


def ulps(a, b):
    """How many representable numbers lie between, at most."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return math.inf
    if a.numel() == 0:
        return 0
    if not torch.equal(a.isnan(), b.isnan()):
        return math.inf
    a, b = a.nan_to_num(0, posinf=math.inf, neginf=-math.inf), b.nan_to_num(0, posinf=math.inf, neginf=-math.inf)
    integer = {2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]

    def ordered(t):
        i = t.contiguous().view(integer).to(torch.float64 if integer != torch.int64 else torch.int64)
        least = torch.iinfo(integer).min
        return torch.where(i < 0, least - i, i)
    return int((ordered(a) - ordered(b)).abs().max())


def units(a, b, before):
    """The largest difference, in units of the larger of the numbers before and after."""
    if a.shape != b.shape or a.dtype != b.dtype or not torch.equal(a.isnan(), b.isnan()):
        return math.inf
    scale = torch.maximum(a.double().abs(), b.double().abs())
    if before is not None and before.shape == scale.shape:
        scale = torch.maximum(scale, before.double().abs())
    apart = (a.double() - b.double()).abs().nan_to_num(0)
    return float((apart / (scale * torch.finfo(a.dtype).eps).clamp(min=1e-300)).max()) if a.numel() else 0.0


@contextlib.contextmanager
def exact_root():
    """PyTorch's optimizers with correctly rounded square roots."""
    base = torch.Tensor.sqrt, torch.Tensor.sqrt_

    def sqrt(t):
        return torch.from_numpy(np.asarray(np.sqrt(t.detach().numpy()))) if t.dtype in (torch.float32, torch.float64) else base[0](t)
    torch.Tensor.sqrt, torch.Tensor.sqrt_ = sqrt, lambda t: t.copy_(sqrt(t))
    try:
        yield
    finally:
        torch.Tensor.sqrt, torch.Tensor.sqrt_ = base


def vector_part(t):
    """How many elements PyTorch computes by vectors of at most 64 bytes, two at a time."""
    block = 128 // t.element_size()
    return t.numel() // block * block


def bound_of(name, form):
    """(how to measure, at most)"""
    if "Adafactor" in name:
        return units, 32
    return (ulps, 1) if form in ("exact root", "fused") else (units, 2)


def combinations(**choices):
    for values in itertools.product(*choices.values()):
        yield {k: v for k, v in zip(choices, values) if v is not None}


def configurations(r, everything):
    sgd = [c for c in combinations(lr=[0.1], momentum=[None, 0.9], dampening=[None, 0.3], weight_decay=[None, 0.01],
                                   nesterov=[None, True], maximize=[None, True])
           if not c.get("nesterov") or (c.get("momentum") and not c.get("dampening"))]
    adam = list(combinations(lr=[None, 0.01], betas=[None, (0.4, 0.7)], eps=[None, 1e-3], weight_decay=[None, 0, 0.05],
                             amsgrad=[None, True], maximize=[None, True]))
    adagrad = list(combinations(lr=[0.1], lr_decay=[None, 0.2], weight_decay=[None, 0.03], initial_accumulator_value=[None, 0.5],
                                eps=[None, 1e-4], maximize=[None, True]))
    rmsprop = list(combinations(lr=[0.02], alpha=[None, 0.3], eps=[None, 1e-4], weight_decay=[None, 0.03], momentum=[None, 0.9],
                                centered=[None, True], maximize=[None, True]))
    adafactor = list(combinations(lr=[None, 0.1], beta2_decay=[None, -0.5], eps=[None, (1e-4, 1e-2)], d=[None, 1.5],
                                  weight_decay=[None, 0.05], maximize=[None, True]))
    hf = [c for c in combinations(lr=[None, 0.01], clip_threshold=[None, 0.5], beta1=[None, 0.9], weight_decay=[None, 0.05],
                                  scale_parameter=[True, False], relative_step=[True, False], warmup_init=[None, True])
          if ("lr" in c) != c["relative_step"] and (c["relative_step"] or not c.get("warmup_init"))]
    for name, options in [("SGD", sgd), ("Adam", adam), ("AdamW", adam), ("Adagrad", adagrad), ("RMSprop", rmsprop),
                          ("Adafactor", adafactor), ("TransformersAdafactor", hf)]:
        if not everything:
            options = r.sample(options, min(16, len(options)))
        for o in options:
            yield name, o


def torch_class(name):
    return transformers.Adafactor if name == "TransformersAdafactor" else getattr(torch.optim, name)


def make_case(r, name, options, dtype, steps):
    shapes = r.sample(SHAPES, 4)
    groups = [{"count": 3, "options": {}}, {"count": 1, "options": {"weight_decay": 0.125}}]
    if options.get("lr") is not None:
        groups[1]["options"]["lr"] = options["lr"] / 3
    scale = r.choice([1e-3, 1.0, 1.0, 30.0])
    params = [torch.randn(s).to(dtype) for s in shapes]
    grads = [[None if r.random() < 0.1 else (torch.randn(s) * scale).to(dtype) for s in shapes] for _ in range(steps)]
    for step in grads:
        for g in step:
            if g is not None and g.numel() > 8 and r.random() < 0.2:
                g.view(-1)[:3] = 0
    return {"optimizer": name, "options": options, "groups": groups, "steps": steps}, params, grads


def make_torch(case, params, **more):
    it = iter(params)
    groups = [{"params": [next(it) for _ in range(g["count"])], **g["options"]} for g in case["groups"]]
    options = {k: tuple(v) if isinstance(v, (list, tuple)) else v for k, v in case["options"].items() if k != "fused"}
    return torch_class(case["optimizer"])(groups, **options, **more)


def run_torch(case, params, grads, state=None, **more):
    """Parameters after each step, and the optimizer."""
    params = [torch.nn.Parameter(p.clone()) for p in params]
    optimizer = make_torch(case, params, **more)
    if state is not None:
        optimizer.load_state_dict(copy.deepcopy(state))  # it takes the tensors themselves
        for group in optimizer.param_groups:
            group.update({k: more.get(k) for k in ("foreach", "fused") if k in group})
    after = []
    for step in grads:
        for p, g in zip(params, step):
            p.grad = None if g is None else g.clone()
        optimizer.step()
        after.append([p.detach().clone() for p in params])
    return after, optimizer, params


def add(tensors, n, params, grads):
    tensors.update({f"p.{n}.{i}": p for i, p in enumerate(params)})
    tensors.update({f"g.{n}.{s}.{i}": g for s, step in enumerate(grads) for i, g in enumerate(step) if g is not None})


def compare(out, n, after, optimizer, params, measure, bound, before=None, state_before=None, exact=None):
    """`before`: the parameters before the first step; `state_before`: PyTorch's state dict before it; `exact`: the same steps with a rounded root."""
    wrong, worst = [], 0

    def judge(what, mine, there, was, by_root=0):
        nonlocal worst
        parts = [(measure, mine, there, was, bound + by_root)]
        if before and mine.shape == there.shape and mine.dtype == there.dtype:
            k = vector_part(there)
            a, b = mine.reshape(-1), there.reshape(-1)
            c = was.reshape(-1) if was is not None and was.shape == there.shape else b
            parts = [(measure, a[:k], b[:k], c[:k], bound + by_root),
                     (units, a[k:], b[k:], c[k:], by_root + max(bound, 16 if there.element_size() == 2 else 4))]
        for how, a, b, c, most in parts:
            u = how(a, b) if how is ulps else how(a, b, c)
            worst = max(worst, u) if how is measure else worst
            if u > most:
                wrong.append(f"{what}: {u:.3g}")

    for s, step in enumerate(after):
        for i, p in enumerate(step):
            was = after[s - 1][i] if s else before[i] if before else None
            judge(f"step {s}, parameter {i} {tuple(p.shape)}", out[f"p.{n}.{s}.{i}"], p, was, units(exact[0][s][i], p, was) if exact else 0)
    for i, p in enumerate(params):
        there = {k: v for k, v in optimizer.state.get(p, {}).items() if isinstance(v, torch.Tensor)}
        prefix = f"state.{n}.{i}."
        mine = {k[len(prefix):]: v for k, v in out.items() if k.startswith(prefix)}
        if set(there) != set(mine):
            wrong.append(f"parameter {i}: states {sorted(there)}, ours {sorted(mine)}")
            continue
        for k, v in there.items():
            was = state_before["state"].get(i, {}).get(k) if state_before else None
            was = was if isinstance(was, torch.Tensor) else None
            by_root = units(exact[1].state[exact[2][i]][k], v, was) if exact else 0
            judge(f"parameter {i} {tuple(v.shape)}, {k}", mine[k], v, was, by_root)
    return wrong, worst


def one_step_each(case, params, grads, **more):
    """Cases of one step, each from PyTorch's own parameters and state of the step before."""
    here, state = params, None
    for step in grads:
        after, optimizer, made = run_torch(case, here, [step], state, **more)
        yield here, step, state, after, optimizer, made
        here = after[0]
        state = optimizer.state_dict()
        state = {"state": {k: {n: v.clone() if isinstance(v, torch.Tensor) else v for n, v in s.items()} for k, s in state["state"].items()},
                 "param_groups": state["param_groups"]}


def forms_of(name, dtype):
    """(name, PyTorch's options, ours, with a correctly rounded root)"""
    adafactor = "Adafactor" in name
    yield "default", {}, {}, False
    if not adafactor:
        yield "exact root", {}, {}, True
    if name != "TransformersAdafactor" and dtype in ("float32", "float64"):
        yield "foreach", {"foreach": True}, {}, False
    if name in ("Adam", "AdamW", "Adagrad") or name == "SGD" and dtype in ("float32", "float64"):
        yield "fused", {"fused": True}, {"fused": True}, False


def optimizers(folder, args):
    r = random.Random(1)
    torch.manual_seed(1)
    cases, tensors, expected = [], {}, []
    for name, options in configurations(r, args.all):
        for dtype in list(DTYPES) if args.all else r.sample(list(DTYPES)[:3], 2):
            case, params, grads = make_case(r, name, options, DTYPES[dtype], 4)
            for form, torch_options, ours, exact in forms_of(name, dtype):
                # PyTorch's fused SGD wants a gradient for every parameter.
                here_grads = [[torch.ones_like(p) if g is None else g for p, g in zip(params, step)] for step in grads] if form == "fused" else grads
                with exact_root() if exact else contextlib.nullcontext():
                    steps = list(one_step_each(case, params, here_grads, **torch_options))
                rooted = []
                if form in ("default", "foreach"):
                    with exact_root():
                        rooted = [run_torch(case, here, [step], state) for here, step, state, *_ in steps]
                for s, (here, step, state, after, optimizer, made) in enumerate(steps):
                    n = len(cases)
                    one = {**case, "options": {**options, **ours}, "steps": 1, "transposed": s % 2 == 1}
                    if state is not None:
                        one["load"] = os.path.join(folder, f"state.{n}.pt")
                        torch.save(state, one["load"])
                    cases.append(one)
                    add(tensors, n, here, [step])
                    expected.append((name, dtype, form, after, optimizer, made, options, here, state, rooted[s] if rooted else None))
    out = run_peer(folder, cases, tensors)
    tables = {}
    for n, (name, dtype, form, after, optimizer, made, options, here, state, rooted) in enumerate(expected):
        measure, bound = bound_of(name, form)
        wrong, worst = compare(out, n, after, optimizer, made, measure, bound, here, state, rooted)
        table = tables.setdefault((name, dtype, form), [0, 0, []])
        table[0] += 1
        table[1] = max(table[1], worst)
        table[2] += [f"case {n} {options}: {w}" for w in wrong]
    for (name, dtype, form), (count, worst, wrong) in sorted(tables.items()):
        unit = "ulp" if bound_of(name, form)[0] is ulps else "units"
        check(f"{name} {dtype} {form}: {count} steps, at most {worst:.3g} {unit}", wrong)


def compared(r, args):
    """Without --all, what is known to be equal: both Adafactors differ in long runs, which docs/status.md says."""
    return [(name, options) for name, options in configurations(r, False) if args.all or "Adafactor" not in name]


def runs(folder, args):
    """Steps one after the other, from own states, in one run."""
    r = random.Random(2)
    torch.manual_seed(2)
    cases, tensors, expected = [], {}, []
    for name, options in compared(r, args):
        case, params, grads = make_case(r, name, options, r.choice([torch.float32, torch.float64]), 12)
        add(tensors, len(cases), params, grads)
        cases.append(case)
        with exact_root():
            expected.append((name, params, run_torch(case, params, grads)))
    out = run_peer(folder, cases, tensors)
    tables = {}
    for n, (name, params, (after, optimizer, made)) in enumerate(expected):
        measure, bound = (units, 256) if "Adafactor" in name else (ulps, 1)
        wrong, worst = compare(out, n, after, optimizer, made, measure, bound, params)
        table = tables.setdefault(name, [0, 0, []])
        table[0] += 1
        table[1] = max(table[1], worst)
        table[2] += [f"case {n} {cases[n]['options']}: {w}" for w in wrong]
    for name, (count, worst, wrong) in tables.items():
        check(f"{name}: {count} runs of 12 steps, at most {worst:.3g} {'units' if 'Adafactor' in name else 'ulp'}", wrong)


def same_groups(mine, there):
    wrong = []
    for i, (a, b) in enumerate(zip(mine, there)):
        a, b = dict(a), dict(b)
        if set(a) != set(b):
            wrong.append(f"group {i}: keys {sorted(a)}, PyTorch's {sorted(b)}")
        wrong += [f"group {i}, {k}: {a.get(k)!r}, PyTorch's {b[k]!r}" for k in b if a.get(k) != b[k]]
    return wrong


def files(folder, args):
    """What Calque saves PyTorch loads and goes on from, with equal results; its groups have PyTorch's names and values."""
    r = random.Random(3)
    torch.manual_seed(3)
    for name, options in compared(r, args):
        case, params, grads = make_case(r, name, options, torch.float32, 3)
        path = os.path.join(folder, "mine.pt")
        tensors = {}
        add(tensors, 0, params, grads[:2])
        out = run_peer(folder, [{**case, "steps": 2, "save": path}], tensors)
        saved = torch.load(path, weights_only=True)
        with exact_root():
            _, optimizer, _ = run_torch(case, params, grads[:2])
            after, _, _ = run_torch(case, [out[f"p.0.1.{i}"] for i in range(len(params))], grads[2:], saved)
            there, _, _ = run_torch(case, params, grads)
        wrong = same_groups(saved["param_groups"], optimizer.state_dict()["param_groups"])
        if set(saved["state"]) != set(optimizer.state_dict()["state"]):
            wrong.append(f"state of {sorted(saved['state'])}, PyTorch's of {sorted(optimizer.state_dict()['state'])}")
        for i, (a, b, was) in enumerate(zip(after[0], there[2], there[1])):
            apart = units(a, b, was) if "Adafactor" in name else ulps(a, b)
            if apart > (64 if "Adafactor" in name else 1):
                wrong.append(f"parameter {i}: {apart:.3g} apart")
        if wrong or name not in files.shown:
            files.shown.add(name)
            check(f"{name}: PyTorch goes on from Calque's file", wrong)


files.shown = set()


def schedule_cases():
    warm = {"num_warmup_steps": 7, "num_training_steps": 50}
    for name in ("constant", "constant_with_warmup", "linear", "cosine", "cosine_with_restarts", "polynomial", "inverse_sqrt"):
        yield {"name": name, **warm}
        yield {"name": name, "num_warmup_steps": 0, "num_training_steps": 30}
    yield {"name": "cosine", **warm, "num_cycles": 1.25}
    yield {"name": "cosine_with_restarts", **warm, "num_cycles": 3}
    yield {"name": "polynomial", **warm, "lr_end": 1e-3, "power": 2.5}
    for gamma in (0.1, 0.7):
        yield {"name": "StepLR", "step_size": 7, "gamma": gamma}
        yield {"name": "MultiStepLR", "milestones": [3, 9, 9, 20], "gamma": gamma}
        yield {"name": "ExponentialLR", "gamma": gamma}
    yield {"name": "ConstantLR", "factor": 0.3, "total_iters": 6}
    yield {"name": "LinearLR", "start_factor": 0.2, "end_factor": 0.9, "total_iters": 13}
    yield {"name": "PolynomialLR", "total_iters": 20, "power": 1.7}
    for eta in (0.0, 1e-3):
        yield {"name": "CosineAnnealingLR", "T_max": 11, "eta_min": eta}
        yield {"name": "CosineAnnealingWarmRestarts", "T_0": 5, "T_mult": 2, "eta_min": eta}
        yield {"name": "CosineAnnealingWarmRestarts", "T_0": 7, "T_mult": 1, "eta_min": eta}
    for three in (False, True):
        for strategy in ("cos", "linear"):
            yield {"name": "OneCycleLR", "max_lr": 0.3, "total_steps": 61, "anneal_strategy": strategy, "three_phase": three}
    yield {"name": "OneCycleLR", "max_lr": 0.3, "total_steps": 60, "pct_start": 0.5, "cycle_momentum": False}
    for mode in ("min", "max"):
        for threshold_mode in ("rel", "abs"):
            yield {"name": "ReduceLROnPlateau", "mode": mode, "factor": 0.5, "patience": 2, "threshold": 0.01,
                   "threshold_mode": threshold_mode, "cooldown": 1, "min_lr": 1e-3}


def torch_schedule(spec, optimizer):
    spec = dict(spec)
    name = spec.pop("name")
    if hasattr(torch.optim.lr_scheduler, name):
        return getattr(torch.optim.lr_scheduler, name)(optimizer, **spec)
    warmup, steps = spec.pop("num_warmup_steps"), spec.pop("num_training_steps")
    return transformers.get_scheduler(name, optimizer, warmup, steps, scheduler_specific_kwargs=spec)


def schedules(folder, args):
    r = random.Random(4)
    cases, expected = [], []
    for spec in schedule_cases():
        for name, options in (("SGD", {"lr": 0.1, "momentum": 0.9}), ("AdamW", {"lr": 0.02, "betas": (0.9, 0.95)})):
            case = {"optimizer": name, "options": options, "second_lr": 0.037, "schedule": spec, "steps": 60}
            if spec["name"] == "ReduceLROnPlateau":
                case["metrics"] = [1 / (1 + i) + r.random() * (i > 10) for i in range(60)]
            groups = [{"params": [torch.nn.Parameter(torch.zeros(1))]}, {"params": [torch.nn.Parameter(torch.zeros(1))], "lr": 0.037}]
            optimizer = torch_class(name)(groups, **options)
            schedule = torch_schedule(spec, optimizer)
            rates = []

            def note():
                for g in optimizer.param_groups:
                    rates.extend([g["lr"], g["betas"][0] if "betas" in g else g["momentum"]])
            note()
            for i in range(60):
                optimizer.step()
                schedule.step(*([case["metrics"][i]] if "metrics" in case else []))
                note()
            cases.append(case)
            expected.append(torch.tensor(rates, dtype=torch.float64))
    out = run_peer(folder, cases, {})
    for n, (case, rates) in enumerate(zip(cases, expected)):
        mine = out[f"lr.{n}"]
        different = [] if mine.shape == rates.shape and torch.equal(mine, rates) else [
            f"number {i}: {a!r}, PyTorch's {b!r}" for i, (a, b) in enumerate(zip(mine.tolist(), rates.tolist())) if a != b] or ["lengths"]
        check(f"{case['optimizer']} {json.dumps(case['schedule'])[:100]}", different)


def exact_norm(tensors, kind):
    every = np.concatenate([t.double().numpy().reshape(-1) for t in tensors]).astype(np.longdouble)
    value = np.abs(every).max() if kind == math.inf else (np.abs(every) ** np.longdouble(kind)).sum() ** (1 / np.longdouble(kind))
    return torch.tensor(float(value), dtype=torch.float64)


def clipping(folder, args):
    r = random.Random(5)
    torch.manual_seed(5)
    cases, tensors, expected = [], {}, []
    for _ in range(400 if args.all else 80):
        dtype = r.choice([torch.float32, torch.float32, torch.float64, torch.bfloat16])
        grads = [(torch.randn(r.choice(SHAPES + [(1000, 37)])) * r.choice([1e-4, 1, 50])).to(dtype) for _ in range(r.randrange(1, 6))]
        params = [torch.nn.Parameter(torch.zeros_like(g)) for g in grads]
        for p, g in zip(params, grads):
            p.grad = g.clone()
        bound, kind, norm = r.choice([0.1, 1.0, 1e3]), r.choice(["value", "norm", "norm", "norm"]), r.choice([2.0, 2.0, 1.0, 3.0, math.inf])
        n = len(cases)
        case = {"clip": kind, "bound": bound, "count": len(grads), "norm_type": "inf" if norm == math.inf else norm}
        total = None
        if kind == "value":
            torch.nn.utils.clip_grad_value_(params, bound)
        else:
            total = torch.nn.utils.clip_grad_norm_(params, bound, norm_type=norm)
        tensors.update({f"g.{n}.{i}": g for i, g in enumerate(grads)})
        cases.append(case)
        expected.append((kind, dtype, norm, total, [p.grad for p in params]))
    out = run_peer(folder, cases, tensors)
    wrong, worst = {"value": [], "norm": []}, {"value": 0, "norm": 0}
    for n, (kind, dtype, norm, total, grads) in enumerate(expected):
        pairs = [(f"gradient {i}", out[f"c.{n}.{i}"], g) for i, g in enumerate(grads)]
        bound = 0
        if total is not None:
            # A norm adds up to 37,000 squares in another order. PyTorch's may be as far from the exact one as it is; ours is within 4 ulp
            # of it, or nearer than PyTorch's. The gradients follow their norm.
            exact = exact_norm([tensors[f"g.{n}.{i}"] for i in range(len(grads))], norm).to(total.dtype)
            mine = out[f"norm.{n}"]
            if not ulps(mine, exact) <= max(4, ulps(total, exact)):
                wrong[kind].append(f"case {n} {cases[n]} {dtype}: total norm {mine}, exactly {exact}, PyTorch's {total}")
            bound = 2 * ulps(mine, total) + 3
        for what, a, b in pairs:
            u = ulps(a, b)
            worst[kind] = max(worst[kind], u)
            if u > bound:
                wrong[kind].append(f"case {n} {cases[n]} {dtype}: {what}: {u} ulp")
    for kind in wrong:
        check(f"clip_grad_{kind}_: {sum(e[0] == kind for e in expected)} cases, at most {worst[kind]} ulp", wrong[kind])


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(parts.main([optimizers, runs, files, schedules, clipping], __doc__, "every configuration in every dtype"))
