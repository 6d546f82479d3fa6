"""Vocabulary files of every kind, trained here from a fixed text: what model folders without a tokenizer.json hold."""
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


def _trained(tokenizer, specials, size, **options):
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=list(specials), **options))
    model = json.loads(tokenizer.to_str())["model"]
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    return {"vocab.json": json.dumps(model["vocab"], ensure_ascii=False), "merges.txt": "#version: 0.2\n" + "\n".join(merges) + "\n"}
