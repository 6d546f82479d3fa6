#!/usr/bin/env python3
"""Tokenizers of folders without a tokenizer.json, against transformers', live: python tests/peers/legacy_tokenizers.py [--all]

For each class a folder is made with the vocabulary files that it reads, trained here. The tokenizer.json that Calque makes of it must be
the document that AutoTokenizer.from_pretrained(folder).backend_tokenizer writes; then both encode and decode the same lines of mixed
text: ids, tokens, offsets, type ids, masks and texts must be equal.
"""
import argparse
import base64
import itertools
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
os.environ.update(TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error", HF_HUB_OFFLINE="1")

try:
    import tiktoken.load  # noqa: E402, F401
except ImportError:  # transformers asks it to read a file of lines, and nothing else
    import types
    sys.modules["tiktoken"] = types.ModuleType("tiktoken")
    sys.modules["tiktoken.load"] = types.ModuleType("tiktoken.load")
    sys.modules["tiktoken.load"].load_tiktoken_bpe = lambda path: {
        base64.b64decode(token): int(rank) for token, rank in (line.split() for line in open(path, "rb").read().splitlines() if line)}

from sentencepiece import sentencepiece_model_pb2  # noqa: E402
from tokenizers import AddedToken, Tokenizer  # noqa: E402
from transformers import AutoTokenizer, XGLMTokenizer  # noqa: E402

import legacy_files  # noqa: E402
import tokenizer_real  # noqa: E402
import tokenizer_texts  # noqa: E402
from tokenizer import calque, library  # noqa: E402


def bracket_added(**ids):
    return {str(i): {"content": c, "lstrip": c == "[MASK]", "rstrip": False, "normalized": False, "single_word": False, "special": True}
            for c, i in ids.items()}


class Files:
    """The vocabulary files, each kind trained once."""

    def __init__(self):
        self.made = {}

    def get(self, name, make):
        if name not in self.made:
            self.made[name] = make()
        return self.made[name]

    def word_piece(self, *specials):
        specials = specials or ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
        return {"vocab.txt": self.get(("txt", specials), lambda: legacy_files.vocab_txt(specials=specials))}

    def byte_bpe(self, *specials):
        return self.get(("bytes", specials), lambda: legacy_files.bpe_files(specials))

    def word_bpe(self, *specials):
        return self.get(("words", specials), lambda: legacy_files.bpe_files(specials, suffix="</w>", lower=True))

    def pieces(self, file, kind="unigram", **options):
        key = (kind, json.dumps(options, sort_keys=True))
        return {file: self.get(key, lambda: legacy_files.sentencepiece_model(kind, **options))}


def cases(f):
    """name, files, tokenizer_config.json, config.json, further JSON files"""
    bert = f.word_piece()
    for name, kind in (("Bert", "bert"), ("DistilBert", "distilbert"), ("Electra", "electra"), ("MobileBert", "mobilebert"),
                       ("LayoutLM", "layoutlm"), ("Lxmert", "lxmert"), ("ConvBert", "convbert"), ("SqueezeBert", "squeezebert"),
                       ("DPRContextEncoder", "dpr"), ("LayoutLMv2", "layoutlmv2")):
        yield name, bert, {"tokenizer_class": name + "Tokenizer"}, {"model_type": kind}, {}
    yield "Bert, by its model type", bert, None, {"model_type": "bert"}, {}
    yield "Megatron-BERT, by its model type", bert, {"do_lower_case": False}, {"model_type": "megatron-bert"}, {}
    yield "Bert, cased, by the old name", bert, {"tokenizer_class": "BertTokenizerFast", "do_lower_case": False, "strip_accents": True,
                                                "tokenize_chinese_chars": False}, {"model_type": "bert"}, {}
    yield "Bert, with a special tokens map and added tokens", bert, {"tokenizer_class": "BertTokenizer"}, {"model_type": "bert"}, {
        "special_tokens_map.json": {"cls_token": "[CLS]", "mask_token": {"content": "[MASK]", "lstrip": True, "rstrip": False,
                                                                        "normalized": False, "single_word": False},
                                    "additional_special_tokens": ["<x>", "<y>"]},
        "added_tokens.json": {"<x>": 700, "naïve": 701, "the": 702}}
    yield "Bert, with an added tokens decoder", bert, {
        "tokenizer_class": "BertTokenizer", "additional_special_tokens": ["<x>"], "model_max_length": 512, "image_token": "<image>",
        "added_tokens_decoder": dict(bracket_added(**{"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}),
                                     **{"900": {"content": "Zürich", "lstrip": True, "rstrip": True, "normalized": True,
                                                "single_word": True, "special": False}})}, {"model_type": "bert"}, {}
    yield "Funnel", f.word_piece("<pad>", "<unk>", "<cls>", "<sep>", "<mask>", "<s>", "</s>"), {"tokenizer_class": "FunnelTokenizer"}, {
        "model_type": "funnel"}, {}
    yield "MPNet", f.word_piece("<s>", "<pad>", "</s>", "[UNK]", "<mask>"), {"tokenizer_class": "MPNetTokenizer"}, {"model_type": "mpnet"}, {}
    yield "Splinter", f.word_piece("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[QUESTION]"), {"tokenizer_class": "SplinterTokenizer"}, {
        "model_type": "splinter"}, {}

    end = f.byte_bpe("<|endoftext|>")
    roberta = f.byte_bpe("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    yield "GPT2", end, {"tokenizer_class": "GPT2Tokenizer"}, {"model_type": "gpt2"}, {}
    yield "GPT2, with a prefix space and both ends", end, {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True, "add_bos_token": True,
                                                         "add_eos_token": True, "pad_token": "<pad>"}, {"model_type": "gpt2"}, {}
    yield "GPT-Neo, by its model type", end, None, {"model_type": "gpt_neo"}, {}
    yield "OPT", roberta, {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "bos_token": "</s>", "eos_token": "</s>",
                          "unk_token": "</s>", "pad_token": "<pad>", "errors": "replace"}, {"model_type": "opt"}, {}
    yield "CodeGen", end, {"tokenizer_class": "CodeGenTokenizer"}, {"model_type": "codegen"}, {}
    yield "GPTNeoX", f.byte_bpe("<|endoftext|>", "<|padding|>"), {"tokenizer_class": "GPTNeoXTokenizer"}, {"model_type": "gpt_neox"}, {}
    for name, kind in (("Roberta", "roberta"), ("Bart", "bart"), ("Longformer", "longformer"), ("LED", "led"), ("Mvp", "mvp")):
        yield name, roberta, {"tokenizer_class": name + "Tokenizer"}, {"model_type": kind}, {}
    yield "Roberta, as it is saved", roberta, {
        "tokenizer_class": "RobertaTokenizer", "add_prefix_space": True, "trim_offsets": False, "model_max_length": 512,
        "mask_token": {"__type": "AddedToken", "content": "<mask>", "lstrip": True, "normalized": True, "rstrip": False,
                       "single_word": False}}, {"model_type": "roberta"}, {}
    yield "LayoutLMv3", roberta, {"tokenizer_class": "LayoutLMv3Tokenizer"}, {"model_type": "layoutlmv3"}, {}
    yield "Blenderbot", roberta, {"tokenizer_class": "BlenderbotTokenizer"}, {"model_type": "blenderbot"}, {}
    yield "Deberta", f.byte_bpe("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"), {"tokenizer_class": "DebertaTokenizer"}, {"model_type": "deberta"}, {}
    yield "CLIP", f.get("clip", lambda: legacy_files.clip_files()), {"tokenizer_class": "CLIPTokenizer"}, {"model_type": "clip"}, {}
    yield "Cohere", f.byte_bpe("<PAD>", "<UNK>", "<CLS>", "<SEP>", "<MASK_TOKEN>", "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>"), {
        "tokenizer_class": "CohereTokenizer", "add_bos_token": True}, {"model_type": "cohere"}, {}
    yield "Qwen2", end, {"tokenizer_class": "Qwen2Tokenizer", "additional_special_tokens": ["<|im_start|>", "<|im_end|>"],
                        "bos_token": None}, {"model_type": "qwen2"}, {}
    yield "Whisper", f.byte_bpe("<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|zh|>", "<|translate|>", "<|transcribe|>",
                                "<|notimestamps|>"), {"tokenizer_class": "WhisperTokenizer"}, {"model_type": "whisper"}, {}
    yield "Whisper, for a task", f.byte_bpe("<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|zh|>", "<|translate|>", "<|transcribe|>",
                                            "<|notimestamps|>"), {"tokenizer_class": "WhisperTokenizer", "language": "en",
                                                                  "task": "transcribe"}, {"model_type": "whisper"}, {}
    yield "OpenAIGPT", f.word_bpe("<unk>"), {"tokenizer_class": "OpenAIGPTTokenizer"}, {"model_type": "openai-gpt"}, {}
    yield "Herbert", f.word_bpe("<s>", "<pad>", "</s>", "<unk>", "<mask>"), {"tokenizer_class": "HerbertTokenizer"}, {"model_type": "herbert"}, {}

    special = {"lstrip": False, "rstrip": False, "normalized": False, "single_word": False, "special": True}
    tiktoken = f.get("tiktoken", legacy_files.tiktoken_file)
    size = len(tiktoken.splitlines())
    llama3 = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>",
              "added_tokens_decoder": {str(size + i): {"content": t, **special} for i, t in (
                  (0, "<|begin_of_text|>"), (1, "<|end_of_text|>"), (5, "<|eot_id|>"))}}
    yield "tiktoken, Llama 3", {"tokenizer.model": tiktoken}, llama3, {"model_type": "llama"}, {}
    yield "tiktoken, by its name alone", {"tiktoken.model": tiktoken}, {}, {"model_type": "kimi_k25"}, {}
    yield "tiktoken, Llama", {"tokenizer.model": tiktoken}, {"tokenizer_class": "LlamaTokenizer"}, {"model_type": "llama"}, {}
    yield "tiktoken, with further tokens and a first one", {"tokenizer.model": tiktoken}, {
        "tokenizer_class": "TokenizersBackend", "extra_special_tokens": ["<|a|>", "<|b|>"], "add_bos_token": True, "bos_token": "<|a|>"}, {
        "model_type": "llama"}, {}
    yield "tiktoken, with additional tokens", {"tokenizer.model": tiktoken}, {
        "tokenizer_class": "PreTrainedTokenizerFast", "additional_special_tokens": ["<|a|>", "<|b|>"], "bos_token": "<|c|>"}, {
        "model_type": "llama"}, {}

    brackets = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, "bos_piece": "[CLS]", "eos_piece": "[SEP]",
                "control_symbols": ["[MASK]"], "user_defined_symbols": ["(", ")", "-"]}
    yield "Albert", f.pieces("spiece.model", **brackets), {"tokenizer_class": "AlbertTokenizer"}, {"model_type": "albert"}, {}
    yield "Albert, cased", f.pieces("spiece.model", **brackets), {"tokenizer_class": "AlbertTokenizer", "do_lower_case": False,
                                                                "keep_accents": True}, {"model_type": "albert"}, {}
    yield "FNet", f.pieces("spiece.model", **brackets), {"tokenizer_class": "FNetTokenizer"}, {"model_type": "fnet"}, {}
    yield "RemBert", f.pieces("sentencepiece.model", **brackets), {"tokenizer_class": "RemBertTokenizer"}, {"model_type": "rembert"}, {}
    fairseq = {"bos_id": 1, "eos_id": 2, "unk_id": 0}
    yield "Barthez", f.pieces("sentencepiece.bpe.model", pad_id=1, bos_id=0, eos_id=2, unk_id=3), {"tokenizer_class": "BarthezTokenizer"}, {
        "model_type": "barthez"}, {}
    yield "BigBird", f.pieces("spiece.model", pad_id=0, eos_id=1, bos_id=2, unk_id=3, control_symbols=["[SEP]", "[MASK]", "[CLS]"]), {
        "tokenizer_class": "BigBirdTokenizer"}, {"model_type": "big_bird"}, {}
    yield "Camembert", f.pieces("sentencepiece.bpe.model", **fairseq), {"tokenizer_class": "CamembertTokenizer"}, {"model_type": "camembert"}, {}
    yield "DebertaV2", f.pieces("spm.model", pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]",
                                unk_piece="[UNK]"), {"tokenizer_class": "DebertaV2Tokenizer", "split_by_punct": True, "do_lower_case": True}, {
        "model_type": "deberta-v2"}, {}
    yield "MBart", f.pieces("sentencepiece.bpe.model", **fairseq), {"tokenizer_class": "MBartTokenizer", "src_lang": "de_DE"}, {
        "model_type": "mbart"}, {}
    yield "MBart50", f.pieces("sentencepiece.bpe.model", **fairseq), {"tokenizer_class": "MBart50Tokenizer"}, {"model_type": "mbart"}, {}
    yield "Pegasus", f.pieces("spiece.model", pad_id=0, eos_id=1, unk_id=2, bos_id=-1), {"tokenizer_class": "PegasusTokenizer"}, {
        "model_type": "pegasus"}, {}
    t5 = f.pieces("spiece.model", pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    yield "T5", t5, {"tokenizer_class": "T5Tokenizer"}, {"model_type": "t5"}, {}
    yield "T5, as it is saved", t5, {"tokenizer_class": "T5Tokenizer", "extra_ids": 100,
                                     "additional_special_tokens": [f"<extra_id_{i}>" for i in range(100)]}, {"model_type": "t5"}, {}
    yield "XLMRoberta", f.pieces("sentencepiece.bpe.model", **fairseq), {"tokenizer_class": "XLMRobertaTokenizer"}, {
        "model_type": "xlm-roberta"}, {}
    yield "XGLM", f.pieces("sentencepiece.bpe.model", **fairseq), {"tokenizer_class": "XGLMTokenizer"}, {"model_type": "xglm"}, {}
    yield "LayoutXLM", f.pieces("sentencepiece.bpe.model", pad_id=1, bos_id=0, eos_id=2, unk_id=3), {"tokenizer_class": "LayoutXLMTokenizer"}, {
        "model_type": "layoutxlm"}, {}
    yield "XLNet", f.pieces("spiece.model", unk_id=0, bos_id=1, eos_id=2, control_symbols=["<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]), {
        "tokenizer_class": "XLNetTokenizer"}, {"model_type": "xlnet"}, {}

    llama = f.pieces("tokenizer.model", "bpe", byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False)
    yield "Llama", llama, {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "add_eos_token": False, "legacy": False}, {
        "model_type": "llama"}, {}
    yield "Llama, legacy", llama, {"tokenizer_class": "LlamaTokenizer", "legacy": True, "add_bos_token": True, "add_eos_token": True,
                                   "bos_token": {"__type": "AddedToken", "content": "<s>", "lstrip": False, "normalized": True,
                                                 "rstrip": False, "single_word": False}}, {"model_type": "llama"}, {}
    yield "Llama, without a prefix space", llama, {"tokenizer_class": "LlamaTokenizer", "add_prefix_space": False}, {"model_type": "llama"}, {}
    yield "CodeLlama", llama, {"tokenizer_class": "CodeLlamaTokenizer"}, {"model_type": "code_llama"}, {}
    yield "Mistral, of no class", llama, {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True}, {"model_type": "mistral"}, {}
    yield "of no class, Unigram", {"tokenizer.model": t5["spiece.model"]}, {"tokenizer_class": "PreTrainedTokenizerFast"}, {
        "model_type": "glm"}, {}
    yield "Gemma", f.pieces("tokenizer.model", "bpe", byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
                            add_dummy_prefix=False, pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>", eos_piece="<eos>",
                            bos_piece="<bos>", user_defined_symbols=["<mask>", "<start_of_turn>", "\n\n"]), {
        "tokenizer_class": "GemmaTokenizer", "add_bos_token": True}, {"model_type": "gemma"}, {}
    yield "Nllb", f.pieces("sentencepiece.bpe.model", "bpe", **fairseq), {
        "tokenizer_class": "NllbTokenizer", "additional_special_tokens": ["eng_Latn", "deu_Latn"]}, {"model_type": "nllb"}, {}
    yield "Reformer", f.pieces("spiece.model", "bpe", bos_id=-1, eos_id=1, unk_id=0), {"tokenizer_class": "ReformerTokenizer"}, {
        "model_type": "reformer"}, {}


def real_cases(every):
    """Vocabularies that models in use have, as classes that read such files."""
    real = tokenizer_real.real_vocabularies(every)
    t5, reformer = {"tokenizer_class": "T5Tokenizer"}, {"tokenizer_class": "ReformerTokenizer"}
    llama = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "legacy": False}
    for name, file, tokenizer_config, kind in (
            ("j2", "spiece.model", t5, "t5"),
            ("j2", "sentencepiece.bpe.model", {"tokenizer_class": "XLMRobertaTokenizer"}, "xlm-roberta"),
            ("kyoto", "spiece.model", t5, "t5"), ("kyoto", "spiece.model", {"tokenizer_class": "XLNetTokenizer"}, "xlnet"),
            ("botchan", "spiece.model", t5, "t5"), ("botchan", "tokenizer.model", {"tokenizer_class": "PreTrainedTokenizerFast"}, "glm"),
            ("cogview", "spiece.model", reformer, "reformer"), ("mistral", "tokenizer.model", llama, "llama"),
            ("mistral v3", "tokenizer.model", llama, "mistral"),
            ("whisper", "tokenizer.model", {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|startoftext|>"}, "llama"),
            ("gpt2", "tiktoken.model", {}, "kimi_k25")):
        if name in real:
            yield f"real {name}, {tokenizer_config.get('tokenizer_class', 'by its name')}", {file: real[name]}, tokenizer_config, {"model_type": kind}, {}


def dictionary(pieces, before, after, models):
    """vocab.json of the pieces of some models, with tokens in front of them and behind them"""
    tokens = list(before)
    for model in models:
        proto = sentencepiece_model_pb2.ModelProto()
        proto.ParseFromString(model)
        tokens += [p.piece for p in proto.pieces if p.type == 1]
    tokens = list(dict.fromkeys(tokens + list(after)))
    return {**pieces, "vocab.json": json.dumps({t: i for i, t in enumerate(tokens)}, ensure_ascii=False)}


def python_cases(f):
    """Classes that exist in Python alone: no document to compare with, but ids and texts."""
    source = f.pieces("source.spm", bos_id=-1)["source.spm"]
    target = f.pieces("target.spm", size=900, bos_id=-1)["target.spm"]
    yield "Marian", dictionary({"source.spm": source, "target.spm": target}, ["</s>", "<unk>"], [">>fra<<", "<pad>"], [source, target]), {
        "tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "fr"}, {"model_type": "marian"}, {}
    yield "M2M100", dictionary({"sentencepiece.bpe.model": source}, ["<s>", "<pad>", "</s>", "<unk>"], [], [source]), {
        "tokenizer_class": "M2M100Tokenizer", "src_lang": "de"}, {"model_type": "m2m_100"}, {}
    yield "Speech2Text", dictionary({"sentencepiece.bpe.model": source}, ["<s>", "<pad>", "</s>", "<unk>"], [], [source]), {
        "tokenizer_class": "Speech2TextTokenizer"}, {"model_type": "speech_to_text"}, {}
    code = f.pieces("sentencepiece.bpe.model", bos_id=1, eos_id=2, unk_id=0)
    yield "PLBart", code, {"tokenizer_class": "PLBartTokenizer", "src_lang": "python"}, {"model_type": "plbart"}, {}
    yield "PLBart, of no language", code, {"tokenizer_class": "PLBartTokenizer"}, {"model_type": "plbart"}, {}
    yield "PLBart, of many languages", code, {"tokenizer_class": "PLBartTokenizer", "language_codes": "multi"}, {"model_type": "plbart"}, {}
    yield "BlenderbotSmall", f.get("subwords", legacy_files.subword_files), {"tokenizer_class": "BlenderbotSmallTokenizer"}, {
        "model_type": "blenderbot-small"}, {}
    letters = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ETAONIHSRDLUMWCFGYPBVK'XJQZ"]
    ctc = {"vocab.json": json.dumps({t: i for i, t in enumerate(letters)})}
    yield "Wav2Vec2CTC", ctc, {"tokenizer_class": "Wav2Vec2CTCTokenizer"}, {"model_type": "wav2vec2"}, {}
    yield "Wav2Vec2CTC, in lower case", ctc, {"tokenizer_class": "Wav2Vec2CTCTokenizer", "do_lower_case": True}, {"model_type": "hubert"}, {}
    yield "Wav2Vec2CTC, a language of several", {"vocab.json": json.dumps({"eng": {t: i for i, t in enumerate(letters)}, "deu": {"<unk>": 0}})}, {
        "tokenizer_class": "Wav2Vec2CTCTokenizer", "target_lang": "eng"}, {"model_type": "wav2vec2"}, {}


def compare_with_python(name, folder, program, texts, work):
    theirs = AutoTokenizer.from_pretrained(folder)
    # Special tokens within a text, and language codes, are cut out by transformers' own rules for classes in Python.
    specials = set(theirs.all_special_tokens) | {">>"}
    texts = [t for t in texts if not any(s in t for s in specials)]
    expected = [theirs.encode(t) for t in texts]
    found = calque(program, folder, texts, work)
    bad = [i for i, (a, b) in enumerate(zip(found, expected)) if a["ids"] != b]
    print(f"{'DIFFERENT' if bad else 'ok       '} {name}: {len(texts)} texts, {len(bad)} differ ({type(theirs).__name__})", flush=True)
    for i in bad[:5]:
        print(f"    {ascii(texts[i])[:300]}\n      found    {found[i]['ids']}\n      expected {expected[i]}")
    return not bad


def write_folder(folder, files, tokenizer_config, config, others):
    os.makedirs(folder)
    written = dict(files)
    for name, content in {"tokenizer_config.json": tokenizer_config, "config.json": config, **others}.items():
        if content is not None:
            written[name] = json.dumps(content)
    for name, content in written.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())


def open_theirs(folder, tokenizer_config):
    if (tokenizer_config or {}).get("tokenizer_class") != "XGLMTokenizer":
        return AutoTokenizer.from_pretrained(folder)
    # The class does not read the file that its models come with; this is what its converter from Python's tokenizer makes of it.
    proto = sentencepiece_model_pb2.ModelProto()
    with open(os.path.join(folder, "sentencepiece.bpe.model"), "rb") as f:
        proto.ParseFromString(f.read())
    vocab = [(t, 0.0) for t in ("<s>", "<pad>", "</s>", "<unk>")] + [(p.piece, p.score) for p in proto.pieces[3:]]
    controls = [AddedToken(p.piece, normalized=False, special=True) for p in proto.pieces if p.type == 3]
    return XGLMTokenizer(vocab=vocab + [(f"<madeupword{i}>", 0.0) for i in range(7)], additional_special_tokens=controls,
                         _spm_precompiled_charsmap=proto.normalizer_spec.precompiled_charsmap)


def differences(a, b, path=""):
    """Where two documents differ, in words."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(set(a) | set(b), key=str):
            if key not in a or key not in b:
                yield f"{path}.{key}: only in {'the library' if key not in a else 'Calque'}'s: {ascii(a.get(key, b.get(key)))[:200]}"
            else:
                yield from differences(a[key], b[key], f"{path}.{key}")
    elif isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            yield f"{path}: {len(a)} and {len(b)} items"
        for i, (x, y) in enumerate(zip(a, b)):
            yield from differences(x, y, f"{path}[{i}]")
    elif isinstance(a, float) and isinstance(b, float):
        if abs(a - b) > 1e-14 * abs(b):  # the library reads back what it wrote a bit off
            yield f"{path}: found {a!r}, expected {b!r}"
    elif a != b or type(a) is not type(b) and not (isinstance(a, (int, float)) and isinstance(b, (int, float))):
        yield f"{path}: found {ascii(a)[:150]}, expected {ascii(b)[:150]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true", help="5,000 lines for every tokenizer")
    parser.add_argument("--only", help="cases whose names hold this")
    parser.add_argument("--documents", action="store_true", help="documents alone")
    args = parser.parse_args()
    build = os.environ.get("CALQUE_BUILD", "")
    texts = tokenizer_texts.lines(5000, 21) if args.all else tokenizer_texts.lines(500, 21)
    results = []
    with tempfile.TemporaryDirectory() as work:
        files = Files()
        todo = [c for c in itertools.chain(cases(files), real_cases(args.all)) if not args.only or args.only in c[0]]
        folders = [os.path.join(work, f"folder{i}") for i in range(len(todo))]
        for folder, (_, *parts) in zip(folders, todo):
            write_folder(folder, *parts)
        listed, out = os.path.join(work, "folders"), os.path.join(work, "documents")
        with open(listed, "w") as f:
            f.write("".join(folder + "\n" for folder in folders))
        subprocess.run([os.path.join(build, "bin/legacy_peer"), listed, out], check=True)
        with open(out) as f:
            made = [json.loads(line) for line in f]
        for folder, ours, (name, _, tokenizer_config, *_) in zip(folders, made, todo):
            theirs = open_theirs(folder, tokenizer_config)
            expected = json.loads(theirs.backend_tokenizer.to_str())
            if "error" in ours:
                wrong = [ours["error"]]
            else:
                wrong = list(differences(json.loads(ours["json"]), expected))
                special = {key[:-6]: str(value) for key, value in theirs.special_tokens_map.items()
                           if key in ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")}
                if ours["special"] != special:
                    wrong.append(f"special tokens: found {ours['special']}, expected {special}")
            results.append(not wrong)
            print(f"{'ok       ' if not wrong else 'DIFFERENT'} {name}: the document ({type(theirs).__name__})", flush=True)
            for line in wrong[:8]:
                print("   ", line)
            if wrong or args.documents:
                continue
            library_one = Tokenizer.from_str(theirs.backend_tokenizer.to_str())
            inputs = texts + [(texts[i], texts[-i]) for i in range(20, 60)]
            try:
                found = calque(os.path.join(build, "bin/tokenizer_peer"), folder, inputs, work)
            except subprocess.CalledProcessError:
                results.append(False)
                print(f"DIFFERENT {name}: does not open")
                continue
            right = library(library_one, inputs)
            bad = [(i, key) for i, (a, b) in enumerate(zip(found, right)) for key in b if a[key] != b[key]]
            results.append(not bad)
            print(f"{'ok       ' if not bad else 'DIFFERENT'} {name}: {len(inputs)} texts, {len({i for i, _ in bad})} differ", flush=True)
            for i, key in bad[:2]:
                print(f"    {key} of {ascii(inputs[i])[:200]}\n      found    {ascii(found[i][key])[:300]}\n      expected {ascii(right[i][key])[:300]}")
        for name, *parts in python_cases(files):
            if (args.only and args.only not in name) or args.documents:
                continue
            folder = os.path.join(work, "python " + name)
            write_folder(folder, *parts)
            results.append(compare_with_python(name, folder, os.path.join(build, "bin/tokenizer_peer"),
                                               texts + legacy_files.prose(300), work))
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
