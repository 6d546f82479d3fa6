#!/usr/bin/env python3
"""Models of the zoo beside transformers: tiny random models of every class, in several configurations (model_cases/ARCH.py),
saved by transformers and run by `calque forward`: with padding, labels, hidden states and attentions, embeddings instead of ids,
caches, in float32 and bfloat16; exported by `calque export` with dynamic batch and sequence and run by PyTorch at other sizes; saved by
`calque save` in shards and loaded by transformers. It also runs under transformers 4, which has classes, head masks and options
(OLD_CONFIGS) that 5 dropped. By default the first
configuration of each class; --all takes every one; --only NAME takes architectures or classes.
"""

import argparse
import copy
import importlib
import inspect
import itertools
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
CALQUE = os.path.join(BUILD, "bin", "calque")
sys.path.insert(0, HERE)
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")  # PyTorch's oneDNN has tile instructions that not every machine gives it

import torch  # noqa: E402
import transformers  # noqa: E402
import zoo_cases  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

SMALL_EXAMPLES = ((1, 7), (2, 1), (1, 1), (0, 7))  # batch and length: the program does not depend on them
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}


def module_of(arch):
    name = arch.replace("-", "_")
    return importlib.import_module(f"model_cases.{name}") if os.path.exists(os.path.join(HERE, "model_cases", name + ".py")) else None


def make(arch, cls, settings, cases):
    """The model, or None when this transformers does not have the class."""
    found = getattr(transformers, cls, None)
    if found is None:
        try:
            name = arch.replace("-", "_")
            found = getattr(importlib.import_module(f"transformers.models.{name}.modeling_{name}"), cls, None)
        except ImportError:
            return None
    if found is None:
        return None
    config_class = getattr(cases, "CONFIG_CLASS", None) or type(transformers.AutoConfig.for_model(arch))
    settings = dict(settings)
    settings.update(getattr(cases, "CLASS_SETTINGS", {}).get(cls, {}))
    torch.manual_seed(0)
    config = config_class(**settings)
    model = found(getattr(config, zoo_cases.PARTS[cls]) if cls in zoo_cases.PARTS else config).eval()
    with torch.no_grad():  # initial values hide mistakes: zero biases, equal norms
        for parameter in model.parameters():
            if not parameter.requires_grad:  # tables of positions, which some do not save
                continue
            parameter.add_(torch.randn_like(parameter) * 0.05)
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 1.5)
    return model


def plain(value, name=""):
    """{path: tensor} of an output; a cache is its keys and values by layer."""
    if value is None:
        return {}
    if isinstance(value, torch.Tensor):
        return {name: value}
    if isinstance(value, getattr(transformers, "EncoderDecoderCache", ())):
        layers = []
        for mine, cross in itertools.zip_longest(value.self_attention_cache.layers, value.cross_attention_cache.layers):
            layers.append((mine.keys, mine.values, cross.keys, cross.values) if getattr(cross, "keys", None) is not None else (mine.keys, mine.values))
        return plain(tuple(layers), name)
    if isinstance(value, transformers.Cache):
        return plain(tuple((layer.keys, layer.values) for layer in value.layers), name)
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, (tuple, list)):
        items = ((str(i), v) for i, v in enumerate(value))
    else:
        return {}
    out = {}
    for key, item in items:
        out.update(plain(item, f"{name}.{key}" if name else str(key)))
    return out


def labels(cls, model, x, batch, length):
    """Labels by the kind of head."""
    config = model.config
    if cls.endswith("ForQuestionAnswering"):
        return {"start_positions": torch.tensor([1, length + 3][:batch]), "end_positions": torch.tensor([2, 3][:batch])}
    if cls.endswith("ForMaskedImageModeling"):
        return {"bool_masked_pos": torch.randint(0, 2, (batch, zoo_cases.patches(config))).bool()}
    if cls.endswith("ForSemanticSegmentation"):
        return {"labels": torch.randint(-1, max(config.num_labels, 2), (batch, *x["pixel_values"].shape[2:])).where(torch.rand(batch, *x["pixel_values"].shape[2:]) > 0.2, torch.tensor(config.semantic_loss_ignore_index)).clamp(min=0)}
    if "SequenceClassification" in cls or cls.endswith("ForImageClassification"):
        if config.problem_type == "multi_label_classification":
            return {"labels": torch.randint(0, 2, (batch, config.num_labels)).float()}
        return {"labels": torch.randn(batch) if config.num_labels == 1 else torch.randint(0, config.num_labels, (batch,))}
    if "MultipleChoice" in cls:
        return {"labels": torch.randint(0, 3, (batch,))}
    if "TokenClassification" in cls:
        return {"labels": torch.randint(0, config.num_labels, (batch, length))}
    if cls.endswith("ForPreTraining") and "input_ids" in x:
        marked = x["input_ids"].clone()
        marked[:, 0] = -100
        names = inspect.signature(model.forward).parameters
        return {"labels": marked, **{name: torch.randint(0, 2, (batch,)) for name in ("next_sentence_label", "sentence_order_label") if name in names}}
    if "NextSentence" in cls:
        return {"labels": torch.randint(0, 2, (batch,))}
    if any(part in cls for part in ("CausalLM", "LMHead", "MaskedLM", "ConditionalGeneration", "MTModel")):
        like = x.get("decoder_input_ids", x.get("input_ids"))
        if like is None:
            return {}
        marked = like.clone()
        marked[:, 0] = -100
        return {"labels": marked}
    return {}


