#!/usr/bin/env bash
# Usage: extract.sh PAGE.md LANGUAGE    Prints the page's blocks of that language, one after the other, with #line directives for cpp.
set -euo pipefail
awk -v language="$2" -v page="$1" '
  /^```/ && inside { inside = 0; next }
  $0 == "```" language { inside = 1; if (language == "cpp") printf "#line %d \"%s\"\n", NR + 1, page; next }
  inside' "$1"
