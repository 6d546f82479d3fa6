#!/usr/bin/env python3
"""Writes tests/generate/tiny_lm_embeds.inc: what transformers generates from embeddings of tiny-lm that no ids have (0.9 of the rows of two
prompts, the second padded by two on the left), with and without ids beside them, by seed and settings."""
import json
import os

import torch
from transformers import AutoModelForCausalLM, GenerationConfig

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
IDS = [[2799, 560, 268, 260, 530, 462], [0, 0, 35, 475, 483, 268]]
BEGIN = [[45, 47], [35, 475]]  # ids beside the embeddings: fewer
SAMPLE = {"do_sample": True, "max_new_tokens": 8}
CASES = [  # which ids: "none", "begin" or "all"; seed, settings
    ("none", 0, {"max_new_tokens": 12}), ("begin", 0, {"max_new_tokens": 12}), ("all", 0, {"max_new_tokens": 12}),
    ("none", 0, {"max_length": 14}), ("begin", 0, {"max_length": 14}), ("all", 0, {"max_length": 14}),
    ("none", 0, {"max_new_tokens": 12, "repetition_penalty": 1.4}), ("all", 0, {"max_new_tokens": 12, "repetition_penalty": 1.4}),
    ("none", 0, {"max_new_tokens": 10, "no_repeat_ngram_size": 1}), ("none", 0, {"max_length": 14, "min_length": 12, "eos_token_id": 446}),
    ("none", 1, SAMPLE), ("begin", 2, SAMPLE), ("all", 3, dict(SAMPLE, temperature=0.7, top_k=0)),
    ("none", 4, dict(SAMPLE, num_return_sequences=2)),
    ("none", 0, {"max_new_tokens": 10, "num_beams": 3}), ("begin", 0, {"max_new_tokens": 10, "num_beams": 3, "length_penalty": 2.0}),
    ("all", 0, {"max_length": 16, "num_beams": 2, "num_return_sequences": 2}),
    ("none", 0, {"max_length": 16, "num_beams": 2, "early_stopping": "never", "eos_token_id": 13}),
    ("none", 5, {"max_new_tokens": 6, "num_beams": 2, "do_sample": True}),
]


def main():
    model = AutoModelForCausalLM.from_pretrained(os.path.join(ROOT, "assets/tiny-lm"), dtype=torch.float32).eval()
    ids = torch.tensor(IDS)
    mask = torch.tensor([[1] * 6, [0] * 2 + [1] * 4])
    embeds = model.get_input_embeddings()(ids).detach() * 0.9
    lines = ["// Made by tools/golden/tiny_lm_embeds.py.\n"]
    for beside, seed, settings in CASES:
        torch.manual_seed(seed)
        config = GenerationConfig(**settings, pad_token_id=0)
        if "eos_token_id" not in settings:
            config.eos_token_id = None
        model.generation_config = GenerationConfig()
        given = {"none": {}, "begin": {"input_ids": torch.tensor(BEGIN)}, "all": {"input_ids": ids}}[beside]
        rows = model.generate(inputs_embeds=embeds, attention_mask=mask, generation_config=config, **given).tolist()
        text = ", ".join("{" + ", ".join(map(str, row)) + "}" for row in rows)
        lines.append(f'{{"{beside}", {seed}, R"({json.dumps(settings)})", {{{text}}}}},\n')
    with open(os.path.join(ROOT, "tests/generate/tiny_lm_embeds.inc"), "w") as f:
        f.writelines(lines)


if __name__ == "__main__":
    main()
