#!/usr/bin/env python3
"""Writes tests/generate/golden/next_word.json: what transformers writes with the models of tests/zoo/golden that say a word where they are
asked for one, by settings."""
import json
import os

import torch
import transformers

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CASES = [
    {}, {"num_beams": 3, "num_return_sequences": 2}, {"do_sample": True, "temperature": 0.05}, {"do_sample": True, "temperature": 0.05, "top_k": 5, "num_return_sequences": 2},
    {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2},
]


def main():
    out = []
    for folder, cls in (("xlnet", "XLNetLMHeadModel"),):
        model = getattr(transformers, cls).from_pretrained(os.path.join(ROOT, "tests/zoo/golden", folder)).eval()
        prompt = [[5, 9, 21, 7], [8, 8, 30, 6]]
        for seed, settings in enumerate(CASES):
            torch.manual_seed(seed)
            model.generation_config = transformers.GenerationConfig(max_new_tokens=8, eos_token_id=2, pad_token_id=0, **settings)
            ids = model.generate(torch.tensor(prompt)).tolist()
            out.append({"model": folder, "prompt": prompt, "settings": dict(settings, max_new_tokens=8, eos_token_id=2, pad_token_id=0), "seed": seed, "ids": ids})
    with open(os.path.join(ROOT, "tests/generate/golden/next_word.json"), "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(one) for one in out) + "\n]\n")


if __name__ == "__main__":
    main()
