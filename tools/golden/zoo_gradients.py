#!/usr/bin/env python3
"""Writes tests/zoo/golden/ARCH/gradients.safetensors: transformers' loss and gradients for the model in that folder, while it is trained with
dropout from seed 7, in float64 with the casts to float32 lifted (tests/peers/wide.py). Usage: zoo_gradients.py [ARCH...] (by default
those that have one). Tensors are named in/ARGUMENT and out/PARAMETER, with out/loss.
"""

import glob
import json
import logging
import os
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "peers"))

import zoo_gradients  # noqa: E402, before torch
import models  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
import zoo_cases  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

FOLDER = os.path.join(ROOT, "tests", "zoo", "golden")


def main():
    logging.disable(logging.WARNING)
    transformers.logging.disable_progress_bar()
    tasks = {cls: task for _, task, cls in zoo_cases.classes(os.path.join(ROOT, "tests", "peers", "zoo.tsv"))}
    there = [os.path.basename(os.path.dirname(path)) for path in sorted(glob.glob(os.path.join(FOLDER, "*", "gradients.safetensors")))]
    for arch in sys.argv[1:] or there:
        folder = os.path.join(FOLDER, arch)
        with open(os.path.join(folder, "config.json")) as f:
            cls = json.load(f)["architectures"][0]
        model = getattr(transformers, cls).from_pretrained(folder)
        if hasattr(model, "set_experts_implementation"):
            model.set_experts_implementation("eager")
        _, x = next(zoo_gradients.with_labels(arch, tasks[cls], cls, model, models.module_of(arch)))
        x = {k: v.double() if v.is_floating_point() else v for k, v in x.items()}
        gradients = zoo_gradients.expected(model, "float64", True, x)
        with tempfile.TemporaryDirectory() as saved:
            if not gradients.keys() - {"loss"} <= load_file(os.path.join(folder, "model.safetensors")).keys():
                gradients = zoo_gradients.as_saved(model, saved, gradients)
        path = os.path.join(folder, "gradients.safetensors")
        save_file({**{"in/" + k: v.contiguous() for k, v in x.items()}, **{"out/" + k: v.contiguous() for k, v in gradients.items()}}, path)
        print(f"{arch}: {cls}, {len(gradients) - 1} gradients, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
