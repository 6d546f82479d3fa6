"""Lines of mixed text for the tokenizer tests, and tokenizers of many kinds, made by the tokenizers library."""
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

GPT2 = None  # the byte-level pre-tokenizer's own expression
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
            r"\s*[\r\n]+|\s+(?!\S)|\s+")
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
SPECIALS = ["<|endoftext|>", "<s>", "</s>", "<unk>", "<mask>", "[WORD]", "<|im_start|>", "Tok", "é!", "  "]

SCRIPTS = [(0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5FF), (0x600, 0x6FF),
           (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x1E00, 0x1EFF), (0x3040, 0x30FF), (0x4E00, 0x9FFF),
           (0xAC00, 0xD7A3), (0x10000, 0x100FF), (0x1D400, 0x1D7FF), (0x20000, 0x2A6DF)]
EMOJI = ["😀", "👍🏽", "👨‍👩‍👧‍👦", "🇩🇪", "❤️", "🏳️‍🌈", "1️⃣", "☕", "🤷🏻‍♀️"]
SPACES = [" ", "  ", "    ", "\t", "\n", "\r\n", "\n\n", " \n ", "\u00a0", "\u3000", "\u2028", "\u2009", "\u0085", "\u000b",
          "\f", "\u1680", "\u200b", "\ufeff", "      \t  "]
CONTRACTIONS = ["don't", "I'M", "we'RE", "they'Ve", "it's", "'s", "'ſ", "you'll", "'LL", "o'd", "'D", "''t", "rock'n'roll", "’s"]
CODE = ["def f(x):\n    return x**2", "for (int i = 0; i < n; ++i) { a[i] += b[i]; }", "<div class=\"a\">&nbsp;</div>",
        "SELECT * FROM t WHERE a='b';", "\tif (p != nullptr)\n\t\treturn p->next;", "{\"key\": [1, 2.5e-3, null]}",
        "x = {k: v for k, v in y.items()}", "// comment /* nested */", "#include <vector>\r\n", "https://a.b/c?d=e&f=%20g"]
NUMBERS = ["0", "42", "1234567", "3.14159", "1,000,000", "0xFF", "²³¹", "½", "Ⅷ", "٣٤٥", "१२३", "①②", "1e-10", "𝟘𝟙", "𑷠"]
WORDS = ("the of and to in a is that for it was on are as with his they at be this from have or by one had not but what all "
         "were when we there can an your which their said if do will each about how up out them then she many some so these "
         "would other into has more her two like him see time could no make than first been its who now people my made over "
         "tokenizer Unicode naïve café Zürich ÅNGSTRÖM straße ΟΔΟΣ İstanbul ǅ ﬁn ﬆ Ａｂｃ ㎏ ™ … — “quoted” ¿qué?").split()
MARKS = ["e\u0301", "a\u0323\u0307", "q\u0307\u0323", "\u0301", "o\u0302\u0301", "\u0915\u094d\u0937", "\u1100\u1161\u11a8",
         "가\u11a8", "\u0344", "Å", "ộ", "a\u0327\u0301\u0323", "\u0f71\u0f72", "ｶﾞ", "\ufdfa"]


def piece(r):
    kind = r.randrange(12)
    if kind <= 3:
        return " ".join(r.choice(WORDS) for _ in range(r.randrange(1, 8)))
    if kind == 4:
        low, high = r.choice(SCRIPTS)
        return "".join(chr(r.randint(low, high)) for _ in range(r.randrange(1, 12)))
    if kind == 5:
        return "".join(r.choice(EMOJI) for _ in range(r.randrange(1, 4)))
    if kind == 6:
        return r.choice(SPACES) * r.randrange(1, 4)
    if kind == 7:
        return r.choice(CODE)
    if kind == 8:
        return r.choice(CONTRACTIONS + NUMBERS)
    if kind == 9:
        return "".join(r.choice(MARKS + NUMBERS + ["x", " "]) for _ in range(r.randrange(1, 5)))
    if kind == 10:
        return r.choice(SPECIALS)
    while True:
        c = r.choice([r.randrange(0x20), r.randrange(0x7f, 0x300), r.randrange(0x3000), r.randrange(0x110000)])
        if not 0xD800 <= c < 0xE000:
            return chr(c) * r.choice([1, 1, 2, 5])


def lines(count, seed):
    r = random.Random(seed)
    special = ["", " ", "\n", "a", "\x00", "'", "'s", " 's", "a" * 300, " " * 300, "ab" * 2000, "<|endoftext|>", "\u0301", "0" * 50]
    made = ["".join(piece(r) + r.choice(["", " ", " ", "\n"]) for _ in range(r.randrange(1, 9))) for _ in range(count - len(special))]
    return special + made


def broken(count, seed):
    """Bytes that are not UTF-8."""
    r = random.Random(seed)
    out = []
    for line in lines(count + 20, seed)[20:]:
        data = bytearray(line.encode())
        for _ in range(r.randrange(1, 5)):
            at = r.randrange(len(data) + 1)
            data[at:at + r.randrange(3)] = r.choice([b"\xff", b"\xe2\x82", b"\xf0\x9f\x98", b"\xc0\xaf", b"\xed\xa0\x80", b"\x80",
                                                      b"\xf4\x90\x80\x80", b"\xe0\x80", b""])
        out.append(bytes(data))
    return out


def byte_level(pattern=None, prefix=False, behavior="isolated", invert=False):
    if pattern is None:
        return pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), behavior, invert),
                                    pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=False)])


