"""Writes tests/kernel/golden/random.script and random.bin: random calls and the bytes that PyTorch answers.

python tools/golden/random_golden.py
"""
import os

import random_script

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "kernel", "golden")


def lines():
    script = []
    for dtype in random_script.FLOATS:
        script.append("seed 2026")
        for n in list(range(1, 36)) + [63, 64, 65, 100, 1000]:
            script += [f"normal {dtype} {n} 1 0 1", f"uniform {dtype} {n} 1 0 1"]
    script.append("state")
    # An odd number of single samples leaves one cached; the state that PyTorch saves then is continued.
    first = ["seed 18446744073709551615", "normal float32 3 1 0 1"]
    state = random_script.run(first + ["state"])[-1][1]
    script += ["load " + state.hex(), "normal float64 5 1 0.5 2", "state", "randperm int64 1000 1", "uniform float32 700 1 0 1",
               "random int64 100 1", "normal float32 16 1 0 1", "normal bfloat16 1 1 0 1", "state"]
    script += random_script.make(7, 700, list(range(0, 41)) + [100])
    script.append("state")
    return script


def main():
    script = lines()
    results = random_script.run(script)
    with open(os.path.join(FOLDER, "random.script"), "w") as f:
        f.write("\n".join(script) + "\n")
    with open(os.path.join(FOLDER, "random.bin"), "wb") as f:
        for _, data in results:
            f.write(data)


if __name__ == "__main__":
    main()
