#!/usr/bin/env python3
"""Regular expressions against those of the tokenizers library (Oniguruma), live: python tests/peers/split_patterns.py [PROGRAM] [--all]

Expressions of real tokenizers and small ones, one construct each, cut mixed texts with tokenizers' Split(Regex(...)) and with
Calque. The pieces must be equal. An expression that Calque refuses must be one that the library refuses too, or hold a construct of
the list of those that Calque does not know, with the message that says so.
"""
import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile

from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REAL = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    CONTRACTION + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + CONTRACTION +
    r"?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + CONTRACTION +
    r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+",
    "[一-龥\u3040-ゟ゠-ヿ]+", r"\p{N}{1,3}", r"\d{1,3}(?=(?:\d{3})*\b)", r"(?:\d{1,3}(?=(?:\d{3})+(?!\d)))|\d{1,3}",
    r"[\p{P}\p{S}¢€£¥]+[\r\n]*", r"(?<=\p{Han})(?=\p{Latin})|\s", r"[A-Za-z\u00C0-\u024F]+", r"[^\n]+|[\n]+", r"\s?[A-Za-z]+|\s?[0-9]",
    r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{Script=Han}+", r"\b\w+\b|\S", r"\w+|[^\w\s]+",
    r"(^|(?<=\s))#\S+", r" {2,}|\t+", r"\[CLS\]|\[SEP\]|\[(?!CLS|SEP)", r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}+",
    r"[^\r\n\p{L}\p{N}]?+[\p{Lu}]++|\p{N}++|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
]
# Small ones: atoms, what is put behind them, and what stands around them.
ATOMS = ["a", ".", r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\h", r"\H", r"[a-f]", r"[^a-f\s]", r"[a-z&&[^aeiou]]", r"[[:alpha:]]",
         r"[[:^digit:]]", r"[[:punct:]]", r"[[:space:]]", r"[[:upper:][:digit:]]", r"\p{Lu}", r"\P{L}", r"\p{^N}", r"\p{Greek}", r"\pL",
         r"\p{Letter}", r"\p{Alpha}", r"\p{Zs}", r"[\p{L}--\p{Lu}]", r"(?i:é)", r"(?i:ss)", r"(?i:K)", r"\x41", r"\u00e9", r"\x{1F600}",
         r"\R", r"\X", r"\N", r"\O", r"[\]\-x]", r"[]a]", r"[a\-z]", r"\.", r"(?:ab|a)", r"(ab|cd)", r"(?<n>a)", r"(?>a+|b)", r"\t",
         r"[\w]", r"[^\w\s]", r"[[:word:]]", r"(?:a|)", r"(?:|a)", r"\b", r"(?:a?b?)", r"\p{Han}", r"[\p{Alpha}\p{Nd}]", r"(?i:[ß-é])", r"(?i:ﬀi|st)",
         r"(?i:[[:lower:]])", r"(?:a+)", r"(?:a*?)", r"(?:a??)", r"(?:a{2})", r"(?:a+?)"]
SUFFIXES = ["", "+", "*", "?", "+?", "*?", "??", "++", "{2}", "{1,2}", "{2,}", "{,2}", "{1,2}?", "{1,2}+"]
AROUND = [r"^%s", r"%s$", r"\b%s", r"%s\b", r"\B%s", r"\A%s", r"%s\z", r"%s\Z", r"(?=%s).", r"(?!%s).", r"(?<=a)%s", r"(?<!a)%s", r"%s|b", r"x%s?y|%s", r"(?i:%s)+",
          r"(?:%s)+", r"(?m:%s.)", r"(?i)%s", r"(?-i:%s)", r"(?x: %s )", r"\G%s", r"(?#note)%s", r"(%s)\1", r"\K%s", r"a(?:%s|)c", r"(?s:.)%s"]
TEXTS = ["", "abc ABC aab  dd", "Grüße, Straße ΑΒΓ λόγος K ſ ẞ", "東京は日本の首都です。1400万人", "x1 22 333 4444,55.6e-7 ½ Ⅻ ²٣",
         "it's they'LL we'Ve\r\n\r\n\tend  \n", "😀👩\u200d🔬 e\u0301 ﷺ \u00a0\u2028\u3000.", "a]-[b{c}(d)#!? aaa\naa\x0b\x0c\x85z", "KkKſ",
         "word_word 7th @user #tag ééÉ"]
# What Calque refuses and the library knows, with why: no tokenizer that we know of has any.
REFUSED = {
    "clusters of characters": [r"\X", r"\y", r"\Y"],  # their rules and tables are of another Unicode version
    "the call of a group": [r"\g<"], "a condition": ["(?("], "an absent group": ["(?~"], "a callout": ["(?{", "(*"],
    "an option besides i, m and x": ["(?W", "(?D", "(?S", "(?P", "(?y"],
    "a reference with a level": [r"\k<n+", r"\k<1+"], "a reference within its own group": [r"(a\1"], "a reference in any case": ["(?i"],
    "may match nothing and is referred to": [r"\1", r"\k<"], "two groups of one name": ["(?<n>"],
    "is no category, script or class": [r"\p{In", r"\p{Age"], "a range up to a class": ["-["], "a single byte": [r"\x"],
    r"\R in a look-behind": [r"\R"], "so many times, of what may match nothing": ["{"],  # where the library's answer depends on its program's length
}


