#!/usr/bin/env python3
"""Writes tests/hub/golden/adapters: a tiny Llama and adapters of it as peft saves them, each with expected.safetensors: inputs, what the model
with the adapter gives, the gradients of a training step, and the weights with the adapter merged in."""
import contextlib
import io
import json
import os
import shutil
import warnings

import peft
import torch
import transformers
from safetensors.torch import save_file

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GOLDEN = os.path.join(ROOT, "tests", "hub", "golden", "adapters")

CASES = {
    "lora": peft.LoraConfig(r=3, lora_alpha=4, target_modules=["q_proj", "v_proj", "down_proj"], rank_pattern={"v_proj": 2}, use_rslora=True,
                            alpha_pattern={"layers.1.self_attn.q_proj": 9}, bias="lora_only", task_type="CAUSAL_LM"),
    "dora": peft.LoraConfig(r=2, target_modules=r".*(q_proj|embed_tokens)", use_dora=True, task_type="CAUSAL_LM"),
    "tokens": peft.LoraConfig(r=2, target_modules=["v_proj"], trainable_token_indices=[3, 7], modules_to_save=["lm_head"], task_type="CAUSAL_LM"),
    "ia3": peft.IA3Config(task_type="CAUSAL_LM"),
    "prompt": peft.PromptTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM"),
    "prefix": peft.PrefixTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM"),
}


def base():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(vocab_size=32, hidden_size=8, intermediate_size=12, num_hidden_layers=2, num_attention_heads=2,
                                      num_key_value_heads=1, max_position_embeddings=32, attention_bias=True, tie_word_embeddings=False,
                                      initializer_range=0.3)
    return transformers.LlamaForCausalLM(config)


def write(name, config):
    path = os.path.join(GOLDEN, name)
    model = peft.get_peft_model(transformers.LlamaForCausalLM.from_pretrained(os.path.join(GOLDEN, "base")), config)
    torch.manual_seed(2)
    with torch.no_grad():
        for key, p in model.named_parameters():
            if p.requires_grad:
                p.add_(torch.randn_like(p) * 0.3)
    model.save_pretrained(path, safe_serialization=name != "ia3")
    os.remove(os.path.join(path, "README.md"))
    with open(os.path.join(path, "adapter_config.json")) as f:
        said = json.load(f)
    said["base_model_name_or_path"] = "base"
    with open(os.path.join(path, "adapter_config.json"), "w") as f:
        json.dump({k: sorted(v) if k.endswith("_modules") and isinstance(v, list) else v for k, v in said.items()}, f, indent=2, sort_keys=True)
    ids = torch.randint(0, 32, (2, 6))
    out = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids}
    loss = model.train()(**out).loss
    loss.backward()
    with torch.no_grad():
        given = {"logits": model.eval()(input_ids=ids).logits, "loss": loss.detach()}
        given |= {"grad." + k.removeprefix("base_model.model."): p.grad for k, p in model.named_parameters() if p.grad is not None}
        if not config.is_prompt_learning:
            model.base_model.merge_adapter()
            given |= {"merged." + k.removeprefix("base_model.model."): v for k, v in model.state_dict().items() if k.endswith("base_layer.weight")}
    save_file({k: v.clone().contiguous() for k, v in (out | given).items()}, os.path.join(path, "expected.safetensors"))


if __name__ == "__main__":
    torch.set_num_threads(1)
    shutil.rmtree(GOLDEN, ignore_errors=True)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        base().save_pretrained(os.path.join(GOLDEN, "base"))
        for name, config in CASES.items():
            write(name, config)
