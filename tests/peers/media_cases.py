"""Pictures, sounds and jobs for tests/peers/media.py and tools/golden/media.py, and what Pillow, soundfile, numpy and transformers make of them."""
import importlib
import io
import json
import math
import os
import struct
import zlib

import numpy as np
import PIL.Image
import soundfile

FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
KINDS = {"ViT": "vit", "DeiT": "deit", "CLIP": "clip", "ChineseCLIP": "chinese_clip", "Bit": "bit", "Siglip": "siglip", "Blip": "blip", "OwlViT": "owlvit",
         "Pvt": "pvt", "MobileNetV1": "mobilenet_v1", "Chameleon": "chameleon", "ConvNext": "convnext", "Segformer": "segformer", "Beit": "beit",
         "Donut": "donut", "GLPN": "glpn"}


def processor(settings):
    name = settings["image_processor_type"].removesuffix("ImageProcessor")
    module = importlib.import_module(f"transformers.models.{KINDS[name]}.image_processing_pil_{KINDS[name]}")
    return getattr(module, name + "ImageProcessorPil")(**{k: v for k, v in settings.items() if k != "image_processor_type"})


# ---- pictures ----------------------------------------------------------------------------------------------------------------------------------

def scene(seed, height, width, channels=3):
    """Smooth shapes, an edge and some noise: every filter has something to do."""
    r = np.random.RandomState(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = []
    for c in range(channels):
        p = 128 + 90 * np.sin(x / (5 + 3 * c + seed % 4)) * np.cos(y / (7 + c)) + 40 * ((x + y * (c + 1)) % 37 > 18) + r.normal(0, 12, (height, width))
        planes.append(np.clip(p, 0, 255))
    return np.stack(planes, -1).astype(np.uint8).squeeze()


def png_chunks(header, rows, extra=()):
    """A PNG of bytes that Pillow cannot write: other depths, palettes, interlacing aside."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    body = b"".join(b"\0" + row for row in rows)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunk(n, d) for n, d in extra) + chunk(b"IDAT", zlib.compress(body, 9)) + chunk(b"IEND", b"")


def written(folder, name, data):
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)
    return name


def saved(folder, name, array, **options):
    PIL.Image.fromarray(array).save(os.path.join(folder, name), **options)
    return name


def interlaced(folder, name, array):
    """Adam7, which Pillow reads and does not write."""
    height, width = array.shape[:2]
    rows = []
    for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
        part = array[y0::dy, x0::dx]
        if part.size:
            rows += [row.tobytes() for row in part]
    return written(folder, name, png_chunks(struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1), rows))


def pictures(folder, size=(41, 57)):
    """Files of every kind that Pillow turns to RGB. Returns their names."""
    h, w = size
    r = np.random.RandomState(3)
    rgb = scene(1, h, w)
    out = [saved(folder, "rgb.png", rgb), saved(folder, "grey.png", scene(2, h, w, 1)), interlaced(folder, "interlaced.png", rgb)]
    alpha = np.concatenate([rgb, scene(4, h, w, 1)[..., None]], -1)
    out += [saved(folder, "alpha.png", alpha)]
    out += [saved(folder, "grey_alpha.png", np.stack([scene(2, h, w, 1), scene(4, h, w, 1)], -1))]
    PIL.Image.fromarray(rgb).quantize(17).save(os.path.join(folder, "palette.png"))
    PIL.Image.fromarray(rgb).quantize(3).save(os.path.join(folder, "palette_few.png"), transparency=1)
    out += ["palette.png", "palette_few.png"]
    for depth in (1, 2, 4, 16):
        bits = r.randint(0, 2, (h, w * depth)).astype(np.uint8)
        if depth == 16:
            bits[: h // 2, : w * depth // 2] = 0
        out.append(written(folder, f"grey{depth}.png", png_chunks(struct.pack(">IIBBBBB", w, h, depth, 0, 0, 0, 0), [np.packbits(row).tobytes() for row in bits])))
    for name, colour, channels in (("rgb16.png", 2, 3), ("grey_alpha16.png", 4, 2), ("rgba16.png", 6, 4)):
        rows = [row.tobytes() for row in r.randint(0, 256, (h, w * channels * 2)).astype(np.uint8)]
        out.append(written(folder, name, png_chunks(struct.pack(">IIBBBBB", w, h, 16, colour, 0, 0, 0), rows)))
    for name, options in (("444.jpg", dict(quality=90, subsampling=0)), ("422.jpg", dict(quality=80, subsampling=1)), ("420.jpg", dict(quality=75, subsampling=2)),
                          ("progressive.jpg", dict(quality=60, progressive=True)), ("worst.jpg", dict(quality=5, optimize=True))):
        out.append(saved(folder, name, rgb, **options))
    out.append(saved(folder, "grey.jpg", scene(2, h, w, 1), quality=80))
    PIL.Image.fromarray(rgb).convert("CMYK").save(os.path.join(folder, "inks.jpg"), quality=85)
    out.append("inks.jpg")
    out += [saved(folder, "lossy.webp", rgb, quality=70), saved(folder, "lossless.webp", rgb, lossless=True), saved(folder, "alpha.webp", alpha, quality=80)]
    PIL.Image.fromarray(rgb).save(os.path.join(folder, "moving.webp"), save_all=True, append_images=[PIL.Image.fromarray(rgb[::-1].copy())], duration=50)
    out.append("moving.webp")
    for orientation in range(1, 9):
        exif = PIL.Image.Exif()
        exif[0x0112] = orientation
        out.append(saved(folder, f"turned{orientation}.jpg", rgb[:9, :14].copy(), quality=90, exif=exif.tobytes()))
    exif[0x0112] = 6
    out += [saved(folder, "turned.png", rgb[:9, :14].copy(), exif=exif.tobytes()), saved(folder, "turned.webp", rgb[:9, :14].copy(), exif=exif.tobytes())]
    out.append(saved(folder, "turned_xmp.jpg", rgb[:9, :14].copy(), xmp=b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><a tiff:Orientation="8"/></x:xmpmeta>'))
    return out


def as_loaded(path):
    from transformers.image_utils import load_image
    return load_image(path)


# ---- sounds ------------------------------------------------------------------------------------------------------------------------------------

def tones(seed, seconds, rate, channels=1):
    r = np.random.RandomState(seed)
    t = np.arange(int(seconds * rate)) / rate
    out = np.zeros((len(t), channels))
    for c in range(channels):
        for _ in range(6):
            out[:, c] += r.uniform(0.02, 0.2) * np.sin(2 * math.pi * r.uniform(80, 6000) * t + r.uniform(0, 6)) * (np.sin(t * r.uniform(1, 9)) > -0.5)
        out[:, c] += r.normal(0, 0.003, len(t))
    return np.clip(out, -0.99, 0.99).astype(np.float32)


def sounds(folder, seconds=0.6):
    out = []
    for name, rate, channels, options in (
            ("s16.wav", 16000, 1, dict(subtype="PCM_16")), ("s8.wav", 8000, 1, dict(subtype="PCM_U8")), ("s24.wav", 22050, 2, dict(subtype="PCM_24")),
            ("s32.wav", 16000, 1, dict(subtype="PCM_32")), ("float.wav", 44100, 2, dict(subtype="FLOAT")), ("double.wav", 16000, 1, dict(subtype="DOUBLE")),
            ("extensible.wav", 16000, 3, dict(subtype="PCM_16", format="WAVEX")), ("law.wav", 8000, 1, dict(subtype="ULAW")),
            ("flac.flac", 16000, 1, {}), ("stereo.flac", 48000, 2, dict(subtype="PCM_24")), ("vorbis.ogg", 16000, 1, {})):
        soundfile.write(os.path.join(folder, name), tones(len(name), seconds, rate, channels).squeeze(), rate, **options)
        out.append(name)
    return out


def as_heard(path):
    data, rate = soundfile.read(path, dtype="float32", always_2d=True)
    return data.mean(1), rate


def resample(x, start, to):
    """torchaudio.functional.resample's formula in float64."""
    common = math.gcd(start, to)
    o, n = start // common, to // common
    base = min(o, n) * 0.99
    width = math.ceil(6 * o / base)
    k = np.arange(-width, width + o)[None] / o
    t = np.clip((np.arange(0, -n, -1)[:, None] / n + k) * base, -6, 6)
    kernel = np.sinc(t) * np.cos(t * math.pi / 12) ** 2 * base / o
    x = np.pad(x.astype(np.float64), (width, width + o))
    blocks = (len(x) - kernel.shape[1]) // o + 1
    frames = np.lib.stride_tricks.as_strided(x, (blocks, kernel.shape[1]), (x.strides[0] * o, x.strides[0]))
    length = -(-(len(x) - 2 * width - o) * n // o)
    return (frames @ kernel.T).reshape(-1)[:length]


def mel_filters(**settings):
    from transformers.audio_utils import mel_filter_bank
    return mel_filter_bank(**settings)


def whisper_formula(x, length, bins=80, rate=16000, n=400, hop=160):
    """WhisperFeatureExtractor in float64 throughout."""
    x = np.pad(x[:length].astype(np.float64), (0, max(0, length - len(x))))
    x = np.pad(x, n // 2, mode="reflect")
    window = np.hanning(n + 1)[:-1]
    frames = np.lib.stride_tricks.sliding_window_view(x, n)[::hop][: length // hop]
    power = np.abs(np.fft.rfft(frames * window)) ** 2
    filters = mel_filters(num_frequency_bins=n // 2 + 1, num_mel_filters=bins, min_frequency=0.0, max_frequency=8000.0, sampling_rate=rate, norm="slaney", mel_scale="slaney")
    logs = np.log10(np.maximum(power @ filters, 1e-10)).T
    return (np.maximum(logs, logs.max() - 8) + 4) / 4


def kaldi_formula(x, bins=80, rate=16000, means=True, deviations=True):
    """Speech2TextFeatureExtractor in float64 throughout, as transformers computes it without torchaudio."""
    x = x.astype(np.float64) * 2 ** 15
    frames = np.lib.stride_tricks.sliding_window_view(x, 400)[::160].copy()
    frames -= frames.mean(1, keepdims=True)
    first = frames[:, :1] * (1 - 0.97)
    frames = np.concatenate([first, frames[:, 1:] - 0.97 * frames[:, :-1]], 1) * np.hanning(400) ** 0.85
    power = np.abs(np.fft.rfft(frames, 512)) ** 2
    filters = mel_filters(num_frequency_bins=257, num_mel_filters=bins, min_frequency=20, max_frequency=rate // 2, sampling_rate=rate, norm=None, mel_scale="kaldi",
                          triangularize_in_mel_space=True)
    logs = np.log(np.maximum(1.192092955078125e-07, power @ filters))
    if means:
        logs = logs - logs.mean(0)
    if deviations:
        logs = logs / logs.std(0)
    return logs


def normal_formula(x):
    x = x.astype(np.float64)
    return (x - x.mean()) / np.sqrt(x.var() + 1e-7)


def features(job, folder):
    """(formula in float64, transformers, mask) of a job; rows that are padded end with 0."""
    import transformers
    settings = dict(job["settings"])
    kind = settings.pop("feature_extractor_type")
    sounds = [as_heard(os.path.join(folder, p))[0] for p in job["paths"]]
    extractor = getattr(transformers, kind)(**settings)
    options = dict(sampling_rate=extractor.sampling_rate, return_tensors="np")
    if "attention_mask" in job:
        options["return_attention_mask"] = job["attention_mask"]
    if kind == "WhisperFeatureExtractor":
        if job.get("whole"):
            options.update(padding="longest", truncation=False)
        theirs = extractor(sounds if len(sounds) > 1 else sounds[0], **options)
        length = max(map(len, sounds)) if job.get("whole") else extractor.n_samples
        exact = np.stack([whisper_formula(s, length, extractor.feature_size, extractor.sampling_rate, extractor.n_fft, extractor.hop_length) for s in sounds])
        return exact, theirs["input_features"], theirs.get("attention_mask")
    theirs = extractor(sounds, padding=True, **options)
    if kind == "Wav2Vec2FeatureExtractor":
        rows = [normal_formula(s) if extractor.do_normalize else s for s in sounds]
    else:
        rows = [kaldi_formula(s, extractor.num_mel_bins, extractor.sampling_rate, extractor.do_ceptral_normalize and extractor.normalize_means,
                              extractor.do_ceptral_normalize and extractor.normalize_vars) for s in sounds]
    length = max(map(len, rows))
    exact = np.stack([np.pad(r, [(0, length - len(r))] + [(0, 0)] * (r.ndim - 1), constant_values=extractor.padding_value) for r in rows])
    return exact, theirs["input_values" if kind == "Wav2Vec2FeatureExtractor" else "input_features"], theirs.get("attention_mask")


# ---- jobs --------------------------------------------------------------------------------------------------------------------------------------

def image_settings():
    """Settings of processors: each class as it comes, and what its files can switch."""
    out = [{"image_processor_type": name + "ImageProcessor"} for name in KINDS]
    vit, clip, donut = ({"image_processor_type": n + "ImageProcessor"} for n in ("ViT", "CLIP", "Donut"))
    small = {"height": 32, "width": 24}
    out += [{**vit, "size": small, "resample": f} for f in FILTERS.values()]
    out += [{**vit, "size": 19}, {**vit, "size": [20, 31]}, {**vit, "size": {"shortest_edge": 30}}, {**vit, "size": {"shortest_edge": 30, "longest_edge": 33}},
            {**vit, "size": {"shortest_edge": 30, "longest_edge": 300}}, {**vit, "size": {"max_height": 50, "max_width": 40}},
            {**vit, "do_resize": False}, {**vit, "do_rescale": False, "size": small}, {**vit, "do_normalize": False, "size": small},
            {**vit, "do_rescale": False, "do_normalize": False, "size": small}, {**vit, "rescale_factor": 1 / 127.5, "image_mean": 1.0, "image_std": 1, "size": small},
            {**vit, "size": small, "do_pad": True, "pad_size": {"height": 40, "width": 44}}, {**vit, "do_center_crop": True, "crop_size": 33, "size": small}]
    out += [{**clip, "size": 20, "crop_size": 20}, {**clip, "size": {"shortest_edge": 20}, "crop_size": {"height": 31, "width": 18}}, {**clip, "do_resize": False, "crop_size": 77},
            {**clip, "do_resize": False, "crop_size": {"height": 25, "width": 90}}, {**clip, "use_square_size": True, "crop_size": 200}]
    out += [{"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 24}, "crop_pct": p} for p in (0.875, 0.95, 1.0)]
    out += [{"image_processor_type": "SegformerImageProcessor", "size": 37}, {"image_processor_type": "BeitImageProcessor", "size": 28, "do_center_crop": True, "crop_size": 22}]
    page = {"height": 60, "width": 45}
    out += [{**donut, "size": page, "do_align_long_axis": a, "do_thumbnail": t} for a in (False, True) for t in (False, True)]
    out += [{**donut, "size": [45, 60]}, {**donut, "size": page, "do_pad": False}, {"image_processor_type": "GLPNImageProcessor", "size_divisor": 7}]
    return out


def job(kind, **arguments):
    return {"do": kind, **arguments}


def expected(one, folder):
    """{name: array} of a job that has an exact answer, None where transformers refuses it."""
    path = os.path.join(folder, one["path"]) if "path" in one else ""
    if one["do"] == "picture":
        return {"value": np.array(as_loaded(path))}
    if one["do"] == "resize":
        image = PIL.Image.open(path) if one.get("labels") else as_loaded(path)
        out = np.array(image.resize((one["width"], one["height"]), one["filter"]))
        return {"value": out if out.ndim == 3 else out[..., None]}
    if one["do"] == "waveform":
        return {"value": as_heard(path)[0]}
    images = [as_loaded(os.path.join(folder, p)) for p in one["paths"]]
    try:
        if one["do"] == "process":
            return {"value": np.asarray(processor(one["settings"])(images, return_tensors="np")["pixel_values"])}
        maps = [PIL.Image.open(os.path.join(folder, p)) for p in one["paths"]]
        return {"value": np.asarray(processor(one["settings"])(images, segmentation_maps=maps, return_tensors="np")["labels"])}
    except ValueError:
        return None
