#!/usr/bin/env python3
"""Which model classes transformers has of the architectures that Calque has: those in its auto mappings and those that a family's
module exports. Each that Calque lacks stands in model_classes.tsv with the reason; one that is missing there, or stands there and
is not missing, fails; so does a class of Calque's that models.py does not compare.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("CALQUE_BUILD", os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "release"))
CALQUE = os.environ.get("CALQUE_BIN", os.path.join(BUILD, "bin", "calque"))

sys.path.insert(0, HERE)
import transformers  # noqa: E402
import zoo_cases  # noqa: E402
from transformers.models.auto import modeling_auto  # noqa: E402


def calques():
    """{architecture: its classes}"""
    said = subprocess.run([CALQUE, "models", "--json"], capture_output=True, text=True, check=True).stdout
    return {one["model_type"]: {c["name"] for c in one["classes"]} for one in json.loads(said)}


def of_auto_mappings(architecture):
    found = set()
    for name, mapping in vars(modeling_auto).items():
        if name.startswith("MODEL_") and name.endswith("_MAPPING_NAMES"):
            classes = mapping.get(architecture, ())
            found.update([classes] if isinstance(classes, str) else classes)
    return found


def of_module(architecture):
    """Models that the module of the architecture's configuration exports."""
    if architecture not in transformers.CONFIG_MAPPING:
        return set()
    config_module = transformers.CONFIG_MAPPING[architecture].__module__
    try:
        module = importlib.import_module(config_module.replace(".configuration_", ".modeling_"))
    except ImportError:
        return set()
    names = getattr(module, "__all__", ())
    models = {n for n in names if isinstance(getattr(module, n), type) and issubclass(getattr(module, n), transformers.PreTrainedModel)}
    return {n for n in models if "PreTrained" not in n and "Pretrained" not in n}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="the same")
    parser.parse_args()
    with open(os.path.join(HERE, "model_classes.tsv")) as f:
        next(f)
        reasons = dict(line.rstrip("\n").split("\t") for line in f)
    mine = calques()
    all_mine = set().union(*mine.values())
    theirs = set().union(*(of_auto_mappings(a) | of_module(a) for a in mine))
    lacking = theirs - all_mine
    wrong = [f"{name}: Calque lacks it, and model_classes.tsv gives no reason" for name in sorted(lacking - set(reasons))]
    wrong += [f"{name}: stands in model_classes.tsv, and " + ("Calque has it" if name in all_mine else "transformers has no such class") for name in sorted(set(reasons) - lacking)]
    compared = {cls for _, _, cls in zoo_cases.classes(os.path.join(HERE, "zoo.tsv"))}
    wrong += [f"{name}: Calque has it, and zoo.tsv has no row of it, by which it would be compared" for name in sorted(all_mine - compared)]
    for line in wrong:
        print("FAILED", line)
    print(f"{len(theirs & all_mine)} classes of transformers {transformers.__version__}, {len(lacking)} lacking, {len(all_mine - theirs)} of other releases or parts")
    print(f"{len(theirs) - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
