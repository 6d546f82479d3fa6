#!/usr/bin/env bash
# Usage: static_initialisers.sh OBJECT...
# Fails when one of them calls a function of Calque that another file defines before main starts. The order of such calls is
# the linker's, and a consumer of the static archive may not get them at all: what one file does for another is called when
# it is needed. Tables and strings that a file fills for itself are no concern of others.
set -euo pipefail

found=
for object in "$@"; do
  called=$({ objdump -r -j .text.startup "$object" 2>/dev/null || true; } |
    awk '/R_/ { name = $3; sub(/[-+]0x[0-9a-f]*$/, "", name); print name }' | sort -u)
  [[ -n $called ]] || continue
  # main() of a program lies in the same section.
  if nm --defined-only "$object" | grep -q ' T main$'; then continue; fi
  outside=$(comm -12 <(echo "$called") <(nm -u "$object" | awk '{ print $NF }' | sort -u) | c++filt | grep '^calque::' || true)
  [[ -z $outside ]] || found+="$object: $outside"$'\n'
done
if [[ -n $found ]]; then
  echo "functions of other files that are called before main:"
  echo -n "$found"
  exit 1
fi
