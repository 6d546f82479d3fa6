"""Drivers made of parts: a part is a function of a scratch folder and the arguments that calls check() for each thing it compares; main() runs
all of them, or with --only one. And the program, as such drivers call it."""
import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release"))
CALQUE = os.environ.get("CALQUE_BIN", os.path.join(BUILD, "bin", "calque"))
results = []


def check(name, wrong):
    """`wrong`: what differs, in words; nothing where all is the same."""
    results.append(not wrong)
    print(f"{name:60} {'same' if not wrong else 'DIFFERENT'}", flush=True)
    for line in list(wrong)[:5]:
        print("   ", line)


def calque(*arguments, status=0):
    done = subprocess.run([CALQUE, *map(str, arguments)], capture_output=True)
    if done.returncode != status:
        raise RuntimeError(f"calque {' '.join(map(str, arguments))}: status {done.returncode}\n{done.stdout[-500:]}{done.stderr.decode()[-1500:]}")
    return done.stdout.decode()


def lines_of(*arguments):
    """What a command prints with --json, a document a line."""
    return [json.loads(line) for line in calque(*arguments, "--json").split("\n") if line]


def main(parts, description, more):
    """`more`: what --all adds. Gives the driver's exit status."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help=more)
    parser.add_argument("--only", choices=[part.__name__ for part in parts])
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    if "transformers" in sys.modules:
        sys.modules["transformers"].logging.set_verbosity_error()
        sys.modules["transformers"].logging.disable_progress_bar()
    for part in parts:
        if args.only and part.__name__ != args.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                part(folder, args)
            except Exception:
                traceback.print_exc()
                check(part.__name__, ["an exception"])
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1
