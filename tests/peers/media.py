#!/usr/bin/env python3
"""Pictures and sound (src/media) against Pillow, soundfile, numpy in float64 and transformers' PIL image processors and feature extractors, live.

Pictures: every kind of PNG, JPEG and WebP file must have the bytes that transformers' load_image gives; resizing with each filter, Pillow's bytes; what goes
into a model, transformers' numbers to 1e-6 and, before floats, its bytes. Sound: samples as libsndfile gives them; resampling and features within 1e-6 of the
formula in float64, and no further from it than transformers is. Broken and oversized files are one error.
--all takes more sizes and sounds; --only NAME one part.
"""
import json
import os
import subprocess
import sys

import numpy as np
import safetensors.numpy

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import media_cases as cases  # noqa: E402
from parts import BUILD, check, main  # noqa: E402


def run(folder, jobs):
    """For each job a dict of arrays, or the text of its error."""
    with open(os.path.join(folder, "jobs.json"), "w") as f:
        json.dump(jobs, f)
    subprocess.run([os.path.join(BUILD, "bin", "media_peer"), folder], check=True)
    tensors = safetensors.numpy.load_file(os.path.join(folder, "calque.safetensors"))
    errors = json.load(open(os.path.join(folder, "errors.json")))
    out = [errors.get(str(i), {}) for i in range(len(jobs))]
    for name, value in tensors.items():
        number, key = name.split(".", 1)
        out[int(number)][key] = value
    return out


def difference(found, wanted):
    """Nothing, or how two arrays differ: bytes must be the same, floats within 1e-6."""
    if isinstance(found, str):
        return found
    if found.shape != wanted.shape:
        return f"shape {found.shape} instead of {wanted.shape}"
    if found.dtype != wanted.dtype:
        return f"{found.dtype} instead of {wanted.dtype}"
    far = np.abs(found.astype(np.float64) - wanted).max() if wanted.size else 0
    if far > (1e-6 if wanted.dtype == np.float32 else 0):
        return f"{far} away, {np.mean(found != wanted):.3%} of the numbers"


def compare(folder, name, jobs):
    wrong = []
    for one, found in zip(jobs, run(folder, jobs)):
        wanted = cases.expected(one, folder)
        if wanted is None:
            if not isinstance(found, str):
                wrong.append(f"{one}: transformers refuses it, Calque does not")
            continue
        how = difference(found if isinstance(found, str) else found["value"], wanted["value"])
        if how:
            wrong.append(f"{one}: {how}")
    check(f"{name} ({len(jobs)})", wrong)


def reading(folder, args):
    sizes = [(41, 57), (64, 64), (7, 300), (1, 1), (15, 16)] if args.all else [(41, 57)]
    for size in sizes:
        compare(folder, f"pictures of {size[0]} x {size[1]}", [cases.job("picture", path=p) for p in cases.pictures(folder, size)])


def resizing(folder, args):
    jobs = []
    sizes = [(1, 1), (5, 7), (60, 40), (61, 97), (122, 194), (200, 31), (61, 13), (20, 97), (333, 500)]
    for h, w in ((61, 97), (3, 2), (1, 50)) + (((240, 320),) if args.all else ()):
        colours = cases.saved(folder, f"c{h}.png", cases.scene(5, h, w).reshape(h, w, 3))
        grey = cases.saved(folder, f"g{h}.png", cases.scene(6, h, w, 1).reshape(h, w))
        for height, width in sizes:
            for f in cases.FILTERS.values():
                jobs.append(cases.job("resize", path=colours, height=height, width=width, filter=f))
                jobs.append(cases.job("resize", path=grey, labels=True, height=height, width=width, filter=f))
    compare(folder, "resizing", jobs)


