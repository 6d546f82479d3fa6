#!/usr/bin/env python3
"""Makes src/text/regex_properties_data.cpp: what the regular expressions of the tokenizers library (Oniguruma's) know of characters
besides general categories: scripts, what POSIX brackets and \\p{...} name, and which characters are equal in any case. The library
itself is asked; only the names of scripts are those of the regex module.

    python tools/text/regex_tables.py src/text/regex_properties_data.cpp
"""
import os
import sys

import regex
import tokenizers
from tokenizers import Regex, pre_tokenizers

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from unicode_tables import POINTS, matched, numbers, runs  # noqa: E402

# The bits behind a script's number, in the order of RegexProperty in regex_properties.h.
FLAGS = "Alphabetic Lowercase Uppercase Emoji Emoji_Presentation Emoji_Modifier Extended_Pictographic Ideographic".split()


def known(name):
    try:
        Regex(rf"\p{{{name}}}")
        return True
    except Exception:
        return False


def script_names():
    """[[long name, short name, ...]]"""
    from regex import _regex_core

    values = _regex_core.PROPERTIES["SCRIPT"][1]
    by_value = {}
    for name, value in values.items():
        by_value.setdefault(value, []).append(name)
    out = []
    for names in by_value.values():
        names = sorted((n for n in names if known(n)), key=lambda n: (-len(n), n))
        if names:
            out.append(names)
    return sorted(out)


def found_in(pattern, text):
    """The stretches of `text` that a regular expression matches."""
    isolated = pre_tokenizers.Split(Regex(pattern), "isolated")
    removed = pre_tokenizers.Split(Regex(pattern), "removed")
    kept = {span for _, span in removed.pre_tokenize_str(text)}
    return [part for part, span in isolated.pre_tokenize_str(text) if span not in kept]


def ranges_of(pairs):
    """(character, difference) as first, last, step, difference"""
    out, open_ranges = [], {}
    for c, difference in pairs:
        at = open_ranges.get(difference)
        if at is not None:
            first, last, step, _ = out[at]
            if c - last == step or (first == last and c - last <= 2):
                out[at] = (first, c, c - last, difference)
                continue
        open_ranges[difference] = len(out)
        out.append((c, c, 1, difference))
    return out


def main():
    script, names = {}, script_names()
    for number, spellings in enumerate(names, 1):
        sets = [matched(rf"\p{{{n}}}") for n in spellings]
        assert all(s == sets[0] for s in sets), spellings
        for c in sets[0]:
            assert c not in script, hex(c)
            script[c] = number
    assert len(names) < 256
    flags = [matched(rf"\p{{{f}}}") for f in FLAGS]
    values = {c: script.get(c, 0) | sum(256 << i for i, f in enumerate(flags) if c in f) for c in POINTS}

    # What POSIX brackets name follows from categories, white space and the flags above; regex_properties.cpp says how.
    category = {n: matched(rf"\p{{{n}}}") for n in "L N P S Z Cc Cf Cn Cs Co Nd Zs Lu Ll M Pc Zl Zp".split()}
    everything, space = set(POINTS), matched(r"\s")
    formulas = {"alpha": flags[0], "lower": flags[1], "upper": flags[2], "digit": category["Nd"], "alnum": flags[0] | category["Nd"],
                "space": space, "blank": category["Zs"] | {9}, "cntrl": category["Cc"], "word": matched(r"\w"),
                "xdigit": set(map(ord, "0123456789abcdefABCDEF")), "ascii": set(range(128)),
                "punct": category["P"],
                "graph": everything - space - category["Cc"] - category["Cn"] - category["Cs"],
                "print": (everything - space - category["Cc"] - category["Cn"] - category["Cs"]) | category["Zs"]}
    for name, formula in formulas.items():
        for pattern in (f"[[:{name}:]]", rf"\p{{{name}}}", rf"[\p{{{name}}}]"):
            expected = formula
            if name == "word" and pattern[0] == "[":  # within brackets these are no characters of a word
                expected = formula - set(map(ord, "\u00b2\u00b3\u00b9\u00bc\u00bd\u00be"))
            if pattern == "[[:punct:]]":
                expected = formula | category["S"]
            real = matched(pattern)
            assert real == expected, (pattern, [hex(c) for c in sorted(real ^ expected)[:20]], len(real ^ expected))

    candidates = [c for c in POINTS if chr(c).lower() != chr(c) or chr(c).upper() != chr(c) or chr(c).casefold() != chr(c) or
                  chr(c).title() != chr(c)]
    separated = "\n".join(map(chr, candidates))
    pairs, multiple = [], []
    for c in candidates:
        others = [ord(x) for x in found_in(rf"(?i:[\x{{{c:x}}}])", separated) if len(x) == 1 and x != chr(c)]
        pairs += [(c, o - c) for o in others]
        folded = chr(c).casefold()
        if len(folded) > 1:
            if found_in(rf"(?i:\x{{{c:x}}})", folded) == [folded]:
                assert found_in(f"(?i:{folded})", chr(c)) == [chr(c)], hex(c)
                multiple.append([c] + [ord(x) for x in folded] + [0] * (3 - len(folded)))
            else:
                print("no fold of several:", hex(c), ascii(folded))
    ranges = ranges_of(pairs)
    with open(sys.argv[1], "w") as out:
        out.write(f"// Made by tools/text/regex_tables.py from tokenizers {tokenizers.__version__} (names of scripts: regex {regex.__version__}); "
                  'do not edit.\n#include "text/regex_properties.h"\n\n// clang-format off\nnamespace calque {\n\n')
        all_runs = runs(values)

        def table(name, comment, type_, given):
            out.write(f"// {comment}\nstatic const {type_} {name}_values[] = {{\n{numbers(given)}\n}};\n"
                      f"const std::span<const {type_}> {name}{{{name}_values}};\n\n")

        table("regex_property_starts", "First character of a run.", "uint32_t", [c for c, _ in all_runs])
        table("regex_property_values", "Its script and flags.", "uint16_t", [v for _, v in all_runs])
        table("regex_case_ranges", "First, last, step, difference to a character that is equal in any case.", "int32_t",
              [x for r in ranges for x in r])
        table("regex_case_sequences", "A character, and the two or three that it is equal to in any case.", "uint32_t",
              [x for m in multiple for x in m])
        quoted = ['"' + "|".join(n.lower().replace("_", "") for n in spellings) + '"' for spellings in names]
        lines, line = [], ""
        for q in quoted:
            if len(line) + len(q) > 116:
                lines.append(line)
                line = ""
            line += q + ","
        lines.append(line)
        out.write("// By number, from 1 on; without hyphens and underscores, in lower case.\n"
                  "static const std::string_view regex_script_name_values[] = {\n" + "\n".join("    " + x for x in lines) +
                  "\n};\nconst std::span<const std::string_view> regex_script_names{regex_script_name_values};\n\n")
        out.write("}  // namespace calque\n")
    print(len(all_runs), "runs,", len(names), "scripts,", len(ranges), "ranges of cases,", len(multiple), "sequences")


if __name__ == "__main__":
    main()
