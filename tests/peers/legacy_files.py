"""Vocabulary files of every kind, trained here from a fixed text: what model folders without a tokenizer.json hold."""
import base64
import io
import json
import random
import re

import sentencepiece
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

import tokenizer_texts


def corpus(count=1500):
    """Lines that a SentencePiece trainer takes: no control characters, not too long."""
    made = [re.sub(r"[\x00-\x1f\x7f-\x9f\u2028]+", " ", line)[:300] for line in tokenizer_texts.lines(count, 11)]
    return [line for line in made if line.strip()] + [" ".join(tokenizer_texts.WORDS)] * 200


def prose(count):
    """Lines of words that every model knows."""
    r = random.Random(5)
    words = [w for w in tokenizer_texts.WORDS if w.isascii()]
    return [" ".join(r.choice(words) for _ in range(r.randrange(1, 30))) for _ in range(count)]


def sentencepiece_model(kind="unigram", size=1200, **options):
    """The bytes of a model. `kind` is sentencepiece's model_type."""
    out = io.BytesIO()
    settings = {"character_coverage": 0.98, "num_threads": 1, "minloglevel": 2, "hard_vocab_limit": False, **options}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus()), model_writer=out, vocab_size=size,
                                             model_type=kind, **settings)
    return out.getvalue()


def vocab_txt(size=700, lower=True, specials=("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lower)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=size, limit_alphabet=300, show_progress=False,
                                                              special_tokens=list(specials)))
    vocab = t.get_vocab()
    return "\n".join(sorted(vocab, key=vocab.get)) + "\n"


def bpe_files(specials=(), size=900, suffix=None, lower=False):
    """vocab.json and merges.txt: of bytes, or of words of characters with a suffix."""
    if suffix is None:
        t = Tokenizer(models.BPE())
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        return _trained(t, specials, size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    t = Tokenizer(models.BPE(end_of_word_suffix=suffix))
    t.normalizer = normalizers.BertNormalizer(lowercase=lower)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return _trained(t, specials, size, end_of_word_suffix=suffix, limit_alphabet=200)


def clip_files():
    """CLIP's: bytes, of lower-case words that end in </w>."""
    t = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return _trained(t, ["<|startoftext|>", "<|endoftext|>"], 1100, end_of_word_suffix="</w>",
                    initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def tiktoken_file():
    """Tokens of bytes with their ranks, as tiktoken writes them."""
    files = bpe_files()
    bytes_of = {c: b for b, c in _byte_characters().items()}
    tokens = [bytes([b]) for b in range(256)]
    tokens += [bytes(bytes_of[c] for c in line.replace(" ", "")) for line in files["merges.txt"].splitlines()[1:]]
    return "".join(f"{base64.b64encode(t).decode()} {i}\n" for i, t in enumerate(dict.fromkeys(tokens)))


def _byte_characters():
    kept = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in kept]
    return {**{b: chr(b) for b in kept}, **{b: chr(256 + i) for i, b in enumerate(others)}}


def subword_files(size=900):
    """vocab.json and merges.txt of subword-nmt: tokens that do not end a word have @@ behind them."""
    made = bpe_files(size=size, suffix="</w>", lower=True)
    merges = [line.split(" ") for line in made["merges.txt"].splitlines()[1:]]
    symbols = dict.fromkeys([*json.loads(made["vocab.json"]), *(a + b for a, b in merges)])
    tokens = [s[:-4] if s.endswith("</w>") else s + "@@" for s in symbols]
    tokens = ["__null__", "__start__", "__end__", "__unk__", *dict.fromkeys(t for t in tokens if t)]
    return {"vocab.json": json.dumps({t: i for i, t in enumerate(tokens)}, ensure_ascii=False), "merges.txt": made["merges.txt"]}


def _trained(tokenizer, specials, size, **options):
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=list(specials), **options))
    model = json.loads(tokenizer.to_str())["model"]
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    return {"vocab.json": json.dumps(model["vocab"], ensure_ascii=False), "merges.txt": "#version: 0.2\n" + "\n".join(merges) + "\n"}
