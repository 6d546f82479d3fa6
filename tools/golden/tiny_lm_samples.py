#!/usr/bin/env python3
"""Writes tests/generate/tiny_lm_samples.inc: what transformers draws from tiny-lm, by seed and settings."""
import json
import os

import torch
from transformers import AutoModelForCausalLM, GenerationConfig

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CASES = [
    (1, {}), (2, {"top_k": 0}), (3, {"temperature": 0.7}), (4, {"top_p": 0.8, "top_k": 0}), (5, {"min_p": 0.1}),
    (6, {"repetition_penalty": 1.3, "temperature": 1.5}), (7, {"top_k": 5, "top_p": 0.9, "temperature": 0.9}),
    (8, {"typical_p": 0.9}), (9, {"no_repeat_ngram_size": 2, "temperature": 0.3}), (10, {"eta_cutoff": 0.01, "epsilon_cutoff": 0.001}),
]


def main():
    model = AutoModelForCausalLM.from_pretrained(os.path.join(ROOT, "assets/tiny-lm"), dtype=torch.float32).eval()
    prompt = torch.tensor([[2799, 560, 268, 260, 530, 462]])
    lines = ["// Made by tools/golden/tiny_lm_samples.py.\n"]
    for seed, settings in CASES:
        torch.manual_seed(seed)
        config = GenerationConfig(do_sample=True, max_new_tokens=12, **settings)
        config.eos_token_id = config.pad_token_id = None
        model.generation_config = config
        ids = model.generate(prompt, attention_mask=torch.ones_like(prompt))[0, 6:].tolist()
        lines.append(f'{{{seed}, R"({json.dumps(settings)})", {{{", ".join(map(str, ids))}}}}},\n')
    with open(os.path.join(ROOT, "tests/generate/tiny_lm_samples.inc"), "w") as f:
        f.writelines(lines)


if __name__ == "__main__":
    main()
