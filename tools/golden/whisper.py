#!/usr/bin/env python3
"""Writes tests/generate/golden/whisper.json: what transformers' Whisper generates with the small model of tests/zoo/golden/whisper, whose words behind 60 are taken for its special
tokens and timestamps: settings, options, seed, ids, segments with their seconds and the times of tokens. Features follow from a formula (number i is ((7919 i) % 2001 - 1000) / 500).
"""
import json
import logging
import os

import numpy as np
import torch
import transformers

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(ROOT, "tests/zoo/golden/whisper")
GENERATION = dict(eos_token_id=60, pad_token_id=60, bos_token_id=60, decoder_start_token_id=61, lang_to_id={"<|en|>": 62, "<|de|>": 63}, task_to_id={"translate": 64, "transcribe": 65},
                  is_multilingual=True, prev_sot_token_id=67, no_timestamps_token_id=69, max_initial_timestamp_index=5, suppress_tokens=[3, 4, 67, 68], begin_suppress_tokens=[5, 60],
                  alignment_heads=[[0, 1], [1, 2]], max_length=12)
CASES = [  # rows, frames, settings, options
    (1, 20, {}, {}),
    (2, 20, {}, {"language": ["en", "german"], "task": "translate"}),
    (1, 20, {}, {"return_timestamps": True, "language": "de"}),
    (1, 20, {"num_beams": 3}, {"return_timestamps": True}),
    (1, 50, {}, {}),
    (1, 50, {}, {"condition_on_prev_tokens": True, "task": "transcribe"}),
    (1, 50, {"max_new_tokens": 8}, {"prompt_ids": [67, 11, 12, 13]}),
    (1, 50, {"max_new_tokens": 8}, {"prompt_ids": [67, 11, 12], "prompt_condition_type": "all-segments", "condition_on_prev_tokens": True}),
    (2, 50, {}, {"attention_mask": [[1] * 50, [1] * 24 + [0] * 26]}),
    (1, 50, {}, {"temperature": [0.0, 0.5, 1.0], "logprob_threshold": -3.0, "compression_ratio_threshold": 1.1}),
    (1, 50, {}, {"temperature": 0.0, "logprob_threshold": -2.0, "no_speech_threshold": 0.001}),
    (1, 20, {"num_return_sequences": 2, "do_sample": True}, {"temperature": 0.7}),
    (1, 50, {}, {"return_token_timestamps": True}),
    (1, 20, {}, {"return_timestamps": True, "return_token_timestamps": True, "attention_mask": [[1] * 14 + [0] * 6]}),
    (1, 20, {"lang_to_id": None, "task_to_id": None, "forced_decoder_ids": [[1, 63], [2, 65]]}, {"return_timestamps": True}),
    (1, 20, {"lang_to_id": None, "task_to_id": None, "is_multilingual": False}, {}),
]


def main():
    logging.disable(logging.WARNING)
    transformers.logging.set_verbosity_error()
    model = transformers.WhisperForConditionalGeneration.from_pretrained(MODEL).eval()
    out = []
    for seed, (rows, frames, settings, options) in enumerate(CASES):
        given = {k: v for k, v in {**GENERATION, **settings}.items() if v is not None}
        model.generation_config = transformers.GenerationConfig(**given)
        numbers = ((7919 * np.arange(rows * 8 * frames)) % 2001 - 1000) / 500
        features = torch.tensor(numbers.reshape(rows, 8, frames), dtype=torch.float32)
        called = {k: torch.tensor(v) if k in ("prompt_ids", "attention_mask") else v for k, v in options.items()}
        torch.manual_seed(seed)
        made = model.generate(features, return_segments=True, **called)
        segments = [[[float(s["start"]), float(s["end"]), s["tokens"].tolist(), [round(t, 6) for t in s["token_timestamps"].tolist()] if "token_timestamps" in s else []] for s in row]
                    for row in made["segments"]]
        out.append({"rows": rows, "frames": frames, "settings": given, "options": options, "seed": seed, "ids": made["sequences"].tolist(), "segments": segments})
    path = os.path.join(ROOT, "tests/generate/golden/whisper.json")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(case) for case in out) + "\n]\n")
    print(path, len(out), "cases", sum(len(row) for case in out for row in case["segments"]), "segments")


if __name__ == "__main__":
    main()
