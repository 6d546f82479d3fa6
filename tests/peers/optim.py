#!/usr/bin/env python3
"""Optimizers, schedules and gradient clipping beside torch.optim, torch.nn.utils and transformers, live.

One step from equal gradients and equal states is compared, at every step of several: parameters and states within 1 ulp of PyTorch's
(Adafactor, which takes norms of whole tensors, within the bounds below). The reference is what PyTorch's optimizers do on the CPU when
nothing is said: one tensor after the other (`foreach=None, fused=None`). `foreach=True` is held against the same results, `fused=True`
against Calque's `fused` option. State files go both ways; the step after is compared too. Learning rates must be equal to the bit.
--all: more cases of each.
"""
import itertools
import json
import math
import os
import random
import subprocess
import sys
import tempfile

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
    save_file({name: t.contiguous() for name, t in tensors.items()} or {"none": torch.zeros(1)}, paths[1])
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
        optimizer.load_state_dict(state)
    after = []
    for step in grads:
        for p, g in zip(params, step):
            p.grad = None if g is None else g.clone()
        optimizer.step()
        after.append([p.detach().clone() for p in params])
    return after, optimizer, params


def tolerance(case, dtype):
    """Of a parameter after a step, and of a state: ulps."""
    return 1, 1


def add(tensors, n, params, grads):
    tensors.update({f"p.{n}.{i}": p for i, p in enumerate(params)})
    tensors.update({f"g.{n}.{s}.{i}": g for s, step in enumerate(grads) for i, g in enumerate(step) if g is not None})


def compare(out, n, after, optimizer, params, bound):
    wrong, worst = [], 0
    for s, step in enumerate(after):
        for i, p in enumerate(step):
            u = ulps(out[f"p.{n}.{s}.{i}"], p)
            worst = max(worst, u)
            if u > bound:
                wrong.append(f"step {s}, parameter {i} {tuple(p.shape)}: {u} ulp")
    for i, p in enumerate(params):
        there = {k: v for k, v in optimizer.state.get(p, {}).items() if isinstance(v, torch.Tensor)}
        prefix = f"state.{n}.{i}."
        mine = {k[len(prefix):]: v for k, v in out.items() if k.startswith(prefix)}
        if set(there) != set(mine):
            wrong.append(f"parameter {i}: states {sorted(there)}, ours {sorted(mine)}")
            continue
        for k, v in there.items():
            u = ulps(mine[k], v)
            worst = max(worst, u)
            if u > bound:
                wrong.append(f"parameter {i} {tuple(v.shape)}, {k}: {u} ulp")
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


def optimizers(folder, args):
    r = random.Random(1)
    torch.manual_seed(1)
    cases, tensors, expected = [], {}, []
    for number, (name, options) in enumerate(configurations(r, args.all)):
        dtypes = list(DTYPES) if args.all else r.sample(list(DTYPES)[:3], 2)
        for dtype in dtypes:
            case, params, grads = make_case(r, name, options, DTYPES[dtype], 4)
            forms = [("default", {}, {})]
            if name != "TransformersAdafactor" and dtype in ("float32", "float64"):
                forms.append(("foreach", {"foreach": True}, {}))
            if name in ("SGD", "Adam", "AdamW", "Adagrad"):
                forms.append(("fused", {"fused": True}, {"fused": True}))
            for form, torch_options, ours in forms:
                for s, (here, step, state, after, optimizer, made) in enumerate(one_step_each(case, params, grads, **torch_options)):
                    n = len(cases)
                    one = {**case, "options": {**options, **ours}, "steps": 1, "transposed": s % 2 == 1}
                    if state is not None:
                        one["load"] = os.path.join(folder, f"state.{n}.pt")
                        torch.save(state, one["load"])
                    cases.append(one)
                    add(tensors, n, here, [step])
                    expected.append((name, dtype, form, after, optimizer, made, options))
    out = run_peer(folder, cases, tensors)
    tables = {}
    for n, (name, dtype, form, after, optimizer, made, options) in enumerate(expected):
        wrong, worst = compare(out, n, after, optimizer, made, 1)
        table = tables.setdefault((name, dtype, form), [0, 0, []])
        table[0] += 1
        table[1] = max(table[1], worst)
        table[2] += [f"case {n} {options}: {w}" for w in wrong]
    for (name, dtype, form), (count, worst, wrong) in sorted(tables.items()):
        check(f"{name} {dtype} {form}: {count} steps, at most {worst} ulp", wrong)


def runs(folder, args):
    """Steps one after the other, from own states, in one run."""
    r = random.Random(2)
    torch.manual_seed(2)
    cases, tensors, expected = [], {}, []
    for name, options in configurations(r, False):
        case, params, grads = make_case(r, name, options, r.choice([torch.float32, torch.float64]), 12)
        add(tensors, len(cases), params, grads)
        cases.append(case)
        expected.append((name, run_torch(case, params, grads)))
    out = run_peer(folder, cases, tensors)
    tables = {}
    for n, (name, (after, optimizer, made)) in enumerate(expected):
        wrong, worst = compare(out, n, after, optimizer, made, 64 if "Adafactor" in name else 2)
        table = tables.setdefault(name, [0, 0, []])
        table[0] += 1
        table[1] = max(table[1], worst)
        table[2] += [f"case {n} {cases[n]['options']}: {w}" for w in wrong]
    for name, (count, worst, wrong) in tables.items():
        check(f"{name}: {count} runs of 12 steps, at most {worst} ulp", wrong)


def same_groups(mine, there):
    wrong = []
    for i, (a, b) in enumerate(zip(mine, there)):
        a, b = dict(a), dict(b)
        if list(a) != list(b):
            wrong.append(f"group {i}: keys {list(a)}, PyTorch's {list(b)}")
        wrong += [f"group {i}, {k}: {a.get(k)!r}, PyTorch's {b[k]!r}" for k in b if a.get(k) != b[k]]
    return wrong


def files(folder, args):
    """What Calque saves PyTorch loads and goes on from, with equal results; its groups have PyTorch's names and values."""
    r = random.Random(3)
    torch.manual_seed(3)
    for name, options in configurations(r, False):
        case, params, grads = make_case(r, name, options, torch.float32, 3)
        path = os.path.join(folder, "mine.pt")
        tensors = {}
        add(tensors, 0, params, grads[:2])
        out = run_peer(folder, [{**case, "steps": 2, "save": path}], tensors)
        saved = torch.load(path, weights_only=True)
        _, optimizer, _ = run_torch(case, params, grads[:2])
        wrong = same_groups(saved["param_groups"], optimizer.state_dict()["param_groups"])
        if list(saved["state"]) != list(optimizer.state_dict()["state"]):
            wrong.append(f"state of {list(saved['state'])}, PyTorch's of {list(optimizer.state_dict()['state'])}")
        here = [out[f"p.0.1.{i}"] for i in range(len(params))]
        after, _, _ = run_torch(case, here, grads[2:], saved)
        there, _, _ = run_torch(case, params, grads)
        bound = 64 if "Adafactor" in name else 2
        wrong += [f"parameter {i}: {ulps(a, b)} ulp" for i, (a, b) in enumerate(zip(after[0], there[2])) if ulps(a, b) > bound]
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
        # A norm adds up to 37,000 squares in another order: 4 ulp of the sum.
        bound = 0 if kind == "value" else 4
        pairs = [(f"gradient {i}", out[f"c.{n}.{i}"], g) for i, g in enumerate(grads)]
        if total is not None:
            pairs.append(("total norm", out[f"norm.{n}"], total))
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
