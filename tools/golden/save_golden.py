#!/usr/bin/env python3
"""What transformers writes when it saves: tests/hub/golden/save.

Run by a Python with transformers 5 first (makes the two source models), then by one with transformers 4. For every model and limit
it notes the index and the size and CRC-32 of each file that it wrote.
"""

import json
import os
import shutil
import sys
import tempfile
import zlib

import torch
import transformers
from safetensors.torch import load_file

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "..", "tests", "hub", "golden", "save")
FIVE = transformers.__version__.startswith("5")


def make(folder, tied):
    torch.manual_seed(1 + tied)
    config = transformers.LlamaConfig(
        vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=32, tie_word_embeddings=tied, pad_token_id=0)
    model = transformers.LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    model.save_pretrained(folder)


def copy_of(source, dtype):
    """Not by from_pretrained: transformers 5 sorts the names of models that it loaded, and those alone."""
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig.from_pretrained(source))
    state = load_file(os.path.join(source, "model.safetensors"))
    model.load_state_dict(state, strict=False)
    return model.to(dtype)


def noted(folder):
    files = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as f:
            data = f.read()
        if name.endswith(".json"):
            files[name] = {"text": data.decode()}
        elif name.endswith(".safetensors"):
            files[name] = {"bytes": len(data), "crc32": zlib.crc32(data)}
        else:
            state = torch.load(os.path.join(folder, name), weights_only=True)
            files[name] = {"names": list(state)}
    return files


def main():
    os.makedirs(OUT, exist_ok=True)
    cases = []
    for tied in (False, True):
        source = os.path.join(OUT, "llama_tied" if tied else "llama")
        if FIVE:
            shutil.rmtree(source, ignore_errors=True)
            make(source, tied)
        for limit in ("50GB", "1KB", "2KB", "3KB", "5KB", "12KB"):
            for dtype in ("float32", "bfloat16"):
                for variant in ("", "v2"):
                    for safe in ((True,) if FIVE else (True, False)):
                        if (variant and limit != "3KB") or (dtype == "bfloat16" and (variant or not safe or limit not in ("50GB", "2KB"))):
                            continue
                        with tempfile.TemporaryDirectory() as folder:
                            kwargs = {} if FIVE else {"safe_serialization": safe}
                            saved = copy_of(source, getattr(torch, dtype))
                            saved.save_pretrained(folder, max_shard_size=limit, variant=variant or None, **kwargs)
                            cases.append({"source": os.path.basename(source), "limit": limit, "dtype": dtype, "variant": variant, "safe": safe,
                                          "files": noted(folder)})
    with open(os.path.join(OUT, f"transformers{transformers.__version__[0]}.json"), "w") as f:
        json.dump({"transformers": transformers.__version__, "cases": cases}, f, indent=0, sort_keys=True)


main()
