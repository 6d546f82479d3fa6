#!/usr/bin/env python3
"""Every public layer of torch.nn and function of torch.nn.functional, exported by PyTorch in training IR and decomposed,
static and with every size dynamic that may be, run by Calque at three sizes each: PyTorch's results.
--all takes more inputs of each; --table FILE writes the list of layers and states, row by row (those of other names
stay); --only NAME runs some. With --round-trip, which
--all includes, each program is also loaded and saved by Calque, and PyTorch prints both files alike.
"""

import argparse
import collections
import logging
import os
import sys
import tempfile
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release"))
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import layer_cases  # noqa: E402
import programs  # noqa: E402
import torch  # noqa: E402

# Layers whose place a sample of every kind takes in the default run.
SAMPLE = {
    "layer": "AdaptiveAvgPool2d BatchNorm2d Bilinear Conv2d ConvTranspose2d CrossEntropyLoss EmbeddingBag Fold GRU GroupNorm LSTM MaxPool2d MultiheadAttention RMSNorm TransformerEncoderLayer Unfold".split(),
    "function": "affine_grid cosine_similarity ctc_loss dropout embedding grid_sample huber_loss interpolate layer_norm linear multi_margin_loss one_hot pad scaled_dot_product_attention softmax".split(),
}


def forms(module, args, kwargs):
    """(form, program or None, why not) of a case."""
    def export(**options):
        torch.manual_seed(programs.SEED)
        a, k = programs.clone((args, kwargs))
        return torch.export.export(module, a, k, **options)

    try:
        static = export()
    except Exception as e:
        yield "static", None, first_line(e)
        return
    yield "static", static, None
    try:
        dynamic = export(dynamic_shapes=programs.auto_shapes(shapes_of(module, args, kwargs)))
    except Exception as e:
        yield "dynamic", None, first_line(e)
        dynamic = static
    else:
        yield "dynamic", dynamic, None
    try:
        yield "decomposed", dynamic.run_decompositions(), None
    except Exception as e:
        yield "decomposed", None, first_line(e)


def shapes_of(module, args, kwargs):
    """Arguments by the names that dynamic_shapes wants."""
    import inspect

    bound = inspect.signature(module.forward).bind(*args, **kwargs)
    out = {}
    for name, value in bound.arguments.items():
        kind = inspect.signature(module.forward).parameters[name].kind
        if kind == inspect.Parameter.VAR_KEYWORD:
            out.update(value)
        else:
            out[name] = value
    return out


def first_line(e):
    """What an error says, short enough for a cell of the table: up to a bracket, 90 characters at most."""
    text = (str(e).strip().splitlines() or [""])[0].partition(" (")[0]
    short = text if len(text) <= 90 else text[:90].rpartition(" ")[0] + " ..."
    return f"{type(e).__name__}: {short}"


def read_table(path):
    """{(kind, name): row} of a table that was written before."""
    if not os.path.exists(path):
        return {}
    with open(path) as f:
        rows = [line.rstrip("\n") for line in f if line.startswith(("| layer |", "| function |"))]
    return {tuple(cell.strip() for cell in row.split("|")[1:3]): row for row in rows}


def write_table(path, rows):
    order = [(kind, name) for kind, names in (("layer", layer_cases.layers()), ("function", layer_cases.functions())) for name in names]
    with open(path + ".new", "w") as f:
        f.write("# Layers and functions in programs that PyTorch exports\n\n"
                "Made by `tests/peers/layers.py --all --table docs/layers.md`: programs exported by PyTorch "
                f"{torch.__version__.split('+')[0]} (training IR\nand decomposed, static and dynamic), run by Calque, results compared at up to three "
                "sizes; and each program loaded and\nsaved by Calque, printed by PyTorch as before.\n\n"
                "| kind | name | equal | wrong | saved alike | what PyTorch itself does not export |\n|---|---|---|---|---|---|\n")
        f.writelines(rows[key] + "\n" for key in order if key in rows)
    os.replace(path + ".new", path)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--all", action="store_true")
    p.add_argument("--kind", choices=["layer", "function"])
    p.add_argument("--only", action="append")
    p.add_argument("--table")
    p.add_argument("--keep")
    p.add_argument("--samples", type=int)
    p.add_argument("--round-trip", action=argparse.BooleanOptionalAction)
    options = p.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)  # what PyTorch says of inputs that it refuses
    torch.set_num_threads(1)
    names = {"layer": layer_cases.layers(), "function": layer_cases.functions()}
    if options.only:
        names = {k: [n for n in v if n in options.only] for k, v in names.items()}
    elif not options.all:
        names = {k: [n for n in v if n in SAMPLE[k]] for k, v in names.items()}
    if options.kind:
        names = {options.kind: names[options.kind]}
    count = options.samples or (4 if options.all else 2)
    round_trip = options.all if options.round_trip is None else options.round_trip
    passed = failed = kept = 0
    table = []
    rows = read_table(options.table) if options.table else {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        os.makedirs(folder, exist_ok=True)
        for kind, listed in names.items():
            for name in listed:
                torch.manual_seed(1)
                make = layer_cases.layer_cases if kind == "layer" else layer_cases.function_cases
                own = os.path.join(folder, f"{kind}.{name}")
                os.makedirs(own, exist_ok=True)
                batch = programs.Batch(own)
                refused = collections.Counter()
                states = collections.Counter()
                for number, (module, args, kwargs) in enumerate(make(name, count)):
                    for form, ep, why in forms(module, args, kwargs):
                        if ep is None:
                            refused[why] += 1
                            continue
                        try:
                            runs = [(args, kwargs, programs.run(ep, args, kwargs))]
                        except Exception as e:
                            refused["PyTorch's own program fails: " + first_line(e)] += 1
                            continue
                        if form != "static":
                            runs += programs.other_sizes(ep, args, kwargs, 2)
                        try:
                            batch.add(f"{name}.{number}.{form}", ep, runs, save=round_trip)
                        except Exception as e:
                            refused["torch.export.save: " + first_line(e)] += 1
                if batch.manifest:
                    for run, wrong in batch.run(os.path.join(BUILD, "bin", "program_peer")).items():
                        if run.endswith("#save"):
                            kept += wrong is None
                            failed += wrong is not None
                            states["kept" if wrong is None else "changed"] += 1
                        else:
                            states["equal" if wrong is None else "wrong"] += 1
                        if wrong:
                            print(f"{kind} {run}: {wrong}", flush=True)
                passed += states["equal"]
                failed += states["wrong"]
                if not batch.manifest and not refused:
                    print(f"{kind} {name}: no inputs are known for it")
                    failed += 1
                trips = f"{states['kept']} of {states['kept'] + states['changed']}" if round_trip else ""
                why = "; ".join(refused).replace("|", "/")
                table.append((states["equal"], states["wrong"]))
                if options.table:
                    rows[kind, name] = f"| {kind} | {name} | {states['equal']} | {states['wrong']} | {trips} | {why} |"
                    write_table(options.table, rows)
    print(f"{len(table)} layers and functions, {sum(1 for equal, wrong in table if equal and not wrong)} equal in every run, {sum(1 for equal, wrong in table if not equal and not wrong)} that PyTorch does not export")
    if round_trip:
        print(f"{kept} programs loaded and saved: PyTorch prints both files alike")
    print(f"{passed + kept} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
