#!/usr/bin/env python3
"""make_fx of every layer against PyTorch's, live: the same operators in the same order with the same arguments, in training and in
evaluation, parameters being inputs; and the traced graph gives what the layer gives. Layers whose graphs are known to differ are in
tests/nn/trace_gaps.tsv with what differs: of them only the results are checked. Two cases a layer; --all: every case.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tools", "golden"))

import nn_cases  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402


def text(value, numbers):
    if isinstance(value, torch.fx.Node):
        return f"%{numbers[value]}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(text(v, numbers) for v in value) + "]"
    return repr(value)


def recorded(graph):
    numbers, lines = {}, []
    for node in graph.nodes:
        numbers[node] = len(numbers)
        if node.op == "placeholder":
            continue
        target = node.target
        if callable(target) and not isinstance(target, torch._ops.OpOverload):
            target = f"{target.__module__.lstrip('_')}.{target.__name__}"
        parts = [text(a, numbers) for a in node.args] + [f"{k}={text(v, numbers)}" for k, v in node.kwargs.items()]
        lines.append(f"%{numbers[node]} = {target}({', '.join(parts)})")
    return lines


def trace(written, tensors, mode, training):
    def read(v):
        if isinstance(v, dict) and "tensor" in v:
            return tensors[v["tensor"]].clone()
        return tuple(read(x) for x in v) if isinstance(v, list) and v and isinstance(v[0], dict) else v

    torch.manual_seed(written["seed"])
    module = nn_cases.build(written["layer"], {k: read(v) for k, v in written["args"].items()}).train(training)
    state = {k: v.detach().clone() for k, v in module.state_dict().items()}
    inputs = [read(v) for v in written["inputs"]]
    kwargs = {k: read(v) for k, v in sorted(written["kwargs"].items())}
    given = {k: v for k, v in kwargs.items() if isinstance(v, torch.Tensor)}
    fixed = {k: v for k, v in kwargs.items() if k not in given}

    def call(*values):
        n, last = len(state), len(values) - len(given)
        return torch.func.functional_call(module, dict(zip(state, values[:n])), values[n:last], {**fixed, **dict(zip(given, values[last:]))})

    return recorded(make_fx(call, tracing_mode=mode)(*state.values(), *inputs, *given.values()).graph)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--all", action="store_true")
    p.add_argument("--keep")
    p.add_argument("--only", help="cases whose id starts so")
    p.add_argument("--strict", action="store_true", help="compare the graphs of the layers with gaps too")
    p.add_argument("--listed", action="store_true", help="with --all --strict: nothing but the layers with gaps")
    p.add_argument("--mode", default="symbolic", help="real, fake or symbolic")
    args = p.parse_args()
    program = os.path.join(os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release")), "bin", "nn_trace")
    torch.set_num_threads(1)
    with open(os.path.join(ROOT, "tests", "nn", "trace_gaps.tsv")) as f:
        gaps = {line.split("\t")[0] for line in f if not line.startswith("#")}
    passed, failures, count = 0, [], {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or scratch
        os.makedirs(folder, exist_ok=True)
        path = lambda name: os.path.join(folder, name)  # noqa: E731
        written, inputs = [], {}
        for case in nn_cases.cases():
            plain = all(v.same_as is None for v in case["inputs"] if isinstance(v, nn_cases.T))  # an input twice is two inputs to a graph
            if "layer" not in case or not case["call"] or not plain or (args.only and not case["id"].startswith(args.only)):
                continue
            if args.listed and not gaps & {case["layer"], case["id"]}:
                continue
            count[case["layer"]] = count.get(case["layer"], 0) + 1
            if count[case["layer"]] > 2 and not args.all:
                continue
            w, tensors = nn_cases.materialise(case, 1)
            written.append(w)
            inputs.update(tensors)
        with open(path("cases.jsonl"), "w") as f:
            f.writelines(json.dumps(w) + "\n" for w in written)
        save_file(inputs, path("inputs.safetensors"))
        for mode in [args.mode]:
            subprocess.run([program, path("cases.jsonl"), path("inputs.safetensors"), mode, path("out.jsonl")], check=True)
            with open(path("out.jsonl")) as f:
                found = {(r["id"], r["training"]): r for r in map(json.loads, f)}
            for w in written:
                for training in (True, False):
                    got = found[w["id"], training]
                    if gaps & {w["layer"], w["id"]} and "error" not in got and not args.strict:
                        if got.get("same"):
                            passed += 1
                        else:
                            failures.append((mode, w, training, [], got))
                        continue
                    try:
                        want = trace(w, inputs, mode, training)
                    except Exception as e:
                        want = [f"error {type(e).__name__}: {e}"]
                    if "error" in got and want[0].startswith("error "):
                        passed += 1
                    elif got.get("nodes") == want and got["same"]:
                        passed += 1
                    else:
                        failures.append((mode, w, training, want, got))
    shown = 0
    for mode, w, training, want, got in failures:
        shown += 1
        if shown > (300 if args.strict else 30):
            break
        print(f"{mode} {w['id']} {'train' if training else 'eval'} {json.dumps(w['args'])} {json.dumps(w['kwargs'])}")
        lines = got.get("nodes", [got.get("error", "")])
        for a, b in [(a, b) for a, b in zip(want + [""] * len(lines), lines + [""] * len(want)) if a != b][:2]:
            print(f"   PyTorch {a[:300]}\n   Calque  {b[:300]}")
        if got.get("nodes") == want:
            print("   the graph does not give what the layer gives")
    if args.strict and args.all and not args.only:
        failed = {name for _, w, *_ in failures for name in (w["layer"], w["id"])}
        print("listed, but not different any more:", " ".join(sorted(gaps - failed)) or "none")
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