def random_expression(r, depth=3):
    """Atoms, repetitions, groups, alternatives and classes in one another."""
    kind = r.random()
    if depth == 0 or kind < 0.25:
        return r.choice(ATOMS)
    if kind < 0.45:
        return random_expression(r, depth - 1) + r.choice(SUFFIXES)
    if kind < 0.6:
        return r.choice(["(?:%s)", "(%s)", "(?i:%s)", "(?>%s)", "(?m:%s)", "(?i)%s"]) % random_expression(r, depth - 1) + r.choice(SUFFIXES)
    if kind < 0.7:
        return "(?:" + "|".join(random_expression(r, depth - 1) for _ in range(r.randrange(2, 4))) + ")" + r.choice(SUFFIXES)
    if kind < 0.8:
        parts = ["a", "b-k", r"\w", r"\s", r"\d", r"\p{L}", r"\p{Lu}", "[:alnum:]", "[^c]", "[x-z]", "&&", "-", r"\-", "ß", r"\x{3b1}-\x{3c9}", "^", "7"]
        return r.choice(["[", "[^", "(?i:[", "(?i:[^"]).replace("(?i:[", "(?i)[") + "".join(r.choice(parts) for _ in range(r.randrange(1, 5))) + "]"
    if kind < 0.87:
        return r.choice(["(?=%s)", "(?!%s)", "(?<=%s)", "(?<!%s)"]) % random_expression(r, depth - 2 if depth > 1 else 0)
    return "".join(random_expression(r, depth - 1) for _ in range(r.randrange(2, 4)))


def library(pattern, texts):
    try:
        isolated, removed = Split(Regex(pattern), "isolated"), Split(Regex(pattern), "removed")
    except Exception as e:
        return None, str(e)
    out = []
    for text in texts:
        try:
            kept = {span for _, span in removed.pre_tokenize_str(text)}
            out.append([[*span, span not in kept] for _, span in isolated.pre_tokenize_str(text)])
        except BaseException as e:  # a panic: Oniguruma's own limit
            if "retry-limit" not in str(e):
                raise
            out.append(None)
    return out, None


def main():
    os.environ["RUST_BACKTRACE"] = "0"
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?", default=os.path.join(os.environ.get("CALQUE_BUILD", ""), "bin/split_patterns_peer"))
    parser.add_argument("--all", action="store_true", help="every small expression with every suffix and surrounding")
    parser.add_argument("--random", type=int, help="how many expressions are made by chance")
    args = parser.parse_args()
    patterns = REAL + [a + s for a in ATOMS for s in SUFFIXES] + [w.replace("%s", a) for w in AROUND for a in ATOMS]
    if args.all:
        patterns += [w.replace("%s", a + s) for w in AROUND for a in ATOMS for s in SUFFIXES[1:]]
    r = random.Random(7)
    patterns += [random_expression(r) for _ in range(args.random or (20000 if args.all else 1500))]
    with tempfile.TemporaryDirectory() as folder:
        given, made = os.path.join(folder, "cases"), os.path.join(folder, "out")
        with open(given, "w") as f:
            f.writelines(json.dumps({"pattern": p, "texts": TEXTS}) + "\n" for p in patterns)
        subprocess.run([args.program, given, made], check=True)
        with open(made) as f:
            found = [json.loads(line) for line in f]
    equal = neither = wrong = 0
    refused = collections.Counter()
    for pattern, mine in zip(patterns, found):
        theirs, error = library(pattern, TEXTS)
        if "error" in mine:
            reason = next((r for r, parts in REFUSED.items() if r in mine["error"] and any(x in pattern for x in parts)), None)
            if error is not None:
                neither += 1
            elif "too many steps" in mine["error"] or "too long" in mine["error"]:
                refused["limits of steps and length"] += 1
            elif reason:
                refused[reason] += 1
            else:
                wrong += 1
                print(f"REFUSED {pattern!r}: {mine['error']}")
        elif error is not None and "undefined error code" in error:  # the library's own mistake
            neither += 1
        elif theirs and all(b is None or a == b for a, b in zip(mine["pieces"], theirs)):
            equal += 1
        else:
            wrong += 1
            i = next((i for i, (a, b) in enumerate(zip(mine["pieces"], theirs or [])) if b is not None and a != b), None)
            print(f"DIFFERENT {pattern!r}" + (f" of {ascii(TEXTS[i])}\n  found    {mine['pieces'][i]}\n  expected {theirs[i]}"
                                              if i is not None else f": the library says {error}"))
    print(f"{len(patterns)} expressions x {len(TEXTS)} texts: {equal} with the same pieces, {neither} that neither takes, "
          f"{sum(refused.values())} that Calque refuses: {dict(refused)}")
    print(f"{equal + neither + sum(refused.values())} passed, {wrong} failed")
    return 0 if wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
