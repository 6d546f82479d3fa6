#!/usr/bin/env python3
"""What messages promise, done as they say: the lines of Python for an architecture that Calque does not have are run as they are
printed, the program they make is run by the command that is printed, and its outputs are the model's. Models that are exported on
made-up inputs take what their tokenizer gives."""
import contextlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

sys.path.pop(0)  # this folder has a regex.py of its own, which is not the package that transformers imports
import torch
import transformers
from safetensors.torch import load_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

CALQUE = os.environ["CALQUE_BIN"]
passed = failed = 0


def check(name, good, detail=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print(f"FAILED {name}: {detail}")


def calque(*arguments):
    return subprocess.run([CALQUE, *arguments], capture_output=True, text=True)


def save_tokenizer(folder, kind, **settings):
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "Some": 3, "text": 4}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", **settings).save_pretrained(folder)
    path = pathlib.Path(folder) / "tokenizer_config.json"
    config = json.loads(path.read_text())
    config["tokenizer_class"] = kind
    path.write_text(json.dumps(config))


def way_out(name, model, inputs_of):
    """Follows the message that a model of an unknown architecture gives."""
    folder = f"{name} model"  # with a space
    torch.manual_seed(0)
    model = model.eval()
    model.save_pretrained(folder)
    save_tokenizer(folder, "PreTrainedTokenizerFast")
    result = calque("info", folder)
    check(f"{name}: refused", result.returncode == 2 and "What works today" in result.stderr, result.stderr)
    indented = [line[2:] for line in result.stderr.splitlines() if line.startswith("  ")]
    start = next(i for i, line in enumerate(indented) if line.startswith("import torch"))
    command = next(line for line in indented if line.startswith("calque run"))
    python = indented[start:indented.index(command)]
    check(f"{name}: five lines", len(python) == 5, python)
    script = pathlib.Path("script.py")
    script.write_text("\n".join(python) + "\n")
    made = subprocess.run([sys.executable, script], capture_output=True, text=True)
    check(f"{name}: the lines run", made.returncode == 0, made.stderr[-2000:])
    ran = calque(*shlex.split(command)[1:])
    check(f"{name}: the program runs", ran.returncode == 0, ran.stderr)
    if made.returncode or ran.returncode:
        return
    inputs = load_file("inputs.safetensors")
    check(f"{name}: inputs", set(inputs) == inputs_of, inputs.keys())
    found = load_file("outputs.safetensors")
    with torch.no_grad():
        expected = model(**inputs, use_cache=False) if "input_ids" in inputs else model(**inputs)
    for key, value in expected.items():
        if torch.is_tensor(value):
            close = key in found and torch.allclose(found[key], value, atol=1e-5)
            check(f"{name}: {key}", close, sorted(found))
    if "input_ids" in inputs:  # another length
        ids = torch.tensor([[3, 4, 3, 4, 0, 3, 4]])
        longer = {key: ids if key == "input_ids" else torch.ones_like(ids) if key == "attention_mask" else ids * 0 for key in inputs}
        from safetensors.torch import save_file
        save_file(longer, "longer.safetensors")
        ran = calque("run", "model.pt2", "--inputs", "longer.safetensors", "--outputs", "longer_out.safetensors")
        with torch.no_grad():
            expected = model(**longer, use_cache=False).logits
        check(f"{name}: another length", ran.returncode == 0 and
              torch.allclose(load_file("longer_out.safetensors")["logits"], expected, atol=1e-5), ran.stderr)


def token_types():
    """A model's made-up inputs have what its tokenizer gives."""
    config = transformers.BertConfig(vocab_size=40, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=37)
    transformers.BertForSequenceClassification(config).save_pretrained("bert")
    for kind, settings, expected in (
            ("BertTokenizerFast", {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}, True),
            ("RobertaTokenizerFast", {"model_input_names": ["input_ids", "attention_mask"]}, False)):
        save_tokenizer("bert", kind, **settings)
        result = calque("export", "bert", "-o", "bert.pt2", "--json")
        check(f"export with {kind}", result.returncode == 0, result.stderr)
        if result.returncode:
            continue
        summary = json.loads(result.stdout)
        check(f"{kind}: token types", ("token_type_ids" in summary["inputs"]) == expected, summary)
        program = torch.export.load("bert.pt2").module()
        ids = torch.tensor([[1, 3, 4, 2]])
        given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if expected:
            given["token_type_ids"] = torch.tensor([[0, 0, 1, 1]])
        model = transformers.BertForSequenceClassification.from_pretrained("bert").eval()
        with torch.no_grad():
            check(f"{kind}: PyTorch runs it", torch.allclose(program(**given)["logits"], model(**given).logits, atol=1e-5))


with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
    small = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37)
    way_out("persimmon", transformers.PersimmonForCausalLM(transformers.PersimmonConfig(vocab_size=40, **small)),
            {"input_ids", "attention_mask"})
    way_out("deit", transformers.DeiTForImageClassification(transformers.DeiTConfig(image_size=32, patch_size=8, **small)),
            {"pixel_values"})
    token_types()
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
