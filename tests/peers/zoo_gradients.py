#!/usr/bin/env python3
"""Gradients of all parameters of every class of the zoo that gives a loss, beside transformers: the models, masks and labels of
models.py. In evaluation and in training mode (dropout and skipped layers from equal seeds), in float32 (each gradient within 1e-5
of the larger of its norm and a thousandth of the norm of all) and in float64 (1e-10; there the casts to float32 that models have are
lifted on both sides, see wide.py). Some gradients are sums that cancel (of a bias before a softmax nothing is left) and no two
programs give the same in float32: where one differs it may do so by twice of what transformers' own moves when every parameter moves by its
last digit; such are counted. In training
mode the layers are checkpointed too, in both forms: the same gradients, and the modules that transformers checkpoints. Under transformers 4 it takes the classes that 5 dropped. By default the first configuration of each class;
--all takes every one; --only NAME takes architectures or classes; --part N/M takes each M-th class.
"""
import argparse
import contextlib
import copy
import functools
import inspect
import json
import logging
import os
import subprocess
import sys
import tempfile
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
os.environ["PYTORCH_JIT"] = "0"  # in scripted functions no cast can be lifted

import models  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
import zoo_cases  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from wide import Wide  # noqa: E402

PEER = os.path.join(models.BUILD, "bin", "zoo_gradients_peer")
BOUND = {"float32": 1e-5, "float64": 1e-10}
SEED = 7


def one_stream(module):
    """SpecAugment draws from numpy's stream; Calque has one stream. Here numpy's goes on where PyTorch's is, and back."""
    masks = getattr(module, "_compute_mask_indices", None)
    if masks is None or hasattr(masks, "one_stream"):
        return

    def drawn(*args, **kwargs):
        state = torch.get_rng_state()
        words = np.frombuffer(state.numpy().tobytes(), dtype=np.uint64)  # seed, left and seeded, next, the twister's words
        left = int(words[1] & 0xFFFFFFFF)
        np.random.set_state(("MT19937", (words[3:627] & 0xFFFFFFFF).astype(np.uint32), 624 if left == 1 else int(words[2])))
        out = masks(*args, **kwargs)
        _, keys, place, *_ = np.random.get_state()
        after = words.copy()
        after[1] = (words[1] & ~np.uint64(0xFFFFFFFF)) | np.uint64(625 - place)
        after[2] = place
        after[3:627] = keys
        torch.set_rng_state(torch.frombuffer(bytearray(after.tobytes()), dtype=torch.uint8))
        return out

    drawn.one_stream = True
    module._compute_mask_indices = drawn


def with_labels(arch, task, cls, model, cases):
    """(name, inputs) that give a loss; none where the class has none."""
    names = inspect.signature(model.forward).parameters
    wanted = None  # the first scenario has labels of every kind
    if "sampled_negative_indices" in names:
        wanted = "negatives"
    elif not any(n in ("labels", "return_loss", "bool_masked_pos") or n.endswith("_labels") or n in ("start_positions", "end_positions") for n in names) or "bool_masked_pos" in names and not cls.endswith("ImageModeling"):
        return
    for name, x, *_ in models.scenarios(arch, task, cls, model, cases):
        if wanted in (None, name):
            yield name, models.accepted(model, x)
            return


class Lifted(Wide):
    """Wide, where float64 is the default too."""

    def __enter__(self):
        torch.set_default_dtype(torch.float64)
        return super().__enter__()

    def __exit__(self, *error):
        torch.set_default_dtype(torch.float32)
        return super().__exit__(*error)


def expected(model, dtype, train, x):
    """{name: gradient, "loss"} of transformers, or None where it gives no loss."""
    made = model
    with Lifted() if dtype == "float64" else contextlib.nullcontext():
        if dtype == "float64":  # tables of positions are made anew
            config = copy.deepcopy(made.config)
            for part in (config, *(getattr(config, name) for name in config.sub_configs if getattr(config, name, None) is not None)):
                part.dtype = torch.float64
            model = type(made)(config)
            model.load_state_dict(made.state_dict())
            for own, other in zip(model.parameters(), made.parameters()):
                own.requires_grad_(other.requires_grad)
        else:
            model = copy.deepcopy(made)
        model.to(getattr(torch, dtype)).train(train)
        one_stream(sys.modules[type(model).__module__])
        torch.manual_seed(SEED)
        loss = getattr(model(**copy.deepcopy(x)), "loss", None)
    if loss is None:
        return None
    loss.backward()
    return {"loss": loss.detach(), **{n: p.grad for n, p in model.named_parameters() if p.grad is not None}}


