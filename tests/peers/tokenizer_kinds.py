"""Tokenizers of the models and parts that tokenizer_texts.py does not have: WordPiece, WordLevel, Unigram, and every normalizer,
pre-tokenizer, post-processor and decoder in at least two. Made by the tokenizers library; the maps of characters by sentencepiece."""
import collections
import io
import json
import os
import tempfile

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import tokenizer_texts

# What is replaced and what by, in hexadecimal characters, as sentencepiece's own rules are written.
SMALL_RULES = ["41\t61", "42\t62 62", "DF\t73 73", "C4\t61 65", "65 301\tE9", "FB01\t66 69", "D A\t20", "D\t20", "A\t20", "9\t20",
               "3000\t20", "AD\t", "200B\t", "FDFA\t635 644 649 20 627 644 644 647", "31 FE0F\t31", "FF71\t30A2", "7A\t", "AC00\t1100 1161"]


def charsmap(rules=None):
    """The precompiled map of a sentencepiece model: of `rules`, else of nmt_nfkc."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"normalization_rule_name": "nmt_nfkc"}
        if rules:
            path = os.path.join(folder, "rules.tsv")
            with open(path, "w") as f:
                f.write("".join(rule + "\n" for rule in rules))
            options = {"normalization_rule_tsv": path}
        made = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(["a b c d e f g h"] * 20), model_writer=made, vocab_size=20,
                                                 hard_vocab_limit=False, minloglevel=2, **options)
    return field(field(made.getvalue(), 3), 2)


def field(message, number):
    """A field of bytes of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        kind = key & 7
        if kind == 2:
            size = varint()
            if key >> 3 == number:
                return message[at:at + size]
            at += size
        elif kind == 0:
            varint()
        else:
            at += 8 if kind == 1 else 4
    raise KeyError(number)


def bert_template(t):
    return processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                         special_tokens=[(x, t.token_to_id(x)) for x in ("[CLS]", "[SEP]")])


