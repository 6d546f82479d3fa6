#!/usr/bin/env bash
# Writes the API reference, one HTML page a header, class and function, to build/reference: tools/reference.sh [FOLDER [HEADER...]]
# The headers' comments are plain //. tools/reference_filter.awk shows them to Doxygen as its own: a comment above a declaration or behind
# it belongs to it, the one that opens a header to the header, and what is indented in it is code.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/setup.sh

out=$(realpath -m "${1:-build/reference}")
input="include/calque build/release/generated/include/calque docs/reference.md"
if (($# > 1)); then input="${*:2} docs/reference.md"; fi
calque_need build reference
calque_build release calque_generated
mkdir -p "$out"
doxygen - >"$out/doxygen.log" <<EOT
PROJECT_NAME = Calque
PROJECT_BRIEF = "Trace, export and run PyTorch and Hugging Face models in C++"
PROJECT_NUMBER = $(sed -n 's/^project(calque VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
INPUT = $input
FILE_PATTERNS = *.h *.md
RECURSIVE = YES
STRIP_FROM_PATH = include build/release/generated/include
STRIP_FROM_INC_PATH = include build/release/generated/include
INPUT_FILTER = "awk -f tools/reference_filter.awk"
USE_MDFILE_AS_MAINPAGE = docs/reference.md
OUTPUT_DIRECTORY = $out
GENERATE_LATEX = NO
EXTRACT_ALL = YES
EXTRACT_STATIC = NO
HIDE_UNDOC_RELATIONS = YES
EXCLUDE_SYMBOLS = *_detail *_detail::*
JAVADOC_AUTOBRIEF = YES
MARKDOWN_SUPPORT = YES
AUTOLINK_SUPPORT = YES
MACRO_EXPANSION = YES
PREDEFINED = CALQUE_REFERENCE=1
INCLUDE_PATH = include build/release/generated/include
INCLUDE_FILE_PATTERNS = *.inc
HAVE_DOT = NO
SEARCHENGINE = YES
WARN_IF_UNDOCUMENTED = NO
WARN_LOGFILE = $out/warnings.txt
QUIET = YES
EOT
pages=$(find "$out/html" -name '*.html' | wc -l)
say "$pages pages: $out/html/index.html; what Doxygen did not understand: $out/warnings.txt"
