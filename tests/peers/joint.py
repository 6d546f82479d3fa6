#!/usr/bin/env python3
"""Programs with their backward pass beside PyTorch's: python tests/peers/joint.py [--only NAME] [--show] [--all]

Each layer of tools/golden/nn_cases.py, with the sum of its results for a loss, or with --zoo one class of each architecture with
labels, is exported by PyTorch and saved. Calque reads the file and adds the backward pass (`calque export --backward`), as
torch.export.experimental._export_forward_backward does. Compared are: the programs as printed; the results of the file that
Calque writes, opened and run by PyTorch; PyTorch's file, opened and written again by Calque. Forms that differ are listed with the
reason in joint_gaps.tsv; others fail. Of every second layer the inputs want gradients too.

The forms "module", "inference" and "simple" are those of aot_export_module with and without trace_joint and of
aot_export_joint_simple, of the program's module: the code that PyTorch and Calque print (bin/joint_peer), and their signatures.
The form "partition" is what the forward pass keeps for the backward one: Calque's min-cut at most as many bytes as PyTorch's, and the
gradients of both of Calque's partitions those of its eager pass.
"""
import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings

import torch
import torch.utils._pytree as pytree
from torch._functorch.aot_autograd import aot_export_joint_simple, aot_export_module
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.export.experimental import _export_forward_backward

warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release"))
sys.path.insert(0, HERE)

import export as export_driver  # noqa: E402


class WithLoss(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.m = module

    def forward(self, *args, **kwargs):
        leaves = [x for x in pytree.tree_leaves(self.m(*args, **kwargs)) if isinstance(x, torch.Tensor) and x.is_floating_point()]
        loss = leaves[0].sum()
        for x in leaves[1:]:
            loss = loss + x.sum()
        return loss


class Loss(torch.nn.Module):
    """A model's loss alone: PyTorch takes no other result that wants gradients."""

    def __init__(self, model, flags):
        super().__init__()
        self.m, self.flags = model, flags

    def forward(self, **kwargs):
        return self.m(**kwargs, **self.flags).loss


def layer_cases(every):
    for i, (written, tensors) in enumerate(export_driver.layers(True)):
        if not every and i % 2 == 1:
            continue
        written["training"] = True
        make, inputs, kwargs = export_driver.build(written, tensors)
        torch.manual_seed(written["seed"])
        if i % 4 == 0:
            inputs = pytree.tree_map(lambda x: x.clone().requires_grad_() if isinstance(x, torch.Tensor) and x.is_floating_point() else x, inputs)
        yield written["id"], lambda make=make: WithLoss(make()), inputs, kwargs



def trainable(model, inputs):
    """Makes of the model one that PyTorch takes: no parameter is two, and each that wants a gradient gets one."""
    seen = set()
    for name, parameter in list(model.named_parameters(remove_duplicate=False)):
        if id(parameter) in seen:
            path, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(path), leaf, torch.nn.Parameter(parameter.detach().clone()))
        seen.add(id(parameter))
    model(**inputs).loss.backward()
    for parameter in model.parameters():
        parameter.requires_grad_(parameter.grad is not None)
        parameter.grad = None


def zoo_models(only):
    """Of each architecture the first class that gives a loss, in its first configuration."""
    import logging

    sys.path.insert(0, HERE)  # in front of the folder that export.py has put there, which has a models.py too
    import models
    import transformers
    import zoo_cases
    import zoo_gradients

    logging.disable(logging.WARNING)
    transformers.logging.disable_progress_bar()
    seen = set()
    for arch, task, cls in zoo_cases.classes(os.path.join(HERE, "zoo.tsv")):
        cases = models.module_of(arch)
        if arch in seen or cases is None or only and not any(cls.startswith(x) for x in only):
            continue
        model = models.make(arch, cls, cases.CONFIGS[0], cases)
        case = next(zoo_gradients.with_labels(arch, task, cls, model, cases), None) if model is not None else None
        if case is None or cls.endswith("Model") and not {"return_loss", "labels"} & set(case[1]):
            continue
        seen.add(arch)
        trainable(model, case[1])
        for part in model.modules():  # no caches among the results
            if getattr(getattr(part, "config", None), "use_cache", False):
                part.config.use_cache = False
        flags = {k: True for k in case[1] if k == "return_loss"}
        yield cls, lambda model=model, flags=flags: Loss(model, flags), (), {k: v for k, v in case[1].items() if k not in flags}


def flat_results(program, inputs):
    args, given = [], iter(inputs)
    for spec in program.graph_signature.input_specs:
        if spec.kind == torch.export.graph_signature.InputKind.USER_INPUT:
            args.append(next(given))
        elif spec.target in program.state_dict:
            args.append(program.state_dict[spec.target].detach().clone())
        else:
            args.append(program.constants[spec.target])
    torch.manual_seed(0)
    with torch.no_grad():
        return program.graph_module(*[a.detach() if isinstance(a, torch.Tensor) else a for a in args])


