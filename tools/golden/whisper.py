#!/usr/bin/env python3
"""Writes tests/generate/golden/whisper.json: what transformers' Whisper generates with the small model of tests/zoo/golden/whisper, whose words behind 60 are taken for its special
tokens and timestamps: settings, options, seed, ids, segments with their seconds and the times of tokens. Features follow from a formula (number i is ((7919 i) % 2001 - 1000) / 500).
And tests/task/golden/whisper: a small tokenizer with Whisper's special tokens, and texts, segments and words that its class makes of ids.
"""
import json
import logging
import os
import random
import shutil
import sys
import tempfile

import numpy as np
import torch
import transformers

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "peers"))
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


def spoken(r, begin, end):
    """Ids as Whisper writes them: timestamps in pairs, in several stretches, sometimes without an end, with special tokens between."""
    ids, at = [], 0
    for _ in range(r.randrange(1, 6)):
        if r.random() < 0.3:
            at = 0  # another stretch
        if r.random() < 0.85:
            ids.append(begin + at)
        ids += [r.choice([r.randrange(5, 400), r.randrange(5, 60)]) for _ in range(r.randrange(0, 7))]
        at = min(100, at + r.randrange(0, 30))
        if r.random() < 0.85:
            ids.append(begin + at)
        if r.random() < 0.1:
            ids.append(end)
    return ids


def write_texts():
    import media_tasks
    place = os.path.join(ROOT, "tests/task/golden/whisper")
    os.makedirs(place, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        media_tasks.whisper_model(folder)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(os.path.join(folder, name), place)
    begin = tokenizer.convert_tokens_to_ids("<|notimestamps|>") + 1
    r, out = random.Random(0), []
    punctuation = tokenizer.encode(' He said: "no, (never) again!" 你好，世界。', add_special_tokens=False)
    for case in range(40):
        ids = spoken(r, begin, tokenizer.eos_token_id) if case else [begin, *punctuation, begin + 50]
        times = sorted(round(r.random() * 20, 2) for _ in ids)
        one = {"ids": ids, "times": times}
        for key, asked in (("text", None), ("segments", True), ("words", "word")):
            model_output = {"tokens": np.array([ids]), "token_timestamps": np.array([times], dtype=np.float32)}
            text, more = tokenizer._decode_asr([model_output], return_timestamps=asked, return_language=False, time_precision=0.02)
            one["text"] = text
            if asked:
                one[key] = [[c["text"], *c["timestamp"]] for c in more["chunks"]]
        out.append(one)
    with open(os.path.join(place, "cases.json"), "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(case) for case in out) + "\n]\n")
    print(place, len(out), "texts")


def main():
    logging.disable(logging.WARNING)
    transformers.logging.set_verbosity_error()
    write_texts()
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
