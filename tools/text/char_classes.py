#!/usr/bin/env python3
"""Makes src/text/char_classes_data.cpp: classes of characters that parts of a tokenizer.json go by, asked of the tokenizers
library itself; grapheme breaks are those of the regex module, which the library's cannot be asked for.

    python tools/text/char_classes.py src/text/char_classes_data.cpp
"""
import os
import sys

import regex
import tokenizers
from tokenizers import normalizers, pre_tokenizers

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from unicode_tables import POINTS, numbers, runs  # noqa: E402

# In the order of GraphemeBreak in char_classes.h.
BREAKS = "Control Extend ZWJ Prepend SpacingMark L V T LV LVT Regional_Indicator".split()


def removed(normalizer):
    return {c for c in POINTS if normalizer.normalize_str(chr(c)) == ""}


def words():
    """Characters of a word to the Whitespace pre-tokenizer."""
    whitespace = pre_tokenizers.Whitespace()
    return {c for c in POINTS if len(whitespace.pre_tokenize_str("a" + chr(c) + "a")) == 1}


def scripts():
    """By number, in the order in which they are met; 0 is the script that goes with any."""
    split = pre_tokenizers.UnicodeScripts()

    def same(a, b):
        return len(split.pre_tokenize_str(chr(a) + chr(b))) == 1

    first, found = {}, {}  # of a script, its first character
    last = 0
    for c in POINTS:
        # Alone, a character of any script is no piece.
        if not split.pre_tokenize_str(chr(c)):
            continue
        if last and same(first[last], c):
            found[c] = last
            continue
        last = next((s for s, other in first.items() if same(other, c)), len(first) + 1)
        first.setdefault(last, c)
        found[c] = last
    return found


def grapheme_breaks():
    text = "".join(map(chr, POINTS))
    found = {}
    for number, name in enumerate(BREAKS + ["Pictographic"], 1):
        pattern = r"\p{Extended_Pictographic}" if name == "Pictographic" else rf"\p{{GCB={name}}}"
        for match in regex.finditer(pattern, text):
            found.setdefault(ord(match[0]), number)
    found[0x0D] = found[0x0A] = 1  # breaks, but not from each other
    return found


def main():
    bert = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    control = removed(normalizers.BertNormalizer(**{**bert, "clean_text": True}))
    nonspacing = removed(normalizers.BertNormalizer(**{**bert, "strip_accents": True}))
    mark = removed(normalizers.StripAccents())
    word, script, breaks = words(), scripts(), grapheme_breaks()
    values = {c: 1 * (c in control) | 2 * (c in nonspacing) | 4 * (c in mark) | 8 * (c in word) | breaks.get(c, 0) << 4 |
              script.get(c, 0) << 8 for c in POINTS}
    all_runs = runs(values)
    with open(sys.argv[1], "w") as out:
        out.write(f"// Made by tools/text/char_classes.py from tokenizers {tokenizers.__version__} and regex {regex.__version__}; do not edit.\n"
                  '#include "text/char_classes.h"\n\n// clang-format off\nnamespace calque {\n\n')
        for name, type_, part in (("starts", "uint32_t", [c for c, _ in all_runs]), ("values", "uint16_t", [v for _, v in all_runs])):
            out.write(f"static const {type_} {name}[] = {{\n{numbers(part)}\n}};\n"
                      f"const std::span<const {type_}> char_class_{name}{{{name}}};\n\n")
        out.write("}  // namespace calque\n")
    print(len(all_runs), "runs,", max(script.values()), "scripts")


if __name__ == "__main__":
    main()