def same(a, b, exact):
    if a is None or b is None:
        return a is b
    if exact:
        return torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
    scale = max(1.0, a.abs().max().item() if a.numel() else 0)
    return a.shape == b.shape and (a - b).abs().max().item() <= 1e-5 * scale if a.numel() else a.shape == b.shape


# What Calque's signature says in other words: by output, what it is and of what.
def outputs_of(s):
    back = s.backward_signature
    out = []
    for name in s.user_outputs:
        out.append(("output", ""))
    of = {**s.buffers_to_mutate, **s.parameters_to_mutate, **s.user_inputs_to_mutate}
    out = [("written", x) for x in of.values()] + out
    if back:
        out += [("gradient", x) for x in list(back.gradients_to_parameters.values()) + list(back.gradients_to_user_inputs.values())]
    return [f"{a} {b}".strip() for a, b in out]


def outputs_of_calque(text):
    out = []
    for kind, target in re.findall(r"^\w*: (\w+)(?: target='([^']*)')?$", text.split("# outputs")[1], re.M):
        word = "output" if kind in ("USER_OUTPUT", "LOSS_OUTPUT") else "gradient" if kind.startswith("GRADIENT") else "written"
        out.append(f"{word} {target}".strip())
    return out


def code(text, once=True):
    """The lines of printed code. aot_export_module traces twice: what the second trace adds, detaches and results that nobody uses, is
    left out of both."""
    while not once:
        m = re.search(r"^ *(\w+) = torch\.ops\.aten\.detach\.default\((\w+)\).*\n", text, re.M)
        if not m:
            break
        text = re.sub(rf"(?<![\w.]){m.group(1)}\b(?! = torch)", m.group(2), text.replace(m.group(0), ""))
    if not once:
        text = "\n".join(line.split(";")[0] for line in text.split("\n"))
        for line, name in re.findall(r"^( *(\w+) = \w+\[\d+\]\n)", text, re.M):
            if len(re.findall(rf"(?<![\w.]){name}\b", text)) == 1:
                text = text.replace(line, "")
    return export_driver.normal(text)


def entry_points(program, inputs, a, folder):
    """{form: [PyTorch's lines, Calque's lines]} where they differ."""
    from safetensors.torch import save_file

    tensors = {}
    for i, t in enumerate(inputs):
        tensors[str(i)] = t.detach().contiguous()
        if t.requires_grad:
            tensors[f"wants.{i}"] = torch.zeros(1)
    save_file(tensors, os.path.join(folder, "in.safetensors"))
    r = subprocess.run([os.path.join(BUILD, "bin", "joint_peer"), a, os.path.join(folder, "in.safetensors"), os.path.join(folder, "joint.json")], capture_output=True, text=True)
    if r.returncode:
        return {"module": ["", r.stderr.strip()]}
    with open(os.path.join(folder, "joint.json")) as f:
        ours = json.load(f)

    def module():
        return program.module(check_guards=False)

    class Tupled(torch.nn.Module):  # PyTorch's aot_export_module takes modules that give tuples
        def __init__(self):
            super().__init__()
            self.m = module()

        def forward(self, *args):
            return (self.m(*args),)

    def simple():
        m = module()
        names = [n for n, _ in m.named_parameters()] + [n for n, _ in m.named_buffers()]
        state = [*m.parameters(), *m.buffers()]

        def f(*flat):
            return tuple(pytree.tree_leaves(torch.func.functional_call(m, dict(zip(names, flat[: len(names)])), tuple(flat[len(names) :]), tie_weights=False)))

        nonlocal joint
        joint = aot_export_joint_simple(f, (*state, *inputs), trace_joint=True)
        return code(joint.code)

    def exported(**options):
        graph, signature = aot_export_module(Tupled(), inputs, **options)
        return code(graph.code, False) + [x.replace(" m.", " ") for x in outputs_of(signature)]

    out, joint = {}, None
    for form, theirs in (("module", lambda: exported(trace_joint=True, output_loss_index=0)), ("inference", lambda: exported(trace_joint=False)), ("simple", simple)):
        try:
            x = theirs()
        except Exception as e:
            out[form] = None if str(ours[form]).startswith("error: ") else [[str(e).split("\n")[0]], ["no error"]]
            continue
        y = ours[form]
        if not (isinstance(y, str) and y.startswith("error: ")):
            y = code(y) if form == "simple" else code(y[0], False) + outputs_of_calque(y[1])
        if x != y:
            out[form] = [x, y]
    found = ours["partition"]
    if joint is None or found is None:
        out["partition"] = None
    elif isinstance(found, str):
        out["partition"] = ["", found]
    else:
        theirs = saved_bytes(joint)
        BYTES.append((theirs, found[1][0]))
        if found[1][0] > theirs or max(found[0][1], found[1][1]) > 1e-5:
            out["partition"] = ["", f"PyTorch keeps {theirs} bytes, Calque {found[1][0]} (default {found[0][0]}); differences {found[0][1]}, {found[1][1]}"]
    return out


