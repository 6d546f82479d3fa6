#!/usr/bin/env python3
"""Makes tests/text/golden/legacy.jsonl with transformers: small model folders without a tokenizer.json, and the tokenizer.json that their class
writes; and legacy_ids.jsonl, what classes give that exist in Python alone. The SentencePiece models among them are the seeds of the fuzzer (fuzz/corpus/sentencepiece).

    python tools/golden/legacy_tokenizers.py          with transformers 5 and tiktoken
    python tools/golden/legacy_tokenizers.py          with transformers 4.40: legacy_ids_4_40.jsonl
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
import transformers  # noqa: E402
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
    ranks = "".join(f"{base64.b64encode(t.encode()).decode()} {i}\n" for i, t in enumerate([*"aceht ", "th", "he", "the", " the", "at"]))
    yield "tiktoken", {"tokenizer.model": ranks}, {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|a|>", "added_tokens_decoder": {
        "13": {"content": "<|a|>", "lstrip": False, "rstrip": False, "normalized": False, "single_word": False, "special": True}}}, {
        "model_type": "llama"}


# Sigmas at the ends of words, and not, with what may stand between letters.
SIGMAS = ["\u0391\u03a3 \u03a3\u0391\u03a3 \u03a3", "\u0391\u03a3:\u0392 \u0391:\u03a3 :\u03a3", "\u0391\u03a3'\u0392.\u03a3,\u0391\u03a3\u0301\u0392 \u2163\u03a3"]


def python_cases():
    """Classes of Python alone: name, files, tokenizer_config.json, config.json, texts."""
    tokens = ["__null__", "__start__", "__end__", "__unk__", "the", "th@@", "h@@", "t@@", "e@@", "a", "at", "c@@", "cat", "it", "'", "s",
              "__newln__", ".", ",", "!", "...@@", "\u03b1@@", "\u03c2", "\u03c3", "\u03c3@@", "\u03b2", ":@@"]
    merges = "#version: 0.2\nt h\nth e</w>\na t</w>\nc at</w>\ni t</w>\n"
    newline = "_ _\n__ n\n__n e\n__ne w\n__new l\n__newl n\n__newln __</w>\n_ _</w>\n"
    yield "blenderbot-small", {"vocab.json": json.dumps({t: i for i, t in enumerate(tokens)}), "merges.txt": merges + newline}, {
        "tokenizer_class": "BlenderbotSmallTokenizer"}, {"model_type": "blenderbot-small"}, [
        "The cat's at the cat.", "that  , it!a", "It.\nit", "the\n\ncat\n", "it'\nthe", "", "x the\u00e9", *SIGMAS]
    letters = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ETAHC'"]
    yield "wav2vec2", {"vocab.json": json.dumps({t: i for i, t in enumerate(letters)})}, {
        "tokenizer_class": "Wav2Vec2CTCTokenizer", "do_lower_case": True}, {"model_type": "wav2vec2"}, ["the cat", "A  Cat\n\u00df", ""]
    yield "plbart", {"sentencepiece.bpe.model": model()}, {"tokenizer_class": "PLBartTokenizer", "src_lang": "python"}, {
        "model_type": "plbart"}, ["the cat", "that is the cat , and . ?", " that  is\uff21 \u4e2d\u4e2d", ""]


def old_python_cases():
    """Of transformers 4.40, which was the last to have it for long."""
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "the", "th@@", "e@@", "at", "c@@", "cat", "a"]
    merges = "t h 9\nth e</w> 8\na t</w> 7\nc at</w> 6\n"
    yield "speech_to_text_2", {"vocab.json": json.dumps({t: i for i, t in enumerate(tokens)}), "merges.txt": merges}, {
        "tokenizer_class": "Speech2Text2Tokenizer", "do_lower_case": True}, {"model_type": "speech_to_text_2"}, [
        "The cat", "that\tthe  cat", "a\x1ccat ecat", ""]


def write_folder(folder, files):
    for file, content in files.items():
        with open(os.path.join(folder, file), "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())


def stored(files):
    return {f: c if isinstance(c, str) else {"base64": base64.b64encode(c).decode()} for f, c in files.items()}


def write_python_cases(cases, file):
    with open(os.path.join(ROOT, "tests", "text", "golden", file), "w") as out:
        for name, files, tokenizer_config, config, texts in cases:
            files = {**files, "tokenizer_config.json": json.dumps(tokenizer_config), "config.json": json.dumps(config)}
            with tempfile.TemporaryDirectory() as folder:
                write_folder(folder, files)
                tokenizer = AutoTokenizer.from_pretrained(folder)
            rows = []
            for text in texts:
                ids = tokenizer.encode(text)
                rows.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=True)})
            out.write(json.dumps({"name": name, "files": stored(files), "texts": rows}, separators=(",", ":")) + "\n")


def main():
    if transformers.__version__.startswith("4.40"):
        return write_python_cases(old_python_cases(), "legacy_ids_4_40.jsonl")
    write_python_cases(python_cases(), "legacy_ids.jsonl")
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
                write_folder(folder, files)
                for file, content in files.items():
                    if file.endswith(".model") and isinstance(content, bytes):
                        with open(os.path.join(seeds, name.split(",")[0].replace(" ", "_")), "wb") as f:
                            f.write(content)
                tokenizer = AutoTokenizer.from_pretrained(folder)
            line = {"name": name, "files": stored(files),
                    "document": json.loads(tokenizer.backend_tokenizer.to_str())}
            out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
