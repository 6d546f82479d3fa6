#!/usr/bin/env python3
"""Programs in .pt2 files, both ways, live: PyTorch exports and saves; Calque loads, runs and saves; PyTorch loads what
Calque saved and compiled. Outputs, the printed program and everything that is loaded are the same, and nothing is warned of.
--only NAME: one case. --keep DIR keeps the files. --all is the default: it is quick.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import pt2_cases  # noqa: E402
import torch  # noqa: E402
import torch.utils._pytree as pytree  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

# Programs whose operators only PyTorch has here: they load and save, and running says which are missing.
MISSING = {"custom_op", "custom_optional", "custom_list", "auto_functionalized", "auto_functionalized_one", "auto_functionalized_two"}


def clone(tree):
    return pytree.tree_map(lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x, tree)


def flat_inputs(ep, args, kwargs):
    spec = ep.call_spec.in_spec
    keys = spec.child(1).context if hasattr(spec, "child") else spec.children_specs[1].context
    leaves = pytree.tree_leaves((args, {k: kwargs[k] for k in keys}))
    names = [s.arg.name for s in ep.graph_signature.input_specs if s.kind == torch.export.graph_signature.InputKind.USER_INPUT]
    return {n: x for n, x in zip(names, leaves) if isinstance(x, torch.Tensor)}


class Heard(logging.Handler):
    """What PyTorch says while it loads."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.said = []

    def emit(self, record):
        self.said.append(record.getMessage())


def load_quietly(path):
    heard = Heard()
    logging.getLogger("torch").addHandler(heard)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ep = torch.export.load(path)
    finally:
        logging.getLogger("torch").removeHandler(heard)
    return ep, heard.said + [str(w.message) for w in caught]


def compare_values(want, got, what):
    if type(want) is not type(got):
        return f"{what}: {type(want).__name__} expected, {type(got).__name__} found"
    if isinstance(want, torch.Tensor):
        if want.shape != got.shape or want.dtype != got.dtype or want.stride() != got.stride():
            return f"{what}: {tuple(want.shape)} {want.dtype} expected, {tuple(got.shape)} {got.dtype} found"
        if want.requires_grad != got.requires_grad:
            return f"{what}: requires_grad differs"
        raw = lambda x: x.detach().contiguous().view(torch.uint8) if x.dim() else x.detach().reshape(1).view(torch.uint8)  # noqa: E731
        return None if want.numel() == 0 or torch.equal(raw(want), raw(got)) else f"{what}: values differ"
    return None if want == got else f"{what}: {want} expected, {got} found"


