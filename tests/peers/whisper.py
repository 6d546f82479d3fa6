#!/usr/bin/env python3
"""Whisper's generate beside transformers: language, task and prompt tokens, rules of timestamps, recordings of several parts, several recordings at once, temperatures to fall back to,
thresholds, beams, times of tokens. Small random models, some made to write timestamps and ends as trained ones do; features are random too. Ids, segments and their seconds must
be equal, times of tokens to 1e-6. Where the two likeliest tokens are within 1e-4 at some step, or a little noise in the weights moves the time of a token, a case proves nothing and is left out. Of several
recordings transformers looks up by its place among those that are left whether one is told what was said before, so that is not combined with temperatures here.
--all takes ten times as many cases.
"""
import argparse
import copy
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
import transformers
from transformers.models.whisper import generation_whisper

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PEER = os.path.join(os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release")), "bin", "whisper_peer")

# Words to 89; then the end, the start, languages, tasks, and 31 timestamps of a part of 0.6 s.
END, START, TIMES = 90, 91, 101
STATES = 30
GENERATION = dict(
    eos_token_id=END, pad_token_id=END, bos_token_id=END, decoder_start_token_id=START, lang_to_id={"<|en|>": 92, "<|de|>": 93, "<|fr|>": 94}, task_to_id={"translate": 95, "transcribe": 96},
    is_multilingual=True, no_timestamps_token_id=TIMES - 1, prev_sot_token_id=98, max_initial_timestamp_index=10, suppress_tokens=[3, 4, 91, 92, 93, 94, 95, 96, 97, 98, 99],
    begin_suppress_tokens=[5, END], alignment_heads=[[0, 1], [1, 0], [1, 3]], max_length=40)


def random_model(folder, seed, spoken):
    torch.manual_seed(seed)
    config = transformers.WhisperConfig(
        vocab_size=TIMES + STATES + 1, num_mel_bins=8, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=40, decoder_ffn_dim=40,
        max_source_positions=STATES, max_target_positions=48, pad_token_id=END, bos_token_id=END, eos_token_id=END, decoder_start_token_id=START, suppress_tokens=None, begin_suppress_tokens=None)
    model = transformers.WhisperForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.add_(torch.randn_like(parameter) * 0.25)
        if spoken:  # timestamps and ends are likelier, and every hidden state has a share of what makes them so
            table = model.model.decoder.embed_tokens.weight
            table[TIMES:] += table[TIMES:].mean(0) * 2
            model.model.decoder.layer_norm.bias += table[TIMES:].mean(0) * spoken
            model.model.decoder.layer_norm.bias += table[END] * spoken * 0.5
    model.generation_config = transformers.GenerationConfig(**GENERATION)
    model.save_pretrained(folder)
    return model


def case_of(r, model):
    parts = r.choice([1, 1, 1, 2.3, 4])
    rows = r.choice([1, 1, 1, 1, 3])
    frames = int(2 * STATES * parts)
    features = torch.randn(rows, 8, frames, generator=torch.Generator().manual_seed(r.randrange(10**6)))
    settings, options, more = {}, {}, {}
    if parts == 1 and r.random() < 0.5:
        options["return_timestamps"] = True
    if rows > 1 and parts > 1 or r.random() < 0.2:
        mask = torch.ones(rows, frames, dtype=torch.long)
        for row in range(rows):
            mask[row, frames - r.randrange(frames // 2):] = 0
        if parts == 1 or rows > 1:
            options["attention_mask"] = mask.tolist()
    if r.random() < 0.5:
        options["language"] = r.choice(["en", "german", "<|fr|>"]) if rows == 1 or r.random() < 0.5 else [r.choice(["en", "de", "fr"]) for _ in range(rows)]
    if r.random() < 0.4:
        options["task"] = r.choice(["translate", "transcribe"])
    temperatures = r.random() < 0.4
    if r.random() < 0.3 and not (temperatures and rows > 1):
        options["condition_on_prev_tokens"] = True
    if r.random() < 0.2:
        options["prompt_ids"] = [98] + [r.randrange(6, 89) for _ in range(r.randrange(1, 6))]
        if options.get("condition_on_prev_tokens") and r.random() < 0.5:
            options["prompt_condition_type"] = "all-segments"
    if temperatures:
        options["temperature"] = r.choice([0.0, 0.6, [0.0, 0.4, 0.8], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]])
        if r.random() < 0.7:
            options["logprob_threshold"] = r.choice([-1.0, -2.0, -3.0])
            if rows == 1 and r.random() < 0.5:
                options["no_speech_threshold"] = r.choice([0.001, 0.01, 0.6])
        if r.random() < 0.5:
            options["compression_ratio_threshold"] = r.choice([0.9, 1.1, 1.35])
    if r.random() < 0.25 and "temperature" not in options:
        settings["num_beams"] = r.choice([2, 3])
    if r.random() < 0.25:
        options["return_token_timestamps"] = True
    if r.random() < 0.3:
        settings["max_new_tokens"] = r.randrange(5, 20)
    if r.random() < 0.1:
        settings["no_repeat_ngram_size"] = 2
    return features, settings, options


class Watch(transformers.LogitsProcessor):
    """Says whether another order of rounding could have chosen another token."""

    def __init__(self):
        self.close = False

    def __call__(self, ids, scores):
        top = torch.topk(scores, 2, -1).values
        self.close |= bool(((top[:, 0] - top[:, 1]).abs() < 1e-4).any()) or bool(scores.isnan().any()) or bool((scores.amax(-1) == -torch.inf).any())
        return scores


def expected(model, features, settings, options, seed):
    given = dict(options)
    for name in ("prompt_ids", "attention_mask"):
        if name in given:
            given[name] = torch.tensor(given[name])
    model.generation_config = transformers.GenerationConfig(**{**GENERATION, **settings})
    watch = Watch()

    def extract(outputs, *args, **kwargs):
        found = extracting(outputs, *args, **kwargs)
        for noise in range(2):
            again = copy.copy(outputs)
            again.cross_attentions = tuple(tuple(w * (1 + 1e-5 * torch.randn(w.shape, generator=torch.Generator().manual_seed(noise))) for w in step) for step in outputs.cross_attentions)
            watch.close |= not torch.equal(found, extracting(again, *args, **kwargs))
        return found

    def warp(matrix):
        found = warping(matrix)
        watch.close |= not all(map(np.array_equal, found, warping(matrix + np.random.default_rng(0).normal(0, 1e-6, matrix.shape))))
        return found

    extracting, warping = model._extract_token_timestamps, generation_whisper._dynamic_time_warping
    generation_whisper._dynamic_time_warping = warp
    model._extract_token_timestamps = extract
    torch.manual_seed(seed)
    try:
        out = model.generate(features.clone(), return_segments=True, logits_processor=[watch], **given)
    finally:
        del model._extract_token_timestamps
        generation_whisper._dynamic_time_warping = warping
    segments = [[[float(s["start"]), float(s["end"]), s["tokens"].tolist(), s["token_timestamps"].tolist() if "token_timestamps" in s else []] for s in row] for row in out["segments"]]
    return watch.close, out["sequences"].tolist(), segments


def same(a, b):
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return abs(a - b) <= 1e-6


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    failed = total = 0
    kinds = {}
    with tempfile.TemporaryDirectory() as folder:
        for spoken in (0, 0.15, 0.4):
            place = os.path.join(folder, f"spoken{spoken}")
            model = random_model(place, int(spoken * 100), spoken)
            r = random.Random(f"{spoken} {args.seed}")
            made, left = [], 0
            while len(made) < (400 if args.all else 40):
                features, settings, options = case_of(r, model)
                seed = r.randrange(1000)
                try:
                    close, ids, segments = expected(model, features, settings, options, seed)
                except Exception as error:  # noqa: BLE001: transformers' own limits
                    left += 1
                    kinds[f"transformers: {type(error).__name__}: {str(error)[:70]}"] = kinds.get(f"transformers: {type(error).__name__}: {str(error)[:70]}", 0) + 1
                    if left > 10 * len(made) + 100:
                        raise
                    continue
                if close:
                    left += 1
                    continue
                made.append(({"model": place, "features": features.tolist(), "settings": {**GENERATION, **settings}, "options": options, "seed": seed}, ids, segments))
            lines = os.path.join(folder, "cases")
            with open(lines, "w") as f:
                f.writelines(json.dumps(c) + "\n" for c, _, _ in made)
            done = subprocess.run([PEER, lines], capture_output=True, text=True)
            found = [json.loads(line) for line in done.stdout.splitlines()]
            found += [{"error": f"the program died: {done.stderr[-300:]}"}] * (len(made) - len(found))
            wrong = 0
            for (case, ids, segments), answer in zip(made, found):
                total += 1
                if answer.get("ids") == ids and same(answer.get("segments"), segments):
                    continue
                wrong += 1
                if wrong <= 3:
                    shape = [len(case["features"]), len(case["features"][0][0])]
                    print("DIFFERENT", shape, json.dumps({k: v for k, v in case["options"].items() if k != "attention_mask"}), {k: v for k, v in case["settings"].items() if GENERATION.get(k) != v}, case["seed"],
                          "\n   found", answer.get("error") or (answer["ids"], answer["segments"]), "\n   expected", (ids, segments))
            failed += wrong
            print(f"spoken {spoken}: {len(made) - wrong:5} equal, {wrong} differ; {sum(len(s) for _, _, rows in made for s in rows)} segments; {left} left out", flush=True)
    for kind, count in kinds.items():
        print(f"  left out {count}: {kind}")
    print(f"{total - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
