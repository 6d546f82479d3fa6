#!/usr/bin/env python3
"""Symbolic traces of models beside transformers 4.40's HFTracer: small random models of every class (zoo.tsv), traced by both for
several sets of inputs, and run at other sizes. Equal are the placeholders, the modules that are called, in their order, the set of
get_attr, and the output's keys and values; how many other nodes there are is listed with --nodes. Where the trees of modules differ,
a row of hf_fx_gaps.tsv says what is renamed, added, left out or moved, and why; the lists are equal but for that, and a row that is
no longer true fails. Where transformers cannot trace a class Calque's graph still equals
its model. Each graph is also saved, run by PyTorch from its folder and restored by Calque.

By default two sets of inputs of each architecture's first classes; --all takes every class and set; --only NAME takes
architectures or classes. transformers 4.40 has an environment of its own, which the first run makes (CALQUE_PEERS_440_DIR chooses where).
"""

import argparse
import collections
import copy
import importlib.util
import inspect
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release"))
REQUIREMENTS = os.path.join(ROOT, "tools", "peers", "requirements-4.40.txt")
GAPS = os.path.join(HERE, "hf_fx_gaps.tsv")
TOLERANCE = 2e-5
FIRST_CLASSES = 2  # of an architecture, by default


def python_of_old_transformers():
    """The interpreter of an environment with transformers 4.40, made where there is none."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.environ.get("CALQUE_PEERS_440_DIR") or os.path.join(cache, "calque", "peers-4.40")
    python, mark = os.path.join(folder, "bin", "python"), os.path.join(folder, "requirements.txt")
    with open(REQUIREMENTS) as f:
        wanted = f.read()
    if os.path.exists(mark) and os.path.exists(python):
        with open(mark) as f:
            if f.read() == wanted:
                return python
    print(f"setting up transformers 4.40 in {folder} (once; a few minutes)", flush=True)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    torch = next(line for line in wanted.splitlines() if line.startswith("torch=="))
    with open(folder + ".log", "w") as log:
        for command in ([sys.executable, "-m", "venv", "--clear", folder], [python, "-m", "pip", "install", "--no-input", torch], [python, "-m", "pip", "install", "--no-input", "-r", REQUIREMENTS]):
            if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log).returncode != 0:
                sys.exit(f"could not set up transformers 4.40: {' '.join(command)}; the whole log is in {folder}.log")
    with open(mark, "w") as f:  # the mark of a finished set-up
        f.write(wanted)
    return python


if __name__ == "__main__":
    try:
        import transformers
        old = transformers.__version__.startswith("4.40")
    except ImportError:
        old = False
    if not old:
        python = python_of_old_transformers()
        os.execv(python, [python, os.path.abspath(__file__), *sys.argv[1:]])

sys.path.insert(0, HERE)
import models  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
import zoo_cases  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from transformers.utils import fx  # noqa: E402


def tensors_of(value):
    return {name: t.contiguous().clone() for name, t in models.plain(value).items()}


class Job:
    """One trace: a model, the names of its inputs, and inputs at two other sizes."""

    def __init__(self, arch, task, cls, names, runs, what):
        self.arch, self.task, self.cls, self.names, self.runs, self.what = arch, task, cls, names, runs, what

    def __str__(self):
        return f"{self.cls} ({self.what})"


def make(arch, cls):
    model = zoo_cases.model(arch, cls)
    cases = models.module_of(arch)
    if model is None and cases is not None:
        model = models.make(arch, cls, dict(cases.CONFIGS[0], use_cache=False), cases)
    if model is not None and "SequenceClassification" in cls and getattr(model.config, "problem_type", None) is None:
        model.config.problem_type = "single_label_classification"
    return model


def inputs_at(arch, task, cls, model, batch, length):
    x = dict(zoo_cases.inputs(arch, task, cls, batch=batch, length=length)[0])
    x.pop("mc_token_ids", None)
    if "DoubleHeads" in cls:  # both trace plain rows
        x = {name: t[:, 0].contiguous() for name, t in x.items()}
    return x


SIZES = ((2, 7), (1, 9))


def jobs_of(arch, task, cls, model):
    names = list(inspect.signature(model.forward).parameters)
    base = [inputs_at(arch, task, cls, model, *size) for size in SIZES]
    usual = [name for name in names if name in base[0]]
    main = [name for name in usual if "mask" not in name]

    def job(what, wanted, runs):
        wanted = [name for name in names if name in wanted]
        return Job(arch, task, cls, wanted, [{name: run[name] for name in wanted} for run in runs], what)

    yield job("inputs", usual, base)
    yield job("without masks", main, base)
    if any("label" in name or name == "start_positions" for name in names):
        runs = []
        for x, (batch, length) in zip(base, SIZES):
            y = models.labels(cls, model, x, batch, length) if "input_ids" in x else {}
            if "input_ids" not in x and "labels" in names and cls.endswith(("ForImageClassification", "ForSequenceClassification")):
                y = {"labels": torch.randint(0, model.config.num_labels, (batch,))}
            y.pop("next_sentence_label", None), y.pop("sentence_order_label", None)
            runs.append({**x, **y})
        if len(runs[0]) > len(base[0]):
            yield job("labels", list(runs[0]), runs)
    if "token_type_ids" in names and "input_ids" in base[0] and arch != "gpt_neox":
        count = getattr(model.config, "type_vocab_size", 0) or getattr(model.config, "vocab_size", 2)
        runs = [{**x, "token_type_ids": torch.randint(0, count, x["input_ids"].shape)} for x in base]
        yield job("token types", [*usual, "token_type_ids"], runs)
    if "position_ids" in names and "input_ids" in base[0] and arch not in ("m2m_100", "bloom"):
        runs = [{**x, "position_ids": torch.randint(0, 20, x["input_ids"].shape)} for x in base]
        yield job("positions", [*usual, "position_ids"], runs)
    if "decoder_attention_mask" in names and "decoder_input_ids" in usual:
        runs = [{**x, "decoder_attention_mask": torch.ones_like(x["decoder_input_ids"])} for x in base]
        for run in runs:
            run["decoder_attention_mask"][0, -2:] = 0
        yield job("decoder's mask", [*usual, "decoder_attention_mask"], runs)
    if arch in ("llama", "opt") and "past_key_values" in names and "Classification" not in cls and "Question" not in cls:
        heads, layers = model.config.num_attention_heads, model.config.num_hidden_layers
        size = model.config.hidden_size // heads
        heads = getattr(model.config, "num_key_value_heads", heads)
        runs = []
        for x, past in zip(base, (0, 9)):
            batch = x["input_ids"].shape[0]
            cache = tuple((torch.randn(batch, heads, past, size), torch.randn(batch, heads, past, size)) for _ in range(layers))
            mask = torch.cat([torch.ones(batch, past, dtype=torch.long), x["attention_mask"]], 1)
            runs.append({**x, "attention_mask": mask, "past_key_values": cache})
        yield job("cache", [*usual, "past_key_values"], runs)


def traced_by_transformers(model, job):
    """(nodes, outputs at each size), or why not."""
    if hasattr(model.config, "use_cache"):
        model.config.use_cache = "past_key_values" in job.names
    try:
        graph = fx.symbolic_trace(model, job.names, disable_check=True)  # also what its list of classes leaves out
        nodes = [(n.op, n.target if isinstance(n.target, str) else getattr(n.target, "__name__", str(n.target))) for n in graph.graph.nodes]
        outputs = []
        for x in job.runs:
            with torch.no_grad():
                outputs.append(tensors_of(graph(**copy.deepcopy(x))))  # some write into their inputs
        return nodes, outputs
    except Exception as error:  # noqa: BLE001: whatever transformers or PyTorch says
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:160]
    finally:
        for name in [n for n, m in model.named_children() if n.rsplit("_", 1)[-1].isdigit() and not list(m.parameters()) and n.startswith(("crossentropyloss_", "mseloss_", "bcewithlogitsloss_"))]:
            delattr(model, name)


def eager_outputs(model, job):
    if hasattr(model.config, "use_cache"):
        model.config.use_cache = "past_key_values" in job.names
    outputs = []
    for x in job.runs:
        with torch.no_grad():
            outputs.append(tensors_of(model(**copy.deepcopy(x))))
    return outputs


def parts(nodes):
    return {
        "placeholders": [t for op, t in nodes if op == "placeholder"],
        "call_module": [t for op, t in nodes if op == "call_module"],
        "get_attr": sorted({t for op, t in nodes if op == "get_attr"}),
    }


def first_difference(mine, theirs):
    if isinstance(mine, list) and sorted(mine) != sorted(theirs):
        extra = list((collections.Counter(mine) - collections.Counter(theirs)))
        missing = list((collections.Counter(theirs) - collections.Counter(mine)))
        return f"extra {extra[:3]}, missing {missing[:3]}"
    at = next(i for i, (a, b) in enumerate(zip(mine, theirs)) if a != b)
    return f"another order: {mine[at]} where transformers has {theirs[at]}"


def package_outputs(folder, x):
    """What PyTorch computes from the folder that Calque wrote."""
    spec = importlib.util.spec_from_file_location("calque_traced", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder])
    package = importlib.util.module_from_spec(spec)
    sys.modules["calque_traced"] = package
    try:
        spec.loader.exec_module(package)
        with torch.no_grad():
            return tensors_of(package.FxModule()(**x))
    finally:
        for name in [n for n in sys.modules if n.split(".")[0] == "calque_traced"]:
            del sys.modules[name]


class Gap:
    """A row of hf_fx_gaps.tsv."""

    def __init__(self, line):
        self.text = line
        self.names, self.kind, self.pattern, self.becomes = line.split("\t")[:4]
        self.used = False

    def applies(self, kind, arch, cls):
        return self.kind == kind and (self.names == "*" or arch in self.names.split(",") or cls in self.names.split(","))

    def matches(self, text):
        return re.search(self.pattern, text) is not None


def read_gaps():
    with open(GAPS) as f:
        return [Gap(line.rstrip("\n")) for line in f if line.strip() and not line.startswith("#")][1:]


def without_gaps(arch, cls, part, mine, theirs, gaps):
    """Both lists as they would be without what the rows say. A row counts as used where it changed something."""
    for how in ("renamed", "added", "left out", "moved", "other"):
        for gap in gaps:
            if mine == theirs or not gap.applies(f"{part} {how}", arch, cls):
                continue
            hit = [[t for t in targets if gap.matches(t)] for targets in (mine, theirs)]
            before = (mine, theirs)
            if how == "renamed":
                mine = [re.sub(gap.pattern, gap.becomes, t) for t in mine]
            elif how != "moved" or sorted(hit[0]) == sorted(hit[1]):  # what moved is there on both sides
                mine = mine if how == "left out" else [t for t in mine if not gap.matches(t)]
                theirs = theirs if how == "added" else [t for t in theirs if not gap.matches(t)]
            gap.used |= (mine, theirs) != before
    return mine, theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--nodes", action="store_true", help="other nodes by class")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    known = json.loads(subprocess.run([os.path.join(BUILD, "bin", "calque"), "models", "--json"], capture_output=True, text=True, check=True).stdout)
    known = json.dumps(known)
    gaps = read_gaps()
    count, failures, untraced, others, absent, refused = 0, [], collections.Counter(), {}, [], []
    seen = collections.Counter()
    by_arch = collections.defaultdict(list)
    for arch, task, cls in zoo_cases.classes(os.path.join(HERE, "zoo.tsv")):
        if args.only and arch not in args.only and cls not in args.only:
            continue
        if f'"{cls}"' not in known:
            absent.append(cls)
            continue
        seen[arch] += 1
        if not args.all and not args.only and seen[arch] > FIRST_CLASSES:
            continue
        by_arch[arch].append((task, cls))

    for arch, entries in by_arch.items():
        with tempfile.TemporaryDirectory() as folder:
            todo, requests = [], []
            for task, cls in entries:
                model = make(arch, cls)
                if model is None:
                    absent.append(cls)
                    continue
                attention = getattr(model.config, "_attn_implementation", "eager") or "eager"
                at = os.path.join(folder, cls)
                model.save_pretrained(at)
                try:
                    jobs = list(jobs_of(arch, task, cls, model))
                except Exception as error:  # noqa: BLE001: no inputs of a kind for this class
                    failures.append(f"{cls}: no inputs could be made: {type(error).__name__}: {str(error)[:200]}")
                    continue
                for i, job in enumerate(jobs if args.all or args.only else jobs[:1] + jobs[2:4]):
                    try:
                        eager = eager_outputs(model, job)
                    except Exception as error:  # noqa: BLE001: inputs that the class does not take
                        refused.append(f"{job}: {type(error).__name__}: {str(error)[:100]}")
                        continue
                    theirs = traced_by_transformers(model, job)
                    request = {"folder": at, "class": cls, "names": job.names, "attention": attention, "runs": [], "save": os.path.join(at, f"graph{i}")}
                    if getattr(model.config, "problem_type", None):
                        request["problem_type"] = model.config.problem_type
                    for k, x in enumerate(job.runs):
                        path = os.path.join(at, f"{i}.{k}")
                        save_file(tensors_of(x), path + ".in.safetensors")
                        request["runs"].append({"inputs": path + ".in.safetensors", "outputs": path + ".out.safetensors"})
                    todo.append((job, theirs, eager, request))
                    requests.append(request)
            done = subprocess.run([os.path.join(BUILD, "bin", "hf_fx_peer")], input=json.dumps(requests), capture_output=True, text=True)
            answers = [json.loads(line) for line in done.stdout.splitlines()]
            if len(answers) != len(requests):
                failures.append(f"{arch}: hf_fx_peer stopped after {len(answers)} of {len(requests)} traces: {done.stderr[-300:]}")
            for (job, theirs, outputs, request), mine in zip(todo, answers):
                count += 1
                wrong = []
                if "error" in mine:
                    failures.append(f"{job}: {mine['error'][:400]}")
                    continue
                if isinstance(theirs, str):
                    untraced[f"{job.cls}: {theirs}"] += 1
                else:
                    mine_parts, their_parts = parts(mine["nodes"]), parts(theirs[0])
                    for kind in mine_parts:
                        a, b = without_gaps(arch, job.cls, kind, mine_parts[kind], their_parts[kind], gaps)
                        if a != b:
                            wrong.append(f"{kind}: {first_difference(a, b)}")
                    for own, expected in zip(theirs[1], outputs):
                        if models.differences(own, expected, TOLERANCE):
                            untraced[f"{job.cls}: its graph computes something else than its model"] += 1
                    other = [sum(op.startswith("call_") and op != "call_module" for op, _ in nodes) for nodes in (mine["nodes"], theirs[0])]
                    others.setdefault(job.cls, []).append(other)
                for k, (run, expected) in enumerate(zip(mine["runs"], outputs)):
                    if not run["worst"] <= TOLERANCE:
                        wrong.append(f"the graph differs from Calque's model by {run['worst']:.3g}")
                    if run.get("restored", 0) != 0:
                        wrong.append(f"the restored graph differs by {run['restored']:.3g}")
                    found = load_file(request["runs"][k]["outputs"])
                    differing = models.differences(found, expected, TOLERANCE)
                    allowed = [gap for gap in gaps if gap.applies("values", arch, job.cls) and gap.matches(str(job))]
                    for gap in allowed if differing else ():
                        gap.used = True
                    if differing and not allowed:
                        wrong.append("transformers: " + "; ".join(differing[:3]))
                if "save_error" in mine:
                    failures.append(f"{job}: " + " | ".join([*wrong[:4], mine["save_error"][:300]]))
                    continue
                try:
                    k = len(job.runs) - 1
                    wrong += [f"PyTorch from the folder: {d}" for d in models.differences(package_outputs(request["save"], job.runs[k]), load_file(request["runs"][k]["outputs"]), TOLERANCE)[:2]]
                except Exception as error:  # noqa: BLE001: whatever PyTorch says of our files
                    wrong.append(f"PyTorch from the folder: {type(error).__name__}: {str(error)[:300]}")
                if wrong:
                    failures.append(f"{job}: " + " | ".join(wrong[:5]))
    if args.all and not args.only:
        failures += [f"hf_fx_gaps.tsv has a row that is not true any more: {gap.text}" for gap in gaps if not gap.used]
    for failure in failures:
        print("FAILED " + failure)
    for reason, n in sorted(untraced.items()):
        print(f"transformers 4.40 does not trace {reason} ({n} sets of inputs); Calque does, and its graph equals the model")
    if args.nodes:
        for cls, pairs in others.items():
            print(f"{cls}: other calls, Calque and transformers: " + ", ".join(f"{a}/{b}" for a, b in pairs))
    if refused:
        print("inputs that transformers itself refuses: " + "; ".join(refused))
    if absent and args.all:
        print(f"not here yet: {', '.join(absent)}")
    print(f"{count} traces of {sum(len(e) for e in by_arch.values())} classes beside transformers {transformers.__version__}")
    print(f"{count - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
