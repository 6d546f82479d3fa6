#!/usr/bin/env python3
"""Makes tests/text/golden/tokenizers.jsonl with the tokenizers library: a tokenizer of each kind with few merges, and what it
makes of some lines of mixed text.

    python tools/golden/tokenizer_golden.py tests/text/golden/tokenizers.jsonl
"""
import json
import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "peers"))

from tokenizers import Tokenizer  # noqa: E402

import tokenizer_texts  # noqa: E402


def expected(tokenizer, text):
    e = tokenizer.encode(text)
    return {"text": text, "ids": e.ids, "offsets": [x for o in e.offsets for x in o],
            "decoded": tokenizer.decode(e.ids, skip_special_tokens=False), "skipped": tokenizer.decode(e.ids)}


def main():
    texts = [t for t in tokenizer_texts.lines(400, 5) if len(t) < 90]
    kinds = {"tiny-lm": Tokenizer.from_file(os.path.join(ROOT, "assets", "tiny-lm", "tokenizer.json"))}
    kinds.update(tokenizer_texts.tokenizers_of_all_kinds(tokenizer_texts.lines(600, 6), smallest=True))
    with open(sys.argv[1], "w") as out:
        for name, tokenizer in kinds.items():
            tiny = name == "tiny-lm"
            line = {"name": name, "tokenizer": None if tiny else json.loads(tokenizer.to_str()),
                    "vocab_size": tokenizer.get_vocab_size(), "lines": [expected(tokenizer, t) for t in texts[:150 if tiny else 15]]}
            out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
