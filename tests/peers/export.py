#!/usr/bin/env python3
"""Export against PyTorch, live: python tests/peers/export.py [--only NAME] [--show] [--all]

The programs of export_cases.py and the layers of tools/golden/nn_cases.py are exported by PyTorch and, written in C++, by
Calque. Compared are the programs as printed (graph, shapes, signature, ranges) in training IR, after
run_decompositions({}) and after run_decompositions(), the calls of modules, and the code of .module().

Forms that differ are listed with the reason in export_gaps.tsv; others fail. Files that Calque saves are opened by PyTorch, decomposed
and, with --all, compiled: the results must be Calque's. By default the programs and every sixth layer; --all takes all.

Put in one form first: source lines are dropped; nodes are numbered by the order in which they appear, because the numbers
behind names count nodes that are gone; what only Python's argument parser writes is dropped: device='cpu', pin_memory=False,
layout=strided.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings

import torch

warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(ROOT, "tools", "golden"))

import export_cases  # noqa: E402
import nn_cases  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

PARSER = [r", device = device\(type='cpu'\)", r", pin_memory = False", r", layout = torch\.strided", r"device = device\(type='cpu'\), ", r"pin_memory = False, "]


def normal(text):
    if text.startswith("error: "):
        return text.split("\n")
    lines = []
    for line in text.split("\n"):
        code = re.sub(r";  .*$", "", line).strip()
        if not code or code.startswith("# File") or code.startswith("# No stacktrace") or code.startswith("#"):
            continue
        for pattern in PARSER:
            code = re.sub(pattern, "", code)
        lines.append(code)
    # PyTorch keeps ranges of symbols that its functionalisation made and nothing has.
    lines[-1] = re.sub(r"(\w+): VR\[[^\]]*\](, )?", lambda m: m.group(0) if any(re.search(rf"\b{m.group(1)}\b", x) for x in lines[:-1]) else "", lines[-1]).replace(", }", "}")
    names, count = {}, {}
    for line in lines:
        m = re.match(r"([A-Za-z_]\w*)(: \"[^\"]*\")? = ", line)
        if m and m.group(1) not in names:
            base = re.sub(r"_\d+$", "", m.group(1))
            count[base] = count.get(base, 0) + 1
            names[m.group(1)] = f"{base}${count[base]}"
    if not names:
        return lines
    pattern = re.compile(r"(?<![\w.])(" + "|".join(sorted(map(re.escape, names), key=len, reverse=True)) + r")(?!\w)")
    return [pattern.sub(lambda m: names[m.group(1)], line) for line in lines]


def calls_of(program):
    out = []
    for e in program.module_call_graph:
        entry = {"fqn": e.fqn}
        if e.signature is not None:
            for key in ("inputs", "outputs"):
                entry[key] = [repr(a.value) if hasattr(a, "value") else a.name for a in getattr(e.signature, key)]
            entry["in_spec"], entry["out_spec"] = str(e.signature.in_spec), str(e.signature.out_spec)
        out.append(entry)
    return out


def attempt(f):
    try:
        return f()
    except Exception as e:
        return f"error: {type(e).__name__}: {e}"


def pytorch(make, args, kwargs, options):
    try:
        program = torch.export.export(make(), args, kwargs, **options)
    except Exception as e:
        return {"training": f"error: {type(e).__name__}: {e}"}
    return {
        "training": str(program),
        "functional": attempt(lambda: str(program.run_decompositions({}))),
        "core": attempt(lambda: str(program.run_decompositions())),
        "module": attempt(lambda: program.module().code),
        "calls": calls_of(program),
    }


def same(a, b):
    if isinstance(a, torch.Tensor) != isinstance(b, torch.Tensor):
        return False
    if not isinstance(a, torch.Tensor):
        return a == b or (isinstance(a, float) and a != a and b != b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.numel() or not a.is_floating_point():
        return torch.equal(a, b)
    finite = torch.isfinite(b)
    if not torch.equal(torch.isfinite(a), finite):
        return False
    return not finite.any() or bool(((a[finite] - b[finite]).abs().max() <= 1e-5 * max(1, b[finite].abs().max())).item())


def through_file(path, runs, every):
    """What is wrong with a program that Calque saved, opened by PyTorch; none: nothing."""
    if isinstance(runs, str):
        return runs
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        program = torch.export.load(path + ".pt2")
    ours = [w for w in said if "torch.export" in str(w.message) or "pt2" in str(w.message)]
    if ours:
        return f"loading warns: {ours[0].message}"
    tensors = load_file(path + ".safetensors")
    fresh = lambda: torch.export.load(path + ".pt2")  # noqa: E731  its state is as saved
    forms = {"as loaded": lambda: fresh().module(), "decomposed": lambda: fresh().run_decompositions().module()}
    if every:
        forms["compiled"] = lambda: torch.compile(fresh().module(), backend="aot_eager")
    random = any(t in str(program.graph) for t in ("rand", "dropout", "bernoulli", "multinomial"))
    for how, make in forms.items():
        for run in runs:
            module = make()
            read = lambda v: tensors[v["tensor"]].clone() if isinstance(v, dict) else v  # noqa: E731
            args, kwargs = torch.utils._pytree.tree_unflatten([read(v) for v in run["inputs"]], program.call_spec.in_spec)
            torch.manual_seed(1)
            try:
                outputs = torch.utils._pytree.tree_leaves(module(*args, **kwargs))
            except Exception as e:
                return f"{how}: {type(e).__name__}: {str(e)[:300]}"
            want = [read(v) for v in run["outputs"]]
            if len(outputs) != len(want) or not (random or all(same(a, b) for a, b in zip(outputs, want))):
                return f"{how}: the outputs differ"
    return None


def own_file_opens(case, path, every):
    """Whether PyTorch saves, loads and decomposes the program itself, and compiles it where that is asked."""
    make, args, kwargs, options = case
    try:
        torch.export.save(torch.export.export(make(), args, kwargs, **options), path + ".pt2")
        torch.export.load(path + ".pt2").run_decompositions().module()(*args, **kwargs)
        if every:
            torch.compile(torch.export.load(path + ".pt2").module(), backend="aot_eager")(*args, **kwargs)
        return True
    except Exception:
        return False


def layers(every):
    """Cases of nn_cases by layer, the first of each, in training and in evaluation."""
    count = {}
    for case in nn_cases.cases():
        plain = all(v.same_as is None for v in case["inputs"] if isinstance(v, nn_cases.T))
        if "layer" not in case or not case["call"] or not plain:
            continue
        count[case["layer"]] = count.get(case["layer"], 0) + 1
        if count[case["layer"]] > 1 or (not every and len(count) % 6 != 1):
            continue
        yield nn_cases.materialise(case, 1)


def build(written, tensors):
    def read(v):
        if isinstance(v, dict) and "tensor" in v:
            return tensors[v["tensor"]].clone()
        return tuple(read(x) for x in v) if isinstance(v, list) and v and isinstance(v[0], dict) else v

    def make():
        torch.manual_seed(written["seed"])
        return nn_cases.build(written["layer"], {k: read(v) for k, v in written["args"].items()}).train(written["training"])

    return make, tuple(read(v) for v in written["inputs"]), {k: read(v) for k, v in sorted(written["kwargs"].items())}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--all", action="store_true", help="every layer, and files compiled too")
    p.add_argument("--only", action="append", help="cases whose id starts so; may be given several times")
    p.add_argument("--show", action="store_true", help="print both programs where they differ")
    p.add_argument("--forms", default="training,functional,core,module,calls")
    p.add_argument("--programs", action="store_true", help="without the layers")
    args = p.parse_args()
    program = os.path.join(os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release")), "bin", "export")
    torch.set_num_threads(1)
    requests, makers, inputs = [], {}, {"none": torch.zeros(1)}
    for name, (make, a, k, options) in export_cases.CASES.items():
        requests.append({"id": name})
        makers[name] = (make, a, k, options)
    if not args.programs:
        for written, tensors in layers(args.all):
            for training in (True, False):
                w = dict(written, training=training, id=f"{written['id']}/{'train' if training else 'eval'}")
                requests.append(w)
                makers[w["id"]] = (*build(w, tensors), {})
            inputs.update(tensors)
    if args.only:
        requests = [r for r in requests if r["id"].startswith(tuple(args.only))]
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)  # noqa: E731
        with open(path("cases.jsonl"), "w") as f:
            f.writelines(json.dumps(r) + "\n" for r in requests)
        save_file(inputs, path("inputs.safetensors"))
        os.makedirs(path("files"))
        subprocess.run([program, path("cases.jsonl"), path("inputs.safetensors"), path("out.jsonl"), path("files")], check=True)
        with open(path("out.jsonl")) as f:
            found = {r["id"]: r for r in map(json.loads, f)}
        opened, refused = 0, 0
        for i, r in enumerate(requests):
            if "runs" not in found[r["id"]]:
                continue
            wrong = attempt(lambda: through_file(path(f"files/{i}"), found[r["id"]]["runs"], args.all))
            if wrong is not None and not own_file_opens(makers[r["id"]], path("own"), args.all):
                print(f"{r['id']}: PyTorch does not take its own file of it either")
                continue
            opened, refused = opened + (wrong is None), refused + (wrong is not None)
            if wrong is not None:
                print(f"{r['id']}: in PyTorch: {wrong[:400]}")
    with open(os.path.join(HERE, "export_gaps.tsv")) as f:
        gaps = {tuple(line.rstrip("\n").split("\t")[:2]) for line in f if not line.startswith("#")}
    passed, failed, known, only_here = 0, {}, 0, 0
    for r in requests:
        want, got = pytorch(*makers[r["id"]]), found[r["id"]]
        for form in args.forms.split(","):
            if form not in want and form not in got:
                continue
            a, b = want.get(form, "error: none"), got.get(form, "error: none")
            if form == "calls":
                same = a == b
                a, b = [json.dumps(x) for x in a] if isinstance(a, list) else [a], [json.dumps(x) for x in b] if isinstance(b, list) else [b]
            else:
                a, b = normal(a), normal(b)
                same = a == b or (a[0].startswith("error: ") and b[0].startswith("error: "))
            if same:
                passed += 1
                continue
            if want.get("training", "error: ").startswith("error: ") and "training" in got and not got["training"].startswith("error: "):
                only_here += 1  # what PyTorch does not export
                continue
            if (r["id"], form) in gaps and not args.show:
                known += 1
                continue
            failed[form] = failed.get(form, 0) + 1
            print(f"{r['id']}: {form} differs")
            if args.show:
                print("  PyTorch:\n    " + "\n    ".join(a) + "\n  Calque:\n    " + "\n    ".join(b))
            else:
                for x, y in [(x, y) for x, y in zip(a + [""] * len(b), b + [""] * len(a)) if x != y][:2]:
                    print(f"   PyTorch {x[:260]}\n   Calque  {y[:260]}")
    print(f"{len(requests)} programs: {passed} forms equal, {known} known to differ, {only_here} that PyTorch does not export, {sum(failed.values())} differ {failed or ''}; {opened} files open in PyTorch with the same results, {refused} do not")
    print(f"{passed + opened} passed, {sum(failed.values()) + refused} failed")
    return 1 if failed or refused else 0


if __name__ == "__main__":
    sys.exit(main())