def metadata(ep):
    """Everything that a loaded program has beside its text."""
    out = {}
    for name, module in ep.graph_module.named_modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        for node in module.graph.nodes:
            meta = {k: str(node.meta.get(k)) for k in ("val", "stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "custom", "unbacked_bindings")}
            if (source := node.meta.get("from_node")) is not None:
                meta["from_node"] = [s.to_dict() for s in source]
            out[name, node.name] = meta
    return out


def compare_programs(a, b):
    """None, or the first thing in which two programs that PyTorch loaded differ."""
    for what, f in {
        "str(ep)": str,
        "the printed graph": lambda p: p.graph_module.print_readable(print_output=False, include_stride=True, include_device=True),
        "format_graph": lambda p: str(p.graph),
        "signature": lambda p: p.graph_signature,
        "range constraints": lambda p: {str(k): str(v) for k, v in p.range_constraints.items()},
        "module call graph": lambda p: p.module_call_graph,
        "guards": lambda p: p._guards_code,
        "verifiers": lambda p: p.verifiers,
        "module metadata": lambda p: p.graph_module.meta,
        "metadata": metadata,
    }.items():
        want, got = f(a), f(b)
        if want != got:
            if isinstance(want, str):
                for x, y in zip(want.splitlines(), got.splitlines()):
                    if x != y:
                        return f"{what}: expected {x.strip()!r}, found {y.strip()!r}"
            if isinstance(want, dict):
                for k in want:
                    if want[k] != got.get(k):
                        return f"{what}: {k}: expected {want[k]}, found {got.get(k)}"
            return f"{what} differs: expected {want}, found {got}"
    for kind in ("state_dict", "constants"):
        x, y = getattr(a, kind), getattr(b, kind)
        if set(x) != set(y):
            return f"{kind}: names differ"
        for name in x:
            if isinstance(x[name], torch.Tensor) and (wrong := compare_values(x[name], y[name], f"{kind}[{name}]")):
                return wrong
        pointers = lambda d: {n: min(m for m in d if d[m].untyped_storage().data_ptr() == d[n].untyped_storage().data_ptr()) for n in d if isinstance(d[n], torch.Tensor)}  # noqa: E731
        if all(isinstance(v, torch.Tensor) for v in x.values()) and pointers(x) != pointers(y):
            return f"{kind}: storages are shared in another way"
    if (a.example_inputs is None) != (b.example_inputs is None):
        return "example inputs: there on one side only"
    if a.example_inputs is not None:
        la, sa = pytree.tree_flatten(a.example_inputs)
        lb, sb = pytree.tree_flatten(b.example_inputs)
        if sa != sb:
            return f"example inputs: {sa} expected, {sb} found"
        for i, (x, y) in enumerate(zip(la, lb)):
            if wrong := compare_values(x, y, f"example input {i}"):
                return wrong
    return None


def compare_results(want, got):
    for i, w in enumerate(want):
        if isinstance(w, bool) or not isinstance(w, (torch.Tensor, int)):
            continue
        g = got.get(str(i))
        if g is None:
            return f"result {i} is missing"
        if isinstance(w, int):
            w = torch.tensor(w)
        if w.shape != g.shape or w.dtype != g.dtype:
            return f"result {i}: {list(w.shape)} {w.dtype} expected, {list(g.shape)} {g.dtype} found"
        if w.numel() == 0:
            continue
        w = w.detach()
        if not (w.is_floating_point() or w.is_complex()):
            if not torch.equal(w, g):
                return f"result {i}: values differ"
            continue
        if not torch.allclose(g, w, rtol=0, atol=1e-5 * max(1.0, w.nan_to_num(0, 0, 0).abs().max().item()), equal_nan=True):
            return f"result {i}: differs by {(g - w).abs().max().item():.3g}"
    return None


def reloaded(path, original, inputs, kwargs, expected):
    """What PyTorch finds in a file of Calque's: None where that is the original program."""
    try:
        again, said = load_quietly(path)
        if wrong := f"PyTorch says {said}" if said else compare_programs(original, again):
            return wrong
        outputs = pytree.tree_leaves(again.module()(*clone(inputs), **clone(kwargs)))
        same = all(torch.equal(a.nan_to_num(), b.nan_to_num()) if isinstance(a, torch.Tensor) else a == b for a, b in zip(expected, outputs))
        return None if same else "the outputs of the program differ"
    except Exception as e:  # noqa: BLE001
        return f"{type(e).__name__}: {str(e)[-600:]}"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--all", action="store_true")
    p.add_argument("--keep")
    p.add_argument("--only")
    args = p.parse_args()
    program = os.path.join(os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release")), "bin", "pt2_peer")
    torch.set_num_threads(1)
    passed, failures = 0, []
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or scratch
        os.makedirs(folder, exist_ok=True)
        manifest, expected, loaded = [], {}, {}
        for name, build in pt2_cases.CASES.items():
            if args.only and args.only != name:
                continue
            path = os.path.join(folder, name)
            try:
                ep, inputs, kwargs = build()
                torch.export.save(ep, path + ".pt2")
                # Running a program may change its state; each is loaded anew.
                expected[name] = pytree.tree_leaves(torch.export.load(path + ".pt2").module()(*clone(inputs), **clone(kwargs)))
                loaded[name] = torch.export.load(path + ".pt2"), inputs, kwargs
            except Exception as e:  # noqa: BLE001
                failures.append(f"{name}: not exported, saved and loaded by PyTorch: {str(e)[-300:]}")
                continue
            save_file({k: v.detach().contiguous().clone() for k, v in flat_inputs(ep, inputs, kwargs).items()}, path + ".in")
            manifest.append({"id": name, "program": path + ".pt2", "inputs": path + ".in", "outputs": path + ".out", "saved": path + ".saved.pt2", "compiled": path + ".compiled.pt2", "compiled_outputs": path + ".compiled.out", "printed": path + ".txt"})
        with open(os.path.join(folder, "manifest.json"), "w") as f:
            json.dump(manifest, f)
        answer = os.path.join(folder, "answer.jsonl")
        done = subprocess.run([program, os.path.join(folder, "manifest.json"), answer], capture_output=True, text=True)
        with open(answer) as f:
            answers = {k: v for k, v in (json.loads(line) for line in f)}
        for entry in manifest:
            name = entry["id"]
            results = {}
            for step in ("load", "run", "save", "compile", "run compiled"):
                results[step] = answers.get(f"{name}#{step}", f"no answer; status {done.returncode} {done.stderr[-200:]}")
            for step, outputs in (("run", "outputs"), ("run compiled", "compiled_outputs")):
                if name in MISSING:
                    results[step] = None if "pt2_cases" in (results[step] or "") else f"running gives {results[step]}, expected the missing operators"
                elif results[step] is None:
                    results[step] = compare_results(expected[name], load_file(entry[outputs]))
            if results["load"] is None:
                with open(entry["printed"]) as f:
                    text = f.read()
                want = loaded[name][0].graph_module.print_readable(print_output=False)
                results["print"] = None
                for x, y in zip(want.splitlines() + ["(end)"], text.splitlines() + ["(end)"]):
                    if x.rstrip() != y.rstrip():
                        results["print"] = f"expected {x.strip()!r}, found {y.strip()!r}"
                        break
            for step, file in (("save", "saved"), ("compile", "compiled")):
                if results[step] is None:
                    results[f"reload {file}"] = reloaded(entry[file], *loaded[name], expected[name])
            for step, wrong in results.items():
                if wrong:
                    failures.append(f"{name}: {step}: {wrong}")
                else:
                    passed += 1
    for line in failures:
        print("FAIL", line)
    print(f"{len(manifest)} programs")
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
