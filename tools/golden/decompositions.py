"""Makes tests/trace/golden/decompositions.jsonl: for each operator of the core decompositions one call as PyTorch traces it,
functionalised, with static sizes.    python tools/golden/decompositions.py [FOLDER of cases] > tests/trace/golden/decompositions.jsonl
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "peers"))

import decompositions  # noqa: E402
from nn_trace import recorded  # noqa: E402


def plain(v):
    """An argument without its bytes."""
    if isinstance(v, list):
        return [plain(x) for x in v]
    if isinstance(v, dict) and "t" in v:
        return {"dtype": v["dtype"], "sizes": v["sizes"], "strides": v["strides"]} | ({"tensor": True})
    return v


def simple(case):
    """Dense inputs with elements, floats first."""
    tensors = [v for v in [*case.entry["args"], *case.entry["kwargs"].values()] if isinstance(v, dict) and "t" in v]
    dense = all(v["offset"] == 0 and 0 not in v["sizes"] and len(v["sizes"]) <= 4 for v in tensors)
    return dense, any(v["dtype"] == "float32" for v in tensors), case.entry["kind"] == "base"


def main():
    warnings.simplefilter("ignore")
    names = sorted(n for n in (str(o) for o in decompositions.TABLE) if not n.split(".")[1].endswith("_") and "out" not in n.split(".")[2])
    has = subprocess.run([os.path.join(ROOT, "build", "release", "bin", "decompositions"), "--list"], check=True, capture_output=True, text=True).stdout
    known = {decompositions.canonical(n): n for n in json.loads(has)["core"]}
    wanted = [known[n] for n in names if n in known]
    with tempfile.TemporaryDirectory() as scratch:
        folder = sys.argv[1] if len(sys.argv) > 1 else scratch
        if folder == scratch:
            subprocess.run([sys.executable, os.path.join(ROOT, "tools", "opcheck", "make_cases.py"), "--out", folder, "--ops", ",".join(wanted),
                            "--per-op", "12", "--what", "cases"], check=True, env={**os.environ, "PYTHONHASHSEED": "0"}, stdout=subprocess.DEVNULL)
        by_op = {}
        for file in sorted(f for f in os.listdir(folder) if f.startswith("cases") and f.endswith(".jsonl")):
            with open(os.path.join(folder, file[:-6] + ".bin"), "rb") as f:
                blob = f.read()
            with open(os.path.join(folder, file)) as f:
                for line in f:
                    case = decompositions.Case(json.loads(line), blob)
                    if case.entry["op"] in wanted:
                        by_op.setdefault(case.entry["op"], []).append(case)
    for name in wanted:
        for case in sorted(by_op.get(name, []), key=simple, reverse=True):
            if not case.traceable():
                continue
            try:
                gm, _ = decompositions.traced(case, "fake")
            except Exception:
                continue
            print(json.dumps({"op": name, "args": [plain(v) for v in case.entry["args"]],
                              "kwargs": {k: plain(v) for k, v in sorted(case.entry["kwargs"].items())}, "graph": recorded(gm.graph)}))
            break


if __name__ == "__main__":
    main()
