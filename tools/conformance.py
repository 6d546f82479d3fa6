#!/usr/bin/env python3
"""Makes docs/conformance.md from the tests' own reports: each test whose name starts with a row's id (T042_..., H017_..., B101_...)
stands for that row; B rows are those of docs/behaviours.md.

    tools/conformance.py build/release/test-results [--rows ROWS.tsv ...] [--areas fx,sym] [-o docs/conformance.md]

With the tables of rows (id, area, source, behaviour, level) rows without a test are listed as well; the exit status is 1
when a row has failed or, with --complete, has no test.
"""
import argparse
import csv
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

ROWS = re.compile(r"(?:^|/)((?:[THB]\d{3}_)+)")  # a test may stand for several rows
NOT_APPLICABLE = "not applicable: "


def read_reports(folder):
    """row -> list of (test, state, reason)"""
    found = {}
    for path in sorted(pathlib.Path(folder).glob("*.xml")):
        for case in xml.parse(path).getroot().iter("testcase"):
            match = ROWS.search(case.get("name"))
            if not match:
                continue
            state, reason = "passes", ""
            if case.find("failure") is not None:
                state = "fails"
            elif case.find("skipped") is not None:
                text = case.find("skipped").get("message") or case.find("skipped").text or ""
                text = " ".join(text.split("\n")[-1 if NOT_APPLICABLE not in text else 0:]).strip()
                at = text.find(NOT_APPLICABLE)
                state = "does not apply" if at >= 0 else "skipped"
                reason = text[at + len(NOT_APPLICABLE):] if at >= 0 else text
            elif case.get("status") == "notrun" or case.get("result") == "suppressed":
                state = "not run"
            for row in match.group(1).strip("_").split("_"):
                found.setdefault(row, []).append((f"{path.stem}: {case.get('classname')}.{case.get('name')}", state, reason))
    return found


def read_rows(paths, areas):
    rows = {}
    for path in paths:
        with open(path, newline="") as f:
            for row in csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE):
                if not areas or row["area"] in areas:
                    rows[row["id"]] = row
    return rows


def cell(text):
    return text.replace("|", "\\|")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", help="the folder of GoogleTest's XML reports")
    parser.add_argument("--rows", nargs="*", default=[])
    parser.add_argument("--areas", type=lambda s: set(s.split(",")), default=set())
    parser.add_argument("--complete", action="store_true")
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    tests = read_reports(options.reports)
    rows = read_rows(options.rows, options.areas)
    counts = {}
    lines = []
    for row in sorted(set(rows) | (set(tests) if not options.areas else set())):
        area = rows[row]["area"] + ", " + rows[row]["level"] if row in rows else ""
        for test, state, reason in tests.get(row, [("", "no test", "")]):
            counts[state] = counts.get(state, 0) + 1
            lines.append(f"| {row} | {area} | {cell(test)} | {state} | {cell(reason)} |")
    summary = ", ".join(f"{n} {state}" for state, n in sorted(counts.items(), key=lambda x: -x[1]))
    text = "# Conformance\n\nMade by `tools/conformance.py` from the tests' reports; not written by hand.\n\n"
    text += f"{len(lines)} tests: {summary}.\n\n| row | area, level | test | state | reason |\n|---|---|---|---|---|\n" + "\n".join(lines) + "\n"
    if options.output:
        pathlib.Path(options.output).write_text(text)
        print(summary)
    else:
        sys.stdout.write(text)
    return 1 if counts.get("fails") or (options.complete and counts.get("no test")) else 0


if __name__ == "__main__":
    sys.exit(main())
