#!/usr/bin/env bash
# Usage: check.sh README.md example.cpp    Fails when the README's C++ block is not the compiled example, byte for byte.
set -euo pipefail

block=$(awk '/^```cpp$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' "$1")
if [[ -z $block ]]; then
  echo "$1 has no \`\`\`cpp block"
  exit 1
fi
diff -u --label "$1" --label "$2" <(printf '%s\n' "$block") "$2"
