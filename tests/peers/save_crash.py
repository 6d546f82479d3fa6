#!/usr/bin/env python3
"""Saves that are killed at 300 random moments, with folders exchanged or renamed, and saves on a disk that is full: the old or the new
checkpoint is whole with its own tokenizer, every time, byte for byte."""

import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release"))

passed = failed = 0
for mode, rounds in (("whole", 300), ("renames", 300), ("disk", 200)):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([os.path.join(BUILD, "bin", "save_crash"), folder, str(rounds), "7", mode], capture_output=True, text=True)
    print(f"{mode}: {done.stdout.strip()} {done.stderr.strip()}")
    passed, failed = (passed + 1, failed) if done.returncode == 0 else (passed, failed + 1)
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
