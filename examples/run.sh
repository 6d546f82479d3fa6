#!/usr/bin/env bash
# Usage: run.sh EXPECTED PROGRAM ARGUMENT...    The program must succeed and print what the regular expression EXPECTED matches.
set -euo pipefail
expected=$1
shift
output=$("$@" 2>&1) || { echo "$output"; echo "exit status $?"; exit 1; }
echo "$output"
if [[ ! $output =~ $expected ]]; then
  echo "expected: $expected"
  exit 1
fi
