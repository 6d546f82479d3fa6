"""Called by ./run: BUILD THREADS."""
import json
import os
import subprocess
import sys
import tempfile
import time

build, threads = sys.argv[1], sys.argv[2]
os.environ["OMP_NUM_THREADS"] = os.environ["CALQUE_NUM_THREADS"] = threads
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "peers"))

import numpy as np  # noqa: E402
import soundfile  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from transformers.image_utils import load_image  # noqa: E402

import media_cases as cases  # noqa: E402

torch.set_num_threads(int(threads))
RUNS = 15


def fastest(fn):
    best = 1e9
    for _ in range(RUNS):
        start = time.perf_counter()
        fn()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


with tempfile.TemporaryDirectory() as folder:
    cases.saved(folder, "photo.jpg", cases.scene(1, 768, 1024), quality=90)
    soundfile.write(os.path.join(folder, "speech.wav"), cases.tones(1, 30, 16000)[:, 0], 16000)
    vit, whisper = {"image_processor_type": "ViTImageProcessor"}, {"feature_extractor_type": "WhisperFeatureExtractor"}
    jobs = [cases.job("picture", path="photo.jpg"), cases.job("process", paths=["photo.jpg"], settings=vit), cases.job("waveform", path="speech.wav"),
            cases.job("features", paths=["speech.wav"], settings=whisper)]
    with open(os.path.join(folder, "jobs.json"), "w") as f:
        json.dump(jobs, f)
    processor, extractor = cases.processor(vit), transformers.WhisperFeatureExtractor()
    path, wav = os.path.join(folder, "photo.jpg"), os.path.join(folder, "speech.wav")
    ours, theirs = [1e9] * 4, [1e9] * 4
    for _ in range(3):  # in turns
        subprocess.run([os.path.join(build, "bin", "media_peer"), folder, "--time", str(RUNS)], check=True)
        ours = [min(a, b) for a, b in zip(ours, json.load(open(os.path.join(folder, "times.json"))))]
        calls = [lambda: np.array(load_image(path)), lambda: processor(load_image(path), return_tensors="np"), lambda: soundfile.read(wav, dtype="float32"),
                 lambda: extractor(soundfile.read(wav, dtype="float32")[0], sampling_rate=16000, return_tensors="np")]
        theirs = [min(a, fastest(c)) for a, c in zip(theirs, calls)]
    print(f"{threads} thread(s), ms: Calque, transformers {transformers.__version__} with torch {torch.__version__}, theirs / ours")
    for name, a, b in zip(("JPEG 1024 x 768 decoded", "JPEG 1024 x 768 to 224 x 224 floats", "WAV of 30 s read", "WAV of 30 s to log-mel"), ours, theirs):
        print(f"{name:40} {a:8.2f} {b:8.2f} {b / a:6.2f}")
    print(f"{'224 x 224 floats without decoding':40} {ours[1] - ours[0]:8.2f} {theirs[1] - theirs[0]:8.2f} {(theirs[1] - theirs[0]) / (ours[1] - ours[0]):6.2f}")
    print(f"{'log-mel without reading':40} {ours[3] - ours[2]:8.2f} {theirs[3] - theirs[2]:8.2f} {(theirs[3] - theirs[2]) / (ours[3] - ours[2]):6.2f}")
