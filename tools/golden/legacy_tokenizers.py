#!/usr/bin/env python3
"""Makes tests/text/golden/legacy.jsonl with transformers: small model folders without a tokenizer.json, and the tokenizer.json that their class
writes. The SentencePiece models among them are the seeds of the fuzzer (fuzz/corpus/sentencepiece).

    python tools/golden/legacy_tokenizers.py
"""
import base64
import io
import json
import os
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "peers"))
os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_OFFLINE="1")

import sentencepiece  # noqa: E402
from sentencepiece import sentencepiece_model_pb2  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402

TEXT = ["the cat sat on the mat", "a cat and a hat", "that is that", "the hat on the cat", "it sat there, and then it sat here"]
# A normalizer of two rules: its trie takes a few bytes, where those that sentencepiece brings take 240 KB.
RULES = "FF21\t41\nFB01\t66 69\n"


def model(kind="unigram", size=48, rules=True, **options):
    out = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as f:
        f.write(RULES)
        f.flush()
        if rules:
            options["normalization_rule_tsv"] = f.name
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(TEXT * 8), model_writer=out, vocab_size=size, model_type=kind,
                                                 hard_vocab_limit=False, num_threads=1, minloglevel=2, **options)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(out.getvalue())
    proto.normalizer_spec.normalization_rule_tsv = ""  # the temporary file's name
    return proto.SerializeToString(deterministic=True)


def bpe(*specials):
    tokens = list(specials) + ["a", "c", "e", "h", "n", "o", "s", "t", "\u0120", "th", "the", "\u0120the", "at", "\u0120c"]
    merges = ["t h", "th e", "\u0120 the", "a t", "\u0120 c"]
    return {"vocab.json": json.dumps({t: i for i, t in enumerate(tokens)}), "merges.txt": "#version: 0.2\n" + "\n".join(merges) + "\n"}


def cases():
    words = "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "s", "##at", "##s", "na\u00efve "]) + "\n"
    yield "bert", {"vocab.txt": words}, {"tokenizer_class": "BertTokenizer"}, {"model_type": "bert"}
    yield "bert by its model type, cased", {"vocab.txt": words}, {"do_lower_case": False}, {"model_type": "bert"}
    yield "bert with files for special and added tokens", {
        "vocab.txt": words, "added_tokens.json": json.dumps({"<x>": 11, "the": 5, "Z": 12}),
        "special_tokens_map.json": json.dumps({"mask_token": {"content": "[MASK]", "lstrip": True, "rstrip": False, "normalized": False,
                                                              "single_word": False}, "additional_special_tokens": ["<x>"]})}, {
        "tokenizer_class": "BertTokenizer"}, {"model_type": "bert"}
    yield "gpt2 with a bos token", bpe("<|endoftext|>"), {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True}, {"model_type": "gpt2"}
    yield "roberta", bpe("<s>", "<pad>", "</s>", "<unk>", "<mask>"), {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": True}, {
        "model_type": "roberta"}
    yield "clip", bpe("<|startoftext|>", "<|endoftext|>"), {"tokenizer_class": "CLIPTokenizer"}, {"model_type": "clip"}
    pieces = model(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    yield "t5", {"spiece.model": pieces}, {"tokenizer_class": "T5Tokenizer", "extra_ids": 3}, {"model_type": "t5"}
    yield "xlm-roberta", {"sentencepiece.bpe.model": model()}, {"tokenizer_class": "XLMRobertaTokenizer"}, {"model_type": "xlm-roberta"}
    yield "mbart", {"sentencepiece.bpe.model": model(rules=False, normalization_rule_name="identity")}, {
        "tokenizer_class": "MBartTokenizer", "src_lang": "de_DE"}, {"model_type": "mbart"}
    yield "albert", {"spiece.model": model(pad_id=0, unk_id=1, bos_id=2, eos_id=3, bos_piece="[CLS]", eos_piece="[SEP]",
                                          control_symbols=["[MASK]"], user_defined_symbols=["("])}, {"tokenizer_class": "AlbertTokenizer"}, {
        "model_type": "albert"}
    llama = model("bpe", 40 + 256, byte_fallback=True, rules=False, normalization_rule_name="identity")
    yield "llama", {"tokenizer.model": llama}, {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True}, {"model_type": "llama"}
    yield "llama, legacy, for a model type of no class", {"tokenizer.model": llama}, {"tokenizer_class": "LlamaTokenizer", "legacy": True}, {
        "model_type": "mistral"}
    yield "nllb", {"sentencepiece.bpe.model": model("bpe")}, {"tokenizer_class": "NllbTokenizer",
                                                              "additional_special_tokens": ["eng_Latn"]}, {"model_type": "nllb"}


def main():
    seeds = os.path.join(ROOT, "fuzz", "corpus", "sentencepiece")
    os.makedirs(seeds, exist_ok=True)
    hostile = {"empty_piece": b"\x0a\x00", "long_length": b"\x0a\xff\xff\xff\xff\x7f a", "nan": b"\x0a\x08\x0a\x01a\x15\x00\x00\xc0\x7f",
               "cut": model(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)[:700]}
    for name, data in hostile.items():
        with open(os.path.join(seeds, name), "wb") as f:
            f.write(data)
    with open(os.path.join(ROOT, "tests", "text", "golden", "legacy.jsonl"), "w") as out:
        for name, files, tokenizer_config, config in cases():
            files = {**files, "tokenizer_config.json": json.dumps(tokenizer_config), "config.json": json.dumps(config)}
            with tempfile.TemporaryDirectory() as folder:
                for file, content in files.items():
                    data = content if isinstance(content, bytes) else content.encode()
                    with open(os.path.join(folder, file), "wb") as f:
                        f.write(data)
                    if file.endswith(".model"):
                        with open(os.path.join(seeds, name.split(",")[0].replace(" ", "_")), "wb") as f:
                            f.write(data)
                tokenizer = AutoTokenizer.from_pretrained(folder)
            line = {"name": name, "files": {f: c if isinstance(c, str) else {"base64": base64.b64encode(c).decode()} for f, c in files.items()},
                    "document": json.loads(tokenizer.backend_tokenizer.to_str())}
            out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