def all_added():
    return [AddedToken("<mask>", lstrip=True, special=True, normalized=False), AddedToken("[WORD]", single_word=True, rstrip=True),
            AddedToken("<|im_start|>", special=True), AddedToken("Tok", normalized=True), AddedToken("é!", normalized=True),
            AddedToken("  ", normalized=False), AddedToken("</s>", rstrip=True, lstrip=True, special=True),
            AddedToken("the", single_word=True, normalized=True)]


def tokenizers_of_all_kinds(corpus, smallest=False):
    """name -> Tokenizer; the smallest have few merges"""
    made = {}

    def train(tokenizer, corpus, vocab_size, byte_level=True, **options):
        alphabet = pre_tokenizers.ByteLevel.alphabet() if byte_level else []
        if smallest:
            vocab_size = 330 if byte_level or "limit_alphabet" not in options else 120
            options["limit_alphabet"] = min(options.get("limit_alphabet", 1000), 256 if byte_level else 60)
        trainer = trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False, **options)
        tokenizer.train_from_iterator(corpus, trainer)

    def new(name, model=None):
        made[name] = Tokenizer(model or models.BPE())
        return made[name]

    t = new("gpt2")
    t.pre_tokenizer = byte_level(prefix=False)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=True, add_prefix_space=False)
    train(t, corpus, 1500, special_tokens=["<|endoftext|>"])

    t = new("gpt2 with a prefix space and added tokens")
    t.pre_tokenizer = byte_level(prefix=True)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=True)
    train(t, corpus, 1000, special_tokens=["<|endoftext|>"])
    t.add_tokens(all_added())

    t = new("llama 3", models.BPE(ignore_merges=True))
    t.pre_tokenizer = byte_level(LLAMA3)
    t.decoder = decoders.ByteLevel()
    train(t, corpus, 2000, special_tokens=["<|endoftext|>", "<s>"])
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", t.token_to_id("<s>"))])])

    t = new("qwen 2")
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = byte_level(QWEN2)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    train(t, corpus, 2000, special_tokens=["<|endoftext|>"])
    t.add_tokens(all_added())

    for name, pattern, behavior, invert in (("cl100k", CL100K, "isolated", False), ("o200k", O200K, "isolated", False),
                                            ("deepseek", DEEPSEEK, "isolated", False), ("bloom", BLOOM, "isolated", False),
                                            ("cl100k, removed, inverted", CL100K, "removed", True),
                                            ("runs of capitals, merged with the next", r"[\p{Lu}&&[^A-C]]+?(?=\p{Ll})|(?<=\d)[^\d\s]", "merged_with_next", False),
                                            ("words, merged with the previous", r"\b\w+\b|$|^", "merged_with_previous", False),
                                            ("thousands", r"\d{1,3}(?=(?:\d{3})*\b)", "contiguous", False)):
        t = new(name)
        t.pre_tokenizer = byte_level(pattern, behavior=behavior, invert=invert)
        t.decoder = decoders.ByteLevel()
        train(t, corpus, 1000, special_tokens=["<|endoftext|>"])

    t = new("roberta")
    t.pre_tokenizer = byte_level(prefix=True)
    t.decoder = decoders.ByteLevel()
    train(t, corpus, 1000, special_tokens=["<s>", "</s>", "<mask>"])
    t.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    t.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))

    t = new("falcon")
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
                                               pre_tokenizers.Digits(), pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")])
    t.decoder = decoders.ByteLevel()
    train(t, corpus, 1000, special_tokens=["<|endoftext|>"])

    t = new("starcoder")
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    train(t, corpus, 1000)

    t = new("llama 2", models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    train(t, [line[:200] for line in corpus], 1200, False, limit_alphabet=200,
          special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> <s> $B:1 </s>:1", special_tokens=[("<s>", 1), ("</s>", 2)])

    for fuse in (False, True):
        t = new(f"metaspace, unknowns {'fused' if fuse else 'single'}", models.BPE(fuse_unk=fuse, unk_token="<unk>"))
        t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first" if fuse else "always", split=fuse)
        t.decoder = decoders.Metaspace(prepend_scheme="first")
        train(t, corpus, 800, False, limit_alphabet=60, special_tokens=["<unk>", "<mask>"])

    t = new("clip", models.BPE(end_of_word_suffix="</w>", unk_token="<|endoftext|>"))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    t.pre_tokenizer = byte_level(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+", behavior="removed", invert=True)
    t.decoder = decoders.BPEDecoder("</w>")
    train(t, corpus, 1500, end_of_word_suffix="</w>", special_tokens=["<|endoftext|>"])
    t.add_tokens([AddedToken("Tok", normalized=True), AddedToken("É!", normalized=True)])

    t = new("nfkc, lower case, bert", models.BPE(continuing_subword_prefix="##", unk_token="<unk>"))
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    train(t, corpus, 1200, False, continuing_subword_prefix="##", limit_alphabet=300, special_tokens=["<unk>", "[CLS]", "[SEP]"])
    t.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))

    for form in ("NFD", "NFKD"):
        t = new(form.lower())
        t.normalizer = getattr(normalizers, form)()
        t.pre_tokenizer = byte_level(prefix=False)
        t.decoder = decoders.ByteLevel()
        train(t, corpus, 800)
        t.add_tokens(all_added())

    t = new("bytes that are not in the vocabulary")
    t.pre_tokenizer = byte_level(prefix=False)
    t.decoder = decoders.ByteLevel()
    train(t, corpus, 300, False, limit_alphabet=60)
    return made
