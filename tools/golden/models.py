#!/usr/bin/env python3
"""Writes tests/zoo/golden/ARCH: a tiny random model as transformers saves it, and cases.safetensors, what it answers. Usage:
models.py [ARCH...] (all that tests/peers/model_cases has, by default). A case's tensors are named CASE/ATTENTION/in/ARGUMENT and
CASE/ATTENTION/out/FIELD. The class is the pretraining one, or the first with a head; model_cases may say others (GOLDEN_CLASS,
GOLDEN_CONFIG) and fewer cases (GOLDEN_CASES). Architectures that this transformers does not have are left out: run it with one that does.
"""

import logging
import os
import shutil
import sys
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "peers"))

import torch  # noqa: E402
import transformers  # noqa: E402
import models  # noqa: E402
import zoo_cases  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

SMALLER = {16: 8, 24: 8, 32: 16, 37: 20, 40: 16, 64: 32}


def smaller(settings):
    return {k: SMALLER.get(v, v) if isinstance(v, int) and not isinstance(v, bool) else v for k, v in settings.items()}


def golden(arch, classes):
    cases = models.module_of(arch)
    task, cls = next(((t, c) for t, c in classes if t == "pretraining"), classes[min(1, len(classes) - 1)])
    if hasattr(cases, "GOLDEN_CLASS"):
        task, cls = next((t, c) for t, c in classes if c == cases.GOLDEN_CLASS)
    parts = getattr(cases, "PARTS", {})  # model types of their own inside the architecture
    return all([write(arch, arch, task, cls, cases)] + [write(part, arch, "special", c, cases) for part, c in parts.items()])


def write(name, arch, task, cls, cases):
    settings = getattr(cases, "GOLDEN_CONFIG", None) or smaller(cases.CONFIGS[0])
    model = models.make(arch, cls, settings, cases)
    if model is None:
        return False
    folder = os.path.join(ROOT, "tests", "zoo", "golden", name)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    for file in os.listdir(folder):
        if file not in ("config.json", "model.safetensors"):
            os.remove(os.path.join(folder, file))
    out = {}
    for case, x, flags, attention, dtype in models.scenarios(arch, task, cls, model, cases):
        if dtype != torch.float32 or case.startswith(("embeddings", "without mask")) or case not in getattr(cases, "GOLDEN_CASES", (case,)):
            continue
        if hasattr(model, "set_attn_implementation"):
            model, attention = models.attending(model, attention)
        with torch.no_grad():
            answer = models.plain(model(**models.accepted(model, {**x, **flags})))
        for part, tensors in (("in", models.plain({**x, **{k: torch.tensor(v) for k, v in flags.items()}})), ("out", answer)):
            for key, tensor in tensors.items():
                out[f"{case}/{attention}/{part}/{key}"] = tensor.contiguous().clone()
    save_file(out, os.path.join(folder, "cases.safetensors"))
    size = sum(os.path.getsize(os.path.join(folder, file)) for file in os.listdir(folder))
    print(f"{name}: {cls}, {len({k.rsplit('/', 2)[0] for k in out})} cases, {size} bytes")
    return True


def main():
    logging.disable(logging.WARNING)
    transformers.logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    by_arch = {}
    for arch, task, cls in zoo_cases.classes(os.path.join(ROOT, "tests", "peers", "zoo.tsv")):
        by_arch.setdefault(arch, []).append((task, cls))
    for arch, classes in by_arch.items():
        if models.module_of(arch) and (len(sys.argv) == 1 or arch in sys.argv[1:]) and not golden(arch, classes):
            print(f"{arch}: not in transformers {transformers.__version__}")


if __name__ == "__main__":
    main()
