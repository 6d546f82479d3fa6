#!/usr/bin/env python3
"""Writes tests/media/golden/: small pictures and sounds, jobs.json (tests/media/media_jobs_support.h) and expected.safetensors with what Pillow, soundfile,
transformers and the formulas in float64 make of them. Needs the environment of ./test peers. python tools/golden/media.py
"""
import json
import os
import shutil
import sys
import tempfile

import numpy as np
import safetensors.numpy
import soundfile
import transformers

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "peers"))

import media_cases as cases  # noqa: E402

FOLDER = os.path.join(ROOT, "tests", "media", "golden")


def ctc():
    """What Wav2Vec2CTCTokenizer makes of steps, with the places of characters and words."""
    tokens = ["<pad>", "<s>", "</s>", "<unk>", "|", "E", "T", "A", "O", "'", "É"]
    vocabulary = {t: i for i, t in enumerate(tokens)}
    r = np.random.RandomState(0)
    cases_ = []
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "vocab.json"), "w") as f:
            json.dump(vocabulary, f)
        for settings in ({}, {"do_lower_case": True}, {"word_delimiter_token": "O", "pad_token": "A"}):
            tokenizer = transformers.Wav2Vec2CTCTokenizer(os.path.join(folder, "vocab.json"), **settings)
            for length in (0, 1, 7, 40, 60):
                ids = [int(i) for i in np.repeat(r.choice([0, 0, 4, 4, 5, 6, 7, 8, 9, 10, 3, 11], length), r.randint(1, 4, length))]
                found = tokenizer.decode(ids, output_char_offsets=True) if ids else None
                chars = found["char_offsets"] if ids else []
                words = tokenizer._get_word_offsets(chars, tokenizer.replace_word_delimiter_char)
                cases_.append({"settings": settings, "ids": ids, "text": found["text"] if ids else "",
                               "characters": [[c["char"], int(c["start_offset"]), int(c["end_offset"])] for c in chars],
                               "words": [[w["word"], int(w["start_offset"]), int(w["end_offset"])] for w in words]})
    with open(os.path.join(FOLDER, "ctc.json"), "w") as f:
        f.write(json.dumps({"vocabulary": vocabulary, "cases": ["CASES"]}).replace('"CASES"', "\n" + ",\n".join(json.dumps(c) for c in cases_)) + "\n")


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    jobs = [cases.job("picture", path=p) for p in cases.pictures(FOLDER, (9, 14))]
    cases.saved(FOLDER, "tall.png", cases.scene(7, 40, 17))
    cases.saved(FOLDER, "wide.png", cases.scene(8, 19, 33))
    for path in ("tall.png", "wide.png"):
        for f in cases.FILTERS.values():
            jobs += [cases.job("resize", path=path, height=h, width=w, filter=f) for h, w in ((12, 9), (30, 40), (7, 16))]
    small = {"height": 8, "width": 6}
    for name in cases.KINDS:
        settings = {"image_processor_type": name + "ImageProcessor", "size": {"shortest_edge": 8} if name in ("CLIP", "ConvNext", "Bit") else small, "size_divisor": 9}
        jobs.append(cases.job("process", paths=["tall.png"], settings={**settings, "crop_size": 7}))
    jobs += [cases.job("labels", paths=["grey.png"], settings={"image_processor_type": k + "ImageProcessor", "size": 8, "do_reduce_labels": True}) for k in ("Segformer", "Beit")]
    sounds = cases.sounds(FOLDER, 0.02)
    jobs += [cases.job("waveform", path=p) for p in sounds]
    tensors = {}
    for i, one in enumerate(jobs):
        tensors[f"{i}.value"] = np.ascontiguousarray(cases.expected(one, FOLDER)["value"])
    soundfile.write(os.path.join(FOLDER, "long.wav"), cases.tones(1, 0.13, 16000)[:, 0], 16000)
    soundfile.write(os.path.join(FOLDER, "short.wav"), cases.tones(2, 0.06, 16000)[:, 0], 16000)
    both, kinds = ["long.wav", "short.wav"], (("Whisper", {"chunk_length": 1}), ("Wav2Vec2", {}), ("Speech2Text", {}))
    for name, settings in kinds:
        one = cases.job("features", paths=both, settings={"feature_extractor_type": name + "FeatureExtractor", **settings}, attention_mask=True, whole=name == "Whisper")
        exact, _, mask = cases.features(one, FOLDER)
        tensors[f"{len(jobs)}.value"], tensors[f"{len(jobs)}.attention_mask"] = exact.astype(np.float32), np.ascontiguousarray(mask, np.int32)
        jobs.append(one)
    for rate in (8000, 22050):
        tensors[f"{len(jobs)}.value"] = cases.resample(cases.as_heard(os.path.join(FOLDER, "short.wav"))[0], 16000, rate).astype(np.float32)
        jobs.append(cases.job("resample", path="short.wav", rate=rate))
    with open(os.path.join(FOLDER, "jobs.json"), "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(one) for one in jobs) + "\n]\n")
    safetensors.numpy.save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, os.path.join(FOLDER, "expected.safetensors"))
    ctc()
    size = sum(os.path.getsize(os.path.join(FOLDER, f)) for f in os.listdir(FOLDER))
    print(f"{len(jobs)} jobs, {size} bytes")


if __name__ == "__main__":
    main()
