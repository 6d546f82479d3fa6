#!/usr/bin/env bash
# Lays out every C++ file of the tree with clang-format; with --check, only says which ones it would change.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode=(-i)
if [[ ${1:-} == --check ]]; then mode=(--dry-run --Werror); fi
git ls-files -z '*.h' '*.cpp' '*.inc' | xargs -0 -r clang-format "${mode[@]}"
