#!/usr/bin/env python3
"""Makes src/text/unicode_data.cpp: what the tokenizers library says of every character, asked of the library itself, so
that its several Unicode versions (one for its regular expressions, an older one for its normal forms) are followed exactly.

    python tools/text/unicode_tables.py src/text/unicode_data.cpp
"""
import sys
import unicodedata

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CHUNK = 8192
CATEGORIES = ("Cn Cc Cf Cs Co Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp").split()


def matched(pattern):
    """The characters that a regular expression of one character matches."""
    split = pre_tokenizers.Split(Regex(f"(?:{pattern})+"), "removed")
    found = set(POINTS)
    for i in range(0, len(POINTS), CHUNK):
        chunk = POINTS[i:i + CHUNK]
        for _, (begin, end) in split.pre_tokenize_str("".join(map(chr, chunk))):
            found.difference_update(chunk[begin:end])
    return found


def alone(pre_tokenizer, between):
    """Characters that a pre-tokenizer makes stand alone between two others."""
    return {c for c in POINTS if len(pre_tokenizer.pre_tokenize_str(between + chr(c) + between)) == 3}


def beside_a_word():
    """Characters beside which an added token with single_word is no token."""
    tokenizer = Tokenizer(models.BPE({"x": 0}, []))
    tokenizer.add_tokens([AddedToken("#", single_word=True, normalized=False)])
    wanted = tokenizer.token_to_id("#")
    encoded = tokenizer.encode_batch(["#" + chr(c) for c in POINTS])
    return {c for c, e in zip(POINTS, encoded) if wanted not in e.ids}


def stripped():
    """Characters that an added token with lstrip takes in."""
    tokenizer = Tokenizer(models.BPE({"x": 0}, []))
    tokenizer.add_tokens([AddedToken("#", lstrip=True, normalized=False)])
    encoded = tokenizer.encode_batch([chr(c) + "#" for c in POINTS])
    return {c for c, e in zip(POINTS, encoded) if e.offsets[0][0] == 0}


def runs(values):
    out = []
    for c in range(0x110000):
        value = values.get(c, 0)
        if not out or out[-1][1] != value:
            out.append((c, value))
    return out


def numbers(values, width=118):
    lines, line = [], ""
    for v in values:
        text = f"{v},"
        if len(line) + len(text) > width:
            lines.append(line)
            line = ""
        line += text
    return "\n".join("    " + x for x in lines + [line])


def main():
    category = {}
    for index, name in enumerate(CATEGORIES):
        if name in ("Cn", "Cs"):
            continue
        for c in matched(rf"\p{{{name}}}"):
            assert c not in category, hex(c)
            category[c] = index
    space, word, number = matched(r"\s"), matched(r"\w"), alone(pre_tokenizers.Digits(individual_digits=True), "a")
    punctuation = alone(pre_tokenizers.Punctuation("isolated"), "a")
    assert stripped() - {ord("#"), ord("x")} == space
    assert matched(r"\d") == {c for c, k in category.items() if CATEGORIES[k] == "Nd"}
    single = beside_a_word()
    values = {c: category.get(c, 0) | 32 * (c in space) | 64 * (c in word) | 128 * (c in single) | 256 * (c in number) |
              512 * (c in punctuation)
              for c in POINTS}

    lower, longer = [], []
    for c in POINTS:
        text = normalizers.Lowercase().normalize_str(chr(c))
        if text != chr(c):
            (lower if len(text) == 1 else longer).append((c, [ord(x) for x in text]))
    assert longer == [(0x130, [0x69, 0x307])]
    ranges = []  # first, last, step, difference
    for c, (to,) in lower:
        if ranges and ranges[-1][3] == to - c:
            first, last, step, difference = ranges[-1]
            if c - last == step or (first == last and c - last <= 2):
                ranges[-1] = (first, c, c - last, difference)
                continue
        ranges.append((c, c, 1, to - c))

    nfc, nfd, nfkd = normalizers.NFC(), normalizers.NFD(), normalizers.NFKD()
    hangul = range(0xAC00, 0xAC00 + 11172)
    index, pool, where = [], [], {}
    for c in POINTS:
        if c in hangul:
            continue
        canonical, compatible = nfd.normalize_str(chr(c)), nfkd.normalize_str(chr(c))
        for kind, text in ((0, canonical), (1, compatible)):
            if text == chr(c) or (kind == 1 and text == canonical):
                continue
            if text not in where:
                where[text] = len(pool)
                pool += [ord(x) for x in text]
            index.append((c, kind << 31 | len(text) << 16 | where[text]))
    classes = {}
    for c in POINTS:
        own = unicodedata.combining(chr(c))
        if own == 0:
            continue
        # The library knows its class if it orders it beside a mark of another class.
        for mark in ("\u0334", "\u0345"):
            for text in ("a" + chr(c) + mark, "a" + mark + chr(c)):
                if nfd.normalize_str(text) != text:
                    classes[c] = own
    compositions = []
    for c in POINTS:
        parts = unicodedata.decomposition(chr(c)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            first, second = (chr(int(p, 16)) for p in parts)
            if nfc.normalize_str(first + second) == chr(c):
                compositions.append((ord(first), ord(second), c))
    compositions.sort()

    with open(sys.argv[1], "w") as out:
        out.write(f"// Made by tools/text/unicode_tables.py from tokenizers {tokenizers.__version__}; do not edit.\n"
                  '#include "text/unicode_data.h"\n\n// clang-format off\nnamespace calque {\n\n')

        def table(name, comment, type_, values):
            values, name = list(values), "unicode_" + name
            out.write(f"// {comment}\nstatic const {type_} {name}_values[] = {{\n{numbers(values)}\n}};\n"
                      f"const std::span<const {type_}> {name}{{{name}_values}};\n\n")

        table("property_runs", "First character of a run << 11 | its properties.", "uint32_t",
              (c << 11 | v for c, v in runs(values)))
        table("lower_ranges", "First, last, step, difference.", "int32_t", (x for r in ranges for x in r))
        table("decompositions", "Character, then compatibility << 31 | length << 16 | place in decomposition_pool.",
              "uint32_t", (x for e in index for x in e))
        table("decomposition_pool", "Characters.", "uint32_t", pool)
        table("class_runs", "First character of a run << 8 | its combining class.", "uint32_t",
              (c << 8 | v for c, v in runs(classes)))
        table("compositions", "First, second, composed; sorted.", "uint32_t", (x for e in compositions for x in e))
        out.write("}  // namespace calque\n")


if __name__ == "__main__":
    main()
