#!/usr/bin/env python3
"""The guide's page "From a Python export to C++" as a reader follows it: its Python code writes net.pt2 with this PyTorch, then its
command lines run on that file. Needs the built page (ninja examples)."""

import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ["CALQUE_BUILD"]
PAGE = os.path.join(ROOT, "docs", "guide", "from-python.md")


def main():
    extract = os.path.join(ROOT, "tests", "guide", "extract.sh")
    code = subprocess.run([extract, PAGE, "python"], check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        written = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
        if written.returncode:
            print(written.stdout + written.stderr + "the page's Python code failed\n0 passed, 1 failed")
            return 1
        program = os.path.join(BUILD, "bin", "guide_from-python")
        command = [os.path.join(ROOT, "tests", "guide", "run.sh"), PAGE, program, os.path.join(folder, "work"),
                   os.path.join(BUILD, "bin"), ROOT, os.path.join(folder, "net.pt2")]
        ran = subprocess.run(command, capture_output=True, text=True)
        print(ran.stdout + ran.stderr)
    print("1 passed, 0 failed" if ran.returncode == 0 else "0 passed, 1 failed")
    return ran.returncode


if __name__ == "__main__":
    sys.exit(main())