def tokenizers_of_other_kinds(corpus, smallest=False, sizes=None):
    """name -> Tokenizer; the smallest have few tokens, others `sizes` if given"""
    made = {}
    bert_tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    own = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]

    def new(name, model):
        made[name] = Tokenizer(model)
        return made[name]

    counted = collections.Counter("".join(corpus))
    common = {c for c, _ in counted.most_common(60 if smallest else 200)}

    def train(t, trainer, size, **options):
        size = min(size, 260) if smallest else sizes or size
        lines = ["".join(c for c in line[:300] if c in common) for line in corpus]
        t.train_from_iterator(lines, trainer(vocab_size=size, show_progress=False, **options))

    def wordpiece(name, normalizer, pre, decoder, processor=bert_template, size=1500, **options):
        t = new(name, models.WordPiece(unk_token="[UNK]", **options))
        t.normalizer, t.pre_tokenizer, t.decoder = normalizer, pre, decoder
        train(t, trainers.WordPieceTrainer, size, special_tokens=bert_tokens,
              continuing_subword_prefix=options.get("continuing_subword_prefix", "##"))
        t.model.max_input_chars_per_word = options.get("max_input_chars_per_word", 100)
        if processor:
            t.post_processor = processor(t)
        return t

    wordpiece("bert", normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece())
    t = wordpiece("bert, cased", normalizers.BertNormalizer(lowercase=False), pre_tokenizers.BertPreTokenizer(),
                  decoders.WordPiece(cleanup=False), lambda t: processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)))
    t.add_tokens(tokenizer_texts.all_added())
    wordpiece("bert, accents kept, ideographs together", normalizers.BertNormalizer(strip_accents=False, handle_chinese_chars=False),
              pre_tokenizers.BertPreTokenizer(), decoders.WordPiece(), max_input_chars_per_word=12)
    wordpiece("bert, nothing cleaned", normalizers.BertNormalizer(clean_text=False, strip_accents=True, lowercase=False),
              pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True)]), decoders.WordPiece(prefix="@@"),
              continuing_subword_prefix="@@")
    wordpiece("accents of all kinds, whitespace", normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]),
              pre_tokenizers.Whitespace(), decoders.WordPiece())
    wordpiece("scripts", normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents()]),
              pre_tokenizers.Sequence([pre_tokenizers.UnicodeScripts(), pre_tokenizers.WhitespaceSplit()]), decoders.WordPiece(), None)
    wordpiece("left stripped, fives", normalizers.Strip(left=True, right=False), pre_tokenizers.FixedLength(length=5), decoders.WordPiece(), None)
    wordpiece("right stripped, delimiter", normalizers.Sequence([normalizers.Strip(left=False), normalizers.Nmt()]),
              pre_tokenizers.CharDelimiterSplit("e"), decoders.Sequence([decoders.WordPiece(), decoders.Fuse()]), None)

    def wordlevel(name, normalizer, pre, decoder=None):
        t = new(name, models.WordLevel(unk_token="<unk>"))
        t.normalizer, t.pre_tokenizer = normalizer, pre
        if decoder:
            t.decoder = decoder
        train(t, trainers.WordLevelTrainer, 2000, special_tokens=own)
        t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=False)
        return t

    wordlevel("words", normalizers.Nmt(), pre_tokenizers.Whitespace())
    wordlevel("words and punctuation", normalizers.Lowercase(), pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_previous")]))
    wordlevel("scripts and delimiters", None, pre_tokenizers.Sequence([pre_tokenizers.CharDelimiterSplit(" "), pre_tokenizers.UnicodeScripts()]))
    wordlevel("threes", normalizers.NFC(), pre_tokenizers.FixedLength(length=3), decoders.Fuse())
    for cleanup in (True, False):
        t = wordlevel("ctc" + ("" if cleanup else ", not cleaned"), normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace(" ", "|")]),
                      pre_tokenizers.Split(Regex("."), "isolated"), decoders.CTC(pad_token="<pad>", word_delimiter_token="|", cleanup=cleanup))
        t.post_processor = processors.ByteLevel(trim_offsets=False)

    def unigram(name, normalizer, pre, decoder, unk="<unk>", size=1200, byte_fallback=False):
        t = new(name, models.Unigram())
        t.normalizer, t.pre_tokenizer, t.decoder = normalizer, pre, decoder
        tokens = own + ([f"<0x{b:02X}>" for b in range(256)] if byte_fallback else [])
        alphabet = pre_tokenizers.ByteLevel.alphabet() if isinstance(normalizer, normalizers.ByteLevel) else []
        train(t, trainers.UnigramTrainer, size + (256 if byte_fallback else 0), special_tokens=tokens, unk_token=unk, initial_alphabet=alphabet)
        if byte_fallback:
            described = json.loads(t.to_str())
            described["model"]["byte_fallback"] = True
            t = made[name] = Tokenizer.from_str(json.dumps(described))
        t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
                                                         special_tokens=[("<s>", 0), ("</s>", 2)])
        return t

    small = normalizers.Precompiled(charsmap(SMALL_RULES))
    full = small if smallest else normalizers.Precompiled(charsmap())
    t5 = unigram("t5", full, pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]), decoders.Metaspace())
    t5.add_special_tokens(["<extra_id_0>"])
    unigram("small charsmap", normalizers.Sequence([small, normalizers.Replace(Regex(" {2,}"), " ")]), pre_tokenizers.Metaspace(prepend_scheme="first"),
            decoders.Metaspace(prepend_scheme="first"))
    t = unigram("albert", normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(),
                                               normalizers.StripAccents(), normalizers.Lowercase(), full]),
                pre_tokenizers.Metaspace(), decoders.Metaspace())
    t.add_tokens(tokenizer_texts.all_added())
    unigram("unigram of bytes", normalizers.ByteLevel(), pre_tokenizers.Split(Regex("Ġ"), "merged_with_next"), decoders.ByteLevel())
    unigram("unigram, bytes of unknowns", normalizers.Prepend("▁"), pre_tokenizers.Metaspace(prepend_scheme="never", split=False),
            decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="always"), decoders.Fuse()]), byte_fallback=True)

    t = new("bpe of bytes, normalized", models.BPE())
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.ByteLevel()])
    t.pre_tokenizer = pre_tokenizers.Digits()
    t.decoder = decoders.ByteLevel()
    train(t, trainers.BpeTrainer, 900, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    return made
