#!/usr/bin/env python3
"""Export against PyTorch, live: python tests/peers/export.py [--only NAME] [--show] [--all]

The programs of export_cases.py and the layers of tools/golden/nn_cases.py are exported by PyTorch and, written in C++, by
Calque. Compared are the programs as printed (graph, shapes, signature, ranges) in training IR, after
run_decompositions({}) and after run_decompositions(), the calls of modules, and the code of .module(). strict_export.py uses
this code in strict mode, with more programs and further forms: the module stacks of the nodes, the modules of unflatten, the program
of a second export, and the files that PyTorch saves, loaded and run by Calque.

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


def number_data(text):
    """Symbols of data are numbered by their first appearance: strict export makes some that are gone."""
    names = {}
    return re.sub(r"\bu\d+\b", lambda m: names.setdefault(m.group(0), f"u{len(names)}"), text)


def normal(text, strict=False):
    if text.startswith("error: "):
        return text.split("\n")
    if strict:
        text = number_data(text)
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


def name_of(target):
    return target._schema.name.split("::")[1] if isinstance(target, torch._ops.OpOverload) else target.__name__


def stacks_of(program):
    out = []
    for n in program.graph.nodes:
        if n.op == "call_function":
            stack = n.meta.get("nn_module_stack", {}).items()
            out.append(f"{name_of(n.target)}:" + "".join(f" /{path}" + (key[key.index("@"):] if "@" in key else "") for key, (path, _) in stack))
    return out


def unflattened(program):
    out = []
    for path, m in torch.export.unflatten(program).named_modules():
        if hasattr(m, "graph"):
            calls = (n.target if n.op == "call_module" else name_of(n.target) for n in m.graph.nodes if n.op == "call_module" or isinstance(n.target, torch._ops.OpOverload))
            path += ":" + "".join(" " + c for c in calls)
        out.append(path)
    return out


FORMS = {
    "functional": lambda p, again: str(p.run_decompositions({})),
    "core": lambda p, again: str(p.run_decompositions()),
    "module": lambda p, again: p.module().code,
    "calls": lambda p, again: calls_of(p),
    "stacks": lambda p, again: stacks_of(p),
    "unflattened": lambda p, again: unflattened(p),
    "again": lambda p, again: str(again(p.module())),
}


def pytorch(case, strict, forms):
    """The forms of the program as PyTorch exports it, and the program; an error in the place of the first form."""
    make, args, kwargs, options = case
    try:
        program = torch.export.export(make(), args, kwargs, strict=strict, **options)
    except Exception as e:
        return {"training": f"error: {type(e).__name__}: {e}"}, None
    kept = {k: v for k, v in options.items() if k != "preserve_module_call_signature"}
    again = lambda m: torch.export.export(m, args, kwargs, strict=strict, **kept)  # noqa: E731
    out = {"training": str(program)}
    for form in forms:
        if form in FORMS:
            out[form] = attempt(lambda: FORMS[form](program, again))
    return out, program


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


def through_file(path, results, runs, how):
    """What is wrong with what Calque gave for the program of a file, when PyTorch runs the file; none: nothing."""
    if isinstance(runs, str):
        return runs
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        program = torch.export.load(path)
    ours = [w for w in said if "torch.export" in str(w.message) or "pt2" in str(w.message)]
    if ours:
        return f"loading warns: {ours[0].message}"
    tensors = load_file(results)
    fresh = lambda: torch.export.load(path)  # noqa: E731  its state is as saved
    forms = {
        "as loaded": lambda: fresh().module(),
        "unflattened": lambda: torch.export.unflatten(fresh()),
        "decomposed": lambda: fresh().run_decompositions().module(),
        "compiled": lambda: torch.compile(fresh().module(), backend="aot_eager"),
    }
    forms = {h: forms[h] for h in how}
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


def own_file_opens(program, case, path, how):
    """Whether PyTorch saves and loads its own program, decomposes, unflattens and compiles it where that is asked."""
    _, args, kwargs, _ = case
    try:
        torch.export.save(program, path)
        torch.export.load(path).module()(*args, **kwargs)
        if "decomposed" in how:
            torch.export.load(path).run_decompositions().module()(*args, **kwargs)
        if "unflattened" in how:
            torch.export.unflatten(torch.export.load(path))(*args, **kwargs)
        if "compiled" in how:
            torch.compile(torch.export.load(path).module(), backend="aot_eager")(*args, **kwargs)
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


def report(name, form, a, b, show):
    print(f"{name}: {form} differs")
    if show:
        print("  PyTorch:\n    " + "\n    ".join(a) + "\n  Calque:\n    " + "\n    ".join(b))
        return
    for x, y in [(x, y) for x, y in zip(a + [""] * len(b), b + [""] * len(a)) if x != y][:2]:
        print(f"   PyTorch {x[:260]}\n   Calque  {y[:260]}")


def lines(value, strict):
    if isinstance(value, list):
        return [x if isinstance(x, str) else json.dumps(x, sort_keys=True) for x in value]
    return normal(value, strict)


def main(strict=False):
    p = argparse.ArgumentParser()
    p.add_argument("--all", action="store_true", help="every layer, every form, and files compiled too")
    p.add_argument("--only", action="append", help="cases whose id starts so; may be given several times")
    p.add_argument("--show", action="store_true", help="print both programs where they differ")
    usual = "training,calls,stacks,unflattened" if strict else "training,functional,core,module,calls"
    every = "training,functional,core,module,calls,stacks,unflattened,again" if strict else usual
    p.add_argument("--forms", default=None, help=f"{usual}; with --all {every}")
    p.add_argument("--programs", action="store_true", help="without the layers")
    args = p.parse_args()
    forms = (args.forms or (every if args.all else usual)).split(",")
    how = ["as loaded"] + (["unflattened"] if strict else []) + (["decomposed"] if args.all or not strict else []) + (["compiled"] if args.all else [])
    program = os.path.join(os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release")), "bin", "export")
    torch.set_num_threads(1)
    requests, cases, inputs = [], {}, {"none": torch.zeros(1)}
    for name, case in export_cases.CASES.items():
        requests.append({"id": name})
        cases[name] = case
    if not args.programs:
        for written, tensors in layers(args.all):
            for training in (True, False):
                w = dict(written, training=training, id=f"{written['id']}/{'train' if training else 'eval'}")
                requests.append(w)
                cases[w["id"]] = (*build(w, tensors), {})
            inputs.update(tensors)
    if args.only:
        requests = [r for r in requests if r["id"].startswith(tuple(args.only))]
    gaps_file = os.path.join(HERE, "strict_export_gaps.tsv" if strict else "export_gaps.tsv")
    with open(gaps_file) as f:
        gaps = {tuple(line.rstrip("\n").split("\t")[:2]) for line in f if not line.startswith("#")}
    passed, failed, known, only_here, opened, refused, small = 0, {}, set(), 0, 0, 0, {}
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)  # noqa: E731
        os.makedirs(path("files"))
        wanted, programs = {}, {}
        for i, r in enumerate(requests):
            wanted[r["id"]], programs[r["id"]] = pytorch(cases[r["id"]], strict, forms)
            r.update(strict=strict, forms=forms + ["runs", "small"])
            if strict and programs[r["id"]] is not None:
                own = path(f"files/{i}.own.pt2")
                if attempt(lambda: torch.export.save(programs[r["id"]], own)) is None:
                    r["file"] = own
                    if isinstance(attempt(lambda: str(torch.export.load(own))), str):
                        wanted[r["id"]]["loaded"] = attempt(lambda: str(torch.export.load(own)))
        with open(path("cases.jsonl"), "w") as f:
            f.writelines(json.dumps(r) + "\n" for r in requests)
        save_file(inputs, path("inputs.safetensors"))
        subprocess.run([program, path("cases.jsonl"), path("inputs.safetensors"), path("out.jsonl"), path("files")], check=True)
        with open(path("out.jsonl")) as f:
            found = {r["id"]: r for r in map(json.loads, f)}
        for i, r in enumerate(requests):
            got, name = found[r["id"]], r["id"]
            files = []
            if "runs" in got:
                files.append(("file", path(f"files/{i}.pt2"), path(f"files/{i}.safetensors"), got["runs"], how))
            if "loaded" in got:
                loaded = got["loaded"]
                got["loaded"] = loaded if isinstance(loaded, str) else loaded["text"]
                files.append(("own file", r["file"], path(f"files/{i}.loaded.safetensors"), loaded if isinstance(loaded, str) else loaded["runs"], ["as loaded"]))
            for which, file, results, runs, ways in files:
                wrong = attempt(lambda: through_file(file, results, runs, ways))
                if wrong is not None and (name, which) in gaps:
                    known.add((name, which))
                    continue
                if wrong is not None and (programs[name] is None or not own_file_opens(programs[name], cases[name], path("own.pt2"), ways)):
                    print(f"{name}: PyTorch does not take its own file of it either")
                    continue
                opened, refused = opened + (wrong is None), refused + (wrong is not None)
                if wrong is not None:
                    print(f"{name}: {which} in PyTorch: {wrong[:400]}")
    for r in requests:
        want, got = wanted[r["id"]], found[r["id"]]
        for form in forms + (["loaded"] if strict else []):
            if form not in want and form not in got:
                continue
            a, b = (lines(x.get(form, "error: none"), strict) for x in (want, got))
            if form == "unflattened":  # the graphs of branches stand in another order
                a, b = sorted(a), sorted(b)
            if a == b or (a[0].startswith("error: ") and b[0].startswith("error: ")):
                passed += 1
                continue
            if want["training"].startswith("error: ") and not got["training"].startswith("error: "):
                only_here += 1  # what PyTorch does not export
                continue
            if (r["id"], form) in gaps:
                known.add((r["id"], form))
                if not args.show:
                    continue
            else:
                failed[form] = failed.get(form, 0) + 1
            report(r["id"], form, a, b, args.show)
    for r in requests:  # examples of size 1 and 0 where sizes are dynamic
        for outcome in found[r["id"]].get("small", []):
            what = outcome.split(": ")[1]
            small[what] = small.get(what, 0) + 1
            if what.startswith("same"):
                passed += 1
            elif (r["id"], "small") in gaps:
                known.add((r["id"], "small"))
            else:
                failed["small"] = failed.get("small", 0) + 1
                print(f"{r['id']}: from an example of size {outcome[:600]}")
    if not args.only:
        for name, form in sorted(gaps - known):
            if name in wanted and (form in forms + ["loaded", "file", "own file", "small"]):
                failed["listed in vain"] = failed.get("listed in vain", 0) + 1
                print(f"{name}: {form} is listed in {os.path.basename(gaps_file)} and does not differ")
    print(f"{len(requests)} programs: {passed} forms equal, {len(known)} known to differ, {only_here} that PyTorch does not export, {sum(failed.values())} differ {failed or ''}; {opened} files open in PyTorch with the same results, {refused} do not; from examples of size 1 and 0: {small}")
    print(f"{passed + opened} passed, {sum(failed.values()) + refused} failed")
    return 1 if failed or refused else 0


if __name__ == "__main__":
    sys.exit(main())
