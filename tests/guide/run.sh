#!/usr/bin/env bash
# Usage: run.sh PAGE.md PROGRAM WORK BIN SOURCE [FILE...]
# Runs the page's sh blocks in a fresh folder WORK, where the page's program has the page's name, `calque` is the program in BIN, `tiny-lm` the
# model, and the FILEs are at hand. Every line of the page's text blocks must come, in their order (as the beginning of a line where
# it ends in a space).
set -euo pipefail
page=$1 program=$2 work=$3 bin=$4 source=$5
here=$(cd "$(dirname "$0")" && pwd)
shift 5

rm -rf "$work"
mkdir -p "$work/path"
if [[ -n $program ]]; then ln -s "$program" "$work/path/$(basename "$page" .md)"; fi
if [[ -x $bin/calque ]]; then ln -s "$bin/calque" "$work/path/calque"; fi
cp -r "$source/assets/tiny-lm" "$work/tiny-lm"
for file in "$@"; do cp "$file" "$work/"; done

cd "$work"
commands=$("$here/extract.sh" "$page" sh)
if [[ -z $commands ]]; then echo "$page has no sh block: nothing runs its program"; exit 1; fi
if ! PATH=$work/path:$PATH bash -euo pipefail -c "$commands" >output.txt 2>&1; then
  cat output.txt
  echo "a command of $page failed"
  exit 1
fi
cat output.txt
"$here/extract.sh" "$page" text | awk -v page="$page" '
  NR == FNR { shown[++count] = $0; next }
  {
    while (at < count && !found) { ++at; found = $0 ~ / $/ ? index(shown[at], $0) == 1 : shown[at] == $0 }
    if (!found) { printf "%s shows a line that did not come, or not after the one before it: %s\n", page, $0; exit 1 }
    found = 0
  }' output.txt -
