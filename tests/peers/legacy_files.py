"""Vocabulary files of every kind, trained here from a fixed text: what model folders without a tokenizer.json hold."""
import io
import json
import os
import re

import sentencepiece
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

import tokenizer_texts


def corpus(count=1500):
    """Lines that a SentencePiece trainer takes: no control characters, not too long."""
    made = [re.sub(r"[\x00-\x1f\x7f-\x9f\u2028]+", " ", line)[:300] for line in tokenizer_texts.lines(count, 11)]
    return [line for line in made if line.strip()] + [" ".join(tokenizer_texts.WORDS)] * 20


def sentencepiece_model(kind="unigram", size=600, **options):
    """The bytes of a model. `kind` is sentencepiece's model_type."""
    out = io.BytesIO()
    settings = {"character_coverage": 0.97, "num_threads": 1, "minloglevel": 2, "hard_vocab_limit": False, **options}
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
    """vocab.json and merges.txt: of bytes, or with an end of word suffix of characters."""
    t = Tokenizer(models.BPE(end_of_word_suffix=suffix or ""))
    options = {}
    if suffix is None or suffix == "bytes":
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        options["initial_alphabet"] = pre_tokenizers.ByteLevel.alphabet()
    else:
        t.normalizer = normalizers.BertNormalizer(lowercase=lower)
        t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        options["end_of_word_suffix"] = suffix
        options["limit_alphabet"] = 200
    t.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=list(specials), **options))
    model = json.loads(t.to_str())["model"]
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    return {"vocab.json": json.dumps(model["vocab"], ensure_ascii=False), "merges.txt": "#version: 0.2\n" + "\n".join(merges) + "\n"}
