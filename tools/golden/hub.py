#!/usr/bin/env python3
"""Folders and configurations as transformers writes them, and what it says when it loads them: tests/hub/golden.

    tools/golden/hub.py            with transformers 5: models, shards, pickles, load reports, configurations
    tools/golden/hub.py --old      with transformers 4.40: the same model as it wrote it, and its config.json files

Run the old one first: the new one reads its config.json files.
"""
import argparse
import json
import logging
import os
import pathlib
import shutil
import tempfile
import warnings

os.environ["TRANSFORMERS_VERBOSITY"] = "critical"
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

logging.disable(logging.CRITICAL)
GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/hub/golden"
TINY = dict(vocab_size=20, hidden_size=8, intermediate_size=12, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=16, pad_token_id=0)

# Class and arguments: config.json of transformers 4.40, read again by 5.
CONFIGS = [
    ("LlamaConfig", {}),
    ("LlamaConfig", dict(TINY)),
    ("LlamaConfig", dict(torch_dtype="bfloat16", num_labels=3, problem_type="multi_label_classification", unknown_key={"a": [1, 2.5, None, True]})),
    ("LlamaConfig", dict(rope_theta=500000.0, rope_scaling={"type": "linear", "factor": 2.0}, num_key_value_heads=8)),
    ("LlamaConfig", dict(id2label={i: f"name {i}" for i in range(12)}, label2id={f"name {i}": i for i in range(12)}, output_hidden_states=True)),
    ("LlamaConfig", dict(num_labels=2, architectures=["LlamaForCausalLM"], tie_word_embeddings=True, return_dict=False)),
    ("BertConfig", {}),
    ("BertConfig", dict(is_decoder=True, add_cross_attention=True, classifier_dropout=0.25, torch_dtype="float16")),
    ("GPT2Config", {}),
    ("GPT2Config", dict(n_embd=32, n_head=4, n_layer=3, resid_pdrop=0.0, summary_type="last")),
    ("T5Config", dict(feed_forward_proj="gated-gelu", num_decoder_layers=4)),
    ("BartConfig", dict(d_model=64, encoder_layers=2, decoder_layers=3, num_labels=4)),
    ("OPTConfig", dict(do_layer_norm_before=False)),
    ("BloomConfig", dict(n_layer=3)),
    ("DistilBertConfig", dict(n_layers=2)),
]


def old():
    out = GOLDEN / "configs_4_40.json"
    texts = []
    for name, arguments in CONFIGS:
        texts.append({"class": name, "json": getattr(transformers, name)(**arguments).to_json_string()})
    out.write_text(json.dumps(texts, indent=1) + "\n")
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**TINY))
    model.save_pretrained(GOLDEN / "tiny_4_40_bin", safe_serialization=False, max_shard_size="2KB")


def new_configs():
    rows = []
    for row in json.loads((GOLDEN / "configs_4_40.json").read_text()):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "config.json").write_text(row["json"])
            config = getattr(transformers, row["class"]).from_pretrained(folder)
            rows.append({"class": row["class"], "model_type": config.model_type, "input": row["json"], "written": config.to_json_string()})
    (GOLDEN / "configs.json").write_text(json.dumps(rows, indent=1) + "\n")


def fresh(folder):
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    return folder


def info(cls, folder, **kwargs):
    torch.manual_seed(7)
    model, report = cls.from_pretrained(folder, output_loading_info=True, **kwargs)
    mismatched = [[k, list(a), list(b)] for k, a, b in report["mismatched_keys"]]
    return model, {"missing": sorted(report["missing_keys"]), "unexpected": sorted(report["unexpected_keys"]), "mismatched": sorted(mismatched)}


def new():
    new_configs()
    causal, base, classifier = transformers.LlamaForCausalLM, transformers.LlamaModel, transformers.LlamaForSequenceClassification
    torch.manual_seed(0)
    model = causal(transformers.LlamaConfig(**TINY)).eval()
    model.generation_config.temperature = 0.5
    model.generation_config.do_sample = True
    tiny = fresh(GOLDEN / "tiny")
    model.save_pretrained(tiny)
    model.save_pretrained(fresh(GOLDEN / "tiny_sharded"), max_shard_size="2KB")
    state = model.state_dict()
    pickles = fresh(GOLDEN / "pickles")
    torch.save(state, pickles / "zip.bin")
    torch.save(state, pickles / "legacy.bin", _use_new_zipfile_serialization=False)
    shared = torch.arange(12.0)
    torch.save({"whole": shared, "part": shared[3:9].view(2, 3), "turned": shared.view(3, 4).t()}, pickles / "views.bin")
    transposed = dict(state)
    transposed["lm_head.weight"] = state["lm_head.weight"].t().contiguous().t()
    torch.save(transposed, pickles / "transposed.bin")
    ids = torch.tensor([[1, 5, 9, 2, 7]])
    with torch.no_grad():
        save_file({"input_ids": ids, "logits": model(ids).logits}, GOLDEN / "tiny_expected.safetensors")

    reports = {}
    values = {}
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        model.model.save_pretrained(place / "base")
        _, reports["causal into causal"] = info(causal, tiny)
        _, reports["causal into base"] = info(base, tiny)
        _, reports["base into causal"] = info(causal, place / "base")
        loaded, reports["base into classifier"] = info(classifier, place / "base", num_labels=3)
        values["score.weight"] = loaded.score.weight.detach().clone()
        loaded, reports["causal, another vocabulary"] = info(causal, tiny, vocab_size=10, ignore_mismatched_sizes=True)
        values["embed_tokens.weight"] = loaded.model.embed_tokens.weight.detach().clone()
        values["lm_head.weight"] = loaded.lm_head.weight.detach().clone()
        loaded, reports["more layers"] = info(causal, tiny, num_hidden_layers=3)
        for name in ("self_attn.q_proj", "self_attn.o_proj", "mlp.down_proj", "input_layernorm"):
            values[f"layers.2.{name}.weight"] = loaded.model.layers[2].get_submodule(name).weight.detach().clone()
        tied_config = transformers.LlamaConfig(**TINY, tie_word_embeddings=True)
        for case, kept in (("tied, both", None), ("tied, head only", "lm_head.weight"), ("tied, embedding only", "model.embed_tokens.weight")):
            tensors = {k: v.clone() for k, v in state.items()}
            tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
            for name in ("lm_head.weight", "model.embed_tokens.weight"):
                if kept not in (None, name):
                    del tensors[name]
            folder = fresh(place / "tied")
            tied_config.save_pretrained(folder)
            save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
            _, reports[case] = info(causal, folder)
        extra = {k: v.clone() for k, v in state.items()}
        extra["added_key"] = torch.ones(2)
        extra["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(2)
        del extra["model.layers.1.mlp.up_proj.weight"]
        folder = fresh(place / "extra")
        model.config.save_pretrained(folder)
        save_file(extra, folder / "model.safetensors", metadata={"format": "pt"})
        _, reports["extra and missing"] = info(causal, folder)
    (GOLDEN / "reports.json").write_text(json.dumps(reports, indent=1, sort_keys=True) + "\n")
    save_file(values, GOLDEN / "initialised.safetensors")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", action="store_true")
    options = parser.parse_args()
    GOLDEN.mkdir(parents=True, exist_ok=True)
    old() if options.old else new()
