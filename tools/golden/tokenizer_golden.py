#!/usr/bin/env python3
"""Makes tests/text/golden/tokenizers.jsonl and batches.jsonl with the tokenizers library: a tokenizer of each kind with few
tokens, and what it makes of some lines of mixed text, one by one and as batches that are cut and padded.

    python tools/golden/tokenizer_golden.py tests/text/golden
"""
import json
import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "peers"))

from tokenizers import Tokenizer  # noqa: E402

import tokenizer_batches  # noqa: E402
import tokenizer_kinds  # noqa: E402
import tokenizer_texts  # noqa: E402


def expected(tokenizer, text):
    e = tokenizer.encode(text)
    return {"text": text, "ids": e.ids, "offsets": [x for o in e.offsets for x in o],
            "decoded": tokenizer.decode(e.ids, skip_special_tokens=False), "skipped": tokenizer.decode(e.ids)}


def main():
    texts = [t for t in tokenizer_texts.lines(400, 5) if len(t) < 90]
    kinds = {"tiny-lm": Tokenizer.from_file(os.path.join(ROOT, "assets", "tiny-lm", "tokenizer.json"))}
    kinds.update(tokenizer_texts.tokenizers_of_all_kinds(tokenizer_texts.lines(600, 6), smallest=True))
    kinds.update(tokenizer_kinds.tokenizers_of_other_kinds(tokenizer_texts.lines(600, 6), smallest=True))
    with open(os.path.join(sys.argv[1], "tokenizers.jsonl"), "w") as out:
        for name, tokenizer in kinds.items():
            tiny = name == "tiny-lm"
            line = {"name": name, "tokenizer": None if tiny else json.loads(tokenizer.to_str()),
                    "vocab_size": tokenizer.get_vocab_size(), "lines": [expected(tokenizer, t) for t in texts[:150 if tiny else 15]]}
            out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
    texts = [t for t in texts if 12 < len(t) < 28][:3]
    pairs = list(zip(texts, reversed(texts)))
    with open(os.path.join(sys.argv[1], "batches.jsonl"), "w") as out:
        for name, pad in (("bert", "[PAD]"), ("roberta", "<s>"), ("llama 2", "</s>"), ("t5", "<pad>")):
            tokenizer = kinds[name]
            described = json.loads(tokenizer.to_str())
            for inputs, all_options in ((texts, tokenizer_batches.OPTIONS), (pairs, tokenizer_batches.OPTIONS + tokenizer_batches.PAIR_OPTIONS)):
                cases = [dict(options=o, **tokenizer_batches.batch(tokenizer, inputs, o, pad)) for o in all_options if "pad_to" not in o]
                cases = [c for c in cases if "error" in c or len(c["rows"]) <= 30]  # of two texts that overflow, there are many
                line = {"name": name, "pad": pad, "tokenizer": described, "inputs": inputs, "cases": cases}
                out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