def processing(folder, args):
    shapes = [(50, 66), (71, 40), (64, 64)] + ([(300, 200), (20, 333), (385, 384)] if args.all else [])
    paths = [cases.saved(folder, f"p{i}.png", cases.scene(i, h, w)) for i, (h, w) in enumerate(shapes)]
    jobs = [cases.job("process", paths=[p], settings=s) for p in paths for s in cases.image_settings()]
    jobs += [cases.job("process", paths=paths, settings=s) for s in cases.image_settings()[:6]]
    jobs.append(cases.job("process", paths=paths, settings={"image_processor_type": "ViTImageProcessor", "size": {"shortest_edge": 20}, "do_pad": True, "pad_size": 40}))
    compare(folder, "image processors", jobs)


def labelling(folder, args):
    r = np.random.RandomState(1)
    jobs = []
    for i, (h, w) in enumerate([(50, 66), (71, 40)]):
        path = cases.saved(folder, f"labels{i}.png", np.repeat(np.repeat(r.randint(0, 256, (h // 5 + 1, w // 5 + 1)), 5, 0), 5, 1)[:h, :w].astype(np.uint8))
        for kind in ("Segformer", "Beit"):
            for reduce in (False, True):
                jobs.append(cases.job("labels", paths=[path], settings={"image_processor_type": kind + "ImageProcessor", "size": 33, "do_reduce_labels": reduce}))
    compare(folder, "maps of labels", jobs)


def files(folder, args):
    """Folders as both generations of transformers write them."""
    path = cases.saved(folder, "p.png", cases.scene(9, 40, 60))
    settings = {"image_processor_type": "CLIPImageProcessor", "size": 20, "crop_size": 18}
    old = {"feature_extractor_type": "CLIPFeatureExtractor", "size": 20, "crop_size": 18, "do_resize": True, "do_normalize": True}
    # processor_config.json counts before the other file.
    folders = {"old": {"preprocessor_config.json": old}, "fast": {"preprocessor_config.json": {**settings, "image_processor_type": "CLIPImageProcessorFast"}},
               "new": {"processor_config.json": {"image_processor": settings, "processor_class": "CLIPProcessor"}, "preprocessor_config.json": {**settings, "size": 99}},
               "unnamed": {"preprocessor_config.json": {k: v for k, v in old.items() if "type" not in k}, "config.json": {"model_type": "clip"}}}
    jobs = []
    for name, content in folders.items():
        os.makedirs(os.path.join(folder, name))
        for file, value in content.items():
            with open(os.path.join(folder, name, file), "w") as f:
                json.dump(value, f)
        jobs.append(cases.job("process", paths=[path], settings=settings, folder=name))
    compare(folder, "settings in folders", jobs)


def hearing(folder, args):
    paths = cases.sounds(folder, 5 if args.all else 0.6)
    compare(folder, "sound files", [cases.job("waveform", path=p) for p in paths])
    rates = [8000, 16000, 11025, 22050, 44100, 48000] if args.all else [8000, 16000, 44100]
    jobs = [cases.job("resample", path=p, rate=r) for p in ("s16.wav", "s8.wav", "float.wav", "stereo.flac") for r in rates]
    wrong, worst = [], 0
    for one, found in zip(jobs, run(folder, jobs)):
        data, rate = cases.as_heard(os.path.join(folder, one["path"]))
        wanted = data.astype(np.float64) if rate == one["rate"] else cases.resample(data, rate, one["rate"])
        how = difference(found if isinstance(found, str) else found["value"], wanted.astype(np.float32))
        worst = max(worst, 0 if how else np.abs(found["value"] - wanted).max())
        if how:
            wrong.append(f"{one}: {how}")
    check(f"resampling, worst {worst:.1e} from the formula ({len(jobs)})", wrong)


def features(folder, args):
    whisper, wav2vec2, speech = ({"feature_extractor_type": n + "FeatureExtractor"} for n in ("Whisper", "Wav2Vec2", "Speech2Text"))
    import soundfile
    paths = []
    for i, seconds in enumerate([1.31, 2.5, 0.4] + ([31.2, 30.0] if args.all else [])):
        paths.append(f"f{i}.wav")
        soundfile.write(os.path.join(folder, paths[-1]), cases.tones(i, seconds, 16000)[:, 0], 16000, subtype="PCM_16")
    jobs = []
    for chunk in ({"chunk_length": 2}, {"chunk_length": 3, "feature_size": 128}, {"chunk_length": 1, "n_fft": 512, "hop_length": 128}) + (({},) if args.all else ()):
        jobs += [cases.job("features", paths=[p], settings={**whisper, **chunk}) for p in paths]
    jobs += [cases.job("features", paths=paths, settings={**whisper, "chunk_length": 2}, attention_mask=True),
             cases.job("features", paths=paths, settings={**whisper, "chunk_length": 2}, attention_mask=True, whole=True)]
    for s in (wav2vec2, {**wav2vec2, "do_normalize": False}, {**wav2vec2, "return_attention_mask": True}, speech, {**speech, "normalize_vars": False}, {**speech, "num_mel_bins": 40},
              {**speech, "do_ceptral_normalize": False}, {**speech, "padding_value": 1.5}):
        jobs += [cases.job("features", paths=[p], settings=s, attention_mask=True) for p in paths] + [cases.job("features", paths=paths, settings=s, attention_mask=True)]
    wrong, worst = [], 0
    for one, found in zip(jobs, run(folder, jobs)):
        if isinstance(found, str):
            wrong.append(f"{one}: {found}")
            continue
        exact, theirs, mask = cases.features(one, folder)
        if found["value"].shape != theirs.shape:
            wrong.append(f"{one}: shape {found['value'].shape} instead of {theirs.shape}")
            continue
        ours, other = np.abs(found["value"] - exact).max(), np.abs(theirs - exact).max()
        scale = max(1, np.abs(exact).max())
        worst = max(worst, ours / scale)
        if ours > 1e-6 * scale or ours > other + 6e-8 * scale:
            wrong.append(f"{one}: {ours:.1e} from the formula, transformers {other:.1e}")
        if mask is not None and not np.array_equal(found.get("attention_mask"), mask):
            wrong.append(f"{one}: another mask")
    check(f"features, worst {worst:.1e} from the formula ({len(jobs)})", wrong)


def refusing(folder, args):
    cases.pictures(folder)
    cases.sounds(folder)
    import struct
    jobs, wanted = [], []
    for name in ("rgb.png", "420.jpg", "progressive.jpg", "lossy.webp"):
        data = open(os.path.join(folder, name), "rb").read()
        jobs.append(cases.job("picture", path=cases.written(folder, "half_" + name, data[: len(data) // 2])))
        wanted.append("half_" + name)
    jobs.append(cases.job("picture", path=cases.written(folder, "bomb.png", cases.png_chunks(struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0), [b""]))))
    wanted.append("60000 x 60000 pixels; at most 178956970")
    jobs.append(cases.job("picture", path=cases.written(folder, "text.png", b"no picture")))
    wanted.append("neither PNG nor JPEG nor WebP")
    data = open(os.path.join(folder, "flac.flac"), "rb").read()
    jobs.append(cases.job("waveform", path=cases.written(folder, "half.flac", data[: len(data) // 2])))
    wanted.append("half.flac")
    jobs.append(cases.job("waveform", path=cases.written(folder, "text.wav", b"no sound")))
    wanted.append("text.wav")
    jobs.append(cases.job("process", paths=["rgb.png"], settings={"image_processor_type": "OtherImageProcessor"}))
    wanted.append("OtherImageProcessor")
    check(f"what is refused ({len(jobs)})", [f"{j}: {f}" for j, f, w in zip(jobs, run(folder, jobs), wanted) if not isinstance(f, str) or w not in f])


PARTS = (reading, resizing, processing, labelling, files, hearing, features, refusing)


if __name__ == "__main__":
    sys.exit(main(PARTS, __doc__, "more sizes and sounds"))
