"""Programs that PyTorch exports, for Calque to run: inputs of other sizes for dynamic ones, files, comparison of results."""

import itertools
import json
import os
import subprocess
import warnings
import zipfile

import torch
import torch.utils._pytree as pytree
from safetensors.torch import load_file, save_file

SEED = 17


def auto_shapes(tree):
    """Every dimension of every tensor AUTO."""
    return pytree.tree_map(lambda x: {i: torch.export.Dim.AUTO for i in range(x.dim())} if isinstance(x, torch.Tensor) else None, tree)


def user_inputs(ep):
    """(name, fake value or constant) of each user input, in the order of the flattened arguments."""
    values = {n.name: n.meta.get("val") for n in ep.graph.nodes if n.op == "placeholder"}
    return [(s.arg.name, values[s.arg.name]) for s in ep.graph_signature.input_specs if s.kind == torch.export.graph_signature.InputKind.USER_INPUT]


def resized(tensor, size):
    """The tensor's elements again and again, or fewer of them, in another size; what rises (offsets) still does."""
    rises = tensor.dim() == 1 and not tensor.is_floating_point() and not tensor.is_complex() and tensor.numel() > 1 and bool((tensor[1:] >= tensor[:-1]).all())
    for dim, n in enumerate(size):
        if n != tensor.shape[dim]:
            if tensor.shape[dim] == 0:
                return None
            tensor = tensor.index_select(dim, torch.arange(n) % tensor.shape[dim])
    return tensor.sort().values if rises else tensor


def run(ep, args, kwargs):
    args, kwargs = clone((args, kwargs))
    torch.manual_seed(SEED)
    return ep.module()(*args, **kwargs)


def clone(tree):
    return pytree.tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, tree)


def other_sizes(ep, args, kwargs, count):
    """Up to `count` further (args, kwargs, result) whose sizes the program accepts and PyTorch runs."""
    flat, spec = pytree.tree_flatten((args, kwargs))
    inputs = user_inputs(ep)
    hints = {}
    for (_, fake), real in zip(inputs, flat):
        if isinstance(fake, torch.Tensor):
            for s, n in zip(fake.shape, real.shape):
                if isinstance(s, torch.SymInt) and s.node.expr.is_symbol:
                    hints[s.node.expr] = n
    if not hints:
        return
    made = 0
    symbols = sorted(hints, key=str)
    # All symbols at once, then one at a time.
    choices = [{s: hints[s] + d for s in symbols} for d in (1, 2, 3)] + [{**hints, s: hints[s] * k + d} for k, d in ((1, 1), (2, 0), (1, 2), (3, 0)) for s in symbols]
    for choice in choices:
        if made == count:
            return
        leaves = []
        for (_, fake), real in zip(inputs, flat):
            if isinstance(fake, torch.Tensor):
                size = [int(s.node.expr.xreplace(choice)) if isinstance(s, torch.SymInt) else s for s in fake.shape]
                real = None if min(size, default=1) < 0 else resized(real, size)
                if real is None:
                    break
            leaves.append(real)
        if len(leaves) != len(flat):
            continue
        new_args, new_kwargs = pytree.tree_unflatten(leaves, spec)
        try:
            result = run(ep, new_args, new_kwargs)
        except Exception:
            continue
        made += 1
        yield new_args, new_kwargs, result


class Batch:
    """Programs with inputs and PyTorch's results, written to a folder and run by Calque in one go."""

    def __init__(self, folder):
        self.folder = folder
        self.manifest = []
        self.expected = {}

    def add(self, name, ep, runs, save=False):
        """runs: (args, kwargs, result) each."""
        path = os.path.join(self.folder, f"{len(self.manifest)}")
        torch.export.save(ep, path + ".pt2")
        entry = {"id": name, "program": path + ".pt2", "runs": []}
        names = [n for n, _ in user_inputs(ep)]
        for i, (args, kwargs, result) in enumerate(runs):
            leaves = pytree.tree_leaves((args, ep_order(ep, kwargs)))
            tensors = {n: x.contiguous().clone() for n, x in zip(names, leaves) if isinstance(x, torch.Tensor)}
            save_file(tensors, f"{path}_{i}.in")
            entry["runs"].append({"inputs": f"{path}_{i}.in", "outputs": f"{path}_{i}.out", "seed": SEED})
            self.expected[f"{name}#{i}"] = pytree.tree_leaves(result)
        if save:
            entry["save"] = path + "_saved.pt2"
        self.manifest.append(entry)
        return entry

    def run(self, program, timeout=1200):
        """{id#run: None or what is wrong}."""
        path = os.path.join(self.folder, "manifest.json")
        with open(path, "w") as f:
            json.dump(self.manifest, f)
        answer = path + ".answer"
        if not os.path.exists(program):
            return {}
        done = subprocess.run([program, path, answer], capture_output=True, text=True, timeout=timeout)
        errors = {}
        if os.path.exists(answer):
            with open(answer) as f:
                errors = {k: v for k, v in (json.loads(line) for line in f)}
        results = {}
        for entry in self.manifest:
            for i, r in enumerate(entry["runs"]):
                name = f"{entry['id']}#{i}"
                error = errors.get(name, f"no answer; {os.path.basename(program)} ended with status {done.returncode}: {done.stderr[-300:]}")
                results[name] = error or self.difference(name, load_file(r["outputs"]))
            if "save" in entry:
                results[f"{entry['id']}#save"] = errors.get(f"{entry['id']}#save", "no answer") or compare_printed(entry["program"], entry["save"])
        return results

    def difference(self, name, got):
        """None, or how what Calque gave for a run differs from what was expected of it."""
        return compare(self.expected[name], got)


