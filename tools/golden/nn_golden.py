"""Writes tests/nn/golden: a sample of the cases of nn_cases.py with their inputs and PyTorch's answers.

python tools/golden/nn_golden.py
"""
import json
import os

import nn_cases
import torch
from safetensors.torch import save_file

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "nn", "golden")


def sample():
    """The first, the last and one between of each layer or function."""
    by_name = {}
    for case in nn_cases.cases():
        by_name.setdefault(case.get("layer") or case["function"], []).append(case)
    for same in by_name.values():
        yield from (same[i] for i in sorted({0, len(same) // 2, len(same) - 1}))


def main():
    torch.set_num_threads(1)
    lines, inputs, expected = [], {}, {}
    for case in sample():
        written, tensors = nn_cases.materialise(case, 2026)
        said, answers = nn_cases.answers(written, tensors)
        lines.append(json.dumps({**written, "expected": said}))
        inputs.update(tensors)
        expected.update(answers)
    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, "cases.jsonl"), "w") as f:
        f.write("\n".join(lines) + "\n")
    save_file(inputs, os.path.join(FOLDER, "inputs.safetensors"))
    save_file(expected, os.path.join(FOLDER, "expected.safetensors"))


if __name__ == "__main__":
    main()
