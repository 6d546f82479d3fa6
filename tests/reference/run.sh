#!/usr/bin/env bash
# tests/reference/run.sh BUILD: tools/reference_filter.awk turns a header's plain comments into Doxygen's, and tools/reference.sh makes
# pages of them.
set -euo pipefail
build=$1
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=$(mktemp -d "${TMPDIR:-/tmp}/calque-reference.XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { printf '%s\n' "$@" >&2 && exit 1; }

cat >"$work/sample.h" <<'HEADER'
// What the header is: a list<int> of things.
#pragma once

// ---- things ----
// Makes one:
//
//   Thing t = make(1);
//
// and no more.
Thing make(int count, std::source_location where = std::source_location::current());
struct Thing {
  int size;  // how many
  int other = f({1, 2});
};
HEADER
cat >"$work/expected" <<'SHOWN'
/// \file
/// What the header is: a list&lt;int> of things.
#pragma once


/// Makes one:
/// 
///
///     Thing t = make(1);
///
/// 
/// and no more.
Thing make(int count);
struct Thing {
  int size;  ///< how many
  int other = f({1, 2});
};
SHOWN
awk -f tools/reference_filter.awk "$work/sample.h" >"$work/shown"
diff "$work/expected" "$work/shown" || fail "the filter shows Doxygen something else (expected <, found >)"

if ! command -v doxygen >/dev/null || [[ $(realpath "$build") != "$(realpath build/release)" ]]; then
  echo "the filter alone: Doxygen is not here, or this is another build"
  exit 0
fi
tools/reference.sh "$work/out" include/calque/nn/linear.h include/calque/op/tensor.h >/dev/null || fail "tools/reference.sh failed"
page=$(find "$work/out/html" -name 'structcalque_1_1Embedding.html')
[[ -n $page ]] || fail "no page for calque::Embedding"
tensor=$(find "$work/out/html" -name 'classcalque_1_1Tensor.html')
[[ -n $tensor ]] || fail "no page for calque::Tensor"
grep -q 'matmul' "$tensor" || fail "Tensor's page lacks the methods that are made from stanzas"
if grep -q 'source_location' "$tensor"; then fail "Tensor's page shows the line of the call as a parameter"; fi
