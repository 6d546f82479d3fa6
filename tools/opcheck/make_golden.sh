#!/usr/bin/env bash
# Makes tests/op/golden with the PyTorch of the Python given: make_golden.sh PYTHON. Takes a few minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=${1:?usage: make_golden.sh PYTHON}
out=tests/op/golden
list=$(mktemp)
trap 'rm -f "$list"' EXIT
opcheck=build/release/bin/opcheck
if [[ -x $opcheck ]]; then "$opcheck" --list >"$list"; fi
mkdir -p "$out"
PYTHONDONTWRITEBYTECODE=1 "$python" tools/opcheck/make_cases.py --golden --jobs 1 --per-op 4 --guards-per-op 2 --list "$list" --out "$out"
PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0 "$python" tools/opcheck/make_gradients.py --golden --jobs 1 --list "$list" --out "$out"
"$python" tools/opcheck/overloads.py "$list" >"$out/overloads.tsv"
rm -f "$out/counts.tsv"
du -sh "$out"
