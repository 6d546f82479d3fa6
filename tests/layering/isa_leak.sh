#!/usr/bin/env bash
# Usage: isa_leak.sh NAMESPACE OBJECT...   (OBJECT: files compiled for that instruction set)
# Fails when one of them defines a weak function outside calque::NAMESPACE. The linker keeps one copy of such a function
# for the whole program; if that is this one, a machine without the instruction set dies of an illegal instruction.
set -euo pipefail

isa=$1
shift
leaks=$(nm -C --defined-only "$@" | awk -v isa="$isa" '
  /:$/ { file = $0; next }
  $2 == "W" { name = $0; sub(/^[0-9a-f]* W /, "", name); if (index(name, isa "::") == 0) print file " " name }')
if [[ -n $leaks ]]; then
  echo "weak functions compiled for $isa outside its namespace:"
  echo "$leaks"
  exit 1
fi