def by_position(value):
    """`calque forward` takes what is nested by its place."""
    if isinstance(value, dict):
        value = tuple(value.values())
    return tuple(by_position(one) for one in value) if isinstance(value, (tuple, list)) else value


def run(folder, cls, x, extra=()):
    """`calque forward`; {path: tensor} or the text of the error."""
    inputs, outputs = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out.safetensors")
    save_file({name: t.clone(memory_format=torch.contiguous_format) for name, t in plain({k: by_position(v) for k, v in x.items()}).items()}, inputs)
    if os.path.exists(outputs):
        os.remove(outputs)
    done = subprocess.run([CALQUE, "forward", folder, "--inputs", inputs, "--outputs", outputs, "--class", cls, *extra], capture_output=True, text=True)
    return load_file(outputs) if done.returncode == 0 else done.stderr.strip()[-600:]


def differences(found, expected, tolerance):
    if isinstance(found, str):
        return [found]
    out = []
    for name in sorted(set(found) ^ set(expected)):
        out.append(f"{name}: " + ("missing" if name in expected else "extra"))
    for name in sorted(set(found) & set(expected)):
        a, b = found[name], expected[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            out.append(f"{name}: {a.dtype} {list(a.shape)} instead of {b.dtype} {list(b.shape)}")
            continue
        a, b = a.double(), b.double()
        worst = (a - b).abs().max().item() if a.numel() else 0.0
        allowed = tolerance * max(1.0, b.abs().max().item() if b.numel() else 0.0)
        if not worst <= allowed:
            out.append(f"{name}: differs by {worst:.3g} (allowed {allowed:.3g})")
    return out


def scenarios(arch, task, cls, model, cases):
    """(name, inputs, flags, attention, dtype) to try; inputs are what both sides get."""
    x, _ = zoo_cases.inputs(arch, task, cls)
    x = dict(x)
    if hasattr(cases, "inputs"):
        x = cases.inputs(cls, x, model)
    length = x.get("input_ids", x[model.main_input_name]).shape[-1]
    y = labels(cls, model, x, 2, length)
    if hasattr(cases, "labels"):
        y = cases.labels(cls, x, model, y)
    yield "padded, with labels and hidden states", {**x, **y}, {"output_hidden_states": True}, "sdpa", torch.float32
    if not getattr(cases, "NO_ATTENTIONS", False):
        yield "eager, with attentions", dict(x), {"output_attentions": True, "output_hidden_states": True}, "eager", torch.float32
    yield "without mask", {k: v for k, v in x.items() if "mask" not in k}, {}, "sdpa", torch.float32
    without = "input_ids" not in x or getattr(cases, "NO_EMBEDS", False) or hasattr(cases, "no_embeds") and cases.no_embeds(cls, model)
    embedding = None if without else model.get_input_embeddings()
    if "SequenceClassification" not in cls and embedding is not None:
        e = {k: v for k, v in x.items() if k != "input_ids"}
        e["inputs_embeds"] = embedding(x["input_ids"]).detach()
        yield "embeddings", e, {}, "eager", torch.float32
    if hasattr(cases, "extra"):  # (name, inputs, flags) of the family's own, or with attention and dtype
        for name, own, flags, *how in cases.extra(cls, x, model):
            attention, dtype = how or ("eager" if flags.get("output_attentions") else "sdpa", torch.float32)
            yield name, own, flags, attention, dtype
    if "head_mask" in inspect.signature(model.forward).parameters and not getattr(cases, "OWN_HEAD_MASKS", False):  # transformers 4 only
        heads = torch.rand(model.config.num_attention_heads)
        yield "head mask", dict(x, head_mask=heads), {"output_attentions": True}, "eager", torch.float32
        yield "head mask by layer", dict(x, head_mask=heads.expand(model.config.num_hidden_layers, -1) * torch.rand(model.config.num_hidden_layers, 1)), {}, "eager", torch.float32
    if not (hasattr(cases, "no_bfloat16") and cases.no_bfloat16(cls, model)):
        yield "bfloat16", dict(x), {}, "eager", torch.bfloat16


def accepted(model, kwargs):
    names = inspect.signature(model.forward).parameters
    takes_all = any(p.kind == p.VAR_KEYWORD for p in names.values())
    return {k: v for k, v in kwargs.items() if k in names or takes_all}


def attending(model, attention):
    """The model with that implementation of attention, or the one that it has, and its name."""
    can_set = getattr(model, "_can_set_attn_implementation", lambda: True)()  # else it says so, and goes on as before
    if not can_set and getattr(model, "_supports_sdpa", True):
        made = type(model)._from_config(copy.deepcopy(model.config), attn_implementation=attention, dtype=model.dtype).eval()
        made.load_state_dict(model.state_dict())
        return made, attention
    try:
        model.set_attn_implementation(attention)
    except (ValueError, NotImplementedError):
        attention = "eager"
        model.set_attn_implementation(attention)
    return model, attention if getattr(model, "_supports_sdpa", True) else "eager"


def check(folder, arch, task, cls, model, cases, failures):
    count = 0
    whole = model
    config = model.config
    for name, x, flags, attention, dtype in scenarios(arch, task, cls, model, cases):
        count += 1
        model = copy.deepcopy(whole)  # some keep what they learnt of the lengths before
        if dtype != torch.float32:  # loaded in that dtype: buffers such as rotary frequencies stay as they are
            copy.deepcopy(whole).to(dtype).save_pretrained(folder)
            model = type(whole).from_pretrained(folder, **{"torch_dtype" if transformers.__version__ < "5" else "dtype": dtype}).eval()
        model.save_pretrained(folder)
        if hasattr(model, "set_attn_implementation"):
            model, attention = attending(model, attention)
        given = {k: v.to(dtype) if isinstance(v, torch.Tensor) and v.is_floating_point() else v for k, v in x.items()}
        with torch.no_grad():
            expected = plain(model(**accepted(model, {**given, **flags})))
        both = {**given, **{k: torch.tensor(v) for k, v in flags.items()}}
        wrong = differences(run(folder, cls, both, ["--attention", attention]), expected, TOLERANCE[dtype])
        if wrong:
            failures.append(f"{cls} ({name}): " + "; ".join(wrong[:4]))
    model = copy.deepcopy(whole)
    model.save_pretrained(folder)
    # A prompt, then more tokens with its cache.
    if getattr(config, "use_cache", False) and cls.endswith(("ForCausalLM", "LMHeadModel", "ConditionalGeneration", "MTModel")) and not getattr(cases, "NO_CACHE", False):
        count += 1
        x, _ = zoo_cases.inputs(arch, task, cls)
        if hasattr(cases, "inputs"):
            x = cases.inputs(cls, dict(x), model)
        key = "decoder_input_ids" if "decoder_input_ids" in x else "input_ids"
        if "input_features" in x:
            x = {k: v for k, v in x.items() if k != "decoder_attention_mask"}
        mask = {} if key == "decoder_input_ids" else {"attention_mask": torch.ones_like(x["input_ids"])}
        if mask:
            mask["attention_mask"][0, :2] = 0
        rest = {k: v for k, v in x.items() if k not in (key, "attention_mask")} if key == "input_ids" else {k: v for k, v in x.items() if k != key}
        with torch.no_grad():
            first = model(**{**rest, key: x[key][:, :4], **{k: v[:, :4] for k, v in mask.items()}}, use_cache=True)
            past = plain(first.past_key_values, "past_key_values")
            past = {k: v.clone() for k, v in past.items()}
            second = plain(model(**{**rest, key: x[key][:, 4:], **mask}, past_key_values=first.past_key_values, use_cache=True))
        both = {**rest, key: x[key][:, 4:], **mask, **past, "use_cache": torch.tensor(True)}
        wrong = differences(run(folder, cls, both), second, TOLERANCE[torch.float32])
        if wrong:
            failures.append(f"{cls} (cache): " + "; ".join(wrong[:4]))
    return count


def check_export(folder, arch, task, cls, model, cases, failures, run_all):
    """`calque export` with dynamic batch and sequence: PyTorch loads it and gives transformers' results at other sizes. Exported from one
    row, from one token, from both and from no row it is the same program; one that is not, and with --all each, is run as well."""
    inputs, program = os.path.join(folder, "in.safetensors"), os.path.join(folder, "p.pt2")

    def sized(batch, length):
        x = dict(zoo_cases.inputs(arch, task, cls, batch=batch, length=length)[0])
        if length < 3 and "attention_mask" in x:  # nothing would be left
            x["attention_mask"] = torch.ones_like(x["attention_mask"])
        return cases.inputs(cls, x, model) if hasattr(cases, "inputs") else x

    usual = None
    shortest = getattr(cases, "shortest", lambda cls: 1)(cls)
    dims = zoo_cases.inputs(arch, task, cls)[1].values()
    for batch, length in ((2, 7), *(size for size in SMALL_EXAMPLES if size[1] == 7 or any(d[1] is not None for d in dims))):
        if length < shortest or batch == 0 and cls in getattr(cases, "NO_EMPTY_BATCH", ()):
            continue
        example = {name: t[:batch] for name, t in sized(max(batch, 1), length).items()} if batch == 0 else sized(batch, length)
        save_file({name: t.contiguous() for name, t in example.items()}, inputs)
        done = subprocess.run([CALQUE, "export", folder, "-o", program, "--inputs", inputs, "--class", cls, "--print"], capture_output=True, text=True)
        if done.returncode != 0:
            failures.append(f"{cls} (export from {batch} x {length}): {done.stderr.strip()[-600:]}")
            continue
        if usual is None or run_all or done.stdout != usual:
            run_exported(program, sized, f"exported from {batch} x {length}", cls, model, cases, failures)
        usual = usual or done.stdout


def run_exported(program, sized, what, cls, model, cases, failures):
    try:
        exported = torch.export.load(program).module()
        parts = (model.config, getattr(model.config, "text_config", None))
        caches = any(getattr(part, "use_cache", False) for part in parts)
        takes = inspect.signature(model.forward).parameters
        uncached = {name: False for name in ("use_cache", "use_mems") if name in takes or (caches and name == "use_cache")}
        if hasattr(model, "set_attn_implementation"):
            try:
                model.set_attn_implementation("sdpa")
            except (ValueError, NotImplementedError):
                model.set_attn_implementation("eager")
        longer = getattr(cases, "longer_than_the_table", lambda model: [])(model)
        for batch, length in ((2, 7), (3, 5), (1, 12), (1, 1), *((2, length) for length in longer)):
            if length < getattr(cases, "shortest", lambda cls: 1)(cls):
                continue
            x = sized(batch, length)
            with torch.no_grad():
                expected = plain(copy.deepcopy(model)(**accepted(model, {**x, **uncached})))
                found = plain(exported(**x))
            wrong = differences(found, expected, TOLERANCE[torch.float32])
            if wrong:
                failures.append(f"{cls} ({what}, at {batch} x {length}): " + "; ".join(wrong[:4]))
                return
    except Exception as error:  # noqa: BLE001: whatever PyTorch says of our file
        failures.append(f"{cls} ({what}): {type(error).__name__}: {str(error)[-600:]}")


def check_picture_sizes(folder, arch, task, cls, model, cases, failures):
    """`calque export` with dynamic height and width, where the class takes pictures of any size: cases.picture_sizes(cls, model) gives the
    example's size, others, and flags."""
    count = 0
    for own, others, flags in cases.picture_sizes(cls, model):
        count += 1

        def sized(batch, size):
            return {**zoo_cases.inputs(arch, task, cls, batch=batch)[0], "pixel_values": torch.randn(batch, 3, *size), **flags}

        inputs, program = os.path.join(folder, "in.safetensors"), os.path.join(folder, "p.pt2")
        example = sized(2, own)
        save_file({name: t if isinstance(t, torch.Tensor) else torch.tensor(t) for name, t in example.items()}, inputs)
        multiple = getattr(cases, "PICTURE_MULTIPLE", 1)  # of which heights and widths have to be
        least = [min(sizes) for sizes in zip(own, *others)]
        height, width = (f"{multiple}*{name}" if multiple > 1 else f"{name}:{low}..200" for name, low in zip(("height", "width"), least))
        dynamic = [f"{name}=batch" + ",*" * (t.dim() - 1) for name, t in example.items() if isinstance(t, torch.Tensor) and name != "pixel_values"]
        done = subprocess.run([CALQUE, "export", folder, "-o", program, "--inputs", inputs, "--class", cls, "--dynamic", f"pixel_values=batch,*,{height},{width}", *(a for d in dynamic for a in ("--dynamic", d))],
                              capture_output=True, text=True)
        if done.returncode != 0:
            failures.append(f"{cls} (export of pictures of any size): {done.stderr.strip()[-600:]}")
            continue
        try:
            exported = torch.export.load(program).module()
            for size in (own, *others):
                x = sized(3, size)
                with torch.no_grad():
                    wrong = differences(plain(exported(**x)), plain(copy.deepcopy(model)(**x)), TOLERANCE[torch.float32])
                if wrong:
                    failures.append(f"{cls} (exported, pictures of {size}): " + "; ".join(wrong[:4]))
        except Exception as error:  # noqa: BLE001: whatever PyTorch says of our file
            failures.append(f"{cls} (exported, pictures of any size): {type(error).__name__}: {str(error)[-600:]}")
    return count


def described(config):
    """A configuration, and those inside it, without what a folder says of itself."""
    return {k: described(v) if isinstance(v, dict) else v for k, v in config.items() if k not in ("transformers_version", "_name_or_path", "architectures", "dtype", "torch_dtype")}


def check_save(folder, cls, model, failures):
    """`calque save`, in shards: transformers loads it with no key missing or unexpected, and the same values."""
    saved = os.path.join(folder, "saved")
    done = subprocess.run([CALQUE, "save", folder, "-o", saved, "--class", cls, "--max-shard-size", "40KB"], capture_output=True, text=True)
    if done.returncode != 0:
        failures.append(f"{cls} (save): {done.stderr.strip()[-600:]}")
        return
    try:
        loaded, report = type(model).from_pretrained(saved, output_loading_info=True)
        wrong = [f"{kind} {sorted(report[kind])[:3]}" for kind in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs") if report.get(kind)]
        expected = model.state_dict()
        spared = [re.compile(pattern) for pattern in type(model)._keys_to_ignore_on_load_missing or []]
        for name, tensor in loaded.state_dict().items():
            if any(pattern.search(name) for pattern in spared):
                continue
            if name not in expected or not torch.equal(tensor, expected[name]):
                wrong.append(f"{name} differs")
        mine, theirs = (described(m.config.to_dict()) for m in (loaded, model))
        if mine != theirs:
            keys = [k for k in set(mine) | set(theirs) if mine.get(k) != theirs.get(k)]
            wrong += [f"config {k}: {mine.get(k)} instead of {theirs.get(k)}" for k in sorted(keys)]
        if wrong:
            failures.append(f"{cls} (saved): " + "; ".join(wrong[:4]))
    except Exception as error:  # noqa: BLE001: whatever transformers says of our files
        failures.append(f"{cls} (saved): {type(error).__name__}: {str(error)[-600:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    count, failures = 0, []
    for arch, task, cls in zoo_cases.classes(os.path.join(HERE, "zoo.tsv")):
        cases = module_of(arch)
        if cases is None or args.only and arch not in args.only and cls not in args.only:
            continue
        configs = cases.CONFIGS + getattr(cases, "OLD_CONFIGS", []) if transformers.__version__ < "5" else cases.CONFIGS
        forward_only = getattr(cases, "FORWARD_CONFIGS", [])  # of no use in a program of any size
        for i, settings in enumerate([*configs, *forward_only] if args.all else configs[:1]):
            model = make(arch, cls, settings, cases)
            if model is None:
                break
            with tempfile.TemporaryDirectory() as folder:
                before = len(failures)
                count += check(folder, arch, task, cls, model, cases, failures)
                if i < len(configs):
                    count += 2 + len(SMALL_EXAMPLES)
                    check_export(folder, arch, task, cls, model, cases, failures, args.all)
                    if hasattr(cases, "picture_sizes"):
                        count += check_picture_sizes(folder, arch, task, cls, model, cases, failures)
                    check_save(folder, cls, model, failures)
                for text in failures[before:]:
                    print(f"FAILED configuration {i} of {text}", flush=True)
                if args.verbose:
                    print(f"{cls}, configuration {i}: {'ok' if before == len(failures) else 'FAILED'}", flush=True)
    print(f"{count - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
