#!/usr/bin/env python3
"""Tokenizers against Hugging Face's tokenizers library, live: python tests/peers/tokenizer.py [PROGRAM] [--all] [--time]

The same lines of mixed text (words of many scripts, emoji, code, white space, control characters, added tokens; a fixed seed)
are encoded and decoded by both: with tiny-lm's tokenizer, and with tokenizers of all kinds that the library trains here. Ids,
offsets, tokens, type ids, special tokens masks and decoded texts must be equal, all of them.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from tokenizers import Tokenizer  # noqa: E402

import tokenizer_texts  # noqa: E402

TINY = os.path.join(HERE, "..", "..", "assets", "tiny-lm", "tokenizer.json")


def calque(program, tokenizer_file, inputs, folder):
    """What Calque makes of texts, bytes or pairs of texts."""
    def hexadecimal(x):
        return (x if isinstance(x, bytes) else x.encode()).hex()

    given, made = os.path.join(folder, "lines"), os.path.join(folder, "out")
    with open(given, "w") as f:
        for x in inputs:
            f.write((" ".join(map(hexadecimal, x)) if isinstance(x, tuple) else hexadecimal(x)) + "\n")
    subprocess.run([program, tokenizer_file, given, made], check=True)
    with open(made) as f:
        return [json.loads(line) for line in f]


def library(tokenizer, inputs):
    texts = [x.decode(errors="replace") if isinstance(x, bytes) else x for x in inputs]
    out = []
    for e in tokenizer.encode_batch(texts):
        out.append({"ids": e.ids, "offsets": [list(o) for o in e.offsets], "tokens": e.tokens, "type_ids": e.type_ids,
                    "special": e.special_tokens_mask, "decoded": tokenizer.decode(e.ids, skip_special_tokens=False),
                    "skipped": tokenizer.decode(e.ids), "streamed": True, "fast": True})
    return out


def compare(name, program, tokenizer, inputs, folder):
    path = os.path.join(folder, "tokenizer.json")
    tokenizer.save(path)
    found, expected = calque(program, path, inputs, folder), library(tokenizer, inputs)
    assert len(found) == len(expected)
    wrong = [(i, key) for i, (a, b) in enumerate(zip(found, expected)) for key in b if a[key] != b[key]]
    lines = len({i for i, _ in wrong})
    print(f"{name:45} {len(inputs):6} lines, {sum(len(e['ids']) for e in expected):8} tokens, {lines} differ", flush=True)
    for i, key in wrong[:3]:
        print(f"  DIFFERENT {key} of {ascii(inputs[i])[:300]}\n    found    {ascii(found[i][key])[:400]}\n"
              f"    expected {ascii(expected[i][key])[:400]}")
    return not wrong


def timing(program, tokenizer, name, texts, folder):
    path, given = os.path.join(folder, "tokenizer.json"), os.path.join(folder, "lines")
    tokenizer.save(path)
    with open(given, "w") as f:
        f.writelines(x.encode().hex() + "\n" for x in texts)
    ids, everything = map(float, subprocess.run([program, "--time", path, given], check=True, capture_output=True,
                                                text=True).stdout.split())
    best = 1e9
    for _ in range(5):
        start = time.perf_counter()
        for x in texts:
            tokenizer.encode(x)
        best = min(best, time.perf_counter() - start)
    size = sum(len(x.encode()) for x in texts) / 1e6
    print(f"{name:12} {size:.1f} MB on one thread: tokenizers {size / best:6.2f} MB/s, Calque {size / everything:6.2f} MB/s "
          f"({best / everything:.1f}x), ids alone {size / ids:6.2f} MB/s ({best / ids:.1f}x)")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?", default=os.path.join(os.environ.get("CALQUE_BUILD", ""), "bin/tokenizer_peer"))
    parser.add_argument("--all", action="store_true", help="10,000 lines for every tokenizer")
    parser.add_argument("--time", action="store_true", help="speeds as well")
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"

    texts = tokenizer_texts.lines(10000, 1)
    main_ones = {"tiny-lm", "gpt2", "llama 3", "qwen 2"}
    kinds = {"tiny-lm": Tokenizer.from_file(TINY)}
    kinds.update(tokenizer_texts.tokenizers_of_all_kinds(tokenizer_texts.lines(2000, 2)))
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name, tokenizer in kinds.items():
            mine = texts if args.all or name in main_ones else texts[:1500]
            results.append(compare(name, args.program, tokenizer, mine, folder))
            pairs = [(texts[i], texts[-i]) for i in range(20, 120)]
            results.append(compare(name + ", pairs", args.program, tokenizer, pairs, folder))
        for name in main_ones:
            results.append(compare(name + ", wrong UTF-8", args.program, kinds[name], tokenizer_texts.broken(1000, 3), folder))
        if args.time:
            prose = [" ".join(tokenizer_texts.WORDS) + "." for _ in range(3000)]
            for name in sorted(main_ones):
                timing(args.program, kinds[name], name, texts, folder)
                timing(args.program, kinds[name], name + " prose", prose, folder)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
