#!/usr/bin/env bash
# Lays out every C++ file of the tree with clang-format 16 (another release lays out otherwise); with --check, only says which
# ones it would change.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/setup.sh
calque_need style

mode=(-i)
if [[ ${1:-} == --check ]]; then mode=(--dry-run --Werror); fi
git ls-files -z '*.h' '*.cpp' '*.inc' | xargs -0 -r clang-format-16 "${mode[@]}"