def as_saved(model, folder, there):
    """Gradients under the names that the parameters have in checkpoints."""
    model = copy.deepcopy(model).to(there["loss"].dtype)
    for name, parameter in model.named_parameters():
        parameter.data = there.get(name, torch.full_like(parameter, torch.nan))
    model.save_pretrained(folder)
    names = {n for n, _ in model.named_buffers()}
    saved = load_file(os.path.join(folder, "model.safetensors"))
    return {"loss": there["loss"], **{n: t for n, t in saved.items() if n not in names and t.is_floating_point() and not t.isnan().any()}}


def roughness(model, train, x, named=lambda gradients: gradients):
    """{name: how far a gradient in float32 moves when every parameter moves by its last digit}, at least the last digit of what it is
    a sum of: of what a loss gives to each logit, which is at most 1."""
    there = named(expected(model, "float32", train, x))
    out = {name: 2.0**-25 for name in there}
    for draw in range(12):
        moved = copy.deepcopy(model)
        torch.manual_seed(draw)
        with torch.no_grad():
            for parameter in moved.parameters():
                parameter.mul_(1 + (torch.randint(0, 2, parameter.shape) * 2 - 1) * 2.0**-24 * 1.5)
        for name, g in named(expected(moved, "float32", train, x)).items():
            out[name] = max(out[name], (g.double() - there[name].double()).norm().item())
    return out


