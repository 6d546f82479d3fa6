#!/usr/bin/env python3
"""Makes src/text/jinja/casing_data.h: the characters whose upper or title case is not the character that has them as its lower case.

    python tools/text/casing_table.py src/text/jinja/casing_data.h
"""
import sys

POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def main():
    upper = {}  # by lower case
    for c in POINTS:
        lower = chr(c).lower()
        if len(lower) == 1 and lower != chr(c):
            upper.setdefault(lower, chr(c))
    rows = []
    for c in map(chr, POINTS):
        if c.upper() != upper.get(c, c) or c.title() != c.upper():
            rows.append("    {%d, {%s}, {%s}}," % (ord(c), ", ".join(str(ord(x)) for x in c.upper()),
                                                  ", ".join(str(ord(x)) for x in c.title())))
    with open(sys.argv[1], "w") as f:
        f.write("// Made by tools/text/casing_table.py; do not edit. Upper and title case where they do not follow from the lower case.\n"
                "#pragma once\n\nnamespace calque::jinja {\n\n"
                "struct UnusualCase {\n  char32_t character;\n  char32_t upper[3], title[3];  // 0 behind the last\n};\n\n"
                "// clang-format off\nconstexpr UnusualCase unusual_cases[] = {\n" + "\n".join(rows) +
                "\n};\n// clang-format on\n\n}  // namespace calque::jinja\n")


if __name__ == "__main__":
    main()