BYTES = []  # kept by PyTorch's min-cut and by Calque's


def saved_bytes(joint):
    n = joint._out_spec.child(0).num_leaves
    forward, _ = min_cut_rematerialization_partition(joint, None, num_fwd_outputs=n)
    kept = forward.graph.find_nodes(op="output")[0].args[0][n:]
    return sum(x.meta["val"].numel() * x.meta["val"].itemsize for x in kept if isinstance(x.meta["val"], torch.Tensor))


def one(name, make, inputs, kwargs, folder):
    """{form: what differs}; None when PyTorch makes no such program."""
    module = make()
    if not any(p.requires_grad for p in module.parameters()) and not any(isinstance(x, torch.Tensor) and x.requires_grad for x in pytree.tree_leaves(inputs)):
        return None
    try:
        program = torch.export.export(module, inputs, kwargs, strict=False)
        theirs = _export_forward_backward(program)
    except Exception as e:
        return {"PyTorch": str(e).split("\n")[0]}
    a, b, c = (os.path.join(folder, x) for x in ("a.pt2", "b.pt2", "c.pt2"))
    torch.export.save(program, a)
    r = subprocess.run([os.path.join(BUILD, "bin", "calque"), "export", a, "--backward", "0", "-o", b, "--print", "-q"], capture_output=True, text=True)
    if r.returncode:
        return {"printed": ["", r.stderr.strip()]}
    flat_inputs = pytree.tree_leaves((inputs, kwargs))
    plain = not kwargs and all(isinstance(x, torch.Tensor) for x in inputs)
    out = entry_points(program, inputs, a, folder) if plain else {}
    for form in ("module", "inference", "simple", "partition"):
        if not plain or (form in out and out[form] is None):
            out[form] = None
    x, y = export_driver.normal(str(theirs)), export_driver.normal(r.stdout.rstrip("\n"))
    if x != y:
        out["printed"] = [x, y]
    try:
        ours = torch.export.load(b)
        p, q = flat_results(theirs, flat_inputs), flat_results(ours, flat_inputs)
        if len(p) != len(q) or not all(same(s, t, x == y) for s, t in zip(p, q) if isinstance(s, torch.Tensor)):
            out["results"] = ["", "other results"]
    except Exception as e:
        out["results"] = ["", f"{type(e).__name__}: {e}"]
    try:
        torch.export.save(theirs, a)
    except KeyError:  # PyTorch 2.13 does not save gradients of inputs: their names are those of before the renaming
        return out
    r = subprocess.run([os.path.join(BUILD, "bin", "calque"), "export", a, "-o", c, "-q"], capture_output=True, text=True)
    if r.returncode:
        out["read"] = ["", r.stderr.strip()]
    else:
        again = export_driver.normal(str(torch.export.load(c)))
        if again != x:
            out["read"] = [x, again]
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--all", action="store_true", help="every layer")
    p.add_argument("--zoo", action="store_true", help="one class of each architecture alone, each with its loss for the result")
    p.add_argument("--only", action="append", help="cases whose name starts so")
    p.add_argument("--show", action="store_true", help="print both programs where they differ")
    o = p.parse_args()
    gaps = {}
    with open(os.path.join(HERE, "joint_gaps.tsv")) as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                name, form, reason = line.rstrip("\n").split("\t")
                gaps[name, form] = reason
    passed = failed = listed = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, make, inputs, kwargs in itertools.chain(() if o.zoo else layer_cases(o.all or bool(o.only)), zoo_models(o.only) if o.zoo else ()):
            if o.only and not any(name.startswith(x) for x in o.only):
                continue
            found = one(name, make, inputs, kwargs, folder)
            if found is None:
                continue
            if "PyTorch" in found:
                refused += 1
                if o.show or o.zoo:
                    print(f"{name}: PyTorch makes none: {found['PyTorch']}")
                continue
            for form in ("printed", "results", "read", "module", "inference", "simple", "partition"):
                if form in found and found[form] is None:  # refused by both, or no case
                    continue
                if form not in found:
                    passed += 1
                    if (name, form) in gaps:
                        print(f"{name}: {form} is listed in joint_gaps.tsv and does not differ")
                        failed += 1
                elif (name, form) in gaps:
                    listed += 1
                else:
                    failed += 1
                    a, b = found[form]
                    if isinstance(a, list):
                        export_driver.report(name, form, a, b if isinstance(b, list) else [b], o.show)
                    else:
                        print(f"{name}: {form}: {b}")
    if BYTES:
        print(f"kept for the backward pass: {sum(b for _, b in BYTES)} bytes, PyTorch's min-cut {sum(a for a, _ in BYTES)}, in {len(BYTES)} modules")
    print(f"{passed} passed, {failed} failed, {listed} listed, {refused} refused by PyTorch")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
