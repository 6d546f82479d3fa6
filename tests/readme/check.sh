#!/usr/bin/env bash
# Usage: check.sh README.md N example.cpp    Fails when the README's Nth C++ block is not the compiled example, byte for byte.
set -euo pipefail

block=$(awk -v wanted="$2" '/^```cpp$/ { if (++count == wanted) inside = 1; next } /^```$/ { if (inside) exit } inside' "$1")
if [[ -z $block ]]; then
  echo "$1 has no \`\`\`cpp block number $2"
  exit 1
fi
diff -u --label "$1" --label "$3" <(printf '%s\n' "$block") "$3"