def differences(mine, there, bound, rough, noise):
    """What differs. `rough`, asked only where something does, says how far rounding alone moves a gradient; into `noise` go those of
    which that is a larger part."""
    if set(mine) != set(there):
        missing, extra = sorted(set(there) - set(mine)), sorted(set(mine) - set(there))
        zero = [n for n in missing if not there[n].any()]
        yield f"missing {missing[:4]} ({len(missing)}, {len(zero)} of them zero), extra {extra[:4]} ({len(extra)})"
    if not abs(mine["loss"].item() - there["loss"].item()) <= bound * max(1, abs(there["loss"].item())):
        yield f"loss {mine['loss'].item()!r} instead of {there['loss'].item()!r}"
    total = torch.stack([g.double().norm() for n, g in there.items() if n != "loss"]).norm().item()
    worst = {}
    for name in set(mine) & set(there) - {"loss"}:
        a, b = mine[name], there[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            yield f"{name}: {a.dtype} {list(a.shape)} instead of {b.dtype} {list(b.shape)}"
            continue
        apart, scale = (a.double() - b.double()).norm().item(), max(b.double().norm().item(), total / 1000, 1e-300)
        if not apart <= bound * scale:
            worst[name] = (apart, scale)
    if worst and bound == BOUND["float32"]:
        moves = rough()
        for name, (apart, scale) in list(worst.items()):
            if name in moves and apart <= bound * scale + 2 * moves[name]:
                noise.append(name)
                del worst[name]
    if worst:
        first = sorted(((apart / scale, name) for name, (apart, scale) in worst.items()), reverse=True)[:3]
        yield f"{len(worst)} of {len(there) - 1} gradients differ: " + ", ".join(f"{name} by {d:.2g}" for d, name in first)


def switched_on(model):
    """The line of a job that checkpoints: the classes of the layers that do it, or what enabling it says."""
    model = copy.deepcopy(model)
    try:
        model.gradient_checkpointing_enable()
    except ValueError as error:
        return str(error)
    layers = sys.modules["transformers.modeling_layers"].GradientCheckpointingLayer
    return "ok" + "".join(" " + type(m).__name__ for m in model.modules() if isinstance(m, layers))


def check(folder, arch, task, cls, model, cases):
    """({case: what differs}, how many cases, which gradients are mostly rounding)."""
    model, attention = models.attending(model, "sdpa") if hasattr(model, "set_attn_implementation") else (model, "eager")
    if hasattr(model, "set_experts_implementation"):  # others know no float64
        model.set_experts_implementation("eager")
    model.save_pretrained(folder)
    jobs, answers, noise = [], [], []
    for name, x in with_labels(arch, task, cls, model, cases):
        for dtype in BOUND:
            given = {k: v.to(getattr(torch, dtype)) if isinstance(v, torch.Tensor) and v.is_floating_point() else v for k, v in x.items()}
            inputs = os.path.join(folder, f"in.{len(jobs)}.{dtype}.safetensors")
            save_file({k: t.contiguous() for k, t in models.plain(given).items()}, inputs)
            for train in (False, True):
                there = expected(model, dtype, train, given)
                if there is None and cls.endswith("Model"):  # it takes labels, and has nothing to do with them
                    return {}, 0, noise
                if there is None:
                    return {f"{cls} ({name})": ["transformers gives no loss for these inputs"]}, 1, noise
                for form in ("none", "reentrant", "plain") if train and dtype == "float64" else ("none",):
                    outputs = os.path.join(folder, f"out.{len(jobs)}.safetensors")
                    jobs.append({"model": folder, "class": cls, "dtype": dtype, "attention": attention, "train": train, "seed": SEED, "wide": dtype == "float64", "checkpointing": form, "inputs": inputs, "outputs": outputs})
                    what = "checkpointing: " + form if form != "none" else "training" if train else "evaluation"
                    answers.append((f"{cls} ({name}, {dtype}, {what})", there, BOUND[dtype], outputs, functools.partial(roughness, model, train, given)))
    if not jobs:
        return {}, 0, noise
    done = subprocess.run([PEER, json.dumps(jobs)], capture_output=True, text=True, timeout=300)
    lines = done.stdout.splitlines() + [f"status {done.returncode}: {done.stderr[-300:]}"] * len(jobs)
    wrong = {}
    for line, job, (name, there, bound, outputs, rough) in zip(lines, jobs, answers):
        right = "ok" if job["checkpointing"] == "none" else switched_on(model)
        if line == right and not line.startswith("ok"):  # neither does it
            continue
        if line == right:
            mine = load_file(outputs)
            if set(mine) != set(there):  # transformers 5 has other names for modules than its checkpoints
                named = functools.partial(as_saved, model, os.path.join(folder, "saved"))
                there, rough = named(there), functools.partial(rough, named)
            found = list(differences(mine, there, bound, rough, noise))
        else:
            found = [line[-500:] + ("" if right == "ok" else f", expected {right}")]
        if found:
            wrong[name] = found
    return wrong, len(jobs), noise


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every configuration")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    part, parts = map(int, args.part.split("/"))
    passed = failed = classes = rounding = 0
    for number, (arch, task, cls) in enumerate(zoo_cases.classes(os.path.join(HERE, "zoo.tsv"))):
        cases = models.module_of(arch)
        if number % parts != part - 1 or cases is None or args.only and arch not in args.only and cls not in args.only:
            continue
        configs = cases.CONFIGS + (getattr(cases, "OLD_CONFIGS", []) if transformers.__version__ < "5" else []) + getattr(cases, "FORWARD_CONFIGS", [])
        for i, settings in enumerate(configs if args.all else configs[:1]):
            try:
                model = models.make(arch, cls, settings, cases)
                if model is None:
                    break
                with tempfile.TemporaryDirectory() as folder:
                    wrong, count, noise = check(folder, arch, task, cls, model, cases)
            except Exception as error:  # noqa: BLE001: whatever a model says
                wrong, count, noise = {cls: [f"{type(error).__name__}: {str(error)[-300:]}"]}, 1, []
            passed += count - len(wrong)
            failed += len(wrong)
            classes += i == 0 and count > 0
            rounding += len(noise)
            for name, texts in wrong.items():
                print(f"FAILED configuration {i} of {name}: " + "; ".join(texts), flush=True)
            if args.verbose:
                print(f"{cls}, configuration {i}: {'no labels' if count == 0 else 'FAILED' if wrong else 'ok'}", flush=True)
    print(f"{classes} classes; {rounding} gradients are mostly rounding; {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
