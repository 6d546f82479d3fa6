#!/usr/bin/env python3
"""Tiny models of every architecture, exported by PyTorch from transformers, static and with dynamic batch and sequence, run by
`calque run` on inputs of other sizes too: PyTorch's outputs. One program run by 16 threads at once gives the bits that one
gives. --all takes every class, else one of each architecture is taken; --only CLASS takes some. With --round-trip, which --all
includes, each program is also loaded and saved by Calque, and PyTorch prints both files alike.
"""

import argparse
import logging
import os
import subprocess
import sys
import tempfile
import time
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release"))

import programs  # noqa: E402
import torch  # noqa: E402
import torch.utils._pytree as pytree  # noqa: E402
import transformers  # noqa: E402
import zoo_cases  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

SAMPLE = ["AlbertForMaskedLM", "BartForConditionalGeneration", "BloomForCausalLM", "CLIPModel", "ConvNextForImageClassification", "DebertaV2Model", "GPT2DoubleHeadsModel", "GPTNeoForCausalLM",
          "HubertForCTC", "LlamaForCausalLM", "LxmertModel", "MobileBertModel", "SegformerForSemanticSegmentation", "Speech2TextModel", "SwinModel", "T5ForConditionalGeneration", "ViTModel"]


def paths(result):
    """{path: tensor}, named as `calque run` names them."""
    def step(key):
        for field in ("key", "idx", "name"):
            if hasattr(key, field):
                return str(getattr(key, field))
        raise TypeError(type(key))

    leaves, _ = pytree.tree_flatten_with_path(result)
    return {".".join(step(k) for k in path) or "0": leaf for path, leaf in leaves if isinstance(leaf, torch.Tensor)}


def shapes(x, dims):
    """dynamic_shapes with one name for the batch and one for the length; None where a dimension stays."""
    longest = max(tensor.shape[dims[name][1]] for name, tensor in x.items() if dims[name][1] is not None) if any(d[1] is not None for d in dims.values()) else 0
    batch, length = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("length", min=2 if longest <= 60 else 256, max=60 if longest <= 60 else 4096)
    out = {}
    for name, tensor in x.items():
        b, l = dims[name]
        out[name] = {**({b: batch} if b is not None else {}), **({l: length} if l is not None else {})}
    return out


def export(model, x, dims, dynamic):
    """Dynamic in batch and length; where PyTorch needs more than two names say, it finds out by itself what may be dynamic."""
    with torch.no_grad():
        if not dynamic:
            return torch.export.export(model, (), dict(x), strict=False)
        named = shapes(x, dims)
        try:
            return torch.export.export(model, (), dict(x), strict=False, dynamic_shapes=named)
        except Exception:
            automatic = {n: {d: torch.export.Dim.AUTO for d in s} for n, s in named.items()}
            return torch.export.export(model, (), dict(x), strict=False, dynamic_shapes=automatic)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--all", action="store_true")
    p.add_argument("--only", action="append")
    p.add_argument("--zoo", default=os.path.join(HERE, "zoo.tsv"))
    p.add_argument("--keep")
    p.add_argument("--quiet", action="store_true")
    p.add_argument("--round-trip", action=argparse.BooleanOptionalAction)
    options = p.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)  # what PyTorch says of inputs that it refuses
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    round_trip = options.all if options.round_trip is None else options.round_trip
    passed = failed = absent = kept = 0
    program = os.environ.get("CALQUE_BIN", os.path.join(BUILD, "bin", "calque"))
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        os.makedirs(folder, exist_ok=True)
        for arch, task, cls in zoo_cases.classes(options.zoo):
            if options.only and cls not in options.only or not options.only and not options.all and cls not in SAMPLE:
                continue
            model = zoo_cases.model(arch, cls)
            if model is None:
                absent += 1
                continue
            start = time.time()
            x, dims = zoo_cases.inputs(arch, task, cls)
            wrong = []
            runs = 0
            for form in ("static", "dynamic"):
                path = os.path.join(folder, f"{cls}.{form}")
                try:
                    ep = export(model, x, dims, form == "dynamic")
                except Exception as e:
                    print(f"{cls} {form}: PyTorch does not export it: {str(e).strip().splitlines()[0][:120]}")
                    continue
                torch.export.save(ep, path + ".pt2")
                batch = programs.Batch(folder)
                with torch.no_grad():
                    entry = batch.add(cls, ep, [((), x, ep.module()(**programs.clone(x)))] if form == "static" else [], save=round_trip)
                if form == "static":
                    entry["runs"][0]["threads"] = 16
                    runs += 1
                for what, w in batch.run(os.path.join(BUILD, "bin", "program_peer")).items():
                    if what.endswith("#save"):
                        kept += w is None
                        failed += w is not None
                        if w:
                            print(f"{cls} {form}: {w}", flush=True)
                    elif w:
                        wrong.append(f"16 threads: {w}")
                cases = [x]
                if form == "dynamic":
                    cases += [zoo_cases.inputs(arch, task, cls, batch=b, length=n)[0] for b, n in ((3, 7), (1, 12), (2, 5))]
                for number, case in enumerate(cases):
                    try:
                        with torch.no_grad():
                            want = paths(ep.module()(**programs.clone(case)))
                    except Exception:  # a size that the program does not allow
                        continue
                    save_file({k: v.contiguous() for k, v in case.items()}, f"{path}.{number}.in")
                    done = subprocess.run([program, "run", path + ".pt2", "--inputs", f"{path}.{number}.in", "--outputs", f"{path}.{number}.out.safetensors"], capture_output=True, text=True, timeout=120)
                    runs += 1
                    if done.returncode != 0:
                        wrong.append(f"{form} {number}: {done.stderr.strip()[-300:]}")
                        continue
                    got = load_file(f"{path}.{number}.out.safetensors")
                    names = list(want)
                    difference = programs.compare(list(want.values()), {str(i): got[n] for i, n in enumerate(names) if n in got})
                    if difference:
                        wrong.append(f"{form} {number}: {difference} ({', '.join(names)[:80]})")
            if runs == 0:
                print(f"{cls}: nothing was run")
            passed += runs - len(wrong)
            failed += len(wrong)
            for w in wrong:
                print(f"{cls} {w}", flush=True)
            if not options.quiet:
                print(f"{cls}: {runs - len(wrong)} of {runs} runs equal, {time.time() - start:.1f} s", flush=True)
    print(f"{absent} classes that transformers {transformers.__version__} does not have")
    if round_trip:
        print(f"{kept} programs loaded and saved: PyTorch prints both files alike")
    print(f"{passed + kept} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