def stored_graph(path):
    with zipfile.ZipFile(path) as archive:
        name = next(n for n in archive.namelist() if n.endswith("/models/model.json"))
        return json.loads(archive.read(name))["graph_module"]["graph"]


def told(named):
    """A line for each tensor (by path) and other value: all that it is, and its bits."""
    leaves, spec = pytree.tree_flatten_with_path(dict(named))
    for where, x in leaves:
        name = pytree.keystr(where)
        if isinstance(x, torch.Tensor):
            bits = hash(x.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()) if x.layout == torch.strided and x.numel() else 0
            yield f"{name}: {type(x).__name__} {x.dtype} {list(x.shape)} {x.stride()} {x.storage_offset()} {x.requires_grad} {x.device} {bits}"
        else:
            yield f"{name}: {x if isinstance(x, (bool, int, float, str, type(None))) else type(x)}"
    yield str(spec)


def compare_printed(path, other):
    """None, or the first line in which PyTorch's printouts of two files, or what they say of their tensors, differ."""
    printed = []
    for file in (path, other):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                ep = torch.export.load(file)
            except Exception as e:
                if file == path:  # PyTorch does not open its own file
                    return None if stored_graph(path) == stored_graph(other) else "round trip: another graph in the file"
                return f"torch.export.load: {type(e).__name__}: {str(e).strip()[:200]}"
        readable = ep.graph_module.print_readable(print_output=False, include_stride=True, include_device=True)
        said = "".join(sorted(str(w.message) for w in said))
        printed.append("\n".join([str(ep) + readable + str(ep.module_call_graph) + said, *told(ep.state_dict), *told(ep.constants), *told({"example inputs": ep.example_inputs}), str(ep._guards_code)]))
    if printed[0] == printed[1]:
        return None
    a, b = (text.splitlines() for text in printed)
    for x, y in itertools.zip_longest(a, b, fillvalue="(no line)"):
        if x != y:
            return f"round trip: expected {x.strip()[:300]!r}, found {y.strip()[:300]!r}"
    return "round trip: the printouts differ"


def ep_order(ep, kwargs):
    """Keyword arguments in the order in which the program flattens them."""
    keys = ep.call_spec.in_spec.child(1).context if hasattr(ep.call_spec.in_spec, "child") else ep.call_spec.in_spec.children_specs[1].context
    return {k: kwargs[k] for k in keys}


def compare(want, got):
    """None, or the first difference. Floats: max|a-b| <= 1e-5 * max(1, max|b|)."""
    for i, w in enumerate(want):
        if not isinstance(w, torch.Tensor):
            continue
        g = got.get(str(i))
        if g is None:
            return f"result {i} is missing"
        if g.shape != w.shape or g.dtype != w.dtype:
            return f"result {i}: {list(w.shape)} {w.dtype} expected, {list(g.shape)} {g.dtype} found"
        if not (w.is_floating_point() or w.is_complex()):
            if not torch.equal(w, g):
                return f"result {i}: {(w != g).sum().item()} of {w.numel()} elements differ"
            continue
        if w.numel() == 0:
            continue
        w, g = ((torch.view_as_real(x.resolve_conj()) if x.is_complex() else x).detach().double() for x in (w, g))
        if not torch.equal(w.isnan(), g.isnan()):
            return f"result {i}: NaN in other places"
        if not torch.equal(w.isinf() * w.nan_to_num(0).sign(), g.isinf() * g.nan_to_num(0).sign()):
            return f"result {i}: infinities in other places"
        finite = w.isfinite()
        if finite.any():
            worst = (w - g)[finite].abs().max().item()
            if worst > 1e-5 * max(1.0, w[finite].abs().max().item()):
                return f"result {i}: differs by {worst:.3g}"
    return None
